//! Printing: results on standard output, everything else on standard error. A reader who went away ends the program quietly.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::error::{Context, Error, Result, Side};
use crate::report::printable;

/// What standard output is called in errors.
const OUT: &str = "standard output";

/// Prints a result.
///
/// # Errors
/// What the system answered; see [`reader_left`].
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).during("write to", Side::Host, OUT)
}

/// Whether an error says that nobody reads the result any more: there is nothing left to do then, and nobody to tell.
pub fn reader_left(error: &Error) -> bool {
    matches!(error, Error::Io(failure) if failure.path == Path::new(OUT) && failure.source.kind() == io::ErrorKind::BrokenPipe)
}

/// Tells what went wrong.
pub fn complain(error: &Error) {
    // What others named may hold anything: a terminal must not obey it.
    let lines: Vec<String> = error.to_string().lines().map(printable).collect();
    say(&format!("copysim: {}", lines.join("\n")));
}

/// Says what the parser of the command line says. What it repeats of that line a terminal must not obey, wherever the line came from.
pub fn explain(error: &clap::Error) {
    let is_plain = |arg: std::ffi::OsString| arg.to_str().is_some_and(|arg| printable(arg) == arg);
    if std::env::args_os().all(is_plain) {
        // Where nobody reads, there is nobody to tell.
        let _ = error.print();
    } else {
        let lines: Vec<String> = error.render().to_string().lines().map(printable).collect();
        say(&lines.join("\n"));
    }
}

/// Where nobody reads any more there is nobody to tell, and the work goes on.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The bar that is on the terminal: what is told goes above it, not into it.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Says which bar is on the terminal now.
pub fn shows(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Tells something beside the result.
pub fn note(text: &str) {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let tell = || say(&printable(text));
    match bar {
        Some(bar) => bar.suspend(tell),
        None => tell(),
    }
}
