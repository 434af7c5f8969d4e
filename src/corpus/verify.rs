//! Compares a tree with a manifest: every file read and hashed, every difference named, files that should not be there found.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use crossbeam_channel::{Receiver, bounded};

use super::locate::{self, Difference, Kind};
use super::manifest::{Listed, Manifest};
use super::marks::Marker;
use super::stream::CHUNK_BYTES;
use crate::error::{Context, Error, Result, Side, reason};
use crate::platform::{Files, Handle, Kind as FileKind, ignore_unsupported};
use crate::progress::{Cancel, Counter};

/// Differences kept in full; the rest is counted.
const KEPT: usize = 1000;

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Verification {
    /// Files that were compared.
    pub files_checked: u64,
    /// Files whose bytes are right.
    pub files_good: u64,
    /// Files whose bytes are right but whose modification time is not (beyond the two seconds of FAT).
    pub times_differ: u64,
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
    thread::scope(|scope| {
        let (send, receive) = bounded::<Listed>(4 * threads.max(1));
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                let (receive, found) = (receive.clone(), &found);
                scope.spawn(move || compare_all(subject, &receive, found, counter, cancel))
            })
            .collect();
        drop(receive);
        for file in manifest.entries(subject.files) {
            let file = file.during("read the manifest of", Side::Source, subject.path)?;
            // Workers end early only when cancelled.
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

fn compare_all(subject: Subject<'_>, tasks: &Receiver<Listed>, found: &Mutex<Verification>, counter: &Counter, cancel: &Cancel) {
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
            Ok(same_time) => {
                found.files_good += 1;
                found.times_differ += u64::from(!same_time);
            }
            Err(difference) if found.differences.len() < KEPT => found.differences.push(*difference),
            Err(_) => {}
        }
    }
}

/// Whether the modification time is right too, or in what the file differs.
fn compare(subject: Subject<'_>, listed: &Listed, buffer: &mut [u8], counter: &Counter, cancel: &Cancel) -> Result<bool, Box<Difference>> {
    let Subject { files, tree, .. } = subject;
    let path = Path::new(&listed.meta.path);
    let differs = |kind| Box::new(Difference::new(listed, kind));
    let failed = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => differs(Kind::Missing),
        _ => differs(Kind::Unreadable { reason: reason(error) }),
    };
    let file = files.open(tree, path).map_err(|error| failed(&error))?;
    let stat = files.stat(&file).map_err(|error| failed(&error))?;
    if stat.kind != FileKind::File {
        return Err(differs(Kind::Missing));
    }
    // Out of this machine's cache, so that the drive answers; and only advice, without which reading goes on.
    let _ = files.evict(&file);
    let _ = files.advise_sequential(&file);
    let mut marker = Marker::new(listed.meta.len);
    let mut len = 0;
    loop {
        let read = files.read(&file, buffer).map_err(|error| Box::new(Difference { offset: Some(len), ..*failed(&error) }))?;
        if read == 0 || cancel.signal().is_some() {
            break;
        }
        marker.add(&buffer[..read]);
        len += read as u64;
        counter.add_bytes(read as u64);
    }
    let marks = marker.finish();
    if marks.digest == listed.digest && len == listed.meta.len {
        return Ok((stat.mtime.0 - listed.meta.mtime).abs() <= 2);
    }
    Err(Box::new(Difference { found_bytes: Some(len), found: Some(marks), ..*differs(Kind::Changed) }))
}

/// Walks the tree beside the manifest, both in bytewise order, and notes what only the tree has.
fn find_extra(subject: Subject<'_>, manifest: &Manifest, found: &mut Verification) -> Result<()> {
    let mut listed = manifest.entries(subject.files).map(|file| file.map(|file| file.meta.path)).peekable();
    let mut each = |path: &str| -> io::Result<()> {
        while let Some(next) = listed.next_if(|next| next.as_ref().map_or(true, |next| next.as_bytes() < path.as_bytes())) {
            next?;
        }
        if listed.peek().is_none_or(|next| next.as_ref().is_ok_and(|next| next != path)) {
            found.extra_files += 1;
            if found.extra_examples.len() < 20 {
                found.extra_examples.push(path.to_owned());
            }
        }
        Ok(())
    };
    walk_sorted(subject.files, subject.tree, "", &mut each).during("list", subject.side, subject.path)
}

/// Visits everything that is not a directory, in bytewise order of the path; memory grows with the width of a directory only.
/// Directories that can't be opened are left out: their files were reported as missing or unreadable.
fn walk_sorted(files: &dyn Files, dir: &Handle, prefix: &str, each: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut entries = Vec::new();
    files.list(dir, &mut |entry| {
        let name = String::from_utf8_lossy(entry.name.as_bytes()).into_owned();
        let is_dir = match entry.kind {
            Some(kind) => kind == FileKind::Directory,
            None => files.stat_at(dir, Path::new(&entry.name))?.kind == FileKind::Directory,
        };
        entries.push((if is_dir { format!("{name}/") } else { name }, entry.name));
        Ok(())
    })?;
    entries.sort();
    for (shown, name) in entries {
        let path = format!("{prefix}{shown}");
        if !shown.ends_with('/') {
            each(&path)?;
        } else if let Ok(below) = files.open_dir(dir, Path::new(&name)) {
            walk_sorted(files, &below, &path, each)?;
        }
    }
    Ok(())
}
