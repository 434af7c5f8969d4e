//! Brings a corpus onto a drive, or takes the one that is there after checking it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::events::{Event, Observer};
use super::layout::Layout;
use crate::corpus::Corpus;
use crate::corpus::generate::{FILES, generate};
use crate::corpus::manifest::{self, Manifest};
use crate::corpus::times::Times;
use crate::drive::Workspace;
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Handle, Kind, Stat, System, Writer};
use crate::progress::{Cancel, Counter};
use crate::units::{Bytes, files};

/// Where staging is timed, so that a person learns early how long all of it will take; a smaller corpus is timed as a whole.
const FIRST_BYTES: u64 = 256_000_000;
/// The note beside the manifest: when and how fast the corpus was staged.
const NOTE: &str = "STAGED";

/// A corpus on a drive.
pub struct Staged {
    /// Its manifest.
    pub manifest: Manifest,
    /// The directory with its files.
    pub tree: Handle,
    /// What that is called.
    pub path: PathBuf,
    /// Bytes allocated for it; `None` where the file system encodes (compresses) files and does not tell into how many.
    pub stored_bytes: Option<u64>,
    /// Where its files lie.
    pub layout: Layout,
    /// When and how fast it was made, where that is known.
    pub note: Option<Note>,
}

/// When and how fast a corpus was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Seconds since 1970.
    pub at_s: i64,
    /// Bytes that were timed.
    pub bytes: u64,
    /// How long they took, flushed.
    pub durable_ns: u64,
}

/// Makes the corpus in the workspace, or takes the one that is there. `first` is told how long the first 256 MB took, flushed, and may end it.
///
/// # Errors
/// What the system answered, `Interrupted`, or what `first` says.
pub fn stage(
    system: System<'_>,
    workspace: &Workspace<'_>,
    corpus: &Corpus,
    observer: &dyn Observer,
    cancel: &Cancel,
    first: &mut dyn FnMut(Note) -> Result<()>,
) -> Result<Staged> {
    let id = corpus.id();
    let path = workspace.corpus_path(&id);
    if let Some(dir) = workspace.corpus(&id)? {
        match take(system, &dir, path.clone(), corpus, observer, cancel) {
            Ok(Some(staged)) => {
                observer.on(Event::Notice(format!("{id} is there and complete: it is used again")));
                if let Some(note) = staged.note {
                    first(note)?;
                }
                return Ok(staged);
            }
            Ok(None) => observer.on(Event::Notice(format!("{id} is there but was never finished: it is made again"))),
            Err(Error::Refused(reason)) => observer.on(Event::Notice(format!("{id} is there but can't be used: {reason}: it is made again"))),
            Err(error) => return Err(error),
        }
        drop(dir);
        workspace.remove_corpus(&id)?.complete()?;
    }
    let dir = workspace.create_corpus(&id)?;
    let note = make(system, &dir, &path, corpus, observer, cancel, first)?;
    write_note(system, &dir, &path, note)?;
    take(system, &dir, path, corpus, observer, cancel)?.ok_or_else(|| Error::Internal(format!("the manifest of {id} is not there after it was made")))
}

/// Removes corpora that were never finished: they have no manifest.
///
/// # Errors
/// What the system answered.
pub fn remove_unfinished(system: System<'_>, workspace: &Workspace<'_>, observer: &dyn Observer) -> Result<()> {
    for name in workspace.corpora()? {
        let Some(dir) = workspace.corpus(&name)? else { continue };
        // Only that it is not there: a drive that can't answer now may hold a whole corpus.
        let look = system.files.stat_at(&dir, manifest::NAME.as_ref());
        if look.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            drop(dir);
            let removal = workspace.remove_corpus(&name)?;
            observer.on(Event::Notice(format!("removed {name}, which was never finished: {removal}")));
        }
    }
    Ok(())
}

fn make(
    system: System<'_>,
    dir: &Handle,
    path: &std::path::Path,
    corpus: &Corpus,
    observer: &dyn Observer,
    cancel: &Cancel,
    first: &mut dyn FnMut(Note) -> Result<()>,
) -> Result<Note> {
    let counter = Arc::new(Counter::default());
    let what = format!("making {} ({}, {})", corpus.id(), files(corpus.file_count()), Bytes(corpus.byte_count()));
    observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let start = system.clock.now_ns();
    let mut told = None;
    let mut look = |bytes: u64| -> Result<()> {
        if told.is_some() || bytes < FIRST_BYTES.min(corpus.byte_count()) {
            return Ok(());
        }
        system.files.sync_filesystem(dir).during("flush", Side::Target, path)?;
        let note = Note { at_s: system.clock.wall().as_second(), bytes, durable_ns: system.clock.now_ns() - start };
        told = Some(note);
        first(note)
    };
    let made = generate(system, corpus, dir, path, makers(), &counter, cancel, &mut look);
    observer.on(Event::Ends);
    made?;
    told.ok_or_else(|| Error::Internal(format!("{} has fewer bytes than its spec says", corpus.id())))
}

/// Threads that make content: as many as the machine has cores.
#[must_use]
pub fn makers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The corpus in `dir` if it is whole: a valid manifest of this very corpus, and every file there with its length and time. Its bytes are compared when a
/// copy of it is: against the same manifest.
fn take(system: System<'_>, dir: &Handle, path: PathBuf, corpus: &Corpus, observer: &dyn Observer, cancel: &Cancel) -> Result<Option<Staged>> {
    let manifest = match Manifest::open(system.files, dir, &path) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(None),
        Err(Error::Io(failure)) if failure.source.kind() == io::ErrorKind::InvalidData => {
            return Err(Error::Refused(format!("its manifest is damaged: {}", failure.source)));
        }
        Err(error) => return Err(error),
    };
    if manifest.corpus != *corpus {
        return Err(Error::Refused("it was made from another spec".to_owned()));
    }
    let tree_path = path.join(FILES);
    let tree = match system.files.open_dir(dir, FILES.as_ref()) {
        Err(error) if is_missing(&error) => return Err(Error::Refused("its files are not there".to_owned())),
        answer => answer.during("open", Side::Source, &tree_path)?,
    };
    observer.on(Event::Waits(format!("checking {}", corpus.id())));
    let mut stored = Some(0_u64);
    let mut layout = Layout::default();
    let mut times = Times::default();
    for listed in manifest.entries(system.files) {
        cancel.check()?;
        let meta = listed.during("read the manifest in", Side::Source, &path)?.meta;
        let differs = |what: &str| Error::Refused(format!("{} {what}", meta.path));
        let stat: Stat = match system.files.stat_at(&tree, meta.path.as_ref()) {
            Err(error) if is_missing(&error) => return Err(differs("is missing")),
            answer => answer.during("look at", Side::Source, tree_path.join(&meta.path))?,
        };
        times.add(stat.mtime.0, meta.mtime);
        if stat.kind != Kind::File {
            return Err(differs("is no file"));
        }
        if stat.len != meta.len || !times.agree() {
            return Err(differs("has another length or time than it was made with"));
        }
        // File systems with large clusters count all of the last one, of which only the pages that hold data are read.
        stored = stored.map(|sum| sum + stat.stored_bytes.min(meta.len.next_multiple_of(4096)));
        if layout.files == 0 || layout.extents().is_some() {
            let file = system.files.open(&tree, meta.path.as_ref()).during("open", Side::Source, tree_path.join(&meta.path))?;
            let found = system.files.extents(&file);
            // btrfs counts the blocks of a compressed file as if it were not.
            stored = stored.filter(|_| found.as_ref().map_or(true, |found| found.encoded_bytes == 0));
            layout.add(&stat, found);
        }
    }
    let note = read_note(system, dir);
    Ok(Some(Staged { manifest, tree, path: tree_path, stored_bytes: stored, layout, note }))
}

/// Whether something is not there or is something else, as against a drive that can't answer now and may hold a whole corpus.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

fn write_note(system: System<'_>, dir: &Handle, path: &std::path::Path, note: Note) -> Result<()> {
    let path = path.join(NOTE);
    let text = serde_json::to_string(&note).map_err(|error| Error::Internal(error.to_string()))?;
    let file = system.files.create(dir, NOTE.as_ref(), 0o644).during("create", Side::Target, &path)?;
    io::Write::write_all(&mut Writer { files: system.files, file: &file }, text.as_bytes()).during("write to", Side::Target, &path)?;
    system.files.close(file).during("close", Side::Target, &path)
}

/// The note, where there is a readable one: it only helps to estimate.
fn read_note(system: System<'_>, dir: &Handle) -> Option<Note> {
    let file = system.files.open(dir, NOTE.as_ref()).ok()?;
    let mut buffer = [0; 512];
    let read = system.files.read(&file, &mut buffer).ok()?;
    serde_json::from_slice(&buffer[..read]).ok()
}
