//! What devices did in a window, from the kernel's block events: how long they had requests in flight, which of two drives did, and how long requests waited and
//! took.
//!
//! A request is in flight from the moment at which its device got it to the last of its completions. Requests that are in flight at the edges of the window are
//! clipped to it for all that is time in flight; requests and bytes are counted, and latencies kept whole, where a request was completed within it.

use std::collections::BTreeMap;

use super::Histogram;
use crate::platform::{BlockEvent, BlockPoint};
use crate::result::{BlockOp, BlockSpan};

/// A sector in block events, whatever the device's own sector is.
const SECTOR_BYTES: u64 = 512;
/// Requests that were asked for and did not reach the device yet: more are not remembered, and have no time of waiting then.
const MOST_QUEUED: usize = 1 << 16;

/// Between what time in flight is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Two drives: a source and a target, by their places in the list of drives.
    Drives {
        /// The drive that is read.
        source: usize,
        /// The drive that is written.
        target: usize,
    },
    /// One drive that is both, the only one in the list: reading and everything else.
    Directions,
    /// One drive, the only one in the list, and nothing that is read from a drive.
    Target,
}

/// How a window divides; the parts add up to it exactly. ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Only the source had requests in flight.
    pub only_source_ns: u64,
    /// Only the target had.
    pub only_target_ns: u64,
    /// Both had.
    pub both_ns: u64,
    /// Neither had.
    pub none_ns: u64,
}

/// What one drive did in the window.
#[derive(Debug, Clone, Default)]
pub struct DriveFigures {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads of a file system's own data among them, where the file system says so.
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
    /// Time with at least one request in flight, ns.
    pub union_ns: u64,
    /// Time with at least one flush in flight, ns.
    pub flush_union_ns: u64,
    /// Time in flight of all requests added up, ns: over the length of the window, the mean queue depth.
    pub sum_ns: u64,
    /// Latencies by kind and span.
    pub latencies: BTreeMap<(BlockOp, BlockSpan), Histogram>,
}

/// What came of a trace.
#[derive(Debug, Clone)]
pub struct Figures {
    /// How the window divides.
    pub parts: Parts,
    /// The drives, in the order in which they were named.
    pub drives: Vec<DriveFigures>,
    /// Events in the window.
    pub events: u64,
}

/// A request that its device has.
#[derive(Debug, Clone, Copy)]
struct Flight {
    issued_ns: u64,
    /// Sectors that are not completed yet.
    left: u32,
}

/// A range of sectors that was asked for: its end, and when.
#[derive(Debug, Clone, Copy)]
struct Asked {
    end: u64,
    ns: u64,
}

/// What is known of one device at a moment.
#[derive(Debug, Default)]
struct Device {
    /// By kind and first sector that is left. Several may have the same.
    flights: BTreeMap<(BlockOp, u64), Vec<Flight>>,
    /// By kind and first sector.
    asked: BTreeMap<(BlockOp, u64), Asked>,
}

/// What of a drive is in flight at a moment.
#[derive(Debug, Default)]
struct Drive {
    reads: u64,
    flushes: u64,
    others: u64,
    figures: DriveFigures,
}

impl Drive {
    fn in_flight(&self) -> u64 {
        self.reads + self.flushes + self.others
    }

    fn of(&mut self, op: BlockOp) -> &mut u64 {
        match op {
            BlockOp::Read => &mut self.reads,
            BlockOp::Flush => &mut self.flushes,
            BlockOp::Write | BlockOp::Discard | BlockOp::Other => &mut self.others,
        }
    }
}

/// Follows block events. They must come in the order of time.
#[derive(Debug)]
pub struct Tracker {
    division: Division,
    devices: BTreeMap<(u32, u32), (usize, Device)>,
    drives: Vec<Drive>,
    /// The window, as far as it is known.
    opened_ns: Option<u64>,
    closed_ns: Option<u64>,
    /// Up to where time was counted.
    at_ns: u64,
    parts: Parts,
    events: u64,
    /// Completions in the window of requests that were never seen to begin: where there are any, time in flight is not known.
    unmatched: u64,
    late: bool,
}

impl Tracker {
    /// Follows drives, each by the whole disks that it lies on.
    #[must_use]
    pub fn new(drives: &[Vec<(u32, u32)>], division: Division) -> Self {
        let devices = drives.iter().enumerate().flat_map(|(index, numbers)| numbers.iter().map(move |&number| (number, (index, Device::default()))));
        Self {
            division,
            devices: devices.collect(),
            drives: drives.iter().map(|_| Drive::default()).collect(),
            opened_ns: None,
            closed_ns: None,
            at_ns: 0,
            parts: Parts::default(),
            events: 0,
            unmatched: 0,
            late: false,
        }
    }

    /// Says when the window opened. That must be before any later event is handed in.
    pub fn open(&mut self, ns: u64) {
        self.late |= ns < self.at_ns;
        self.opened_ns = Some(ns);
    }

    /// Says when the window closed. That must be before any later event is handed in.
    pub fn close(&mut self, ns: u64) {
        self.late |= ns < self.at_ns;
        self.closed_ns = Some(ns);
    }

    /// The next event.
    pub fn event(&mut self, event: &BlockEvent) {
        let Some(drive) = self.devices.get(&event.device).map(|(drive, _)| *drive) else { return };
        self.advance(event.ns);
        let within = self.is_within(event.ns);
        self.events += u64::from(within);
        let (op, metadata) = kind(&event.rwbs);
        let Some((_, device)) = self.devices.get_mut(&event.device) else { return };
        let Some(drive) = self.drives.get_mut(drive) else { return };
        // The kernel gives a flush no sector when it is issued, and the highest when it is completed.
        let sector = if op == BlockOp::Flush { 0 } else { event.sector };
        match event.point {
            // What has no sectors is a flush that a file system asks for; it is seen when it is issued.
            BlockPoint::Queued if event.sectors > 0 => device.ask(op, sector, event.sectors, event.ns),
            BlockPoint::Queued => {}
            BlockPoint::Issued => {
                let asked_ns = device.take_asked(op, sector, event.sectors);
                device.flights.entry((op, sector)).or_default().push(Flight { issued_ns: event.ns, left: event.sectors });
                *drive.of(op) += 1;
                if let Some(waited) = asked_ns.filter(|_| within).map(|asked_ns| event.ns.saturating_sub(asked_ns)) {
                    drive.figures.record(op, BlockSpan::QueueToDispatch, waited);
                }
            }
            BlockPoint::Requeued => {
                if device.take_flight(op, sector).is_some() {
                    *drive.of(op) -= 1;
                }
            }
            // A request with a flush before or after it is completed once more when all of that is done.
            BlockPoint::Completed if event.sectors == 0 && op != BlockOp::Flush => {}
            BlockPoint::Completed => match device.take_flight(op, sector) {
                Some(flight) => {
                    let bytes = u64::from(event.sectors) * SECTOR_BYTES;
                    if within {
                        drive.figures.count_bytes(op, metadata, bytes);
                    }
                    // A discard may be answered in sectors of another count than it was issued in, but always whole.
                    let partly = event.sectors < flight.left && matches!(op, BlockOp::Read | BlockOp::Write);
                    if partly {
                        let rest = Flight { left: flight.left - event.sectors, ..flight };
                        device.flights.entry((op, sector.saturating_add(u64::from(event.sectors)))).or_default().push(rest);
                        return;
                    }
                    *drive.of(op) -= 1;
                    if within {
                        drive.figures.count(op, metadata);
                        drive.figures.record(op, BlockSpan::DispatchToComplete, event.ns.saturating_sub(flight.issued_ns));
                    }
                }
                // What passes through the block layer untouched has no sectors that could be compared.
                None => self.unmatched += u64::from(within && op != BlockOp::Other),
            },
        }
    }

    /// What came of it, or why nothing did.
    ///
    /// # Errors
    /// The reason, as a sentence without a capital: the window is not known, became known too late, or requests were completed that had never begun.
    pub fn finish(mut self) -> Result<Figures, String> {
        let (Some(opened_ns), Some(closed_ns)) = (self.opened_ns, self.closed_ns) else { return Err("the window was never closed".to_owned()) };
        if self.late {
            return Err("the trace learned too late when the window opened or closed".to_owned());
        }
        self.advance(closed_ns.max(opened_ns));
        if self.unmatched > 0 {
            return Err(format!("{} requests were completed that were never seen to begin", self.unmatched));
        }
        let drives = self.drives.into_iter().map(|drive| drive.figures).collect();
        Ok(Figures { parts: self.parts, drives, events: self.events })
    }

    fn is_within(&self, ns: u64) -> bool {
        self.opened_ns.is_some_and(|opened| ns >= opened) && self.closed_ns.is_none_or(|closed| ns <= closed)
    }

    /// Counts the time since the last event, as far as it lies in the window.
    fn advance(&mut self, to_ns: u64) {
        let from_ns = self.at_ns;
        self.at_ns = from_ns.max(to_ns);
        let Some(opened_ns) = self.opened_ns else { return };
        let until_ns = self.at_ns.min(self.closed_ns.unwrap_or(u64::MAX));
        let elapsed = until_ns.saturating_sub(from_ns.max(opened_ns));
        for Drive { reads, flushes, others, figures } in &mut self.drives {
            let in_flight = *reads + *flushes + *others;
            figures.sum_ns = figures.sum_ns.saturating_add(elapsed.saturating_mul(in_flight));
            figures.union_ns += if in_flight > 0 { elapsed } else { 0 };
            figures.flush_union_ns += if *flushes > 0 { elapsed } else { 0 };
        }
        let busy = |index: usize| self.drives.get(index).is_some_and(|drive| drive.in_flight() > 0);
        let (source, target) = match self.division {
            Division::Drives { source, target } => (busy(source), busy(target)),
            Division::Directions => self.drives.first().map_or((false, false), |drive| (drive.reads > 0, drive.in_flight() > drive.reads)),
            Division::Target => (false, busy(0)),
        };
        *match (source, target) {
            (true, false) => &mut self.parts.only_source_ns,
            (false, true) => &mut self.parts.only_target_ns,
            (true, true) => &mut self.parts.both_ns,
            (false, false) => &mut self.parts.none_ns,
        } += elapsed;
    }
}

impl DriveFigures {
    fn count_bytes(&mut self, op: BlockOp, metadata: bool, bytes: u64) {
        match op {
            BlockOp::Read => {
                self.read_bytes += bytes;
                self.metadata_read_bytes += if metadata { bytes } else { 0 };
            }
            BlockOp::Write => self.written_bytes += bytes,
            BlockOp::Discard => self.discarded_bytes += bytes,
            BlockOp::Flush | BlockOp::Other => {}
        }
    }

    fn count(&mut self, op: BlockOp, metadata: bool) {
        match op {
            BlockOp::Read => {
                self.reads += 1;
                self.metadata_reads += u64::from(metadata);
            }
            BlockOp::Write => self.writes += 1,
            BlockOp::Flush => self.flushes += 1,
            BlockOp::Discard => self.discards += 1,
            BlockOp::Other => {}
        }
    }

    fn record(&mut self, op: BlockOp, span: BlockSpan, ns: u64) {
        self.latencies.entry((op, span)).or_default().record(ns);
    }
}

impl Device {
    fn ask(&mut self, op: BlockOp, sector: u64, sectors: u32, ns: u64) {
        if self.asked.len() >= MOST_QUEUED {
            self.asked.clear();
        }
        let end = sector.saturating_add(u64::from(sectors));
        let asked = self.asked.entry((op, sector)).or_insert(Asked { end, ns });
        asked.end = asked.end.max(end);
    }

    /// When the oldest part of a request was asked for. Parts are joined into one request and split over several: what is not of this one stays.
    fn take_asked(&mut self, op: BlockOp, start: u64, sectors: u32) -> Option<u64> {
        let end = start.saturating_add(u64::from(sectors));
        let before = self.asked.range((op, 0)..(op, start)).next_back();
        let mut overlapping: Vec<(u64, Asked)> =
            before.map(|(&(_, first), &asked)| (first, asked)).filter(|(_, asked)| asked.end > start).into_iter().collect();
        overlapping.extend(self.asked.range((op, start)..(op, end)).map(|(&(_, first), &asked)| (first, asked)));
        for (first, asked) in &overlapping {
            self.asked.remove(&(op, *first));
            if *first < start {
                self.asked.insert((op, *first), Asked { end: start, ..*asked });
            }
            if asked.end > end {
                self.asked.entry((op, end)).or_insert(*asked);
            }
        }
        overlapping.iter().map(|(_, asked)| asked.ns).min()
    }

    /// The request that begins there and was issued first.
    fn take_flight(&mut self, op: BlockOp, sector: u64) -> Option<Flight> {
        let flights = self.flights.get_mut(&(op, sector))?;
        let flight = (!flights.is_empty()).then(|| flights.remove(0));
        if flights.is_empty() {
            self.flights.remove(&(op, sector));
        }
        flight
    }
}

/// The kind of a request by the kernel's letters, and whether it is of a file system's own data: an `F` for a flush that comes before it, a letter for what it
/// does, then letters for how (`blk_fill_rwbs` of the kernel).
fn kind(rwbs: &[u8; 10]) -> (BlockOp, bool) {
    let letters = match rwbs {
        [b'F', b'R' | b'W' | b'D' | b'F' | b'N' | b'Z', ..] => &rwbs[1..],
        _ => &rwbs[..],
    };
    let op = match letters.first() {
        Some(b'R') => BlockOp::Read,
        Some(b'W') => BlockOp::Write,
        Some(b'D') => BlockOp::Discard,
        Some(b'F') => BlockOp::Flush,
        _ => BlockOp::Other,
    };
    (op, letters.iter().skip(1).any(|&letter| letter == b'M'))
}

#[cfg(test)]
#[path = "block_trace_tests.rs"]
mod tests;
