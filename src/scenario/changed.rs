//! Whether somebody wrote to the source while it was copied: such a copy matches nothing, and no drive is to blame.

use std::io;

use super::stage::Staged;
use crate::corpus::manifest::Listed;
use crate::corpus::times::Times;
use crate::error::{Context, Result, Side};
use crate::platform::{Files, Kind};
use crate::progress::Cancel;

/// Files of the source, among those that are `asked` for, that somebody changed since they were staged. Another length or time is only a suspicion, which some
/// network file systems raise without a reason: the bytes decide.
///
/// # Errors
/// `Interrupted`, or when the manifest can't be read.
pub fn changed(files: &dyn Files, staged: &Staged, asked: &dyn Fn(&str) -> bool, cancel: &Cancel) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for listed in staged.manifest.entries(files) {
        cancel.check()?;
        let listed = listed.during("read the manifest of", Side::Source, &staged.path)?;
        // What can't be read is the drive's affair, whatever its time says.
        if asked(&listed.meta.path)
            && is_suspect(files, staged, &listed)
            && !has_its_bytes(files, staged, &listed).unwrap_or_else(|error| !is_gone(&error))
        {
            changed.push(listed.meta.path);
        }
    }
    Ok(changed)
}

fn is_suspect(files: &dyn Files, staged: &Staged, listed: &Listed) -> bool {
    match files.stat_at(&staged.tree, listed.meta.path.as_ref()) {
        Ok(stat) => {
            let mut times = Times::default();
            times.add(stat.mtime.0, listed.meta.mtime);
            stat.kind != Kind::File || stat.len != listed.meta.len || !times.agree()
        }
        // What is gone was taken away; what can't be looked at is the drive's affair.
        Err(error) => is_gone(&error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn has_its_bytes(files: &dyn Files, staged: &Staged, listed: &Listed) -> io::Result<bool> {
    if files.stat_at(&staged.tree, listed.meta.path.as_ref())?.kind != Kind::File {
        return Ok(false);
    }
    let file = files.open(&staged.tree, listed.meta.path.as_ref())?;
    // Its drive shall answer, not what this machine read before.
    let _ = files.evict(&file);
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match files.read(&file, &mut buffer)? {
            0 => return Ok(hasher.finalize() == listed.digest),
            read => hasher.update(&buffer[..read]),
        };
    }
}

/// The failure that follows, if any were.
///
/// # Errors
/// With the first of the files.
pub fn fail(staged: &Staged, changed: &[String]) -> Result<()> {
    let Some(first) = changed.first() else { return Ok(()) };
    let others = match changed.len().saturating_sub(1) {
        0 => String::new(),
        others => format!(", and so were {} more", crate::units::files(others as u64)),
    };
    let error = io::Error::other(format!(
        "it was changed while it was copied{others}: nothing else may write there meanwhile. This says nothing about a drive"
    ));
    Err(error).during("make a copy of", Side::Source, staged.path.join(first))
}
