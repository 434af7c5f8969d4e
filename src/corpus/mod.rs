//! Deterministic trees of files: spec + seed + version → names, sizes, times, bytes.
//!
//! [`Corpus`] is a spec made concrete by seed and scale; everything else derives from it without touching a drive.

pub mod blame;
pub mod catalogue;
pub mod content;
pub mod digest;
pub mod generate;
pub mod identity;
pub mod locate;
pub mod manifest;
pub mod marks;
pub mod parts;
pub mod random;
mod reread;
pub mod scan;
mod sectors;
pub mod sizes;
pub mod spec;
pub mod stream;
pub mod times;
pub mod tree;
pub mod verify;
mod whose;

use serde::{Deserialize, Serialize};

use crate::drive::names::corpus_name;
use crate::error::{Error, Result};
use crate::units::Scale;
use content::FileBytes;
use parts::Contents;
use spec::CorpusSpec;

/// The most files of a corpus, at whatever scale.
const MOST_FILES: u64 = 100_000_000;

/// A corpus: spec, seed and scale. Equal values mean equal bytes on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// The spec.
    pub spec: CorpusSpec,
    /// The seed.
    pub seed: u64,
    /// The scale in hundredths of a percent.
    scale_hundredths: u32,
}

/// A file of a corpus, before its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMeta {
    /// Which file it is, in manifest order.
    pub ordinal: u64,
    /// Path within the corpus, with `/`.
    pub path: String,
    /// Length in bytes.
    pub len: u64,
    /// Modification time, seconds since 1970.
    pub mtime: i64,
}

impl Corpus {
    /// Makes a spec concrete.
    ///
    /// # Errors
    /// `Refused` when the spec can't be made at this scale.
    pub fn new(spec: CorpusSpec, seed: u64, scale: Scale) -> Result<Self> {
        let corpus = Self { spec, seed, scale_hundredths: scale.hundredths() };
        let (files, bytes) = corpus.spec.scaled(scale);
        if files > MOST_FILES {
            return Err(Error::Refused(format!(
                "corpus {} at {scale} % has {files} files and {bytes} bytes: at most {MOST_FILES} files can be made",
                corpus.spec.name
            )));
        }
        // Found out here rather than when the files are made.
        drop(corpus.files()?);
        Ok(corpus)
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> Scale {
        Scale::from_hundredths(self.scale_hundredths)
    }

    /// Number of files.
    #[must_use]
    pub fn file_count(&self) -> u64 {
        self.spec.scaled(self.scale()).0
    }

    /// Bytes of all files.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.spec.scaled(self.scale()).1
    }

    /// The name of its directory in a workspace: `jpg-v1-s0-p100`.
    #[must_use]
    pub fn id(&self) -> String {
        corpus_name(&self.spec.name, self.spec.version, self.seed, self.scale())
    }

    /// The key of its contents.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        content::corpus_key(&self.spec.name, self.spec.version, self.seed)
    }

    /// What its files contain.
    ///
    /// # Errors
    /// `Refused` when the spec asks for something that there is not.
    pub fn contents(&self) -> Result<Contents> {
        Contents::new(&self.spec, self.scale()).map_err(|reason| Error::Refused(format!("corpus {}: {reason}", self.spec.name)))
    }

    /// Its files in manifest order, in constant memory.
    ///
    /// # Errors
    /// `Refused` when there are too few bytes for so many files of this content.
    pub fn files(&self) -> Result<impl Iterator<Item = FileMeta> + Send + '_> {
        let mut all = Vec::new();
        for part in &self.spec.parts {
            let refused = |reason: String| Error::Refused(format!("corpus {} at {} %: {}", self.spec.name, self.scale(), part.error(&reason)));
            all.push(parts::files(part, self.seed, self.scale()).map_err(refused)?);
        }
        Ok((0..).zip(all.into_iter().flatten()).map(|(ordinal, file)| FileMeta { ordinal, ..file }))
    }
}

impl FileMeta {
    /// The file as its content sees it.
    #[must_use]
    pub fn bytes<'a>(&'a self, key: &'a [u8; 32]) -> FileBytes<'a> {
        FileBytes { key, ordinal: self.ordinal, path: &self.path, len: self.len, mtime: self.mtime }
    }
}
