//! A drive that stops answering: it is said where nothing moves, and Ctrl-C ends the program with what was measured though the kernel holds it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::drive::Speed;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::persist;
use crate::needs;
use crate::program::{Ended, Order, Running};

const MB: u64 = 1_000_000;
/// More than the three seconds in which a drive might still answer, and what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(12);

fn drive() -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(50 * MB)).start().unwrap()
}

/// Hangs the drive, asks for the end, and waits for it while the drive still hangs.
fn end_while_it_hangs(lab: &LabDrive, running: Running) -> Ended {
    let asked = Instant::now();
    running.signal(Signal::INT);
    let ended = running.end();
    println!("ended after {:?}: {}{}", asked.elapsed(), ended.err, ended.out);
    assert!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(ended.err.contains(&format!("no answer from {}", lab.path().display())) && ended.err.contains("result: "), "{}", ended.err);
    assert_eq!(ended.record["status"], "interrupted");
    assert_eq!(ended.phase(1)["status"], "interrupted");
    assert!(ended.out.starts_with("INTERRUPTED"), "{}", ended.out);
    lab.faults.release();
    // Whoever was held is gone before the drive is used again.
    persist(|| if holder(lab) { Err(std::io::ErrorKind::ResourceBusy.into()) } else { Ok(()) }).unwrap();
    ended
}

/// Whether some process works in the workspace.
fn holder(lab: &LabDrive) -> bool {
    let workspace = lab.path().join("copysim-workspace");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok())
        .flatten()
        .flatten()
        .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path.starts_with(&workspace)))
}

#[test]
fn field_c14_a_hanging_copy_is_ended_by_ctrl_c_with_what_was_done() {
    needs!("mkfs.ext4");
    let lab = drive();
    let running = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1").start_before_the_window(&lab);
    running.wait_for("copying");
    let before = lab.log.sums().read_bytes;
    running.wait_until("read", || lab.log.sums().read_bytes >= before + 20 * MB);
    lab.faults.hang();
    let ended = end_while_it_hangs(&lab, running);
    assert!((10 * MB..120 * MB).contains(&ended.phase(1).number("/bytes")), "{}", ended.phase(1)["bytes"]);
    assert!(!ended.has_headline());
    // The next start finds all as a killed run would have left it.
    let again = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1").done();
    assert!(again.err.contains("removed what a run that was killed had left") && again.err.contains("it is used again"), "{}", again.err);
}

#[test]
fn field_c14_a_hanging_flush_is_said_and_ended_by_ctrl_c() {
    needs!("mkfs.ext4");
    let lab = drive();
    let running = Order::new("large-file-cross-drive", lab.path()).with("--scale 3% --runs 1").start_before_the_window(&lab);
    running.wait_for("copying");
    let before = lab.log.sums().written_bytes;
    // All is in the cache long before the drive has taken this much.
    running.wait_until("wrote", || lab.log.sums().written_bytes > before + 40 * MB);
    lab.faults.hang();
    running.wait_for("waiting for the flush of ");
    running.wait_for(&format!("no progress for 10 s on {}; Ctrl-C ends and keeps what was measured", lab.path().display()));
    let ended = end_while_it_hangs(&lab, running);
    assert_eq!(ended.phase(1).number("/bytes"), 120 * MB);
}

#[test]
fn field_c14_a_hanging_comparison_is_ended_by_ctrl_c_and_the_copy_stays_measured() {
    needs!("mkfs.ext4");
    let lab = drive();
    let running = Order::new("jpg-same-drive", lab.path()).with("--scale 1% --runs 1").start_before_the_window(&lab);
    running.wait_for("comparing");
    lab.faults.hang();
    let ended = end_while_it_hangs(&lab, running);
    // The window was over: its times and what the drive did in it are there.
    assert!(ended.phase(1).number("/window/durable_ns") > 0 && ended.phase(1).number("/device/d0/written_bytes") > 0, "{}", ended.record);
}

#[test]
fn field_c14_a_copier_of_another_program_that_hangs_is_left_too() {
    needs!("mkfs.ext4", "cp");
    let (lab, place) = (drive(), tempfile::tempdir().unwrap());
    let order = Order::new("large-file-same-drive", lab.path()).with("--scale 3% --runs 1 --engine");
    // No signal ends who waits for a flush, while one ends who waits for what is read: then copysim's own threads would be held.
    let copied = place.path().join("copied");
    let engine = format!("command:cp -r {{source}}/. {{target}}/ && touch {} && exec sync -f {{target}}", copied.display());
    let running = order.argument(&engine).start_before_the_window(&lab);
    running.wait_for("copying");
    // The copier's own rate was looked at before.
    let _ = std::fs::remove_file(&copied);
    running.wait_until("copied", || copied.exists());
    lab.faults.hang();
    // Until the flush has begun.
    std::thread::sleep(Duration::from_secs(1));
    end_while_it_hangs(&lab, running);
}
