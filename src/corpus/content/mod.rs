//! What files contain: one kind of content per file below this directory, and the table of them.

/// A file whose bytes are wanted: all that its content may depend on.
#[derive(Debug, Clone, Copy)]
pub struct FileBytes<'a> {
    /// The key of the corpus (name, version and seed).
    pub key: &'a [u8; 32],
    /// Which file of the corpus: selects its keystream.
    pub ordinal: u64,
    /// Path within the corpus, with `/`.
    pub path: &'a str,
    /// Length in bytes.
    pub len: u64,
    /// Modification time, seconds since 1970.
    pub mtime: i64,
}

/// A kind of content: a pure function from file and place to bytes.
pub trait Content: Send + Sync {
    /// The smallest file that this kind can make.
    fn min_len(&self) -> u64;

    /// Fills `buffer` with the bytes of the file from `offset` on. `offset + buffer.len()` is at most `file.len`, which is at least `min_len`.
    fn fill(&self, file: &FileBytes<'_>, offset: u64, buffer: &mut [u8]);
}
