//! What copysim asks of the system, seen by strace, and what it does when the system answers otherwise than it should: answers that no drive gives, put in by strace.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::lab::mount::{FileSystem, LabDrive};
use crate::lab::system::{run, tool};
use crate::needs;
use crate::program::{Ended, Order};

const COPYSIM: &str = env!("CARGO_BIN_EXE_copysim");

/// A measurement of six photos in a directory.
fn little(directory: &Path) -> Order {
    Order::new("jpg-same-drive", directory).settling("0s").with("--scale 0.07% --runs 1")
}

/// A drive that nobody else measures meanwhile.
fn place() -> LabDrive {
    LabDrive::builder().file_system(FileSystem::Ext4).start().unwrap()
}

/// The calls of a measurement and of a check of its corpus, in order, with the paths of their descriptors.
fn calls() -> &'static [String] {
    static CALLS: OnceLock<Vec<String>> = OnceLock::new();
    CALLS.get_or_init(|| {
        let (place, results) = (place(), tempfile::tempdir().unwrap());
        let log = results.path().join("calls");
        let wanted = "trace=openat,write,copy_file_range,syncfs,fsync,fadvise64,fallocate,lseek,mmap";
        little(place.path()).traced(&["-y", "-s", "16", "-e", wanted], &log).done();
        let mut calls = std::fs::read_to_string(&log).unwrap();
        run(
            "strace",
            ["-f", "-y", "-s", "16", "-e", wanted, "-o", log.to_str().unwrap(), COPYSIM, "corpus", "verify", place.path().to_str().unwrap()],
        )
        .unwrap();
        calls.push_str(&std::fs::read_to_string(&log).unwrap());
        let calls: Vec<String> = calls.lines().map(str::to_owned).collect();
        let of_corpus = |line: &&String| line.contains("/files/DCIM/") && line.contains("fadvise64(");
        assert!(calls.iter().filter(of_corpus).count() > 6, "{} calls", calls.len());
        calls
    })
}

/// Whether a line is a call of this name.
fn is(line: &str, call: &str) -> bool {
    line.split_once(' ').is_some_and(|(_, rest)| rest.trim_start().starts_with(&format!("{call}(")))
}

/// The path of the first descriptor in a line.
fn path_in(line: &str) -> Option<&str> {
    Some(line.split_once('<')?.1.split_once('>')?.0)
}

#[test]
fn field_a04_the_caches_are_dropped_through_a_file_opened_for_writing_only() {
    needs!("strace", "mkfs.ext4");
    let opened: Vec<&String> = calls().iter().filter(|line| is(line, "openat") && line.contains("drop_caches")).collect();
    assert!(!opened.is_empty() && opened.iter().all(|line| line.contains("O_WRONLY") && !line.contains("EACCES")), "{opened:?}");
}

#[test]
fn field_a06_names_and_attributes_are_dropped_with_the_pages_after_a_flush() {
    needs!("strace", "mkfs.ext4");
    let written = calls().iter().position(|line| is(line, "write") && line.contains("drop_caches")).expect("caches are dropped");
    assert!(calls().iter().filter(|line| is(line, "write") && line.contains("drop_caches")).all(|line| line.contains("\"3")), "{}", calls()[written]);
    let flushed = calls()[..written].iter().rposition(|line| is(line, "syncfs")).expect("a flush comes before");
    // Nothing is written to the drive between them.
    let between = calls()[flushed..written].iter().find(|line| is(line, "write") && line.contains("copysim-workspace"));
    assert_eq!(between, None);
}

#[test]
fn field_a07_what_is_evicted_was_flushed_before_from_end_to_end() {
    needs!("strace", "mkfs.ext4");
    let mut evicted = 0;
    for (at, line) in calls().iter().enumerate().filter(|(_, line)| is(line, "fadvise64") && line.contains("POSIX_FADV_DONTNEED")) {
        let path = path_in(line).unwrap();
        assert!(line.contains(">, 0, 0, POSIX_FADV_DONTNEED"), "{line}");
        let before = &calls()[..at];
        let written = before.iter().rposition(|line| is(line, "write") && path_in(line) == Some(path));
        let flushed = before.iter().rposition(|line| is(line, "syncfs") || is(line, "fsync") && path_in(line) == Some(path));
        assert!(flushed > written, "{line}: written at {written:?}, flushed at {flushed:?}");
        evicted += 1;
    }
    assert!(evicted >= 12, "{evicted}");
}

#[test]
fn field_c07_a_copy_is_compared_after_its_flush_and_out_of_the_cache() {
    needs!("strace", "mkfs.ext4");
    // Only what the comparison reads is evicted as root, for whom all caches are dropped before the window.
    let in_runs = |line: &&String| line.contains("/runs/") && is(line, "fadvise64") && line.contains("DONTNEED");
    let first = calls().iter().position(|line| in_runs(&line)).expect("the copy is evicted");
    let last_write = calls().iter().rposition(|line| is(line, "write") && line.contains("/runs/") && line.contains("/DCIM/")).unwrap();
    let flushes = calls()[last_write..first].iter().filter(|line| is(line, "syncfs")).count();
    // One ends the window, another begins the comparison.
    assert!(flushes >= 2, "{flushes}");
}

#[test]
fn field_c08_no_file_is_asked_for_its_holes() {
    needs!("strace", "mkfs.ext4");
    let asked = calls().iter().find(|line| line.contains("SEEK_HOLE") || line.contains("SEEK_DATA"));
    assert_eq!(asked, None);
}

#[test]
fn field_c09_no_file_of_the_drive_is_mapped() {
    needs!("strace", "mkfs.ext4");
    let mapped = calls().iter().find(|line| is(line, "mmap") && line.contains("copysim-workspace"));
    assert_eq!(mapped, None);
}

#[test]
fn field_d09_nothing_is_preallocated() {
    needs!("strace", "mkfs.ext4");
    let asked = calls().iter().find(|line| is(line, "fallocate"));
    assert_eq!(asked, None);
}

/// The path that a photo of a corpus is going to have.
fn photo(directory: &Path) -> PathBuf {
    directory.join("copysim-workspace/corpora/jpg-v1-s0-p0.07/files/DCIM/100MEDIA/IMG_0003.JPG")
}

/// What becomes of making a corpus when a call on one of its files is answered so: the exit code and what is said.
fn generate_with(place: &LabDrive, injected: &str) -> (Option<i32>, String) {
    let results = tempfile::tempdir().unwrap();
    let photo = photo(place.path());
    let log = results.path().join("calls");
    let output = std::process::Command::new(tool("strace").unwrap())
        .args(["-f", "-o", log.to_str().unwrap(), "-P", photo.to_str().unwrap(), "-e", &format!("inject={injected}")])
        .args([COPYSIM, "corpus", "generate", "jpg", place.path().to_str().unwrap(), "--scale", "0.07%"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace(photo.to_str().unwrap(), "PHOTO");
    println!("{injected}: {said}");
    assert!(std::fs::read_to_string(&log).unwrap().contains("INJECTED"), "{injected} struck nothing");
    if output.status.code() != Some(0) {
        // What was begun is gone, and nothing was called done.
        assert!(!place.path().join("copysim-workspace").exists(), "{injected}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
    (output.status.code(), said)
}

#[test]
fn field_b01_an_error_of_close_fails_the_file() {
    needs!("strace", "mkfs.ext4");
    let place = place();
    for errno in ["ENOSPC", "EDQUOT", "EIO"] {
        let (code, said) = generate_with(&place, &format!("close:error={errno}:when=1"));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("cannot close PHOTO (source): ") && said.contains(&format!("({errno})")), "{said}");
    }
    // An interrupted close has closed.
    assert_eq!(generate_with(&place, "close:error=EINTR:when=1").0, Some(0));
}

#[test]
fn field_b04_an_error_of_write_is_told_with_path_side_place_and_errno() {
    needs!("strace", "mkfs.ext4");
    let place = place();
    for errno in ["ENOSPC", "EIO"] {
        let (code, said) = generate_with(&place, &format!("write:error={errno}:when=1"));
        assert_eq!(code, Some(1), "{said}");
        let place = said.split_once("cannot write to PHOTO (source) at byte ").unwrap_or_else(|| panic!("{said}")).1;
        let (byte, rest) = place.split_once(": ").unwrap();
        assert!(byte.parse::<u64>().is_ok() && rest.contains(&format!("({errno})")), "{said}");
    }
}

#[test]
fn field_b09_any_errno_is_a_sentence() {
    needs!("strace", "mkfs.ext4");
    let place = place();
    // What a stick answered at its end (EREMOTEIO), what a driver should not (ENOTTY), what has no name (524), and one from elsewhere.
    for (errno, words) in [("EREMOTEIO", "(EREMOTEIO)"), ("ENOTTY", "os error 25"), ("524", "os error 524"), ("EDOM", "os error 33")] {
        for call in ["write", "close"] {
            let (code, said) = generate_with(&place, &format!("{call}:error={errno}:when=1"));
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("PHOTO (source)") && said.contains(words) && !said.contains("panicked"), "{said}");
        }
    }
}

/// A measurement in which calls are answered otherwise.
fn measured_with(place: &LabDrive, engine: &str, injected: &[&str]) -> Ended {
    let results = tempfile::tempdir().unwrap();
    let log = results.path().join("calls");
    let injected: Vec<String> = injected.iter().map(|what| format!("inject={what}")).collect();
    let mut arguments = Vec::new();
    for what in &injected {
        arguments.extend(["-e", what]);
    }
    let ended = little(place.path()).with("--engine").with(engine).traced(&arguments, &log).done();
    let struck = std::fs::read_to_string(&log).unwrap().matches("(INJECTED)").count();
    println!("{injected:?}: {struck} calls were struck");
    assert!(struck > 0);
    ended.phase(1).is_verified();
    ended
}

#[test]
fn field_b07_a_system_that_does_not_copy_is_not_waited_for() {
    needs!("strace", "mkfs.ext4");
    let place = place();
    for answer in ["error=EOPNOTSUPP", "error=EXDEV", "error=EINVAL", "error=ENOSYS", "retval=0"] {
        let ended = measured_with(&place, "copy-file-range", &[&format!("copy_file_range:{answer}")]);
        let mechanism = &ended.phase(1)["engine"]["mechanism"];
        assert_eq!(mechanism, "read-write (copy_file_range is not supported here)", "{answer}");
    }
}

#[test]
fn field_b08_a_storm_of_interrupted_calls_changes_nothing() {
    needs!("strace", "mkfs.ext4");
    let place = place();
    // Not the first of them: the system's own loader gives up.
    let storm = ["openat", "read", "pread64", "write", "fsync", "syncfs", "mkdirat", "unlinkat", "renameat"].map(|call| {
        let from = if matches!(call, "openat" | "read" | "pread64") { 60 } else { 2 };
        format!("{call}:error=EINTR:when={from}+3")
    });
    let storm: Vec<&str> = storm.iter().map(String::as_str).collect();
    for engine in ["buffered", "copy-file-range"] {
        let ended = measured_with(&place, engine, &[&storm[..], &["copy_file_range:error=EINTR:when=1+2"]].concat());
        assert_eq!(ended.phase(1)["work"]["files_failed"], 0);
    }
}
