//! What the kernel's block events told of a window: requests, their latencies, and which drives were at work at once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Between, BlockOp, BlockSpan};
use crate::Result;
use crate::measure::Histogram;

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
