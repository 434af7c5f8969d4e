//! The bytes of a corpus as a stream of chunks in manifest order, made ahead of the consumer by several threads in constant memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::digest::{Piece, Pieces};
use super::manifest::Listed;
use super::parts::Contents;
use super::{Corpus, FileMeta};
use crate::error::{Error, Result};
use crate::platform::Clock;

/// The largest chunk, and so the largest write.
pub const CHUNK_BYTES: usize = 1 << 20;
/// How many chunks may be made ahead: 16 MiB of memory at most.
const AHEAD: usize = 16;

/// A piece of a file.
pub struct Chunk {
    /// The file.
    pub file: Arc<FileMeta>,
    /// Where in the file it begins.
    pub offset: u64,
    /// Its part of the file's digest, where digests are made.
    pub digest: Option<Piece>,
    buffer: Vec<u8>,
    len: usize,
}

impl Chunk {
    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Whether the file ends with this chunk. An empty file is one empty chunk.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.offset + self.len as u64 == self.file.len
    }
}

struct Task {
    file: Arc<FileMeta>,
    offset: u64,
    buffer: Vec<u8>,
    len: usize,
    done: Sender<Chunk>,
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// Bytes.
    Bytes,
    /// Bytes, and each chunk's part of its file's digest, by the thread that has just made it.
    Digests,
}

/// Buffers that are free, the last one used on top: its memory is the likeliest to be in a cache of the processor. All have the size of the largest
/// chunk, so that none is ever cleared or moved.
type Spares = Mutex<Vec<Vec<u8>>>;

/// The consumer's end of the stream.
pub struct Stream<'a> {
    ordered: Receiver<Receiver<Chunk>>,
    spares: &'a Spares,
    /// Chunks that were waited for before they were asked for.
    ready: VecDeque<Chunk>,
    clock: &'a dyn Clock,
    waited_ns: u64,
}

impl Stream<'_> {
    /// The next chunk; `None` after the last.
    pub fn chunk(&mut self) -> Option<Chunk> {
        if let Some(chunk) = self.ready.pop_front() {
            return Some(chunk);
        }
        let pending = self.ordered.try_recv();
        if let Ok(Ok(chunk)) = pending.as_ref().map(Receiver::try_recv) {
            return Some(chunk);
        }
        let start = self.clock.now_ns();
        let chunk = pending.or_else(|_| self.ordered.recv()).ok().and_then(|pending| pending.recv().ok());
        self.waited_ns += self.clock.now_ns() - start;
        chunk
    }

    /// Gives the memory of a chunk back.
    pub fn recycle(&self, chunk: Chunk) {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner).push(chunk.buffer);
    }

    /// How long the consumer has waited for chunks that were not ready.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns
    }

    /// Waits until the first chunks are made, or all of a small corpus: so that a clock started then does not see the start of the makers.
    pub fn fill_ahead(&mut self) {
        while self.ready.len() < AHEAD / 2 {
            let Some(chunk) = self.ordered.recv().ok().and_then(|pending| pending.recv().ok()) else { return };
            self.ready.push_back(chunk);
        }
    }
}

/// Makes the corpus with `threads` threads and hands its chunks to `consume` in order.
///
/// # Errors
/// What `consume` or the corpus answered, `Internal` when its files are not in order.
pub fn with_stream<T>(
    corpus: &Corpus,
    threads: usize,
    what: Make,
    clock: &dyn Clock,
    consume: impl FnOnce(&mut Stream<'_>) -> Result<T>,
) -> Result<T> {
    let contents = corpus.contents()?;
    let key = corpus.key();
    let files = corpus.files()?;
    let spares = Spares::default();
    thread::scope(|scope| {
        let (send_ordered, ordered) = bounded(AHEAD);
        let (send_task, tasks) = bounded::<Task>(AHEAD);
        for _ in 0..threads.max(1) {
            let (tasks, contents, key) = (tasks.clone(), &contents, &key);
            scope.spawn(move || make(&tasks, what, contents, key));
        }
        drop(tasks);
        let spares = &spares;
        scope.spawn(move || plan(files, &send_task, &send_ordered, spares));
        consume(&mut Stream { ordered, spares, ready: VecDeque::new(), clock, waited_ns: 0 })
    })
}

/// Cuts files into tasks; ends when there are no more or nobody listens.
fn plan(files: impl Iterator<Item = FileMeta>, tasks: &Sender<Task>, ordered: &Sender<Receiver<Chunk>>, spares: &Spares) {
    for file in files {
        let file = Arc::new(file);
        let mut offset = 0;
        loop {
            let len = usize::try_from(file.len - offset).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            let spare = spares.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let buffer = spare.unwrap_or_else(|| vec![0; CHUNK_BYTES]);
            let (done, chunk) = bounded(1);
            // The order is announced before the work is given out, so that memory is bounded by what is announced.
            if ordered.send(chunk).is_err() || tasks.send(Task { file: Arc::clone(&file), offset, buffer, len, done }).is_err() {
                return;
            }
            offset += len as u64;
            if offset == file.len {
                break;
            }
        }
    }
}

fn make(tasks: &Receiver<Task>, what: Make, contents: &Contents, key: &[u8; 32]) {
    for Task { file, offset, mut buffer, len, done } in tasks {
        let data = &mut buffer[..len];
        contents.fill(&file.bytes(key), offset, data);
        let digest = (what == Make::Digests).then(|| Piece::of(data, offset, file.len));
        // A consumer that went away needs no chunk.
        let _ = done.send(Chunk { file, offset, digest, buffer, len });
    }
}

/// Passes a stream of digests on: each chunk to `chunk`, and each file with its digest to `each` when its last chunk has passed.
///
/// # Errors
/// What `chunk` or `each` answered, `Internal` when the files are not in order or the stream makes no digests.
pub fn hash_stream(stream: &mut Stream<'_>, mut chunk: impl FnMut(&Chunk) -> Result<()>, mut each: impl FnMut(Listed) -> Result<()>) -> Result<()> {
    let mut pieces = Pieces::default();
    let mut last = String::new();
    while let Some(piece) = stream.chunk() {
        if piece.offset == 0 && piece.file.path.as_bytes() <= last.as_bytes() {
            return Err(Error::Internal(format!("the corpus lists {} out of order", piece.file.path)));
        }
        chunk(&piece)?;
        let is_last = piece.is_last();
        let digest = piece.digest.and_then(|part| pieces.add(part, is_last));
        if is_last {
            let digest = digest.ok_or_else(|| Error::Internal(format!("{} was made without its digest", piece.file.path)))?;
            last.clone_from(&piece.file.path);
            each(Listed { meta: FileMeta::clone(&piece.file), digest })?;
        }
        stream.recycle(piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Environment;
    use crate::corpus::catalogue::corpus;
    use crate::platform::OsClock;
    use crate::units::Scale;

    /// The bytes of a corpus of so many chunks, read with and without waiting ahead.
    #[test]
    fn waiting_ahead_ends_for_every_number_of_chunks_and_changes_nothing() {
        for chunks in [1, 2, 7, 8, 9, 15, 16, 17, 33, 40] {
            let scale = Scale::from_hundredths(chunks * 10_000 / 3_815);
            let corpus = corpus("large-file", 0, scale, &Environment::default()).unwrap();
            let read = |ahead: bool| {
                with_stream(&corpus, 2, Make::Digests, &OsClock, |stream| {
                    if ahead {
                        stream.fill_ahead();
                    }
                    let mut digest = None;
                    hash_stream(
                        stream,
                        |_| Ok(()),
                        |file| {
                            digest = Some(file.digest);
                            Ok(())
                        },
                    )?;
                    Ok(digest)
                })
            };
            assert_eq!(read(true).unwrap(), read(false).unwrap());
        }
    }
}
