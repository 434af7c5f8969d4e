//! A drive that steps its rate has a cliff where it stepped, one that does not has none, and one that hangs stalls.

use std::time::Duration;

use serde_json::Value;

use crate::lab::drive::Speed;
use crate::lab::log::Kind;
use crate::lab::mount::{FileSystem, LabDrive};
use crate::needs;
use crate::program::{Ended, Order, Phase};

const MB: u64 = 1_000_000;

fn near(value: u64, expected: u64, share: f64) -> bool {
    (value as f64 / expected as f64 - 1.0).abs() < share
}

fn drive(rate: u64) -> LabDrive {
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(rate)).start().unwrap();
    // Else all of it is in this machine's memory before the drive is asked for anything.
    lab.hold_back(16 * MB).unwrap();
    lab
}

/// A copy from memory, and what is done to the drive when it begins.
fn copy(lab: &LabDrive, scale: &str, meanwhile: impl FnOnce()) -> Ended {
    let running = Order::new("large-file-cross-drive", lab.path()).with(scale).with("--runs 1 --no-verify").start_before_the_window(lab);
    running.wait_for("copying");
    meanwhile();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended
}

fn has(phase: Phase<'_>, code: &str) -> bool {
    phase["flags"].as_array().unwrap().iter().any(|flag| flag["code"] == code)
}

/// A level of the record.
#[derive(Debug)]
struct Level {
    to_bytes: u64,
    /// Bytes per second.
    rate: u64,
    /// The same by the drive's log.
    logged: u64,
}

fn levels(phase: Phase<'_>, lab: &LabDrive) -> Vec<Level> {
    let opened = phase.opened_ns();
    let of = |level: &Value| {
        let [from_bytes, to_bytes, from_ns, to_ns, stalled_ns] =
            ["from_bytes", "to_bytes", "from_ns", "to_ns", "stalled_ns"].map(|name| level[name].as_u64().unwrap());
        let ns = to_ns - from_ns - stalled_ns;
        let logged = lab.log.between(opened + from_ns, opened + to_ns).written_bytes;
        let rate = |bytes: u64| bytes * 1_000_000_000 / ns;
        Level { to_bytes, rate: rate(to_bytes - from_bytes), logged: rate(logged) }
    };
    phase["curve"]["levels"].as_array().unwrap().iter().map(of).collect()
}

/// Whether a level has the rate that the drive's log has, which a busy machine may have made a little lower than what was ordered.
fn is_right(level: &Level, ordered: u64) -> bool {
    near(level.rate, level.logged, 0.05) && near(level.rate, ordered, if level.logged < ordered * 97 / 100 { 0.15 } else { 0.05 })
}

#[test]
fn field_h16_a_drive_that_steps_its_rate_has_a_cliff_where_it_stepped() {
    needs!("mkfs.ext4");
    let lab = drive(100 * MB);
    let ended = copy(&lab, "--scale 6%", || lab.set_speed_after(100 * MB, Speed::rate(40 * MB)));
    let phase = ended.phase(1);
    let opened = phase.opened_ns();
    // The drive counts its bytes from when the copy was said to begin, which is the opening but for a few milliseconds.
    let (mut done, mut step) = (0, None);
    for request in lab.log.requests().into_iter().filter(|request| request.kind == Kind::Write && request.arrived_ns >= opened) {
        let slow = request.ended_ns.saturating_sub(request.started_ns) * 60 > request.length * 1_000;
        if request.length >= 1 << 17 && slow && done >= 95 * MB {
            step.get_or_insert(done);
        }
        done += request.length;
    }
    let step = step.unwrap();
    let found = levels(phase, &lab);
    println!("stepped after {step} of {done} bytes; found {found:?}, {}", phase["curve"]);
    // A busy machine may begin slowly, which is a level before the others.
    let falls: Vec<u64> = found.windows(2).filter(|pair| pair[1].rate < pair[0].rate).map(|pair| pair[0].to_bytes).collect();
    assert!(matches!(falls[..], [fall] if fall.abs_diff(step) * 100 <= 3 * step), "{found:?} {step}");
    let [.., before, after] = &found[..] else { panic!("{found:?}") };
    assert!(is_right(before, 100 * MB) && is_right(after, 40 * MB), "{found:?}");
    assert!(has(phase, "cliff") && !has(phase, "stall") && phase["curve"]["of"] == "d0", "{}", phase["flags"]);
    assert!(ended.out.contains("(cliff)"), "{}", ended.out);
}

#[test]
fn a_steady_drive_has_none() {
    needs!("mkfs.ext4");
    let lab = drive(60 * MB);
    let ended = copy(&lab, "--scale 4%", || ());
    let phase = ended.phase(1);
    let found = levels(phase, &lab);
    println!("{found:?}, {}", phase["curve"]);
    assert_eq!(phase["curve"]["shape"], "steady", "{}", phase["curve"]);
    assert!(is_right(&found[0], 60 * MB), "{found:?}");
    assert!(["cliff", "stall", "drift"].iter().all(|code| !has(phase, code)), "{}", phase["flags"]);
}

#[test]
fn field_c13_a_drive_that_hangs_for_two_seconds_stalls_and_has_no_cliff() {
    needs!("mkfs.ext4");
    let lab = drive(60 * MB);
    let ended = copy(&lab, "--scale 5%", || {
        std::thread::sleep(Duration::from_millis(1500));
        lab.faults.hang();
        std::thread::sleep(Duration::from_secs(2));
        lab.faults.release();
    });
    let phase = ended.phase(1);
    let stalls = &phase["curve"]["stalls"];
    println!("{stalls}, {}", phase["curve"]);
    assert_eq!(stalls["count"], 1, "{stalls}");
    let longest = stalls["longest_ns"].as_u64().unwrap();
    assert!((1_850 * MB..2_200 * MB).contains(&longest), "{stalls}");
    assert!(has(phase, "stall") && !has(phase, "cliff"), "{} {}", phase["flags"], phase["curve"]);
    let found = levels(phase, &lab);
    assert!(found.len() == 1 && is_right(&found[0], 60 * MB), "{found:?}");
}
