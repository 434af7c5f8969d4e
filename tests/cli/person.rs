//! A person with a home, a drive and a shell: everything a test does goes through the program that they would start.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// So little that a test takes no time: six photos.
pub const LITTLE: [&str; 4] = ["--scale", "0.07%", "--settle", "0s"];
/// How long other measurements of this machine are waited for: one drive is measured once at a time.
const PATIENCE: Duration = Duration::from_secs(300);

/// A person.
pub struct Person {
    /// Their home.
    pub home: TempDir,
    /// What they measure.
    pub drive: TempDir,
}

impl Person {
    /// With home and drive in memory where the machine has a place for that.
    pub fn new() -> Self {
        let root = Path::new("/dev/shm");
        let make = || if root.is_dir() { tempfile::tempdir_in(root) } else { tempfile::tempdir() }.unwrap();
        Self { home: make(), drive: make() }
    }

    /// With a drive where temporary files are.
    pub fn with_a_drive() -> Self {
        Self { home: tempfile::tempdir().unwrap(), drive: tempfile::tempdir().unwrap() }
    }

    /// The drive as it is written on a command line.
    pub fn target(&self) -> &str {
        self.drive.path().to_str().unwrap()
    }

    /// A file in their home.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The program, with their home, in their home, without a terminal.
    pub fn copysim<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_copysim"));
        command.args(args);
        command
    }

    /// Another program, in the same surroundings.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.home.path());
        command.current_dir(self.home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What the program says and how it ends.
    pub fn runs<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let args: Vec<S> = args.into_iter().collect();
        patiently(|| self.copysim(args.iter().map(AsRef::as_ref)))
    }

    /// Measures a scenario with little, and waits for other measurements of the same drive.
    pub fn measures(&self, scenario: &str, more: &[&str]) -> Ran {
        let args = [&["scenario", scenario, self.target()], &LITTLE[..], more].concat();
        patiently(|| self.copysim(&args))
    }

    /// The results in their data directory, by name.
    pub fn results(&self) -> Vec<PathBuf> {
        below(&self.home.path().join(".local/share/copysim/results"))
    }

    /// The only corpus on the drive.
    pub fn corpus(&self) -> PathBuf {
        let corpora = below(&self.drive.path().join("copysim-workspace/corpora"));
        assert_eq!(corpora.len(), 1, "{corpora:?}");
        corpora[0].clone()
    }

    /// A text without what differs from one machine and one start to the next.
    pub fn redact(&self, text: &str) -> String {
        text.replace(self.target(), "[DRIVE]").replace(self.home.path().to_str().unwrap(), "[HOME]")
    }
}

/// What lies in a directory, sorted; nothing when it is missing.
pub fn below(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// It ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    /// It was refused with this sentence on standard error, and with nothing on standard output.
    #[track_caller]
    pub fn refuses(self, sentence: &str) {
        let ran = self.exits(2);
        assert!(ran.err.contains(sentence), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
}

/// Runs a command to its end.
pub fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

/// Runs a command again and again until no other copysim measures the drive that it wants.
pub fn patiently(mut command: impl FnMut() -> Command) -> Ran {
    let begun = Instant::now();
    loop {
        let ran = ran(&mut command());
        if ran.code != 2 || !ran.err.contains("another copysim is") || begun.elapsed() > PATIENCE {
            return ran;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// A word about what could not be tested here.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Whether this is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
