//! Threads that work on chunks, any number of them at once, whose answers come back in the order in which the chunks were given.

use std::collections::VecDeque;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::CHUNK;

/// Chunks under way: 16 MiB of memory.
const AHEAD: usize = 16;

/// A chunk and what was found out about it.
pub struct Piece<R> {
    /// Where it stands.
    pub position: u64,
    /// Its bytes, of which `len` count.
    pub buffer: Vec<u8>,
    /// How many.
    pub len: usize,
    /// The answer.
    pub result: R,
}

impl<R> Piece<R> {
    /// Its bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

type Task<R> = (Piece<()>, Sender<Piece<R>>);

/// The end of those who give the work.
pub struct Crew<R> {
    tasks: Sender<Task<R>>,
    pending: VecDeque<Receiver<Piece<R>>>,
    spares: Vec<Vec<u8>>,
}

impl<R> Crew<R> {
    /// Whether no more should be given before an answer is taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pending.len() >= AHEAD
    }

    /// A buffer of a chunk's size, with anything in it.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_else(|| vec![0; CHUNK])
    }

    /// Gives a buffer back.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.spares.push(buffer);
    }

    /// Gives a chunk to be worked on.
    pub fn give(&mut self, position: u64, buffer: Vec<u8>, len: usize) {
        let (send, receive) = bounded(1);
        // Where no thread is left, no answer comes: `take` tells.
        let _ = self.tasks.send((Piece { position, buffer, len, result: () }, send));
        self.pending.push_back(receive);
    }

    /// The answer to the chunk given first, whose turn it is; `None` when there is none, or a thread died on it.
    pub fn take(&mut self) -> Option<Piece<R>> {
        self.pending.pop_front()?.recv().ok()
    }
}

/// Works with `threads` threads, each with a worker of its own.
pub fn with_crew<R: Send, W: FnMut(u64, &mut [u8]) -> R + Send, T>(
    threads: usize,
    worker: impl Fn() -> W,
    lead: impl FnOnce(&mut Crew<R>) -> T,
) -> T {
    thread::scope(|scope| {
        let (send, receive) = unbounded::<Task<R>>();
        for _ in 0..threads.max(1) {
            let (receive, mut work) = (receive.clone(), worker());
            scope.spawn(move || {
                for (Piece { position, mut buffer, len, .. }, answer) in receive {
                    let result = work(position, &mut buffer[..len]);
                    // Who asks no more needs no answer.
                    let _ = answer.send(Piece { position, buffer, len, result });
                }
            });
        }
        lead(&mut Crew { tasks: send, pending: VecDeque::new(), spares: Vec::new() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_chunks() {
        let worker = || {
            |position: u64, data: &mut [u8]| {
                // The first takes longest.
                let _ = std::hint::black_box((0..(50 - position) * 10_000).fold(0, |sum: u64, n| std::hint::black_box(sum ^ n)));
                data.fill(position as u8);
                position * 2
            }
        };
        let answers = with_crew(3, worker, |crew| {
            let mut answers = Vec::new();
            for position in 0..50 {
                if crew.is_full() {
                    let piece = crew.take().unwrap();
                    assert!(piece.data().iter().all(|&byte| u64::from(byte) == piece.position));
                    answers.push(piece.result);
                    crew.recycle(piece.buffer);
                }
                let buffer = crew.buffer();
                crew.give(position, buffer, 100);
            }
            answers.extend(std::iter::from_fn(|| crew.take()).map(|piece| piece.result));
            answers
        });
        assert_eq!(answers, (0..50).map(|n| n * 2).collect::<Vec<_>>());
    }
}
