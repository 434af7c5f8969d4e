//! One pass of writing, and one of reading again, each in a window of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::run::NAME;
use crate::cache::flush::Written;
use crate::capacity::bench::Bench;
use crate::capacity::fill::{Fill, Filled, fill, name_of};
use crate::capacity::layout::Layout;
use crate::capacity::map::{Map, Range, What, found};
use crate::capacity::pattern::{Generations, Pattern, Sector, generation_of};
use crate::capacity::read::{Reading, Source, evict_all, look_again, read};
use crate::capacity::{FILE_SPAN, SECTOR, record};
use crate::drive::RunDir;
use crate::error::{Error, Result};
use crate::path_text::path_text;
use crate::progress::Counter;
use crate::result::{Blame, EnduranceLoss, Found, Phase, PhaseKind, PhaseStatus, SecondRead};
use crate::scenario::window::Work;
use crate::units::Bytes;

/// Ranges of a loss in the record.
const RANGES: usize = 100;

/// Where all is done.
pub(super) struct Bed<'a> {
    pub bench: Bench<'a>,
    pub run: &'a RunDir,
    /// The nonce of the first data; those of a round have the one so many further on.
    pub nonce: u64,
}

/// Files that are to be written.
#[derive(Clone, Copy)]
pub(super) struct Files {
    /// The number of the first.
    pub first: u64,
    pub bytes: u64,
    pub file_bytes: u64,
    /// The round that they are written in; 0 for the static ones.
    pub round: u64,
    /// Whether they are there and are written over.
    pub over: bool,
}

/// What came of writing.
pub(super) struct Wrote {
    pub phase: Phase,
    pub filled: Filled,
    pub failure: Option<Failure>,
}

/// What ended a pass.
pub(super) enum Failure {
    /// The drive answered with an error.
    Drive(Error),
    /// Something else, a limit of this machine among it.
    Other(Error),
}

impl Failure {
    fn of(error: Error) -> Self {
        if matches!(&error, Error::Io(failure) if !failure.is_shortage()) { Self::Drive(error) } else { Self::Other(error) }
    }
}

/// What came of reading.
pub(super) struct ReadBack {
    pub phase: Phase,
    pub bytes: u64,
    pub bad_bytes: u64,
    pub loss: Option<EnduranceLoss>,
    pub failure: Option<Failure>,
}

impl Bed<'_> {
    /// Writes files and flushes them.
    pub(super) fn write(&self, title: &str, phase_name: &str, files: Files) -> Result<Wrote> {
        let around = self.bench.around;
        let counter = Arc::new(Counter::default());
        let plan = Fill {
            system: around.system,
            run: self.run,
            nonce: Generations::nonce_of(self.nonce, files.round),
            first: files.first,
            file_bytes: files.file_bytes,
            bytes: files.bytes,
            over: files.over,
            device_start: self.bench.device_start,
            counter: &counter,
            cancel: around.cancel,
        };
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new(phase_name, PhaseKind::Write) };
        let mut filled = Filled::default();
        let watched = self.bench.watched(title);
        let one_file = name_of(files.first);
        let mut timed = watched.time(Work {
            what: format!("writing {}", Bytes(files.bytes)),
            bytes: files.bytes,
            counter: Arc::clone(&counter),
            run: &mut |open| fill(&plan, &mut filled, open),
            written: Some(Written { files: around.system.files, dir: &self.run.dir, path: &self.run.path, one_file: Some(&one_file) }),
        })?;
        record::written(&watched, self.bench.began_ns, &timed, &mut phase);
        let trouble = (!filled.troubles.is_empty()).then(|| filled.troubles.swap_remove(0));
        let failure = match (timed.done.failure.take(), trouble) {
            (Some(error @ Error::Interrupted(_)), _) => Some(Failure::Other(error)),
            (_, Some(trouble)) => Some(Failure::of(trouble.into())),
            (Some(error), None) => Some(Failure::of(error)),
            (None, None) if phase.bytes < files.bytes => {
                let words = format!("{} is full: only {} of {} could be written", path_text(&self.run.path), Bytes(phase.bytes), Bytes(files.bytes));
                Some(Failure::Other(Error::Internal(words)))
            }
            (None, None) => None,
        };
        end(&mut phase, failure.as_ref());
        Ok(Wrote { phase, filled, failure })
    }

    /// Reads files again, cold, and judges them.
    pub(super) fn read(&self, title: &str, phase_name: &str, sources: &[&Source], rounds: &Arc<[u64]>) -> Result<ReadBack> {
        let around = self.bench.around;
        let prepared = evict_all(around.system, sources);
        let counter = Arc::new(Counter::default());
        let nonce = self.nonce;
        let pattern = || -> Box<dyn Pattern> { Box::new(Generations::of(nonce, Arc::clone(rounds))) };
        let plan = Reading { system: around.system, sources, path: &self.run.path, pattern: &pattern, counter: &counter, cancel: around.cancel };
        let bytes = sources.iter().map(|source| source.len).sum();
        let mut phase = Phase { status: PhaseStatus::Failed, ..Phase::new(phase_name, PhaseKind::Read) };
        let mut map = Map::default();
        let watched = self.bench.watched(title);
        let mut timed = watched.time(Work {
            what: format!("reading {}", Bytes(bytes)),
            bytes,
            counter: Arc::clone(&counter),
            run: &mut |open| read(&plan, &mut map, &mut |_, _| {}, open),
            written: None,
        })?;
        record::was_read(&watched, self.bench.began_ns, &timed, &prepared, &mut phase);
        phase.integrity = Some(record::integrity(&map, sources, true));
        let failure = timed.done.failure.take().map(Failure::of);
        end(&mut phase, failure.as_ref());
        let newest = rounds.iter().copied().max().unwrap_or(0);
        let loss = record::bad(&map).next().map(|first| self.loss(&plan, &map, first, newest, rounds));
        Ok(ReadBack { phase, bytes: map.bytes(), bad_bytes: map.bytes() - map.bytes_of(Found::Good), loss, failure })
    }

    /// What was lost, by the first of it; when is for the caller to say.
    fn loss(&self, plan: &Reading<'_>, map: &Map, first: Range, newest: u64, rounds: &[u64]) -> EnduranceLoss {
        let (index, first_byte) = Layout::file_of(first.start);
        let looks = look_again(plan, map);
        let hidden = self.bench.drive.answers_elsewhere().is_some();
        let (second_read, blame) = match (looks.looked, looks.right) {
            (0, _) => (SecondRead::NotPossible, Blame::Unknown),
            (_, 0) if hidden => (SecondRead::NotPossible, Blame::Unknown),
            (looked, 0) if looks.same == looked => (SecondRead::Agrees, Blame::Target),
            // A weak sector reads at the second try: that is no sign of this machine.
            (looked, right) if first.what == What::Unreadable => {
                (if looked == right { SecondRead::DiffersAsExpected } else { SecondRead::DiffersOther }, Blame::Unknown)
            }
            (looked, right) if looked == right => (SecondRead::DiffersAsExpected, Blame::Host),
            _ => (SecondRead::DiffersOther, Blame::Host),
        };
        let stale_round = (first.what == What::Stale).then(|| sector_at(plan, first.start)).flatten();
        EnduranceLoss {
            round: 0,
            written_bytes: 0,
            elapsed_ns: 0,
            found: Some(found(first.what)),
            error: None,
            is_static: rounds.get(index as usize) == Some(&0),
            file: Some(name_of(index)),
            first_byte: Some(first_byte),
            stale_round: stale_round.and_then(|sector| generation_of(self.nonce, newest, &sector)),
            by_found: map.totals().iter().copied().filter(|(found, _)| *found != Found::Good).collect::<BTreeMap<_, _>>(),
            ranges: record::ranges(map, name_of).take(RANGES).collect(),
            second_read: Some(second_read),
            blame: Some(blame),
        }
    }
}

fn end(phase: &mut Phase, failure: Option<&Failure>) {
    match failure {
        None => phase.status = PhaseStatus::Ok,
        Some(Failure::Other(Error::Interrupted(_))) => phase.status = PhaseStatus::Interrupted,
        Some(Failure::Drive(error) | Failure::Other(error)) => phase.error = Some(error.to_string()),
    }
}

/// The sector that is at a position.
fn sector_at(plan: &Reading<'_>, position: u64) -> Option<Sector> {
    let source = plan.sources.iter().find(|source| source.index == position / FILE_SPAN)?;
    let mut sector = [0; SECTOR];
    let read = plan.system.files.read_at(source.file.as_ref().ok()?, &mut sector, position % FILE_SPAN).ok()?;
    (read == SECTOR).then_some(sector)
}

/// What the work is called before its round.
pub(super) fn title(round: u64, percent: u64, left: Option<String>) -> String {
    let left = left.map_or_else(String::new, |left| format!(", about {left} left"));
    format!("{NAME}, round {round} ({percent} %{left})")
}
