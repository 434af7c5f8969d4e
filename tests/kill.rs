//! Promise 4 (nothing lost, nothing touched) when copysim is killed or told to stop at any moment, and when two want the same drive.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stderr, reason = "tests look at files from outside copysim")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use copysim::result::{PhaseStatus, Status, store};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// One after the other: all want the same drive.
static DRIVE: Mutex<()> = Mutex::new(());

/// What copysim says when it begins a piece of work, in order.
const MOMENTS: [&str; 6] =
    ["making ", "checking ", "run 1 of 9: preparing", "run 1 of 9: copying", "run 1 of 9: comparing", "removing what was written"];
/// Large enough that each of them takes a while.
const SCALE: &str = "1%";
const CORPUS: &str = "jpg-v1-s0-p1";
/// How long is waited for what should be over.
const PATIENCE: Duration = Duration::from_secs(120);

/// Numbers that look random and are the same again for the same seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let chosen = std::env::var("COPYSIM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed =
            chosen.unwrap_or_else(|| u64::from(std::process::id()) << 32 | u64::from(jiff::Timestamp::now().subsec_nanosecond().unsigned_abs()));
        eprintln!("COPYSIM_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number below another.
    fn below(&mut self, end: u64) -> u64 {
        let hash = blake3::hash(&self.0.to_le_bytes());
        self.0 = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap());
        self.0 % end
    }
}

/// A directory with foreign things in it, in which a drive lies, and a home elsewhere.
struct Place {
    root: TempDir,
    home: TempDir,
    user: Option<u32>,
    /// Whether copysim is started to outlive its terminal; otherwise as the tests were.
    outlives: Option<bool>,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Self {
        let turn = DRIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let place = Self { root, home: tempfile::tempdir().unwrap(), user: None, outlives: None, _turn: turn };
        for dir in ["stick/photos", "stick/empty", "outside/letters"] {
            fs::create_dir_all(place.root.path().join(dir)).unwrap();
        }
        for file in ["stick/photos/a.jpg", "stick/notes.txt", "outside/letters/dear.txt", "stick/20250131T235959Z-0123abcd", "stick/MARKER.txt"] {
            fs::write(place.root.path().join(file), file).unwrap();
        }
        std::os::unix::fs::symlink("../outside", place.root.path().join("stick/link")).unwrap();
        place
    }

    fn stick(&self) -> PathBuf {
        self.root.path().join("stick")
    }

    fn workspace(&self) -> PathBuf {
        self.stick().join("copysim-workspace")
    }

    /// Everything but the workspace: names, kinds, modes, owners, times, contents.
    fn around(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let entries = walkdir::WalkDir::new(self.root.path()).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| entry.path() != self.workspace()) {
            let entry = entry.unwrap();
            let found = entry.metadata().unwrap();
            hasher.update(entry.path().as_os_str().as_bytes()).update(&found.ino().to_le_bytes()).update(&found.mode().to_le_bytes());
            if found.is_file() {
                hasher.update(&fs::read(entry.path()).unwrap()).update(&found.mtime_nsec().to_le_bytes());
            }
        }
        hasher.finalize()
    }

    fn copysim(&self, args: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_copysim");
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                let user = user.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", program]);
                command
            }
            None => match self.outlives {
                Some(true) => {
                    let mut command = Command::new("nohup");
                    command.arg(program);
                    command
                }
                // The tests themselves may have been started so.
                Some(false) => {
                    let mut command = Command::new("env");
                    command.args(["--default-signal=HUP", program]);
                    command
                }
                None => Command::new(program),
            },
        };
        command.args(args).env("HOME", self.home.path()).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts to measure and waits until it says that it has come so far; other measurements of this drive are waited for.
    fn start(&self, scenario: &str, target: &Path, moment: &str, more: &[&str]) -> Running {
        self.starts(&[&["scenario", scenario, target.to_str().unwrap(), "--scale", SCALE, "--runs", "9"], more].concat(), moment)
    }

    fn starts(&self, args: &[&str], moment: &str) -> Running {
        let begun = Instant::now();
        loop {
            let mut child = self.copysim(args).stdout(Stdio::null()).spawn().unwrap();
            let mut running = Running { err: BufReader::new(child.stderr.take().unwrap()), child, said: String::new() };
            if running.hears(moment) {
                return running;
            }
            running.child.wait().unwrap();
            assert!(running.said.contains("another copysim is") && begun.elapsed() < PATIENCE, "no \"{moment}\": {}", running.said);
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs to the end with this exit code, and gives what was said on standard error.
    fn ends(&self, args: &[&str], code: i32) -> String {
        let begun = Instant::now();
        loop {
            let output = self.copysim(args).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            if !(said.contains("another copysim is") && begun.elapsed() < PATIENCE) {
                assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
                return said;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn measures_once(&self) -> String {
        self.ends(&["scenario", "jpg-same-drive", self.stick().to_str().unwrap(), "--scale", SCALE, "--runs", "1", "--settle", "0s"], 0)
    }

    fn share_of(&self, bytes: u64) -> String {
        share(bytes, &rustix::fs::statvfs(self.root.path()).unwrap())
    }

    /// Checks of the capacity that are not over.
    fn capacity_checks(&self) -> usize {
        let runs = fs::read_dir(self.workspace().join("runs")).into_iter().flatten();
        runs.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with("-capacity")).count()
    }

    /// The copies and the corpora without a manifest: what is there and should not stay.
    fn unfinished(&self) -> (usize, usize) {
        let below =
            |name: &str| fs::read_dir(self.workspace().join(name)).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let corpora = below("corpora");
        let of_capacity = |path: &&PathBuf| path.to_string_lossy().ends_with("-capacity");
        (
            below("runs").len() - below("runs").iter().filter(of_capacity).count(),
            corpora.iter().filter(|corpus| !corpus.join("MANIFEST").exists()).count(),
        )
    }
}

/// How much of what would make a drive 98 % full comes to so many bytes, as a scale.
fn share(bytes: u64, space: &rustix::fs::StatVfs) -> String {
    let free = space.f_bavail * space.f_frsize;
    let wanted = space.f_blocks * space.f_frsize * 98 / 100;
    let missing = wanted.saturating_sub(space.f_blocks * space.f_frsize - free).max(1);
    format!("{:.2}%", (bytes as f64 * 100.0 / missing as f64).clamp(0.01, 100.0))
}

/// A copysim at work.
struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
    said: String,
}

impl Running {
    /// Reads what it says up to a line that begins with this; false when it ends before.
    fn hears(&mut self, moment: &str) -> bool {
        loop {
            let start = self.said.len();
            if self.err.read_line(&mut self.said).unwrap() == 0 {
                return false;
            }
            if self.said[start..].starts_with(moment) {
                return true;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; its exit code, or none when a signal ended it.
    fn ends(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), self.said + &rest)
    }
}

/// Work that is killed: how it is called, with `TARGET` and `FILL` in it, and what it says as it goes.
struct Work {
    args: &'static [&'static str],
    moments: &'static [&'static str],
}

/// The first has its turn every other time: it has the most stages.
const WORKS: [Work; 4] = [
    Work { args: &["scenario", "jpg-same-drive", "TARGET", "--scale", SCALE, "--runs", "9", "--settle", "0s"], moments: &MOMENTS },
    Work {
        args: &["scenario", "jpg-cross-drive", "TARGET", "--scale", SCALE, "--runs", "9", "--settle", "0s"],
        moments: &["making ", "run 1 of 9: copying", "run 1 of 9: comparing", "removing what was written"],
    },
    Work {
        args: &["capacity", "TARGET", "--size", "48 MB", "--yes"],
        moments: &["checking ", "capacity: writing ", "capacity: emptying caches", "capacity: reading ", "removing the test data"],
    },
    Work {
        args: &["scenario", "fill-drive", "TARGET", "--fill", "98%", "--scale", "FILL", "--runs", "1", "--settle", "0s", "--yes"],
        moments: &["run 1 of 1: writing ", "run 1 of 1: comparing", "removing what was written"],
    },
];

impl Work {
    fn args(&self, place: &Place) -> Vec<String> {
        self.args
            .iter()
            .map(|arg| match *arg {
                "TARGET" => place.stick().to_str().unwrap().to_owned(),
                "FILL" => place.share_of(60_000_000),
                arg => arg.to_owned(),
            })
            .collect()
    }

    fn is_capacity(&self) -> bool {
        self.args[0] == "capacity"
    }
}

/// `COPYSIM_KILLS` of them; 20 when it is not said.
#[test]
fn field_j04_a_kill_at_any_moment_leaves_what_the_next_start_removes_and_touches_nothing_else() {
    let mut dice = Dice::new();
    let place = Place::new();
    let before = place.around();
    let kills = std::env::var("COPYSIM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let (mut found, mut turns, mut went_on) = ((0, 0), [0; WORKS.len()], 0);
    for round in 0..kills {
        let index = if round % 2 == 0 { 0 } else { 1 + round / 2 % (WORKS.len() - 1) };
        let work = &WORKS[index];
        let moment = work.moments[turns[index] % work.moments.len()];
        turns[index] += 1;
        if moment == "making " {
            place.ends(&["clean", place.stick().to_str().unwrap()], 0);
        }
        let args = work.args(&place);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let running = place.starts(&args, moment);
        // Making is soon over, and what it leaves must be seen at least once.
        thread::sleep(Duration::from_micros(dice.below(if moment == "making " { 10_000 } else { 120_000 })));
        running.signal(Signal::KILL);
        let (code, _) = running.ends();
        // What has little to do may have ended before.
        assert!(code.is_none() || code == Some(0) && index > 0, "round {round}: {code:?}");
        assert_eq!(place.around(), before, "round {round}");
        let (left, goes_on) = (place.unfinished(), place.capacity_checks() > 0);
        found = (found.0 + left.0, found.1 + left.1);
        if dice.below(3) == 0 {
            place.ends(&["clean", place.stick().to_str().unwrap()], 0);
            assert!(!place.workspace().exists(), "round {round}");
        } else {
            let said = if index == 0 { place.measures_once() } else { place.ends(&args, 0) };
            let at = format!("round {round}, {}, {moment}, {left:?}: {said}", work.args[1]);
            assert_eq!(said.contains("removed what a run that was killed had left: "), left.0 > 0, "{at}");
            assert_eq!(said.contains(", which was never finished: "), left.1 > 0, "{at}");
            let goes_on_with = said.contains("going on with ") || said.contains(" are there: they are read again");
            assert_eq!(goes_on_with, goes_on && work.is_capacity(), "{at}");
            went_on += usize::from(goes_on);
            assert_eq!((place.unfinished(), place.capacity_checks()), ((0, 0), 0), "{at}");
            if index == 0 {
                place.ends(&["corpus", "verify", place.stick().to_str().unwrap()], 0);
            }
        }
        assert_eq!(place.around(), before, "round {round}");
    }
    println!(
        "{kills} kills, of {turns:?}: {} copies and {} corpora were left and removed by the next start, {went_on} checks of a capacity went on",
        found.0, found.1
    );
    assert!(found.0 > 0 && found.1 > 0, "nothing was ever left, so nothing was tested: {found:?}");
}

#[test]
fn field_j04_a_signal_at_any_moment_ends_in_order_with_a_record_of_what_was_done() {
    let mut dice = Dice::new();
    let place = Place::new();
    let before = place.around();
    for round in 0..12 {
        let moment = MOMENTS[round % MOMENTS.len()];
        if moment == "making " {
            place.ends(&["clean", place.stick().to_str().unwrap()], 0);
        }
        let (signal, code) = if dice.below(2) == 0 { (Signal::INT, 130) } else { (Signal::TERM, 143) };
        let running = place.start("jpg-same-drive", &place.stick(), moment, &["--settle", "0s"]);
        thread::sleep(Duration::from_micros(dice.below(120_000)));
        running.signal(signal);
        let (ended, said) = running.ends();
        assert_eq!(ended, Some(code), "round {round}: {said}");
        assert!(said.ends_with("copysim: interrupted\n") && said.contains("stopping: what was written is removed"), "round {round}: {said}");
        assert_eq!(place.unfinished(), (0, 0), "round {round}: {said}");
        assert_eq!(place.around(), before, "round {round}");
        let path = said.lines().find_map(|line| line.strip_prefix("result: ")).expect("a record is kept");
        let document = store::load(Path::new(path)).unwrap();
        assert_eq!((document.status, document.exit_code), (Status::Interrupted, Some(u8::try_from(code).unwrap())));
        let phases: Vec<PhaseStatus> = document.runs.iter().flat_map(|run| &run.phases).map(|phase| phase.status).collect();
        if let Some((last, finished)) = phases.split_last() {
            assert!(finished.iter().all(|status| *status == PhaseStatus::Ok), "{phases:?}");
            assert!(matches!(last, PhaseStatus::Ok | PhaseStatus::Interrupted), "{phases:?}");
        }
        // The record can be shown, and says first what happened.
        let shown = place.copysim(&["report", path]).output().unwrap();
        assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).starts_with("INTERRUPTED before the end. "));
    }
    place.measures_once();
}

#[test]
fn a_signal_while_the_drive_is_waited_for_ends_the_wait() {
    let place = Place::new();
    let running =
        place.start("jpg-same-drive", &place.stick(), "run 1 of 9: waiting until the drive has been idle for 10m", &["--settle", "10m", "--yes"]);
    let begun = Instant::now();
    running.signal(Signal::INT);
    let (ended, said) = running.ends();
    assert_eq!(ended, Some(130), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(place.unfinished(), (0, 0));
}

#[test]
fn what_is_to_outlive_its_terminal_does_and_heeds_the_other_signals() {
    for outlives in [true, false] {
        let place = Place { outlives: Some(outlives), ..Place::new() };
        let waits = "run 1 of 9: waiting until the drive has been idle for 10m";
        let running = place.start("jpg-same-drive", &place.stick(), waits, &["--settle", "10m", "--yes"]);
        running.signal(Signal::HUP);
        // Longer than what counts as one request.
        thread::sleep(Duration::from_millis(700));
        if outlives {
            running.signal(Signal::INT);
        }
        let (ended, said) = running.ends();
        assert_eq!(ended, Some(if outlives { 130 } else { 129 }), "{said}");
        assert_eq!(place.unfinished(), (0, 0));
    }
}

#[test]
fn field_j06_two_do_not_measure_one_drive_at_once() {
    let place = Place::new();
    let other = place.root.path().join("outside");
    let first = place.start("jpg-same-drive", &place.stick(), "run 1 of 9: waiting until the drive", &["--settle", "10m", "--yes"]);
    // The process that works is a child of the one that was started.
    let started = first.child.id();
    let pid = fs::read_to_string(format!("/proc/{started}/task/{started}/children")).unwrap().trim().to_owned();
    for target in [place.stick(), other.clone()] {
        let second = place.copysim(&["scenario", "jpg-same-drive", target.to_str().unwrap(), "--scale", SCALE]).output().unwrap();
        let said = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(2), "{said}");
        assert!(said.ends_with(&format!("copysim: another copysim is measuring this drive (PID {pid}): wait until it has ended\n")), "{said}");
    }
    assert!(!other.join("copysim-workspace").exists());
    // Nor is the ground taken from under its feet.
    for args in [&["clean"][..], &["corpus", "generate", "jpg", "--scale", "0.01%"]] {
        let second = place.copysim(args).arg(place.stick()).output().unwrap();
        let said = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(2), "{said}");
        assert!(said.contains("copysim: another copysim is using ") && said.contains(&format!("(PID {pid})")), "{said}");
    }
    assert!(place.workspace().join("corpora").join(CORPUS).join("MANIFEST").exists());
    first.signal(Signal::TERM);
    assert_eq!(first.ends().0, Some(143));
    place.measures_once();
}

/// A source in memory costs what the machine has least of: the next start of any scenario removes it.
#[test]
fn a_source_in_memory_that_a_kill_left_is_removed_by_the_next_start_of_any_scenario() {
    let mut place = Place::new();
    // As a user whom nobody else is, so that no other copysim of this machine cleans up first.
    if rustix::process::geteuid().is_root() {
        let user = 1_000_000 + std::process::id();
        for directory in [place.home.path(), &place.stick(), &place.root.path().join("outside")] {
            chown(directory, Some(user), Some(user)).unwrap();
        }
        chown(place.root.path(), Some(user), Some(user)).unwrap();
        place.user = Some(user);
        if !place.copysim(&["--version"]).status().is_ok_and(|status| status.success()) {
            return eprintln!("skipped: the program can't be started as another user here");
        }
    }
    let prefix = format!("copysim-{}-", place.user.unwrap_or_else(|| rustix::process::geteuid().as_raw()));
    let in_memory = || -> Vec<PathBuf> {
        let entries = fs::read_dir("/dev/shm").into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))).collect()
    };
    let other = place.root.path().join("outside");
    for scenario in ["jpg-same-drive", "jpg-cross-drive"] {
        let running = place.start("jpg-cross-drive", &place.stick(), "run 1 of 9: copying", &["--settle", "0s"]);
        if in_memory().is_empty() {
            running.signal(Signal::KILL);
            running.ends();
            return eprintln!("skipped: there is too little memory for a source in it");
        }
        running.signal(Signal::KILL);
        running.ends();
        assert!(in_memory()[0].join("copysim-workspace/corpora").join(CORPUS).exists());
        // On another drive, or another directory of it.
        let said = place.ends(&["scenario", scenario, other.to_str().unwrap(), "--scale", "0.05%", "--runs", "1", "--settle", "0s"], 0);
        assert!(said.contains("removed from memory what a run that was killed had left: 8"), "{said}");
        assert_eq!(in_memory(), Vec::<PathBuf>::new());
    }
}

#[test]
fn field_j04_a_second_signal_ends_at_once_and_the_next_start_cleans_up() {
    let place = Place::new();
    let before = place.around();
    // A copier that does not want to end.
    let engine = "command:trap '' TERM; cp -r {source}/. {target}/; exec sleep 60";
    let running = place.start("jpg-same-drive", &place.stick(), "looking how fast the copier itself is", &["--settle", "0s", "--engine", engine]);
    thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    // What comes at once would be the same request.
    thread::sleep(Duration::from_millis(1500));
    let asked = Instant::now();
    running.signal(Signal::INT);
    let (code, said) = running.ends();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(code, None, "a signal ends it: {said}");
    assert_eq!(place.around(), before);
    place.measures_once();
    assert_eq!(place.unfinished(), (0, 0));
}
