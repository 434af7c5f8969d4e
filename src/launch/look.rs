//! What the processes of a program have done so far, by the kernel's books, and when they do nothing more.

use std::time::Duration;

use crate::drive::ProcessIo;
use crate::platform::{Host, Process, Spent};

/// Between two looks whether a program is quiet.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Less is not told from a pause between two steps of its work.
pub(super) const LEAST_QUIET: Duration = Duration::from_millis(100);
/// A program that uses less of a processor than this, in percent, only waits for what comes.
const IDLE_PERCENT: u64 = 1;

/// What processes have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    /// CPU time in steps of the kernel's clock (10 ms), and faults.
    pub spent: Spent,
    /// What was moved for them; `None` where that is not told of one of them.
    pub io: Option<ProcessIo>,
}

/// Looks at processes and the children that they waited for.
pub(super) fn look(host: &Host, processes: &[Process], ticks_per_s: u64) -> Look {
    let mut sum = Look { io: Some(ProcessIo::default()), ..Look::default() };
    for Process { id, .. } in processes {
        let spent = host.fact(format!("/proc/{id}/stat")).as_deref().and_then(|stat| parse_stat(stat, ticks_per_s));
        // One that has just gone has told nothing.
        let Some(spent) = spent else { continue };
        sum.spent.user_ns += spent.user_ns;
        sum.spent.system_ns += spent.system_ns;
        sum.spent.minor_faults += spent.minor_faults;
        sum.spent.major_faults += spent.major_faults;
        let io = host.fact(format!("/proc/{id}/io")).as_deref().and_then(ProcessIo::parse);
        sum.io = sum.io.zip(io).map(|(sum, io)| sum.plus(io));
    }
    sum
}

/// The fields of `/proc/PID/stat` that tell what was used, of the process and of the children that it waited for (`man 5 proc`).
fn parse_stat(stat: &str, ticks_per_s: u64) -> Option<Spent> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let both = |own: usize| Some(fields.get(own)?.parse::<u64>().ok()? + fields.get(own + 1)?.parse::<u64>().ok()?);
    let time = |own: usize, children: usize| Some(fields.get(own)?.parse::<u64>().ok()? + fields.get(children)?.parse::<u64>().ok()?);
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000) / ticks_per_s.max(1);
    Some(Spent { minor_faults: both(7)?, major_faults: both(9)?, user_ns: ns(time(11, 13)?), system_ns: ns(time(12, 14)?) })
}

/// Whether processes do something, as it is seen by the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Activity {
    /// CPU time of all threads that are there, ns.
    cpu_ns: u64,
    /// Bytes moved from and to storage.
    moved_bytes: u64,
    /// Whether a thread waits for a drive.
    waits: bool,
    /// Threads.
    threads: usize,
}

impl Activity {
    /// Looks at processes, thread by thread.
    pub(super) fn of(host: &Host, processes: &[Process]) -> Self {
        let mut seen = Self::default();
        for Process { id, .. } in processes.iter().filter(|process| !process.has_ended) {
            seen.moved_bytes += host.fact(format!("/proc/{id}/io")).as_deref().and_then(ProcessIo::parse).map_or(0, ProcessIo::sum);
            for thread in host.names(format!("/proc/{id}/task")) {
                let about = format!("/proc/{id}/task/{thread}");
                // Of kernels without it only storage is seen.
                let run = host.fact(format!("{about}/schedstat")).and_then(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok());
                let stat = host.fact(format!("{about}/stat")).unwrap_or_default();
                seen.cpu_ns += run.unwrap_or(0);
                seen.waits |= stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('D'));
                seen.threads += 1;
            }
        }
        seen
    }

    /// Whether anything was done since an earlier look, so long ago.
    pub(super) fn is_more_than(&self, earlier: &Self, ns: u64) -> bool {
        // Threads that ended take their time with them.
        let used_ns = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        self.waits
            || self.moved_bytes != earlier.moved_bytes
            || self.threads != earlier.threads
            || used_ns.saturating_mul(100) > ns.saturating_mul(IDLE_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use super::*;

    const PROCESS: Process = Process { id: 40, parent: 1, began: 5, has_ended: false };

    fn host(stat: &str, io: Option<&str>, schedstat: &str) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let task = root.path().join("proc/40/task/41");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(root.path().join("proc/40/stat"), stat).unwrap();
        io.into_iter().for_each(|io| std::fs::write(root.path().join("proc/40/io"), io).unwrap());
        std::fs::write(task.join("stat"), stat).unwrap();
        std::fs::write(task.join("schedstat"), schedstat).unwrap();
        let host = Host::at(root.path());
        (root, host)
    }

    const STAT: &str = "40 (a) b) S 1 40 40 0 -1 4194560 1000 200 30 4 50 60 7 8 20 0 1 0 5 0 0";
    const IO: &str = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";

    #[test]
    fn what_processes_and_their_children_used_is_added_up() {
        let (_root, here) = host(STAT, Some(IO), "123 4 5");
        let spent = Spent { user_ns: 570_000_000, system_ns: 680_000_000, minor_faults: 1200, major_faults: 34 };
        assert_eq!(look(&here, &[PROCESS], 100), Look { spent, io: Some(ProcessIo { read_bytes: 4096, written_bytes: 4096 }) });
        let (_root, hidden) = host(STAT, None, "");
        assert_eq!(look(&hidden, &[PROCESS], 100), Look { spent, io: None });
    }

    #[test]
    fn a_program_does_something_when_it_computes_moves_waits_for_a_drive_or_starts_threads() {
        let at = |stat: &str, io: &str, run: &str| {
            let (_root, host) = host(stat, Some(io), run);
            Activity::of(&host, &[PROCESS])
        };
        let before = at(STAT, IO, "1000000 0 0");
        let ms = 1_000_000;
        assert!(!at(STAT, IO, "1200000 0 0").is_more_than(&before, 25 * ms));
        assert!(at(STAT, IO, "1300000 0 0").is_more_than(&before, 25 * ms));
        assert!(at(STAT, &IO.replace("8192", "12288"), "1000000 0 0").is_more_than(&before, 25 * ms));
        assert!(at(&STAT.replace(") S ", ") D "), IO, "1000000 0 0").is_more_than(&before, 25 * ms));
        assert!(Activity::default().is_more_than(&before, 25 * ms));
    }
}
