//! What a copy came to, in the words of the record: nothing is decided here.

use std::collections::BTreeMap;

use super::copy::{CopySource, Job};
use super::window::{Levels, Timed, Watched};
use crate::cache::evict::Prepared;
use crate::corpus::locate::{self, Kind, Second, What};
use crate::corpus::verify::Verification;
use crate::drive::Counters;
use crate::engine::Engine;
use crate::measure::calls::Calls;
use crate::result::{
    self, Cache, DeviceCounters, Integrity, Latency, Layout, Layouts, Measured, Mismatch, MismatchRange, Phase, SecondRead, SlowFile, StartPoint,
    Timeline, Waits, Window, Work,
};
use crate::workload::copy::{Order, Slow};

/// Files in the record that differ.
pub(super) const MISMATCHES: usize = 100;

/// The window: its ends, the work, how it was done, counters, waits, latencies, timeline.
pub(super) fn window(job: &Job<'_>, timed: &Timed<'_>, phase: &mut Phase) {
    times(&job.watched, timed, job.began_ns, phase);
    let (engine, done) = (job.engine, &timed.done);
    let calls = &done.calls;
    let own = !matches!(engine, Engine::Command(_));
    phase.work = own.then(|| work(calls));
    let order = match job.options.order {
        Order::Manifest => "manifest",
        Order::Readdir => "readdir",
    };
    let generated = matches!(job.from, CopySource::Generated(_));
    phase.engine = Some(result::Engine {
        name: engine.name(),
        mechanism: if generated { "write".to_owned() } else { engine.mechanism().to_owned() },
        // What another program does is not seen.
        threads: own.then(|| u32::try_from(job.options.threads).unwrap_or(u32::MAX)),
        order: own.then(|| order.to_owned()),
        preserve: own.then(|| vec!["mtime".to_owned(), "permissions".to_owned()]),
        ceiling_bytes_per_s: job.tool_bytes_per_s,
    });
    let waited = calls.group_ns(result::Call::Generator);
    phase.source = Some(result::Source { kind: job.from.kind(), wait_ns: generated.then_some(waited) });
    let slow = |slow: &Slow| SlowFile { path: slow.path.clone(), bytes: slow.bytes, ns: slow.ns };
    phase.slowest_files = done.slowest.iter().map(slow).collect();
}

/// What was asked of the system.
pub(crate) fn work(calls: &Calls<'_>) -> Work {
    Work {
        read_bytes: calls.read_bytes,
        written_bytes: calls.written_bytes,
        reads: calls.reads,
        writes: calls.writes,
        flushes: calls.flushes,
        files_failed: 0,
    }
}

/// What every window has: its ends, what was done, counters, waits, latencies, timeline.
pub(crate) fn times(watched: &Watched<'_>, timed: &Timed<'_>, began_ns: u64, phase: &mut Phase) {
    let done = &timed.done;
    let calls = &done.calls;
    phase.start_ns = timed.start_ns.saturating_sub(began_ns);
    phase.window =
        Window { returned_ns: Some(timed.returned_ns), durable_ns: timed.durable_ns, first_done_ns: done.first_done_ns, ..Window::default() };
    (phase.files, phase.bytes) = (done.files, done.bytes);
    phase.flush = Some(timed.flush.clone());
    let mut add_device = |id: &str, counted: Levels| {
        if let [Some(counters), ..] = counted {
            phase.device.insert(id.to_owned(), device(&counters));
        }
    };
    add_device(watched.target.id, timed.target_counted());
    if let Some(place) = watched.source {
        add_device(place.id, timed.source_counted());
    }
    let usage = timed.cpu();
    phase.time = Some(Waits {
        calls_ns: calls.groups().iter().copied().collect::<BTreeMap<_, _>>(),
        outside_ns: done.thread_ns.saturating_sub(calls.total_ns()),
        user_ns: Some(usage.user_ns),
        system_ns: Some(usage.system_ns),
        evidence_ns: timed.evidence_ns,
        overlap_ns: None,
    });
    phase.latency = calls.latencies().iter().map(|(op, histogram)| Latency::of(*op, StartPoint::Submit, histogram)).collect();
    phase.timeline = Some(timeline(timed));
}

/// Samples as the record has them: counters count from the window's opening, temperatures are what they are.
fn timeline(timed: &Timed<'_>) -> Timeline {
    let names: Vec<(&str, Measured)> = timed.series.iter().map(|(of, what)| (of.as_str(), *what)).collect();
    let mut timeline = Timeline::of(timed.samples.clone(), &names);
    for series in timeline.series.iter_mut().filter(|series| series.what != Measured::Celsius) {
        let base = series.values.iter().flatten().next().copied().unwrap_or(0);
        series.values.iter_mut().flatten().for_each(|value| *value -= base);
    }
    timeline
}

/// Where the source's files lie, and a sample of the copied ones.
pub(super) fn layouts(job: &Job<'_>, copy: &super::layout::Layout) -> Layouts {
    let source = match job.from {
        CopySource::Staged { staged, place: Some(_) } => Some(layout(&staged.layout)),
        _ => None,
    };
    Layouts { source, copy: Some(layout(copy)) }
}

fn layout(layout: &super::layout::Layout) -> Layout {
    let extents = layout.extents();
    Layout {
        files: layout.files,
        bytes: layout.bytes,
        extents: extents.map(|extents| extents.count),
        shared_bytes: extents.map(|extents| extents.shared_bytes),
        unwritten_bytes: extents.map(|extents| extents.unwritten_bytes),
        encoded_bytes: extents.map(|extents| extents.encoded_bytes),
        mean_place_bytes: extents.and_then(|extents| extents.mean_place_bytes()),
    }
}

pub(super) fn device(counters: &Counters) -> DeviceCounters {
    DeviceCounters {
        read_bytes: counters.read_bytes,
        written_bytes: counters.written_bytes,
        reads: counters.reads,
        writes: counters.writes,
        flushes: counters.flushes,
        discards: counters.discards,
        foreign_bytes: None,
        inflight_union_ns: None,
        io_ticks_ns: Some(counters.io_ticks_ns),
    }
}

pub(crate) fn cache(prepared: &Prepared) -> Cache {
    Cache {
        method: prepared.method.clone(),
        data: prepared.data,
        metadata: prepared.metadata,
        resident_before_bytes: prepared.resident_bytes,
        device_read_share: None,
    }
}

/// Why a copy can't tell a write that was lost from one that was made.
const NO_NONCE: &str = "a copy has the same bytes in every run: where the file system uses freed blocks again, a write that was lost would leave the right \
                        bytes of an earlier copy";

pub(super) fn integrity(found: &Verification) -> Integrity {
    Integrity {
        files_checked: found.files_checked,
        files_good: found.files_good,
        mismatches: found.differences.iter().take(MISMATCHES).map(mismatch).collect(),
        stale_detectable: Some(false),
        stale_because: Some(NO_NONCE.to_owned()),
    }
}

/// A file that differs, with all that was found out about it.
pub(crate) fn mismatch(difference: &locate::Difference) -> Mismatch {
    let (second_read, second_read_because) = match &difference.second {
        Some(Second::Agrees) => (Some(SecondRead::Agrees), None),
        Some(Second::AsExpected) => (Some(SecondRead::DiffersAsExpected), None),
        Some(Second::Other) => (Some(SecondRead::DiffersOther), None),
        Some(Second::NotPossible(why)) => (Some(SecondRead::NotPossible), Some(why.clone())),
        None => (None, None),
    };
    let (from_file, from_byte) = match &difference.kind {
        Kind::Swapped { with } => (Some(with.clone()), Some(0)),
        Kind::Elsewhere { file, offset } => (Some(file.clone()), Some(*offset)),
        _ => (None, None),
    };
    Mismatch {
        first_byte: difference.offset,
        last_byte: difference.offset.zip(difference.len).map(|(offset, len)| offset + len.saturating_sub(1)),
        different_bytes: difference.different_bytes,
        different_bits: difference.bits,
        from_file,
        from_byte,
        ranges: difference.ranges.iter().map(range).collect(),
        range_count: difference.different_bytes.map(|_| difference.range_count),
        second_read_agrees: second_read.filter(|read| *read != SecondRead::NotPossible).map(|read| read == SecondRead::Agrees),
        second_read,
        second_read_because,
        blame: difference.blame.as_ref().map(|(who, _)| *who),
        blame_because: difference.blame.as_ref().map(|(_, because)| because.clone()),
        because: Some(difference.what()),
        ..Mismatch::new(&difference.path, difference.kind.word())
    }
}

fn range(range: &locate::Range) -> MismatchRange {
    let (from_file, from_byte) = match &range.what {
        What::Elsewhere { file, offset } => (Some(file.clone()), Some(*offset)),
        _ => (None, None),
    };
    MismatchRange { first_byte: range.offset, bytes: range.len, difference: range.what.word(), different_bits: range.bits, from_file, from_byte }
}
