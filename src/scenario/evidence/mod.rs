//! What follows from what was observed: proofs with their reasons, and flags; one proof a file. Pure functions: nothing is looked at here.

mod alone;
mod ceilings;
mod cold;
mod durable;
mod moved;
mod runs;
mod source;

pub use runs::{compare_control, compare_places, compare_runs};

use super::layout::Layout;
use crate::cache::evict::{Prepared, Wanted};
use crate::drive::{Counters, Medium, ProcessIo};
use crate::result::{Evidence, Flag, Flush, Proof, Verdict, flags};
use crate::units::{count, duration};

/// A device that moved less than this share of what it should have moved has not moved it (DESIGN: below 95 % something answered for it).
const MOVED_SHARE: f64 = 0.95;
/// A device may move a tenth more than it has to, and this much for each file (its inode, directory, journal and the rest of its last block) …
const METADATA_BYTES: u64 = 64 << 10;
/// … and this much besides, but no more than half of it, before its counters prove nothing any more.
const JOURNAL_BYTES: u64 = 32_000_000;
/// The shortest window of which a rate is given.
const SHORTEST_NS: u64 = 1_000_000_000;
/// A machine that slept for longer than this was suspended; the two clocks are read one after the other.
const SUSPENDED_NS: u64 = 50_000_000;

/// Where data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A drive.
    Drive(Medium),
    /// Memory, on purpose.
    Memory,
    /// The generator.
    Generated,
}

/// Who copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copier {
    /// This program.
    Copysim,
    /// Another program: what it does inside is not seen.
    OtherProgram,
    /// Nobody: the null engine.
    Nobody,
}

/// What was seen of a copy.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Bytes of content copied.
    pub bytes: u64,
    /// Files copied.
    pub files: u64,
    /// Who copied.
    pub copier: Copier,
    /// The durable end.
    pub durable_ns: Option<u64>,
    /// Where data came from.
    pub origin: Origin,
    /// What is under the target.
    pub target: Medium,
    /// Whether both are one drive.
    pub same_drive: bool,
    /// What the caches were to be.
    pub wanted: Wanted,
    /// What they were; `None` where nothing is read from a drive.
    pub cache: Option<Prepared>,
    /// Bytes allocated for the corpus on its drive; `None` where that is not known.
    pub source_stored_bytes: Option<u64>,
    /// A cache of this machine below the source's file system that was not dropped: a loop device over a file in the page cache.
    pub cache_below: bool,
    /// Who else may hold what was read before.
    pub cache_elsewhere: Option<&'static str>,
    /// What the source's devices counted: the nearest ones, and the physical ones under them where these are others.
    pub source_counted: Vec<Counters>,
    /// What the target's devices counted, likewise.
    pub target_counted: Vec<Counters>,
    /// Share of the copy's bytes in extents that other files share, from a sample.
    pub shared_share: Option<f64>,
    /// Bytes allocated for the copy over its length, from a sample.
    pub copy_stored_share: Option<f64>,
    /// Share of the copy's bytes in extents that the file system encoded (compressed), from a sample.
    pub copy_encoded_share: Option<f64>,
    /// The flush.
    pub flush: Flush,
    /// Time outside calls, ns, of all copying threads; of another program, its processor time in user mode.
    pub tool_ns: u64,
    /// Processor time in the kernel, ns: within calls, on behalf of the copier.
    pub system_ns: u64,
    /// Time in read calls, ns, of all copying threads; `None` where another program copied.
    pub read_ns: Option<u64>,
    /// What the same engine copies from memory to memory, bytes/s.
    pub tool_bytes_per_s: Option<u64>,
    /// What the slower of the links can carry, bytes/s.
    pub link_bytes_per_s: Option<u64>,
    /// For how long the target had a request in flight, exact, by the block trace.
    pub target_busy_ns: Option<u64>,
    /// Storage I/O of this process and its children.
    pub own_io: Option<ProcessIo>,
    /// Storage I/O of all other processes that can be seen.
    pub others_io: ProcessIo,
    /// Whether there are others that can't be seen.
    pub hidden_processes: bool,
    /// Which of them moved most.
    pub busiest: Option<String>,
    /// What the drives moved before the window, when nothing of ours was under way, bytes/s.
    pub baseline_bytes_per_s: Option<u64>,
    /// Where the source files lie.
    pub source_layout: Option<Layout>,
    /// Time of all threads, ns.
    pub thread_ns: u64,
    /// How long the writer waited for data to be made, ns.
    pub generator_ns: u64,
    /// How long the machine was suspended within the window, ns.
    pub suspended_ns: u64,
    /// Whether the copy differs from the corpus; `None` when it was not compared.
    pub data_differ: Option<bool>,
}

/// What follows.
#[derive(Debug, Default)]
pub struct Conclusions {
    /// The proofs.
    pub evidence: Vec<Evidence>,
    /// The reservations.
    pub flags: Vec<Flag>,
    /// Bytes that the source's device served over bytes stored.
    pub device_read_share: Option<f64>,
    /// What others moved.
    pub foreign: Option<ProcessIo>,
}

impl Observed {
    /// Whether blocks were shared instead of moved. A snapshot shares blocks too, but after they were written.
    fn shares_blocks(&self) -> bool {
        let taken = least_share(&self.target_counted, |counters| counters.written_bytes, self.bytes);
        self.shared_share.is_some_and(|shared| shared > 1.0 - MOVED_SHARE) && taken.is_none_or(|taken| taken < MOVED_SHARE)
    }
}

impl Conclusions {
    fn prove(&mut self, proof: Proof, verdict: Verdict, because: impl Into<String>) {
        self.evidence.push(Evidence { proof, verdict, because: because.into() });
    }
}

/// Draws the conclusions.
#[must_use]
pub fn conclude(seen: &Observed) -> Conclusions {
    let mut found = Conclusions::default();
    if seen.copier == Copier::Nobody {
        found.prove(Proof::Moved, Verdict::Fails, "the null engine moves nothing");
        return found;
    }
    cold::conclude(seen, &mut found);
    moved::conclude(seen, &mut found);
    durable::conclude(seen, &mut found);
    ceilings::conclude(seen, &mut found);
    source::conclude(seen, &mut found);
    alone::conclude(seen, &mut found);
    circumstances(seen, &mut found);
    found
}

/// Draws the conclusions about a start that reads cold: whether it did, and whether nobody else used the drive.
#[must_use]
pub fn conclude_start(seen: &Observed) -> Conclusions {
    let mut found = Conclusions::default();
    cold::conclude(seen, &mut found);
    if seen.own_io.is_some() {
        alone::conclude(seen, &mut found);
    }
    circumstances(seen, &mut found);
    found
}

/// What speaks against the figures of anything that reads files.
fn circumstances(seen: &Observed, found: &mut Conclusions) {
    if seen.source_layout.is_some_and(|layout| layout.is_fragmented()) {
        let pieces = seen.source_layout.and_then(|layout| layout.extents()).map(|extents| format!("{} pieces", count(extents.count)));
        found.flags.push(flags::SOURCE_FRAGMENTED.flag(pieces.as_deref(), None));
    }
    if seen.suspended_ns > SUSPENDED_NS {
        found.flags.push(flags::SUSPENDED.flag(Some(&duration(seen.suspended_ns)), None));
    }
    if seen.durable_ns.is_some_and(|ns| ns < SHORTEST_NS) {
        found.flags.push(flags::TOO_SHORT.flag(None, None));
    }
    if seen.data_differ == Some(true) {
        found.flags.push(flags::DATA_DIFFER.flag(None, None));
    }
}

impl Observed {
    /// Whether reads of others may stand for missing ones of ours: by what the kernel booked to this process, or else by how much more than it had to a device
    /// served.
    fn others_may_have_read(&self, stored: u64) -> bool {
        match self.own_io {
            Some(own) => (own.read_bytes as f64) < stored as f64 * MOVED_SHARE,
            None => self.is_crowded(&self.source_counted, |counters| counters.read_bytes, stored),
        }
    }

    /// The same of writes, where the drive took so many more than it had to that there is room for it: by what the kernel booked to all others, as if all of
    /// it had gone to this drive.
    fn others_may_have_written(&self) -> bool {
        let written_by_us = |counters: &Counters| counters.written_bytes.saturating_sub(self.others_io.written_bytes);
        let certain = least_share(&self.target_counted, written_by_us, self.bytes).is_some_and(|share| share >= MOVED_SHARE);
        self.is_crowded(&self.target_counted, |counters| counters.written_bytes, self.bytes) && (self.hidden_processes || !certain)
    }

    fn is_crowded(&self, levels: &[Counters], moved: impl Fn(&Counters) -> u64, bytes: u64) -> bool {
        let metadata = self.files.saturating_mul(METADATA_BYTES).saturating_add(JOURNAL_BYTES).min(bytes / 2);
        let allowed = bytes.saturating_add(bytes / 10).saturating_add(metadata);
        levels.iter().any(|counters| moved(counters) > allowed)
    }
}

/// The least share that any level of devices has moved of `bytes`.
fn least_share(levels: &[Counters], moved: impl Fn(&Counters) -> u64, bytes: u64) -> Option<f64> {
    levels.iter().map(|counters| moved(counters) as f64 / bytes.max(1) as f64).min_by(f64::total_cmp)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests;
