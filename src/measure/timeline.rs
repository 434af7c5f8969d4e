//! Progress over time with a bounded number of samples, however long the work takes.

/// The most samples that a timeline holds.
pub const MAX_POINTS: usize = 600;

/// Real sample times and the series taken at them, all of the same length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Samples {
    /// Times, ns since the window opened.
    pub t_ns: Vec<u64>,
    /// One list of values for each series; `None` where a value could not be read.
    pub values: Vec<Vec<Option<i64>>>,
}

impl Samples {
    /// The samples from a moment on, which becomes their zero. What was read last before it stands for what was there at that moment.
    #[must_use]
    pub fn since(mut self, moment_ns: u64) -> Self {
        let first = self.t_ns.partition_point(|&t_ns| t_ns <= moment_ns).saturating_sub(1);
        self.t_ns.drain(..first.min(self.t_ns.len()));
        self.t_ns.iter_mut().for_each(|t_ns| *t_ns = t_ns.saturating_sub(moment_ns));
        for series in &mut self.values {
            series.drain(..first.min(series.len()));
        }
        self
    }
}

/// Takes samples of cumulative series. When there are 600, it drops every second one and from then on keeps half as many of those it is offered.
/// Nothing is averaged: what remains is what was read, at the time at which it was read.
#[derive(Debug)]
pub struct Recorder {
    samples: Samples,
    /// Every `stride`th sample offered is kept.
    stride: u64,
    offered: u64,
    /// The newest sample if it was not kept: the end of the work must not be lost.
    pending: Option<(u64, Vec<Option<i64>>)>,
}

impl Recorder {
    /// A recorder of so many series.
    #[must_use]
    pub fn new(series: usize) -> Self {
        Self { samples: Samples { t_ns: Vec::new(), values: vec![Vec::new(); series] }, stride: 1, offered: 0, pending: None }
    }

    /// Offers a sample, later than all before. Values beyond the number of series are ignored, missing ones are unknown.
    pub fn offer(&mut self, t_ns: u64, values: &[Option<i64>]) {
        if self.offered.is_multiple_of(self.stride) {
            self.keep(t_ns, values);
            self.pending = None;
            if self.samples.t_ns.len() == MAX_POINTS {
                self.halve();
            }
        } else {
            self.pending = Some((t_ns, values.to_vec()));
        }
        self.offered += 1;
    }

    /// What was kept, and the last sample that was offered.
    #[must_use]
    pub fn finish(mut self) -> Samples {
        if let Some((t_ns, values)) = self.pending.take() {
            self.keep(t_ns, &values);
        }
        self.samples
    }

    fn keep(&mut self, t_ns: u64, values: &[Option<i64>]) {
        self.samples.t_ns.push(t_ns);
        for (index, series) in self.samples.values.iter_mut().enumerate() {
            series.push(values.get(index).copied().flatten());
        }
    }

    fn halve(&mut self) {
        let Samples { t_ns, values } = &mut self.samples;
        // The newest is at an odd index and would go; it may be the last that is ever offered.
        self.pending = t_ns.last().map(|&t_ns| (t_ns, values.iter().map(|series| series.last().copied().flatten()).collect()));
        *t_ns = t_ns.iter().copied().step_by(2).collect();
        for series in values {
            *series = series.iter().copied().step_by(2).collect();
        }
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(offered: u64) -> Samples {
        let mut recorder = Recorder::new(2);
        for index in 0..offered {
            recorder.offer(index * 7 + 3, &[Some(index.cast_signed()), (index % 2 == 0).then_some(40)]);
        }
        recorder.finish()
    }

    proptest! {
        #[test]
        fn first_and_last_sample_stay_and_the_rest_is_thinned_evenly(offered in 1_u64..20_000) {
            let samples = record(offered);
            let count = samples.t_ns.len();
            prop_assert!(count <= MAX_POINTS && (offered < 600 || count >= MAX_POINTS / 2));
            prop_assert!(samples.values.iter().all(|series| series.len() == count));
            prop_assert_eq!(samples.t_ns[0], 3);
            prop_assert_eq!(samples.t_ns[count - 1], (offered - 1) * 7 + 3);
            // Every sample is one that was offered, whole.
            for (index, &t_ns) in samples.t_ns.iter().enumerate() {
                let number = (t_ns - 3) / 7;
                prop_assert_eq!(samples.values[0][index], Some(number.cast_signed()));
                prop_assert_eq!(samples.values[1][index], (number % 2 == 0).then_some(40));
            }
            let steps: Vec<u64> = samples.t_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
            if let Some((last, rest)) = steps.split_last() {
                prop_assert!(rest.iter().all(|step| *step == rest[0] && rest[0] >= *last));
            }
        }
    }

    #[test]
    fn samples_since_a_moment_begin_with_what_was_there_then() {
        let samples = Samples { t_ns: vec![10, 60, 110], values: vec![vec![Some(0), Some(1), None]] };
        let expected = |t_ns: &[u64], values: &[Option<i64>]| Samples { t_ns: t_ns.to_vec(), values: vec![values.to_vec()] };
        assert_eq!(samples.clone().since(0), expected(&[10, 60, 110], &[Some(0), Some(1), None]));
        assert_eq!(samples.clone().since(70), expected(&[0, 40], &[Some(1), None]));
        assert_eq!(samples.since(500), expected(&[0], &[None]));
        assert_eq!(Samples::default().since(5), Samples::default());
    }

    #[test]
    fn below_the_limit_nothing_is_dropped() {
        assert_eq!(record(599).t_ns.len(), 599);
        assert_eq!(record(600).t_ns.len(), 301);
        assert_eq!(record(0), Samples { t_ns: vec![], values: vec![vec![], vec![]] });
    }
}
