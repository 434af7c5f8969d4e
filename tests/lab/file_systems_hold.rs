//! File systems on lab drives: made, written, remounted and read back; flushes and discards as they come; and nothing left behind.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::lab::drive::Speed;
use crate::lab::log::Kind;
use crate::lab::memory_fs::MemoryFs;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::{loops_below, mounts, run};
use crate::{needs, noise, stream};

const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

#[test]
fn what_is_written_is_read_back_after_a_remount() {
    for file_system in ALL {
        needs!(file_system.tool());
        let mut lab = LabDrive::builder().speed(Speed::rate(200_000_000)).file_system(file_system).start().unwrap();
        assert_eq!(lab.log.sums(), crate::lab::log::Sums::default(), "the log begins when the drive is ready");
        let data = noise(10 << 20);
        std::fs::write(lab.path().join("file"), &data).unwrap();
        lab.remount().unwrap();
        assert!(lab.log.sums().written_bytes >= 10 << 20, "{:?}", lab.log.sums());
        assert!(std::fs::read(lab.path().join("file")).unwrap() == data, "{file_system:?}");
        assert!(lab.log.sums().read_bytes >= 10 << 20, "{:?}", lab.log.sums());
    }
}

#[test]
fn a_drive_is_quiet_when_nothing_is_asked_of_it() {
    for file_system in ALL {
        needs!(file_system.tool());
        let lab = LabDrive::builder().file_system(file_system).start().unwrap();
        std::thread::sleep(Duration::from_secs(3));
        println!("{file_system:?}: {:?}", lab.log.sums());
        assert!(lab.log.sums().writes <= 8, "{file_system:?} {:?}", lab.log.sums());
    }
}

#[test]
fn flushes_are_counted_alike_by_the_kernel_and_by_the_log() {
    for file_system in ALL {
        needs!(file_system.tool());
        let lab = LabDrive::builder().file_system(file_system).start().unwrap();
        let flushes = || (lab.log.sums().flushes, lab.stat().unwrap()[15]);
        let mut file = File::create(lab.path().join("file")).unwrap();
        let mut told = Vec::new();
        for step in [
            "syncfs after writing",
            "syncfs again",
            "fsync after writing",
            "fsync again",
            "fsync after overwriting",
            "syncfs after overwriting",
            "syncfs after overwriting",
            "syncfs after overwriting",
        ] {
            let before = flushes();
            if step.contains("after overwriting") {
                rustix::io::pwrite(&file, &noise(4096), 0).unwrap();
            } else if step.contains("after") {
                file.write_all(&noise(1 << 20)).unwrap();
            }
            if step.starts_with("syncfs") {
                rustix::fs::syncfs(file.as_fd()).unwrap();
            } else {
                file.sync_all().unwrap();
            }
            let after = flushes();
            assert_eq!(after.0 - before.0, after.1 - before.1, "{file_system:?} {step}");
            // XFS sends none for syncfs when only data were overwritten and the time of change stayed within one tick: its log is clean then.
            let may_be_none = step.ends_with("again") || (file_system == FileSystem::Xfs && step == "syncfs after overwriting");
            assert!(after.0 > before.0 || may_be_none, "{file_system:?} {step}");
            told.push(format!("{step}: {}", after.0 - before.0));
        }
        println!("{file_system:?}: flushes: {}", told.join("; "));
    }
}

#[test]
fn options_reach_the_programs() {
    needs!("mkfs.btrfs");
    let place = tempfile::tempdir().unwrap();
    let lab = LabDrive::builder()
        .size(512 << 20)
        .mount_on(place.path())
        .sector_size(4096)
        .file_system(FileSystem::Btrfs)
        .mkfs_options(&["--label", "lab"])
        .mount_options("compress-force=zstd")
        .start()
        .unwrap();
    assert_eq!(lab.path(), place.path());
    assert_eq!(lab.attribute("queue/logical_block_size").unwrap(), "4096");
    assert_eq!(lab.attribute("size").unwrap(), (1 << 20).to_string());
    assert!(run("btrfs", ["filesystem", "show", &lab.path().display().to_string()]).unwrap().contains("'lab'"));
    std::fs::write(lab.path().join("file"), vec![7; 20 << 20]).unwrap();
    rustix::fs::syncfs(File::open(lab.path()).unwrap()).unwrap();
    let written = lab.log.sums().written_bytes;
    assert!(written > 0 && written < 5 << 20, "compressed: {written}");
}

#[test]
fn what_is_discarded_gives_its_memory_back() {
    needs!("blkdiscard");
    let lab = LabDrive::builder().start().unwrap();
    stream(lab.device(), Kind::Write, 0, 1 << 20, 16).unwrap();
    assert_eq!(lab.store.used_bytes(), 16 << 20);
    let range = ["--offset", "4096", "--length", "8388608"].map(str::to_owned);
    run("blkdiscard", range.into_iter().chain([lab.device().display().to_string()])).unwrap();
    assert_eq!((lab.log.sums().discards, lab.log.sums().discarded_bytes), (1, 8 << 20));
    // The chunks at both ends are only partly free.
    assert_eq!(lab.store.used_bytes(), (16 << 20) - (8 << 20) + (256 << 10));
    let mut edges = [9; 2];
    for (place, expected) in [(4095, [1, 0]), ((8 << 20) + 4095, [0, 1])] {
        lab.store.read(place, &mut edges);
        assert_eq!(edges, expected);
    }
}

#[test]
fn several_drives_live_at_once_and_leave_nothing_even_after_a_panic() {
    needs!("mkfs.ext4");
    let labs = std::thread::spawn(|| {
        let labs = [1, 2, 3].map(|_| LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(1_000_000)).start().unwrap());
        for (index, lab) in labs.iter().enumerate() {
            std::fs::write(lab.path().join("file"), [index as u8]).unwrap();
        }
        let devices = labs.each_ref().map(|lab| lab.device().to_owned());
        assert_ne!(devices[0], devices[1]);
        labs[1].faults.hang();
        std::panic::panic_any(labs.each_ref().map(|lab| lab.path().to_owned()));
    });
    let places = *labs.join().unwrap_err().downcast::<[std::path::PathBuf; 3]>().unwrap();
    for place in &places {
        let directory = place.parent().unwrap();
        assert!(!directory.exists());
        assert_eq!(loops_below(directory).unwrap(), Vec::<std::path::PathBuf>::new());
        assert!(mounts().unwrap().iter().all(|mount| !mount.place.starts_with(directory)));
    }
}

#[test]
fn a_tree_is_copied_to_the_file_system_in_memory() {
    needs!("cp", "diff");
    let memory = MemoryFs::start(64 << 20).unwrap();
    let source = tempfile::tempdir().unwrap();
    std::fs::create_dir(source.path().join("directory")).unwrap();
    for index in 0..200 {
        std::fs::write(source.path().join(format!("directory/{index}")), noise(index * 1000)).unwrap();
    }
    let target = memory.path().join("copy");
    run("cp", [Path::new("-a"), source.path(), &target]).unwrap();
    run("diff", [Path::new("-r"), source.path(), &target]).unwrap();
    let file = target.join("directory/199");
    let modified = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(&file), modified(&source.path().join("directory/199")));
    assert!(modified(&file) > SystemTime::UNIX_EPOCH);
    File::open(&file).unwrap().sync_all().unwrap();
    rustix::fs::syncfs(File::open(&target).unwrap()).unwrap();

    let space = rustix::fs::statvfs(memory.path()).unwrap();
    assert_eq!((space.f_blocks * space.f_frsize, (space.f_blocks - space.f_bfree) * space.f_frsize / 1_000_000), (64 << 20, 19));
    std::fs::rename(&file, target.join("renamed")).unwrap();
    assert!(std::fs::remove_dir(&target).is_err());
    assert_eq!(std::fs::write(target.join("large"), noise(60 << 20)).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    std::fs::remove_dir_all(&target).unwrap();
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0);
}
