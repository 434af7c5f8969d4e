//! One copy, timed: caches prepared, drive idle, window opened, work, flush, window closed, quiet awaited, copy compared, conclusions drawn.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::events::{Event, Observer};
use super::evidence::{Copier, Observed, Origin, conclude};
use super::options::Options;
use super::record;
use super::stage::{Staged, makers};
use crate::cache::evict::{Prepared, prepare};
use crate::cache::flush::{Written, make_durable};
use crate::corpus::Corpus;
use crate::corpus::locate;
use crate::corpus::manifest::Manifest;
use crate::corpus::verify::{Subject, Verification, verify};
use crate::drive::counters::{Completions, wait_until_quiet};
use crate::drive::{CounterReader, Counters, Drive, RunDir};
use crate::engine::{Engine, Trees};
use crate::error::{Context, Error, Result, Side};
use crate::measure::Samples;
use crate::measure::sampler::sampled;
use crate::platform::{Extents, Host, System, Usage, ignore_unsupported};
use crate::progress::{Cancel, Counter};
use crate::result::{self, Evidence, Flag, Flush, Measured, Phase, PhaseKind, PhaseStatus, SourceKind};
use crate::units::{Bytes, count, files};
use crate::workload::copy::{Copied, copy_tree, write_generated};
use crate::workload::samples::FileLog;

/// A device is quiet when it has completed no write for this long.
const QUIET: Duration = Duration::from_secs(1);
/// No longer is waited for it, nor for an idle drive before a window.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Files whose blocks are looked at after a copy.
const SAMPLE: u64 = 64;
/// Files compared at once: enough to keep a drive's queue from running empty.
const VERIFIERS: usize = 4;
/// The counters of what is under a directory: of the nearest devices, and of the physical ones where these are others.
pub struct DriveCounters {
    nearest: Option<CounterReader>,
    physical: Option<CounterReader>,
}

impl DriveCounters {
    /// Opens them.
    #[must_use]
    pub fn open(host: &Host, drive: &Drive) -> Self {
        let nearest = drive.counted();
        let leaves: Vec<_> = drive.leaves().iter().map(|device| device.number).collect();
        let physical = (leaves != nearest).then(|| CounterReader::open(host, &leaves)).flatten();
        Self { nearest: CounterReader::open(host, &nearest), physical }
    }

    /// What they say now, nearest first; a level that can't be read is left out.
    fn read(&self) -> [Option<Counters>; 2] {
        [&self.nearest, &self.physical].map(|reader| reader.as_ref().and_then(|reader| reader.read().ok()))
    }
}

/// A role's drive with its counters and its name in the record.
pub struct Place<'a> {
    /// What it is.
    pub drive: &'a Drive,
    /// Its counters.
    pub counted: &'a DriveCounters,
    /// Its id in the record.
    pub id: &'a str,
}

/// What is copied.
pub enum CopySource<'a> {
    /// A corpus on a drive, or in memory on purpose.
    Staged {
        /// The corpus.
        staged: &'a Staged,
        /// Where it lies; `None` for memory.
        place: Option<&'a Place<'a>>,
    },
    /// A corpus that is made while it is written, and its manifest.
    Generated(&'a Manifest),
}

impl CopySource<'_> {
    fn manifest(&self) -> &Manifest {
        match self {
            Self::Staged { staged, .. } => &staged.manifest,
            Self::Generated(manifest) => manifest,
        }
    }

    pub(super) fn kind(&self) -> SourceKind {
        match self {
            Self::Staged { place: Some(_), .. } => SourceKind::Drive,
            Self::Staged { place: None, .. } => SourceKind::Memory,
            Self::Generated(_) => SourceKind::Generated,
        }
    }
}

/// One copy to be made.
pub struct Job<'a> {
    /// The system.
    pub system: System<'a>,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Whether to stop.
    pub cancel: &'a Cancel,
    /// What the user chose.
    pub options: &'a Options,
    /// What is copied.
    pub from: &'a CopySource<'a>,
    /// The drive that is written to.
    pub target: &'a Place<'a>,
    /// The directory that is written to.
    pub run: &'a RunDir,
    /// The moment since which the record counts, ns of the monotonic clock.
    pub began_ns: u64,
    /// Where a line for each file goes, if anywhere.
    pub log: Option<&'a FileLog>,
    /// What the copy is called: "run 2 of 3".
    pub title: &'a str,
}

/// Makes the copy. What was found out before a failure is in the phase; the failure itself is returned beside it.
pub fn copy(job: &Job<'_>, phase: &mut Phase) -> Result<()> {
    phase.status = PhaseStatus::Failed;
    let done = attempt(job, phase);
    match &done {
        Ok(()) => phase.status = PhaseStatus::Ok,
        Err(Error::Interrupted(_)) => phase.status = PhaseStatus::Interrupted,
        Err(Error::Differ(_)) => {}
        Err(error) => phase.error = Some(error.to_string()),
    }
    done
}

/// A new phase of this name for a copy of a corpus.
#[must_use]
pub fn planned(name: &str, corpus_index: usize) -> Phase {
    Phase { corpus: Some(corpus_index), ..Phase::new(name, PhaseKind::Copy) }
}

/// What was read at one moment.
pub(super) struct Moment {
    pub(super) usage: [Usage; 2],
    pub(super) suspended_ns: u64,
    pub(super) source: [Option<Counters>; 2],
    pub(super) target: [Option<Counters>; 2],
}

impl Job<'_> {
    fn look(&self) -> Moment {
        let source = match self.from {
            CopySource::Staged { place: Some(place), .. } => place.counted.read(),
            _ => [None, None],
        };
        Moment {
            usage: [Usage::of_process(), Usage::of_children()],
            suspended_ns: self.system.clock.boot_ns().saturating_sub(self.system.clock.now_ns()),
            source,
            target: self.target.counted.read(),
        }
    }

    pub(super) fn source_place(&self) -> Option<&Place<'_>> {
        match self.from {
            CopySource::Staged { place, .. } => *place,
            CopySource::Generated(_) => None,
        }
    }

    pub(super) fn same_drive(&self) -> bool {
        self.source_place().is_some_and(|place| place.id == self.target.id)
    }

    fn corpus(&self) -> &Corpus {
        &self.from.manifest().corpus
    }
}

/// What the window held.
pub(super) struct Timed<'a> {
    pub(super) copied: Copied<'a>,
    pub(super) returned_ns: u64,
    pub(super) durable_ns: Option<u64>,
    pub(super) flush: Flush,
    pub(super) before: Moment,
    pub(super) after: Moment,
    pub(super) start_ns: u64,
    pub(super) samples: Samples,
    pub(super) series: Vec<(String, Measured)>,
}

fn attempt(job: &Job<'_>, phase: &mut Phase) -> Result<()> {
    let Job { system, observer, cancel, options, run, .. } = *job;
    let engine = Engine::named(&options.engine)?;
    system.files.sync_filesystem(&run.dir).or_else(ignore_unsupported).during("flush", Side::Target, &run.path)?;
    let cache = match job.from {
        CopySource::Staged { staged, place: Some(_) } => {
            observer.on(Event::Waits(format!("{}: preparing caches", job.title)));
            let prepared = prepare(system, &staged.manifest, &staged.tree, &staged.path, options.cache, cancel)?;
            // The list of files is read again so that its own reading is not timed; the tree is not touched.
            staged.manifest.entries(system.files).try_for_each(|entry| entry.map(drop)).during("read the manifest of", Side::Source, &staged.path)?;
            Some(prepared)
        }
        _ => None,
    };
    settle(job)?;
    cancel.check()?;
    let timed = window(job, &engine)?;
    record::window(job, &engine, &timed, phase);
    if let Some(cache) = &cache {
        phase.cache = Some(record::cache(cache));
    }
    if let Some(failure) = timed.copied.failure {
        // Nothing follows from part of a copy.
        if let Some(work) = &mut phase.work {
            work.files_failed = u64::from(!matches!(failure, Error::Interrupted(_)));
        }
        return Err(failure);
    }
    (phase.window.quiet_ns, phase.window.quiet_reason) = quiet(job, &timed);
    let blocks = look_at_blocks(job);
    let verification = if !options.verify || !engine.moves_bytes() { None } else { Some(compare(job)?) };
    phase.integrity = verification.as_ref().map(record::integrity);
    draw_conclusions(job, &engine, &timed, cache.as_ref(), blocks, verification.as_ref(), phase);
    match verification.filter(|verification| !verification.is_good()) {
        Some(bad) => Err(differ(job, &bad)),
        None => Ok(()),
    }
}

/// Waits until the drives have been idle.
fn settle(job: &Job<'_>) -> Result<()> {
    let time = job.options.settle_time();
    if time.is_zero() {
        return Ok(());
    }
    job.observer.on(Event::Waits(format!("{}: waiting until the drive has been idle for {}", job.title, humantime::format_duration(time))));
    let places = [Some(job.target), job.source_place().filter(|_| !job.same_drive())];
    for place in places.into_iter().flatten() {
        match &place.counted.nearest {
            Some(reader) => {
                if let Err(reason) = wait_until_quiet(reader, job.system.clock, Completions::OfAll, time, time + LONGEST_WAIT, job.cancel) {
                    job.cancel.check()?;
                    job.observer.on(Event::Notice(format!("{} was not idle before the window: {reason}", place.drive.path.display())));
                }
            }
            // Without counters there is nothing to see; a pause is what is left.
            None => pause(job, time)?,
        }
    }
    Ok(())
}

/// Waits, in pieces, so that whoever asks for the end need not wait for it.
fn pause(job: &Job<'_>, time: Duration) -> Result<()> {
    const PIECE: Duration = Duration::from_millis(50);
    let mut left = time;
    while !left.is_zero() {
        job.cancel.check()?;
        job.system.clock.sleep(left.min(PIECE));
        left = left.saturating_sub(PIECE);
    }
    Ok(())
}

fn window<'a>(job: &Job<'a>, engine: &Engine) -> Result<Timed<'a>> {
    let Job { system, observer, cancel, options, run, .. } = *job;
    let counter = Arc::new(Counter::default());
    let corpus = job.corpus();
    let what = format!("{}: copying {}, {}", job.title, files(corpus.file_count()), Bytes(corpus.byte_count()));
    observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: true });
    let places: Vec<&Place<'_>> = [Some(job.target), job.source_place().filter(|_| !job.same_drive())].into_iter().flatten().collect();
    let mut series = vec![("work".to_owned(), Measured::WrittenBytes)];
    for place in &places {
        series.extend([(place.id.to_owned(), Measured::ReadBytes), (place.id.to_owned(), Measured::WrittenBytes)]);
    }
    let mut opened: Option<(u64, Moment)> = None;
    let look = || {
        let mut values = vec![i64::try_from(counter.bytes()).ok()];
        for place in &places {
            let counters = place.counted.read()[0];
            values.push(counters.and_then(|counters| i64::try_from(counters.read_bytes).ok()));
            values.push(counters.and_then(|counters| i64::try_from(counters.written_bytes).ok()));
        }
        values
    };
    let one_file = corpus.files()?.find(|file| file.len > 0).map(|file| file.path);
    let umask = crate::platform::umask();
    let work = || -> Result<(Copied<'a>, u64, Option<u64>, Flush)> {
        let source = match job.from {
            CopySource::Staged { staged, .. } => (&staged.tree, staged.path.as_path()),
            CopySource::Generated(_) => (&run.dir, Path::new("the generator")),
        };
        let trees = Trees {
            files: system.files,
            source: source.0,
            source_path: source.1,
            target: &run.dir,
            target_path: &run.path,
            umask,
            counter: &counter,
            cancel,
            log: job.log,
        };
        let mut open = || {
            let moment = job.look();
            opened = Some((system.clock.now_ns(), moment));
        };
        let mut copied = match job.from {
            CopySource::Staged { staged, .. } => {
                open();
                copy_tree(trees, &staged.manifest, engine, options.threads, options.order, system.clock)
            }
            CopySource::Generated(manifest) => write_generated(trees, &manifest.corpus, makers(), system.clock, &mut open),
        };
        let start = opened.as_ref().map_or_else(|| system.clock.now_ns(), |(start, _)| *start);
        let returned_ns = system.clock.now_ns() - start;
        if copied.failure.is_some() || !engine.moves_bytes() {
            let flush = Flush { method: "none".to_owned(), device_flushes: None, volatile_cache: None, reaches_medium: result::Answer::Unknown };
            return Ok((copied, returned_ns, None, flush));
        }
        let written = Written { files: system.files, dir: &run.dir, path: &run.path, one_file: one_file.as_deref() };
        let mut flushes = || job.target.counted.read()[0].and_then(|counters| counters.flushes);
        let volatile = job.target.drive.volatile_cache();
        let flush_start = system.clock.now_ns();
        let (flush, flushed) = match make_durable(&written, &mut copied.calls, &mut flushes, volatile) {
            Ok(done) => done,
            Err(failure) => {
                copied.failure = Some(failure);
                (Flush { method: "failed".to_owned(), device_flushes: None, volatile_cache: volatile, reaches_medium: result::Answer::No }, false)
            }
        };
        let end = system.clock.now_ns();
        // The other threads have nothing to do meanwhile: the flush is one thread's.
        copied.thread_ns += end - flush_start;
        Ok((copied, returned_ns, flushed.then_some(end - start), flush))
    };
    let (done, samples) = sampled(system.clock, series.len(), look, work);
    let after = job.look();
    observer.on(Event::Ends);
    let (copied, returned_ns, durable_ns, flush) = done?;
    let Some((start_ns, before)) = opened else {
        return Err(copied.failure.unwrap_or_else(|| Error::Internal("the window was never opened".to_owned())));
    };
    Ok(Timed { copied, returned_ns, durable_ns, flush, before, after, start_ns, samples, series })
}

/// When the device stopped writing, or why that is not known.
fn quiet(job: &Job<'_>, timed: &Timed<'_>) -> (Option<u64>, Option<String>) {
    let Some(reader) = &job.target.counted.nearest else {
        return (None, Some("the target has no counters".to_owned()));
    };
    let Some(durable_ns) = timed.durable_ns else {
        return (None, Some("the data were not flushed".to_owned()));
    };
    job.observer.on(Event::Waits(format!("{}: waiting until the drive is quiet", job.title)));
    match wait_until_quiet(reader, job.system.clock, Completions::OfWrites, QUIET, LONGEST_WAIT, job.cancel) {
        // No completion after the flush: it was quiet then.
        Ok(last) => (Some(last.saturating_sub(timed.start_ns).max(durable_ns)), None),
        Err(reason) => (None, Some(reason.to_string())),
    }
}

/// What a sample of the copy's files says about their blocks.
#[derive(Default, Clone, Copy)]
struct Blocks {
    shared_share: Option<f64>,
    encoded_share: Option<f64>,
    stored_share: Option<f64>,
}

fn look_at_blocks(job: &Job<'_>) -> Blocks {
    let files = job.system.files;
    let manifest = job.from.manifest();
    let stride = manifest.corpus.file_count().div_ceil(SAMPLE).max(1);
    let (mut bytes, mut stored) = (0, 0);
    let mut sum = Extents::default();
    let mut has_extents = true;
    for listed in manifest.entries(files).filter_map(std::result::Result::ok).filter(|listed| listed.meta.ordinal % stride == 0) {
        // A file that is missing or can't be looked at is found by the comparison.
        let Ok(file) = files.open(&job.run.dir, Path::new(&listed.meta.path)) else { continue };
        let Ok(stat) = files.stat(&file) else { continue };
        bytes += stat.len;
        stored += stat.stored_bytes;
        match files.extents(&file) {
            Ok(extents) => {
                sum.mapped_bytes += extents.mapped_bytes;
                sum.shared_bytes += extents.shared_bytes;
                sum.encoded_bytes += extents.encoded_bytes;
            }
            Err(_) => has_extents = false,
        }
    }
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    // A file system that counts no blocks (stored 0) tells nothing about compression.
    Blocks {
        shared_share: share(sum.shared_bytes, sum.mapped_bytes).filter(|_| has_extents),
        encoded_share: share(sum.encoded_bytes, sum.mapped_bytes).filter(|_| has_extents),
        stored_share: share(stored, bytes).filter(|&share| share > 0.0),
    }
}

/// Reads the copy again, cold, and compares it.
fn compare(job: &Job<'_>) -> Result<Verification> {
    let Job { system, observer, cancel, run, .. } = *job;
    let manifest = job.from.manifest();
    let subject = Subject { files: system.files, tree: &run.dir, path: &run.path, side: Side::Target };
    let counter = Arc::new(Counter::default());
    let corpus = &manifest.corpus;
    let what = format!("{}: comparing {}, {}", job.title, files(corpus.file_count()), Bytes(corpus.byte_count()));
    observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let verification = verify(subject, manifest, VERIFIERS, &counter, cancel);
    observer.on(Event::Ends);
    verification
}

fn differ(job: &Job<'_>, found: &Verification) -> Error {
    let bad = found.files_checked - found.files_good;
    let first = found.differences.first().map(locate::Difference::sentence).unwrap_or_default();
    Error::Differ(format!("{} of {} of the copy in {} differ: {first}", count(bad), files(found.files_checked), job.run.path.display()))
}

fn draw_conclusions(
    job: &Job<'_>,
    engine: &Engine,
    timed: &Timed<'_>,
    cache: Option<&Prepared>,
    blocks: Blocks,
    verification: Option<&Verification>,
    phase: &mut Phase,
) {
    let Timed { copied, before, after, .. } = timed;
    let levels = |before, after| record::difference(before, after).into_iter().flatten().collect::<Vec<_>>();
    let (source_counted, target_counted) = (levels(before.source, after.source), levels(before.target, after.target));
    let waited = phase.source.and_then(|source| source.wait_ns).unwrap_or(0);
    let calls_ns = copied.calls.total_ns();

    let undropped_below = cache.is_some_and(|cache| cache.metadata != result::Warmth::Cold);
    let (origin, stored, loops) = match job.from {
        CopySource::Staged { staged, place: Some(place) } => {
            (Origin::Drive(place.drive.medium), staged.stored_bytes, place.drive.devices.iter().any(|device| device.direct_io == Some(false)))
        }
        CopySource::Staged { place: None, .. } => (Origin::Memory, None, false),
        CopySource::Generated(_) => (Origin::Generated, None, false),
    };
    let conclusions = conclude(&Observed {
        bytes: copied.bytes,
        files: copied.files,
        copier: match engine {
            Engine::Command(_) => Copier::OtherProgram,
            Engine::Files(..) if engine.moves_bytes() => Copier::Copysim,
            Engine::Files(..) => Copier::Nobody,
        },
        durable_ns: timed.durable_ns,
        origin,
        target: job.target.drive.medium,
        same_drive: job.same_drive(),
        wanted: job.options.cache,
        cache: cache.cloned(),
        source_stored_bytes: stored,
        cache_below: loops && undropped_below,
        source_counted,
        target_counted,
        shared_share: blocks.shared_share,
        copy_stored_share: blocks.stored_share,
        copy_encoded_share: blocks.encoded_share,
        flush: timed.flush.clone(),
        tool_ns: copied.thread_ns.saturating_sub(calls_ns),
        thread_ns: copied.thread_ns,
        generator_ns: waited,
        suspended_ns: after.suspended_ns.saturating_sub(before.suspended_ns),
        data_differ: verification.map(|verification| !verification.is_good()),
    });
    if let (Some(cache), Some(share)) = (&mut phase.cache, conclusions.device_read_share) {
        cache.device_read_share = Some(share);
    }
    let (evidence, flags): (Vec<Evidence>, Vec<Flag>) = (conclusions.evidence, conclusions.flags);
    phase.evidence = evidence;
    phase.flags.extend(flags);
}
