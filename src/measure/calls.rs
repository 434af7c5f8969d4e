//! Where a copier waited: every call timed by one thread, summed by group and kept as latencies by operation.

use crate::measure::Histogram;
use crate::platform::Clock;
use crate::result::{Call, LatencyOp};

/// An operation that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Opening an existing file.
    Open,
    /// Making a file.
    Create,
    /// Asking for data ahead: part of reading, but no read.
    Asking,
    /// One read.
    Read,
    /// One write.
    Write,
    /// One transfer within the system: it reads and writes.
    Transfer,
    /// Closing a file.
    Close,
    /// Directories, times, permissions.
    Metadata,
    /// One flush of a file or directory.
    Fsync,
    /// One flush of a whole file system.
    FlushAll,
    /// What is needed to flush besides the flush itself.
    Flushing,
    /// Waiting for data to be made.
    Generator,
    /// Waiting for a program that copies.
    Command,
    /// One look for a file that is not there, or at one that is.
    LookUp,
    /// Mapping a file: part of faulting its pages in, but no fault.
    Map,
    /// Faulting in one page of a mapped file.
    Fault,
    /// Processor time that a played program thinks.
    Think,
    /// Having nothing to do while others work.
    Idle,
}

impl Op {
    /// The group in which its time is summed.
    fn group(self) -> Call {
        match self {
            Self::Open | Self::Create => Call::Open,
            Self::Read | Self::Asking => Call::Read,
            Self::Write => Call::Write,
            Self::Transfer => Call::Transfer,
            Self::Close => Call::Close,
            Self::Metadata => Call::Metadata,
            Self::Fsync | Self::FlushAll | Self::Flushing => Call::Flush,
            Self::Generator => Call::Generator,
            Self::Command => Call::Command,
            Self::LookUp => Call::LookUp,
            Self::Map | Self::Fault => Call::Fault,
            Self::Think => Call::Think,
            Self::Idle => Call::Idle,
        }
    }

    /// The operation whose latencies are kept, if they are.
    fn latency(self) -> Option<LatencyOp> {
        match self {
            Self::Open => Some(LatencyOp::Open),
            Self::Create => Some(LatencyOp::Create),
            Self::Read => Some(LatencyOp::Read),
            Self::Write => Some(LatencyOp::Write),
            Self::Transfer => Some(LatencyOp::Transfer),
            Self::Close => Some(LatencyOp::Close),
            Self::Fsync => Some(LatencyOp::Fsync),
            Self::LookUp => Some(LatencyOp::LookUp),
            Self::Fault => Some(LatencyOp::Fault),
            Self::Metadata
            | Self::Asking
            | Self::FlushAll
            | Self::Flushing
            | Self::Generator
            | Self::Command
            | Self::Map
            | Self::Think
            | Self::Idle => None,
        }
    }
}

/// The calls of one thread.
pub struct Calls<'a> {
    clock: &'a dyn Clock,
    groups: Vec<(Call, u64)>,
    latencies: Vec<(LatencyOp, Histogram)>,
    /// Read calls made.
    pub reads: u64,
    /// Bytes that they gave.
    pub read_bytes: u64,
    /// Write calls made.
    pub writes: u64,
    /// Bytes that they took.
    pub written_bytes: u64,
    /// Flush calls made.
    pub flushes: u64,
    /// Files whose time or permissions the file system refused to keep.
    pub metadata_lost: u64,
}

impl<'a> Calls<'a> {
    /// No calls yet.
    #[must_use]
    pub fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, groups: Vec::new(), latencies: Vec::new(), reads: 0, read_bytes: 0, writes: 0, written_bytes: 0, flushes: 0, metadata_lost: 0 }
    }

    /// Makes one call and counts its time.
    pub fn time<T>(&mut self, op: Op, call: impl FnOnce() -> T) -> T {
        let start = self.clock.now_ns();
        let answer = call();
        self.add(op, self.clock.now_ns() - start);
        answer
    }

    /// Counts the time of a call that was made elsewhere.
    pub fn add(&mut self, op: Op, ns: u64) {
        let group = op.group();
        match self.groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, sum)) => *sum += ns,
            None => self.groups.push((group, ns)),
        }
        if let Some(latency) = op.latency() {
            self.record(latency, ns);
        }
        self.flushes += u64::from(matches!(op, Op::Fsync | Op::FlushAll));
    }

    /// Keeps a latency.
    pub fn record(&mut self, op: LatencyOp, ns: u64) {
        match self.latencies.iter_mut().find(|(known, _)| *known == op) {
            Some((_, histogram)) => histogram.record(ns),
            None => {
                let mut histogram = Histogram::new();
                histogram.record(ns);
                self.latencies.push((op, histogram));
            }
        }
    }

    /// Adds the calls of another thread.
    pub fn merge(&mut self, other: &Self) {
        for &(group, ns) in &other.groups {
            match self.groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, sum)) => *sum += ns,
                None => self.groups.push((group, ns)),
            }
        }
        for (op, histogram) in &other.latencies {
            match self.latencies.iter_mut().find(|(known, _)| known == op) {
                Some((_, sum)) => sum.merge(histogram),
                None => self.latencies.push((*op, histogram.clone())),
            }
        }
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.flushes += other.flushes;
        self.metadata_lost += other.metadata_lost;
    }

    /// The time in calls, by group.
    #[must_use]
    pub fn groups(&self) -> &[(Call, u64)] {
        &self.groups
    }

    /// The time in calls of one group.
    #[must_use]
    pub fn group_ns(&self, call: Call) -> u64 {
        self.groups.iter().find(|(known, _)| *known == call).map_or(0, |(_, ns)| *ns)
    }

    /// The latencies, by operation.
    #[must_use]
    pub fn latencies(&self) -> &[(LatencyOp, Histogram)] {
        &self.latencies
    }

    /// The time in all calls.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.groups.iter().map(|(_, ns)| ns).sum()
    }

    /// The clock that times them.
    #[must_use]
    pub fn clock(&self) -> &'a dyn Clock {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::FakeClock;
    use std::time::Duration;

    #[test]
    fn time_is_summed_by_group_and_kept_by_operation() {
        let clock = FakeClock::default();
        let mut calls = Calls::new(&clock);
        calls.time(Op::Open, || clock.advance(Duration::from_nanos(5)));
        calls.time(Op::Create, || clock.advance(Duration::from_nanos(7)));
        clock.advance(Duration::from_nanos(1000));
        let mut other = Calls::new(&clock);
        other.time(Op::Open, || clock.advance(Duration::from_nanos(11)));
        other.time(Op::FlushAll, || clock.advance(Duration::from_nanos(13)));
        calls.merge(&other);
        assert_eq!(calls.groups(), [(Call::Open, 23), (Call::Flush, 13)]);
        assert_eq!((calls.total_ns(), calls.flushes), (36, 1));
        let kept: Vec<_> = calls.latencies().iter().map(|(op, histogram)| (*op, histogram.n(), histogram.sum_ns())).collect();
        assert_eq!(kept, [(LatencyOp::Open, 2, 16), (LatencyOp::Create, 1, 7)]);
    }
}
