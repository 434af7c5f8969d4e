//! A program on a lab drive: its cold start is what the drive served, by the drive's own log, its warm start nothing; and nothing that it started is left.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::lab::drive::Speed;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::program::{Ended, Order};
use crate::{close, needs, noise};

/// An eMMC.
const RATE: u64 = 40_000_000;
const LATENCY: Duration = Duration::from_micros(150);
/// Two files that the program reads, of 3 and 1 MB.
const READ: [usize; 2] = [3_000_000, 1_000_000];

fn drive() -> LabDrive {
    LabDrive::builder().size(256 << 20).file_system(FileSystem::Ext4).speed(Speed { latency: LATENCY, ..Speed::rate(RATE) }).start().unwrap()
}

/// A program on the drive that reads files on the drive: a copy of `cat`.
fn installed(lab: &LabDrive) -> (PathBuf, Vec<PathBuf>) {
    let program = lab.path().join("program/bin/reads");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy("/bin/cat", &program).unwrap();
    let files: Vec<PathBuf> = READ
        .iter()
        .enumerate()
        .map(|(index, length)| {
            let path = lab.path().join(format!("program/data-{index}"));
            std::fs::write(&path, noise(*length)).unwrap();
            path
        })
        .collect();
    for path in [lab.path(), lab.path().join("program").as_path(), program.parent().unwrap(), program.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    (program, files)
}

struct Window<'a>(&'a Value, u64);

impl Window<'_> {
    fn number(&self, pointer: &str) -> u64 {
        self.0.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer} in {}", self.0))
    }

    fn verdict(&self, proof: &str) -> &str {
        let evidence = self.0["evidence"].as_array().unwrap();
        evidence.iter().find(|line| line["proof"] == proof).and_then(|line| line["verdict"].as_str()).unwrap_or("none")
    }

    fn opened_ns(&self) -> u64 {
        self.1 + self.number("/start_ns")
    }
}

/// The starts of a kind, each with the moment at which the record was begun.
fn starts<'a>(ended: &'a Ended, name: &str) -> Vec<Window<'a>> {
    let began_ns = ended.phase(1).opened_ns() - ended.phase(1).number("/start_ns");
    let phases = ended.record["runs"].as_array().unwrap().iter().flat_map(|run| run["phases"].as_array().unwrap());
    phases.filter(|phase| phase["name"] == name).map(|phase| Window(phase, began_ns)).collect()
}

fn launch(lab: &LabDrive, program: &Path, files: &[PathBuf]) -> Order {
    let command: Vec<&OsStr> = std::iter::once(program.as_os_str()).chain(files.iter().map(|file| file.as_os_str())).collect();
    Order::launch(lab.path(), &command)
}

#[test]
fn a_cold_start_is_what_the_drive_served_and_a_warm_one_is_nothing() {
    needs!("mkfs.ext4");
    let lab = drive();
    let (program, files) = installed(&lab);
    let ended = launch(&lab, &program, &files).with("--runs 2").settling("300ms").done();
    println!("{}", ended.out);
    let content: u64 = READ.iter().map(|length| *length as u64).sum();
    let binary = std::fs::metadata(&program).unwrap().len();
    let (cold, warm) = (starts(&ended, "cold"), starts(&ended, "warm"));
    assert_eq!((cold.len(), warm.len()), (2, 2));
    let warm_ns = warm.iter().map(|window| window.number("/launch/ready_ns")).max().unwrap();
    for window in &cold {
        let ready_ns = window.number("/launch/ready_ns");
        let (from, until) = (window.opened_ns().saturating_sub(20_000_000), window.opened_ns() + ready_ns + 20_000_000);
        let truth = lab.log.between(from, until);
        let served_ns = lab.log.in_flight_ns(from, until);
        println!("cold: ready {ready_ns} ns, served {served_ns} ns, {truth:?}");
        // What the record says is what the drive's log says, to the byte and the request.
        assert_eq!((window.number("/device/d0/read_bytes"), window.number("/device/d0/reads")), (truth.read_bytes, truth.reads));
        // All content, part of the program, and little besides.
        assert!((content..content + binary + 400_000).contains(&truth.read_bytes), "{truth:?}");
        // The kernel booked at least this to the program: what it brought from other drives, its libraries, comes on top.
        assert!(window.number("/launch/storage/read_bytes") >= content);
        assert_eq!((window.verdict("cold"), window.verdict("cold-metadata"), window.verdict("alone")), ("holds", "holds", "holds"), "{}", window.0);
        assert!(window.number("/launch/faults/major") > 0);
        // It takes as long as the drive serves it, and what the start takes besides. Libraries come from another drive.
        let bound = truth.read_bytes * 1_000_000_000 / RATE + truth.reads * LATENCY.as_nanos() as u64;
        assert!(close(served_ns, bound, 250), "{served_ns} {bound}");
        assert!(ready_ns >= bound * 9 / 10 && ready_ns <= served_ns + warm_ns + 150_000_000, "{ready_ns} {served_ns} {warm_ns}");
    }
    for window in &warm {
        let ready_ns = window.number("/launch/ready_ns");
        assert_eq!(lab.log.between(window.opened_ns(), window.opened_ns() + ready_ns).reads, 0);
        assert_eq!((window.number("/device/d0/read_bytes"), window.number("/launch/storage/read_bytes")), (0, 0));
        assert_eq!(window.verdict("state"), "holds", "{}", window.0);
    }
    assert!(ended.out.contains(": the drive costs "), "{}", ended.out);
    // A second program that runs from the same file keeps it in memory: that is seen and said.
    let mut other = std::process::Command::new(&program).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let running = launch(&lab, &program, &files).with("--runs 1 --cache cold").settling("0s").done();
    drop(other.stdin.take());
    other.wait().unwrap();
    let seen = starts(&running, "cold");
    println!("{}", seen[0].0["evidence"]);
    assert_eq!(seen[0].verdict("cold"), "fails", "{}", seen[0].0);
    assert!(seen[0].0["flags"].to_string().contains("files-in-use"), "{}", seen[0].0["flags"]);
}

#[test]
fn an_ordinary_user_gets_the_program_out_of_memory_and_is_told_so_and_a_trace_tells_metadata_apart() {
    needs!("mkfs.ext4", "setpriv");
    let lab = drive();
    let (program, files) = installed(&lab);
    let user = launch(&lab, &program, &files).with("--runs 1").settling("0s").by_nobody().done();
    let (partly, warm) = (starts(&user, "partly cold"), starts(&user, "warm"));
    println!("{}", user.out);
    assert_eq!((partly.len(), warm.len()), (1, 1));
    let verdicts = ["cold", "cold-metadata", "alone"].map(|proof| partly[0].verdict(proof));
    assert_eq!(verdicts, ["unknown", "fails", "holds"], "{}", partly[0].0);
    // Its own file came from the drive, the data that it reads did not: nobody could know of them.
    let binary = std::fs::metadata(&program).unwrap().len();
    assert!((binary / 2..binary + 400_000).contains(&partly[0].number("/device/d0/read_bytes")), "{}", partly[0].0["device"]);
    assert!(partly[0].number("/launch/storage/read_bytes") >= binary / 2);
    let traced = launch(&lab, &program, &files).with("--runs 1 --cache cold --block-trace").settling("0s").done();
    let cold = starts(&traced, "cold");
    let trace = &cold[0].0["block_trace"];
    if !trace["reason"].is_null() {
        println!("skipped: {}", trace["reason"]);
        return;
    }
    let requests = &trace["requests"]["d0"];
    println!("{requests}");
    assert_eq!(requests["read_bytes"].as_u64(), Some(cold[0].number("/device/d0/read_bytes")));
    // Inodes, directories and the map of blocks come first.
    assert!(requests["metadata_read_bytes"].as_u64() > Some(0), "{requests}");
    assert!(traced.out.contains("WHAT THE DEVICES DID MEANWHILE (cold, run 1)"), "{}", traced.out);
}
