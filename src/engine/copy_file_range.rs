//! Lets the system copy: it may move pages inside the kernel, ask a server to copy, or share blocks and move nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffered::read_and_write;
use super::{FileEngine, Trees};
use crate::error::{Context, Result, Side};
use crate::measure::calls::{Calls, Op};

/// Bytes asked for by one call: small enough for a signal to be noticed on a slow stick.
const PIECE: usize = 16 << 20;

#[derive(Default)]
pub struct CopyFileRange {
    used: AtomicBool,
    fell_back: AtomicBool,
}

impl FileEngine for CopyFileRange {
    fn copy(&self, trees: Trees<'_>, path: &Path, calls: &mut Calls<'_>, buffer: &mut Vec<u8>) -> Result<u64> {
        let pair = trees.open_pair(path, calls)?;
        let mut moved = 0;
        while moved < pair.len {
            trees.cancel.check()?;
            let piece = usize::try_from(pair.len - moved).map_or(PIECE, |left| left.min(PIECE));
            let answer = calls.time(Op::Transfer, || trees.files.copy_range(&pair.from, &pair.to, piece));
            match answer {
                // Some file systems answer 0 for files that have content: reading tells whether the file ended.
                Ok(0) => {
                    moved = read_and_write(trees, path, &pair, moved, calls, buffer)?;
                    self.fell_back.store(true, Ordering::Relaxed);
                    break;
                }
                Ok(count) => {
                    self.used.store(true, Ordering::Relaxed);
                    moved += count as u64;
                    calls.read_bytes += count as u64;
                    calls.written_bytes += count as u64;
                    trees.counter.add_bytes(count as u64);
                }
                Err(error) if crate::platform::is_unsupported(&error) || error.raw_os_error() == Some(libc::EXDEV) => {
                    self.fell_back.store(true, Ordering::Relaxed);
                    moved = read_and_write(trees, path, &pair, moved, calls, buffer)?;
                    break;
                }
                Err(error) => return Err(error).during_at(moved, "copy within the system to", Side::Target, trees.target_path.join(path)),
            }
        }
        trees.is_whole(path, &pair, moved)?;
        trees.close_pair(path, pair, calls)?;
        Ok(moved)
    }

    fn mechanism(&self) -> &'static str {
        match (self.used.load(Ordering::Relaxed), self.fell_back.load(Ordering::Relaxed)) {
            (_, false) => "copy_file_range",
            (false, true) => "read-write (copy_file_range is not supported here)",
            (true, true) => "copy_file_range, read-write for some files",
        }
    }
}
