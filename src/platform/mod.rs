//! Everything that differs between systems, behind traits with test doubles; the only room with `unsafe`, `cfg(target_os)`, clocks and `std::fs`.

mod beneath;
mod caches;
mod children;
mod clock;
mod files;
mod host;
mod kernel_log;
mod linux;
mod lock;
mod mapping;
mod memory_group;
mod programs;
mod spawn;
mod split;
mod tracefs;

pub use beneath::empty_file;
pub use caches::{Caches, OsCaches};
pub use children::{End, Process, Spent, Start, Started, Told};
pub use clock::{Clock, FakeClock, OsClock};
pub use files::{Entry, Files, Handle, Kind, OsFiles, Reader, Space, Stat, Writer, ignore_unsupported, is_unsupported, memory_file};
pub use host::{Fact, Host, append, read_optional, read_text, umask, write_atomically};
pub use kernel_log::KernelLog;
pub use linux::{Extent, Extents, Usage, allow_many_open_files, die_with_parent, is_ignored, leave_to_other_threads, storage_read_by_thread};
pub use lock::{Locking, NameLock, lock_name};
pub use mapping::Mapping;
pub use memory_group::{MemoryGroup, remove_memory_groups};
pub use split::{Ended, Farewell, Split, Worker, split};
pub use tracefs::{BlockEvent, BlockEvents, BlockFormat, BlockPoint, remove_left_over};

/// The system that work is done on: one value carries every way out of the program, so that a test can replace any of them.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// Operations on files and directories.
    pub files: &'a dyn Files,
    /// Time and waiting.
    pub clock: &'a dyn Clock,
    /// The caches of this machine.
    pub caches: &'a dyn Caches,
}

/// The real system.
pub const OS: System<'static> = System { files: &OsFiles, clock: &OsClock, caches: &OsCaches };
