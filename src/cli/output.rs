//! Printing: results on standard output, everything else on standard error. A reader who went away ends the program quietly.
#![expect(clippy::print_stderr, reason = "this is the room of printing")]

use std::io::{self, Write};

use crate::error::{Context, Error, Result, Side};
use crate::report::printable;

/// Prints a result.
///
/// # Errors
/// What the system answered, except that the reader went away.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).during("write to", Side::Host, "standard output"),
        _ => Ok(()),
    }
}

/// Tells what went wrong.
pub fn complain(error: &Error) {
    // What others named may hold anything: a terminal must not obey it.
    let lines: Vec<String> = error.to_string().lines().map(printable).collect();
    eprintln!("copysim: {}", lines.join("\n"));
}

/// Tells something beside the result.
pub fn note(text: &str) {
    eprintln!("{}", printable(text));
}
