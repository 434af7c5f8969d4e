//! Content: nothing but zero bytes.

use super::{Content, FileBytes};

/// Zero bytes.
pub(super) struct Zero;

impl Content for Zero {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, _file: &FileBytes<'_>, _offset: u64, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}
