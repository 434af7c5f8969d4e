//! Traces of a loop device with the kernel's own events, where there is root; what is said where there is none.
#![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

use std::process::Command;

use super::*;
use crate::platform::OsFiles;
use crate::result::{BlockOp, BlockSpan};

/// A mounted tracefs and a file system on a loop device; both are gone at the end.
struct Rig {
    place: tempfile::TempDir,
    device: String,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

impl Rig {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok().filter(|output| output.status.success())?;
        let rig = Self { device: String::from_utf8(made.stdout).unwrap().trim().to_owned(), place };
        for directory in ["tracefs", "mount"] {
            std::fs::create_dir(rig.place.path().join(directory)).unwrap();
        }
        let traced = run("mount", &["-t", "tracefs", "tracefs", &rig.path("tracefs")]);
        let mounted = run("mkfs.ext4", &["-q", &rig.device]) && run("mount", &[&rig.device, &rig.path("mount")]);
        (traced && mounted && run("sync", &["-f", &rig.path("mount")])).then_some(rig)
    }

    fn path(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }

    /// Traces the device by this tracefs, as others may go at any time.
    fn trace(&self, reads: Reads<'_>, buffer_kib: Option<u64>) -> BlockTrace {
        let drive = Drive::identify(&Host::real(), &OsFiles, Path::new(&self.path("mount"))).unwrap();
        BlockTrace::start_in(Path::new(&self.path("tracefs")), &Host::real(), &drive, reads, buffer_kib).unwrap()
    }

    /// Writes so many blocks of 4 KiB past the cache, one after another.
    fn write(&self, blocks: u64) {
        let target = format!("of={}", self.path("mount/file"));
        assert!(run("dd", &["if=/dev/zero", &target, "bs=4k", &format!("count={blocks}"), "oflag=direct", "conv=notrunc"]));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for mounted in ["mount", "tracefs"] {
            // A copysim that runs beside this test may have found this tracefs.
            run("umount", &["-l", &self.path(mounted)]);
        }
        run("losetup", &["-d", &self.device]);
    }
}

macro_rules! rig {
    () => {
        match Rig::new() {
            Some(rig) => rig,
            None => {
                println!("skipped: needs root, tracefs, a loop device and ext4");
                return;
            }
        }
    };
}

#[test]
fn a_window_is_traced_and_what_lies_outside_it_is_not() {
    let rig = rig!();
    rig.write(100);
    let trace = rig.trace(Reads::Nothing, None);
    rig.write(50);
    let opened = OsClock.now_ns();
    trace.open(opened);
    rig.write(100);
    let closed = OsClock.now_ns();
    trace.close(closed);
    rig.write(25);
    let Outcome { figures, lost, .. } = trace.finish();
    let figures = figures.unwrap();
    let drive = &figures.drives[0];
    assert_eq!(lost, Some(0));
    assert!(drive.written_bytes >= 100 * 4096 && (100..120).contains(&drive.writes), "{drive:?}");
    assert_eq!(figures.parts.only_target_ns + figures.parts.none_ns, closed - opened);
    assert_eq!(figures.parts.only_target_ns, drive.union_ns);
    assert!(drive.union_ns > 0 && drive.sum_ns >= drive.union_ns, "{drive:?}");
    for span in [BlockSpan::QueueToDispatch, BlockSpan::DispatchToComplete] {
        assert!(drive.latencies[&(BlockOp::Write, span)].n() >= 100, "{drive:?}");
    }
}

#[test]
fn a_trace_that_lost_events_tells_nothing() {
    let rig = rig!();
    // The kernel makes it two pages, which hold some 120 events.
    let trace = rig.trace(Reads::Target, Some(4));
    trace.open(OsClock.now_ns());
    rig.write(4000);
    trace.close(OsClock.now_ns());
    let Outcome { figures, lost, .. } = trace.finish();
    let reason = figures.unwrap_err();
    assert!(lost.unwrap() > 0 && reason.contains("were lost"), "{lost:?} {reason}");
}

#[test]
fn a_trace_that_is_dropped_leaves_nothing() {
    let rig = rig!();
    let instances =
        || Host::real().names(rig.path("tracefs/instances")).into_iter().filter(|name| name.starts_with(&format!("copysim-{}-", std::process::id())));
    let trace = rig.trace(Reads::Target, None);
    assert!(instances().count() >= 1);
    let ours: Vec<String> = instances().collect();
    drop(trace);
    // Other tests of this process have instances of their own.
    assert!(instances().filter(|name| ours.contains(name)).count() < ours.len());
}

/// A machine of files alone, with a stick that has a queue of requests or none.
fn machine(mounts: &str, has_queue: bool) -> (tempfile::TempDir, Host) {
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/devices/sda");
    std::fs::create_dir_all(&device).unwrap();
    std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
    std::fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
    std::fs::write(device.join("dev"), "8:0\n").unwrap();
    std::os::unix::fs::symlink("../../devices/sda", root.path().join("sys/dev/block/8:0")).unwrap();
    std::fs::write(root.path().join("proc/self/mountinfo"), format!("29 1 8:0 / /stick rw - vfat /dev/sda rw\n{mounts}")).unwrap();
    if has_queue {
        std::fs::create_dir_all(device.join("mq/0")).unwrap();
    }
    let host = Host::at(root.path());
    (root, host)
}

#[test]
fn why_there_is_no_trace_is_told() {
    const TRACEFS: &str = "30 24 0:7 / /trace rw - tracefs tracefs rw\n";
    let reason = |(_root, host): &(tempfile::TempDir, Host), of: &dyn Fn(&Drive, &Drive) -> Option<String>| {
        let [stick, nowhere] = [("/stick", (8, 0)), ("/elsewhere", (0, 40))].map(|(path, number)| Drive::of(host, path.into(), number));
        of(&stick, &nowhere).unwrap()
    };
    let start = |host: &Host, target: &Drive, reads: Reads<'_>| BlockTrace::start(host, target, reads, None).err();
    let (without, with, queueless) = (machine("", true), machine(TRACEFS, true), machine(TRACEFS, false));
    assert!(reason(&without, &|stick, _| start(&without.1, stick, Reads::Target)).contains("tracefs is not mounted"));
    assert!(reason(&with, &|_, nowhere| start(&with.1, nowhere, Reads::Target)).contains("the target lies on no block device"));
    assert!(reason(&with, &|stick, nowhere| start(&with.1, stick, Reads::Drive(nowhere))).contains("the source lies on no block device"));
    assert!(reason(&queueless, &|stick, _| start(&queueless.1, stick, Reads::Target)).contains("the target's device has no queue"));
    assert!(reason(&with, &|stick, _| start(&with.1, stick, Reads::Target)).contains("can't be had"));
    assert_eq!(clean(&with.1), 0);
}
