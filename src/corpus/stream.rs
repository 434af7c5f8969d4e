//! The bytes of a corpus as a stream of chunks in manifest order, made ahead of the consumer by several threads in constant memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::content::Content;
use super::manifest::Listed;
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
    /// Its bytes.
    pub data: Vec<u8>,
}

impl Chunk {
    /// Whether the file ends with this chunk. An empty file is one empty chunk.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.offset + self.data.len() as u64 == self.file.len
    }
}

struct Task {
    file: Arc<FileMeta>,
    offset: u64,
    data: Vec<u8>,
    done: Sender<Chunk>,
}

/// The consumer's end of the stream.
pub struct Stream<'a> {
    ordered: Receiver<Receiver<Chunk>>,
    spare: Sender<Vec<u8>>,
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
        // When the maker has ended there is nobody left to use it.
        let _ = self.spare.try_send(chunk.data);
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
pub fn with_stream<T>(corpus: &Corpus, threads: usize, clock: &dyn Clock, consume: impl FnOnce(&mut Stream<'_>) -> Result<T>) -> Result<T> {
    let content = corpus.content()?;
    let key = corpus.key();
    let files = corpus.files()?;
    thread::scope(|scope| {
        let (send_ordered, ordered) = bounded(AHEAD);
        let (send_task, tasks) = bounded::<Task>(AHEAD);
        let (spare, spares) = bounded(2 * AHEAD);
        for _ in 0..threads.max(1) {
            let (tasks, content, key) = (tasks.clone(), content.as_ref(), &key);
            scope.spawn(move || make(&tasks, content, key));
        }
        drop(tasks);
        scope.spawn(move || plan(files, &send_task, &send_ordered, &spares));
        consume(&mut Stream { ordered, spare, ready: VecDeque::new(), clock, waited_ns: 0 })
    })
}

/// Cuts files into tasks; ends when there are no more or nobody listens.
fn plan(files: impl Iterator<Item = FileMeta>, tasks: &Sender<Task>, ordered: &Sender<Receiver<Chunk>>, spares: &Receiver<Vec<u8>>) {
    for file in files {
        let file = Arc::new(file);
        let mut offset = 0;
        loop {
            let size = usize::try_from(file.len - offset).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            let mut data = spares.try_recv().unwrap_or_default();
            data.resize(size, 0);
            let (done, chunk) = bounded(1);
            // The order is announced before the work is given out, so that memory is bounded by what is announced.
            if ordered.send(chunk).is_err() || tasks.send(Task { file: Arc::clone(&file), offset, data, done }).is_err() {
                return;
            }
            offset += size as u64;
            if offset == file.len {
                break;
            }
        }
    }
}

fn make(tasks: &Receiver<Task>, content: &dyn Content, key: &[u8; 32]) {
    for Task { file, offset, mut data, done } in tasks {
        content.fill(&file.bytes(key), offset, &mut data);
        // A consumer that went away needs no chunk.
        let _ = done.send(Chunk { file, offset, data });
    }
}

/// Hashes a stream: each file's digest is handed to `each` as its last chunk passes, after `chunk` has seen its bytes.
///
/// # Errors
/// What `chunk` or `each` answered, `Internal` when the files are not in order.
pub fn hash_stream(stream: &mut Stream<'_>, mut chunk: impl FnMut(&Chunk) -> Result<()>, mut each: impl FnMut(Listed) -> Result<()>) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut last = String::new();
    while let Some(piece) = stream.chunk() {
        if piece.offset == 0 && piece.file.path.as_bytes() <= last.as_bytes() {
            return Err(Error::Internal(format!("the corpus lists {} out of order", piece.file.path)));
        }
        chunk(&piece)?;
        hasher.update(&piece.data);
        if piece.is_last() {
            last.clone_from(&piece.file.path);
            each(Listed { meta: FileMeta::clone(&piece.file), digest: hasher.finalize() })?;
            hasher.reset();
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
                with_stream(&corpus, 2, &OsClock, |stream| {
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
