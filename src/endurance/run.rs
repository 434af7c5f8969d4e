//! Carries an endurance test out: plan, consent, static data, rounds until a limit or a loss, a last look at everything, record. What was written is removed.

use std::path::Path;
use std::sync::Arc;

use super::budget::{self, Limits, Set};
use super::round::{Bed, Failure, Files, ReadBack, title};
use crate::capacity::CHUNK;
use crate::capacity::bench::{self, Bench, Room};
use crate::capacity::pattern::Own;
use crate::capacity::read::{Source, sources};
use crate::drive::{RunDir, Workspace};
use crate::error::{Error, Result};
use crate::result::{self, Document, Endurance, EnduranceEnd, EnduranceLoss, EnduranceRounds, Phase, PhaseKind, flags};
use crate::scenario::events::Event;
use crate::scenario::run::Around;
use crate::units::{Bytes, duration};

/// What it is called.
pub(super) const NAME: &str = "endurance";
/// The record is kept no more often than this.
const KEEP_EVERY_NS: u64 = 20_000_000_000;
/// The phases: the static data, then the last round and the last look. All rounds are in `endurance.rounds`.
const STATIC: &str = "static";
const REWRITE: &str = "rewrite";
const REREAD: &str = "reread";
const LAST_LOOK: &str = "last look";

/// What the user may choose.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How large the static data are, and what a round writes over at most.
    pub size: Option<u64>,
    /// When to end.
    pub limits: Limits,
    /// Whether questions count as answered with yes.
    pub yes: bool,
    /// Whether names of host and user and serial numbers stay in the record.
    pub identify: bool,
    /// The user's own name for the test.
    pub label: Option<String>,
}

/// Tests the drive under a directory. The record is complete as far as things went, whatever the outcome.
pub fn run(directory: &Path, options: &Options, around: Around<'_>, copysim: result::Copysim) -> (Document, Result<()>) {
    bench::recorded(around, copysim, options.label.as_ref(), options.identify, |began_ns, document| {
        check(options)?;
        bench::on_drive_of(directory, around, began_ns, document, |bench, document| {
            let Limits { max_write, max_time } = options.limits;
            let max_time_ns = max_time.map(|time| time.as_nanos() as u64);
            bench.describe(
                NAME,
                serde_json::json!({ "size_bytes": options.size, "max_write_bytes": max_write, "max_time_ns": max_time_ns }),
                document,
            );
            Test { bench, options }.carry_out(document)
        })
    })
}

/// Refuses what can't be meant.
fn check(options: &Options) -> Result<()> {
    let Limits { max_write, max_time } = options.limits;
    let least = CHUNK as u64;
    if max_write.is_none() && max_time.is_none() {
        return Err(Error::Refused("writing without end wears any drive out: say --max-time (2h) or --max-write (500GB), or both".to_owned()));
    }
    if options.size.is_some_and(|size| size < least) {
        return Err(Error::Refused(format!("--size: at least {} are needed to say anything", Bytes(least))));
    }
    // Beside the static data there must be room for a file that is written over.
    let Set { bytes, file_bytes } = Set::of(options.size.unwrap_or(least));
    match max_write.filter(|limit| *limit < bytes + file_bytes) {
        Some(limit) => Err(Error::Refused(format!(
            "--max-write {} leaves nothing to write over beside {} of static data: say at least {}",
            Bytes(limit),
            Bytes(bytes),
            Bytes(bytes + file_bytes)
        ))),
        None => Ok(()),
    }
}

struct Test<'a> {
    bench: Bench<'a>,
    options: &'a Options,
}

/// What is known so far.
struct Course {
    phases: Vec<Phase>,
    endurance: Endurance,
}

impl Course {
    /// Keeps a phase, in place of the one of that name.
    fn keep(&mut self, phase: Phase) {
        match self.phases.iter_mut().find(|known| known.name == phase.name) {
            Some(known) => *known = phase,
            None => self.phases.push(phase),
        }
    }

    /// Puts all into the record.
    fn tell(&self, document: &mut Document) {
        let Some(run) = document.runs.last_mut() else { return };
        run.phases.clone_from(&self.phases);
        if self.endurance.lost_data() {
            // Figures of a drive that loses data are worth nothing.
            run.phases.iter_mut().for_each(|phase| phase.flags.push(flags::DATA_DIFFER.flag(None, None)));
        }
        if let Some(last) = run.phases.last_mut() {
            last.endurance = Some(self.endurance.clone());
        }
    }
}

impl Test<'_> {
    fn carry_out(&self, document: &mut Document) -> Result<()> {
        let workspace = self.bench.workspace()?;
        let prepared = self.bench.room(&workspace).and_then(|room| self.plan(&workspace, room)).and_then(|set| Ok((set, workspace.new_run()?)));
        let (set, run) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // The error is the one to tell.
                let _ = workspace.remove_if_empty();
                return Err(error);
            }
        };
        let measured = self.measure(&run, set, document);
        self.close(workspace, run, measured, document)
    }

    /// How large the static data are; tells what will be done, and asks where that is much.
    fn plan(&self, workspace: &Workspace<'_>, room: Room) -> Result<Set> {
        let Limits { max_write, max_time } = self.options.limits;
        let set = Set::of(budget::size(self.options.size, room.free_bytes, self.options.limits));
        self.bench.must_fit(2 * set.bytes, room.free_bytes, "static data and those that are written over take")?;
        let most = max_write.map(|limit| format!("up to {}", Bytes(limit)));
        let long = max_time.map(|limit| format!("for up to {}", humantime::format_duration(limit)));
        let limits = [most, long].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let what = format!("this writes to the drive {limits}, which wears it");
        self.bench.around.observer.on(Event::Notice(format!(
            "{what}; {} of static data and up to as much that is written over again and again lie below {} and are removed at the end",
            Bytes(set.bytes),
            workspace.path().display()
        )));
        if !self.options.yes {
            let time_ns = max_time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            let bytes = max_write.unwrap_or(0).max(2 * set.bytes);
            self.bench.ask(&what, time_ns, bytes, room.total_bytes, "a smaller --max-time, --max-write or --size")?;
        }
        Ok(set)
    }

    fn measure(&self, run: &RunDir, fixed: Set, document: &mut Document) -> Result<()> {
        document.runs.push(result::Run { index: 1, scenario: 0, order: 1, arm: None, phases: Vec::new() });
        let nonce = Own::nonce_of(&run.id);
        let Limits { max_write, max_time } = self.options.limits;
        let mut course = Course {
            phases: Vec::new(),
            endurance: Endurance {
                // What is seen before it has ended was cut short.
                ended_by: EnduranceEnd::Interrupted,
                nonce: format!("{nonce:016x}"),
                static_bytes: fixed.bytes,
                static_files: fixed.files(),
                round_bytes: 0,
                round_files: 0,
                rounds_good: 0,
                written_bytes: 0,
                read_bytes: 0,
                elapsed_ns: 0,
                max_write_bytes: max_write,
                max_time_ns: max_time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
                rounds: Vec::new(),
                loss: None,
            },
        };
        let bed = Bed { bench: self.bench, run, nonce };
        let ended = self.rounds(&bed, fixed, &mut course, document);
        match &ended {
            Err(Error::Interrupted(_)) => course.endurance.ended_by = EnduranceEnd::Interrupted,
            Err(_) if course.endurance.loss.is_none() => course.endurance.ended_by = EnduranceEnd::Failed,
            _ => {}
        }
        course.tell(document);
        ended
    }

    /// Static data, rounds, and a last look.
    fn rounds(&self, bed: &Bed<'_>, fixed: Set, course: &mut Course, document: &mut Document) -> Result<()> {
        let Around { system, save, .. } = self.bench.around;
        let clock = system.clock;
        let limits = self.options.limits;
        let began_ns = clock.now_ns();
        let mut saved_ns = began_ns;
        let files = Files { first: 0, bytes: fixed.bytes, file_bytes: fixed.file_bytes, round: 0, over: false };
        self.bench.under_way(document, &Phase::new(STATIC, PhaseKind::Write));
        let wrote = bed.write(&format!("{NAME}, static data"), STATIC, files)?;
        let pace = (wrote.phase.bytes, wrote.phase.window.durable_ns.or(wrote.phase.window.returned_ns).unwrap_or(0));
        course.endurance.written_bytes = wrote.phase.bytes;
        course.endurance.elapsed_ns = clock.now_ns() - began_ns;
        course.keep(wrote.phase);
        course.stop_at(wrote.failure, 0)?;
        let kept = sources(system, bed.run, &wrote.filled.layout, wrote.filled.readers);
        let set = Set::of(budget::round_bytes(fixed.bytes, pace.0, pace.1));
        (course.endurance.round_bytes, course.endurance.round_files) = (set.bytes, set.files());
        // The round in which each file was written, by its number.
        let mut of_file = vec![0; kept.len()];
        let mut rewritten: Vec<Source> = Vec::new();
        for round in 1.. {
            let bytes = budget::next(set, course.endurance.written_bytes, limits);
            let time_is_over = limits.max_time.is_some_and(|limit| u128::from(clock.now_ns() - began_ns) >= limit.as_nanos());
            if round > 1 && time_is_over || bytes == 0 {
                course.endurance.ended_by = if bytes == 0 { EnduranceEnd::MaxWrite } else { EnduranceEnd::MaxTime };
                break;
            }
            let (percent, left) = budget::progress(course.endurance.written_bytes, clock.now_ns() - began_ns, limits);
            let title = title(round, percent, left.filter(|_| round > 1).map(duration));
            let files = Files { first: kept.len() as u64, bytes, file_bytes: set.file_bytes, round, over: round > 1 };
            course.tell(document);
            self.bench.under_way(document, &Phase::new(REWRITE, PhaseKind::Write));
            let wrote = bed.write(&title, REWRITE, files)?;
            course.endurance.written_bytes += wrote.phase.bytes;
            course.endurance.elapsed_ns = clock.now_ns() - began_ns;
            let mut numbers = EnduranceRounds {
                first: round,
                count: 1,
                written_bytes: wrote.phase.bytes,
                write_ns: wrote.phase.window.durable_ns.or(wrote.phase.window.returned_ns).unwrap_or(0),
                read_bytes: 0,
                read_ns: 0,
                bad_bytes: 0,
                kernel_messages: messages(&wrote.phase),
            };
            course.keep(wrote.phase);
            if wrote.failure.is_some() {
                course.endurance.add(numbers);
                course.stop_at(wrote.failure, round)?;
            }
            let written = sources(system, bed.run, &wrote.filled.layout, wrote.filled.readers);
            of_file.resize(of_file.len().max(kept.len() + written.len()), 0);
            of_file[kept.len()..kept.len() + written.len()].fill(round);
            let looked: Vec<&Source> = kept[budget::sample(round, kept.len())].iter().chain(&written).collect();
            let back = bed.read(&title, REREAD, &looked, &Arc::from(of_file.as_slice()))?;
            course.endurance.elapsed_ns = clock.now_ns() - began_ns;
            (numbers.read_bytes, numbers.bad_bytes) = (back.bytes, back.bad_bytes);
            numbers.read_ns = back.phase.window.returned_ns.unwrap_or(0);
            numbers.kernel_messages = numbers.kernel_messages.zip(messages(&back.phase)).map(|(a, b)| a + b);
            course.endurance.add(numbers);
            course.judge(back, round)?;
            course.endurance.rounds_good = round;
            // Files that this round did not come to stay as they are.
            let rest = rewritten.split_off(written.len().min(rewritten.len()));
            rewritten = written;
            rewritten.extend(rest);
            if clock.now_ns() - saved_ns >= KEEP_EVERY_NS {
                saved_ns = clock.now_ns();
                course.tell(document);
                save(document)?;
            }
        }
        let all: Vec<&Source> = kept.iter().chain(&rewritten).collect();
        let back = bed.read(&format!("{NAME}, last look at everything"), LAST_LOOK, &all, &Arc::from(of_file.as_slice()))?;
        course.endurance.elapsed_ns = clock.now_ns() - began_ns;
        let rounds = course.endurance.rounds_good;
        course.judge(back, rounds)
    }

    /// Removes what was written.
    fn close(&self, workspace: Workspace<'_>, run: RunDir, measured: Result<()>, document: &mut Document) -> Result<()> {
        self.bench.around.observer.on(Event::Waits("removing the test data".to_owned()));
        let removed = workspace.remove(run).and_then(|removal| removal.left.into_iter().next().map_or(Ok(()), |left| Err(left.reason)));
        measured.and(self.bench.leave(workspace, removed, Vec::new(), document))
    }
}

impl Course {
    /// Ends the test where a pass failed: an error of the drive is a loss.
    fn stop_at(&mut self, failure: Option<Failure>, round: u64) -> Result<()> {
        match failure {
            None => Ok(()),
            Some(Failure::Other(error)) => Err(error),
            Some(Failure::Drive(error)) => {
                self.lost(
                    EnduranceLoss {
                        round,
                        written_bytes: 0,
                        elapsed_ns: 0,
                        found: None,
                        error: Some(error.to_string()),
                        is_static: round == 0,
                        file: None,
                        first_byte: None,
                        stale_round: None,
                        by_found: std::collections::BTreeMap::new(),
                        ranges: Vec::new(),
                        second_read: None,
                        blame: None,
                    },
                    round,
                );
                Err(error)
            }
        }
    }

    /// Takes what was read, and ends the test where it is not what was written.
    fn judge(&mut self, back: ReadBack, round: u64) -> Result<()> {
        self.endurance.read_bytes += back.bytes;
        self.keep(back.phase);
        if let Some(loss) = back.loss {
            self.lost(loss, round);
            return Err(Error::Differ(self.endurance.sentence()));
        }
        self.stop_at(back.failure, round)
    }

    fn lost(&mut self, loss: EnduranceLoss, round: u64) {
        let Endurance { written_bytes, elapsed_ns, .. } = self.endurance;
        self.endurance.ended_by = EnduranceEnd::Loss;
        self.endurance.loss = Some(EnduranceLoss { round, written_bytes, elapsed_ns, ..loss });
    }
}

/// What the kernel reported in a phase, where its log could be read.
fn messages(phase: &Phase) -> Option<u64> {
    phase.kernel_log.as_ref().map(|messages| messages.len() as u64)
}
