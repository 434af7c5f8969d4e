//! Sorts wrong bytes into ranges, sector by sector: zeros, flipped bits, the bytes of another place, garbage.

use super::locate::{Range, What};
use super::whose::{Place, SECTOR, Search};

/// Wrong bytes of one kind that are closer than this belong to one range.
const GAP: u64 = 4096;
/// So few wrong bits in a sector are flipped ones, whatever they look like.
const FLIPPED_BITS: u64 = 8;
/// Below this many they are where most of the wrong bytes have a single wrong bit: bytes of anything else have four.
const MOST_FLIPPED_BITS: u64 = 64;
/// So many pieces of a file are kept apart, 1 MB of memory; what follows is one.
const MOST: usize = 1 << 14;

/// What a wrong sector looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Zeros,
    /// Few bits are wrong; whether all wrong bytes are zero.
    Few {
        zero: bool,
    },
    /// Whose it is has to be found out, by its number in the search where it has one.
    Other(Option<u32>),
}

#[derive(Debug, Clone, Copy)]
struct Run {
    /// From the first wrong byte…
    offset: u64,
    /// …to behind the last.
    end: u64,
    bits: u64,
    look: Look,
    /// Bytes from the start of the sector, for one whose owner is to be found.
    len: u64,
}

/// The wrong sectors of a file, in order.
#[derive(Debug, Default)]
pub struct Sectors {
    runs: Vec<Run>,
    /// How many bytes are wrong.
    pub different_bytes: u64,
    /// How many bits are.
    pub bits: u64,
}

/// A run of which it is known what it is.
struct Piece {
    offset: u64,
    end: u64,
    bits: u64,
    what: Known,
}

#[derive(Clone, PartialEq)]
enum Known {
    Zeros,
    Flipped { zero: bool },
    Elsewhere(Place),
    Garbage,
    Unknown,
}

impl Sectors {
    /// Compares what follows at `offset`, a multiple of a sector. Sectors that look like those of another place are remembered by the search.
    pub fn compare(&mut self, offset: u64, expected: &[u8], found: &[u8], search: &mut Search<'_>) {
        if expected == found {
            return;
        }
        for ((expected, found), start) in expected.chunks(SECTOR).zip(found.chunks(SECTOR)).zip((offset..).step_by(SECTOR)) {
            if expected != found {
                self.add(start, expected, found, search);
            }
        }
    }

    fn add(&mut self, start: u64, expected: &[u8], found: &[u8], search: &mut Search<'_>) {
        let (mut first, mut last, mut different, mut bits, mut zero) = (None, 0, 0, 0, true);
        for (at, (expected, found)) in (0_u64..).zip(expected.iter().zip(found)) {
            if expected != found {
                first.get_or_insert(at);
                (last, different, bits) = (at, different + 1, bits + u64::from((expected ^ found).count_ones()));
                zero &= *found == 0;
            }
        }
        let first = first.unwrap_or(0);
        self.different_bytes += different;
        self.bits += bits;
        let is_few = bits <= FLIPPED_BITS || bits < MOST_FLIPPED_BITS && bits < 2 * different;
        let all_zero = zero && found.iter().all(|byte| *byte == 0);
        let mut run = Run { offset: start + first, end: start + last + 1, bits, look: Look::Other(None), len: found.len() as u64 };
        if all_zero && bits > FLIPPED_BITS {
            // A lost sector is lost as a whole, even if some of its bytes should be zero anyway.
            run = Run { offset: start, end: start + found.len() as u64, look: Look::Zeros, ..run };
        } else if is_few {
            run.look = Look::Few { zero };
        } else if zero {
            run.look = Look::Zeros;
        } else if self.runs.len() < MOST {
            run.look = Look::Other(search.add(found));
        }
        self.append(run);
    }

    fn append(&mut self, run: Run) {
        let is_full = self.runs.len() >= MOST;
        let Some(last) = self.runs.last_mut() else { return self.runs.push(run) };
        let is_same = last.look == run.look && !matches!(run.look, Look::Other(Some(_))) && run.offset - last.end < GAP;
        if is_same || is_full {
            (last.end, last.bits) = (run.end, last.bits + run.bits);
            if !is_same {
                last.look = Look::Other(None);
            }
        } else {
            self.runs.push(run);
        }
    }

    /// What the ranges are, once the search is over.
    #[must_use]
    pub fn ranges(&self, search: &Search<'_>) -> Vec<Range> {
        let mut pieces = identify(&self.runs, search);
        absorb(&mut pieces);
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match joined.last_mut() {
                Some(last) if piece.offset.saturating_sub(last.end) < GAP && goes_on(last, &piece) => {
                    (last.end, last.bits) = (piece.end, last.bits + piece.bits);
                }
                _ => joined.push(piece),
            }
        }
        let range = |piece: Piece| Range {
            offset: piece.offset,
            len: piece.end - piece.offset,
            bits: piece.bits,
            what: match piece.what {
                Known::Zeros => What::Zeros,
                Known::Flipped { .. } => What::Flipped,
                Known::Elsewhere(place) => What::Elsewhere { file: place.file.path.clone(), offset: place.offset },
                Known::Garbage => What::Garbage,
                Known::Unknown => What::Unknown,
            },
        };
        joined.into_iter().map(range).collect()
    }
}

/// Says of each run what it is: bytes of another place go on as long as they are those that follow there.
fn identify(runs: &[Run], search: &Search<'_>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for run in runs {
        let Run { offset, end, bits, look, len } = *run;
        let what = match look {
            Look::Zeros => Known::Zeros,
            Look::Few { zero } => Known::Flipped { zero },
            Look::Other(None) => Known::Unknown,
            Look::Other(Some(id)) => {
                let start = offset - offset % SECTOR as u64;
                if let Some(Piece { offset, end, bits: sum, what: Known::Elsewhere(place) }) = pieces.last_mut()
                    && *end == start
                    && search.is_at(id, &place.after(start - *offset))
                {
                    (*end, *sum) = (start + len, *sum + bits);
                    continue;
                }
                if let Some(place) = search.place(id) {
                    pieces.push(Piece { offset: start, end: start + len, bits, what: Known::Elsewhere(place.clone()) });
                    continue;
                }
                if search.is_nowhere(id) { Known::Garbage } else { Known::Unknown }
            }
        };
        pieces.push(Piece { offset, end, bits, what });
    }
    pieces
}

/// What a piece begins or ends with may be a few bytes in a sector of their own, which for themselves look like flipped bits.
fn absorb(pieces: &mut [Piece]) {
    let takes = |large: &Known, small: &Known| match small {
        Known::Flipped { zero } => *large == Known::Garbage || *large == Known::Zeros && *zero,
        Known::Unknown => *large == Known::Garbage,
        _ => false,
    };
    for index in 1..pieces.len() {
        let (before, after) = pieces.split_at_mut(index);
        let (Some(one), Some(other)) = (before.last_mut(), after.first_mut()) else { continue };
        if one.end != other.offset {
            continue;
        }
        if takes(&other.what, &one.what) {
            one.what = other.what.clone();
        } else if takes(&one.what, &other.what) {
            other.what = one.what.clone();
        }
    }
}

/// Whether a piece is more of the one before.
fn goes_on(last: &Piece, next: &Piece) -> bool {
    match (&last.what, &next.what) {
        (Known::Elsewhere(place), Known::Elsewhere(other)) => place.after(next.offset - last.offset) == *other,
        (Known::Flipped { .. }, Known::Flipped { .. }) => true,
        (what, other) => what == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Environment;
    use crate::corpus::catalogue::corpus;
    use crate::corpus::{Corpus, FileMeta};
    use crate::progress::Cancel;
    use crate::units::Scale;

    struct Made {
        corpus: Corpus,
        files: Vec<FileMeta>,
    }

    impl Made {
        fn new() -> Self {
            let corpus = corpus("jpg", 0, Scale::from_hundredths(15), &Environment::default()).unwrap();
            let files = corpus.files().unwrap().collect();
            Self { corpus, files }
        }

        fn bytes(&self, file: usize) -> Vec<u8> {
            let mut bytes = vec![0; self.files[file].len as usize];
            Search::new(&self.corpus).unwrap().fill(&self.files[file], 0, &mut bytes);
            bytes
        }

        /// What the first file's ranges are after a damage.
        fn ranges(&self, damage: impl FnOnce(&mut Vec<u8>)) -> (Vec<Range>, Sectors) {
            let expected = self.bytes(0);
            let mut found = expected.clone();
            damage(&mut found);
            let (mut search, mut sectors) = (Search::new(&self.corpus).unwrap(), Sectors::default());
            for (at, (expected, found)) in expected.chunks(8192).zip(found.chunks(8192)).enumerate() {
                sectors.compare(at as u64 * 8192, expected, found, &mut search);
            }
            search.run(2, &Cancel::default()).unwrap();
            (sectors.ranges(&search), sectors)
        }
    }

    fn places(ranges: &[Range]) -> Vec<(u64, u64, &What)> {
        ranges.iter().map(|range| (range.offset, range.len, &range.what)).collect()
    }

    #[test]
    fn each_kind_of_damage_is_known_where_it_begins_and_ends() {
        let made = Made::new();
        let other = made.bytes(4);
        let elsewhere = |file: usize, offset| What::Elsewhere { file: made.files[file].path.clone(), offset };
        let (ranges, sectors) = made.ranges(|found| {
            found[10_000] ^= 0b101;
            found[20_480..24_576].fill(0);
            found[40_960..49_152].copy_from_slice(&other[12_288..20_480]);
            found[80_001..85_000].fill(0x5A);
        });
        let expected =
            [(10_000, 1, &What::Flipped), (20_480, 4096, &What::Zeros), (40_960, 8192, &elsewhere(4, 12_288)), (80_001, 4999, &What::Garbage)];
        assert_eq!(places(&ranges), expected);
        assert_eq!(ranges[0].bits, 2);
        assert_eq!(sectors.bits, ranges.iter().map(|range| range.bits).sum::<u64>());
        assert!((17_000..17_300).contains(&sectors.different_bytes), "{}", sectors.different_bytes);
    }

    #[test]
    fn two_blocks_of_one_file_that_changed_places_are_two_ranges() {
        let made = Made::new();
        let path = || made.files[0].path.clone();
        let (ranges, _) = made.ranges(|found| {
            let (one, two) = found.split_at_mut(65_536);
            one[61_440..65_536].swap_with_slice(&mut two[..4096]);
        });
        let expected =
            [(61_440, 4096, &What::Elsewhere { file: path(), offset: 65_536 }), (65_536, 4096, &What::Elsewhere { file: path(), offset: 61_440 })];
        assert_eq!(places(&ranges), expected);
    }

    #[test]
    fn a_stuck_line_flips_bits_in_many_sectors_and_is_one_range() {
        let made = Made::new();
        let (ranges, sectors) = made.ranges(|found| found[100_000..130_000].iter_mut().step_by(16).for_each(|byte| *byte ^= 8));
        assert_eq!(places(&ranges), [(100_000, 29_985, &What::Flipped)]);
        assert_eq!((sectors.bits, sectors.different_bytes), (1875, 1875));
    }

    #[test]
    fn a_few_bytes_in_the_next_sector_belong_to_what_they_follow() {
        let made = Made::new();
        for value in [0x5A, 0] {
            let what = if value == 0 { What::Zeros } else { What::Garbage };
            let (ranges, _) = made.ranges(|found| {
                // Wrong in every byte, whatever stood there.
                let was = found.clone();
                found[50_687..51_713].fill(value);
                (50_687..51_713).filter(|&at| was[at] == value).for_each(|at| found[at] = was[at] ^ if value == 0 { 0 } else { 0xFF });
            });
            let [(offset, len, found)] = places(&ranges)[..] else { panic!("{ranges:?}") };
            assert!(offset.abs_diff(50_687) <= 1 && (offset + len).abs_diff(51_713) <= 1 && *found == what, "{ranges:?}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let made = Made::new();
        let (mut search, mut sectors) = (Search::new(&made.corpus).unwrap(), Sectors::default());
        let (expected, found) = ([1; 512], [0xA7; 512]);
        for index in 0..MOST as u64 + 1000 {
            sectors.compare(index * 512, &expected, &found, &mut search);
        }
        assert_eq!(sectors.runs.len(), MOST);
        assert_eq!(sectors.different_bytes, (MOST as u64 + 1000) * 512);
    }
}
