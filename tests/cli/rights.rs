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
fn an_ordinary_user_measures_and_is_told_what_could_not_be_cold() {
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
fn a_read_only_target_is_refused_as_that() {
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
