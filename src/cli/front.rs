//! Lets whoever started the program go on in every case: what works on drives does so in a process of its own, which a drive may hold; this one waits for it.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::signals::{ONE_REQUEST_NS, requests};
use crate::platform::{Ended, Farewell, OS, Split, Worker, split};

/// How long the working process has to end by a second signal before this one does.
const AT_ONCE: Duration = Duration::from_millis(300);

static FAREWELL: OnceLock<Farewell> = OnceLock::new();

/// Goes on as the process that works; in the other one waits and answers with the exit code to end with. Where the system refuses, there is one process.
pub fn split_off() -> Option<u8> {
    match split() {
        Ok(Split::Works(farewell)) => {
            // Nobody was there before.
            let _ = FAREWELL.set(farewell);
            None
        }
        Ok(Split::Waits(worker)) => Some(wait(worker)),
        Err(_) => None,
    }
}

/// Ends the program with this exit code even if the kernel holds a thread of the working process.
pub fn leave(code: u8) -> ! {
    match FAREWELL.get() {
        Some(farewell) => farewell.leave(code),
        None => std::process::exit(i32::from(code)),
    }
}

fn wait(worker: Worker) -> u8 {
    let send = worker.signals();
    if let Ok(mut signals) = Signals::new(requests()) {
        thread::spawn(move || {
            let mut first_ns = None;
            for signal in signals.forever() {
                // From a terminal both processes have it already: what comes at once is one request to the other.
                send(signal);
                let now = OS.clock.now_ns();
                if now - *first_ns.get_or_insert(now) >= ONE_REQUEST_NS {
                    OS.clock.sleep(AT_ONCE);
                    let _ = emulate_default_handler(signal);
                }
            }
        });
    }
    match worker.wait() {
        Ended::Code(code) => code,
        Ended::Signal(signal) => {
            let _ = emulate_default_handler(signal);
            u8::try_from(128 + signal).unwrap_or(1)
        }
    }
}
