//! The manifest of a corpus: a text file that lists path, length, time and BLAKE3 of every file, and the root digest of that list.
//!
//! ```text
//! copysim-manifest/1
//! corpus {"spec":{…},"seed":0,"scale_hundredths":10000}
//! <blake3> <length> <mtime> <path>
//! …
//! root <blake3 of the lines from the first file to the last>
//! ```

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::parts::Contents;
use super::{Corpus, FileMeta};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Files, Handle, Reader, Writer};

/// The name of the manifest in a corpus's directory.
pub const NAME: &str = "MANIFEST";
/// The name that it has until it is whole.
pub const UNFINISHED: &str = "MANIFEST.unfinished";
const MAGIC: &str = "copysim-manifest/1";
/// No line of a well-formed manifest is longer; a foreign file is refused before it fills the memory.
const LONGEST_LINE: u64 = 1 << 20;

/// One file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The file.
    pub meta: FileMeta,
    /// The BLAKE3 digest of its bytes.
    pub digest: blake3::Hash,
}

impl Listed {
    fn line(&self) -> String {
        format!("{} {} {} {}\n", self.digest.to_hex(), self.meta.len, self.meta.mtime, self.meta.path)
    }

    fn parse(line: &str, ordinal: u64) -> Option<Self> {
        let mut fields = line.splitn(4, ' ');
        let digest = blake3::Hash::from_hex(fields.next()?).ok()?;
        let len = fields.next()?.parse().ok()?;
        let mtime = fields.next()?.parse().ok()?;
        let path = fields.next().filter(|path| is_safe(path))?.to_owned();
        Some(Self { meta: FileMeta { ordinal, path, len, mtime }, digest })
    }
}

/// Whether a path from a manifest stays below the directory it is taken in.
fn is_safe(path: &str) -> bool {
    !path.contains(char::is_control) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Sums up files in manifest order to the root digest.
#[derive(Default)]
pub struct Root(blake3::Hasher);

impl Root {
    /// The next file.
    pub fn add(&mut self, file: &Listed) {
        self.0.update(file.line().as_bytes());
    }

    /// The digest of all files added.
    #[must_use]
    pub fn digest(&self) -> blake3::Hash {
        self.0.finalize()
    }
}

/// Writes a manifest while its corpus is made. It is one when its last line is there.
pub struct ManifestWriter<'a> {
    files: &'a dyn Files,
    file: Handle,
    path: PathBuf,
    pending: Vec<u8>,
    root: Root,
}

impl<'a> ManifestWriter<'a> {
    /// Begins the manifest of `corpus` in an empty file that is called `path` in messages.
    ///
    /// # Errors
    /// `Internal` when the corpus can't be written as JSON.
    pub fn new(files: &'a dyn Files, file: Handle, path: PathBuf, corpus: &Corpus) -> Result<Self> {
        let identity = serde_json::to_string(corpus).map_err(|error| Error::Internal(error.to_string()))?;
        let pending = format!("{MAGIC}\ncorpus {identity}\n").into_bytes();
        Ok(Self { files, file, path, pending, root: Root::default() })
    }

    /// Lists the next file.
    ///
    /// # Errors
    /// What the system answered.
    pub fn add(&mut self, file: &Listed) -> Result<()> {
        self.root.add(file);
        self.pending.extend_from_slice(file.line().as_bytes());
        if self.pending.len() >= 1 << 18 { self.write_pending() } else { Ok(()) }
    }

    fn write_pending(&mut self) -> Result<()> {
        let mut writer = Writer { files: self.files, file: &self.file };
        writer.write_all(&self.pending).during("write to", Side::Source, &self.path)?;
        self.pending.clear();
        Ok(())
    }

    /// Ends the list and gives the file back, written but not flushed.
    ///
    /// # Errors
    /// What the system answered.
    pub fn finish(mut self) -> Result<(blake3::Hash, Handle)> {
        let root = self.root.digest();
        self.pending.extend_from_slice(format!("root {}\n", root.to_hex()).as_bytes());
        self.write_pending()?;
        Ok((root, self.file))
    }
}

/// A manifest that was found whole.
pub struct Manifest {
    /// The corpus that it lists.
    pub corpus: Corpus,
    /// Its root digest.
    pub root: blake3::Hash,
    file: Handle,
    first_file: u64,
}

impl Manifest {
    /// Opens the manifest in `dir` and checks it from end to end: form, order, counts, root digest. `None` when there is none.
    ///
    /// # Errors
    /// What the system answered, or `Refused` with the reason why it is not a manifest.
    pub fn open(files: &dyn Files, dir: &Handle, path: &Path) -> Result<Option<Self>> {
        let name = path.join(NAME);
        match files.open(dir, Path::new(NAME)) {
            Ok(file) => Self::read(files, file, &name).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).during("open", Side::Source, &name),
        }
    }

    /// Checks the manifest in an open file, as [`Manifest::open`] does.
    ///
    /// # Errors
    /// As there.
    pub fn read(files: &dyn Files, file: Handle, name: &Path) -> Result<Self> {
        let broken = |reason: &str| Error::Refused(format!("{} is not a valid manifest: {reason}", name.display()));
        let mut lines = Lines::new(files, &file, 0);
        let header = (|| Ok::<_, io::Error>((lines.next()?, lines.next()?)))().during("read", Side::Source, name)?;
        let (Some(magic), Some(identity)) = header else {
            return Err(broken("it ends early"));
        };
        if magic != MAGIC {
            return Err(broken("its first line is not a known version"));
        }
        let identity = identity.strip_prefix("corpus ").ok_or_else(|| broken("its second line names no corpus"))?;
        let corpus: Corpus = serde_json::from_str(identity).map_err(|error| broken(&error.to_string()))?;
        corpus.spec.check().map_err(|reason| broken(&reason))?;
        let contents = corpus.contents()?;
        let first_file = lines.offset;
        let mut manifest = Self { corpus, root: Root::default().digest(), file, first_file };
        manifest.root = manifest.check(files, &contents).during("read", Side::Source, name)?.map_err(|reason| broken(&reason))?;
        Ok(manifest)
    }

    fn check(&self, files: &dyn Files, contents: &Contents) -> io::Result<Result<blake3::Hash, String>> {
        let mut root = Root::default();
        let (mut count, mut bytes) = (0_u64, 0_u64);
        let mut last = String::new();
        let mut entries = Entries { expected: None, ..self.entries(files) };
        for file in entries.by_ref() {
            let file = file?;
            if last.as_bytes() >= file.meta.path.as_bytes() {
                return Ok(Err(format!("{} is out of order", file.meta.path)));
            }
            if file.meta.len < contents.min_len(file.meta.ordinal) {
                return Ok(Err(format!("{} is shorter than such a file can be", file.meta.path)));
            }
            root.add(&file);
            count += 1;
            bytes = bytes.saturating_add(file.meta.len);
            last = file.meta.path;
        }
        let expected = format!("root {}", root.digest().to_hex());
        if entries.trailer != expected {
            return Ok(Err("its list does not match its root digest".to_owned()));
        }
        if (count, bytes) != (self.corpus.file_count(), self.corpus.byte_count()) {
            return Ok(Err("its files are not as many as its corpus has".to_owned()));
        }
        Ok(Ok(root.digest()))
    }

    /// The files listed, read as they are asked for. A list that does not end as it did when it was checked is an error: whoever reads it to its end has
    /// seen all of it.
    pub fn entries<'a>(&'a self, files: &'a dyn Files) -> Entries<'a> {
        let expected = Some(format!("root {}", self.root.to_hex()));
        Entries { lines: Lines::new(files, &self.file, self.first_file), ordinal: 0, trailer: String::new(), expected, has_ended: false }
    }
}

/// Iterates over the files of a manifest.
pub struct Entries<'a> {
    lines: Lines<'a>,
    ordinal: u64,
    /// The line that ended the list.
    trailer: String,
    /// The line that must end it, where that is known and was not seen yet.
    expected: Option<String>,
    has_ended: bool,
}

impl Iterator for Entries<'_> {
    type Item = io::Result<Listed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let line = match self.lines.next() {
            Ok(line) => line.unwrap_or_default(),
            Err(error) => {
                // Told once: a drive that is gone answers so for ever.
                self.has_ended = true;
                return Some(Err(error));
            }
        };
        if let Some(file) = Listed::parse(&line, self.ordinal) {
            self.ordinal += 1;
            return Some(Ok(file));
        }
        self.has_ended = true;
        self.trailer = line;
        let other = self.expected.take().filter(|expected| *expected != self.trailer);
        other.map(|_| Err(io::Error::new(io::ErrorKind::InvalidData, "the list does not end as it did when it was checked")))
    }
}

struct Lines<'a> {
    reader: BufReader<Reader<'a>>,
    offset: u64,
}

impl<'a> Lines<'a> {
    fn new(files: &'a dyn Files, file: &'a Handle, offset: u64) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, Reader { files, file, offset }), offset }
    }

    /// The next line without its end; `None` after the last. A line that is not UTF-8 or far too long is `InvalidData`.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let read = io::Read::take(&mut self.reader, LONGEST_LINE).read_until(b'\n', &mut line)?;
        self.offset += read as u64;
        if read == 0 {
            return Ok(None);
        }
        if line.pop() != Some(b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line does not end"));
        }
        String::from_utf8(line).map(Some).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line is not UTF-8"))
    }
}
