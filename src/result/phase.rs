//! The record of one phase: window, work, counters, waits, latencies, evidence, and what other files here have more of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::block::{BlockTrace, Overlap};
use super::capacity::Capacity;
use super::course::{Curve, KernelMessage, Timeline};
use super::document::Flag;
use super::endurance::Endurance;
use super::integrity::Integrity;
use super::launch::Launch;
use super::terms::{Answer, Call, LatencyOp, PhaseKind, PhaseStatus, Proof, SourceKind, StartPoint, Verdict, Warmth};
use crate::Result;
use crate::measure::Histogram;

/// One timed piece of work. Everything that was not found out is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name in the scenario. Phases of a sweep share it and differ in `point`.
    pub name: String,
    /// What it does.
    pub kind: PhaseKind,
    /// How it ended.
    pub status: PhaseStatus,
    /// The process that did it, where several work together.
    pub rank: u32,
    /// The corpus it worked on: an index into `corpora`.
    pub corpus: Option<usize>,
    /// Where in a sweep it stands.
    pub point: Point,
    /// When its window opened, ns since the record was begun.
    pub start_ns: u64,
    /// The ends of its window.
    pub window: Window,
    /// Files completed.
    pub files: u64,
    /// Bytes of content in them: the useful bytes, each counted once. Rates are derived from it.
    pub bytes: u64,
    /// What the workload asked of the system; null where another program did it.
    pub work: Option<Work>,
    /// How the bytes were moved.
    pub engine: Option<Engine>,
    /// How the data were flushed, and whether they reached the medium.
    pub flush: Option<Flush>,
    /// What was in this machine's caches when the window opened.
    pub cache: Option<Cache>,
    /// Where the data that were written came from.
    pub source: Option<Source>,
    /// What the drives' own counters say, by drive id. A drive without counters is not in it.
    pub device: BTreeMap<String, DeviceCounters>,
    /// Where the files' data lie on the drives.
    pub layout: Option<Layouts>,
    /// Where the copier waited.
    pub time: Option<Waits>,
    /// The trace of the kernel's block events; null where none was asked for.
    #[serde(default)]
    pub block_trace: Option<BlockTrace>,
    /// How long operations took.
    pub latency: Vec<Latency>,
    /// Progress over time.
    pub timeline: Option<Timeline>,
    /// What the rate did over bytes and time; null where nothing was sampled.
    #[serde(default)]
    pub curve: Option<Curve>,
    /// What the kernel reported about the drives in the window, at most 20 messages; null where its log could not be read.
    #[serde(default)]
    pub kernel_log: Option<Vec<KernelMessage>>,
    /// Why `kernel_log` is null.
    #[serde(default)]
    pub kernel_log_reason: Option<String>,
    /// The slowest files, the slowest first, at most 20.
    pub slowest_files: Vec<SlowFile>,
    /// For `block`: lines, stop rule, steady state.
    pub block: Option<Value>,
    /// For `launch`: program, sign of readiness, background, waits.
    pub launch: Option<Launch>,
    /// For `replay`: profile, mode, idle policy, lateness.
    pub replay: Option<Value>,
    /// For the reading of `capacity`: what the drive holds.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// For the last phase of `endurance`: what became of the drive.
    #[serde(default)]
    pub endurance: Option<Endurance>,
    /// The comparison of what was written with the manifest; null when none was made.
    pub integrity: Option<Integrity>,
    /// What was found out about the truth of the figures.
    pub evidence: Vec<Evidence>,
    /// Reservations.
    pub flags: Vec<Flag>,
    /// The sentence that ended the phase.
    pub error: Option<String>,
}

impl Phase {
    /// A phase that has not run.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: PhaseKind) -> Self {
        Self {
            name: name.into(),
            kind,
            status: PhaseStatus::NotRun,
            rank: 0,
            corpus: None,
            point: Point::default(),
            start_ns: 0,
            window: Window::default(),
            files: 0,
            bytes: 0,
            work: None,
            engine: None,
            flush: None,
            cache: None,
            source: None,
            device: BTreeMap::new(),
            layout: None,
            time: None,
            block_trace: None,
            latency: Vec::new(),
            timeline: None,
            curve: None,
            kernel_log: None,
            kernel_log_reason: None,
            slowest_files: Vec::new(),
            block: None,
            launch: None,
            replay: None,
            capacity: None,
            endurance: None,
            integrity: None,
            evidence: Vec::new(),
            flags: Vec::new(),
            error: None,
        }
    }

    /// Whether a comparison was made and found files that differ.
    #[must_use]
    pub fn data_differ(&self) -> bool {
        self.integrity.as_ref().is_some_and(|integrity| integrity.files_good < integrity.files_checked || !integrity.mismatches.is_empty())
    }
}

/// A point of a sweep. What the sweep does not vary is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Size of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Requests in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// How far the data can be compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressible_percent: Option<u8>,
}

impl Point {
    /// Whether the phase belongs to no sweep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The ends of a window, each in ns since it opened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The last call came back.
    pub returned_ns: Option<u64>,
    /// The data were flushed: the headline. Equal to `returned_ns` where nothing was written; null where the flush failed or was not made.
    pub durable_ns: Option<u64>,
    /// The device stopped writing.
    pub quiet_ns: Option<u64>,
    /// Why `quiet_ns` is null.
    pub quiet_reason: Option<String>,
    /// The first file was done.
    pub first_done_ns: Option<u64>,
}

/// What the workload asked of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Bytes that read calls brought.
    pub read_bytes: u64,
    /// Bytes that write calls took.
    pub written_bytes: u64,
    /// Read calls.
    pub reads: u64,
    /// Write calls.
    pub writes: u64,
    /// Flush calls.
    pub flushes: u64,
    /// Files that failed.
    pub files_failed: u64,
}

/// How bytes were moved.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Engine {
    /// Its name in the table of engines.
    pub name: String,
    /// The mechanism that was really used.
    pub mechanism: String,
    /// Threads.
    pub threads: Option<u32>,
    /// The order of files: `manifest` or `readdir`.
    pub order: Option<String>,
    /// What was carried over besides content: `mtime`, `permissions`.
    pub preserve: Option<Vec<String>>,
    /// The rate of the same engine from memory to memory on this host, bytes/s: the tool's own ceiling.
    pub ceiling_bytes_per_s: Option<u64>,
}

/// How the data were flushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flush {
    /// The calls, in words.
    pub method: String,
    /// Flushes that the device counted.
    pub device_flushes: Option<u64>,
    /// Whether the device has a volatile write cache.
    pub volatile_cache: Option<bool>,
    /// Whether the data reached the medium before the clock stopped.
    pub reaches_medium: Answer,
}

/// What was in this machine's caches when the window opened. A drive's own cache cannot be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// How the caches were emptied, in words.
    pub method: String,
    /// Whether content was cached.
    pub data: Warmth,
    /// Whether names and attributes were cached.
    pub metadata: Warmth,
    /// Bytes of the sample that were resident before the window.
    pub resident_before_bytes: Option<u64>,
    /// Bytes that the device served in the window, as a share of the bytes stored: about 1 when all came from the drive.
    pub device_read_share: Option<f64>,
}

/// Where the data that were written came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Drive, memory, or made while writing.
    pub kind: SourceKind,
    /// How long the writer waited for data to be made, ns.
    pub wait_ns: Option<u64>,
}

/// What a drive counted in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCounters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flush requests.
    pub flushes: Option<u64>,
    /// Discard requests.
    pub discards: Option<u64>,
    /// Bytes that others moved: the device's total less our own.
    pub foreign_bytes: Option<u64>,
    /// Time with at least one request in flight, ns, from the block trace.
    pub inflight_union_ns: Option<u64>,
    /// The kernel's own figure for it, ns: an upper bound only.
    pub io_ticks_ns: Option<u64>,
}

/// Where data lie on the drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Layouts {
    /// The source's files, all of them.
    pub source: Option<Layout>,
    /// A sample of the copied files.
    pub copy: Option<Layout>,
}

/// Where the data of some files lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Layout {
    /// Files looked at.
    pub files: u64,
    /// Their lengths, summed.
    pub bytes: u64,
    /// Pieces in which they lie.
    pub extents: Option<u64>,
    /// Bytes in pieces that other files share.
    pub shared_bytes: Option<u64>,
    /// Bytes that are allocated but not written.
    pub unwritten_bytes: Option<u64>,
    /// Bytes that the file system stores compressed or otherwise encoded.
    pub encoded_bytes: Option<u64>,
    /// The mean place of the data, bytes from the beginning of the file system's address space.
    pub mean_place_bytes: Option<u64>,
}

/// Where the copier waited. `calls_ns` and `outside_ns` add up to the window; with several threads, to the sum of theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// Time in calls, by group, ns.
    pub calls_ns: BTreeMap<Call, u64>,
    /// Time outside calls, ns.
    pub outside_ns: u64,
    /// CPU time of this process in user mode, ns.
    pub user_ns: Option<u64>,
    /// CPU time of this process in the kernel, ns.
    pub system_ns: Option<u64>,
    /// CPU time in the window of what watches the copier: the cost of the evidence, part of this process's own, ns.
    pub evidence_ns: Option<u64>,
    /// What the devices did meanwhile, from the block trace. Its parts add up to the window, to `durable_ns` or, without one, to `returned_ns`.
    pub overlap_ns: Option<Overlap>,
}

/// How long operations of one kind took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The operation.
    pub op: LatencyOp,
    /// From when it counts.
    pub from: StartPoint,
    /// How many.
    pub n: u64,
    /// Their sum, exact, ns.
    pub sum_ns: u64,
    /// The shortest, exact, ns.
    pub min_ns: Option<u64>,
    /// The longest, exact, ns.
    pub max_ns: Option<u64>,
    /// All of them as an HDR histogram (V2 encoding, 3 digits, 1 ns to 1 h), base64.
    pub hdr_v2_base64: String,
}

impl Latency {
    /// The record of a histogram.
    #[must_use]
    pub fn of(op: LatencyOp, from: StartPoint, histogram: &Histogram) -> Self {
        let (n, sum_ns) = (histogram.n(), histogram.sum_ns());
        Self { op, from, n, sum_ns, min_ns: histogram.min_ns(), max_ns: histogram.max_ns(), hdr_v2_base64: histogram.to_base64() }
    }

    /// The histogram of a record.
    ///
    /// # Errors
    /// [`crate::Error::Refused`] when the text is not one that copysim writes.
    pub fn histogram(&self) -> Result<Histogram> {
        Histogram::from_base64(&self.hdr_v2_base64, self.sum_ns, self.min_ns, self.max_ns)
    }
}

/// A file that took long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowFile {
    /// Its path in the corpus.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// From open to close, ns.
    pub ns: u64,
}

/// What was found out about the truth of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it is about.
    pub proof: Proof,
    /// What it says.
    pub verdict: Verdict,
    /// From what it follows, as a sentence with the figures.
    pub because: String,
}
