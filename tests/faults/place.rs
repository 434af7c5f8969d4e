//! Where a trial happens: a target and a source with things of a user's around them, a machine without facts, and nothing shared with other trials.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use copysim::drive::names::{is_capacity_name, is_kept_name};
use copysim::drive::workspace;
use copysim::platform::Host;
use tempfile::TempDir;

/// The place.
pub struct Place {
    root: TempDir,
    device: (u32, u32),
}

impl Place {
    /// In memory where the machine has a place for that: nothing is worn, and other work of the machine not waited for.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for side in ["stick", "card"] {
            fs::create_dir_all(root.path().join(side).join("photos")).unwrap();
            fs::write(root.path().join(side).join("photos/a.jpg"), side).unwrap();
        }
        fs::create_dir_all(root.path().join("memory")).unwrap();
        fs::create_dir_all(root.path().join("machine")).unwrap();
        fs::create_dir_all(root.path().join("results")).unwrap();
        let top: PathBuf = root.path().components().take(2).collect();
        symlink(&top, root.path().join("machine").join(top.file_name().unwrap())).unwrap();
        Self { root, device: (100_000 + std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst)) }
    }

    pub fn target(&self) -> PathBuf {
        self.root.path().join("stick")
    }

    pub fn source(&self) -> PathBuf {
        self.root.path().join("card")
    }

    pub fn memory(&self) -> PathBuf {
        self.root.path().join("memory")
    }

    /// Where notes of checks of the capacity lie.
    pub fn results(&self) -> PathBuf {
        self.root.path().join("results")
    }

    pub fn without_memory(&self) {
        fs::remove_dir(self.memory()).unwrap();
    }

    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// A machine that tells nothing about itself.
    pub fn host(&self) -> Host {
        Host::at(self.root.path().join("machine"))
    }

    /// The workspaces that there are.
    pub fn workspaces(&self) -> Vec<PathBuf> {
        let own = [self.target(), self.source()].into_iter();
        let memory = fs::read_dir(self.memory()).into_iter().flatten().map(|entry| entry.unwrap().path());
        own.chain(memory).map(|directory| directory.join(workspace::NAME)).filter(|path| path.exists()).collect()
    }

    /// The copies in the runs, and the corpora without a manifest.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let below = |name: &'static str| self.workspaces().into_iter().flat_map(move |path| names(&path.join(name))).collect::<Vec<PathBuf>>();
        let corpora = below("corpora").into_iter().filter(|corpus| !corpus.join("MANIFEST").exists());
        below("runs").into_iter().filter(|run| !stays(run)).chain(corpora).collect()
    }

    /// The digest of a kept copy.
    pub fn kept(&self) -> Vec<blake3::Hash> {
        names(&self.target().join(workspace::NAME).join("runs")).iter().filter(|run| is_kept(run)).map(|run| digest(run, &|_| true)).collect()
    }

    /// Everything but the workspaces.
    pub fn around(&self) -> blake3::Hash {
        let own = [self.memory(), self.results()];
        digest(self.root.path(), &|path| path.file_name() != Some(workspace::NAME.as_ref()) && own.iter().all(|own| path.parent() != Some(own)))
    }
}

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// A copy that is kept, or test data of a check that the next one goes on with.
fn stays(run: &Path) -> bool {
    is_kept(run) || run.file_name().is_some_and(is_capacity_name)
}

fn is_kept(run: &Path) -> bool {
    run.file_name().is_some_and(is_kept_name)
}

/// Names and contents of a tree.
pub fn digest(root: &Path, counts: &dyn Fn(&Path) -> bool) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(|entry| counts(entry.path())) {
        let entry = entry.unwrap();
        hasher.update(entry.path().strip_prefix(root).unwrap().as_os_str().as_bytes()).update(b"\0");
        if entry.file_type().is_file() {
            hasher.update(&fs::read(entry.path()).unwrap());
        }
    }
    hasher.finalize()
}
