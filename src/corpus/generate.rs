//! Writes a corpus to a drive: files in manifest order, hashed while written, the manifest last.

use std::path::Path;

use super::manifest::{self, ManifestWriter};
use super::stream::{Make, hash_stream, with_stream};
use super::{Corpus, tree};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Files, Handle, System, Writer, ignore_unsupported};
use crate::progress::{Cancel, Counter};

/// The directory of a corpus that holds its files, beside the manifest.
pub const FILES: &str = "files";
/// The drive is given what is written of a file whenever so much of it is together: it works while the next bytes are made.
const WRITE_EARLY: u64 = 8 << 20;
/// Files smaller than this are left to the system, which writes many of them at once.
const WORTH_WRITING: u64 = 256 << 10;

/// Makes the corpus below `dir`, an empty directory called `path` in messages: `files/` and then the manifest. Everything is flushed when this returns.
/// `look` is told the bytes written so far after each piece, and may end it.
///
/// # Errors
/// What the system answered, or `Interrupted`; there is no manifest then, and so no corpus.
#[expect(clippy::too_many_arguments, reason = "each is one thing, and none belongs to another")]
pub fn generate(
    system: System<'_>,
    corpus: &Corpus,
    dir: &Handle,
    path: &Path,
    threads: usize,
    counter: &Counter,
    cancel: &Cancel,
    look: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<blake3::Hash> {
    let files = system.files;
    let tree_path = path.join(FILES);
    files.make_dir(dir, Path::new(FILES), 0o755).during("make directory", Side::Source, &tree_path)?;
    let tree = files.open_dir(dir, Path::new(FILES)).during("open", Side::Source, &tree_path)?;
    let unfinished = path.join(manifest::UNFINISHED);
    let list = files.create(dir, Path::new(manifest::UNFINISHED), 0o644).during("create", Side::Source, &unfinished)?;
    let mut list = ManifestWriter::new(files, list, unfinished, corpus)?;
    let mut maker = FileMaker { files, tree: &tree, tree_path: &tree_path, open: None, waiting: 0, last: String::new() };
    with_stream(corpus, threads, Make::Digests, system.clock, |stream| {
        hash_stream(
            stream,
            |chunk| {
                cancel.check()?;
                maker.write(&chunk.file.path, chunk.offset, chunk.data())?;
                counter.add_bytes(chunk.data().len() as u64);
                if chunk.is_last() {
                    maker.finish(chunk.file.mtime)?;
                    counter.add_file();
                }
                look(counter.bytes())
            },
            |listed| list.add(&listed),
        )
    })?;
    files.sync_filesystem(dir).or_else(ignore_unsupported).during("flush", Side::Source, path)?;
    let (root, file) = list.finish()?;
    let name = path.join(manifest::NAME);
    files.sync(&file).or_else(ignore_unsupported).during("flush", Side::Source, &name)?;
    files.close(file).during("close", Side::Source, &name)?;
    files.rename(dir, Path::new(manifest::UNFINISHED), Path::new(manifest::NAME)).during("rename", Side::Source, &name)?;
    files.sync(dir).or_else(ignore_unsupported).during("flush", Side::Source, path)?;
    Ok(root)
}

/// Creates one file after another and the directories that they need.
struct FileMaker<'a> {
    files: &'a dyn Files,
    tree: &'a Handle,
    tree_path: &'a Path,
    open: Option<Handle>,
    /// Bytes of the open file that the drive has not been given yet.
    waiting: u64,
    last: String,
}

impl FileMaker<'_> {
    fn write(&mut self, path: &str, offset: u64, data: &[u8]) -> Result<()> {
        let full = || self.tree_path.join(path);
        if offset == 0 {
            for directory in tree::new_directories(&self.last, path) {
                let made = self.files.make_dir(self.tree, Path::new(directory), 0o755);
                made.during("make directory", Side::Source, self.tree_path.join(directory))?;
            }
            self.last = path.to_owned();
            self.open = Some(self.files.create(self.tree, Path::new(path), 0o644).during("create", Side::Source, full())?);
        }
        let Some(file) = &self.open else {
            return Err(Error::Internal(format!("{path} does not begin at its start")));
        };
        std::io::Write::write_all(&mut Writer { files: self.files, file }, data).during_at(offset, "write to", Side::Source, full())?;
        self.waiting += data.len() as u64;
        if self.waiting >= WRITE_EARLY {
            // Only a matter of speed.
            let _ = self.files.start_writing(file);
            self.waiting = 0;
        }
        Ok(())
    }

    fn finish(&mut self, mtime: i64) -> Result<()> {
        let Some(file) = self.open.take() else { return Ok(()) };
        if self.waiting >= WORTH_WRITING {
            let _ = self.files.start_writing(&file);
        }
        self.waiting = 0;
        let full = || self.tree_path.join(&self.last);
        self.files.set_mtime(&file, (mtime, 0)).during("set the time of", Side::Source, full())?;
        self.files.close(file).during("close", Side::Source, full())
    }
}
