//! Where the data of files lie on a drive: pieces, places, and what is shared, encoded or not written.

use std::io;
use std::path::Path;

use crate::corpus::manifest::Manifest;
use crate::platform::{Extents, Files, Handle, Stat};

/// Copied files that are looked at.
const SAMPLE: u64 = 64;
/// The longest extent of ext4; other file systems make longer ones.
const LONGEST_EXTENT: u64 = 128 << 20;
/// Between two pieces of a file a disk that turns loses about as much time as it takes to read this much (10 ms at 100 MB/s).
const SEEK_BYTES: u64 = 1_000_000;
/// Pieces beyond the least that cost more than this share of the reading, and of which there are more than this share of the files, are said.
const NOTICEABLE_PERCENT: u64 = 10;

/// Where the data of some files lie.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    /// The files.
    pub files: u64,
    /// Their lengths, summed.
    pub bytes: u64,
    /// Bytes allocated for them.
    allocated_bytes: u64,
    extents: Extents,
    /// The file system did not tell of one of them at least.
    has_unknown: bool,
}

impl Layout {
    /// Adds a file.
    pub fn add(&mut self, stat: &Stat, extents: io::Result<Extents>) {
        self.files += 1;
        self.bytes += stat.len;
        self.allocated_bytes += stat.stored_bytes;
        match extents {
            Ok(extents) => self.extents += extents,
            Err(_) => self.has_unknown = true,
        }
    }

    /// Looks at a sample of the files that a manifest lists.
    #[must_use]
    pub fn sample(files: &dyn Files, tree: &Handle, manifest: &Manifest) -> Self {
        let stride = manifest.corpus.file_count().div_ceil(SAMPLE).max(1);
        let mut layout = Self::default();
        for listed in manifest.entries(files).filter_map(Result::ok).filter(|listed| listed.meta.ordinal % stride == 0) {
            // A file that is missing or can't be looked at is found by the comparison.
            let Ok(file) = files.open(tree, Path::new(&listed.meta.path)) else { continue };
            let Ok(stat) = files.stat(&file) else { continue };
            layout.add(&stat, files.extents(&file));
        }
        layout
    }

    /// Their extents; `None` where the file system does not tell.
    #[must_use]
    pub fn extents(&self) -> Option<Extents> {
        (!self.has_unknown && self.files > 0).then_some(self.extents)
    }

    /// Share of their bytes in extents that other files share.
    #[must_use]
    pub fn shared_share(&self) -> Option<f64> {
        self.extents().and_then(|extents| share(extents.shared_bytes, extents.mapped_bytes))
    }

    /// Share of their bytes in extents that the file system encoded (compressed).
    #[must_use]
    pub fn encoded_share(&self) -> Option<f64> {
        self.extents().and_then(|extents| share(extents.encoded_bytes, extents.mapped_bytes))
    }

    /// Bytes allocated over their length. A file system that counts no blocks tells nothing by it.
    #[must_use]
    pub fn stored_share(&self) -> Option<f64> {
        share(self.allocated_bytes, self.bytes).filter(|&share| share > 0.0)
    }

    /// Whether they lie in so many more pieces than they have to that reading them is noticeably slower on a disk that turns.
    #[must_use]
    pub fn is_fragmented(&self) -> bool {
        let least = self.files.max(self.bytes.div_ceil(LONGEST_EXTENT));
        let extra = self.extents().map_or(0, |extents| extents.count.saturating_sub(least));
        let above = |part: u64, whole: u64| part.saturating_mul(100) > whole.saturating_mul(NOTICEABLE_PERCENT);
        above(extra, self.files) && above(extra.saturating_mul(SEEK_BYTES), self.bytes)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Kind;

    fn layout(files: u64, len: u64, extents_each: u64) -> Layout {
        let stat = Stat { kind: Kind::File, len, stored_bytes: len, mtime: (0, 0), mode: 0, device: (8, 0), inode: 1, uid: 0 };
        let mut layout = Layout::default();
        for _ in 0..files {
            layout.add(&stat, Ok(Extents { count: extents_each, mapped_bytes: len, ..Extents::default() }));
        }
        layout
    }

    #[test]
    fn pieces_count_where_they_cost_something() {
        assert!(!layout(100, 1_000_000, 1).is_fragmented());
        assert!(layout(100, 1_000_000, 3).is_fragmented());
        // A large file needs several extents, and a few more cost nothing beside its length.
        assert!(!layout(1, 4_000_000_000, 40).is_fragmented());
        assert!(layout(1, 4_000_000_000, 4_000).is_fragmented());
    }

    #[test]
    fn one_file_of_which_nothing_is_told_makes_all_unknown() {
        let mut some = layout(3, 4096, 1);
        assert_eq!(some.shared_share(), Some(0.0));
        let stat = Stat { kind: Kind::File, len: 1, stored_bytes: 0, mtime: (0, 0), mode: 0, device: (8, 0), inode: 1, uid: 0 };
        some.add(&stat, Err(io::ErrorKind::Unsupported.into()));
        assert_eq!((some.shared_share(), some.extents()), (None, None));
    }
}
