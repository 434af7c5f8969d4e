//! Turns a real folder into a spec of the same shape: sizes and depths, without names and content.

use std::collections::HashSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use walkdir::WalkDir;

use super::content::{ContentKind, ContentSpec};
use super::spec::{CorpusSpec, PartSpec, SizesSpec, TreeSpec};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Files, OsFiles};
use crate::progress::Cancel;
use crate::units::{count, files};

/// Steps of the table of sizes.
const QUANTILES: usize = 100;
/// Sizes kept for the table: of more files than this a regular sample is taken, so that memory does not grow with the folder.
const SAMPLE: usize = 1 << 18;

/// What a scan left out, by kind, and what a person might count in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remarks {
    /// Symbolic links: not followed, wherever they lead.
    pub links: u64,
    /// FIFOs.
    pub pipes: u64,
    /// Sockets.
    pub sockets: u64,
    /// Block and character devices.
    pub devices: u64,
    /// What could not be looked at.
    pub unreadable: u64,
    /// Directories without files in them.
    pub empty_directories: u64,
    /// Further names of files that were counted already (hard links). Each counts as a file of its own, as a copier that goes by names moves it.
    pub further_names: u64,
    /// Files stored in less than half of their length: with holes, or compressed. They count by their length, which is what a copy has to hold.
    pub sparse_files: u64,
}

impl Remarks {
    fn left_out(&mut self, kind: std::fs::FileType) {
        let number = match kind {
            kind if kind.is_symlink() => &mut self.links,
            kind if kind.is_fifo() => &mut self.pipes,
            kind if kind.is_socket() => &mut self.sockets,
            _ => &mut self.devices,
        };
        *number += 1;
    }

    /// What is to be said, a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let listed = |parts: &[(u64, &str, &str)]| {
            let parts = parts
                .iter()
                .filter(|part| part.0 > 0)
                .map(|&(number, one, many)| format!("{} {}", count(number), if number == 1 { one } else { many }));
            parts.collect::<Vec<_>>().join(", ")
        };
        let left_out = listed(&[
            (self.links, "symbolic link", "symbolic links"),
            (self.pipes, "FIFO", "FIFOs"),
            (self.sockets, "socket", "sockets"),
            (self.devices, "device", "devices"),
            (self.unreadable, "that can't be looked at", "that can't be looked at"),
            (self.empty_directories, "directory without files below the deepest file", "directories without files below the deepest file"),
        ]);
        let sentences = [
            (!left_out.is_empty()).then(|| format!("left out: {left_out}")),
            (self.further_names > 0)
                .then(|| format!("counted as files of their own: {} further names of files (hard links)", count(self.further_names))),
            (self.sparse_files > 0).then(|| format!("counted by their length: {} with holes, or compressed", files(self.sparse_files))),
        ];
        sentences.into_iter().flatten().collect()
    }
}

/// Names of files with several names that are remembered, to tell the first name from the others; of more, each name counts as the first.
const NAMES: usize = 1 << 20;

/// Scans a folder. Symbolic links are not followed, nothing is opened but directories, and `each` is told how many files were seen.
///
/// # Errors
/// `Refused` when the folder holds no file, what the system answered to opening it, `Interrupted`.
pub fn scan(folder: &Path, name: &str, cancel: &Cancel, each: &mut dyn FnMut(u64)) -> Result<(CorpusSpec, Remarks)> {
    OsFiles.open_root(folder).during("open", Side::Source, folder)?;
    let mut remarks = Remarks::default();
    let mut known: HashSet<(u64, u64)> = HashSet::new();
    let mut directories: Vec<u64> = Vec::new();
    let mut levels: Vec<u64> = Vec::new();
    let mut sizes = Sample::default();
    let (mut seen, mut bytes) = (0_u64, 0_u64);
    for entry in WalkDir::new(folder) {
        cancel.check()?;
        let looked = entry.and_then(|entry| {
            // A directory that can't be looked into is told once, when it is opened.
            let metadata = if entry.file_type().is_dir() { None } else { Some(entry.metadata()?) };
            Ok((entry.depth(), entry.file_type(), metadata))
        });
        let Ok((depth, file_type, metadata)) = looked else {
            remarks.unreadable += 1;
            continue;
        };
        let Some(metadata) = metadata else {
            bump(&mut directories, depth);
            continue;
        };
        if file_type.is_file() {
            bump(&mut levels, depth.saturating_sub(1));
            sizes.add(metadata.len());
            seen += 1;
            bytes = bytes.saturating_add(metadata.len());
            remarks.sparse_files += u64::from(metadata.len() > 1 << 16 && metadata.blocks() * 512 < metadata.len() / 2);
            if metadata.nlink() > 1 && known.len() < NAMES {
                remarks.further_names += u64::from(!known.insert((metadata.dev(), metadata.ino())));
            }
            each(seen);
        } else {
            remarks.left_out(file_type);
        }
    }
    if seen == 0 {
        return Err(Error::Refused(format!("{} holds no files to take the shape of", folder.display())));
    }
    // Directories below the deepest file hold none.
    remarks.empty_directories = directories.iter().skip(levels.len()).sum();
    directories.resize(levels.len(), 0);
    let mut table = sizes.quantiles();
    if table.last() == Some(&0) {
        table.pop();
        table.push(1);
    }
    let spec = CorpusSpec {
        name: name.to_owned(),
        version: 1,
        summary: format!("the shape of a folder of {}", files(seen)),
        noun: "files".to_owned(),
        parts: vec![PartSpec {
            directory: String::new(),
            files: seen,
            bytes,
            sizes: SizesSpec::Quantiles(table),
            tree: TreeSpec::Nested { directories, files: levels },
            content: ContentSpec::of(ContentKind::Random),
        }],
    };
    // What was scanned is what can be read back: a folder that can't be described is refused here, not when it is used.
    let text = toml::to_string(&spec).map_err(|error| Error::Internal(error.to_string()))?;
    CorpusSpec::parse(&text).map_err(|reason| Error::Refused(format!("{} can't be described: {reason}", folder.display())))?;
    Ok((spec, remarks))
}

fn bump(counts: &mut Vec<u64>, depth: usize) {
    if counts.len() <= depth {
        counts.resize(depth + 1, 0);
    }
    counts[depth] += 1;
}

/// Every size, or every second, fourth … of them.
#[derive(Default)]
struct Sample {
    kept: Vec<u64>,
    seen: u64,
    stride_log2: u32,
}

impl Sample {
    fn add(&mut self, size: u64) {
        if self.seen.trailing_zeros() >= self.stride_log2 {
            self.kept.push(size);
        }
        self.seen += 1;
        if self.kept.len() == SAMPLE {
            let mut index = 0_u32;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride_log2 += 1;
        }
    }

    fn quantiles(mut self) -> Vec<u64> {
        self.kept.sort_unstable();
        let last = self.kept.len() - 1;
        (0..=QUANTILES).map(|step| self.kept[last * step / QUANTILES]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_many_keeps_their_distribution() {
        let mut sample = Sample::default();
        for size in 0..1_000_000 {
            sample.add(size);
        }
        assert!(sample.kept.len() < SAMPLE);
        let table = sample.quantiles();
        assert_eq!(table.len(), QUANTILES + 1);
        for (step, &size) in table.iter().enumerate() {
            assert!(size.abs_diff(step as u64 * 10_000) < 100, "{step}: {size}");
        }
    }
}
