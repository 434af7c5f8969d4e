//! A corpus as it is written in TOML: what there is of it, how big, how it is laid out, what it contains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::ContentSpec;
use crate::units::Scale;

/// A corpus. Counts and bytes are those at 100 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct CorpusSpec {
    /// Name: letters, digits and dashes.
    pub name: String,
    /// Raised whenever a byte, name, size or time of it changes.
    pub version: u32,
    /// One sentence for `list` and `show`.
    pub summary: String,
    /// What a person calls its files: "photos".
    pub noun: String,
    /// What it consists of, in the order of its paths: one part without a directory, or any number of parts with one each.
    pub parts: Vec<PartSpec>,
}

/// Files of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSpec {
    /// The directory that they lie in, `lib` or `share/icons`; empty when they are all that the corpus has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
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

/// The form in which a corpus is written: the keys of its only part stand beside its name, or each part has a `[[part]]` of its own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    version: u32,
    summary: String,
    #[serde(default = "default_noun")]
    noun: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<SizesSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<TreeSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ContentSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    part: Vec<PartSpec>,
}

fn default_noun() -> String {
    "files".to_owned()
}

impl TryFrom<Written> for CorpusSpec {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { name, version, summary, noun, files, bytes, sizes, tree, content, part: mut parts } = written;
        let keys = [
            ("files", files.is_some()),
            ("bytes", bytes.is_some()),
            ("sizes", sizes.is_some()),
            ("tree", tree.is_some()),
            ("content", content.is_some()),
        ];
        let first = |is_there| keys.iter().find(|(_, there)| *there == is_there).map_or("", |(key, _)| *key);
        match (files, bytes, sizes, tree, content) {
            (Some(files), Some(bytes), Some(sizes), Some(tree), Some(content)) if parts.is_empty() => {
                parts.push(PartSpec { directory: String::new(), files, bytes, sizes, tree, content });
            }
            (None, None, None, None, None) if !parts.is_empty() => {
                if parts.iter().any(|part| part.directory.is_empty()) {
                    return Err("missing key `directory`: each [[part]] has one of its own".to_owned());
                }
                parts.sort_by_cached_key(PartSpec::place);
            }
            _ if parts.is_empty() => {
                return Err(format!(
                    "missing key `{}`: a corpus has files, bytes, sizes, tree and content, or parts that do ([[part]])",
                    first(false)
                ));
            }
            _ => return Err(format!("the key `{}` stands beside [[part]]: it belongs into each part", first(true))),
        }
        Ok(Self { name, version, summary, noun, parts })
    }
}

impl From<CorpusSpec> for Written {
    fn from(spec: CorpusSpec) -> Self {
        let CorpusSpec { name, version, summary, noun, parts } = spec;
        let mut written = Self { name, version, summary, noun, files: None, bytes: None, sizes: None, tree: None, content: None, part: Vec::new() };
        for part in parts {
            if part.directory.is_empty() {
                written.files = Some(part.files);
                written.bytes = Some(part.bytes);
                written.sizes = Some(part.sizes);
                written.tree = Some(part.tree);
                written.content = Some(part.content);
            } else {
                written.part.push(part);
            }
        }
        written
    }
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
    /// `libcache-loader.so.5`, or `map/cache-loader.xml` in folders: files named by two words, as the files of a program are.
    Named {
        /// What stands before the words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
        /// What stands after them, each as likely as any other.
        endings: Vec<String>,
        /// Mean number of files in a folder, which a word names; without it there are no folders.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files_per_folder: Option<u64>,
    },
    /// `3f/a9/06d1…`: named by a hash in two levels of folders, as a cache is kept.
    Hashed {
        /// What stands after the digits.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        suffix: String,
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
/// The most parts of a corpus, and the most endings of names in a part.
const MOST_PARTS: usize = 100;

impl CorpusSpec {
    /// Reads a spec.
    ///
    /// # Errors
    /// A text that names line, column and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let spec = Self::try_from(written)?;
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
        if self.parts.len() > MOST_PARTS {
            return Err(format!("a corpus has at most {MOST_PARTS} parts, not {}", self.parts.len()));
        }
        for part in &self.parts {
            part.check().map_err(|reason| part.error(&reason))?;
        }
        // Where case is ignored as well.
        let places: Vec<String> = self.parts.iter().map(|part| part.place().to_ascii_lowercase()).collect();
        for (index, (part, place)) in self.parts.iter().zip(&places).enumerate() {
            if let Some(other) = (0..places.len()).find(|&other| other != index && place.starts_with(&places[other])) {
                return Err(part.error(&format!("it lies within part \"{}\"", self.parts[other].directory)));
            }
        }
        match self.scaled(Scale::FULL) {
            (files, _) if files > MOST_FILES => Err(format!("files = {files} in all parts: a corpus has at most {MOST_FILES}")),
            (_, bytes) if bytes > MOST_BYTES => Err(format!("bytes = {bytes} in all parts: a corpus has at most {MOST_BYTES}")),
            _ => Ok(()),
        }
    }

    /// The number of files and bytes at a scale, of all parts.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> (u64, u64) {
        let all = self.parts.iter().map(|part| part.scaled(scale));
        all.fold((0, 0), |sum, part| (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1)))
    }
}

impl PartSpec {
    /// What all its paths begin with. Paths are in order when the parts are in the order of these.
    #[must_use]
    pub fn place(&self) -> String {
        if self.directory.is_empty() { String::new() } else { format!("{}/", self.directory) }
    }

    /// What is wrong with it, in a sentence that names it where it has a name.
    #[must_use]
    pub fn error(&self, reason: &str) -> String {
        if self.directory.is_empty() { reason.to_owned() } else { format!("part \"{}\": {reason}", self.directory.escape_debug()) }
    }

    /// The number of files and bytes at a scale: above 64 files the count scales, rounded up; at or below, the sizes do.
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> (u64, u64) {
        if self.files > 64 { (scale.of(self.files), scale.of(self.bytes)) } else { (self.files, scale.of(self.bytes)) }
    }

    fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| portable(name) && !name.starts_with('.') && !name.ends_with('.') && !name.is_empty();
        let is_path = self.directory.split('/').all(is_name) && self.directory.len() <= 100;
        if !self.directory.is_empty() && !is_path {
            return Err("a directory is a relative path of letters, digits, dashes, underscores and dots, at most 100".to_owned());
        }
        if self.files == 0 || self.files > MOST_FILES {
            return Err(format!("files = {}: a corpus has at least one file and at most {MOST_FILES}", self.files));
        }
        if self.bytes > MOST_BYTES {
            return Err(format!("bytes = {}: a corpus has at most {MOST_BYTES} bytes", self.bytes));
        }
        self.check_sizes()?;
        self.check_tree()?;
        super::content::content(&self.content).map(|_| ())
    }

    fn check_sizes(&self) -> Result<(), String> {
        match &self.sizes {
            SizesSpec::Quantiles(table) if table.len() < 2 || table.len() > 10_000 => {
                Err("sizes.quantiles: give between 2 and 10,000 sizes".to_owned())
            }
            SizesSpec::Quantiles(table) if table.is_sorted() && table.last() > Some(&0) => Ok(()),
            SizesSpec::Quantiles(_) => Err("sizes.quantiles: sizes go from the smallest to the largest, which is above 0".to_owned()),
            SizesSpec::Lognormal { sigma_hundredths, .. } if *sigma_hundredths > 400 => {
                Err("sizes.lognormal.sigma_hundredths: at most 400".to_owned())
            }
            SizesSpec::Lognormal { least_bytes, .. } if least_bytes.checked_mul(self.files).is_none_or(|least| least > self.bytes) => {
                Err("sizes.lognormal.least_bytes: times files it is more than bytes".to_owned())
            }
            SizesSpec::Lognormal { .. } => Ok(()),
        }
    }

    fn check_tree(&self) -> Result<(), String> {
        match &self.tree {
            TreeSpec::Camera { files_per_folder: mean } | TreeSpec::Packages { files_per_package: mean } if !(1..=LARGEST_MEAN).contains(mean) => {
                Err(format!("tree: a mean number is between 1 and {LARGEST_MEAN}"))
            }
            TreeSpec::Albums { songs_per_album, albums_per_artist }
                if !(1..=LARGEST_MEAN).contains(songs_per_album) || !(1..=LARGEST_MEAN).contains(albums_per_artist) =>
            {
                Err(format!("tree: a mean number is between 1 and {LARGEST_MEAN}"))
            }
            TreeSpec::Named { files_per_folder: Some(mean), .. } if !(1..=LARGEST_MEAN).contains(mean) => {
                Err(format!("tree: a mean number is between 1 and {LARGEST_MEAN}"))
            }
            TreeSpec::Named { prefix, endings, .. }
                if !portable(prefix) || endings.iter().any(|ending| !portable(ending) || ending.ends_with('.')) =>
            {
                Err("tree.named: prefix and endings hold letters, digits, dashes, underscores and dots only, 100 at most".to_owned())
            }
            TreeSpec::Named { endings, .. } if endings.is_empty() || endings.len() > MOST_PARTS => {
                Err(format!("tree.named.endings: give between 1 and {MOST_PARTS}"))
            }
            TreeSpec::Hashed { suffix } if !portable(suffix) || suffix.ends_with('.') => {
                Err("tree.hashed: suffix holds letters, digits, dashes, underscores and dots only, 100 at most".to_owned())
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
        }
    }
}

fn portable(part: &str) -> bool {
    part.len() <= 100 && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = 'x'\nversion = 1\nsummary = ''\n";
    const OWN: &str = "files = 3\nbytes = 30\nsizes = { quantiles = [0, 1] }\ntree = { hashed = {} }\ncontent = { kind = 'zero' }\n";

    fn part(directory: &str) -> String {
        format!("[[part]]\ndirectory = '{directory}'\n{OWN}")
    }

    fn refusal(text: &str) -> String {
        CorpusSpec::parse(&format!("{HEAD}{text}")).expect_err(text)
    }

    #[test]
    fn a_corpus_has_keys_of_its_own_or_parts() {
        assert_eq!(refusal(""), "missing key `files`: a corpus has files, bytes, sizes, tree and content, or parts that do ([[part]])");
        assert!(refusal("files = 1\nbytes = 1\n").starts_with("missing key `sizes`"));
        assert_eq!(refusal(&format!("{OWN}{}", part("lib"))), "the key `files` stands beside [[part]]: it belongs into each part");
        assert_eq!(refusal(&format!("bytes = 1\n{}", part("lib"))), "the key `bytes` stands beside [[part]]: it belongs into each part");
        assert_eq!(refusal(&format!("[[part]]\n{OWN}")), "missing key `directory`: each [[part]] has one of its own");
        let unknown = refusal(&format!("{}file = 3\n", part("lib")));
        assert!(unknown.contains("line 11") && unknown.contains("unknown field `file`"), "{unknown}");
        assert!(refusal(&format!("directory = 'lib'\n{OWN}")).contains("unknown field `directory`"));
    }

    #[test]
    fn parts_are_named_where_something_is_wrong_with_them() {
        let wrong = |from: &str, to: &str| refusal(&(part("bin") + &part("lib/a").replace(from, to)));
        assert!(wrong("files = 3", "files = 0").starts_with("part \"lib/a\": files = 0: a corpus has at least one file"));
        assert!(wrong("'zero'", "'compressible'").starts_with("part \"lib/a\": content of kind \"compressible\" needs the key"));
        for tree in
            ["named = { endings = [] }", "named = { endings = ['/'] }", "named = { endings = ['x.'] }", "named = { prefix = '/', endings = [''] }"]
        {
            assert!(wrong("hashed = {}", tree).starts_with("part \"lib/a\": tree.named"), "{tree}");
        }
        assert!(wrong("hashed = {}", "named = { endings = [''], files_per_folder = 0 }").contains("a mean number is between"));
        assert!(wrong("hashed = {}", "hashed = { suffix = '/' }").starts_with("part \"lib/a\": tree.hashed"));
        for directory in ["/lib", "lib/", "a//b", "..", "a/../b", ".a", "a.", "a b", "ä"] {
            assert!(refusal(&part(directory)).ends_with("dashes, underscores and dots, at most 100"), "{directory}");
        }
        assert!(
            refusal(&(part("a").replace("files = 3", "files = 60000000") + &part("b").replace("files = 3", "files = 60000000")))
                .contains("in all parts")
        );
        assert!(refusal(&(0..101).map(|index| part(&format!("p{index}"))).collect::<String>()).contains("at most 100 parts"));
    }

    #[test]
    fn no_part_lies_within_another() {
        for (outer, inner) in [("lib", "lib/a"), ("lib", "lib"), ("lib", "LIB"), ("LIB", "lib/a/b")] {
            for text in [part(outer) + &part(inner), part(inner) + &part("m") + &part(outer)] {
                assert!(refusal(&text).contains("it lies within part"), "{text}");
            }
        }
        for (one, other) in [("lib", "library"), ("lib", "lib-a"), ("lib/a", "lib/b")] {
            assert!(CorpusSpec::parse(&format!("{HEAD}{}{}", part(one), part(other))).is_ok());
        }
    }

    #[test]
    fn parts_are_kept_in_the_order_of_their_paths_and_written_as_they_are_read() {
        let text = format!("{HEAD}{}{}{}", part("lib"), part("lib-a"), part("bin"));
        let spec = CorpusSpec::parse(&text).expect("a spec");
        // A dash comes before a slash.
        assert_eq!(spec.parts.iter().map(|part| &*part.directory).collect::<Vec<_>>(), ["bin", "lib-a", "lib"]);
        assert_eq!(spec.scaled(Scale::FULL), (9, 90));
        let written = toml::to_string(&spec).expect("can be written");
        assert_eq!(CorpusSpec::parse(&written), Ok(spec.clone()), "{written}");
        let json = serde_json::to_string(&spec).expect("can be written");
        assert_eq!(serde_json::from_str::<CorpusSpec>(&json).ok(), Some(spec));
        let plain = CorpusSpec::parse(&format!("{HEAD}{OWN}")).expect("a spec");
        let expected = r#"{"name":"x","version":1,"summary":"","noun":"files","files":3,"bytes":30,"sizes":{"quantiles":[0,1]},"tree":{"hashed":{}},"content":{"kind":"zero"}}"#;
        assert_eq!(serde_json::to_string(&plain).expect("can be written"), expected);
    }

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
