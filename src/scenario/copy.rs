//! One copy, timed: caches prepared, drive idle, window, quiet awaited, copy compared, conclusions drawn.

use std::path::Path;
use std::sync::Arc;

use super::changed;
use super::course;
use super::events::Event;
use super::evidence::{self, Copier, Observed, conclude};
use super::kept;
use super::layout::Layout;
use super::observed;
use super::options::Options;
use super::record;
use super::stage::{Staged, makers};
use super::traced;
use super::window::{Place, Timed, Watched, Work};
use crate::cache::evict::{Prepared, prepare};
use crate::cache::flush::Written;
use crate::corpus::blame::{self, Hidden, Origin};
use crate::corpus::manifest::Manifest;
use crate::corpus::verify::{Subject, Verification, verify};
use crate::drive::{Drive, RunDir};
use crate::engine::{Engine, Trees};
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::ignore_unsupported;
use crate::progress::Counter;
use crate::result::{self, Flag, Phase, PhaseStatus, Severity, SourceKind, flags};
use crate::units::{Bytes, count, files};
use crate::workload::copy::{copy_tree, write_generated};
use crate::workload::samples::FileLog;

/// Files compared at once: enough to keep a drive's queue from running empty.
const VERIFIERS: usize = 4;

/// What is copied.
pub enum CopySource<'a> {
    /// A corpus on a drive, or in memory on purpose.
    Staged {
        /// The corpus.
        staged: &'a Staged,
        /// Where it lies; `None` for memory.
        place: Option<Place<'a>>,
    },
    /// A corpus that is made while it is written, and its manifest.
    Generated(&'a Manifest),
}

impl CopySource<'_> {
    pub(super) fn manifest(&self) -> &Manifest {
        match self {
            Self::Staged { staged, .. } => &staged.manifest,
            Self::Generated(manifest) => manifest,
        }
    }

    fn staged(&self) -> Option<&Staged> {
        match self {
            Self::Staged { staged, .. } => Some(staged),
            Self::Generated(_) => None,
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
    /// What every window has. The source is in it where it is another drive than the target.
    pub watched: Watched<'a>,
    /// What the user chose.
    pub options: &'a Options,
    /// How it is copied.
    pub engine: &'a Engine,
    /// What is copied.
    pub from: &'a CopySource<'a>,
    /// The directory that is written to.
    pub run: &'a RunDir,
    /// The moment since which the record counts, ns of the monotonic clock.
    pub began_ns: u64,
    /// Where a line for each file goes, if anywhere.
    pub log: Option<&'a FileLog>,
    /// In place of what is read, data are written that the drive has never seen, other ones for each number: a control, which is no copy to compare.
    pub fresh: Option<u64>,
    /// Whether the tree is no copy of anything: it is made for this.
    pub is_new: bool,
    /// What the engine copies from memory to memory, bytes/s, where that was measured.
    pub tool_bytes_per_s: Option<u64>,
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

impl Job<'_> {
    /// Where the data come from, if from a drive.
    fn source_place(&self) -> Option<Place<'_>> {
        match self.from {
            CopySource::Staged { place, .. } => *place,
            CopySource::Generated(_) => None,
        }
    }

    /// What of the files can pass the links: the slower of both, when both are known; half of it where one link carries them twice, in one direction at a time.
    fn link_bytes_per_s(&self) -> Option<u64> {
        let target = self.watched.target.drive.link_bytes_per_s()?;
        let target = if self.same_drive() && self.watched.target.drive.has_half_duplex_link() { target / 2 } else { target };
        self.watched.source.map_or(Some(target), |source| Some(target.min(source.drive.link_bytes_per_s()?)))
    }

    fn same_drive(&self) -> bool {
        self.source_place().is_some_and(|place| place.id == self.watched.target.id || place.shares_counters(&self.watched.target))
    }
}

fn attempt(job: &Job<'_>, phase: &mut Phase) -> Result<()> {
    let Job { watched, options, engine, run, .. } = *job;
    let Watched { system, observer, cancel, title, .. } = watched;
    system.files.sync_filesystem(&run.dir).or_else(ignore_unsupported).during("flush", Side::Target, &run.path)?;
    let cache = match job.from {
        CopySource::Staged { staged, place: Some(_) } => {
            observer.on(Event::Waits(format!("{title}: preparing caches")));
            let prepared = prepare(system, &staged.manifest, &staged.tree, &staged.path, options.cache, cancel)?;
            // The list of files is read again so that its own reading is not timed; the tree is not touched.
            staged.manifest.entries(system.files).try_for_each(|entry| entry.map(drop)).during("read the manifest of", Side::Source, &staged.path)?;
            Some(prepared)
        }
        _ => None,
    };
    let baseline_bytes_per_s = watched.settle(options.settle_time())?;
    cancel.check()?;
    let mut timed = window(job)?;
    record::window(job, &timed, phase);
    traced::record(&watched, &timed, phase);
    course::tell(&timed, watched.target.id, phase);
    watched.observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
    if let Some(cache) = &cache {
        phase.cache = Some(record::cache(cache));
    }
    if let Some(failure) = timed.done.failure.take() {
        // Nothing follows from part of a copy.
        if let Some(work) = &mut phase.work {
            work.files_failed = u64::from(!matches!(failure, Error::Interrupted(_)));
        }
        return Err(failure);
    }
    (phase.window.quiet_ns, phase.window.quiet_reason) = watched.quiet(&timed);
    let layout = Layout::sample(system.files, &run.dir, job.from.manifest());
    phase.layout = Some(record::layouts(job, &layout));
    if engine.moves_bytes() {
        kept::tell(job, timed.done.calls.metadata_lost, phase);
    }
    let mut verification = if !options.verify || !engine.moves_bytes() || job.fresh.is_some() { None } else { Some(compare(job)?) };
    let changed = source_changed(job, verification.as_mut())?;
    phase.integrity = verification.as_ref().map(record::integrity);
    let seen = seen(job, &timed, cache, baseline_bytes_per_s, &layout, verification.as_ref(), phase);
    draw_conclusions(&seen, job, phase);
    if !changed.is_empty() {
        phase.flags.push(flags::SOURCE_CHANGED.flag(None, None));
    }
    match verification.filter(|verification| !verification.is_good()) {
        Some(bad) => Err(differ(job, &bad)),
        None => job.from.staged().map_or(Ok(()), |staged| changed::fail(staged, &changed)),
    }
}

/// The files of the source that somebody changed meanwhile. Such files are no part of the comparison: there is nothing that they should be.
fn source_changed(job: &Job<'_>, verification: Option<&mut Verification>) -> Result<Vec<String>> {
    let Some(staged) = job.from.staged() else { return Ok(Vec::new()) };
    let Watched { system, cancel, .. } = job.watched;
    let changed = match &verification {
        // What the copy holds is right, whatever became of its source.
        Some(found) if found.is_good() => return Ok(Vec::new()),
        Some(found) => changed::changed(system.files, staged, &|path| found.differences.iter().any(|difference| difference.path == path), cancel)?,
        None if job.fresh.is_some() || !job.engine.moves_bytes() => return Ok(Vec::new()),
        None => changed::changed(system.files, staged, &|_| true, cancel)?,
    };
    if let Some(found) = verification {
        found.set_aside(&changed);
    }
    Ok(changed)
}

fn window<'a>(job: &Job<'a>) -> Result<Timed<'a>> {
    let Job { watched, options, engine, run, .. } = *job;
    let Watched { system, cancel, .. } = watched;
    let corpus = &job.from.manifest().corpus;
    let counter = Arc::new(Counter::default());
    let one_file = corpus.files()?.find(|file| file.len > 0).map(|file| file.path);
    let (source, source_path) = match job.from {
        CopySource::Staged { staged, .. } => (&staged.tree, staged.path.as_path()),
        CopySource::Generated(_) => (&run.dir, Path::new("the generator")),
    };
    let trees = Trees {
        files: system.files,
        source,
        source_path,
        target: &run.dir,
        target_path: &run.path,
        umask: crate::platform::umask(),
        counter: &counter,
        cancel,
        fresh: job.fresh,
        log: job.log,
    };
    watched.time(Work {
        what: format!("{} {}, {}", if job.is_new { "writing" } else { "copying" }, files(corpus.file_count()), Bytes(corpus.byte_count())),
        bytes: corpus.byte_count(),
        counter: Arc::clone(&counter),
        run: &mut |open| match job.from {
            CopySource::Staged { staged, .. } => {
                open();
                copy_tree(trees, &staged.manifest, engine, options.threads, options.order, system.clock)
            }
            CopySource::Generated(manifest) => write_generated(trees, &manifest.corpus, makers(), system.clock, open),
        },
        written: engine.moves_bytes().then(|| Written { files: system.files, dir: &run.dir, path: &run.path, one_file: one_file.as_deref() }),
    })
}

/// Reads the copy again, cold, and compares it.
fn compare(job: &Job<'_>) -> Result<Verification> {
    let Watched { system, observer, cancel, title, .. } = job.watched;
    let manifest = job.from.manifest();
    let subject = Subject { files: system.files, tree: &job.run.dir, path: &job.run.path, side: Side::Target };
    let counter = Arc::new(Counter::default());
    let corpus = &manifest.corpus;
    let what = format!("{title}: comparing {}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
    observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let verification = verify(subject, manifest, VERIFIERS, &counter, cancel);
    observer.on(Event::Ends);
    let mut verification = verification?;
    let (origin, source) = match job.from {
        CopySource::Staged { staged, place: Some(place) } => (Origin::Drive(&staged.tree), Some(place.drive)),
        CopySource::Staged { staged, place: None } => (Origin::Memory(&staged.tree), None),
        CopySource::Generated(_) => (Origin::Made, None),
    };
    let hidden = Hidden { target: job.watched.target.drive.answers_elsewhere(), source: source.and_then(Drive::answers_elsewhere) };
    // Those that the record tells of.
    let told = verification.differences.len().min(record::MISMATCHES);
    blame::attribute(system.files, origin, hidden, &mut verification.differences[..told], cancel)?;
    Ok(verification)
}

fn differ(job: &Job<'_>, found: &Verification) -> Error {
    let bad = found.files_checked - found.files_good;
    let first = found.differences.first().map(|first| format!("{}; {}", first.sentence(), record::mismatch(first).judgement())).unwrap_or_default();
    Error::Differ(format!("{} of {} of the copy in {} differ: {first}", count(bad), files(found.files_checked), path_text(&job.run.path)))
}

/// What was seen of the copy.
fn seen(
    job: &Job<'_>,
    timed: &Timed<'_>,
    cache: Option<Prepared>,
    baseline_bytes_per_s: Option<u64>,
    layout: &Layout,
    verification: Option<&Verification>,
    phase: &Phase,
) -> Observed {
    let levels = |levels: super::window::Levels| levels.into_iter().flatten().collect::<Vec<_>>();
    let target_counted = levels(timed.target_counted());
    let source_counted = if job.same_drive() { target_counted.clone() } else { levels(timed.source_counted()) };
    let undropped_below = cache.as_ref().is_some_and(|cache| cache.metadata != result::Warmth::Cold);
    let (origin, source) = match job.from {
        CopySource::Staged { staged, place: Some(place) } => (evidence::Origin::Drive(place.drive.medium), Some((staged, place.drive))),
        CopySource::Staged { place: None, .. } => (evidence::Origin::Memory, None),
        CopySource::Generated(_) => (evidence::Origin::Generated, None),
    };
    let loops = source.is_some_and(|(_, drive)| drive.has_cached_loop());
    let is_own = !matches!(job.engine, Engine::Command(_));
    let reads_through_a_program = job.source_place().is_some_and(|place| place.drive.is_fuse());
    let seen = observed::of_window(&job.watched, timed);
    Observed {
        copier: match job.engine {
            Engine::Command(_) => Copier::OtherProgram,
            Engine::Files(..) if job.engine.moves_bytes() => Copier::Copysim,
            Engine::Files(..) => Copier::Nobody,
        },
        origin,
        same_drive: job.same_drive(),
        wanted: job.options.cache,
        cache,
        source_stored_bytes: source.and_then(|(staged, _)| staged.stored_bytes),
        cache_below: loops && undropped_below,
        cache_elsewhere: source.and_then(|(_, drive)| drive.cache_elsewhere()),
        source_counted,
        target_counted,
        shared_share: layout.shared_share(),
        copy_stored_share: layout.stored_share(),
        copy_encoded_share: layout.encoded_share(),
        tool_ns: if is_own { seen.tool_ns } else { timed.cpu().user_ns },
        read_ns: is_own.then(|| timed.done.calls.group_ns(result::Call::Read)),
        tool_bytes_per_s: job.tool_bytes_per_s,
        link_bytes_per_s: job.link_bytes_per_s(),
        target_busy_ns: phase.device.get(job.watched.target.id).and_then(|device| device.inflight_union_ns),
        own_io: seen.own_io.filter(|_| !reads_through_a_program),
        baseline_bytes_per_s,
        source_layout: source.map(|(staged, _)| staged.layout),
        data_differ: verification.map(|verification| !verification.is_good()),
        ..seen
    }
}

fn draw_conclusions(seen: &Observed, job: &Job<'_>, phase: &mut Phase) {
    let conclusions = conclude(seen);
    if let (Some(cache), Some(share)) = (&mut phase.cache, conclusions.device_read_share) {
        cache.device_read_share = Some(share);
    }
    if let Some(foreign) = conclusions.foreign {
        // What was read in excess was read from the source, what was written in excess was written to the target.
        let (read, written) = if job.watched.source.is_some() { (foreign.read_bytes, foreign.written_bytes) } else { (0, foreign.sum()) };
        let places = [job.watched.source.map(|source| (source.id, read)), Some((job.watched.target.id, written))];
        for (id, bytes) in places.into_iter().flatten() {
            if let Some(device) = phase.device.get_mut(id) {
                device.foreign_bytes = Some(bytes);
            }
        }
    }
    phase.evidence = conclusions.evidence;
    // A control is no result: what takes a little from one matters only where it takes all.
    let kept = |flag: &Flag| job.fresh.is_none() || flag.severity == Severity::Invalid;
    phase.flags.extend(conclusions.flags.into_iter().filter(kept));
}
