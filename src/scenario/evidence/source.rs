//! Whether the measured drive was kept waiting by the source.

use super::{Conclusions, Observed, Origin, percent};
use crate::result::{Proof, Verdict, flags};

/// The writer may wait for data to be made for this share of the window.
const GENERATOR_SHARE: f64 = 0.01;
/// A target that worked for at least this share of the window did not wait for anything.
const BUSY_SHARE: f64 = 0.90;
/// A source that worked for at most this share of the window, and was not waited for much, could have given twice as much.
const HALF: f64 = 0.50;
/// Waits for the source above this share of the window matter where the target had at least as much time to spare.
const NOTICEABLE: f64 = 0.20;

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    if seen.same_drive {
        return;
    }
    let (verdict, because) = match seen.origin {
        Origin::Memory => (Verdict::Holds, "the source is memory".to_owned()),
        Origin::Generated => {
            let share = seen.generator_ns as f64 / seen.thread_ns.max(1) as f64;
            let verdict = if share < GENERATOR_SHARE { Verdict::Holds } else { Verdict::Fails };
            (verdict, format!("the writer waited {:.2} % of the time for data to be made", share * 100.0))
        }
        Origin::Drive(_) => of_a_drive(seen),
    };
    if verdict == Verdict::Fails {
        found.flags.push(flags::SOURCE_LIMITED.flag(Some(&because), None));
    }
    found.prove(Proof::SourceNotLimit, verdict, because);
}

/// The kernel's own figure of a device's busy time is an upper bound: it can show that a drive had time to spare, never that it had none. That it had none
/// is shown by the block trace alone.
fn of_a_drive(seen: &Observed) -> (Verdict, String) {
    let window = seen.durable_ns.unwrap_or(seen.thread_ns).max(1) as f64;
    let share = |ns: u64| ns as f64 / window;
    let upper = |levels: &[crate::drive::Counters]| levels.iter().map(|counters| share(counters.io_ticks_ns)).min_by(f64::total_cmp);
    let read = seen.read_ns.map(|ns| ns as f64 / seen.thread_ns.max(1) as f64);
    let waited = read.map_or_else(String::new, |read| format!("; the copier waited for reads for {} of the time", percent(read)));
    if let Some(busy) = seen.target_busy_ns.map(share).filter(|&busy| busy >= BUSY_SHARE) {
        return (Verdict::Holds, format!("the target worked for {} of the time{waited}", percent(busy)));
    }
    let waited_little = read.is_none_or(|read| read <= NOTICEABLE);
    if let Some(busy) = upper(&seen.source_counted).filter(|&busy| busy <= HALF && waited_little) {
        return (Verdict::Holds, format!("the source worked for at most {} of the time{waited}", percent(busy)));
    }
    let idle = seen.target_busy_ns.map(share).or_else(|| upper(&seen.target_counted)).map(|busy| (1.0 - busy).max(0.0));
    match (read, idle) {
        (Some(read), _) if read > HALF => (Verdict::Fails, format!("the copier waited for reads for {} of the time", percent(read))),
        (Some(read), Some(idle)) if read > NOTICEABLE && idle > NOTICEABLE => (
            Verdict::Fails,
            format!("the target was idle for at least {} of the time, and the copier waited for reads for {}", percent(idle), percent(read)),
        ),
        (None, Some(idle)) if idle > HALF => (Verdict::Fails, format!("the target was idle for at least {} of the time", percent(idle))),
        _ => (Verdict::Unknown, format!("both drives worked most of the time; the block trace would tell{waited}")),
    }
}
