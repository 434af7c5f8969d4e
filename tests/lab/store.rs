//! The medium of a lab drive: sparse memory, with a chunk taken when it is first written and given back when it is discarded.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const CHUNK: u64 = 256 << 10;

type Chunks = HashMap<u64, Box<[u8]>>;

/// Bytes by offset; what was never written reads as zero.
#[derive(Default)]
pub struct Store(RwLock<Chunks>);

/// The part of a range that lies in one chunk.
struct Piece {
    chunk: u64,
    within: Range<usize>,
    /// Where it lies in the caller's range.
    at: Range<usize>,
}

fn pieces(offset: u64, length: u64) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let (chunk, start) = ((offset + done) / CHUNK, (offset + done) % CHUNK);
        let take = (CHUNK - start).min(length - done);
        let piece = Piece { chunk, within: start as usize..(start + take) as usize, at: done as usize..(done + take) as usize };
        done += take;
        Some(piece)
    })
}

impl Store {
    fn chunks(&self) -> RwLockReadGuard<'_, Chunks> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn chunks_mut(&self) -> RwLockWriteGuard<'_, Chunks> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self, offset: u64, buffer: &mut [u8]) {
        let chunks = self.chunks();
        for Piece { chunk, within, at } in pieces(offset, buffer.len() as u64) {
            match chunks.get(&chunk) {
                Some(bytes) => buffer[at].copy_from_slice(&bytes[within]),
                None => buffer[at].fill(0),
            }
        }
    }

    pub fn write(&self, offset: u64, data: &[u8]) {
        let mut chunks = self.chunks_mut();
        for Piece { chunk, within, at } in pieces(offset, data.len() as u64) {
            let bytes = chunks.entry(chunk).or_insert_with(|| vec![0; CHUNK as usize].into_boxed_slice());
            bytes[within].copy_from_slice(&data[at]);
        }
    }

    /// Makes a range zero and gives back the memory of the chunks that it covers.
    pub fn discard(&self, offset: u64, length: u64) {
        let mut chunks = self.chunks_mut();
        let range = offset..offset + length;
        chunks.retain(|chunk, bytes| {
            let (start, end) = (chunk * CHUNK, (chunk + 1) * CHUNK);
            let (from, until) = (range.start.max(start), range.end.min(end));
            if from < until && until - from < CHUNK {
                bytes[(from - start) as usize..(until - start) as usize].fill(0);
            }
            from >= until || until - from < CHUNK
        });
    }

    /// Bytes of memory taken.
    pub fn used_bytes(&self) -> u64 {
        self.chunks().len() as u64 * CHUNK
    }
}
