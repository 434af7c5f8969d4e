//! `copysim capacity DIR`: fills the drive, reads it again and says what it really holds.

use std::path::PathBuf;
use std::sync::Arc;

use super::options::Showing;
use super::scenario::{Keeper, copysim_itself, rescue};
use super::{Outcome, signals, watch::Watch};
use crate::capacity::run::{Options, run as carry_out, was_begun};
use crate::platform::{Host, OS};
use crate::result::{Document, store};
use crate::scenario::run::Around;
use crate::units::Bytes;

#[derive(clap::Args)]
pub struct Args {
    /// The directory whose drive is filled; files of F3 or h2testw in it are checked instead
    directory: PathBuf,
    /// Write only so much [default: all that is free]
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// Only check files that F3 or h2testw wrote (1.h2w, 2.h2w, …): nothing is written
    #[arg(long, conflicts_with_all = ["size", "keep"])]
    check: bool,
    /// Keep the test data, so that the same command reads them again, after replugging the drive for example
    #[arg(long)]
    keep: bool,
    /// Refuse to write more than this
    #[arg(long, value_name = "BYTES")]
    max_write: Option<Bytes>,
    /// Your own name for this check
    #[arg(long)]
    label: Option<String>,
    /// Keep host name, user name and home paths in the result
    #[arg(long)]
    identify: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Where results are kept [default: the user's data directory]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Also write the result's JSON here; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    showing: Showing,
}

pub fn run(args: Args) -> Outcome {
    let options = Options {
        size: args.size.map(|bytes| bytes.0),
        check: args.check,
        keep: args.keep,
        max_write: args.max_write.map(|bytes| bytes.0),
        yes: args.yes,
        identify: args.identify,
        label: args.label,
    };
    let results = match args.results {
        Some(directory) => directory,
        None => store::default_dir(&|name| std::env::var_os(name))?,
    };
    let cancel = signals::cancel_saying("stopping: what was written stays, so that the same command goes on with it (again to stop at once)")?;
    let rescue = rescue(results.clone(), options.identify, args.json.clone());
    let watch = Watch::new(args.showing.quiet, args.showing.color, Arc::clone(&cancel), rescue);
    let host = Host::real();
    store::prepare(OS.files, &results)?;
    let keeper = Keeper::new(results.clone(), options.identify);
    let save = |document: &Document| keeper.save(document);
    let around = Around { system: OS, host: &host, observer: &watch, cancel: &cancel, save: &save };
    let (document, outcome) = carry_out(&args.directory, &options, &results, around, copysim_itself());
    let begun = was_begun(&document, &outcome);
    keeper.end(&document, outcome, begun, args.json.as_deref())
}
