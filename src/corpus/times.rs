//! Whether the times of a tree are those of its manifest, as far as file systems keep them: FAT stores even seconds, and local time instead of UTC.

/// File systems with coarse times are right to so many seconds.
const COARSE_S: u64 = 2;
/// Zones differ by whole quarters of an hour.
const QUARTER_S: i128 = 900;
/// From UTC−12 to UTC+14 there are 26 hours.
const MOST_QUARTERS: i128 = 26 * 4;
/// Summer time adds an hour to some of the files.
const SUMMER_QUARTERS: i128 = 4;

/// The times of files against those they should have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// By how many quarters of an hour files are off, as far as it is whole ones: at most three different values are kept, enough to see that there is no rule.
    quarters: Vec<i128>,
    /// Files whose time is another one.
    differ: u64,
    /// Those among them that are off by something else.
    unruly: u64,
}

impl Times {
    /// One more file, both times in seconds since 1970.
    pub fn add(&mut self, found: i64, listed: i64) {
        let apart = i128::from(found) - i128::from(listed);
        let quarters = (apart + QUARTER_S / 2).div_euclid(QUARTER_S);
        self.differ += u64::from(found.abs_diff(listed) > COARSE_S);
        if (apart - quarters * QUARTER_S).unsigned_abs() > u128::from(COARSE_S) || quarters.abs() > MOST_QUARTERS {
            self.unruly += 1;
        } else if self.quarters.len() < 3 && !self.quarters.contains(&quarters) {
            self.quarters.push(quarters);
        }
    }

    /// Files whose time is another one, beyond what coarse times explain.
    #[must_use]
    pub fn differ(&self) -> u64 {
        self.differ
    }

    /// Whether all are as they should be, or all are off as another time zone makes them: by the same whole quarters of an hour, but for an hour of summer time.
    #[must_use]
    pub fn agree(&self) -> bool {
        let one_zone = match self.quarters.as_slice() {
            [] | [_] => true,
            [first, second] => (first - second).abs() == SUMMER_QUARTERS,
            _ => false,
        };
        self.unruly == 0 && one_zone
    }

    /// Whether they are off as another time zone makes them.
    #[must_use]
    pub fn are_shifted(&self) -> bool {
        self.differ > 0 && self.agree()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(i64, i64)]) -> Times {
        let mut times = Times::default();
        pairs.iter().for_each(|&(found, listed)| times.add(found, listed));
        times
    }

    #[test]
    fn field_e01_rounded_times_are_the_same_times() {
        for apart in -2..=2 {
            let times = of(&[(1_000_000 + apart, 1_000_000)]);
            assert_eq!((times.differ(), times.agree(), times.are_shifted()), (0, true, false), "{apart}");
        }
        assert_eq!(of(&[(1_000_003, 1_000_000)]).differ(), 1);
        assert!(!of(&[(1_000_003, 1_000_000)]).agree());
    }

    #[test]
    fn field_e02_whole_quarters_of_an_hour_are_a_time_zone_and_nothing_else_is() {
        let shifted = |quarters: &[i64]| of(&quarters.iter().map(|quarters| (quarters * 900 + 1, 0)).collect::<Vec<_>>());
        for zone in [&[4][..], &[-20], &[23], &[4, 8], &[8, 4, 4, 8], &[0, 4], &[104]] {
            let times = shifted(zone);
            assert!(times.agree() && times.are_shifted(), "{zone:?}");
        }
        for none in [&[0, 1][..], &[4, 9], &[4, 8, 12], &[105], &[-105]] {
            assert!(!shifted(none).agree(), "{none:?}");
        }
        assert!(!of(&[(3600, 0), (3610, 0)]).agree());
    }

    #[test]
    fn field_e06_times_at_the_ends_of_the_scale_are_other_times() {
        for (found, listed) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (i64::MIN, 0), (i64::MAX, -1)] {
            let times = of(&[(found, listed)]);
            assert_eq!((times.differ(), times.agree()), (1, false), "{found} {listed}");
        }
        assert!(of(&[(i64::MAX, i64::MAX), (i64::MIN, i64::MIN)]).agree());
    }
}
