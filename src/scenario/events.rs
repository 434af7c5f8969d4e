//! What the runner tells those who watch. Progress, log and record consume it; none of them can talk back.

use std::sync::Arc;

use crate::progress::Counter;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A sentence for the person: what is measured, what was found, what was cleaned.
    Notice(String),
    /// A piece of work begins. Watch the counter.
    Begins {
        /// What it is: "copying, run 2 of 3".
        what: String,
        /// Its bytes; 0 when nobody knows.
        bytes: u64,
        /// How far it is.
        counter: Arc<Counter>,
        /// Whether it is timed: displays draw seldom then.
        timed: bool,
    },
    /// The piece of work is over, well or not.
    Ends,
    /// Something is waited for: "waiting until the drive is idle".
    Waits(String),
}

/// Who watches.
pub trait Observer: Send + Sync {
    /// Is told.
    fn on(&self, event: Event);

    /// Is asked, where there is somebody to ask; `None` where there is nobody.
    fn ask(&self, question: &str) -> Option<bool>;
}

/// Nobody.
pub struct Silent;

impl Observer for Silent {
    fn on(&self, _: Event) {}

    fn ask(&self, _: &str) -> Option<bool> {
        None
    }
}
