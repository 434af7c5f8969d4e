//! `copysim scenario NAME [TARGET]`: measures and shows the result.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Outcome;
use super::options::{Measuring, Showing};
use super::{output, signals, watch::Watch, watchdog::Rescue};
use crate::catalogue::Environment;
use crate::error::{Error, Result};
use crate::path_text::path_text;
use crate::platform::{Host, OS, write_atomically};
use crate::report;
use crate::result::{Document, mask, store};
use crate::scenario::account::was_begun;
use crate::scenario::plan::{Plan, Request};
use crate::scenario::run::{Around, run as carry_out};
use crate::{Context, Side};

#[derive(clap::Args)]
pub struct Args {
    /// A scenario (see `copysim list`) or the path of a scenario file
    name: String,
    /// The directory whose drive is measured [default: the current one]
    target: Option<PathBuf>,
    /// The directory to copy from in cross-drive scenarios [default: memory, else the generator]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    /// Where results are kept [default: the user's data directory]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Also write the result's JSON here; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Exit with 3 when a flag invalidates the figure
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    showing: Showing,
}

pub fn run(args: Args) -> Outcome {
    let environment = Environment::of_process();
    let options = crate::scenario::options::Options { strict: args.strict, ..args.measuring.resolve() };
    let identify = options.identify;
    let results = match args.results {
        Some(directory) => directory,
        None => store::default_dir(&|name| std::env::var_os(name))?,
    };
    let cancel = signals::cancel()?;
    let rescue = rescue(results.clone(), identify, args.json.clone());
    let watch = Watch::new(args.showing.quiet, args.showing.color, Arc::clone(&cancel), rescue);
    let host = Host::real();
    let request = Request { scenario: &args.name, target: args.target.as_deref(), source: args.source.as_deref(), options };
    let plan = Plan::resolve(request, OS, &host, &environment)?;
    store::prepare(OS.files, &results)?;
    let keeper = Keeper::new(results, identify);
    let save = |document: &Document| keeper.save(document);
    let around = Around { system: OS, host: &host, observer: &watch, cancel: &cancel, save: &save };
    let (document, outcome) = carry_out(&plan, around, copysim_itself());
    let begun = was_begun(&document, &outcome);
    keeper.end(&document, outcome, begun, args.json.as_deref())
}

/// Keeps and shows the record so far, where there is one.
pub(super) fn rescue(results: PathBuf, identify: bool, json: Option<PathBuf>) -> Rescue {
    Box::new(move |signal, record| {
        let Some(document) = record else { return Err(Error::Interrupted(signal)) };
        let keeper = Keeper::new(results.clone(), identify);
        let saved = keeper.save(&document);
        keeper.end(&document, saved.and(Err(Error::Interrupted(signal))), true, json.as_deref())
    })
}

/// Keeps the record where it was wished, or else where temporary files are: what was measured is not lost because a place was.
pub(super) struct Keeper {
    results: PathBuf,
    identify: bool,
    saved: RefCell<Option<PathBuf>>,
    /// Why it is not where it was wished.
    failure: RefCell<Option<Error>>,
}

impl Keeper {
    pub(super) fn new(results: PathBuf, identify: bool) -> Self {
        Self { results, identify, saved: RefCell::default(), failure: RefCell::default() }
    }

    /// Shows the record if a run was begun, says where it is, and answers with how it ended.
    pub(super) fn end(self, document: &Document, outcome: Result<()>, begun: bool, json: Option<&Path>) -> Outcome {
        // What is shown is what is kept, so that `report` shows the same again.
        let shown = if begun { show(&masked(document, self.identify)?, json) } else { Ok(()) };
        if let Some(path) = self.saved.into_inner() {
            output::note(&format!("result: {}", path_text(&path)));
        }
        outcome?;
        self.failure.into_inner().map_or(Ok(()), Err)?;
        shown?;
        Ok(document.exit_code.unwrap_or(0))
    }

    pub(super) fn save(&self, document: &Document) -> Result<()> {
        let document = masked(document, self.identify)?;
        let (path, failure) = match store::save(&document, &self.results) {
            Ok(path) => (path, None),
            Err(failure) => (store::save(&document, &std::env::temp_dir())?, Some(failure)),
        };
        *self.saved.borrow_mut() = Some(path);
        *self.failure.borrow_mut() = failure;
        Ok(())
    }
}

/// The text view where a run was begun, and the JSON where it was asked for.
fn show(document: &Document, json: Option<&Path>) -> Result<()> {
    if json == Some(Path::new("-")) {
        return output::print(&report::render(document, "json")?);
    }
    let printed = if document.runs.is_empty() { Ok(()) } else { output::print(&report::render(document, "text")?) };
    let written = match json {
        Some(path) => write_atomically(path, report::render(document, "json")?.as_bytes()).during("write", Side::Host, path),
        None => Ok(()),
    };
    written.and(printed)
}

/// What may be shown of a record.
pub fn masked(document: &Document, identify: bool) -> Result<Document> {
    let mut document = document.clone();
    if !identify {
        mask::mask(&mut document, &identity())?;
    }
    Ok(document)
}

/// What may be shown of sentences beside a record.
pub fn masked_texts(texts: &[String], identify: bool) -> Vec<String> {
    let identity = identity();
    texts.iter().map(|text| if identify { text.clone() } else { identity.mask(text) }).collect()
}

fn identity() -> mask::Identity {
    mask::Identity::from_env(&|name| std::env::var(name).ok())
}

pub fn copysim_itself() -> crate::result::Copysim {
    crate::result::Copysim {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("COPYSIM_COMMIT").map(str::to_owned),
        target: env!("COPYSIM_TARGET").to_owned(),
        arguments: std::env::args_os().skip(1).map(|argument| path_text(argument.as_ref())).collect(),
    }
}

/// Kept here so that `plan` resolves exactly as a measurement would.
pub fn resolve(name: &str, target: Option<&Path>, source: Option<&Path>, measuring: Measuring) -> Result<Plan, Error> {
    let request = Request { scenario: name, target, source, options: measuring.resolve() };
    Plan::resolve(request, OS, &Host::real(), &Environment::of_process())
}
