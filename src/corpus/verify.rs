//! Compares a tree with a manifest: every file read and hashed, every difference named, files that should not be there found.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crossbeam_channel::{Receiver, bounded};

use super::locate::{self, Difference, Kind};
use super::manifest::{Listed, Manifest};
use super::marks::Marker;
use super::stream::CHUNK_BYTES;
use super::times::Times;
use crate::error::{Context, Error, Result, Side, is_shortage, reason};
use crate::path_text::path_text;
use crate::platform::{Files, Handle, Kind as FileKind, Stat, ignore_unsupported};
use crate::progress::{Cancel, Counter};

/// Differences kept in full; the rest is counted.
const KEPT: usize = 1000;
/// Directories are followed so deep, much deeper than any corpus goes: what lies below is named once, by its directory.
const DEEPEST: usize = 200;

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Verification {
    /// Files that were compared.
    pub files_checked: u64,
    /// Files whose bytes are right.
    pub files_good: u64,
    /// The modification times of the files whose bytes are right.
    pub times: Times,
    /// Files that differ, in path order, at most 1,000 of them.
    pub differences: Vec<Difference>,
    /// Files found that no manifest lists.
    pub extra_files: u64,
    /// The first of them.
    pub extra_examples: Vec<String>,
}

impl Verification {
    /// Whether every file is there with its bytes.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.files_checked == self.files_good
    }

    /// Takes files out of the comparison of which it is not known what they should be.
    pub fn set_aside(&mut self, paths: &[String]) {
        let before = self.differences.len();
        self.differences.retain(|difference| !paths.contains(&difference.path));
        self.files_checked -= (before - self.differences.len()) as u64;
    }
}

/// What is compared.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The directory that holds the files.
    pub tree: &'a Handle,
    /// What it is called in messages.
    pub path: &'a Path,
    /// Which end of a copy it is.
    pub side: Side,
}

/// Flushes the tree, drops each file from the cache, reads it again from the drive and compares it with the manifest, with several files in flight.
///
/// # Errors
/// `Interrupted`, when the flush fails, or when the manifest can't be read. A file that can't be read is a difference.
pub fn verify(subject: Subject<'_>, manifest: &Manifest, threads: usize, counter: &Counter, cancel: &Cancel) -> Result<Verification> {
    flush(subject)?;
    let found = Mutex::new(Verification::default());
    let shortage = Mutex::new(None);
    thread::scope(|scope| {
        let (send, receive) = bounded::<Listed>(4 * threads.max(1));
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                let (receive, found, shortage) = (receive.clone(), &found, &shortage);
                scope.spawn(move || compare_all(subject, &receive, found, shortage, counter, cancel))
            })
            .collect();
        drop(receive);
        for file in manifest.entries(subject.files) {
            let file = file.during("read the manifest of", Side::Source, subject.path)?;
            // Workers end early only when cancelled, or when this machine is short of something.
            if send.send(file).is_err() {
                break;
            }
        }
        drop(send);
        for worker in workers {
            worker.join().map_err(|_| Error::Internal("a verifying thread ended early".to_owned()))?;
        }
        cancel.check()
    })?;
    if let Some(Shortage { operation, path, error }) =
        shortage.into_inner().map_err(|_| Error::Internal("a verifying thread ended early".to_owned()))?
    {
        return Err(error).during(operation, subject.side, subject.path.join(path));
    }
    let mut found = found.into_inner().map_err(|_| Error::Internal("a verifying thread ended early".to_owned()))?;
    found.differences.sort_by(|a, b| a.path.cmp(&b.path));
    find_extra(subject, manifest, &mut found)?;
    locate::explain(subject, manifest, &mut found.differences, threads, cancel)?;
    Ok(found)
}

/// Flushes the tree. One that can't be flushed because it can't be written to has nothing to flush; a flush that fails has lost data, which the cache may
/// still show.
pub(super) fn flush(subject: Subject<'_>) -> Result<()> {
    match subject.files.sync_filesystem(subject.tree).or_else(ignore_unsupported) {
        Err(error) if error.raw_os_error() != Some(libc::EROFS) => Err(error).during("flush", subject.side, subject.path),
        _ => Ok(()),
    }
}

fn compare_all(
    subject: Subject<'_>,
    tasks: &Receiver<Listed>,
    found: &Mutex<Verification>,
    shortage: &Mutex<Option<Shortage>>,
    counter: &Counter,
    cancel: &Cancel,
) {
    let mut buffer = vec![0; CHUNK_BYTES];
    for file in tasks {
        if cancel.signal().is_some() {
            return;
        }
        let outcome = compare(subject, &file, &mut buffer, counter, cancel);
        counter.add_file();
        let Ok(mut found) = found.lock() else { return };
        found.files_checked += 1;
        match outcome {
            Ok(mtime) => {
                found.files_good += 1;
                found.times.add(mtime, file.meta.mtime);
            }
            Err(Unequal::Differs(difference)) if found.differences.len() < KEPT => found.differences.push(*difference),
            Err(Unequal::Differs(_)) => {}
            Err(Unequal::Shortage(first)) => {
                if let Ok(mut shortage) = shortage.lock() {
                    shortage.get_or_insert(first);
                }
                return;
            }
        }
    }
}

/// Why a file can't be called good.
enum Unequal {
    /// It is another one, or can't be read.
    Differs(Box<Difference>),
    /// This machine could not look.
    Shortage(Shortage),
}

/// What this machine had too little for: that says nothing about a file.
struct Shortage {
    operation: &'static str,
    path: PathBuf,
    error: io::Error,
}

/// Opens a file; none where there is something else, which is not even opened: a FIFO may wait for ever, and a device do something.
///
/// # Errors
/// What the system answered, and to what.
pub(super) fn open_file(files: &dyn Files, tree: &Handle, path: &Path) -> Result<Option<(Handle, Stat)>, (&'static str, io::Error)> {
    let is_file = |stat: &Stat| stat.kind == FileKind::File;
    if !is_file(&files.stat_at(tree, path).map_err(|error| ("look at", error))?) {
        return Ok(None);
    }
    let file = files.open(tree, path).map_err(|error| ("open", error))?;
    let stat = files.stat(&file).map_err(|error| ("look at", error))?;
    Ok(is_file(&stat).then_some((file, stat)))
}

/// The modification time of a file whose bytes are right, or why it can't be called good.
fn compare(subject: Subject<'_>, listed: &Listed, buffer: &mut [u8], counter: &Counter, cancel: &Cancel) -> Result<i64, Unequal> {
    let Subject { files, tree, .. } = subject;
    let path = Path::new(&listed.meta.path);
    let differs = |kind| Unequal::Differs(Box::new(Difference::new(listed, kind)));
    let failed = |operation, offset, error: io::Error| match error.kind() {
        _ if is_shortage(&error) => Unequal::Shortage(Shortage { operation, path: path.to_path_buf(), error }),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => differs(Kind::Missing),
        _ => Unequal::Differs(Box::new(Difference { offset, ..Difference::new(listed, Kind::Unreadable { reason: reason(&error) }) })),
    };
    let opened = open_file(files, tree, path).map_err(|(operation, error)| failed(operation, None, error))?;
    let Some((file, stat)) = opened else { return Err(differs(Kind::Missing)) };
    // Out of this machine's cache, so that the drive answers; and only advice, without which reading goes on.
    let _ = files.evict(&file);
    let _ = files.advise_sequential(&file);
    let mut marker = Marker::new(listed.meta.len);
    let mut len = 0;
    loop {
        let read = files.read(&file, buffer).map_err(|error| failed("read", Some(len), error))?;
        if read == 0 || cancel.signal().is_some() {
            break;
        }
        marker.add(&buffer[..read]);
        len += read as u64;
        counter.add_bytes(read as u64);
    }
    let marks = marker.finish();
    if marks.digest == listed.digest && len == listed.meta.len {
        return Ok(stat.mtime.0);
    }
    Err(Unequal::Differs(Box::new(Difference { found_bytes: Some(len), found: Some(marks), ..Difference::new(listed, Kind::Changed) })))
}

/// Walks the tree beside the manifest, both in bytewise order, and notes what only the tree has.
fn find_extra(subject: Subject<'_>, manifest: &Manifest, found: &mut Verification) -> Result<()> {
    let mut listed = manifest.entries(subject.files).map(|file| file.map(|file| file.meta.path)).peekable();
    let mut each = |path: &[u8]| -> io::Result<()> {
        while let Some(next) = listed.next_if(|next| next.as_ref().map_or(true, |next| next.as_bytes() < path)) {
            next?;
        }
        if listed.peek().is_none_or(|next| next.as_ref().is_ok_and(|next| next.as_bytes() != path)) {
            found.extra_files += 1;
            if found.extra_examples.len() < 20 {
                found.extra_examples.push(path_text(Path::new(OsStr::from_bytes(path))));
            }
        }
        Ok(())
    };
    walk_sorted(subject.files, subject.tree, b"", &mut each).during("list", subject.side, subject.path)
}

/// Visits everything that is not a directory, in bytewise order of the path; memory grows with the width of a directory only.
/// Directories that can't be opened are left out: their files were reported as missing or unreadable.
fn walk_sorted(files: &dyn Files, dir: &Handle, prefix: &[u8], each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut entries = Vec::new();
    files.list(dir, &mut |entry| {
        let is_dir = match entry.kind {
            Some(kind) => kind == FileKind::Directory,
            None => files.stat_at(dir, Path::new(&entry.name))?.kind == FileKind::Directory,
        };
        let mut name = entry.name.into_vec();
        if is_dir {
            name.push(b'/');
        }
        entries.push(name);
        Ok(())
    })?;
    entries.sort();
    for name in entries {
        let path = [prefix, &name].concat();
        match name.strip_suffix(b"/") {
            None => each(&path)?,
            Some(_) if path.iter().filter(|&&byte| byte == b'/').count() > DEEPEST => each(&path)?,
            Some(name) => match files.open_dir(dir, Path::new(OsStr::from_bytes(name))) {
                Ok(below) => walk_sorted(files, &below, &path, each)?,
                Err(error) if is_shortage(&error) => return Err(error),
                Err(_) => {}
            },
        }
    }
    Ok(())
}
