//! What is seen beside the samples while a window is open, before they are thinned out: stalls, and what the kernel says about the drives.

use std::io;

use crate::drive::{Counters, KernelNames};
use crate::measure::stall::{Sign, Stalls, Watch};
use crate::platform::{Clock, KernelLog};
use crate::result::KernelMessage;

/// Messages that are kept.
const MESSAGES: usize = 20;

/// Looks with the sampler.
pub(super) struct Witness<'a> {
    clock: &'a dyn Clock,
    watch: Watch,
    log: io::Result<KernelLog>,
    drives: Vec<(&'a str, &'a KernelNames)>,
    messages: Vec<KernelMessage>,
}

/// What was seen in a window.
#[derive(Debug)]
pub struct Seen {
    /// Stalls, by times since the window opened.
    pub stalls: Stalls,
    /// What the kernel said about the drives, or why its log could not be read.
    pub messages: Result<Vec<KernelMessage>, String>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { stalls: Stalls::default(), messages: Err("nobody looked".to_owned()) }
    }
}

impl<'a> Witness<'a> {
    /// Of these drives, by their ids.
    pub(super) fn new(clock: &'a dyn Clock, drives: Vec<(&'a str, &'a KernelNames)>) -> Self {
        Self { clock, watch: Watch::new(drives.len()), log: KernelLog::open(), drives, messages: Vec::new() }
    }

    /// One look: how far the work is, and what each drive counts.
    pub(super) fn look(&mut self, work: u64, counted: &[Option<Counters>]) {
        let now = self.clock.now_ns();
        let sign = |counters: &Counters| Sign {
            completed: [counters.reads, counters.writes, counters.discards.unwrap_or(0), counters.flushes.unwrap_or(0)].iter().sum(),
            in_flight: counters.in_flight,
        };
        let signs: Vec<Option<Sign>> = counted.iter().map(|counters| counters.as_ref().map(sign)).collect();
        self.watch.see(now, work, &signs);
        let Ok(log) = &mut self.log else { return };
        for record in log.read_new() {
            let reported = self.drives.iter().find_map(|(id, names)| names.report(&record).map(|reported| (id, reported)));
            if let Some((id, (kind, line))) = reported.filter(|_| self.messages.len() < MESSAGES) {
                self.messages.push(KernelMessage { t_ns: now, drive: (*id).to_owned(), kind, line });
            }
        }
    }

    /// What was seen between two moments of the clock: the opening of the window, and when nothing but the flush remained.
    pub(super) fn finish(self, opened_ns: u64, flushing_ns: u64) -> Seen {
        let mut stalls = self.watch.finish(opened_ns, flushing_ns);
        for stall in &mut stalls.longest {
            (stall.from_ns, stall.to_ns) = (stall.from_ns - opened_ns, stall.to_ns - opened_ns);
        }
        let in_window = self.messages.into_iter().filter(|message| message.t_ns >= opened_ns);
        let messages = in_window.map(|message| KernelMessage { t_ns: message.t_ns - opened_ns, ..message }).collect();
        Seen { stalls, messages: self.log.map(|_| messages).map_err(|error| format!("the kernel's log cannot be read: {error}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::FakeClock;
    use std::time::Duration;

    #[test]
    fn times_count_from_the_opening_and_what_ended_before_it_is_left_out() {
        let (clock, names) = (FakeClock::default(), KernelNames::default());
        let mut witness = Witness::new(&clock, vec![("d0", &names)]);
        for step in 0..200_u64 {
            // The drive answers nothing from step 10 to 40 and from 100 to 130.
            let writes = [(0, 10), (40, 100), (130, 200)].iter().map(|&(from, to)| step.clamp(from, to) - from).sum();
            witness.look(5, &[Some(Counters { writes, in_flight: 1, ..Counters::default() })]);
            clock.advance(Duration::from_millis(50));
        }
        let seen = witness.finish(3_000_000_000, u64::MAX);
        assert_eq!(seen.stalls.longest.iter().map(|gap| (gap.from_ns / 1_000_000, gap.to_ns / 1_000_000)).collect::<Vec<_>>(), [(2_000, 3_500)]);
    }
}
