//! What lies under a directory: the mount, the devices, whether it is the system's own disk, as facts and as one sentence.

use std::fmt;
use std::path::{Path, PathBuf};

use super::device::{self, Device, DeviceNumber, Lookup, Transport};
use super::mounts::{self, Mount};
use crate::path_text::path_text;
use crate::platform::{Files, Host};
use crate::{Context, Result, Side};

/// What kind of thing stores the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Block devices of this machine.
    Block,
    /// Its memory.
    Memory,
    /// A program (FUSE); what is behind it is not known.
    Fuse,
    /// Another machine, or the host of this virtual one.
    Network,
    /// An overlay of directories of other file systems.
    Overlay,
    /// Not known.
    Unknown,
}

/// All that was found out about what is under a directory. What is not known is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drive {
    /// The directory, resolved.
    pub path: PathBuf,
    /// The number of the file system.
    pub file_system: DeviceNumber,
    /// The mount.
    pub mount: Option<Mount>,
    /// The identifier of the file system, as udev or the file system itself publishes it.
    pub uuid: Option<String>,
    /// What stores the files.
    pub medium: Medium,
    /// The whole disks on which the file system lies directly; what is under them hangs below each.
    pub devices: Vec<Device>,
    /// Whether the running system lies on the same physical drive, or swaps to it.
    pub is_system_disk: Option<bool>,
}

impl Drive {
    /// Finds out what is under a directory.
    ///
    /// # Errors
    /// When the directory cannot be opened. What else cannot be found out is `None`.
    pub fn identify(host: &Host, files: &dyn Files, directory: &Path) -> Result<Self> {
        let absolute = std::path::absolute(directory).during("resolve", Side::Host, directory)?;
        let handle = files.open_root(&host.path(&absolute)).during("open", Side::Host, directory)?;
        let stat = files.stat(&handle).during("look at", Side::Host, directory)?;
        let resolved = host.resolve(&absolute).unwrap_or(absolute);
        Ok(Self::of(host, resolved, stat.device))
    }

    /// Finds out what is under a resolved directory whose device number is known.
    #[must_use]
    pub fn of(host: &Host, resolved: PathBuf, number: DeviceNumber) -> Self {
        let mounts = host.bytes("/proc/self/mountinfo").map(|list| mounts::parse(&list)).unwrap_or_default();
        let mount = mounts::holding(&mounts, &resolved, Some(number)).cloned();
        let mut lookup = Lookup::new(host, &mounts);
        let devices = mount.as_ref().map(|mount| lookup.of_mount(mount)).unwrap_or_default();
        let volume = mount.as_ref().filter(|mount| mount.device.0 != 0).and_then(|mount| lookup.name_of(mount.device));
        let uuid = mount.as_ref().and_then(|mount| uuid(host, mount, volume.as_deref()));
        let medium = mount.as_ref().map_or(Medium::Unknown, |mount| medium(&mount.fs_type, &devices));
        let is_system_disk = is_system_disk(host, &mounts, &devices);
        Self { path: resolved, file_system: number, mount, uuid, medium, devices, is_system_disk }
    }

    /// The physical drives at the bottom, each once; a virtual one whose storage is not a device of this machine counts as physical.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Device> {
        device::leaves(&self.devices)
    }

    /// The devices whose counters tell of this drive: what a mapped volume or a RAID lies on, but a loop device itself, whose file may share its drive with much else.
    #[must_use]
    pub fn counted(&self) -> Vec<DeviceNumber> {
        fn collect(devices: &[Device], numbers: &mut Vec<DeviceNumber>) {
            for device in devices {
                if device.under.is_empty() || device.backing_file.is_some() {
                    numbers.push(device.number);
                } else {
                    collect(&device.under, numbers);
                }
            }
        }
        let mut numbers = Vec::new();
        collect(&self.devices, &mut numbers);
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The numbers that stand for this drive when it is locked: those of its physical drives, or of its file system where it has none.
    #[must_use]
    pub fn lock_numbers(&self) -> Vec<DeviceNumber> {
        let leaves: Vec<DeviceNumber> = self.leaves().iter().map(|device| device.number).collect();
        if leaves.is_empty() { vec![self.file_system] } else { leaves }
    }

    /// Whether two drives share a physical one; `None` where it is not known what either lies on.
    #[must_use]
    pub fn same_physical(&self, other: &Self) -> Option<bool> {
        if self.file_system == other.file_system {
            return Some(true);
        }
        let known = |drive: &Self| drive.medium == Medium::Memory || !drive.devices.is_empty();
        (known(self) && known(other)).then(|| share_a_leaf(&self.leaves(), &other.leaves()))
    }

    /// The most payload that can reach this drive, or come from it, bytes/s: the narrowest of the links that all of its traffic must pass; of several drives what all
    /// together can carry, a link that they share counted once. `None` where a link is not known, where there is none (loop devices, virtual disks, memory, shares), and in
    /// a virtual machine. A figure above it is a reason to doubt the figure or the link's own statement, of which some are wrong.
    #[must_use]
    pub fn link_bytes_per_s(&self) -> Option<u64> {
        device::link_bytes_per_s(&self.devices)
    }

    /// Whether any device on the way down holds written data in a volatile cache: yes when one does, no when all say that they do not.
    #[must_use]
    pub fn volatile_cache(&self) -> Option<bool> {
        let caches: Vec<Option<bool>> = self.devices.iter().flat_map(Device::all).map(|device| device.volatile_cache).collect();
        if caches.contains(&Some(true)) {
            return Some(true);
        }
        (!caches.is_empty() && caches.iter().all(Option::is_some)).then_some(false)
    }

    /// Whether the file system is mounted so that it never flushes its device.
    #[must_use]
    pub fn has_no_barriers(&self) -> bool {
        self.has_mount_option("nobarrier") || self.has_mount_option("barrier=0")
    }

    /// Whether an option is among those of the mount.
    #[must_use]
    pub fn has_mount_option(&self, option: &str) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.options.split(',').any(|given| given == option))
    }

    /// Whether a program stands between this one and the drive.
    #[must_use]
    pub fn is_fuse(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.fs_type.starts_with("fuse"))
    }

    /// Whether one of its links carries data in one direction at a time: SATA, USB 2, and the buses of cards.
    #[must_use]
    pub fn has_half_duplex_link(&self) -> bool {
        const USB_2: u64 = 480_000_000;
        self.leaves().iter().any(|device| match device.transport {
            Some(Transport::Ata | Transport::Mmc) => true,
            Some(Transport::Usb) => device.usb.as_ref().and_then(|usb| usb.negotiated_bits_per_s).is_none_or(|rate| rate <= USB_2),
            _ => false,
        })
    }

    /// Who, beside this machine's page cache, may hold what was read before, where the file system is of such a kind: dropping caches does not reach it.
    #[must_use]
    pub fn cache_elsewhere(&self) -> Option<&'static str> {
        let fs_type = self.mount.as_ref().map(|mount| mount.fs_type.as_str());
        match self.medium {
            Medium::Network => Some("the machine that the share is on"),
            Medium::Fuse => Some("the program behind the file system"),
            _ if fs_type == Some("zfs") => Some("ZFS, in a cache of its own (ARC)"),
            _ => None,
        }
    }

    /// The largest file that the file system can hold, where that is a limit which people meet: FAT stores lengths in 32 bits.
    #[must_use]
    pub fn max_file_bytes(&self) -> Option<u64> {
        let fat = self.mount.as_ref().is_some_and(|mount| matches!(mount.fs_type.as_str(), "vfat" | "msdos"));
        fat.then_some(u64::from(u32::MAX))
    }
}

impl fmt::Display for Drive {
    /// One sentence for people: `/media/stick on SanDisk Ultra (vfat, 32.0 GB, sdb)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fs_type = self.mount.as_ref().map_or("unknown file system", |mount| mount.fs_type.as_str());
        let source = self.mount.as_ref().map(|mount| mount.source.to_string_lossy()).unwrap_or_default();
        write!(f, "{} ", path_text(&self.path))?;
        match self.medium {
            Medium::Block => {
                let each = |value: &dyn Fn(&Device) -> String| self.devices.iter().map(value).collect::<Vec<_>>().join(" + ");
                let sizes: Option<u64> = self.devices.iter().map(|device| device.size_bytes).sum();
                let size = sizes.map(|bytes| format!(", {}", crate::units::Bytes(bytes))).unwrap_or_default();
                write!(f, "on {} ({fs_type}{size}, {})", each(&full_model), each(&|device| device.name.clone()))?;
            }
            Medium::Memory => write!(f, "in memory ({fs_type})")?,
            Medium::Fuse => write!(f, "behind a FUSE program ({fs_type}, {source})")?,
            Medium::Network => write!(f, "on a share ({fs_type}, {source})")?,
            Medium::Overlay => write!(f, "on an overlay file system ({fs_type})")?,
            Medium::Unknown => write!(f, "on an unknown drive ({fs_type})")?,
        }
        if self.is_system_disk == Some(true) { f.write_str(", this is the system disk") } else { Ok(()) }
    }
}

/// A device's model with what it lies on.
fn full_model(device: &Device) -> String {
    let own = device.model.as_deref().unwrap_or("an unknown drive");
    if device.under.is_empty() || device.backing_file.is_some() {
        return own.to_owned();
    }
    format!("{own} on {}", device.under.iter().map(full_model).collect::<Vec<_>>().join(" + "))
}

fn medium(fs_type: &str, devices: &[Device]) -> Medium {
    match fs_type {
        _ if !devices.is_empty() && device::leaves(devices).iter().all(|device| device.in_memory) => Medium::Memory,
        _ if !devices.is_empty() => Medium::Block,
        _ if mounts::in_memory(fs_type) => Medium::Memory,
        "overlay" | "overlayfs" | "aufs" | "fuse.fuse-overlayfs" => Medium::Overlay,
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "9p" | "virtiofs" | "vboxsf" => Medium::Network,
        _ if fs_type.starts_with("fuse") => Medium::Fuse,
        _ => Medium::Unknown,
    }
}

/// The identifier of a file system: the name of udev's link to its volume, or of the directory in which btrfs lists its members.
fn uuid(host: &Host, mount: &Mount, volume: Option<&str>) -> Option<String> {
    if mount.fs_type == "btrfs" {
        let source =
            host.link_name(Path::new("/").join(&mount.source)).or_else(|| Some(Path::new(&mount.source).file_name()?.to_str()?.to_owned()))?;
        let btrfs = Path::new("/sys/fs/btrfs");
        return host.names(btrfs).into_iter().find(|id| host.names(btrfs.join(id).join("devices")).contains(&source));
    }
    let links = Path::new("/dev/disk/by-uuid");
    host.names(links).into_iter().find(|id| host.link_name(links.join(id)).as_deref() == volume).filter(|_| volume.is_some())
}

fn share_a_leaf(some: &[&Device], others: &[&Device]) -> bool {
    some.iter().any(|device| others.iter().any(|other| device.number == other.number))
}

fn is_system_disk(host: &Host, mounts: &[Mount], devices: &[Device]) -> Option<bool> {
    let own = device::leaves(devices);
    if own.is_empty() {
        return None;
    }
    let mut lookup = Lookup::new(host, mounts);
    let [root, usr] = ["/", "/usr"].map(|path| lookup.of_path(Path::new(path)));
    let swaps = swap_devices(host, &mut lookup);
    let found = [&root, &usr, &swaps].iter().any(|devices| share_a_leaf(&own, &device::leaves(devices)));
    // Where the disk of the root is not known (an overlay), only "yes" can be told.
    if found { Some(true) } else { (!root.is_empty()).then_some(false) }
}

fn swap_devices(host: &Host, lookup: &mut Lookup<'_>) -> Vec<Device> {
    let mut devices = Vec::new();
    for line in host.fact("/proc/swaps").unwrap_or_default().lines().skip(1) {
        let mut fields = line.split_whitespace();
        let (Some(name), Some(kind)) = (fields.next(), fields.next()) else { continue };
        let path = PathBuf::from(String::from_utf8_lossy(&mounts::unescape(name.as_bytes())).into_owned());
        match kind {
            "file" => devices.extend(lookup.of_path(&path)),
            _ => devices.extend(lookup.of_device_file(&path)),
        }
    }
    devices
}

#[cfg(test)]
#[path = "identify_tests.rs"]
mod tests;
