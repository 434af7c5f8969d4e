//! Brings a drive into a state before it is measured: filled to a share, its free space written all over, or told to be free. Each is a phase of the record.

use std::path::Path;
use std::sync::Arc;

use super::events::Event;
use super::fill;
use super::record;
use super::stage::makers;
use super::window::{Levels, Watched, Work, difference};
use crate::cache::flush::Written;
use crate::drive::{Counters, RunDir};
use crate::engine::Trees;
use crate::error::{Context, Error, Result, Side, reason};
use crate::platform::{Handle, System};
use crate::progress::Counter;
use crate::result::{Evidence, Phase, PhaseKind, PhaseStatus, Proof, Verdict, flags};
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
        source_path: Path::new("the generator"),
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
    let counted = timed.target_counted()[0];
    match timed.done.failure {
        Some(failure) => Err(failure),
        None => {
            conclude(taken(bytes, counted), phase);
            Ok(())
        }
    }
}

/// Tells the drive which space of the file system is free, and looks whether it heard.
pub fn trim(watched: &Watched<'_>, dir: &Handle, began_ns: u64) -> (Phase, Result<()>) {
    let mut phase = Phase::new("trim", PhaseKind::Precondition);
    let clock = watched.system.clock;
    watched.observer.on(Event::Waits(format!("{}: telling the drive what is free", watched.title)));
    let start = clock.now_ns();
    phase.start_ns = start.saturating_sub(began_ns);
    let before = watched.target.counted.read();
    let trimmed = tell_what_is_free(watched.system, dir, &watched.target.drive.path);
    phase.window.returned_ns = Some(clock.now_ns() - start);
    if let Ok(bytes) = &trimmed {
        phase.bytes = *bytes;
        let counted = difference(before, watched.target.counted.read());
        if let [Some(counters), ..] = counted {
            phase.device.insert(watched.target.id.to_owned(), record::device(&counters));
        }
        conclude(heard(*bytes, counted[0]), &mut phase);
    }
    let done = trimmed.map(drop);
    (ended(phase, &done), done)
}

/// Tells a drive which space of a file system is free; returns how much the file system gave up.
///
/// # Errors
/// `Refused` where that can't be had here, what the system answered else.
pub fn tell_what_is_free(system: System<'_>, dir: &Handle, path: &Path) -> Result<u64> {
    system.files.trim(dir).or_else(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Err(Error::Refused("--state trimmed: only root may tell a drive what is free".to_owned())),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => Err(Error::Refused(format!(
            "--state trimmed: the file system or the drive under {} can't be told what is free ({})",
            path.display(),
            reason(&error)
        ))),
        _ => Err(error).during("trim", Side::Target, path),
    })
}

/// After all free space was written and what was written was removed: whether the drive was told of the removal, which undoes it.
pub fn stayed_dirty(phase: &mut Phase, before: Levels, after: Levels) {
    let discards = difference(before, after)[0].and_then(|counters| counters.discards.zip(counters.discard_bytes));
    if let Some((1.., bytes)) = discards {
        let because = format!("the file system told the drive of {} that were removed", Bytes(bytes));
        phase.evidence.clear();
        conclude(Evidence { proof: Proof::State, verdict: Verdict::Fails, because }, phase);
    }
}

fn conclude(evidence: Evidence, phase: &mut Phase) {
    if evidence.verdict != Verdict::Holds {
        phase.flags.push(flags::STATE_UNPROVEN.flag(Some(&evidence.because), None));
    }
    phase.evidence.push(evidence);
}

/// Whether the drive took what was written to bring it into a state.
fn taken(bytes: u64, counted: Option<Counters>) -> Evidence {
    let (verdict, because) = match counted.map(|counters| counters.written_bytes) {
        None => (Verdict::Unknown, "there are no counters of a drive to see it by".to_owned()),
        Some(taken) if within(taken, bytes) => (Verdict::Holds, format!("the drive took {} for {}", Bytes(taken), Bytes(bytes))),
        Some(taken) => (Verdict::Fails, format!("the drive took only {} for {}", Bytes(taken), Bytes(bytes))),
    };
    Evidence { proof: Proof::State, verdict, because }
}

/// Whether the drive heard what it was told.
fn heard(told: u64, counted: Option<Counters>) -> Evidence {
    let discarded = counted.and_then(|counters| counters.discards.zip(counters.discard_bytes));
    let (verdict, because) = match discarded {
        _ if told == 0 => (Verdict::Unknown, "the file system had nothing to give up: it had told the drive before, or never does".to_owned()),
        None => (Verdict::Unknown, format!("the file system gave up {}; the drive does not count discards", Bytes(told))),
        Some((discards, bytes)) if within(bytes, told) => {
            (Verdict::Holds, format!("the drive counted {} discards of {}", count(discards), Bytes(bytes)))
        }
        Some((_, bytes)) => (Verdict::Fails, format!("the file system gave up {}, of which the drive has heard {}", Bytes(told), Bytes(bytes))),
    };
    Evidence { proof: Proof::State, verdict, because }
}

/// Whether a part is nearly the whole.
fn within(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * 95
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
    fn a_drive_that_heard_of_little_was_not_trimmed() {
        let counted = |discards: Option<u64>| Counters { discards, discard_bytes: discards.map(|n| n * 4096), ..Counters::default() };
        let verdict = |told, counted| heard(told, counted).verdict;
        assert_eq!(verdict(8192, Some(counted(Some(2)))), Verdict::Holds);
        assert_eq!(verdict(8192, Some(counted(Some(1)))), Verdict::Fails, "somebody else's");
        assert_eq!(verdict(8192, Some(counted(Some(0)))), Verdict::Fails);
        assert_eq!([verdict(8192, Some(counted(None))), verdict(8192, None), verdict(0, Some(counted(Some(1))))], [Verdict::Unknown; 3]);
    }

    #[test]
    fn what_was_written_is_proven_by_what_the_drive_took() {
        let counted = |written_bytes| Some(Counters { written_bytes, ..Counters::default() });
        assert_eq!([counted(95), counted(94), None].map(|counted| taken(100, counted).verdict), [Verdict::Holds, Verdict::Fails, Verdict::Unknown]);
        let mut phase = Phase::new("dirty", PhaseKind::Precondition);
        let told = [Some(Counters { discards: Some(1), discard_bytes: Some(4096), ..Counters::default() }), None];
        let nothing = [Some(Counters { discards: Some(0), discard_bytes: Some(0), ..Counters::default() }), None];
        stayed_dirty(&mut phase, nothing, nothing);
        assert!(phase.evidence.is_empty());
        stayed_dirty(&mut phase, nothing, told);
        assert_eq!((phase.evidence[0].verdict, phase.flags[0].code.as_str()), (Verdict::Fails, "state-unproven"));
    }

    #[test]
    fn nearly_all_of_the_free_space_is_written() {
        assert_eq!(bytes_to_dirty(1_000_000), 980_000);
        assert_eq!(bytes_to_dirty(0), 0);
    }
}
