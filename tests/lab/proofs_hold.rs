//! The proofs beside cold, moved and durable: each where it holds, and where it must fail and is flagged.

use std::process::{Command, Stdio};

use crate::lab::drive::Speed;
use crate::lab::log::Kind;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::run;
use crate::needs;
use crate::program::{Order, ratio};

const RATE: u64 = 50_000_000;

fn drive(rate: u64) -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(rate)).start().unwrap()
}

/// A program that a test started: ended, by its number, when the test ends.
struct Other(std::process::Child);

impl Other {
    fn start(program: &str, args: &[&str]) -> Self {
        Self(Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        crate::lab::system::complain("another program", ended.map(drop));
    }
}

#[test]
fn nobody_else_is_seen_and_whoever_reads_or_writes_meanwhile_is() {
    needs!("mkfs.ext4", "dd");
    let lab = drive(RATE);
    let order = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1");
    let alone = order.paced(&[&lab]);
    assert_eq!(alone.phase(1).verdict("alone"), "holds", "{}", alone.phase(1)["evidence"]);
    let device = lab.device().display().to_string();
    let file = lab.path().join("of another").display().to_string();
    for (what, args) in [
        ("reads", vec![format!("if={device}"), "of=/dev/null".into(), "iflag=direct".into(), "bs=4M".into()]),
        ("writes", vec!["if=/dev/zero".into(), format!("of={file}"), "oflag=direct".into(), "bs=4M".into(), "count=10".into()]),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut other = None;
        let ended = order.paced_with(&[&lab], &mut |line| {
            if line.contains(": copying ") {
                other = Some(Other::start("dd", &args));
            } else if line.contains("waiting until the drive is quiet") {
                other = None;
            }
        });
        let phase = ended.phase(1);
        println!("dd {what}: {} {}", phase["device"]["d0"]["foreign_bytes"], phase["evidence"]);
        assert_eq!(phase.verdict("alone"), "fails", "{}", phase["evidence"]);
        assert!(phase.flags("weak").contains(&"foreign-io"), "{}", phase["flags"]);
        assert!(phase.number("/device/d0/foreign_bytes") > 5_000_000);
        phase.is_verified();
    }
}

#[test]
fn a_copier_that_computes_is_the_limit_and_one_that_waits_is_not() {
    needs!("mkfs.ext4");
    let lab = drive(RATE);
    let plain = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1").paced(&[&lab]);
    assert_ne!(plain.phase(1).verdict("below-ceilings"), "fails", "{}", plain.phase(1)["evidence"]);
    assert!(plain.phase(1).number("/engine/ceiling_bytes_per_s") > 3 * RATE / 2);
    // It computes until the copy that it started is over.
    let busy = "command:cp -r {source}/. {target}/ & copy=$!; while kill -0 $copy 2>/dev/null; do :; done; wait $copy";
    let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1 --engine").argument(busy).paced(&[&lab]);
    let phase = ended.phase(1);
    println!("{}", phase["evidence"]);
    assert_eq!(phase.verdict("below-ceilings"), "fails", "{}", phase["evidence"]);
    assert!(phase.flags("weak").contains(&"tool-limited"), "{}", phase["flags"]);
}

#[test]
fn a_slow_source_is_the_limit_and_a_fast_one_is_not() {
    needs!("mkfs.ext4");
    for (source, target, verdict) in [(200_000_000, 20_000_000, "holds"), (20_000_000, 200_000_000, "fails")] {
        let (from, to) = (drive(source), drive(target));
        let order = Order::new("large-file-cross-drive", to.path()).with("--scale 1% --runs 1 --source").argument(from.path());
        let ended = order.paced(&[&from, &to]);
        let phase = ended.phase(1);
        println!("{source} to {target}: {}", phase["evidence"]);
        assert_eq!(phase.verdict("source-not-limit"), verdict, "{}", phase["evidence"]);
        assert_eq!(phase.flags("weak").contains(&"source-limited"), verdict == "fails", "{}", phase["flags"]);
    }
}

#[test]
fn field_a11_a_drive_that_keeps_equal_data_once_is_suspected_by_the_control_and_a_plain_one_is_not() {
    needs!("mkfs.ext4");
    for once in [false, true] {
        let lab = drive(RATE);
        if once {
            lab.keep_equal_data_once();
        }
        let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 2% --runs 1 --control").settling("200ms").paced(&[&lab]);
        let ns = |kind: &str| {
            let phases = ended.record["runs"][0]["phases"].as_array().unwrap();
            let phase = phases.iter().find(|phase| phase["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"));
            phase["window"]["durable_ns"].as_u64().unwrap()
        };
        println!("once {once}: the control took {:.3} of the copy's time", ratio(ns("control"), ns("copy")));
        assert_eq!(ended.record["flags"].to_string().contains("dedup-suspected"), once, "{}", ended.record["flags"]);
    }
}

#[test]
fn a_trimmed_drive_has_heard_of_it_and_a_dirty_one_was_written_all_over() {
    needs!("mkfs.ext4");
    let lab = drive(RATE);
    let trimmed = Order::new("large-file-same-drive", lab.path()).with("--scale 1% --runs 1 --state trimmed").paced(&[&lab]);
    let told = &trimmed.record["runs"][0]["phases"][0];
    println!("{told}");
    assert_eq!((told["name"].as_str(), told["kind"].as_str()), (Some("trim"), Some("precondition")));
    assert_eq!(told["evidence"][0]["verdict"], "holds");
    let discarded: u64 = lab.log.requests().iter().filter(|request| request.kind == Kind::Discard).map(|request| request.length).sum();
    // What could be told was told before anything was made, too.
    assert!(discarded >= told["bytes"].as_u64().unwrap() && told["bytes"].as_u64().unwrap() > 0 && discarded > 500_000_000, "{discarded} {told}");
    let before = lab.log.sums();
    let dirty = Order::new("large-file-same-drive", lab.path()).with("--scale 1% --runs 1 --state dirty").paced(&[&lab]);
    let written = &dirty.record["runs"][0]["phases"][0];
    let total = lab.log.sums().written_bytes - before.written_bytes;
    println!("{} {total}", written["bytes"]);
    assert_eq!((written["name"].as_str(), written["status"].as_str()), (Some("dirty"), Some("ok")));
    let free = rustix::fs::statvfs(lab.path()).unwrap();
    // All that was free but what the copy needs, and what a file system keeps for itself.
    assert!(written["bytes"].as_u64().unwrap() >= free.f_bavail * free.f_frsize / 100 * 97 && total >= written["bytes"].as_u64().unwrap());
    assert!(crate::left_in(lab.path()).is_empty());
}

#[test]
fn a_drive_that_is_told_of_what_is_removed_does_not_stay_dirty() {
    needs!("mkfs.ext4", "tune2fs");
    let mut lab = drive(RATE);
    // By its own default, which the options of the mount do not show.
    run("tune2fs", ["-o".as_ref(), "discard".as_ref(), lab.device().as_os_str()]).unwrap();
    lab.remount().unwrap();
    let ended = Order::new("large-file-same-drive", lab.path()).with("--scale 1% --runs 1 --state dirty").paced(&[&lab]);
    let dirty = &ended.record["runs"][0]["phases"][0];
    println!("{dirty}");
    assert_eq!((dirty["name"].as_str(), dirty["evidence"][0]["verdict"].as_str()), (Some("dirty"), Some("fails")), "{dirty}");
    assert!(dirty["flags"].to_string().contains("state-unproven"), "{dirty}");
    assert!(ended.out.contains("state-unproven"), "{}", ended.out);
}

#[test]
fn a_source_in_pieces_is_said_and_a_whole_one_is_not() {
    needs!("mkfs.ext4");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap();
    let whole = Order::new("large-file-same-drive", lab.path()).with("--scale 1% --runs 1").done();
    assert!(!whole.phase(1).flags("weak").contains(&"source-fragmented"));
    assert!(whole.phase(1).number("/layout/source/extents") < 20, "{}", whole.phase(1)["layout"]);
    run("rm", [lab.path().join("copysim-workspace").as_os_str(), "-r".as_ref()]).unwrap();
    // Every second of many small files is removed: what is free then lies in small pieces.
    let pieces = lab.path().join("pieces");
    std::fs::create_dir(&pieces).unwrap();
    let piece = crate::noise(64 << 10);
    let count = (0..).find(|index: &u64| std::fs::write(pieces.join(index.to_string()), &piece).is_err()).unwrap();
    run("sync", ["-f".as_ref(), lab.path().as_os_str()]).unwrap();
    (0..count).step_by(2).for_each(|index| std::fs::remove_file(pieces.join(index.to_string())).unwrap());
    run("sync", ["-f".as_ref(), lab.path().as_os_str()]).unwrap();
    let broken = Order::new("large-file-same-drive", lab.path()).with("--scale 1% --runs 1").done();
    println!("{}", broken.phase(1)["layout"]);
    assert!(broken.phase(1).flags("weak").contains(&"source-fragmented"), "{} {}", broken.phase(1)["flags"], broken.phase(1)["layout"]);
}
