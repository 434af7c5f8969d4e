//! The lab tested: what its drives do is what was ordered, by the log and by the clock on the wall. And copysim tested in the lab: what it says is what the
//! drives did.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the lab stands outside copysim and its rooms; its tests end when something is wrong, and tell what they measured"
)]

#[path = "mod.rs"]
mod lab;

mod bytes_hold;
mod calls_hold;
mod capacity_holds;
mod curves_hold;
mod endurance_holds;
mod evidence_fails;
mod failures_hold;
mod faults_hold;
mod file_systems_hold;
mod hangs_hold;
mod launch_holds;
mod link_holds;
mod program;
mod proofs_hold;
mod signals_hold;
mod speed_holds;
mod starts_hold;
mod trees_hold;
mod truth_holds;
mod user_holds;
mod where_holds;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab::log::{Kind, Request, now_ns};
use lab::transport::Aligned;

/// Timing needs a machine that does nothing else: one test at a time.
fn quiet() -> MutexGuard<'static, ()> {
    static QUIET: Mutex<()> = Mutex::new(());
    QUIET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves a test that can't run here, and says why.
macro_rules! needs {
    ($($tool:expr),*) => {
        if let Some(why) = crate::lab::system::missing(&[$($tool),*]) {
            println!("skipped: {why}");
            return;
        }
        let _quiet = crate::quiet();
    };
}
use needs;

/// Opens a block device past the cache.
fn open(device: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)
}

/// Reads or writes `count` blocks from `offset` on, some at a time, so that the drive never waits for this machine; returns the nanoseconds that it took.
fn stream(device: &Path, kind: Kind, offset: u64, block: usize, count: u64) -> io::Result<u64> {
    let depth = count.min(16);
    let file = open(device)?;
    let mut buffers: Vec<_> = (0..depth).map(|_| Aligned::new(block)).collect();
    // Touching the memory is not the drive's work.
    buffers.iter_mut().for_each(|buffer| buffer.bytes().fill(1));
    let work = |first: u64, buffer: &mut Aligned| -> io::Result<()> {
        for index in (first..count).step_by(depth as usize) {
            let at = offset + index * block as u64;
            match kind {
                Kind::Read => file.read_exact_at(buffer.bytes(), at)?,
                _ => file.write_all_at(buffer.bytes(), at)?,
            }
        }
        Ok(())
    };
    let began = now_ns();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..).zip(&mut buffers).map(|(first, buffer)| scope.spawn(move || work(first, buffer))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| io::Error::other("panicked"))?)
    })?;
    Ok(now_ns() - began)
}

/// What the drive took for one of these requests, by its log, in nanoseconds: the median, as a busy machine may wake the drive late.
fn served_ns(requests: &[Request]) -> u64 {
    let mut times: Vec<_> = requests.iter().map(|request| request.ended_ns - request.started_ns).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Bytes that differ from place to place and do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

/// A directory on a mounted file system in which an ordinary user may write.
fn users_directory(mounted: &Path) -> PathBuf {
    let home = mounted.join("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    home
}

/// The files and directories of copies that lie in the workspace of a directory.
fn left_in(directory: &Path) -> Vec<String> {
    let runs = directory.join("copysim-workspace/runs");
    let entries = walkdir::WalkDir::new(runs).min_depth(1).into_iter();
    entries.filter_map(|entry| Some(entry.ok()?.path().display().to_string())).collect()
}

/// Whether two quantities are no further apart than a share of the second in thousandths.
fn close(value: u64, expected: u64, thousandths: u64) -> bool {
    value.abs_diff(expected) * 1000 <= expected * thousandths
}
