//! The programs of the system that set a lab up: found, run, and run again where something is still in use.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where a program is: on PATH, or where programs of the administrator are.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Why a test that needs lab drives and these programs can't run here, if it can't. Where `COPYSIM_LAB=required` is set, as in CI, that is a failure.
///
/// # Panics
/// When the lab is required and can't run.
pub fn missing(tools: &[&str]) -> Option<String> {
    let missing = look_for(tools);
    let required = std::env::var_os("COPYSIM_LAB").is_some_and(|wish| wish == "required");
    assert!(!required || missing.is_none(), "the lab is required here, and {}", missing.unwrap_or_default());
    missing
}

fn look_for(tools: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    if let Some(device) = ["/dev/fuse", "/dev/loop-control"].iter().find(|device| !Path::new(device).exists()) {
        return Some(format!("needs {device}"));
    }
    ["losetup", "mount", "umount"].iter().chain(tools).find(|name| tool(name).is_none()).map(|name| format!("needs {name}"))
}

/// Runs a program and gives what it printed.
///
/// # Errors
/// It is missing, or it failed: then with what it said.
pub fn run<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> io::Result<String> {
    let program = tool(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name} is not installed")))?;
    let arguments: Vec<OsString> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
    let output = Command::new(program).args(&arguments).env("LC_ALL", "C").output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(format!("{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Tries for up to 15 s: another program of this machine may look at what is to go.
///
/// # Errors
/// The last error.
pub fn persist<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..150 {
        if let Ok(value) = attempt() {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    attempt()
}

/// Says that something went wrong where nobody can be told by a return value.
pub fn complain(what: &str, result: io::Result<()>) {
    if let Err(error) = result {
        // Nothing is left to do when even this fails.
        let _ = writeln!(io::stderr(), "lab: {what}: {error}");
    }
}

/// A line of the mount table.
pub struct Mounted {
    pub place: PathBuf,
    /// `/dev/loop…`, or a name.
    pub source: PathBuf,
    /// The second half of the device number, which is also the number of a FUSE connection.
    pub minor: String,
}

/// The mount table, newest first.
///
/// # Errors
/// It can't be read.
pub fn mounts() -> io::Result<Vec<Mounted>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let entry = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let minor = before.next()?.split_once(':')?.1.to_owned();
        // The kernel writes a space in a path as \040.
        let place = PathBuf::from(before.nth(1)?.replace("\\040", " "));
        Some(Mounted { place, source: PathBuf::from(after.split(' ').nth(1)?), minor })
    };
    Ok(table.lines().rev().filter_map(entry).collect())
}

/// Loop devices whose file lies below a directory.
///
/// # Errors
/// sysfs can't be read.
pub fn loops_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?;
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if Path::new(file.trim_end()).starts_with(directory) {
            found.push(Path::new("/dev").join(entry.file_name()));
        }
    }
    Ok(found)
}
