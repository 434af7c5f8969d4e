//! The record of a comparison: how many files are what they should be, and what the others are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Blame, Difference, SecondRead};

/// The comparison of files with what was written, after a cold re-read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Integrity {
    /// Files compared.
    pub files_checked: u64,
    /// Files that are what they should be.
    pub files_good: u64,
    /// Those that are not, at most the first 100.
    pub mismatches: Vec<Mismatch>,
    /// Whether a write that was lost would show even where the drive holds what an earlier run had written there: where data have a nonce of their run. A copy
    /// has none, and freed blocks may be used again for the same bytes. Null where nothing was found out.
    #[serde(default)]
    pub stale_detectable: Option<bool>,
    /// From what that follows, as a sentence.
    #[serde(default)]
    pub stale_because: Option<String>,
}

/// A file that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// Its path in the corpus.
    pub path: String,
    /// How it differs.
    pub difference: Difference,
    /// The offset of the first byte that differs.
    pub first_byte: Option<u64>,
    /// The offset of the last byte that differs.
    pub last_byte: Option<u64>,
    /// How many bytes differ.
    pub different_bytes: Option<u64>,
    /// How many bits differ.
    #[serde(default)]
    pub different_bits: Option<u64>,
    /// For bytes of another place: the file that they belong to.
    #[serde(default)]
    pub from_file: Option<String>,
    /// For bytes of another place: where in that file the first of them belongs.
    #[serde(default)]
    pub from_byte: Option<u64>,
    /// The ranges that differ, in order, at most the first 16; those of one kind that are closer than 4 KiB are one.
    #[serde(default)]
    pub ranges: Vec<MismatchRange>,
    /// How many ranges there are.
    #[serde(default)]
    pub range_count: Option<u64>,
    /// Whether a second cold read gave the same bytes as the first.
    pub second_read_agrees: Option<bool>,
    /// What a second reading from the drive showed; null where none was tried.
    #[serde(default)]
    pub second_read: Option<SecondRead>,
    /// Why there was no second reading from the drive.
    #[serde(default)]
    pub second_read_because: Option<String>,
    /// Who is to blame, by the rule in `docs/how-we-measure.md`; null where it was not looked for.
    #[serde(default)]
    pub blame: Option<Blame>,
    /// From what that follows, as a sentence.
    #[serde(default)]
    pub blame_because: Option<String>,
    /// What the wrong bytes are, in words: zeros, those of another file, flipped bits.
    pub because: Option<String>,
}

/// A range of a file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MismatchRange {
    /// Where it begins.
    pub first_byte: u64,
    /// From its first differing byte to its last.
    pub bytes: u64,
    /// What is there.
    pub difference: Difference,
    /// How many bits differ in it.
    pub different_bits: u64,
    /// For bytes of another place: the file that they belong to.
    pub from_file: Option<String>,
    /// For bytes of another place: where in that file the first of them belongs.
    pub from_byte: Option<u64>,
}

impl Mismatch {
    /// A file of which nothing more is known than how it differs.
    #[must_use]
    pub fn new(path: impl Into<String>, difference: Difference) -> Self {
        Self {
            path: path.into(),
            difference,
            first_byte: None,
            last_byte: None,
            different_bytes: None,
            different_bits: None,
            from_file: None,
            from_byte: None,
            ranges: Vec::new(),
            range_count: None,
            second_read_agrees: None,
            second_read: None,
            second_read_because: None,
            blame: None,
            blame_because: None,
            because: None,
        }
    }

    /// What a second reading showed and who is to blame: "a second cold read agrees: the target is to blame (…)". Nothing where neither was looked for.
    #[must_use]
    pub fn judgement(&self) -> String {
        let in_brackets = |because: &Option<String>| because.as_ref().map_or_else(String::new, |because| format!(" ({because})"));
        let read = match (self.second_read, self.second_read_agrees) {
            (Some(read), _) => format!("{}{}", read.in_words(), in_brackets(&self.second_read_because)),
            (None, Some(true)) => SecondRead::Agrees.in_words().to_owned(),
            (None, Some(false)) => "a second cold read gave something else".to_owned(),
            (None, None) => String::new(),
        };
        let blame = self.blame.map_or_else(String::new, |blame| format!("{}{}", blame.in_words(), in_brackets(&self.blame_because)));
        if read.is_empty() || blame.is_empty() { format!("{read}{blame}") } else { format!("{read}: {blame}") }
    }
}
