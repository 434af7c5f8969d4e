//! Reads test data again, cold, and judges every sector. What can't be read is noted and the rest is read all the same.

use std::io;
use std::path::Path;

use super::crew::{Crew, with_crew};
use super::fill::{is_final, name_of};
use super::layout::{Laid, Layout};
use super::map::{Map, Range, What};
use super::pattern::Pattern;
use super::{CHUNK, FILE_SPAN, SECTOR};
use crate::cache::evict::{Prepared, evict_open};
use crate::drive::RunDir;
use crate::error::{Context, Error, Side};
use crate::measure::calls::{Calls, Op};
use crate::platform::{Handle, System};
use crate::progress::{Cancel, Counter};
use crate::result::{LatencyOp, Warmth};
use crate::scenario::stage::makers;
use crate::workload::copy::{Copied, Slow};

/// After a failed read so much is left out; twice as much after each further one in a row, up to a chunk.
const LEAST_SKIP: u64 = 4096;
/// After so many failed reads in a row the rest of the file is left out: a drive may take half a minute for each.
const FAILURES: u32 = 256;
/// So many bad places are read once more, so much of each.
const SECOND_LOOKS: usize = 64;
const SECOND_BYTES: u64 = 64 << 10;
/// So many of the slowest files are kept.
const SLOWEST: usize = 20;

/// A file of test data.
pub struct Source {
    /// Its number.
    pub index: u64,
    /// What it is called.
    pub name: String,
    /// Bytes of test data in it.
    pub len: u64,
    /// The open file, or why it can't be opened.
    pub file: io::Result<Handle>,
}

/// The files of a layout, by their readers where these are open already.
#[must_use]
pub fn sources(system: System<'_>, run: &RunDir, layout: &Layout, mut readers: Vec<(u64, Handle)>) -> Vec<Source> {
    let source = |laid: &Laid| {
        let name = name_of(laid.index);
        let open = readers.iter().position(|(index, _)| *index == laid.index).map(|at| readers.swap_remove(at).1);
        let file = open.map_or_else(|| system.files.open(&run.dir, Path::new(&name)), Ok);
        Source { index: laid.index, name, len: laid.len, file }
    };
    layout.files().iter().map(source).collect()
}

/// Makes the data that are expected; each thread has one of its own.
pub type MakePattern<'a> = &'a (dyn Fn() -> Box<dyn Pattern> + Sync);

/// What is to be read.
pub struct Reading<'a> {
    /// The system.
    pub system: System<'a>,
    /// The files in order.
    pub sources: &'a [&'a Source],
    /// What they are called together.
    pub path: &'a Path,
    /// Whose data.
    pub pattern: MakePattern<'a>,
    /// How far it is.
    pub counter: &'a Counter,
    /// Whether to stop.
    pub cancel: &'a Cancel,
}

/// Evicts all files from this machine's memory and looks at what stayed. Names and attributes stay on purpose: files are open, since a fake may have
/// destroyed what leads to them.
#[must_use]
pub fn evict_all(system: System<'_>, sources: &[&Source]) -> Prepared {
    let open: Vec<(&Handle, u64)> = sources.iter().filter_map(|source| Some((source.file.as_ref().ok()?, source.len))).collect();
    evict_open(system.files, &open)
}

/// Reads all files and judges them. `after` is called when a file is judged to its end, with its number; the map may know of later ones already.
pub fn read<'c>(plan: &Reading<'c>, map: &mut Map, after: &mut dyn FnMut(&Map, u64), open: &mut dyn FnMut()) -> Copied<'c> {
    let clock = plan.system.clock;
    let pattern = plan.pattern;
    let worker = || {
        let (mut pattern, mut expected) = (pattern(), vec![0; CHUNK]);
        move |position: u64, data: &mut [u8]| {
            let expected = &mut expected[..data.len()];
            pattern.fill(position, expected);
            let mut found = Map::default();
            found.judge(position, data, expected, &mut |position, sector, expected| pattern.judge(position, sector, expected));
            found
        }
    };
    let mut reader = Reader { plan, map, after, judged: None, calls: Calls::new(clock), files: 0, bytes: 0 };
    let mut slowest = Vec::new();
    let mut first_done_ns = None;
    let mut start_ns = 0;
    let failure = with_crew(makers(), worker, |crew| {
        open();
        start_ns = clock.now_ns();
        for source in plan.sources {
            let began_ns = clock.now_ns();
            if let Err(failure) = reader.file(source, crew) {
                reader.drain(crew);
                return Some(failure);
            }
            let now = clock.now_ns();
            reader.calls.record(LatencyOp::File, now - began_ns);
            first_done_ns.get_or_insert(now - start_ns);
            slowest.push(Slow { ns: now - began_ns, path: source.name.clone(), bytes: source.len });
            plan.counter.add_file();
        }
        reader.drain(crew);
        if let Some(last) = reader.judged {
            (reader.after)(reader.map, last);
        }
        None
    });
    slowest.sort_by(|a, b| b.cmp(a));
    slowest.truncate(SLOWEST);
    let Reader { calls, files, bytes, .. } = reader;
    Copied { calls, thread_ns: clock.now_ns() - start_ns, files, bytes, first_done_ns, slowest, storage_read_bytes: None, failure }
}

struct Reader<'p, 'c> {
    plan: &'p Reading<'c>,
    map: &'p mut Map,
    after: &'p mut dyn FnMut(&Map, u64),
    /// The file of which something was judged last.
    judged: Option<u64>,
    calls: Calls<'c>,
    files: u64,
    bytes: u64,
}

impl Reader<'_, '_> {
    fn file(&mut self, source: &Source, crew: &mut Crew<Map>) -> Result<(), Error> {
        let Reading { system, counter, cancel, path, .. } = *self.plan;
        let start = source.index * FILE_SPAN;
        let unreadable = |reader: &mut Self, crew: &mut Crew<Map>, offset: u64, len: u64| {
            // Ranges come in order: first what was read before.
            reader.drain(crew);
            reader.note(Range { start: start + offset, len, what: What::Unreadable });
            counter.add_bytes(len);
        };
        let file = match &source.file {
            Ok(file) => file,
            Err(_) => {
                unreadable(self, crew, 0, source.len);
                return Ok(());
            }
        };
        // Advice: without it reading goes on.
        let _ = system.files.advise_sequential(file);
        let mut offset = 0;
        let mut skip = LEAST_SKIP;
        let mut failures = 0;
        while offset < source.len {
            cancel.check()?;
            let wanted = (source.len - offset).min(CHUNK as u64);
            let mut buffer = crew.buffer();
            let (got, failure) = self.chunk(file, &mut buffer[..wanted as usize], offset);
            // A sector that was read in part was not read.
            let got = got / SECTOR * SECTOR;
            if got > 0 {
                if crew.is_full() {
                    self.take(crew);
                }
                crew.give(start + offset, buffer, got);
                counter.add_bytes(got as u64);
                (offset, skip, failures) = (offset + got as u64, LEAST_SKIP, 0);
            } else {
                crew.recycle(buffer);
            }
            match failure {
                Some(error) if is_final(&error) => return Err(error).during("read", Side::Target, path.join(&source.name)),
                Some(_) => {
                    failures += 1;
                    let left = source.len - offset;
                    let lost = if failures >= FAILURES { left } else { skip.min(left) };
                    unreadable(self, crew, offset, lost);
                    (offset, skip) = (offset + lost, (skip * 2).min(CHUNK as u64));
                }
                // The file ends before its time.
                None if (got as u64) < wanted => {
                    unreadable(self, crew, offset, source.len - offset);
                    break;
                }
                None => {}
            }
        }
        self.files += 1;
        // Nobody reads it again soon.
        let _ = system.files.evict(file);
        Ok(())
    }

    /// Reads as much of a chunk as can be had, and why not all.
    fn chunk(&mut self, file: &Handle, buffer: &mut [u8], offset: u64) -> (usize, Option<io::Error>) {
        let files = self.plan.system.files;
        let mut got = 0;
        while got < buffer.len() {
            match self.calls.time(Op::Read, || files.read_at(file, &mut buffer[got..], offset + got as u64)) {
                Ok(0) => break,
                Ok(read) => {
                    (self.calls.reads, self.calls.read_bytes) = (self.calls.reads + 1, self.calls.read_bytes + read as u64);
                    got += read;
                }
                Err(error) => return (got, Some(error)),
            }
        }
        (got, None)
    }

    fn take(&mut self, crew: &mut Crew<Map>) -> bool {
        let Some(piece) = crew.take() else { return false };
        self.bytes += piece.len as u64;
        self.begins(piece.position);
        self.map.append(&piece.result);
        crew.recycle(piece.buffer);
        true
    }

    /// Tells of a file that is over when something of another follows.
    fn begins(&mut self, position: u64) {
        let file = position / FILE_SPAN;
        if let Some(before) = self.judged.replace(file).filter(|before| *before != file) {
            (self.after)(self.map, before);
        }
    }

    fn note(&mut self, range: Range) {
        self.begins(range.start);
        self.map.add(range);
    }

    fn drain(&mut self, crew: &mut Crew<Map>) {
        while self.take(crew) {}
    }
}

/// What reading bad places again showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SecondLooks {
    /// Places that were read again, twice, from the drive.
    pub looked: u64,
    /// Those whose bytes were right both times.
    pub right: u64,
    /// Those whose bytes, or failures, were the same both times.
    pub same: u64,
}

/// Reads bad places again, twice, each time cold. A fault of the medium stays as it is; one of a cable or of this machine's memory seldom does.
#[must_use]
pub fn look_again(plan: &Reading<'_>, map: &Map) -> SecondLooks {
    let bad: Vec<&Range> = map.ranges().iter().filter(|range| !matches!(range.what, What::Good | What::Mixed { .. })).collect();
    let mut looks = SecondLooks::default();
    let mut pattern = (plan.pattern)();
    for range in bad.iter().step_by(bad.len().div_ceil(SECOND_LOOKS).max(1)) {
        if plan.cancel.signal().is_some() {
            break;
        }
        let (index, offset) = (range.start / FILE_SPAN, range.start % FILE_SPAN);
        let Some(source) = plan.sources.iter().find(|source| source.index == index) else { continue };
        let Ok(file) = source.file.as_ref() else { continue };
        let len = range.len.min(SECOND_BYTES) as usize;
        let mut expected = vec![0; len];
        pattern.fill(range.start, &mut expected);
        // Without this the pages of the reading before would answer.
        let read_cold = || {
            if evict_open(plan.system.files, &[(file, source.len)]).data == Warmth::Warm {
                return None;
            }
            let mut data = vec![0; len];
            let mut got = 0;
            while got < len {
                match plan.system.files.read_at(file, &mut data[got..], offset + got as u64) {
                    Ok(read) if read > 0 => got += read,
                    _ => break,
                }
            }
            data.truncate(got);
            Some(data)
        };
        let (Some(first), Some(second)) = (read_cold(), read_cold()) else { continue };
        looks.looked += 1;
        looks.right += u64::from(first == expected && second == expected);
        looks.same += u64::from(first == second);
    }
    looks
}
