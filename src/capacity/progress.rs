//! What an interrupted check goes on from: what was measured and found so far, kept with the results and never on the drive that is checked.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::map::Map;
use super::{END, FILE_SPAN};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Files, read_optional, write_atomically};
use crate::result::Phase;

/// The directory of these notes in that of the results.
const DIRECTORY: &str = "unfinished";

/// How far a check is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The run that it began as: the name of its directory on the drive.
    pub run: String,
    /// How much is to be written in all.
    pub planned_bytes: u64,
    /// Whether all is written.
    pub is_written: bool,
    /// What was measured.
    pub phases: Vec<Phase>,
    /// What was found.
    pub map: Map,
    /// The number of the last file that was read.
    pub last_read: Option<u64>,
    /// What went wrong.
    pub troubles: Vec<String>,
}

fn path(results: &Path, run: &str) -> PathBuf {
    results.join(DIRECTORY).join(format!("{run}.json"))
}

impl Progress {
    /// The progress of a run, `None` where none is known. One that can't be understood is none.
    ///
    /// # Errors
    /// What the system answered.
    pub fn load(results: &Path, run: &str) -> Result<Option<Self>> {
        let path = path(results, run);
        let found = read_optional(&path).during("read", Side::Host, &path)?;
        Ok(found.and_then(|text| Self::from_json(&text, run)))
    }

    /// The progress of a run in the text of a note; `None` where it is damaged or of another run.
    #[must_use]
    pub fn from_json(text: &[u8], run: &str) -> Option<Self> {
        let progress: Self = serde_json::from_slice(text).ok()?;
        let fits = progress.planned_bytes <= END && progress.last_read.is_none_or(|last| last < END / FILE_SPAN);
        (progress.run == run && fits && progress.map.is_sound()).then_some(progress)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// What the system answered.
    pub fn save(&self, results: &Path) -> Result<()> {
        let path = path(results, &self.run);
        let text = serde_json::to_vec(self).map_err(|error| Error::Internal(format!("the progress cannot be written as JSON: {error}")))?;
        write_atomically(&path, &text).during("write", Side::Host, &path)
    }

    /// Forgets it: the check is over.
    ///
    /// # Errors
    /// What the system answered.
    pub fn forget(files: &dyn Files, results: &Path, run: &str) -> Result<()> {
        let path = path(results, run);
        let removed = files.open_root(&results.join(DIRECTORY)).and_then(|dir| files.remove_file(&dir, Path::new(&format!("{run}.json"))));
        // Where others are in it, it stays.
        let _ = files.open_root(results).and_then(|dir| files.remove_dir(&dir, Path::new(DIRECTORY)));
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).during("remove", Side::Host, path),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::map::{Range, What};
    use crate::platform::OsFiles;
    use crate::result::PhaseKind;

    #[test]
    fn progress_is_kept_and_forgotten() {
        let results = tempfile::tempdir().unwrap();
        let mut progress = Progress { run: "r".into(), planned_bytes: 5, last_read: Some(3), ..Progress::default() };
        progress.map.add(Range { start: 0, len: 512, what: What::Repeats { from: 1024, block: 512 } });
        progress.phases.push(Phase::new("write", PhaseKind::Write));
        assert_eq!(Progress::load(results.path(), "r").unwrap(), None);
        progress.save(results.path()).unwrap();
        assert_eq!(Progress::load(results.path(), "r").unwrap(), Some(progress));
        assert_eq!(Progress::load(results.path(), "s").unwrap(), None);
        for _ in 0..2 {
            Progress::forget(&OsFiles, results.path(), "r").unwrap();
        }
        assert_eq!(Progress::load(results.path(), "r").unwrap(), None);
        assert_eq!(results.path().read_dir().unwrap().count(), 0);
    }
}
