//! Sets up a lab drive by hand and keeps it until Ctrl-C: `cargo run --example lab-drive -- --size 4GiB --rate 50000000 --fs ext4 --mount DIR`.
//!
//! While it runs it obeys lines on its standard input: `rate N`, `delay 100ms`, `fail read|write|flush ERRNO`, `hang`, `release`, `vanish`, `heal`, `clear` (the
//! log), `sums`.
#![expect(clippy::disallowed_methods, reason = "the lab stands outside copysim and its rooms")]

#[expect(dead_code, reason = "by hand not everything is needed that tests need")]
#[path = "mod.rs"]
mod lab;

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use copysim::units::Bytes;
use lab::drive::Speed;
use lab::log::Kind;
use lab::mount::{FileSystem, LabDrive};
use lab::system::missing;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Fs {
    Ext4,
    Xfs,
    Btrfs,
    /// A bare block device.
    None,
}

/// A drive whose speed and faults are ordered, and which logs every request.
#[derive(Parser)]
struct Arguments {
    /// Size of the block device.
    #[arg(long, default_value = "4GiB")]
    size: Bytes,
    /// Bytes per second for reading and writing; no limit when not said.
    #[arg(long)]
    rate: Option<u64>,
    /// Bytes per second for reading, where it differs.
    #[arg(long)]
    read_rate: Option<u64>,
    /// Time that each request takes beyond its bytes.
    #[arg(long, default_value = "0s")]
    latency: humantime::Duration,
    /// Time that each flush takes.
    #[arg(long, default_value = "0s")]
    flush: humantime::Duration,
    /// Reads and writes do not wait for each other.
    #[arg(long)]
    duplex: bool,
    /// The file system to make.
    #[arg(long, default_value = "ext4")]
    fs: Fs,
    /// An existing directory to mount on.
    #[arg(long)]
    mount: Option<PathBuf>,
    /// Options of `mount -o`.
    #[arg(long)]
    mount_options: Option<String>,
    /// The logical block size of the device in bytes.
    #[arg(long)]
    sector_size: Option<u32>,
    /// Where the log is written at the end.
    #[arg(long)]
    log: Option<PathBuf>,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let file_system = match arguments.fs {
        Fs::Ext4 => Some(FileSystem::Ext4),
        Fs::Xfs => Some(FileSystem::Xfs),
        Fs::Btrfs => Some(FileSystem::Btrfs),
        Fs::None => None,
    };
    if let Some(why) = missing(&file_system.map(FileSystem::tool).into_iter().collect::<Vec<_>>()) {
        return Err(io::Error::other(why));
    }
    let speed = Speed {
        read: arguments.read_rate.or(arguments.rate),
        write: arguments.rate,
        latency: arguments.latency.into(),
        flush: arguments.flush.into(),
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut builder = LabDrive::builder().size(arguments.size.0).speed(speed);
    if arguments.duplex {
        builder = builder.duplex();
    }
    if let Some(file_system) = file_system {
        builder = builder.file_system(file_system);
    }
    if let Some(place) = &arguments.mount {
        builder = builder.mount_on(place);
    }
    if let Some(options) = &arguments.mount_options {
        builder = builder.mount_options(options);
    }
    if let Some(bytes) = arguments.sector_size {
        builder = builder.sector_size(bytes);
    }
    let drive = builder.start()?;
    let mut out = io::stdout();
    match file_system {
        Some(_) => writeln!(out, "{} on {}", drive.device().display(), drive.path().display())?,
        None => writeln!(out, "{}", drive.device().display())?,
    }
    let (lines, orders) = channel();
    // It ends with the process: reading a line can't be interrupted.
    std::thread::spawn(move || io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    while !stop.load(Ordering::Relaxed) {
        match orders.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                let answer = obey(&drive, speed, &line);
                writeln!(out, "{}", answer.unwrap_or_else(|| format!("not understood: {line}")))?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Standard input ended: only a signal is left.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    writeln!(out, "{:?}", drive.log.sums())?;
    match arguments.log {
        Some(file) => std::fs::write(file, drive.log.to_text()),
        None => Ok(()),
    }
}

/// Does what a line says, if it says something.
fn obey(drive: &LabDrive, speed: Speed, line: &str) -> Option<String> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words.as_slice() {
        ["rate", rate] => {
            let rate = rate.parse::<Bytes>().ok().filter(|rate| rate.0 > 0)?;
            drive.set_speed(Speed { read: Some(rate.0), write: Some(rate.0), ..speed });
        }
        ["delay", time] => drive.faults.delay(time.parse::<humantime::Duration>().ok()?.into()),
        ["fail", kind, errno] => {
            let kinds = [("read", Kind::Read), ("write", Kind::Write), ("flush", Kind::Flush)];
            let (_, kind) = kinds.iter().find(|(name, _)| name == kind)?;
            drive.faults.fail(*kind, None, errno.parse().ok()?);
        }
        ["hang"] => drive.faults.hang(),
        ["release"] => drive.faults.release(),
        ["vanish"] => drive.faults.vanish(libc::EIO),
        ["heal"] => drive.faults.clear(),
        ["clear"] => drive.log.clear(),
        ["sums"] => return Some(format!("{:?}", drive.log.sums())),
        _ => return None,
    }
    Some("done".to_owned())
}
