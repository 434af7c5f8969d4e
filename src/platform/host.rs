//! Files of the host that are not measured: facts under /proc and /sys (below a root that tests replace), settings, results, locks.

use std::io;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::programs::answer_of;
use super::{Files, OsFiles};

/// The root below which facts about the host are read: `/` for the real one, a fixture tree in tests.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// Facts below another root.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The real host.
    #[must_use]
    pub fn real() -> Self {
        Self::at("/")
    }

    /// An absolute path of the host as it is reached below the root.
    #[must_use]
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let path = absolute.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The trimmed text of a file, `None` when it is missing, unreadable or not text: a fact that is not there is unknown.
    #[must_use]
    pub fn fact(&self, absolute: impl AsRef<Path>) -> Option<String> {
        read_text(&self.path(absolute)).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A number in a file, `None` when it is missing or not one.
    #[must_use]
    pub fn number(&self, absolute: impl AsRef<Path>) -> Option<u64> {
        self.fact(absolute)?.parse().ok()
    }

    /// The bytes of a file, for facts that need not be text (names of mounts and files); `None` when it is missing or unreadable.
    #[must_use]
    pub fn bytes(&self, absolute: impl AsRef<Path>) -> Option<Vec<u8>> {
        read_optional(&self.path(absolute)).ok().flatten()
    }

    /// Opens a fact that will be read again and again.
    ///
    /// # Errors
    /// What the system answered.
    #[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
    pub fn open(&self, absolute: impl AsRef<Path>) -> io::Result<Fact> {
        std::fs::File::open(self.path(absolute)).map(Fact)
    }

    /// Where a symbolic link leads, resolved, as an absolute path of the host.
    #[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
    #[must_use]
    pub fn resolve(&self, absolute: impl AsRef<Path>) -> Option<PathBuf> {
        let resolved = std::fs::canonicalize(self.path(absolute)).ok()?;
        let root = std::fs::canonicalize(&self.root).ok()?;
        Some(Path::new("/").join(resolved.strip_prefix(root).ok()?))
    }

    /// The last part of what a symbolic link says, whether or not there is anything: in sysfs the name of a driver, of a subsystem.
    #[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
    #[must_use]
    pub fn link_name(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.path(absolute)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Whether this is the machine itself and no tree of files that stands for another.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// What a program says on standard output, whatever its exit code. Of another root no program is started: its answer is the file
    /// `/answers/PROGRAM/LAST-ARGUMENT` there, with `-` for each `/`.
    ///
    /// # Errors
    /// `NotFound` when the program is not there, `TimedOut` when it took longer than the limit and was ended, else what the system answered.
    pub fn ask(&self, program: &str, arguments: &[&str], limit: Duration) -> io::Result<Vec<u8>> {
        if self.is_real() {
            return answer_of(program, arguments, limit);
        }
        let name = arguments.last().map(|argument| argument.replace('/', "-")).unwrap_or_default();
        self.bytes(Path::new("/answers").join(program).join(name)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The names in a directory, sorted; none when it is missing.
    #[must_use]
    pub fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let mut names = Vec::new();
        if let Ok(dir) = OsFiles.open_root(&self.path(absolute)) {
            // A list that breaks off is a shorter list of facts.
            let _ = OsFiles.list(&dir, &mut |entry| {
                names.extend(entry.name.into_string());
                Ok(())
            });
        }
        names.sort();
        names
    }
}

/// A fact held open: each reading is one system call and sees the present value.
#[derive(Debug)]
pub struct Fact(std::fs::File);

impl Fact {
    /// Reads the fact into a buffer that must be large enough for it.
    ///
    /// # Errors
    /// What the system answered (`ENODEV` when the device is gone), or `InvalidData` when it is not text.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b str> {
        let length = self.0.read_at(buffer, 0)?;
        std::str::from_utf8(&buffer[..length]).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// The permission bits that new files of this process do not get. Asking the kernel by setting it would disturb other threads, so it is read.
#[must_use]
pub fn umask() -> u32 {
    let status = Host::real().fact("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
}

/// No spec, record or note is larger: another file, or a device that never ends, is refused before it fills the memory.
const LARGEST_FILE: u64 = 64 << 20;

/// Reads a text file whole.
///
/// # Errors
/// What the system answered, `InvalidData` when it is not UTF-8, or `FileTooLarge`.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(std::fs::File::open(path)?)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn read_bounded(file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut data)?;
    if data.len() as u64 > LARGEST_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {} MiB", LARGEST_FILE >> 20)));
    }
    Ok(data)
}

/// Reads a file that may be missing.
///
/// # Errors
/// What the system answered, except that the file does not exist.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
pub fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::File::open(path) {
        Ok(file) => read_bounded(file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file so that a reader sees the old or the new content whole, whatever happens: a temporary neighbour, flushed, renamed into place.
/// Missing directories are made.
///
/// # Errors
/// What the system answered; the old content is then untouched.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
pub fn write_atomically(path: &Path, data: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = parent.join(name);
    let written = (|| {
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        file.write_all(data)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The first error is the one to report; what remains is a file with a telling name.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Opens a file for appending, made if missing: for records that are streamed.
///
/// # Errors
/// What the system answered.
#[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
pub fn append(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)
}
