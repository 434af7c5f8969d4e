//! The digest of a file beside those of its pieces, made while it is read: two readings can then be compared place by place when the bytes of the first are gone.

use std::ops::Range;

use blake3::hazmat::{ChainingValue, HasherExt};

use super::digest::{Piece, Pieces};

/// No piece is shorter than this.
const LEAST_PIECE: u64 = 64 << 10;
/// A file of the expected length has at most so many pieces, 32 KiB of memory; of what is longer twice as many are kept.
const MOST_PIECES: u64 = 1024;

/// What a reading of a file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// The digest of all that was read.
    pub digest: blake3::Hash,
    /// How much that was.
    pub len: u64,
    piece: u64,
    pieces: Vec<ChainingValue>,
}

impl Marks {
    /// From the first piece in which two readings of one file differ to the end of the last one.
    #[must_use]
    pub fn differ(&self, other: &Self) -> Option<Range<u64>> {
        let longest = self.pieces.len().max(other.pieces.len());
        let mut different = (0..longest).filter(|&index| self.pieces.get(index) != other.pieces.get(index)).map(|index| index as u64);
        let first = different.next()?;
        let last = different.next_back().unwrap_or(first);
        Some(first * self.piece..((last + 1) * self.piece).min(self.len.max(other.len)))
    }
}

/// Makes the marks of a file that is read from its beginning to its end.
pub struct Marker {
    piece: u64,
    hasher: blake3::Hasher,
    /// Bytes of the piece that is being hashed.
    filled: u64,
    len: u64,
    joined: Pieces,
    pieces: Vec<ChainingValue>,
}

impl Marker {
    /// Begins a file that should have this length: readings of one file are comparable where it was the same.
    #[must_use]
    pub fn new(expected_len: u64) -> Self {
        let piece = expected_len.div_ceil(MOST_PIECES).next_power_of_two().max(LEAST_PIECE);
        Self { piece, hasher: blake3::Hasher::new(), filled: 0, len: 0, joined: Pieces::default(), pieces: Vec::new() }
    }

    /// The next bytes.
    pub fn add(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            // Whether a piece is the last is known when more comes.
            if self.filled == self.piece {
                let part = self.end_piece();
                let _ = self.joined.add(Piece::Part(part), false);
                self.hasher = blake3::Hasher::new();
                self.hasher.set_input_offset(self.len);
                self.filled = 0;
            }
            let take = usize::try_from(self.piece - self.filled).map_or(data.len(), |left| left.min(data.len()));
            self.hasher.update(&data[..take]);
            (self.filled, self.len) = (self.filled + take as u64, self.len + take as u64);
            data = &data[take..];
        }
    }

    /// Ends the file.
    #[must_use]
    pub fn finish(mut self) -> Marks {
        let digest = if self.len <= self.piece {
            let digest = self.hasher.finalize();
            if self.len > 0 {
                let _ = self.end_piece();
            }
            Some(digest)
        } else {
            let part = self.end_piece();
            self.joined.add(Piece::Part(part), true)
        };
        // Several pieces always join to a digest; that of nothing would never pass for right.
        let digest = digest.unwrap_or_else(|| blake3::hash(&[]));
        Marks { digest, len: self.len, piece: self.piece, pieces: self.pieces }
    }

    fn end_piece(&mut self) -> ChainingValue {
        let part = self.hasher.finalize_non_root();
        if (self.pieces.len() as u64) < 2 * MOST_PIECES {
            self.pieces.push(part);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(expected_len: u64, data: &[u8], step: usize) -> Marks {
        let mut marker = Marker::new(expected_len);
        data.chunks(step).for_each(|part| marker.add(part));
        marker.finish()
    }

    #[test]
    fn the_digest_is_that_of_the_whole_however_it_is_read() {
        let piece = LEAST_PIECE as usize;
        let bytes: Vec<u8> = (0..5 * piece + 3).map(|at| (at % 251) as u8).collect();
        for len in [0, 1, 1024, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 7, 5 * piece + 3] {
            for step in [1000, piece, 3 * piece] {
                let marks = marks(len as u64, &bytes[..len], step);
                assert_eq!((marks.digest, marks.len), (blake3::hash(&bytes[..len]), len as u64), "{len} by {step}");
            }
        }
    }

    #[test]
    fn two_readings_differ_where_they_differ() {
        let (piece, len) = (LEAST_PIECE, 4 * LEAST_PIECE + 100);
        let good: Vec<u8> = (0..len).map(|at| (at % 253) as u8).collect();
        let read = |damage: &[usize], until: usize| {
            let mut bytes = good[..until].to_vec();
            damage.iter().for_each(|&at| bytes[at] ^= 1);
            marks(len, &bytes, 7777)
        };
        let whole = read(&[], good.len());
        assert_eq!(whole.differ(&read(&[], good.len())), None);
        assert_eq!(whole.differ(&read(&[piece as usize + 5], good.len())), Some(piece..2 * piece));
        assert_eq!(whole.differ(&read(&[5, 3 * piece as usize], good.len())), Some(0..4 * piece));
        assert_eq!(whole.differ(&read(&[good.len() - 1], good.len())), Some(4 * piece..len));
        assert_eq!(whole.differ(&read(&[], 2 * piece as usize)), Some(2 * piece..len));
        // A file of many pieces has fewer, longer ones.
        assert_eq!(Marker::new(10 << 30).piece, 16 << 20);
    }
}
