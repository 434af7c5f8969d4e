//! Tests of identification: machines built as trees of files, and this machine against `findmnt`.
#![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;
use crate::drive::Transport;
use crate::platform::OsFiles;

/// A machine of files below a temporary root.
struct Machine {
    root: tempfile::TempDir,
    mounts: String,
}

impl Machine {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), mounts: String::new() }
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.path().join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, target: &str, link: &str) {
        let (target, link) = (self.root.path().join(&target[1..]), self.root.path().join(&link[1..]));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }

    /// A block device at a place in sysfs, with facts as `name=value`.
    fn device(&self, place: &str, number: &str, facts: &[(&str, &str)]) {
        let directory = format!("/sys/devices/{place}");
        self.write(&format!("{directory}/dev"), &format!("{number}\n"));
        for (fact, value) in facts {
            self.write(&format!("{directory}/{fact}"), &format!("{value}\n"));
        }
        self.link(&directory, &format!("/sys/dev/block/{number}"));
        let name = place.rsplit('/').next().unwrap();
        self.link(&directory, &format!("/sys/class/block/{name}"));
    }

    fn mount(&mut self, device: &str, point: &str, fs_type: &str, source: &str) {
        self.mounts += &format!("36 35 {device} / {point} rw,relatime shared:1 - {fs_type} {source} rw\n");
        self.write("/proc/self/mountinfo", &self.mounts);
    }

    fn drive(&self, path: &str, number: DeviceNumber) -> Drive {
        Drive::of(&Host::at(self.root.path()), path.into(), number)
    }

    fn with_sata_system() -> Self {
        let mut machine = Self::new();
        let disk = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda";
        machine.device(
            disk,
            "8:0",
            &[
                ("size", "492187500"),
                ("device/vendor", "ATA     "),
                ("device/model", "Samsung SSD 860 "),
                ("queue/rotational", "0"),
                ("queue/write_cache", "write back"),
                ("removable", "0"),
            ],
        );
        machine.device(&format!("{disk}/sda2"), "8:2", &[("partition", "2"), ("size", "1000")]);
        machine.device(&format!("{disk}/sda3"), "8:3", &[("partition", "3"), ("size", "1000")]);
        machine.mount("8:2", "/", "ext4", "/dev/sda2");
        machine
    }

    fn with_virtual_system() -> Self {
        let mut machine = Self::new();
        machine.device("pci0000:00/0000:00:02.0/virtio1/block/vda", "254:0", &[("size", "536870912"), ("device/vendor", "0x1af4")]);
        machine.mount("254:0", "/", "ext4", "/dev/vda");
        machine
    }
}

fn leaves(drive: &Drive) -> Vec<&str> {
    drive.leaves().iter().map(|device| device.name.as_str()).collect()
}

#[test]
fn a_partition_of_a_sata_disk() {
    let machine = Machine::with_sata_system();
    let drive = machine.drive("/home/me", (8, 2));
    assert_eq!(drive.to_string(), "/home/me on Samsung SSD 860 (ext4, 252 GB, sda), this is the system disk");
    let disk = &drive.devices[0];
    assert_eq!((disk.number, disk.transport, disk.size_bytes), ((8, 0), Some(Transport::Ata), Some(252_000_000_000)));
    assert_eq!((disk.rotational, disk.removable, drive.volatile_cache()), (Some(false), Some(false), Some(true)));
    assert_eq!(drive.mount.as_ref().unwrap().options, "rw,relatime");
    assert_eq!((drive.max_file_bytes(), drive.counted(), drive.lock_numbers()), (None, vec![(8, 0)], vec![(8, 0)]));
}

#[test]
fn an_nvme_drive_with_write_through_is_not_the_system_disk_until_it_holds_swap() {
    let mut machine = Machine::with_sata_system();
    let disk = "pci0000:00/0000:00:1d.0/nvme/nvme0/nvme0n1";
    machine.device(disk, "259:0", &[("device/model", "KINGSTON SNV2S1000G"), ("size", "1953525168"), ("queue/write_cache", "write through")]);
    machine.device(&format!("{disk}/nvme0n1p1"), "259:1", &[("partition", "1")]);
    machine.device(&format!("{disk}/nvme0n1p2"), "259:2", &[("partition", "2")]);
    machine.mount("259:1", "/data", "xfs", "/dev/nvme0n1p1");
    let drive = machine.drive("/data", (259, 1));
    assert_eq!(drive.to_string(), "/data on KINGSTON SNV2S1000G (xfs, 1.00 TB, nvme0n1)");
    assert_eq!((drive.devices[0].transport, drive.volatile_cache(), drive.is_system_disk), (Some(Transport::Nvme), Some(false), Some(false)));
    assert_eq!(drive.same_physical(&machine.drive("/home", (8, 2))), Some(false));
    machine.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1p2 partition 100 0 -2\n");
    assert_eq!(machine.drive("/data", (259, 1)).is_system_disk, Some(true));
    machine.write("/proc/swaps", "Filename Type Size Used Priority\n/data/swap\\040file file 100 0 -2\n");
    assert_eq!(machine.drive("/data", (259, 1)).is_system_disk, Some(true));
}

#[test]
fn a_usb_stick_whose_mount_point_has_spaces() {
    let mut machine = Machine::with_sata_system();
    let disk = "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb";
    let facts = [("device/vendor", "SanDisk "), ("device/model", "Ultra   Fit"), ("removable", "1"), ("size", "60062500")];
    machine.device(disk, "8:16", &facts);
    machine.device(&format!("{disk}/sdb1"), "8:17", &[("partition", "1")]);
    machine.mount("8:17", "/media/me/MY\\040STICK", "vfat", "/dev/sdb1");
    let drive = machine.drive("/media/me/MY STICK/photos", (8, 17));
    assert_eq!(drive.to_string(), "/media/me/MY STICK/photos on SanDisk Ultra Fit (vfat, 30.8 GB, sdb)");
    assert_eq!((drive.devices[0].transport, drive.devices[0].removable), (Some(Transport::Usb), Some(true)));
    assert_eq!((drive.max_file_bytes(), drive.volatile_cache()), (Some(4_294_967_295), None));
    assert_eq!(drive.mount.unwrap().point, Path::new("/media/me/MY STICK"));
}

#[test]
fn an_sd_card_has_a_name_instead_of_a_model() {
    let mut machine = Machine::with_sata_system();
    machine.device("platform/fe340000.mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0", "179:0", &[("device/name", "SD64G"), ("device/type", "SD")]);
    machine.mount("179:0", "/media/card", "exfat", "/dev/mmcblk0");
    let drive = machine.drive("/media/card", (179, 0));
    assert_eq!(drive.to_string(), "/media/card on SD64G (exfat, mmcblk0)");
    assert_eq!(drive.devices[0].transport, Some(Transport::Mmc));
}

#[test]
fn a_loop_device_lies_on_the_drive_of_its_file() {
    let mut machine = Machine::with_virtual_system();
    machine.device("virtual/block/loop0", "7:0", &[("loop/backing_file", "/var/tmp/image (deleted)"), ("loop/dio", "1"), ("size", "2097152")]);
    machine.mount("7:0", "/mnt/lab", "ext4", "/dev/loop0");
    let drive = machine.drive("/mnt/lab", (7, 0));
    assert_eq!(drive.to_string(), "/mnt/lab on loop device on /var/tmp/image (ext4, 1.07 GB, loop0), this is the system disk");
    assert_eq!((leaves(&drive), drive.devices[0].direct_io), (vec!["vda"], Some(true)));
    assert_eq!((drive.counted(), drive.lock_numbers()), (vec![(7, 0)], vec![(254, 0)]));
    assert_eq!(drive.devices[0].under[0].model.as_deref(), Some("virtual disk"));
    assert_eq!(drive.same_physical(&machine.drive("/home", (254, 0))), Some(true));
}

#[test]
fn a_loop_device_over_a_fuse_file_is_its_own_physical_drive() {
    let mut machine = Machine::with_virtual_system();
    machine.mount("0:50", "/run/lab", "fuse.lab", "lab");
    machine.device("virtual/block/loop1", "7:1", &[("loop/backing_file", "/run/lab/drive")]);
    machine.mount("7:1", "/mnt/lab", "ext4", "/dev/loop1");
    let drive = machine.drive("/mnt/lab", (7, 1));
    assert_eq!((leaves(&drive), drive.is_system_disk), (vec!["loop1"], Some(false)));
}

#[test]
fn loop_devices_in_a_circle_end() {
    let mut machine = Machine::with_virtual_system();
    machine.device("virtual/block/loop1", "7:1", &[("loop/backing_file", "/mnt/two/image")]);
    machine.device("virtual/block/loop2", "7:2", &[("loop/backing_file", "/mnt/one/image")]);
    machine.mount("7:1", "/mnt/one", "ext4", "/dev/loop1");
    machine.mount("7:2", "/mnt/two", "ext4", "/dev/loop2");
    assert_eq!(leaves(&machine.drive("/mnt/one", (7, 1))), ["loop2"]);
}

#[test]
fn a_btrfs_lies_on_all_its_members_and_its_subvolumes_have_other_numbers() {
    let mut machine = Machine::with_virtual_system();
    machine.device("virtual/block/loop3", "7:3", &[("loop/backing_file", "/var/one"), ("size", "2000000")]);
    machine.device("virtual/block/loop4", "7:4", &[("loop/backing_file", "/var/two"), ("size", "4000000")]);
    machine.write("/sys/fs/btrfs/features/free_space_tree", "0");
    for name in ["loop3", "loop4"] {
        machine.link(&format!("/sys/devices/virtual/block/{name}"), &format!("/sys/fs/btrfs/0f0f-11/devices/{name}"));
    }
    machine.write("/dev/loop3", "");
    machine.mount("0:35", "/pool", "btrfs", "/dev/loop3");
    let drive = machine.drive("/pool/subvolume", (0, 36));
    assert_eq!(
        drive.to_string(),
        "/pool/subvolume on loop device on /var/one + loop device on /var/two (btrfs, 3.07 GB, loop3 + loop4), this is the system disk"
    );
    assert_eq!((drive.counted(), leaves(&drive)), (vec![(7, 3), (7, 4)], vec!["vda"]));
}

#[test]
fn an_encrypted_volume_is_counted_where_its_disk_is() {
    let mut machine = Machine::with_sata_system();
    machine.device("virtual/block/dm-0", "253:0", &[("dm/name", "crypt home"), ("size", "1000")]);
    machine.link("/sys/class/block/sda3", "/sys/devices/virtual/block/dm-0/slaves/sda3");
    machine.mount("0:40", "/home", "btrfs", "/dev/mapper/crypt\\040home");
    let drive = machine.drive("/home", (0, 41));
    assert_eq!((leaves(&drive), drive.counted(), drive.is_system_disk), (vec!["sda"], vec![(8, 0)], Some(true)));
    assert_eq!(drive.to_string(), "/home on device-mapper volume crypt home on Samsung SSD 860 (btrfs, 512 kB, dm-0), this is the system disk");
}

#[test]
fn field_c18_what_lies_on_no_device_is_named() {
    let mut machine = Machine::with_virtual_system();
    machine.mount("0:23", "/dev/shm", "tmpfs", "tmpfs");
    machine.mount("0:51", "/mnt/far", "fuse.sshfs", "me@host:/srv");
    machine.mount("0:52", "/mnt/nfs", "nfs4", "nas:/export");
    machine.mount("0:53", "/mnt/zfs", "zfs", "tank/data");
    let sentence = |path, minor| machine.drive(path, (0, minor)).to_string();
    assert_eq!(sentence("/dev/shm", 23), "/dev/shm in memory (tmpfs)");
    assert_eq!(sentence("/mnt/far", 51), "/mnt/far behind a FUSE program (fuse.sshfs, me@host:/srv)");
    assert_eq!(sentence("/mnt/nfs/x", 52), "/mnt/nfs/x on a share (nfs4, nas:/export)");
    assert_eq!(sentence("/mnt/zfs", 53), "/mnt/zfs on an unknown drive (zfs)");
    let (memory, share, disk) = (machine.drive("/dev/shm", (0, 23)), machine.drive("/mnt/nfs", (0, 52)), machine.drive("/", (254, 0)));
    assert_eq!((memory.same_physical(&disk), share.same_physical(&disk), share.same_physical(&share)), (Some(false), None, Some(true)));
    assert_eq!((memory.is_system_disk, memory.lock_numbers()), (None, vec![(0, 23)]));
}

#[test]
fn where_the_root_is_an_overlay_the_system_disk_is_unknown() {
    let mut machine = Machine::new();
    machine.mount("0:30", "/", "overlay", "overlay");
    machine.device("pci0000:00/usb1/1-1/block/sdb", "8:16", &[]);
    machine.mount("8:16", "/media/stick", "vfat", "/dev/sdb");
    assert_eq!(machine.drive("/root", (0, 30)).to_string(), "/root on an overlay file system (overlay)");
    assert_eq!(machine.drive("/media/stick", (8, 16)).is_system_disk, None);
}

#[test]
fn without_any_facts_everything_is_unknown() {
    let drive = Machine::new().drive("/x", (8, 2));
    assert_eq!((drive.mount.as_ref(), drive.medium, drive.is_system_disk), (None, Medium::Unknown, None));
    assert_eq!(drive.to_string(), "/x on an unknown drive (unknown file system)");
}

#[test]
fn this_machine_is_seen_as_findmnt_sees_it() {
    for directory in ["/", "/dev/shm", "/proc"] {
        let Ok(output) = Command::new("findmnt").args(["-J", "-T", directory]).output() else {
            println!("skipped: findmnt is not installed");
            return;
        };
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = answer["filesystems"].as_array().unwrap().last().unwrap();
        let drive = Drive::identify(&Host::real(), &OsFiles, Path::new(directory)).unwrap();
        println!("{drive}");
        let mount = drive.mount.unwrap();
        assert_eq!(mount.point, Path::new(expected["target"].as_str().unwrap()));
        assert_eq!(mount.fs_type, expected["fstype"].as_str().unwrap());
        // findmnt names the directory of a bind mount in brackets.
        assert!(expected["source"].as_str().unwrap().starts_with(mount.source.to_str().unwrap()));
        assert_eq!(mount.options, expected["options"].as_str().unwrap());
    }
    assert!(Drive::identify(&Host::real(), &OsFiles, Path::new("/no/such/directory")).is_err());
    let here = Drive::identify(&Host::real(), &OsFiles, Path::new("src")).unwrap();
    assert_eq!(here.path, std::fs::canonicalize("src").unwrap());
}
