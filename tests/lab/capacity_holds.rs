//! Fakes of all kinds are known for what they are, with their real size; honest drives, full ones and failing ones are not taken for fakes. Drives have sizes,
//! real sizes and blocks of chance, the same in each run; `COPYSIM_ROUNDS` says how many of each kind (3 when not said).

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::drive::Speed;
use crate::lab::system::run;

use crate::lab::faults::{Beyond, Damage};
use crate::lab::log::Kind;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::needs;
use crate::program::{Ended, Order};

const MIB: u64 = 1 << 20;

/// All that ext4 keeps for itself lies at the front, small files and directories as well, as on drives that are sold: a fake would lose it otherwise, and with it
/// all files.
const PACKED: [&str; 12] = [
    "-m",
    "0",
    "-b",
    "4096",
    "-N",
    "64",
    "-I",
    "1024",
    "-O",
    "^has_journal,^resize_inode,flex_bg,sparse_super2,inline_data",
    "-E",
    "packed_meta_blocks=1,num_backup_sb=0,lazy_itable_init=0",
];

fn rounds() -> u64 {
    std::env::var("COPYSIM_ROUNDS").ok().map_or(3, |rounds| rounds.parse().unwrap())
}

/// Numbers of chance that are the same in each run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
}

fn chance(seed: u64) -> Chance {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15 ^ (seed << 32 | seed));
    for _ in 0..8 {
        chance.next();
    }
    chance
}

fn drive(size: u64) -> LabDrive {
    LabDrive::builder().size(size).file_system(FileSystem::Ext4).mkfs_options(&PACKED).start().unwrap()
}

/// What a check found.
struct Found {
    ended: Ended,
}

impl Found {
    fn capacity(&self) -> &Value {
        let phases = self.ended.record["runs"][0]["phases"].as_array().unwrap();
        phases.iter().rev().map(|phase| &phase["capacity"]).find(|found| !found.is_null()).unwrap_or_else(|| panic!("{}", self.ended.err))
    }

    fn verdict(&self) -> &str {
        self.capacity()["verdict"].as_str().unwrap()
    }

    fn number(&self, field: &str) -> u64 {
        self.capacity()[field].as_u64().unwrap_or_else(|| panic!("no {field} in {}: {}", self.ended.out, self.ended.err))
    }
}

fn check(lab: &LabDrive, arguments: &str) -> Found {
    Found { ended: Order::capacity(lab.path()).with(arguments).run() }
}

/// A fake of a size of chance: its claimed and its real size, which is from 1 to 90 % of it and whole blocks.
struct Fake {
    size: u64,
    real: u64,
    block: u64,
}

fn fake(chance: &mut Chance) -> Fake {
    let size = chance.between(48, 192) * MIB;
    let real = size / 1000 * chance.between(10, 900);
    // A block is far smaller than the whole, as on any drive.
    let block = (512 << chance.between(0, 8)).min(1_u64 << (real / 16).ilog2());
    Fake { size, real: real / block * block, block }
}

/// Checks fakes of one kind and how far the size that was found may be from the real one.
fn fakes(seed: u64, word: &str, below: impl Fn(&Fake) -> u64, beyond: impl Fn(&Fake, &mut Chance) -> Beyond) {
    needs!("mkfs.ext4");
    let mut chance = chance(seed);
    for round in 0..rounds() {
        let fake = fake(&mut chance);
        let Fake { size, real, block } = fake;
        let lab = drive(size);
        let beyond = beyond(&fake, &mut chance);
        lab.faults.stores_only(real, beyond);
        let found = check(&lab, "");
        let (told, first) = (found.capacity()["real_bytes"].as_u64(), found.capacity()["first_bad_byte"].as_u64());
        println!(
            "{word} {round}: {size} claimed, {real} real, blocks of {block}, {beyond:?}: {} with {told:?}, first bad {first:?}",
            found.verdict()
        );
        assert_eq!((found.verdict(), found.ended.code), (word, Some(4)), "{}{}", found.ended.out, found.ended.err);
        let told = told.unwrap();
        // What a cache keeps may lie right behind the end: then nobody can tell where that is.
        let over = if let Beyond::Cached(bytes) = beyond { bytes } else { 0 };
        // ext4 keeps one part in fifty free: where the end is in such a gap, it is after what is good and before what is not.
        let is_gap = first.unwrap() + below(&fake) >= real && real - told.min(real) <= size / 20;
        assert!(told <= real + over && (told + below(&fake) >= real || is_gap && word != "wraps"), "{told} for {real}: {}", found.ended.out);
        assert_eq!(found.number("claimed_bytes"), size);
        assert!(found.ended.out.starts_with("FAKED: This drive holds "), "{}", found.ended.out);
        assert!(!found.ended.has_headline());
    }
}

#[test]
fn field_c01_drives_that_wrap_are_known() {
    fakes(1, "wraps", |_| 0, |_, _| Beyond::Wraps);
}

#[test]
fn field_c01_drives_that_discard_are_known() {
    // Blocks of the file system that lie across the end are lost as a whole.
    fakes(2, "discards", |_| 8192, |_, _| Beyond::Lost);
}

#[test]
fn field_c01_drives_whose_last_block_stands_for_all_are_known() {
    fakes(3, "aliases", |fake| fake.block + 8192, |fake, _| Beyond::Aliases(fake.block));
}

#[test]
fn field_c01_drives_that_hide_behind_a_cache_are_known() {
    let cache = |fake: &Fake, chance: &mut Chance| {
        let beyond = fake.size - fake.real;
        Beyond::Cached(chance.between(beyond / 100, beyond / 5).max(MIB) / 4096 * 4096)
    };
    fakes(4, "hides-behind-cache", |_| 8192, cache);
}

#[test]
fn field_c01_honest_drives_are_honest() {
    needs!("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs");
    let mut chance = chance(5);
    let mut alarms = 0;
    for round in 0..rounds() {
        let lab = match round % 4 {
            0 => drive(chance.between(48, 192) * MIB),
            1 => LabDrive::builder().size(chance.between(48, 192) * MIB).file_system(FileSystem::Ext4).start().unwrap(),
            2 => LabDrive::builder().size(chance.between(320, 400) * MIB).file_system(FileSystem::Xfs).start().unwrap(),
            _ => LabDrive::builder().size(chance.between(160, 256) * MIB).file_system(FileSystem::Btrfs).start().unwrap(),
        };
        let found = check(&lab, "");
        println!("honest {round}: {} of {}", found.verdict(), found.number("tested_bytes"));
        alarms += u32::from(found.verdict() != "holds-all" || found.ended.code != Some(0));
        assert_eq!(found.number("good_bytes"), found.number("tested_bytes"));
        assert!(found.ended.out.starts_with("All ") && found.ended.out.contains("of free space hold what was written"), "{}", found.ended.out);
        assert_eq!(left(&lab), Vec::<String>::new());
        // What is read is read by nobody else.
        let phases = found.ended.record["runs"][0]["phases"].as_array().unwrap();
        assert!(phases.iter().all(|phase| !phase["flags"].to_string().contains("foreign-io")), "{}", found.ended.out);
    }
    assert_eq!(alarms, 0);
}

#[test]
fn field_b09_full_drives_are_honest() {
    needs!("mkfs.ext4");
    let mut chance = chance(6);
    for round in 0..rounds() {
        let lab = drive(chance.between(48, 192) * MIB);
        let free = rustix::fs::statvfs(lab.path()).unwrap();
        let free = free.f_bavail * free.f_frsize - chance.between(2, 9) * MIB;
        let ballast = std::fs::File::create(lab.path().join("mine")).unwrap();
        for offset in (0..free).step_by(1 << 20) {
            ballast.write_all_at(&vec![7; MIB.min(free - offset) as usize], offset).unwrap();
        }
        ballast.sync_all().unwrap();
        drop(ballast);
        let found = check(&lab, "");
        println!("full {round}: {} of {}", found.verdict(), found.number("tested_bytes"));
        assert_eq!((found.verdict(), found.ended.code), ("holds-all", Some(0)), "{}{}", found.ended.out, found.ended.err);
        assert!(std::fs::read(lab.path().join("mine")).unwrap().iter().all(|&byte| byte == 7));
        assert_eq!(left(&lab), ["mine"]);
    }
    // Another program takes the space while it is being filled.
    let lab = slow();
    let running = Order::capacity(lab.path()).start();
    running.wait_for("capacity: writing");
    let ballast = std::fs::File::create(lab.path().join("mine")).unwrap();
    rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), 0, 30 * MIB).unwrap();
    let found = Found { ended: running.end() };
    assert_eq!((found.verdict(), found.ended.code), ("holds-all", Some(0)), "{}{}", found.ended.out, found.ended.err);
    assert!(found.number("tested_bytes") < 70 * MIB, "{}", found.ended.out);
    assert_eq!(left(&lab), ["mine"]);
}

#[test]
fn field_c17_honest_drives_with_bad_sectors_are_damaged_and_no_fakes() {
    needs!("mkfs.ext4");
    let mut chance = chance(7);
    for round in 0..rounds() {
        let size = chance.between(48, 192) * MIB;
        let lab = drive(size);
        // Behind what ext4 needs for itself; of what it leaves free not all of them can lie in.
        for _ in 0..chance.between(3, 12) {
            let at = chance.between(4 * MIB, size - 4 * MIB) / 4096 * 4096;
            let place = at..at + 4096 * chance.between(1, 16);
            match chance.next() % 3 {
                0 => lab.faults.fail(Kind::Read, Some(place), libc::EIO),
                1 => lab.faults.damage(Damage::Zero(place)),
                _ => lab.faults.damage(Damage::Flip(place.start..place.start + 3, 0b100)),
            }
        }
        let found = check(&lab, "");
        println!("bad sectors {round}: {}: {}", found.verdict(), found.capacity()["found"]);
        assert_eq!((found.verdict(), found.ended.code), ("damaged", Some(4)), "{}{}", found.ended.out, found.ended.err);
        assert!(found.capacity()["real_bytes"].is_null() && found.number("good_bytes") > size / 10 * 9, "{}", found.ended.out);
        assert!(found.ended.out.starts_with("DATA DIFFER: "), "{}", found.ended.out);
        assert_eq!(left(&lab), Vec::<String>::new());
    }
}

#[test]
fn field_c03_blocks_in_each_others_place_are_said_to_be() {
    needs!("mkfs.ext4");
    let lab = drive(64 * MIB);
    lab.faults.damage(Damage::Swap(20 * MIB, 40 * MIB, 8192));
    let found = check(&lab, "");
    assert_eq!((found.verdict(), found.ended.code), ("damaged", Some(4)), "{}{}", found.ended.out, found.ended.err);
    // Nothing is merely wrong: all of it was written, in the other place.
    let of = |what: &str| found.capacity()["found"][what].as_u64().unwrap_or(0);
    assert_eq!((of("elsewhere"), of("garbage"), of("bits-flipped"), of("zeros")), (2 * 8192, 0, 0, 0), "{}", found.capacity()["found"]);
}

/// What lies in the directory besides what the file system put there.
fn left(lab: &LabDrive) -> Vec<String> {
    let names = std::fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "lost+found").collect()
}

/// A drive on which writing all takes some seconds.
fn slow() -> LabDrive {
    LabDrive::builder().size(96 * MIB).file_system(FileSystem::Ext4).mkfs_options(&PACKED).speed(Speed::rate(25_000_000)).start().unwrap()
}

#[test]
fn an_interrupted_check_goes_on_where_it_was() {
    needs!("mkfs.ext4");
    let lab = slow();
    let results = tempfile::tempdir().unwrap();
    // The last of two wins: all share one place for what is unfinished.
    let order = || Order::capacity(lab.path()).keeping(results.path());
    let interrupted = |words: &str, moved: &dyn Fn() -> u64| {
        let running = order().start();
        running.wait_for(words);
        let before = moved();
        running.wait_until("moved", || moved() > before + 20_000_000);
        running.signal(Signal::INT);
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        assert!(ended.out.contains("the same command goes on"), "{}", ended.out);
        ended
    };
    interrupted("capacity: writing", &|| lab.log.sums().written_bytes);
    let written = lab.log.sums().written_bytes;
    let second = interrupted("capacity: reading", &|| lab.log.sums().read_bytes);
    assert!(second.err.contains("going on with"), "{}", second.err);
    // What was flushed was not written again: all in all little more than the drive holds.
    assert!(written > 20_000_000 && lab.log.sums().written_bytes < 115_000_000, "{written} {:?}", lab.log.sums());
    let read = lab.log.sums().read_bytes;
    let last = Found { ended: order().run() };
    assert_eq!((last.verdict(), last.ended.code), ("holds-all", Some(0)), "{}{}", last.ended.out, last.ended.err);
    assert!(last.number("tested_bytes") > 90_000_000, "{}", last.ended.out);
    // Nor was everything read again.
    assert!(lab.log.sums().read_bytes - read < 90_000_000, "{read} {:?}", lab.log.sums());
    let phases: Vec<_> = last.ended.record["runs"][0]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| (phase["name"].as_str().unwrap(), phase["status"].as_str().unwrap()))
        .collect();
    assert_eq!(phases, [("write", "interrupted"), ("write", "ok"), ("read", "interrupted"), ("read", "ok")]);
    assert_eq!(left(&lab), Vec::<String>::new());
    assert!(!results.path().join("unfinished").exists());
}

#[test]
fn a_killed_check_goes_on_or_is_cleaned() {
    needs!("mkfs.ext4");
    let lab = slow();
    for then in ["clean", "capacity"] {
        let running = Order::capacity(lab.path()).start();
        running.wait_for("capacity: writing");
        let before = lab.log.sums().written_bytes;
        running.wait_until("wrote", || lab.log.sums().written_bytes > before + 20_000_000);
        running.kill();
        if then == "clean" {
            run(env!("CARGO_BIN_EXE_copysim"), [Path::new("clean"), lab.path()]).unwrap();
        } else {
            let found = check(&lab, "");
            assert!(found.ended.err.contains("going on with"), "{}", found.ended.err);
            assert_eq!((found.verdict(), found.ended.code), ("holds-all", Some(0)), "{}{}", found.ended.out, found.ended.err);
        }
        assert_eq!(left(&lab), Vec::<String>::new());
    }
}

#[test]
fn kept_data_are_read_again_and_tell_of_a_cache_that_is_gone() {
    needs!("mkfs.ext4");
    let lab = drive(64 * MIB);
    // A cache that holds all that is written beyond the end: no reading can tell until the drive is plugged in again.
    lab.faults.stores_only(30 * MIB, Beyond::Cached(64 * MIB));
    let first = check(&lab, "--keep");
    assert_eq!((first.verdict(), first.ended.code), ("holds-all", Some(0)), "{}", first.ended.out);
    assert!(first.ended.out.contains("the same command reads them again"), "{}", first.ended.out);
    lab.faults.stores_only(30 * MIB, Beyond::Lost);
    let second = check(&lab, "");
    assert_eq!((second.verdict(), second.number("real_bytes")), ("discards", 30 * MIB), "{}", second.ended.out);
    assert_eq!(left(&lab), Vec::<String>::new());
}

#[test]
fn field_c10_a_drive_that_vanishes_is_no_verdict() {
    needs!("mkfs.ext4");
    let lab = slow();
    let running = Order::capacity(lab.path()).start();
    running.wait_for("capacity: reading");
    lab.faults.vanish(libc::EIO);
    let found = Found { ended: running.end() };
    assert!(matches!(found.ended.code, Some(1 | 4)), "{}", found.ended.err);
    assert!(!found.ended.out.starts_with("FAKED") && !found.ended.out.starts_with("All "), "{}", found.ended.out);
    assert!(["damaged", "unknown"].contains(&found.verdict()), "{}", found.ended.out);
}

/// Sectors that f3read counted: ok, corrupted, changed, overwritten.
fn f3read(directory: &Path) -> [u64; 4] {
    let said = run("f3read", [directory]).unwrap();
    ["Data OK:", "Corrupted:", "Slightly changed:", "Overwritten:"].map(|words| {
        let line = said.lines().find(|line| line.trim_start().starts_with(words)).unwrap_or_else(|| panic!("no {words} in {said}"));
        let (_, sectors) = line.split_once('(').unwrap();
        sectors.split(' ').next().unwrap().parse().unwrap()
    })
}

#[test]
fn files_of_f3_are_judged_as_f3_does() {
    needs!("mkfs.ext4", "f3write", "f3read");
    let lab = drive(64 * MIB);
    // Two files: what is in the second counts from 1 GiB on.
    for range in [["--start-at=1", "--end-at=1"], ["--start-at=3", "--end-at=3"]] {
        let ballast = lab.path().join("ballast");
        std::fs::write(&ballast, vec![1; 20 << 20]).unwrap();
        run("f3write", range.iter().map(Path::new).chain([lab.path()])).unwrap();
        std::fs::remove_file(ballast).unwrap();
    }
    let ours = || {
        let found = check(&lab, "--check");
        let of = |words: &[&str]| words.iter().map(|word| found.capacity()["found"][*word].as_u64().unwrap_or(0) / 512).sum::<u64>();
        let counts = [of(&["good"]), of(&["garbage", "zeros", "ones"]), of(&["bits-flipped"]), of(&["elsewhere"])];
        (counts, found)
    };
    let (counts, found) = ours();
    assert_eq!((counts, found.verdict(), found.ended.code), (f3read(lab.path()), "holds-all", Some(0)), "{}", found.ended.out);
    assert!(counts[0] > 80_000 && counts[1..] == [0, 0, 0], "{counts:?}");
    for name in ["1.h2w", "3.h2w"] {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(lab.path().join(name)).unwrap();
        let mut sector = [0; 512];
        file.read_exact_at(&mut sector, 9 * 512).unwrap();
        file.write_all_at(&sector, 11 * 512).unwrap();
        file.write_all_at(&[0xaa; 512 * 3], 20 * 512).unwrap();
        file.write_all_at(&[0; 512], 30 * 512).unwrap();
        file.read_exact_at(&mut sector, 40 * 512).unwrap();
        sector[100] ^= 0b101;
        sector[300] ^= 1;
        file.write_all_at(&sector, 40 * 512).unwrap();
        file.sync_all().unwrap();
    }
    let (counts, found) = ours();
    assert_eq!((counts, found.verdict(), found.ended.code), (f3read(lab.path()), "damaged", Some(4)), "{}", found.ended.out);
    assert_eq!(counts[1..], [8, 2, 2]);
    let mut names = left(&lab);
    names.sort();
    assert_eq!(names, ["1.h2w", "3.h2w"]);
}
