//! `copysim capacity DIR`: fills the drive, reads it again and says what it really holds.

use std::path::PathBuf;

use super::check::Checking;
use super::{Outcome, signals};
use crate::capacity::{self, run::Options};
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
    #[command(flatten)]
    checking: Checking,
}

pub fn run(args: Args) -> Outcome {
    let options = Options {
        size: args.size.map(|bytes| bytes.0),
        check: args.check,
        keep: args.keep,
        max_write: args.max_write.map(|bytes| bytes.0),
        yes: args.checking.yes,
        identify: args.checking.recording.identify,
        label: args.checking.recording.label.clone(),
    };
    let cancel = signals::cancel_saying("stopping: what was written stays, so that the same command goes on with it (again to stop at once)")?;
    args.checking.recording.record(&cancel, |results, around, copysim| capacity::run::run(&args.directory, &options, results, around, copysim))
}
