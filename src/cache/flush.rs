//! Makes written data durable, by as many calls as it takes, and says what is known about where they went.

use std::io;
use std::path::Path;

use crate::error::{Context, Result, Side};
use crate::measure::calls::{Calls, Op};
use crate::platform::{Files, Handle, is_unsupported};
use crate::result::{Answer, Flush};

/// What is flushed.
pub struct Written<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The directory that was written to.
    pub dir: &'a Handle,
    /// What it is called in messages.
    pub path: &'a Path,
    /// One of the files written, relative to the directory.
    pub one_file: Option<&'a str>,
}

/// Flushes the file system; where the device's flush counter did not move (`device_flushes` is asked before and after), also one file and the directory:
/// some file systems answer `syncfs` without flushing the device. Returns the record, and whether any flush was made at all: a file system that can't flush
/// one file has not flushed all of them, whatever its `syncfs` says (FUSE answers that without asking the program behind it).
///
/// # Errors
/// A flush that failed, as against one that the file system can't do: data are lost then.
pub fn make_durable(
    written: &Written<'_>,
    calls: &mut Calls<'_>,
    device_flushes: &mut dyn FnMut() -> Option<u64>,
    volatile_cache: Option<bool>,
) -> Result<(Flush, bool)> {
    let Written { files, dir, path, .. } = *written;
    let before = device_flushes();
    let mut method = Vec::new();
    let attempt = |answer: io::Result<()>, path: &Path| match answer {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(error).during("flush", Side::Target, path),
    };
    let mut can_flush = true;
    if attempt(calls.time(Op::FlushAll, || files.sync_filesystem(dir)), path)? {
        method.push("syncfs");
    }
    let moved = |now: Option<u64>| Some(now?.saturating_sub(before?));
    let mut counted = moved(device_flushes());
    if counted.is_none_or(|count| count == 0) {
        if let Some(name) = written.one_file {
            let file_path = path.join(name);
            let file = calls.time(Op::Flushing, || files.open(dir, Path::new(name))).during("open", Side::Target, &file_path)?;
            can_flush = attempt(calls.time(Op::Fsync, || files.sync(&file)), &file_path)?;
            if can_flush {
                method.push("fsync of a file");
            }
            calls.time(Op::Flushing, || files.close(file)).during("close", Side::Target, &file_path)?;
        }
        if attempt(calls.time(Op::Fsync, || files.sync(dir)), path)? {
            method.push("fsync of the directory");
        }
        counted = moved(device_flushes());
    }
    let flushed = can_flush && !method.is_empty();
    let reaches_medium = match (flushed, counted, volatile_cache) {
        (false, _, _) => Answer::Unknown,
        (true, Some(1..), _) | (true, _, Some(false)) => Answer::Yes,
        (true, Some(0), Some(true)) => Answer::No,
        (true, _, _) => Answer::Unknown,
    };
    let method = if flushed { method.join(", ") } else { "none: the file system can't flush".to_owned() };
    Ok((Flush { method, device_flushes: counted, volatile_cache, reaches_medium }, flushed))
}
