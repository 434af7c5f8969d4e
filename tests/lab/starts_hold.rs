//! Played starts: a cold one takes what the drive's requests take and the thinking, a second one asks the drive for nothing, one beside a copy is told apart
//! from it, one with little memory reads again, and a tree that is damaged is no result.

use std::time::Duration;

use crate::lab::drive::Speed;
use crate::lab::log::{Kind, Sums};
use crate::lab::mount::{FileSystem, LabDrive};
use crate::needs;
use crate::program::{Ended, Order, Phase, ratio};

const MB: u64 = 1_000_000;

/// An eMMC of a cheap notebook, and a hard disk: bytes per second, and the time of each request.
fn drives() -> [(&'static str, Speed); 2] {
    let speed = |rate, micros| Speed { latency: Duration::from_micros(micros), ..Speed::rate(rate) };
    [("eMMC", speed(40 * MB, 150)), ("hard disk", speed(130 * MB, 10_000))]
}

fn start(lab: &LabDrive, scenario: &str, options: &str) -> Ended {
    Order::new(scenario, lab.path()).with("--runs 1").with(options).settling("200ms").done()
}

/// A phase by its name.
fn named<'a>(ended: &'a Ended, name: &str) -> Phase<'a> {
    ended.phase_named(1, name)
}

fn ready_ns(phase: Phase<'_>) -> u64 {
    phase.number("/launch/ready_ns")
}

/// What the drive did until the program was ready.
fn sums(lab: &LabDrive, phase: Phase<'_>) -> Sums {
    let opened = phase.opened_ns();
    lab.log.between(opened, opened + ready_ns(phase))
}

#[test]
fn a_cold_start_takes_what_its_requests_and_its_thinking_take() {
    needs!("mkfs.ext4");
    for (name, speed) in drives() {
        let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(speed).start().unwrap();
        let ended = start(&lab, "app-load-browser", "--scale 5%");
        let (cold, second) = (named(&ended, "cold start"), named(&ended, "second start"));
        assert_eq!([cold.verdict("cold"), cold.verdict("cold-metadata")], ["holds"; 2], "{}", cold["evidence"]);
        let did = sums(&lab, cold);
        let requests = did.reads + did.writes;
        let drive_ns = requests * speed.latency.as_nanos() as u64 + (did.read_bytes + did.written_bytes) * 1_000_000_000 / speed.read.unwrap();
        let predicted_ns = drive_ns + cold.number("/launch/shape/think_ns");
        let took = ratio(ready_ns(cold), predicted_ns);
        println!("{name}: {requests} requests, {} ms, predicted {} ms: {took:.3}", ready_ns(cold) / 1_000_000, predicted_ns / 1_000_000);
        // A busy machine needs as long for a request as the eMMC does.
        let more = if name == "eMMC" { 0.8 } else { 0.25 };
        assert!((0.9..1.0 + more).contains(&took), "{name}: {took}");
        // What is asked for is what the shape says, and the drive served all of it.
        assert_eq!(cold["work"]["reads"], cold["launch"]["shape"]["reads"]);
        assert!(did.read_bytes >= cold.number("/launch/shape/read_bytes"), "{did:?}");
        // The second start finds everything in memory.
        assert_eq!(sums(&lab, second).reads, 0);
        assert!(ready_ns(second) < ready_ns(cold), "{name}");
        assert_eq!(second["cache"]["data"], "warm");
    }
}

#[test]
fn a_start_beside_a_copy_is_cold_by_what_the_kernel_booked_to_it_alone() {
    needs!("mkfs.ext4");
    let (_, speed) = drives()[0];
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(speed).start().unwrap();
    let ended = start(&lab, "app-load-office-suite", "--scale 3%");
    let (alone, beside) = (named(&ended, "cold start"), named(&ended, "cold start during a copy"));
    assert_eq!(beside.verdict("cold"), "holds", "{}", beside["evidence"]);
    assert!(ready_ns(beside) > ready_ns(alone), "{} {}", ready_ns(beside), ready_ns(alone));
    let said = beside["launch"]["background"].as_str().unwrap();
    assert!(said.contains("a copy of jpg"), "{said}");
    // The drive moved much more than the program asked for.
    assert!(sums(&lab, beside).read_bytes > 2 * beside.number("/launch/shape/read_bytes"), "{:?}", sums(&lab, beside));
    // The tree is compared once, after the last start.
    assert!(alone["integrity"].is_null());
    let integrity = &beside["integrity"];
    assert!(integrity["files_checked"].as_u64() > Some(0) && integrity["files_good"] == integrity["files_checked"], "{integrity}");
}

#[test]
fn a_start_with_little_memory_reads_part_of_its_files_again() {
    needs!("mkfs.ext4");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap();
    let ended = start(&lab, "app-load-game-low-memory", "--scale 20%");
    let phase = named(&ended, "second start");
    if phase["status"] == "unsupported" {
        println!("skipped: {}", phase["error"]);
        // Its place is taken under another name.
        assert_eq!(named(&ended, "4K paging mix")["status"], "ok");
        return;
    }
    let (asked, memory) = (phase.number("/launch/shape/read_bytes"), phase.number("/launch/memory_bytes"));
    assert!(memory <= asked / 2, "{memory} of {asked}");
    let again = sums(&lab, phase).read_bytes;
    println!("{memory} bytes of memory for {asked}: {again} read again, {} pages by the kernel", phase.number("/launch/refaulted_pages"));
    // What does not fit has to be read again, by any rule by which memory is freed.
    assert!(again >= asked / 4 && phase.number("/launch/refaulted_pages") > 0, "{again}");
}

#[test]
fn without_the_right_to_limit_memory_a_paging_mix_stands_in_under_its_own_name() {
    needs!("mkfs.ext4", "setpriv");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap();
    let home = crate::users_directory(lab.path());
    let ended = Order::new("app-load-game-low-memory", &home).with("--runs 1 --scale 20%").settling("200ms").by_nobody().done();
    assert_eq!(named(&ended, "second start")["status"], "unsupported");
    assert_eq!(named(&ended, "4K paging mix")["status"], "ok");
    assert!(ended.out.contains("memory can't be limited here"), "{}", ended.out);
}

#[test]
fn a_tree_that_is_damaged_meanwhile_is_no_result() {
    needs!("mkfs.ext4");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap();
    start(&lab, "open-thumbnails", "--scale 2%");
    let tree = lab.path().join("copysim-workspace/corpora");
    let corpus = std::fs::read_dir(&tree).unwrap().next().unwrap().unwrap().path();
    let folder = std::fs::read_dir(corpus.join("files/DCIM")).unwrap().next().unwrap().unwrap().path();
    let picture = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let (mut bytes, time) = (std::fs::read(&picture).unwrap(), std::fs::metadata(&picture).unwrap().modified().unwrap());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&picture, bytes).unwrap();
    std::fs::File::options().write(true).open(&picture).unwrap().set_modified(time).unwrap();
    let ended = Order::new("open-thumbnails", lab.path()).with("--runs 1 --scale 2%").settling("200ms").run();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(ended.out.starts_with("DATA DIFFER"), "{}", ended.out);
}

#[test]
fn a_drive_that_fails_or_vanishes_in_a_start_is_told_in_a_sentence() {
    needs!("mkfs.ext4");
    for fault in ["reading fails", "it is gone"] {
        let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(drives()[0].1).start().unwrap();
        let running = Order::new("app-load-browser", lab.path()).with("--runs 1 --scale 5%").settling("1s").start_before_the_window(&lab);
        running.wait_for("starting browser");
        let before = lab.log.sums().reads;
        running.wait_until("read", || lab.log.sums().reads > before + 100);
        match fault {
            "reading fails" => lab.faults.fail(Kind::Read, None, libc::EIO),
            _ => lab.faults.vanish(libc::ENODEV),
        }
        let ended = running.end();
        // Mapped pages that can't be read are an answer, not the signal that ends a program (SIGBUS).
        assert_eq!(ended.code, Some(1), "{fault}: {}", ended.err);
        assert!(ended.err.contains("EIO") && ended.err.contains("/files/"), "{fault}: {}", ended.err);
        assert_eq!(ended.record["status"], "failed");
        ended.sounds_failed();
        lab.faults.clear();
    }
}
