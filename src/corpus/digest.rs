//! The BLAKE3 digest of a file from pieces that several threads hash apart, by the tree that BLAKE3 is.

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// What one piece of a file contributes to its digest.
#[derive(Debug, Clone, Copy)]
pub enum Piece {
    /// It is the file.
    Whole(blake3::Hash),
    /// It is a subtree of the file's tree.
    Part(ChainingValue),
}

impl Piece {
    /// Hashes a piece of a file of `file_len` bytes. All pieces of a file but its last have the same length, a power of two of at least 1 KiB.
    #[must_use]
    pub fn of(data: &[u8], offset: u64, file_len: u64) -> Self {
        if data.len() as u64 == file_len {
            return Self::Whole(blake3::hash(data));
        }
        Self::Part(blake3::Hasher::new().set_input_offset(offset).update(data).finalize_non_root())
    }
}

/// The digest of a file whose pieces arrive in order. Memory grows with the logarithm of their number.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Subtrees that are not joined yet, larger ones first: as many as the number of pieces has bits set, and one more.
    subtrees: Vec<ChainingValue>,
    count: u64,
}

impl Pieces {
    /// Takes the next piece; the digest when it is the last, after which the next file may begin.
    pub fn add(&mut self, piece: Piece, is_last: bool) -> Option<blake3::Hash> {
        let part = match piece {
            Piece::Whole(digest) => return Some(digest),
            Piece::Part(part) => part,
        };
        // Subtrees are joined only when more follows: the last joint of all makes the root and is made differently.
        while self.subtrees.len() > self.count.count_ones() as usize {
            let right = self.subtrees.pop()?;
            let left = self.subtrees.pop()?;
            self.subtrees.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
        self.subtrees.push(part);
        self.count += 1;
        if is_last { self.join() } else { None }
    }

    fn join(&mut self) -> Option<blake3::Hash> {
        self.count = 0;
        let mut right = self.subtrees.pop()?;
        loop {
            let left = self.subtrees.pop()?;
            if self.subtrees.is_empty() {
                return Some(merge_subtrees_root(&left, &right, Mode::Hash));
            }
            right = merge_subtrees_non_root(&left, &right, Mode::Hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_to_the_digest_of_the_whole_and_one_file_after_another() {
        const PIECE: usize = 1024;
        let bytes: Vec<u8> = (0..40 * PIECE + 1).map(|at| (at % 251) as u8).collect();
        let mut pieces = Pieces::default();
        for len in (0..=40).flat_map(|count| [count * PIECE, count * PIECE + 1]) {
            let data = &bytes[..len];
            let mut digest = None;
            for at in (0..len.max(1)).step_by(PIECE) {
                let end = len.min(at + PIECE);
                assert_eq!(digest, None);
                digest = pieces.add(Piece::of(&data[at..end], at as u64, len as u64), end == len);
            }
            assert_eq!(digest, Some(blake3::hash(data)), "{len} bytes");
        }
    }
}
