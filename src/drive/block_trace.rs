//! The block trace of drives: the kernel's events, read beside the work by a thread of its own with bounded memory, and what came of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::{DeviceNumber, Drive, mounts};
use crate::measure::block_trace::{Division, Figures, Tracker};
use crate::platform::{BlockEvent, BlockEvents, Clock, Host, OsClock, Usage, remove_left_over};
use crate::units::count;

/// Between two readings of the kernel's buffers.
const INTERVAL: Duration = Duration::from_millis(50);
/// Events are followed when they are this old: by then those of all processors are there, and an edge of the window is known before what lies behind it.
const LAG_NS: u64 = 300_000_000;
/// Events that wait for their age: 40 bytes each.
const MOST_WAITING: usize = 1 << 20;

/// Where the data of the work come from.
#[derive(Debug, Clone, Copy)]
pub enum Reads<'a> {
    /// Another drive.
    Drive(&'a Drive),
    /// The target itself.
    Target,
    /// No drive.
    Nothing,
}

/// What came of a trace.
#[derive(Debug)]
pub struct Outcome {
    /// The figures of the target and, where it is another drive, of the source; or why there are none, as a sentence without a capital.
    pub figures: Result<Figures, String>,
    /// Events lost; `None` where that is not known.
    pub lost: Option<u64>,
    /// Processor time that reading and following them took, ns.
    pub cpu_ns: u64,
}

impl Outcome {
    /// Nothing came of it, for this reason.
    #[must_use]
    pub fn none(reason: String) -> Self {
        Self { figures: Err(reason), lost: None, cpu_ns: 0 }
    }
}

/// A trace under way.
#[derive(Debug)]
pub struct BlockTrace {
    edges: Arc<Mutex<Edges>>,
    stop: Option<Sender<()>>,
    reader: Option<JoinHandle<Outcome>>,
}

/// The edges of the window as far as they are known, ns of the monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
struct Edges {
    opened_ns: Option<u64>,
    closed_ns: Option<u64>,
}

impl BlockTrace {
    /// Begins to trace a target and what is read. `buffer_kib` is the size of each processor's buffer; `None` for one that fits the machine.
    ///
    /// # Errors
    /// Why it can't be done, as a sentence without a capital.
    pub fn start(host: &Host, target: &Drive, reads: Reads<'_>, buffer_kib: Option<u64>) -> Result<Self, String> {
        let tracefs = find(host).ok_or("tracefs is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)")?;
        Self::start_in(&tracefs, host, target, reads, buffer_kib)
    }

    fn start_in(tracefs: &Path, host: &Host, target: &Drive, reads: Reads<'_>, buffer_kib: Option<u64>) -> Result<Self, String> {
        let mut drives = vec![traceable(host, target, "target")?];
        let division = match reads {
            Reads::Drive(source) => {
                drives.push(traceable(host, source, "source")?);
                Division::Drives { source: 1, target: 0 }
            }
            Reads::Target => Division::Directions,
            Reads::Nothing => Division::Target,
        };
        let events = BlockEvents::start(tracefs, &drives.concat(), buffer_kib).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => "the kernel's block events are for root alone".to_owned(),
            _ => format!("the kernel's block events can't be had: {error}"),
        })?;
        let tracker = Tracker::new(&drives, division);
        let edges = Arc::new(Mutex::new(Edges::default()));
        let (stop, stopped) = bounded(0);
        let known = Arc::clone(&edges);
        let reader = std::thread::Builder::new().name("block-trace".to_owned()).spawn(move || follow(events, tracker, &known, &stopped));
        let reader = reader.map_err(|error| format!("no thread can be had for it: {error}"))?;
        Ok(Self { edges, stop: Some(stop), reader: Some(reader) })
    }

    /// Says when the window opened; soon after it did.
    pub fn open(&self, ns: u64) {
        lock(&self.edges).opened_ns = Some(ns);
    }

    /// Says when the window closed; soon after it did.
    pub fn close(&self, ns: u64) {
        lock(&self.edges).closed_ns = Some(ns);
    }

    /// Ends the trace.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        self.end().unwrap_or_else(|| Outcome::none("the thread that read the trace ended early".to_owned()))
    }

    fn end(&mut self) -> Option<Outcome> {
        self.stop = None;
        self.reader.take()?.join().ok()
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        // Only when its thread has ended is nothing left in tracefs.
        let _ = self.end();
    }
}

fn lock(edges: &Mutex<Edges>) -> MutexGuard<'_, Edges> {
    edges.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads events until it shall stop, and follows them.
fn follow(mut events: BlockEvents, tracker: Tracker, edges: &Mutex<Edges>, stopped: &Receiver<()>) -> Outcome {
    let mut follower = Follower { tracker, told: Edges::default(), waiting: Vec::new() };
    let mut done = Ok(());
    loop {
        // The clock is read before the edges, and both before the events: what is older than this lies behind no edge that is not known yet.
        let old_ns = OsClock.now_ns().saturating_sub(LAG_NS);
        let known = *lock(edges);
        done = done.and(follower.read(&mut events).map(drop));
        follower.follow(known, old_ns);
        if done.is_err() || stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    done = done.and(events.stop().map_err(|error| error.to_string()));
    // One reading may end before the buffers do.
    while done.is_ok() {
        match follower.read(&mut events) {
            Ok(0) => break,
            read => done = read.map(drop),
        }
    }
    follower.follow(*lock(edges), u64::MAX);
    let lost = events.lost().ok();
    let figures = done.and_then(|()| match lost {
        Some(0) => follower.tracker.finish(),
        Some(lost) => Err(format!("{} of the kernel's block events were lost: they came faster than they were read", count(lost))),
        None => Err("whether block events were lost is not known".to_owned()),
    });
    let used = Usage::of_thread();
    Outcome { figures, lost, cpu_ns: used.user_ns + used.system_ns }
}

struct Follower {
    tracker: Tracker,
    told: Edges,
    waiting: Vec<BlockEvent>,
}

impl Follower {
    /// Takes what has come; returns how many events that were.
    fn read(&mut self, events: &mut BlockEvents) -> Result<usize, String> {
        let before = self.waiting.len();
        events.read(&mut |event| self.waiting.push(event)).map_err(|error| error.to_string())?;
        if self.waiting.len() > MOST_WAITING {
            return Err(format!("more than {} block events came within {} ms", count(MOST_WAITING as u64), LAG_NS / 1_000_000));
        }
        Ok(self.waiting.len() - before)
    }

    /// Follows the events from before a moment, in the order of time.
    fn follow(&mut self, edges: Edges, before_ns: u64) {
        if let (None, Some(ns)) = (self.told.opened_ns, edges.opened_ns) {
            self.tracker.open(ns);
        }
        if let (None, Some(ns)) = (self.told.closed_ns, edges.closed_ns) {
            self.tracker.close(ns);
        }
        self.told = edges;
        self.waiting.sort_by_key(|event| event.ns);
        let old = self.waiting.partition_point(|event| event.ns < before_ns);
        for event in self.waiting.drain(..old) {
            self.tracker.event(&event);
        }
    }
}

/// Where tracefs is mounted: the usual place before any other.
fn find(host: &Host) -> Option<PathBuf> {
    let mounts = host.bytes("/proc/self/mountinfo").map(|list| mounts::parse(&list)).unwrap_or_default();
    let mut places: Vec<PathBuf> = mounts.into_iter().filter(|mount| mount.fs_type == "tracefs").map(|mount| mount.point).collect();
    places.sort_by_key(|place| place != Path::new("/sys/kernel/tracing"));
    // A mounted debugfs mounts it below itself when it is looked at.
    let below_debugfs = PathBuf::from("/sys/kernel/debug/tracing");
    places.extend(host.fact(below_debugfs.join("trace_clock")).map(|_| below_debugfs));
    places.first().map(|place| host.path(place))
}

/// The devices of a drive whose requests the kernel traces.
fn traceable(host: &Host, drive: &Drive, role: &str) -> Result<Vec<DeviceNumber>, String> {
    let numbers = drive.counted();
    // Devices that hand on what they are asked, or answer at once, have no queue of requests.
    let queues = |&(major, minor): &DeviceNumber| !host.names(format!("/sys/dev/block/{major}:{minor}/mq")).is_empty();
    match numbers.is_empty() {
        true => Err(format!("the {role} lies on no block device")),
        false if !numbers.iter().all(queues) => Err(format!("the {role}'s device has no queue of requests that the kernel traces")),
        false => Ok(numbers),
    }
}

/// Removes what traces of killed processes of copysim left in tracefs; returns how many there were.
#[must_use]
pub fn clean(host: &Host) -> usize {
    find(host).map_or(0, |tracefs| remove_left_over(&tracefs))
}

#[cfg(test)]
#[path = "block_trace_tests.rs"]
mod tests;
