//! `copysim scenario NAME [TARGET]`: measures and shows the result.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::options::{Measuring, Showing};
use super::{output, signals, watch::Watch};
use crate::catalogue::Environment;
use crate::error::{Error, Result};
use crate::platform::{Host, OS, write_atomically};
use crate::report;
use crate::result::{Document, Severity, mask, store};
use crate::scenario::plan::{Plan, Request};
use crate::scenario::run::{Around, run as carry_out};
use crate::{Context, Side};

#[derive(clap::Args)]
pub struct Args {
    /// A scenario (see `copysim list`) or the path of a scenario file
    name: String,
    /// The directory whose drive is measured
    #[arg(default_value = ".")]
    target: PathBuf,
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
    let options = args.measuring.resolve();
    let identify = options.identify;
    let results = match args.results {
        Some(directory) => directory,
        None => store::default_dir(&|name| std::env::var_os(name))?,
    };
    let cancel = signals::cancel()?;
    let watch = Watch::new(args.showing.quiet, args.showing.color);
    let host = Host::real();
    let request = Request { scenario: &args.name, target: &args.target, source: args.source.as_deref(), options };
    let plan = Plan::resolve(request, OS, &host, &environment)?;
    let saved = RefCell::new(None);
    let save = |document: &Document| -> Result<()> {
        *saved.borrow_mut() = Some(store::save(&masked(document, identify)?, &results)?);
        Ok(())
    };
    let around = Around { system: OS, host: &host, observer: &watch, cancel: &cancel, save: &save };
    let (document, outcome) = carry_out(&plan, around, copysim_itself());
    show(&document, args.json.as_deref(), identify)?;
    if let Some(path) = saved.borrow().as_ref() {
        output::note(&format!("result: {}", path.display()));
    }
    outcome?;
    let invalid = document.runs.iter().flat_map(|run| &run.phases).flat_map(|phase| &phase.flags).any(|flag| flag.severity == Severity::Invalid);
    Ok(if args.strict && invalid { 3 } else { 0 })
}

/// The text view of a record in which something was done; a plan that was refused has said why.
fn show(document: &Document, json: Option<&Path>, identify: bool) -> Result<()> {
    let to_standard_output = json == Some(Path::new("-"));
    if let Some(path) = json {
        let text = report::render(&masked(document, identify)?, "json")?;
        if to_standard_output {
            output::print(&text)?;
        } else {
            write_atomically(path, text.as_bytes()).during("write", Side::Host, path)?;
        }
    }
    if to_standard_output || document.runs.is_empty() { Ok(()) } else { output::print(&report::render(document, "text")?) }
}

fn masked(document: &Document, identify: bool) -> Result<Document> {
    let mut document = document.clone();
    if !identify {
        mask::mask(&mut document, &mask::Identity::from_env(&|name| std::env::var(name).ok()))?;
    }
    Ok(document)
}

fn copysim_itself() -> crate::result::Copysim {
    crate::result::Copysim {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("COPYSIM_COMMIT").map(str::to_owned),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        arguments: std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect(),
    }
}

/// Kept here so that `plan` resolves exactly as a measurement would.
pub fn resolve(name: &str, target: &Path, source: Option<&Path>, measuring: Measuring) -> Result<Plan, Error> {
    let request = Request { scenario: name, target, source, options: measuring.resolve() };
    Plan::resolve(request, OS, &Host::real(), &Environment::of_process())
}
