//! A drive and a workspace full of what should not be there, and names that would steer a terminal: survived, left alone, named, and nothing outside is so much as opened.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use copysim::result::store;
use rustix::fs::inotify;

use crate::person::{LITTLE, Person, Ran, below, is_root, patiently, skipped};
use crate::rights::{as_ordinary, ordinary};

/// Nothing here takes longer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);
const EVIL: &str = "x\u{1b}]0;gotcha\u{7}\u{9b}2J\u{202e}<script>";

/// What must not be reached: it tells when it was.
struct Outside {
    path: PathBuf,
    watch: rustix::fd::OwnedFd,
}

impl Outside {
    fn new(path: PathBuf) -> Self {
        fs::create_dir_all(path.join("letters")).unwrap();
        fs::write(path.join("letters/dear.txt"), "dear").unwrap();
        fs::write(path.join("MARKER"), "mine").unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        for directory in [path.clone(), path.join("letters")] {
            inotify::add_watch(&watch, directory, inotify::WatchFlags::ALL_EVENTS).unwrap();
        }
        Self { path, watch }
    }

    fn assert_unreached(&self, by: &str) {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.watch, &mut buffer);
        let reached = reader.next().map(|event| format!("{:?} {:?}", event.events(), event.file_name())).ok();
        assert_eq!(reached, None, "{by}: something outside was reached");
    }
}

/// Puts things into a directory that should not be there; their names.
fn strew(directory: &Path, outside: &Path) -> Vec<OsString> {
    let at = |name: &str| directory.join(name);
    symlink("/etc", at("etc")).unwrap();
    symlink(outside, at("link to a directory")).unwrap();
    symlink(outside.join("letters/dear.txt"), at("link to a file")).unwrap();
    symlink("/nowhere/at/all", at("dangling")).unwrap();
    symlink("turns", at("turns")).unwrap();
    symlink("..", at("up")).unwrap();
    symlink("/dev/zero", at("endless")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    drop(UnixListener::bind(at("socket")).unwrap());
    let mut names: Vec<OsString> =
        ["etc", "link to a directory", "link to a file", "dangling", "turns", "up", "endless", "fifo", "socket"].map(OsString::from).to_vec();
    let odd = [EVIL.as_bytes(), b"new\nline", b"\xff\xfe latin", b"-rf", b" ", b"*", &[b'n'; 255]].map(|name| OsString::from_vec(name.to_vec()));
    for name in odd {
        fs::write(directory.join(&name), "mine").unwrap();
        names.push(name);
    }
    let mut deep = at("deep");
    names.push("deep".into());
    for _ in 0..60 {
        fs::create_dir(&deep).unwrap();
        fs::write(deep.join("file"), "mine").unwrap();
        deep.push("deeper and deeper");
    }
    for (name, mode) in [("closed", 0o000), ("no names", 0o300), ("no writing", 0o555)] {
        fs::create_dir_all(at(name).join("inner")).unwrap();
        fs::write(at(name).join("inner/file"), "mine").unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        names.push(name.into());
    }
    names
}

/// Names, kinds, modes and contents of all that a user put somewhere; of `except` nothing.
fn remember(root: &Path, except: &[PathBuf]) -> BTreeMap<PathBuf, (u32, u64, blake3::Hash)> {
    let entries =
        walkdir::WalkDir::new(root).follow_root_links(false).into_iter().filter_entry(|entry| except.iter().all(|except| entry.path() != except));
    entries
        .filter_map(Result::ok)
        .map(|entry| {
            let found = entry.path().symlink_metadata().unwrap();
            let content = if found.is_file() {
                fs::read(entry.path()).unwrap_or_default()
            } else {
                entry.path().read_link().map(|to| to.as_os_str().as_bytes().to_vec()).unwrap_or_default()
            };
            (entry.path().to_owned(), (found.mode(), found.ino(), blake3::hash(&content)))
        })
        .collect()
}

/// Nothing that was said steers a terminal, and it ended by itself.
#[track_caller]
fn is_told(ran: Ran, codes: &[i32]) -> Ran {
    assert!(codes.contains(&ran.code), "exit code {}: {}\n{}", ran.code, ran.out, ran.err);
    let steers = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains(steers), "{text:?}");
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

/// A drive on which everything is strewn with strange things, used by a person with their own rights.
fn survives(person: &Person, program: &dyn Fn(&Person, &[&str]) -> Command, owner: Option<u32>) {
    let run = |args: &[&str]| {
        let begun = Instant::now();
        let ran = patiently(|| program(person, args));
        assert!(begun.elapsed() < PATIENCE, "{args:?} took {:?}", begun.elapsed());
        ran
    };
    let target = person.target();
    run(&["corpus", "generate", "jpg", target, "--scale", "0.07%"]).exits(0);
    let workspace = person.drive.path().join("copysim-workspace");
    let killed = workspace.join("runs/20250131T235959Z-0123abcd");
    fs::create_dir(&killed).unwrap();
    let outside = Outside::new(person.home.path().join("outside"));
    let own = person.corpus();
    let foreign: Vec<PathBuf> = [workspace.clone(), workspace.join("corpora"), workspace.join("runs")]
        .iter()
        .flat_map(|directory| strew(directory, &outside.path).into_iter().map(|name| directory.join(name)))
        .collect();
    // What lies in directories of copysim's own goes with them.
    for directory in [&killed, &own, &own.join("files"), &own.join("files/DCIM")] {
        strew(directory, &outside.path);
    }
    strew(person.drive.path(), &outside.path);
    if let Some(owner) = owner {
        for entry in walkdir::WalkDir::new(person.drive.path()).into_iter().map(Result::unwrap) {
            std::os::unix::fs::lchown(entry.path(), Some(owner), Some(owner)).unwrap();
        }
    }
    let around = || remember(person.drive.path(), std::slice::from_ref(&workspace));
    let strangers = || foreign.iter().map(|path| remember(path, &[])).collect::<Vec<_>>();
    let (before, strangers_before) = (around(), strangers());
    outside.assert_unreached("the fixture");

    let scale = ["--scale", "0.07%"];
    let measure = [&["scenario", "jpg-same-drive", target, "--runs", "1"], &LITTLE[..]].concat();
    let commands: [(&[&str], &[i32]); 9] = [
        (&["drive", target], &[0]),
        (&["plan", "jpg-same-drive", target, scale[0], scale[1]], &[0]),
        // Deeper than a corpus may be.
        (&["corpus", "scan", target], &[0, 2]),
        // What is not part of it is named, and is no difference.
        (&["corpus", "verify", target], &[0]),
        (&measure, &[0]),
        (&["capacity", target, "--size", "2 MB", "--yes"], &[0]),
        (&["corpus", "generate", "small-files", target, "--scale", "0.01%"], &[0]),
        (&["clean", target], &[0]),
        (&["clean", target], &[0]),
    ];
    let mut said = Vec::new();
    for (command, codes) in commands {
        said.push(is_told(run(command), codes));
        outside.assert_unreached(command[0]);
        assert_eq!(around(), before, "{command:?}");
        assert_eq!(strangers(), strangers_before, "{command:?}");
    }
    let verified = &said[3].out;
    assert!(verified.contains("DCIM/deep/") && verified.contains(": not part of the corpus") && verified.contains("6 of 6 files"), "{verified}");
    assert!(said[4].err.contains("removed what a run that was killed had left: ") && said[4].out.contains("all 6"), "{}", said[4].err);
    for cleaned in &said[7..] {
        let named = cleaned.out.lines().filter(|line| line.starts_with("left ") && line.ends_with(": it is not copysim's")).count();
        assert_eq!(named, foreign.len(), "{}", cleaned.out);
    }
    assert!(!killed.exists() && !own.exists());
    // So that they can be removed by whoever made them.
    for entry in walkdir::WalkDir::new(person.drive.path()).into_iter() {
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_dir() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
    let _ = Command::new("chmod").args(["-R", "u+rwX", target]).output();
}

#[test]
fn a_drive_strewn_with_strange_things_is_survived() {
    survives(&Person::new(), &|person, args| person.copysim(args), None);
}

#[test]
fn a_drive_strewn_with_strange_things_is_survived_without_roots_rights() {
    if !is_root() {
        return skipped("the test before is that of an ordinary user");
    }
    let Some(person) = ordinary(Person::new()) else { return };
    survives(&person, &as_ordinary, Some(65534));
}

#[test]
fn names_labels_and_texts_from_outside_are_spelled_out_wherever_they_are_shown() {
    let person = Person::new();
    // The drive itself has such a name, too.
    let drive = person.drive.path().join(EVIL);
    fs::create_dir(&drive).unwrap();
    let summary = serde_json::to_string(EVIL).unwrap();
    let spec = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/jpg-same-drive.toml")).unwrap();
    let evil_spec = spec
        .lines()
        .map(|line| if line.starts_with("summary") { format!("summary = {summary}") } else { line.to_owned() } + "\n")
        .collect::<String>();
    // What no TOML may hold, in a comment.
    let broken = format!("# {EVIL}\nname = \"{EVIL}\"\n");
    let own = person.file("outer/evil\u{202e}\u{1b}.toml", &evil_spec);
    let broken = person.file("broken\u{1b}[2J.toml", &broken);
    person.file(&format!(".config/copysim/scenarios/{EVIL}.toml"), &evil_spec);
    person.file(".config/copysim/corpora/odd.toml", &broken);
    let target = drive.to_str().unwrap().to_owned();
    let target = target.as_str();
    let little = [&["--runs", "1"], &LITTLE[..]].concat();
    let measure = [&["scenario", own.as_str(), target, "--label", EVIL], little.as_slice()].concat();
    let commands: [(&[&str], &[i32]); 15] = [
        (&["list"], &[0]),
        (&["show", &own], &[0]),
        (&["show", &broken], &[0]),
        (&["show", EVIL], &[0, 2]),
        (&["plan", &own, target, "--scale", "0.07%"], &[0]),
        (&["plan", &broken, target], &[2]),
        (&["drive", target], &[0]),
        (&["drive", target, "--json", "-"], &[0]),
        (&measure, &[0]),
        (&["capacity", target, "--size", "2 MB", "--yes", "--label", EVIL], &[0]),
        (&["corpus", "verify", target], &[0]),
        (&["corpus", "verify", &format!("{target}/{EVIL}")], &[1, 2]),
        (&["report", &broken], &[2]),
        (&[EVIL], &[2]),
        (&["list", &format!("--{EVIL}")], &[2]),
    ];
    for (command, codes) in commands {
        let ran = is_told(patiently(|| person.copysim(command)), codes);
        assert!(command[0] == "report" || (ran.out + &ran.err).len() > 10, "{command:?}");
    }
    let results = person.results();
    assert_eq!(results.len(), 2);
    let paths: Vec<&str> = results.iter().map(|path| path.to_str().unwrap()).collect();
    assert!(results.iter().all(|path| store::load(path).unwrap().label.as_deref() == Some(EVIL)));
    for format in ["text", "json"] {
        let shown = is_told(person.runs([&["report", "--format", format], paths.as_slice()].concat()), &[0]);
        assert!(shown.out.contains(if format == "text" { "x\\u{1b}]0;gotcha" } else { "x\\u001b]0;gotcha" }), "{}", shown.out);
    }
    let cleaned = is_told(person.runs(["clean", target]), &[0]);
    assert!(cleaned.out.contains("\\u{1b}]0;gotcha"), "{}", cleaned.out);
    assert!(below(&drive).is_empty());
    // A device that never ends is no spec and no result.
    for command in [["show", "/dev/zero"], ["report", "/dev/zero"], ["plan", "/dev/zero"]] {
        let ran = is_told(person.runs(command), &[1, 2]);
        assert!(ran.err.contains("/dev/zero") && ran.err.contains("more than 64 MiB"), "{}", ran.err);
    }
}
