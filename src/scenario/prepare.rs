//! Brings a drive into a state before it is measured: filled to a share, its free space written all over, or told to be free. Each is a phase of the record.

use std::sync::Arc;

use super::fill;
use super::record;
use super::stage::makers;
use super::window::{Watched, Work};
use crate::cache::flush::Written;
use crate::drive::{Counters, RunDir};
use crate::engine::Trees;
use crate::error::{Context, Error, Result, Side};
use crate::platform::Handle;
use crate::progress::Counter;
use crate::result::{Evidence, Phase, PhaseKind, PhaseStatus, Proof, Verdict};
use crate::units::{Bytes, Scale, count};
use crate::workload::copy::write_generated;

/// What is left of free space that is written all over: a file system needs some for itself.
const LEFT_PERCENT: u64 = 2;

/// How much of the free space is written to have all of it written.
#[must_use]
pub fn bytes_to_dirty(available: u64) -> u64 {
    available - available / 100 * LEFT_PERCENT
}

/// Writes so many bytes of new data into a directory. What was found out before a failure is in the phase.
pub fn write(watched: &Watched<'_>, run: &RunDir, name: &str, bytes: u64, began_ns: u64) -> (Phase, Result<()>) {
    let mut phase = Phase::new(name, PhaseKind::Precondition);
    let done = try_write(watched, run, bytes, began_ns, &mut phase);
    (ended(phase, &done), done)
}

fn try_write(watched: &Watched<'_>, run: &RunDir, bytes: u64, began_ns: u64, phase: &mut Phase) -> Result<()> {
    let system = watched.system;
    let corpus = fill::fresh(bytes, system.clock, Scale::FULL)?;
    let counter = Arc::new(Counter::default());
    let one_file = corpus.files()?.find(|file| file.len > 0).map(|file| file.path);
    let trees = Trees {
        files: system.files,
        source: &run.dir,
        source_path: std::path::Path::new("the generator"),
        target: &run.dir,
        target_path: &run.path,
        umask: crate::platform::umask(),
        fresh: None,
        counter: &counter,
        cancel: watched.cancel,
        log: None,
    };
    let timed = watched.time(Work {
        what: format!("writing {} of new data", Bytes(bytes)),
        bytes,
        counter: Arc::clone(&counter),
        run: &mut |open| write_generated(trees, &corpus, makers(), system.clock, open),
        written: Some(Written { files: system.files, dir: &run.dir, path: &run.path, one_file: one_file.as_deref() }),
    })?;
    record::times(watched, &timed, began_ns, phase);
    timed.done.failure.map_or(Ok(()), Err)
}

/// Tells the drive which space of the file system is free, and looks whether it heard.
pub fn trim(watched: &Watched<'_>, dir: &Handle, began_ns: u64) -> (Phase, Result<()>) {
    let mut phase = Phase::new("trim", PhaseKind::Precondition);
    let clock = watched.system.clock;
    let path = &watched.target.drive.path;
    let start = clock.now_ns();
    phase.start_ns = start.saturating_sub(began_ns);
    let before = watched.target.counted.read();
    let trimmed = watched.system.files.trim(dir).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::Refused("--state trimmed: only root may tell a drive what is free".to_owned()),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL) => {
            Error::Refused(format!("--state trimmed: the file system or the drive under {} can't be told what is free ({error})", path.display()))
        }
        _ => Error::Internal(error.to_string()),
    });
    let trimmed = match trimmed {
        Err(Error::Internal(text)) => Err(std::io::Error::other(text)).during("trim", Side::Target, path),
        other => other,
    };
    phase.window.returned_ns = Some(clock.now_ns() - start);
    if let Ok(bytes) = &trimmed {
        phase.bytes = *bytes;
        let counted = super::window::difference(before, watched.target.counted.read());
        if let [Some(counters), ..] = counted {
            phase.device.insert(watched.target.id.to_owned(), record::device(&counters));
        }
        phase.evidence.push(heard(*bytes, counted[0]));
    }
    let done = trimmed.map(drop);
    (ended(phase, &done), done)
}

/// Whether the drive heard what it was told.
fn heard(told: u64, counted: Option<Counters>) -> Evidence {
    let discarded = counted.and_then(|counters| counters.discards.zip(counters.discard_bytes));
    let (verdict, because) = match discarded {
        None => (Verdict::Unknown, format!("the file system gave up {}; the drive does not count discards", Bytes(told))),
        Some((0, _)) => (Verdict::Fails, format!("the file system gave up {}, of which the drive has heard nothing", Bytes(told))),
        Some((discards, bytes)) => (Verdict::Holds, format!("the drive counted {} discards of {}", count(discards), Bytes(bytes))),
    };
    Evidence { proof: Proof::State, verdict, because }
}

fn ended(mut phase: Phase, done: &Result<()>) -> Phase {
    phase.status = match done {
        Ok(()) => PhaseStatus::Ok,
        Err(Error::Interrupted(_)) => PhaseStatus::Interrupted,
        Err(_) => PhaseStatus::Failed,
    };
    phase.error = done.as_ref().err().filter(|error| !matches!(error, Error::Interrupted(_))).map(ToString::to_string);
    phase
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_counts_no_discard_was_not_trimmed() {
        let counted = |discards| Counters { discards, discard_bytes: discards.map(|n| n * 4096), ..Counters::default() };
        let verdict = |counted| heard(8192, counted).verdict;
        assert_eq!(verdict(Some(counted(Some(2)))), Verdict::Holds);
        assert_eq!(verdict(Some(counted(Some(0)))), Verdict::Fails);
        assert_eq!([verdict(Some(counted(None))), verdict(None)], [Verdict::Unknown, Verdict::Unknown]);
    }

    #[test]
    fn nearly_all_of_the_free_space_is_written() {
        assert_eq!(bytes_to_dirty(1_000_000), 980_000);
        assert_eq!(bytes_to_dirty(0), 0);
    }
}
