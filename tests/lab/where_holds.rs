//! Where the time of a copy went and what the devices did meanwhile, held against the drives' own logs: pairs of drives of which one is slow, or neither, or
//! the copier itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use copysim::result::Phase as Record;
use copysim::result::division::{Division, division};
use serde_json::Value;

use crate::lab::drive::Speed;
use crate::lab::log::{Kind, Log, Request};
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::run;
use crate::needs;
use crate::program::{Ended, Order, Phase, ratio};

const MB: u64 = 1_000_000;
/// Points of a hundred by which a part may differ from what was imposed.
const POINTS: f64 = 5.0;
const LARGE: &str = "--scale 0.5% --runs 1 --block-trace";

/// tracefs where the kernel's block events can be read: mounted for a test, or there anyway.
struct Tracefs(tempfile::TempDir);

impl Tracefs {
    fn mounted() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        run("mount", ["-t", "tracefs", "tracefs", &place.path().display().to_string()]).ok().map(|_| Self(place))
    }

    /// The instances that traces have.
    fn instances(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.0.path().join("instances")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        crate::lab::system::complain("tracefs", run("umount", [Path::new("-l"), self.0.path()]).map(drop));
    }
}

/// Mounts tracefs, or leaves a test that can't run without it.
macro_rules! tracefs {
    () => {
        match Tracefs::mounted() {
            Some(tracefs) => tracefs,
            None => {
                println!("skipped: needs a kernel with tracefs");
                return;
            }
        }
    };
}

fn drive(speed: Speed) -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).speed(speed).start().unwrap()
}

fn rate(bytes_per_s: u64) -> LabDrive {
    drive(Speed::rate(bytes_per_s))
}

/// When requests of some kinds were in flight, joined where they overlap, clipped to a window. A drive sees a request from its arrival to its answer; the way to
/// it and back is on top, and what the rig takes for it lies between `started_ns` and the arrival.
fn spans(log: &Log, wanted: impl Fn(Kind) -> bool, on_its_way: bool, (from, until): (u64, u64)) -> Vec<(u64, u64)> {
    let begin = |request: &Request| if on_its_way { request.arrived_ns.min(request.started_ns) } else { request.arrived_ns };
    let requests = log.requests().into_iter().filter(|request| wanted(request.kind));
    let mut all: Vec<_> =
        requests.map(|request| (begin(&request).max(from), request.ended_ns.min(until))).filter(|(start, end)| start < end).collect();
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in all {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

fn length(spans: &[(u64, u64)]) -> u64 {
    spans.iter().map(|(start, end)| end - start).sum()
}

fn both(one: &[(u64, u64)], other: &[(u64, u64)]) -> u64 {
    let shared = |&(start, end): &(u64, u64)| other.iter().map(|&(a, b)| end.min(b).saturating_sub(start.max(a))).sum::<u64>();
    one.iter().map(shared).sum()
}

/// What logs say of a window: only source, only target, both, neither, and the target's flushes, in percent; and how long each drive, source and target, had
/// requests, without and with their way, ns.
#[derive(Debug)]
struct Imposed {
    parts: [f64; 4],
    flushing: f64,
    drives: [[u64; 2]; 2],
}

/// The sides are two drives, or reading and everything else of one.
fn imposed(source: &Log, target: &Log, window: (u64, u64)) -> Imposed {
    let whole = window.1 - window.0;
    let percent = |ns: u64| ns as f64 * 100.0 / whole as f64;
    let one = std::ptr::eq(source, target);
    let read = spans(source, |kind| !one || kind == Kind::Read, true, window);
    let written = spans(target, |kind| !one || kind != Kind::Read, true, window);
    let (reading, writing, shared) = (length(&read), length(&written), both(&read, &written));
    let parts = [reading - shared, writing - shared, shared, whole + shared - reading - writing].map(percent);
    let flushing = percent(length(&spans(target, |kind| kind == Kind::Flush, true, window)));
    let drives = [source, target].map(|log| [false, true].map(|on_its_way| length(&spans(log, |_| true, on_its_way, window))));
    Imposed { parts, flushing, drives }
}

/// Holds a traced copy against the logs. Returns how its time divides, in percent: source, target, both at once, flush, this machine, unknown; and whether each
/// drive had requests as long as its log says.
fn hold(name: &str, source: &LabDrive, target: &LabDrive, ended: &Ended) -> ([f64; 6], bool) {
    let phase: Phase<'_> = ended.phase(1);
    phase.is_verified();
    let (opened, durable) = (phase.opened_ns(), phase.number("/window/durable_ns"));
    let truth = imposed(&source.log, &target.log, (opened, opened + durable));
    let parts = ["only_source_ns", "only_target_ns", "both_ns", "none_ns"].map(|part| phase.number(&format!("/time/overlap_ns/{part}")));
    assert_eq!(parts.iter().sum::<u64>(), durable, "the parts are the window");
    let traced = parts.map(|ns| ns as f64 * 100.0 / durable as f64);
    let flushing = phase.number("/block_trace/requests/d0/flush_union_ns") as f64 * 100.0 / durable as f64;
    println!(
        "{name}: only source, only target, both, neither, flushing: traced {traced:.1?} {flushing:.1}, imposed {:.1?} {:.1}",
        truth.parts, truth.flushing
    );

    let Division { source_ns, target_ns, both_ns, flush_ns, machine_ns, unknown_ns } =
        division(&serde_json::from_value::<Record>(phase.phase.clone()).unwrap()).unwrap();
    let divided = [source_ns, target_ns, both_ns, flush_ns, machine_ns, unknown_ns];
    let whole: u64 = divided.iter().sum();
    let divided = divided.map(|ns| ns as f64 * 100.0 / whole as f64);
    println!("{name}: source, target, both, flush, machine, unknown: {divided:.1?}");
    let calls: u64 = phase["time"]["calls_ns"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
    let accounted = ratio(calls + phase.number("/time/outside_ns"), durable);
    assert!((accounted - 1.0).abs() < 0.005, "{name}: {accounted} of the window is accounted for");

    for (traced, imposed) in traced.iter().zip(truth.parts).chain([(&flushing, truth.flushing)]) {
        assert!((traced - imposed).abs() <= POINTS, "{name}: {traced} {imposed}");
    }
    let mut as_long = true;
    for (id, [least, most]) in [("d0", truth.drives[1]), ("d1", truth.drives[0])] {
        let Some(union) = phase.pointer(&format!("/device/{id}/inflight_union_ns")).and_then(Value::as_u64) else { continue };
        println!("{name}: {id} had requests for {:.4} of the log's time, {:.4} with their way", ratio(union, least), ratio(union, most));
        // Of what lasts no time at all, the way to the drive and back is most.
        as_long &= most * 10 < durable || (least as f64 * 0.98..=most as f64 * 1.02).contains(&(union as f64));
    }
    assert_eq!((phase.number("/block_trace/lost"), &phase["block_trace"]["reason"]), (0, &Value::Null));
    // A side was waited for at least when it alone had requests, but for what this machine computed meanwhile, and at most when it had any.
    let [only_source, only_target, both, none] = truth.parts;
    let meanwhile = (divided[4] - none).max(0.0);
    let between = |value: f64, most: f64, less: f64| {
        assert!((most - less - POINTS..=most + both + POINTS).contains(&value), "{name}: {value} {most} less {less} {truth:?}");
    };
    between(divided[0], only_source, meanwhile);
    between(divided[1] + divided[3], only_target, meanwhile);
    between(divided[4], none, 0.0);
    assert!(divided[5] <= 10.0, "{name}: {divided:?}");
    (divided, as_long)
}

/// Makes a copy and holds it against the logs. On a machine with other work a request may be on its way to the drive and back for long, which its log does not
/// count: of three copies one must have its requests as long as the logs say.
fn held(name: &str, source: &LabDrive, target: &LabDrive, order: &Order) -> [f64; 6] {
    for _ in 0..3 {
        let (divided, as_long) = hold(name, source, target, &order.paced(&[source, target]));
        if as_long {
            return divided;
        }
    }
    panic!("{name}: requests are not in flight as long as the logs say");
}

/// A traced copy between two drives.
fn copy(name: &str, source: &LabDrive, target: &LabDrive, order: impl FnOnce(Order) -> Order) -> [f64; 6] {
    let order = order(Order::new("large-file-cross-drive", target.path()).with(LARGE).with("--source").argument(source.path()));
    held(name, source, target, &order)
}

#[test]
fn the_slow_side_of_a_copy_is_named() {
    needs!("mkfs.ext4");
    let _tracefs = tracefs!();
    let (source, target) = (rate(20 * MB), rate(200 * MB));
    let divided = copy("source-slow", &source, &target, |order| order);
    assert!(divided[0] > 75.0, "{divided:?}");
    drop((source, target));

    let (source, target) = (rate(200 * MB), rate(20 * MB));
    // Else all of it is in this machine's memory before the drive is asked for anything, and only the flush waits.
    target.hold_back(4 * MB).unwrap();
    let divided = copy("target-slow", &source, &target, |order| order);
    assert!(divided[1] + divided[3] > 75.0 && divided[1] > 40.0, "{divided:?}");
}

#[test]
fn a_slow_flush_is_named() {
    needs!("mkfs.ext4");
    let _tracefs = tracefs!();
    let (source, target) = (rate(200 * MB), drive(Speed { flush: Duration::from_millis(300), ..Speed::rate(200 * MB) }));
    let divided = copy("flush-slow", &source, &target, |order| order);
    assert!(divided[3] > 60.0, "{divided:?}");
}

#[test]
fn two_equal_drives_share_the_time() {
    needs!("mkfs.ext4");
    let _tracefs = tracefs!();
    let (source, target) = (rate(40 * MB), rate(40 * MB));
    target.hold_back(4 * MB).unwrap();
    copy("two equal", &source, &target, |order| order);
    drop((source, target));
    let lab = rate(50 * MB);
    held("one drive", &lab, &lab, &Order::new("large-file-same-drive", lab.path()).with(LARGE));
}

/// A copier that computes after each piece of 1 MiB.
const BUSY: &str = "command:cd {source}; for f in $(find . -type f); do mkdir -p {target}/$(dirname $f); i=0; n=$(( ($(stat -c %s $f) + 1048575) / 1048576 )); \
     while [ $i -lt $n ]; do dd if=$f of={target}/$f bs=1M skip=$i seek=$i count=1 conv=notrunc status=none; j=0; while [ $j -lt 40000 ]; do j=$((j+1)); done; \
     i=$((i+1)); done; touch -r $f {target}/$f; done";

#[test]
fn a_slow_copier_is_named() {
    needs!("mkfs.ext4", "dd", "find");
    let _tracefs = tracefs!();
    let (source, target) = (rate(200 * MB), rate(200 * MB));
    let divided = copy("copier-slow", &source, &target, |order| order.with("--engine").argument(BUSY));
    assert!(divided[4] > 50.0, "{divided:?}");
}

#[test]
fn where_there_is_no_trace_the_copy_is_made_and_the_reason_told() {
    needs!("mkfs.ext4", "setpriv");
    let tracefs = tracefs!();
    let lab = rate(200 * MB);
    let home = crate::users_directory(lab.path());
    let before = tracefs.instances();
    let ended = Order::new("large-file-same-drive", &home).with(LARGE).by_nobody().paced(&[&lab]);
    let phase = ended.phase(1);
    assert_eq!((&phase["time"]["overlap_ns"], &phase["device"]["d0"]["inflight_union_ns"]), (&Value::Null, &Value::Null));
    assert!(phase["block_trace"]["reason"].as_str().unwrap().contains("root"), "{}", phase["block_trace"]);
    assert!(ended.err.contains("no block trace") && ended.out.contains("for root alone"), "{}{}", ended.err, ended.out);
    assert_eq!(tracefs.instances(), before);
}
