//! The files of F3 and h2testw: `1.h2w`, `2.h2w`, … of 1 GiB each (the last is shorter), in sectors of 512 bytes.
//!
//! A sector's first 8 bytes are its offset in all files together; each further word is the one before it times 4,294,967,311 plus 17, all little-endian and
//! wrapping. Since its version 3 F3 writes what h2testw writes.

use std::ffi::OsStr;

use super::pattern::{Pattern, Sector, Seen, different_bits, is_place, judge_plainly, word};
use super::{END, FILE_SPAN, SECTOR};

const FACTOR: u64 = 4_294_967_311;
const SUMMAND: u64 = 17;
/// h2testw and F3 call a sector changed, or overwritten by another, where no more bits than this are wrong.
const FEW_BITS: u32 = 7;

/// The data of F3 and h2testw.
pub struct H2w;

impl Pattern for H2w {
    fn fill(&mut self, position: u64, buffer: &mut [u8]) {
        for (sector, position) in buffer.chunks_mut(SECTOR).zip((position..).step_by(SECTOR)) {
            let mut value = position;
            for bytes in sector.chunks_mut(8) {
                bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
                value = value.wrapping_mul(FACTOR).wrapping_add(SUMMAND);
            }
        }
    }

    fn judge(&mut self, position: u64, sector: &Sector, expected: &Sector) -> Seen {
        match judge_plainly(sector, expected) {
            // More wrong bits than these programs let pass as few.
            Some(Seen::Flipped(bits)) if bits > FEW_BITS => return Seen::Garbage,
            Some(seen) => return seen,
            None => {}
        }
        let place = word(sector, 0);
        let mut other = [0; SECTOR];
        if place == position || !is_place(place) {
            return Seen::Garbage;
        }
        self.fill(place, &mut other);
        if different_bits(sector, &other) <= FEW_BITS { Seen::Elsewhere(place) } else { Seen::Garbage }
    }
}

/// The number of a file with a name like `12.h2w`, from 0 on.
#[must_use]
pub fn number_of(name: &OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(".h2w")?;
    let number: u64 = digits.parse().ok().filter(|_| !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    (number <= END / FILE_SPAN).then(|| number - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first sectors of a `2.h2w` that f3write 8.0 wrote.
    #[test]
    fn the_words_are_those_of_f3write() {
        let mut sector = [0; SECTOR];
        H2w.fill(FILE_SPAN, &mut sector);
        assert_eq!(word(&sector, 0), 1 << 30);
        assert_eq!(word(&sector, 8), (1_u64 << 30).wrapping_mul(FACTOR).wrapping_add(SUMMAND));
        assert_eq!(word(&sector, 504), WORD_63_OF_2_H2W);
    }

    const WORD_63_OF_2_H2W: u64 = 12_038_468_377_380_306_977;

    #[test]
    fn sectors_are_judged_as_f3read_does() {
        let of = |position| {
            let mut sector = [0; SECTOR];
            H2w.fill(position, &mut sector);
            sector
        };
        let judge = |found: &Sector| H2w.judge(1024, found, &of(1024));
        assert_eq!(judge(&of(1024)), Seen::Good);
        assert_eq!(judge(&of(5120)), Seen::Elsewhere(5120));
        assert_eq!(judge(&[0x11; SECTOR]), Seen::Garbage);
        // Zeros are the data of no place: the second word of offset 0 would be 17.
        assert_eq!(judge(&[0; SECTOR]), Seen::Zeros);
        let mut changed = of(1024);
        changed[100] ^= 0x7f;
        assert_eq!(judge(&changed), Seen::Flipped(7));
        changed[101] ^= 1;
        assert_eq!(judge(&changed), Seen::Garbage);
        // No file reaches so far.
        assert_eq!((judge(&of(u64::MAX - 511)), judge(&of(1 << 63))), (Seen::Garbage, Seen::Garbage));
    }

    #[test]
    fn files_are_known_by_their_names() {
        let number = |name: &str| number_of(OsStr::new(name));
        assert_eq!((number("1.h2w"), number("120.h2w"), number("8589934592.h2w")), (Some(0), Some(119), Some((1 << 33) - 1)));
        for name in ["0.h2w", "01.h2w", "+1.h2w", ".h2w", "a.h2w", "1.h2", "1.h2w.bak", "8589934593.h2w", "99999999999999.h2w"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
