//! The record of one phase: window, work, counters, waits, latencies, timeline and evidence.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::capacity::Capacity;
use super::document::Flag;
use super::endurance::Endurance;
use super::launch::Launch;
use super::terms::{
    Answer, Between, Blame, BlockOp, BlockSpan, Call, CurveShape, Difference, KernelEvent, LatencyOp, Measured, PhaseKind, PhaseStatus, Proof,
    RateChange, SecondRead, SourceKind, StartPoint, Verdict, Warmth,
};
use crate::Result;
use crate::measure::{Histogram, Samples};

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

/// Which of source and target had requests in flight, and for how long, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// What source and target are.
    pub between: Between,
    /// Only the source had.
    pub only_source_ns: u64,
    /// Only the target had.
    pub only_target_ns: u64,
    /// Both had.
    pub both_ns: u64,
    /// Neither had.
    pub none_ns: u64,
}

impl Overlap {
    /// The whole window, ns.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        [self.only_source_ns, self.only_target_ns, self.both_ns, self.none_ns].into_iter().fold(0, u64::saturating_add)
    }
}

/// The trace of the kernel's block events, for which `--block-trace` asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockTrace {
    /// Events in the window.
    pub events: u64,
    /// Events that did not fit into the kernel's buffers; null where that is not known. Any makes all that follows from the trace null.
    pub lost: Option<u64>,
    /// Why nothing follows from the trace, as a sentence; null where something does.
    pub reason: Option<String>,
    /// What the drives were asked for, by drive id.
    pub requests: BTreeMap<String, BlockRequests>,
    /// How long requests waited and took, by drive.
    pub latency: Vec<BlockLatency>,
}

/// Requests to a drive that were completed in the window, and the time in which it had any. Unlike the kernel's counters it tells a file system's own reads apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockRequests {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads that the file system marked as of its own data, among all reads.
    pub metadata_reads: u64,
    /// Bytes of these.
    pub metadata_read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Time with at least one flush in flight, ns.
    pub flush_union_ns: u64,
    /// Time in flight of all requests added up, ns: over the window it is the mean queue depth.
    pub inflight_sum_ns: u64,
}

/// How long requests of one kind waited for a drive, or took in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockLatency {
    /// The drive.
    pub drive: String,
    /// What was asked for.
    pub op: BlockOp,
    /// Which part of the way.
    pub span: BlockSpan,
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

impl BlockLatency {
    /// The record of a histogram.
    #[must_use]
    pub fn of(drive: &str, op: BlockOp, span: BlockSpan, histogram: &Histogram) -> Self {
        Self {
            drive: drive.to_owned(),
            op,
            span,
            n: histogram.n(),
            sum_ns: histogram.sum_ns(),
            min_ns: histogram.min_ns(),
            max_ns: histogram.max_ns(),
            hdr_v2_base64: histogram.to_base64(),
        }
    }

    /// The histogram of a record.
    ///
    /// # Errors
    /// [`crate::Error::Refused`] when the text is not one that copysim writes.
    pub fn histogram(&self) -> Result<Histogram> {
        Histogram::from_base64(&self.hdr_v2_base64, self.sum_ns, self.min_ns, self.max_ns)
    }
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

/// Progress over time: at most 600 real sample times and the cumulative series taken at them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Sample times, ns since the window opened.
    pub t_ns: Vec<u64>,
    /// What was read at those times.
    pub series: Vec<Series>,
}

impl Timeline {
    /// The record of samples, named in the order in which the recorder got them.
    #[must_use]
    pub fn of(samples: Samples, names: &[(&str, Measured)]) -> Self {
        let series = names.iter().zip(samples.values).map(|(&(of, what), values)| Series { of: of.to_owned(), what, values });
        Self { series: series.collect(), t_ns: samples.t_ns }
    }

    /// Drops every second sample, the last one excepted.
    pub fn halve(&mut self) {
        let last = self.t_ns.len().saturating_sub(1);
        fn thin<T>(values: &mut Vec<T>, last: usize) {
            let mut index = 0;
            values.retain(|_| {
                index += 1;
                (index - 1) % 2 == 0 || index - 1 == last
            });
        }
        thin(&mut self.t_ns, last);
        for series in &mut self.series {
            thin(&mut series.values, last);
        }
    }
}

/// One series of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// `work` for what the workload did, else a drive's id.
    pub of: String,
    /// The quantity.
    pub what: Measured,
    /// One value for each time; null where it could not be read.
    pub values: Vec<Option<i64>>,
}

/// What a rate did over bytes and time. Rates are derived: bytes over the time without stalls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Whose bytes: the target drive's id, or `work` where it has no counters. Work goes into this machine's memory first, so its changes are no drive's.
    pub of: String,
    /// Which bytes.
    pub what: Measured,
    /// What it looks like.
    pub shape: CurveShape,
    /// Why the shape is unknown, or why a fall is not held against the drive.
    pub because: Option<String>,
    /// The stretches of one rate, in order: one where it is steady or a ramp.
    pub levels: Vec<Level>,
    /// Where the rate changed at once, by at least 15 %.
    pub change_points: Vec<ChangePoint>,
    /// When nothing moved.
    pub stalls: Stalls,
    /// How the rate went up or down bit by bit within the longest level; null where that is too short to say.
    pub drift: Option<Drift>,
}

/// A stretch of one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Bytes since the window opened, at its beginning.
    pub from_bytes: u64,
    /// Bytes since the window opened, at its end.
    pub to_bytes: u64,
    /// Its beginning, ns since the window opened.
    pub from_ns: u64,
    /// Its end, ns since the window opened.
    pub to_ns: u64,
    /// Time in it in which nothing moved, ns.
    pub stalled_ns: u64,
}

impl Level {
    /// Its bytes, and its time without stalls in ns.
    #[must_use]
    pub fn bytes_and_ns(&self) -> (u64, u64) {
        let ns = self.to_ns.saturating_sub(self.from_ns).saturating_sub(self.stalled_ns);
        (self.to_bytes.saturating_sub(self.from_bytes), ns)
    }
}

/// A place at which the rate changed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Bytes since the window opened: for the first fall, the size of the fast part.
    pub at_bytes: u64,
    /// When, ns since the window opened.
    pub at_ns: u64,
    /// In which direction.
    pub change: RateChange,
}

/// Times of at least one second in which nothing moved, or a drive with requests completed none, and went on later.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// All together, ns.
    pub total_ns: u64,
    /// The longest ones, at most 20, in the order in which they came: beginning and end, ns since the window opened.
    pub longest: Vec<(u64, u64)>,
}

/// The first and the last third of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// Bytes of the first third.
    pub first_bytes: u64,
    /// Its time without stalls, ns.
    pub first_ns: u64,
    /// Bytes of the last third.
    pub last_bytes: u64,
    /// Its time without stalls, ns.
    pub last_ns: u64,
    /// Whether the rate went one way by more than a tenth, and not by chance.
    pub significant: bool,
    /// The correlation of rate and temperature, −1 to 1; null where temperatures are not known or hardly changed.
    pub celsius_correlation: Option<f64>,
}

/// A message of the kernel's about a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelMessage {
    /// When it was seen, ns since the window opened; within 50 ms after it was said.
    pub t_ns: u64,
    /// The drive's id.
    pub drive: String,
    /// What it reports.
    pub kind: KernelEvent,
    /// The message, with controls spelled out.
    pub line: String,
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

/// The comparison of files with what was written, after a cold re-read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Integrity {
    /// Files compared.
    pub files_checked: u64,
    /// Files that are what they should be.
    pub files_good: u64,
    /// Those that are not, at most the first 100.
    pub mismatches: Vec<Mismatch>,
    /// Whether a write that was lost would show even where the drive holds what an earlier run had written there: where data have a nonce of their run. A copy
    /// has none, and freed blocks may be used again for the same bytes. Null where nothing was found out.
    #[serde(default)]
    pub stale_detectable: Option<bool>,
    /// From what that follows, as a sentence.
    #[serde(default)]
    pub stale_because: Option<String>,
}

/// A file that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// Its path in the corpus.
    pub path: String,
    /// How it differs.
    pub difference: Difference,
    /// The offset of the first byte that differs.
    pub first_byte: Option<u64>,
    /// The offset of the last byte that differs.
    pub last_byte: Option<u64>,
    /// How many bytes differ.
    pub different_bytes: Option<u64>,
    /// How many bits differ.
    #[serde(default)]
    pub different_bits: Option<u64>,
    /// For bytes of another place: the file that they belong to.
    #[serde(default)]
    pub from_file: Option<String>,
    /// For bytes of another place: where in that file the first of them belongs.
    #[serde(default)]
    pub from_byte: Option<u64>,
    /// The ranges that differ, in order, at most the first 16; those of one kind that are closer than 4 KiB are one.
    #[serde(default)]
    pub ranges: Vec<MismatchRange>,
    /// How many ranges there are.
    #[serde(default)]
    pub range_count: Option<u64>,
    /// Whether a second cold read gave the same bytes as the first.
    pub second_read_agrees: Option<bool>,
    /// What a second reading from the drive showed; null where none was tried.
    #[serde(default)]
    pub second_read: Option<SecondRead>,
    /// Why there was no second reading from the drive.
    #[serde(default)]
    pub second_read_because: Option<String>,
    /// Who is to blame, by the rule in `docs/how-we-measure.md`; null where it was not looked for.
    #[serde(default)]
    pub blame: Option<Blame>,
    /// From what that follows, as a sentence.
    #[serde(default)]
    pub blame_because: Option<String>,
    /// What the wrong bytes are, in words: zeros, those of another file, flipped bits.
    pub because: Option<String>,
}

/// A range of a file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MismatchRange {
    /// Where it begins.
    pub first_byte: u64,
    /// From its first differing byte to its last.
    pub bytes: u64,
    /// What is there.
    pub difference: Difference,
    /// How many bits differ in it.
    pub different_bits: u64,
    /// For bytes of another place: the file that they belong to.
    pub from_file: Option<String>,
    /// For bytes of another place: where in that file the first of them belongs.
    pub from_byte: Option<u64>,
}

impl Mismatch {
    /// A file of which nothing more is known than how it differs.
    #[must_use]
    pub fn new(path: impl Into<String>, difference: Difference) -> Self {
        Self {
            path: path.into(),
            difference,
            first_byte: None,
            last_byte: None,
            different_bytes: None,
            different_bits: None,
            from_file: None,
            from_byte: None,
            ranges: Vec::new(),
            range_count: None,
            second_read_agrees: None,
            second_read: None,
            second_read_because: None,
            blame: None,
            blame_because: None,
            because: None,
        }
    }

    /// What a second reading showed and who is to blame: "a second cold read agrees: the target is to blame (…)". Nothing where neither was looked for.
    #[must_use]
    pub fn judgement(&self) -> String {
        let in_brackets = |because: &Option<String>| because.as_ref().map_or_else(String::new, |because| format!(" ({because})"));
        let read = match (self.second_read, self.second_read_agrees) {
            (Some(read), _) => format!("{}{}", read.in_words(), in_brackets(&self.second_read_because)),
            (None, Some(true)) => SecondRead::Agrees.in_words().to_owned(),
            (None, Some(false)) => "a second cold read gave something else".to_owned(),
            (None, None) => String::new(),
        };
        let blame = self.blame.map_or_else(String::new, |blame| format!("{}{}", blame.in_words(), in_brackets(&self.blame_because)));
        if read.is_empty() || blame.is_empty() { format!("{read}{blame}") } else { format!("{read}: {blame}") }
    }
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
