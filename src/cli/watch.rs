//! Tells a person how far the work is: bars on a terminal, plain lines elsewhere, nothing with --quiet.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output;
use crate::progress::Counter;
use crate::scenario::events::{Event, Observer};

/// Between two looks at a counter on a terminal: drawing costs time that the work should have.
const DRAW: Duration = Duration::from_millis(200);

/// A display.
pub struct Watch {
    quiet: bool,
    terminal: bool,
    bar: Mutex<Option<Bar>>,
}

struct Bar {
    bar: ProgressBar,
    stop: Arc<(Mutex<bool>, Condvar)>,
    follower: JoinHandle<()>,
}

impl Watch {
    /// A display on standard error.
    #[must_use]
    pub fn new(quiet: bool, color: super::options::Color) -> Self {
        match color {
            super::options::Color::Always => console::set_colors_enabled_stderr(true),
            super::options::Color::Never => console::set_colors_enabled_stderr(false),
            super::options::Color::Auto => {}
        }
        Self { quiet, terminal: std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    fn begin(&self, what: &str, bytes: u64, counter: Arc<Counter>) {
        self.end();
        if !self.terminal {
            return output::note(what);
        }
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(
            "{msg}\n  {wide_bar:.cyan} {percent:>3}%  {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(crate::report::printable(what));
        output::shows(Some(bar.clone()));
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (shown, stopped) = (bar.clone(), Arc::clone(&stop));
        let follower = thread::spawn(move || {
            let (flag, changed) = &*stopped;
            let mut over = flag.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                shown.set_position(counter.bytes());
                over = changed.wait_timeout(over, DRAW).unwrap_or_else(PoisonError::into_inner).0;
            }
        });
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = Some(Bar { bar, stop, follower });
    }

    fn end(&self) {
        let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        *bar.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        bar.stop.1.notify_all();
        // A follower that died has stopped drawing, which is all that is wanted.
        let _ = bar.follower.join();
        output::shows(None);
        bar.bar.finish_and_clear();
    }
}

impl Observer for Watch {
    fn on(&self, event: Event) {
        if self.quiet {
            return;
        }
        match event {
            Event::Notice(text) => {
                self.end();
                output::note(&text);
            }
            Event::Waits(text) => {
                self.end();
                output::note(&format!("{text} …"));
            }
            Event::Begins { what, bytes, counter, .. } => self.begin(&what, bytes, counter),
            Event::Ends => self.end(),
        }
    }

    fn ask(&self, question: &str) -> Option<bool> {
        if !std::io::stdin().is_terminal() || !self.terminal {
            return None;
        }
        self.end();
        let mut err = std::io::stderr().lock();
        let asked = write!(err, "{} [y/N] ", crate::report::printable(question)).and_then(|()| err.flush());
        let mut answer = String::new();
        asked.and_then(|()| std::io::stdin().read_line(&mut answer)).ok()?;
        Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }
}
