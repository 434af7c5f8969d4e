//! The caches of this machine as a whole: dropping them needs a right that ordinary users do not have.

use std::io;
use std::io::Write;

/// Control of the machine's caches.
pub trait Caches: Send + Sync {
    /// Drops clean pages, directory entries and inodes of the whole machine. Dirty pages stay: flush first.
    ///
    /// # Errors
    /// `PermissionDenied` without the right; whatever else the system answers.
    fn drop_all(&self) -> io::Result<()>;
}

/// The caches of the operating system.
pub struct OsCaches;

impl Caches for OsCaches {
    #[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
    fn drop_all(&self) -> io::Result<()> {
        // Write-only: opening it for reading as well is refused even to root.
        std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches")?.write_all(b"3")
    }
}
