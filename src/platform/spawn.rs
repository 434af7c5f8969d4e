//! Starting a program without copying this process first. What a fork copies, and what the new program throws away again, takes as long as a small program
//! runs; so the new process borrows this one's memory until it has become the program, as `posix_spawn` does, which can't have a program die with its parent.
#![expect(unsafe_code, reason = "each block is about values owned here, or runs alone while its parent stands still")]

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::{Clock, OsClock};

/// Enough for a few calls of the system.
const STACK: usize = 64 << 10;
/// Signals of Linux, those for real time included.
const SIGNALS: std::ops::RangeInclusive<c_int> = 1..=64;

/// What the new process needs until it is the program, and what went wrong.
struct Recipe {
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    input: RawFd,
    output: RawFd,
    errno: c_int,
}

/// Starts a program in a session of its own, with this process's environment and no signals blocked, which dies with the calling thread. Beside its number the
/// moment before its start, ns of the monotonic clock.
///
/// # Errors
/// What the system answered, to becoming the program too; `InvalidInput` for a text with a zero byte.
pub(super) fn spawn(file: &Path, name: &OsStr, arguments: &[OsString], input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<(Pid, u64)> {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let file = text(file.as_os_str())?;
    let arguments = std::iter::once(name).chain(arguments.iter().map(OsString::as_os_str)).map(text).collect::<io::Result<Vec<CString>>>()?;
    let environment = std::env::vars_os().map(|(name, value)| text(&[name, value].join(OsStr::new("="))));
    let environment = environment.collect::<io::Result<Vec<CString>>>()?;
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null()]).collect::<Vec<*const c_char>>();
    let (arguments, environment) = (pointers(&arguments), pointers(&environment));
    let mut recipe = Recipe {
        file: file.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        input: input.as_raw_fd(),
        output: output.as_raw_fd(),
        errno: 0,
    };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let begun_ns = OsClock.now_ns();
    // SAFETY: the stack is ours and its top aligned; all that the recipe points to lives until the calling thread goes on, which is when the new process has
    // become another program or has ended. No handler of a signal runs in the memory of both: all signals are blocked meanwhile.
    let id = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let id = libc::clone(become_program, top, flags, (&raw mut recipe).cast::<c_void>());
        let failure = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        if id == -1 { Err(failure) } else { Ok(id) }
    }?;
    let id = Pid::from_raw(id).ok_or(io::ErrorKind::InvalidData)?;
    // SAFETY: the recipe is ours; the new process, which no longer uses it, may have written to it.
    match unsafe { (&raw const recipe.errno).read_volatile() } {
        0 => Ok((id, begun_ns)),
        errno => {
            // It ends by itself; it is only to be taken notice of.
            while matches!(waitpid(Some(id), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// The way of the new process. It may use nothing that its parent's other threads could hold: calls of the system, and memory that is there.
extern "C" fn become_program(recipe: *mut c_void) -> c_int {
    // SAFETY: the recipe is the one of `spawn`, whose thread stands still; every call is one that is allowed between fork and exec.
    unsafe {
        let recipe = recipe.cast::<Recipe>();
        let is_set_up = libc::setsid() != -1
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && libc::dup2((*recipe).input, 0) != -1
            && libc::dup2((*recipe).output, 1) != -1
            && libc::dup2((*recipe).output, 2) != -1;
        if is_set_up {
            with_signals_as_they_were();
            libc::execve((*recipe).file, (*recipe).arguments, (*recipe).environment);
        }
        (*recipe).errno = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Has every signal that this program takes do what it does by itself, SIGPIPE too, which Rust's start ignores; and blocks none.
fn with_signals_as_they_were() {
    // SAFETY: all-zero values of these types are valid; the calls read and write only what they are given, and change nothing of the parent's.
    unsafe {
        for signal in SIGNALS {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, null(), &raw mut action) == 0 && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE) {
                action = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, null_mut());
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
    }
}
