//! A file system of one file, `disk`, that hands every request to a lab drive: what a loop device stands on.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};

use super::drive::{Job, Lines, hurry};
use super::log::{Kind, now_ns};

/// The largest request that the kernel sends: a loop device with larger ones would have them split.
pub const LARGEST_REQUEST: u32 = 1 << 20;

const DISK: INodeNo = INodeNo(2);
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// The file system of one file.
pub struct DiskFile {
    lines: Lines,
    size: u64,
}

impl DiskFile {
    pub fn new(lines: Lines, size: u64) -> Self {
        Self { lines, size }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0),
            DISK => (FileType::RegularFile, self.size),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: if kind == FileType::Directory { 0o700 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn submit(&self, kind: Kind, offset: u64, length: u64, data: &[u8], answer: impl FnOnce(Result<&[u8], i32>) + Send + 'static) {
        thread_local!(static HURRIED: () = hurry());
        HURRIED.with(|()| ());
        let arrived_ns = now_ns();
        let mut buffer = if data.is_empty() { Vec::new() } else { self.lines.buffer() };
        buffer.extend_from_slice(data);
        self.lines.submit(Job { kind, offset, length, data: buffer, arrived_ns, answer: Box::new(answer) });
    }
}

fn finish(reply: ReplyEmpty) -> impl FnOnce(Result<&[u8], i32>) {
    |answer| match answer {
        Ok(_) => reply.ok(),
        Err(errno) => reply.error(Errno::from_i32(errno)),
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without asynchronous direct I/O the loop device would send one request at a time.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        config.set_max_write(LARGEST_REQUEST).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        // More than a loop device's queue holds, so that what waits is with the drive and not in the kernel.
        config.set_max_background(512).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK) {
            Some(attributes) if parent == INodeNo::ROOT && name == "disk" => reply.entry(&FOREVER, &attributes, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The loop device takes the block size as the granularity of discards.
        reply.statfs(self.size / 4096, 0, 0, 1, 0, 4096, 255, 4096);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, size: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        let length = u64::from(size).min(self.size.saturating_sub(offset));
        self.submit(Kind::Read, offset, length, &[], |answer| match answer {
            Ok(bytes) => reply.data(bytes),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size = data.len() as u32;
        if offset + data.len() as u64 > self.size {
            return reply.error(Errno::ENOSPC);
        }
        self.submit(Kind::Write, offset, u64::from(size), data, move |answer| match answer {
            Ok(_) => reply.written(size),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.submit(Kind::Flush, 0, 0, &[], finish(reply));
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
        // The loop device discards by punching a hole and zeroes by zeroing a range: both leave zeros.
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.submit(Kind::Discard, offset, length.min(self.size.saturating_sub(offset)), &[], finish(reply));
    }
}
