//! Carries a plan out: workspaces, corpora, runs, record. Whatever ends it, what was done is kept and what was written is removed.

mod once;
mod ready;
mod state;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ready::position;

use super::account;
use super::ceiling;
use super::consent;
use super::events::{Event, Observer};
use super::facts;
use super::memory;
use super::options::State;
use super::plan::{Plan, PlannedPhase, Source};
use super::prepare;
use super::stage::{Note, remove_unfinished};
use super::wall::WallClock;
use super::window::{DriveCounters, Place, Watched};
use crate::drive::block_trace;
use crate::drive::pulse::Pulse;
use crate::drive::space::Room;
use crate::drive::{Drive, DriveLock, Removal, RunDir, Workspace};
use crate::engine::Engine;
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::{Host, System, ignore_unsupported};
use crate::progress::Cancel;
use crate::result::{self, Aftermath, Document, Kept, Phase, PhaseKind, PhaseStatus, summary};
use crate::units::Bytes;
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
    document.hosts.push(crate::drive::host::read(around.host, "h0", plan.options.identify));
    account::describe(plan, around, &mut document);
    let wall = WallClock::look(clock);
    let mut outcome = Bench::carry_out(plan, around, &mut document, began_ns);
    facts::after(around.host, &plan.target_drive, "d0", &mut document.drives);
    if let Source::Directory(_, drive) = &plan.source {
        facts::after(around.host, drive, "d1", &mut document.drives);
    }
    document.flags.extend(account::compare(plan, &document));
    document.flags.extend(account::of_preparations(&document));
    document.flags.extend(wall.flag(clock));
    document.summary = summary::summarise(&document);
    account::conclude(&mut document, &outcome, plan.runs, plan.options.strict);
    if !account::was_begun(&document, &outcome) {
        return (document, outcome);
    }
    if let Err(failure) = (around.save)(&document) {
        // A lost record is a failure of its own, unless there was one already.
        if outcome.is_ok() {
            outcome = Err(failure);
            account::conclude(&mut document, &outcome, plan.runs, plan.options.strict);
        }
    }
    (document, outcome)
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
    /// What the target was filled with before anything was measured.
    filling: RefCell<Option<RunDir>>,
    /// What the engine copies from memory to memory, bytes/s.
    tool_bytes_per_s: Cell<Option<u64>>,
    engine: Engine,
    _lock: DriveLock,
}

impl<'a> Bench<'a> {
    fn carry_out(plan: &'a Plan, around: Around<'a>, document: &mut Document, began_ns: u64) -> Result<()> {
        around.observer.on(Event::Notice(format!("measuring {}", plan.target_drive)));
        if !matches!(plan.source, Source::Target) {
            around.observer.on(Event::Notice(format!("the source is {}", plan.source_phrase())));
        }
        let mut drives = vec![&plan.target_drive];
        if let Source::Directory(_, drive) = &plan.source {
            drives.push(drive);
        }
        around.observer.on(Event::On(drives.into_iter().map(|drive| Arc::new(Pulse::of(around.host, drive))).collect()));
        around.observer.on(Event::SoFar(Box::new(document.clone())));
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
        let freed = memory::remove_left_over(around.system)?;
        if freed.files > 0 || !freed.is_complete() {
            around.observer.on(Event::Notice(format!("removed from memory what a run that was killed had left: {freed}")));
        }
        if block_trace::clean(host) > 0 {
            around.observer.on(Event::Notice("ended the block trace that a run that was killed had left".to_owned()));
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
        let engine = Engine::named(&plan.options.engine)?;
        let (kept, filling, tool_bytes_per_s) = (RefCell::default(), RefCell::default(), Cell::default());
        Ok(Self { plan, around, target, target_counted, source, memory, log, kept, filling, tool_bytes_per_s, engine, _lock: lock })
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
        if plan.options.state == State::Trimmed {
            // Whether it can be had is found out before anything is made.
            prepare::tell_what_is_free(around.system, self.target.handle(), self.target.path())?;
        }
        self.check_space()?;
        if consent::needs_probe(plan) {
            around.observer.on(Event::Waits("trying how fast the target is".to_owned()));
            let note = consent::probe(around.system, &self.target, plan, around.cancel)?;
            self.consent(note, 0)?;
        }
        self.measure_engine()?;
        let prepared = self.prepare_all(document)?;
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
            around.observer.on(Event::SoFar(Box::new(document.clone())));
            let mut keep = |phase: Phase| {
                document.runs.last_mut().map(|run| run.phases.push(phase))?;
                around.observer.on(Event::SoFar(Box::new(document.clone())));
                Some(())
            };
            let title = format!("run {index} of {}", plan.runs);
            self.bring_into_state(index, &title, began_ns, &mut keep)?;
            for (number, planned) in plan.phases.iter().enumerate() {
                let at = position(&prepared, planned.role(), &planned.corpus)?;
                let ready = &prepared[at].ready;
                let last = index == plan.runs;
                // Before the last copy, so that a drive that grows warm or full favours neither, and one that is kept has its room.
                if last && plan.options.control && planned.copied_from().is_some() {
                    let fresh = around.system.clock.wall().as_nanosecond().unsigned_abs() as u64;
                    let mut phase = Phase { corpus: Some(at), ..Phase::new(format!("{} control", planned.name), PhaseKind::Control) };
                    let done = self.work_once("control", ready, Some(fresh), false, &mut phase, began_ns, index);
                    keep(phase);
                    done?;
                }
                let mut phase = Phase { corpus: Some(at), ..Phase::new(&planned.name, planned.kind()) };
                let mut stand_ins: &[PlannedPhase] = &[];
                let done = match planned.launch() {
                    None => self.work_once(&title, ready, None, plan.options.keep && last, &mut phase, began_ns, index),
                    Some(launch) => {
                        // A tree that is only read is compared once in every run, after its last start.
                        let verify = plan.options.verify && plan.phases[number + 1..].iter().all(|later| later.corpus != planned.corpus);
                        let done = self.launch_once(&format!("{title}, {}", planned.name), launch, &prepared, at, verify, &mut phase, began_ns);
                        if done.is_ok() && phase.status == PhaseStatus::Unsupported {
                            stand_ins = &launch.otherwise;
                        }
                        done
                    }
                };
                keep(phase);
                done?;
                for stand_in in stand_ins {
                    let Some(launch) = stand_in.launch() else { continue };
                    let at = position(&prepared, stand_in.role(), &stand_in.corpus)?;
                    let mut phase = Phase { corpus: Some(at), ..Phase::new(&stand_in.name, stand_in.kind()) };
                    let done =
                        self.launch_once(&format!("{title}, {}", stand_in.name), launch, &prepared, at, plan.options.verify, &mut phase, began_ns);
                    keep(phase);
                    done?;
                }
            }
            document.summary = summary::summarise(document);
            (around.save)(document)?;
        }
        Ok(())
    }

    /// How fast the engine itself is.
    fn measure_engine(&self) -> Result<()> {
        let Around { system, observer, cancel, .. } = self.around;
        let Some(copied) = self.plan.phases.iter().find(|phase| phase.copied_from().is_some()) else { return Ok(()) };
        let memory = self.memory.as_ref().map(|(workspace, _)| workspace);
        observer.on(Event::Waits("looking how fast the copier itself is".to_owned()));
        self.tool_bytes_per_s.set(ceiling::measure(system, &copied.corpus, &self.engine, &self.plan.options, memory, cancel)?);
        Ok(())
    }

    fn watched<'w>(&'w self, title: &'w str, source: Option<Place<'w>>) -> Watched<'w> {
        let Around { system, host, observer, cancel, .. } = self.around;
        Watched { system, host, observer, cancel, title, evidence: self.plan.options.evidence, target: self.target_place(), source, traced: None }
    }

    fn target_place(&self) -> Place<'_> {
        Place { drive: &self.plan.target_drive, counted: &self.target_counted, id: "d0" }
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
        self.check_room_after_filling(&present)?;
        let need = plan.target_need(&present);
        around.observer.on(Event::Notice(format!(
            "up to {} of space are used on it and {} are written to it, all below {}",
            Bytes(need.space_bytes()),
            Bytes(plan.bytes_to_write()),
            path_text(self.target.path())
        )));
        Ok(())
    }

    /// Filled to the share that was asked for, the target must still have room for what is measured.
    fn check_room_after_filling(&self, present: &[String]) -> Result<()> {
        let (Some(percent), Some(total)) = (self.plan.fill_percent, self.plan.space.total_bytes) else { return Ok(()) };
        let staged = self.plan.phases.iter().flat_map(PlannedPhase::staged).map(|(_, corpus)| corpus.id());
        let present_all: Vec<String> = staged.chain(present.iter().cloned()).collect();
        let (left, need) = (total / 100 * u64::from(100 - percent.min(100)), self.plan.target_need(&present_all).space_bytes());
        if left >= need {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "filled to {percent} % the target has {} left, but {} are needed: choose a smaller --fill or --scale",
            Bytes(left),
            Bytes(need)
        )))
    }

    fn consent(&self, note: Note, staging_bytes: u64) -> Result<()> {
        let space = self.around.system.files.space(self.target.handle()).during("ask for the space of", Side::Target, self.target.path())?;
        consent::ask(self.plan, note, staging_bytes, space.total_bytes, self.around.observer, self.around.cancel)
    }

    fn remove(&self, run: RunDir) -> Result<()> {
        let path = run.path.clone();
        self.around.observer.on(Event::Waits("removing what was written".to_owned()));
        self.target.remove(run)?.complete()?;
        self.around.system.files.sync_filesystem(self.target.handle()).or_else(ignore_unsupported).during("flush", Side::Target, path)
    }

    /// Removes what is not kept, and says in the record what is.
    fn close(self, document: &mut Document) -> Result<()> {
        let unfilled = self.filling.take().map_or(Ok(()), |run| self.remove(run));
        let Self { plan, around, target, source, memory, kept, .. } = self;
        let freed = match memory {
            Some((workspace, path)) => {
                drop(workspace);
                memory::remove(around.system, &path).and_then(Removal::complete)
            }
            None => Ok(()),
        };
        let workspaces = std::iter::once(&target).chain(source.iter().map(|(workspace, ..)| workspace));
        let (kept, remove_with) = account::what_is_kept(plan, workspaces, kept.into_inner())?;
        // Removing what holds nothing comes first, so that the last flush covers it.
        let (files, directory) = (around.system.files, target.directory().to_path_buf());
        let removed = target.remove_if_empty().and(source.map_or(Ok(()), |(workspace, ..)| workspace.remove_if_empty()));
        let flushed = files.open_root(&directory).and_then(|directory| files.sync_filesystem(&directory));
        let (unplug, because) = account::unplug(&plan.target_drive, flushed.is_ok(), document);
        document.aftermath = Some(Aftermath { remove_with, kept, unplug, unplug_because: Some(because.to_owned()) });
        unfilled.and(freed).and(removed)
    }
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
            path_text(&check.path)
        )));
    }
    Ok(workspace)
}
