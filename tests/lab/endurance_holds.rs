//! Drives that begin to forget are found out in the round in which they do, with what, where and when; good ones are not suspected, and all are left as they were.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::failures_hold::place_of;
use crate::lab::drive::Speed;
use crate::lab::faults::Damage;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::program::{Ended, Order, Running};
use crate::{left_in, needs};

const MIB: u64 = 1 << 20;

fn drive() -> LabDrive {
    LabDrive::builder().size(256 * MIB).file_system(FileSystem::Ext4).speed(Speed::rate(100_000_000)).start().unwrap()
}

/// Rounds of 8 MiB beside 8 MiB of static data, for ever.
fn endless(lab: &LabDrive) -> Running {
    Order::endurance(lab.path()).with("--size 8MiB --max-time 1h").start()
}

fn found(ended: &Ended) -> &Value {
    let phases = ended.record["runs"][0]["phases"].as_array().unwrap();
    phases.iter().map(|phase| &phase["endurance"]).find(|found| !found.is_null()).unwrap_or_else(|| panic!("{}", ended.err))
}

/// Where a file of the test begins on the drive, in which it lies in one piece.
fn begins_at(lab: &LabDrive, name: &str) -> u64 {
    let file = left_in(lab.path()).into_iter().map(PathBuf::from).find(|path| path.ends_with(Path::new(name))).unwrap();
    place_of(&file, 0)
}

#[test]
fn lost_writes_are_stale_and_found_in_their_round() {
    needs!("mkfs.ext4", "filefrag");
    let lab = drive();
    let running = endless(&lab);
    running.wait_for("endurance, round 3");
    let begins: Vec<(String, u64)> = (8..16).map(|index| format!("{index:06}")).map(|name| (name.clone(), begins_at(&lab, &name))).collect();
    lab.faults.drop_writes_after(3 * MIB);
    let ended = running.end();
    println!("{}{}", ended.err, ended.out);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let found = found(&ended);
    let loss = &found["loss"];
    let number = |field: &str| loss[field].as_u64().unwrap_or_else(|| panic!("no {field}: {loss}"));
    assert_eq!(
        (found["ended_by"].as_str(), loss["found"].as_str(), loss["is_static"].as_bool()),
        (Some("loss"), Some("stale"), Some(false)),
        "{loss}"
    );
    // Of the last good round, which the rest of the loss tells as well.
    assert_eq!(number("stale_round") + 1, number("round"), "{loss}");
    assert!((3..=4).contains(&number("round")) && found["rounds_good"].as_u64() == Some(number("round") - 1), "{found}");
    assert_eq!(number("written_bytes"), (number("round") + 1) * 8 * MIB);
    assert_eq!((loss["second_read"].as_str(), loss["blame"].as_str()), (Some("agrees"), Some("target")));
    // The first place that the drive dropped, in the order of the files, and none before it.
    let dropped = lab.faults.dropped();
    let is_dropped = |place: u64| dropped.iter().any(|range| range.contains(&place));
    let sector = |(_, begin): &(String, u64), offset: u64| is_dropped(begin + offset);
    let first =
        begins.iter().find_map(|file| (0..MIB).step_by(512).find(|offset| sector(file, *offset)).map(|offset| (file.0.clone(), offset))).unwrap();
    assert_eq!((loss["file"].as_str(), number("first_byte")), (Some(first.0.as_str()), first.1), "{loss} {dropped:?}");
    let lost: u64 = begins.iter().map(|file| (0..MIB).step_by(512).filter(|offset| sector(file, *offset)).count() as u64 * 512).sum();
    assert_eq!(loss["by_found"]["stale"].as_u64(), Some(lost), "{loss}");
    assert!(ended.out.starts_with("DATA LOST: The drive lost "), "{}", ended.out);
    assert!(!ended.has_headline());
}

#[test]
fn static_data_that_change_are_found() {
    needs!("mkfs.ext4", "filefrag");
    let lab = drive();
    let running = endless(&lab);
    running.wait_for("endurance, round 2");
    let place = begins_at(&lab, "000005") + 70_000;
    lab.faults.damage(Damage::Flip(place..place + 1, 0b1));
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let found = found(&ended);
    let loss = &found["loss"];
    assert_eq!(
        (loss["found"].as_str(), loss["is_static"].as_bool(), loss["file"].as_str()),
        (Some("bits-flipped"), Some(true), Some("000005")),
        "{loss}"
    );
    assert_eq!(loss["first_byte"].as_u64(), Some(70_000 / 512 * 512));
    // A quarter of them is read in each round.
    assert!((2..=6).contains(&loss["round"].as_u64().unwrap()), "{loss}");
    assert!(ended.out.contains("of static data, written once"), "{}", ended.out);
    assert_eq!(left_in(lab.path()), Vec::<String>::new());
}

#[test]
fn a_good_drive_loses_nothing_and_is_left_as_it_was() {
    needs!("mkfs.ext4");
    let lab = drive();
    std::fs::write(lab.path().join("mine"), "mine").unwrap();
    let left = || {
        let names = std::fs::read_dir(lab.path()).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != "lost+found").collect();
        names.sort();
        names
    };
    let before = lab.log.sums().written_bytes;
    let ended = Order::endurance(lab.path()).with("--max-write 64MiB").done();
    println!("{}{}", ended.err, ended.out);
    let good = found(&ended);
    assert_eq!((good["ended_by"].as_str(), good["loss"].is_null(), good["rounds_good"].as_u64()), (Some("max-write"), true, Some(7)), "{good}");
    assert_eq!(good["written_bytes"].as_u64(), Some(64 * MIB));
    // What it says that it wrote went to the drive, and little else.
    let written = lab.log.sums().written_bytes - before;
    assert!((64 * MIB..70 * MIB).contains(&written), "{written}");
    assert!(ended.out.starts_with("Nothing was lost: "), "{}", ended.out);
    assert_eq!(left(), ["mine"]);

    let interrupted = endless(&lab);
    interrupted.wait_for("endurance, round 2");
    interrupted.signal(Signal::INT);
    let interrupted = interrupted.end();
    assert_eq!((interrupted.code, found(&interrupted)["ended_by"].as_str()), (Some(130), Some("interrupted")), "{}", interrupted.err);
    assert_eq!(left(), ["mine"]);

    let killed = endless(&lab);
    killed.wait_for("endurance, round 2");
    killed.kill();
    assert_eq!(left(), ["copysim-workspace", "mine"]);
    let next = Order::endurance(lab.path()).with("--max-write 16MiB").done();
    assert!(next.err.contains("removed what a run that was killed had left"), "{}", next.err);
    assert_eq!(left(), ["mine"]);
}
