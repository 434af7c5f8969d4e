//! What was found where: ranges of equal findings, in the order of the test data, in bounded memory.

use serde::{Deserialize, Serialize};

use super::pattern::{Sector, Seen};
use super::{END, FILE_SPAN, SECTOR};
use crate::result::Found;

/// So many ranges are kept. Beyond, small neighbours are thrown together.
const MOST: usize = 1 << 16;

/// What a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// What was written there.
    Good,
    /// What was written from another place on.
    Elsewhere {
        /// The place of the range's first byte.
        from: u64,
    },
    /// What was written in one block elsewhere, again and again.
    Repeats {
        /// The place of the block.
        from: u64,
        /// Its length.
        block: u64,
    },
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// Data of an earlier run.
    Stale,
    /// A few bits are wrong.
    Flipped,
    /// Anything else.
    Garbage,
    /// The system gave no data.
    Unreadable,
    /// Several of these, each too small to be kept for itself.
    Mixed {
        /// Bytes of it that are good.
        good: u64,
    },
}

/// A range of the test data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// What it is.
    pub what: What,
}

impl Range {
    fn end(&self) -> u64 {
        self.start + self.len
    }

    /// Bytes of it that are good.
    #[must_use]
    pub fn good(&self) -> u64 {
        match self.what {
            What::Good => self.len,
            What::Mixed { good } => good,
            _ => 0,
        }
    }

    /// Its pieces in files of a span, by the file's number.
    pub(super) fn by_file(self) -> impl Iterator<Item = (u64, Self)> {
        let files = self.start / FILE_SPAN..self.end().div_ceil(FILE_SPAN);
        files.map(move |file| {
            let (first, last) = (self.start.max(file * FILE_SPAN), self.end().min((file + 1) * FILE_SPAN));
            (file, self.part(first - self.start, last - first))
        })
    }

    /// A part of it.
    fn part(self, offset: u64, len: u64) -> Self {
        let what = match self.what {
            What::Elsewhere { from } => What::Elsewhere { from: from + offset },
            // It need not begin where a block does.
            What::Repeats { from, block } => What::Repeats { from: from + offset % block, block },
            What::Mixed { good } => What::Mixed { good: (u128::from(good) * u128::from(len) / u128::from(self.len.max(1))) as u64 },
            what => what,
        };
        Self { start: self.start + offset, len, what }
    }

    /// Takes a neighbour in, where both together are one range.
    fn absorb(&mut self, next: &Self) -> bool {
        if self.end() != next.start {
            return false;
        }
        let merged = match (self.what, next.what) {
            (What::Elsewhere { from }, What::Elsewhere { from: next_from }) if next_from == from + self.len => Some(self.what),
            // The same block begins again: from now on its length is known.
            (What::Elsewhere { from }, What::Elsewhere { from: next_from }) if next_from == from && next.len <= self.len => {
                Some(What::Repeats { from, block: self.len })
            }
            (What::Repeats { from, block }, What::Elsewhere { from: next_from }) => {
                let within = self.len % block;
                (next_from == from + within && within + next.len <= block).then_some(self.what)
            }
            // Judged apart, each of several blocks.
            (What::Repeats { from, block }, What::Repeats { from: next_from, block: next_block }) => {
                (next_from == from && next_block == block && self.len.is_multiple_of(block)).then_some(self.what)
            }
            (What::Elsewhere { from }, What::Repeats { from: next_from, block }) => (next_from == from && self.len == block).then_some(next.what),
            (What::Mixed { good }, What::Mixed { good: next_good }) => Some(What::Mixed { good: good + next_good }),
            (What::Elsewhere { .. } | What::Repeats { .. }, _) => None,
            (what, other) => (what == other).then_some(what),
        };
        let Some(what) = merged else { return false };
        (self.what, self.len) = (what, self.len + next.len);
        true
    }
}

/// All that was found so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Map {
    ranges: Vec<Range>,
    /// Bytes by what they are; exact whatever was thrown together.
    totals: Vec<(Found, u64)>,
    /// Bits that are wrong where a few are.
    flipped_bits: u64,
    /// Ranges within a stretch of this length may be thrown together; 0 while there is no need.
    grain: u64,
}

impl Map {
    /// The ranges in order.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Bytes that were found to be this.
    #[must_use]
    pub fn bytes_of(&self, found: Found) -> u64 {
        self.totals.iter().find(|(known, _)| *known == found).map_or(0, |(_, bytes)| *bytes)
    }

    /// Bytes in all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.totals.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Bytes by what they are.
    #[must_use]
    pub fn totals(&self) -> &[(Found, u64)] {
        &self.totals
    }

    /// How many bits were wrong in sectors of which few were.
    #[must_use]
    pub fn flipped_bits(&self) -> u64 {
        self.flipped_bits
    }

    /// Whether it is one that can have come about: a map that was kept elsewhere may be damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let (mut end, mut bytes, mut good) = (0, 0, 0);
        for range in &self.ranges {
            let reach = match range.what {
                What::Elsewhere { from } => Some((from, range.len)),
                What::Repeats { from, block } => Some((from, block)).filter(|_| block > 0),
                _ => Some((0, 0)),
            };
            let fits = |start: u64, len: u64| start.checked_add(len).is_some_and(|end| end <= END);
            if range.start < end
                || range.len == 0
                || range.good() > range.len
                || !fits(range.start, range.len)
                || !reach.is_some_and(|(from, len)| fits(from, len))
            {
                return false;
            }
            (end, bytes, good) = (range.end(), bytes + range.len, good + range.good());
        }
        let counted = self.totals.iter().try_fold(0_u64, |sum, (_, bytes)| sum.checked_add(*bytes));
        let once = |index: usize| self.totals[..index].iter().all(|(found, _)| *found != self.totals[index].0);
        self.ranges.len() < MOST
            && (0..self.totals.len()).all(once)
            && (counted, self.bytes_of(Found::Good)) == (Some(bytes), good)
            && self.flipped_bits <= END
            && self.grain <= END
    }

    /// What was found before a position.
    #[must_use]
    pub fn before(&self, position: u64) -> Self {
        let mut map = Self { grain: self.grain, flipped_bits: self.flipped_bits, ..Self::default() };
        for range in self.ranges.iter().filter(|range| range.start < position) {
            map.add(range.part(0, range.len.min(position - range.start)));
        }
        map
    }

    /// Adds a range behind all others.
    pub fn add(&mut self, range: Range) {
        if range.good() > 0 {
            self.count(Found::Good, range.good());
        }
        if range.good() < range.len {
            self.count(found(range.what), range.len - range.good());
        }
        self.place(range);
    }

    /// Adds what was found behind all others.
    pub fn append(&mut self, other: &Self) {
        for &(found, bytes) in &other.totals {
            self.count(found, bytes);
        }
        self.flipped_bits += other.flipped_bits;
        other.ranges.iter().for_each(|range| self.place(*range));
    }

    /// Judges data sector by sector and adds what it finds. `expected` is what they should be.
    pub fn judge(&mut self, position: u64, data: &[u8], expected: &[u8], judge: &mut dyn FnMut(u64, &Sector, &Sector) -> Seen) {
        if data == expected {
            return self.add(Range { start: position, len: data.len() as u64, what: What::Good });
        }
        let (sectors, _) = data.as_chunks::<SECTOR>();
        let (wanted, _) = expected.as_chunks::<SECTOR>();
        for ((sector, wanted), start) in sectors.iter().zip(wanted).zip((position..).step_by(SECTOR)) {
            let seen = if sector == wanted { Seen::Good } else { judge(start, sector, wanted) };
            let what = match seen {
                Seen::Good => What::Good,
                Seen::Elsewhere(from) => What::Elsewhere { from },
                Seen::Zeros => What::Zeros,
                Seen::Ones => What::Ones,
                Seen::Stale => What::Stale,
                Seen::Flipped(bits) => {
                    self.flipped_bits += u64::from(bits);
                    What::Flipped
                }
                Seen::Garbage => What::Garbage,
            };
            self.add(Range { start, len: SECTOR as u64, what });
        }
    }

    fn count(&mut self, found: Found, bytes: u64) {
        match self.totals.iter_mut().find(|(known, _)| *known == found) {
            Some((_, sum)) => *sum += bytes,
            None => self.totals.push((found, bytes)),
        }
    }

    fn place(&mut self, range: Range) {
        if let Some(last) = self.ranges.last_mut()
            && last.absorb(&range)
        {
            return;
        }
        self.ranges.push(range);
        while self.ranges.len() >= MOST {
            self.grain = (self.grain * 2).max(8 * SECTOR as u64);
            self.coarsen();
        }
    }

    /// Throws ranges together that lie within one stretch of the grain.
    fn coarsen(&mut self) {
        let grain = self.grain;
        let within = |range: &Range| (range.start / grain == (range.end() - 1) / grain).then_some(range.start / grain);
        let mut coarse: Vec<Range> = Vec::with_capacity(self.ranges.len() / 2);
        for range in &self.ranges {
            match coarse.last_mut() {
                Some(last) if last.end() == range.start && within(last).is_some() && within(last) == within(range) => {
                    let good = last.good() + range.good();
                    last.len += range.len;
                    last.what = if good == last.len { What::Good } else { What::Mixed { good } };
                }
                _ => coarse.push(*range),
            }
        }
        self.ranges = coarse;
    }
}

/// The word of the record for a range.
pub(crate) fn found(what: What) -> Found {
    match what {
        What::Good => Found::Good,
        What::Elsewhere { .. } | What::Repeats { .. } => Found::Elsewhere,
        What::Zeros => Found::Zeros,
        What::Ones => Found::Ones,
        What::Stale => Found::Stale,
        What::Flipped => Found::BitsFlipped,
        What::Garbage => Found::Garbage,
        What::Unreadable => Found::Unreadable,
        What::Mixed { .. } => Found::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::pattern::{Own, Pattern};

    const S: u64 = SECTOR as u64;

    /// The map of a drive whose sector `n` gives what was written at `n`'s answer, judged in chunks of `chunk` sectors.
    fn map_of(sectors: u64, chunk: u64, answer: impl Fn(u64) -> Option<u64>) -> Map {
        let mut map = Map::default();
        let mut own = Own::of(5);
        for first in (0..sectors).step_by(chunk as usize) {
            let count = chunk.min(sectors - first);
            let mut expected = vec![0; (count * S) as usize];
            own.fill(first * S, &mut expected);
            let mut data = vec![0; expected.len()];
            for (index, sector) in (first..).zip(data.chunks_mut(SECTOR)) {
                if let Some(place) = answer(index) {
                    own.fill(place * S, sector);
                }
            }
            let mut part = Map::default();
            part.judge(first * S, &data, &expected, &mut |position, sector, expected| own.judge(position, sector, expected));
            map.append(&part);
        }
        map
    }

    fn range(start: u64, len: u64, what: What) -> Range {
        Range { start: start * S, len: len * S, what }
    }

    #[test]
    fn what_a_wrapping_drive_gives_is_two_ranges() {
        // It holds 1,000 sectors and took 1,500.
        for chunk in [1, 7, 256, 2048] {
            let map = map_of(1500, chunk, |n| Some(if n < 500 { n + 1000 } else { n }));
            assert_eq!(map.ranges(), [range(0, 500, What::Elsewhere { from: 1000 * S }), range(500, 1000, What::Good)]);
            assert_eq!((map.bytes_of(Found::Good), map.bytes_of(Found::Elsewhere), map.bytes()), (1000 * S, 500 * S, 1500 * S));
        }
    }

    #[test]
    fn a_block_that_answers_for_all_is_one_range() {
        for chunk in [1, 5, 64, 999] {
            // From 100 on everything is the block of 8 that was written last.
            let map = map_of(1004, chunk, |n| Some(if n < 100 { n } else { 996 + (n - 100) % 8 }));
            // The last block is where it is, too.
            let repeats = What::Repeats { from: 996 * S, block: 8 * S };
            assert_eq!(map.ranges(), [range(0, 100, What::Good), range(100, 896, repeats), range(996, 8, What::Good)], "{chunk}");
        }
    }

    #[test]
    fn lost_and_unread_data_are_told_apart() {
        let mut map = map_of(300, 64, |n| (n < 200).then_some(n));
        map.add(range(300, 8, What::Unreadable));
        map.add(range(308, 8, What::Unreadable));
        assert_eq!(map.ranges(), [range(0, 200, What::Good), range(200, 100, What::Zeros), range(300, 16, What::Unreadable)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn memory_is_bounded_and_totals_stay_exact(step in 2_u64..9, pieces in 100_000_u64..300_000) {
            let mut map = Map::default();
            for index in 0..pieces {
                let what = if index % step == 0 { What::Garbage } else if index % 2 == 0 { What::Good } else { What::Zeros };
                map.add(range(index * 8, 8, what));
            }
            prop_assert!(map.ranges().len() < MOST);
            let bad = pieces.div_ceil(step);
            prop_assert_eq!(map.bytes_of(Found::Garbage), bad * 8 * S);
            prop_assert_eq!(map.bytes(), pieces * 8 * S);
            prop_assert_eq!(map.ranges().iter().map(Range::good).sum::<u64>(), map.bytes_of(Found::Good));
            prop_assert!(map.ranges().windows(2).all(|pair| pair[0].end() == pair[1].start));
        }
    }
}
