//! A window: the time in which a piece of work is measured, whatever the work is. Drives idle, clock and counters read, work, flush, clock and counters read again.

use std::sync::Arc;
use std::time::Duration;

use super::events::{Event, Observer};
use super::witness::{Seen, Witness};
use crate::cache::flush::{Written, make_durable};
use crate::drive::block_trace::{BlockTrace, Outcome, Reads};
use crate::drive::counters::{Completions, NotQuiet, wait_until_quiet};
use crate::drive::{CounterReader, Counters, Drive, KernelNames, Moved, Processes, Thermometer};
use crate::error::{Error, Result};
use crate::measure::Samples;
use crate::measure::sampler::sampled;
use crate::platform::{Host, System, Usage};
use crate::progress::{Cancel, Counter};
use crate::result::{Answer, Flush, Measured};
use crate::workload::copy::Copied;

/// A device is quiet when it has completed no write for this long.
const QUIET: Duration = Duration::from_secs(1);
/// No longer is waited for it, nor for an idle drive before a window.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a drive that does not become idle is watched, to know what others move on it.
const BASELINE: Duration = Duration::from_secs(2);

/// A temperature in the timeline is at most this old: reading it costs the drive a command.
const WARM_EVERY: Duration = Duration::from_secs(2);

/// The counters of what is under a directory: of the nearest devices, and of the physical ones where these are others.
pub struct DriveCounters {
    nearest: Option<CounterReader>,
    physical: Option<CounterReader>,
    /// What the kernel calls it.
    names: KernelNames,
    /// How warm it is, of the first of several.
    thermometer: Option<Thermometer>,
}

impl DriveCounters {
    /// Opens them.
    #[must_use]
    pub fn open(host: &Host, drive: &Drive) -> Self {
        let nearest = drive.counted();
        let leaves: Vec<_> = drive.leaves().iter().map(|device| device.number).collect();
        let physical = (leaves != nearest).then(|| CounterReader::open(host, &leaves)).flatten();
        let thermometer = drive.leaves().into_iter().find_map(|device| Thermometer::of(host, device));
        Self { nearest: CounterReader::open(host, &nearest), physical, names: KernelNames::of(host, drive), thermometer }
    }

    /// What they say now, nearest first; a level that can't be read is left out.
    #[must_use]
    pub fn read(&self) -> Levels {
        [&self.nearest, &self.physical].map(|reader| reader.as_ref().and_then(|reader| reader.read().ok()))
    }
}

/// The counters of the nearest devices, and of the physical ones where these are others.
pub type Levels = [Option<Counters>; 2];

/// What was counted between two looks; a level that was not seen at both is unknown.
#[must_use]
pub fn difference(before: Levels, after: Levels) -> Levels {
    [0, 1].map(|level| Some(after[level]?.since(&before[level]?)))
}

/// A role's drive with its counters and its name in the record.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// What it is.
    pub drive: &'a Drive,
    /// Its counters.
    pub counted: &'a DriveCounters,
    /// Its id in the record.
    pub id: &'a str,
}

impl Place<'_> {
    /// Whether the same devices count for both: two directories of one drive.
    #[must_use]
    pub fn shares_counters(&self, other: &Self) -> bool {
        let counted = self.drive.counted();
        !counted.is_empty() && counted == other.drive.counted()
    }
}

/// What every window has: the system, who watches, and the drives that are looked at.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// The system.
    pub system: System<'a>,
    /// Facts about the machine.
    pub host: &'a Host,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Whether to stop.
    pub cancel: &'a Cancel,
    /// What the work is called: "run 2 of 3".
    pub title: &'a str,
    /// Whether the window is watched while it is open; not to see what that costs.
    pub evidence: bool,
    /// The drive that is written to.
    pub target: Place<'a>,
    /// The drive that is read from, where it is another.
    pub source: Option<Place<'a>>,
    /// Where the data of the work come from, for the trace of the kernel's block events; `None` where none was asked for.
    pub traced: Option<Reads<'a>>,
}

/// What was read at one moment.
pub struct Moment {
    /// CPU time of this process, and of the programs that it started and waited for.
    usage: [Usage; 2],
    /// For how long the machine had slept since it was started.
    suspended_ns: u64,
    processes: Processes,
    source: Levels,
    target: Levels,
}

/// A piece of work and how it is told.
pub struct Work<'a, 'w> {
    /// What is done: "copying 7,861 files, 8.41 GB".
    pub what: String,
    /// How many bytes of progress it will make.
    pub bytes: u64,
    /// How far it is.
    pub counter: Arc<Counter>,
    /// The work. It calls its argument when the clock shall start: what comes before is preparation.
    pub run: &'w mut dyn FnMut(&mut dyn FnMut()) -> Copied<'a>,
    /// What it has written and how that is flushed; `None` where nothing is.
    pub written: Option<Written<'w>>,
}

/// What a window held.
pub struct Timed<'a> {
    /// What was done.
    pub done: Copied<'a>,
    /// From the opening until the last call came back.
    pub returned_ns: u64,
    /// From the opening until the data were flushed; `None` where they were not.
    pub durable_ns: Option<u64>,
    /// The flush.
    pub flush: Flush,
    /// The moment of the opening, of the monotonic clock.
    pub start_ns: u64,
    /// Progress over time.
    pub samples: Samples,
    /// Processor time that sampling and tracing took, ns; `None` where neither was done.
    pub evidence_ns: Option<u64>,
    /// What the samples are of.
    pub series: Vec<(String, Measured)>,
    /// How long the target had been busy at each sample, ns, by the kernel's estimate: an upper bound.
    pub busy_ns: Vec<Option<i64>>,
    /// What was seen beside the samples.
    pub seen: Seen,
    /// What came of the block trace; `None` where none was asked for.
    pub trace: Option<Outcome>,
    before: Moment,
    after: Moment,
}

impl Timed<'_> {
    /// CPU time of this process and of the programs that it started and waited for.
    #[must_use]
    pub fn cpu(&self) -> Usage {
        let [own, children] = [0, 1].map(|index| self.after.usage[index].since(self.before.usage[index]));
        Usage { user_ns: own.user_ns + children.user_ns, system_ns: own.system_ns + children.system_ns }
    }

    /// For how long the machine slept within the window.
    #[must_use]
    pub fn suspended_ns(&self) -> u64 {
        self.after.suspended_ns.saturating_sub(self.before.suspended_ns)
    }

    /// What processes moved.
    #[must_use]
    pub fn moved(&self) -> Moved {
        self.after.processes.since(&self.before.processes)
    }

    /// What the source's devices counted, where it is another drive than the target.
    #[must_use]
    pub fn source_counted(&self) -> Levels {
        difference(self.before.source, self.after.source)
    }

    /// What the target's devices counted.
    #[must_use]
    pub fn target_counted(&self) -> Levels {
        difference(self.before.target, self.after.target)
    }
}

impl<'a> Watched<'a> {
    fn places(&self) -> impl Iterator<Item = &Place<'a>> {
        std::iter::once(&self.target).chain(&self.source)
    }

    /// Looks at everything. What looking itself takes is no part of the window: processor time is read last at its opening, and first at its end.
    fn look(&self, at_the_end: bool) -> Moment {
        let usage = || [Usage::of_process(), Usage::of_children()];
        let ended = at_the_end.then(usage);
        let mut moment = Moment {
            usage: ended.unwrap_or_default(),
            suspended_ns: self.system.clock.boot_ns().saturating_sub(self.system.clock.now_ns()),
            processes: if self.evidence { Processes::look(self.host) } else { Processes::default() },
            source: self.source.map_or([None, None], |place| place.counted.read()),
            target: self.target.counted.read(),
        };
        if ended.is_none() {
            moment.usage = usage();
        }
        moment
    }

    /// Waits until the drives have been idle for `time`. Returns what they move while nothing of ours is under way, bytes/s: 0 for idle ones, `None` where
    /// there are no counters or nothing was waited for.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn settle(&self, time: Duration) -> Result<Option<u64>> {
        if time.is_zero() {
            return Ok(None);
        }
        let mut baseline = Some(0);
        let Self { system, observer, cancel, title, .. } = *self;
        observer.on(Event::Idles(format!("{title}: waiting until the drive has been idle for {}", humantime::format_duration(time))));
        for place in self.places() {
            match &place.counted.nearest {
                Some(reader) => {
                    if let Err(reason) = wait_until_quiet(reader, system.clock, Completions::OfAll, time, time + LONGEST_WAIT, cancel) {
                        cancel.check()?;
                        observer.on(Event::Notice(format!("{} was not idle before the window: {reason}", place.drive.path.display())));
                        let moved = if matches!(reason, NotQuiet::StillBusy) { self.moved_meanwhile(reader, BASELINE)? } else { None };
                        baseline = baseline.zip(moved).map(|(sum, moved)| sum + moved);
                    }
                }
                // Without counters there is nothing to see; a pause is what is left.
                None => {
                    self.pause(time)?;
                    baseline = None;
                }
            }
        }
        Ok(baseline)
    }

    /// What a drive moves in a time in which nothing of ours is under way, bytes/s.
    fn moved_meanwhile(&self, reader: &CounterReader, time: Duration) -> Result<Option<u64>> {
        let before = reader.read().ok();
        self.pause(time)?;
        let moved = reader.read().ok().zip(before).map(|(after, before)| after.since(&before));
        Ok(moved.map(|moved| (moved.read_bytes + moved.written_bytes) / time.as_secs().max(1)))
    }

    /// Waits, in pieces, so that whoever asks for the end need not wait for it.
    fn pause(&self, time: Duration) -> Result<()> {
        const PIECE: Duration = Duration::from_millis(50);
        let mut left = time;
        while !left.is_zero() {
            self.cancel.check()?;
            self.system.clock.sleep(left.min(PIECE));
            left = left.saturating_sub(PIECE);
        }
        Ok(())
    }

    /// Does the work in a window. A failure of the work or of the flush is in what was done.
    ///
    /// # Errors
    /// What ended the work before its window was opened.
    pub fn time<'c>(&self, work: Work<'c, '_>) -> Result<Timed<'c>> {
        let Self { system, observer, title, .. } = *self;
        let Work { what, bytes, counter, run, written } = work;
        observer.on(Event::Begins { what: format!("{title}: {what}"), bytes, counter: Arc::clone(&counter), timed: true });
        let mut series = vec![("work".to_owned(), Measured::WrittenBytes)];
        for place in self.places() {
            series.extend([(place.id.to_owned(), Measured::ReadBytes), (place.id.to_owned(), Measured::WrittenBytes)]);
        }
        series.extend(self.places().filter(|place| place.counted.thermometer.is_some()).map(|place| (place.id.to_owned(), Measured::Celsius)));
        // What the sampler's thread needs, and no more: who watches need not be shared among threads.
        let counted: Vec<&DriveCounters> = self.places().map(|place| place.counted).collect();
        let mut witness = Witness::new(system.clock, self.places().map(|place| (place.id, &place.counted.names)).collect());
        let thermometers: Vec<&Thermometer> = counted.iter().filter_map(|counters| counters.thermometer.as_ref()).collect();
        let (mut warm_at_ns, mut celsius) = (None, vec![None; thermometers.len()]);
        let look = || {
            let number = |of: Option<u64>| of.and_then(|value| i64::try_from(value).ok());
            let mut values = vec![number(Some(counter.bytes()))];
            let counted: Vec<Option<Counters>> = counted.iter().map(|counters| counters.read()[0]).collect();
            for counters in &counted {
                values.push(number(counters.map(|counters| counters.read_bytes)));
                values.push(number(counters.map(|counters| counters.written_bytes)));
            }
            let now = system.clock.now_ns();
            if warm_at_ns.is_none_or(|at_ns| now - at_ns >= WARM_EVERY.as_nanos() as u64) {
                warm_at_ns = Some(now);
                celsius = thermometers.iter().map(|thermometer| thermometer.celsius()).collect();
            }
            values.extend(&celsius);
            // Behind the series that are kept: how long the target was busy.
            values.push(number(counted[0].map(|counters| counters.io_ticks_ns)));
            witness.look(counter.bytes(), &counted);
            values
        };
        let trace = self.traced.map(|reads| BlockTrace::start(self.host, self.target.drive, reads, None));
        let tracing = trace.as_ref().and_then(|trace| trace.as_ref().ok());
        let mut opened: Option<(u64, Moment)> = None;
        let watched_work = || {
            let mut open = || {
                let moment = self.look(false);
                let start = system.clock.now_ns();
                opened = Some((start, moment));
                if let Some(trace) = tracing {
                    trace.open(start);
                }
            };
            let mut done = run(&mut open);
            let start = opened.as_ref().map_or_else(|| system.clock.now_ns(), |(start, _)| *start);
            let returned_ns = system.clock.now_ns() - start;
            let (flush, durable_ns) = match written.filter(|_| done.failure.is_none()) {
                Some(written) => self.flush(&written, &mut done, start),
                None => (not_flushed("none", None, Answer::Unknown), None),
            };
            if let Some(trace) = tracing {
                trace.close(start + durable_ns.unwrap_or(returned_ns));
            }
            (done, returned_ns, durable_ns, flush)
        };
        let begun_ns = system.clock.now_ns();
        let (ended, samples, evidence_ns) = if self.evidence {
            let (ended, samples, used_ns) = sampled(system.clock, series.len() + 1, look, watched_work);
            (ended, samples, Some(used_ns))
        } else {
            series.clear();
            (watched_work(), Samples::default(), None)
        };
        let after = self.look(true);
        let trace = trace.map(|trace| trace.map_or_else(Outcome::none, BlockTrace::finish));
        let evidence_ns = match (evidence_ns, trace.as_ref().map(|outcome| outcome.cpu_ns)) {
            (None, None) => None,
            (sampled, traced) => Some(sampled.unwrap_or(0) + traced.unwrap_or(0)),
        };
        observer.on(Event::Ends);
        let (done, returned_ns, durable_ns, flush) = ended;
        let Some((start_ns, before)) = opened else {
            return Err(done.failure.unwrap_or_else(|| Error::Internal("the window was never opened".to_owned())));
        };
        let mut samples = samples.since(start_ns - begun_ns);
        let busy_ns = samples.values.pop().unwrap_or_default();
        let seen = if self.evidence { witness.finish(start_ns, start_ns + flush_begins(&samples)) } else { Seen::default() };
        Ok(Timed { done, returned_ns, durable_ns, flush, start_ns, samples, evidence_ns, series, busy_ns, seen, trace, before, after })
    }

    fn flush(&self, written: &Written<'_>, done: &mut Copied<'_>, window_ns: u64) -> (Flush, Option<u64>) {
        self.observer.on(Event::Flushes);
        let clock = self.system.clock;
        let mut flushes = || self.target.counted.read()[0].and_then(|counters| counters.flushes);
        let volatile = self.target.drive.volatile_cache();
        let begun = clock.now_ns();
        let (flush, flushed) = match make_durable(written, &mut done.calls, &mut flushes, volatile) {
            // A file system that was told not to flush its device does not; what was counted was somebody else's.
            Ok((flush, flushed)) if flush.reaches_medium == Answer::Yes && volatile != Some(false) && self.target.drive.has_no_barriers() => {
                (Flush { method: format!("{} (mounted without barriers)", flush.method), reaches_medium: Answer::Unknown, ..flush }, flushed)
            }
            Ok(flushed) => flushed,
            Err(failure) => {
                done.failure = Some(failure);
                (not_flushed("failed", volatile, Answer::No), false)
            }
        };
        let end = clock.now_ns();
        // The other threads have nothing to do meanwhile: the flush is one thread's.
        done.thread_ns += end - begun;
        (flush, flushed.then_some(end - window_ns))
    }

    /// When the target stopped writing, ns after the window's opening, or why that is not known.
    #[must_use]
    pub fn quiet(&self, timed: &Timed<'_>) -> (Option<u64>, Option<String>) {
        let Some(reader) = &self.target.counted.nearest else {
            return (None, Some("the target has no counters".to_owned()));
        };
        let Some(durable_ns) = timed.durable_ns else {
            return (None, Some("the data were not flushed".to_owned()));
        };
        self.observer.on(Event::Idles(format!("{}: waiting until the drive is quiet", self.title)));
        match wait_until_quiet(reader, self.system.clock, Completions::OfWrites, QUIET, LONGEST_WAIT, self.cancel) {
            // No completion after the flush: it was quiet then.
            Ok(last) => (Some(last.saturating_sub(timed.start_ns).max(durable_ns)), None),
            Err(reason) => (None, Some(reason.to_string())),
        }
    }
}

/// When the work was done and the target had taken nearly all that it took: what follows is the flush, whose silence is no stall.
fn flush_begins(samples: &Samples) -> u64 {
    let done = |column: &Vec<Option<i64>>| {
        let (first, last) = (column.iter().flatten().next()?, column.iter().flatten().next_back()?);
        let nearly = last - (last - first) / 100;
        column.iter().position(|value| value.is_some_and(|value| value >= nearly))
    };
    // The work, and what the target wrote.
    let at = [samples.values.first(), samples.values.get(2)].into_iter().flatten().filter_map(done).max();
    at.and_then(|index| samples.t_ns.get(index)).copied().unwrap_or(u64::MAX / 2)
}

fn not_flushed(method: &str, volatile_cache: Option<bool>, reaches_medium: Answer) -> Flush {
    Flush { method: method.to_owned(), device_flushes: None, volatile_cache, reaches_medium }
}
