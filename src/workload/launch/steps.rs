//! The steps of a program's start, as a person writes and reads them in TOML.

use serde::{Deserialize, Serialize};

/// The largest table of sizes.
const MOST_SIZES: usize = 64;
/// The largest read or write of one step.
const LARGEST: u64 = 16 << 20;
/// A page: what a mapped file is faulted in by, and what all places are multiples of.
pub(super) const PAGE: u64 = 4096;
/// The most things of one step: a start has some ten thousand.
const MOST: u32 = 1_000_000;

/// One step. It says exactly one of `search`, `read`, `map`, `libraries`, `archive`, `write` and `think`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// What the program does in it, as a phrase.
    pub does: String,
    /// How many things it does at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_once: u32,
    /// Processor time that it thinks meanwhile, spread evenly over what it does, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub think_ms: u32,
    /// Looks for files that are not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<SearchSpec>,
    /// Reads files from beginning to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<ReadSpec>,
    /// Maps files and faults pages of them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<MapSpec>,
    /// Loads libraries, each after those that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    libraries: Option<LibrariesSpec>,
    /// Reads entries of archives, whose index stands at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archive: Option<ArchiveSpec>,
    /// Writes files and gives them their names when they are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write: Option<WriteSpec>,
}

/// Failed look-ups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// The directory of the tree in which it looks.
    pub from: String,
    /// Opens of names that are not there.
    pub misses: u32,
}

/// Whole reads: each file is opened, looked at, read from its beginning and closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadSpec {
    /// The directory of the tree whose files are read.
    pub from: String,
    /// How many of them, spread evenly; all where there are fewer.
    pub files: u32,
    /// So much of each is read; all of it where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bytes: Option<u64>,
    /// The size of one read.
    #[serde(default = "block")]
    pub block_bytes: u64,
}

/// Mapped files, faulted in at many random places, a few times next to each other at each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapSpec {
    /// The directory of the tree whose files are mapped.
    pub from: String,
    /// How many of them, spread evenly; all where there are fewer.
    pub files: u32,
    /// Faults in all files together, in proportion to their length.
    pub faults: u32,
    /// How much is read around each fault: a page, or more as systems do.
    #[serde(default = "page")]
    pub around_bytes: u64,
    /// Faults next to each other at each place.
    #[serde(default = "one")]
    pub run: u32,
}

/// Libraries: searched for along a path, their first page read, then mapped and faulted in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibrariesSpec {
    /// The directory of the tree that holds them.
    pub from: String,
    /// How many of them, spread evenly; all where there are fewer.
    pub files: u32,
    /// Directories of the search path in which each is not, before the one in which it is.
    #[serde(default)]
    pub misses_each: u32,
    /// Faults in all libraries together, in proportion to their length.
    pub faults: u32,
    /// How much is read around each fault: a page, or more as systems do.
    #[serde(default = "page")]
    pub around_bytes: u64,
    /// Faults next to each other at each place.
    #[serde(default = "one")]
    pub run: u32,
}

/// Archives: the index at the end is read first, then entries at random places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSpec {
    /// The directory of the tree that holds them.
    pub from: String,
    /// How many of them, spread evenly; all where there are fewer.
    pub files: u32,
    /// Reads of each size, in all archives together, in proportion to their length; those of the indexes are not among them.
    pub reads: Vec<SizedReads>,
    /// Reads that follow each other at each place.
    #[serde(default = "one")]
    pub run: u32,
}

/// Reads of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizedReads {
    /// The size of each: a multiple of 4096.
    pub bytes: u64,
    /// How many.
    pub n: u32,
}

/// Files written under another name and renamed when they are whole, as programs save their settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteSpec {
    /// How many.
    pub files: u32,
    /// Bytes in each.
    pub bytes: u64,
    /// The size of one write.
    #[serde(default = "block")]
    pub block_bytes: u64,
    /// How many of the files are flushed before they are renamed.
    #[serde(default)]
    pub flushed: u32,
}

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does<'a> {
    Search(&'a SearchSpec),
    Read(&'a ReadSpec),
    Map(&'a MapSpec),
    Libraries(&'a LibrariesSpec),
    Archive(&'a ArchiveSpec),
    Write(&'a WriteSpec),
    Think,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn page() -> u64 {
    PAGE
}

fn block() -> u64 {
    128 << 10
}

impl StepSpec {
    /// What it does: thinking alone where it says nothing else.
    pub(super) fn does(&self) -> Does<'_> {
        self.all().into_iter().flatten().next().unwrap_or(Does::Think)
    }

    fn all(&self) -> [Option<Does<'_>>; 6] {
        [
            self.search.as_ref().map(Does::Search),
            self.read.as_ref().map(Does::Read),
            self.map.as_ref().map(Does::Map),
            self.libraries.as_ref().map(Does::Libraries),
            self.archive.as_ref().map(Does::Archive),
            self.write.as_ref().map(Does::Write),
        ]
    }

    /// Checks what its form can't tell.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        let refuse = |what: String| Err(format!("step \"{}\": {what}", self.does));
        let said = self.all().iter().flatten().count();
        if said > 1 || (said == 0 && self.think_ms == 0) {
            return refuse("say one of search, read, map, libraries, archive and write, or think_ms alone".to_owned());
        }
        if !(1..=64).contains(&self.at_once) {
            return refuse("at_once: between 1 and 64".to_owned());
        }
        if self.think_ms > 3_600_000 {
            return refuse("think_ms: an hour at most".to_owned());
        }
        let counted = |key: &str, number: u32| if (1..=MOST).contains(&number) { Ok(()) } else { refuse(format!("{key}: between 1 and {MOST}")) };
        let sized = |key: &str, bytes: u64| {
            if bytes.is_multiple_of(PAGE) && (PAGE..=LARGEST).contains(&bytes) {
                Ok(())
            } else {
                refuse(format!("{key}: a multiple of {PAGE}, at most {LARGEST}"))
            }
        };
        match self.does() {
            Does::Search(search) => counted("search.misses", search.misses),
            Does::Read(read) if read.first_bytes == Some(0) => refuse("read.first_bytes: at least 1".to_owned()),
            Does::Read(read) => counted("read.files", read.files).and(sized("read.block_bytes", read.block_bytes)),
            Does::Map(map) => counted("map.files", map.files)
                .and(counted("map.faults", map.faults))
                .and(counted("map.run", map.run))
                .and(sized("map.around_bytes", map.around_bytes)),
            Does::Libraries(libraries) => {
                if libraries.misses_each > 64 {
                    return refuse("libraries.misses_each: at most 64".to_owned());
                }
                counted("libraries.files", libraries.files)
                    .and(counted("libraries.faults", libraries.faults))
                    .and(counted("libraries.run", libraries.run))
                    .and(sized("libraries.around_bytes", libraries.around_bytes))
            }
            Does::Archive(archive) => {
                if archive.reads.is_empty() || archive.reads.len() > MOST_SIZES {
                    return refuse(format!("archive.reads: between 1 and {MOST_SIZES} sizes"));
                }
                archive.reads.iter().try_for_each(|reads| sized("archive.reads.bytes", reads.bytes).and(counted("archive.reads.n", reads.n)))?;
                counted("archive.files", archive.files).and(counted("archive.run", archive.run))
            }
            Does::Write(write) => {
                if write.bytes == 0 || write.bytes > 1 << 40 {
                    return refuse("write.bytes: between 1 and 1 TiB".to_owned());
                }
                if write.flushed > write.files {
                    return refuse("write.flushed: at most as many as files".to_owned());
                }
                counted("write.files", write.files).and(sized("write.block_bytes", write.block_bytes))
            }
            Does::Think => Ok(()),
        }
    }
}
