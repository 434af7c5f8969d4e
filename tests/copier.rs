//! The copier by itself, on files that no corpus has: odd times, odd permissions, holes, things that are no files, and files that change while they are copied.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests make their own fixtures and look at them from outside"
)]

#[path = "fixtures/exfat.rs"]
mod exfat;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use copysim::catalogue::Environment;
use copysim::corpus::catalogue::corpus;
use copysim::corpus::identity::make_manifest;
use copysim::engine::{Engine, Trees};
use copysim::measure::calls::Calls;
use copysim::platform::{Clock, OS};
use copysim::progress::{Cancel, Counter};
use copysim::workload::copy::{Copied, Order, copy_tree};
use copysim::{Error, Result};

const ENGINES: [&str; 2] = ["buffered", "copy-file-range"];

/// Two directories.
struct Pair {
    root: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        ["source", "target"].iter().for_each(|name| fs::create_dir(root.path().join(name)).unwrap());
        Self { root }
    }

    /// With a target on another file system.
    fn onto(target: &Path) -> Self {
        let pair = Self::new();
        fs::remove_dir(pair.root.path().join("target")).unwrap();
        symlink(target, pair.root.path().join("target")).unwrap();
        pair
    }

    fn source(&self, name: &str) -> PathBuf {
        self.root.path().join("source").join(name)
    }

    fn target(&self, name: &str) -> PathBuf {
        self.root.path().join("target").join(name)
    }

    /// Calls `work` with both directories opened.
    fn with_trees<T>(&self, work: impl FnOnce(Trees<'_>) -> T) -> T {
        let [source_path, target_path] = [self.source(""), self.target("")];
        let [source, target] = [&source_path, &target_path].map(|path| OS.files.open_root(path).unwrap());
        let (counter, cancel) = <(Counter, Cancel)>::default();
        work(Trees {
            files: OS.files,
            source: &source,
            source_path: &source_path,
            target: &target,
            target_path: &target_path,
            umask: copysim::platform::umask(),
            fresh: None,
            counter: &counter,
            cancel: &cancel,
            log: None,
        })
    }

    /// Copies one file; the bytes that were moved, and the calls.
    fn copies(&self, engine: &str, name: &str) -> (Result<u64>, Calls<'static>) {
        let Engine::Files(_, engine) = Engine::named(engine).unwrap() else { panic!("another engine") };
        let mut calls = Calls::new(OS.clock);
        let moved = self.with_trees(|trees| engine.copy(trees, Path::new(name), &mut calls, &mut Vec::new()));
        (moved, calls)
    }

    /// Copies all that lies there, as it is listed.
    fn copies_all(&self, threads: usize) -> Copied<'static> {
        let any = corpus("small-files", 0, "0.01%".parse().unwrap(), &Environment::default()).unwrap();
        let manifest = make_manifest(OS, &any, 1, &Counter::default(), &Cancel::default()).unwrap();
        let engine = Engine::named("buffered").unwrap();
        self.with_trees(|trees| copy_tree(trees, &manifest, &engine, threads, Order::Readdir, OS.clock))
    }
}

fn mtime(path: &Path) -> (i64, i64) {
    let found = fs::metadata(path).unwrap();
    (found.mtime(), found.mtime_nsec())
}

fn sentence(outcome: Result<u64>) -> String {
    let Err(error @ Error::Io(_)) = outcome else { panic!("{outcome:?}") };
    error.to_string()
}

#[test]
fn field_e03_times_before_1970_are_carried_over_as_they_are() {
    for engine in ENGINES {
        let pair = Pair::new();
        for (name, (seconds, nanoseconds)) in [("1965", (-157_766_400, 0)), ("minus a half", (-1, 500_000_000)), ("zero", (0, 0))] {
            fs::write(pair.source(name), name).unwrap();
            filetime::set_file_mtime(pair.source(name), filetime::FileTime::from_unix_time(seconds, nanoseconds)).unwrap();
            pair.copies(engine, name).0.unwrap();
            assert_eq!(mtime(&pair.target(name)), (seconds, i64::from(nanoseconds)), "{engine} {name}");
        }
    }
}

#[test]
fn field_e06_times_far_in_the_future_are_carried_over_as_far_as_they_are_kept() {
    for seconds in [17_179_869_184, 1_831_276_800_000, i64::MAX / 2] {
        let pair = Pair::new();
        fs::write(pair.source("late"), "late").unwrap();
        // Some file systems keep the latest time that they know.
        filetime::set_file_mtime(pair.source("late"), filetime::FileTime::from_unix_time(seconds, 0)).unwrap();
        let (moved, calls) = pair.copies("buffered", "late");
        assert_eq!((moved.unwrap(), calls.metadata_lost), (4, 0), "{seconds}");
        assert_eq!(mtime(&pair.target("late")), mtime(&pair.source("late")), "{seconds}");
    }
}

#[test]
fn field_f06_a_name_that_is_taken_is_told_and_nothing_is_overwritten() {
    for engine in ENGINES {
        let pair = Pair::new();
        fs::write(pair.source("A.JPG"), "new").unwrap();
        // As a file system finds it that knows a.jpg and takes it for the same name.
        fs::write(pair.target("A.JPG"), "old").unwrap();
        let told = sentence(pair.copies(engine, "A.JPG").0);
        assert!(told.contains("(EEXIST); something of that name is there already, or of one that differs only in upper and lower case"), "{told}");
        assert_eq!(fs::read(pair.target("A.JPG")).unwrap(), b"old");
    }
}

#[test]
fn field_g05_a_file_is_never_copied_onto_itself() {
    type Link = fn(&Path, &Path) -> std::io::Result<()>;
    let links: [Link; 2] = [|from, to| fs::hard_link(from, to), |from, to| symlink(from, to)];
    for engine in ENGINES {
        for link in links {
            let pair = Pair::new();
            fs::write(pair.source("f"), "precious").unwrap();
            link(&pair.source("f"), &pair.target("f")).unwrap();
            assert!(sentence(pair.copies(engine, "f").0).contains("EEXIST"));
            assert_eq!(fs::read(pair.source("f")).unwrap(), b"precious");
        }
        // The directory itself.
        let pair = Pair::new();
        fs::write(pair.source("f"), "precious").unwrap();
        fs::remove_dir(pair.target("")).unwrap();
        symlink(pair.source(""), pair.root.path().join("target")).unwrap();
        assert!(sentence(pair.copies(engine, "f").0).contains("EEXIST"));
        assert_eq!(fs::read(pair.source("f")).unwrap(), b"precious");
    }
}

#[test]
fn field_g07_only_files_are_copied_and_nothing_else_is_opened() {
    for threads in [1, 3] {
        let pair = Pair::new();
        fs::create_dir(pair.source("d")).unwrap();
        fs::write(pair.source("d/file"), "x").unwrap();
        let fifo = pair.source("d/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(pair.source("socket")).unwrap();
        symlink("/dev/zero", pair.source("zero")).unwrap();
        symlink("..", pair.source("d/up")).unwrap();
        let watch = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::NONBLOCK).unwrap();
        rustix::fs::inotify::add_watch(&watch, &fifo, rustix::fs::inotify::WatchFlags::OPEN).unwrap();
        let copied = pair.copies_all(threads);
        assert!(copied.failure.is_none(), "{:?}", copied.failure);
        assert_eq!((copied.files, copied.bytes), (1, 1));
        let there = walkdir::WalkDir::new(pair.target("")).min_depth(1).into_iter().map(|entry| entry.unwrap().path().to_path_buf());
        assert_eq!(there.collect::<Vec<_>>(), [pair.target("d"), pair.target("d/file")]);
        assert_eq!(rustix::io::read(&watch, &mut [0; 64]).unwrap_err(), rustix::io::Errno::AGAIN, "the FIFO was opened");
    }
    // By its name, as the manifest would have it.
    for engine in ENGINES {
        let pair = Pair::new();
        assert!(std::process::Command::new("mkfifo").arg(pair.source("f")).status().unwrap().success());
        let told = sentence(pair.copies(engine, "f").0);
        assert!(told.ends_with("(source): it is no regular file: something else was put in its place"), "{told}");
        assert!(!pair.target("f").exists());
    }
}

#[test]
fn field_g10_holes_are_written_out_and_count_as_what_was_written() {
    let pair = Pair::new();
    let file = fs::File::create(pair.source("sparse")).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(b"end", (8 << 20) - 3).unwrap();
    if fs::metadata(pair.source("sparse")).unwrap().blocks() > 8 << 10 {
        return println!("skipped: this file system keeps no holes");
    }
    let (moved, calls) = pair.copies("buffered", "sparse");
    let copy = fs::metadata(pair.target("sparse")).unwrap();
    assert_eq!((moved.unwrap(), calls.written_bytes, copy.len()), (8 << 20, 8 << 20, 8 << 20));
    assert!(copy.blocks() * 512 >= 8 << 20, "{} of 8 MiB were written", copy.blocks() * 512);
    assert_eq!(fs::read(pair.target("sparse")).unwrap(), fs::read(pair.source("sparse")).unwrap());
}

/// A clock that does something at one of its readings: the copier looks at it before and after each of its calls.
struct Meddling<'a> {
    readings: AtomicU64,
    at: u64,
    act: &'a (dyn Fn() + Sync),
}

impl Clock for Meddling<'_> {
    fn now_ns(&self) -> u64 {
        if self.readings.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            (self.act)();
        }
        OS.clock.now_ns()
    }

    fn boot_ns(&self) -> u64 {
        OS.clock.boot_ns()
    }

    fn wall(&self) -> jiff::Timestamp {
        OS.clock.wall()
    }

    fn sleep(&self, duration: std::time::Duration) {
        OS.clock.sleep(duration);
    }

    fn work(&self, duration: std::time::Duration) {
        OS.clock.work(duration);
    }
}

/// Opening, looking, advising, asking, creating: two readings each. Then the first byte is read.
const BEFORE_THE_FIRST_READ: u64 = 11;

#[test]
fn field_g12_a_file_that_grows_is_copied_as_long_as_it_was_and_one_that_is_cut_is_no_copy() {
    const LEN: u64 = 3_000_000;
    for engine in ENGINES {
        for (len, is_cut) in [(LEN + 5_000_000, false), (LEN + 1, false), (LEN - 1, true), (1_500_000, true), (0, true)] {
            let pair = Pair::new();
            fs::write(pair.source("f"), vec![7; LEN as usize]).unwrap();
            let file = fs::File::options().write(true).open(pair.source("f")).unwrap();
            let act = || file.set_len(len).unwrap();
            let clock = Meddling { readings: AtomicU64::new(0), at: BEFORE_THE_FIRST_READ, act: &act };
            let Engine::Files(_, copier) = Engine::named(engine).unwrap() else { panic!("another engine") };
            let mut calls = Calls::new(&clock);
            let outcome = pair.with_trees(|trees| copier.copy(trees, Path::new("f"), &mut calls, &mut Vec::new()));
            assert_eq!(file.metadata().unwrap().len(), len, "nothing was done to it");
            if is_cut {
                let told = sentence(outcome);
                assert!(told.ends_with(&format!("(source): it ended after {len} of {LEN} bytes: was it changed meanwhile?")), "{engine}: {told}");
            } else {
                assert_eq!((outcome.unwrap(), calls.written_bytes), (LEN, LEN), "{engine} {len}");
                assert!(fs::read(pair.target("f")).unwrap() == vec![7; LEN as usize]);
            }
        }
    }
}

#[test]
fn field_g16_permissions_come_last_and_no_file_needs_them_before() {
    for engine in ENGINES {
        for mode in [0o444, 0o400, 0o000, 0o555] {
            let pair = Pair::new();
            fs::write(pair.source("f"), "read only").unwrap();
            filetime::set_file_mtime(pair.source("f"), filetime::FileTime::from_unix_time(1_000_000_000, 0)).unwrap();
            fs::set_permissions(pair.source("f"), fs::Permissions::from_mode(mode)).unwrap();
            if mode & 0o400 == 0 && !rustix::process::geteuid().is_root() {
                continue;
            }
            let (moved, calls) = pair.copies(engine, "f");
            assert_eq!((moved.unwrap(), calls.metadata_lost), (9, 0));
            let copy = fs::metadata(pair.target("f")).unwrap();
            assert_eq!((copy.mode() & 0o7777, copy.mtime()), (mode, 1_000_000_000), "{mode:o}");
        }
    }
}

#[test]
fn field_e01_whole_seconds_are_the_time_of_a_file_on_exfat() {
    let Some(exfat) = exfat::Exfat::start() else { return };
    let pair = Pair::onto(&exfat.path());
    fs::write(pair.source("f"), "x").unwrap();
    filetime::set_file_mtime(pair.source("f"), filetime::FileTime::from_unix_time(1_700_000_001, 999_999_999)).unwrap();
    let (moved, calls) = pair.copies("buffered", "f");
    assert_eq!((moved.unwrap(), calls.metadata_lost), (1, 0));
    assert!(mtime(&pair.target("f")).0.abs_diff(1_700_000_001) <= 2, "{:?}", mtime(&pair.target("f")));
}

#[test]
fn field_f01_a_name_that_a_file_system_can_not_keep_is_named_with_its_bytes() {
    let Some(exfat) = exfat::Exfat::start() else { return };
    let pair = Pair::onto(&exfat.path());
    let name = OsStr::from_bytes(b"a\xff\xfe.bin");
    fs::write(pair.root.path().join("source").join(name), "x").unwrap();
    let failure = pair.copies_all(1).failure.unwrap().to_string();
    assert!(
        failure.contains("/target/a\\xff\\xfe.bin (target): ") && failure.contains("(EILSEQ); the file system does not accept this name"),
        "{failure}"
    );
}

#[test]
fn field_f04_names_that_a_file_system_refuses_are_told_and_no_copy_is_called_one() {
    let Some(exfat) = exfat::Exfat::start() else { return };
    let pair = Pair::onto(&exfat.path());
    for (number, name) in ["a:b", "a?", "a*", "a|b", "<a>", "tab\there"].iter().enumerate() {
        fs::write(pair.source(name), "x").unwrap();
        let outcome = pair.copies("buffered", name).0;
        // What this implementation takes it keeps as it is.
        match outcome {
            Ok(1) => assert_eq!(fs::read(pair.target(name)).unwrap(), b"x", "{number}"),
            // Which errno that is each file system decides for itself.
            refused => {
                let told = sentence(refused);
                assert!(told.starts_with("cannot create ") && told.contains("(target): ") && !pair.target(name).exists(), "{number}: {told}");
            }
        }
    }
}

#[test]
fn field_f06_names_that_differ_only_in_case_do_not_become_one_file() {
    let Some(exfat) = exfat::Exfat::start() else { return };
    for threads in [1, 3] {
        let pair = Pair::onto(&exfat.path());
        let own = |name: &str| format!("{threads} {name}");
        for name in ["img.jpg", "IMG.JPG"] {
            fs::write(pair.source(&own(name)), name).unwrap();
        }
        let failure = pair.copies_all(threads).failure.unwrap().to_string();
        assert!(failure.contains("(EEXIST); ") && failure.to_lowercase().contains("img.jpg"), "{failure}");
        let there = fs::read_to_string(pair.target(&own("img.jpg"))).unwrap();
        assert!(["img.jpg", "IMG.JPG", ""].contains(&there.as_str()), "{there}");
    }
}
