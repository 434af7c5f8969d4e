//! Whether the wall clock was set while something was measured. Durations come from another clock and stand; dates before and after can't be compared.

use std::time::Duration;

use crate::platform::Clock;
use crate::result::{Flag, flags};
use crate::units::duration;

/// Less than this is how finely clocks are read one after the other.
const NOTED: Duration = Duration::from_secs(1);

/// How far the wall clock was ahead of the time since the machine was started, ns. Both run at the same speed, through sleep too, until one is set.
pub struct WallClock(i128);

impl WallClock {
    /// As it is now.
    #[must_use]
    pub fn look(clock: &dyn Clock) -> Self {
        Self(clock.wall().as_nanosecond() - i128::from(clock.boot_ns()))
    }

    /// What is to be said when it was set since.
    #[must_use]
    pub fn flag(&self, clock: &dyn Clock) -> Option<Flag> {
        let moved = Self::look(clock).0 - self.0;
        let ns = u64::try_from(moved.unsigned_abs()).unwrap_or(u64::MAX);
        let way = if moved < 0 { "back" } else { "forward" };
        (u128::from(ns) >= NOTED.as_nanos()).then(|| flags::CLOCK_SET.flag(Some(&format!("{way} by {}", duration(ns))), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::FakeClock;

    #[test]
    fn field_h18_a_step_of_the_wall_clock_is_noted_and_time_that_passes_is_not() {
        let clock = FakeClock::default();
        clock.advance(Duration::from_secs(50_000));
        let before = WallClock::look(&clock);
        clock.advance(Duration::from_secs(3600));
        clock.suspend(Duration::from_secs(600));
        assert_eq!(before.flag(&clock), None);
        clock.set_wall_back(Duration::from_millis(999));
        assert_eq!(before.flag(&clock), None);
        clock.set_wall_back(Duration::from_secs(3600));
        let flag = before.flag(&clock).unwrap();
        assert_eq!((flag.code.as_str(), flag.message.as_str()), ("clock-set", "The wall clock was set during the measurement: back by 1 h 00 min"));
    }
}
