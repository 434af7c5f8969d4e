//! What was found out about the capacity of a drive, and the sentence that says it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{CapacityVerdict, Found, Ground};
use crate::units::Bytes;

/// What a check of the capacity came to. Places are bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// What follows from all below.
    pub verdict: CapacityVerdict,
    /// Whose test data they are: `copysim`, or `h2w` for those of F3 and h2testw.
    pub format: String,
    /// The nonce of copysim's test data, in hexadecimal: data of another run have another.
    pub nonce: Option<String>,
    /// What the drive says that it holds.
    pub claimed_bytes: Option<u64>,
    /// Bytes of test data that were read again, or that could not be.
    pub tested_bytes: u64,
    /// Bytes of them that are what was written.
    pub good_bytes: u64,
    /// Whether all that was written was also read again.
    pub is_whole: bool,
    /// Whether all space that was free was written to, and not only as much as was asked for.
    pub filled: bool,
    /// What the drive really holds, where it is less than it claims: from its first byte on, or of what was written (`ground`).
    pub real_bytes: Option<u64>,
    /// Where places on the drive are known from; null where nothing had to be placed.
    pub ground: Option<Ground>,
    /// The lowest place on the drive that does not hold what was written; by `ground`.
    pub first_bad_byte: Option<u64>,
    /// The first file in which something is wrong.
    pub first_bad_file: Option<String>,
    /// Where in that file.
    pub first_bad_file_byte: Option<u64>,
    /// Bytes by what was found.
    pub found: BTreeMap<Found, u64>,
    /// Bits that were wrong where a few were.
    pub flipped_bits: u64,
    /// The size of the block that answers for all others (`aliases`).
    pub block_bytes: Option<u64>,
    /// How much the drive kept of what was written last (`hides-behind-cache`).
    pub cache_bytes: Option<u64>,
    /// Places that were wrong and were read once more, cold.
    pub read_twice: u64,
    /// Those of them that were right then.
    pub right_then: u64,
    /// What was found where in the order of the test data, without what is good, at most the first 1,000 ranges.
    pub ranges: Vec<CapacityRange>,
    /// What could not be written or removed, as sentences.
    pub troubles: Vec<String>,
}

/// A stretch of test data that is not good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityRange {
    /// The file.
    pub file: String,
    /// Where in it the stretch begins.
    pub first_byte: u64,
    /// Its length.
    pub bytes: u64,
    /// What is there.
    pub found: Found,
    /// For `elsewhere`: the file that this was written to.
    pub from_file: Option<String>,
    /// For `elsewhere`: where in that file.
    pub from_byte: Option<u64>,
}

impl Capacity {
    /// Whether the drive is not what it says, or lost data.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.good_bytes < self.tested_bytes
    }

    /// What was found, in one or two sentences.
    #[must_use]
    pub fn sentence(&self) -> String {
        let tested = Bytes(self.tested_bytes);
        let lost = Bytes(self.tested_bytes - self.good_bytes.min(self.tested_bytes));
        let size = match (self.real_bytes, self.claimed_bytes, self.ground) {
            (Some(real), Some(claimed), Some(Ground::Physical)) => format!("This drive holds {} of the {} it claims", Bytes(real), Bytes(claimed)),
            (Some(real), ..) => format!("This drive holds about {} of the {tested} that were written to it", Bytes(real)),
            (None, ..) => format!("This drive lost {lost} of the {tested} that were written to it"),
        };
        match self.verdict {
            CapacityVerdict::HoldsAll if self.format == "h2w" => format!("All {tested} of test data are what F3 or h2testw wrote."),
            CapacityVerdict::HoldsAll if self.filled => format!("All {tested} of free space hold what was written."),
            CapacityVerdict::HoldsAll => format!("All {tested} that were written hold what was written; the rest of the drive was not tried."),
            CapacityVerdict::Wraps => format!("{size}: from there on it overwrites what was written before (wraps)."),
            CapacityVerdict::Discards => format!("{size}: what is written beyond is lost (discards)."),
            CapacityVerdict::Aliases => {
                let block = self.block_bytes.map_or_else(String::new, |bytes| format!(" of {}", Bytes(bytes)));
                format!("{size}: everywhere beyond it gives back one and the same block{block} (aliases).")
            }
            CapacityVerdict::HidesBehindCache => {
                let cache = self.cache_bytes.map_or_else(String::new, |bytes| format!(" {}", Bytes(bytes)));
                format!(
                    "{size}: of what is written beyond only the last{cache} can be read, from a cache, and soon not even that (hides behind a cache)."
                )
            }
            CapacityVerdict::Damaged => {
                let mut words =
                    format!("{lost} of {tested} do not hold what was written: the size is not faked, but the drive loses data{}.", self.kinds());
                if self.read_twice > 0 && self.right_then == self.read_twice {
                    words.push_str(" A second reading gave the right data: suspect the cable, the hub or this machine's memory.");
                }
                words
            }
            CapacityVerdict::Unknown if self.tested_bytes == 0 => {
                "Whether the drive holds what it claims is unknown: nothing was read again.".to_owned()
            }
            CapacityVerdict::Unknown if self.good_bytes == self.tested_bytes => {
                format!("So far {tested} were read again and hold what was written; the rest was not read.")
            }
            CapacityVerdict::Unknown => format!("So far {lost} of {tested} do not hold what was written; the rest was not read."),
        }
    }

    /// What was found instead of the data, the most first: ` (8.19 kB unreadable, 512 B zeros)`.
    fn kinds(&self) -> String {
        let mut kinds: Vec<_> = self.found.iter().filter(|(found, bytes)| **found != Found::Good && **bytes > 0).collect();
        kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let kinds: Vec<String> = kinds.into_iter().map(|(found, bytes)| format!("{} {}", Bytes(*bytes), found.in_words())).collect();
        if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
    }
}
