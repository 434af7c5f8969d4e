//! Whether a drive moves, for those who watch the work from outside.

use std::path::{Path, PathBuf};

use super::{CounterReader, Drive};
use crate::platform::Host;

/// The counters of a drive under the name that the user gave it.
#[derive(Debug)]
pub struct Pulse {
    path: PathBuf,
    counted: Option<CounterReader>,
}

/// What a look at it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Requests that were completed since the device appeared.
    pub completed: u64,
    /// Whether requests are under way.
    pub is_asked: bool,
}

impl Pulse {
    /// Opens the counters of a drive.
    #[must_use]
    pub fn of(host: &Host, drive: &Drive) -> Self {
        Self { path: drive.path.clone(), counted: CounterReader::open(host, &drive.counted()) }
    }

    /// A directory whose drive nobody counts.
    #[must_use]
    pub fn uncounted(path: PathBuf) -> Self {
        Self { path, counted: None }
    }

    /// The directory that the user named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the drive has done; `None` where nobody counts it.
    #[must_use]
    pub fn beat(&self) -> Option<Beat> {
        let counters = self.counted.as_ref()?.read().ok()?;
        let others = [counters.discards, counters.flushes].into_iter().flatten().sum::<u64>();
        Some(Beat { completed: counters.reads + counters.writes + others, is_asked: counters.in_flight > 0 })
    }
}
