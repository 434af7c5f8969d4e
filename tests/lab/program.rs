//! copysim as a user runs it: the binary is started, watched, signalled and awaited, and its record is read back.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::lab::drive::Drive;
use crate::lab::log::{Kind, Log, Request, covered_ns, now_ns};

/// No run of a test takes longer than this: what does hangs.
const LIMIT: Duration = Duration::from_secs(240);
/// How long another copysim of this machine is waited for, which has the memory that this one wants.
const TURN: Duration = Duration::from_secs(120);
const BUSY: &str = "another copysim is";

/// A measurement to be made.
pub struct Order {
    arguments: Vec<OsString>,
    /// Where results are kept, when not in a place of its own.
    results: Option<PathBuf>,
    /// What stands before the binary: a program that changes the user, or the view of the file systems.
    before: Vec<OsString>,
    /// What stands at the very end: a program to start.
    command: Vec<OsString>,
}

impl Order {
    /// A scenario on a directory: one run, a settling time of one second, no questions.
    pub fn new(scenario: &str, target: &Path) -> Self {
        let arguments = [OsStr::new("scenario"), OsStr::new(scenario), target.as_os_str()].map(OsStr::to_owned).into();
        Self { arguments, results: None, before: Vec::new(), command: Vec::new() }.with("--settle 1s --yes --color never")
    }

    /// A check of the capacity of the drive under a directory, without questions.
    pub fn capacity(target: &Path) -> Self {
        let arguments = [OsStr::new("capacity"), target.as_os_str()].map(OsStr::to_owned).into();
        Self { arguments, results: None, before: Vec::new(), command: Vec::new() }.with("--yes --color never")
    }

    /// An endurance test of the drive under a directory, without questions.
    pub fn endurance(target: &Path) -> Self {
        let arguments = [OsStr::new("endurance"), target.as_os_str()].map(OsStr::to_owned).into();
        Self { arguments, results: None, before: Vec::new(), command: Vec::new() }.with("--yes --color never")
    }

    /// The start of a program whose drive is that of a directory.
    pub fn launch(target: &Path, command: &[&OsStr]) -> Self {
        let arguments = [OsStr::new("launch"), target.as_os_str()].map(OsStr::to_owned).into();
        let command = std::iter::once(OsStr::new("--")).chain(command.iter().copied()).map(OsStr::to_owned).collect();
        Self { arguments, results: None, before: Vec::new(), command }.with("--settle 1s --color never")
    }

    /// More arguments, separated by blanks.
    pub fn with(mut self, arguments: &str) -> Self {
        self.arguments.extend(arguments.split_whitespace().map(OsString::from));
        self
    }

    /// Another settling time than a second.
    pub fn settling(mut self, time: &str) -> Self {
        let at = self.arguments.iter().position(|argument| argument == "--settle").unwrap() + 1;
        self.arguments[at] = time.into();
        self
    }

    /// One more argument, as it is.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Results go to a directory that other orders use as well.
    pub fn keeping(self, results: &Path) -> Self {
        Self { results: Some(results.to_owned()), ..self }
    }

    /// Run by an ordinary user.
    pub fn by_nobody(self) -> Self {
        self.after(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    }

    /// Run where memory holds no files, so that a corpus has to be made while it is written.
    pub fn without_memory(self) -> Self {
        self.after(&["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=64k none /dev/shm && exec \"$@\"", "sh"])
    }

    /// Run with its calls seen, or answered otherwise, by strace; what that saw goes to a file.
    pub fn traced(self, arguments: &[&str], log: &Path) -> Self {
        self.after(&[&["strace", "-f", "-o", log.to_str().unwrap()], arguments].concat())
    }

    fn after(mut self, program: &[&str]) -> Self {
        self.before.extend(program.iter().map(OsString::from));
        self
    }

    /// Starts it.
    pub fn start(&self) -> Running {
        let results = tempfile::tempdir().unwrap();
        // An ordinary user writes there too.
        std::fs::set_permissions(results.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let json = results.path().join("record.json");
        let mut line: Vec<OsString> = self.before.clone();
        line.push(env!("CARGO_BIN_EXE_copysim").into());
        line.extend(self.arguments.iter().cloned());
        let kept = self.results.clone().unwrap_or_else(|| results.path().join("kept"));
        line.extend(["--results".into(), kept.clone().into(), "--json".into(), json.clone().into()]);
        line.extend(self.command.iter().cloned());
        let mut child = Command::new(&line[0]).args(&line[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let out = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        let said = Arc::new((Mutex::new(Said::default()), Condvar::new()));
        let (listener, stderr) = (Arc::clone(&said), child.stderr.take().unwrap());
        let err = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let mut said = lock(&listener.0);
                said.text.push_str(&line.unwrap());
                said.text.push('\n');
                listener.1.notify_all();
            }
            lock(&listener.0).over = true;
            listener.1.notify_all();
        });
        Running { child, began: Instant::now(), said, out: Some(out), err: Some(err), _place: results, kept, json, shared: self.results.is_some() }
    }

    /// Runs it to its end. Where another copysim of this machine holds the memory for sources, it is tried again.
    pub fn run(&self) -> Ended {
        self.run_with(&mut |_| {})
    }

    /// Starts it and returns when the window is about to open, from when on the drive is as slow as was ordered.
    pub fn start_before_the_window(&self, drive: &Drive) -> Running {
        const ABOUT_TO: &str = "waiting until the drive has been idle";
        drive.limit(false);
        let began = Instant::now();
        loop {
            let running = self.start();
            if running.says(ABOUT_TO) {
                drive.limit(true);
                return running;
            }
            assert!(running.says(BUSY) && began.elapsed() < TURN, "never said \"{ABOUT_TO}\": {}", running.end().err);
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn run_with(&self, each_line: &mut dyn FnMut(&str)) -> Ended {
        let began = Instant::now();
        loop {
            let running = self.start();
            running.follow(each_line);
            let ended = running.end();
            if ended.code != Some(2) || !ended.err.contains(BUSY) || began.elapsed() > TURN {
                return ended;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Runs it and expects it to end well.
    pub fn done(&self) -> Ended {
        self.run().well()
    }

    /// The same, with drives that are as slow as was ordered only while it matters: from before a window until after it.
    pub fn paced(&self, drives: &[&Drive]) -> Ended {
        self.paced_with(drives, &mut |_| {})
    }

    /// The same, and what it says on standard error is handed on.
    pub fn paced_with(&self, drives: &[&Drive], each_line: &mut dyn FnMut(&str)) -> Ended {
        let limit = |limited| drives.iter().for_each(|drive| drive.limit(limited));
        limit(false);
        let ended = self.run_with(&mut |line| {
            if line.contains("waiting until the drive has been idle") {
                limit(true);
            } else if line.contains("waiting until the drive is quiet") {
                limit(false);
            }
            each_line(line);
        });
        limit(true);
        ended.well()
    }
}

#[derive(Default)]
struct Said {
    text: String,
    over: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A measurement under way.
pub struct Running {
    child: Child,
    began: Instant,
    said: Arc<(Mutex<Said>, Condvar)>,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<()>>,
    _place: tempfile::TempDir,
    /// Where results are kept, and whether others are kept there too.
    kept: PathBuf,
    shared: bool,
    json: PathBuf,
}

impl Running {
    /// Whether standard error ever says this; waits until it does.
    fn says(&self, text: &str) -> bool {
        let (said, changed) = &*self.said;
        let waiting = |said: &mut Said| !said.over && !said.text.contains(text);
        let (said, _) = changed.wait_timeout_while(lock(said), LIMIT, waiting).unwrap_or_else(PoisonError::into_inner);
        said.text.contains(text)
    }

    /// Waits until standard error says this, which it must.
    pub fn wait_for(&self, text: &str) {
        assert!(self.says(text), "never said \"{text}\": {}", lock(&self.said.0).text);
    }

    /// Hands on what it says on standard error, line by line, until its end.
    fn follow(&self, each_line: &mut dyn FnMut(&str)) {
        let (said, changed) = &*self.said;
        let mut heard = 0;
        loop {
            let nothing_new = |said: &mut Said| !said.over && said.text.len() == heard;
            let left = LIMIT.saturating_sub(self.began.elapsed());
            let (now, _) = changed.wait_timeout_while(lock(said), left, nothing_new).unwrap_or_else(PoisonError::into_inner);
            now.text[heard..].lines().for_each(&mut *each_line);
            heard = now.text.len();
            if now.over || self.began.elapsed() >= LIMIT {
                return;
            }
        }
    }

    /// Waits until this holds.
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        while !holds() {
            assert!(self.began.elapsed() < LIMIT && !lock(&self.said.0).over, "never {what}: {}", lock(&self.said.0).text);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as a power cut would, and waits until it is gone.
    pub fn kill(mut self) {
        let started = self.child.id();
        let works = std::fs::read_to_string(format!("/proc/{started}/task/{started}/children")).unwrap();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // The process that works dies with it, once the drive has answered.
        for works in works.split_whitespace() {
            crate::lab::system::persist(
                || if Path::new("/proc").join(works).exists() { Err(std::io::ErrorKind::ResourceBusy.into()) } else { Ok(()) },
            )
            .unwrap();
        }
    }

    /// Waits for its end, which must come in time.
    pub fn end(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.began.elapsed() > LIMIT {
                self.child.kill().unwrap();
                panic!("it hangs: {}", lock(&self.said.0).text);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.err.take().unwrap().join().unwrap();
        let err = std::mem::take(&mut lock(&self.said.0).text);
        let record: Value = std::fs::read(&self.json).ok().map(|text| serde_json::from_slice(&text).unwrap()).unwrap_or_default();
        let kept: Vec<Value> = std::fs::read_dir(&self.kept)
            .into_iter()
            .flatten()
            .filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_file())
            .map(|entry| serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap())
            .filter(|kept: &Value| !self.shared || kept["id"] == record["id"])
            .collect();
        let code = status.code();
        assert!(status.signal().is_none(), "{status}: {err}");
        let ended = Ended { code, out: self.out.take().unwrap().join().unwrap(), err, record, kept };
        ended.is_sound();
        ended
    }
}

/// A measurement that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// The record as `--json` wrote it; null when there is none.
    pub record: Value,
    /// The records in the directory of results.
    pub kept: Vec<Value>,
}

impl Ended {
    fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.err, self.out);
        self
    }

    /// What holds of every end: one record, kept as it was shown, that says itself how it ended.
    fn is_sound(&self) {
        if self.record.is_null() {
            return;
        }
        assert_eq!(self.kept, std::slice::from_ref(&self.record));
        assert_eq!(self.record["schema"], "copysim.result/1");
        assert_eq!(self.record["exit_code"].as_i64(), self.code.map(i64::from));
        let status = match self.code {
            Some(0) => "complete",
            Some(129..) => "interrupted",
            _ => "failed",
        };
        assert_eq!(self.record["status"], status, "{}", self.err);
        for phase in self.record["runs"].as_array().unwrap().iter().flat_map(|run| run["phases"].as_array().unwrap()) {
            assert!(phase["files"].is_u64() && phase["bytes"].is_u64() && phase["status"].is_string(), "{phase}");
        }
    }

    /// The only phase of a run, counted from 1.
    pub fn phase(&self, run: usize) -> Phase<'_> {
        let phase = &self.record["runs"][run - 1]["phases"][0];
        assert!(phase.is_object(), "no run {run}: {}{}", self.err, self.record);
        Phase { record: &self.record, phase }
    }

    /// A phase of a run, counted from 1, by its name.
    pub fn phase_named(&self, run: usize, name: &str) -> Phase<'_> {
        let phases = self.record["runs"][run - 1]["phases"].as_array().unwrap();
        let phase = phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}: {}", self.record));
        Phase { record: &self.record, phase }
    }

    /// How many runs were begun.
    pub fn runs(&self) -> usize {
        self.record["runs"].as_array().unwrap().len()
    }

    /// Whether the summary gives a headline rate.
    pub fn has_headline(&self) -> bool {
        self.record["summary"].as_array().unwrap().iter().any(|line| line["headline"] == true)
    }

    /// Nothing in what it said sounds like success, and no rate is given.
    pub fn sounds_failed(&self) {
        let said = format!("{}{}", self.out, self.err);
        let first = self.out.lines().next().unwrap_or_default();
        assert!(first.starts_with("FAILED") || first.starts_with("DATA DIFFER"), "{first}");
        for word in ["success", "is done", "are good", "seems to be copied", "verified all"] {
            assert!(!said.to_lowercase().contains(word), "\"{word}\" in {said}");
        }
        assert!(!self.has_headline() && !gives_a_rate(&self.out), "{said}");
    }
}

/// A phase in a record.
#[derive(Clone, Copy)]
pub struct Phase<'a> {
    record: &'a Value,
    pub phase: &'a Value,
}

impl std::ops::Deref for Phase<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.phase
    }
}

impl Phase<'_> {
    /// A number that must be there.
    pub fn number(&self, pointer: &str) -> u64 {
        self.phase.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer} in {}", self.phase))
    }

    /// The verdict of a proof.
    pub fn verdict(&self, proof: &str) -> &str {
        let evidence = self.phase["evidence"].as_array().unwrap();
        let line = evidence.iter().find(|line| line["proof"] == proof).unwrap_or_else(|| panic!("no proof {proof}: {evidence:?}"));
        line["verdict"].as_str().unwrap()
    }

    /// The verdicts of the three proofs that every figure rests on: cold, moved, durable.
    pub fn verdicts(&self) -> [&str; 3] {
        ["cold", "moved", "durable"].map(|proof| self.verdict(proof))
    }

    /// The codes of the flags of a severity.
    pub fn flags(&self, severity: &str) -> Vec<&str> {
        let flags = self.phase["flags"].as_array().unwrap().iter().filter(|flag| flag["severity"] == severity);
        flags.map(|flag| flag["code"].as_str().unwrap()).collect()
    }

    /// Nothing takes anything from the figure; `apart_from` is allowed for.
    pub fn is_proven(&self, apart_from: &[&str]) {
        assert_eq!(self.verdicts(), ["holds"; 3], "{}", self.phase["evidence"]);
        let reservations: Vec<_> = [self.flags("invalid"), self.flags("weak")].concat();
        assert!(reservations.iter().all(|code| apart_from.contains(code)), "{}", self.phase["flags"]);
        self.is_verified();
    }

    /// Every file was compared and is right.
    pub fn is_verified(&self) {
        let integrity = &self.phase["integrity"];
        assert!(integrity["files_checked"] == self.phase["files"] && integrity["files_good"] == self.phase["files"], "{integrity}");
        assert!(self.number("/files") > 0 && self.phase["status"] == "ok", "{}", self.phase);
    }

    /// When the window opened, in nanoseconds of the log's clock.
    pub fn opened_ns(&self) -> u64 {
        let started: jiff::Timestamp = self.record["started_at"].as_str().unwrap().parse().unwrap();
        let wall = clock_gettime(ClockId::Realtime);
        let wall_ns = i128::from(wall.tv_sec) * 1_000_000_000 + i128::from(wall.tv_nsec);
        let ago_ns = u64::try_from(wall_ns - started.as_nanosecond()).unwrap();
        now_ns() - ago_ns + self.number("/start_ns")
    }
}

/// What a drive did between two times of rest: the truth of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Truth {
    pub began_ns: u64,
    /// When the last flush was answered.
    pub flushed_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// How long it served a request.
    pub busy_ns: u64,
}

impl Truth {
    /// From the first request to the last flush.
    pub fn durable_ns(&self) -> u64 {
        assert!(self.flushed_ns > self.began_ns, "nothing was flushed: {self:?}");
        self.flushed_ns - self.began_ns
    }

    /// The stretch of work in a log that began first after a time, and ended when nothing was read or written for `REST_NS`. A flush belongs to it when it
    /// came at once after something else: whoever calls `sync` on this machine sends one to every drive.
    pub fn after(log: &Log, time_ns: u64) -> Self {
        Self::of_each([log], time_ns)[0]
    }

    /// The same of several drives that work together: it lasts as long as any of them does something.
    pub fn of_each<const N: usize>(logs: [&Log; N], time_ns: u64) -> [Self; N] {
        const REST_NS: u64 = 700_000_000;
        const AT_ONCE_NS: u64 = 20_000_000;
        let of_log = |(drive, log): (usize, &Log)| log.requests().into_iter().map(move |request| (drive, request));
        let mut requests: Vec<(usize, Request)> = logs.into_iter().enumerate().flat_map(of_log).collect();
        requests.retain(|(_, request)| request.arrived_ns >= time_ns);
        requests.sort_by_key(|(_, request)| request.arrived_ns);
        let first = requests.iter().position(|(_, request)| request.kind != Kind::Flush).expect("the drive was asked for something");
        let began_ns = requests[first].1.arrived_ns;
        let mut truths = [Self { began_ns, ..Self::default() }; N];
        let mut busy_until = began_ns;
        let mut served = [const { Vec::new() }; N];
        for (drive, request) in requests.split_off(first) {
            let truth = &mut truths[drive];
            let idle_ns = request.arrived_ns.saturating_sub(busy_until);
            match request.kind {
                Kind::Flush if idle_ns > AT_ONCE_NS => continue,
                _ if idle_ns > REST_NS => break,
                Kind::Read => truth.read_bytes += request.length,
                Kind::Write => truth.written_bytes += request.length,
                Kind::Flush => truth.flushed_ns = request.ended_ns,
                Kind::Discard => {}
            }
            served[drive].push((request.started_ns.max(began_ns), request.ended_ns));
            busy_until = busy_until.max(request.ended_ns);
        }
        for (truth, served) in truths.iter_mut().zip(served) {
            truth.busy_ns = covered_ns(served);
        }
        truths
    }
}

/// Whether a text holds a number with a unit of a rate behind it.
pub fn gives_a_rate(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| pair[1].contains("B/s") && pair[0].ends_with(|last: char| last.is_ascii_digit()))
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One over the other.
pub fn ratio(value: u64, of: u64) -> f64 {
    value as f64 / of as f64
}
