//! Whether nobody else used the drives within the window.

use super::{Conclusions, Observed};
use crate::drive::{Counters, ProcessIo};
use crate::result::{Proof, Verdict, flags};
use crate::units::{Bytes, rate};

/// Others may move this share of what the drives moved before it matters (DESIGN).
const FOREIGN_SHARE: f64 = 0.02;
const SECOND_NS: u64 = 1_000_000_000;

/// What others moved on the drives within the window, as far as can be told; `None` where it can't.
///
/// Reads are exact: what the nearest devices served less what the kernel booked to this process and its children. Writes are not: a journal, inodes and
/// directories are written besides the content, and the pages of others are booked to them when they are made dirty, on whatever drive. So of what was
/// written in excess only as much counts as other processes are known to have written.
fn foreign(seen: &Observed, moved: &[&Counters]) -> Option<ProcessIo> {
    let own = seen.own_io.filter(|_| !moved.is_empty())?;
    let sum = |of: fn(&Counters) -> u64| moved.iter().map(|counters| of(counters)).sum::<u64>();
    let excess = sum(|counters| counters.written_bytes).saturating_sub(own.written_bytes);
    let written_bytes = excess.min(seen.others_io.written_bytes);
    Some(ProcessIo { read_bytes: sum(|counters| counters.read_bytes).saturating_sub(own.read_bytes), written_bytes })
}

/// What was written beyond what the kernel booked to anybody who can be seen: the file system's own bookkeeping, or others that can't be seen.
fn unexplained(seen: &Observed, moved: &[&Counters], foreign: ProcessIo) -> u64 {
    let written: u64 = moved.iter().map(|counters| counters.written_bytes).sum();
    let own = seen.own_io.map_or(0, |own| own.written_bytes);
    written.saturating_sub(own).saturating_sub(foreign.written_bytes)
}

pub(super) fn conclude(seen: &Observed, found: &mut Conclusions) {
    let source = seen.source_counted.first().filter(|_| !seen.same_drive);
    let counted: Vec<&Counters> = seen.target_counted.first().into_iter().chain(source).collect();
    found.foreign = foreign(seen, &counted);
    let Some(foreign) = found.foreign else {
        return found.prove(Proof::Alone, Verdict::Unknown, "there are no counters to see it by");
    };
    let moved = counted.iter().map(|counters| counters.read_bytes + counters.written_bytes).sum::<u64>().max(1) as f64;
    let window_s = seen.durable_ns.unwrap_or(seen.thread_ns) as f64 / SECOND_NS as f64;
    let before = seen.baseline_bytes_per_s.unwrap_or(0);
    let share = (foreign.sum() as f64).max(before as f64 * window_s) / moved;
    let mut because =
        format!("others moved {}, {:.1} % of all that went through the drives", Bytes(foreign.sum()), foreign.sum() as f64 * 100.0 / moved);
    if before > 0 {
        because += &format!("; before the window it was {}", rate(before, SECOND_NS));
    }
    if share > FOREIGN_SHARE {
        if let Some(busiest) = &seen.busiest {
            because += &format!("; the program that moved most, on whatever drive, was {busiest}");
        }
        found.flags.push(flags::FOREIGN_IO.flag(Some(&because), None));
        return found.prove(Proof::Alone, Verdict::Fails, because);
    }
    let unexplained = unexplained(seen, &counted, foreign);
    if seen.hidden_processes && unexplained as f64 > FOREIGN_SHARE * moved {
        because += &format!(
            "; {} more were written than copysim asked for, by the file system itself or by programs that can't be seen",
            Bytes(unexplained)
        );
        return found.prove(Proof::Alone, Verdict::Unknown, because);
    }
    found.prove(Proof::Alone, Verdict::Holds, because);
}
