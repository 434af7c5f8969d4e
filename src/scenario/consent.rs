//! Whether a person should be asked before so much is written for so long.

use std::path::Path;
use std::time::Duration;

use super::events::{Event, Observer};
use super::plan::{Plan, PlannedPhase};
use super::stage::Note;
use crate::corpus::content::{self, ContentKind, ContentSpec, FileBytes};
use crate::drive::space::largest_scale_below;
use crate::drive::{Removal, RunDir, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{System, Writer, ignore_unsupported};
use crate::progress::Cancel;
use crate::units::{Bytes, Scale, duration};

/// Longer than this is asked for.
const LONG: Duration = Duration::from_secs(15 * 60);
/// More of the drive than this is asked for.
const LARGE_PERCENT: u64 = 10;
/// How much is written to see how fast a target is to which no corpus is staged.
const PROBE_BYTES: u64 = 256_000_000;
/// A target is not tried for longer than this.
const PROBE_TIME: Duration = Duration::from_secs(20);

/// How long all of a plan takes at the rate of a note, ns: staging, and for every run copying, flushing, comparing and settling.
#[must_use]
pub fn estimate_ns(plan: &Plan, rate: Note, staging_bytes: u64) -> u64 {
    let at_rate = |bytes: u64| u64::try_from(u128::from(bytes) * u128::from(rate.durable_ns) / u128::from(rate.bytes.max(1))).unwrap_or(u64::MAX);
    let timed: u64 = plan.phases.iter().map(PlannedPhase::bytes).sum();
    // A drive that is copied to itself reads as much as it writes; comparing reads it once more.
    let passes = if plan.stages_on_target() { 2 } else { 1 } + u64::from(plan.options.verify);
    let settling = u64::try_from(plan.options.settle_time().as_nanos()).unwrap_or(u64::MAX).saturating_add(1_000_000_000);
    let repeated = u64::from(plan.runs) + u64::from(plan.options.control);
    let preparing = at_rate(staging_bytes.saturating_add(plan.bytes_to_prepare(staging_bytes)));
    let once = passes.saturating_mul(at_rate(timed)).saturating_add(settling.saturating_mul(plan.phases.len() as u64));
    preparing.saturating_add(repeated.saturating_mul(once))
}

/// Whether so long a time, or so much of a file system of `total_bytes`, needs a question.
#[must_use]
pub fn is_much(time_ns: u64, space_bytes: u64, total_bytes: Option<u64>) -> bool {
    u128::from(time_ns) > LONG.as_nanos()
        || total_bytes.is_some_and(|total| u128::from(space_bytes) * 100 > u128::from(total) * u128::from(LARGE_PERCENT))
}

/// How many times longer a plan takes, or fills the drive by more, than what needs no question. `total_bytes` is the size of the target's file system.
fn excess(plan: &Plan, rate: Note, staging_bytes: u64, total_bytes: Option<u64>) -> f64 {
    let long = estimate_ns(plan, rate, staging_bytes) as f64 / LONG.as_nanos() as f64;
    let space = plan.target_need(&[]).space_bytes().saturating_add(plan.bytes_to_prepare(staging_bytes)) as f64 * 100.0 / LARGE_PERCENT as f64;
    long.max(total_bytes.filter(|&total| total > 0).map_or(0.0, |total| space / total as f64))
}

/// Tells the estimate, and asks where it is long or the drive is filled by much. `total_bytes` is the size of the target's file system.
///
/// # Errors
/// `Refused` when nobody says yes, with the largest scale that needs no question.
pub fn ask(plan: &Plan, rate: Note, staging_bytes: u64, total_bytes: Option<u64>, observer: &dyn Observer, cancel: &Cancel) -> Result<()> {
    let time = estimate_ns(plan, rate, staging_bytes);
    observer.on(Event::Notice(format!("this takes about {} (the drive took {})", duration(time), crate::units::rate(rate.bytes, rate.durable_ns))));
    if let Some(limit) = plan.options.max_time.filter(|limit| u128::from(time) > limit.as_nanos()) {
        observer.on(Event::Notice(format!("no run begins later than --max-time {}", humantime::format_duration(limit))));
    }
    if plan.options.yes || excess(plan, rate, staging_bytes, total_bytes) <= 1.0 {
        return Ok(());
    }
    let what = format!(
        "{} takes about {} and up to {} of the drive's space ({} written in all)",
        plan.scenario.name,
        duration(time),
        Bytes(plan.target_need(&[]).space_bytes()),
        Bytes(plan.bytes_to_write())
    );
    match observer.ask(&format!("{what}. Go on?")) {
        Some(true) => Ok(()),
        Some(false) => {
            cancel.check()?;
            Err(Error::Refused("not started: the answer was no".to_owned()))
        }
        None => {
            let passes = |scale: Scale| {
                let staging = u128::from(staging_bytes) * u128::from(scale.hundredths()) / u128::from(plan.options.scale.hundredths());
                plan.at(scale).is_ok_and(|plan| excess(&plan, rate, staging as u64, total_bytes) <= 1.0)
            };
            let less = largest_scale_below(plan.options.scale, passes).map_or(String::new(), |scale| format!(", or --scale {scale}% for less"));
            Err(Error::Refused(format!("{what}: say --yes to do that{less}")))
        }
    }
}

/// Whether the target's speed is not known from staging: nothing is staged on it.
#[must_use]
pub fn needs_probe(plan: &Plan) -> bool {
    !plan.stages_on_target()
}

/// Writes up to 256 MB to the target, flushed, for at most about 20 s, and removes it: how fast it is.
///
/// # Errors
/// What the system answered, or `Interrupted`.
pub fn probe(system: System<'_>, workspace: &Workspace<'_>, plan: &Plan, cancel: &Cancel) -> Result<Note> {
    let run = workspace.new_run()?;
    let wanted: u64 = plan.phases.iter().map(|phase| phase.corpus.byte_count()).sum();
    let written = write_probe(system, &run, wanted, cancel);
    let removed = workspace.remove(run).and_then(Removal::complete);
    written.and_then(|note| removed.map(|()| note))
}

/// Writes up to 256 MB, at most `wanted`, into a run's directory, flushed, for at most about 20 s.
///
/// # Errors
/// What the system answered, or `Interrupted`.
pub fn write_probe(system: System<'_>, run: &RunDir, wanted: u64, cancel: &Cancel) -> Result<Note> {
    const PIECE: u64 = 16_000_000;
    const NAME: &str = "probe";
    let random = ContentSpec::of(ContentKind::Random);
    let content = content::content(&random).map_err(Error::Internal)?;
    // Data that no other probe has written: a drive that knows its own data would take them in no time.
    let seed = system.clock.wall().as_nanosecond().to_le_bytes();
    let key = *blake3::hash(&seed).as_bytes();
    let wanted = wanted.min(PROBE_BYTES);
    let path = run.path.join(NAME);
    let file = system.files.create(&run.dir, Path::new(NAME), 0o644).during("create", Side::Target, &path)?;
    let start = system.clock.now_ns();
    let mut data = vec![0; usize::try_from(wanted.min(PIECE)).unwrap_or(0)];
    let mut written = 0;
    while written < wanted && u128::from(system.clock.now_ns() - start) < PROBE_TIME.as_nanos() {
        cancel.check()?;
        let size = usize::try_from(wanted - written).map_or(data.len(), |left| left.min(data.len()));
        content.fill(&FileBytes { key: &key, ordinal: 0, path: NAME, len: wanted, mtime: 0 }, written, &mut data[..size]);
        std::io::Write::write_all(&mut Writer { files: system.files, file: &file }, &data[..size]).during("write to", Side::Target, &path)?;
        system.files.sync(&file).or_else(ignore_unsupported).during("flush", Side::Target, &path)?;
        written += size as u64;
    }
    system.files.close(file).during("close", Side::Target, &path)?;
    Ok(Note { at_s: system.clock.wall().as_second(), bytes: written, durable_ns: system.clock.now_ns() - start })
}
