//! The directories in which labs live, named after their process, and the removal of what a killed process left there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use super::system::{complain, loops_below, mounts, persist, run};

/// Directories with this name and a process in it are ours, and nothing else is.
const PREFIX: &str = "copysim-lab-";

/// When a process began, in ticks since boot; none when it ended, even if its parent has not noticed.
fn began(process: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if matches!(fields.next()?, "Z" | "X") { None } else { fields.nth(18).map(str::to_owned) }
}

/// A new directory for a lab of this process. The first call removes what killed processes left.
///
/// # Errors
/// The directory can't be made.
pub fn new_directory() -> io::Result<PathBuf> {
    static FIRST: Once = Once::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    FIRST.call_once(|| complain("left-overs", clean()));
    let process = std::process::id().to_string();
    let began = began(&process).ok_or_else(|| io::Error::other("/proc is needed"))?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().canonicalize()?.join(format!("{PREFIX}{process}-{began}-{number}"));
    std::fs::create_dir(&directory)?;
    Ok(directory)
}

/// Removes the labs of processes that no longer run.
fn clean() -> io::Result<()> {
    for entry in std::fs::read_dir(std::env::temp_dir().canonicalize()?)? {
        let entry = entry?;
        let name = entry.file_name();
        let mut parts = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).into_iter().flat_map(|rest| rest.split('-'));
        if let (Some(process), Some(ticks), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
            && began(process).is_none_or(|now| now != ticks)
        {
            complain("left-overs", remove(&entry.path()));
        }
    }
    Ok(())
}

/// Takes a lab down from outside, from the top: file systems on its loop devices, the devices, its FUSE file systems.
fn remove(directory: &Path) -> io::Result<()> {
    let devices = loops_below(directory)?;
    let (below, above): (Vec<_>, Vec<_>) = mounts()?
        .into_iter()
        .filter(|mount| mount.place.starts_with(directory) || devices.contains(&mount.source))
        .partition(|mount| !devices.contains(&mount.source));
    // Their program is dead: what waits for its answers must fail first, or nothing can be unmounted.
    below.iter().try_for_each(|mount| abort(&mount.minor))?;
    above.iter().try_for_each(|mount| unmount(&mount.place))?;
    devices.iter().try_for_each(|device| run("losetup", [Path::new("-d"), device]).map(drop))?;
    persist(|| if loops_below(directory)?.is_empty() { Ok(()) } else { Err(io::ErrorKind::ResourceBusy.into()) })?;
    below.iter().try_for_each(|mount| unmount(&mount.place))?;
    for entry in std::fs::read_dir(directory)? {
        std::fs::remove_dir(entry?.path())?;
    }
    std::fs::remove_dir(directory)
}

fn unmount(place: &Path) -> io::Result<()> {
    run("umount", [place]).or_else(|_| run("umount", [Path::new("-l"), place])).map(drop)
}

/// Aborts a FUSE connection: whatever waits for an answer fails.
fn abort(connection: &str) -> io::Result<()> {
    let control = Path::new("/sys/fs/fuse/connections");
    if std::fs::read_dir(control)?.next().is_none() {
        run("mount", ["-t", "fusectl", "none", "/sys/fs/fuse/connections"])?;
    }
    let abort = control.join(connection).join("abort");
    // Without it the connection was closed when its program died.
    if abort.exists() { std::fs::write(abort, "1") } else { Ok(()) }
}
