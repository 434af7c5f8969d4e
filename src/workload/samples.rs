//! One line for each file copied, streamed to a file of the user's: for those who want more than a histogram.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Context, Result, Side};
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
        let path = path.to_string_lossy().replace('"', "\"\"");
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
