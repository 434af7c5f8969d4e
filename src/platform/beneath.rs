//! Opening directories that must not lead out of where they are: through no link, into no other mount, not even a bind mount of the same file system.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};

use super::Handle;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// `Files::open_dir_beneath` of the operating system.
pub(super) fn open_dir_beneath(dir: &Handle, name: &Path) -> io::Result<Handle> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match retry_on_intr(|| rustix::fs::openat2(dir, name, DIRECTORY | OFlags::RDONLY, Mode::empty(), resolve)) {
        Ok(fd) => Ok(Handle::new(fd)),
        // Before Linux 5.6 and in some containers: the device numbers tell all mounts but bind mounts.
        Err(Errno::NOSYS | Errno::PERM) => {
            let fd = retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY | OFlags::RDONLY, Mode::empty()))?;
            let same = rustix::fs::fstat(&fd)?.st_dev == rustix::fs::fstat(dir)?.st_dev;
            if same { Ok(Handle::new(fd)) } else { Err(Errno::XDEV.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

/// `Files::grant_owner` of the operating system.
pub(super) fn grant_owner(dir: &Handle, name: &Path) -> io::Result<()> {
    let fd = retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY | OFlags::PATH, Mode::empty()))?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) | Mode::RWXU;
    // The only name of a directory that is held but not open, and that cannot be swapped meanwhile.
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)?)
}

/// Takes the content of a file, so that a file system without room for anything gets some. A file that has another name too stays as it is: that name may be a user's.
///
/// # Errors
/// What the system answered; `InvalidInput` for what is no file, or has another name.
pub fn empty_file(dir: &Handle, name: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))?;
    must_be_ours_alone(&file)?;
    Ok(retry_on_intr(|| rustix::fs::ftruncate(&file, 0))?)
}

/// Refuses to write into what is no file, or into one that has another name: somebody put it there, and it may be the user's.
pub(super) fn must_be_ours_alone(file: impl std::os::fd::AsFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(file)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile || stat.st_nlink > 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(())
}
