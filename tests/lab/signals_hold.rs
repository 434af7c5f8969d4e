//! Ctrl-C and SIGTERM at every stage: copysim ends soon with the signal's exit code, removes what it was writing and keeps what it had measured.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::drive::Speed;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::program::{Ended, Order, Running};
use crate::{left_in, needs};

/// Longer than what a slow drive still has to flush.
const PATIENCE: Duration = Duration::from_secs(8);

fn drive() -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(50_000_000)).start().unwrap()
}

fn interrupt(lab: &LabDrive, running: Running, signal: Signal, code: i32) -> Ended {
    let asked = Instant::now();
    running.signal(signal);
    let ended = running.end();
    println!("ended after {:?}: {}", asked.elapsed(), ended.err);
    assert!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
    assert_eq!(ended.code, Some(code), "{}", ended.err);
    assert_eq!(ended.record["status"], "interrupted");
    assert_eq!(left_in(lab.path()), Vec::<String>::new());
    assert!(ended.err.contains("result: "), "{}", ended.err);
    ended
}

const SIGNALS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

#[test]
fn staging_is_interrupted_and_leaves_no_corpus() {
    for (signal, code) in SIGNALS {
        needs!("mkfs.ext4");
        let lab = drive();
        let running = Order::new("large-file-same-drive", lab.path()).with("--scale 5% --runs 1").start();
        running.wait_for("making");
        std::thread::sleep(Duration::from_millis(100));
        let ended = interrupt(&lab, running, signal, code);
        assert_eq!(ended.runs(), 0);
        let corpora = lab.path().join("copysim-workspace/corpora");
        // A workspace in which nothing is left goes too.
        assert!(!corpora.exists() || std::fs::read_dir(corpora).unwrap().count() == 0);
    }
}

#[test]
fn a_copy_is_interrupted() {
    for (signal, code) in SIGNALS {
        needs!("mkfs.ext4");
        let lab = drive();
        let running = Order::new("large-file-same-drive", lab.path()).with("--scale 5% --runs 1").start_before_the_window(&lab);
        running.wait_for("copying");
        let before = lab.log.sums();
        running.wait_until("read", || lab.log.sums().read_bytes > before.read_bytes + 20_000_000);
        let ended = interrupt(&lab, running, signal, code);
        assert_eq!(ended.phase(1)["status"], "interrupted");
        assert!(!ended.has_headline());
    }
}

#[test]
fn a_copy_by_another_program_is_interrupted_with_it() {
    needs!("mkfs.ext4", "cp");
    let lab = drive();
    let order = Order::new("large-file-same-drive", lab.path()).with("--scale 5% --runs 1 --engine");
    let running = order.argument("command:cp -r {source}/. {target}/").start_before_the_window(&lab);
    running.wait_for("copying");
    let before = lab.log.sums();
    running.wait_until("read", || lab.log.sums().read_bytes > before.read_bytes + 20_000_000);
    interrupt(&lab, running, Signal::INT, 130);
}

#[test]
fn a_flush_is_interrupted() {
    for (signal, code) in SIGNALS {
        needs!("mkfs.ext4");
        let lab = drive();
        let running = Order::new("large-file-cross-drive", lab.path()).with("--scale 3% --runs 1").start_before_the_window(&lab);
        running.wait_for("copying");
        let before = lab.log.sums();
        // All is in the cache long before the drive has taken this much: the flush is what is waited for.
        running.wait_until("wrote", || lab.log.sums().written_bytes > before.written_bytes + 40_000_000);
        let ended = interrupt(&lab, running, signal, code);
        assert_eq!(ended.phase(1)["status"], "interrupted");
    }
}

#[test]
fn a_comparison_is_interrupted() {
    for (signal, code) in SIGNALS {
        needs!("mkfs.ext4");
        let lab = drive();
        let running = Order::new("jpg-same-drive", lab.path()).with("--scale 0.7% --runs 2").start_before_the_window(&lab);
        running.wait_for("run 2 of 2: comparing");
        let ended = interrupt(&lab, running, signal, code);
        // What was measured before stays.
        assert_eq!(ended.runs(), 2);
        ended.phase(1).is_proven(&[]);
        assert_eq!(ended.phase(2)["status"], "interrupted");
        assert!(ended.has_headline());
    }
}
