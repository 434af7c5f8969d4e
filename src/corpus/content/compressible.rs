//! Content: blocks of 4 KiB of which a stated share can be compressed away.

use super::keystream::Keystream;
use super::{Content, FileBytes};

const BLOCK: u64 = 4096;

/// Above it a block would hold too little of the keystream to be told from others at a glance, and the headers of compressed formats would decide the share.
pub(super) const MAX_PERCENT: u8 = 90;

/// Each block is the keystream followed by zeros.
pub(super) struct Compressible {
    /// Zeros in a whole block.
    zeros: u64,
}

impl Compressible {
    pub(super) fn new(percent: u8) -> Self {
        // Compressed formats have headers: a block alone costs deflate up to 2.3 points, lz4 1.1, zstd 1, and a long file less than one. Hence one point more.
        let percent = if percent == 0 { 0 } else { u64::from(percent) + 1 };
        Self { zeros: BLOCK * percent / 100 }
    }
}

impl Content for Compressible {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, file: &FileBytes<'_>, mut offset: u64, mut buffer: &mut [u8]) {
        let mut keystream = Keystream::of(file);
        while !buffer.is_empty() {
            let within = offset % BLOCK;
            let block_len = BLOCK.min(file.len - (offset - within));
            let (part, rest) = buffer.split_at_mut(buffer.len().min((block_len - within) as usize));
            // The last block of a file has its share of zeros as well.
            let random_len = block_len - self.zeros * block_len / BLOCK;
            let (random, zeros) = part.split_at_mut(part.len().min(random_len.saturating_sub(within) as usize));
            keystream.fill(offset, random);
            zeros.fill(0);
            offset += (random.len() + zeros.len()) as u64;
            buffer = rest;
        }
    }
}
