//! What a long piece of work shares with those who watch it: how far it is, and whether it should stop.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// How far a piece of work is. Cheap to move, read by progress displays and the timeline.
#[derive(Debug, Default)]
pub struct Counter {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Counter {
    /// More bytes are done.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Another file is done.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes done.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files done.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }
}

/// Whether a signal asked the program to end.
#[derive(Debug, Default)]
pub struct Cancel(AtomicI32);

impl Cancel {
    /// Asks for the end, for this signal.
    pub fn request(&self, signal: i32) {
        self.0.store(signal, Ordering::Relaxed);
    }

    /// The signal that asked for the end.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }

    /// Goes on, or ends the work.
    ///
    /// # Errors
    /// `Interrupted` when the end was asked for.
    pub fn check(&self) -> Result<()> {
        self.signal().map_or(Ok(()), |signal| Err(Error::Interrupted(signal)))
    }
}
