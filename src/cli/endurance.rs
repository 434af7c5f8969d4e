//! `copysim endurance DIR`: static data beside files that are written over again and again, until a limit or the first loss.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::options::Showing;
use super::scenario::{Keeper, copysim_itself, rescue};
use super::{Outcome, signals, watch::Watch};
use crate::capacity::bench::was_begun;
use crate::endurance::budget::Limits;
use crate::endurance::run::{Options, run as carry_out};
use crate::platform::{Host, OS};
use crate::result::{Document, store};
use crate::scenario::run::Around;
use crate::units::Bytes;

#[derive(clap::Args)]
pub struct Args {
    /// The directory whose drive is worn
    directory: PathBuf,
    /// No round begins later than this after the first byte; this or --max-write must be said
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    max_time: Option<Duration>,
    /// Write no more than this, static data included; this or --max-time must be said
    #[arg(long, value_name = "BYTES")]
    max_write: Option<Bytes>,
    /// Static data, and what a round writes over at most [default: a tenth of what is free, an eighth of --max-write, at most 1 GB]
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// Your own name for this test
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
        limits: Limits { max_write: args.max_write.map(|bytes| bytes.0), max_time: args.max_time },
        yes: args.yes,
        identify: args.identify,
        label: args.label,
    };
    let results = match args.results {
        Some(directory) => directory,
        None => store::default_dir(&|name| std::env::var_os(name))?,
    };
    let cancel = signals::cancel()?;
    let rescue = rescue(results.clone(), options.identify, args.json.clone());
    let watch = Watch::new(args.showing.quiet, args.showing.color, Arc::clone(&cancel), rescue);
    let host = Host::real();
    store::prepare(OS.files, &results)?;
    let keeper = Keeper::new(results, options.identify);
    let save = |document: &Document| keeper.save(document);
    let around = Around { system: OS, host: &host, observer: &watch, cancel: &cancel, save: &save };
    let (document, outcome) = carry_out(&args.directory, &options, around, copysim_itself());
    let begun = was_begun(&document, &outcome);
    keeper.end(&document, outcome, begun, args.json.as_deref())
}
