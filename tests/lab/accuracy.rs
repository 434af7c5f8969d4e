//! How far copysim's figures are from the truth: `cargo bench --bench accuracy > docs/accuracy.md`. Prints a page; fails when a figure is further from it than
//! is promised. Needs root, and fio.
//!
//! The truth is a lab drive's own log of every request. Beside it stands fio, which does as copysim does: as many bytes, 1 MiB at a time through the page cache,
//! and a flush.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the lab stands outside copysim and its rooms; this program prints what it measured"
)]

#[path = "kept_memory.rs"]
mod kept_memory;
#[expect(dead_code, reason = "not all that tests of the lab need is needed here")]
#[path = "mod.rs"]
mod lab;
#[expect(dead_code, reason = "not all that tests of the program need is needed here")]
#[path = "program.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lab::drive::Speed;
use lab::log::Kind;
use lab::mount::{FileSystem, LabDrive};
use lab::system::run;
use program::{Order, Phase, Truth, median, ratio};
use serde_json::Value;

const MB: u64 = 1_000_000;
/// Measured so often; the median is held against the promise.
const TIMES: usize = 9;
/// Longer than any copy here, s.
const COMMIT: &str = "commit=300";
/// As SATA drives and USB docks have.
const QUEUE_DEPTH: u64 = 32;
/// How far the durable time and the rate may be off.
const RATE_OFF: f64 = 0.02;
/// How far the mean latency may be off.
const LATENCY_OFF: f64 = 0.03;

/// A drive and what is copied on it.
struct Case {
    name: &'static str,
    speed: Speed,
    /// The speed from so many written bytes of the copy on.
    step: Option<(u64, Speed)>,
    /// Of 4 GB: so much work that what a flush of the file system costs beyond fio's of one file, two flushes and five requests of the drive, is less than a fiftieth.
    scale: &'static str,
    /// How much of what is written this machine may hold back: less than would fit into its memory, more than is written while the kernel lets a writer wait (0.2 s).
    held_back: u64,
}

fn cases() -> Vec<Case> {
    let ms = |latency: f64| Duration::from_secs_f64(latency / 1000.0);
    let delayed = |latency: f64| Speed { latency: ms(latency), ..Speed::rate(50 * MB) };
    let plain = |name, speed, scale, held_back| Case { name, speed, step: None, scale, held_back };
    vec![
        plain("200 MB/s", Speed::rate(200 * MB), "16%", 80 * MB),
        plain("50 MB/s", Speed::rate(50 * MB), "3%", 6 * MB),
        plain("10 MB/s", Speed::rate(10 * MB), "1.5%", 2 * MB),
        plain("50 MB/s, 0.5 ms a request", delayed(0.5), "3%", 6 * MB),
        plain("50 MB/s, 2 ms a request", delayed(2.0), "3%", 6 * MB),
        plain("50 MB/s, 10 ms a request", delayed(10.0), "6%", 6 * MB),
        plain("50 MB/s, 50 ms a flush", Speed { flush: ms(50.0), ..Speed::rate(50 * MB) }, "12%", 6 * MB),
        Case { step: Some((60 * MB, Speed::rate(25 * MB))), ..plain("100 MB/s, 25 MB/s after 60 MB", Speed::rate(100 * MB), "3%", 6 * MB) },
    ]
}

/// tracefs, mounted for as long as this lives.
struct Tracefs(PathBuf);

impl Tracefs {
    fn mounted() -> Self {
        let place = PathBuf::from("/sys/kernel/tracing");
        if !place.join("events").exists() {
            run("mount", ["-t", "tracefs", "tracefs", "/sys/kernel/tracing"]).unwrap();
            return Self(place);
        }
        Self(PathBuf::new())
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            lab::system::complain("tracefs", run("umount", [Path::new("-l"), &self.0]).map(drop));
        }
    }
}

/// Bytes per second that fio shows for the same work, with its flush.
fn fio(directory: &Path, bytes: u64) -> f64 {
    let named = format!("--directory={}", directory.display());
    let size = format!("--size={bytes}");
    let arguments = ["--name=twin", "--rw=write", "--bs=1M", "--fallocate=none", "--end_fsync=1", "--output-format=json"];
    let root = std::fs::File::open(directory).unwrap();
    // What the measurement before it left to do is not fio's.
    rustix::fs::syncfs(&root).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let report: Value = serde_json::from_str(&run("fio", arguments.into_iter().chain([&*named, &size])).unwrap()).unwrap();
    std::fs::remove_file(directory.join("twin.0.0")).unwrap();
    let job = &report["jobs"][0]["write"];
    job["io_bytes"].as_u64().unwrap() as f64 * 1000.0 / job["runtime"].as_u64().unwrap() as f64
}

/// The mean time that requests of a kind were with the drive, by copysim's block trace and by the drive's log, as a ratio.
fn latency_ratio(phase: Phase<'_>, lab: &LabDrive, kind: Kind, op: &str) -> Option<f64> {
    let traced = phase["block_trace"]["latency"].as_array()?.iter().find(|line| line["op"] == op && line["span"] == "dispatch-to-complete")?;
    let mean = traced["sum_ns"].as_u64()? as f64 / traced["n"].as_u64()? as f64;
    let (from, until) = (phase.opened_ns(), phase.opened_ns() + phase.number("/window/durable_ns"));
    let within = |request: &lab::log::Request| request.kind == kind && request.arrived_ns >= from && request.ended_ns <= until;
    // Who asked for it waited from when it set out until the answer was back.
    let times: Vec<u64> =
        lab.log.requests().into_iter().filter(within).map(|request| request.ended_ns - request.arrived_ns + request.way_ns).collect();
    let logged = times.iter().sum::<u64>() as f64 / times.len() as f64;
    (!times.is_empty()).then_some(mean / logged)
}

/// The medians of a case.
#[derive(Default)]
struct Found {
    time: Vec<f64>,
    bytes: Vec<f64>,
    fio: Vec<f64>,
    read: Vec<f64>,
    write: Vec<f64>,
    flush: Vec<f64>,
}

fn measure(case: &Case) -> Found {
    let mut found = Found::default();
    // The journal is committed when a flush asks for it, not every five seconds wherever a copy is by then: the loop device serves nothing else while it flushes,
    // and requests that wait for it there are with no drive yet.
    let builder = LabDrive::builder().size(2 << 30).file_system(FileSystem::Ext4).mount_options(COMMIT);
    let lab = builder.speed(case.speed).start().unwrap();
    lab.queue_depth(QUEUE_DEPTH).unwrap();
    for round in 0..TIMES {
        for scenario in ["large-file-cross-drive", "large-file-same-drive"] {
            let order =
                Order::new(scenario, lab.path()).with("--scale").with(case.scale).with("--runs 1 --no-verify --block-trace").settling("100ms");
            let steps = scenario.contains("cross").then_some(case.step).flatten();
            lab.set_speed(case.speed);
            // A copy within the drive tells the latencies alone. In long bursts writes come into this rig one after another, and reads behind them.
            lab.hold_back(if scenario.contains("same") { case.held_back.min(20 * MB) } else { case.held_back }).unwrap();
            let ended = order.paced_with(&[&lab], &mut |line| {
                if let Some((bytes, speed)) = steps.filter(|_| line.contains("waiting until the drive has been idle")) {
                    lab.set_speed_after(bytes, speed);
                }
            });
            let phase = ended.phase(1);
            let truth = Truth::after(&lab.log, phase.opened_ns());
            let durable_ns = phase.number("/window/durable_ns");
            if scenario.contains("same") {
                found.read.extend(latency_ratio(phase, &lab, Kind::Read, "read"));
                continue;
            }
            found.time.push(ratio(durable_ns, truth.durable_ns()));
            found.bytes.push(ratio(phase.number("/device/d0/written_bytes"), truth.written_bytes));
            found.write.extend(latency_ratio(phase, &lab, Kind::Write, "write"));
            found.flush.extend(latency_ratio(phase, &lab, Kind::Flush, "flush"));
            let bytes = phase.number("/bytes");
            lab.set_speed(case.speed);
            if let Some((after, speed)) = steps {
                lab.set_speed_after(after, speed);
            }
            found.fio.push(bytes as f64 * 1e9 / durable_ns as f64 / fio(lab.path(), bytes));
            eprintln!("{} {}/{TIMES}: {:?}", case.name, round + 1, found.time.last());
        }
    }
    found
}

/// What the evidence costs that is gathered while the window is open, by pairs of a copy with it and one without: on the drive of 50 MB/s.
fn cost(off: &mut Vec<String>) {
    const PAIRS: usize = 15;
    let lab = LabDrive::builder().file_system(FileSystem::Ext4).speed(Speed::rate(50 * MB)).start().unwrap();
    let (mut times, mut shares, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..PAIRS {
        let measured = |option: &str| {
            let order = Order::new("large-file-same-drive", lab.path()).with("--scale 1.5% --runs 1 --no-verify").with(option).settling("100ms");
            let ended = order.paced(&[&lab]);
            let phase = ended.phase(1);
            let (opened, durable) = (phase.opened_ns(), phase.number("/window/durable_ns"));
            let sums = lab.log.between(opened, opened + durable);
            (durable, phase["time"]["evidence_ns"].as_u64(), (sums.reads + sums.writes + sums.flushes + sums.discards) as f64)
        };
        let (with, without) = if round % 2 == 0 {
            let with = measured("");
            (with, measured("--no-evidence"))
        } else {
            let without = measured("--no-evidence");
            (measured(""), without)
        };
        times.push(ratio(with.0, without.0));
        shares.push(ratio(with.1.unwrap(), with.0));
        commands.push(with.2 - without.2);
        eprintln!("evidence {}/{PAIRS}: {:?}", round + 1, times.last());
    }
    let logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64).sqrt();
    // Student's t for 14 degrees of freedom.
    let half = 2.145 * deviation / (logs.len() as f64).sqrt();
    println!("\n## What the evidence costs\n");
    println!(
        "A copy within the drive of 50 MB/s, with the evidence that is gathered while the window is open and without (`--no-evidence`), {PAIRS} alternating pairs:\n"
    );
    println!(
        "- durable time: {:.4} [{:.4}, {:.4}] of that without (geometric mean, 95 % interval)",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp()
    );
    println!("- processor time: {:.3} % of the window (median)", median(shares.clone()) * 100.0);
    println!("- commands that the drive was given: {:+.0} (median)", median(commands));
    println!("\nPromised: below 1 % of the durable time and below 2 % processor time.");
    if mean.exp() > 1.01 {
        off.push(format!("evidence costs {:.4} of the durable time", mean.exp()));
    }
    if median(shares) > 0.02 {
        off.push("evidence costs too much processor time".to_owned());
    }
}

fn main() -> ExitCode {
    if let Some(why) = lab::system::missing(&["mkfs.ext4", "fio"]) {
        // The page that was there before is worth more than none.
        eprintln!("nothing was measured: {why}");
        return ExitCode::FAILURE;
    }
    let _tracefs = Tracefs::mounted();
    let _kept = kept_memory::KeptMemory::start();
    let mut off = Vec::new();
    println!("# Accuracy\n");
    println!(
        "Printed by `cargo bench --bench accuracy` (root; 2 cores are enough, but nothing else should run). Each figure is a ratio, copysim's over the truth, and the"
    );
    println!(
        "median of {TIMES}, with the least and the greatest behind it. The truth is the log of a lab drive, which serves one request after another at exactly the rate"
    );
    println!(
        "and with the delay that is ordered; *fio* is copysim's rate over that of fio doing the same work (1 MiB writes through the page cache, then a flush of the file)."
    );
    println!("Promised: time and fio within {} %, latencies within {} %.\n", RATE_OFF * 100.0, LATENCY_OFF * 100.0);
    println!("| drive | durable time | bytes written | rate, by fio's | read latency | write latency | flush latency |");
    println!("|---|---|---|---|---|---|---|");
    // Words on the command line choose drives by their names; what cargo adds begins with a dash.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for case in cases().into_iter().filter(|case| words.is_empty() || words.iter().any(|word| case.name.contains(word.as_str()))) {
        let found = measure(&case);
        let mut cell = |what: &str, values: &[f64], allowed: f64| {
            if values.is_empty() {
                return "–".to_owned();
            }
            let middle = median(values.to_vec());
            let (least, greatest) = values.iter().fold((f64::MAX, f64::MIN), |(least, greatest), &value| (least.min(value), greatest.max(value)));
            let is_off = (middle - 1.0).abs() > allowed;
            if is_off {
                off.push(format!("{}: {what} {middle:.4}", case.name));
            }
            format!("{middle:.4} ({least:.3}–{greatest:.3}){}", if is_off { " **off**" } else { "" })
        };
        let cells = [
            cell("time", &found.time, RATE_OFF),
            cell("bytes", &found.bytes, 0.005),
            cell("fio", &found.fio, RATE_OFF),
            cell("read latency", &found.read, LATENCY_OFF),
            cell("write latency", &found.write, LATENCY_OFF),
            // Where a flush costs the drive nothing, what is measured is the rig.
            cell("flush latency", if case.speed.flush.is_zero() { &[] } else { &found.flush }, LATENCY_OFF),
        ];
        println!("| {} | {} |", case.name, cells.join(" | "));
    }
    println!(
        "\nLatency is the mean time from dispatch to completion, by the kernel's block events and by the drive's log with the rig's own time; of a flush it includes what the"
    );
    println!(
        "kernel makes of it. The log's durable time ends with its last flush; `syncfs` of ext4 then still writes a few blocks of metadata in place, five requests here, and flushes twice more than the `fsync` that ends fio's work."
    );
    if words.is_empty() || words.iter().any(|word| word == "cost") {
        cost(&mut off);
    }
    println!("\n## What could only be tested on fixtures\n");
    println!(
        "Drives of real make: SATA, NVMe, eMMC, SD, USB by BOT and UAS, their links, wear and heat (`tests/fixtures/hosts/`); shares (NFS, SMB); the kernel's"
    );
    println!("log lines of resets. No such device was at hand: what is read of them is what their drivers show, written down by hand.");
    off.iter().for_each(|line| eprintln!("off: {line}"));
    if off.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
