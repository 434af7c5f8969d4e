//! A part of a file in memory, onto which the fixed bytes of a format are stamped where they fall into it.

/// The bytes of a file from some offset on.
pub(super) struct Window<'a> {
    offset: u64,
    bytes: &'a mut [u8],
}

/// How much is worked on at once: several passes over it stay in the first-level cache. A multiple of the keystream's batch.
const PIECE: u64 = 16 * 1024;

impl<'a> Window<'a> {
    /// The bytes of a file from `offset` on, in pieces that end at multiples of a cache-friendly size.
    pub(super) fn pieces(mut offset: u64, mut buffer: &'a mut [u8]) -> impl Iterator<Item = Window<'a>> {
        std::iter::from_fn(move || {
            if buffer.is_empty() {
                return None;
            }
            let len = buffer.len().min((PIECE - offset % PIECE) as usize);
            let (bytes, rest) = std::mem::take(&mut buffer).split_at_mut(len);
            let window = Window { offset, bytes };
            buffer = rest;
            offset += len as u64;
            Some(window)
        })
    }

    /// Where the window starts in its file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the window ends in its file.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// All bytes of the window.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// What the window holds of the `len` bytes from `at` on, and how many of them lie before the window.
    pub(super) fn part(&mut self, at: u64, len: u64) -> (usize, &mut [u8]) {
        let from = at.max(self.offset);
        let to = (at + len).min(self.end());
        if from >= to {
            return (0, &mut []);
        }
        ((from - at) as usize, &mut self.bytes[(from - self.offset) as usize..(to - self.offset) as usize])
    }

    /// Overwrites what the window holds of the bytes at `at`.
    pub(super) fn stamp(&mut self, at: u64, fixed: &[u8]) {
        let (skipped, part) = self.part(at, fixed.len() as u64);
        part.copy_from_slice(&fixed[skipped..skipped + part.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_buffer_in_order_and_end_at_multiples() {
        let mut buffer = vec![0; 50_000];
        let ends: Vec<_> = Window::pieces(10_000, &mut buffer).map(|window| (window.offset(), window.end())).collect();
        assert_eq!(ends, [(10_000, 16_384), (16_384, 32_768), (32_768, 49_152), (49_152, 60_000)]);
    }

    #[test]
    fn stamps_are_cut_at_both_ends() {
        for at in 0..20 {
            let mut bytes = [0; 4];
            Window { offset: 8, bytes: &mut bytes }.stamp(at, &[1, 2, 3, 4, 5, 6]);
            let expected: Vec<u8> =
                (8..12).map(|place: u64| place.checked_sub(at).filter(|&index| index < 6).map_or(0, |index| index as u8 + 1)).collect();
            assert_eq!(bytes[..], expected, "at {at}");
        }
    }
}
