//! Turns a real folder into a spec of the same shape: sizes and depths, without names and content.

use std::path::Path;

use walkdir::WalkDir;

use super::content::{ContentKind, ContentSpec};
use super::spec::{CorpusSpec, SizesSpec, TreeSpec};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Files, OsFiles};
use crate::progress::Cancel;

/// Steps of the table of sizes.
const QUANTILES: usize = 100;
/// Sizes kept for the table: of more files than this a regular sample is taken, so that memory does not grow with the folder.
const SAMPLE: usize = 1 << 18;

/// What a scan left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Symbolic links, FIFOs, sockets, devices.
    pub not_files: u64,
    /// What could not be looked at.
    pub unreadable: u64,
    /// Directories without files in them.
    pub empty_directories: u64,
}

/// Scans a folder. Symbolic links are not followed.
///
/// # Errors
/// `Refused` when the folder holds no file, what the system answered to opening it, `Interrupted`.
pub fn scan(folder: &Path, name: &str, cancel: &Cancel) -> Result<(CorpusSpec, LeftOut)> {
    OsFiles.open_root(folder).during("open", Side::Source, folder)?;
    let mut left_out = LeftOut::default();
    let mut directories: Vec<u64> = Vec::new();
    let mut files: Vec<u64> = Vec::new();
    let mut sizes = Sample::default();
    let (mut count, mut bytes) = (0_u64, 0_u64);
    for entry in WalkDir::new(folder) {
        cancel.check()?;
        let looked = entry.and_then(|entry| Ok((entry.depth(), entry.file_type(), entry.metadata()?.len())));
        let Ok((depth, file_type, len)) = looked else {
            left_out.unreadable += 1;
            continue;
        };
        if file_type.is_dir() {
            bump(&mut directories, depth);
        } else if file_type.is_file() {
            bump(&mut files, depth.saturating_sub(1));
            sizes.add(len);
            count += 1;
            bytes = bytes.saturating_add(len);
        } else {
            left_out.not_files += 1;
        }
    }
    if count == 0 {
        return Err(Error::Refused(format!("{} holds no files to take the shape of", folder.display())));
    }
    // Directories below the deepest file hold none.
    left_out.empty_directories = directories.iter().skip(files.len()).sum();
    directories.resize(files.len(), 0);
    let mut table = sizes.quantiles();
    if table.last() == Some(&0) {
        table.pop();
        table.push(1);
    }
    let spec = CorpusSpec {
        name: name.to_owned(),
        version: 1,
        summary: format!("the shape of a folder of {}", crate::units::files(count)),
        noun: "files".to_owned(),
        files: count,
        bytes,
        sizes: SizesSpec::Quantiles(table),
        tree: TreeSpec::Nested { directories, files },
        content: ContentSpec::of(ContentKind::Random),
    };
    // What was scanned is what can be read back: a folder that can't be described is refused here, not when it is used.
    let text = toml::to_string(&spec).map_err(|error| Error::Internal(error.to_string()))?;
    CorpusSpec::parse(&text).map_err(|reason| Error::Refused(format!("{} can't be described: {reason}", folder.display())))?;
    Ok((spec, left_out))
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
