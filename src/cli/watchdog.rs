//! Looks every second whether anything moves: says when nothing does, and ends the program in order when it was told to end and the kernel holds it for a drive.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Outcome, front, output};
use crate::drive::pulse::Pulse;
use crate::drive::sleepers;
use crate::error::Error;
use crate::platform::{Host, OS};
use crate::progress::{Cancel, Counter};
use crate::result::{Document, Phase, Status};
use crate::scenario::events::Event;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After so much silence something is said, and then whenever it has doubled.
const SILENCE_NS: u64 = 10_000_000_000;
/// Who was told to end is given up after so long in one and the same sleep in the kernel, with nothing moving.
const HELD_NS: u64 = 3_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// What is done with the record so far, if there is one, before the program ends by a signal; its outcome is how it ends.
pub type Rescue = Box<dyn Fn(i32, Option<Document>) -> Outcome + Send>;

/// Whoever looks.
pub struct Watchdog {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    looker: Option<JoinHandle<()>>,
}

/// What the program does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Doing {
    /// Nothing that could hang, or a question was asked.
    #[default]
    Nothing,
    /// Something that should move.
    Work,
    /// Waiting for a flush of what was written.
    Flush,
    /// Waiting for a drive that does nothing, in these words.
    Idle(String),
}

/// What the events told.
#[derive(Default)]
struct Seen {
    doing: Doing,
    since_ns: u64,
    counter: Option<Arc<Counter>>,
    /// The counter is that of a window.
    timed: bool,
    drives: Vec<Arc<Pulse>>,
    record: Option<Box<Document>>,
    /// The phase under way, which is not in the record yet.
    phase: Option<Box<Phase>>,
    over: bool,
}

impl Watchdog {
    /// Begins to look. `rescue` gets the record so far when the program has to end without the one who works on it.
    pub fn new(quiet: bool, cancel: Arc<Cancel>, rescue: Rescue) -> Self {
        let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let looked_at = Arc::clone(&seen);
        let looker = thread::spawn(move || look(&looked_at, quiet, &cancel, &rescue));
        Self { seen, looker: Some(looker) }
    }

    /// Is told what happens.
    pub fn on(&self, event: &Event) {
        let mut seen = lock(&self.seen.0);
        let mut begins = |doing, counter: Option<&Arc<Counter>>, timed| {
            (seen.doing, seen.since_ns, seen.timed) = (doing, OS.clock.now_ns(), timed);
            seen.counter = counter.cloned();
        };
        match event {
            Event::Notice(_) => {}
            Event::Begins { counter, timed, .. } => begins(Doing::Work, Some(counter), *timed),
            Event::Ends | Event::Waits(_) => begins(Doing::Work, None, false),
            Event::Idles(text) => begins(Doing::Idle(text.clone()), None, false),
            Event::Flushes => (seen.doing, seen.since_ns) = (Doing::Flush, OS.clock.now_ns()),
            Event::On(drives) => seen.drives.clone_from(drives),
            Event::SoFar(record) => (seen.record, seen.phase) = (Some(record.clone()), None),
            Event::UnderWay(phase) => seen.phase = Some(phase.clone()),
        }
    }

    /// Somebody is asked something, and may take their time.
    pub fn rests(&self) {
        lock(&self.seen.0).doing = Doing::Nothing;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        lock(&self.seen.0).over = true;
        self.seen.1.notify_all();
        // One that died looks no more, which is all that is wanted.
        let _ = self.looker.take().map(JoinHandle::join);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(seen: &(Mutex<Seen>, Condvar), quiet: bool, cancel: &Cancel, rescue: &Rescue) {
    let (mut still, mut teller, mut held) = (Still::default(), Teller::default(), Held::default());
    loop {
        let (now_seen, _) = seen.1.wait_timeout_while(lock(&seen.0), LOOK_EVERY, |seen| !seen.over).unwrap_or_else(PoisonError::into_inner);
        if now_seen.over {
            return;
        }
        let now = OS.clock.now_ns();
        let moved = now_seen.moved();
        let held_ns = match cancel.signal() {
            Some(_) => held.since(moved.clone(), sleepers(&Host::real()), now),
            None => 0,
        };
        let silent_ns = still.since(moved, now);
        if let Some(signal) = cancel.signal().filter(|_| held_ns >= HELD_NS) {
            let (record, places) = (now_seen.record(signal), now_seen.places());
            drop(now_seen);
            output::note(&format!("no answer from {places}: left as it is; what is unfinished there is removed or gone on with by the next start"));
            front::leave(super::exit_code(rescue(signal, record)));
        }
        let said = if quiet { None } else { teller.tell(&now_seen, silent_ns, now) };
        drop(now_seen);
        said.iter().for_each(|line| output::note(line));
    }
}

/// All that moves while work is done: bytes, files, and requests of each drive.
type Moves = (u64, u64, Vec<Option<u64>>);

impl Seen {
    fn moved(&self) -> Moves {
        let (bytes, files) = self.counter.as_ref().map_or((0, 0), |counter| (counter.bytes(), counter.files()));
        (bytes, files, self.drives.iter().map(|drive| drive.beat().map(|beat| beat.completed)).collect())
    }

    /// The drives that have something to do, or all where that is not known.
    fn places(&self) -> String {
        let name = |drive: &Arc<Pulse>| drive.path().display().to_string();
        let asked: Vec<String> = self.drives.iter().filter(|drive| drive.beat().is_some_and(|beat| beat.is_asked)).map(name).collect();
        let places = if asked.is_empty() { self.drives.iter().map(name).collect() } else { asked };
        if places.is_empty() { "the drive".to_owned() } else { places.join(" and ") }
    }

    /// The record so far, with what is known of the phase under way, ended by a signal.
    fn record(&self, signal: i32) -> Option<Document> {
        let mut record = *self.record.clone()?;
        if let (Some(phase), Some(run)) = (&self.phase, record.runs.last_mut()) {
            let mut phase = *phase.clone();
            if let Some(counter) = self.counter.as_ref().filter(|_| self.timed) {
                (phase.bytes, phase.files) = (counter.bytes(), counter.files());
            }
            run.phases.push(phase);
        }
        let ended = Error::Interrupted(signal);
        record.error = Some(format!("{ended}: no answer from {}", self.places()));
        (record.status, record.exit_code) = (Status::Interrupted, Some(ended.exit_code()));
        Some(record)
    }
}

/// For how long nothing has moved.
#[derive(Default)]
struct Still {
    moves: Moves,
    since_ns: u64,
}

impl Still {
    fn since(&mut self, moves: Moves, now_ns: u64) -> u64 {
        if self.moves != moves || self.since_ns == 0 {
            (self.moves, self.since_ns) = (moves, now_ns);
        }
        now_ns - self.since_ns
    }
}

/// For how long threads have been in the same sleep while nothing moved.
#[derive(Default)]
struct Held {
    still: Still,
    sleepers: BTreeMap<u32, u64>,
    since_ns: u64,
}

impl Held {
    fn since(&mut self, moves: Moves, sleepers: BTreeMap<u32, u64>, now_ns: u64) -> u64 {
        let still_ns = self.still.since(moves, now_ns);
        self.sleepers.retain(|thread, sleeps| sleepers.get(thread) == Some(sleeps));
        if self.sleepers.is_empty() {
            (self.sleepers, self.since_ns) = (sleepers, now_ns);
            return 0;
        }
        still_ns.min(now_ns - self.since_ns)
    }
}

/// When something that lasts is said again: first after 10 s, then whenever it has doubled.
#[derive(Default)]
struct Doubling {
    due_ns: u64,
}

impl Doubling {
    fn is_due(&mut self, lasted_ns: u64) -> bool {
        if lasted_ns < SILENCE_NS {
            self.due_ns = SILENCE_NS;
        }
        let is_due = self.due_ns > 0 && lasted_ns >= self.due_ns;
        while is_due && self.due_ns <= lasted_ns {
            self.due_ns *= 2;
        }
        is_due
    }
}

/// What is said, and when.
#[derive(Default)]
struct Teller {
    silent: Doubling,
    waited: Doubling,
}

impl Teller {
    fn tell(&mut self, seen: &Seen, silent_ns: u64, now_ns: u64) -> Option<String> {
        let waited_ns = now_ns.saturating_sub(seen.since_ns);
        // What was silent before the present work began is not its silence.
        let silent_ns = silent_ns.min(waited_ns);
        let (silent_due, waited_due) = (self.silent.is_due(silent_ns), self.waited.is_due(waited_ns));
        let seconds = |ns: u64| ns / NS_PER_S;
        let end = if seen.record.is_some() { "Ctrl-C ends and keeps what was measured" } else { "Ctrl-C ends" };
        let silence = || format!("no progress for {} s on {}; {end}", seconds(silent_ns), seen.places());
        match &seen.doing {
            Doing::Nothing => None,
            // Without a drive there is nobody who could answer.
            Doing::Work | Doing::Flush if seen.drives.is_empty() => None,
            Doing::Work => silent_due.then(silence),
            Doing::Flush if silent_due || waited_due => {
                let flush = format!("waiting for the flush of {}: {} s so far", seen.places(), seconds(waited_ns));
                Some(if silent_ns >= SILENCE_NS { format!("{flush}; {}", silence()) } else { flush })
            }
            Doing::Flush => None,
            Doing::Idle(text) => waited_due.then(|| format!("{text}: {} s so far", seconds(waited_ns))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = NS_PER_S;

    fn seen(doing: Doing) -> Seen {
        Seen { doing, drives: vec![Arc::new(Pulse::uncounted("/media/stick".into()))], ..Seen::default() }
    }

    /// What is said in the first minutes, by the second, when nothing moves from second 5 on.
    fn said(doing: Doing, moves_on: bool) -> Vec<(u64, String)> {
        let (seen, mut teller, mut still) = (seen(doing), Teller::default(), Still::default());
        let moves = |second: u64| if moves_on { second } else { second.min(5) };
        let mut said = |second: u64| teller.tell(&seen, still.since((moves(second), 0, Vec::new()), second * S), second * S);
        (1..100).filter_map(|second| Some((second, said(second)?))).collect()
    }

    #[test]
    fn field_c14_silence_is_said_after_ten_seconds_and_whenever_it_has_doubled() {
        let lines = said(Doing::Work, false);
        assert_eq!(lines[0], (15, "no progress for 10 s on /media/stick; Ctrl-C ends".to_owned()));
        assert_eq!(lines.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [15, 25, 45, 85]);
        assert_eq!(said(Doing::Work, true), []);
        assert_eq!(said(Doing::Nothing, false), []);
    }

    #[test]
    fn field_c14_a_flush_and_an_idle_drive_are_waited_for_in_words() {
        let flush = said(Doing::Flush, true);
        assert_eq!(flush[0], (10, "waiting for the flush of /media/stick: 10 s so far".to_owned()));
        assert_eq!(flush.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [10, 20, 40, 80]);
        let hung = said(Doing::Flush, false);
        let both = "waiting for the flush of /media/stick: 15 s so far; no progress for 10 s on /media/stick; Ctrl-C ends";
        assert!(hung.contains(&(15, both.to_owned())), "{hung:?}");
        let idle = said(Doing::Idle("waiting until the drive is quiet".to_owned()), false);
        assert_eq!(idle[0], (10, "waiting until the drive is quiet: 10 s so far".to_owned()));
    }

    #[test]
    fn field_c14_who_moves_or_sleeps_again_is_not_given_up() {
        let (mut held, still) = (Held::default(), (7, 0, vec![None]));
        let asleep = |sleeps| BTreeMap::from([(1, sleeps), (2, 99)]);
        assert_eq!([1, 2, 5].map(|second| held.since(still.clone(), asleep(4), second * S) / S), [0, 1, 4]);
        // Only the second thread still sleeps the same sleep; then neither does.
        assert_eq!(held.since(still.clone(), asleep(5), 6 * S) / S, 5);
        assert_eq!(held.since(still.clone(), BTreeMap::from([(1, 6)]), 7 * S), 0);
        // A drive that moves, or nobody asleep.
        assert_eq!(held.since((8, 0, vec![None]), BTreeMap::from([(1, 6)]), 9 * S), 0);
        assert_eq!(held.since((8, 0, vec![None]), BTreeMap::new(), 20 * S), 0);
    }
}
