//! Ctrl-C and SIGTERM: the first asks the work to end in order, the second ends the program at once.

use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::output;
use crate::error::{Context, Result, Side};
use crate::progress::Cancel;

/// A cancel that the signals of the terminal and of the system raise.
///
/// # Errors
/// What the system answered.
pub fn cancel() -> Result<Arc<Cancel>> {
    let cancel = Arc::new(Cancel::default());
    let raised = Arc::clone(&cancel);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).during("listen for", Side::Host, "signals")?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if raised.signal().is_some() {
                // Whoever asks twice does not want to wait; the next start cleans up.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            raised.request(signal);
            output::note("stopping: what was written is removed, what was measured is kept (again to stop at once)");
        }
    });
    Ok(cancel)
}
