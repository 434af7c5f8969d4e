//! On a terminal: bars, questions, Ctrl-C. The terminal is that of `script` (util-linux).

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use copysim::result::{Status, store};

use crate::person::{Person, below, is_root, skipped};

/// The program on a terminal, and what was shown on it when it has ended.
struct OnTerminal {
    child: Child,
    shown: Option<thread::JoinHandle<String>>,
}

impl OnTerminal {
    fn start(person: &Person, args: &[&str]) -> Option<Self> {
        Self::start_in(person, "100", args)
    }

    /// The same on a terminal of so many columns.
    fn start_in(person: &Person, columns: &str, args: &[&str]) -> Option<Self> {
        let quoted = args.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" ");
        // The shell that stands between is not the one to be stopped.
        let line = format!("trap : INT; stty cols {columns}; '{}' {quoted}; echo \"ended with $?\"", env!("CARGO_BIN_EXE_copysim"));
        let mut script = person.program("script");
        script.args(["--quiet", "--flush", "--command", &line, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh").stdin(Stdio::piped());
        let Ok(mut child) = script.spawn() else {
            skipped("there is no script (util-linux) to make a terminal");
            return None;
        };
        let mut out = child.stdout.take().unwrap();
        let shown = thread::spawn(move || {
            let mut shown = Vec::new();
            out.read_to_end(&mut shown).unwrap();
            String::from_utf8_lossy(&shown).into_owned()
        });
        Some(Self { child, shown: Some(shown) })
    }

    fn types(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn end(mut self) -> String {
        let shown = self.shown.take().unwrap().join().unwrap();
        self.child.wait().unwrap();
        shown
    }
}

#[test]
fn a_terminal_shows_bars_and_ctrl_c_stops_in_order() {
    let person = Person::new();
    // Enough that it can be stopped; it is never made whole.
    let args = ["corpus", "generate", "large-file", person.target(), "--scale", "100%"];
    let Some(mut terminal) = OnTerminal::start(&person, &args) else { return };
    let files = person.drive.path().join("copysim-workspace/corpora/large-file-v1-s0-p100/files");
    while below(&files).is_empty() {
        assert!(terminal.child.try_wait().unwrap().is_none(), "{}", terminal.end());
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(500));
    terminal.types("\u{3}");
    let shown = terminal.end();
    assert!(shown.contains("making large-file-v1-s0-p100 (1 file, 4.00 GB)") && shown.contains("░░░") && shown.contains(" MB/4.00 GB"), "{shown}");
    // It is told above the bar, on a line of its own.
    let told = shown.lines().any(|line| line.ends_with("stopping: what was written is removed, what was measured is kept (again to stop at once)"));
    assert!(told && !shown.contains("leftstopping"), "{shown}");
    assert!(shown.contains("ended with 130"), "{shown}");
    assert!(below(person.drive.path()).is_empty());
}

#[test]
fn a_question_is_asked_on_a_terminal_only() {
    if !is_root() {
        return skipped("only root mounts a small drive");
    }
    let person = Person::new();
    let Some(small) = crate::rights::Mounted::tmpfs(person.home.path(), "size=100m") else { return skipped("no tmpfs can be mounted") };
    let args = ["scenario", "jpg-same-drive", small.path().to_str().unwrap(), "--scale", "0.2%", "--runs", "1", "--settle", "0s"];
    for (answer, code, sentence) in
        [("n\n", 2, "not started: the answer was no"), ("\n", 2, "the answer was no"), ("y\n", 0, "Scenario  jpg-same-drive")]
    {
        let shown = loop {
            let Some(mut terminal) = OnTerminal::start(&person, &args) else { return };
            terminal.types(answer);
            let shown = terminal.end();
            if !shown.contains("another copysim is") {
                break shown;
            }
            thread::sleep(Duration::from_millis(100));
        };
        assert!(shown.contains("Go on? [y/N]") && shown.contains(sentence) && shown.contains(&format!("ended with {code}")), "{answer:?}: {shown}");
    }
    assert_eq!(person.results().iter().map(|path| store::load(path).unwrap().status).collect::<Vec<_>>(), [Status::Complete]);
}

#[test]
fn field_h09_bars_of_nothing_and_in_no_room_end_no_work() {
    let person = Person::new();
    person.file("real/empty", "");
    person.runs(["corpus", "scan", "real", "--name", "nothing", "-o", "nothing.toml"]).exits(0);
    for (columns, args) in [
        ("1", &["corpus", "generate", "./nothing.toml", person.target()][..]),
        ("0", &["corpus", "verify", person.target()]),
        ("3", &["corpus", "digest", "small-files", "--scale", "1%"]),
        ("20", &["corpus", "digest", "jpg", "--scale", "0.1%"]),
        ("20000", &["corpus", "generate", "./nothing.toml", person.target()]),
    ] {
        let shown = loop {
            let Some(terminal) = OnTerminal::start_in(&person, columns, args) else { return };
            let shown = terminal.end();
            if !shown.contains("another copysim is") {
                break shown;
            }
            thread::sleep(Duration::from_millis(100));
        };
        assert!(shown.contains("ended with 0") && !shown.contains("panicked"), "{columns}: {shown}");
    }
}
