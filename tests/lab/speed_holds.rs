//! Rates, latencies and counters of lab drives against bytes over time.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use crate::lab::drive::Speed;
use crate::lab::log::{Kind, now_ns};
use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::run;
use crate::lab::transport::Aligned;
use crate::{close, needs, noise, open, served_ns, stream};

const MIB: u64 = 1 << 20;

/// Bytes over rate, in nanoseconds.
fn due_ns(bytes: u64, rate: u64) -> u64 {
    bytes * 1_000_000_000 / rate
}

#[test]
fn a_rate_is_bytes_over_time_by_the_log_and_by_the_wall() {
    needs!();
    let lab = LabDrive::builder().speed(Speed::rate(50_000_000)).start().unwrap();
    for kind in [Kind::Write, Kind::Read] {
        lab.log.clear();
        let wall = stream(lab.device(), kind, 0, MIB as usize, 50).unwrap();
        let requests = lab.log.requests();
        let logged = requests[requests.len() - 1].ended_ns - requests[0].arrived_ns;
        println!("{kind:?}: wall {wall} ns, log {logged} ns, due {} ns", due_ns(50 * MIB, 50_000_000));
        assert_eq!(requests.iter().filter(|request| request.kind == kind).map(|request| request.length).sum::<u64>(), 50 * MIB);
        assert!(close(wall, due_ns(50 * MIB, 50_000_000), 20), "{wall}");
        assert!(close(logged, due_ns(50 * MIB, 50_000_000), 20), "{logged}");
    }
}

#[test]
fn reads_and_writes_share_a_half_duplex_drive_and_not_a_duplex_one() {
    needs!();
    for (builder, rate) in [(LabDrive::builder(), 25_000_000), (LabDrive::builder().duplex(), 50_000_000)] {
        let lab = builder.speed(Speed::rate(50_000_000)).start().unwrap();
        let both = std::thread::scope(|scope| {
            let reader = scope.spawn(|| stream(lab.device(), Kind::Read, 0, 512 << 10, 50));
            let writer = scope.spawn(|| stream(lab.device(), Kind::Write, 512 * MIB, 512 << 10, 50));
            [reader, writer].map(|thread| thread.join().unwrap().unwrap())
        });
        println!("mixed: {both:?} ns, due {} ns each", due_ns(25 * MIB, rate));
        assert!(both.iter().all(|&wall| close(wall, due_ns(25 * MIB, rate), 40)), "{both:?}");
    }
}

#[test]
fn rates_for_reading_and_writing_may_differ() {
    needs!();
    let lab = LabDrive::builder().speed(Speed { read: Some(200_000_000), ..Speed::rate(50_000_000) }).start().unwrap();
    let write = stream(lab.device(), Kind::Write, 0, 512 << 10, 40).unwrap();
    let read = stream(lab.device(), Kind::Read, 0, 512 << 10, 160).unwrap();
    println!("write {write} ns, read {read} ns");
    assert!(close(write, due_ns(20 * MIB, 50_000_000), 30), "{write}");
    assert!(close(read, due_ns(80 * MIB, 200_000_000), 30), "{read}");
}

#[test]
fn a_latency_is_seen_by_each_request() {
    needs!();
    let lab = LabDrive::builder().speed(Speed { latency: Duration::from_millis(2), ..Speed::rate(50_000_000) }).start().unwrap();
    let file = open(lab.device()).unwrap();
    let mut buffer = Aligned::new(4096);
    let mut seen = [(); 400].map(|()| {
        let began = now_ns();
        file.read_exact_at(buffer.bytes(), 0).unwrap();
        now_ns() - began
    });
    seen.sort_unstable();
    let (due, served) = (2_000_000 + due_ns(4096, 50_000_000), served_ns(&lab.log.requests()));
    println!(
        "seen: quarter {} ns, half {} ns, mean {} ns; served in {served} ns, due {due} ns",
        seen[100],
        seen[200],
        seen.iter().sum::<u64>() / 400
    );
    // What is seen would not do alone: the rig's own time was found by this same clock, with any error of the drive in it.
    assert!(close(served, due, 20), "{served}");
    // A machine with other work lets us see some of them late.
    assert!(close(seen[100], due, 50), "{seen:?}");
}

#[test]
fn a_flush_takes_its_time_and_is_logged() {
    needs!();
    let lab = LabDrive::builder().speed(Speed { flush: Duration::from_millis(30), ..Speed::default() }).start().unwrap();
    let file = open(lab.device()).unwrap();
    let before = lab.stat().unwrap();
    let began = now_ns();
    for _ in 0..5 {
        file.sync_all().unwrap();
    }
    assert!(now_ns() - began > 145_000_000);
    assert_eq!(lab.log.sums().flushes, 5);
    let after = lab.stat().unwrap();
    // Flushes are field 16; the kernel counts each of these as a write of no bytes, too.
    assert_eq!([4, 6, 15].map(|field| after[field] - before[field]), [5, 0, 5]);
    assert!(close(served_ns(&lab.log.requests()), 30_000_000, 20), "{}", served_ns(&lab.log.requests()));
}

#[test]
fn the_counters_of_the_kernel_agree_with_the_log() {
    needs!("mkfs.ext4");
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap();
    let data = noise(64 << 20);
    lab.log.clear();
    let before = lab.stat().unwrap();
    let path = lab.path().join("file");
    let mut file = File::create(&path).unwrap();
    file.write_all(&data).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), data);
    rustix::fs::syncfs(file.as_fd()).unwrap();
    let after = lab.stat().unwrap();
    let moved = |field: usize| after[field] - before[field];
    let sums = lab.log.sums();
    println!("stat: read {} written {} flushes {}; log: {sums:?}", moved(2) * 512, moved(6) * 512, moved(15));
    assert!(sums.read_bytes >= 64 * MIB && sums.written_bytes >= 64 * MIB, "{sums:?}");
    assert!(close(moved(2) * 512, sums.read_bytes, 5) && close(moved(6) * 512, sums.written_bytes, 5), "{before:?} {after:?} {sums:?}");
    assert_eq!((moved(0), moved(15)), (sums.reads, sums.flushes));
    // The kernel counts a flush that comes without data as a write of no bytes, too.
    assert!((sums.writes..=sums.writes + sums.flushes).contains(&moved(4)), "{before:?} {after:?} {sums:?}");
    let busy = lab.log.in_flight_ns(0, now_ns());
    assert!(busy > 0 && busy < now_ns(), "{busy}");
}

#[test]
fn the_buffered_writes_of_fio_take_bytes_over_rate() {
    needs!("mkfs.ext4", "fio");
    let lab = LabDrive::builder().speed(Speed::rate(50_000_000)).file_system(FileSystem::Ext4).start().unwrap();
    let directory = format!("--directory={}", lab.path().display());
    let arguments = ["--name=twin", "--rw=write", "--bs=1M", "--size=200M", "--fallocate=none", "--end_fsync=1", "--output-format=json"];
    // Without this the drive idles until the end, while the cache is filled at the speed of memory.
    let early = ["--sync_file_range=write:4", &directory];
    let report = run("fio", arguments.into_iter().chain(early)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let took = report["jobs"][0]["write"]["runtime"].as_u64().unwrap() * 1_000_000;
    let written = lab.log.sums().written_bytes;
    println!("fio {took} ns, due {} ns, drive wrote {written} bytes", due_ns(200 * MIB, 50_000_000));
    assert!(close(took, due_ns(200 * MIB, 50_000_000), 30), "{took}");
    assert!(written >= 200 * MIB, "{written}");
}

#[test]
fn a_drive_without_limits_is_faster_than_what_it_stands_for() {
    needs!();
    let lab = LabDrive::builder().start().unwrap();
    // The first writing takes the memory from the system, the second shows the rig.
    let times = [Kind::Write, Kind::Write, Kind::Read].map(|kind| stream(lab.device(), kind, 0, MIB as usize, 256).unwrap());
    println!("first write, write, read of 256 MiB: {:?} MB/s", times.map(|ns| 256 * MIB * 1000 / ns));
    assert!(times[1..].iter().all(|&ns| 256 * MIB * 1000 / ns > 400), "{times:?}");
}

#[test]
fn the_log_can_be_kept_as_text() {
    needs!();
    let lab = LabDrive::builder().start().unwrap();
    let began = now_ns();
    stream(lab.device(), Kind::Write, 8192, 4096, 1).unwrap();
    let text = lab.log.to_text();
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split(',').collect()).collect();
    let write: Vec<_> = lines.iter().filter(|line| line[3] == "write").collect();
    assert_eq!(lines[0], ["arrived_ns", "started_ns", "ended_ns", "kind", "offset", "length", "errno", "way_ns"]);
    assert_eq!((write.len(), &write[0][3..7]), (1, ["write", "8192", "4096", "0"].as_slice()), "{text}");
    let between = lab.log.between(began, now_ns());
    assert_eq!((between.writes, lab.log.between(0, began).writes), (1, 0));
    assert!(Path::new("/dev").join(lab.device()).exists());
}
