//! What the user may choose about a measurement, resolved from the command line.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::cache::evict::Wanted;
use crate::units::Scale;
use crate::workload::copy::Order;

/// The state of a drive's free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it happens to be.
    AsIs,
    /// Written all over, so that a drive of flash has nothing that it knows to be free.
    Dirty,
    /// Told to the drive to be free, before every run.
    Trimmed,
}

impl State {
    /// The word on the command line and in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::Dirty => "dirty",
            Self::Trimmed => "trimmed",
        }
    }
}

/// The choices.
#[derive(Debug, Clone)]
pub struct Options {
    /// Repetitions; `None` for what the scenario says.
    pub runs: Option<u32>,
    /// The seed of all corpora.
    pub seed: u64,
    /// The size of all corpora.
    pub scale: Scale,
    /// The engine's name.
    pub engine: String,
    /// Copying threads.
    pub threads: usize,
    /// The order of files.
    pub order: Order,
    /// What the caches should be.
    pub cache: Wanted,
    /// How long the drive must be idle before a window opens; `None` for quiet and 5 s, or 1 s with `--quick`.
    pub settle: Option<Duration>,
    /// How full the target's file system is made before anything is measured, percent; of a scenario that fills: how full it is at the end.
    pub fill: Option<u8>,
    /// The state that the target's free space is brought into before anything is measured.
    pub state: State,
    /// Whether the same work is done once more with data that the drive has never seen.
    pub control: bool,
    /// Whether the window is watched while it is open.
    pub evidence: bool,
    /// Whether copies are read again and compared.
    pub verify: bool,
    /// Whether the last copy is kept.
    pub keep: bool,
    /// No run begins later than this after the first.
    pub max_time: Option<Duration>,
    /// No more bytes than this are written.
    pub max_write: Option<u64>,
    /// A smaller and quicker look: less settling.
    pub quick: bool,
    /// Whether questions count as answered with yes.
    pub yes: bool,
    /// Whether names of host and user and serial numbers stay in the record.
    pub identify: bool,
    /// The user's own name for the measurement.
    pub label: Option<String>,
    /// Whether an invalidating flag is a failure.
    pub strict: bool,
    /// Where one line for each file copied goes.
    pub samples: Option<PathBuf>,
    /// Whether the kernel's block events are traced in the window.
    pub block_trace: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runs: None,
            seed: 0,
            scale: Scale::FULL,
            engine: "buffered".to_owned(),
            threads: 1,
            order: Order::Manifest,
            cache: Wanted::Cold,
            settle: None,
            fill: None,
            state: State::AsIs,
            control: false,
            evidence: true,
            verify: true,
            keep: false,
            max_time: None,
            max_write: None,
            quick: false,
            yes: false,
            identify: false,
            label: None,
            strict: false,
            samples: None,
            block_trace: false,
        }
    }
}

impl Options {
    /// How long the drive must have been idle.
    #[must_use]
    pub fn settle_time(&self) -> Duration {
        self.settle.unwrap_or(Duration::from_secs(if self.quick { 1 } else { 5 }))
    }
}

/// The choices that shape a result, as they stand in the record beside the scenario.
#[derive(Debug, Serialize)]
pub struct Recorded<'a> {
    /// The engine asked for.
    pub engine: &'a str,
    /// Copying threads.
    pub threads: usize,
    /// The order of files.
    pub order: &'a str,
    /// What the caches should be.
    pub cache: &'a str,
    /// How full the target was made, percent.
    pub fill_percent: Option<u8>,
    /// The state of its free space.
    pub state: &'a str,
    /// Whether a control was made.
    pub control: bool,
    /// Whether the window was watched while it was open.
    pub evidence: bool,
    /// Seconds of idleness before each window.
    pub settle_s: f64,
    /// Whether copies are compared.
    pub verify: bool,
}
