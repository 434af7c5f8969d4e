//! The kernel's messages since a moment, from `/dev/kmsg`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// One reading gives one record of at most this many bytes (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8192;
/// Records taken at a time: a kernel that says more than this between two looks is not followed.
const AT_ONCE: usize = 500;

/// The kernel's log held open: what was said before it was opened is not read.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// Opens the log at its end.
    ///
    /// # Errors
    /// What the system answered: usually only root may read it (`kernel.dmesg_restrict`), and in a container it may not be there.
    pub fn open() -> io::Result<Self> {
        Self::open_at(Path::new("/dev/kmsg"))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the room of std::fs")]
    fn open_at(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// The records that came since the last reading: `priority,number,microseconds,flags;text` and lines of properties, each behind a blank
    /// (`Documentation/ABI/testing/dev-kmsg` of the kernel). It never waits.
    pub fn read_new(&mut self) -> Vec<String> {
        let mut records = Vec::new();
        let mut buffer = vec![0; RECORD_BYTES];
        for _ in 0..AT_ONCE {
            match self.0.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => records.push(String::from_utf8_lossy(&buffer[..length]).into_owned()),
                // Records were overwritten before they were read; the next reading goes on behind them.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe || error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own fixtures")]

    use super::*;
    use std::io::Write as _;

    #[test]
    fn only_what_comes_after_the_opening_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all(b"6,1,1,-;before\n").unwrap();
        let mut log = KernelLog::open_at(file.path()).unwrap();
        assert!(log.read_new().is_empty());
        OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"3,2,2,-;after \xff\n").unwrap();
        assert_eq!(log.read_new(), ["3,2,2,-;after \u{fffd}\n"]);
        assert!(log.read_new().is_empty());
        assert!(KernelLog::open_at(Path::new("/nowhere/kmsg")).is_err());
    }

    #[test]
    fn the_log_of_this_machine_is_opened_at_its_end_or_refused() {
        match KernelLog::open() {
            // Its ring holds thousands of records; hardly any are of this moment.
            Ok(mut log) => assert!(log.read_new().len() < 100),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
