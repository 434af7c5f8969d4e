//! One start of a program, timed: caches prepared, drive idle, the play, what it wrote and what it read compared, conclusions drawn.

use std::path::Path;
use std::sync::Arc;

use super::background::{Background, Copied as Meanwhile};
use super::course;
use super::events::Event;
use super::evidence::{self, Observed, conclude_start};
use super::observed;
use super::options::Options;
use super::plan::PlannedLaunch;
use super::record;
use super::spec::Start;
use super::stage::Staged;
use super::traced;
use super::window::{Timed, Watched, Work};
use crate::cache::evict::{Prepared, Wanted, prepare};
use crate::corpus::content::{self, ContentKind, ContentSpec, FileBytes};
use crate::corpus::verify::{Subject, verify};
use crate::drive::{Counters, RunDir};
use crate::error::{Context, Error, Result, Side};
use crate::measure::Histogram;
use crate::path_text::path_text;
use crate::platform::{Handle, MemoryGroup, ignore_unsupported, remove_memory_groups};
use crate::progress::Counter;
use crate::result::{self, Cache, LatencyOp, Launch, LaunchWaits, Phase, PhaseStatus, Warmth};
use crate::units::{Bytes, count, files};
use crate::workload::launch::{Place, Play, play, shape};

/// A person feels waits longer than these, ms: docs/feel.md has the source.
const LIMITS_MS: [u64; 3] = [100, 1_000, 10_000];
/// Files compared at once.
const VERIFIERS: usize = 4;

/// One start to be played.
pub struct Job<'a> {
    /// What every window has.
    pub watched: Watched<'a>,
    /// What the user chose.
    pub options: &'a Options,
    /// What is played.
    pub launch: &'a PlannedLaunch,
    /// The tree of the program.
    pub staged: &'a Staged,
    /// What is copied meanwhile, and the directory that it is copied to.
    pub during: Option<(&'a Staged, &'a RunDir)>,
    /// The directory that the program writes to.
    pub run: &'a RunDir,
    /// Whether the tree is compared afterwards.
    pub verify: bool,
    /// The moment since which the record counts, ns of the monotonic clock.
    pub began_ns: u64,
}

/// Plays the start. What was found out before a failure is in the phase; the failure itself is returned beside it.
pub fn launch(job: &Job<'_>, phase: &mut Phase) -> Result<()> {
    phase.status = PhaseStatus::Failed;
    let done = attempt(job, phase);
    match &done {
        Ok(()) if phase.status == PhaseStatus::Unsupported => {}
        Ok(()) => phase.status = PhaseStatus::Ok,
        Err(Error::Interrupted(_)) => phase.status = PhaseStatus::Interrupted,
        Err(Error::Differ(_)) => {}
        Err(error) => phase.error = Some(error.to_string()),
    }
    done
}

/// Less memory than this is not for a program: the kernel would end it.
const LEAST_MEMORY: u64 = 16 << 20;

/// How much memory the start has for what it reads.
fn launch_memory(job: &Job<'_>) -> Option<u64> {
    job.launch.memory_percent.map(|percent| shape(&job.launch.play).read_bytes / 100 * u64::from(percent))
}

/// Takes memory away, with caches dropped so that what is read is counted; or why that can't be had here.
fn short_of_memory(job: &Job<'_>, percent: u8) -> Result<std::result::Result<MemoryGroup, String>> {
    let Watched { system, host, observer, cancel, title, .. } = job.watched;
    let bytes = shape(&job.launch.play).read_bytes / 100 * u64::from(percent);
    if bytes < LEAST_MEMORY {
        return Ok(Err(format!("{percent} % of what is read is only {}: a larger --scale is needed", Bytes(bytes))));
    }
    prepare(system, &job.staged.manifest, &job.staged.tree, &job.staged.path, Wanted::Cold, cancel)?;
    remove_memory_groups(host);
    match MemoryGroup::enter(host, bytes) {
        Ok(group) => Ok(Ok(group)),
        Err(error) => {
            let why = format!("memory can't be limited here: {}", crate::error::reason(&error));
            observer.on(Event::Notice(format!("{title}: {why}")));
            Ok(Err(why))
        }
    }
}

fn attempt(job: &Job<'_>, phase: &mut Phase) -> Result<()> {
    let Job { watched, options, launch, staged, .. } = *job;
    let Watched { system, observer, cancel, title, .. } = watched;
    let data = data_to_write(&launch.play, job.began_ns);
    system.files.sync_filesystem(&job.run.dir).or_else(ignore_unsupported).during("flush", Side::Target, &job.run.path)?;
    observer.on(Event::Waits(format!("{title}: preparing caches")));
    let prepared = match launch.start {
        Start::Cold => Some(prepare(system, &staged.manifest, &staged.tree, &staged.path, options.cache, cancel)?),
        Start::Second => None,
    };
    let group = match launch.memory_percent.map(|percent| short_of_memory(job, percent)).transpose()? {
        Some(Err(why)) => {
            phase.error = Some(why);
            phase.status = PhaseStatus::Unsupported;
            return Ok(());
        }
        Some(Ok(group)) => Some(group),
        None => None,
    };
    if launch.start == Start::Second {
        let counter = Counter::default();
        let before = Written::into(job, "before", &data, &counter)?;
        if let Some(failure) = play(&launch.play, before.place(), system.clock).failure {
            return Err(failure);
        }
    }
    let refaults_before = group.as_ref().and_then(MemoryGroup::refaulted_pages);
    let baseline_bytes_per_s = watched.settle(options.settle_time())?;
    cancel.check()?;
    let counter = Arc::new(Counter::default());
    let written = Written::into(job, "start", &data, &counter)?;
    let (mut timed, meanwhile) = match job.during {
        None => (window(job, &written, &counter)?, None),
        Some((staged, run)) => {
            let background = Background { system, staged, run };
            let (timed, copied) = background
                .during(cancel, |copied| {
                    let before = copied.bytes();
                    let timed = window(job, &written, &counter);
                    (timed, Meanwhile { bytes: copied.bytes() - before })
                })
                .map(|((timed, within), _)| (timed, within))?;
            (timed?, Some(copied))
        }
    };
    tell(job, &timed, prepared.as_ref(), meanwhile, phase);
    if let (Some(group), Some(launch)) = (group, &mut phase.launch) {
        launch.refaulted_pages = group.refaulted_pages().zip(refaults_before).map(|(after, before)| after.saturating_sub(before));
        launch.memory_bytes = launch_memory(job);
        group.leave().during("leave", Side::Host, "the control group with little memory")?;
    }
    observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
    if let Some(failure) = timed.done.failure.take() {
        if let Some(work) = &mut phase.work {
            work.files_failed = u64::from(!matches!(failure, Error::Interrupted(_)));
        }
        return Err(failure);
    }
    if options.verify {
        written.compare()?;
    }
    let checked = if job.verify { Some(compare(job)?) } else { None };
    phase.integrity = checked.as_ref().map(record::integrity);
    if let Some(prepared) = prepared {
        let seen = seen(job, &timed, prepared, baseline_bytes_per_s, meanwhile, checked.as_ref().map(|found| !found.is_good()));
        let conclusions = conclude_start(&seen);
        if let (Some(cache), Some(share)) = (&mut phase.cache, conclusions.device_read_share) {
            cache.device_read_share = Some(share);
        }
        if let (Some(foreign), Some(device)) = (conclusions.foreign, phase.device.get_mut(watched.target.id)) {
            device.foreign_bytes = Some(foreign.sum());
        }
        phase.evidence = conclusions.evidence;
        phase.flags.extend(conclusions.flags);
    }
    match checked.filter(|found| !found.is_good()) {
        Some(bad) => {
            let wrong = bad.files_checked - bad.files_good;
            let first = bad.differences.first().map(crate::corpus::locate::Difference::sentence).unwrap_or_default();
            Err(Error::Differ(format!("{} of {} of {} differ: {first}", count(wrong), files(bad.files_checked), path_text(&staged.path))))
        }
        None => Ok(()),
    }
}

fn window<'a>(job: &Job<'a>, written: &Written<'_>, counter: &Arc<Counter>) -> Result<Timed<'a>> {
    let Job { watched, launch, .. } = *job;
    let asked = shape(&launch.play);
    let bytes = asked.read_bytes + asked.written_bytes;
    watched.time(Work {
        what: format!("starting {}, {} reads, {}", job.staged.manifest.corpus.spec.name, count(asked.reads), Bytes(bytes)),
        bytes,
        counter: Arc::clone(counter),
        run: &mut |open| {
            open();
            play(&launch.play, written.place(), watched.system.clock)
        },
        written: None,
    })
}

/// Reads the tree again and compares it with its manifest.
fn compare(job: &Job<'_>) -> Result<crate::corpus::verify::Verification> {
    let Watched { system, observer, cancel, title, .. } = job.watched;
    let staged = job.staged;
    let corpus = &staged.manifest.corpus;
    let subject = Subject { files: system.files, tree: &staged.tree, path: &staged.path, side: Side::Source };
    let counter = Arc::new(Counter::default());
    let what = format!("{title}: comparing {}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
    observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: Arc::clone(&counter), timed: false });
    let found = verify(subject, &staged.manifest, VERIFIERS, &counter, cancel);
    observer.on(Event::Ends);
    found
}

/// Bytes that no start has written before: all that this one writes.
fn data_to_write(play: &Play, number: u64) -> Vec<u8> {
    let bytes: u64 = play.written().iter().map(|(_, len)| len).sum();
    let mut data = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    let key = *blake3::hash(&number.to_le_bytes()).as_bytes();
    if let Ok(content) = content::content(&ContentSpec::of(ContentKind::Random)) {
        content.fill(&FileBytes { key: &key, ordinal: 0, path: "", len: bytes, mtime: 0 }, 0, &mut data);
    }
    data
}

/// A directory that a start writes to, and what it shall hold afterwards.
struct Written<'a> {
    job: &'a Job<'a>,
    dir: Handle,
    path: std::path::PathBuf,
    data: &'a [u8],
    counter: &'a Counter,
}

impl<'a> Written<'a> {
    /// A new directory of this name.
    fn into(job: &'a Job<'a>, name: &str, data: &'a [u8], counter: &'a Counter) -> Result<Self> {
        let files = job.watched.system.files;
        let path = job.run.path.join(name);
        files.make_dir(&job.run.dir, Path::new(name), 0o755).during("make directory", Side::Target, &path)?;
        let dir = files.open_dir(&job.run.dir, Path::new(name)).during("open", Side::Target, &path)?;
        Ok(Self { job, dir, path, data, counter })
    }

    fn place(&self) -> Place<'_> {
        let Watched { system, cancel, .. } = self.job.watched;
        let staged = self.job.staged;
        Place {
            files: system.files,
            tree: &staged.tree,
            tree_path: &staged.path,
            run: &self.dir,
            run_path: &self.path,
            data: self.data,
            counter: self.counter,
            cancel,
        }
    }

    /// Reads what was written from the drive again and compares it.
    fn compare(&self) -> Result<()> {
        let Watched { system, cancel, .. } = self.job.watched;
        let system_files = system.files;
        system_files.sync_filesystem(&self.dir).or_else(ignore_unsupported).during("flush", Side::Target, &self.path)?;
        let mut begins = 0;
        for (name, len) in self.job.launch.play.written() {
            cancel.check()?;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let path = self.path.join(name);
            let file = system_files.open(&self.dir, Path::new(name)).during("open", Side::Target, &path)?;
            // Where that is refused it is compared as it is.
            let _ = system_files.evict(&file);
            let mut found = vec![0; len + 1];
            let mut at = 0;
            while at < found.len() {
                match system_files.read_at(&file, &mut found[at..], at as u64).during_at(at as u64, "read", Side::Target, &path)? {
                    0 => break,
                    read => at += read,
                }
            }
            if at != len || self.data.get(begins..begins + len) != found.get(..len) {
                return Err(Error::Differ(format!("{} is not what the program wrote", path_text(&path))));
            }
            begins += len;
        }
        Ok(())
    }
}

/// The record of what was seen.
fn tell(job: &Job<'_>, timed: &Timed<'_>, prepared: Option<&Prepared>, meanwhile: Option<Meanwhile>, phase: &mut Phase) {
    let Job { watched, launch, staged, .. } = *job;
    record::times(&watched, timed, job.began_ns, phase);
    traced::record(&watched, timed, phase);
    course::tell(timed, watched.target.id, phase);
    let calls = &timed.done.calls;
    phase.work = Some(record::work(calls));
    let at_once = launch.play.steps.iter().map(|step| step.at_once).max().unwrap_or(1);
    phase.engine = Some(result::Engine {
        name: "player".to_owned(),
        mechanism: "pread, page faults, write; without reading ahead".to_owned(),
        threads: Some(at_once),
        ..result::Engine::default()
    });
    phase.cache = Some(prepared.map_or_else(
        || Cache {
            method: "started once before".to_owned(),
            data: Warmth::Warm,
            metadata: Warmth::Warm,
            resident_before_bytes: None,
            device_read_share: None,
        },
        record::cache,
    ));
    let usage = timed.cpu();
    let is_done = timed.done.failure.is_none();
    phase.launch = Some(Launch {
        program: Some(staged.manifest.corpus.spec.name.clone()),
        sign: Some(format!("its {} steps are done", launch.play.steps.len())),
        background: meanwhile.zip(job.during).map(|(copied, (staged, _))| {
            format!("a copy of {} on the same drive, {} of it until the program was ready", staged.manifest.corpus.id(), Bytes(copied.bytes))
        }),
        ready_ns: is_done.then_some(timed.returned_ns),
        waits: waits(calls.latencies(), timed.done.thread_ns),
        user_ns: Some(usage.user_ns),
        system_ns: Some(usage.system_ns),
        shape: Some(shape(&launch.play)),
        ..Launch::default()
    });
}

/// Which operations took longer than a person bears, and the share of all time that they took.
fn waits(latencies: &[(LatencyOp, Histogram)], whole_ns: u64) -> Vec<LaunchWaits> {
    let of_limit = |over_ms: u64| {
        let above = latencies.iter().map(|(_, histogram)| histogram.above(over_ms * 1_000_000));
        let (n, ns) = above.fold((0, 0), |(n, ns), (more, longer)| (n + more, ns + longer));
        LaunchWaits { over_ms, n, share: Some((ns as f64 / whole_ns.max(1) as f64).min(1.0)) }
    };
    LIMITS_MS.map(of_limit).into()
}

/// What was seen of the start.
fn seen(
    job: &Job<'_>,
    timed: &Timed<'_>,
    prepared: Prepared,
    baseline_bytes_per_s: Option<u64>,
    meanwhile: Option<Meanwhile>,
    data_differ: Option<bool>,
) -> Observed {
    let (watched, staged) = (job.watched, job.staged);
    let drive = watched.target.drive;
    let corpus = &staged.manifest.corpus;
    let read_bytes = shape(&job.launch.play).read_bytes;
    // A copy beside it reads, too: then what the kernel booked to the player's own threads stands for what the drive served them.
    let counted: Vec<Counters> = match meanwhile {
        None => timed.target_counted().into_iter().flatten().collect(),
        Some(_) => timed.done.storage_read_bytes.map(|read_bytes| Counters { read_bytes, ..Counters::default() }).into_iter().collect(),
    };
    let part = |stored: u64| u64::try_from(u128::from(read_bytes) * u128::from(stored) / u128::from(corpus.byte_count().max(1))).unwrap_or(u64::MAX);
    let seen = observed::of_window(&watched, timed);
    Observed {
        bytes: read_bytes,
        durable_ns: None,
        origin: evidence::Origin::Drive(drive.medium),
        // One drive counts once.
        same_drive: true,
        wanted: if job.launch.start == Start::Cold { job.options.cache } else { Wanted::Warm },
        cache_below: drive.has_cached_loop() && prepared.metadata != Warmth::Cold,
        cache: Some(prepared),
        source_stored_bytes: staged.stored_bytes.map(part),
        source_counted: counted.clone(),
        target_counted: counted,
        own_io: seen.own_io.filter(|_| meanwhile.is_none()),
        baseline_bytes_per_s,
        source_layout: Some(staged.layout),
        thread_ns: timed.returned_ns,
        data_differ,
        ..seen
    }
}
