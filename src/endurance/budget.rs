//! How much static data there are, how much is written over in a round, and when the limits are reached: pure functions.

use std::time::Duration;

use crate::capacity::CHUNK;

/// Static data take no more than this when nothing else is said, nor do those that are written over.
const MOST: u64 = 1_000_000_000;
/// Nor more than this part of what is free.
const PART_OF_FREE: u64 = 10;
/// Nor more than this part of what may be written, so that there is more than a round or two.
const PART_OF_LIMIT: u64 = 8;
/// Each set is so many files.
const FILES: u64 = 16;
/// A round should write no longer than this, so that a loss is found soon and limits are kept.
const ROUND: Duration = Duration::from_secs(30);

/// What may be written, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// All in all, static data included.
    pub max_write: Option<u64>,
    /// No round begins later.
    pub max_time: Option<Duration>,
}

/// A set of files of one length, the last of which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set {
    /// All of it.
    pub bytes: u64,
    /// The length of a file.
    pub file_bytes: u64,
}

impl Set {
    /// A set of so many bytes, in whole chunks and at least one.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        let bytes = (bytes / CHUNK as u64).max(1) * CHUNK as u64;
        Self { bytes, file_bytes: (bytes / FILES).next_multiple_of(CHUNK as u64).min(bytes) }
    }

    /// How many files it is.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.bytes.div_ceil(self.file_bytes)
    }
}

/// How large the static data are, and a round: what the user says, or little of what is free and of what may be written.
#[must_use]
pub fn size(said: Option<u64>, free_bytes: Option<u64>, limits: Limits) -> u64 {
    let most = [Some(MOST), free_bytes.map(|free| free / PART_OF_FREE), limits.max_write.map(|limit| limit / PART_OF_LIMIT)];
    said.unwrap_or_else(|| most.into_iter().flatten().min().unwrap_or(MOST))
}

/// How much a round writes over on a drive that took so many bytes in so many ns, at most `size`.
#[must_use]
pub fn round_bytes(size: u64, bytes: u64, ns: u64) -> u64 {
    let in_time = u128::from(bytes) * ROUND.as_nanos() / u128::from(ns.max(1));
    u64::try_from(in_time).map_or(size, |bytes| bytes.min(size))
}

/// How much the next round may write of a set: whole files, as far as the limit goes.
#[must_use]
pub fn next(set: Set, written: u64, limits: Limits) -> u64 {
    let left = limits.max_write.map_or(u64::MAX, |limit| limit.saturating_sub(written));
    if left >= set.bytes { set.bytes } else { left / set.file_bytes * set.file_bytes }
}

/// Which static files a round reads again: a quarter of them, in turn.
#[must_use]
pub fn sample(round: u64, files: usize) -> std::ops::Range<usize> {
    const ROUNDS: u64 = 4;
    let turn = (round % ROUNDS) as usize;
    files * turn / ROUNDS as usize..files * (turn + 1) / ROUNDS as usize
}

/// How far all is, in percent of the nearer limit, and how long it will take at this pace, ns.
#[must_use]
pub fn progress(written: u64, elapsed_ns: u64, limits: Limits) -> (u64, Option<u64>) {
    let by_bytes = limits.max_write.map(|limit| u128::from(written) * 10_000 / u128::from(limit.max(1)));
    let by_time = limits.max_time.map(|limit| u128::from(elapsed_ns) * 10_000 / limit.as_nanos().max(1));
    let done = by_bytes.max(by_time).unwrap_or(0).min(10_000);
    let left = (u128::from(elapsed_ns) * (10_000 - done)).checked_div(done).and_then(|left| u64::try_from(left).ok());
    ((done / 100) as u64, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = CHUNK as u64;

    fn at_most(max_write: u64) -> Limits {
        Limits { max_write: Some(max_write), max_time: None }
    }

    #[test]
    fn sizes_are_a_part_of_what_there_is() {
        let none = Limits::default();
        assert_eq!(size(None, Some(5_000_000_000), none), 500_000_000);
        assert_eq!(size(None, Some(1 << 40), none), MOST);
        assert_eq!(size(None, Some(1 << 40), at_most(80_000_000)), 10_000_000);
        assert_eq!(size(Some(7), Some(1 << 40), at_most(80_000_000)), 7);
        assert_eq!(round_bytes(MOST, 100_000_000, 10_000_000_000), 300_000_000);
        assert_eq!(round_bytes(MOST, 100_000_000, 1_000_000_000), MOST);
    }

    #[test]
    fn sets_are_whole_chunks_in_up_to_sixteen_files() {
        for (bytes, expected, file, files) in
            [(0, MIB, MIB, 1), (5 * MIB + 3, 5 * MIB, MIB, 5), (64 * MIB, 64 * MIB, 4 * MIB, 16), (33 * MIB, 33 * MIB, 3 * MIB, 11)]
        {
            let set = Set::of(bytes);
            assert_eq!((set.bytes, set.file_bytes, set.files()), (expected, file, files));
        }
    }

    #[test]
    fn a_round_writes_whole_files_within_the_limit() {
        let set = Set::of(64 * MIB);
        assert_eq!(next(set, 1 << 40, Limits::default()), 64 * MIB);
        assert_eq!(next(set, 100 * MIB, at_most(200 * MIB)), 64 * MIB);
        assert_eq!(next(set, 164 * MIB, at_most(200 * MIB)), 36 * MIB);
        assert_eq!(next(set, 190 * MIB, at_most(200 * MIB)), 8 * MIB);
        assert_eq!((next(set, 197 * MIB, at_most(200 * MIB)), next(set, 300 * MIB, at_most(200 * MIB))), (0, 0));
    }

    #[test]
    fn four_rounds_read_all_static_files() {
        for files in [1, 3, 4, 7, 16] {
            let mut seen: Vec<usize> = (1..=4).flat_map(|round| sample(round, files)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..files).collect::<Vec<_>>());
        }
    }

    #[test]
    fn progress_is_that_of_the_nearer_limit() {
        let both = Limits { max_write: Some(1000), max_time: Some(Duration::from_secs(100)) };
        assert_eq!(progress(250, 10_000_000_000, both), (25, Some(30_000_000_000)));
        assert_eq!(progress(250, 50_000_000_000, both), (50, Some(50_000_000_000)));
        assert_eq!(progress(0, 5, Limits::default()), (0, None));
        assert_eq!(progress(2000, 5, both), (100, Some(0)));
    }
}
