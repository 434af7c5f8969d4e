//! A file system in memory behind FUSE, with no block device beneath: what copying a tree to or from it needs, and no more.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request,
    SessionACL, TimeOrNow, WriteFlags,
};

use super::leftovers::new_directory;
use super::system::{complain, persist, run};

const SECOND: Duration = Duration::from_secs(1);
const BLOCK: u64 = 4096;

enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, u64>),
}

struct Node {
    attributes: FileAttr,
    content: Content,
}

type Answer<T> = Result<T, Errno>;

/// The tree: nodes by inode number, the root being 1. A node without a name stays until the kernel forgets it, as its file may be open.
struct Tree {
    nodes: BTreeMap<u64, Node>,
    last: u64,
    used: u64,
    nature: Nature,
}

/// What the file system is like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nature {
    /// Bytes of files that it holds.
    pub capacity: u64,
    /// Bytes that it says it could hold, where that is another number.
    pub claims: Option<u64>,
    /// The errno of every `fsync`; success when not said.
    pub fsync: Option<i32>,
}

impl Tree {
    fn new(nature: Nature) -> Self {
        let mut tree = Self { nodes: BTreeMap::new(), last: 0, used: 0, nature };
        tree.insert(Content::Directory(BTreeMap::new()), 0o755);
        tree
    }

    fn insert(&mut self, content: Content, perm: u32) -> u64 {
        self.last += 1;
        let inode = self.last;
        let now = SystemTime::now();
        let kind = if matches!(content, Content::File(_)) { FileType::RegularFile } else { FileType::Directory };
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let attributes = FileAttr {
            ino: INodeNo(inode),
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind,
            perm: (perm & 0o7777) as u16,
            nlink: 1,
            uid,
            gid,
            rdev: 0,
            blksize: BLOCK as u32,
            flags: 0,
        };
        self.nodes.insert(inode, Node { attributes, content });
        inode
    }

    fn node(&mut self, inode: INodeNo) -> Answer<&mut Node> {
        self.nodes.get_mut(&inode.0).ok_or(Errno::ENOENT)
    }

    fn names(&mut self, inode: INodeNo) -> Answer<&mut BTreeMap<OsString, u64>> {
        match &mut self.node(inode)?.content {
            Content::Directory(names) => Ok(names),
            Content::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn find(&mut self, parent: INodeNo, name: &OsStr) -> Answer<INodeNo> {
        self.names(parent)?.get(name).map(|&inode| INodeNo(inode)).ok_or(Errno::ENOENT)
    }

    fn attributes(&mut self, inode: INodeNo) -> Answer<FileAttr> {
        let node = self.node(inode)?;
        if let Content::File(bytes) = &node.content {
            node.attributes.size = bytes.len() as u64;
            node.attributes.blocks = node.attributes.size.div_ceil(512);
        }
        Ok(node.attributes)
    }

    fn make(&mut self, parent: INodeNo, name: &OsStr, content: Content, perm: u32) -> Answer<FileAttr> {
        if self.names(parent)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let inode = self.insert(content, perm);
        self.names(parent)?.insert(name.to_owned(), inode);
        self.attributes(INodeNo(inode))
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr, directory: bool) -> Answer<()> {
        let inode = self.find(parent, name)?;
        match &mut self.node(inode)?.content {
            Content::Directory(_) if !directory => return Err(Errno::EISDIR),
            Content::File(_) if directory => return Err(Errno::ENOTDIR),
            Content::Directory(names) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            Content::Directory(_) | Content::File(_) => {}
        }
        self.node(inode)?.attributes.nlink = 0;
        self.names(parent)?.remove(name);
        Ok(())
    }

    fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr)) -> Answer<()> {
        let inode = self.find(from.0, from.1)?;
        if let Ok(old) = self.find(to.0, to.1) {
            if old == inode {
                return Ok(());
            }
            let directory = matches!(self.node(inode)?.content, Content::Directory(_));
            self.remove(to.0, to.1, directory)?;
        }
        self.names(from.0)?.remove(from.1);
        self.names(to.0)?.insert(to.1.to_owned(), inode.0);
        Ok(())
    }

    fn bytes(&mut self, inode: INodeNo) -> Answer<&mut Vec<u8>> {
        match &mut self.node(inode)?.content {
            Content::File(bytes) => Ok(bytes),
            Content::Directory(_) => Err(Errno::EISDIR),
        }
    }

    fn resize(&mut self, inode: INodeNo, size: u64) -> Answer<()> {
        let old = self.bytes(inode)?.len() as u64;
        let used = self.used - old + size;
        if used > self.nature.capacity {
            return Err(Errno::ENOSPC);
        }
        self.bytes(inode)?.resize(size as usize, 0);
        self.used = used;
        Ok(())
    }

    fn write(&mut self, inode: INodeNo, offset: u64, data: &[u8]) -> Answer<()> {
        let end = offset + data.len() as u64;
        if end > self.bytes(inode)?.len() as u64 {
            self.resize(inode, end)?;
        }
        self.bytes(inode)?[offset as usize..end as usize].copy_from_slice(data);
        self.node(inode)?.attributes.mtime = SystemTime::now();
        Ok(())
    }

    fn forget(&mut self, inode: INodeNo) {
        if self.nodes.get(&inode.0).is_some_and(|node| node.attributes.nlink == 0)
            && let Some(Node { content: Content::File(bytes), .. }) = self.nodes.remove(&inode.0)
        {
            self.used -= bytes.len() as u64;
        }
    }
}

fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

struct Server(Mutex<Tree>);

impl Server {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flushed(&self) -> Answer<()> {
        self.tree().nature.fsync.map_or(Ok(()), |errno| Err(Errno::from_i32(errno)))
    }
}

fn finish(reply: ReplyEmpty, result: Answer<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn enter(reply: ReplyEntry, result: Answer<FileAttr>) {
    match result {
        Ok(attributes) => reply.entry(&SECOND, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn describe(reply: ReplyAttr, result: Answer<FileAttr>) {
    match result {
        Ok(attributes) => reply.attr(&SECOND, &attributes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let found = tree.find(parent, name).and_then(|inode| tree.attributes(inode));
        enter(reply, found);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        describe(reply, self.tree().attributes(inode));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree();
        let resized = size.map_or(Ok(()), |size| tree.resize(inode, size));
        let changed = resized.and_then(|()| tree.node(inode)).map(|node| {
            let old = node.attributes;
            node.attributes = FileAttr {
                perm: mode.map_or(old.perm, |mode| (mode & 0o7777) as u16),
                uid: uid.unwrap_or(old.uid),
                gid: gid.unwrap_or(old.gid),
                atime: atime.map_or(old.atime, time),
                mtime: mtime.map_or(old.mtime, time),
                ctime: SystemTime::now(),
                ..old
            };
        });
        describe(reply, changed.and_then(|()| tree.attributes(inode)));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        enter(reply, self.tree().make(parent, name, Content::Directory(BTreeMap::new()), mode & !umask));
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, _: i32, reply: ReplyCreate) {
        match self.tree().make(parent, name, Content::File(Vec::new()), mode & !umask) {
            Ok(attributes) => reply.created(&SECOND, &attributes, Generation(0), FileHandle(0), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.tree().remove(parent, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.tree().remove(parent, name, true));
    }

    fn rename(&self, _: &Request, parent: INodeNo, name: &OsStr, newparent: INodeNo, newname: &OsStr, flags: RenameFlags, reply: ReplyEmpty) {
        let plain = if flags.is_empty() { Ok(()) } else { Err(Errno::EINVAL) };
        finish(reply, plain.and_then(|()| self.tree().rename((parent, name), (newparent, newname))));
    }

    fn read(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, size: u32, _: OpenFlags, _: Option<LockOwner>, reply: ReplyData) {
        match self.tree().bytes(inode) {
            Ok(bytes) => {
                let start = (offset as usize).min(bytes.len());
                reply.data(&bytes[start..(start + size as usize).min(bytes.len())]);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.tree().write(inode, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, _: u64) {
        self.tree().forget(inode);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        finish(reply, self.flushed());
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        finish(reply, self.flushed());
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut tree = self.tree();
        let names = match tree.names(inode) {
            Ok(names) => names.clone(),
            Err(errno) => return reply.error(errno),
        };
        let dots = [".", ".."].map(|name| (OsString::from(name), inode.0));
        for (index, (name, inode)) in dots.into_iter().chain(names).enumerate().skip(offset as usize) {
            let kind = tree.nodes.get(&inode).map_or(FileType::RegularFile, |node| node.attributes.kind);
            if reply.add(INodeNo(inode), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let tree = self.tree();
        let capacity = tree.nature.claims.unwrap_or(tree.nature.capacity);
        let free = (capacity - tree.used) / BLOCK;
        reply.statfs(capacity / BLOCK, free, free, 1 << 20, (1 << 20) - tree.nodes.len() as u64, BLOCK as u32, 255, BLOCK as u32);
    }
}

/// The mounted file system; it is gone with its files when this is dropped.
pub struct MemoryFs {
    session: Option<BackgroundSession>,
    directory: PathBuf,
    place: PathBuf,
}

impl MemoryFs {
    /// Mounts a file system of so many bytes. Its `fsync` succeeds and does nothing, like that of many a FUSE program.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn start(capacity: u64) -> io::Result<Self> {
        Self::with(Nature { capacity, ..Nature::default() })
    }

    /// Mounts one of this nature.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn with(nature: Nature) -> io::Result<Self> {
        let directory = new_directory()?;
        let mut this = Self { session: None, place: directory.join("mount"), directory };
        std::fs::create_dir(&this.place)?;
        let mut config = Config::default();
        config.mount_options.extend([MountOption::FSName("copysim-lab".to_owned()), MountOption::DefaultPermissions]);
        if rustix::process::geteuid().is_root() {
            config.acl = SessionACL::All;
        }
        this.session = Some(fuser::spawn_mount(Server(Mutex::new(Tree::new(nature))), &this.place, &config)?);
        Ok(this)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }
}

impl Drop for MemoryFs {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            complain("FUSE", persist(|| run("umount", [&self.place])).and_then(|_| session.join()));
        }
        for directory in [&self.place, &self.directory] {
            complain("directory", std::fs::remove_dir(directory));
        }
    }
}
