//! A lab drive as a test sees it: a block device and a mounted file system that are there while the value lives and leave nothing behind.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use fuser::{BackgroundSession, Config, MountOption};

use super::drive::{Drive, Duplex, Lines, Speed};
use super::fuse::{DiskFile, LARGEST_REQUEST};
use super::leftovers::new_directory;
use super::system::{complain, loops_below, persist, run};
use super::transport::Transport;

/// What a loop device has when nothing was said.
const LOOP_QUEUE_DEPTH: u64 = 128;
/// Threads that take requests in.
const INTAKE: usize = 4;

/// What is made on the block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    /// The program that makes it and arguments that keep it from writing later by itself.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        }
    }

    /// The program that makes it.
    pub fn tool(self) -> &'static str {
        self.maker().0
    }
}

/// What a lab drive shall be.
pub struct Builder {
    size: u64,
    speed: Speed,
    duplex: Duplex,
    file_system: Option<FileSystem>,
    mkfs_options: Vec<String>,
    mount_options: Option<String>,
    sector_size: Option<u32>,
    place: Option<PathBuf>,
}

impl Builder {
    /// Bytes of the block device; 1 GiB when not said.
    pub fn size(self, size: u64) -> Self {
        Self { size, ..self }
    }

    /// The speed from when the file system is mounted; no limit when not said.
    pub fn speed(self, speed: Speed) -> Self {
        Self { speed, ..self }
    }

    /// Reads and writes do not wait for each other.
    pub fn duplex(self) -> Self {
        Self { duplex: Duplex::Full, ..self }
    }

    /// Makes and mounts a file system; a bare block device when not said.
    pub fn file_system(self, file_system: FileSystem) -> Self {
        Self { file_system: Some(file_system), ..self }
    }

    /// More arguments for the program that makes the file system.
    pub fn mkfs_options(self, options: &[&str]) -> Self {
        Self { mkfs_options: options.iter().map(|&option| option.to_owned()).collect(), ..self }
    }

    /// Options of `mount -o`.
    pub fn mount_options(self, options: &str) -> Self {
        Self { mount_options: Some(options.to_owned()), ..self }
    }

    /// The logical block size of the device in bytes.
    pub fn sector_size(self, bytes: u32) -> Self {
        Self { sector_size: Some(bytes), ..self }
    }

    /// An existing directory to mount the file system on, in place of one of the lab's own.
    pub fn mount_on(self, place: &Path) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }

    /// Sets the drive up, at full speed, and then limits it and begins its log.
    ///
    /// # Errors
    /// A step failed; what was done before it is undone.
    pub fn start(self) -> io::Result<LabDrive> {
        let directory = new_directory()?;
        // From here on the drop of `lab` takes down whatever is up.
        let mut lab = LabDrive {
            drive: Arc::new(Drive::new(self.speed)),
            threads: Vec::new(),
            session: None,
            device: None,
            mounted: false,
            place: self.place.unwrap_or_else(|| directory.join("mount")),
            mount_options: self.mount_options,
            directory,
        };
        let (lines, threads) = Lines::start(&lab.drive, self.duplex)?;
        lab.threads = threads;
        let fuse = lab.directory.join("fuse");
        std::fs::create_dir(&fuse)?;
        let mut config = Config::default();
        config.mount_options.push(MountOption::FSName("copysim-lab".to_owned()));
        // Taking in a MiB takes this rig a fifth of a millisecond, and requests come in bursts: one after another they would reach a fast drive late.
        config.n_threads = Some(INTAKE);
        lab.session = Some(fuser::spawn_mount(DiskFile::new(lines, self.size), &fuse, &config)?);
        let mut arguments: Vec<_> = ["--find", "--show", "--direct-io=on"].map(str::to_owned).into();
        arguments.extend(self.sector_size.map(|bytes| format!("--sector-size={bytes}")));
        arguments.push(fuse.join("disk").display().to_string());
        let device = PathBuf::from(run("losetup", arguments)?.trim_end());
        lab.device = Some(device.clone());
        if lab.attribute("loop/dio")? != "1" {
            return Err(io::Error::other("the loop device does not use direct I/O: caches would lie between"));
        }
        lab.reset()?;
        // One request of the device is then one request of the drive.
        std::fs::write(lab.sysfs().join("queue/max_sectors_kb"), (LARGEST_REQUEST / 1024).to_string())?;
        Transport::settle(&lab.drive, &device, self.speed)?;
        lab.drive.store.discard(0, self.size);
        if let Some(file_system) = self.file_system {
            let (tool, arguments) = file_system.maker();
            let arguments = arguments.iter().copied().map(str::to_owned).chain(self.mkfs_options);
            run(tool, arguments.chain([device.display().to_string()]))?;
            if !lab.place.exists() {
                std::fs::create_dir(&lab.place)?;
            }
            lab.mount()?;
            run("sync", [Path::new("-f"), &lab.place])?;
        }
        lab.drive.limit(true);
        lab.drive.log.clear();
        Ok(lab)
    }
}

/// A running lab drive. It derefs to `Drive`: log, faults, speed.
pub struct LabDrive {
    drive: Arc<Drive>,
    threads: Vec<JoinHandle<()>>,
    session: Option<BackgroundSession>,
    device: Option<PathBuf>,
    mounted: bool,
    place: PathBuf,
    mount_options: Option<String>,
    directory: PathBuf,
}

impl Deref for LabDrive {
    type Target = Drive;

    fn deref(&self) -> &Drive {
        &self.drive
    }
}

impl LabDrive {
    pub fn builder() -> Builder {
        Builder {
            size: 1 << 30,
            speed: Speed::default(),
            duplex: Duplex::Half,
            file_system: None,
            mkfs_options: Vec::new(),
            mount_options: None,
            sector_size: None,
            place: None,
        }
    }

    /// Where the file system is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// The block device, `/dev/loop…`.
    pub fn device(&self) -> &Path {
        self.device.as_deref().unwrap_or(Path::new("/dev/null"))
    }

    /// The block device's directory in sysfs.
    pub fn sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(self.device().file_name().unwrap_or_default())
    }

    /// An attribute of the block device in sysfs.
    ///
    /// # Errors
    /// It can't be read.
    pub fn attribute(&self, name: &str) -> io::Result<String> {
        Ok(std::fs::read_to_string(self.sysfs().join(name))?.trim_end().to_owned())
    }

    /// The numbers of the block device's `stat`, as in the kernel's Documentation/block/stat.rst.
    ///
    /// # Errors
    /// They can't be read.
    pub fn stat(&self) -> io::Result<Vec<u64>> {
        Ok(self.attribute("stat")?.split_whitespace().filter_map(|field| field.parse().ok()).collect())
    }

    /// What was set for a loop device stays with its number: the next to use it must not inherit it.
    fn reset(&self) -> io::Result<()> {
        let backing = Path::new("/sys/class/bdi").join(self.attribute("dev")?);
        std::fs::write(backing.join("strict_limit"), "0")?;
        std::fs::write(backing.join("max_ratio"), "100")?;
        self.queue_depth(LOOP_QUEUE_DEPTH)?;
        std::fs::write(self.sysfs().join("queue/write_cache"), "write back")
    }

    /// The kernel gives the drive at most so many requests at a time, as one with a queue of that depth.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn queue_depth(&self, requests: u64) -> io::Result<()> {
        std::fs::write(self.sysfs().join("queue/nr_requests"), requests.to_string())
    }

    /// This machine holds back at most about so many bytes that are to be written to the drive, as one with little memory would: writers then wait for the
    /// drive from early on.
    ///
    /// # Errors
    /// The kernel can't do this (it can since Linux 6.2).
    pub fn hold_back(&self, bytes: u64) -> io::Result<()> {
        let backing = Path::new("/sys/class/bdi").join(self.attribute("dev")?);
        std::fs::write(backing.join("strict_limit"), "1")?;
        std::fs::write(backing.join("max_bytes"), bytes.to_string())
    }

    /// Undoes `hold_back`. What a failing drive does not take stays in memory, and whoever is held back by it may be so for ever.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn hold_back_no_more(&self) -> io::Result<()> {
        let backing = Path::new("/sys/class/bdi").join(self.attribute("dev")?);
        std::fs::write(backing.join("max_ratio"), "100")?;
        std::fs::write(backing.join("strict_limit"), "0")
    }

    fn mount(&mut self) -> io::Result<()> {
        let options = self.mount_options.as_deref().map(|options| ["-o", options]);
        let arguments = options.iter().flatten().copied().map(PathBuf::from).chain([self.device().to_owned(), self.place.clone()]);
        run("mount", arguments)?;
        self.mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> io::Result<()> {
        persist(|| run("umount", [&self.place]))?;
        self.mounted = false;
        Ok(())
    }

    /// Unmounts and mounts again: nothing of the file system's is then cached.
    ///
    /// # Errors
    /// It is in use, or can't be mounted.
    pub fn remount(&mut self) -> io::Result<()> {
        self.unmount()?;
        self.mount()
    }

    fn detach(&self) -> io::Result<()> {
        persist(|| {
            // The kernel may put a detachment off until the last user is gone: it is done when no device stands on our file.
            match loops_below(&self.directory)?.as_slice() {
                [] => Ok(()),
                [device, ..] => {
                    run("losetup", [Path::new("-d"), device])?;
                    if loops_below(&self.directory)?.is_empty() { Ok(()) } else { Err(io::ErrorKind::ResourceBusy.into()) }
                }
            }
        })
    }
}

impl Drop for LabDrive {
    fn drop(&mut self) {
        self.drive.faults.release();
        self.drive.limit(false);
        if self.mounted && self.unmount().is_err() {
            // Still in use: hide it at least; it ends with its last user.
            complain("unmount", run("umount", [Path::new("-l"), &self.place]).map(drop));
        }
        if self.device.is_some() {
            complain("reset", self.reset());
        }
        complain("detach", self.detach());
        if let Some(session) = self.session.take() {
            // The kernel lets go of the file some time after the loop device is gone.
            match persist(|| run("umount", [self.directory.join("fuse")])).and_then(|_| session.join()) {
                Ok(()) => self.threads.drain(..).for_each(|thread| complain("thread", thread.join().map_err(|_| io::Error::other("it panicked")))),
                // Its threads serve it as long as it stays: waiting for them would be for ever.
                Err(error) => complain("FUSE", Err(error)),
            }
        }
        for directory in [self.directory.join("mount"), self.directory.join("fuse"), self.directory.clone()] {
            if directory.exists() {
                complain("directory", std::fs::remove_dir(directory));
            }
        }
    }
}
