//! The parts of a corpus made concrete, one after another: which files each has, and whose content a file is.

use super::content::{Content, FileBytes, content};
use super::random::Choices;
use super::sizes::Sizes;
use super::spec::{CorpusSpec, PartSpec};
use super::{FileMeta, tree};
use crate::units::Scale;

/// 2020-01-01: the first file time. All times are even seconds, which FAT can store.
const FIRST_TIME: i64 = 1_577_836_800;
/// The files of a part were made over four years, in units of two seconds.
const TIME_STEPS: u64 = 4 * 365 * 86_400 / 2;

/// The files of a part in order of their paths, counted from 0, in constant memory.
///
/// # Errors
/// When there are too few bytes for so many files of this content.
pub fn files(part: &PartSpec, seed: u64, scale: Scale) -> Result<impl Iterator<Item = FileMeta> + Send + use<'_>, String> {
    let (files, bytes) = part.scaled(scale);
    let key = shape_key(part, seed);
    let least = content(&part.content)?.min_len();
    let sizes = Sizes::new(&part.sizes, &key, files, bytes, least)?;
    let mut times = Choices::new(&key, "times");
    let place = part.place();
    let paths = tree::paths(&part.tree, &key, files);
    Ok((0..).zip(paths.zip(sizes)).map(move |(ordinal, (path, len))| {
        let start = |ordinal: u64| u64::try_from(u128::from(TIME_STEPS) * u128::from(ordinal) / u128::from(files)).unwrap_or(0);
        let step = start(ordinal) + times.below((start(ordinal + 1) - start(ordinal)).max(1));
        FileMeta { ordinal, path: format!("{place}{path}"), len, mtime: FIRST_TIME + 2 * i64::try_from(step).unwrap_or(0) }
    }))
}

/// Names, sizes and times depend on shape, directory and seed, not on the name of the corpus: corpora of one shape differ in content alone.
fn shape_key(part: &PartSpec, seed: u64) -> [u8; 32] {
    let PartSpec { directory, files, bytes, sizes, tree, content: _ } = part;
    let shape = match directory.as_str() {
        "" => serde_json::json!([tree, sizes, files, bytes, seed]),
        directory => serde_json::json!([tree, sizes, files, bytes, seed, directory]),
    };
    blake3::derive_key("copysim corpus shape 1", shape.to_string().as_bytes())
}

/// What the files of a corpus contain.
pub struct Contents {
    /// The parts before the last: the ordinal at which the next one begins, and the content up to there.
    earlier: Vec<(u64, Box<dyn Content>)>,
    last: Box<dyn Content>,
}

impl Contents {
    /// The contents of a corpus at a scale.
    ///
    /// # Errors
    /// A sentence that names what a part asks for and there is not.
    pub fn new(spec: &CorpusSpec, scale: Scale) -> Result<Self, String> {
        let mut end = 0_u64;
        let mut earlier = Vec::new();
        for part in &spec.parts {
            end = end.saturating_add(part.scaled(scale).0);
            earlier.push((end, content(&part.content).map_err(|reason| part.error(&reason))?));
        }
        let (_, last) = earlier.pop().ok_or("it has no part")?;
        Ok(Self { earlier, last })
    }

    /// The content of the file of that ordinal.
    fn of(&self, ordinal: u64) -> &dyn Content {
        let part = self.earlier.partition_point(|(end, _)| *end <= ordinal);
        self.earlier.get(part).map_or(&*self.last, |(_, content)| &**content)
    }

    /// The smallest length that the file of that ordinal can have.
    #[must_use]
    pub fn min_len(&self, ordinal: u64) -> u64 {
        self.of(ordinal).min_len()
    }

    /// Fills `buffer` with the bytes of the file from `offset` on, as [`Content::fill`] does.
    pub fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]) {
        self.of(file.ordinal).fill(file, offset, buffer);
    }
}
