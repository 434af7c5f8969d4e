//! Brings a corpus out of this machine's caches before it is read: look, drop, then do not touch the tree.

use std::io;
use std::path::Path;

use crate::corpus::manifest::Manifest;
use crate::corpus::stream::CHUNK_BYTES;
use crate::error::{Context, Result, Side, reason};
use crate::platform::{Handle, System};
use crate::progress::Cancel;
use crate::result::Warmth;

/// Files whose residency is looked at.
const SAMPLE: u64 = 64;
/// So many of them are enough where descriptors are short.
const FEW: usize = 8;
/// How often dropping is repeated while pages remain: pages on their way to a list of the kernel escape a single drop.
const ATTEMPTS: usize = 3;
/// A share of resident pages below this is cold: single pages are shared or busy.
const COLD_SHARE_PERCENT: u64 = 1;

/// What the user wants the caches to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Empty: what a person finds who plugs a drive in.
    Cold,
    /// Full, as far as memory goes.
    Warm,
    /// As they happen to be.
    AsIs,
}

/// What was done and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// How, in words.
    pub method: String,
    /// Content.
    pub data: Warmth,
    /// Names and attributes.
    pub metadata: Warmth,
    /// Bytes of the sample in the cache.
    pub resident_bytes: Option<u64>,
    /// Bytes of the sample in all.
    pub sampled_bytes: u64,
}

/// Prepares the caches for reading the tree that the manifest lists. Everything must be flushed before: dirty pages can't be dropped.
///
/// # Errors
/// What the system answered to opening the corpus's own files, or `Interrupted`. Not being allowed to drop caches is no error: the files are then
/// evicted one by one and their names stay warm.
pub fn prepare(system: System<'_>, manifest: &Manifest, tree: &Handle, path: &Path, wanted: Wanted, cancel: &Cancel) -> Result<Prepared> {
    // Looking warms names and attributes: the sample is opened first and looked at through its descriptors.
    let sample = open_sample(system, manifest, tree, path)?;
    let sampled_bytes = sample.iter().map(|(_, len)| len).sum();
    let (method, metadata) = match wanted {
        Wanted::Cold => drop_everything(system, manifest, tree, path, &sample, cancel)?,
        Wanted::Warm => (read_everything(system, manifest, tree, path, cancel)?, Warmth::Warm),
        Wanted::AsIs => ("none".to_owned(), Warmth::Unknown),
    };
    let resident_bytes = resident(system, &sample).ok();
    drop(sample);
    if metadata == Warmth::Cold {
        // An open file keeps its own attributes and those of the directories above it in memory: they go now, and nothing is looked at any more.
        system.caches.drop_all().during("drop", Side::Host, "the caches")?;
    }
    let data = match resident_bytes {
        None => Warmth::Unknown,
        Some(bytes) if bytes * 100 <= sampled_bytes * COLD_SHARE_PERCENT => Warmth::Cold,
        Some(_) => Warmth::Warm,
    };
    Ok(Prepared { method, data, metadata, resident_bytes, sampled_bytes })
}

fn open_sample(system: System<'_>, manifest: &Manifest, tree: &Handle, path: &Path) -> Result<Vec<(Handle, u64)>> {
    let stride = manifest.corpus.file_count().div_ceil(SAMPLE).max(1);
    let mut sample = Vec::new();
    for listed in manifest.entries(system.files) {
        let meta = listed.during("read the manifest of", Side::Source, path)?.meta;
        if meta.ordinal % stride == 0 {
            match system.files.open(tree, Path::new(&meta.path)) {
                Ok(file) => sample.push((file, meta.len)),
                // A smaller sample tells enough; the rest of the work needs descriptors too.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) && sample.len() > FEW => {
                    sample.truncate(FEW);
                    break;
                }
                Err(error) => return Err(error).during("open", Side::Source, path.join(&meta.path)),
            }
        }
    }
    Ok(sample)
}

fn resident(system: System<'_>, sample: &[(Handle, u64)]) -> io::Result<u64> {
    sample.iter().map(|(file, len)| system.files.resident_bytes(file, *len)).sum()
}

fn drop_everything(
    system: System<'_>,
    manifest: &Manifest,
    tree: &Handle,
    path: &Path,
    sample: &[(Handle, u64)],
    cancel: &Cancel,
) -> Result<(String, Warmth)> {
    for _ in 0..ATTEMPTS {
        match system.caches.drop_all() {
            Ok(()) if resident(system, sample).is_ok_and(|bytes| bytes > 0) => {}
            Ok(()) => return Ok(("drop_caches 3".to_owned(), Warmth::Cold)),
            Err(error) => {
                evict_each(system, manifest, tree, path, cancel)?;
                let why = if error.kind() == io::ErrorKind::PermissionDenied { "no right to drop caches".to_owned() } else { reason(&error) };
                return Ok((format!("fadvise DONTNEED on each file ({why})"), Warmth::Warm));
            }
        }
    }
    // What the kernel keeps in spite of it may go when it is asked for by name.
    evict_each(system, manifest, tree, path, cancel)?;
    Ok(("drop_caches 3, then fadvise DONTNEED on each file".to_owned(), Warmth::Cold))
}

fn evict_each(system: System<'_>, manifest: &Manifest, tree: &Handle, path: &Path, cancel: &Cancel) -> Result<()> {
    each(system, manifest, tree, path, cancel, |file, file_path| system.files.evict(file).during("evict", Side::Source, file_path))
}

fn read_everything(system: System<'_>, manifest: &Manifest, tree: &Handle, path: &Path, cancel: &Cancel) -> Result<String> {
    let mut buffer = vec![0; CHUNK_BYTES];
    each(system, manifest, tree, path, cancel, |file, file_path| {
        while system.files.read(file, &mut buffer).during("read", Side::Source, file_path)? > 0 {
            cancel.check()?;
        }
        Ok(())
    })?;
    Ok("read before".to_owned())
}

fn each(
    system: System<'_>,
    manifest: &Manifest,
    tree: &Handle,
    path: &Path,
    cancel: &Cancel,
    mut act: impl FnMut(&Handle, &Path) -> Result<()>,
) -> Result<()> {
    for listed in manifest.entries(system.files) {
        cancel.check()?;
        let meta = listed.during("read the manifest of", Side::Source, path)?.meta;
        let file_path = path.join(&meta.path);
        let file = system.files.open(tree, Path::new(&meta.path)).during("open", Side::Source, &file_path)?;
        act(&file, &file_path)?;
    }
    Ok(())
}
