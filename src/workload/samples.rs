//! One line for each file copied, streamed to a file of the user's: for those who want more than a histogram.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Context, Result, Side};
use crate::path_text::path_text;
use crate::platform::append;

/// The file. Lines are kept in memory until 1 MiB of them is together, so that it is seldom written to inside a window.
pub struct FileLog {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    out: BufWriter<std::fs::File>,
    run: u32,
    /// The first failure: told at the end of the run, not in the window.
    failure: Option<std::io::Error>,
}

impl FileLog {
    /// Opens the file and writes its heading. Lines are added to what is there.
    ///
    /// # Errors
    /// What the system answered.
    pub fn open(path: &Path) -> Result<Self> {
        let file = append(path).during("open", Side::Host, path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        writeln!(out, "run,start_ns,ns,bytes,path").during("write to", Side::Host, path)?;
        Ok(Self { path: path.to_path_buf(), inner: Mutex::new(Inner { out, run: 0, failure: None }) })
    }

    /// The lines that follow belong to this run.
    pub fn begin_run(&self, run: u32) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).run = run;
    }

    /// A file was copied: when since the copy began, how long it took, how many bytes.
    pub fn add(&self, start_ns: u64, ns: u64, bytes: u64, path: &Path) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let run = inner.run;
        let path = path_text(path).replace('"', "\"\"");
        if let Err(error) = writeln!(inner.out, "{run},{start_ns},{ns},{bytes},\"{path}\"") {
            inner.failure.get_or_insert(error);
        }
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// What the system answered, now or before.
    pub fn end_run(&self) -> Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = inner.out.flush();
        inner.failure.take().map_or(flushed, Err).during("write to", Side::Host, &self.path)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests look at files directly")]

    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn field_h08_numbers_have_no_commas_and_names_are_quoted() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("files.csv");
        let log = FileLog::open(&path).unwrap();
        log.begin_run(1);
        log.add(1_234_567, 8_900, 1_000_000, Path::new("a, \"b\"; 1,5\nnext.jpg"));
        log.add(0, 0, 0, Path::new(OsStr::from_bytes(b"\xff.jpg")));
        log.end_run().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "run,start_ns,ns,bytes,path\n1,1234567,8900,1000000,\"a, \"\"b\"\"; 1,5\nnext.jpg\"\n1,0,0,0,\"\\xff.jpg\"\n");
    }
}
