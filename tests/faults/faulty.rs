//! File operations that count themselves and fail where they are told to: one decorator over those of the operating system.
//!
//! What the trait promises holds here too: the system's interrupted calls are retried below it, so `EINTR` never reaches its callers from `OsFiles`; here it
//! is an errno like others.

use std::backtrace::Backtrace;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use copysim::platform::{Caches, Entry, Extent, Extents, Files, Handle, Locking, Mapping, OsFiles, Space, Stat};
use copysim::scenario::memory;

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an errno, once.
    Errno(i32),
    /// It fails with an errno, and so does every operation after it: the drive is gone.
    Gone(i32),
    /// It moves half of what was asked for, as any system may.
    Short,
    /// It moves nothing and says so: the end of a file for a read, a full file for a write.
    Nothing,
    /// It writes, and one bit of what it wrote is another one.
    Flip,
}

/// Which operation is struck, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shot {
    /// Its name in the trait.
    pub operation: &'static str,
    /// Which of its calls; 0 for each.
    pub n: u64,
    /// What becomes of it.
    pub fault: Fault,
}

/// The decorator.
pub struct Faulty {
    counts: [AtomicU64; OPERATIONS.len()],
    shot: Option<Shot>,
    /// Where the call that was struck came from.
    struck: Mutex<Option<Backtrace>>,
    /// Stands for the machine's directory in memory, so that nothing else of this machine is met there.
    memory: PathBuf,
    /// The device on which all files seem to lie, so that nobody else locks that drive.
    device: (u32, u32),
}

impl Faulty {
    /// `shot` may be of another operation than those of files: then none of them is struck.
    pub fn new(shot: Option<Shot>, memory: PathBuf, device: (u32, u32)) -> Self {
        Self { counts: [const { AtomicU64::new(0) }; OPERATIONS.len()], shot, struck: Mutex::new(None), memory, device }
    }

    /// How often each operation was called.
    pub fn counts(&self) -> [u64; OPERATIONS.len()] {
        std::array::from_fn(|index| self.counts[index].load(Ordering::SeqCst))
    }

    /// Where the call that was struck came from, once it was.
    pub fn into_struck(self) -> Option<Backtrace> {
        self.struck.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes what was read nothing or another thing. At the end of a file neither is a fault.
    fn spoil(&self, fault: Fault, data: &mut [u8]) -> usize {
        if data.is_empty() {
            *self.struck.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        flip(data);
        if fault == Fault::Nothing { 0 } else { data.len() }
    }

    /// Counts a call; what becomes of it, where it is struck.
    fn call(&self, operation: &'static str) -> io::Result<Option<Fault>> {
        let index = OPERATIONS.iter().position(|name| *name == operation).unwrap();
        let n = self.counts[index].fetch_add(1, Ordering::SeqCst) + 1;
        let Some(shot) = self.shot else { return Ok(None) };
        let mut struck = self.struck.lock().unwrap_or_else(PoisonError::into_inner);
        let is_struck = shot.operation == operation && (shot.n == n || shot.n == 0);
        match shot.fault {
            Fault::Gone(errno) if is_struck || struck.is_some() => {
                struck.get_or_insert_with(Backtrace::force_capture);
                Err(io::Error::from_raw_os_error(errno))
            }
            fault if is_struck => {
                *struck = Some(Backtrace::force_capture());
                if let Fault::Errno(errno) = fault { Err(io::Error::from_raw_os_error(errno)) } else { Ok(Some(fault)) }
            }
            _ => Ok(None),
        }
    }
}

/// Every method of the trait once, those whose answer needs a change beside those that are passed on. That none is missing the compiler says.
macro_rules! operations {
    (changed: $($changed:ident)*; $(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// The names of all operations.
        pub const OPERATIONS: [&str; [$(stringify!($changed),)* $(stringify!($name),)*].len()] = [$(stringify!($changed),)* $(stringify!($name),)*];

        impl Files for Faulty {
            $(fn $name(&self, $($argument: $kind),*) -> io::Result<$answer> {
                self.call(stringify!($name))?;
                OsFiles.$name($($argument),*)
            })*

            fn open_root(&self, path: &Path) -> io::Result<Handle> {
                self.call("open_root")?;
                // All files seem to lie on one device, but the system's do not.
                if path.file_name() == Some("machine".as_ref()) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let place = memory::place();
                let elsewhere = if path == Path::new(memory::MEMORY) {
                    Some(self.memory.clone())
                } else {
                    path.strip_prefix(&place).ok().map(|below| self.memory.join(place.file_name().unwrap_or_default()).join(below))
                };
                OsFiles.open_root(elsewhere.as_deref().unwrap_or(path))
            }

            fn read(&self, file: &Handle, buffer: &mut [u8]) -> io::Result<usize> {
                let asked = buffer.len();
                match self.call("read")? {
                    Some(Fault::Short) => OsFiles.read(file, &mut buffer[..asked.div_ceil(2)]),
                    Some(fault) => {
                        let read = OsFiles.read(file, buffer)?;
                        Ok(self.spoil(fault, &mut buffer[..read]))
                    }
                    None => OsFiles.read(file, buffer),
                }
            }

            fn read_at(&self, file: &Handle, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                // What is read at an offset is small: half of what there is, so that it is short indeed.
                match self.call("read_at")? {
                    Some(Fault::Short) => {
                        let there = OsFiles.read_at(file, buffer, offset)?;
                        OsFiles.read_at(file, &mut buffer[..there.div_ceil(2)], offset)
                    }
                    Some(fault) => {
                        let read = OsFiles.read_at(file, buffer, offset)?;
                        Ok(self.spoil(fault, &mut buffer[..read]))
                    }
                    None => OsFiles.read_at(file, buffer, offset),
                }
            }

            fn write(&self, file: &Handle, data: &[u8]) -> io::Result<usize> {
                match self.call("write")? {
                    Some(Fault::Nothing) => Ok(0),
                    Some(Fault::Short) => OsFiles.write(file, &data[..data.len().div_ceil(2)]),
                    Some(Fault::Flip) => {
                        let mut data = data.to_vec();
                        flip(&mut data);
                        OsFiles.write(file, &data)
                    }
                    _ => OsFiles.write(file, data),
                }
            }

            fn copy_range(&self, from: &Handle, to: &Handle, len: usize) -> io::Result<usize> {
                match self.call("copy_range")? {
                    Some(Fault::Nothing) => Ok(0),
                    Some(Fault::Short) => OsFiles.copy_range(from, to, 1000.min(len)),
                    _ => OsFiles.copy_range(from, to, len),
                }
            }

            fn close(&self, file: Handle) -> io::Result<()> {
                let answer = self.call("close");
                // Whatever is answered, it is closed.
                OsFiles.close(file).and(answer.map(drop))
            }

            fn stat(&self, file: &Handle) -> io::Result<Stat> {
                self.call("stat")?;
                OsFiles.stat(file).map(|stat| Stat { device: self.device, ..stat })
            }

            fn stat_at(&self, dir: &Handle, path: &Path) -> io::Result<Stat> {
                self.call("stat_at")?;
                OsFiles.stat_at(dir, path).map(|stat| Stat { device: self.device, ..stat })
            }

            fn list(&self, dir: &Handle, each: &mut dyn FnMut(Entry) -> io::Result<()>) -> io::Result<()> {
                let answer = self.call("list");
                let mut left = if answer.is_ok() { u64::MAX } else { 1 };
                // A listing that fails does so on its way.
                OsFiles.list(dir, &mut |entry| {
                    if left == 0 {
                        return Ok(());
                    }
                    left -= 1;
                    each(entry)
                })?;
                answer.map(drop)
            }

            fn space(&self, _file: &Handle) -> io::Result<Space> {
                // Small, so that it can be filled.
                self.call("space").map(|_| SPACE)
            }

            fn trim(&self, _dir: &Handle) -> io::Result<u64> {
                // Never of a drive of this machine.
                self.call("trim").map(|_| 1 << 20)
            }
        }
    };
}

operations! {
    changed: open_root read read_at write copy_range close stat stat_at list space trim;
    fn open_dir(dir: &Handle, path: &Path) -> Handle;
    fn open_dir_beneath(dir: &Handle, name: &Path) -> Handle;
    fn grant_owner(dir: &Handle, name: &Path) -> ();
    fn lock_file(dir: &Handle, name: &Path) -> (Handle, Locking);
    fn open(dir: &Handle, path: &Path) -> Handle;
    fn create(dir: &Handle, path: &Path, mode: u32) -> Handle;
    fn open_to_write_over(dir: &Handle, path: &Path) -> Handle;
    fn set_mode(file: &Handle, mode: u32) -> ();
    fn set_mtime(file: &Handle, mtime: (i64, u32)) -> ();
    fn sync(file: &Handle) -> ();
    fn sync_filesystem(file: &Handle) -> ();
    fn make_dir(dir: &Handle, path: &Path, mode: u32) -> ();
    fn remove_file(dir: &Handle, path: &Path) -> ();
    fn remove_dir(dir: &Handle, path: &Path) -> ();
    fn rename(dir: &Handle, from: &Path, to: &Path) -> ();
    fn advise_sequential(file: &Handle) -> ();
    fn advise_random(file: &Handle) -> ();
    fn map(file: &Handle, len: u64) -> Mapping;
    fn fault(mapping: &Mapping, offset: u64, len: u64) -> ();
    fn advise_needed(file: &Handle, len: u64) -> ();
    fn start_writing(file: &Handle) -> ();
    fn evict(file: &Handle) -> ();
    fn resident_bytes(file: &Handle, len: u64) -> u64;
    fn extents(file: &Handle) -> Extents;
    fn each_extent(file: &Handle, each: &mut dyn FnMut(Extent)) -> ();
}

/// The space of the file system on which all files seem to lie.
const SPACE: Space = Space { total_bytes: Some(8 << 20), free_bytes: Some(4 << 20), available_bytes: Some(4 << 20), available_inodes: Some(10_000) };

/// Another bit in the middle.
fn flip(data: &mut [u8]) {
    let middle = data.len() / 2;
    if let Some(byte) = data.get_mut(middle) {
        *byte ^= 4;
    }
}

/// Caches that are never really dropped: the machine is not the test's. `errno` is answered from the n-th call on.
pub struct FaultyCaches {
    pub calls: AtomicU64,
    pub fails: Option<(u64, i32)>,
}

impl Caches for FaultyCaches {
    fn drop_all(&self) -> io::Result<()> {
        let n = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fails {
            Some((from, errno)) if n >= from => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }
}
