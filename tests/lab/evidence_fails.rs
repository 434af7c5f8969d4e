//! Where a cache, a compressor or shared blocks stand between copysim and the drive, the proof fails and the figure says so; on plain drives it holds.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::lab::drive::Speed;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::{persist, run};
use crate::needs;
use crate::program::{Order, Truth, gives_a_rate};

const RATE: u64 = 50_000_000;

fn drive(file_system: FileSystem) -> LabDrive {
    LabDrive::builder().file_system(file_system).speed(Speed::rate(RATE)).start().unwrap()
}

#[test]
fn field_a10_a_compressing_file_system_is_seen() {
    for (scenario, scale) in [("compressible-67-same-drive", "--scale 3%"), ("zero-fill-cross-drive", "--scale 5%")] {
        needs!("mkfs.btrfs");
        let lab = LabDrive::builder().file_system(FileSystem::Btrfs).mount_options("compress-force=zstd").speed(Speed::rate(RATE)).start().unwrap();
        let ended = Order::new(scenario, lab.path()).with(scale).with("--runs 1").paced(&[&lab]);
        let phase = ended.phase(1);
        println!("{scenario}: {} {}", phase["evidence"], phase["flags"]);
        // How much of a compressed source the drive had to serve can't be known.
        assert_eq!(phase.verdicts(), [if scenario.contains("same") { "unknown" } else { "holds" }, "fails", "holds"]);
        assert!(phase.flags("weak").contains(&"compressed") && phase.flags("invalid").is_empty(), "{}", phase["flags"]);
        assert!(ended.out.contains("compressed"), "{}", ended.out);
        phase.is_verified();
    }
}

#[test]
fn shared_blocks_are_seen_and_give_no_rate() {
    for file_system in [FileSystem::Xfs, FileSystem::Btrfs] {
        needs!(file_system.tool());
        let lab = drive(file_system);
        let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 2% --runs 1 --engine copy-file-range").paced(&[&lab]);
        let phase = ended.phase(1);
        println!("{file_system:?}: {} {}", phase["evidence"], phase["flags"]);
        assert_eq!(phase.verdict("moved"), "fails");
        assert_eq!(phase.flags("invalid"), ["shared-blocks"]);
        phase.is_verified();
        assert_eq!(ended.record["summary"], serde_json::json!([]));
        let words = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("instant, no bytes moved") && !gives_a_rate(&words), "{}", ended.out);
        // The same copy by reading and writing does move them.
        let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 2% --runs 1").paced(&[&lab]);
        ended.phase(1).is_proven(&[]);
    }
}

#[test]
fn field_a01_a_warm_cache_is_seen() {
    needs!("mkfs.ext4");
    let lab = drive(FileSystem::Ext4);
    for (cache, severity) in [("as-is", "invalid"), ("warm", "weak")] {
        let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1 --cache").with(cache).paced(&[&lab]);
        let phase = ended.phase(1);
        println!("{cache}: {} {}", phase["evidence"], phase["flags"]);
        assert_eq!(phase.verdicts(), ["fails", "holds", "holds"]);
        assert!(phase.flags(severity).contains(&"not-cold"), "{}", phase["flags"]);
        assert_eq!(ended.has_headline(), cache == "warm");
        // Another program may drop caches at any time: what the drive then served is what its log says.
        let truth = Truth::after(&lab.log, phase.opened_ns());
        assert!(phase.number("/device/d0/read_bytes").abs_diff(truth.read_bytes) < 1_000_000, "{truth:?} {}", phase["device"]);
    }
}

/// A loop device over a file on a lab drive whose data pass through this machine's cache, with a file system on it.
struct CachedLoop {
    device: PathBuf,
    place: tempfile::TempDir,
}

impl CachedLoop {
    fn on(lab: &LabDrive) -> Self {
        let file = lab.path().join("image");
        File::create(&file).unwrap().set_len(700 << 20).unwrap();
        let device = PathBuf::from(run("losetup", [Path::new("--find"), Path::new("--show"), &file]).unwrap().trim_end());
        let this = Self { device, place: tempfile::tempdir().unwrap() };
        run("mkfs.ext4", ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &this.device.display().to_string()]).unwrap();
        run("mount", [&*this.device, this.place.path()]).unwrap();
        run("sync", [Path::new("-f"), this.place.path()]).unwrap();
        this
    }

    fn attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(self.device.file_name().unwrap()).join(name)
    }
}

impl Drop for CachedLoop {
    fn drop(&mut self) {
        let restored = std::fs::write(self.attribute("queue/write_cache"), "write back");
        let unmounted = persist(|| run("umount", [self.place.path()]));
        let detached = run("losetup", [Path::new("-d"), &self.device]);
        crate::lab::system::complain("cached loop", restored.and(unmounted).and(detached).map(drop));
        persist(|| if self.attribute("loop/backing_file").exists() { Err(std::io::ErrorKind::ResourceBusy.into()) } else { Ok(()) }).unwrap();
    }
}

#[test]
fn a_cache_below_the_drive_is_dropped_and_flushed_by_root() {
    needs!("mkfs.ext4");
    let lab = drive(FileSystem::Ext4);
    let cached = CachedLoop::on(&lab);
    let ended = Order::new("large-file-same-drive", cached.place.path()).with("--scale 2% --runs 1").paced(&[&lab]);
    let phase = ended.phase(1);
    println!("{} {}", phase["evidence"], phase["flags"]);
    let truth = Truth::after(&lab.log, phase.opened_ns());
    // The drive below was read and written in the window, and copysim says so.
    assert!(truth.read_bytes >= 80_000_000 && truth.written_bytes >= 80_000_000, "{truth:?}");
    phase.is_proven(&[]);
}

#[test]
fn a_cache_below_the_drive_is_not_called_cold_for_an_ordinary_user() {
    needs!("mkfs.ext4", "setpriv");
    let lab = drive(FileSystem::Ext4);
    let cached = CachedLoop::on(&lab);
    let home = crate::users_directory(cached.place.path());
    let ended = Order::new("large-file-same-drive", &home).with("--scale 2% --runs 1").by_nobody().paced(&[&lab]);
    let phase = ended.phase(1);
    println!("{} {}", phase["evidence"], phase["flags"]);
    assert_ne!(phase.verdict("cold"), "holds");
    assert_eq!(phase.verdict("moved"), "holds");
    phase.is_verified();
}

#[test]
fn field_a14_a_device_that_swallows_flushes_is_seen() {
    needs!("mkfs.ext4");
    let lab = drive(FileSystem::Ext4);
    let cached = CachedLoop::on(&lab);
    // The kernel then believes that nothing is ever held back and sends no flushes: data stay in the cache below.
    std::fs::write(cached.attribute("queue/write_cache"), "write through").unwrap();
    let ended = Order::new("large-file-cross-drive", cached.place.path()).with("--scale 2% --runs 1").paced(&[&lab]);
    let phase = ended.phase(1);
    println!("{} {} {}", phase["evidence"], phase["flags"], phase["flush"]);
    let (opened, durable_ns) = (phase.opened_ns(), phase.number("/window/durable_ns"));
    let taken = lab.log.between(opened, opened + durable_ns).written_bytes;
    println!("the drive below took {taken} of {} in the window", phase.number("/bytes"));
    assert!(taken < 70_000_000, "{taken}");
    assert_eq!(phase.verdict("moved"), "fails");
    assert_eq!(phase.verdict("durable"), "fails", "{}", phase["evidence"]);
    assert_eq!(phase["flush"]["reaches_medium"], "no");
    assert!(phase.flags("invalid").contains(&"cached-write"), "{}", phase["flags"]);
    assert!(!ended.has_headline());
}

#[test]
fn memory_is_no_drive() {
    needs!();
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    for scenario in ["large-file-cross-drive", "large-file-same-drive"] {
        let ended = Order::new(scenario, place.path()).with("--scale 2% --runs 1").done();
        let phase = ended.phase(1);
        println!("{scenario}: {} {}", phase["evidence"], phase["flags"]);
        assert_eq!(phase.verdicts()[1..], ["fails", "fails"]);
        assert!(phase.flags("invalid").contains(&"cached-write"), "{}", phase["flags"]);
        assert!(!ended.has_headline());
        phase.is_verified();
    }
}

#[test]
fn a_plain_drive_is_proven() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        needs!(file_system.tool());
        let lab = drive(file_system);
        for scenario in ["large-file-same-drive", "large-file-cross-drive"] {
            let ended = Order::new(scenario, lab.path()).with("--scale 2% --runs 1").paced(&[&lab]);
            ended.phase(1).is_proven(&[]);
            assert!(ended.has_headline());
        }
    }
}
