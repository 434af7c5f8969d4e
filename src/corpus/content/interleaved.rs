//! Content: zero and random by turns, in a stated share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keystream::Keystream;
use super::{Content, FileBytes};

/// What is either zero or random as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Interleave {
    /// Whole files.
    #[serde(rename = "file")]
    File,
    /// Blocks of 128 KiB.
    #[serde(rename = "128KiB")]
    Blocks128KiB,
    /// Blocks of 4 KiB.
    #[serde(rename = "4KiB")]
    Blocks4KiB,
}

/// Zero and random units, spread as evenly as whole numbers allow.
///
/// Of any `n` units in a row, the number of zero ones differs from `n · share` by less than one. Units are counted from the ordinal of the file on, so
/// that the share also holds for corpora of files of one unit. By bytes, the share of a corpus by `file` differs from the stated one by what the lengths
/// of its files happen to do: for lengths that do not depend on the ordinal, by about (standard deviation / mean of the lengths) · √(share · (1 − share) / files).
pub(super) struct Interleaved {
    zero_share_percent: u64,
    unit: u64,
}

impl Interleaved {
    pub(super) fn new(zero_share_percent: u8, interleave: Interleave) -> Self {
        let unit = match interleave {
            Interleave::File => u64::MAX,
            Interleave::Blocks128KiB => 128 * 1024,
            Interleave::Blocks4KiB => 4 * 1024,
        };
        Self { zero_share_percent: u64::from(zero_share_percent), unit }
    }

    /// Whether a unit is zero: where the line of the stated share passes a whole number (Bresenham).
    fn is_zero(&self, file: &FileBytes<'_>, unit: u64) -> bool {
        let index = (file.ordinal % 100 + unit) % 100;
        (index + 1) * self.zero_share_percent / 100 > index * self.zero_share_percent / 100
    }
}

impl Content for Interleaved {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, file: &FileBytes<'_>, mut offset: u64, mut buffer: &mut [u8]) {
        let mut keystream = Keystream::of(file);
        while !buffer.is_empty() {
            let left_in_unit = self.unit - offset % self.unit;
            let len = usize::try_from(left_in_unit).map_or(buffer.len(), |left| left.min(buffer.len()));
            let (part, rest) = buffer.split_at_mut(len);
            if self.is_zero(file, offset / self.unit) {
                part.fill(0);
            } else {
                keystream.fill(offset, part);
            }
            buffer = rest;
            offset += len as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros(content: &Interleaved, ordinals: std::ops::Range<u64>, units: std::ops::Range<u64>) -> u64 {
        let key = [0; 32];
        let file = |ordinal| FileBytes { key: &key, ordinal, path: "", len: 0, mtime: 0 };
        ordinals.map(|ordinal| units.clone().filter(|&unit| content.is_zero(&file(ordinal), unit)).count() as u64).sum()
    }

    #[test]
    fn any_run_of_units_has_its_share_within_one() {
        for share in 0..=100 {
            let content = Interleaved::new(share, Interleave::Blocks4KiB);
            for (start, n) in [(0, 1), (3, 7), (17, 99), (50, 1000), (1 << 40, 12_345)] {
                let count = zeros(&content, 5..6, start..start + n);
                assert!((count * 100).abs_diff(n * u64::from(share)) < 100, "{share} %: {count} of {n}");
            }
        }
    }

    #[test]
    fn the_share_holds_over_files_of_one_unit_and_of_a_few() {
        for share in [1, 33, 50, 67, 99] {
            let content = Interleaved::new(share, Interleave::Blocks128KiB);
            assert_eq!(zeros(&content, 0..700, 0..1), 7 * u64::from(share));
            assert_eq!(zeros(&content, 0..700, 0..3), 21 * u64::from(share));
        }
    }
}
