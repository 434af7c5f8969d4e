//! Says in what a file differs: which bytes, from where to where, and what became of them.

use std::collections::HashMap;
use std::path::Path;

use super::manifest::{Listed, Manifest};
use super::stream::CHUNK_BYTES;
use super::verify::Subject;
use super::{Corpus, FileMeta};
use crate::error::{Context, Result, Side, reason};
use crate::progress::Cancel;
use crate::result::Difference as Word;

/// Differing bytes closer than this belong to one range.
const GAP: u64 = 4096;
/// Ranges described per file; the rest is counted.
const RANGES: usize = 16;
/// So few differing bits in a range are called flipped bits.
const FLIPPED_BITS: u64 = 8;
/// The smallest unit that drives lose.
const SECTOR: u64 = 512;

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
    /// Length that the file should have.
    pub expected_bytes: u64,
    /// Length that it has.
    pub found_bytes: Option<u64>,
    /// Digest that it has.
    pub found_digest: Option<blake3::Hash>,
    /// The differing ranges one by one, at most 16.
    pub ranges: Vec<Range>,
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
    /// Bytes changed to something else.
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
            Self::Changed => Word::Changed,
        }
    }
}

/// A range of a file that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub offset: u64,
    /// From its first differing byte to its last.
    pub len: u64,
    /// How many bits differ in it.
    pub bits: u64,
    /// Whether it is all zero now.
    pub zero: bool,
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
            expected_bytes: listed.meta.len,
            found_bytes: None,
            found_digest: None,
            ranges: Vec::new(),
        }
    }

    /// The difference in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { path, expected_bytes, .. } = self;
        let (offset, len) = (self.offset.unwrap_or(0), self.len.unwrap_or(0));
        let found = self.found_bytes.unwrap_or(0);
        match &self.kind {
            Kind::Missing => format!("{path}: missing"),
            Kind::Unreadable { reason } => format!("{path}: cannot be read at byte {offset}: {reason}"),
            Kind::Truncated => format!("{path}: truncated: ends at byte {found} of {expected_bytes}"),
            Kind::TooLong => format!("{path}: too long: {found} bytes instead of {expected_bytes}"),
            Kind::Swapped { with } => format!("{path}: swapped: holds the bytes of {with}"),
            Kind::Zeroed => format!("{path}: zeroed: {len} bytes from byte {offset} on are zero"),
            Kind::BitsFlipped { bits: 1 } => format!("{path}: one bit flipped at byte {offset}"),
            Kind::BitsFlipped { bits } if len == 1 => format!("{path}: {bits} bits flipped at byte {offset}"),
            Kind::BitsFlipped { bits } => format!("{path}: {bits} bits flipped between byte {offset} and byte {}", offset + len - 1),
            Kind::Changed if self.offset.is_none() => format!("{path}: changed"),
            Kind::Changed => format!("{path}: changed: {len} bytes from byte {offset} on are not what they should be"),
        }
    }
}

/// Completes differences of which only the digest is known: by the digests of the other files, and by making the right bytes again.
///
/// # Errors
/// `Interrupted`, or when the manifest can't be read.
pub fn explain(subject: Subject<'_>, manifest: &Manifest, differences: &mut [Difference], cancel: &Cancel) -> Result<()> {
    let mut by_digest: HashMap<blake3::Hash, Vec<usize>> = HashMap::new();
    let mut by_path: HashMap<String, usize> = HashMap::new();
    for (index, difference) in differences.iter().enumerate().filter(|(_, difference)| difference.kind == Kind::Changed) {
        by_path.insert(difference.path.clone(), index);
        // Nothing is nobody's bytes: an emptied file is a truncated one.
        if let (Some(digest), Some(1..)) = (difference.found_digest, difference.found_bytes) {
            by_digest.entry(digest).or_default().push(index);
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
    for (index, difference) in differences.iter_mut().enumerate() {
        cancel.check()?;
        if let (Kind::Changed, Some(meta)) = (&difference.kind, metas.get(&index)) {
            *difference = compare(subject, &manifest.corpus, meta, difference.clone())?;
        }
    }
    Ok(())
}

/// Makes the right bytes again and compares them with those on the drive.
fn compare(subject: Subject<'_>, corpus: &Corpus, meta: &FileMeta, mut difference: Difference) -> Result<Difference> {
    let (content, key) = (corpus.content()?, corpus.key());
    let unreadable = |difference: Difference, error: &std::io::Error| Difference { kind: Kind::Unreadable { reason: reason(error) }, ..difference };
    let file = match subject.files.open(subject.tree, Path::new(&meta.path)) {
        Ok(file) => file,
        Err(error) => return Ok(unreadable(difference, &error)),
    };
    let (mut expected, mut found) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut ranges = Ranges::default();
    let mut offset = 0;
    while offset < meta.len {
        let size = usize::try_from(meta.len - offset).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        content.fill(&meta.bytes(&key), offset, &mut expected[..size]);
        let mut filled = 0;
        while filled < size {
            match subject.files.read_at(&file, &mut found[filled..size], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) => return Ok(unreadable(Difference { offset: Some(offset), ..difference }, &error)),
            }
        }
        ranges.compare(offset, &expected[..filled], &found[..filled]);
        offset += filled as u64;
        if filled < size {
            break;
        }
    }
    let ranges = ranges.finish(meta.len);
    let found_bytes = difference.found_bytes.unwrap_or(offset);
    difference.ranges = ranges.clone();
    difference.kind = match (ranges.first(), ranges.last()) {
        (Some(first), Some(last)) => {
            let bits = ranges.iter().map(|range| range.bits).sum();
            difference.offset = Some(first.offset);
            difference.len = Some(last.offset + last.len - first.offset);
            if found_bytes == meta.len && bits <= FLIPPED_BITS {
                Kind::BitsFlipped { bits }
            } else if found_bytes == meta.len && ranges.iter().all(|range| range.zero) {
                Kind::Zeroed
            } else {
                Kind::Changed
            }
        }
        _ if found_bytes < meta.len => {
            (difference.offset, difference.len) = (Some(found_bytes), Some(meta.len - found_bytes));
            Kind::Truncated
        }
        _ if found_bytes > meta.len => {
            (difference.offset, difference.len) = (Some(meta.len), Some(found_bytes - meta.len));
            Kind::TooLong
        }
        // The bytes are right now: the earlier read was wrong, or the manifest comes from another version.
        _ => Kind::Changed,
    };
    Ok(difference)
}

/// Collects differing ranges.
#[derive(Default)]
struct Ranges {
    done: Vec<Range>,
    open: Option<Range>,
    /// Where the zeros that are being read began.
    zeros_from: Option<u64>,
}

impl Ranges {
    fn compare(&mut self, offset: u64, expected: &[u8], found: &[u8]) {
        for ((expected, found), at) in expected.iter().zip(found).zip(offset..) {
            if *found != 0 {
                self.zeros_from = None;
            } else if self.zeros_from.is_none() {
                self.zeros_from = Some(at);
            }
            if expected != found {
                self.add(at, u64::from((expected ^ found).count_ones()), *found == 0);
            }
        }
    }

    fn add(&mut self, at: u64, bits: u64, zero: bool) {
        if let Some(range) = self.open.as_mut().filter(|range| at - (range.offset + range.len) < GAP) {
            range.len = at + 1 - range.offset;
            range.bits += bits;
            range.zero &= zero && self.zeros_from.is_some_and(|from| from <= range.offset);
            return;
        }
        self.close();
        // A lost sector begins at its boundary, even if its first bytes should be zero anyway.
        let boundary = at - at % SECTOR;
        let offset = if self.zeros_from.is_some_and(|from| from <= boundary) { boundary } else { at };
        self.open = Some(Range { offset, len: at + 1 - offset, bits, zero });
    }

    fn close(&mut self) {
        if let Some(mut range) = self.open.take() {
            if range.zero && range.bits > FLIPPED_BITS && range.offset % SECTOR == 0 {
                range.len = range.len.next_multiple_of(SECTOR);
            }
            if self.done.len() < RANGES {
                self.done.push(range);
            } else if let Some(last) = self.done.last_mut() {
                last.len = range.offset + range.len - last.offset;
                last.bits += range.bits;
                last.zero &= range.zero;
            }
        }
    }

    fn finish(mut self, len: u64) -> Vec<Range> {
        self.close();
        if let Some(last) = self.done.last_mut() {
            last.len = last.len.min(len - last.offset);
        }
        self.done
    }
}
