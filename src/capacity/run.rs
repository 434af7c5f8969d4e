//! Carries a check out: workspace, consent, writing, reading, conclusion, record. Whatever ends it, what was measured is kept and what was written is removed, or
//! stays for the same command to go on with.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::fill::{Fill, Filled, fill, index_of, name_of, part_name_of, places};
use super::h2w::{H2w, number_of};
use super::layout::{Laid, Layout};
use super::map::Map;
use super::pattern::Own;
use super::progress::Progress;
use super::read::{MakePattern, Reading, Source, evict_all, look_again, read};
use super::record::{self, Known};
use super::{CHUNK, FILE_SPAN, SECTOR};
use crate::cache::flush::Written;
use crate::drive::pulse::Pulse;
use crate::drive::{Drive, DriveLock, Medium, Removal, RunDir, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::{Kind, allow_many_open_files, ignore_unsupported};
use crate::progress::Counter;
use crate::result::mask::clean_command;
use crate::result::{self, Aftermath, Answer, Document, Kept, Phase, PhaseKind, PhaseStatus, Roles, Status, flags, summary};
use crate::scenario::consent::{self, is_much};
use crate::scenario::events::Event;
use crate::scenario::facts;
use crate::scenario::run::Around;
use crate::scenario::wall::WallClock;
use crate::scenario::window::{DriveCounters, Place, Timed, Watched, Work};
use crate::units::{Bytes, Scale, duration};

/// The file system of the running system keeps at least this free: a system without space stops.
const SYSTEM_RESERVE: u64 = 1 << 30;
/// Files are at most a sixteenth of what is written, so that an interruption costs little.
const PARTS: u64 = 16;
/// Progress is kept no more often than this.
const KEEP_EVERY_NS: u64 = 20_000_000_000;

/// What the user may choose.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How much is written; all that is free when not said.
    pub size: Option<u64>,
    /// Only files that F3 or h2testw wrote are checked, and nothing is written.
    pub check: bool,
    /// Whether the test data stay, to be read again later.
    pub keep: bool,
    /// No more bytes than this are written.
    pub max_write: Option<u64>,
    /// Whether questions count as answered with yes.
    pub yes: bool,
    /// Whether names of host and user and serial numbers stay in the record.
    pub identify: bool,
    /// The user's own name for the check.
    pub label: Option<String>,
}

/// Checks the drive under a directory. The record is complete as far as things went, whatever the outcome. `results` is where progress is kept.
pub fn run(directory: &Path, options: &Options, results: &Path, around: Around<'_>, copysim: result::Copysim) -> (Document, Result<()>) {
    let clock = around.system.clock;
    let began_ns = clock.now_ns();
    let started_at = clock.wall();
    let id = blake3::hash(format!("{started_at} {} {began_ns}", std::process::id()).as_bytes()).to_hex()[..12].to_owned();
    let mut document = Document::begin(id, started_at, copysim);
    document.label.clone_from(&options.label);
    document.hosts.push(crate::drive::host::read(around.host, "h0", options.identify));
    let wall = WallClock::look(clock);
    let mut outcome = check(directory, options, results, around, began_ns, &mut document);
    document.summary = summary::summarise(&document);
    document.flags.extend(wall.flag(clock));
    conclude(&mut document, &outcome);
    if was_begun(&document, &outcome)
        && let Err(failure) = (around.save)(&document)
        && outcome.is_ok()
    {
        outcome = Err(failure);
        conclude(&mut document, &outcome);
    }
    (document, outcome)
}

/// Whether there is anything to keep: what was refused before its first phase leaves no record.
#[must_use]
pub fn was_begun(document: &Document, outcome: &Result<()>) -> bool {
    !document.runs.is_empty() || !matches!(outcome, Err(Error::Refused(_)))
}

fn conclude(document: &mut Document, outcome: &Result<()>) {
    (document.status, document.exit_code, document.error) = match outcome {
        Ok(()) => (Status::Complete, Some(0), None),
        Err(error @ Error::Interrupted(_)) => (Status::Interrupted, Some(error.exit_code()), Some(error.to_string())),
        Err(error) => (Status::Failed, Some(error.exit_code()), Some(error.to_string())),
    };
}

fn check(directory: &Path, options: &Options, results: &Path, around: Around<'_>, began_ns: u64, document: &mut Document) -> Result<()> {
    let Around { system, host, observer, .. } = around;
    if options.size.is_some_and(|size| size < CHUNK as u64) {
        return Err(Error::Refused(format!("--size: at least {} are needed to say anything", Bytes(CHUNK as u64))));
    }
    // Refuses, with its reason, what is no directory that can be worked in.
    drop(Workspace::open_existing(system, directory)?);
    let drive = Drive::identify(host, system.files, directory)?;
    observer.on(Event::Notice(format!("checking {drive}")));
    observer.on(Event::On(vec![Arc::new(Pulse::of(host, &drive))]));
    let foreign = h2w_files(around, &drive.path)?;
    if options.check && foreign.is_empty() {
        return Err(Error::Refused(format!("there are no files of F3 or h2testw (1.h2w, 2.h2w, …) in {}", drive.path.display())));
    }
    let _lock = DriveLock::take(host, drive.lock_numbers())?;
    document.drives = facts::drives(host, facts::space(system, &drive), &drive, "d0", "h0");
    let counted = DriveCounters::open(host, &drive);
    // With fewer files open at once some are opened again.
    let _ = allow_many_open_files();
    let bench = Bench { options, results, around, began_ns, drive: &drive, counted: &counted, device_start: device_start(around, &drive) };
    bench.describe(document);
    let done = bench.carry_out(foreign, document);
    facts::after(host, &drive, "d0", &mut document.drives);
    done
}

/// The files of F3 and h2testw in a directory, in order.
fn h2w_files(around: Around<'_>, directory: &Path) -> Result<Vec<(u64, OsString)>> {
    let files = around.system.files;
    let dir = files.open_root(directory).during("open", Side::Target, directory)?;
    let mut found = Vec::new();
    let listed = files.list(&dir, &mut |entry| {
        found.extend(number_of(&entry.name).map(|number| (number, entry.name)));
        Ok(())
    });
    listed.during("list", Side::Target, directory)?;
    found.retain(|(_, name)| files.stat_at(&dir, Path::new(name)).is_ok_and(|stat| stat.kind == Kind::File));
    found.sort();
    Ok(found)
}

/// Where the file system's device begins on its drive, where the places that it tells are places on one.
fn device_start(around: Around<'_>, drive: &Drive) -> Option<u64> {
    const SECTOR_BYTES: u64 = 512;
    let fs_type = drive.mount.as_ref().map(|mount| mount.fs_type.as_str())?;
    let (major, minor) = drive.file_system;
    let is_plain = matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs" | "f2fs" | "ntfs3" | "vfat" | "msdos" | "exfat") && drive.devices.len() == 1;
    is_plain.then(|| around.host.number(format!("/sys/dev/block/{major}:{minor}/start")).unwrap_or(0) * SECTOR_BYTES)
}

/// All that a check works with.
struct Bench<'a> {
    options: &'a Options,
    results: &'a Path,
    around: Around<'a>,
    began_ns: u64,
    drive: &'a Drive,
    counted: &'a DriveCounters,
    device_start: Option<u64>,
}

/// What is read, and how.
struct Subject<'a> {
    sources: Vec<Source>,
    layout: Layout,
    path: &'a Path,
    nonce: Option<u64>,
    is_written: bool,
    troubles: Vec<String>,
}

impl<'a> Bench<'a> {
    fn carry_out(&self, foreign: Vec<(u64, OsString)>, document: &mut Document) -> Result<()> {
        if foreign.is_empty() {
            return self.check_own(document);
        }
        if !self.options.check {
            self.around.observer.on(Event::Notice(format!(
                "{} holds files of F3 or h2testw: they are checked and nothing is written; remove them to have the drive filled",
                self.drive.path.display()
            )));
        }
        self.check_foreign(foreign, document)
    }

    fn describe(&self, document: &mut Document) {
        let Options { size, check, keep, .. } = self.options;
        let spec = serde_json::json!({ "size_bytes": size, "check": check, "keep": keep });
        document.scenarios.push(result::Scenario {
            name: "capacity".to_owned(),
            spec_digest: blake3::hash(spec.to_string().as_bytes()).to_hex().to_string(),
            spec,
            scale_percent: Scale::FULL,
            roles: Roles { source: None, target: Some("d0".to_owned()) },
        });
    }

    /// Tells what is kept should all end here.
    fn under_way(&self, document: &Document, phase: &Phase) {
        self.around.observer.on(Event::SoFar(Box::new(document.clone())));
        self.around.observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
    }

    fn watched(&self) -> Watched<'_> {
        let Around { system, host, observer, cancel, .. } = self.around;
        let target = Place { drive: self.drive, counted: self.counted, id: "d0" };
        Watched { system, host, observer, cancel, title: "capacity", evidence: true, traced: None, target, source: None }
    }

    /// Whether the running system writes to this very file system.
    fn holds_system(&self) -> bool {
        let files = self.around.system.files;
        let number = |path: &str| files.open_root(&self.around.host.path(path)).and_then(|dir| files.stat(&dir)).map(|stat| stat.device);
        ["/", "/var", "/home"].iter().any(|path| number(path).is_ok_and(|number| number == self.drive.file_system))
    }

    /// What the drive says that it holds.
    fn claimed_bytes(&self) -> Option<u64> {
        match self.drive.devices.as_slice() {
            [only] => only.size_bytes,
            _ => None,
        }
    }

    fn check_foreign(&self, found: Vec<(u64, OsString)>, document: &mut Document) -> Result<()> {
        let files = self.around.system.files;
        let dir = files.open_root(&self.drive.path).during("open", Side::Target, &self.drive.path)?;
        let mut subject =
            Subject { sources: Vec::new(), layout: Layout::default(), path: &self.drive.path, nonce: None, is_written: true, troubles: Vec::new() };
        for (index, name) in found {
            let file = files.open(&dir, Path::new(&name));
            let len = files.stat_at(&dir, Path::new(&name)).map_or(0, |stat| stat.len).min(FILE_SPAN) / SECTOR as u64 * SECTOR as u64;
            let stretches = file.as_ref().map(|file| places(self.around.system, file, self.device_start)).unwrap_or_default();
            subject.layout.add(Laid { index, len, stretches });
            subject.sources.push(Source { index, name: name.to_string_lossy().into_owned(), len, file });
        }
        document.runs.push(result::Run { index: 1, scenario: 0, order: 1, arm: None, phases: Vec::new() });
        let mut map = Map::default();
        let read = self.read(&subject, &|| Box::new(H2w), &mut map, 0, &mut |_, _| {}, document);
        document.aftermath = Some(Aftermath {
            kept: Vec::new(),
            remove_with: None,
            unplug: unplug(self.drive, true).0,
            unplug_because: Some(unplug(self.drive, true).1.to_owned()),
        });
        read
    }

    fn check_own(&self, document: &mut Document) -> Result<()> {
        let Around { system, observer, .. } = self.around;
        let workspace = Workspace::open_or_create(system, &self.drive.path)?;
        let leftovers = workspace.leftovers();
        if leftovers.runs > 0 {
            observer.on(Event::Notice(format!("removed what a run that was killed had left: {}", leftovers.removal)));
        }
        let work = self.prepare(&workspace);
        let (run, mut progress) = match work {
            Ok(prepared) => prepared,
            Err(error) => {
                // The error is the one to tell.
                let _ = workspace.remove_if_empty();
                return Err(error);
            }
        };
        let measured = self.measure(&run, &mut progress, document);
        self.close(workspace, run, progress, measured, document)
    }

    /// Finds the check that is to be gone on with, or begins a new one after asking.
    fn prepare(&self, workspace: &Workspace<'_>) -> Result<(RunDir, Progress)> {
        let Around { system, observer, .. } = self.around;
        let mut unfinished = workspace.capacity_checks()?;
        if let Some(run) = unfinished.pop() {
            for older in unfinished {
                let removal = workspace.remove(older)?;
                observer.on(Event::Notice(format!("removed an older check that was never finished: {removal}")));
            }
            let progress = Progress::load(self.results, &run.id)?;
            observer.on(Event::Notice(match &progress {
                Some(progress) if progress.is_written && progress.last_read.is_none() => {
                    format!("the test data of {} are there: they are read again", run.id)
                }
                Some(_) => format!("going on with {}, which was interrupted (to begin anew: {})", run.id, clean_command(&self.drive.path)),
                None => format!("going on with {}, which was interrupted; what it had read is not known and is read again", run.id),
            }));
            let planned_bytes = self.options.size.unwrap_or(u64::MAX);
            let progress = progress.unwrap_or_else(|| Progress { run: run.id.clone(), planned_bytes, ..Progress::default() });
            return Ok((run, progress));
        }
        let space = system.files.space(workspace.handle()).during("ask for the space of", Side::Target, workspace.path())?;
        let reserve = if self.holds_system() { SYSTEM_RESERVE } else { 0 };
        let free = space.available_bytes.map(|free| free.saturating_sub(reserve));
        let size = match (self.options.size, free) {
            (Some(size), Some(free)) if size > free => {
                return Err(Error::Refused(format!(
                    "{} has {} that may be filled, and --size says {}",
                    self.drive.path.display(),
                    Bytes(free),
                    Bytes(size)
                )));
            }
            (Some(size), _) | (None, Some(size)) => size,
            (None, None) => {
                return Err(Error::Refused(format!("{} does not say how much space it has: say --size", self.drive.path.display())));
            }
        };
        if size < CHUNK as u64 {
            return Err(Error::Refused(format!(
                "{} has {} free: there is nothing to fill, so nothing can be said",
                self.drive.path.display(),
                Bytes(size)
            )));
        }
        if let Some(limit) = self.options.max_write.filter(|&limit| size > limit) {
            return Err(Error::Refused(format!("{} would be written, more than --max-write {}", Bytes(size), Bytes(limit))));
        }
        self.ask(workspace, size, space.total_bytes)?;
        let run = workspace.new_capacity_check()?;
        let progress = Progress { run: run.id.clone(), planned_bytes: size, ..Progress::default() };
        Ok((run, progress))
    }

    /// Asks where it takes long or fills much.
    fn ask(&self, workspace: &Workspace<'_>, size: u64, total_bytes: Option<u64>) -> Result<()> {
        let Around { system, observer, cancel, .. } = self.around;
        observer.on(Event::Notice(format!("{} are written to it and read again, all below {}", Bytes(size), workspace.path().display())));
        if self.options.yes {
            return Ok(());
        }
        observer.on(Event::Waits("trying how fast the drive is".to_owned()));
        let run = workspace.new_run()?;
        let note = consent::write_probe(system, &run, size, cancel);
        let removed = workspace.remove(run).and_then(Removal::complete);
        let note = note.and_then(|note| removed.map(|()| note))?;
        // Reading takes about as long as writing.
        let time_ns = (u128::from(size) * 2 * u128::from(note.durable_ns) / u128::from(note.bytes.max(1))) as u64;
        if !is_much(time_ns, size, total_bytes) {
            return Ok(());
        }
        let what = format!("this takes about {} and fills {} of the drive's space", duration(time_ns), Bytes(size));
        match observer.ask(&format!("{what}. Go on?")) {
            Some(true) => Ok(()),
            Some(false) => {
                cancel.check()?;
                Err(Error::Refused("not started: the answer was no".to_owned()))
            }
            None => Err(Error::Refused(format!("{what}: say --yes to do that, or --size for less"))),
        }
    }

    /// Writes what is missing and reads what was not read.
    fn measure(&self, run: &RunDir, progress: &mut Progress, document: &mut Document) -> Result<()> {
        let phases = std::mem::take(&mut progress.phases);
        document.runs.push(result::Run { index: 1, scenario: 0, order: 1, arm: None, phases });
        let nonce = Own::nonce_of(&run.id);
        let (mut layout, mut readers) = self.present(run)?;
        if !progress.is_written {
            let written = self.write(run, nonce, progress, &mut layout, &mut readers, document);
            progress.phases = document.runs.last().map(|run| run.phases.clone()).unwrap_or_default();
            progress.save(self.results)?;
            written?;
        }
        let dir = &run.dir;
        let files = self.around.system.files;
        let sources = layout.files().iter().map(|laid| {
            let name = name_of(laid.index);
            let opened = readers.iter().position(|(index, _)| *index == laid.index).map(|at| readers.swap_remove(at).1);
            let file = opened.map_or_else(|| files.open(dir, Path::new(&name)), Ok);
            Source { index: laid.index, name, len: laid.len, file }
        });
        let subject = Subject {
            sources: sources.collect(),
            layout: layout.clone(),
            path: &run.path,
            nonce: Some(nonce),
            is_written: progress.is_written,
            troubles: progress.troubles.clone(),
        };
        let first = progress.last_read.map_or(0, |last| last + 1);
        let mut map = std::mem::take(&mut progress.map);
        let mut kept_ns = self.around.system.clock.now_ns();
        let read = self.read(
            &subject,
            &|| Box::new(Own::of(nonce)),
            &mut map,
            first,
            &mut |map, index| {
                progress.last_read = Some(index);
                let now = self.around.system.clock.now_ns();
                if now - kept_ns >= KEEP_EVERY_NS {
                    kept_ns = now;
                    progress.map = map.before((index + 1) * FILE_SPAN);
                    // Should it fail, there is less to go on from.
                    let _ = progress.save(self.results);
                }
            },
            document,
        );
        if let Err(Error::Interrupted(_)) = read {
            // Of a file that was not read to its end nothing is known.
            progress.map = map.before(progress.last_read.map_or(0, |last| (last + 1) * FILE_SPAN));
            progress.phases = document.runs.last().map(|run| run.phases.clone()).unwrap_or_default();
            progress.save(self.results)?;
        }
        read
    }

    /// The files that are there whole, and removes what is not.
    fn present(&self, run: &RunDir) -> Result<(Layout, Vec<(u64, crate::platform::Handle)>)> {
        let files = self.around.system.files;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        let listed = files.list(&run.dir, &mut |entry| {
            let name = entry.name.to_string_lossy();
            match (index_of(&name), name.strip_suffix(".part").and_then(index_of)) {
                (Some(index), _) => whole.push(index),
                (None, Some(index)) => parts.push(index),
                (None, None) => {}
            }
            Ok(())
        });
        listed.during("list", Side::Target, &run.path)?;
        for index in parts {
            let name = part_name_of(index);
            files.remove_file(&run.dir, Path::new(&name)).during("remove", Side::Target, run.path.join(name))?;
        }
        whole.sort_unstable();
        let (mut layout, mut readers) = (Layout::default(), Vec::new());
        for index in whole {
            let name = name_of(index);
            let len = files.stat_at(&run.dir, Path::new(&name)).map_or(0, |stat| stat.len).min(FILE_SPAN) / SECTOR as u64 * SECTOR as u64;
            let file = files.open(&run.dir, Path::new(&name));
            let stretches = file.as_ref().map(|file| places(self.around.system, file, self.device_start)).unwrap_or_default();
            layout.add(Laid { index, len, stretches });
            readers.extend(file.ok().map(|file| (index, file)));
        }
        Ok((layout, readers))
    }

    fn write(
        &self,
        run: &RunDir,
        nonce: u64,
        progress: &mut Progress,
        layout: &mut Layout,
        readers: &mut Vec<(u64, crate::platform::Handle)>,
        document: &mut Document,
    ) -> Result<()> {
        let Around { system, cancel, .. } = self.around;
        // What was written before must not be flushed amid the test data, nor after them: a fake might put it in their place.
        system.files.sync_filesystem(&run.dir).or_else(ignore_unsupported).during("flush", Side::Target, &run.path)?;
        let space = system.files.space(&run.dir).unwrap_or_default();
        let bytes = progress.planned_bytes.saturating_sub(layout.bytes()).min(space.available_bytes.unwrap_or(u64::MAX));
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new("write", PhaseKind::Write) };
        self.under_way(document, &phase);
        let counter = Arc::new(Counter::default());
        let first = layout.files().last().map_or(0, |last| last.index + 1);
        let plan = Fill {
            system,
            run,
            nonce,
            first,
            file_bytes: (progress.planned_bytes.min(layout.bytes() + bytes) / PARTS).next_multiple_of(CHUNK as u64).clamp(CHUNK as u64, FILE_SPAN),
            bytes,
            device_start: self.device_start,
            counter: &counter,
            cancel,
        };
        let mut filled = Filled::default();
        let watched = self.watched();
        // One that is there for certain, where there is one.
        let one_file = name_of(layout.files().last().map_or(first, |last| last.index));
        let timed = watched.time(Work {
            what: format!("writing {}", Bytes(bytes)),
            bytes,
            counter: Arc::clone(&counter),
            run: &mut |open| fill(&plan, &mut filled, open),
            written: Some(Written {
                files: system.files,
                dir: &run.dir,
                path: &run.path,
                one_file: (layout.bytes() + bytes >= SECTOR as u64).then_some(&one_file),
            }),
        });
        let failure = timed.map(|mut timed| {
            record::written(&watched, self.began_ns, &timed, &mut phase);
            timed.done.failure.take()
        });
        for laid in filled.layout.files() {
            layout.add(laid.clone());
        }
        readers.append(&mut filled.readers);
        progress.troubles.append(&mut filled.troubles);
        let outcome = match failure {
            Err(error) => Err(error),
            Ok(Some(error @ (Error::Interrupted(_) | Error::Internal(_)))) => Err(error),
            // A drive that fails to flush is read all the same: what it holds is the question.
            Ok(Some(error)) => {
                progress.troubles.push(error.to_string());
                phase.error = Some(error.to_string());
                progress.is_written = true;
                Ok(())
            }
            Ok(None) => {
                if filled.is_done && progress.troubles.is_empty() {
                    phase.status = PhaseStatus::Ok;
                }
                phase.error = progress.troubles.first().cloned();
                progress.is_written = true;
                Ok(())
            }
        };
        if let Err(Error::Interrupted(_)) = outcome {
            phase.status = PhaseStatus::Interrupted;
        }
        if let Some(run) = document.runs.last_mut() {
            run.phases.push(phase);
        }
        outcome
    }

    fn read(
        &self,
        subject: &Subject<'_>,
        pattern: MakePattern<'_>,
        map: &mut Map,
        first: u64,
        after: &mut dyn FnMut(&Map, u64),
        document: &mut Document,
    ) -> Result<()> {
        let Around { system, observer, cancel, .. } = self.around;
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new("read", PhaseKind::Read) };
        self.under_way(document, &phase);
        let start = subject.sources.partition_point(|source| source.index < first);
        let sources = &subject.sources[start..];
        observer.on(Event::Waits("capacity: emptying caches".to_owned()));
        let prepared = evict_all(system, sources);
        let counter = Arc::new(Counter::default());
        let plan = Reading { system, sources, path: subject.path, pattern, counter: &counter, cancel };
        let bytes = sources.iter().map(|source| source.len).sum();
        let watched = self.watched();
        let timed: Result<Timed<'_>> = watched.time(Work {
            what: format!("reading {}", Bytes(bytes)),
            bytes,
            counter: Arc::clone(&counter),
            run: &mut |open| read(&plan, map, after, open),
            written: None,
        });
        let mut failure = None;
        let outcome = timed.map(|mut timed| {
            record::was_read(&watched, self.began_ns, &timed, &prepared, &mut phase);
            failure = timed.done.failure.take();
        });
        let second_looks = if failure.is_none() { look_again(&Reading { sources: &subject.sources, ..plan }, map) } else { (0, 0) };
        let capacity = record::capacity(&Known {
            map,
            layout: &subject.layout,
            is_whole: failure.is_none() && subject.is_written && outcome.is_ok(),
            nonce: subject.nonce,
            claimed_bytes: self.claimed_bytes(),
            second_looks,
            all_free: self.options.size.is_none(),
            troubles: &subject.troubles,
        });
        phase.integrity = Some(record::integrity(map, &subject.sources));
        let is_bad = capacity.is_bad();
        let sentence = capacity.sentence();
        phase.status = match &failure {
            None if outcome.is_ok() => PhaseStatus::Ok,
            Some(Error::Interrupted(_)) => PhaseStatus::Interrupted,
            _ => PhaseStatus::Failed,
        };
        phase.error = failure.as_ref().filter(|failure| !matches!(failure, Error::Interrupted(_))).map(ToString::to_string);
        phase.capacity = Some(capacity);
        if let Some(run) = document.runs.last_mut() {
            run.phases.push(phase);
            if is_bad {
                // Figures of a drive that loses data are worth nothing.
                run.phases.iter_mut().for_each(|phase| {
                    if phase.flags.iter().all(|flag| flag.code != flags::DATA_DIFFER.code) {
                        phase.flags.push(flags::DATA_DIFFER.flag(None, None));
                    }
                });
            }
        }
        outcome?;
        match failure {
            Some(failure) => Err(failure),
            None if is_bad => Err(Error::Differ(sentence)),
            None => subject.troubles.first().map_or(Ok(()), |trouble| Err(Error::Internal(trouble.clone()))),
        }
    }

    /// Removes what is not kept, and says in the record what is.
    fn close(&self, workspace: Workspace<'_>, run: RunDir, mut progress: Progress, measured: Result<()>, document: &mut Document) -> Result<()> {
        let Around { system, observer, .. } = self.around;
        let files = system.files;
        let stays = matches!(measured, Err(Error::Interrupted(_))) || self.options.keep;
        let directory = workspace.directory().to_path_buf();
        let mut kept = Vec::new();
        let mut removed = Ok(());
        if stays {
            let what = if matches!(measured, Err(Error::Interrupted(_))) {
                "test data: the same command goes on with them"
            } else {
                "test data: the same command reads them again"
            };
            kept.push(Kept { path: path_text(&run.path), bytes: None, what: what.to_owned() });
            if self.options.keep && !matches!(measured, Err(Error::Interrupted(_))) {
                // Another reading is one from the beginning.
                progress = Progress { run: run.id.clone(), planned_bytes: progress.planned_bytes, is_written: true, ..Progress::default() };
                removed = progress.save(self.results);
            }
        } else {
            observer.on(Event::Waits("removing the test data".to_owned()));
            let id = run.id.clone();
            removed = workspace.remove(run).and_then(|removal| removal.left.into_iter().next().map_or(Ok(()), |left| Err(left.reason)));
            removed = removed.and(Progress::forget(files, self.results, &id));
        }
        if let Err(left) = &removed {
            observer.on(Event::Notice(format!("the test data could not be removed: {left}; the file system may be damaged: make a new one")));
            kept.push(Kept {
                path: path_text(&directory.join(crate::drive::workspace::NAME)),
                bytes: None,
                what: "test data that could not be removed".to_owned(),
            });
        }
        let emptied = workspace.remove_if_empty();
        let flushed = files.open_root(&directory).and_then(|directory| files.sync_filesystem(&directory)).or_else(ignore_unsupported);
        let (answer, because) = unplug(self.drive, flushed.is_ok());
        document.aftermath = Some(Aftermath {
            remove_with: (!kept.is_empty()).then(|| clean_command(&directory)),
            kept,
            unplug: answer,
            unplug_because: Some(because.to_owned()),
        });
        measured.and(removed).and(emptied)
    }
}

fn unplug(drive: &Drive, flushed: bool) -> (Answer, &'static str) {
    match drive.medium {
        _ if drive.is_system_disk == Some(true) => (Answer::No, "this is the system disk"),
        Medium::Memory => (Answer::No, "it is this machine's memory"),
        _ if !flushed => (Answer::Unknown, "the last flush is not known to have reached it"),
        Medium::Block => (Answer::Yes, "everything is flushed; eject it first, as always"),
        _ => (Answer::Unknown, "what is behind it can't be seen"),
    }
}
