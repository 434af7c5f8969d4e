//! A corpus as it is written in TOML: what there is of it, how big, how it is laid out, what it contains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::ContentSpec;
use crate::units::Scale;

/// A corpus. Counts and bytes are those at 100 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorpusSpec {
    /// Name: letters, digits and dashes.
    pub name: String,
    /// Raised whenever a byte, name, size or time of it changes.
    pub version: u32,
    /// One sentence for `list` and `show`.
    pub summary: String,
    /// What a person calls its files: "photos".
    #[serde(default = "default_noun")]
    pub noun: String,
    /// Number of files.
    pub files: u64,
    /// Their bytes in all.
    pub bytes: u64,
    /// How the bytes are spread over the files.
    pub sizes: SizesSpec,
    /// Names and directories.
    pub tree: TreeSpec,
    /// What the files contain.
    pub content: ContentSpec,
}

fn default_noun() -> String {
    "files".to_owned()
}

/// How sizes are spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum SizesSpec {
    /// Log-normal: most files near the median, a long tail of big ones.
    Lognormal {
        /// Standard deviation of the logarithm, in hundredths: 45 means that two thirds of the files lie within a factor of e^0.45 of the median.
        sigma_hundredths: u32,
        /// No file is smaller.
        #[serde(default)]
        least_bytes: u64,
    },
    /// By a table of sizes at even steps of the cumulative distribution, smallest first, as `corpus scan` finds it.
    Quantiles(Vec<u64>),
}

/// How names and directories are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TreeSpec {
    /// `DCIM/100MEDIA/IMG_0001.JPG`: the folders of a camera.
    Camera {
        /// Mean number of pictures in a folder.
        files_per_folder: u64,
    },
    /// `Artist/Album/01 Title.mp3`: a music collection.
    Albums {
        /// Mean number of songs on an album.
        songs_per_album: u64,
        /// Mean number of albums of an artist.
        albums_per_artist: u64,
    },
    /// `file-01.bin`: numbered files in one folder.
    Numbered {
        /// What stands before the number.
        prefix: String,
        /// What stands after it.
        suffix: String,
    },
    /// `node_modules/name/dist/part/file.js`: installed source packages, deep and narrow.
    Packages {
        /// Mean number of files in a package.
        files_per_package: u64,
    },
    /// `d1/d2/f3.bin`: the shape of a real folder, depth by depth, as `corpus scan` finds it.
    Nested {
        /// Number of directories at each depth; the first is the folder itself and so 1.
        directories: Vec<u64>,
        /// Number of files directly in the directories of each depth.
        files: Vec<u64>,
    },
}

/// The most files of a corpus at 100 %.
const MOST_FILES: u64 = 100_000_000;
/// The most bytes: sums of a hundred times as many still fit into 64 bits.
const MOST_BYTES: u64 = 10_000_000_000_000_000;
/// The largest mean number of files in a folder, album or package: their names are made together.
const LARGEST_MEAN: u64 = 10_000;

/// So many directories may be empty, and so many more for each file.
const MOST_EMPTY_DIRECTORIES: u64 = 1_000_000;
const DIRECTORIES_PER_FILE: u64 = 100;

impl CorpusSpec {
    /// Reads a spec.
    ///
    /// # Errors
    /// A text that names line, column and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spec: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks what its form can't tell: ranges, and keys that belong together.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err(format!("name = \"{}\": a corpus is named by letters, digits and dashes", self.name.escape_debug()));
        }
        if !self.name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(format!("name = \"{}\": a name begins with a letter or a digit", self.name.escape_debug()));
        }
        if self.files == 0 || self.files > MOST_FILES {
            return Err(format!("files = {}: a corpus has at least one file and at most {MOST_FILES}", self.files));
        }
        if self.bytes > MOST_BYTES {
            return Err(format!("bytes = {}: a corpus has at most {MOST_BYTES} bytes", self.bytes));
        }
        match &self.sizes {
            SizesSpec::Quantiles(table) if table.len() < 2 || table.len() > 10_000 => {
                return Err("sizes.quantiles: give between 2 and 10,000 sizes".to_owned());
            }
            SizesSpec::Quantiles(table) if table.is_sorted() && table.last() > Some(&0) => {}
            SizesSpec::Quantiles(_) => return Err("sizes.quantiles: sizes go from the smallest to the largest, which is above 0".to_owned()),
            SizesSpec::Lognormal { sigma_hundredths, .. } if *sigma_hundredths > 400 => {
                return Err("sizes.lognormal.sigma_hundredths: at most 400".to_owned());
            }
            SizesSpec::Lognormal { least_bytes, .. } if least_bytes.checked_mul(self.files).is_none_or(|least| least > self.bytes) => {
                return Err("sizes.lognormal.least_bytes: times files it is more than bytes".to_owned());
            }
            SizesSpec::Lognormal { .. } => {}
        }
        match &self.tree {
            TreeSpec::Camera { files_per_folder: mean } | TreeSpec::Packages { files_per_package: mean } if !(1..=LARGEST_MEAN).contains(mean) => {
                Err(format!("tree: a mean number is between 1 and {LARGEST_MEAN}"))
            }
            TreeSpec::Albums { songs_per_album, albums_per_artist }
                if !(1..=LARGEST_MEAN).contains(songs_per_album) || !(1..=LARGEST_MEAN).contains(albums_per_artist) =>
            {
                Err(format!("tree: a mean number is between 1 and {LARGEST_MEAN}"))
            }
            TreeSpec::Numbered { prefix, suffix } if !portable(prefix) || !portable(suffix) => {
                Err("tree.numbered: prefix and suffix hold letters, digits, dashes, underscores and dots only, 100 at most".to_owned())
            }
            TreeSpec::Nested { directories, files } => {
                let fits = directories.len() == files.len() && directories.first() == Some(&1) && !directories.contains(&0);
                let depth_fits = directories.len() <= 64;
                let sum = |counts: &[u64]| counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
                // All directories are gone through to find those with files.
                let most_directories = MOST_EMPTY_DIRECTORIES + DIRECTORIES_PER_FILE * self.files;
                if fits && depth_fits && sum(directories).is_none_or(|sum| sum > most_directories) {
                    Err(format!("tree.nested.directories: at most {most_directories} directories for {} files", self.files))
                } else if fits && depth_fits && sum(files) == Some(self.files) {
                    Ok(())
                } else {
                    Err("tree.nested: directories and files have one entry a depth (at most 64), directories begin with 1 and are never 0, \
                         and the files add up to the number of files"
                        .to_owned())
                }
            }
            _ => Ok(()),
        }?;
        super::content::content(&self.content).map(|_| ())
    }

    /// The number of files and bytes at a scale: above 64 files the count scales, rounded up; at or below, the sizes do.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> (u64, u64) {
        if self.files > 64 { (scale.of(self.files), scale.of(self.bytes)) } else { (self.files, scale.of(self.bytes)) }
    }
}

fn portable(part: &str) -> bool {
    part.len() <= 100 && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_whose_directories_take_for_ever_is_refused() {
        let spec = |directories: &str| {
            CorpusSpec::parse(&format!(
                "name = 'x'\nversion = 1\nsummary = ''\nfiles = 1\nbytes = 1\nsizes = {{ quantiles = [0, 1] }}\ncontent = {{ kind = 'zero' }}\n\
                 tree = {{ nested = {{ directories = {directories}, files = [0, 0, 1] }} }}\n"
            ))
        };
        assert!(spec("[1, 1000, 999000]").is_ok());
        for directories in ["[1, 9223372036854775807, 1]", "[1, 9223372036854775807, 9223372036854775807]", "[1, 1000, 1000000]"] {
            assert!(spec(directories).unwrap_err().starts_with("tree.nested.directories: at most 1000100 directories for 1 files"), "{directories}");
        }
    }
}
