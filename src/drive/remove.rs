//! Removing a tree that copysim made, of any width and depth in little memory, without ever leaving it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::platform::{Handle, Kind, Stat, System, empty_file};
use crate::units::{Bytes, count, files};
use crate::{Error, IoFailure, Result, Side};

/// Something that could not be removed.
#[derive(Debug)]
pub struct Left {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is still there.
    pub reason: Error,
}

/// What was removed and what was not.
#[must_use = "something may be left"]
#[derive(Debug, Default)]
pub struct Removal {
    /// Files, links and whatever else is not a directory.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes that the removed files took on the drive.
    pub bytes: u64,
    /// How many names could not be removed.
    pub left_count: u64,
    /// The first hundred of them.
    pub left: Vec<Left>,
}

/// So many of those that could not be removed are named.
const NAMED: usize = 100;
/// After so many the rest is left as well: the drive is gone or read-only.
const GIVE_UP_AFTER: u64 = 10_000;
/// Directories that wait for their turn, on all levels together.
const WAITING: usize = 4096;
/// How often and how long to wait for names under which a file system keeps what another process still has open.
const HELD_OPEN_TRIES: u32 = 10;
const HELD_OPEN_WAIT: Duration = Duration::from_millis(100);

impl Removal {
    /// Whether nothing was left.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left_count == 0
    }

    /// Nothing was left.
    ///
    /// # Errors
    /// Why the first of what was left is still there.
    pub fn complete(self) -> Result<()> {
        self.left.into_iter().next().map_or(Ok(()), |left| Err(left.reason))
    }

    /// Adds another removal to this one.
    pub fn add(&mut self, other: Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.bytes += other.bytes;
        self.left_count += other.left_count;
        self.left.extend(other.left);
        self.left.truncate(NAMED);
    }

    pub(super) fn leave(&mut self, path: PathBuf, operation: &'static str, source: io::Error) {
        self.left_count += 1;
        if self.left.len() < NAMED {
            let reason = Error::Io(IoFailure { operation, side: Side::Host, path: path.clone(), offset: None, source });
            self.left.push(Left { path, reason });
        }
    }
}

impl std::fmt::Display for Removal {
    /// `1,573 files (1.68 GB)`, and what was left.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", files(self.files), Bytes(self.bytes))?;
        match (self.left_count, self.left.first()) {
            (0, _) | (_, None) => Ok(()),
            (left, Some(first)) => write!(f, "; {} could not be removed, the first: {}", count(left), first.reason),
        }
    }
}

/// Removes a directory and everything below it. What is not a directory is unlinked, whatever it is; links are not followed; other mounts are not entered; what cannot be
/// removed is reported and the rest is removed all the same. `base_path` is where `base` is, for the report.
pub fn remove_tree(system: System<'_>, base: &Handle, base_path: &Path, name: &OsStr) -> Removal {
    let mut walk = Walk { system, base_path, levels: Vec::new(), waiting: 0, removal: Removal::default() };
    match walk.open(base, name).and_then(|top| Ok((walk.level(&top, name)?, top))) {
        Ok((level, top)) => {
            walk.levels.push(level);
            walk.run(base, top);
        }
        Err(error) => walk.removal.leave(base_path.join(name), "open", error),
    }
    walk.removal
}

/// One directory on the way down. Its handle is open only while it is the deepest: the way up is checked by device and inode.
struct Level {
    name: OsString,
    device: (u32, u32),
    inode: u64,
    /// Directories that were found and not entered yet.
    waiting: Vec<OsString>,
    /// Names to look at no more: those that could not be removed.
    left_out: HashSet<OsString>,
    /// Whether one of them is certainly still there.
    is_left: bool,
    /// How often names that are held open were waited for.
    tries: u32,
}

impl Level {
    fn is(&self, stat: &Stat) -> bool {
        (self.device, self.inode) == (stat.device, stat.inode)
    }
}

struct Walk<'a> {
    system: System<'a>,
    base_path: &'a Path,
    levels: Vec<Level>,
    /// Sum over all levels.
    waiting: usize,
    removal: Removal,
}

/// What one look through a directory came to.
#[derive(Default)]
struct Pass {
    /// Something was removed, or a directory was found to be entered.
    progress: bool,
    /// There was a name of a file that is held open. Removing it may have made another such name.
    held_open: bool,
}

impl Walk<'_> {
    fn run(&mut self, base: &Handle, top: Handle) {
        let mut current = top;
        while let Some(depth) = self.levels.len().checked_sub(1) {
            if self.removal.left_count >= GIVE_UP_AFTER {
                return;
            }
            if let Some(name) = self.levels[depth].waiting.pop() {
                self.waiting -= 1;
                match self.open(&current, &name).and_then(|child| Ok((self.level(&child, &name)?, child))) {
                    Ok((level, child)) => {
                        self.levels.push(level);
                        current = child;
                    }
                    // Gone meanwhile, or listed twice.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        self.levels[depth].left_out.insert(name);
                    }
                    Err(error) => self.leave(name, "open", error),
                }
                continue;
            }
            let pass = self.pass(&current);
            if pass.progress {
                continue;
            }
            let level = &mut self.levels[depth];
            if pass.held_open && level.tries <= HELD_OPEN_TRIES {
                // Those of processes that have ended are gone at the second look.
                if level.tries > 0 {
                    self.system.clock.sleep(HELD_OPEN_WAIT);
                }
                level.tries += 1;
                continue;
            }
            if pass.held_open {
                self.leave_held_open(&current);
            }
            match self.go_up(base, current) {
                Some(parent) => current = parent,
                None => return,
            }
        }
    }

    /// Removes the deepest directory when it is empty, from the one above it, which becomes the deepest. `None` at the top, or when the way up leads elsewhere.
    fn go_up(&mut self, base: &Handle, current: Handle) -> Option<Handle> {
        let files = self.system.files;
        let path = self.path();
        let finished = self.levels.pop()?;
        self.waiting -= finished.waiting.len();
        let parent = match self.levels.last() {
            None => None,
            Some(above) => match files.open_dir(&current, Path::new("..")).and_then(|up| Ok((files.stat(&up)?, up))) {
                Ok((stat, up)) if above.is(&stat) => Some(up),
                Ok(_) => {
                    self.removal.leave(path, "go up from", io::Error::other("it was moved while it was being removed"));
                    return None;
                }
                Err(error) => {
                    self.removal.leave(path, "go up from", error);
                    return None;
                }
            },
        };
        drop(current);
        if finished.is_left {
            // It has been reported what is left in it.
            if let Some(above) = self.levels.last_mut() {
                above.left_out.insert(finished.name);
                above.is_left = true;
            }
        } else {
            match files.remove_dir(parent.as_ref().unwrap_or(base), Path::new(&finished.name)) {
                Ok(()) => self.removal.directories += 1,
                Err(error) => self.leave(finished.name, "remove the directory", error),
            }
        }
        parent
    }

    /// Removes what is not a directory and notes those that are.
    fn pass(&mut self, current: &Handle) -> Pass {
        let files = self.system.files;
        let mut pass = Pass::default();
        let mut full = false;
        let listed = files.list(current, &mut |entry| {
            let Some(level) = self.levels.last_mut() else { return Ok(()) };
            if level.left_out.contains(&entry.name) {
                return Ok(());
            }
            let name = Path::new(&entry.name);
            let stat = match files.stat_at(current, name) {
                Ok(stat) => stat,
                // Gone already, or never to be seen: then removing its directory will tell.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    self.leave(entry.name, "look at", error);
                    return Ok(());
                }
            };
            if stat.kind == Kind::Directory {
                level.waiting.push(entry.name);
                self.waiting += 1;
                pass.progress = true;
                full = self.waiting >= WAITING;
                return if full { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
            }
            let held_open = is_held_open(&entry.name);
            pass.held_open |= held_open;
            match self.remove_file(current, name) {
                Ok(()) if held_open => {}
                Ok(()) => {
                    pass.progress = true;
                    self.removal.files += 1;
                    self.removal.bytes += stat.stored_bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) if held_open => {}
                Err(error) => self.leave(entry.name, "remove", error),
            }
            Ok(())
        });
        if let Err(error) = listed
            && !full
        {
            let path = self.path();
            self.removal.leave(path, "list", error);
        }
        pass
    }

    /// Removes a file. A full file system may have no room for the note that a file is gone (btrfs); it takes the content back all the same, and then has.
    fn remove_file(&self, dir: &Handle, name: &Path) -> io::Result<()> {
        let files = self.system.files;
        files.remove_file(dir, name).or_else(|error| match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) if empty_file(dir, name).is_ok() => files.remove_file(dir, name),
            _ => Err(error),
        })
    }

    /// Reports the names of files that are held open as they are now: each attempt to remove one may have changed it.
    fn leave_held_open(&mut self, current: &Handle) {
        let files = self.system.files;
        let listed = files.list(current, &mut |entry| {
            if is_held_open(&entry.name) {
                self.leave(entry.name, "remove", io::Error::other("another process still has it open"));
            }
            Ok(())
        });
        if let Err(error) = listed {
            let path = self.path();
            self.removal.leave(path, "list", error);
        }
    }

    /// Opens a directory to be emptied, which needs all its owner's rights.
    fn open(&self, dir: &Handle, name: &OsStr) -> io::Result<Handle> {
        let (files, name) = (self.system.files, Path::new(name));
        let opened = match files.open_dir_beneath(dir, name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                files.grant_owner(dir, name)?;
                files.open_dir_beneath(dir, name)?
            }
            answer => answer?,
        };
        let mode = files.stat(&opened)?.mode;
        if mode & 0o700 != 0o700 {
            // Where it is refused, removing what is inside tells.
            let _ = files.set_mode(&opened, mode | 0o700);
        }
        Ok(opened)
    }

    fn level(&self, dir: &Handle, name: &OsStr) -> io::Result<Level> {
        let stat = self.system.files.stat(dir)?;
        Ok(Level {
            name: name.to_owned(),
            device: stat.device,
            inode: stat.inode,
            waiting: Vec::new(),
            left_out: HashSet::new(),
            is_left: false,
            tries: 0,
        })
    }

    /// Reports a name in the deepest directory, and looks at it no more.
    fn leave(&mut self, name: OsString, operation: &'static str, error: io::Error) {
        let path = self.path().join(&name);
        self.removal.leave(path, operation, error);
        if let Some(level) = self.levels.last_mut() {
            level.left_out.insert(name);
            level.is_left = true;
        }
    }

    /// The path of the deepest directory.
    fn path(&self) -> PathBuf {
        let mut path = self.base_path.to_owned();
        path.extend(self.levels.iter().map(|level| &level.name));
        path
    }
}

/// Names under which NFS and FUSE keep files that were removed while they were open.
fn is_held_open(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".nfs") || name.as_bytes().starts_with(b".fuse_hidden")
}
