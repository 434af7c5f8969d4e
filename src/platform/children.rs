//! A program of other people's that is started to be measured: in a session of its own, its output kept in bounded memory, and ended with all that it started
//! and with nothing else.
#![expect(unsafe_code, reason = "each block makes one call with values owned here")]

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper, waitid};

use super::spawn::spawn;
use super::{Clock, Host, OsClock};

/// What is kept of the end of a program's output.
const KEPT_OUTPUT: usize = 16 << 10;
/// Between two looks whether what was asked to end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long what was killed is waited for: the kernel may hold it for a drive.
const DYING: Duration = Duration::from_secs(5);

/// How a program is started.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// Its file.
    pub file: &'a Path,
    /// What it is called by: its argument 0, by which some programs know what they are to be.
    pub name: &'a OsStr,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// A text whose first appearance in its output is told.
    pub text: Option<&'a [u8]>,
}

/// What a program tells, each with its moment in ns of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It has ended: with this exit code, or with 128 and the number of the signal that ended it.
    Ended {
        /// When.
        at_ns: u64,
        /// How.
        code: i32,
    },
    /// It has said the text.
    Said(u64),
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Whose child it is.
    pub parent: u32,
    /// When it was begun, in ticks since the system was started: with it a number stands for one process alone.
    pub began: u64,
    /// Whether it has ended and waits for its parent to take notice.
    pub has_ended: bool,
}

/// What processes used that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// CPU time in user mode, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Page faults that waited for a drive.
    pub major_faults: u64,
}

/// What came of ending a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// What all of its processes used.
    pub spent: Spent,
    /// Processes that the kernel holds and that could not be ended.
    pub left: Vec<u32>,
}

/// The end of what a program says.
#[derive(Default)]
struct Output {
    tail: VecDeque<u8>,
    is_over: bool,
}

/// A program that was started.
pub struct Started {
    id: Pid,
    /// The moment before its start, ns of the monotonic clock.
    pub begun_ns: u64,
    told: Receiver<Told>,
    output: Arc<Mutex<Output>>,
}

impl Started {
    /// Starts a program. It gets no input and no terminal. What it leaves behind becomes this process's own, so that it can be ended with it.
    ///
    /// # Errors
    /// What the system answered: there is no such file, it can't be executed.
    pub fn start(start: Start<'_>) -> io::Result<Self> {
        // Whoever loses its parent becomes a child of this process, however it was started.
        set_child_subreaper(Some(getpid()))?;
        let (reader, writer) = io::pipe()?;
        let nothing = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (tells, told) = unbounded();
        let output = Arc::new(Mutex::new(Output::default()));
        let (kept, text, says) = (Arc::clone(&output), start.text.map(<[u8]>::to_vec), tells.clone());
        // Who listens and waits is there before it is, so that it has the processors for itself.
        thread::Builder::new().name("output".to_owned()).spawn(move || keep_output(reader, &kept, text.as_deref(), &says))?;
        let (names, named) = bounded(1);
        // Where nothing was started there is nothing to wait for.
        thread::Builder::new().name("end".to_owned()).spawn(move || named.recv().map(|id| tell_end(id, &tells)))?;
        let (id, begun_ns) = spawn(start.file, start.name, start.arguments, nothing.as_fd(), writer.as_fd())?;
        let _ = names.send(id);
        // What it says ends when it and all that it started have ended.
        drop(writer);
        Ok(Self { id, begun_ns, told, output })
    }

    /// The next that it tells, within a time.
    #[must_use]
    pub fn told(&self, within: Duration) -> Option<Told> {
        match self.told.recv_timeout(within) {
            Ok(told) => Some(told),
            Err(error) => {
                // Nobody is left who could tell anything: the time passes all the same.
                if error.is_disconnected() {
                    OsClock.sleep(within);
                }
                None
            }
        }
    }

    /// All of its processes that are there, itself first if it is; those that have ended are there until they are ended by `end`.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        of_other_sessions(&Host::real(), self.id.as_raw_nonzero().get().unsigned_abs())
    }

    /// The last lines of its output, at most so many, once its output is over or it has had a moment for that.
    #[must_use]
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        const MOMENT: Duration = Duration::from_millis(200);
        let begun_ns = OsClock.now_ns();
        while !lock(&self.output).is_over && OsClock.now_ns() - begun_ns < MOMENT.as_nanos() as u64 {
            OsClock.sleep(LOOK_EVERY);
        }
        let bytes: Vec<u8> = lock(&self.output).tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
    }

    /// Whether all that it could say was read.
    #[must_use]
    pub fn has_fallen_silent(&self) -> bool {
        lock(&self.output).is_over
    }

    /// Ends it and all that it started: asks first, and makes them end after `grace`.
    pub fn end(&self, grace: Duration) -> End {
        let mut end = End::default();
        let begun_ns = OsClock.now_ns();
        let grace_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
        let mut asked: Vec<Process> = Vec::new();
        loop {
            let seen = self.processes();
            let waited_ns = OsClock.now_ns() - begun_ns;
            let (ended, alive): (Vec<Process>, Vec<Process>) = seen.iter().partition(|process| process.has_ended);
            for process in ended.iter().filter(|process| process.parent == std::process::id()) {
                end.spent.add(take_notice(process.id));
            }
            if seen.is_empty() || waited_ns > grace_ns.saturating_add(DYING.as_nanos() as u64) {
                end.left = alive.iter().map(|process| process.id).collect();
                return end;
            }
            for process in alive {
                let is_asked = asked.iter().any(|known| (known.id, known.began) == (process.id, process.began));
                if waited_ns >= grace_ns {
                    send(process, Signal::KILL);
                } else if !is_asked {
                    send(process, Signal::TERM);
                    asked.push(process);
                }
            }
            OsClock.sleep(LOOK_EVERY);
        }
    }
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the end of a program, and leaves it to `end` to take notice of it.
fn tell_end(id: Pid, tells: &Sender<Told>) {
    loop {
        match waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let at_ns = OsClock.now_ns();
                let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(-1);
                // Nobody may want to know any more.
                let _ = tells.send(Told::Ended { at_ns, code });
                return;
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Reads all that a program says, keeps the end of it, and tells when it has said a text.
fn keep_output(mut from: PipeReader, output: &Mutex<Output>, text: Option<&[u8]>, tells: &Sender<Told>) {
    let mut awaited = text.filter(|text| !text.is_empty());
    let mut buffer = vec![0; 64 << 10];
    // The end of what was read before, in which the text may have begun.
    let mut seen: Vec<u8> = Vec::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let at_ns = OsClock.now_ns();
        if let Some(text) = awaited {
            seen.extend_from_slice(read);
            if seen.windows(text.len()).any(|piece| piece == text) {
                let _ = tells.send(Told::Said(at_ns));
                awaited = None;
            }
            seen.drain(..seen.len().saturating_sub(text.len() - 1));
        }
        let mut output = lock(output);
        output.tail.extend(read);
        let over = output.tail.len().saturating_sub(KEPT_OUTPUT);
        output.tail.drain(..over);
    }
    lock(output).is_over = true;
}

/// Takes notice of the end of a child, which then is gone, and of what it and the children that it waited for used.
fn take_notice(id: u32) -> Spent {
    let Ok(id) = i32::try_from(id) else { return Spent::default() };
    // SAFETY: an all-zero rusage is valid, and the call fills in the one that it is given; the status is not asked for.
    let (gone, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(id, std::ptr::null_mut(), libc::WNOHANG, &raw mut usage), usage)
    };
    if gone != id {
        return Spent::default();
    }
    let ns = |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000;
    Spent {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
    }
}

/// Sends a signal to a process, and to no other that got its number meanwhile.
fn send(process: Process, signal: Signal) {
    let Some(id) = i32::try_from(process.id).ok().and_then(Pid::from_raw) else { return };
    // One that has just ended needs no signal.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return };
    // The handle stands for whoever has the number now: only if that is who was seen, the signal goes there.
    if look(&Host::real(), process.id).is_some_and(|(now, _)| now.began == process.began) {
        let _ = pidfd_send_signal(&handle, signal);
    }
}

/// The processes that descend from this one and are in other sessions than it is, `first` before the others. Every program that is started to be measured has a
/// session of its own, and what else this process starts stays in its own.
fn of_other_sessions(host: &Host, first: u32) -> Vec<Process> {
    /// A program that starts others without end is not followed without end.
    const MOST: usize = 4096;
    // Zero where a namespace of processes hides who leads it, which is why the call that gives it as the number of a process is not asked.
    let Some((_, own_session)) = look(host, std::process::id()) else { return Vec::new() };
    let mut found: Vec<Process> = look(host, first).map(|(process, _)| process).into_iter().collect();
    let mut of = vec![std::process::id(), first];
    while let Some(parent) = of.pop().filter(|_| found.len() < MOST) {
        for child in children(host, parent).into_iter().filter(|child| *child != first) {
            match look(host, child) {
                Some((process, session)) if session != own_session => {
                    found.push(process);
                    of.push(child);
                }
                // What is no program's keeps its own children.
                _ => {}
            }
        }
    }
    found
}

fn children(host: &Host, parent: u32) -> Vec<u32> {
    let threads = host.names(format!("/proc/{parent}/task"));
    let lists: Vec<Vec<u8>> = threads.iter().filter_map(|thread| host.bytes(format!("/proc/{parent}/task/{thread}/children"))).collect();
    if lists.is_empty() && !threads.is_empty() {
        // A kernel that keeps no such lists: everybody is asked for their parent.
        let everybody = host.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
        return everybody.filter(|id| look(host, *id).is_some_and(|(process, _)| process.parent == parent)).collect();
    }
    let texts = lists.iter().map(|list| String::from_utf8_lossy(list));
    texts.flat_map(|list| list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// What `/proc/ID/stat` says: the process, and its session.
fn look(host: &Host, id: u32) -> Option<(Process, i32)> {
    let stat = host.fact(format!("/proc/{id}/stat"))?;
    // The name stands in brackets and may hold anything, brackets too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let process =
        Process { id, parent: fields.get(1)?.parse().ok()?, began: fields.get(19)?.parse().ok()?, has_ended: matches!(*fields.first()?, "Z" | "X") };
    Some((process, fields.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use std::process::Command;

    use super::*;

    /// Processes of one test are not to be taken for those of another.
    static ALONE: Mutex<()> = Mutex::new(());
    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, text: Option<&str>) -> Started {
        let arguments = ["-c".into(), script.into()];
        Started::start(Start { file: Path::new("/bin/sh"), name: "sh".as_ref(), arguments: &arguments, text: text.map(str::as_bytes) }).unwrap()
    }

    fn is_there(id: u32) -> bool {
        look(&Host::real(), id).is_some_and(|(process, _)| !process.has_ended)
    }

    #[test]
    fn an_end_is_told_with_its_code_and_what_was_used_is_known() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        for (script, expected) in [("exit 0", 0), ("echo first; echo last >&2; exit 3", 3), ("kill -9 $$", 137)] {
            let started = shell(script, None);
            let told = started.told(LONG).unwrap();
            assert!(matches!(told, Told::Ended { code, .. } if code == expected), "{told:?}");
            assert_eq!(started.processes().len(), 1);
            if expected == 3 {
                assert_eq!(started.last_lines(9), ["first", "last"]);
                assert_eq!(started.last_lines(1), ["last"]);
            }
            let end = started.end(LONG);
            assert!(end.left.is_empty() && end.spent.minor_faults > 0, "{end:?}");
            assert!(started.processes().is_empty());
        }
        let missing = Start { file: Path::new("/no/such/program"), name: "x".as_ref(), arguments: &[], text: None };
        assert_eq!(Started::start(missing).err().unwrap().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn it_gets_its_name_no_input_no_blocked_signals_and_a_session_of_its_own() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let script = "cat; echo \"$0 $1 $COPYSIM_TEST\"; grep -h -E '^(SigBlk|SigIgn)' /proc/self/status; cut -d' ' -f6 /proc/$$/stat; echo $$";
        let arguments = ["-c", script, "called so", "an argument"].map(OsString::from);
        let started = Started::start(Start { file: Path::new("/bin/sh"), name: "sh".as_ref(), arguments: &arguments, text: None }).unwrap();
        assert!(matches!(started.told(LONG), Some(Told::Ended { code: 0, .. })));
        let lines = started.last_lines(9);
        assert_eq!(lines[0].trim_end(), "called so an argument");
        // In hexadecimal, bit 12 for SIGPIPE; what who started this test ignores stays ignored.
        let sets: Vec<u64> = lines[1..3].iter().map(|line| u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()).collect();
        assert_eq!((sets[0], sets[1] >> 12 & 1), (0, 0), "{lines:?}");
        assert_eq!(lines[3], lines[4], "{lines:?}");
        started.end(LONG);
        let broken = Start { file: Path::new("/etc/passwd"), name: "x".as_ref(), arguments: &[], text: None };
        assert_eq!(Started::start(broken).err().unwrap().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(Started::start(Start { name: OsStr::new("a\0b"), ..broken }).err().unwrap().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn programs_are_told_from_what_else_was_started_also_where_ones_own_session_is_hidden() {
        for own_session in [0, 5] {
            let root = tempfile::tempdir().unwrap();
            let own = std::process::id();
            // Who it is, its parent, its session, and its children; the last in a session of its own below one that is no program's.
            let processes = [
                (own, 1, own_session, "901 902 904"),
                (901, own, 901, "903"),
                (902, own, own_session, "905"),
                (903, 901, 903, ""),
                (904, own, 904, ""),
                (905, 902, 905, ""),
            ];
            for (id, parent, session, children) in processes {
                let dir = root.path().join(format!("proc/{id}"));
                std::fs::create_dir_all(dir.join(format!("task/{id}"))).unwrap();
                std::fs::write(dir.join("stat"), format!("{id} (a) b) S {parent} {session} {session} {}\n", "7 ".repeat(40))).unwrap();
                std::fs::write(dir.join(format!("task/{id}/children")), children).unwrap();
            }
            let found: Vec<u32> = of_other_sessions(&Host::at(root.path()), 904).iter().map(|process| process.id).collect();
            assert_eq!(found, [904, 901, 903], "{own_session}");
        }
    }

    #[test]
    fn a_text_is_found_wherever_the_pieces_end_and_output_is_bounded() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let script = "printf 'server is re'; sleep 0.1; printf 'ady\\n'; head -c 200000 /dev/zero | tr '\\0' x; echo; echo end; exec sleep 60";
        let started = shell(script, Some("is ready"));
        assert!(matches!(started.told(LONG), Some(Told::Said(_))));
        let begun = OsClock.now_ns();
        while started.last_lines(1) != ["end"] && OsClock.now_ns() - begun < LONG.as_nanos() as u64 {}
        assert!(lock(&started.output).tail.len() <= KEPT_OUTPUT);
        assert_eq!(started.last_lines(1), ["end"]);
        assert!(started.end(LONG).left.is_empty());
    }

    #[test]
    fn daemons_and_those_that_will_not_end_go_too_and_nobody_else_does() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        // One in a session of its own whose parent has ended, one that hears no request, and one that it started.
        let started = shell("(setsid sleep 61 &) ; (trap '' TERM; echo set; sleep 62; sleep 63) & wait", Some("set"));
        assert!(matches!(started.told(LONG), Some(Told::Said(_))));
        let begun = OsClock.now_ns();
        let mut seen = started.processes();
        while seen.len() < 4 && OsClock.now_ns() - begun < LONG.as_nanos() as u64 {
            seen = started.processes();
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
        assert_eq!(seen[0].id, started.id.as_raw_nonzero().get().unsigned_abs());
        assert!(seen.iter().all(|process| process.id != other.id()), "{seen:?}");
        assert!(started.end(Duration::from_millis(200)).left.is_empty());
        assert!(seen.iter().all(|process| !is_there(process.id)), "{seen:?}");
        assert!(is_there(other.id()));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
