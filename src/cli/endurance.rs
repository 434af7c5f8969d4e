//! `copysim endurance DIR`: static data beside files that are written over again and again, until a limit or the first loss.

use std::path::PathBuf;
use std::time::Duration;

use super::check::Checking;
use super::{Outcome, signals};
use crate::endurance::budget::Limits;
use crate::endurance::{self, run::Options};
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
    #[command(flatten)]
    checking: Checking,
}

pub fn run(args: Args) -> Outcome {
    let options = Options {
        size: args.size.map(|bytes| bytes.0),
        limits: Limits { max_write: args.max_write.map(|bytes| bytes.0), max_time: args.max_time },
        yes: args.checking.yes,
        identify: args.checking.recording.identify,
        label: args.checking.recording.label.clone(),
    };
    let cancel = signals::cancel()?;
    args.checking.recording.record(&cancel, |_, around, copysim| endurance::run::run(&args.directory, &options, around, copysim))
}
