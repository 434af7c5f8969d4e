//! Targets that can't be written to, and the ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use copysim::result::store;

use crate::person::{LITTLE, Person, Ran, below, is_root, patiently, skipped};

/// A file system of a test's own; unmounted when it is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// In memory, below a directory; `None` where it can't be mounted.
    pub fn tmpfs(below: &Path, options: &str) -> Option<Self> {
        let point = below.join("mounted");
        fs::create_dir(&point).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "copysim-test"]).arg(&point).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(point))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A directory of memory that knows no limits, refuses direct I/O and says nothing of its space.
    pub fn ramfs(below: &Path) -> Option<Self> {
        let point = below.join("mounted");
        fs::create_dir(&point).unwrap();
        let mounted = Command::new("mount").args(["-t", "ramfs", "copysim-test"]).arg(&point).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(point))
    }

    fn remount(&self, how: &str) {
        assert!(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed may have left it busy: then it goes when nobody uses it any more.
        let _ = Command::new("umount").args(["--lazy"]).arg(&self.0).status();
    }
}

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// A person without rights: this user, or where this is root, nobody. `None` where the program can't be started as that.
pub fn ordinary(person: Person) -> Option<Person> {
    if is_root() {
        for directory in [person.home.path(), person.drive.path()] {
            chown(directory, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let starts = as_ordinary(&person, &["--version"]).output().is_ok_and(|output| output.status.success());
    if !starts {
        skipped("the program can't be started without rights here (is setpriv missing, or a directory above it closed?)");
    }
    starts.then_some(person)
}

/// The program as an ordinary user starts it.
pub fn as_ordinary(person: &Person, args: &[&str]) -> Command {
    if !is_root() {
        return person.copysim(args);
    }
    let mut command = person.program("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_copysim")]);
    command.args(args);
    command
}

fn measures(person: &Person, args: &[&str]) -> Ran {
    let args = [&["scenario"], args, &LITTLE[..], &["--runs", "1"]].concat();
    patiently(|| as_ordinary(person, &args))
}

#[test]
fn field_a04_an_ordinary_user_measures_and_is_told_what_could_not_be_cold() {
    let Some(person) = ordinary(Person::with_a_drive()) else { return };
    let ran = measures(&person, &["jpg-same-drive", person.target()]).exits(0);
    assert!(ran.out.contains("all 6"), "{}", ran.out);
    let phase = store::load(&person.results()[0]).unwrap().runs.remove(0).phases.remove(0);
    // On a drive names stay warm; in memory everything does.
    let marks: Vec<&str> = phase.flags.iter().map(|flag| flag.code.as_str()).collect();
    assert!(marks.contains(&"metadata-warm") || marks.contains(&"not-cold"), "{marks:?}");
    let cross = measures(&person, &["jpg-cross-drive", person.target()]).exits(0);
    assert!(cross.out.contains("The data came from memory") || cross.out.contains("made while writing"), "{}", cross.out);
    as_ordinary(&person, &["corpus", "verify", person.target()]).status().unwrap().success().then_some(()).expect("verified");
    as_ordinary(&person, &["clean", person.target()]).status().unwrap().success().then_some(()).expect("cleaned");
    assert!(below(person.drive.path()).is_empty());
}

#[test]
fn a_target_without_rights_is_refused_with_what_was_tried() {
    let Some(person) = ordinary(Person::new()) else { return };
    let closed = person.drive.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let to = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
    if is_root() {
        to(0o755);
    } else {
        to(0o555);
    }
    let target = closed.to_str().unwrap();
    let sentence = format!("cannot make {target}/copysim-workspace (target): permission denied (EACCES); you have no right to do this there");
    measures(&person, &["jpg-same-drive", target]).refuses(&sentence);
    to(0o700);
    if is_root() {
        let unreadable = measures(&person, &["jpg-same-drive", target]).exits(1);
        assert!(unreadable.err.contains("cannot open ") && unreadable.err.contains("(EACCES)"), "{}", unreadable.err);
    }
    assert!(below(&closed).is_empty() && person.results().is_empty());
}

#[test]
fn a_workspace_of_another_user_is_refused_and_not_touched() {
    if !is_root() {
        return skipped("only root can be two users");
    }
    let Some(person) = ordinary(Person::new()) else { return };
    person.runs(["corpus", "generate", "small-files", person.target(), "--scale", "0.01%"]).exits(0);
    let corpus = person.corpus();
    measures(&person, &["jpg-same-drive", person.target()]).refuses("permission denied (EACCES)");
    let clean = as_ordinary(&person, &["clean", person.target()]).output().unwrap();
    assert!(!clean.status.success());
    assert!(String::from_utf8_lossy(&clean.stderr).contains("(EACCES)"), "{clean:?}");
    assert!(corpus.join("MANIFEST").exists());
    person.runs(["corpus", "verify", person.target()]).exits(0);
}

#[test]
fn field_c16_a_read_only_target_is_refused_as_that() {
    if !is_root() {
        return skipped("only root mounts read-only");
    }
    let person = Person::new();
    let Some(stick) = Mounted::tmpfs(person.home.path(), "size=50m") else { return skipped("no tmpfs can be mounted") };
    let target = stick.path().to_str().unwrap();
    person.runs(["corpus", "generate", "small-files", target, "--scale", "0.01%"]).exits(0);
    stick.remount("ro");
    let args = [&["scenario", "jpg-same-drive", target], &LITTLE[..]].concat();
    patiently(|| person.copysim(&args)).refuses("the target is read-only: cannot ");
    // What is on it can still be verified.
    person.runs(["corpus", "verify", target]).exits(0);
    stick.remount("rw");
}

#[test]
fn field_a02_where_no_way_past_the_cache_exists_all_is_done_and_said() {
    if !is_root() {
        return skipped("only root mounts");
    }
    let person = Person::new();
    let Some(memory) = Mounted::ramfs(person.home.path()) else { return skipped("no ramfs can be mounted") };
    let direct = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::DIRECT;
    let refused = rustix::fs::open(memory.path().join("direct"), direct, rustix::fs::Mode::RWXU);
    assert_eq!(refused.unwrap_err(), rustix::io::Errno::INVAL);
    fs::remove_file(memory.path().join("direct")).unwrap();
    let target = memory.path().to_str().unwrap();
    // Copying within it, whatever the way, and to it from another file system, where the system does not copy by itself.
    for (scenario, engine) in [("jpg-same-drive", "buffered"), ("jpg-same-drive", "copy-file-range"), ("jpg-cross-drive", "copy-file-range")] {
        let args = [&["scenario", scenario, target, "--engine", engine, "--runs", "1"], &LITTLE[..]].concat();
        let ran = patiently(|| person.copysim(&args)).exits(0);
        assert!(ran.out.contains("all 6"), "{}", ran.out);
    }
    let documents: Vec<_> = person.results().iter().map(|path| store::load(path).unwrap()).collect();
    assert_eq!(documents.len(), 3);
    for document in &documents {
        let phase = &document.runs[0].phases[0];
        // Both halves are there: what was read and what was written.
        let work = phase.work.as_ref().unwrap();
        assert!(work.read_bytes == phase.bytes && work.written_bytes == phase.bytes && phase.bytes > 5_000_000, "{work:?}");
        let flags: Vec<&str> = phase.flags.iter().map(|flag| flag.code.as_str()).collect();
        let cold = phase.cache.as_ref().is_some_and(|cache| cache.data == copysim::result::Warmth::Cold);
        assert!(!cold && flags.contains(&"cached-write"), "{flags:?} {:?}", phase.cache);
        // A figure of memory is none of a drive.
        assert!(document.summary.is_empty(), "{:?}", document.summary);
    }
    let mechanisms: Vec<_> = documents.iter().map(|document| document.runs[0].phases[0].engine.as_ref().unwrap().mechanism.clone()).collect();
    assert!(mechanisms.iter().any(|mechanism| mechanism.starts_with("read-write")), "{mechanisms:?}");
}

#[test]
fn field_d05_a_file_system_that_says_nothing_of_its_space_is_measured_with_a_warning() {
    if !is_root() {
        return skipped("only root mounts");
    }
    let person = Person::new();
    let Some(memory) = Mounted::ramfs(person.home.path()) else { return skipped("no ramfs can be mounted") };
    let target = memory.path().to_str().unwrap();
    let args = [&["scenario", "jpg-same-drive", target, "--runs", "1"], &LITTLE[..]].concat();
    let ran = patiently(|| person.copysim(&args)).exits(0);
    assert!(ran.err.contains("does not say how much space it has; "), "{}", ran.err);
    let document = store::load(&person.results()[0]).unwrap();
    assert_eq!(document.drives[0].fill_percent, None);
    // Filling it needs to be told how much that is.
    person.runs(["capacity", target, "--yes"]).refuses("does not say how much space it has: say --size");
    person.runs(["capacity", target, "--yes", "--size", "10MB"]).exits(0);
}

#[test]
fn field_d07_a_limit_on_the_size_of_files_is_an_error_of_the_write() {
    let person = Person::new();
    let limited = |args: &[&str]| {
        patiently(|| {
            let mut command = person.program("sh");
            // 512 or 1024 bytes each: less than the largest photo.
            command.args(["-c", "ulimit -f 800 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_copysim")]).args(args);
            command
        })
    };
    let is_told = |ran: Ran| {
        let ran = ran.exits(1);
        let sentence = "file too large (EFBIG); the file system has a limit on the size of a file (FAT32: 4 GiB)";
        assert!(ran.err.contains("cannot write to ") && ran.err.contains(" at byte ") && ran.err.contains(sentence), "{}", ran.err);
        ran
    };
    // While a corpus is made, and while it is copied: nothing of the file stays.
    is_told(limited(&["corpus", "generate", "jpg", person.target(), "--scale", "0.07%"]));
    assert!(below(person.drive.path()).is_empty());
    person.runs(["corpus", "generate", "jpg", person.target(), "--scale", "0.07%"]).exits(0);
    let ran = is_told(limited(&[&["scenario", "jpg-same-drive", person.target()], &LITTLE[..]].concat()));
    assert!(ran.out.starts_with("FAILED: cannot write to"), "{}", ran.out);
    assert!(below(&person.drive.path().join("copysim-workspace/runs")).is_empty());
}
