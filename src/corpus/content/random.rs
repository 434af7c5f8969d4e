//! Content: the keystream itself.

use super::keystream::Keystream;
use super::{Content, FileBytes};

/// Incompressible bytes of which no block occurs twice.
pub(super) struct Random;

impl Content for Random {
    fn min_len(&self) -> u64 {
        0
    }

    fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]) {
        Keystream::of(file).fill(offset, buffer);
    }
}
