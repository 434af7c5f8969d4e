//! Carries a check out: workspace, consent, writing, reading, conclusion, record. Whatever ends it, what was measured is kept and what was written is removed, or
//! stays for the same command to go on with.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::bench::{self, Bench};
use super::fill::{Fill, Filled, fill, index_of, name_of, part_name_of, places};
use super::h2w::{H2w, number_of};
use super::layout::{Laid, Layout};
use super::map::Map;
use super::pattern::Own;
use super::progress::Progress;
use super::read::{MakePattern, Reading, SecondLooks, Source, evict_all, look_again, read, sources};
use super::record::{self, Known};
use super::{CHUNK, FILE_SPAN, SECTOR};
use crate::cache::flush::Written;
use crate::drive::{Removal, RunDir, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::path_text::path_text;
use crate::platform::{Kind, ignore_unsupported};
use crate::progress::Counter;
use crate::result::mask::clean_command;
use crate::result::{self, Aftermath, Document, Kept, Phase, PhaseKind, PhaseStatus, flags};
use crate::scenario::account;
use crate::scenario::consent;
use crate::scenario::events::Event;
use crate::scenario::run::Around;
use crate::scenario::window::{Timed, Work};
use crate::units::{Bytes, duration};

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
    bench::recorded(around, copysim, options.label.as_ref(), options.identify, |began_ns, document| {
        if options.size.is_some_and(|size| size < CHUNK as u64) {
            return Err(Error::Refused(format!("--size: at least {} are needed to say anything", Bytes(CHUNK as u64))));
        }
        bench::on_drive_of(directory, around, began_ns, document, |bench, document| {
            let foreign = h2w_files(around, &bench.drive.path)?;
            if options.check && foreign.is_empty() {
                return Err(Error::Refused(format!("there are no files of F3 or h2testw (1.h2w, 2.h2w, …) in {}", bench.drive.path.display())));
            }
            let Options { size, check, keep, .. } = options;
            bench.describe("capacity", serde_json::json!({ "size_bytes": size, "check": check, "keep": keep }), document);
            Check { options, results, bench }.carry_out(foreign, document)
        })
    })
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

/// One check.
struct Check<'a> {
    options: &'a Options,
    results: &'a Path,
    bench: Bench<'a>,
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

impl Check<'_> {
    fn carry_out(&self, foreign: Vec<(u64, OsString)>, document: &mut Document) -> Result<()> {
        if foreign.is_empty() {
            return self.check_own(document);
        }
        if !self.options.check {
            self.bench.around.observer.on(Event::Notice(format!(
                "{} holds files of F3 or h2testw: they are checked and nothing is written; remove them to have the drive filled",
                self.bench.drive.path.display()
            )));
        }
        self.check_foreign(foreign, document)
    }

    fn check_foreign(&self, found: Vec<(u64, OsString)>, document: &mut Document) -> Result<()> {
        let files = self.bench.around.system.files;
        let dir = files.open_root(&self.bench.drive.path).during("open", Side::Target, &self.bench.drive.path)?;
        let mut subject = Subject {
            sources: Vec::new(),
            layout: Layout::default(),
            path: &self.bench.drive.path,
            nonce: None,
            is_written: true,
            troubles: Vec::new(),
        };
        for (index, name) in found {
            let file = files.open(&dir, Path::new(&name));
            let len = files.stat_at(&dir, Path::new(&name)).map_or(0, |stat| stat.len).min(FILE_SPAN) / SECTOR as u64 * SECTOR as u64;
            let stretches = file.as_ref().map(|file| places(self.bench.around.system, file, self.bench.device_start)).unwrap_or_default();
            subject.layout.add(Laid { index, len, stretches });
            subject.sources.push(Source { index, name: name.to_string_lossy().into_owned(), len, file });
        }
        document.runs.push(result::Run { index: 1, scenario: 0, order: 1, arm: None, phases: Vec::new() });
        let mut map = Map::default();
        let read = self.read(&subject, &|| Box::new(H2w), &mut map, 0, &mut |_, _| {}, document);
        let (unplug, because) = account::unplug(self.bench.drive, true, document);
        document.aftermath = Some(Aftermath { kept: Vec::new(), remove_with: None, unplug, unplug_because: Some(because.to_owned()) });
        read
    }

    fn check_own(&self, document: &mut Document) -> Result<()> {
        let workspace = self.bench.workspace()?;
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
        let observer = self.bench.around.observer;
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
                Some(_) => format!("going on with {}, which was interrupted (to begin anew: {})", run.id, clean_command(&self.bench.drive.path)),
                None => format!("going on with {}, which was interrupted; what it had read is not known and is read again", run.id),
            }));
            let planned_bytes = self.options.size.unwrap_or(u64::MAX);
            let progress = progress.unwrap_or_else(|| Progress { run: run.id.clone(), planned_bytes, ..Progress::default() });
            return Ok((run, progress));
        }
        let room = self.bench.room(workspace)?;
        let Some(size) = self.options.size.or(room.free_bytes) else {
            return Err(Error::Refused(format!("{} does not say how much space it has: say --size", self.bench.drive.path.display())));
        };
        self.bench.must_fit(size, room.free_bytes, "--size says")?;
        if size < CHUNK as u64 {
            return Err(Error::Refused(format!(
                "{} has {} free: there is nothing to fill, so nothing can be said",
                self.bench.drive.path.display(),
                Bytes(size)
            )));
        }
        if let Some(limit) = self.options.max_write.filter(|&limit| size > limit) {
            return Err(Error::Refused(format!("{} would be written, more than --max-write {}", Bytes(size), Bytes(limit))));
        }
        self.ask(workspace, size, room.total_bytes)?;
        let run = workspace.new_capacity_check()?;
        let progress = Progress { run: run.id.clone(), planned_bytes: size, ..Progress::default() };
        Ok((run, progress))
    }

    /// Asks where it takes long or fills much.
    fn ask(&self, workspace: &Workspace<'_>, size: u64, total_bytes: Option<u64>) -> Result<()> {
        let Around { system, observer, cancel, .. } = self.bench.around;
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
        let what = format!("this takes about {} and fills {} of the drive's space", duration(time_ns), Bytes(size));
        self.bench.ask(&what, time_ns, size, total_bytes, "--size")
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
        let subject = Subject {
            sources: sources(self.bench.around.system, run, &layout, readers),
            layout: layout.clone(),
            path: &run.path,
            nonce: Some(nonce),
            is_written: progress.is_written,
            troubles: progress.troubles.clone(),
        };
        let first = progress.last_read.map_or(0, |last| last + 1);
        let mut map = std::mem::take(&mut progress.map);
        let mut kept_ns = self.bench.around.system.clock.now_ns();
        let read = self.read(
            &subject,
            &|| Box::new(Own::of(nonce)),
            &mut map,
            first,
            &mut |map, index| {
                progress.last_read = Some(index);
                let now = self.bench.around.system.clock.now_ns();
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
        let files = self.bench.around.system.files;
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
            let stretches = file.as_ref().map(|file| places(self.bench.around.system, file, self.bench.device_start)).unwrap_or_default();
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
        let Around { system, cancel, .. } = self.bench.around;
        // What was written before must not be flushed amid the test data, nor after them: a fake might put it in their place.
        system.files.sync_filesystem(&run.dir).or_else(ignore_unsupported).during("flush", Side::Target, &run.path)?;
        let space = system.files.space(&run.dir).unwrap_or_default();
        let bytes = progress.planned_bytes.saturating_sub(layout.bytes()).min(space.available_bytes.unwrap_or(u64::MAX));
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new("write", PhaseKind::Write) };
        self.bench.under_way(document, &phase);
        let counter = Arc::new(Counter::default());
        let first = layout.files().last().map_or(0, |last| last.index + 1);
        let plan = Fill {
            system,
            run,
            nonce,
            first,
            file_bytes: (progress.planned_bytes.min(layout.bytes() + bytes) / PARTS).next_multiple_of(CHUNK as u64).clamp(CHUNK as u64, FILE_SPAN),
            bytes,
            over: false,
            device_start: self.bench.device_start,
            counter: &counter,
            cancel,
        };
        let mut filled = Filled::default();
        let watched = self.bench.watched("capacity");
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
            record::written(&watched, self.bench.began_ns, &timed, &mut phase);
            timed.done.failure.take()
        });
        for laid in filled.layout.files() {
            layout.add(laid.clone());
        }
        readers.append(&mut filled.readers);
        progress.troubles.extend(filled.troubles.iter().map(ToString::to_string));
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
        let Around { system, observer, cancel, .. } = self.bench.around;
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new("read", PhaseKind::Read) };
        self.bench.under_way(document, &phase);
        let all: Vec<&Source> = subject.sources.iter().collect();
        let sources = &all[all.partition_point(|source| source.index < first)..];
        observer.on(Event::Waits("capacity: emptying caches".to_owned()));
        let prepared = evict_all(system, sources);
        let counter = Arc::new(Counter::default());
        let plan = Reading { system, sources, path: subject.path, pattern, counter: &counter, cancel };
        let bytes = sources.iter().map(|source| source.len).sum();
        let watched = self.bench.watched("capacity");
        let timed: Result<Timed<'_>> = watched.time(Work {
            what: format!("reading {}", Bytes(bytes)),
            bytes,
            counter: Arc::clone(&counter),
            run: &mut |open| read(&plan, map, after, open),
            written: None,
        });
        let mut failure = None;
        let outcome = timed.map(|mut timed| {
            record::was_read(&watched, self.bench.began_ns, &timed, &prepared, &mut phase);
            failure = timed.done.failure.take();
        });
        let second_looks = if failure.is_none() { look_again(&Reading { sources: &all, ..plan }, map) } else { SecondLooks::default() };
        let capacity = record::capacity(&Known {
            map,
            layout: &subject.layout,
            is_whole: failure.is_none() && subject.is_written && outcome.is_ok(),
            nonce: subject.nonce,
            claimed_bytes: self.bench.claimed_bytes(),
            second_looks,
            all_free: self.options.size.is_none(),
            troubles: &subject.troubles,
        });
        phase.integrity = Some(record::integrity(map, &all, subject.nonce.is_some()));
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
        let Around { system, observer, .. } = self.bench.around;
        let files = system.files;
        let stays = matches!(measured, Err(Error::Interrupted(_))) || self.options.keep;
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
        measured.and(self.bench.leave(workspace, removed, kept, document))
    }
}
