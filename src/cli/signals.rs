//! Ctrl-C and SIGTERM: the first asks the work to end in order, the second ends the program at once.

use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::output;
use crate::error::{Context, Result, Side};
use crate::platform::{OS, is_ignored, leave_to_other_threads};
use crate::progress::Cancel;

/// Signals that come together within this time are one request.
pub(super) const ONE_REQUEST_NS: u64 = 500_000_000;

/// A cancel that the signals of the terminal and of the system raise.
///
/// # Errors
/// What the system answered.
pub fn cancel() -> Result<Arc<Cancel>> {
    cancel_saying("stopping: what was written is removed, what was measured is kept (again to stop at once)")
}

/// The same, with what becomes of the work in words.
///
/// # Errors
/// What the system answered.
pub fn cancel_saying(words: &'static str) -> Result<Arc<Cancel>> {
    let cancel = Arc::new(Cancel::default());
    let raised = Arc::clone(&cancel);
    // A limit of the user's on the size of files (ulimit -f) shall be an error of the write, not the end of the program.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).during("listen for", Side::Host, "signals")?;
    let mut signals = Signals::new(requests()).during("listen for", Side::Host, "signals")?;
    thread::spawn(move || {
        let mut first_ns = 0;
        for signal in signals.forever() {
            let now = OS.clock.now_ns();
            // A terminal that closes, or a system that goes down, sends several signals at once: they are one request.
            if raised.signal().is_some() && now - first_ns < ONE_REQUEST_NS {
                continue;
            }
            if raised.signal().is_some() {
                // Whoever asks twice does not want to wait; the next start cleans up.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            first_ns = now;
            raised.request(signal);
            output::note(words);
        }
    });
    leave_to_other_threads(&requests());
    Ok(cancel)
}

/// The signals that ask for the end. The end of a terminal asks for nothing where this program was started to outlive it (`nohup`). SIGINT does even where it
/// was ignored: a shell without job control has it so for what it starts in the background, and a script that sends it means it.
pub(super) fn requests() -> Vec<i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP)).collect()
}
