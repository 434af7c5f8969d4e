//! Tells a person how far the work is: bars on a terminal, plain lines elsewhere, nothing with --quiet.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::options::Color;
use super::output;
use super::watchdog::{Rescue, Watchdog};
use crate::platform::OS;
use crate::progress::{Cancel, Counter};
use crate::report::printable;
use crate::scenario::events::{Event, Observer};
use crate::units::{duration, rate};

/// Between two looks at a counter on a terminal.
const DRAW: Duration = Duration::from_millis(200);
/// The same while the work is timed: drawing costs time that the work should have.
const DRAW_TIMED: Duration = Duration::from_secs(1);
/// Between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

/// A display on standard error.
pub struct Watch {
    quiet: bool,
    terminal: bool,
    cancel: Arc<Cancel>,
    watchdog: Watchdog,
    shown: Mutex<Option<Shown>>,
}

/// The piece of work that is shown now.
struct Shown {
    bar: Option<ProgressBar>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    follower: JoinHandle<()>,
}

impl Watch {
    /// A display that shows nothing, bars or lines. `rescue` is what is done with the record so far when the program has to end without whoever works on it.
    #[must_use]
    pub fn new(quiet: bool, color: Color, cancel: Arc<Cancel>, rescue: Rescue) -> Self {
        match color {
            Color::Always => console::set_colors_enabled_stderr(true),
            Color::Never => console::set_colors_enabled_stderr(false),
            Color::Auto => {}
        }
        let watchdog = Watchdog::new(quiet, Arc::clone(&cancel), rescue);
        Self { quiet, terminal: std::io::stderr().is_terminal(), cancel, watchdog, shown: Mutex::new(None) }
    }

    fn begin(&self, what: &str, bytes: u64, counter: Arc<Counter>, timed: bool) {
        self.end();
        let bar = self.terminal.then(|| bar(what, bytes));
        if bar.is_none() {
            output::note(what);
        }
        output::shows(bar.clone());
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (followed, stopped) = (bar.clone(), Arc::clone(&stop));
        let follower = thread::spawn(move || {
            let start = OS.clock.now_ns();
            let interval = match (&followed, timed) {
                (None, _) => LINE,
                (Some(_), true) => DRAW_TIMED,
                (Some(_), false) => DRAW,
            };
            let (flag, changed) = &*stopped;
            let mut over = flag.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                over = changed.wait_timeout_while(over, interval, |over| !*over).unwrap_or_else(PoisonError::into_inner).0;
                if *over {
                    return;
                }
                match &followed {
                    Some(bar) => bar.set_position(counter.bytes()),
                    None => output::note(&line(counter.bytes(), bytes, OS.clock.now_ns() - start)),
                }
            }
        });
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Shown { bar, stop, follower });
    }

    fn end(&self) {
        let Some(shown) = self.shown.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        *shown.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        shown.stop.1.notify_all();
        // A follower that died has stopped drawing, which is all that is wanted.
        let _ = shown.follower.join();
        output::shows(None);
        if let Some(bar) = shown.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &str, bytes: u64) -> ProgressBar {
    const TEMPLATE: &str = "{msg}\n  {wide_bar:.cyan} {percent:>3}%  {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left";
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(5));
    bar.set_style(ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(printable(what));
    bar
}

/// `  42 %, 93.1 MB/s, 1 min 05 s left`
fn line(done: u64, bytes: u64, ns: u64) -> String {
    // Never more than all, whatever is counted.
    let percent = (u128::from(done) * 100).checked_div(u128::from(bytes)).unwrap_or(0).min(100);
    let left = (u128::from(ns) * u128::from(bytes.saturating_sub(done))).checked_div(u128::from(done));
    let left = left.map_or_else(String::new, |left| format!(", {} left", duration(u64::try_from(left).unwrap_or(u64::MAX))));
    format!("  {percent} %, {}{left}", rate(done, ns))
}

impl Observer for Watch {
    fn on(&self, event: Event) {
        self.watchdog.on(&event);
        if self.quiet {
            return;
        }
        match event {
            // Above the bar, which goes on.
            Event::Notice(text) => output::note(&text),
            Event::Waits(text) | Event::Idles(text) => {
                self.end();
                output::note(&format!("{text} …"));
            }
            Event::Begins { what, bytes, counter, timed } => self.begin(&what, bytes, counter, timed),
            Event::Ends => self.end(),
            Event::Flushes | Event::On(_) | Event::SoFar(_) | Event::UnderWay(_) => {}
        }
    }

    fn ask(&self, question: &str) -> Option<bool> {
        if !std::io::stdin().is_terminal() || !self.terminal {
            return None;
        }
        self.end();
        self.watchdog.rests();
        let asked = {
            let mut err = std::io::stderr().lock();
            write!(err, "{} [y/N] ", printable(question)).and_then(|()| err.flush())
        };
        asked.ok()?;
        // Read by a thread of its own, so that Ctrl-C need not wait for an answer; the thread ends with the program.
        let (send, answered) = crossbeam_channel::bounded(1);
        thread::spawn(move || {
            let mut answer = String::new();
            let read = std::io::stdin().read_line(&mut answer);
            send.send(read.map(|_| answer))
        });
        loop {
            match answered.recv_timeout(DRAW) {
                Ok(answer) => return answer.ok().map(|answer| matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")),
                Err(_) if self.cancel.signal().is_some() => return Some(false),
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_h09_a_line_tells_share_rate_and_rest() {
        assert_eq!(line(500_000_000, 2_000_000_000, 10_000_000_000), "  25 %, 50.0 MB/s, 30.0 s left");
        assert_eq!(line(0, 2_000_000_000, 10_000_000_000), "  0 %, 0 B/s");
        assert_eq!(line(0, 0, 0), "  0 %, –");
        // What grows meanwhile is never more than all of it, and no time is no rate.
        assert_eq!(line(3_000_000_000, 2_000_000_000, 10_000_000_000), "  100 %, 300 MB/s, 0 ns left");
        assert_eq!(line(u64::MAX, 1, 1), "  100 %, 18446744073710 PB/s, 0 ns left");
        assert_eq!(line(1, u64::MAX, u64::MAX), "  0 %, 0 B/s, 5124095 h 34 min left");
    }
}
