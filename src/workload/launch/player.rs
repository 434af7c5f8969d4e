//! Plays a start: act after act as the steps say, up to so many items at once, each call timed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::play::{Act, Item, Play, PlayedStep};
use crate::error::{Context, Error, Result, Side};
use crate::measure::calls::{Calls, Op};
use crate::platform::{Clock, Files, Handle, Mapping, storage_read_by_thread};
use crate::progress::{Cancel, Counter};
use crate::workload::copy::Copied;

/// What stands behind the name of a file until it is whole.
const UNFINISHED: &str = ".new";

/// Where a start is played.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The operations.
    pub files: &'a dyn Files,
    /// The tree of the program.
    pub tree: &'a Handle,
    /// What it is called in messages.
    pub tree_path: &'a Path,
    /// The directory that it writes to.
    pub run: &'a Handle,
    /// What it is called in messages.
    pub run_path: &'a Path,
    /// The data that it writes: each file begins where the one before it ended.
    pub data: &'a [u8],
    /// How far it is.
    pub counter: &'a Counter,
    /// Whether it should stop.
    pub cancel: &'a Cancel,
}

/// Plays a start until the program is ready.
pub fn play<'a>(play: &Play, place: Place<'_>, clock: &'a dyn Clock) -> Copied<'a> {
    let largest = play.acts().map(|(_, _, act)| if let Act::Read { len, .. } = act { *len } else { 0 }).max().unwrap_or(0);
    let mut buffer = vec![0; usize::try_from(largest).unwrap_or(0)];
    let mut all = Copied {
        calls: Calls::new(clock),
        thread_ns: 0,
        files: 0,
        bytes: 0,
        first_done_ns: None,
        slowest: Vec::new(),
        storage_read_bytes: None,
        failure: None,
    };
    let mut storage = 0;
    let read_before = storage_read_by_thread();
    let start = clock.now_ns();
    let mut since = start;
    let mut written = 0;
    for step in &play.steps {
        let stage = Stage { step, place, clock, first_byte: written };
        written += step.items.iter().filter(|item| item.acts.first() == Some(&Act::Create)).map(|item| item.len).sum::<u64>();
        if step.items.is_empty() {
            all.calls.time(Op::Think, || clock.work(Duration::from_nanos(step.think_ns)));
        } else if step.at_once == 1 {
            for index in 0..step.items.len() {
                if let Err(failure) = stage.perform(index, &mut all.calls, &mut buffer) {
                    all.failure = Some(failure);
                    break;
                }
            }
        } else {
            all.thread_ns += clock.now_ns() - since;
            all.failure = stage.perform_at_once(&mut all, &mut storage);
            since = clock.now_ns();
        }
        if all.failure.is_some() {
            break;
        }
        all.first_done_ns.get_or_insert(clock.now_ns() - start);
    }
    all.thread_ns += clock.now_ns() - since;
    storage += storage_read_by_thread() - read_before;
    // A kernel that does not count says 0.
    all.storage_read_bytes = Some(storage).filter(|&bytes| bytes > 0);
    (all.files, all.bytes) = (place.counter.files(), place.counter.bytes());
    all
}

/// A step that is under way.
struct Stage<'a, 'c> {
    step: &'a PlayedStep,
    place: Place<'a>,
    clock: &'c dyn Clock,
    /// Where in the data its first file begins.
    first_byte: u64,
}

impl<'c> Stage<'_, 'c> {
    /// All items, so many at once; returns what ended them early. The time of all threads is added up.
    fn perform_at_once(&self, all: &mut Copied<'c>, storage: &mut u64) -> Option<Error> {
        let next = &AtomicUsize::new(0);
        // Raised by a thread that failed, so that the others do not go on for nothing.
        let stop = &AtomicBool::new(false);
        let threads = (self.step.at_once as usize).min(self.step.items.len());
        let start = self.clock.now_ns();
        let ended = thread::scope(|scope| {
            let worker = || {
                let mut calls = Calls::new(self.clock);
                calls.add(Op::Idle, self.clock.now_ns() - start);
                let mut buffer = Vec::new();
                let mut failure = None;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= self.step.items.len() || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    if let Err(error) = self.perform(index, &mut calls, &mut buffer) {
                        stop.store(true, Ordering::Relaxed);
                        failure = Some(error);
                    }
                }
                (calls, failure, self.clock.now_ns(), storage_read_by_thread())
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let end = self.clock.now_ns();
        all.thread_ns += (end - start) * ended.len() as u64;
        let mut failure = None;
        for thread in ended {
            let Ok((mut calls, error, ended_ns, read_bytes)) = thread else {
                failure = Some(Error::Internal("a thread of the player ended early".to_owned()));
                continue;
            };
            calls.add(Op::Idle, end - ended_ns);
            all.calls.merge(&calls);
            *storage += read_bytes;
            failure = failure.or(error);
        }
        failure
    }

    /// One item, act by act.
    fn perform(&self, index: usize, calls: &mut Calls<'c>, buffer: &mut Vec<u8>) -> Result<()> {
        let Place { files, tree, tree_path, run, run_path, .. } = self.place;
        let item = &self.step.items[index];
        let is_written = item.acts.first() == Some(&Act::Create);
        let side = if is_written { Side::Target } else { Side::Source };
        let full = || if is_written { run_path.join(&item.path) } else { tree_path.join(&item.path) };
        let think = Duration::from_nanos(self.step.think_ns);
        let (mut open, mut mapping): (Option<Handle>, Option<Mapping>) = (None, None);
        let mut written = 0;
        for act in &item.acts {
            self.place.cancel.check()?;
            match act {
                Act::Miss(path) => {
                    let answer = calls.time(Op::LookUp, || files.open(tree, Path::new(path)));
                    match answer {
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        Err(error) => return Err(error).during("look for", side, tree_path.join(path)),
                        Ok(_) => return Err(Error::Internal(format!("{path} is there, which it should not be"))),
                    }
                }
                Act::Open => {
                    let file = calls.time(Op::Open, || files.open(tree, Path::new(&item.path))).during("open", side, full())?;
                    // Without it a kernel reads more than is asked for.
                    calls.time(Op::Asking, || files.advise_random(&file)).during("advise on", side, full())?;
                    open = Some(file);
                }
                Act::Create => {
                    let name = format!("{}{UNFINISHED}", item.path);
                    open = Some(calls.time(Op::Create, || files.create(run, Path::new(&name), 0o644)).during("create", side, full())?);
                }
                Act::Rename => {
                    let name = format!("{}{UNFINISHED}", item.path);
                    if let Some(file) = open.take() {
                        calls.time(Op::Close, || files.close(file)).during("close", side, full())?;
                    }
                    let renamed = calls.time(Op::Metadata, || files.rename(run, Path::new(&name), Path::new(&item.path)));
                    renamed.during("rename", side, full())?;
                    self.place.counter.add_file();
                }
                Act::Close => {
                    mapping = None;
                    if let Some(file) = open.take() {
                        calls.time(Op::Close, || files.close(file)).during("close", side, full())?;
                    }
                    self.place.counter.add_file();
                }
                Act::Fault { offset, len } => {
                    let mapped = mapping.as_ref().ok_or_else(|| out_of_order(item))?;
                    calls.time(Op::Fault, || files.fault(mapped, *offset, *len)).during_at(*offset, "read", side, full())?;
                    calls.reads += 1;
                    calls.read_bytes += len;
                    self.place.counter.add_bytes(*len);
                }
                Act::Stat | Act::Map | Act::Read { .. } | Act::Write { .. } | Act::Flush => {
                    let file = open.as_ref().ok_or_else(|| out_of_order(item))?;
                    match act {
                        Act::Stat => drop(calls.time(Op::LookUp, || files.stat(file)).during("look at", side, full())?),
                        Act::Map => mapping = Some(calls.time(Op::Map, || files.map(file, item.len)).during("map", side, full())?),
                        Act::Read { offset, len } => self.read(file, (*offset, *len), calls, buffer).during_at(*offset, "read", side, full())?,
                        Act::Write { len } => {
                            // All items of a step write as much.
                            let place = self.first_byte + index as u64 * item.len + written;
                            self.write(file, place, *len, calls).during_at(written, "write to", side, full())?;
                            written += len;
                        }
                        _ => calls.time(Op::Fsync, || files.sync(file)).during("flush", side, full())?,
                    }
                }
            }
            if !think.is_zero() {
                calls.time(Op::Think, || self.clock.work(think));
            }
        }
        Ok(())
    }

    /// Reads a range as a whole.
    fn read(&self, file: &Handle, (mut offset, len): (u64, u64), calls: &mut Calls<'c>, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let mut left = len;
        while left > 0 {
            let read = calls.time(Op::Read, || self.place.files.read_at(file, &mut buffer[..left], offset))?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            calls.reads += 1;
            calls.read_bytes += read as u64;
            self.place.counter.add_bytes(read as u64);
            offset += read as u64;
            left -= read;
        }
        Ok(())
    }

    fn write(&self, file: &Handle, place: u64, len: u64, calls: &mut Calls<'c>) -> std::io::Result<()> {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let end = place.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        let mut data = self.place.data.get(place..end).ok_or(std::io::ErrorKind::InvalidInput)?;
        while !data.is_empty() {
            let written = calls.time(Op::Write, || self.place.files.write(file, data))?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            calls.writes += 1;
            calls.written_bytes += written as u64;
            self.place.counter.add_bytes(written as u64);
            data = &data[written..];
        }
        Ok(())
    }
}

fn out_of_order(item: &Item) -> Error {
    Error::Internal(format!("the acts on {} are out of order", item.path))
}
