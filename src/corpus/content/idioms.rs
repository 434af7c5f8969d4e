//! What sections of programs are made of: pieces that come again and again, with a blank for what differs. A change here changes the bytes of corpora, so it needs a new version of
//! each that has programs.

use super::vocabulary::WORDS;

/// Pieces are copied as a whole and then counted by their length, so what is filled may be overrun by so much.
const PIECE: usize = 16;
/// Random bits that choose a piece; the others fill its blank.
const CHOICE_BITS: u32 = 12;
/// Words are no longer, so that they fit into pieces.
const LONGEST_WORD: usize = 12;

/// A few bytes of which some bits are blank.
pub(super) struct Piece {
    /// How often it comes, in proportion to the others of its table.
    weight: u32,
    bytes: Vec<u8>,
    /// Where the blank is.
    blank: usize,
    /// The bits that are blank, among the lowest 20.
    mask: u32,
}

/// A piece without a blank.
fn fixed(weight: u32, bytes: &[u8]) -> Piece {
    Piece { weight, bytes: bytes.to_vec(), blank: 0, mask: 0 }
}

/// A piece with one: the bits of `mask` are random in the number at `blank`, least significant byte first.
fn blank(weight: u32, bytes: &[u8], blank: usize, mask: u32) -> Piece {
    Piece { weight, bytes: bytes.to_vec(), blank, mask }
}

/// So many words, the frequent ones more often, in the form that `form` gives them.
fn words(weight: u32, count: usize, form: impl Fn(&str) -> String) -> impl Iterator<Item = Piece> {
    let fitting = WORDS.iter().filter(|word| word.len() <= LONGEST_WORD).take(count);
    fitting.zip(0..).map(move |(word, rank): (_, u32)| fixed(weight / (rank + 20), form(word).as_bytes()))
}

/// Pieces to draw from.
pub(super) struct Table {
    /// As many as a choice can name, so that no choice is checked.
    pieces: Box<[Copied; 1 << 8]>,
    /// The piece of each choice.
    choices: Box<[u8; 1 << CHOICE_BITS]>,
}

/// A piece in the form in which it is copied without a loop.
#[derive(Clone, Copy, Default)]
struct Copied {
    /// Its bytes, the first one lowest.
    bytes: u128,
    len: usize,
    /// The bits that are blank, among the lowest 20, and by how much they are moved up.
    mask: u32,
    shift: u32,
}

impl Table {
    /// A table of at most 256 pieces.
    pub(super) fn new(given: &[Piece]) -> Self {
        let weights: u64 = given.iter().map(|piece| u64::from(piece.weight)).sum();
        let (mut pieces, mut choices) = (Box::new([Copied::default(); 1 << 8]), Box::new([0; 1 << CHOICE_BITS]));
        let mut passed = 0;
        for (index, (piece, copied)) in (0..).zip(given.iter().zip(pieces.iter_mut())) {
            let start = passed << CHOICE_BITS;
            passed += u64::from(piece.weight);
            choices[(start / weights) as usize..((passed << CHOICE_BITS) / weights) as usize].fill(index);
            let mut bytes = [0; PIECE];
            bytes[..piece.bytes.len()].copy_from_slice(&piece.bytes);
            *copied = Copied { bytes: u128::from_le_bytes(bytes), len: piece.bytes.len(), mask: piece.mask, shift: 8 * piece.blank as u32 };
        }
        Self { pieces, choices }
    }

    /// Fills `out`, but for the last bytes that a piece could pass the end by, with pieces chosen by `draws`.
    pub(super) fn fill(&self, draws: &[u32], out: &mut [u8]) {
        let end = out.len() - PIECE;
        let mut at = 0;
        loop {
            for draw in draws {
                if at >= end {
                    return;
                }
                let piece = &self.pieces[usize::from(self.choices[(draw >> (32 - CHOICE_BITS)) as usize])];
                let bytes = piece.bytes ^ u128::from(draw & piece.mask) << piece.shift;
                out[at..at + PIECE].copy_from_slice(&bytes.to_le_bytes());
                at += piece.len;
            }
        }
    }
}

/// Names of symbols as C++ makes them.
pub(super) fn names() -> Vec<Piece> {
    let mut pieces = vec![
        fixed(3_000, b"Ev\0_ZN4core6"),
        fixed(3_000, b"Ev\0_ZNK4core5"),
        fixed(2_500, b"EPv\0_ZTVN4view"),
        fixed(2_500, b"ERKS_\0_ZN4view"),
        fixed(2_500, b"C2Ev\0_ZN5store"),
        fixed(2_500, b"D0Ev\0_ZN5store"),
        fixed(1_500, b"EPKc\0_ZN3net"),
        fixed(1_500, b"Eb\0_ZN3net"),
        fixed(1_500, b"NSt3__18function"),
        fixed(1_500, b"NSt7__cxx1112ba"),
        fixed(1_000, b"RKSsS1_i\0_ZNSt6"),
        fixed(1_000, b"EiPPc\0_ZN"),
        blank(500, b"_0", 1, 0x07),
    ];
    pieces.extend(words(40_000, 200, |word| format!("{}{word}", word.len())));
    pieces
}

/// Messages, formats and names that a program holds as text.
pub(super) fn texts() -> Vec<Piece> {
    let mut pieces = vec![
        fixed(5_000, b" "),
        fixed(2_000, b"\0"),
        fixed(1_000, b"_"),
        fixed(500, b"-"),
        fixed(500, b"::"),
        fixed(2_000, b": %s\0failed to "),
        fixed(2_000, b"\0could not "),
        fixed(2_000, b" '%s' is not a "),
        fixed(2_000, b" must be "),
        fixed(1_500, b" %d of %d "),
        fixed(1_500, b".cpp\0../../src/"),
        fixed(1_000, b"/"),
        fixed(1_000, b"\0https://www."),
        blank(1_000, b"0", 0, 0x07),
    ];
    pieces.extend(words(100_000, 160, |word| format!("{word} ")));
    pieces.extend(words(50_000, 80, |word| format!("{word}_")));
    pieces
}

/// Tables of numbers, jumps and bitmaps.
pub(super) fn constants() -> Vec<Piece> {
    vec![
        // Jump tables.
        blank(50, &[0, 0, 0xF0, 0xFF], 0, 0x3_FFFC),
        blank(30, &[0, 0, 0, 0], 0, 0xFFFC),
        // Floating-point numbers, of which many have few digits.
        blank(20, &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F], 6, 0x00FF),
        blank(30, &[0, 0, 0, 0, 0, 0, 0xE0, 0x3F], 4, 0xF_FFFF),
        // Small numbers of 64, 32 and 16 bits.
        blank(50, &[0, 0, 0, 0, 0, 0, 0, 0], 0, 0x3F),
        blank(60, &[0, 0, 0, 0], 0, 0x3F),
        blank(10, &[0, 0], 0, 0xFF),
        fixed(24, &[0; 16]),
        fixed(10, &[0xFF; 8]),
        // What is compressed already: icons and the like.
        blank(90, &[0, 0], 0, 0xFFFF),
    ]
}

/// How the stack is unwound: the entries of `.eh_frame` and of the table that finds them.
pub(super) fn frames() -> Vec<Piece> {
    vec![
        // Length of an entry, distance to what it shares with others.
        blank(30, &[0x14, 0, 0, 0, 0x1C, 0, 0, 0], 5, 0x0FFF),
        blank(30, &[0x1C, 0, 0, 0, 0x3C, 0, 0, 0], 5, 0x0FFF),
        blank(15, &[0x4C, 0, 0, 0, 0x7C, 0, 0, 0], 5, 0x0FFF),
        // Distance to a function.
        blank(75, &[0, 0, 0xF0, 0xFF], 0, 0x7_FFF0),
        // Length of a function, and how its stack grows and shrinks.
        blank(25, &[0, 0, 0, 0, 0, 0x41, 0x0E, 0x10, 0x86, 0x02, 0x43, 0x0D, 0x06], 0, 0xFF),
        blank(25, &[0, 0, 0, 0, 0, 0x42, 0x0E, 0x10, 0x8F, 0x02, 0x42, 0x0E, 0x18, 0x8E, 0x03, 0x45], 0, 0x0FFF),
        blank(25, &[0, 0, 0, 0, 0, 0x46, 0x0E, 0x10, 0x83, 0x02], 0, 0xFF),
        fixed(25, &[0x0E, 0x20, 0x8D, 0x04, 0x42, 0x0E, 0x28, 0x8C, 0x05, 0x41, 0x0E, 0x30, 0x86, 0x06]),
        fixed(25, &[0x41, 0x0E, 0x38, 0x83, 0x07, 0x44, 0x0E, 0x40, 0x02]),
        blank(25, &[0x00, 0x0A, 0x0E, 0x38, 0x41, 0x0E, 0x30, 0x41, 0x0E, 0x28, 0x42, 0x0E, 0x20], 0, 0xFF),
        fixed(25, &[0x42, 0x0E, 0x18, 0x42, 0x0E, 0x10, 0x42, 0x0E, 0x08, 0x45, 0x0B, 0, 0, 0]),
        blank(20, &[0x02, 0x00, 0x0C, 0x07, 0x08, 0, 0, 0], 1, 0xFF),
        // The table that finds them, sorted by address.
        blank(40, &[0, 0, 0xF8, 0xFF, 0, 0, 0x02, 0], 0, 0x3_FFF0),
    ]
}

/// Instructions of AMD64 as compilers write them, mostly two or three that belong together. Blanks are registers, displacements, distances and small numbers.
pub(super) fn code() -> Vec<Piece> {
    vec![
        // Beginnings and ends of functions.
        fixed(12, &[0xF3, 0x0F, 0x1E, 0xFA, 0x55, 0x48, 0x89, 0xE5]),
        fixed(14, &[0x55, 0x48, 0x89, 0xE5, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x53]),
        blank(14, &[0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x55, 0x53, 0x48, 0x83, 0xEC, 0x08], 11, 0x78),
        blank(10, &[0x53, 0x48, 0x89, 0xFB, 0x48, 0x83, 0xEC, 0x10], 7, 0x70),
        blank(8, &[0x48, 0x81, 0xEC, 0x08, 0, 0, 0], 3, 0x03F0),
        blank(14, &[0x48, 0x83, 0xC4, 0x08, 0x5B, 0x5D, 0x41, 0x5C, 0x41, 0x5D, 0x41, 0x5E, 0x41, 0x5F, 0xC3], 3, 0x78),
        fixed(12, &[0x5B, 0x5D, 0x41, 0x5C, 0x41, 0x5D, 0xC3]),
        fixed(12, &[0x5B, 0x5D, 0xC3]),
        fixed(10, &[0x31, 0xC0, 0xC3]),
        // Alignment.
        fixed(12, &[0xC3, 0x66, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0]),
        fixed(10, &[0x0F, 0x1F, 0x80, 0, 0, 0, 0]),
        fixed(8, &[0x0F, 0x1F, 0x44, 0, 0]),
        fixed(8, &[0x66, 0x90]),
        // The canary of the stack.
        blank(6, &[0x64, 0x48, 0x8B, 0x04, 0x25, 0x28, 0, 0, 0, 0x48, 0x89, 0x44, 0x24, 0x08], 12, 0x7800),
        fixed(6, &[0x64, 0x48, 0x2B, 0x04, 0x25, 0x28, 0, 0, 0, 0x0F, 0x85]),
        // Calls, with the last argument before or a look at the answer behind.
        blank(40, &[0xE8, 0, 0, 0xF0, 0xFF], 1, 0xF_FFFF),
        blank(25, &[0xE8, 0, 0, 0, 0], 1, 0xF_FFFF),
        blank(25, &[0x48, 0x89, 0xDF, 0xE8, 0, 0, 0xF0, 0xFF], 4, 0xF_FFFF),
        blank(15, &[0x48, 0x89, 0xEF, 0xE8, 0, 0, 0xF0, 0xFF], 4, 0xF_FFFF),
        blank(15, &[0x4C, 0x89, 0xE7, 0xE8, 0, 0, 0, 0], 4, 0xF_FFFF),
        blank(15, &[0x4C, 0x89, 0xF7, 0xE8, 0, 0, 0, 0], 4, 0xF_FFFF),
        blank(15, &[0xE8, 0, 0, 0xF0, 0xFF, 0x84, 0xC0, 0x0F, 0x84], 1, 0xF_FFFF),
        blank(15, &[0xE8, 0, 0, 0xF0, 0xFF, 0x48, 0x85, 0xC0, 0x74], 1, 0xF_FFFF),
        blank(12, &[0xFF, 0x15, 0, 0, 0x40, 0], 2, 0x3FF8),
        blank(16, &[0x48, 0x8B, 0x07, 0xFF, 0x50, 0x08], 5, 0x78),
        blank(10, &[0x48, 0x8B, 0x03, 0x48, 0x89, 0xDF, 0xFF, 0x90, 0x08, 0x01, 0, 0], 8, 0x01F8),
        // Jumps, with the comparison before.
        blank(25, &[0x48, 0x85, 0xC0, 0x74, 0], 4, 0x7F),
        blank(20, &[0x48, 0x85, 0xC0, 0x0F, 0x84, 0, 0, 0, 0], 5, 0x0FFF),
        blank(15, &[0x48, 0x85, 0xFF, 0x74, 0], 4, 0x7F),
        blank(20, &[0x84, 0xC0, 0x75, 0], 3, 0x7F),
        blank(20, &[0x85, 0xC0, 0x0F, 0x85, 0, 0, 0, 0], 4, 0x0FFF),
        blank(15, &[0x83, 0xF8, 0x01, 0x74, 0], 2, 0x0F),
        blank(15, &[0x48, 0x39, 0xC0, 0x75, 0], 2, 0x3F),
        blank(12, &[0x80, 0x7B, 0x08, 0, 0x0F, 0x84], 2, 0x78),
        blank(10, &[0x48, 0x83, 0x7F, 0x08, 0, 0x74], 3, 0x78),
        blank(10, &[0x0F, 0x87, 0, 0, 0, 0], 2, 0x07FF),
        blank(25, &[0xE9, 0, 0xF8, 0xFF, 0xFF], 1, 0x07FF),
        blank(15, &[0xE9, 0, 0, 0, 0], 1, 0x07FF),
        blank(12, &[0xEB, 0, 0x0F, 0x1F, 0x40, 0], 1, 0xFF),
        blank(12, &[0xEB, 0], 1, 0xFF),
        blank(12, &[0x48, 0x39, 0xC8, 0x76, 0], 4, 0x7F),
        // Moves between registers.
        fixed(20, &[0x48, 0x89, 0xDF, 0x48, 0x89, 0xC6]),
        fixed(20, &[0x48, 0x89, 0xC3, 0x48, 0x85, 0xC0]),
        fixed(20, &[0x49, 0x89, 0xFC, 0x48, 0x89, 0xF5]),
        fixed(20, &[0x48, 0x89, 0xEE, 0x48, 0x89, 0xDF]),
        fixed(20, &[0x4C, 0x89, 0xE6, 0x4C, 0x89, 0xFF]),
        blank(25, &[0x48, 0x89, 0xC7, 0xE8, 0, 0, 0xF0, 0xFF], 4, 0xF_FFFF),
        blank(25, &[0x48, 0x89, 0xC0], 2, 0x3F),
        blank(8, &[0x89, 0xC0], 1, 0x3F),
        // Loads and stores.
        blank(20, &[0x48, 0x8B, 0x43, 0x08], 3, 0x78),
        blank(30, &[0x48, 0x8B, 0x43, 0x08, 0x48, 0x85, 0xC0], 3, 0xF8),
        blank(25, &[0x48, 0x8B, 0x45, 0x80, 0x48, 0x8B, 0x50, 0x18], 3, 0x78),
        blank(45, &[0x48, 0x8B, 0x40, 0x08], 2, 0x783F),
        blank(25, &[0x48, 0x89, 0x43, 0x08], 3, 0x78),
        blank(20, &[0x48, 0x89, 0x40, 0x08], 2, 0x783F),
        blank(20, &[0x8B, 0x40, 0x08, 0x85, 0xC0], 1, 0x7C3F),
        blank(12, &[0x89, 0x40, 0x08], 1, 0x7C3F),
        blank(35, &[0x48, 0x8B, 0x44, 0x24, 0x08], 4, 0x78),
        blank(30, &[0x48, 0x8B, 0x7C, 0x24, 0x08, 0xE8], 4, 0xF8),
        blank(35, &[0x48, 0x89, 0x44, 0x24, 0x08], 4, 0x78),
        blank(20, &[0x48, 0x8D, 0x7C, 0x24, 0x10, 0x48, 0x89, 0xDE], 4, 0x70),
        blank(15, &[0x48, 0x8D, 0x74, 0x24, 0x10], 4, 0x70),
        blank(20, &[0x48, 0xC7, 0x44, 0x24, 0x08, 0, 0, 0, 0], 4, 0x78),
        blank(12, &[0xC7, 0x43, 0x08, 0, 0, 0, 0], 2, 0x78),
        blank(15, &[0x48, 0x8B, 0x83, 0, 0x01, 0, 0], 3, 0x07F8),
        blank(20, &[0x48, 0x8D, 0x3D, 0, 0, 0x80, 0], 3, 0xF_FFFF),
        blank(20, &[0x48, 0x8D, 0x35, 0, 0, 0x80, 0], 3, 0xF_FFFF),
        blank(20, &[0x48, 0x8B, 0x05, 0, 0, 0xB0, 0, 0x48, 0x8B, 0x00], 3, 0xFFF8),
        blank(15, &[0x48, 0x8D, 0x40, 0x08], 2, 0x783F),
        blank(20, &[0x0F, 0xB6, 0x43, 0x08], 3, 0x7F),
        blank(12, &[0x0F, 0xB6, 0xC0], 2, 0x3F),
        blank(10, &[0x48, 0x63, 0xC0, 0x48, 0x8D, 0x04], 2, 0x3F),
        // Numbers.
        blank(15, &[0x31, 0xC0, 0x48, 0x89, 0x44, 0x24, 0x08], 6, 0x78),
        fixed(10, &[0x31, 0xC0]),
        fixed(20, &[0x31, 0xF6, 0x31, 0xD2]),
        fixed(10, &[0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9]),
        blank(20, &[0xBE, 0, 0, 0, 0], 1, 0x3F),
        blank(20, &[0xBA, 0, 0, 0, 0, 0x48, 0x89, 0xC6], 1, 0x3F),
        blank(15, &[0xBF, 0, 0, 0, 0, 0xE8], 1, 0x78),
        fixed(15, &[0xB8, 0x01, 0, 0, 0]),
        blank(20, &[0x48, 0x83, 0xC0, 0x08], 2, 0x3807),
        blank(15, &[0x48, 0x01, 0xC0], 2, 0x3F),
        blank(10, &[0x48, 0x29, 0xC0, 0x48, 0xC1, 0xF8, 0x03], 2, 0x3F),
        blank(12, &[0x83, 0xC0, 0x01, 0x39, 0xC2], 1, 0x0707),
        blank(10, &[0x48, 0xC1, 0xE0, 0x03], 3, 0x07),
        // Vectors and floating point.
        blank(14, &[0x0F, 0x11, 0x43, 0x10], 3, 0x70),
        blank(14, &[0x66, 0x0F, 0xEF, 0xC0, 0x0F, 0x29, 0x44, 0x24, 0x10], 8, 0x70),
        blank(10, &[0x0F, 0x10, 0x05, 0, 0, 0x80, 0], 3, 0x3_FFF0),
        blank(10, &[0xF3, 0x0F, 0x10, 0x43, 0x08], 4, 0x7C),
        blank(10, &[0xF2, 0x0F, 0x59, 0xC0], 3, 0x3F),
        blank(10, &[0xF3, 0x0F, 0x58, 0xC0], 3, 0x3F),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_fits_has_its_blank_within_and_is_drawn() {
        for pieces in [names(), texts(), constants(), frames(), code()] {
            for piece in &pieces {
                assert!((1..=PIECE).contains(&piece.bytes.len()) && piece.blank + 4 <= PIECE && piece.weight > 0);
                let bits = 8 * (piece.bytes.len() - piece.blank).min(4) as u32;
                let limit = (1_u64 << bits.min(32 - CHOICE_BITS)) as u32;
                assert!(piece.mask < limit, "{:x?}", piece.bytes);
            }
            let drawn: std::collections::HashSet<u8> = Table::new(&pieces).choices.iter().copied().collect();
            assert_eq!(drawn.len(), pieces.len());
        }
    }
}
