//! Where the time of a copy went: to its source, its target, the flush, or this machine, as far as the record tells. Derived, never stored.

use super::block::Overlap;
use super::phase::Phase;
use super::terms::{Call, LatencyOp, SourceKind};

/// A copy's time by what it was spent on, ns. The parts add up to the time of all copying threads, less what they had nothing to do; for one thread to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Division {
    /// Waiting for the source: opening and reading.
    pub source_ns: u64,
    /// Waiting for the target: making, writing and closing files, names, times and permissions.
    pub target_ns: u64,
    /// Source and target had requests at once while another program, or the system itself, copied: which of them was waited for can't be told.
    pub both_ns: u64,
    /// Waiting for the flush.
    pub flush_ns: u64,
    /// This machine: the copier's and the system's own work, and time in which no drive had been asked for anything.
    pub machine_ns: u64,
    /// Nobody knows.
    pub unknown_ns: u64,
}

impl Division {
    /// All parts together, ns.
    #[must_use]
    pub fn whole_ns(&self) -> u64 {
        [self.source_ns, self.target_ns, self.both_ns, self.flush_ns, self.machine_ns, self.unknown_ns].into_iter().fold(0, u64::saturating_add)
    }
}

/// Divides the time of a copy; `None` where no time is recorded.
///
/// Calls of copysim's own tell for which side they waited. From them goes to this machine what was no waiting: CPU time within calls, where it is one thread's, and
/// time in calls to a drive beyond the time in which that drive had any request, where a block trace tells that. Calls in which another program or the system
/// copied are divided by the block trace; without one only their CPU time is known.
#[must_use]
pub fn division(phase: &Phase) -> Option<Division> {
    let time = phase.time.as_ref()?;
    let call = |call| time.calls_ns.get(&call).copied().unwrap_or(0);
    let latency = |op| phase.latency.iter().find(|latency| latency.op == op).map_or(0, |latency| latency.sum_ns);
    // Opening and making files are one group of calls, and two of latencies.
    let opening = latency(LatencyOp::Open).min(call(Call::Open));
    let making = latency(LatencyOp::Create).min(call(Call::Open) - opening);
    let mut divided = Division {
        source_ns: [call(Call::Read), call(Call::Fault), call(Call::LookUp), opening].into_iter().fold(0, u64::saturating_add),
        target_ns: [call(Call::Write), making, call(Call::Close), call(Call::Metadata)].into_iter().fold(0, u64::saturating_add),
        both_ns: 0,
        flush_ns: call(Call::Flush),
        machine_ns: [time.outside_ns, call(Call::Generator), call(Call::Think)].into_iter().fold(0, u64::saturating_add),
        unknown_ns: call(Call::Open) - opening - making,
    };
    let kind = phase.source.map(|source| source.kind);
    if kind == Some(SourceKind::Memory) {
        // Reading from memory is no waiting for a drive.
        divided.machine_ns = divided.machine_ns.saturating_add(std::mem::take(&mut divided.source_ns));
    }
    let unseen = call(Call::Command).saturating_add(call(Call::Transfer));
    let alone = phase.engine.as_ref().is_none_or(|engine| engine.threads.is_none_or(|threads| threads == 1));
    // What watches the copier is no part of it.
    let cpu = time.user_ns.zip(time.system_ns).map_or(0, |(user, system)| user.saturating_add(system)).saturating_sub(time.evidence_ns.unwrap_or(0));
    // The threads that make data have CPU time, too, and copying threads work beside each other.
    let mut cpu_within = if alone && kind != Some(SourceKind::Generated) { cpu.saturating_sub(divided.machine_ns) } else { 0 };
    match time.overlap_ns.filter(|_| alone) {
        Some(overlap) => divide_unseen(&mut divided, unseen, overlap),
        None => {
            let working = cpu_within.min(unseen);
            cpu_within -= working;
            divided.machine_ns += working;
            divided.unknown_ns += unseen - working;
        }
    }
    if unseen == 0 {
        // As many bytes were read as were written, and moving them within memory costs the same.
        let [read, write] = [call(Call::Read).min(divided.source_ns), call(Call::Write)];
        let of_read = (cpu_within / 2).max(cpu_within.saturating_sub(write)).min(read);
        let of_write = (cpu_within - of_read).min(write);
        divided.source_ns -= of_read;
        divided.target_ns -= of_write;
        divided.machine_ns += of_read + of_write;
        if let Some(overlap) = time.overlap_ns.filter(|_| alone) {
            limit(&mut divided, overlap);
        }
    }
    (divided.whole_ns() > 0).then_some(divided)
}

/// Divides time in which a copy was made unseen by what the drives did. A flush that was seen is none of it.
fn divide_unseen(divided: &mut Division, unseen: u64, overlap: Overlap) {
    // What copysim's own calls waited for is not counted twice.
    let only_source = overlap.only_source_ns.saturating_sub(divided.source_ns);
    let only_target = overlap.only_target_ns.saturating_sub(divided.flush_ns).saturating_sub(divided.target_ns);
    let none = overlap.none_ns.saturating_sub(divided.machine_ns);
    let whole = [only_source, only_target, overlap.both_ns, none].into_iter().fold(0, u64::saturating_add);
    let part = |ns: u64| u64::try_from(u128::from(unseen) * u128::from(ns) / u128::from(whole.max(1))).unwrap_or(unseen);
    let [source, target, both, machine] = [only_source, only_target, overlap.both_ns, none].map(part);
    divided.source_ns += source;
    divided.target_ns += target;
    divided.both_ns += both;
    divided.machine_ns += machine;
    divided.unknown_ns += unseen - (source + target + both + machine).min(unseen);
}

/// No drive is waited for longer than it has requests, nor both longer than either has: what goes beyond was this machine's.
fn limit(divided: &mut Division, overlap: Overlap) {
    let Overlap { only_source_ns, only_target_ns, both_ns, none_ns, .. } = overlap;
    take_from_source(divided, divided.source_ns.saturating_sub(only_source_ns.saturating_add(both_ns)));
    let of_target = divided.target_ns.saturating_add(divided.flush_ns);
    take_from_target(divided, of_target.saturating_sub(only_target_ns.saturating_add(both_ns)));
    // Of what is still too much, a side whose drive had its requests beside the other's may have had as much as it has beyond the time of its own.
    let beyond = none_ns.saturating_sub(divided.machine_ns);
    let source = divided.source_ns.saturating_sub(only_source_ns);
    let target = divided.target_ns.saturating_add(divided.flush_ns).saturating_sub(only_target_ns);
    let part = u128::from(beyond) * u128::from(source) / u128::from(source.saturating_add(target).max(1));
    let part = u64::try_from(part).unwrap_or(beyond).min(source);
    take_from_source(divided, part);
    take_from_target(divided, (beyond - part).min(target));
}

fn take_from_source(divided: &mut Division, ns: u64) {
    divided.source_ns -= ns;
    divided.machine_ns += ns;
}

fn take_from_target(divided: &mut Division, ns: u64) {
    let of_target = ns.min(divided.target_ns);
    let of_flush = (ns - of_target).min(divided.flush_ns);
    divided.target_ns -= of_target;
    divided.flush_ns -= of_flush;
    divided.machine_ns += of_target + of_flush;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Histogram;
    use crate::result::{Between, Engine, Latency, PhaseKind, Source, StartPoint, Waits};
    use proptest::prelude::*;

    fn phase(calls: &[(Call, u64)], outside_ns: u64, cpu_ns: u64, overlap: Option<[u64; 4]>) -> Phase {
        let mut phase = Phase::new("copy", PhaseKind::Copy);
        let overlap_ns = overlap.map(|[only_source_ns, only_target_ns, both_ns, none_ns]| Overlap {
            between: Between::Drives,
            only_source_ns,
            only_target_ns,
            both_ns,
            none_ns,
        });
        phase.time = Some(Waits {
            calls_ns: calls.iter().copied().collect(),
            outside_ns,
            user_ns: Some(0),
            system_ns: Some(cpu_ns),
            evidence_ns: None,
            overlap_ns,
        });
        phase
    }

    fn parts(phase: &Phase) -> [u64; 6] {
        let Division { source_ns, target_ns, both_ns, flush_ns, machine_ns, unknown_ns } = division(phase).unwrap();
        [source_ns, target_ns, both_ns, flush_ns, machine_ns, unknown_ns]
    }

    #[test]
    fn calls_tell_for_which_side_they_waited() {
        let calls =
            [(Call::Open, 10), (Call::Read, 500), (Call::Write, 300), (Call::Metadata, 5), (Call::Close, 5), (Call::Flush, 100), (Call::Idle, 7000)];
        let mut copy = phase(&calls, 80, 0, None);
        let mut opened = Histogram::new();
        opened.record(6);
        copy.latency.push(Latency::of(LatencyOp::Open, StartPoint::Submit, &opened));
        // Four of the time in opening are of no latency: whose they are is not known.
        assert_eq!(parts(&copy), [506, 310, 0, 100, 80, 4]);
    }

    #[test]
    fn what_a_thread_computed_within_calls_is_this_machine_s() {
        let calls = [(Call::Read, 900), (Call::Write, 50)];
        // Fifty were outside calls anyway; of the other sixty half is each side's.
        assert_eq!(parts(&phase(&calls, 50, 110, None)), [870, 20, 0, 0, 110, 0]);
        // Writing did nothing else, and reading the rest.
        let mut copy = phase(&calls, 50, 250, None);
        assert_eq!(parts(&copy), [750, 0, 0, 0, 250, 0]);
        // What watched was no part of it.
        copy.time.as_mut().unwrap().evidence_ns = Some(140);
        assert_eq!(parts(&copy), [870, 20, 0, 0, 110, 0]);
        // With data that are made beside, CPU time is not the copier's.
        let mut made = phase(&calls, 50, 250, None);
        made.source = Some(Source { kind: SourceKind::Generated, wait_ns: None });
        assert_eq!(parts(&made)[4], 50);
        // Reading from memory is itself work of this machine.
        made.source = Some(Source { kind: SourceKind::Memory, wait_ns: None });
        assert_eq!(parts(&made), [0, 50, 0, 0, 950, 0]);
    }

    #[test]
    fn a_drive_is_not_waited_for_when_it_has_nothing_to_do() {
        let calls = [(Call::Read, 500), (Call::Write, 300), (Call::Flush, 100)];
        assert_eq!(parts(&phase(&calls, 100, 0, Some([350, 250, 50, 350]))), [375, 175, 0, 100, 350, 0]);
        assert_eq!(parts(&phase(&calls, 100, 0, Some([450, 30, 20, 500]))), [460, 0, 0, 40, 500, 0]);
        // Nothing was in flight for 200: both sides are within their bounds, and a hundred of their time belongs to neither, in proportion to what is doubtful.
        assert_eq!(parts(&phase(&calls, 100, 0, Some([380, 220, 200, 200]))), [460, 240, 0, 100, 200, 0]);
    }

    #[test]
    fn what_another_program_waited_for_is_told_by_the_drives_or_not_at_all() {
        let calls = [(Call::Command, 900), (Call::Flush, 100)];
        assert_eq!(parts(&phase(&calls, 0, 90, None)), [0, 0, 0, 100, 90, 810]);
        assert_eq!(parts(&phase(&calls, 0, 90, Some([400, 200, 100, 300]))), [400, 100, 100, 100, 300, 0]);
    }

    #[test]
    fn nothing_recorded_is_nothing_divided() {
        assert_eq!(division(&Phase::new("copy", PhaseKind::Copy)), None);
        assert_eq!(division(&phase(&[], 0, 0, None)), None);
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_what_was_recorded(
            times in prop::array::uniform9(0_u64..1_000_000),
            outside in 0_u64..1_000_000,
            cpu in 0_u64..3_000_000,
            overlap in prop::option::of(prop::array::uniform4(0_u64..1_000_000)),
            threads in 1_u32..3,
        ) {
            let calls = [Call::Open, Call::Read, Call::Write, Call::Close, Call::Metadata, Call::Transfer, Call::Flush, Call::Generator, Call::Command];
            let calls: Vec<(Call, u64)> = calls.into_iter().zip(times).collect();
            let mut copy = phase(&calls, outside, cpu, overlap);
            copy.engine = Some(Engine { threads: Some(threads), ..Engine::default() });
            let whole = times.iter().sum::<u64>() + outside;
            prop_assert_eq!(division(&copy).map_or(0, |divided| divided.whole_ns()), whole);
        }
    }
}
