//! One start, timed: caches prepared, drive idle, window opened, program started, its sign awaited, window closed, program ended with all that it started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use super::evidence::{self, Observed};
use super::files::{Caches, Ground};
use super::look::{self, Activity, Look};
use super::program::Program;
use super::run::Options;
use super::sign::{Lookout, Sign};
use crate::cache::evict::Wanted;
use crate::drive::ProcessIo;
use crate::error::{Error, Result, reason};
use crate::measure::Histogram;
use crate::measure::calls::{Calls, Op};
use crate::path_text::path_text;
use crate::platform::{Host, Spent, Start, Started, Told};
use crate::progress::Counter;
use crate::result::{Latency, LatencyOp, Launch, LaunchFaults, LaunchStorage, LaunchWaits, Phase, PhaseStatus, StartPoint, Warmth};
use crate::scenario::events::Event;
use crate::scenario::record::{cache, times};
use crate::scenario::traced;
use crate::scenario::window::{Timed, Watched, Work};
use crate::units::duration;
use crate::workload::copy::Copied;

/// Between two looks for a sign that has to be looked for.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Between two looks whether to stop, where a sign comes by itself.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// How long a program that was asked to end may take before it is made to.
const GRACE: Duration = Duration::from_secs(3);
/// Last lines of a program that failed.
const LAST_LINES: usize = 10;
/// Waits that people notice, bear badly, and do not bear, ms: 0.1 s, 1 s and 10 s (Miller 1968; Nielsen 1993).
const LIMITS_MS: [u64; 3] = [100, 1_000, 10_000];
const NS_PER_MS: u64 = 1_000_000;

/// What every start of a measurement shares.
pub(super) struct Bed<'a> {
    pub options: &'a Options,
    pub program: &'a Program,
    /// Files that are known to be part of the program.
    pub known: &'a [PathBuf],
    /// The directory whose drive is measured.
    pub directory: &'a Path,
    pub began_ns: u64,
    /// What the drive holds that answers in its place, as the evidence wants to know it.
    pub cache_below: bool,
}

/// How a start ended.
enum Ending {
    Ready {
        at_ns: u64,
    },
    /// The program ended with this exit code before anything else.
    Failed {
        code: i32,
    },
    /// It and all that it started ended, and no sign had come.
    EndedWithoutSign,
    TimeOver,
    Interrupted,
    /// It could not be started.
    NotStarted(std::io::Error),
}

/// What is known of a start at its end.
struct Course {
    begun_ns: u64,
    ending: Ending,
    code: Option<i32>,
    look: Look,
    /// What was moved for this process until the start, and until the sign.
    own_io: [Option<ProcessIo>; 2],
    started: Option<Started>,
}

impl Bed<'_> {
    /// Prepares caches for a start that is wanted so; what of the program is in memory then is told.
    ///
    /// # Errors
    /// A flush that failed.
    pub(super) fn prepare(&self, watched: &Watched<'_>, wanted: Wanted) -> Result<Caches> {
        let flushed = [self.directory, self.program.directory()];
        let ground = Ground {
            system: watched.system,
            host: watched.host,
            own: &self.program.file,
            known: self.known,
            flushed: &flushed[..if flushed[0] == flushed[1] { 1 } else { 2 }],
        };
        match wanted {
            Wanted::Cold => ground.cool(),
            Wanted::Warm => Ok(ground.leave("started before", Warmth::Warm)),
            Wanted::AsIs => Ok(ground.leave("none", Warmth::Unknown)),
        }
    }

    /// Makes one start. What was found out before a failure is in the phase; the failure itself is returned beside it.
    pub(super) fn start(&self, watched: &Watched<'_>, wanted: Wanted, caches: Caches, phase: &mut Phase) -> Result<()> {
        phase.status = PhaseStatus::Failed;
        let done = self.attempt(watched, wanted, caches, phase);
        match &done {
            Ok(()) => phase.status = PhaseStatus::Ok,
            Err(Error::Interrupted(_)) => phase.status = PhaseStatus::Interrupted,
            Err(error) => phase.error = Some(error.to_string()),
        }
        done
    }

    fn attempt(&self, watched: &Watched<'_>, wanted: Wanted, caches: Caches, phase: &mut Phase) -> Result<()> {
        let baseline_bytes_per_s = watched.settle(self.options.settle)?;
        watched.cancel.check()?;
        let lookout = Lookout::prepare(&self.options.sign, watched.system)?;
        let mut course: Option<Course> = None;
        let timed = watched.time(Work {
            what: format!("starting {}", self.program.line()),
            bytes: 0,
            counter: Arc::new(Counter::default()),
            run: &mut |open| self.begin(watched, lookout.as_ref(), open, &mut course),
            written: None,
        })?;
        let course = course.ok_or_else(|| Error::Internal("the program was never started".to_owned()))?;
        let end = course.started.as_ref().map(|started| {
            if started.processes().iter().any(|process| !process.has_ended) {
                watched.observer.on(Event::Waits(format!("{}: ending {}", watched.title, self.program.line())));
            }
            started.end(GRACE)
        });
        // What its children moved is booked to this process once they have ended.
        let program_io = course.look.io.or_else(|| match self.options.sign {
            Sign::Exit => Some(own_io(watched.host)?.since(course.own_io[1]?)),
            _ => None,
        });
        let last_lines = course.started.as_ref().map(|started| started.last_lines(LAST_LINES)).unwrap_or_default();
        if let Some(left) = end.as_ref().map(|end| &end.left).filter(|left| !left.is_empty()) {
            let left: Vec<String> = left.iter().map(u32::to_string).collect();
            watched.observer.on(Event::Notice(format!("the kernel holds processes that could not be ended: {}", left.join(", "))));
        }
        // What has ended is known exactly; what went on after the sign is known as it was then.
        let spent = end.map(|end| end.spent).filter(|_| self.options.sign == Sign::Exit);
        times(watched, &timed, self.began_ns, phase);
        traced::record(watched, &timed, phase);
        self.record(&course, &caches, spent, program_io, phase);
        self.judge(watched, &course, &last_lines)?;
        let own_io = course.own_io[1].zip(course.own_io[0]).map(|(after, before)| after.since(before));
        let seen = Observed { program_io, own_io, ..self.observed(watched, wanted, &timed, caches, baseline_bytes_per_s) };
        let conclusions = evidence::conclude(&seen);
        if let (Some(device), Some(foreign)) = (phase.device.get_mut(watched.target.id), conclusions.foreign_bytes) {
            device.foreign_bytes = Some(foreign);
        }
        phase.evidence = conclusions.evidence;
        phase.flags.extend(conclusions.flags);
        Ok(())
    }

    /// Starts the program and awaits its sign.
    fn begin<'c>(&self, watched: &Watched<'c>, lookout: Option<&Lookout>, open: &mut dyn FnMut(), course: &mut Option<Course>) -> Copied<'c> {
        let Watched { system, host, .. } = *watched;
        let own_before = own_io(host);
        open();
        let opened_ns = system.clock.now_ns();
        let started = Started::start(Start {
            file: &self.program.path,
            name: &self.program.name,
            arguments: &self.program.arguments,
            text: self.options.sign.text(),
        });
        let begun_ns = started.as_ref().map_or(opened_ns, |started| started.begun_ns);
        let (ending, code, look, started) = match started {
            Ok(started) => {
                let (ending, code) = self.await_sign(watched, lookout, &started);
                let look = look::look(host, &started.processes(), clock_ticks_per_second());
                (ending, code, look, Some(started))
            }
            Err(error) => (Ending::NotStarted(error), None, Look::default(), None),
        };
        let own_io = [own_before, own_io(host)];
        let mut calls = Calls::new(system.clock);
        let took_ns = system.clock.now_ns() - opened_ns;
        calls.add(Op::Command, took_ns);
        *course = Some(Course { begun_ns, ending, code, look, own_io, started });
        Copied { calls, thread_ns: took_ns, files: 0, bytes: 0, first_done_ns: None, slowest: Vec::new(), storage_read_bytes: None, failure: None }
    }

    fn await_sign(&self, watched: &Watched<'_>, lookout: Option<&Lookout>, started: &Started) -> (Ending, Option<i32>) {
        let begun_ns = started.begun_ns;
        let Watched { system, host, cancel, .. } = *watched;
        let sign = &self.options.sign;
        let timeout_ns = u64::try_from(self.options.timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut code = None;
        let mut quiet = Quiet { seen: Activity::default(), seen_ns: begun_ns, active_ns: begun_ns };
        let every = match sign {
            Sign::Exit | Sign::Line(_) => STOP_EVERY,
            Sign::Port { .. } | Sign::File(_) => LOOK_EVERY,
            Sign::Quiet(_) => look::LOOK_EVERY,
        };
        loop {
            if cancel.signal().is_some() {
                return (Ending::Interrupted, code);
            }
            match started.told(every) {
                Some(Told::Said(at_ns)) => return (Ending::Ready { at_ns }, code),
                Some(Told::Ended { code: ended_with, .. }) if ended_with != 0 => return (Ending::Failed { code: ended_with }, Some(ended_with)),
                Some(Told::Ended { at_ns, code: ended_with }) => {
                    code = Some(ended_with);
                    if *sign == Sign::Exit {
                        return (Ending::Ready { at_ns }, code);
                    }
                }
                None => {}
            }
            let now_ns = system.clock.now_ns();
            if lookout.is_some_and(|lookout| lookout.sees_it(system)) {
                return (Ending::Ready { at_ns: system.clock.now_ns() }, code);
            }
            if let Sign::Quiet(time) = sign {
                quiet.look(host, started, system.clock.now_ns());
                if quiet.seen_ns - quiet.active_ns >= u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) {
                    return (Ending::Ready { at_ns: quiet.active_ns }, code);
                }
            } else if code.is_some() && started.processes().iter().all(|process| process.has_ended) && started.has_fallen_silent() {
                // What it said last is told before this, or now.
                return match started.told(Duration::ZERO) {
                    Some(Told::Said(at_ns)) => (Ending::Ready { at_ns }, code),
                    _ => (Ending::EndedWithoutSign, code),
                };
            }
            if now_ns - begun_ns >= timeout_ns {
                return (Ending::TimeOver, code);
            }
        }
    }

    fn record(&self, course: &Course, caches: &Caches, spent: Option<Spent>, program_io: Option<ProcessIo>, phase: &mut Phase) {
        let ready_ns = match course.ending {
            Ending::Ready { at_ns } => Some(at_ns.saturating_sub(course.begun_ns)),
            _ => None,
        };
        phase.window.returned_ns = ready_ns.or(phase.window.returned_ns);
        phase.flush = None;
        phase.cache = Some(cache(&caches.prepared));
        let Spent { user_ns, system_ns, minor_faults, major_faults } = spent.unwrap_or(course.look.spent);
        phase.launch = Some(Launch {
            program: Some(self.program.line()),
            sign: Some(self.options.sign.to_string()),
            background: None,
            ready_ns,
            waits: ready_ns.map(waits).unwrap_or_default(),
            faults: Some(LaunchFaults { minor: Some(minor_faults), major: Some(major_faults) }),
            user_ns: Some(user_ns),
            system_ns: Some(system_ns),
            storage: program_io.map(|io| LaunchStorage { read_bytes: Some(io.read_bytes), written_bytes: Some(io.written_bytes) }),
            exit_code: course.code,
            files: Some(caches.files.clone()),
            ..Launch::default()
        });
        if let Some(ready_ns) = ready_ns {
            let mut histogram = Histogram::new();
            histogram.record(ready_ns);
            phase.latency = vec![Latency::of(LatencyOp::Ready, StartPoint::Submit, &histogram)];
        }
    }

    /// Whether the start is a result at all.
    fn judge(&self, watched: &Watched<'_>, course: &Course, last_lines: &[String]) -> Result<()> {
        let line = self.program.line();
        let words = match &course.ending {
            Ending::Ready { .. } => return Ok(()),
            Ending::Interrupted => return watched.cancel.check(),
            Ending::NotStarted(error) => return Err(Error::Internal(format!("cannot start {}: {}", path_text(&self.program.path), reason(error)))),
            Ending::Failed { code } if *code > 128 => format!("{line} was ended by signal {}: that is no start", code - 128),
            Ending::Failed { code } => format!("{line} failed with exit code {code}: that is no start"),
            Ending::EndedWithoutSign => format!("{line} ended, and {}", self.options.sign.is_awaited()),
            Ending::TimeOver => {
                let after = duration(u64::try_from(self.options.timeout.as_nanos()).unwrap_or(u64::MAX));
                format!(
                    "{line} gave no sign within {after}: {}; give it more time with --timeout, or name another sign with --until",
                    self.options.sign.is_awaited()
                )
            }
        };
        // The last line stands in the error; those before it are told beside it.
        let Some((last, before)) = last_lines.split_last() else { return Err(Error::Internal(words)) };
        if !before.is_empty() {
            watched.observer.on(Event::Notice(format!("the last lines of {}:", path_text(Path::new(OsStr::new(&self.program.name))))));
            before.iter().for_each(|line| watched.observer.on(Event::Notice(format!("  {line}"))));
        }
        Err(Error::Internal(format!("{words}; it said: {last}")))
    }

    /// What was seen of a start, but for what was moved for whom.
    fn observed(&self, watched: &Watched<'_>, wanted: Wanted, timed: &Timed<'_>, caches: Caches, baseline_bytes_per_s: Option<u64>) -> Observed {
        let (moved, drive) = (timed.moved(), watched.target.drive);
        let undropped = caches.prepared.metadata != Warmth::Cold;
        Observed {
            wanted,
            medium: drive.medium,
            cache: caches.prepared,
            files: caches.files,
            counted: timed.target_counted().into_iter().flatten().collect(),
            program_io: None,
            own_io: None,
            others_io: moved.others,
            busiest: moved.busiest,
            baseline_bytes_per_s,
            cache_below: self.cache_below && undropped,
            cache_elsewhere: drive.cache_elsewhere(),
            suspended_ns: timed.suspended_ns(),
        }
    }
}

/// What a program did when it was looked at last.
struct Quiet {
    seen: Activity,
    seen_ns: u64,
    active_ns: u64,
}

impl Quiet {
    fn look(&mut self, host: &Host, started: &Started, now_ns: u64) {
        let now = Activity::of(host, &started.processes());
        if now.is_more_than(&self.seen, now_ns - self.seen_ns) {
            self.active_ns = now_ns;
        }
        (self.seen, self.seen_ns) = (now, now_ns);
    }
}

/// What was moved for this process so far.
fn own_io(host: &Host) -> Option<ProcessIo> {
    host.fact("/proc/self/io").as_deref().and_then(ProcessIo::parse)
}

/// Which limits one wait of so long is over.
fn waits(ready_ns: u64) -> Vec<LaunchWaits> {
    let over = |over_ms: u64| ready_ns > over_ms * NS_PER_MS;
    LIMITS_MS.iter().map(|&over_ms| LaunchWaits { over_ms, n: over(over_ms).into(), share: Some(f64::from(u8::from(over(over_ms)))) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_is_over_the_limits_below_it() {
        let over = |ready_ns| waits(ready_ns).iter().map(|wait| (wait.over_ms, wait.n, wait.share)).collect::<Vec<_>>();
        assert_eq!(over(100 * NS_PER_MS), [(100, 0, Some(0.0)), (1_000, 0, Some(0.0)), (10_000, 0, Some(0.0))]);
        assert_eq!(over(1_001 * NS_PER_MS), [(100, 1, Some(1.0)), (1_000, 1, Some(1.0)), (10_000, 0, Some(0.0))]);
    }
}
