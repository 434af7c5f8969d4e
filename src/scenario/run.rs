//! Carries a plan out: workspaces, corpora, runs, record. Whatever ends it, what was done is kept and what was written is removed.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::consent;
use super::copy::{self, CopySource, Job};
use super::events::{Event, Observer};
use super::evidence::compare_runs;
use super::facts;
use super::memory;
use super::options::Recorded;

use super::plan::{Plan, Source};
use super::spec::Role;
use super::stage::{Note, Staged, makers, remove_unfinished, stage};
use super::window::{DriveCounters, Place, Watched};
use crate::cache::evict::Wanted;
use crate::corpus::identity::make_manifest;
use crate::corpus::manifest::Manifest;
use crate::drive::space::Room;
use crate::drive::{Drive, DriveLock, Medium, RunDir, Workspace};
use crate::engine::Engine;
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, System, ignore_unsupported};
use crate::progress::{Cancel, Counter};
use crate::result::mask::clean_command;
use crate::result::{self, Aftermath, Answer, Document, Kept, Roles, Severity, Status, summary};
use crate::units::{Bytes, files};
use crate::workload::copy::Order;
use crate::workload::samples::FileLog;

/// What a run needs besides its plan.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The system.
    pub system: System<'a>,
    /// Facts about the machine.
    pub host: &'a Host,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Whether to stop.
    pub cancel: &'a Cancel,
    /// Keeps the record as it is now: called after every run and at the end.
    pub save: &'a dyn Fn(&Document) -> Result<()>,
}

/// Carries out the plan. The record is complete as far as things went, whatever the outcome.
pub fn run(plan: &Plan, around: Around<'_>, copysim: result::Copysim) -> (Document, Result<()>) {
    let clock = around.system.clock;
    let began_ns = clock.now_ns();
    let started_at = clock.wall();
    let id = blake3::hash(format!("{started_at} {} {began_ns}", std::process::id()).as_bytes()).to_hex()[..12].to_owned();
    let mut document = Document::begin(id, started_at, copysim);
    document.label.clone_from(&plan.options.label);
    document.hosts.push(facts::host(around.host, "h0", plan.options.identify));
    describe(plan, around, &mut document);
    let mut outcome = Bench::carry_out(plan, around, &mut document, began_ns);
    let durable: Vec<u64> = document.runs.iter().flat_map(|run| &run.phases).filter_map(|phase| phase.window.durable_ns).collect();
    if plan.copies.len() == 1 {
        document.flags.extend(compare_runs(&durable));
    }
    document.summary = summary::summarise(&document);
    conclude(&mut document, &outcome, plan.runs, plan.options.strict);
    if !was_begun(&document, &outcome) {
        return (document, outcome);
    }
    if let Err(failure) = (around.save)(&document) {
        // A lost record is a failure of its own, unless there was one already.
        if outcome.is_ok() {
            outcome = Err(failure);
            conclude(&mut document, &outcome, plan.runs, plan.options.strict);
        }
    }
    (document, outcome)
}

/// Whether there is anything to keep: what was refused before a run leaves no record.
#[must_use]
pub fn was_begun(document: &Document, outcome: &Result<()>) -> bool {
    !document.runs.is_empty() || !matches!(outcome, Err(Error::Refused(_)))
}

/// Whether a flag says that a figure is no measure of the drive.
fn has_invalid(document: &Document) -> bool {
    let of_phases = document.runs.iter().flat_map(|run| &run.phases).flat_map(|phase| &phase.flags);
    of_phases.chain(&document.flags).any(|flag| flag.severity == Severity::Invalid)
}

fn conclude(document: &mut Document, outcome: &Result<()>, planned: u32, strict: bool) {
    (document.status, document.exit_code, document.error) = match outcome {
        Ok(()) if document.runs.len() < planned as usize => (Status::Interrupted, Some(0), Some("--max-time was over".to_owned())),
        Ok(()) => (Status::Complete, Some(if strict && has_invalid(document) { 3 } else { 0 }), None),
        Err(error @ Error::Interrupted(_)) => (Status::Interrupted, Some(error.exit_code()), Some(error.to_string())),
        Err(error) => (Status::Failed, Some(error.exit_code()), Some(error.to_string())),
    };
}

fn describe(plan: &Plan, around: Around<'_>, document: &mut Document) {
    document.drives = facts::drives(around.system, &plan.target_drive, "d0", "h0");
    let source = match &plan.source {
        Source::Target => Some("d0"),
        Source::Directory(_, drive) => {
            document.drives.extend(facts::drives(around.system, drive, "d1", "h0"));
            Some("d1")
        }
        Source::Memory(path) => {
            let mut drive = result::Drive::unknown("d1", "h0");
            (drive.path, drive.kind) = (Some(path.display().to_string()), result::DriveKind::Memory);
            document.drives.push(drive);
            Some("d1")
        }
        Source::Generated => None,
    };
    let options = Recorded {
        engine: &plan.options.engine,
        threads: plan.options.threads,
        order: if plan.options.order == Order::Manifest { "manifest" } else { "readdir" },
        cache: match plan.options.cache {
            Wanted::Cold => "cold",
            Wanted::Warm => "warm",
            Wanted::AsIs => "as-is",
        },
        settle_s: plan.options.settle_time().as_secs_f64(),
        verify: plan.options.verify,
    };
    document.scenarios.push(result::Scenario {
        name: plan.scenario.name.clone(),
        spec_digest: plan.spec_digest.to_hex().to_string(),
        spec: serde_json::json!({ "scenario": plan.scenario, "options": options, "runs": plan.runs }),
        scale_percent: plan.options.scale,
        roles: Roles { source: source.map(str::to_owned), target: Some("d0".to_owned()) },
    });
}

/// A corpus ready to be copied.
enum Ready {
    OnTarget(Box<Staged>),
    OnSource(Box<Staged>),
    InMemory(Box<Staged>),
    Generated(Box<Manifest>),
}

type OpenSource<'a> = Option<(Workspace<'a>, DriveCounters, &'a Drive)>;
type OpenMemory<'a> = Option<(Workspace<'a>, PathBuf)>;

/// Everything that is open while a plan is carried out.
struct Bench<'a> {
    plan: &'a Plan,
    around: Around<'a>,
    target: Workspace<'a>,
    target_counted: DriveCounters,
    source: OpenSource<'a>,
    memory: OpenMemory<'a>,
    log: Option<FileLog>,
    /// Copies that this measurement kept.
    kept: RefCell<Vec<Kept>>,
    _lock: DriveLock,
}

impl<'a> Bench<'a> {
    fn carry_out(plan: &'a Plan, around: Around<'a>, document: &mut Document, began_ns: u64) -> Result<()> {
        around.observer.on(Event::Notice(format!("measuring {}", plan.target_drive)));
        if !matches!(plan.source, Source::Target) {
            around.observer.on(Event::Notice(format!("the source is {}", plan.source_phrase())));
        }
        let bench = Self::open(plan, around)?;
        let done = bench.work(document, began_ns);
        let closed = bench.close(document);
        done.and(closed)
    }

    fn open(plan: &'a Plan, around: Around<'a>) -> Result<Self> {
        let host = around.host;
        let mut numbers = plan.target_drive.lock_numbers();
        if let Source::Directory(_, drive) = &plan.source {
            numbers.extend(drive.lock_numbers());
        }
        let lock = DriveLock::take(host, numbers)?;
        let log = plan.options.samples.as_deref().map(FileLog::open).transpose()?;
        // A killed measurement of any kind may have left a source in memory, where it costs most.
        let freed = memory::remove(around.system, &memory::place())?;
        if freed.files > 0 {
            around.observer.on(Event::Notice(format!("removed from memory what a run that was killed had left: {freed}")));
        }
        let target = open_workspace(around, &plan.target)?;
        let (source, memory) = match Self::open_source(plan, around) {
            Ok(opened) => opened,
            Err(error) => {
                // The error is the one to tell.
                let _ = target.remove_if_empty();
                return Err(error);
            }
        };
        let target_counted = DriveCounters::open(host, &plan.target_drive);
        Ok(Self { plan, around, target, target_counted, source, memory, log, kept: RefCell::default(), _lock: lock })
    }

    fn open_source(plan: &'a Plan, around: Around<'a>) -> Result<(OpenSource<'a>, OpenMemory<'a>)> {
        let Around { system, host, .. } = around;
        Ok(match &plan.source {
            Source::Directory(path, drive) => {
                if drive.same_physical(&plan.target_drive) == Some(true) {
                    around.observer.on(Event::Notice("source and target lie on the same physical drive: it reads and writes at once".to_owned()));
                }
                (Some((open_workspace(around, path)?, DriveCounters::open(host, drive), drive.as_ref())), None)
            }
            Source::Memory(path) => {
                memory::create(system, path)?;
                (None, Some((Workspace::open_or_create(system, path)?, path.clone())))
            }
            Source::Target | Source::Generated => (None, None),
        })
    }

    fn work(&self, document: &mut Document, began_ns: u64) -> Result<()> {
        let Self { plan, around, .. } = self;
        self.check_space()?;
        if consent::needs_probe(plan) {
            around.observer.on(Event::Waits("trying how fast the target is".to_owned()));
            let note = consent::probe(around.system, &self.target, plan, around.cancel)?;
            self.consent(note, 0)?;
        }
        let mut ready = Vec::new();
        for (index, copy) in plan.copies.iter().enumerate() {
            let corpus = self.prepare(index, copy.from)?;
            document.corpora.push(self.corpus_record(&corpus));
            ready.push(corpus);
        }
        // Should the machine lose its power now, it is known what was begun.
        (around.save)(document)?;
        let first_ns = around.system.clock.now_ns();
        for index in 1..=plan.runs {
            let spent = u128::from(around.system.clock.now_ns() - first_ns);
            if index > 1 && plan.options.max_time.is_some_and(|limit| spent > limit.as_nanos()) {
                around.observer.on(Event::Notice(format!("--max-time is over: {} of {} runs were made", index - 1, plan.runs)));
                break;
            }
            document.runs.push(result::Run { index, scenario: 0, order: index, arm: None, phases: Vec::new() });
            for (corpus_index, corpus) in ready.iter().enumerate() {
                let mut phase = copy::planned(&plan.copies[corpus_index].name, corpus_index);
                let done = self.copy_once(index, corpus, &mut phase, began_ns);
                if let Some(run) = document.runs.last_mut() {
                    run.phases.push(phase);
                }
                done?;
            }
            document.summary = summary::summarise(document);
            (around.save)(document)?;
        }
        Ok(())
    }

    fn check_space(&self) -> Result<()> {
        let Self { plan, around, .. } = self;
        let files = around.system.files;
        let check = |workspace: &Workspace<'_>, drive: Option<&Drive>, needed: &dyn Fn(&Plan) -> crate::drive::space::Need| -> Result<()> {
            let space = files.space(workspace.handle()).during("ask for the space of", Side::Target, workspace.path())?;
            let room = Room { space, max_file_bytes: drive.and_then(Drive::max_file_bytes) };
            if let Some(warning) = plan.check_space(workspace.directory(), room, needed)? {
                around.observer.on(Event::Notice(warning));
            }
            Ok(())
        };
        let present = self.target.corpora()?;
        check(&self.target, Some(&plan.target_drive), &|plan| plan.target_need(&present))?;
        if let Some((workspace, _, drive)) = &self.source {
            let present = workspace.corpora()?;
            check(workspace, Some(drive), &|plan| plan.source_need(&present))?;
        }
        let need = plan.target_need(&present);
        around.observer.on(Event::Notice(format!(
            "up to {} of space are used on it and {} are written to it, all below {}",
            Bytes(need.space_bytes()),
            Bytes(plan.bytes_to_write()),
            self.target.path().display()
        )));
        Ok(())
    }

    fn consent(&self, note: Note, staging_bytes: u64) -> Result<()> {
        let space = self.around.system.files.space(self.target.handle()).during("ask for the space of", Side::Target, self.target.path())?;
        consent::ask(self.plan, note, staging_bytes, space.total_bytes, self.around.observer, self.around.cancel)
    }

    fn prepare(&self, index: usize, from: Role) -> Result<Ready> {
        let Around { system, observer, cancel, .. } = self.around;
        let corpus = &self.plan.copies[index].corpus;
        let on = |workspace: &Workspace<'_>, asks: bool| {
            let mut first = |note: Note| if asks { self.consent(note, corpus.byte_count().saturating_sub(note.bytes)) } else { Ok(()) };
            let staged = stage(system, workspace, corpus, observer, cancel, &mut first);
            if staged.is_err()
                && let Err(left) = remove_unfinished(system, workspace, observer)
            {
                observer.on(Event::Notice(format!("what was begun could not be removed: {left}")));
            }
            staged.map(Box::new)
        };
        match (from, &self.source, &self.memory) {
            (Role::Target, ..) => on(&self.target, true).map(Ready::OnTarget),
            (Role::Source, Some((workspace, ..)), _) => on(workspace, false).map(Ready::OnSource),
            (Role::Source, None, Some((workspace, _))) => on(workspace, false).map(Ready::InMemory),
            (Role::Source, None, None) => {
                let counter = std::sync::Arc::new(Counter::default());
                let what = format!("computing the digests of {}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
                observer.on(Event::Begins { what, bytes: corpus.byte_count(), counter: counter.clone(), timed: false });
                let made = make_manifest(system, corpus, makers(), &counter, cancel);
                observer.on(Event::Ends);
                made.map(|manifest| Ready::Generated(Box::new(manifest)))
            }
        }
    }

    fn corpus_record(&self, ready: &Ready) -> result::Corpus {
        let (manifest, staged) = match ready {
            Ready::OnTarget(staged) | Ready::OnSource(staged) | Ready::InMemory(staged) => (&staged.manifest, Some(staged)),
            Ready::Generated(manifest) => (manifest.as_ref(), None),
        };
        let now = self.around.system.clock.wall().as_second();
        let corpus = &manifest.corpus;
        result::Corpus {
            name: corpus.spec.name.clone(),
            noun: corpus.spec.noun.clone(),
            version: corpus.spec.version,
            seed: corpus.seed,
            scale_percent: corpus.scale(),
            files: corpus.file_count(),
            bytes: corpus.byte_count(),
            root_digest: manifest.root.to_hex().to_string(),
            stored_bytes: staged.and_then(|staged| staged.stored_bytes),
            extents: staged.and_then(|staged| staged.extents),
            staged_age_s: staged.and_then(|staged| staged.note).and_then(|note| u64::try_from(now - note.at_s).ok()),
        }
    }

    fn copy_once(&self, index: u32, ready: &Ready, phase: &mut result::Phase, began_ns: u64) -> Result<()> {
        let Self { plan, around, .. } = self;
        self.target.still_here()?;
        if let Some((workspace, ..)) = &self.source {
            workspace.still_here()?;
        }
        let target = Place { drive: &plan.target_drive, counted: &self.target_counted, id: "d0" };
        let source = self.source.as_ref().map(|(_, counted, drive)| Place { drive, counted, id: "d1" });
        let from = match ready {
            Ready::OnTarget(staged) => CopySource::Staged { staged, place: Some(target) },
            Ready::OnSource(staged) => CopySource::Staged { staged, place: source },
            Ready::InMemory(staged) => CopySource::Staged { staged, place: None },
            Ready::Generated(manifest) => CopySource::Generated(manifest),
        };
        let run = self.target.new_run()?;
        let title = format!("run {index} of {}", plan.runs);
        let engine = Engine::named(&plan.options.engine)?;
        let Around { system, observer, cancel, .. } = *around;
        // A corpus in another place than the source's is not read from it.
        let source = source.filter(|_| matches!(ready, Ready::OnSource(_)));
        let watched = Watched { system, observer, cancel, title: &title, target, source };
        let job = Job { watched, options: &plan.options, engine: &engine, from: &from, run: &run, began_ns, log: self.log.as_ref() };
        if let Some(log) = &self.log {
            log.begin_run(index);
        }
        let mut done = copy::copy(&job, phase);
        if let Some(log) = &self.log {
            done = done.and(log.end_run());
        }
        if plan.options.keep && index == plan.runs && done.is_ok() {
            let path = self.target.keep(run)?.display().to_string();
            self.kept.borrow_mut().push(Kept { path, bytes: Some(phase.bytes), what: "copy".to_owned() });
            return done;
        }
        let removed = self.remove(run);
        if let (Err(_), Err(left)) = (&done, &removed) {
            // The first failure is the one to return; that something is left behind must be said all the same.
            around.observer.on(Event::Notice(format!("the copy could not be removed: {left}")));
        }
        done.and(removed)
    }

    fn remove(&self, run: RunDir) -> Result<()> {
        let path = run.path.clone();
        self.around.observer.on(Event::Waits("removing the copy".to_owned()));
        let removal = self.target.remove(run)?;
        if let Some(left) = removal.left.into_iter().next() {
            return Err(left.reason);
        }
        self.around.system.files.sync_filesystem(self.target.handle()).or_else(ignore_unsupported).during("flush", Side::Target, path)
    }

    /// Removes what is not kept, and says in the record what is.
    fn close(self, document: &mut Document) -> Result<()> {
        let Self { plan, around, target, source, memory, kept, .. } = self;
        let freed = match memory {
            Some((workspace, path)) => {
                drop(workspace);
                memory::remove(around.system, &path).map(drop)
            }
            None => Ok(()),
        };
        let mut kept = kept.into_inner();
        let mut remove_with = Vec::new();
        for workspace in std::iter::once(&target).chain(source.iter().map(|(workspace, ..)| workspace)) {
            let already = kept.len();
            kept.extend(kept_corpora(plan, workspace)?);
            kept.extend(kept_copies(&kept, workspace)?);
            let copied_now = kept[..already].iter().any(|kept| Path::new(&kept.path).starts_with(workspace.path()));
            if copied_now || kept.len() > already {
                remove_with.push(clean_command(workspace.directory()));
            }
        }
        // Removing what holds nothing comes first, so that the last flush covers it.
        let (files, directory) = (around.system.files, target.directory().to_path_buf());
        let removed = target.remove_if_empty().and(source.map_or(Ok(()), |(workspace, ..)| workspace.remove_if_empty()));
        let flushed = files.open_root(&directory).and_then(|directory| files.sync_filesystem(&directory));
        let (unplug, because) = unplug(&plan.target_drive, flushed.is_ok(), document);
        document.aftermath = Some(Aftermath {
            remove_with: (!remove_with.is_empty()).then(|| remove_with.join(" && ")),
            kept,
            unplug,
            unplug_because: Some(because.to_owned()),
        });
        freed.and(removed)
    }
}

fn unplug(drive: &Drive, flushed: bool, document: &Document) -> (Answer, &'static str) {
    let lost =
        document.runs.iter().flat_map(|run| &run.phases).filter_map(|phase| phase.flush.as_ref()).any(|flush| flush.reaches_medium == Answer::No);
    match drive.medium {
        _ if drive.is_system_disk == Some(true) => (Answer::No, "this is the system disk"),
        Medium::Memory => (Answer::No, "it is this machine's memory"),
        _ if !flushed || lost => (Answer::Unknown, "the last flush is not known to have reached it"),
        Medium::Block => (Answer::Yes, "everything is flushed; eject it first, as always"),
        _ => (Answer::Unknown, "what is behind it can't be seen"),
    }
}

fn kept_corpora(plan: &Plan, workspace: &Workspace<'_>) -> Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for name in workspace.corpora()? {
        let mine = plan.copies.iter().find(|copy| copy.corpus.id() == name);
        kept.push(Kept {
            path: workspace.corpus_path(&name).display().to_string(),
            bytes: mine.map(|copy| copy.corpus.byte_count()),
            what: "corpus, used again by the next run".to_owned(),
        });
    }
    Ok(kept)
}

/// The copies that were kept before, by this measurement or another, and are not yet named.
fn kept_copies(named: &[Kept], workspace: &Workspace<'_>) -> Result<Vec<Kept>> {
    let paths = workspace.kept()?.into_iter().map(|path| path.display().to_string());
    let others = paths.filter(|path| named.iter().all(|kept| kept.path != *path));
    Ok(others.map(|path| Kept { path, bytes: None, what: "copy kept earlier".to_owned() }).collect())
}

/// Opens a workspace, says what a killed run had left there, and removes corpora that were never finished.
fn open_workspace<'a>(around: Around<'a>, directory: &Path) -> Result<Workspace<'a>> {
    let workspace = Workspace::open_or_create(around.system, directory)?;
    let leftovers = workspace.leftovers();
    if leftovers.runs > 0 {
        around.observer.on(Event::Notice(format!("removed what a run that was killed had left: {}", leftovers.removal)));
    }
    remove_unfinished(around.system, &workspace, around.observer)?;
    if let Some(check) = workspace.capacity_checks()?.first() {
        around.observer.on(Event::Notice(format!(
            "{} takes space: test data of a capacity check; capacity goes on with them, clean removes them",
            check.path.display()
        )));
    }
    Ok(workspace)
}
