//! Locks that the system releases when their holder dies: one on a file, one on a name that the whole machine shares.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::Handle;

/// What became of the wish to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// The lock is held until the handle is closed or the process dies.
    Taken,
    /// Another open file holds it.
    Busy,
    /// The file system has no locks.
    Unsupported,
}

/// `Files::lock_file` of the operating system.
pub(super) fn lock_file(dir: &Handle, name: &Path) -> io::Result<(Handle, Locking)> {
    // Network file systems grant an exclusive lock only to files that are open for writing; a read-only medium is locked all the same.
    let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let open = |access| retry_on_intr(|| rustix::fs::openat(dir, name, flags | access, Mode::empty()));
    let fd = match open(OFlags::RDWR) {
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => open(OFlags::RDONLY)?,
        answer => answer?,
    };
    let locking = match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Locking::Taken,
        Err(Errno::WOULDBLOCK) => Locking::Busy,
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK | Errno::BADF) => Locking::Unsupported,
        Err(error) => return Err(error.into()),
    };
    Ok((Handle::new(fd), locking))
}

/// A name that no other process of this machine can hold at the same time (more exactly: of this network name space, which containers have of their own).
#[derive(Debug)]
pub struct NameLock {
    _lock: UnixDatagram,
    _holder: Option<UnixDatagram>,
}

/// Takes a name for this process, across users and without any file: an abstract socket. `None` when it is held already.
/// A second socket, `NAME-pid-N`, tells others (in `/proc/net/unix`) who holds it.
///
/// # Errors
/// What the system answered.
pub fn lock_name(name: &str) -> io::Result<Option<NameLock>> {
    let bind = |name: &str| UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?);
    match bind(name) {
        // Without the second socket the lock is as good; only the number of its holder is unknown.
        Ok(lock) => Ok(Some(NameLock { _lock: lock, _holder: bind(&format!("{name}-pid-{}", std::process::id())).ok() })),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}
