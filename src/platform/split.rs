//! Two processes in place of one: one that works, and one that whoever started the program waits for. A thread that waits for a drive in the kernel keeps its
//! process from ending by whatever means; the other process has no such thread.
#![expect(unsafe_code, reason = "each block makes one call with values owned here")]

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, waitpid};

use super::{Clock, OsClock};

/// How long a process that said that it ends is waited for: it can't where a thread of it is held.
const FAREWELL: Duration = Duration::from_millis(200);

/// Which of both processes this is.
pub enum Split {
    /// The one that works.
    Works(Farewell),
    /// The one that waits for it.
    Waits(Worker),
}

/// How the working process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code, or it said that it would.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

/// Splits the program. It must not have other threads yet. The working process is killed when the waiting one dies.
///
/// # Errors
/// What the system answered: then there is one process as before.
pub fn split() -> io::Result<Split> {
    let (told, tells) = io::pipe()?;
    let waits = getpid();
    // SAFETY: there is only this thread, so that the new process can go on as this one would.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: the call takes no pointers. Should it fail, the process outlives a kill of the other, which is no harm.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            if getppid() != Some(waits) {
                // The other one was killed meanwhile.
                std::process::exit(1);
            }
            Ok(Split::Works(Farewell(tells)))
        }
        pid => match Pid::from_raw(pid).filter(|_| pid > 0) {
            Some(pid) => Ok(Split::Waits(Worker { pid, told })),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// The working process's way to say that it ends though it can't.
#[derive(Debug)]
pub struct Farewell(PipeWriter);

impl Farewell {
    /// Tells the other process with which exit code to end, lets go of whoever listens, and ends as far as the kernel lets this process.
    pub fn leave(&self, code: u8) -> ! {
        if let Ok(nowhere) = io::pipe() {
            for stream in 0..=2 {
                // SAFETY: both descriptors are open; what they were is closed, so that readers of our output do not wait for this process.
                unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&nowhere.1), stream) };
            }
        }
        // Where nobody waits any more there is nobody to tell.
        let _ = (&self.0).write_all(&[code]);
        std::process::exit(i32::from(code))
    }
}

/// The working process, for the one that waits.
#[derive(Debug)]
pub struct Worker {
    pid: Pid,
    told: PipeReader,
}

impl Worker {
    /// A way to send it signals from another thread.
    pub fn signals(&self) -> impl Fn(i32) + Send + 'static {
        let pid = self.pid;
        move |signal| {
            // One that has just ended needs no signal.
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process(pid, signal));
        }
    }

    /// Waits until it has ended, or has said that it ends.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        let mut code = [0];
        loop {
            match self.told.read(&mut code) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(1) => return self.ends_soon(code[0]),
                // It has ended, and its end of the pipe with it.
                _ => break,
            }
        }
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => return Ended::Code(u8::try_from(code).unwrap_or(1)),
                    (None, Some(signal)) => return Ended::Signal(signal),
                    (None, None) => {}
                },
                Err(rustix::io::Errno::INTR) | Ok(None) => {}
                Err(_) => return Ended::Code(1),
            }
        }
    }

    fn ends_soon(&self, code: u8) -> Ended {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        let begun = OsClock.now_ns();
        while OsClock.now_ns() - begun < FAREWELL.as_nanos() as u64 && matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None)) {
            OsClock.sleep(LOOK_EVERY);
        }
        Ended::Code(code)
    }
}
