//! The copy of a tree: directories before their files, in manifest order or as the file system hands them out, by one engine and any number of threads.

use std::collections::BinaryHeap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, bounded};

use crate::corpus::manifest::Manifest;
use crate::corpus::stream::{Make, with_stream};
use crate::corpus::{Corpus, tree};
use crate::engine::{Command, Engine, FileEngine, TargetWriter, Trees};
use crate::error::{Context, Error, Result, Side};
use crate::measure::calls::{Calls, Op};
use crate::path_text::path_text;
use crate::platform::{Clock, Kind};
use crate::result::LatencyOp;

/// How many of the slowest files are kept.
const SLOWEST: usize = 20;

/// In which order files are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Bytewise by path.
    Manifest,
    /// As the file system lists them: what `cp` does.
    Readdir,
}

/// A file that took long, the slowest first in a heap turned over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slow {
    /// From open to close.
    pub ns: u64,
    /// Path within the corpus.
    pub path: String,
    /// Bytes moved.
    pub bytes: u64,
}

/// What a copy did.
pub struct Copied<'a> {
    /// The calls of all threads.
    pub calls: Calls<'a>,
    /// The time of the copy, once for each thread, ns: calls and what lay outside.
    pub thread_ns: u64,
    /// Files copied.
    pub files: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// When the first file was done, ns since the start.
    pub first_done_ns: Option<u64>,
    /// The slowest files, slowest first.
    pub slowest: Vec<Slow>,
    /// Bytes that the kernel booked to its threads as read from storage; `None` where nobody asked or it does not tell.
    pub storage_read_bytes: Option<u64>,
    /// What ended the copy before all was done. What was done until then stays counted.
    pub failure: Option<Error>,
}

/// Sums of one thread.
struct Worker<'a> {
    calls: Calls<'a>,
    /// When the copy began, for all threads alike.
    started_ns: u64,
    files: u64,
    bytes: u64,
    slowest: BinaryHeap<std::cmp::Reverse<Slow>>,
    failure: Option<Error>,
}

impl<'a> Worker<'a> {
    fn new(clock: &'a dyn Clock, started_ns: u64) -> Self {
        Self { calls: Calls::new(clock), started_ns, files: 0, bytes: 0, slowest: BinaryHeap::new(), failure: None }
    }

    fn done(&mut self, path: &Path, bytes: u64, ns: u64) {
        self.files += 1;
        self.bytes += bytes;
        self.calls.record(LatencyOp::File, ns);
        if self.slowest.len() < SLOWEST || self.slowest.peek().is_some_and(|least| least.0.ns < ns) {
            self.slowest.push(std::cmp::Reverse(Slow { ns, path: path_text(path), bytes }));
            if self.slowest.len() > SLOWEST {
                self.slowest.pop();
            }
        }
    }
}

/// The moment at which the first file was done, set once by whichever thread it was.
struct FirstDone<'a> {
    clock: &'a dyn Clock,
    start: u64,
    after: AtomicU64,
}

impl FirstDone<'_> {
    fn mark(&self) {
        if self.after.load(Ordering::Relaxed) == 0 {
            let after = self.clock.now_ns() - self.start;
            // Whoever comes first keeps the place.
            let _ = self.after.compare_exchange(0, after.max(1), Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Copies a tree that lies on a drive or in memory.
pub fn copy_tree<'a>(trees: Trees<'_>, manifest: &Manifest, engine: &Engine, threads: usize, order: Order, clock: &'a dyn Clock) -> Copied<'a> {
    match engine {
        Engine::Command(command) => by_command(trees, manifest, command, clock),
        Engine::Files(_, engine) => by_files(trees, manifest, engine.as_ref(), threads.max(1), order, clock),
    }
}

fn by_command<'a>(trees: Trees<'_>, manifest: &Manifest, command: &Command, clock: &'a dyn Clock) -> Copied<'a> {
    let mut worker = Worker::new(clock, clock.now_ns());
    let end = |worker: Worker<'a>| finish(vec![worker], None, clock);
    if let Err(error) = command.run(trees, &mut worker.calls) {
        worker.failure = Some(error);
        return end(worker);
    }
    // What the program did inside is not seen; that all is there is for the verification to say.
    worker.files = manifest.corpus.file_count();
    worker.bytes = manifest.corpus.byte_count();
    end(worker)
}

fn by_files<'a>(trees: Trees<'_>, manifest: &Manifest, engine: &dyn FileEngine, threads: usize, order: Order, clock: &'a dyn Clock) -> Copied<'a> {
    let first = FirstDone { clock, start: clock.now_ns(), after: AtomicU64::new(0) };
    let workers = if threads == 1 {
        let mut worker = Worker::new(clock, first.start);
        let mut buffer = Vec::new();
        let outcome = each_file(trees, manifest, order, &mut |path, directories| {
            make_directories(trees, directories, &mut worker.calls)?;
            copy_one(trees, engine, path, &mut worker, &mut buffer, &first)
        });
        worker.failure = outcome.err();
        vec![worker]
    } else {
        in_parallel(trees, manifest, engine, threads, order, clock, &first)
    };
    finish(workers, Some(first.after.into_inner()).filter(|&ns| ns > 0), clock)
}

fn in_parallel<'a>(
    trees: Trees<'_>,
    manifest: &Manifest,
    engine: &dyn FileEngine,
    threads: usize,
    order: Order,
    clock: &'a dyn Clock,
    first: &FirstDone<'_>,
) -> Vec<Worker<'a>> {
    // Raised by a thread that failed, so that the others do not go on for nothing.
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let (send, receive) = bounded::<PathBuf>(4 * threads);
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                let receive: Receiver<PathBuf> = receive.clone();
                scope.spawn(move || {
                    let mut worker = Worker::new(clock, first.start);
                    let mut buffer = Vec::new();
                    // Since when this thread has had nothing to do: its own start, files that are not handed out yet and the other threads' end take time.
                    let mut idle_since = first.start;
                    for path in receive {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        worker.calls.add(Op::Idle, clock.now_ns() - idle_since);
                        if let Err(error) = copy_one(trees, engine, &path, &mut worker, &mut buffer, first) {
                            worker.failure = Some(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                        idle_since = clock.now_ns();
                    }
                    (worker, idle_since)
                })
            })
            .collect();
        drop(receive);
        // Directories are made by the thread that hands out their files: its calls are not those of the copying threads.
        let mut maker = Calls::new(clock);
        let outcome = each_file(trees, manifest, order, &mut |path, directories| {
            make_directories(trees, directories, &mut maker)?;
            // When all threads have stopped, one of them knows why.
            if send.send(path.to_path_buf()).is_ok() { Ok(()) } else { Err(Error::Internal("the copying threads ended early".to_owned())) }
        });
        drop(send);
        let joined: Vec<_> = handles.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let end = clock.now_ns();
        let mut workers: Vec<Worker<'a>> = Vec::new();
        for ended in joined {
            match ended {
                Ok((mut worker, idle_since)) => {
                    worker.calls.add(Op::Idle, end - idle_since);
                    workers.push(worker);
                }
                Err(_) => {
                    let mut lost = Worker::new(clock, first.start);
                    lost.failure = Some(Error::Internal("a copying thread ended early".to_owned()));
                    workers.push(lost);
                }
            }
        }
        let workers_fine = workers.iter().all(|worker| worker.failure.is_none());
        // Whoever hands out files only sees that the others stopped: a copying thread knows why.
        if let (Some(worker), Err(error)) = (workers.first_mut(), outcome)
            && workers_fine
        {
            worker.failure = Some(error);
        }
        workers
    })
}

fn finish<'a>(workers: Vec<Worker<'a>>, first_done_ns: Option<u64>, clock: &'a dyn Clock) -> Copied<'a> {
    let mut sum = Copied {
        calls: Calls::new(clock),
        thread_ns: 0,
        files: 0,
        bytes: 0,
        first_done_ns,
        slowest: Vec::new(),
        storage_read_bytes: None,
        failure: None,
    };
    let started_ns: Vec<u64> = workers.iter().map(|worker| worker.started_ns).collect();
    for (index, worker) in workers.into_iter().enumerate() {
        if index == 0 {
            sum.calls = worker.calls;
        } else {
            sum.calls.merge(&worker.calls);
        }
        sum.files += worker.files;
        sum.bytes += worker.bytes;
        sum.slowest.extend(worker.slowest.into_iter().map(|slow| slow.0));
        // A thread that failed stops the others: its own reason says more than that they were stopped.
        if let (None | Some(Error::Interrupted(_)), Some(failure)) = (&sum.failure, worker.failure) {
            sum.failure = Some(failure);
        }
    }
    sum.slowest.sort_by(|a, b| b.cmp(a));
    sum.slowest.truncate(SLOWEST);
    // Adding up takes time of the window, too: it is outside calls.
    let end = clock.now_ns();
    sum.thread_ns = started_ns.into_iter().map(|started| end - started).sum();
    sum
}

fn copy_one(
    trees: Trees<'_>,
    engine: &dyn FileEngine,
    path: &Path,
    worker: &mut Worker<'_>,
    buffer: &mut Vec<u8>,
    first: &FirstDone<'_>,
) -> Result<()> {
    trees.cancel.check()?;
    let start = first.clock.now_ns();
    let bytes = engine.copy(trees, path, &mut worker.calls, buffer)?;
    file_done(trees, path, bytes, start, worker, first);
    Ok(())
}

fn file_done(trees: Trees<'_>, path: &Path, bytes: u64, start: u64, worker: &mut Worker<'_>, first: &FirstDone<'_>) {
    let ns = first.clock.now_ns() - start;
    worker.done(path, bytes, ns);
    if let Some(log) = trees.log {
        log.add(start - first.start, ns, bytes, path);
    }
    trees.counter.add_file();
    first.mark();
}

fn make_directories(trees: Trees<'_>, directories: &[PathBuf], calls: &mut Calls<'_>) -> Result<()> {
    for directory in directories {
        let made = calls.time(Op::Metadata, || trees.files.make_dir(trees.target, directory, 0o755));
        made.during("make directory", Side::Target, trees.target_path.join(directory))?;
    }
    Ok(())
}

type EachFile<'a> = dyn FnMut(&Path, &[PathBuf]) -> Result<()> + 'a;

/// Calls `each` for every file with the directories that are new before it.
fn each_file(trees: Trees<'_>, manifest: &Manifest, order: Order, each: &mut EachFile<'_>) -> Result<()> {
    match order {
        Order::Manifest => {
            let mut last = String::new();
            for listed in manifest.entries(trees.files) {
                let path = listed.during("read the manifest of", Side::Source, trees.source_path)?.meta.path;
                let directories: Vec<PathBuf> = tree::new_directories(&last, &path).map(PathBuf::from).collect();
                each(Path::new(&path), &directories)?;
                last = path;
            }
            Ok(())
        }
        Order::Readdir => {
            let mut new = Vec::new();
            walk(trees, Path::new(""), &mut new, each)
        }
    }
}

/// Files of a directory as they are listed, then its subdirectories.
fn walk(trees: Trees<'_>, below: &Path, new: &mut Vec<PathBuf>, each: &mut EachFile<'_>) -> Result<()> {
    let dir = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let path = trees.source_path.join(below);
    let handle = trees.files.open_dir(trees.source, dir).during("open", Side::Source, &path)?;
    let mut directories = Vec::new();
    let mut outcome = Ok(());
    let listed = trees.files.list(&handle, &mut |entry| {
        let child = below.join(&entry.name);
        let kind = entry.kind.map_or_else(|| trees.files.stat_at(&handle, Path::new(&entry.name)).map(|stat| stat.kind), Ok)?;
        match kind {
            Kind::Directory => directories.push(child),
            Kind::File => {
                outcome = each(&child, new);
                new.clear();
            }
            // No corpus has such things, and to open one might never end.
            Kind::Symlink | Kind::Other => {}
        }
        if outcome.is_ok() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
    });
    outcome?;
    listed.during("list", Side::Source, &path)?;
    for directory in directories {
        new.push(directory.clone());
        walk(trees, &directory, new, each)?;
    }
    Ok(())
}

/// Writes a tree whose bytes are made while it is written, ahead of the writer: the source is no drive at all.
pub fn write_generated<'a>(trees: Trees<'_>, corpus: &Corpus, makers: usize, clock: &'a dyn Clock, open_window: &mut dyn FnMut()) -> Copied<'a> {
    let outcome = with_stream(corpus, makers, Make::Bytes, clock, |stream| {
        stream.fill_ahead();
        open_window();
        let first = FirstDone { clock, start: clock.now_ns(), after: AtomicU64::new(0) };
        let mut worker = Worker::new(clock, first.start);
        let mut writer = TargetWriter::new(trees);
        let mut last = String::new();
        let (mut file_start, mut waited) = (clock.now_ns(), stream.waited_ns());
        let outcome = (|| {
            while let Some(chunk) = stream.chunk() {
                trees.cancel.check()?;
                worker.calls.add(Op::Generator, stream.waited_ns() - waited);
                waited = stream.waited_ns();
                if chunk.offset == 0 {
                    file_start = clock.now_ns();
                    let directories: Vec<PathBuf> = tree::new_directories(&last, &chunk.file.path).map(PathBuf::from).collect();
                    make_directories(trees, &directories, &mut worker.calls)?;
                    last.clone_from(&chunk.file.path);
                }
                writer.write(&chunk.file, chunk.offset, chunk.data(), &mut worker.calls)?;
                if chunk.is_last() {
                    file_done(trees, Path::new(&chunk.file.path), chunk.file.len, file_start, &mut worker, &first);
                }
                stream.recycle(chunk);
            }
            Ok(())
        })();
        worker.failure = outcome.err();
        Ok(finish(vec![worker], Some(first.after.into_inner()).filter(|&ns| ns > 0), clock))
    });
    outcome.unwrap_or_else(|failure| {
        let mut nothing = finish(Vec::new(), None, clock);
        nothing.failure = Some(failure);
        nothing
    })
}
