//! `copysim launch [DIR] -- COMMAND`: starts a program, cold and warm, and says how long it takes until it is ready.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::check::Recording;
use super::options::CacheArg;
use super::{Outcome, signals};
use crate::launch::{self, run::Options, sign::Sign};

const ABOUT_SIGNS: &str = "Signs of readiness (--until):
  exit             it has ended (the start of a tool that does little: git --version)
  port:HOST:PORT   something takes connections there
  file:PATH        the file is there, or is another one than before
  line:TEXT        a line of its output, standard or error, contains the text
  quiet[:TIME]     it and all that it started have used neither CPU (less than 1 %) nor storage for so long
                   (1s when not said); the time counted is that of the last activity, to 25 ms

The program runs in the current directory, without input and without a terminal; what it says is kept out of the way, and its last lines are shown \
when it fails. When the sign has come, it and all that it started are asked to end (SIGTERM), and made to after 3 s; nothing else ever is.

Cold means that everything was dropped from this machine's memory (root), but for what running programs use: shared libraries mostly. An ordinary \
user gets its own file, its interpreter and its libraries out of memory, names stay there, and the start is called partly cold.";

#[derive(clap::Args)]
#[command(after_help = ABOUT_SIGNS)]
pub struct Args {
    /// A directory on the drive that is measured [default: where the program's own file lies, behind PATH and all links]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// The sign by which it is known to be ready: see below
    #[arg(long, value_name = "SIGN", default_value = "exit")]
    until: Sign,
    /// How often it is started, cold and warm each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long the sign is awaited
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// What this machine's caches hold before each start [default: nothing, then, for as many starts more, all]
    #[arg(long, value_enum)]
    cache: Option<CacheArg>,
    /// How long the drive must have been idle before each start
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    settle: Duration,
    /// Find out what the drive did meanwhile, from the kernel's block events (root, tracefs)
    #[arg(long)]
    block_trace: bool,
    /// Exit with 3 when a flag invalidates the figure
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    recording: Recording,
}

pub fn run(args: Args) -> Outcome {
    let options = Options {
        directory: args.directory,
        command: args.command,
        search_path: std::env::var_os("PATH").unwrap_or_default(),
        runs: args.runs,
        sign: args.until,
        timeout: args.timeout,
        cache: args.cache.map(Into::into),
        settle: args.settle,
        block_trace: args.block_trace,
        strict: args.strict,
        identify: args.recording.identify,
        label: args.recording.label.clone(),
    };
    let cancel = signals::cancel_saying("stopping: the program is ended, what was measured is kept (again to stop at once)")?;
    args.recording.record(&cancel, |_, around, copysim| launch::run::run(&options, around, copysim))
}
