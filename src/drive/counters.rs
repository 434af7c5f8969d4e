//! What a block device has done so far, by its own counters, and waiting until it does nothing.

use std::fmt;
use std::io;
use std::time::Duration;

use super::DeviceNumber;
use crate::platform::{Clock, Fact, Host};
use crate::progress::Cancel;
use crate::{Context, Result, Side};

/// A sector in the kernel's counters, whatever the device's own sector is.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;
/// The kernel counts busy milliseconds in 32 bits; everything else in its word.
const TICKS_WRAP_NS: u64 = (1 << 32) * NS_PER_MS;
/// Between two looks while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The counters of one device, or of several added up: all completed requests since it appeared. `None` where the kernel does not count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Discards (since Linux 4.18).
    pub discards: Option<u64>,
    /// Bytes discarded.
    pub discard_bytes: Option<u64>,
    /// Flushes (since Linux 5.5).
    pub flushes: Option<u64>,
    /// Time with at least one request under way, ns, as the kernel estimates it: an upper bound.
    pub io_ticks_ns: u64,
    /// Requests under way at the moment of reading.
    pub in_flight: u64,
}

impl Counters {
    /// Reads the text of sysfs' `stat`: 11, 15 or 17 numbers (`Documentation/block/stat.rst` of the kernel).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = [None; 17];
        let mut present = 0;
        for (field, word) in fields.iter_mut().zip(text.split_ascii_whitespace()) {
            *field = Some(word.parse().ok()?);
            present += 1;
        }
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        let discards = present >= 15;
        Some(Self {
            reads: fields[0]?,
            read_bytes: bytes(fields[2]?),
            writes: fields[4]?,
            written_bytes: bytes(fields[6]?),
            discards: fields[11].filter(|_| discards),
            discard_bytes: fields[13].filter(|_| discards).map(bytes),
            flushes: fields[15].filter(|_| present >= 17),
            io_ticks_ns: fields[9]?.saturating_mul(NS_PER_MS),
            in_flight: fields[8]?,
        })
        .filter(|_| present >= 11)
    }

    /// What was done since an earlier reading. `in_flight` stays what it is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.since_in_words_of(usize::BITS, earlier)
    }

    /// The kernel's counters are as wide as its words: where those have 32 bits they do wrap. Where they have 64 none ever does, and a smaller value is no progress.
    fn since_in_words_of(&self, bits: u32, earlier: &Self) -> Self {
        let count = |now, before| moved(now, before, (bits == 32).then_some(1 << 32));
        let bytes = |now, before| moved(now, before, (bits == 32).then_some(SECTOR_BYTES << 32));
        let both = |now: Option<u64>, before: Option<u64>, moved: &dyn Fn(u64, u64) -> u64| now.zip(before).map(|(now, before)| moved(now, before));
        Self {
            reads: count(self.reads, earlier.reads),
            read_bytes: bytes(self.read_bytes, earlier.read_bytes),
            writes: count(self.writes, earlier.writes),
            written_bytes: bytes(self.written_bytes, earlier.written_bytes),
            discards: both(self.discards, earlier.discards, &count),
            discard_bytes: both(self.discard_bytes, earlier.discard_bytes, &bytes),
            flushes: both(self.flushes, earlier.flushes, &count),
            io_ticks_ns: moved(self.io_ticks_ns, earlier.io_ticks_ns, Some(TICKS_WRAP_NS)),
            in_flight: self.in_flight,
        }
    }

    /// The counters of two devices added up; a kind of request that one of them does not count is unknown for both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        Self {
            reads: self.reads.saturating_add(other.reads),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            writes: self.writes.saturating_add(other.writes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            discards: both(self.discards, other.discards),
            discard_bytes: both(self.discard_bytes, other.discard_bytes),
            flushes: both(self.flushes, other.flushes),
            io_ticks_ns: self.io_ticks_ns.saturating_add(other.io_ticks_ns),
            in_flight: self.in_flight.saturating_add(other.in_flight),
        }
    }
}

fn moved(now: u64, before: u64, wraps_at: Option<u64>) -> u64 {
    match (now.checked_sub(before), wraps_at) {
        (Some(moved), _) => moved,
        (None, Some(modulus)) => now.saturating_add(modulus.saturating_sub(before)),
        (None, None) => 0,
    }
}

/// The counters of one or more devices, held open: a reading is one system call each.
#[derive(Debug)]
pub struct CounterReader {
    devices: Vec<(DeviceNumber, Fact)>,
}

impl CounterReader {
    /// Opens the counters of devices; `None` when there is no device, or one without counters.
    #[must_use]
    pub fn open(host: &Host, devices: &[DeviceNumber]) -> Option<Self> {
        let open = |&(major, minor): &DeviceNumber| Some(((major, minor), host.open(stat_path((major, minor))).ok()?));
        let devices = devices.iter().map(open).collect::<Option<Vec<_>>>()?;
        let reader = Self { devices };
        (!reader.devices.is_empty() && reader.read().is_ok()).then_some(reader)
    }

    /// Reads all counters now and adds them up.
    ///
    /// # Errors
    /// `ENODEV` when a device is gone; `InvalidData` when its counters are none.
    pub fn read(&self) -> Result<Counters> {
        let mut sum: Option<Counters> = None;
        self.read_each(|_, counters| sum = Some(sum.map_or(counters, |sum| sum.plus(&counters))))?;
        Ok(sum.unwrap_or_default())
    }

    /// Reads the counters of every device now.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_each(&self, mut each: impl FnMut(DeviceNumber, Counters)) -> Result<()> {
        // Seventeen numbers of at most twenty digits.
        let mut buffer = [0; 512];
        for (number, fact) in &self.devices {
            let text = fact.read(&mut buffer).during("read the counters in", Side::Host, stat_path(*number))?;
            let counters = Counters::parse(text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData));
            each(*number, counters.during("understand the counters in", Side::Host, stat_path(*number))?);
        }
        Ok(())
    }
}

fn stat_path((major, minor): DeviceNumber) -> String {
    format!("/sys/dev/block/{major}:{minor}/stat")
}

/// Whose completions keep a device from being quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completions {
    /// Writes, discards and flushes: for the end of writing.
    OfWrites,
    /// Reads as well: for an idle device before a phase.
    OfAll,
}

/// Why a device did not become quiet.
#[derive(Debug)]
pub enum NotQuiet {
    /// It went on completing requests until the longest wait was over.
    StillBusy,
    /// The end was asked for.
    Interrupted,
    /// Requests were still under way when the longest wait was over, though none was completed any more.
    StillInFlight(u64),
    /// Its counters could not be read.
    Unreadable(crate::Error),
}

impl fmt::Display for NotQuiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the wait for it was interrupted"),
            Self::StillBusy => f.write_str("the drive did not stop working in the time given"),
            Self::StillInFlight(requests) => write!(f, "{requests} requests were still under way in the drive when the time given was over"),
            Self::Unreadable(error) => write!(f, "the drive's counters could not be read: {error}"),
        }
    }
}

/// Waits until the devices have completed nothing for `quiet_for`, with nothing under way, and answers with the clock's time of the last look at which there was a
/// new completion: the start of the wait when there was none. The look comes at most 5 ms (and the system's tardiness) after the completion.
///
/// # Errors
/// Why they did not become quiet within `at_most`, or that the end was asked for.
pub fn wait_until_quiet(
    reader: &CounterReader,
    clock: &dyn Clock,
    of: Completions,
    quiet_for: Duration,
    at_most: Duration,
    cancel: &Cancel,
) -> std::result::Result<u64, NotQuiet> {
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let completed = |counters: &Counters| {
        let reads = if of == Completions::OfAll { counters.reads } else { 0 };
        (reads, counters.writes, counters.discards, counters.flushes)
    };
    let start = clock.now_ns();
    let (mut last_ns, mut last) = (start, completed(&reader.read().map_err(NotQuiet::Unreadable)?));
    loop {
        clock.sleep(LOOK_EVERY);
        if cancel.signal().is_some() {
            return Err(NotQuiet::Interrupted);
        }
        let counters = reader.read().map_err(NotQuiet::Unreadable)?;
        let now = clock.now_ns();
        if completed(&counters) != last {
            (last_ns, last) = (now, completed(&counters));
        } else if now.saturating_sub(last_ns) >= ns(quiet_for) && counters.in_flight == 0 {
            return Ok(last_ns);
        }
        if now.saturating_sub(start) >= ns(at_most) {
            let silent = now.saturating_sub(last_ns) >= ns(quiet_for);
            return Err(if silent { NotQuiet::StillInFlight(counters.in_flight) } else { NotQuiet::StillBusy });
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use std::path::PathBuf;

    use super::*;
    use crate::platform::{FakeClock, OsClock};

    const OLD: &str = "  90657 24279 9350074 64001 23786 50972 19241672 129099 3 14488 194178\n";

    #[test]
    fn all_three_lengths_are_read_and_what_is_not_counted_is_unknown() {
        let old = Counters::parse(OLD).unwrap();
        assert_eq!((old.reads, old.read_bytes, old.writes, old.written_bytes), (90_657, 9_350_074 * 512, 23_786, 19_241_672 * 512));
        assert_eq!((old.in_flight, old.io_ticks_ns, old.discards, old.flushes), (3, 14_488_000_000, None, None));
        let middle = Counters::parse(&format!("{} 7304 38 5047400 951", OLD.trim())).unwrap();
        assert_eq!((middle.discards, middle.discard_bytes, middle.flushes), (Some(7_304), Some(5_047_400 * 512), None));
        let new = Counters::parse(&format!("{} 7304 38 5047400 951 3660 126 99", OLD.trim())).unwrap();
        assert_eq!((new.discards, new.flushes), (Some(7_304), Some(3_660)));
        for text in ["", "1 2 3", "1 2 3 4 5 6 7 8 9 10 x", "-1 2 3 4 5 6 7 8 9 10 11"] {
            assert_eq!(Counters::parse(text), None, "{text}");
        }
        assert_eq!(Counters::parse(&"18446744073709551615 ".repeat(17)).unwrap().read_bytes, u64::MAX);
    }

    #[test]
    fn differences_survive_the_wrap_of_what_wraps_and_stay_at_zero_else() {
        let before = Counters {
            reads: u64::from(u32::MAX),
            written_bytes: 100 * 512,
            io_ticks_ns: TICKS_WRAP_NS - NS_PER_MS,
            flushes: Some(5),
            ..Counters::default()
        };
        let after = Counters { reads: 4, written_bytes: 90 * 512, io_ticks_ns: NS_PER_MS, flushes: Some(7), in_flight: 2, ..Counters::default() };
        let wide = after.since_in_words_of(64, &before);
        assert_eq!((wide.reads, wide.written_bytes, wide.io_ticks_ns, wide.flushes), (0, 0, 2 * NS_PER_MS, Some(2)));
        assert_eq!((wide.discards, wide.in_flight), (None, 2));
        let narrow = after.since_in_words_of(32, &before);
        assert_eq!((narrow.reads, narrow.written_bytes), (5, (u64::from(u32::MAX) - 9) * 512));
    }

    /// A host with one device of given counters, which a test may change.
    fn fixture() -> (tempfile::TempDir, Host, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/dev/block/8:0");
        std::fs::create_dir_all(&device).unwrap();
        std::fs::write(device.join("stat"), OLD).unwrap();
        let host = Host::at(root.path());
        (root, host, device.join("stat"))
    }

    #[test]
    fn a_reader_sees_the_present_value_and_adds_devices_up() {
        let (_root, host, stat) = fixture();
        let reader = CounterReader::open(&host, &[(8, 0), (8, 0)]).unwrap();
        let before = reader.read().unwrap();
        assert_eq!(before.reads, 2 * 90_657);
        std::fs::write(stat, OLD.replace("90657", "90658")).unwrap();
        assert_eq!(reader.read().unwrap().since(&before).reads, 2);
        assert!(CounterReader::open(&host, &[(8, 0), (8, 16)]).is_none());
        assert!(CounterReader::open(&host, &[]).is_none());
    }

    /// A clock that plays a device: at given times its counters become others.
    struct Script {
        clock: FakeClock,
        stat: PathBuf,
        steps: Vec<(u64, String)>,
    }

    impl Clock for Script {
        fn now_ns(&self) -> u64 {
            self.clock.now_ns()
        }
        fn boot_ns(&self) -> u64 {
            self.clock.boot_ns()
        }
        fn wall(&self) -> jiff::Timestamp {
            self.clock.wall()
        }
        fn work(&self, duration: Duration) {
            self.clock.work(duration);
        }
        fn sleep(&self, duration: Duration) {
            self.clock.sleep(duration);
            let now = self.clock.now_ns();
            if let Some((_, text)) = self.steps.iter().rfind(|(at, _)| *at <= now) {
                std::fs::write(&self.stat, text).unwrap();
            }
        }
    }

    fn stat(reads: u64, writes: u64, in_flight: u64) -> String {
        format!("{reads} 0 0 0 {writes} 0 0 0 {in_flight} 0 0 0 0 0 0 0 0")
    }

    fn wait(of: Completions, steps: &[(u64, String)]) -> std::result::Result<u64, String> {
        let (_root, host, path) = fixture();
        std::fs::write(&path, stat(0, 0, 0)).unwrap();
        let reader = CounterReader::open(&host, &[(8, 0)]).unwrap();
        let steps = steps.iter().map(|(ms, text)| (ms * NS_PER_MS, text.clone())).collect();
        let clock = Script { clock: FakeClock::default(), stat: path, steps };
        let quiet = wait_until_quiet(&reader, &clock, of, Duration::from_secs(1), Duration::from_secs(10), &Cancel::default());
        quiet.map(|ns| ns / NS_PER_MS).map_err(|reason| reason.to_string())
    }

    #[test]
    fn quiet_is_the_last_completion_before_a_second_without_one() {
        let steps = [(100, stat(0, 1, 0)), (1_000, stat(0, 2, 0)), (1_300, stat(9, 2, 0)), (2_500, stat(9, 3, 0))];
        assert_eq!(wait(Completions::OfWrites, &steps), Ok(1_000));
        assert_eq!(wait(Completions::OfAll, &steps), Ok(1_300));
        assert_eq!(wait(Completions::OfWrites, &[]), Ok(0));
    }

    #[test]
    fn a_stalled_write_is_not_quiet_and_endless_ones_never_are() {
        let stalled = [(100, stat(0, 1, 1)), (3_000, stat(0, 2, 0))];
        assert_eq!(wait(Completions::OfWrites, &stalled), Ok(3_000));
        assert_eq!(wait(Completions::OfWrites, &[(100, stat(0, 1, 4))]).unwrap_err().split(' ').next(), Some("4"));
        let endless: Vec<_> = (1..30).map(|step| (step * 500, stat(0, step, 0))).collect();
        assert_eq!(wait(Completions::OfWrites, &endless), Err(NotQuiet::StillBusy.to_string()));
    }

    #[test]
    fn the_counters_of_this_machine_are_read_for_little() {
        let host = Host::real();
        let numbers = host.names("/sys/dev/block").iter().filter_map(|name| super::super::mounts::parse_number(name)).collect::<Vec<_>>();
        let Some(reader) = CounterReader::open(&host, &numbers) else {
            println!("skipped: this machine shows no block devices");
            return;
        };
        let (before, start) = (reader.read().unwrap(), OsClock.now_ns());
        for _ in 0..200 {
            assert!(reader.read().unwrap().reads >= before.reads);
        }
        println!("{} ns for each device and reading", (OsClock.now_ns() - start) / 200 / numbers.len() as u64);
    }
}
