//! Linux calls that no safe library offers: early writing, residency, extents, resource usage, an honest `close`.
#![expect(unsafe_code, reason = "each block calls the kernel with buffers owned here")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Closes a descriptor and says what the system answered, which dropping it would not. An interrupted close has closed.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    let raw = fd.into_raw_fd();
    // SAFETY: `raw` was owned by `fd`, which gave it up; nobody else can close it.
    if unsafe { libc::close(raw) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

/// Submits all dirty pages of a file for writing.
pub fn start_writing(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no pointers; the descriptor is open as long as it is borrowed.
    match unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of `cachestat`, the same on every architecture; older kernels answer ENOSYS.
const SYS_CACHESTAT: libc::c_long = 451;

/// The `cachestat` structures of the kernel's `linux/mman.h` (since 6.5).
#[repr(C)]
struct CachestatRange {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of a file that are in the page cache, by `cachestat`, or by `mincore` on older kernels; `PermissionDenied` where the kernel does not tell this user.
pub fn resident_bytes(fd: BorrowedFd<'_>, len: u64) -> io::Result<u64> {
    if len == 0 {
        return Ok(0);
    }
    let page = rustix::param::page_size() as u64;
    let range = CachestatRange { off: 0, len: 0 };
    let mut answer = Cachestat::default();
    // SAFETY: both pointers are to live structures of the layout that the kernel expects; flags are zero.
    let done = unsafe { libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut answer, 0) };
    if done == 0 {
        return Ok((answer.cache * page).min(len));
    }
    match io::Error::last_os_error() {
        // Of a file that is another's newer kernels do not tell.
        error if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ if may_ask_mincore(fd) => resident_by_mincore(fd, len, page),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Whether `mincore` tells the truth: to those who neither own a file nor may write it, it says that all of it is in memory.
fn may_ask_mincore(fd: BorrowedFd<'_>) -> bool {
    let user = rustix::process::geteuid();
    let owns = || rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_uid == user.as_raw());
    user.is_root() || owns() || rustix::fs::access(format!("/proc/self/fd/{}", fd.as_raw_fd()), rustix::fs::Access::WRITE_OK).is_ok()
}

fn resident_by_mincore(fd: BorrowedFd<'_>, len: u64, page: u64) -> io::Result<u64> {
    /// Mapped at a time, so that the answer's vector stays small.
    const WINDOW: u64 = 1 << 30;
    let mut resident = 0;
    let mut offset = 0;
    while offset < len {
        let size = usize::try_from((len - offset).min(WINDOW)).unwrap_or(usize::MAX);
        let mut pages = vec![0_u8; size.div_ceil(usize::try_from(page).unwrap_or(4096))];
        // SAFETY: a fresh shared read mapping of a file; it is never read through, only asked about, and unmapped below.
        let answered = unsafe {
            let start = libc::off_t::try_from(offset).map_err(io::Error::other)?;
            let address = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, fd.as_raw_fd(), start);
            if address == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let answered = libc::mincore(address, size, pages.as_mut_ptr());
            let error = io::Error::last_os_error();
            libc::munmap(address, size);
            if answered == 0 { Ok(()) } else { Err(error) }
        };
        answered?;
        resident += pages.iter().filter(|&&state| state & 1 == 1).count() as u64 * page;
        offset += size as u64;
    }
    Ok(resident.min(len))
}

/// Where a file's data lie, summed over its extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extents {
    /// Number of extents.
    pub count: u64,
    /// Bytes in extents that other files share (reflinked, deduplicated).
    pub shared_bytes: u64,
    /// Bytes in all extents.
    pub mapped_bytes: u64,
    /// Bytes that are allocated but not written.
    pub unwritten_bytes: u64,
    /// Bytes stored compressed or otherwise encoded.
    pub encoded_bytes: u64,
    /// Bytes in extents of which the file system says where they lie.
    pub located_bytes: u64,
    /// The sum over these of length times middle, in bytes squared: by it places of several files can be averaged.
    pub moment: u128,
}

impl Extents {
    /// The mean place of the data, bytes from the beginning of the file system's address space (of the device, where that is one); `None` where it does not say.
    #[must_use]
    pub fn mean_place_bytes(&self) -> Option<u64> {
        u64::try_from(self.moment.checked_div(u128::from(self.located_bytes))?).ok()
    }
}

impl std::ops::AddAssign for Extents {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.shared_bytes += other.shared_bytes;
        self.mapped_bytes += other.mapped_bytes;
        self.unwritten_bytes += other.unwritten_bytes;
        self.encoded_bytes += other.encoded_bytes;
        self.located_bytes += other.located_bytes;
        self.moment += other.moment;
    }
}

const FIEMAP_EXTENTS: usize = 128;
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 0x1;
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;
const FIEMAP_EXTENT_ENCODED: u32 = 0x8;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
const FIEMAP_EXTENT_SHARED: u32 = 0x2000;
/// `_IOWR('f', 11, struct fiemap)` of the kernel's `linux/fs.h`; the structure's head is 32 bytes.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;

#[repr(C)]
#[derive(Clone, Copy)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; FIEMAP_EXTENTS],
}

/// One piece of a file: where it lies in the file and where on the device of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file it begins.
    pub logical: u64,
    /// Where on the file system's device it begins; what a file system that spans several devices means by it is its own affair (btrfs).
    pub physical: u64,
    /// Bytes.
    pub length: u64,
    flags: u32,
}

/// Asks the file system where a file's data lie, summed; the file is flushed first, so that delayed allocation has happened.
pub fn extents(fd: BorrowedFd<'_>) -> io::Result<Extents> {
    let mut sum = Extents::default();
    each_of_fiemap(fd, &mut |extent| {
        let share = |flag: u32| if extent.flags & flag == 0 { 0 } else { extent.length };
        sum.count += 1;
        sum.mapped_bytes += extent.length;
        sum.shared_bytes += share(FIEMAP_EXTENT_SHARED);
        sum.unwritten_bytes += share(FIEMAP_EXTENT_UNWRITTEN);
        sum.encoded_bytes += share(FIEMAP_EXTENT_ENCODED);
        if extent.flags & FIEMAP_EXTENT_UNKNOWN == 0 {
            sum.located_bytes += extent.length;
            sum.moment += u128::from(extent.length) * (u128::from(extent.physical) + u128::from(extent.length) / 2);
        }
    })?;
    Ok(sum)
}

/// Asks the file system where a file's data lie, piece by piece from its start on; the file is flushed first. Where the file system has no FIEMAP (FAT, exFAT),
/// it is asked cluster by cluster, which needs root.
pub fn each_extent(fd: BorrowedFd<'_>, each: &mut dyn FnMut(Extent)) -> io::Result<()> {
    match each_of_fiemap(fd, each) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) => each_of_bmap(fd, each),
        answer => answer,
    }
}

/// `_IO(0, 1)` and `_IO(0, 2)` of the kernel's `linux/fs.h`.
const FIBMAP: libc::Ioctl = 1;
const FIGETBSZ: libc::Ioctl = 2;

/// The same, block by block, or cluster by cluster where the file system says how long those are: what is next to each other is one piece.
pub fn each_of_bmap(fd: BorrowedFd<'_>, each: &mut dyn FnMut(Extent)) -> io::Result<()> {
    let ask = |request: libc::Ioctl, value: u64| -> io::Result<u64> {
        let mut number = libc::c_int::try_from(value).map_err(io::Error::other)?;
        // SAFETY: both requests read and write the one number that they are given.
        match unsafe { libc::ioctl(fd.as_raw_fd(), request, &raw mut number) } {
            0 => Ok(u64::from(number.cast_unsigned())),
            _ => Err(io::Error::last_os_error()),
        }
    };
    rustix::fs::fsync(fd)?;
    let len = u64::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0);
    let block = ask(FIGETBSZ, 0)?;
    if block == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let cluster = rustix::fs::fstatvfs(fd)?.f_bsize.max(block).next_multiple_of(block);
    let mut piece: Option<Extent> = None;
    for logical in (0..len).step_by(usize::try_from(cluster).unwrap_or(4096)) {
        let physical = ask(FIBMAP, logical / block)? * block;
        match &mut piece {
            Some(piece) if physical > 0 && piece.physical + piece.length == physical => piece.length += cluster,
            _ => {
                piece.take().into_iter().for_each(&mut *each);
                // Block 0 stands for a hole.
                piece = (physical > 0).then_some(Extent { logical, physical, length: cluster, flags: 0 });
            }
        }
    }
    piece.into_iter().for_each(each);
    Ok(())
}

fn each_of_fiemap(fd: BorrowedFd<'_>, each: &mut dyn FnMut(Extent)) -> io::Result<()> {
    let empty = FiemapExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: FIEMAP_EXTENTS as u32,
            reserved: 0,
            extents: [empty; FIEMAP_EXTENTS],
        };
        // SAFETY: `map` is a live structure of the layout that FS_IOC_FIEMAP expects, with room for `extent_count` extents.
        if unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut last = map.mapped_extents == 0;
        for &FiemapExtent { logical, physical, length, flags, .. } in map.extents.iter().take(map.mapped_extents as usize) {
            each(Extent { logical, physical, length, flags });
            start = logical.saturating_add(length);
            last |= flags & FIEMAP_EXTENT_LAST != 0;
        }
        if last {
            return Ok(());
        }
    }
}

/// Lets this process hold as many files open as the system grants it.
///
/// # Errors
/// What the system answered.
pub fn allow_many_open_files() -> io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit })?)
}

/// `struct fstrim_range` of the kernel's `linux/fs.h`.
#[repr(C)]
struct TrimRange {
    start: u64,
    len: u64,
    minlen: u64,
}

/// `_IOWR('X', 121, struct fstrim_range)` of the kernel's `linux/fs.h`.
const FITRIM: libc::Ioctl = 0xC018_5879_u32 as libc::Ioctl;

/// Tells the device of all unused blocks of a file system that they are unused; returns how many bytes the file system gave up so.
pub fn trim(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut range = TrimRange { start: 0, len: u64::MAX, minlen: 0 };
    // SAFETY: `range` is a live structure of the layout that FITRIM expects.
    if unsafe { libc::ioctl(fd.as_raw_fd(), FITRIM, &raw mut range) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(range.len)
}

/// What this process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in user mode, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
}

impl Usage {
    /// The usage of the whole process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::ask(libc::RUSAGE_SELF)
    }

    /// The usage of the calling thread.
    #[must_use]
    pub fn of_thread() -> Self {
        Self::ask(libc::RUSAGE_THREAD)
    }

    /// The usage of children that have ended and were waited for.
    #[must_use]
    pub fn of_children() -> Self {
        Self::ask(libc::RUSAGE_CHILDREN)
    }

    /// What was used since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { user_ns: self.user_ns.saturating_sub(earlier.user_ns), system_ns: self.system_ns.saturating_sub(earlier.system_ns) }
    }

    fn ask(who: libc::c_int) -> Self {
        let usage = usage_of(who);
        let ns = |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000;
        Self { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }
}

fn usage_of(who: libc::c_int) -> libc::rusage {
    // SAFETY: an all-zero rusage is valid, and the call fills in the one that it is given; it cannot fail for these.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    }
}

/// Bytes that the kernel has read from storage for the calling thread so far (`ru_inblock`, in units of 512); 0 on a kernel that does not count them.
#[must_use]
pub fn storage_read_by_thread() -> u64 {
    u64::try_from(usage_of(libc::RUSAGE_THREAD).ru_inblock).unwrap_or(0) * 512
}

/// Has the kernel end a program when this one dies, by whatever means: nothing may go on writing to a drive that the next start cleans.
pub fn die_with_parent(command: &mut std::process::Command) {
    // SAFETY: between fork and exec only one call without memory of its own is made, which is safe there.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(command, || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// The calling thread, and every thread that it starts from now on, leaves these signals to the others. A signal to a process goes to its first thread where
/// that takes it, and would wait for as long as the kernel holds this thread for a drive.
pub fn leave_to_other_threads(signals: &[i32]) {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` makes the set before anything reads it, and the old mask is not asked for.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether this program was started to go on in spite of a signal, as `nohup` has it for the end of a terminal. To be asked before it is listened for.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid, and the call fills in the one that it is given and changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_ways_of_asking_where_a_file_lies_agree() {
        let file = tempfile::tempfile().unwrap();
        let mut data = vec![7; 300_000];
        // A hole in between.
        std::os::unix::fs::FileExt::write_all_at(&file, &data, 0).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &data, 1 << 20).unwrap();
        data.clear();
        let mut by_bmap = Vec::new();
        if let Err(error) = each_of_bmap(file.as_fd(), &mut |extent| by_bmap.push((extent.logical, extent.physical, extent.length))) {
            println!("skipped: {error}");
            return;
        }
        let mut by_fiemap = Vec::new();
        each_of_fiemap(file.as_fd(), &mut |extent| by_fiemap.push((extent.logical, extent.physical, extent.length))).unwrap();
        // What is next to each other may be two pieces for one and one for the other: compared by where single bytes lie.
        let place = |pieces: &[(u64, u64, u64)], at: u64| {
            pieces
                .iter()
                .find(|(logical, _, length)| (*logical..logical + length).contains(&at))
                .map(|(logical, physical, _)| physical + at - logical)
        };
        for at in [0, 4096, 299_999, 500_000, 1 << 20, (1 << 20) + 299_999] {
            assert_eq!(place(&by_bmap, at), place(&by_fiemap, at), "{at}: {by_bmap:?} {by_fiemap:?}");
        }
        assert_eq!(place(&by_bmap, 500_000), None);
    }
}
