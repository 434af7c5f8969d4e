//! Block devices as sysfs describes them: the whole disk, what is known about it, and the devices under it down to the physical ones.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::link::{self, Hop};
use super::mounts::{self, Mount};
use super::{ata, host, mmc, nvme, pcie, queue, usb};
use crate::platform::Host;
use crate::result::{Mmc, Pcie, Queue, Sata, Usb};

/// Major and minor number of a device.
pub type DeviceNumber = (u32, u32);

/// How a device is attached, as far as its place in sysfs tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the standard ones")]
pub enum Transport {
    Usb,
    Nvme,
    Mmc,
    Virtio,
    Ata,
    Loop,
}

/// A whole disk (never a partition) or a virtual device that is made of others. What is not known is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name: `sda`, `nvme0n1`, `loop3`.
    pub name: String,
    /// Its number, which finds it in sysfs.
    pub number: DeviceNumber,
    /// Its place in sysfs.
    pub place: PathBuf,
    /// What it is, for people.
    pub model: Option<String>,
    /// The version of its firmware.
    pub firmware: Option<String>,
    /// Its serial number. Never an identity by itself: two drives in one dock may say the same.
    pub serial: Option<String>,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// Whether it is a disk that turns; unknown where the kernel only assumes it.
    pub rotational: Option<bool>,
    /// Whether its medium can be taken out.
    pub removable: Option<bool>,
    /// Whether it says that it holds written data in a cache that a power cut empties.
    pub volatile_cache: Option<bool>,
    /// How it is attached.
    pub transport: Option<Transport>,
    /// The driver that moves its data.
    pub driver: Option<String>,
    /// The PCI address of its controller.
    pub controller: Option<String>,
    /// Its USB attachment.
    pub usb: Option<Usb>,
    /// Its own PCI Express link, where it is on NVMe.
    pub pcie: Option<Pcie>,
    /// Its SATA link.
    pub sata: Option<Sata>,
    /// Its card.
    pub mmc: Option<Mmc>,
    /// How the kernel treats it.
    pub queue: Queue,
    /// The links on the way from the machine to it whose rate is known; none in a virtual machine, whose links carry what they like.
    pub links: Vec<Hop>,
    /// For a loop device: the file that it shows.
    pub backing_file: Option<PathBuf>,
    /// Whether what it stores is in this machine's memory: a RAM disk, or a loop device over a file there.
    pub in_memory: bool,
    /// For a loop device: whether it reads and writes past the page cache.
    pub direct_io: Option<bool>,
    /// The devices that it lies on: those under a loop device's file, the members of a RAID, the disk of an encrypted volume.
    pub under: Vec<Device>,
}

impl Device {
    /// The devices at the bottom, each once, sorted by number.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Self> {
        leaves(std::slice::from_ref(self))
    }

    /// The rate that its own link negotiated, bits/s, of all its lanes.
    #[must_use]
    pub fn link_bits_per_s(&self) -> Option<u64> {
        let of_pcie = |pcie: &Pcie| pcie.speed_mt_per_s?.checked_mul(1_000_000)?.checked_mul(u64::from(pcie.width?));
        let of_usb = self.usb.as_ref().and_then(|usb| usb.negotiated_bits_per_s);
        of_usb.or_else(|| self.sata.as_ref()?.negotiated_bits_per_s).or_else(|| self.pcie.as_ref().and_then(of_pcie))
    }

    /// The most payload that can reach it, bytes/s: see [`super::Drive::link_bytes_per_s`].
    #[must_use]
    pub fn link_bytes_per_s(&self) -> Option<u64> {
        link_bytes_per_s(std::slice::from_ref(self))
    }

    /// This device and all under it.
    #[must_use]
    pub fn all(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.under.iter().flat_map(Self::all)).collect()
    }
}

/// The devices at the bottom of several, each once, sorted by number.
pub fn leaves(devices: &[Device]) -> Vec<&Device> {
    let mut leaves: Vec<&Device> = devices.iter().flat_map(Device::all).filter(|device| device.under.is_empty()).collect();
    leaves.sort_by_key(|device| device.number);
    leaves.dedup_by_key(|device| device.number);
    leaves
}

/// The most payload that several devices can carry together; of what is made of others that of the others. The file of a loop device may be in memory, so no link limits it.
pub fn link_bytes_per_s(devices: &[Device]) -> Option<u64> {
    fn collect<'d>(devices: &'d [Device], found: &mut Vec<&'d Device>) {
        for device in devices {
            if device.under.is_empty() || device.backing_file.is_some() { found.push(device) } else { collect(&device.under, found) }
        }
    }
    let mut found = Vec::new();
    collect(devices, &mut found);
    found.sort_by_key(|device| device.number);
    found.dedup_by_key(|device| device.number);
    link::capacity(&found.iter().map(|device| device.links.as_slice()).collect::<Vec<_>>())
}

/// A look into sysfs. It remembers the way down, so that devices which lie on each other in a circle end it.
pub struct Lookup<'h> {
    host: &'h Host,
    mounts: &'h [Mount],
    way: Vec<DeviceNumber>,
}

impl<'h> Lookup<'h> {
    pub fn new(host: &'h Host, mounts: &'h [Mount]) -> Self {
        Self { host, mounts, way: Vec::new() }
    }

    /// The whole disks on which a file system lies directly.
    pub fn of_mount(&mut self, mount: &Mount) -> Vec<Device> {
        if mount.fs_type == "overlay" {
            return self.of_overlay(mount);
        }
        let numbers = if mount.device.0 == 0 { self.of_anonymous(mount) } else { vec![mount.device] };
        self.each(numbers)
    }

    /// What is written to an overlay goes to its upper directory, where that can be seen from here and is no overlay itself.
    fn of_overlay(&mut self, mount: &Mount) -> Vec<Device> {
        let upper = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir=")).map(PathBuf::from);
        let upper = upper.and_then(|path| self.host.resolve(path));
        let holding = upper.and_then(|path| mounts::holding(self.mounts, &path, None)).filter(|holding| holding.fs_type != "overlay");
        holding.map(|holding| self.of_mount(holding)).unwrap_or_default()
    }

    /// The whole disks under a resolved path.
    pub fn of_path(&mut self, path: &Path) -> Vec<Device> {
        mounts::holding(self.mounts, path, None).map(|mount| self.of_mount(mount)).unwrap_or_default()
    }

    /// The whole disk of a device file's path, as a swap area or a loop device names it.
    pub fn of_device_file(&mut self, path: &Path) -> Vec<Device> {
        let number = self.number_of_file(path);
        self.each(number)
    }

    /// The kernel's name of a block device or partition.
    pub fn name_of(&self, number: DeviceNumber) -> Option<String> {
        let directory = self.host.resolve(format!("/sys/dev/block/{}:{}", number.0, number.1))?;
        Some(directory.file_name()?.to_str()?.replace('!', "/"))
    }

    fn each(&mut self, numbers: impl IntoIterator<Item = DeviceNumber>) -> Vec<Device> {
        let mut devices: Vec<Device> = Vec::new();
        for number in numbers {
            let device = self.whole_disk(number);
            devices.extend(device.filter(|device| devices.iter().all(|known| known.number != device.number)));
        }
        devices
    }

    /// A file system with an anonymous number may still lie on devices: its source names one (btrfs) or all (bcachefs, with colons).
    fn of_anonymous(&self, mount: &Mount) -> Vec<DeviceNumber> {
        let sources = mount.source.as_bytes().split(|&byte| byte == b':').map(|path| Path::new(OsStr::from_bytes(path)));
        let sources: Vec<DeviceNumber> = sources.filter(|path| path.starts_with("/dev")).filter_map(|path| self.number_of_file(path)).collect();
        if mount.fs_type != "btrfs" {
            return sources;
        }
        let members = |id: String| {
            let directory = Path::new("/sys/fs/btrfs").join(id).join("devices");
            self.host.names(&directory).into_iter().filter_map(|name| self.number_at(&directory.join(name))).collect::<Vec<_>>()
        };
        let file_systems = self.host.names("/sys/fs/btrfs").into_iter().map(members);
        file_systems.into_iter().find(|members| sources.iter().any(|source| members.contains(source))).unwrap_or(sources)
    }

    fn number_of_file(&self, path: &Path) -> Option<DeviceNumber> {
        let resolved = self.host.resolve(path).unwrap_or_else(|| path.to_owned());
        let name = resolved.strip_prefix("/dev").ok()?.to_str()?.to_owned();
        let class = Path::new("/sys/class/block");
        // sysfs writes a slash in a name as an exclamation mark.
        if let Some(number) = self.number_at(&class.join(name.replace('/', "!"))) {
            return Some(number);
        }
        // Without udev the mapper's names are device files of their own.
        let mapped = name.strip_prefix("mapper/")?;
        let of_name = |device: &String| self.host.fact(class.join(device).join("dm/name")).as_deref() == Some(mapped);
        let device = self.host.names(class).into_iter().find(of_name)?;
        self.number_at(&class.join(device))
    }

    fn number_at(&self, directory: &Path) -> Option<DeviceNumber> {
        mounts::parse_number(&self.host.fact(directory.join("dev"))?)
    }

    fn whole_disk(&mut self, number: DeviceNumber) -> Option<Device> {
        let mut directory = self.host.resolve(format!("/sys/dev/block/{}:{}", number.0, number.1))?;
        if self.host.fact(directory.join("partition")).is_some() {
            directory.pop();
        }
        let number = self.number_at(&directory)?;
        if self.way.contains(&number) {
            return None;
        }
        self.way.push(number);
        let device = self.describe(&directory, number);
        self.way.pop();
        device
    }

    fn describe(&mut self, directory: &Path, number: DeviceNumber) -> Option<Device> {
        let host = self.host;
        let name = directory.file_name()?.to_str()?.replace('!', "/");
        let yes_or_no = |fact: &str| host.number(directory.join(fact)).map(|value| value != 0);
        let backing_file = host.bytes(directory.join("loop/backing_file")).map(backing_path);
        let transport = transport(directory);
        let is_ram = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        let in_memory = name.strip_prefix("zram").or_else(|| name.strip_prefix("ram")).is_some_and(is_ram)
            || backing_file
                .as_deref()
                .and_then(|file| mounts::holding(self.mounts, file, None))
                .is_some_and(|mount| mounts::in_memory(&mount.fs_type));
        let members = directory.join("slaves");
        let members: Vec<DeviceNumber> = host.names(&members).iter().filter_map(|name| self.number_at(&members.join(name))).collect();
        let under = match &backing_file {
            Some(file) => self.under_file(file),
            None => self.each(members),
        };
        let fact = |fact: &str| host.fact(directory.join("device").join(fact));
        // The directory from which the buses are seen: that of the controller where the kernel shows several as one.
        let bus_place = if transport == Some(Transport::Nvme) { nvme::controller(host, directory) } else { None };
        let bus_place = bus_place.as_deref().unwrap_or(directory);
        let on_usb = if transport == Some(Transport::Usb) { usb::read(host, directory) } else { None };
        let on_ata = if transport == Some(Transport::Ata) { ata::read(host, directory) } else { None };
        let on_mmc = (transport == Some(Transport::Mmc)).then(|| mmc::read(host, directory));
        // What a controller's own link carries is not known well enough to limit USB: those inside a chipset state anything.
        let mut links = if matches!(transport, Some(Transport::Nvme | Transport::Ata)) { pcie::hops(host, bus_place) } else { Vec::new() };
        links.extend(on_ata.iter().flat_map(|drive| drive.hops.clone()));
        links.extend(on_usb.iter().flat_map(|(_, hops)| hops.clone()).chain(on_mmc.iter().flat_map(|(_, hops)| hops.clone())));
        if host::virtualised(host) == Some(true) {
            links.clear();
        }
        let of_usb = |device: &(Usb, Vec<Hop>)| device.0.driver.clone();
        Some(Device {
            model: self.model(directory, &name, transport, backing_file.as_deref(), on_ata.as_ref().and_then(|drive| drive.model.clone())),
            firmware: on_ata
                .as_ref()
                .and_then(|drive| drive.firmware.clone())
                .or_else(|| ["firmware_rev", "fwrev", "rev"].into_iter().find_map(fact)),
            serial: on_ata.as_ref().and_then(|drive| drive.serial.clone()).or_else(|| serial(host, directory)),
            number,
            size_bytes: host.number(directory.join("size")).and_then(|sectors| sectors.checked_mul(512)),
            rotational: yes_or_no("queue/rotational").and_then(|turns| turns_for_sure(host, directory, transport, turns)),
            removable: yes_or_no("removable"),
            volatile_cache: host.fact(directory.join("queue/write_cache")).and_then(|mode| match mode.as_str() {
                "write back" => Some(true),
                // The kernel also says so of devices that do not answer the question, as most USB bridges and cards do not.
                "write through" if matches!(transport, Some(Transport::Nvme | Transport::Ata | Transport::Virtio | Transport::Loop)) => Some(false),
                _ => None,
            }),
            transport,
            driver: on_usb.as_ref().and_then(of_usb).or_else(|| driver(host, bus_place)),
            controller: pcie::functions(bus_place).last().and_then(|function| pcie::address(function)).map(str::to_owned),
            pcie: if transport == Some(Transport::Nvme) { pcie::read(host, bus_place) } else { None },
            usb: on_usb.map(|(usb, _)| usb),
            sata: on_ata.map(|drive| drive.sata),
            mmc: on_mmc.map(|(card, _)| card),
            queue: queue::read(host, directory),
            links,
            place: directory.to_owned(),
            direct_io: yes_or_no("loop/dio"),
            in_memory,
            backing_file,
            under,
            name,
        })
    }

    fn under_file(&mut self, file: &Path) -> Vec<Device> {
        if file.starts_with("/dev") {
            let devices = self.of_device_file(file);
            if !devices.is_empty() {
                return devices;
            }
        }
        self.of_path(file)
    }

    fn model(
        &self,
        directory: &Path,
        name: &str,
        transport: Option<Transport>,
        backing_file: Option<&Path>,
        in_full: Option<String>,
    ) -> Option<String> {
        if let Some(file) = backing_file {
            return Some(format!("loop device on {}", file.display()));
        }
        if let Some(mapped) = self.host.fact(directory.join("dm/name")) {
            return Some(format!("device-mapper volume {mapped}"));
        }
        if let Some(level) = self.host.fact(directory.join("md/level")) {
            return Some(format!("{level} array"));
        }
        if name.starts_with("zram") {
            return Some("compressed memory".to_owned());
        }
        if in_full.is_some() {
            return in_full;
        }
        let fact = |fact: &str| self.host.fact(directory.join("device").join(fact));
        // "ATA" is the name of the standard, a number that of a bus: neither is a maker's.
        let vendor = fact("vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
        // SD cards and eMMC have a name instead of a model.
        let model = [vendor, fact("model").or_else(|| fact("name"))].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let model = model.split_whitespace().collect::<Vec<_>>().join(" ");
        if model.is_empty() && transport == Some(Transport::Virtio) {
            Some("virtual disk".to_owned())
        } else {
            Some(model).filter(|model| !model.is_empty())
        }
    }
}

/// The serial number: of the drive itself (SCSI: vital product data page 0x80), else of the USB device that it is in.
fn serial(host: &Host, directory: &Path) -> Option<String> {
    let page = host.bytes(directory.join("device/vpd_pg80"));
    let of_page = page.and_then(|page| String::from_utf8(page.get(4..)?.to_vec()).ok());
    let of_page = of_page.map(|text| text.trim_matches(['\0', ' ']).to_owned()).filter(|text| !text.is_empty());
    let of_usb = || {
        let device = directory.ancestors().find(|ancestor| host.fact(ancestor.join("idVendor")).is_some())?;
        host.fact(device.join("serial"))
    };
    of_page.or_else(|| host.fact(directory.join("device/serial"))).or_else(|| host.fact(directory.join("serial"))).or_else(of_usb)
}

/// The kernel takes for a turning disk what does not say otherwise, as most sticks and virtual disks do not. A disk that says it has its rate of turning in the page of SCSI's
/// block device characteristics (SBC-4, 6.6.2), which is above 1024 a minute.
fn turns_for_sure(host: &Host, directory: &Path, transport: Option<Transport>, turns: bool) -> Option<bool> {
    let assumed = turns && matches!(transport, Some(Transport::Usb | Transport::Virtio | Transport::Mmc));
    let says_so = || {
        host.bytes(directory.join("device/vpd_pgb1"))
            .is_some_and(|page| page.get(4..6).is_some_and(|rate| rate > [4, 0].as_slice() && rate < [255, 255].as_slice()))
    };
    (!assumed || says_so()).then_some(turns)
}

/// The driver of the bus nearest to the device: those that only make a disk of it are left out.
fn driver(host: &Host, place: &Path) -> Option<String> {
    place.ancestors().filter_map(|ancestor| host.link_name(ancestor.join("driver"))).find(|driver| driver != "sd" && driver != "mmcblk")
}

/// The path in a loop device's `backing_file`: up to the end of the line, without the mark of a removed file.
fn backing_path(mut bytes: Vec<u8>) -> PathBuf {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if let Some(path) = bytes.strip_suffix(b" (deleted)") {
        bytes.truncate(path.len());
    }
    OsString::from_vec(bytes).into()
}

/// The transport by the buses in the resolved sysfs path; the last one named is the nearest to the device.
fn transport(directory: &Path) -> Option<Transport> {
    let numbered = |part: &str, bus: &str| part.strip_prefix(bus).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let of_part = |part: &str| match part {
        "mmc_host" => Some(Transport::Mmc),
        "nvme" | "nvme-subsystem" => Some(Transport::Nvme),
        _ if numbered(part, "usb") => Some(Transport::Usb),
        _ if numbered(part, "virtio") => Some(Transport::Virtio),
        _ if numbered(part, "ata") => Some(Transport::Ata),
        _ if numbered(part, "loop") => Some(Transport::Loop),
        _ => None,
    };
    directory.iter().filter_map(OsStr::to_str).filter_map(of_part).next_back()
}
