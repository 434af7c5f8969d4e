//! How the start of a program went: what was started, by which sign it was known to be ready, and what it took until then.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The start of a program, real or played. What was not found out is null. Everything is counted from the start until the sign.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Launch {
    /// What was started: the command line of a real program, as it was given; the name of one whose start was played.
    #[serde(default)]
    pub program: Option<String>,
    /// The sign by which it was known to be ready: of a real program `exit`, `port:HOST:PORT`, `file:PATH`, `line:TEXT` or `quiet:TIME`; of a played start what
    /// its steps say.
    #[serde(default)]
    pub sign: Option<String>,
    /// What went on on the drive at the same time; null where nothing was started beside it.
    #[serde(default)]
    pub background: Option<String>,
    /// From the moment before the program was started until the sign, ns: the headline.
    #[serde(default)]
    pub ready_ns: Option<u64>,
    /// Which of the waits, or of the starts where nothing within them was timed, took longer than a person bears: one for each limit, in rising order.
    #[serde(default)]
    pub waits: Vec<LaunchWaits>,
    /// Pages that were not in place.
    #[serde(default)]
    pub faults: Option<LaunchFaults>,
    /// Processor time of the program and of all that it started, in user mode, ns; of a played start, of its player.
    #[serde(default)]
    pub user_ns: Option<u64>,
    /// The same in the kernel, ns.
    #[serde(default)]
    pub system_ns: Option<u64>,
    /// What the program and all that it started moved, on whatever drives, by what the kernel booked to them.
    #[serde(default)]
    pub storage: Option<LaunchStorage>,
    /// The program's exit code, where it had ended by itself; 128 and the signal's number where a signal ended it.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The program's own files as far as they are known before it is started: the executable, its interpreter and its libraries.
    #[serde(default)]
    pub files: Option<LaunchFiles>,
    /// How much memory there was for it, where that was limited.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Pages of files that had to be read again, because they had been put out of memory: `workingset_refault_file` of its control group.
    #[serde(default)]
    pub refaulted_pages: Option<u64>,
    /// Of a played start, what it asks for by its steps.
    #[serde(default)]
    pub shape: Option<LaunchShape>,
}

/// What a start asks of a drive, in the figures in which recorded starts are published. Names and attributes are not in it: how many requests they take is the
/// file system's affair.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchShape {
    /// Reads, page faults among them.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Page faults: reads of 4096 bytes.
    pub faults: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Opens of names that are not there.
    pub misses: u64,
    /// Files opened.
    pub opens: u64,
    /// Reads and writes that are asked for while nothing else is.
    pub alone: u64,
    /// Reads and writes that begin where the one before of the same file, by the same thread, ended.
    pub sequential: u64,
    /// Reads and writes by size in bytes, of the sizes that are powers of two; other sizes are not listed.
    pub by_size: BTreeMap<u64, u64>,
    /// Processor time that it thinks, ns.
    pub think_ns: u64,
}

/// How many waits were longer than a limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchWaits {
    /// The limit, ms.
    pub over_ms: u64,
    /// How many took longer.
    #[serde(default)]
    pub n: u64,
    /// Their time as a share of all time until the sign, 0 to 1; null where that is not known.
    #[serde(default)]
    pub share: Option<f64>,
}

/// Pages that a program touched and that were not in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchFaults {
    /// Faults that were served from memory.
    #[serde(default)]
    pub minor: Option<u64>,
    /// Faults that had to wait for a drive.
    #[serde(default)]
    pub major: Option<u64>,
}

/// What a program moved, by `/proc/PID/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchStorage {
    /// Bytes that had to be read from storage.
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Bytes of pages that it made dirty, less those that were thrown away before they were written.
    #[serde(default)]
    pub written_bytes: Option<u64>,
}

/// The files that are known to be part of a program, before it is started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LaunchFiles {
    /// How many.
    #[serde(default)]
    pub n: u64,
    /// Their lengths, summed.
    #[serde(default)]
    pub bytes: u64,
    /// The length of the program's own file.
    #[serde(default)]
    pub own_bytes: Option<u64>,
    /// Bytes of them in this machine's memory when the window opened; null where that could not be seen.
    #[serde(default)]
    pub resident_bytes: Option<u64>,
    /// Bytes of the program's own file among these.
    #[serde(default)]
    pub own_resident_bytes: Option<u64>,
    /// Those that were in memory, the largest part first, at most 5: other programs that run use them, or they can't be dropped.
    #[serde(default)]
    pub resident: Vec<String>,
}
