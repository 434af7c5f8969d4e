//! The files that are known to be part of a program before it is started, and bringing them, with everything else, out of this machine's caches.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::program::Program;
use crate::cache::evict::{Prepared, evict_open};
use crate::error::{Context, Result, Side, reason};
use crate::path_text::path_text;
use crate::platform::{Files, Handle, Host, System, ignore_unsupported};
use crate::result::{LaunchFiles, Warmth};

/// How long the loader of programs may take to list libraries.
const LISTING: Duration = Duration::from_secs(5);
/// A script may be run by a script, but not without end.
const DEPTH: usize = 4;
/// How often dropping is repeated while pages remain: pages on their way to a list of the kernel escape a single drop.
const ATTEMPTS: usize = 3;
/// Files named in the record that were in memory.
const NAMED: usize = 5;

/// A program's own file first, then what runs it if it is a script, their loader and their libraries: what can be known before it is started.
pub(super) fn known(host: &Host, files: &dyn Files, program: &Program, search_path: &OsStr) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = Some(program.file.clone());
    for _ in 0..DEPTH {
        let Some(file) = next.take() else { break };
        add(&mut found, file.clone());
        let Some(head) = head_of(host, files, &file) else { break };
        if let Some(interpreter) = script_interpreter(&head) {
            next = match interpreter {
                Interpreter::File(path) => host.resolve(path),
                Interpreter::OnPath(name) => std::env::split_paths(search_path).find_map(|directory| host.resolve(directory.join(&name))),
            };
        } else if let Some(loader) = elf_interpreter(host, files, &file, &head) {
            for library in libraries(host, &loader, &file) {
                add(&mut found, library);
            }
        }
    }
    found
}

fn add(found: &mut Vec<PathBuf>, file: PathBuf) {
    if !found.contains(&file) {
        found.push(file);
    }
}

/// The beginning of a file.
fn head_of(host: &Host, files: &dyn Files, path: &Path) -> Option<Vec<u8>> {
    const HEAD: usize = 4096;
    let file = open(host, files, path).ok()?;
    let mut head = vec![0; HEAD];
    let read = files.read_at(&file, &mut head, 0).ok()?;
    head.truncate(read);
    Some(head)
}

fn open(host: &Host, files: &dyn Files, path: &Path) -> io::Result<Handle> {
    let directory = files.open_root(&host.path(path.parent().unwrap_or(Path::new("/"))))?;
    files.open(&directory, Path::new(path.file_name().ok_or(io::ErrorKind::InvalidInput)?))
}

/// What runs a script.
#[derive(Debug, PartialEq, Eq)]
enum Interpreter {
    File(PathBuf),
    /// By `env`.
    OnPath(PathBuf),
}

/// The first line of a script: `#!/bin/sh -e`, `#!/usr/bin/env python3`.
fn script_interpreter(head: &[u8]) -> Option<Interpreter> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(|word| PathBuf::from(OsStr::from_bytes(word)));
    let interpreter = words.next()?;
    if interpreter.file_name() == Some(OsStr::new("env"))
        && let Some(name) = words.find(|word| !word.as_os_str().as_bytes().starts_with(b"-"))
    {
        return Some(Interpreter::OnPath(name));
    }
    Some(Interpreter::File(interpreter))
}

/// The loader that an ELF file names (its segment `PT_INTERP`); `None` of a static program, and of what is no ELF file of this machine's byte order.
fn elf_interpreter(host: &Host, files: &dyn Files, path: &Path, head: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: u64 = 3;
    const LONGEST: u64 = 4096;
    let number = |at: usize, bytes: usize| {
        let slice = head.get(at..at.checked_add(bytes)?)?;
        Some(slice.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    if head.get(..4)? != b"\x7fELF" || head.get(5)? != &1 {
        return None;
    }
    // Class, offset of the table of segments, size and number of its entries, offset and size within an entry.
    let (table, entry, entries, offset, size, word) = match head.get(4)? {
        2 => (number(32, 8)?, number(54, 2)?, number(56, 2)?, 8, 32, 8),
        1 => (number(28, 4)?, number(42, 2)?, number(44, 2)?, 4, 16, 4),
        _ => return None,
    };
    for index in 0..entries {
        let at = usize::try_from(table.checked_add(index * entry)?).ok()?;
        if number(at, 4)? != PT_INTERP {
            continue;
        }
        let (from, len) = (number(at + offset, word)?, number(at + size, word)?.min(LONGEST));
        let mut name = vec![0; usize::try_from(len).ok()?];
        let read = files.read_at(&open(host, files, path).ok()?, &mut name, from).ok()?;
        name.truncate(read);
        let name = name.split(|byte| *byte == 0).next()?;
        return host.resolve(OsStr::from_bytes(name));
    }
    None
}

/// The libraries of a program, as its loader finds them, and the loader itself.
fn libraries(host: &Host, loader: &Path, program: &Path) -> Vec<PathBuf> {
    let mut found = vec![loader.to_path_buf()];
    if let (Some(loader), Some(program)) = (loader.to_str(), program.to_str()) {
        // One that can't list them leaves them unknown.
        let listed = host.ask(loader, &["--list", program], LISTING).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed);
        found.extend(listed.lines().filter_map(|line| host.resolve(listed_path(line)?)));
    }
    found
}

/// `libz.so.1 => /lib/libz.so.1 (0x7f…)`
fn listed_path(line: &str) -> Option<&str> {
    let (_, path) = line.split_once(" => ")?;
    let path = path.rsplit_once(" (0x").map_or(path, |(path, _)| path).trim();
    path.starts_with('/').then_some(path)
}

/// Files that are open, with their lengths.
struct Opened<'p> {
    all: Vec<(&'p Path, Handle, u64)>,
}

impl<'p> Opened<'p> {
    fn open(host: &Host, files: &dyn Files, known: &'p [PathBuf]) -> Self {
        let open = |path: &'p PathBuf| {
            let file = open(host, files, path).ok()?;
            let len = files.stat(&file).ok()?.len;
            Some((path.as_path(), file, len))
        };
        Self { all: known.iter().filter_map(open).collect() }
    }

    /// What of them is in memory.
    fn look(&self, files: &dyn Files, own: &Path) -> LaunchFiles {
        let resident: Option<Vec<(&Path, u64)>> =
            self.all.iter().map(|(path, file, len)| Some((*path, files.resident_bytes(file, *len).ok()?))).collect();
        let mut largest: Vec<(&Path, u64)> = resident.iter().flatten().copied().filter(|(_, bytes)| *bytes > 0).collect();
        largest.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        LaunchFiles {
            n: self.all.len() as u64,
            bytes: self.all.iter().map(|(.., len)| len).sum(),
            own_bytes: self.all.iter().find(|(path, ..)| *path == own).map(|(.., len)| *len),
            resident_bytes: resident.as_ref().map(|all| all.iter().map(|(_, bytes)| bytes).sum()),
            own_resident_bytes: resident.as_ref().and_then(|all| all.iter().find(|(path, _)| *path == own).map(|(_, bytes)| *bytes)),
            resident: largest.into_iter().take(NAMED).map(|(path, _)| path_text(path)).collect(),
        }
    }
}

/// What was done to caches before a start, and what of the program was in memory then.
pub(super) struct Caches {
    pub prepared: Prepared,
    pub files: LaunchFiles,
}

/// Where a program is started and what of it is known.
pub(super) struct Ground<'a> {
    pub system: System<'a>,
    pub host: &'a Host,
    /// The program's own file.
    pub own: &'a Path,
    /// All that is known of it.
    pub known: &'a [PathBuf],
    /// Directories whose file systems are flushed first: what is not written yet can't be dropped.
    pub flushed: &'a [&'a Path],
}

impl Ground<'_> {
    /// Empties the caches of the whole machine, or where that may not be done those of the files that are known; looks at what stayed; and does not touch
    /// them any more.
    ///
    /// # Errors
    /// A flush that failed.
    pub(super) fn cool(&self) -> Result<Caches> {
        let Self { system, host, own, known, flushed } = *self;
        for directory in flushed {
            let flush = system.files.open_root(directory).and_then(|directory| system.files.sync_filesystem(&directory));
            flush.or_else(ignore_unsupported).during("flush", Side::Source, *directory)?;
        }
        // Looking warms: files are opened first and looked at through their descriptors.
        let opened = Opened::open(host, system.files, known);
        for _ in 0..ATTEMPTS {
            match system.caches.drop_all() {
                Ok(()) if opened.look(system.files, own).resident_bytes.is_some_and(|bytes| bytes > 0) => {}
                Ok(()) => break,
                Err(error) => {
                    let why = if error.kind() == io::ErrorKind::PermissionDenied { "no right to drop caches".to_owned() } else { reason(&error) };
                    let evicted = evict_open(system.files, &opened.all.iter().map(|(_, file, len)| (file, *len)).collect::<Vec<_>>());
                    let method = format!("fadvise DONTNEED on the program's file, its interpreter and its libraries ({why})");
                    let files = opened.look(system.files, own);
                    return Ok(Caches { prepared: Prepared { method, data: warmth(&files), ..evicted }, files });
                }
            }
        }
        let files = opened.look(system.files, own);
        drop(opened);
        // An open file keeps its own attributes and those of the directories above it in memory: they go now, and nothing is looked at any more.
        system.caches.drop_all().during("drop", Side::Host, "the caches")?;
        let prepared = Prepared {
            method: "drop_caches 3".to_owned(),
            data: warmth(&files),
            metadata: Warmth::Cold,
            resident_bytes: files.resident_bytes,
            sampled_bytes: files.bytes,
        };
        Ok(Caches { prepared, files })
    }

    /// Leaves caches as they are, and looks.
    pub(super) fn leave(&self, method: &str, metadata: Warmth) -> Caches {
        let files = Opened::open(self.host, self.system.files, self.known).look(self.system.files, self.own);
        let prepared = Prepared {
            method: method.to_owned(),
            data: if metadata == Warmth::Warm { Warmth::Warm } else { Warmth::Unknown },
            metadata,
            resident_bytes: files.resident_bytes,
            sampled_bytes: files.bytes,
        };
        Caches { prepared, files }
    }
}

/// Whether the program's own file is in memory: what else stays does because other programs use it, as they would at any time.
fn warmth(files: &LaunchFiles) -> Warmth {
    match (files.own_resident_bytes, files.own_bytes) {
        (Some(resident), Some(bytes)) if resident.saturating_mul(100) <= bytes => Warmth::Cold,
        (Some(_), Some(_)) => Warmth::Warm,
        _ => Warmth::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::OsFiles;

    #[test]
    fn what_runs_a_script_is_read_from_its_first_line() {
        let file = |path: &str| Some(Interpreter::File(path.into()));
        for (head, expected) in [
            (&b"#!/bin/sh\nexit"[..], file("/bin/sh")),
            (b"#! /usr/bin/perl -w\n", file("/usr/bin/perl")),
            (b"#!/usr/bin/env -S python3 -u\n", Some(Interpreter::OnPath("python3".into()))),
            (b"#!/usr/bin/env\n", file("/usr/bin/env")),
            (b"#!\n", None),
            (b"\x7fELF", None),
            (b"", None),
        ] {
            assert_eq!(script_interpreter(head), expected, "{head:?}");
        }
    }

    #[test]
    fn lines_of_a_loader_name_libraries() {
        assert_eq!(listed_path("\tlibz.so.1 => /lib/x (y)/libz.so.1 (0x00007f)"), Some("/lib/x (y)/libz.so.1"));
        assert_eq!(listed_path("\tlinux-vdso.so.1 (0x00007ffc)"), None);
        assert_eq!(listed_path("\tlibx.so => not found"), None);
    }

    #[test]
    fn a_damaged_program_has_no_loader_and_ends_nothing() {
        let (host, this) = (Host::real(), std::env::current_exe().unwrap());
        let head = head_of(&host, &OsFiles, &this).unwrap();
        let loader = elf_interpreter(&host, &OsFiles, &this, &head);
        for cut in 0..head.len().min(1500) {
            let mut damaged = head.clone();
            damaged[cut] = 0xff;
            let _ = elf_interpreter(&host, &OsFiles, &this, &damaged);
            assert!(elf_interpreter(&host, &OsFiles, &this, &head[..cut.min(64)]).is_none());
        }
        // Where this test is a program with libraries, they are found.
        let Some(loader) = loader else { return println!("skipped: this test is a static program") };
        let listed = libraries(&host, &loader, &this);
        assert!(listed[0] == loader && listed.len() > 1, "{listed:?}");
    }
}
