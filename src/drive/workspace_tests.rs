//! Tests of the workspace with all that may stand in its way: nothing around it changes, whatever happens.
#![expect(clippy::disallowed_methods, reason = "tests make their own fixtures and look at them from outside")]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::platform::OS;

/// A directory in which a user named another, with things of the user's in and around it.
struct Place {
    root: tempfile::TempDir,
    target: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new() -> Self {
        Self::below(tempfile::tempdir().unwrap())
    }

    /// In memory where the machine has a place for that: for tests that make much.
    fn in_memory() -> Self {
        Self::below(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn below(root: tempfile::TempDir) -> Self {
        let (target, outside) = (root.path().join("stick"), root.path().join("outside"));
        for dir in [&target, &outside] {
            fs::create_dir_all(dir.join("photos")).unwrap();
            fs::write(dir.join("photos/a.jpg"), "a").unwrap();
            fs::write(dir.join("letter.txt"), "dear").unwrap();
        }
        Self { root, target, outside }
    }

    fn workspace(&self) -> PathBuf {
        self.target.join(NAME)
    }

    fn open(&self) -> Workspace<'static> {
        Workspace::open_or_create(OS, &self.target).unwrap()
    }

    fn refusal(&self) -> String {
        refusal(&self.target)
    }

    /// Everything but the workspace: names, kinds, modes, contents.
    fn around(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for entry in walkdir::WalkDir::new(self.root.path()).sort_by_file_name().into_iter().filter_entry(|entry| entry.path() != self.workspace()) {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            hasher.update(entry.path().as_os_str().as_bytes()).update(&metadata.mode().to_le_bytes()).update(&metadata.ino().to_le_bytes());
            if metadata.is_file() {
                hasher.update(&fs::read(entry.path()).unwrap()).update(&metadata.mtime_nsec().to_le_bytes());
            }
        }
        hasher.finalize()
    }
}

fn refusal(directory: &Path) -> String {
    let Err(error) = Workspace::open_or_create(OS, directory) else { panic!("{} was not refused", directory.display()) };
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

fn names(dir: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

const RUN: &str = "20250131T235959Z-0123abcd";

#[test]
fn a_workspace_is_made_used_and_cleaned_without_a_trace() {
    let place = Place::new();
    let before = place.around();
    let workspace = place.open();
    assert_eq!(names(&place.workspace()), [".gitignore", ".metadata_never_index", ".nomedia", "CACHEDIR.TAG", "MARKER", "corpora", "runs"]);
    assert!(fs::read_to_string(place.workspace().join("CACHEDIR.TAG")).unwrap().starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
    assert_eq!(workspace.leftovers().runs, 0);

    let run = workspace.new_run().unwrap();
    assert!(is_run_name(OsStr::new(&run.id)), "{}", run.id);
    fs::write(run.path.join("copy"), vec![1; 10_000]).unwrap();
    workspace.still_here().unwrap();
    let removal = workspace.remove(run).unwrap();
    assert_eq!((removal.files, removal.directories, removal.is_complete()), (1, 1, true));
    assert!(removal.bytes >= 10_000);

    let kept = workspace.keep(workspace.new_run().unwrap()).unwrap();
    fs::write(kept.join("copy"), "kept").unwrap();
    drop(workspace);
    let workspace = place.open();
    assert_eq!((workspace.leftovers().runs, workspace.kept().unwrap()), (0, vec![kept.clone()]));
    assert_eq!((workspace.foreign().unwrap(), fs::read(kept.join("copy")).unwrap()), (vec![], b"kept".to_vec()));

    let corpus = "jpg-v1-s0-p5";
    assert!(workspace.corpus(corpus).unwrap().is_none());
    workspace.create_corpus(corpus).unwrap();
    assert!(workspace.create_corpus(corpus).is_err());
    fs::write(workspace.corpus_path(corpus).join("x"), "x").unwrap();
    assert!(workspace.corpus(corpus).unwrap().is_some());
    assert_eq!(workspace.corpora().unwrap(), [corpus]);
    for name in ["..", "jpg", "../../outside", "x-v1-s0-p5/../../.."] {
        assert!(workspace.remove_corpus(name).is_err(), "{name}");
    }
    assert_eq!(workspace.remove_corpus(corpus).unwrap().files, 1);
    workspace.create_corpus(corpus).unwrap();
    drop(workspace);

    let existing = Workspace::open_existing(OS, &place.target).unwrap().unwrap();
    let cleaned = existing.clean().unwrap();
    assert!(cleaned.foreign.is_empty() && cleaned.removal.is_complete());
    assert!(!place.workspace().exists());
    assert!(Workspace::open_existing(OS, &place.target).unwrap().is_none());
    assert_eq!(place.around(), before);
}

#[test]
fn what_a_killed_run_left_is_removed_at_the_next_start() {
    let place = Place::new();
    let run = place.open().new_run().unwrap();
    fs::create_dir(run.path.join("sub")).unwrap();
    fs::write(run.path.join("sub/file"), vec![0xff; 5000]).unwrap();
    drop(run);
    let corpus = place.workspace().join("corpora/jpg-v1-s0-p100");
    fs::create_dir(&corpus).unwrap();
    let before = place.around();
    let workspace = place.open();
    let left = workspace.leftovers();
    assert_eq!((left.runs, left.removal.files, left.removal.directories), (1, 1, 2));
    assert_eq!(names(&place.workspace().join(RUNS)), Vec::<OsString>::new());
    assert!(corpus.exists(), "a corpus is not a left-over");
    assert_eq!(place.around(), before);
}

#[test]
fn a_creation_that_was_killed_at_any_moment_is_completed() {
    let whole = marker::content(5);
    for written in [None, Some(0), Some(1), Some(25), Some(whole.len() - 1), Some(whole.len())] {
        let place = Place::new();
        fs::create_dir(place.workspace()).unwrap();
        if let Some(length) = written {
            fs::write(place.workspace().join(marker::NAME), &whole[..length]).unwrap();
        }
        let is_whole = written == Some(whole.len());
        assert_eq!(Workspace::open_existing(OS, &place.target).unwrap().is_some(), is_whole);
        drop(place.open());
        assert_eq!(marker::judge(&fs::read(place.workspace().join(marker::NAME)).unwrap()), Marker::Valid);
        // The power failed while the target was being probed.
        fs::write(place.workspace().join(PROBE), "half").unwrap();
        place.open();
        assert!(!place.workspace().join(PROBE).exists());
    }
}

#[test]
fn field_j01_what_is_not_a_workspace_is_refused_and_stays_untouched() {
    let no_marker = "has no valid MARKER";
    type Case<'a> = (&'a str, &'a dyn Fn(&Place));
    let cases: [Case<'_>; 9] = [
        (no_marker, &|place| fs::create_dir_all(place.workspace().join("thesis")).unwrap()),
        (no_marker, &|place| {
            fs::create_dir(place.workspace()).unwrap();
            fs::write(place.workspace().join("MARKER"), "my own marker").unwrap();
        }),
        (no_marker, &|place| {
            fs::create_dir(place.workspace()).unwrap();
            fs::write(place.workspace().join("MARKER"), "").unwrap();
            fs::write(place.workspace().join("thesis"), "").unwrap();
        }),
        (no_marker, &|place| {
            fs::create_dir_all(place.workspace().join("MARKER")).unwrap();
        }),
        (no_marker, &|place| {
            fs::create_dir(place.workspace()).unwrap();
            fs::write(place.outside.join("MARKER"), marker::content(1)).unwrap();
            symlink(place.outside.join("MARKER"), place.workspace().join("MARKER")).unwrap();
        }),
        (no_marker, &|place| {
            fs::create_dir(place.workspace()).unwrap();
            fifo(&place.workspace().join("MARKER"));
        }),
        ("is not a directory", &|place| fs::write(place.workspace(), "mine").unwrap()),
        ("is not a directory", &|place| {
            fs::write(place.outside.join("MARKER"), marker::content(1)).unwrap();
            symlink(&place.outside, place.workspace()).unwrap();
        }),
        ("was made by a newer copysim", &|place| {
            fs::create_dir(place.workspace()).unwrap();
            fs::write(place.workspace().join("MARKER"), "copysim-workspace 2\n").unwrap();
        }),
    ];
    for (expected, make) in cases {
        let place = Place::new();
        make(&place);
        let everything = || {
            let walk = walkdir::WalkDir::new(place.root.path()).sort_by_file_name().into_iter().map(Result::unwrap);
            walk.map(|entry| (entry.path().to_owned(), entry.metadata().unwrap().len(), entry.metadata().unwrap().ino())).collect::<Vec<_>>()
        };
        let before = everything();
        let sentence = place.refusal();
        assert!(sentence.contains(expected) && sentence.contains(NAME), "{sentence}");
        assert!(Workspace::open_existing(OS, &place.target).is_err());
        assert_eq!(everything(), before, "{sentence}");
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn field_j02_directories_that_are_none_are_refused_by_sentence() {
    let place = Place::new();
    assert_eq!(refusal(Path::new("")), "the directory's name is empty: is a variable in the command not set?");
    let file = place.target.join("letter.txt");
    assert_eq!(refusal(&file), format!("{} is a file: name a directory", file.display()));
    assert_eq!(refusal(Path::new("/dev/null")), "/dev/null is a device, pipe or socket: name a directory");
    symlink("/dev/zero", place.target.join("link")).unwrap();
    assert!(refusal(&place.target.join("link")).ends_with("link is a device, pipe or socket: name a directory"));
    let mut newline = place.target.clone().into_os_string();
    newline.push("\n");
    assert_eq!(refusal(Path::new(&newline)), format!("\"{}\\n\" does not exist: name a directory that does", place.target.display()));
}

#[test]
fn directories_inside_a_workspace_are_refused() {
    let place = Place::new();
    let run = place.open().new_run().unwrap();
    let deep = run.path.join("deep");
    fs::create_dir(&deep).unwrap();
    symlink(&deep, place.outside.join("link")).unwrap();
    let renamed = place.root.path().join("renamed");
    for directory in [place.workspace(), run.path.clone(), deep.clone(), place.outside.join("link")] {
        assert!(refusal(&directory).contains("lies in a workspace of copysim's"), "{}", directory.display());
    }
    fs::rename(place.workspace(), &renamed).unwrap();
    assert!(refusal(&renamed.join(RUNS)).contains("lies in a workspace"));
    assert_eq!(names(&renamed.join(RUNS)).len(), 1);
}

#[test]
fn field_j01_links_in_place_of_our_directories_lead_nowhere() {
    let place = Place::new();
    let workspace = place.open();
    symlink(&place.outside, place.workspace().join(RUNS).join(RUN)).unwrap();
    symlink(&place.outside, place.workspace().join(CORPORA).join("jpg-v1-s0-p100")).unwrap();
    let before = place.around();
    assert!(workspace.corpora().unwrap().is_empty());
    assert!(workspace.corpus("jpg-v1-s0-p100").is_err());
    assert!(!workspace.remove_corpus("jpg-v1-s0-p100").unwrap().is_complete());
    let run = RunDir { id: RUN.into(), path: PathBuf::new(), dir: OS.files.open_root(&place.outside).unwrap() };
    assert!(!workspace.remove(run).unwrap().is_complete());
    drop(workspace);
    assert_eq!(place.open().leftovers().runs, 0);
    let cleaned = place.open().clean().unwrap();
    assert_eq!(cleaned.foreign.len(), 2);
    // A link in place of the directory of all runs, swapped in while the workspace is open.
    let workspace = place.open();
    fs::remove_file(place.workspace().join(RUNS).join(RUN)).unwrap();
    fs::remove_dir(place.workspace().join(RUNS)).unwrap();
    fs::create_dir(place.outside.join(RUN)).unwrap();
    let before_swap = place.around();
    symlink(&place.outside, place.workspace().join(RUNS)).unwrap();
    let run = RunDir { id: RUN.into(), path: PathBuf::new(), dir: OS.files.open_root(&place.outside).unwrap() };
    assert_eq!(workspace.remove(run).unwrap_err().exit_code(), 2);
    assert_eq!(workspace.new_run().unwrap_err().exit_code(), 2);
    drop(workspace);
    assert!(place.refusal().contains("runs is not a directory"));
    assert_eq!(place.around(), before_swap);
    fs::remove_dir(place.outside.join(RUN)).unwrap();
    assert_eq!(place.around(), before);
}

#[test]
fn hostile_contents_of_a_run_are_removed_by_their_names_only() {
    let place = Place::new();
    let workspace = place.open();
    let run = workspace.new_run().unwrap();
    let at = |name: &str| run.path.join(name);
    symlink(&place.outside, at("link to a directory")).unwrap();
    symlink(place.outside.join("letter.txt"), at("link to a file")).unwrap();
    symlink("/nowhere/at/all", at("dangling")).unwrap();
    symlink("..", at("up")).unwrap();
    fs::hard_link(place.outside.join("letter.txt"), at("hard link")).unwrap();
    fifo(&at("fifo"));
    let _listener = UnixListener::bind(at("socket")).unwrap();
    for name in [b"\xff\xfe latin".as_slice(), b"new\nline", b"-rf", b" ", b"*", b"\\040"] {
        fs::write(run.path.join(OsString::from_vec(name.to_vec())), "x").unwrap();
        fs::create_dir(run.path.join(OsString::from_vec([name, b"d"].concat()))).unwrap();
    }
    for (name, mode) in [("locked", 0o000), ("write-protected", 0o555), ("search only", 0o111)] {
        fs::create_dir_all(at(name).join("inner")).unwrap();
        fs::write(at(name).join("inner/file"), "x").unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = place.around();
    let path = run.path.clone();
    let removal = workspace.remove(run).unwrap();
    assert_eq!(removal.left_count, 0, "{removal}");
    assert!(!path.exists());
    assert_eq!(place.around(), before);
}

#[test]
fn field_j01_foreign_files_are_left_alone_and_named_and_keep_the_workspace() {
    let place = Place::new();
    let workspace = place.open();
    let run = workspace.new_run().unwrap();
    fs::write(run.path.join("copy"), "x").unwrap();
    // Files, and directories whose names copysim does not make: only by those are they told from its own.
    let names = ["corpora/notes.txt", "corpora/poems", "runs/holiday", "runs/mine", "thesis.txt"];
    let foreign = names.map(|name| place.workspace().join(name));
    let held = ["corpora/notes.txt", "corpora/poems/first", "runs/holiday/photo", "runs/mine", "thesis.txt"].map(|name| place.workspace().join(name));
    for path in &held {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    assert_eq!(workspace.foreign().unwrap(), foreign);
    drop(workspace);
    // Neither the next start nor cleaning takes them.
    let workspace = place.open();
    assert_eq!((workspace.leftovers().runs, workspace.leftovers().removal.files), (1, 1));
    let cleaned = workspace.clean().unwrap();
    assert_eq!((&cleaned.foreign[..], cleaned.removal.files), (&foreign[..], 0));
    for path in &held {
        assert_eq!(fs::read(path).unwrap(), b"mine");
    }
    assert!(!run.path.exists());
    for path in &foreign {
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    assert!(place.open().clean().unwrap().foreign.is_empty());
    assert!(!place.workspace().exists());
}

#[test]
fn field_f08_a_tree_two_thousand_levels_deep_is_removed_in_few_descriptors() {
    let place = Place::in_memory();
    let workspace = place.open();
    let run = workspace.new_run().unwrap();
    let name = "d".repeat(200);
    let mut dir = OS.files.open_dir(&run.dir, Path::new(".")).unwrap();
    for _ in 0..2000 {
        OS.files.make_dir(&dir, Path::new(&name), 0o700).unwrap();
        OS.files.create(&dir, Path::new("file"), 0o600).unwrap();
        dir = OS.files.open_dir(&dir, Path::new(&name)).unwrap();
    }
    drop(dir);
    // Far fewer than levels, and with room for the tests that run at the same time.
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, rustix::process::Rlimit { current: Some(500), ..limits }).unwrap();
    let removal = workspace.remove(run).unwrap();
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).unwrap();
    assert_eq!((removal.files, removal.directories, removal.left_count), (2000, 2001, 0), "{removal}");
}

#[test]
fn field_g14_a_hundred_thousand_names_in_one_directory_are_removed() {
    let place = Place::in_memory();
    let workspace = place.open();
    let run = workspace.new_run().unwrap();
    for number in 0..100_000 {
        OS.files.create(&run.dir, Path::new(&format!("f{number}")), 0o600).unwrap();
    }
    for number in 0..10_000 {
        OS.files.make_dir(&run.dir, Path::new(&format!("d{number}")), 0o700).unwrap();
    }
    let start = OS.clock.now_ns();
    let removal = workspace.remove(run).unwrap();
    println!("{} in {}", removal, crate::units::duration(OS.clock.now_ns() - start));
    assert_eq!((removal.files, removal.directories, removal.left_count), (100_000, 10_001, 0), "{removal}");
}

#[test]
fn a_swapped_drive_is_noticed_before_the_next_phase() {
    let place = Place::new();
    let workspace = place.open();
    workspace.still_here().unwrap();
    fs::rename(&place.target, place.root.path().join("elsewhere")).unwrap();
    assert!(workspace.still_here().unwrap_err().to_string().contains("ENOENT"));
    fs::create_dir_all(place.workspace()).unwrap();
    let error = workspace.still_here().unwrap_err();
    assert!(error.to_string().contains("another directory is there now"), "{error}");
    assert_eq!(error.exit_code(), 1);
}

/// Whether this process may mount; says so when it may not.
fn may_mount() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: mounting needs root");
    }
    root
}

/// A mount of this test's own; unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], point: &Path) -> Option<Self> {
        fs::create_dir_all(point).unwrap();
        let mounted = Command::new("mount").args(arguments).arg(point).status().is_ok_and(|status| status.success());
        if !mounted {
            println!("skipped: mounting is not allowed here");
        }
        mounted.then(|| Self(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(&self.0).status().unwrap().success());
    }
}

#[test]
fn field_j01_other_mounts_in_a_run_are_not_entered() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let workspace = place.open();
    let run = workspace.new_run().unwrap();
    let (run_path, id) = (run.path.clone(), run.id.clone());
    let Some(memory) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &run_path.join("a/memory")) else { return };
    fs::write(memory.0.join("keep"), "mine").unwrap();
    // The same file system, so that device numbers tell nothing.
    let Some(bound) = Mounted::new(&["--bind", place.outside.to_str().unwrap()], &run_path.join("b/bound")) else { return };
    fs::write(run_path.join("b/ours"), "x").unwrap();
    let before = place.around();
    let removal = workspace.remove(run).unwrap();
    let mut left: Vec<&Path> = removal.left.iter().map(|left| left.path.as_path()).collect();
    left.sort();
    assert_eq!(left, [memory.0.as_path(), bound.0.as_path()], "{removal}");
    assert_eq!((removal.left_count, removal.files), (2, 1));
    assert_eq!((fs::read(memory.0.join("keep")).unwrap(), place.around()), (b"mine".to_vec(), before));
    drop((memory, bound));
    assert!(workspace.remove_in(RUNS, OsStr::new(&id)).unwrap().is_complete());
}

#[test]
fn field_c16_a_read_only_target_is_told_first_and_its_workspace_can_still_be_read() {
    if !may_mount() {
        return;
    }
    let place = Place::new();
    let Some(stick) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &place.root.path().join("medium")) else { return };
    let remount = |how: &str| assert!(Command::new("mount").args(["-o", how]).arg(&stick.0).status().unwrap().success());
    remount("remount,ro");
    assert!(refusal(&stick.0).starts_with("the target is read-only: cannot make "));
    remount("remount,rw");
    Workspace::open_or_create(OS, &stick.0).unwrap().create_corpus("jpg-v1-s0-p100").unwrap();
    remount("remount,ro");
    assert!(refusal(&stick.0).contains("read-only") && refusal(&stick.0).contains("EROFS"));
    let workspace = Workspace::open_existing(OS, &stick.0).unwrap().unwrap();
    assert_eq!(workspace.corpora().unwrap(), ["jpg-v1-s0-p100"]);
    workspace.still_here().unwrap();
    assert!(workspace.new_run().unwrap_err().to_string().starts_with("the target is read-only"));
}

#[test]
fn field_j06_the_second_to_open_a_workspace_is_refused() {
    let place = Place::new();
    let first = place.open();
    let sentence = place.refusal();
    assert!(sentence.starts_with(&format!("another copysim is using {}", place.workspace().display())), "{sentence}");
    let listed = fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.contains("FLOCK"));
    assert!(!listed || sentence.contains(&format!("(PID {})", std::process::id())), "{sentence}");
    assert!(Workspace::open_existing(OS, &place.target).is_err());
    drop(first);
    place.open();
}

#[test]
fn field_j06_of_many_that_open_at_once_exactly_one_holds_the_workspace_at_a_time() {
    let place = Place::new();
    let (holders, opened) = (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let Ok(workspace) = Workspace::open_or_create(OS, &place.target) else { continue };
                    assert_eq!(holders.fetch_add(1, order), 0);
                    opened.fetch_add(1, order);
                    // Long enough for whoever would come in as well.
                    OS.clock.sleep(Duration::from_micros(200));
                    holders.fetch_sub(1, order);
                    workspace.clean().unwrap();
                }
            });
        }
    });
    assert!(opened.into_inner() > 0);
    place.open();
}

const HOLD: &str = "COPYSIM_TEST_HOLD_WORKSPACE";

/// Not a test of its own: the process that the next test starts, which holds a workspace and a drive until it is killed.
#[test]
fn hold_a_workspace() {
    let Some(directory) = std::env::var_os(HOLD) else { return };
    let workspace = Workspace::open_or_create(OS, Path::new(&directory)).unwrap();
    let _lock = crate::drive::DriveLock::take(&Host::real(), [(2_000_000, std::os::unix::process::parent_id())]).unwrap();
    let run = workspace.new_run().unwrap();
    fs::write(run.path.join("copy"), vec![1; 100_000]).unwrap();
    println!("\nholding");
    loop {
        OS.clock.sleep(Duration::from_secs(1));
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn field_j04_a_killed_process_gives_its_locks_back_and_its_run_is_cleaned() {
    let place = Place::new();
    let before = place.around();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "drive::workspace::tests::hold_a_workspace", "--nocapture"]).env(HOLD, &place.target);
    let mut child = Killed(command.stdout(Stdio::piped()).spawn().unwrap());
    let output = BufReader::new(child.0.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap() == "holding"));

    assert!(place.refusal().starts_with("another copysim is using"));
    let drive = [(2_000_000, std::process::id())];
    let error = crate::drive::DriveLock::take(&Host::real(), drive).unwrap_err();
    assert_eq!(error.to_string(), format!("another copysim is measuring this drive (PID {}): wait until it has ended", child.0.id()));

    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let workspace = place.open();
    assert_eq!((workspace.leftovers().runs, workspace.leftovers().removal.files), (1, 1));
    crate::drive::DriveLock::take(&Host::real(), drive).unwrap();
    assert_eq!(place.around(), before);
}

/// File operations of the system, of which a test may replace the removal of files and the flush, or do something when a file is looked at.
struct Replaced<'a> {
    remove_file: &'a (dyn Fn(&Handle, &Path) -> io::Result<()> + Sync),
    sync: &'a (dyn Fn() -> io::Result<()> + Sync),
    at_stat: &'a (dyn Fn(&Stat) + Sync),
}

macro_rules! pass_on {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> io::Result<$answer> { OS.files.$name($($argument),*) })*
    };
}

impl crate::platform::Files for Replaced<'_> {
    fn remove_file(&self, dir: &Handle, path: &Path) -> io::Result<()> {
        (self.remove_file)(dir, path)
    }

    fn sync(&self, _file: &Handle) -> io::Result<()> {
        (self.sync)()
    }

    fn stat(&self, file: &Handle) -> io::Result<Stat> {
        let stat = OS.files.stat(file)?;
        (self.at_stat)(&stat);
        Ok(stat)
    }

    pass_on! {
        fn open_root(path: &Path) -> Handle;
        fn open_dir(dir: &Handle, path: &Path) -> Handle;
        fn open_dir_beneath(dir: &Handle, name: &Path) -> Handle;
        fn grant_owner(dir: &Handle, name: &Path) -> ();
        fn lock_file(dir: &Handle, name: &Path) -> (Handle, Locking);
        fn open(dir: &Handle, path: &Path) -> Handle;
        fn create(dir: &Handle, path: &Path, mode: u32) -> Handle;
        fn open_to_write_over(dir: &Handle, path: &Path) -> Handle;
        fn read(file: &Handle, buffer: &mut [u8]) -> usize;
        fn read_at(file: &Handle, buffer: &mut [u8], offset: u64) -> usize;
        fn write(file: &Handle, data: &[u8]) -> usize;
        fn copy_range(from: &Handle, to: &Handle, len: usize) -> usize;
        fn close(file: Handle) -> ();
        fn stat_at(dir: &Handle, path: &Path) -> Stat;
        fn set_mode(file: &Handle, mode: u32) -> ();
        fn set_mtime(file: &Handle, mtime: (i64, u32)) -> ();
        fn sync_filesystem(file: &Handle) -> ();
        fn make_dir(dir: &Handle, path: &Path, mode: u32) -> ();
        fn remove_dir(dir: &Handle, path: &Path) -> ();
        fn rename(dir: &Handle, from: &Path, to: &Path) -> ();
        fn list(dir: &Handle, each: &mut dyn FnMut(crate::platform::Entry) -> io::Result<()>) -> ();
        fn advise_sequential(file: &Handle) -> ();
        fn advise_random(file: &Handle) -> ();
        fn map(file: &Handle, len: u64) -> crate::platform::Mapping;
        fn fault(mapping: &crate::platform::Mapping, offset: u64, len: u64) -> ();
        fn advise_needed(file: &Handle, len: u64) -> ();
        fn start_writing(file: &Handle) -> ();
        fn evict(file: &Handle) -> ();
        fn resident_bytes(file: &Handle, len: u64) -> u64;
        fn extents(file: &Handle) -> crate::platform::Extents;
        fn each_extent(file: &Handle, each: &mut dyn FnMut(crate::platform::Extent)) -> ();
        fn trim(dir: &Handle) -> u64;
        fn space(file: &Handle) -> crate::platform::Space;
    }
}

/// What removing a run comes to when another process has a file open for so many removals, on a file system that keeps open files under other names.
fn removal_while_held_open(removals: u32) -> (Removal, u64) {
    let place = Place::new();
    let path = place.open().new_run().unwrap().path;
    fs::write(path.join("open"), "x").unwrap();
    fs::write(path.join("other"), "x").unwrap();
    let seen = std::sync::atomic::AtomicU32::new(0);
    let remove_file = |dir: &Handle, name: &Path| {
        let number = if name == "other" { u32::MAX } else { seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) };
        if number < removals { OS.files.rename(dir, name, Path::new(&format!(".fuse_hidden{number}"))) } else { OS.files.remove_file(dir, name) }
    };
    let files = Replaced { remove_file: &remove_file, sync: &|| Ok(()), at_stat: &|_| () };
    let clock = crate::platform::FakeClock::default();
    let base = OS.files.open_root(path.parent().unwrap()).unwrap();
    let removal = remove_tree(System { files: &files, clock: &clock, caches: OS.caches }, &base, path.parent().unwrap(), path.file_name().unwrap());
    assert_eq!(path.exists(), !removal.is_complete());
    (removal, crate::platform::Clock::now_ns(&clock))
}

#[test]
fn field_j08_files_held_open_are_waited_for_and_then_reported() {
    let (removal, waited) = removal_while_held_open(3);
    assert!(removal.is_complete(), "{removal}");
    assert!((100_000_000..=400_000_000).contains(&waited), "{waited} ns");
    let (removal, waited) = removal_while_held_open(u32::MAX - 1);
    assert_eq!((removal.left_count, waited), (1, 1_000_000_000), "{removal}");
    assert!(removal.to_string().contains(".fuse_hidden") && removal.to_string().contains("still has it open"), "{removal}");
}

#[test]
fn field_c16_a_medium_that_takes_a_file_but_not_its_content_is_read_only() {
    let place = Place::new();
    let remove_file = |dir: &Handle, name: &Path| OS.files.remove_file(dir, name);
    for (errno, code, expected) in [(libc::EROFS, 2, "the target is read-only"), (libc::EIO, 1, "cannot write to")] {
        drop(place.open());
        let files = Replaced { remove_file: &remove_file, sync: &|| Err(io::Error::from_raw_os_error(errno)), at_stat: &|_| () };
        let system = System { files: &files, ..OS };
        let Err(error) = Workspace::open_or_create(system, &place.target) else { panic!("not refused") };
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.exit_code(), code);
        assert!(!place.workspace().join(PROBE).exists());
    }
}

#[test]
fn what_cannot_be_removed_is_named_and_the_rest_goes() {
    let place = Place::new();
    let path = place.open().new_run().unwrap().path;
    for dir in 0..50 {
        fs::create_dir(path.join(format!("{dir}"))).unwrap();
        for file in ["bad", "good"] {
            fs::write(path.join(format!("{dir}/{file}")), "x").unwrap();
        }
    }
    let remove_file =
        |dir: &Handle, name: &Path| if name == "bad" { Err(io::Error::from_raw_os_error(libc::EIO)) } else { OS.files.remove_file(dir, name) };
    let files = Replaced { remove_file: &remove_file, sync: &|| Ok(()), at_stat: &|_| () };
    let base = OS.files.open_root(path.parent().unwrap()).unwrap();
    let removal = remove_tree(System { files: &files, ..OS }, &base, path.parent().unwrap(), path.file_name().unwrap());
    assert_eq!((removal.files, removal.directories, removal.left_count, removal.left.len()), (50, 0, 50, 50));
    assert!(removal.left.iter().all(|left| left.path.ends_with("bad") && left.path.exists()));
    assert!(removal.to_string().contains("50 could not be removed, the first: cannot remove "), "{removal}");
}

#[test]
fn field_d04_a_full_file_system_gets_its_room_back_from_the_files_that_go() {
    let place = Place::new();
    let path = place.open().new_run().unwrap().path;
    fs::create_dir(path.join("below")).unwrap();
    for file in ["one", "below/two"] {
        fs::write(path.join(file), "x").unwrap();
    }
    // A copier may have left other names of a user's files: they keep their content.
    let letter = place.target.join("letter");
    fs::write(&letter, "dear").unwrap();
    fs::hard_link(&letter, path.join("linked")).unwrap();
    for errno in [libc::ENOSPC, libc::EDQUOT] {
        let remove_file = |dir: &Handle, name: &Path| {
            let is_empty = OS.files.stat_at(dir, name)?.len == 0;
            if is_empty { OS.files.remove_file(dir, name) } else { Err(io::Error::from_raw_os_error(errno)) }
        };
        let files = Replaced { remove_file: &remove_file, sync: &|| Ok(()), at_stat: &|_| () };
        let base = OS.files.open_root(path.parent().unwrap()).unwrap();
        let removal = remove_tree(System { files: &files, ..OS }, &base, path.parent().unwrap(), path.file_name().unwrap());
        assert_eq!(removal.left.iter().map(|left| left.path.clone()).collect::<Vec<_>>(), [path.join("linked")], "{removal}");
        assert!(removal.to_string().contains("linked"), "{removal}");
        assert!(!path.join("below").exists() && !path.join("one").exists());
    }
    assert_eq!(fs::read(&letter).unwrap(), b"dear");
}

#[test]
fn a_lock_on_a_marker_that_was_removed_meanwhile_is_none() {
    let place = Place::new();
    drop(place.open());
    let marker = place.workspace().join(marker::NAME);
    let swapped = std::sync::Once::new();
    // Another process cleans the workspace and makes it again between our opening and our locking.
    let at_stat = |stat: &Stat| {
        if stat.kind == Kind::File {
            swapped.call_once(|| {
                fs::remove_file(&marker).unwrap();
                fs::write(&marker, marker::content(2)).unwrap();
            });
        }
    };
    let remove_file = |dir: &Handle, name: &Path| OS.files.remove_file(dir, name);
    let files = Replaced { remove_file: &remove_file, sync: &|| Ok(()), at_stat: &at_stat };
    let _workspace = Workspace::open_or_create(System { files: &files, ..OS }, &place.target).unwrap();
    assert!(swapped.is_completed());
    assert!(place.refusal().starts_with("another copysim is using"));
}
