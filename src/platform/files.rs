//! Operations on files and directories, relative to an open directory, one system call each: what workloads are made of and what a fault layer wraps.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::lock::{self, Locking};
use super::mapping::Mapping;
use super::{beneath, linux};

/// An open file or directory.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// What the system says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub len: u64,
    /// Bytes allocated on the drive (`st_blocks` × 512): less than `len` where data are sparse, inline or compressed.
    pub stored_bytes: u64,
    /// Modification time: seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
    /// Permission bits.
    pub mode: u32,
    /// The device number, major and minor.
    pub device: (u32, u32),
    /// The inode.
    pub inode: u64,
    /// The owner.
    pub uid: u32,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without its directory.
    pub name: OsString,
    /// What it stands for; `None` where the file system does not say without a `stat`.
    pub kind: Option<Kind>,
}

/// The space of a file system in bytes and inodes. `None` is "unknown": some file systems answer with zeros or nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Size of the file system.
    pub total_bytes: Option<u64>,
    /// What holds no data, with what only root may write to.
    pub free_bytes: Option<u64>,
    /// What an ordinary user may still write.
    pub available_bytes: Option<u64>,
    /// Inodes that may still be made; unknown where the file system has no fixed number.
    pub available_inodes: Option<u64>,
}

/// Operations on files and directories. Interrupted calls are retried, except `close`; everything else, short counts included, is passed on.
///
/// Paths are relative to the directory given first. A symbolic link as the last component is never followed.
#[expect(clippy::missing_errors_doc, reason = "each passes on what the system answered")]
pub trait Files: Send + Sync {
    /// Opens a directory by a path of the user's, following symbolic links.
    fn open_root(&self, path: &Path) -> io::Result<Handle>;
    /// Opens a directory below another.
    fn open_dir(&self, dir: &Handle, path: &Path) -> io::Result<Handle>;
    /// Opens a directory by its name in another, only when it lies on the same mount: `EXDEV` where another file system is mounted there, `ELOOP` or `ENOTDIR`
    /// where no directory is.
    fn open_dir_beneath(&self, dir: &Handle, name: &Path) -> io::Result<Handle>;
    /// Gives the owner of a directory all rights on it, though it cannot be opened for lack of them.
    fn grant_owner(&self, dir: &Handle, name: &Path) -> io::Result<()>;
    /// Opens a file, for writing where the system allows it, and tries to take its lock. A FIFO does not hang.
    fn lock_file(&self, dir: &Handle, name: &Path) -> io::Result<(Handle, Locking)>;
    /// Opens a file for reading.
    fn open(&self, dir: &Handle, path: &Path) -> io::Result<Handle>;
    /// Creates a file that must not exist yet, for writing.
    fn create(&self, dir: &Handle, path: &Path, mode: u32) -> io::Result<Handle>;
    /// Opens a file that is there for writing over what it holds, from its beginning.
    fn open_to_write_over(&self, dir: &Handle, path: &Path) -> io::Result<Handle>;
    /// Reads at the current position; 0 is the end.
    fn read(&self, file: &Handle, buffer: &mut [u8]) -> io::Result<usize>;
    /// Reads at an offset; 0 is the end.
    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at the current position; may write less than asked.
    fn write(&self, file: &Handle, data: &[u8]) -> io::Result<usize>;
    /// Lets the system copy between two files at their current positions (`copy_file_range`); 0 is the end.
    fn copy_range(&self, from: &Handle, to: &Handle, len: usize) -> io::Result<usize>;
    /// Closes; the last place where a file system may report that data were lost.
    fn close(&self, file: Handle) -> io::Result<()>;
    /// Looks at an open file.
    fn stat(&self, file: &Handle) -> io::Result<Stat>;
    /// Looks at a name.
    fn stat_at(&self, dir: &Handle, path: &Path) -> io::Result<Stat>;
    /// Sets the permission bits.
    fn set_mode(&self, file: &Handle, mode: u32) -> io::Result<()>;
    /// Sets the modification time; the access time becomes the same.
    fn set_mtime(&self, file: &Handle, mtime: (i64, u32)) -> io::Result<()>;
    /// Flushes a file or directory (`fsync`).
    fn sync(&self, file: &Handle) -> io::Result<()>;
    /// Flushes the whole file system on which a file lies (`syncfs`).
    fn sync_filesystem(&self, file: &Handle) -> io::Result<()>;
    /// Makes a directory.
    fn make_dir(&self, dir: &Handle, path: &Path, mode: u32) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, dir: &Handle, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Handle, path: &Path) -> io::Result<()>;
    /// Renames within a directory, replacing what has the new name.
    fn rename(&self, dir: &Handle, from: &Path, to: &Path) -> io::Result<()>;
    /// Lists a directory in the order in which the file system hands it out, without `.` and `..`.
    fn list(&self, dir: &Handle, each: &mut dyn FnMut(Entry) -> io::Result<()>) -> io::Result<()>;
    /// Tells the system that a file will be read from start to end.
    fn advise_sequential(&self, file: &Handle) -> io::Result<()>;
    /// Tells the system that a file will be read at random places: it then reads what it is asked for and nothing ahead.
    fn advise_random(&self, file: &Handle) -> io::Result<()>;
    /// Maps a file of this length, which is not 0, for reading at random places.
    fn map(&self, file: &Handle, len: u64) -> io::Result<Mapping>;
    /// Faults a part of a mapping in; the system reads it as one.
    fn fault(&self, mapping: &Mapping, offset: u64, len: u64) -> io::Result<()>;
    /// Tells the system that the beginning of a file is about to be read: it starts to, and does not wait for it.
    fn advise_needed(&self, file: &Handle, len: u64) -> io::Result<()>;
    /// Lets the system begin to write a file's data to the drive, and does not wait for it (`sync_file_range`).
    fn start_writing(&self, file: &Handle) -> io::Result<()>;
    /// Asks the system to drop the clean pages of a file from its cache.
    fn evict(&self, file: &Handle) -> io::Result<()>;
    /// How many bytes of a file are in the page cache.
    fn resident_bytes(&self, file: &Handle, len: u64) -> io::Result<u64>;
    /// Where a file's data lie (FIEMAP).
    fn extents(&self, file: &Handle) -> io::Result<linux::Extents>;
    /// Where a file's data lie, piece by piece (FIEMAP).
    fn each_extent(&self, file: &Handle, each: &mut dyn FnMut(linux::Extent)) -> io::Result<()>;

    /// Tells the device of all blocks of a directory's file system that they are unused, where it may; returns how many bytes that were.
    ///
    /// # Errors
    /// What the system answered: no right, or a file system or device that can't.
    fn trim(&self, dir: &Handle) -> io::Result<u64>;
    /// The space of the file system on which a file lies.
    fn space(&self, file: &Handle) -> io::Result<Space>;
}

/// The file operations of the operating system.
pub struct OsFiles;

/// A file read from start to end through [`Files`].
pub struct Reader<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The file.
    pub file: &'a Handle,
    /// Where the next read begins.
    pub offset: u64,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.files.read_at(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// A file written from start to end through [`Files`].
pub struct Writer<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The file.
    pub file: &'a Handle,
}

impl io::Write for Writer<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.files.write(self.file, data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Files for OsFiles {
    fn open_root(&self, path: &Path) -> io::Result<Handle> {
        Ok(Handle(retry_on_intr(|| rustix::fs::open(path, DIRECTORY, Mode::empty()))?))
    }

    fn open_dir(&self, dir: &Handle, path: &Path) -> io::Result<Handle> {
        Ok(Handle(retry_on_intr(|| rustix::fs::openat(dir, path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()))?))
    }

    fn open_dir_beneath(&self, dir: &Handle, name: &Path) -> io::Result<Handle> {
        beneath::open_dir_beneath(dir, name)
    }

    fn grant_owner(&self, dir: &Handle, name: &Path) -> io::Result<()> {
        beneath::grant_owner(dir, name)
    }

    fn lock_file(&self, dir: &Handle, name: &Path) -> io::Result<(Handle, Locking)> {
        lock::lock_file(dir, name)
    }

    fn open(&self, dir: &Handle, path: &Path) -> io::Result<Handle> {
        // NONBLOCK: opening a FIFO that someone put there must not hang; it has no effect on regular files.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(Handle(retry_on_intr(|| rustix::fs::openat(dir, path, flags, Mode::empty()))?))
    }

    fn create(&self, dir: &Handle, path: &Path, mode: u32) -> io::Result<Handle> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Handle(retry_on_intr(|| rustix::fs::openat(dir, path, flags, Mode::from_raw_mode(mode)))?))
    }

    fn open_to_write_over(&self, dir: &Handle, path: &Path) -> io::Result<Handle> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = retry_on_intr(|| rustix::fs::openat(dir, path, flags, Mode::empty()))?;
        beneath::must_be_ours_alone(&file)?;
        Ok(Handle(file))
    }

    fn read(&self, file: &Handle, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::read(file, &mut *buffer))?)
    }

    fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset))?)
    }

    fn write(&self, file: &Handle, data: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::write(file, data))?)
    }

    fn copy_range(&self, from: &Handle, to: &Handle, len: usize) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::fs::copy_file_range(from, None, to, None, len))?)
    }

    fn close(&self, file: Handle) -> io::Result<()> {
        linux::close(file.0)
    }

    fn stat(&self, file: &Handle) -> io::Result<Stat> {
        Ok(convert(&rustix::fs::fstat(file)?))
    }

    fn stat_at(&self, dir: &Handle, path: &Path) -> io::Result<Stat> {
        Ok(convert(&retry_on_intr(|| rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW))?))
    }

    fn set_mode(&self, file: &Handle, mode: u32) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fchmod(file, Mode::from_raw_mode(mode)))?)
    }

    fn set_mtime(&self, file: &Handle, (seconds, nanoseconds): (i64, u32)) -> io::Result<()> {
        let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        Ok(retry_on_intr(|| rustix::fs::futimens(file, &times))?)
    }

    fn sync(&self, file: &Handle) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(file))?)
    }

    fn sync_filesystem(&self, file: &Handle) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::syncfs(file))?)
    }

    fn make_dir(&self, dir: &Handle, path: &Path, mode: u32) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::mkdirat(dir, path, Mode::from_raw_mode(mode)))?)
    }

    fn remove_file(&self, dir: &Handle, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::unlinkat(dir, path, AtFlags::empty()))?)
    }

    fn remove_dir(&self, dir: &Handle, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::unlinkat(dir, path, AtFlags::REMOVEDIR))?)
    }

    fn rename(&self, dir: &Handle, from: &Path, to: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::renameat(dir, from, dir, to))?)
    }

    fn list(&self, dir: &Handle, each: &mut dyn FnMut(Entry) -> io::Result<()>) -> io::Result<()> {
        for entry in retry_on_intr(|| rustix::fs::Dir::read_from(dir))? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            each(Entry { name: OsString::from_vec(name.to_vec()), kind: kind(entry.file_type()) })?;
        }
        Ok(())
    }

    fn advise_sequential(&self, file: &Handle) -> io::Result<()> {
        Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential)?)
    }

    fn advise_random(&self, file: &Handle) -> io::Result<()> {
        Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random)?)
    }

    fn map(&self, file: &Handle, len: u64) -> io::Result<Mapping> {
        Mapping::new(file.as_fd(), len)
    }

    fn fault(&self, mapping: &Mapping, offset: u64, len: u64) -> io::Result<()> {
        mapping.fault(offset, len)
    }

    fn advise_needed(&self, file: &Handle, len: u64) -> io::Result<()> {
        // A length of nothing would mean all of the file.
        let Some(len) = std::num::NonZero::new(len) else { return Ok(()) };
        Ok(rustix::fs::fadvise(file, 0, Some(len), rustix::fs::Advice::WillNeed)?)
    }

    fn start_writing(&self, file: &Handle) -> io::Result<()> {
        linux::start_writing(file.as_fd())
    }

    fn evict(&self, file: &Handle) -> io::Result<()> {
        Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    fn resident_bytes(&self, file: &Handle, len: u64) -> io::Result<u64> {
        linux::resident_bytes(file.as_fd(), len)
    }

    fn extents(&self, file: &Handle) -> io::Result<linux::Extents> {
        linux::extents(file.as_fd())
    }

    fn each_extent(&self, file: &Handle, each: &mut dyn FnMut(linux::Extent)) -> io::Result<()> {
        linux::each_extent(file.as_fd(), each)
    }

    fn trim(&self, dir: &Handle) -> io::Result<u64> {
        linux::trim(dir.as_fd())
    }

    fn space(&self, file: &Handle) -> io::Result<Space> {
        let answer = rustix::fs::fstatvfs(file)?;
        Ok(Space::of(answer.f_frsize, [answer.f_blocks, answer.f_bfree, answer.f_bavail], [answer.f_files, answer.f_favail]))
    }
}

impl Space {
    /// What an answer of `statvfs` says: the size of a block, all blocks, those free and those available, all inodes and those available. Some file systems know none of
    /// it, answer with numbers that are negative where they come from, or with the largest that there are.
    fn of(block: u64, [blocks, free, available]: [u64; 3], [inodes, available_inodes]: [u64; 2]) -> Self {
        /// More than any file system holds that answers in earnest: an exbibyte.
        const LARGEST: u64 = 1 << 60;
        let total_bytes = blocks.checked_mul(block).filter(|&bytes| bytes > 0 && bytes <= LARGEST);
        // More available than there is: the answer is nonsense as a whole.
        let of_all = |blocks: u64| blocks.checked_mul(block).filter(|&bytes| total_bytes.is_some_and(|total| bytes <= total));
        let (free_bytes, available_bytes) = (of_all(free), of_all(available));
        let available_inodes = Some(available_inodes).filter(|&available| inodes > 0 && available <= inodes);
        Self { total_bytes, free_bytes, available_bytes, available_inodes }
    }
}

fn kind(file_type: FileType) -> Option<Kind> {
    match file_type {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Directory),
        FileType::Symlink => Some(Kind::Symlink),
        FileType::Unknown => None,
        _ => Some(Kind::Other),
    }
}

fn convert(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        kind: kind(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Other),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        stored_bytes: u64::try_from(stat.st_blocks).unwrap_or(0) * 512,
        mtime: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        mode: stat.st_mode & 0o7777,
        device: (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)),
        inode: stat.st_ino,
        uid: stat.st_uid,
    }
}

/// Whether an answer means "this file system cannot do that" rather than "it failed".
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL, Errno::NOTTY, Errno::PERM];
    error.raw_os_error().is_some_and(|code| unsupported.iter().any(|errno| errno.raw_os_error() == code))
}

/// Lets "this file system cannot do that" pass: one that can't flush is not one that failed to.
///
/// # Errors
/// Every other error.
pub fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    if is_unsupported(&error) { Ok(()) } else { Err(error) }
}

/// A file in memory that nobody else sees and that is gone when it is closed, even by a kill.
///
/// # Errors
/// What the system answered.
pub fn memory_file() -> io::Result<Handle> {
    Ok(Handle(rustix::fs::memfd_create("copysim", rustix::fs::MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_d05_a_file_system_that_knows_nothing_of_its_space_says_so() {
        // As ramfs answers, and NFS or FUSE where nobody thought of it.
        assert_eq!(Space::of(4096, [0, 0, 0], [0, 0]), Space::default());
        assert_eq!(Space::of(0, [1000, 1000, 1000], [5, 5]), Space { available_inodes: Some(5), ..Space::default() });
        // Full is not unknown, and what root keeps for itself is not full.
        let full = Space { total_bytes: Some(40_960), free_bytes: Some(4096), available_bytes: Some(0), available_inodes: Some(0) };
        assert_eq!(Space::of(4096, [10, 1, 0], [7, 0]), full);
    }

    #[test]
    fn field_d06_numbers_that_no_drive_has_are_unknown() {
        let negative = u64::MAX - 5;
        let known = Space { total_bytes: Some(40_960), free_bytes: None, available_bytes: None, available_inodes: Some(5) };
        assert_eq!(Space::of(4096, [10, negative, negative], [7, 5]), known);
        assert_eq!(Space::of(4096, [10, 11, 11], [7, 5]), known);
        assert_eq!(Space::of(4096, [negative, negative, negative], [negative, 7]), Space { available_inodes: Some(7), ..Space::default() });
        for blocks in [u64::MAX / 1024, u64::MAX / 4096, (1 << 48) + 1] {
            assert_eq!(Space::of(4096, [blocks, blocks, blocks], [7, 8]), Space::default(), "{blocks}");
        }
        let largest = Space { total_bytes: Some(1 << 60), free_bytes: Some(8192), available_bytes: Some(4096), available_inodes: None };
        assert_eq!(Space::of(4096, [1 << 48, 2, 1], [0, 0]), largest);
    }
}
