//! What a lab drive was asked and when: the truth that figures are held against.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Flush,
    Discard,
}

/// One request, once it was answered. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub kind: Kind,
    pub offset: u64,
    pub length: u64,
    /// When it reached the drive.
    pub arrived_ns: u64,
    /// When its service began: before it arrived where the rig's own time is taken off.
    pub started_ns: u64,
    /// When it was answered.
    pub ended_ns: u64,
    /// The errno that it was answered with; 0 for success.
    pub errno: i32,
    /// The rig's own time for it, on the way there and back, as it was measured on the idle drive.
    pub way_ns: u64,
}

/// Nanoseconds that lie in at least one of these spans, each from a time until a later one.
pub fn covered_ns(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered_until, mut total) = (0, 0);
    for (from, until) in spans {
        total += until.saturating_sub(from.max(covered_until));
        covered_until = covered_until.max(until);
    }
    total
}

/// Requests and bytes by kind. Failed requests are counted in `errors` alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub discarded_bytes: u64,
    pub errors: u64,
}

/// All requests of a drive, in the order of their answers.
#[derive(Default)]
pub struct Log(Mutex<Vec<Request>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, request: Request) {
        self.lock().push(request);
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().clone()
    }

    /// What was answered from `from_ns` on and before `until_ns`.
    pub fn between(&self, from_ns: u64, until_ns: u64) -> Sums {
        let mut sums = Sums::default();
        for request in self.lock().iter().filter(|request| (from_ns..until_ns).contains(&request.ended_ns)) {
            if request.errno != 0 {
                sums.errors += 1;
                continue;
            }
            let (number, bytes) = match request.kind {
                Kind::Read => (&mut sums.reads, Some(&mut sums.read_bytes)),
                Kind::Write => (&mut sums.writes, Some(&mut sums.written_bytes)),
                Kind::Flush => (&mut sums.flushes, None),
                Kind::Discard => (&mut sums.discards, Some(&mut sums.discarded_bytes)),
            };
            *number += 1;
            if let Some(bytes) = bytes {
                *bytes += request.length;
            }
        }
        sums
    }

    /// What was answered since the log began.
    pub fn sums(&self) -> Sums {
        self.between(0, u64::MAX)
    }

    /// Nanoseconds from `from_ns` to `until_ns` in which at least one request was with the drive (the union of their times from arrival to answer).
    pub fn in_flight_ns(&self, from_ns: u64, until_ns: u64) -> u64 {
        let within = |request: &Request| (request.arrived_ns.max(from_ns), request.ended_ns.min(until_ns));
        covered_ns(self.lock().iter().map(within).collect())
    }

    /// The log as text: a line of names, then one line a request with commas between.
    pub fn to_text(&self) -> String {
        let mut text = "arrived_ns,started_ns,ended_ns,kind,offset,length,errno,way_ns\n".to_owned();
        for request in self.lock().iter() {
            let Request { kind, offset, length, arrived_ns, started_ns, ended_ns, errno, way_ns } = request;
            let kind = match kind {
                Kind::Read => "read",
                Kind::Write => "write",
                Kind::Flush => "flush",
                Kind::Discard => "discard",
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{arrived_ns},{started_ns},{ended_ns},{kind},{offset},{length},{errno},{way_ns}");
        }
        text
    }
}
