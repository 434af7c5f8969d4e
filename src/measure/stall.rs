//! Times in which nothing moved.
//!
//! A timeline of 600 points is too coarse for that when the work takes long, so stalls are noticed as the samples pass, before they are thinned out.

/// A pause is a stall from here on. One second is where a person's flow of thought breaks (the limits of 0.1, 1 and 10 s: Miller 1968; Card, Robertson and
/// Mackinlay 1991); what drives do inside while they merely lose rate (clearing flash, seeking) takes tens to hundreds of ms; and it is 20 samples.
pub const STALL_NS: u64 = 1_000_000_000;
/// A drive that is so slow that it answers once in a while does not stall between its answers: a stall is longer than this many times the mean time from one sign
/// of progress to the next.
const USUAL: u64 = 5;
/// Stalls of which the place is kept: the longest.
pub const KEPT: usize = 20;
/// What is kept until the mean is known.
const CANDIDATES: usize = 4 * KEPT;

/// A time without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// The first look at which all was as it then stayed.
    pub from_ns: u64,
    /// The last look at which nothing had changed yet.
    pub to_ns: u64,
}

impl Gap {
    /// How long nothing moved, at least.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// How far one device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// Requests that it has completed, of any kind.
    pub completed: u64,
    /// Requests under way.
    pub in_flight: u64,
}

/// Stalls of a window.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// All together, ns.
    pub total_ns: u64,
    /// The longest ones, at most [`KEPT`], in the order in which they came.
    pub longest: Vec<Gap>,
}

/// Watches one thing for signs of progress.
#[derive(Debug, Default)]
struct Line {
    /// When its sign was first seen as it is, and the sign.
    since: Option<(u64, u64)>,
    last_ns: u64,
}

impl Line {
    /// A look. Answers with the time without progress that has just ended, when it was a second.
    fn see(&mut self, t_ns: u64, sign: u64, waits: bool) -> Option<Gap> {
        let ended = self.since.filter(|&(_, before)| before != sign).map(|(from_ns, _)| Gap { from_ns, to_ns: self.last_ns });
        if !waits || self.since.is_none_or(|(_, before)| before != sign) {
            self.since = Some((t_ns, sign));
        }
        self.last_ns = t_ns;
        ended.filter(|gap| gap.ns() >= STALL_NS)
    }
}

/// Looks for stalls while the work is done. Two things are stalls: that nothing moves, neither the work nor any device; and that a device has requests under way and
/// completes none, even while the work goes on into memory. A stall is over when something moves again: the wait at the end of all is none.
#[derive(Debug)]
pub struct Watch {
    all: Line,
    devices: Vec<Line>,
    gaps: Vec<Gap>,
    /// Those of which the place was not kept, all shorter: how many and how long.
    more: (u64, u64),
    signs: u64,
    looks: Option<(u64, u64)>,
    last: Option<u64>,
}

impl Watch {
    /// For so many devices.
    #[must_use]
    pub fn new(devices: usize) -> Self {
        let devices = (0..devices).map(|_| Line::default()).collect();
        Self { all: Line::default(), devices, gaps: Vec::new(), more: (0, 0), signs: 0, looks: None, last: None }
    }

    /// A look: how far the work is, and each device; `None` for one that could not be asked.
    pub fn see(&mut self, t_ns: u64, work: u64, devices: &[Option<Sign>]) {
        let everything = devices.iter().flatten().fold(work, |sum, sign| sum.wrapping_add(sign.completed));
        self.signs += u64::from(self.last.replace(everything).is_some_and(|last| last != everything));
        self.looks = Some((self.looks.map_or(t_ns, |(first, _)| first), t_ns));
        let mut ended: Vec<Gap> = self.all.see(t_ns, everything, true).into_iter().collect();
        for (line, sign) in self.devices.iter_mut().zip(devices) {
            match sign {
                Some(sign) => ended.extend(line.see(t_ns, sign.completed, sign.in_flight > 0)),
                None => *line = Line::default(),
            }
        }
        ended.into_iter().for_each(|gap| self.keep(gap));
    }

    /// Keeps a stall; those that overlap are one.
    fn keep(&mut self, gap: Gap) {
        let (same, mut others): (Vec<Gap>, Vec<Gap>) = self.gaps.drain(..).partition(|kept| kept.from_ns <= gap.to_ns && gap.from_ns <= kept.to_ns);
        others.push(same.into_iter().fold(gap, |a, b| Gap { from_ns: a.from_ns.min(b.from_ns), to_ns: a.to_ns.max(b.to_ns) }));
        if others.len() > CANDIDATES
            && let Some(shortest) = (0..others.len()).min_by_key(|&index| others[index].ns())
        {
            self.more.0 += 1;
            self.more.1 += others.swap_remove(shortest).ns();
        }
        self.gaps = others;
    }

    /// The stalls between two times: from the opening of the window until what remained was the flush.
    #[must_use]
    pub fn finish(self, from_ns: u64, until_ns: u64) -> Stalls {
        let (first, last) = self.looks.unwrap_or_default();
        let usual = (last - first) / self.signs.max(1);
        let least = STALL_NS.max(usual.saturating_mul(USUAL));
        // A silence that goes on into the flush is a stall only as long as it lasted before.
        let within = |gap: &Gap| Gap { from_ns: gap.from_ns.max(from_ns), to_ns: gap.to_ns.min(until_ns.max(from_ns)) };
        let mut gaps: Vec<Gap> = self.gaps.iter().map(within).filter(|gap| gap.from_ns < until_ns && gap.ns() >= least).collect();
        // What was not kept is no longer than the shortest that was: it counts only if all of those do.
        let more = if gaps.len() == self.gaps.len() { self.more } else { (0, 0) };
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.ns()));
        let count = gaps.len() as u64 + more.0;
        let total_ns = gaps.iter().map(Gap::ns).sum::<u64>() + more.1;
        let longest_ns = gaps.first().map_or(0, Gap::ns);
        gaps.truncate(KEPT);
        gaps.sort();
        Stalls { count, longest_ns, total_ns, longest: gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Looks every 50 ms at work that moves except in these times, and at a device with requests under way that completes some except in those.
    fn watch(ms: u64, work_stands: &[(u64, u64)], device: Option<&[(u64, u64)]>) -> Stalls {
        let mut watch = Watch::new(usize::from(device.is_some()));
        let (mut work, mut completed) = (0, 0);
        let within = |times: &[(u64, u64)], t: u64| times.iter().any(|&(from, to)| (from..to).contains(&t));
        for t in (0..ms).step_by(50) {
            work += u64::from(!within(work_stands, t));
            completed += u64::from(!device.is_some_and(|times| within(times, t)));
            watch.see(t * MS, work, &device.map(|_| Some(Sign { completed, in_flight: 4 })).into_iter().collect::<Vec<_>>());
        }
        watch.finish(0, u64::MAX)
    }

    fn at(stalls: &Stalls) -> Vec<(u64, u64)> {
        stalls.longest.iter().map(|gap| (gap.from_ns / MS, gap.to_ns / MS)).collect()
    }

    #[test]
    fn a_second_in_which_nothing_moves_is_a_stall_and_less_is_none() {
        let stalls = watch(10_000, &[(2_000, 4_000), (6_000, 6_900)], None);
        assert_eq!((stalls.count, at(&stalls)), (1, vec![(1_950, 3_950)]));
        assert_eq!((stalls.longest_ns, stalls.total_ns), (2_000 * MS, 2_000 * MS));
        // The end of the work is no stall, however long it takes.
        assert_eq!(watch(10_000, &[(4_000, 10_000)], None), Stalls::default());
    }

    #[test]
    fn a_device_that_answers_nothing_stalls_while_work_goes_on_and_both_together_are_one_stall() {
        assert_eq!(at(&watch(10_000, &[], Some(&[(3_000, 5_000)]))), [(2_950, 4_950)]);
        assert_eq!(at(&watch(10_000, &[(3_500, 6_000)], Some(&[(3_000, 5_000)]))), [(2_950, 4_950)]);
        assert_eq!(watch(10_000, &[(3_000, 5_000)], Some(&[])).count, 0, "the device moves: it is writing what the work left in memory");
    }

    #[test]
    fn a_device_without_requests_waits_for_no_one() {
        let mut watch = Watch::new(1);
        for t in 0..200_u64 {
            watch.see(t * 50 * MS, t, &[Some(Sign { completed: u64::from(t > 100), in_flight: u64::from(t == 100) })]);
        }
        assert_eq!(watch.finish(0, u64::MAX), Stalls::default());
    }

    #[test]
    fn what_answers_every_second_and_a_half_does_not_stall() {
        let slow: Vec<(u64, u64)> = (0..40).map(|index| (index * 1_500 + 50, (index + 1) * 1_500)).collect();
        assert_eq!(watch(60_000, &slow, None).count, 0);
        let stalls = watch(80_000, &[&slow[..], &[(60_000, 70_000)]].concat(), None);
        // It begins with the pause before it.
        assert_eq!((stalls.count, stalls.longest_ns / MS), (1, 11_450));
    }

    #[test]
    fn only_the_longest_are_kept_and_all_are_counted() {
        let many: Vec<(u64, u64)> = (0..200).map(|index| (index * 10_000 + 100, index * 10_000 + 1_200 + index * 10)).collect();
        let stalls = watch(2_000_000, &many, None);
        assert_eq!((stalls.count, stalls.longest.len()), (200, KEPT));
        assert!(stalls.longest.iter().all(|gap| gap.ns() >= 2_850 * MS), "{stalls:?}");
        assert!(stalls.longest.is_sorted());
    }

    #[test]
    fn stalls_are_cut_to_the_window_and_none_is_found_in_its_flush() {
        let mut watch = Watch::new(0);
        for t in 0..200_u64 {
            watch.see(t * 50 * MS, if (20..80).contains(&t) { 20 } else { t }, &[]);
        }
        assert_eq!(at(&watch.finish(2_000 * MS, 9_000 * MS)), [(2_000, 3_950)]);
    }
}
