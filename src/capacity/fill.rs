//! Writes test data until the drive is full: files one after the other, each flushed, its place asked for, and evicted from memory.
//!
//! A file is called `NNNNNN.part` until it is flushed and `NNNNNN` from then on: what an interrupted check goes on from needs no further note on the drive.

use std::io;
use std::path::{Path, PathBuf};

use super::crew::{Crew, with_crew};
use super::layout::{Laid, Layout, Stretch};
use super::pattern::{Own, Pattern};
use super::{CHUNK, END, FILE_SPAN, SECTOR};
use crate::drive::RunDir;
use crate::error::{Error, IoFailure, Side};
use crate::measure::calls::{Calls, Op};
use crate::platform::{Handle, System, ignore_unsupported};
use crate::progress::{Cancel, Counter};
use crate::result::LatencyOp;
use crate::scenario::stage::makers;
use crate::workload::copy::{Copied, Slow};

/// The system is told to begin writing whenever so much is new: what is left to flush at the end of a file is little then.
const BEGIN_EVERY: u64 = 8 << 20;
/// After so many files in a row that failed no more is tried.
const FAILURES: u32 = 3;
/// So many places are remembered, a few megabytes of memory.
const STRETCHES: usize = 1 << 18;
/// So many of the slowest files are kept.
const SLOWEST: usize = 20;

/// The name of a file that is flushed.
#[must_use]
pub fn name_of(index: u64) -> String {
    format!("{index:06}")
}

/// The number of a file by its name.
#[must_use]
pub fn index_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|&index| index < END / FILE_SPAN && name_of(index) == name)
}

/// The name of a file that is being written.
#[must_use]
pub fn part_name_of(index: u64) -> String {
    format!("{}.part", name_of(index))
}

/// What is to be written.
pub struct Fill<'a> {
    /// The system.
    pub system: System<'a>,
    /// Where to.
    pub run: &'a RunDir,
    /// Whose data.
    pub nonce: u64,
    /// The number of the first file.
    pub first: u64,
    /// The length of each file but the last.
    pub file_bytes: u64,
    /// How much is to be written at most.
    pub bytes: u64,
    /// Whether the files are there already, and are written over in their places.
    pub over: bool,
    /// Where the file system's device begins on the drive, where places that the file system tells are places on it.
    pub device_start: Option<u64>,
    /// How far it is.
    pub counter: &'a Counter,
    /// Whether to stop.
    pub cancel: &'a Cancel,
}

/// What came of it besides the copy's own figures.
#[derive(Default)]
pub struct Filled {
    /// The files that were written, and where they lie.
    pub layout: Layout,
    /// The same files, open for reading: a fake may have destroyed by now what leads to them.
    pub readers: Vec<(u64, Handle)>,
    /// What went wrong.
    pub troubles: Vec<IoFailure>,
    /// Whether nothing more fits, or all that was to be written is.
    pub is_done: bool,
}

/// A file that is being written.
struct Writing {
    index: u64,
    writer: Handle,
    reader: Option<Handle>,
    len: u64,
    unbegun: u64,
    start_ns: u64,
}

/// What the writing of a chunk came to.
enum Step {
    Written,
    /// No more fits.
    Full,
    /// This file can't be written on.
    Failed(io::Error),
}

/// Fills. `open` is called when the first data are made and the clock shall start.
pub fn fill<'c>(plan: &Fill<'c>, filled: &mut Filled, open: &mut dyn FnMut()) -> Copied<'c> {
    let clock = plan.system.clock;
    let nonce = plan.nonce;
    let worker = || {
        let mut own = Own::of(nonce);
        move |position: u64, data: &mut [u8]| own.fill(position, data)
    };
    let mut state = Filler { plan, filled, calls: Calls::new(clock), files: 0, bytes: 0, first_done_ns: None, slowest: Vec::new(), start_ns: 0 };
    let failure = with_crew(makers(), worker, |crew| state.work(crew, open));
    let Filler { calls, files, bytes, first_done_ns, mut slowest, start_ns, .. } = state;
    slowest.sort_by(|a: &Slow, b| b.cmp(a));
    slowest.truncate(SLOWEST);
    Copied { calls, thread_ns: clock.now_ns() - start_ns, files, bytes, first_done_ns, slowest, storage_read_bytes: None, failure }
}

struct Filler<'p, 'c> {
    plan: &'p Fill<'c>,
    filled: &'p mut Filled,
    calls: Calls<'c>,
    files: u64,
    bytes: u64,
    first_done_ns: Option<u64>,
    slowest: Vec<Slow>,
    start_ns: u64,
}

impl Filler<'_, '_> {
    fn work(&mut self, crew: &mut Crew<()>, open: &mut dyn FnMut()) -> Option<Error> {
        let clock = self.plan.system.clock;
        // The chunks to come: position and length.
        let (first, file_bytes, bytes) = (self.plan.first, self.plan.file_bytes, self.plan.bytes);
        let mut chunks =
            (0..).flat_map(move |number| (0..file_bytes).step_by(CHUNK).map(move |offset| (number, offset))).map_while(move |(number, offset)| {
                let left = bytes.checked_sub(number * file_bytes + offset).filter(|&left| left >= SECTOR as u64)?;
                let len = left.min(file_bytes - offset).min(CHUNK as u64) / SECTOR as u64 * SECTOR as u64;
                Some(((first + number) * FILE_SPAN + offset, len as usize))
            });
        let mut top_up = |crew: &mut Crew<()>| {
            while !crew.is_full() {
                let Some((position, len)) = chunks.next() else { return };
                let buffer = crew.buffer();
                crew.give(position, buffer, len);
            }
        };
        top_up(crew);
        let mut piece = crew.take();
        open();
        self.start_ns = clock.now_ns();
        let mut current: Option<Writing> = None;
        let mut given_up: Option<u64> = None;
        let mut failures = 0;
        while let Some(chunk) = piece {
            if let Err(interrupted) = self.plan.cancel.check() {
                return Some(interrupted);
            }
            let (index, offset) = Layout::file_of(chunk.position);
            if given_up != Some(index) {
                let step = match self.write(&mut current, index, chunk.data()) {
                    Step::Written if offset + chunk.len as u64 == file_bytes => {
                        failures = 0;
                        self.finish(current.take());
                        Step::Written
                    }
                    step => step,
                };
                match step {
                    Step::Written => {}
                    Step::Full => {
                        self.finish(current.take());
                        self.filled.is_done = true;
                        return None;
                    }
                    Step::Failed(error) => {
                        failures += 1;
                        let is_final = is_final(&error) || failures >= FAILURES;
                        self.trouble("write to", &self.name_while_written(index), error);
                        self.finish(current.take());
                        given_up = Some(index);
                        if is_final {
                            return None;
                        }
                    }
                }
            }
            crew.recycle(chunk.buffer);
            top_up(crew);
            let asked_ns = clock.now_ns();
            piece = crew.take();
            self.calls.add(Op::Generator, clock.now_ns() - asked_ns);
        }
        self.finish(current.take());
        self.filled.is_done = true;
        None
    }

    fn write(&mut self, current: &mut Option<Writing>, index: u64, data: &[u8]) -> Step {
        let System { files, clock, .. } = self.plan.system;
        if current.is_none() {
            let name = self.name_while_written(index);
            let start_ns = clock.now_ns();
            let dir = &self.plan.run.dir;
            let opened = if self.plan.over {
                self.calls.time(Op::Open, || files.open_to_write_over(dir, Path::new(&name)))
            } else {
                self.calls.time(Op::Create, || files.create(dir, Path::new(&name), 0o644))
            };
            match opened {
                Ok(writer) => {
                    let reader = self.calls.time(Op::Open, || files.open(&self.plan.run.dir, Path::new(&name))).ok();
                    *current = Some(Writing { index, writer, reader, len: 0, unbegun: 0, start_ns });
                }
                Err(error) if is_full(&error) => return Step::Full,
                Err(error) => return Step::Failed(error),
            }
        }
        let Some(file) = current else { return Step::Full };
        let mut rest = data;
        while !rest.is_empty() {
            match self.calls.time(Op::Write, || files.write(&file.writer, rest)) {
                Ok(0) => return Step::Full,
                Ok(written) => {
                    (self.calls.writes, self.calls.written_bytes) = (self.calls.writes + 1, self.calls.written_bytes + written as u64);
                    file.len += written as u64;
                    file.unbegun += written as u64;
                    self.bytes += written as u64;
                    self.plan.counter.add_bytes(written as u64);
                    rest = &rest[written..];
                }
                Err(error) if is_full(&error) => return Step::Full,
                Err(error) => return Step::Failed(error),
            }
        }
        if file.unbegun >= BEGIN_EVERY {
            // Only so that the flush has less to do; where it is refused the flush tells.
            let _ = self.calls.time(Op::Flushing, || files.start_writing(&file.writer));
            file.unbegun = 0;
        }
        Step::Written
    }

    /// Flushes a file, asks where it lies, gives it its name and forgets its pages.
    fn finish(&mut self, file: Option<Writing>) {
        let Some(Writing { index, writer, reader, len, start_ns, .. }) = file else { return };
        let System { files, clock, .. } = self.plan.system;
        let (part, name) = (self.name_while_written(index), name_of(index));
        if len < SECTOR as u64 && !self.plan.over {
            drop((writer, reader));
            let removed = files.remove_file(&self.plan.run.dir, Path::new(&part));
            return removed.unwrap_or_else(|error| self.trouble("remove", &part, error));
        }
        let flushed = self.calls.time(Op::Fsync, || files.sync(&writer)).or_else(ignore_unsupported);
        let is_flushed = flushed.is_ok();
        flushed.unwrap_or_else(|error| self.trouble("flush", &part, error));
        let stretches = self.places(&writer);
        // Advice; whether it was taken is looked at before anything is read.
        let _ = files.evict(&writer);
        self.calls.time(Op::Close, || files.close(writer)).unwrap_or_else(|error| self.trouble("close", &part, error));
        if part != name {
            let renamed = self.calls.time(Op::Metadata, || files.rename(&self.plan.run.dir, Path::new(&part), Path::new(&name)));
            renamed.unwrap_or_else(|error| self.trouble("rename", &part, error));
        }
        self.filled.readers.extend(reader.map(|reader| (index, reader)));
        self.filled.layout.add(Laid { index, len: len / SECTOR as u64 * SECTOR as u64, stretches });
        let ns = clock.now_ns() - start_ns;
        self.calls.record(LatencyOp::File, ns);
        self.slowest.push(Slow { ns, path: name, bytes: len });
        self.files += u64::from(is_flushed);
        self.plan.counter.add_file();
        self.first_done_ns.get_or_insert(clock.now_ns() - self.start_ns);
    }

    /// What a file is called until it is flushed.
    fn name_while_written(&self, index: u64) -> String {
        if self.plan.over { name_of(index) } else { part_name_of(index) }
    }

    /// Where the file system says that a file lies; nothing where it does not say, or in too many pieces.
    fn places(&self, file: &Handle) -> Vec<Stretch> {
        if self.filled.layout.stretches() >= STRETCHES { Vec::new() } else { places(self.plan.system, file, self.plan.device_start) }
    }

    fn trouble(&mut self, operation: &'static str, name: &str, source: io::Error) {
        let path: PathBuf = self.plan.run.path.join(name);
        self.filled.troubles.push(IoFailure { operation, side: Side::Target, path, offset: None, source });
    }
}

/// Where a file lies on the drive, by what its file system says; nothing where it does not.
pub(super) fn places(system: System<'_>, file: &Handle, device_start: Option<u64>) -> Vec<Stretch> {
    let Some(start) = device_start else { return Vec::new() };
    let mut stretches = Vec::new();
    let asked = system.files.each_extent(file, &mut |extent| {
        if stretches.len() < STRETCHES {
            stretches.push(Stretch { logical: extent.logical, physical: start + extent.physical, len: extent.length });
        }
    });
    if asked.is_ok() { stretches } else { Vec::new() }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether nothing can be done on the drive any more after this.
pub(super) fn is_final(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::ENOTCONN | libc::ESTALE | libc::EROFS | libc::ENOMEDIUM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_numbers_and_whether_a_file_is_flushed() {
        assert_eq!((index_of("000007"), index_of("1234567")), (Some(7), Some(1_234_567)));
        for name in ["7", "000007.part", "", "0000007", "-00001", "+00001"] {
            assert_eq!(index_of(name), None, "{name}");
        }
        assert_eq!(part_name_of(7), "000007.part");
    }
}
