//! Time: a monotonic clock for windows, a boot clock that counts suspended time, a wall clock for records, and waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clocks that copysim uses. All are in nanoseconds.
pub trait Clock: Send + Sync {
    /// Monotonic time (`CLOCK_MONOTONIC`): stands still while the machine is suspended.
    fn now_ns(&self) -> u64;
    /// Monotonic time including suspension (`CLOCK_BOOTTIME`).
    fn boot_ns(&self) -> u64;
    /// Seconds and nanoseconds since 1970 in UTC.
    fn wall(&self) -> jiff::Timestamp;
    /// Waits.
    fn sleep(&self, duration: Duration);
    /// Keeps the processor busy.
    fn work(&self, duration: Duration);
}

/// The clocks of the operating system.
pub struct OsClock;

fn read(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    // Both parts of these clocks are never negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[expect(clippy::disallowed_methods, reason = "this is the room of the clocks")]
impl Clock for OsClock {
    fn now_ns(&self) -> u64 {
        read(ClockId::Monotonic)
    }

    fn boot_ns(&self) -> u64 {
        read(ClockId::Boottime)
    }

    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn work(&self, duration: Duration) {
        let until = self.now_ns().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        while self.now_ns() < until {
            std::hint::spin_loop();
        }
    }
}

/// A clock that moves only when told to, or by a fixed step at each reading: the test double.
#[derive(Default)]
pub struct FakeClock {
    now: AtomicU64,
    suspended: AtomicU64,
    set_back: AtomicU64,
    step: u64,
}

impl FakeClock {
    /// A clock that starts at zero and moves by `step` nanoseconds whenever it is read.
    #[must_use]
    pub fn stepping(step: u64) -> Self {
        Self { step, ..Self::default() }
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        self.now.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Lets the machine be suspended for a while: only the boot clock moves.
    pub fn suspend(&self, duration: Duration) {
        self.suspended.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Lets somebody set the wall clock back: the others do not move.
    pub fn set_wall_back(&self, duration: Duration) {
        self.set_back.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        self.now.fetch_add(self.step, Ordering::SeqCst)
    }

    fn boot_ns(&self) -> u64 {
        self.now.load(Ordering::SeqCst) + self.suspended.load(Ordering::SeqCst)
    }

    fn wall(&self) -> jiff::Timestamp {
        let ns = i128::from(self.boot_ns()) - i128::from(self.set_back.load(Ordering::SeqCst));
        jiff::Timestamp::from_nanosecond(ns).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }

    fn work(&self, duration: Duration) {
        self.advance(duration);
    }
}
