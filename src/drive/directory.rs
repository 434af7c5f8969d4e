//! The directory that the user named: opened, or refused with a sentence that says what it is instead.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{marker, workspace};
use crate::path_text::path_text;
use crate::platform::{Files, Handle, Host, Kind};
use crate::{Context, Error, Result, Side};

/// A path as it is shown to a person: in quotes, with escapes, where it holds what could not be seen.
pub(super) fn shown(path: &Path) -> String {
    let text = path_text(path);
    let is_plain = !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control);
    if is_plain { text } else { format!("{text:?}") }
}

/// Opens a directory of the user's and resolves its path.
pub(super) fn open(files: &dyn Files, directory: &Path) -> Result<(Handle, PathBuf)> {
    if directory.as_os_str().is_empty() {
        return Err(Error::Refused("the directory's name is empty: is a variable in the command not set?".to_owned()));
    }
    let absolute = std::path::absolute(directory).during("resolve", Side::Host, directory)?;
    match files.open_root(directory) {
        Ok(handle) => Ok((handle, Host::real().resolve(&absolute).unwrap_or(absolute))),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT) => Err(Error::Refused(format!("{} does not exist: name a directory that does", shown(directory)))),
            Some(libc::ENOTDIR) => Err(Error::Refused(format!("{} is {}: name a directory", shown(directory), what_else(files, &absolute)))),
            _ => Err(error).during("open", Side::Host, directory),
        },
    }
}

fn what_else(files: &dyn Files, path: &Path) -> &'static str {
    let resolved = Host::real().resolve(path);
    let kind = resolved.as_deref().and_then(|path| {
        let parent = files.open_root(path.parent()?).ok()?;
        files.stat_at(&parent, Path::new(path.file_name()?)).ok()
    });
    match kind.map(|stat| stat.kind) {
        Some(Kind::File) => "a file",
        Some(Kind::Other) => "a device, pipe or socket",
        _ => "no directory",
    }
}

/// Refuses a directory that lies in a workspace, by its path and by the markers in all directories above it.
pub(super) fn refuse_inside_workspace(files: &dyn Files, directory: &Handle, path: &Path) -> Result<()> {
    let refused = || Error::Refused(format!("{} lies in a workspace of copysim's: name a directory outside", shown(path)));
    if path.iter().any(|part| part == OsStr::new(workspace::NAME)) {
        return Err(refused());
    }
    let mut below = files.stat(directory).during("look at", Side::Host, path)?;
    let mut level = files.open_dir(directory, Path::new(".")).during("open", Side::Host, path)?;
    loop {
        if has_marker(files, &level) {
            return Err(refused());
        }
        // A directory above that cannot be read ends the look: its name was seen in the path.
        let Ok(above) = files.open_dir(&level, Path::new("..")) else { return Ok(()) };
        let stat = files.stat(&above).during("look at", Side::Host, path)?;
        if (stat.device, stat.inode) == (below.device, below.inode) {
            return Ok(());
        }
        (below, level) = (stat, above);
    }
}

fn has_marker(files: &dyn Files, directory: &Handle) -> bool {
    let Ok(file) = files.open(directory, Path::new(marker::NAME)) else { return false };
    let is_file = files.stat(&file).is_ok_and(|stat| stat.kind == Kind::File);
    let mut content = [0; marker::MAX_BYTES];
    let read = if is_file { files.read_at(&file, &mut content, 0).unwrap_or(0) } else { 0 };
    matches!(marker::judge(&content[..read]), marker::Marker::Valid | marker::Marker::Newer(_))
}
