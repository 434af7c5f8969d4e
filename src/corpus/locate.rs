//! Says in what a file differs: which bytes, from where to where, what became of them, and whether a second reading agrees.

use std::collections::HashMap;

use super::FileMeta;
use super::manifest::{Listed, Manifest};
use super::marks::Marks;
use super::reread::reread;
use super::sectors::Sectors;
use super::verify::{Subject, flush};
use super::whose::Search;
use crate::error::{Context, Result, Side};
use crate::progress::Cancel;
use crate::result::{Blame, Difference as Word};

/// Ranges described per file; the rest is counted.
const RANGES: usize = 16;

/// A file that is not what the manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path within the corpus.
    pub path: String,
    /// What is wrong.
    pub kind: Kind,
    /// Where it begins in the file.
    pub offset: Option<u64>,
    /// How many bytes are concerned, from the first to the last.
    pub len: Option<u64>,
    /// How many bytes are wrong, where they are known one by one.
    pub different_bytes: Option<u64>,
    /// How many bits are.
    pub bits: Option<u64>,
    /// Length that the file should have.
    pub expected_bytes: u64,
    /// Digest that it should have.
    pub expected_digest: blake3::Hash,
    /// Length that it has.
    pub found_bytes: Option<u64>,
    /// What the first reading found, where it came to the end.
    pub found: Option<Marks>,
    /// The differing ranges one by one, at most 16.
    pub ranges: Vec<Range>,
    /// How many ranges there are.
    pub range_count: u64,
    /// What a second reading showed.
    pub second: Option<Second>,
    /// Who is to blame and why, where that was looked for.
    pub blame: Option<(Blame, String)>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// It is not there.
    Missing,
    /// It can't be read.
    Unreadable {
        /// What the system answered.
        reason: String,
    },
    /// It ends early; what is there is right.
    Truncated,
    /// It goes on after its end.
    TooLong,
    /// It holds the bytes of another file of the corpus.
    Swapped {
        /// Whose.
        with: String,
    },
    /// Bytes became zero.
    Zeroed,
    /// A few bits changed.
    BitsFlipped {
        /// How many.
        bits: u64,
    },
    /// Bytes are those of another place of the corpus.
    Elsewhere {
        /// Of which file.
        file: String,
        /// From where on in it.
        offset: u64,
    },
    /// Bytes are those of no place of the corpus.
    Garbage,
    /// Bytes changed in several of these ways, or to what is not known.
    Changed,
}

impl Kind {
    /// The word for it in the record.
    #[must_use]
    pub fn word(&self) -> Word {
        match self {
            Self::Missing => Word::Missing,
            Self::Unreadable { .. } => Word::Unreadable,
            Self::Truncated => Word::Truncated,
            Self::TooLong => Word::TooLong,
            Self::Swapped { .. } => Word::Swapped,
            Self::Zeroed => Word::Zeroed,
            Self::BitsFlipped { .. } => Word::BitsFlipped,
            Self::Elsewhere { .. } => Word::Elsewhere,
            Self::Garbage => Word::Garbage,
            Self::Changed => Word::Changed,
        }
    }
}

/// A range of a file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub offset: u64,
    /// From its first differing byte to its last.
    pub len: u64,
    /// How many bits differ in it.
    pub bits: u64,
    /// What is there.
    pub what: What,
}

/// What a range holds in place of the right bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Zeros.
    Zeros,
    /// The right bytes, but for a few bits.
    Flipped,
    /// The bytes of another place of the corpus.
    Elsewhere {
        /// Of which file.
        file: String,
        /// From where on in it.
        offset: u64,
    },
    /// Bytes of no place of the corpus.
    Garbage,
    /// What is not known: shorter than a sector, or too much to look for.
    Unknown,
}

impl What {
    /// The word for it in the record.
    #[must_use]
    pub fn word(&self) -> Word {
        match self {
            Self::Zeros => Word::Zeroed,
            Self::Flipped => Word::BitsFlipped,
            Self::Elsewhere { .. } => Word::Elsewhere,
            Self::Garbage => Word::Garbage,
            Self::Unknown => Word::Changed,
        }
    }
}

/// What a second reading of a file showed, from the drive and not from this machine's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Second {
    /// The same as the first.
    Agrees,
    /// What the file should hold.
    AsExpected,
    /// Something else again.
    Other,
    /// There was none from the drive, and why.
    NotPossible(String),
}

impl Difference {
    /// A difference of which nothing more is known yet.
    #[must_use]
    pub fn new(listed: &Listed, kind: Kind) -> Self {
        Self {
            path: listed.meta.path.clone(),
            kind,
            offset: None,
            len: None,
            different_bytes: None,
            bits: None,
            expected_bytes: listed.meta.len,
            expected_digest: listed.digest,
            found_bytes: None,
            found: None,
            ranges: Vec::new(),
            range_count: 0,
            second: None,
            blame: None,
        }
    }

    /// The difference in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.path, self.what())
    }

    /// The difference without the name of the file.
    #[must_use]
    pub fn what(&self) -> String {
        let (offset, len, expected) = (self.offset.unwrap_or(0), self.len.unwrap_or(0), self.expected_bytes);
        let (found, last) = (self.found_bytes.unwrap_or(0), offset + len.saturating_sub(1));
        match &self.kind {
            Kind::Missing => "missing".to_owned(),
            Kind::Unreadable { reason } => format!("cannot be read at byte {offset}: {reason}"),
            Kind::Truncated => format!("truncated: ends at byte {found} of {expected}"),
            Kind::TooLong => format!("too long: {found} bytes instead of {expected}"),
            Kind::Swapped { with } => format!("swapped: holds the bytes of {with}"),
            Kind::Zeroed => format!("zeroed: {len} bytes from byte {offset} on are zero"),
            Kind::BitsFlipped { bits: 1 } => format!("one bit flipped at byte {offset}"),
            Kind::BitsFlipped { bits } if len == 1 => format!("{bits} bits flipped at byte {offset}"),
            Kind::BitsFlipped { bits } => format!("{bits} bits flipped between byte {offset} and byte {last}"),
            Kind::Elsewhere { file, offset: from } => format!("bytes {offset} to {last} hold the bytes of {file} from byte {from} on"),
            Kind::Garbage => format!("garbage: {len} bytes from byte {offset} on belong to no place of the corpus"),
            Kind::Changed if self.offset.is_none() => "changed".to_owned(),
            Kind::Changed if self.ranges.is_empty() => format!("changed: something between byte {offset} and byte {last} was not what it should be"),
            Kind::Changed => format!("changed: {len} bytes from byte {offset} on are not what they should be"),
        }
    }

    /// Takes over what the wrong ranges of a file of the right length, or the wrong length of one whose bytes are right, make of it.
    fn conclude(&mut self, sectors: &Sectors, search: &Search<'_>) {
        let ranges = sectors.ranges(search);
        let found_bytes = self.found_bytes.unwrap_or(self.expected_bytes);
        (self.offset, self.len) = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) => {
                let end = (last.offset + last.len).min(self.expected_bytes);
                (self.different_bytes, self.bits) = (Some(sectors.different_bytes), Some(sectors.bits));
                (Some(first.offset), Some(end - first.offset))
            }
            _ if found_bytes < self.expected_bytes => (Some(found_bytes), Some(self.expected_bytes - found_bytes)),
            _ if found_bytes > self.expected_bytes => (Some(self.expected_bytes), Some(found_bytes - self.expected_bytes)),
            _ => (self.offset, self.len),
        };
        let all = |word: Word| found_bytes == self.expected_bytes && ranges.iter().all(|range| range.what.word() == word);
        self.kind = match ranges.first().map(|range| &range.what) {
            None if found_bytes < self.expected_bytes => Kind::Truncated,
            None if found_bytes > self.expected_bytes => Kind::TooLong,
            Some(What::Zeros) if all(Word::Zeroed) => Kind::Zeroed,
            Some(What::Flipped) if all(Word::BitsFlipped) => Kind::BitsFlipped { bits: sectors.bits },
            // Those of several places are told one by one.
            Some(What::Elsewhere { file, offset }) if ranges.len() == 1 && all(Word::Elsewhere) => {
                Kind::Elsewhere { file: file.clone(), offset: *offset }
            }
            Some(What::Garbage) if all(Word::Garbage) => Kind::Garbage,
            _ => Kind::Changed,
        };
        self.range_count = ranges.len() as u64;
        self.ranges = ranges;
        self.ranges.truncate(RANGES);
    }
}

/// Completes differences of which only digests are known: by the digests of the other files, by a second reading beside the right bytes, made again, and by
/// looking through the whole corpus for those that are wrong.
///
/// # Errors
/// `Interrupted`, when the flush fails, or when the manifest can't be read.
pub fn explain(subject: Subject<'_>, manifest: &Manifest, differences: &mut [Difference], threads: usize, cancel: &Cancel) -> Result<()> {
    let mut by_digest: HashMap<blake3::Hash, Vec<usize>> = HashMap::new();
    let mut by_path: HashMap<String, usize> = HashMap::new();
    for (index, difference) in differences.iter().enumerate() {
        by_path.insert(difference.path.clone(), index);
        // Nothing is nobody's bytes: an emptied file is a truncated one.
        if let Some(found) = difference.found.as_ref().filter(|found| found.len > 0) {
            by_digest.entry(found.digest).or_default().push(index);
        }
    }
    if by_path.is_empty() {
        return Ok(());
    }
    let mut metas: HashMap<usize, FileMeta> = HashMap::new();
    for listed in manifest.entries(subject.files) {
        let Listed { meta, digest } = listed.during("read the manifest of", Side::Source, subject.path)?;
        for &index in by_digest.get(&digest).into_iter().flatten() {
            differences[index].kind = Kind::Swapped { with: meta.path.clone() };
        }
        if let Some(&index) = by_path.get(&meta.path) {
            metas.insert(index, meta);
        }
    }
    // What is not written yet can't be evicted, and would answer in place of the drive.
    flush(subject)?;
    let mut search = Search::new(&manifest.corpus)?;
    let mut seen: Vec<Option<Sectors>> = Vec::new();
    for (index, difference) in differences.iter_mut().enumerate() {
        cancel.check()?;
        seen.push(match metas.get(&index) {
            Some(meta) => reread(subject, meta, difference, &mut search, cancel)?,
            None => None,
        });
    }
    search.run(threads, cancel)?;
    for (difference, sectors) in differences.iter_mut().zip(seen) {
        if let Some(sectors) = sectors {
            difference.conclude(&sectors, &search);
        }
    }
    Ok(())
}
