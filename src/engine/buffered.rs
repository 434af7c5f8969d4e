//! Reads and writes through the page cache in pieces of 1 MiB: what a file manager does.

use std::path::Path;

use super::{FileEngine, Trees};
use crate::error::{Context, Result, Side};
use crate::measure::calls::{Calls, Op};

/// Bytes asked for by one read.
const PIECE: usize = 1 << 20;

pub struct Buffered;

impl FileEngine for Buffered {
    fn copy(&self, trees: Trees<'_>, path: &Path, calls: &mut Calls<'_>, buffer: &mut Vec<u8>) -> Result<u64> {
        let pair = trees.open_pair(path, calls)?;
        let moved = read_and_write(trees, path, &pair, 0, calls, buffer)?;
        trees.is_whole(path, &pair, moved)?;
        trees.close_pair(path, pair, calls)?;
        Ok(moved)
    }

    fn mechanism(&self) -> &'static str {
        "read-write, the first 4 MiB of each file asked for ahead"
    }
}

fn first_word(bytes: &[u8]) -> [u8; 8] {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    word
}

/// Makes data new: in every sector one word is changed, by what is different for each number, file and place. They compress as well as before, and no
/// block of them is equal to one that was ever written.
fn renew(data: &mut [u8], number: u64, file: u64, offset: u64) {
    const SECTOR: usize = 512;
    let base = blake3::hash(&[number, file, offset].map(u64::to_le_bytes).concat());
    let (mut word, step) = (u64::from_le_bytes(first_word(&base.as_bytes()[..8])), u64::from_le_bytes(first_word(&base.as_bytes()[8..16])) | 1);
    for sector in data.chunks_mut(SECTOR) {
        sector.iter_mut().zip(word.to_le_bytes()).for_each(|(byte, change)| *byte ^= change);
        word = word.wrapping_add(step);
    }
}

/// Moves what is left of a file from `moved` bytes on; returns the bytes moved in all. A file that has its length is not asked for more.
pub(super) fn read_and_write(
    trees: Trees<'_>,
    path: &Path,
    pair: &super::Pair,
    mut moved: u64,
    calls: &mut Calls<'_>,
    buffer: &mut Vec<u8>,
) -> Result<u64> {
    buffer.resize(PIECE, 0);
    while moved < pair.len {
        trees.cancel.check()?;
        // No further than its length was at the beginning: a file that grows meanwhile is copied as it was found.
        let piece = usize::try_from(pair.len - moved).map_or(PIECE, |left| left.min(PIECE));
        let read = calls.time(Op::Read, || trees.files.read(&pair.from, &mut buffer[..piece]));
        let read = read.during_at(moved, "read", Side::Source, trees.source_path.join(path))?;
        calls.reads += 1;
        calls.read_bytes += read as u64;
        if read == 0 {
            break;
        }
        if let Some(number) = trees.fresh {
            renew(&mut buffer[..read], number, pair.inode, moved);
        }
        trees.write_all(path, &pair.to, moved, &buffer[..read], calls)?;
        moved += read as u64;
    }
    Ok(moved)
}
