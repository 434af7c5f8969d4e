//! A source in memory: a directory of this process's own in the machine's memory file system, removed afterwards, and at the next start of this user's after a kill.

use std::io;
use std::path::{Path, PathBuf};

use crate::drive::{Removal, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Handle, Kind, System};

/// Where a machine keeps files in memory.
pub const MEMORY: &str = "/dev/shm";

fn of_user() -> String {
    format!("copysim-{}-", rustix::process::geteuid().as_raw())
}

/// The directory of this process's.
#[must_use]
pub fn place() -> PathBuf {
    Path::new(MEMORY).join(format!("{}{}", of_user(), std::process::id()))
}

/// Removes what processes of this user that were killed have left there; what a process still uses stays.
///
/// # Errors
/// As `remove`.
pub fn remove_left_over(system: System<'_>) -> Result<Removal> {
    let mut names = Vec::new();
    let Ok(parent) = system.files.open_root(Path::new(MEMORY)) else { return Ok(Removal::default()) };
    // A list that breaks off is a shorter one: the next start sees the rest.
    let _ = system.files.list(&parent, &mut |entry| {
        names.extend(entry.name.into_string());
        Ok(())
    });
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut all = Removal::default();
    for name in names.iter().filter(|name| name.strip_prefix(&of_user()).is_some_and(is_number)) {
        all.add(remove(system, &Path::new(MEMORY).join(name))?);
    }
    Ok(all)
}

/// Makes the directory, readable by this user only, or takes it when it is this user's already.
///
/// # Errors
/// `Refused` when something else has its name; what the system answered.
pub fn create(system: System<'_>, path: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::Internal(format!("{} has no parent", path.display())));
    };
    let parent_dir = system.files.open_root(parent).during("open", Side::Source, parent)?;
    match system.files.make_dir(&parent_dir, Path::new(name), 0o700) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).during("make directory", Side::Source, path),
    }
    let stat = system.files.stat_at(&parent_dir, Path::new(name)).during("look at", Side::Source, path)?;
    if stat.kind == Kind::Directory && stat.uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(Error::Refused(format!("{} is not a directory of yours: remove it, or name a source with --source DIR", path.display())))
}

/// Removes the directory with the workspace in it, if it is there and nobody uses it. Anything else that lies in it is left.
///
/// # Errors
/// What the system answered; a workspace in use is no error. What of it could not be removed is told in the answer.
pub fn remove(system: System<'_>, path: &Path) -> Result<Removal> {
    let mut removal = Removal::default();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(removal) };
    let Ok(parent_dir) = system.files.open_root(parent) else { return Ok(removal) };
    match system.files.stat_at(&parent_dir, Path::new(name)) {
        Ok(stat) if stat.kind == Kind::Directory && stat.uid == rustix::process::geteuid().as_raw() => {}
        _ => return Ok(removal),
    }
    match Workspace::open_existing(system, path) {
        Ok(Some(workspace)) => removal = workspace.clean()?.removal,
        Ok(None) => remove_unfinished(system, &parent_dir, Path::new(name)),
        // Another copysim of this user works there.
        Err(Error::Refused(_)) => return Ok(removal),
        Err(error) => return Err(error),
    }
    match system.files.remove_dir(&parent_dir, Path::new(name)) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error).during("remove", Side::Source, path),
        _ => Ok(removal),
    }
}

/// Removes what a process left that ended while it made a workspace: a marker without content. Where it is anything else, it stays.
fn remove_unfinished(system: System<'_>, parent: &Handle, name: &Path) {
    let workspace = name.join(crate::drive::workspace::NAME);
    let marker = workspace.join("MARKER");
    if system.files.stat_at(parent, &marker).is_ok_and(|stat| stat.kind == Kind::File && stat.len == 0) {
        let _ = system.files.remove_file(parent, &marker).and_then(|()| system.files.remove_dir(parent, &workspace));
    }
}
