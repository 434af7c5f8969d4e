//! What can go wrong, as sentences a person can act on, each with its exit code.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::path_text::path_text;

/// The result of everything in copysim that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure. The variants are the exit codes of the command line, not the places where they arose.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation of the system failed: exit code 1.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// Something that should have held inside copysim or in a program it started did not: exit code 1.
    #[error("{0}")]
    Internal(String),
    /// The command, the plan or the target was refused before anything was done: exit code 2.
    #[error("{0}")]
    Refused(String),
    /// Data differ from what they should be: exit code 4.
    #[error("{0}")]
    Differ(String),
    /// A signal asked for the end: exit code 128 + signal.
    #[error("interrupted")]
    Interrupted(i32),
}

impl Error {
    /// The exit code of the process (the table in README.md).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io(_) | Self::Internal(_) => 1,
            Self::Refused(_) => 2,
            Self::Differ(_) => 4,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        }
    }
}

/// Which end of a copy an operation belonged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where data are read from.
    Source,
    /// Where data are written to.
    Target,
    /// Neither: results, settings, the system.
    Host,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
            Self::Host => "host",
        })
    }
}

/// A failed operation of the system with everything a person needs to find it: the operation, the side, the path, the errno.
#[derive(Debug)]
pub struct IoFailure {
    /// What was attempted, as a verb phrase: "open", "write to", "flush".
    pub operation: &'static str,
    /// Which end of the copy it was.
    pub side: Side,
    /// The file or directory.
    pub path: PathBuf,
    /// Where in the file it was, bytes, for a piece of content.
    pub offset: Option<u64>,
    /// What the system answered.
    pub source: io::Error,
}

impl IoFailure {
    /// The errno, where the system gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether the answer tells of a limit of this machine or of its user's (open files, memory, `ulimit -f`), which says nothing about the drive. No file of
    /// copysim's own is as long as a file system's limit, except where its caller says so.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        is_shortage(&self.source) || self.errno() == Some(libc::EFBIG)
    }
}

/// Whether an answer tells that this machine has too little of something: that says nothing about a drive.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.operation, path_text(&self.path))?;
        if self.side != Side::Host {
            write!(f, " ({})", self.side)?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", reason(&self.source))?;
        let advice = self.errno().map_or("", |errno| explain(errno).1);
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

impl std::error::Error for IoFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// What the system answered, in words and with the errno's name where it has one: "input/output error (EIO)".
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error().and_then(|errno| explain(errno).0) {
        Some(name) => format!("{} ({name})", lower_first(&plain_message(error))),
        None => error.to_string(),
    }
}

/// The system's own message without the "(os error N)" that Rust appends.
fn plain_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// The errno's name and what a person can do about it.
fn explain(errno: i32) -> (Option<&'static str>, &'static str) {
    let (name, advice) = match errno {
        libc::EPERM => ("EPERM", ""),
        libc::ENOENT => ("ENOENT", ""),
        libc::EINTR => ("EINTR", ""),
        libc::EIO => ("EIO", "the drive reported an error: check the cable and the kernel log"),
        libc::ENXIO => ("ENXIO", "the drive is gone: was it unplugged?"),
        libc::EBADF => ("EBADF", ""),
        libc::EAGAIN => ("EAGAIN", ""),
        libc::ENOMEM => ("ENOMEM", "memory is short"),
        libc::EACCES => ("EACCES", "you have no right to do this there"),
        libc::EBUSY => ("EBUSY", ""),
        libc::EEXIST => ("EEXIST", "something of that name is there already, or of one that differs only in upper and lower case"),
        libc::EXDEV => ("EXDEV", ""),
        libc::ENODEV => ("ENODEV", "the drive is gone: was it unplugged?"),
        libc::ENOTDIR => ("ENOTDIR", ""),
        libc::EISDIR => ("EISDIR", ""),
        libc::EINVAL => ("EINVAL", "the file system does not accept this name or request"),
        libc::ENFILE => ("ENFILE", "all programs of this machine together have too many files open"),
        libc::EMFILE => ("EMFILE", "raise the limit of open files (ulimit -n)"),
        libc::EFBIG => ("EFBIG", "the file system has a limit on the size of a file (FAT32: 4 GiB)"),
        libc::ENOSPC => ("ENOSPC", "the drive is full: free some space or use a smaller --scale"),
        libc::EROFS => ("EROFS", "the drive is write-protected, or the system made it read-only after an error: see the kernel log"),
        libc::EPIPE => ("EPIPE", ""),
        libc::ENAMETOOLONG => ("ENAMETOOLONG", "choose a directory with a shorter path"),
        libc::ENOSYS => ("ENOSYS", ""),
        libc::ENOTEMPTY => ("ENOTEMPTY", ""),
        libc::ELOOP => ("ELOOP", "a symbolic link stands where copysim expects its own file"),
        libc::EILSEQ => ("EILSEQ", "the file system does not accept this name"),
        libc::EOPNOTSUPP => ("EOPNOTSUPP", "the file system cannot do this"),
        libc::ENOTCONN => ("ENOTCONN", "the file system's server is gone"),
        libc::ETIMEDOUT => ("ETIMEDOUT", ""),
        libc::ESTALE => ("ESTALE", "the share changed or went away"),
        libc::EDQUOT => ("EDQUOT", "your quota is used up: free some space or use a smaller --scale"),
        libc::EREMOTEIO => ("EREMOTEIO", "the drive reported an error: check the cable and the kernel log"),
        _ => return (None, ""),
    };
    (Some(name), advice)
}

/// Gives an `io::Result` its context, so that no bare errno ever reaches a person.
pub trait Context<T> {
    /// Names the operation, the side and the path that failed.
    ///
    /// # Errors
    /// The same failure, with its context.
    fn during(self, operation: &'static str, side: Side, path: impl Into<PathBuf>) -> Result<T>;

    /// The same for a piece of a file's content, which begins at this byte.
    ///
    /// # Errors
    /// The same failure, with its context.
    fn during_at(self, offset: u64, operation: &'static str, side: Side, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, operation: &'static str, side: Side, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io(IoFailure { operation, side, path: path.into(), offset: None, source }))
    }

    fn during_at(self, offset: u64, operation: &'static str, side: Side, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io(IoFailure { operation, side, path: path.into(), offset: Some(offset), source }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_b04_an_errno_becomes_a_sentence_with_path_side_operation_and_name() {
        let failed: io::Result<()> = Err(io::Error::from_raw_os_error(libc::ENOSPC));
        let error = failed.during("write to", Side::Target, "/media/stick/a.jpg").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write to /media/stick/a.jpg (target): no space left on device (ENOSPC); \
             the drive is full: free some space or use a smaller --scale"
        );
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn field_f04_a_name_that_a_file_system_refuses_is_told_as_that() {
        for (errno, name, advice) in [
            (libc::EINVAL, "EINVAL", "the file system does not accept this name or request"),
            (libc::EILSEQ, "EILSEQ", "the file system does not accept this name"),
            (libc::ENAMETOOLONG, "ENAMETOOLONG", "choose a directory with a shorter path"),
        ] {
            let failed: io::Result<()> = Err(io::Error::from_raw_os_error(errno));
            let told = failed.during("create", Side::Target, "/media/stick/a:b?.jpg").unwrap_err().to_string();
            assert!(told.starts_with("cannot create /media/stick/a:b?.jpg (target): ") && told.ends_with(&format!(" ({name}); {advice}")), "{told}");
        }
    }

    #[test]
    fn field_f01_a_name_that_is_no_text_is_shown_with_its_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let failed: io::Result<()> = Err(io::Error::from_raw_os_error(libc::EILSEQ));
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(b"a\xff\xfe.bin"));
        assert!(failed.during("create", Side::Target, path).unwrap_err().to_string().starts_with("cannot create a\\xff\\xfe.bin (target): "));
    }

    #[test]
    fn field_b09_an_errno_without_a_name_keeps_its_number() {
        let failed: io::Result<()> = Err(io::Error::from_raw_os_error(libc::ENOTTY));
        let error = failed.during("flush", Side::Source, "x").unwrap_err();
        assert!(error.to_string().contains("os error 25"), "{error}");
    }
}
