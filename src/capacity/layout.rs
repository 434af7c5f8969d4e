//! Where test data lie: in which file, in which order they were written, and where on the drive.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::FILE_SPAN;
use crate::result::Ground;

/// A stretch of a file and where it lies on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Where in the file.
    pub logical: u64,
    /// Where on the drive.
    pub physical: u64,
    /// Bytes.
    pub len: u64,
}

/// A file of test data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Laid {
    /// Its number.
    pub index: u64,
    /// Bytes of test data in it.
    pub len: u64,
    /// Where they lie, in order; empty where that is not known.
    pub stretches: Vec<Stretch>,
}

/// All files of test data in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Layout {
    files: Vec<Laid>,
    /// Where each file begins in the order of writing.
    orders: Vec<u64>,
    bytes: u64,
    placed_bytes: u64,
}

impl Layout {
    /// Adds a file, with a higher number than all before.
    pub fn add(&mut self, file: Laid) {
        self.orders.push(self.bytes);
        self.bytes += file.len;
        self.placed_bytes += file.stretches.iter().map(|stretch| stretch.len).sum::<u64>().min(file.len);
        self.files.push(file);
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[Laid] {
        &self.files
    }

    /// Bytes in all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Pieces of which the places are known.
    #[must_use]
    pub fn stretches(&self) -> usize {
        self.files.iter().map(|file| file.stretches.len()).sum()
    }

    /// From where places are known: the file system must have told those of nine in ten bytes.
    #[must_use]
    pub fn ground(&self) -> Ground {
        if self.bytes > 0 && self.placed_bytes >= self.bytes / 10 * 9 { Ground::Physical } else { Ground::FillOrder }
    }

    /// The number of a file and the byte in it for a position.
    #[must_use]
    pub fn file_of(position: u64) -> (u64, u64) {
        (position / FILE_SPAN, position % FILE_SPAN)
    }

    fn file(&self, position: u64) -> Option<(usize, u64)> {
        let (number, within) = Self::file_of(position);
        let found = self.files.binary_search_by_key(&number, |file| file.index).ok()?;
        (within < self.files[found].len).then_some((found, within))
    }

    /// How many bytes had been written before this position was.
    #[must_use]
    pub fn order(&self, position: u64) -> Option<u64> {
        self.file(position).map(|(file, within)| self.orders[file] + within)
    }

    /// Where a position lies, by the ground given, and how many bytes follow it there at most.
    #[must_use]
    pub fn place(&self, position: u64, ground: Ground) -> Option<(u64, u64)> {
        let (number, within) = self.file(position)?;
        let file = &self.files[number];
        match ground {
            Ground::FillOrder => Some((self.orders[number] + within, file.len - within)),
            Ground::Physical => {
                let after = file.stretches.partition_point(|stretch| stretch.logical <= within);
                let stretch = file.stretches.get(after.checked_sub(1)?)?;
                let offset = within - stretch.logical;
                (offset < stretch.len).then(|| (stretch.physical + offset, (stretch.len - offset).min(file.len - within)))
            }
        }
    }

    /// Calls `each` for the parts of a range of positions whose places are known: where it begins and what it takes.
    pub fn parts(&self, range: Range<u64>, ground: Ground, mut each: impl FnMut(u64, u64, u64)) {
        /// What has no place is stepped over in pieces of this size.
        const STEP: u64 = 4096;
        let mut position = range.start;
        while position < range.end {
            let left = range.end - position;
            match self.place(position, ground) {
                Some((place, follow)) => {
                    let take = follow.min(left);
                    each(position, place, take);
                    position += take;
                }
                None => position += STEP.min(left),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found_in_their_files_and_on_the_drive() {
        let mut layout = Layout::default();
        let stretch = |logical, physical, len| Stretch { logical, physical, len };
        layout.add(Laid { index: 0, len: 8192, stretches: vec![stretch(0, 100_000, 4096), stretch(4096, 50_000, 8192)] });
        layout.add(Laid { index: 2, len: 4096, stretches: vec![stretch(0, 200_000, 4096)] });
        let second = 2 * FILE_SPAN;
        assert_eq!((layout.order(4097), layout.order(second + 5), layout.order(8192), layout.order(FILE_SPAN)), (Some(4097), Some(8197), None, None));
        assert_eq!(layout.ground(), Ground::Physical);
        assert_eq!(layout.place(4000, Ground::Physical), Some((104_000, 96)));
        assert_eq!(layout.place(5000, Ground::Physical), Some((50_904, 3192)));
        assert_eq!(layout.place(second, Ground::FillOrder), Some((8192, 4096)));
        let mut parts = Vec::new();
        layout.parts(0..8192, Ground::Physical, |position, place, len| parts.push((position, place, len)));
        assert_eq!(parts, [(0, 100_000, 4096), (4096, 50_000, 4096)]);
        // A file whose places are not known takes the ground away.
        layout.add(Laid { index: 3, len: 4096, stretches: Vec::new() });
        assert_eq!(layout.ground(), Ground::FillOrder);
    }
}
