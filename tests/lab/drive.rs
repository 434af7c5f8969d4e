//! The service of a lab drive: one request after another along an absolute time line, so that lateness of the machine does not add up.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

use super::faults::Faults;
use super::log::{Kind, Log, Request, now_ns};
use super::store::Store;
use super::transport::Transport;

/// Waking up late is expected by what it was of late, up to this.
const LATEST_NS: u64 = 500_000;

/// How fast a drive is. A request takes `latency` and its bytes over the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speed {
    /// Bytes per second; `None` is no limit.
    pub read: Option<u64>,
    /// Bytes per second; `None` is no limit.
    pub write: Option<u64>,
    /// Time that each read, write and discard takes beyond its bytes.
    pub latency: Duration,
    /// Time that each flush takes.
    pub flush: Duration,
}

impl Speed {
    /// The same rate for reading and writing, in bytes per second; nothing else takes time.
    pub fn rate(bytes_per_s: u64) -> Self {
        Self { read: Some(bytes_per_s), write: Some(bytes_per_s), ..Self::default() }
    }

    fn service_ns(&self, kind: Kind, length: u64) -> u64 {
        let rate = match kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
            Kind::Flush => return nanoseconds(self.flush),
            Kind::Discard => None,
        };
        let bytes_ns = rate.map_or(0, |rate| u128::from(length) * 1_000_000_000 / u128::from(rate));
        nanoseconds(self.latency) + bytes_ns as u64
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Whether reads and writes share the drive's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplex {
    /// One request after another, whatever it is.
    #[default]
    Half,
    /// Reads do not wait for writes, nor writes for reads.
    Full,
}

struct Pace {
    speed: Speed,
    /// The blocks that were ever written, where only new ones take time.
    known: Option<HashSet<u64>>,
    /// The speed to come, and after how many more written bytes.
    next: Option<(u64, Speed)>,
    /// Whether requests take any time at all.
    limited: bool,
    transport: Transport,
}

/// What to do with the outcome of a request: the bytes read (none for other kinds) or an errno.
pub type Answer = Box<dyn FnOnce(Result<&[u8], i32>) + Send>;

/// A request on its way.
pub struct Job {
    pub kind: Kind,
    pub offset: u64,
    pub length: u64,
    pub data: Vec<u8>,
    pub arrived_ns: u64,
    pub answer: Answer,
}

/// The state of a lab drive, shared by its threads and its owner.
pub struct Drive {
    pub store: Store,
    pub log: Log,
    pub faults: Faults,
    pace: Mutex<Pace>,
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Drive {
    pub fn new(speed: Speed) -> Self {
        let pace = Pace { speed, known: None, next: None, limited: false, transport: Transport::default() };
        Self { store: Store::default(), log: Log::default(), faults: Faults::default(), pace: Mutex::new(pace), buffers: Mutex::default() }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns the limits of speed on or off.
    pub fn limit(&self, limited: bool) {
        self.pace().limited = limited;
    }

    /// The rig's own time, which is then part of a request's service and not on top of it.
    pub fn set_transport(&self, transport: Transport) {
        self.pace().transport = transport;
    }

    /// The drive has this speed from the next request on.
    pub fn set_speed(&self, speed: Speed) {
        let mut pace = self.pace();
        pace.speed = speed;
        pace.next = None;
    }

    /// The drive has this speed once so many more bytes were written.
    pub fn set_speed_after(&self, written_bytes: u64, speed: Speed) {
        self.pace().next = Some((written_bytes, speed));
    }

    /// From now on the drive keeps equal data once: blocks of 4 KiB that it was given before take no time to write.
    pub fn keep_equal_data_once(&self) {
        self.pace().known = Some(HashSet::new());
    }

    /// How long a request takes now, and how long it was and will be on its way.
    fn times_ns(&self, kind: Kind, length: u64, data: &[u8]) -> (u64, u64) {
        const BLOCK: usize = 4096;
        let mut pace = self.pace();
        let speed = pace.speed;
        let is_new = |block: &&[u8]| {
            let mut hasher = DefaultHasher::new();
            hasher.write(block);
            pace.known.as_mut().is_none_or(|known| known.insert(hasher.finish()))
        };
        let new_length = if kind == Kind::Write { data.chunks(BLOCK).filter(is_new).map(<[u8]>::len).sum::<usize>() as u64 } else { length };
        if let (Kind::Write, Some((left, next))) = (kind, pace.next) {
            if length < left {
                pace.next = Some((left - length, next));
            } else {
                pace.speed = next;
                pace.next = None;
            }
        }
        if pace.limited { (speed.service_ns(kind, new_length), pace.transport.ns(kind, length)) } else { (0, 0) }
    }

    /// An empty buffer for what is to be written. Those of before are used again: fresh memory would cost as much time as the copying.
    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put_back(&self, mut buffer: Vec<u8>) {
        // As many as a loop device has under way.
        const MOST: usize = 128;
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() > 0 && buffers.len() < MOST {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// Does what is asked with the medium.
    fn perform(&self, job: &Job, buffer: &mut Vec<u8>) {
        buffer.clear();
        match job.kind {
            Kind::Read => {
                buffer.resize(job.length as usize, 0);
                self.faults.read(&self.store, job.offset, buffer);
            }
            Kind::Write => self.faults.write(&self.store, job.offset, &job.data),
            Kind::Discard => self.store.discard(job.offset, job.length),
            Kind::Flush => {}
        }
    }

    /// Serves the requests of one time line until no more can come.
    fn serve(&self, jobs: &Receiver<Job>) {
        hurry();
        let mut buffer = Vec::new();
        let (mut free_ns, mut late_ns) = (0, 0);
        while let Ok(job) = jobs.recv() {
            let Job { kind, offset, length, arrived_ns, .. } = job;
            let released_ns = self.faults.wait_while_hanging();
            let range = offset..offset + length;
            let (errno, started_ns, way_ns) = match self.faults.vanished() {
                Some(errno) => (Some(errno), arrived_ns, 0),
                None => {
                    let (delay, errno) = self.faults.verdict(kind, &range);
                    if errno.is_none() {
                        self.perform(&job, &mut buffer);
                    }
                    let (service_ns, transport_ns) = self.times_ns(kind, length, &job.data);
                    let started_ns = (arrived_ns - transport_ns).max(free_ns).max(released_ns);
                    free_ns = started_ns + service_ns + nanoseconds(delay);
                    late_ns = sleep_until(free_ns, late_ns);
                    (errno, started_ns, transport_ns)
                }
            };
            let ended_ns = now_ns();
            // Before the answer: who has the answer must find the request in the log.
            self.log.push(Request { kind, offset, length, arrived_ns, started_ns, ended_ns, errno: errno.unwrap_or(0), way_ns });
            (job.answer)(errno.map_or(Ok(&buffer), Err));
            self.put_back(job.data);
        }
    }
}

/// Lets the calling thread be woken before others and without the usual slack of 50 µs: a drive does not wait for the programs that use it.
pub fn hurry() {
    // Where this is refused the drive is merely late more often.
    let _ = setpriority_process(None, -20);
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Sleeps until a time, less how late waking up tends to be; returns the new tendency.
fn sleep_until(time_ns: u64, late_ns: u64) -> u64 {
    let wake_ns = time_ns.saturating_sub(late_ns);
    if wake_ns <= now_ns() {
        return late_ns;
    }
    let time = Timespec { tv_sec: (wake_ns / 1_000_000_000) as i64, tv_nsec: (wake_ns % 1_000_000_000) as i64 };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
    (late_ns * 7 + now_ns() - wake_ns).div_ceil(8).min(LATEST_NS)
}

/// The ways into a drive. Its threads end when this is dropped.
pub struct Lines {
    drive: Arc<Drive>,
    reads: Sender<Job>,
    others: Sender<Job>,
}

impl Lines {
    /// Starts the threads of a drive.
    pub fn start(drive: &Arc<Drive>, duplex: Duplex) -> std::io::Result<(Self, Vec<JoinHandle<()>>)> {
        let mut threads = Vec::new();
        let mut line = || -> std::io::Result<Sender<Job>> {
            let (jobs, queue) = channel();
            let drive = Arc::clone(drive);
            threads.push(std::thread::Builder::new().name("lab-drive".to_owned()).spawn(move || drive.serve(&queue))?);
            Ok(jobs)
        };
        let others = line()?;
        let reads = if duplex == Duplex::Full { line()? } else { others.clone() };
        Ok((Self { drive: Arc::clone(drive), reads, others }, threads))
    }

    /// An empty buffer for a job's data.
    pub fn buffer(&self) -> Vec<u8> {
        self.drive.buffer()
    }

    pub fn submit(&self, job: Job) {
        let line = if job.kind == Kind::Read { &self.reads } else { &self.others };
        // A line only ends after this side: were it gone, the request would have to hang as on a dead drive.
        let _ = line.send(job);
    }
}
