//! What the runner tells those who watch. Progress, log and record consume it; none of them can talk back.

use std::sync::Arc;

use crate::drive::pulse::Pulse;
use crate::progress::Counter;
use crate::result::{Document, Phase};

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
    /// Something is waited for: "removing what was written".
    Waits(String),
    /// A drive that does nothing is waited for: "waiting until the drive is quiet".
    Idles(String),
    /// The piece of work is done, and the flush of what it wrote is waited for.
    Flushes,
    /// The drives on which everything happens from now on.
    On(Vec<Arc<Pulse>>),
    /// The record as it is now.
    SoFar(Box<Document>),
    /// The phase under way, as it stands in the record if nothing more comes.
    UnderWay(Box<Phase>),
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
