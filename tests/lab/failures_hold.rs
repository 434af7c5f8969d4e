//! Drives that are too small, fill up, fail, vanish and lie: an exit code, a sentence, a valid record, and no word of success.

use std::path::Path;

use crate::lab::drive::Speed;
use crate::lab::faults::Damage;
use crate::lab::log::Kind;
use crate::lab::memory_fs::{MemoryFs, Nature};
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::run;
use crate::program::{Ended, Order, Running};
use crate::{left_in, needs, noise};

const MB: u64 = 1_000_000;

fn drive() -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(50 * MB)).start().unwrap()
}

/// A copy that failed: how it ended, and what the record says of the copy.
fn failed(ended: &Ended, sentence: &[&str]) {
    println!("{}", ended.err);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let phase = ended.phase(1);
    assert_eq!(phase["status"], "failed");
    let error = ended.record["error"].as_str().unwrap();
    assert_eq!(phase["error"], *error);
    assert!(sentence.iter().all(|part| error.contains(part)), "{error}");
    assert!(ended.err.contains(error), "{}", ended.err);
    ended.sounds_failed();
}

/// Waits until a copy within the drive has read so much of its 100 MB or more.
fn in_mid_copy(lab: &LabDrive, running: &Running) {
    running.wait_for("copying");
    let before = lab.log.sums().read_bytes;
    running.wait_until("read", || lab.log.sums().read_bytes >= before + 20 * MB);
}

#[test]
fn field_d01_a_drive_that_is_too_small_is_refused_with_a_scale_that_fits() {
    needs!("mkfs.ext4");
    let lab = LabDrive::builder().size(256 << 20).file_system(FileSystem::Ext4).start().unwrap();
    for scenario in ["large-file-same-drive", "small-files-same-drive", "jpg-cross-drive"] {
        run("sync", [Path::new("-f"), lab.path()]).unwrap();
        lab.log.clear();
        let ended = Order::new(scenario, lab.path()).with("--runs 1").run();
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        println!("{}", ended.err);
        run("sync", [Path::new("-f"), lab.path()]).unwrap();
        assert!(lab.log.sums().written_bytes < MB, "{:?}", lab.log.sums());
        let scale = ended.err.split("--scale ").nth(1).unwrap().split('%').next().unwrap().to_owned();
        assert!(scale.parse::<f64>().unwrap() >= 0.5, "{scale}");
        let ended = Order::new(scenario, lab.path()).with(&format!("--runs 1 --scale {scale}%")).done();
        ended.phase(1).is_verified();
        run(env!("CARGO_BIN_EXE_copysim"), [Path::new("clean"), lab.path()]).unwrap();
    }
}

#[test]
fn field_d01_a_drive_that_fills_up_loses_the_copy_and_keeps_the_corpus() {
    needs!("mkfs.ext4");
    let lab = drive();
    let running = Order::new("large-file-same-drive", lab.path()).with("--scale 4% --runs 1").start_before_the_window(&lab);
    in_mid_copy(&lab, &running);
    let filler = lab.path().join("filler");
    let file = std::fs::File::create(&filler).unwrap();
    let piece = 4 * MB;
    let full = (0..).find_map(|index| rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), index * piece, piece).err());
    assert_eq!(full, Some(rustix::io::Errno::NOSPC));
    failed(&running.end(), &["large-file", "(target)", "ENOSPC", "--scale"]);
    assert_eq!(left_in(lab.path()), Vec::<String>::new());
    drop(file);
    std::fs::remove_file(filler).unwrap();
    let again = Order::new("large-file-same-drive", lab.path()).with("--scale 4% --runs 1").done();
    assert!(again.err.contains("it is used again"), "{}", again.err);
    again.phase(1).is_proven(&[]);
}

#[test]
fn field_d01_a_file_system_that_overstates_its_space_loses_the_copy_and_keeps_the_corpus() {
    needs!();
    let memory = MemoryFs::with(Nature { capacity: 200 * MB, claims: Some(1000 * MB), ..Nature::default() }).unwrap();
    let order = Order::new("large-file-same-drive", memory.path()).with("--scale 3% --runs 1");
    failed(&order.run(), &["large-file", "(target)", "ENOSPC", "--scale"]);
    assert_eq!(left_in(memory.path()), Vec::<String>::new());
    let again = order.run();
    assert!(again.err.contains("it is used again"), "{}", again.err);
    failed(&again, &["ENOSPC"]);
}

#[test]
fn field_c10_errors_of_the_drive_end_the_copy_with_a_sentence() {
    for (fault, sentence) in [
        // The file system may by then have made itself read-only.
        (Some(Kind::Write), &["(target)", "(E"][..]),
        (Some(Kind::Flush), &["(target)", "(E"]),
        (Some(Kind::Read), &["read", "large-file", "(source)", "EIO"]),
        // Unplugged.
        (None, &["large-file", "(source)", "EIO"]),
    ] {
        needs!("mkfs.ext4");
        let lab = drive();
        // Writing begins before all is read.
        lab.hold_back(8 * MB).unwrap();
        let running = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 2").start_before_the_window(&lab);
        in_mid_copy(&lab, &running);
        match fault {
            Some(kind) => lab.faults.fail(kind, None, libc::EIO),
            None => lab.faults.vanish(libc::ENODEV),
        }
        lab.hold_back_no_more().unwrap();
        println!("{fault:?}:");
        failed(&running.end(), sentence);
        lab.faults.clear();
    }
}

#[test]
fn field_b03_a_failing_flush_after_a_copy_from_memory_is_told() {
    for kind in [Kind::Write, Kind::Flush] {
        needs!("mkfs.ext4");
        let lab = drive();
        let running = Order::new("large-file-cross-drive", lab.path()).with("--scale 3% --runs 1").start_before_the_window(&lab);
        running.wait_for("copying");
        let before = lab.log.sums().written_bytes;
        running.wait_until("wrote", || lab.log.sums().written_bytes >= before + MB);
        lab.faults.fail(kind, None, libc::EIO);
        let ended = running.end();
        failed(&ended, &["flush", "(target)", "(E"]);
        assert!(!ended.out.contains("everything is flushed"), "{}", ended.out);
        assert_eq!(ended.phase(1)["flush"]["reaches_medium"], "no");
        lab.faults.clear();
    }
}

/// Where a byte of a file lies on its drive, by the file system's own map.
pub fn place_of(file: &Path, byte: u64) -> u64 {
    let map = run("filefrag", ["-v", "-b1", &file.display().to_string()]).unwrap();
    // `   0:        0.. 134217727:  142606336.. 276824063: 134217728: …`
    let mut ranges = map.lines().filter_map(|line| {
        let numbers: Vec<u64> = line.split([':', '.', ' ']).filter(|word| !word.is_empty()).map_while(|word| word.parse().ok()).collect();
        let [_, from, until, place, ..] = *numbers.as_slice() else { return None };
        (from..=until).contains(&byte).then(|| place + byte - from)
    });
    ranges.next_back().unwrap_or_else(|| panic!("byte {byte} of {} lies nowhere: {map}", file.display()))
}

#[test]
fn field_c04_data_that_come_back_wrong_are_located() {
    const BYTE: u64 = 34_567_890;
    for (difference, first, last) in [("bits-flipped", BYTE, BYTE), ("zeroed", BYTE / 4096 * 4096, BYTE / 4096 * 4096 + 4095)] {
        needs!("mkfs.ext4", "filefrag");
        let lab = drive();
        let running = Order::new("large-file-same-drive", lab.path()).with("--scale 2% --runs 1").start_before_the_window(&lab);
        running.wait_for("waiting until the drive is quiet");
        let copy = left_in(lab.path()).into_iter().find(|path| path.ends_with(".bin")).unwrap();
        let place = place_of(Path::new(&copy), first);
        lab.faults.damage(match difference {
            "zeroed" => Damage::Zero(place..place + 4096),
            _ => Damage::Flip(place..place + 1, 0b100),
        });
        let ended = running.end();
        println!("{}{}", ended.err, ended.out);
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        let phase = ended.phase(1);
        let mismatches = phase["integrity"]["mismatches"].as_array().unwrap();
        assert_eq!(mismatches.len(), 1);
        assert!(copy.ends_with(mismatches[0]["path"].as_str().unwrap()), "{copy}");
        assert_eq!(mismatches[0]["difference"], difference);
        let range = ["first_byte", "last_byte"].map(|end| mismatches[0][end].as_u64().unwrap());
        assert_eq!(range, [first, last]);
        assert!(phase.flags("invalid").contains(&"data-differ"), "{}", phase["flags"]);
        assert_eq!((phase.number("/integrity/files_checked"), phase.number("/integrity/files_good")), (1, 0));
        ended.sounds_failed();
        assert!(ended.err.contains(&format!("byte {first}")), "{}", ended.err);
    }
}

#[test]
fn field_c04_damage_in_one_of_many_files_names_this_file() {
    needs!("mkfs.ext4", "filefrag");
    let lab = drive();
    // Something else of the user's must come through untouched.
    std::fs::write(lab.path().join("mine"), noise(100_000)).unwrap();
    let running = Order::new("jpg-same-drive", lab.path()).with("--scale 0.5% --runs 1").start_before_the_window(&lab);
    running.wait_for("waiting until the drive is quiet");
    let mut copies: Vec<String> = left_in(lab.path()).into_iter().filter(|path| path.to_lowercase().ends_with(".jpg")).collect();
    copies.sort_unstable();
    let copy = &copies[17];
    let place = place_of(Path::new(copy), 5000);
    lab.faults.damage(Damage::Flip(place..place + 1, 1));
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let phase = ended.phase(1);
    let mismatch = &phase["integrity"]["mismatches"][0];
    assert!(copy.ends_with(mismatch["path"].as_str().unwrap()) && mismatch["first_byte"] == 5000, "{mismatch} {copy}");
    let (checked, good) = (phase.number("/integrity/files_checked"), phase.number("/integrity/files_good"));
    assert_eq!((checked as usize, good), (copies.len(), checked - 1));
    assert!(std::fs::read(lab.path().join("mine")).unwrap() == noise(100_000));
}

/// `copysim corpus verify` of all that lies on the drive: its exit code and what it prints.
fn verify(lab: &LabDrive) -> (Option<i32>, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_copysim")).args(["corpus", "verify"]).arg(lab.path()).output().unwrap();
    println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes a corpus on the drive, flushed, and gives the files of it in order.
fn corpus(lab: &LabDrive, name: &str, scale: &str) -> Vec<std::path::PathBuf> {
    run(
        env!("CARGO_BIN_EXE_copysim"),
        [Path::new("corpus"), Path::new("generate"), Path::new(name), lab.path(), Path::new("--scale"), Path::new(scale)],
    )
    .unwrap();
    let entries = walkdir::WalkDir::new(lab.path().join("copysim-workspace/corpora")).into_iter().map(Result::unwrap);
    let mut files: Vec<_> = entries.filter(|entry| entry.file_type().is_file() && entry.path().to_string_lossy().contains("/files/")).collect();
    files.sort_by(|one, other| one.path().cmp(other.path()));
    files.into_iter().map(walkdir::DirEntry::into_path).collect()
}

#[test]
fn field_c17_bad_sectors_are_listed_with_their_files_and_the_others_are_checked() {
    needs!("mkfs.ext4", "filefrag");
    let lab = drive();
    lab.limit(false);
    let files = corpus(&lab, "jpg", "0.5%");
    let name = |index: usize| files[index].file_name().unwrap().to_string_lossy().into_owned();
    for index in [3, 20] {
        let place = place_of(&files[index], 70_000) / 4096 * 4096;
        lab.faults.fail(Kind::Read, Some(place..place + 4096), libc::EIO);
    }
    // A comparison names them all and goes on with the others.
    let (code, out) = verify(&lab);
    assert_eq!(code, Some(4));
    for index in [3, 20] {
        let line = out.lines().find(|line| line.contains(&name(index))).unwrap_or_else(|| panic!("{out}"));
        let byte: u64 = line.split_once("byte ").unwrap().1.split([':', ' ', ',']).next().unwrap().parse().unwrap();
        assert!(line.contains("(EIO)") && byte <= 70_000, "{line}");
    }
    assert!(out.ends_with(&format!("{} of {} files of jpg-v1-s0-p0.5 are good, 2 differ\n", files.len() - 2, files.len())), "{out}");
    // A copy is a measurement: with a piece missing there is nothing to measure. It ends at the first, which it names with place and errno.
    let ended = Order::new("jpg-same-drive", lab.path()).with("--scale 0.5% --runs 2").run();
    assert!(ended.err.contains("EIO"), "{}", ended.err);
    assert!(ended.code == Some(1) && !ended.has_headline(), "{}", ended.err);
    lab.faults.clear();
}

#[test]
fn field_c17_a_bad_sector_in_a_copy_is_told_with_file_place_and_errno() {
    needs!("mkfs.ext4", "filefrag");
    let lab = drive();
    let running = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 2").start_before_the_window(&lab);
    running.wait_for("copying");
    let source = walkdir::WalkDir::new(lab.path().join("copysim-workspace/corpora")).into_iter().map(|entry| entry.unwrap().into_path());
    let source = source.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "bin")).unwrap();
    const BYTE: u64 = 90_000_000;
    let place = place_of(&source, BYTE) / 4096 * 4096;
    lab.faults.fail(Kind::Read, Some(place..place + 4096), libc::EIO);
    let ended = running.end();
    failed(&ended, &["cannot read ", ".bin (source) at byte ", "(EIO)"]);
    let error = ended.record["error"].as_str().unwrap();
    let at: u64 = error.split_once("at byte ").unwrap().1.split(':').next().unwrap().parse().unwrap();
    // What was read before it is told, in pieces of the copier.
    assert!(at <= BYTE && BYTE - at <= 4 * MB, "{error}");
    assert_eq!((ended.runs(), ended.phase(1)["work"]["files_failed"].as_u64()), (1, Some(1)));
    assert_eq!(left_in(lab.path()), Vec::<String>::new());
    lab.faults.clear();
}

#[test]
fn field_c09_a_file_that_is_cut_while_it_is_read_is_said_to_be() {
    needs!("mkfs.ext4");
    let lab = drive();
    lab.limit(false);
    let files = corpus(&lab, "large-file", "3%");
    let [file] = files.as_slice() else { panic!("{files:?}") };
    lab.limit(true);
    let before = lab.log.sums().read_bytes;
    let checked = std::thread::scope(|scope| {
        let checked = scope.spawn(|| verify(&lab));
        while lab.log.sums().read_bytes < before + 20 * MB {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::File::options().write(true).open(file).unwrap().set_len(1000).unwrap();
        checked.join().unwrap()
    });
    // Not a signal that a mapping would bring (SIGBUS).
    assert_eq!(checked.0, Some(4));
    assert!(checked.1.contains(": truncated: ends at byte "), "{}", checked.1);
}

#[test]
fn field_d06_a_file_system_that_claims_what_no_drive_has_is_measured_as_one_that_says_nothing() {
    needs!();
    let memory = MemoryFs::with(Nature { capacity: 300 * MB, claims: Some(u64::MAX / 2), ..Nature::default() }).unwrap();
    let ended = Order::new("large-file-same-drive", memory.path()).with("--scale 2% --runs 1").done();
    assert!(ended.err.contains("does not say how much space it has"), "{}", ended.err);
    assert_eq!(ended.record["drives"][0]["fill_percent"], serde_json::Value::Null, "{}", ended.record["drives"]);
    ended.phase(1).is_verified();
    // Nor is it filled without being told how much that is.
    let refused = Order::capacity(memory.path()).run();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("does not say how much space it has: say --size"), "{}", refused.err);
}
