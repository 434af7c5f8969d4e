//! Asking another program: it gets no input, is given a time, and is never waited for longer.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// More than any answer that is asked for here.
const LONGEST_ANSWER: u64 = 1 << 20;
/// Where programs for the administrator lie, which the search path of an ordinary user leaves out.
const ADMINISTRATORS: &str = "/usr/sbin";

/// What a program says on standard output, whatever its exit code.
pub(super) fn answer_of(program: &str, arguments: &[&str], limit: Duration) -> io::Result<Vec<u8>> {
    let start = |program: &str| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        super::die_with_parent(&mut command);
        command.spawn()
    };
    let mut child = match start(program) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => start(&format!("{ADMINISTRATORS}/{program}"))?,
        started => started?,
    };
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (said, answer) = channel();
    // A program that waits for a drive which does not answer can't be ended: then the thread stays with it, and nobody waits for either.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(LONGEST_ANSWER).read_to_end(&mut bytes).map(|_| bytes);
        let _ = said.send(read);
    });
    match answer.recv_timeout(limit) {
        Ok(bytes) => {
            // It has closed its output, so there is nothing more to wait for.
            let _ = child.kill();
            let _ = child.wait();
            bytes
        }
        Err(RecvTimeoutError::Timeout) => {
            let _ = child.kill();
            let _ = child.try_wait();
            Err(io::ErrorKind::TimedOut.into())
        }
        Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Clock, OsClock};

    #[test]
    fn answers_are_given_whatever_the_exit_code_and_never_waited_for_longer_than_allowed() {
        let limit = Duration::from_secs(60);
        assert_eq!(answer_of("sh", &["-c", "echo told; echo not >&2; exit 3"], limit).unwrap(), b"told\n");
        assert_eq!(answer_of("no-such-program-anywhere", &[], limit).unwrap_err().kind(), io::ErrorKind::NotFound);
        let start = OsClock.now_ns();
        assert_eq!(answer_of("sleep", &["60"], Duration::from_millis(50)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(OsClock.now_ns() - start < 30_000_000_000);
    }
}
