//! Finds out which corpus a directory holds: by its manifest, by the name of its folder, or by what the user says.

use std::path::{Path, PathBuf};

use super::generate::FILES;
use super::manifest::{Listed, Manifest, ManifestWriter, NAME};
use super::spec::TreeSpec;
use super::stream::{Make, hash_stream, with_stream};
use super::{Corpus, catalogue};
use crate::catalogue::Environment;
use crate::drive::workspace::NAME as WORKSPACE;
use crate::error::{Context, Error, Result, Side};
use crate::platform::{System, memory_file};
use crate::progress::{Cancel, Counter};
use crate::units::Scale;

/// A tree to verify: where its files and its manifest are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory that holds the files.
    pub tree: PathBuf,
    /// The directory that holds the manifest, where there is one.
    pub manifest: Option<PathBuf>,
}

/// Looks for trees at `path`: a corpus's directory, its `files`, a copy of either, or a directory with a workspace (then all its corpora).
///
/// # Errors
/// When directories can't be opened because there are too many open already: nothing follows from that.
pub fn places(system: System<'_>, path: &Path) -> Result<Vec<Place>> {
    // So many are needed at a time.
    let spare = ["", ""].map(|_| system.files.open_root(path));
    if let Some(error) = spare.into_iter().find_map(Result::err).filter(|error| matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))) {
        return Err(error).during("open", Side::Target, path);
    }
    Ok(found_places(system, path))
}

fn found_places(system: System<'_>, path: &Path) -> Vec<Place> {
    let has = |path: &Path| system.files.open_root(path).ok();
    let has_manifest = |path: &Path| has(path).is_some_and(|dir| system.files.stat_at(&dir, Path::new(NAME)).is_ok());
    for workspace in [path.to_path_buf(), path.join(WORKSPACE)] {
        let corpora = workspace.join("corpora");
        if let Some(dir) = has(&corpora).filter(|_| workspace.ends_with(WORKSPACE)) {
            let mut names = Vec::new();
            // What can't be listed is not there to be verified; the caller reports that nothing was found.
            let _ = system.files.list(&dir, &mut |entry| {
                names.push(entry.name);
                Ok(())
            });
            names.sort();
            // Links that lie there lead elsewhere and are not followed.
            let open = |name: &Path| system.files.open_dir(&dir, name).ok();
            let found =
                names.iter().filter(|name| open(Path::new(name)).is_some_and(|corpus| system.files.stat_at(&corpus, Path::new(NAME)).is_ok()));
            return found.map(|name| corpora.join(name)).map(|corpus| Place { tree: corpus.join(FILES), manifest: Some(corpus) }).collect();
        }
    }
    if has_manifest(path) && has(&path.join(FILES)).is_some() {
        return vec![Place { tree: path.join(FILES), manifest: Some(path.to_path_buf()) }];
    }
    let beside = path.parent().filter(|parent| path.ends_with(FILES) && has_manifest(parent));
    if let Some(parent) = beside {
        return vec![Place { tree: path.to_path_buf(), manifest: Some(parent.to_path_buf()) }];
    }
    // A copy of the corpus's directory without its manifest still has its shape.
    let tree = if has(&path.join(FILES)).is_some() && id_of(path).is_some() { path.join(FILES) } else { path.to_path_buf() };
    vec![Place { tree, manifest: None }]
}

/// The corpus that a folder's name tells, its own or its parent's: `jpg-v1-s0-p100`.
fn id_of(path: &Path) -> Option<(String, u32, u64, Scale)> {
    let parse = |name: &str| {
        let (rest, scale) = name.rsplit_once("-p")?;
        let (rest, seed) = rest.rsplit_once("-s")?;
        let (name, version) = rest.rsplit_once("-v")?;
        Some((name.to_owned(), version.parse().ok()?, seed.parse().ok()?, scale.parse().ok()?))
    };
    path.ancestors().take(2).find_map(|path| parse(path.file_name()?.to_str()?))
}

/// What a person says about a tree without a manifest.
#[derive(Debug, Clone, Default)]
pub struct Claim {
    /// The corpus's name or path.
    pub corpus: Option<String>,
    /// Its seed.
    pub seed: u64,
    /// Its scale, 100 % unless said.
    pub scale: Option<Scale>,
}

/// The corpus of a tree without a manifest: as claimed, as its folder is called, or the built-in one that has a file of its first file's name and length.
///
/// # Errors
/// `Refused` with what to say when it can't be told.
pub fn corpus_of(system: System<'_>, tree: &Path, claim: &Claim, environment: &Environment) -> Result<Corpus> {
    if let Some(name) = &claim.corpus {
        return catalogue::corpus(name, claim.seed, claim.scale.unwrap_or(Scale::FULL), environment);
    }
    if let Some((name, version, seed, scale)) = id_of(tree) {
        let corpus = catalogue::corpus(&name, seed, scale, environment)?;
        if corpus.spec.version != version {
            return Err(Error::Refused(format!(
                "{} was made from version {version} of corpus {name}; this copysim knows version {}",
                tree.display(),
                corpus.spec.version
            )));
        }
        return Ok(corpus);
    }
    let dir = system.files.open_root(tree).during("open", Side::Source, tree)?;
    for found in catalogue::CORPORA.all(environment) {
        let scale = claim.scale.unwrap_or(Scale::FULL);
        let Ok(corpus) = catalogue::corpus(&found.name, claim.seed, scale, environment) else { continue };
        // One file may be missing or damaged; the shape of the first few tells enough.
        let known = corpus.files()?.take(8).filter(|file| {
            let stat = system.files.stat_at(&dir, Path::new(&file.path));
            stat.is_ok_and(|stat| stat.len == file.len && file.len > 0)
        });
        if known.count() >= corpus.file_count().min(8).div_ceil(2) as usize && names_content(&corpus) {
            return Ok(corpus);
        }
    }
    Err(Error::Refused(format!(
        "{} holds no manifest, and its names tell no corpus: say which it should be with --corpus NAME (and --seed, --scale)",
        tree.display()
    )))
}

/// Whether a corpus's names tell its content: several built-in corpora share one shape.
fn names_content(corpus: &Corpus) -> bool {
    !corpus.spec.parts.iter().any(|part| matches!(&part.tree, TreeSpec::Numbered { prefix, .. } if prefix == "file-"))
}

/// Makes the manifest of a corpus without its files, in memory: so that a tree without one can be compared.
///
/// # Errors
/// What the system answered, or `Interrupted`.
pub fn make_manifest(system: System<'_>, corpus: &Corpus, threads: usize, counter: &Counter, cancel: &Cancel) -> Result<Manifest> {
    let name = Path::new("the manifest in memory");
    let file = memory_file().during("make", Side::Host, name)?;
    let mut writer = ManifestWriter::new(system.files, file, name.to_path_buf(), corpus)?;
    digest_into(system, corpus, threads, counter, cancel, |listed| writer.add(&listed))?;
    let (_, file) = writer.finish()?;
    Manifest::read(system.files, file, name)
}

/// Makes a corpus without writing it and hands each file with its digest to `each`, in manifest order.
///
/// # Errors
/// What `each` answered, or `Interrupted`.
pub fn digest_into(
    system: System<'_>,
    corpus: &Corpus,
    threads: usize,
    counter: &Counter,
    cancel: &Cancel,
    mut each: impl FnMut(Listed) -> Result<()>,
) -> Result<()> {
    with_stream(corpus, threads, Make::Digests, system.clock, |stream| {
        hash_stream(
            stream,
            |chunk| {
                counter.add_bytes(chunk.data().len() as u64);
                cancel.check()
            },
            |listed| {
                counter.add_file();
                each(listed)
            },
        )
    })
}
