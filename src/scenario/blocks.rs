//! Where the data of a tree lie, from a sample of its files.

use std::path::Path;

use crate::corpus::manifest::Manifest;
use crate::platform::{Extents, Files, Handle};

/// Files that are looked at.
const SAMPLE: u64 = 64;

/// What a sample of files says about their blocks.
#[derive(Debug, Default, Clone, Copy)]
pub struct Blocks {
    /// Share of their bytes in extents that other files share.
    pub shared_share: Option<f64>,
    /// Share of their bytes in extents that the file system encoded (compressed).
    pub encoded_share: Option<f64>,
    /// Bytes allocated over their length.
    pub stored_share: Option<f64>,
}

/// Looks at a sample of the files that a manifest lists.
#[must_use]
pub fn sample(files: &dyn Files, tree: &Handle, manifest: &Manifest) -> Blocks {
    let stride = manifest.corpus.file_count().div_ceil(SAMPLE).max(1);
    let (mut bytes, mut stored) = (0, 0);
    let mut sum = Extents::default();
    let mut has_extents = true;
    for listed in manifest.entries(files).filter_map(Result::ok).filter(|listed| listed.meta.ordinal % stride == 0) {
        // A file that is missing or can't be looked at is found by the comparison.
        let Ok(file) = files.open(tree, Path::new(&listed.meta.path)) else { continue };
        let Ok(stat) = files.stat(&file) else { continue };
        bytes += stat.len;
        stored += stat.stored_bytes;
        match files.extents(&file) {
            Ok(extents) => {
                sum.mapped_bytes += extents.mapped_bytes;
                sum.shared_bytes += extents.shared_bytes;
                sum.encoded_bytes += extents.encoded_bytes;
            }
            Err(_) => has_extents = false,
        }
    }
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    // A file system that counts no blocks (stored 0) tells nothing about compression.
    Blocks {
        shared_share: share(sum.shared_bytes, sum.mapped_bytes).filter(|_| has_extents),
        encoded_share: share(sum.encoded_bytes, sum.mapped_bytes).filter(|_| has_extents),
        stored_share: share(stored, bytes).filter(|&share| share > 0.0),
    }
}
