//! What goes on on a drive while something else is timed there: a copy from the drive to itself, over and over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::stage::Staged;
use crate::drive::RunDir;
use crate::engine::{Engine, Trees};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Handle, System};
use crate::progress::{Cancel, Counter};
use crate::workload::copy::{Order, copy_tree};

/// The copy is under way when so much of it was read …
const UNDER_WAY_BYTES: u64 = 32 << 20;
/// … or when it has gone on for so long.
const UNDER_WAY: Duration = Duration::from_secs(2);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// A copy to be made meanwhile.
pub struct Background<'a> {
    /// The system.
    pub system: System<'a>,
    /// What is copied.
    pub staged: &'a Staged,
    /// The directory that it is copied to.
    pub run: &'a RunDir,
}

/// What was copied meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Copied {
    /// Bytes.
    pub bytes: u64,
}

impl Background<'_> {
    /// Does the work while the copy goes on, and ends it. `begun` is called when the copy is under way; an error of the copy outweighs none of the work.
    ///
    /// # Errors
    /// What ended the copy early.
    pub fn during<T>(&self, cancel: &Cancel, work: impl FnOnce(&Counter) -> T) -> Result<(T, Copied)> {
        let clock = self.system.clock;
        let counter = Counter::default();
        let (enough, ended) = (&Cancel::default(), &AtomicBool::new(false));
        thread::scope(|scope| {
            let copying = scope.spawn(|| {
                let outcome = self.copy_over_and_over(&counter, enough);
                ended.store(true, Ordering::Release);
                outcome
            });
            let begun = clock.now_ns();
            let waiting = || counter.bytes() < UNDER_WAY_BYTES && u128::from(clock.now_ns() - begun) < UNDER_WAY.as_nanos();
            while waiting() && !ended.load(Ordering::Acquire) && cancel.signal().is_none() {
                clock.sleep(LOOK);
            }
            let done = work(&counter);
            let copied = Copied { bytes: counter.bytes() };
            enough.request(libc::SIGTERM);
            match copying.join() {
                Ok(Ok(()) | Err(Error::Interrupted(_))) => Ok((done, copied)),
                Ok(Err(error)) => Err(error),
                Err(_) => Err(Error::Internal("the copy beside it ended early".to_owned())),
            }
        })
    }

    /// Copies the tree until it is told that it is enough. Each copy is removed before the next.
    fn copy_over_and_over(&self, counter: &Counter, enough: &Cancel) -> Result<()> {
        let files = self.system.files;
        let engine = Engine::named("buffered")?;
        for pass in 1_u64.. {
            let name = PathBuf::from(format!("pass-{pass}"));
            let path = self.run.path.join(&name);
            files.make_dir(&self.run.dir, &name, 0o755).during("make directory", Side::Target, &path)?;
            let target = files.open_dir(&self.run.dir, &name).during("open", Side::Target, &path)?;
            let trees = Trees {
                files,
                source: &self.staged.tree,
                source_path: &self.staged.path,
                target: &target,
                target_path: &path,
                umask: crate::platform::umask(),
                counter,
                cancel: enough,
                fresh: None,
                log: None,
            };
            if let Some(failure) = copy_tree(trees, &self.staged.manifest, &engine, 1, Order::Manifest, self.system.clock).failure {
                return Err(failure);
            }
            self.begin_again(&target, &path, enough)?;
        }
        Ok(())
    }

    /// Removes the files of a copy, and lets this machine forget their source: the next copy reads it from the drive again. Directories stay until the run is
    /// removed.
    fn begin_again(&self, target: &Handle, path: &Path, enough: &Cancel) -> Result<()> {
        let files = self.system.files;
        for listed in self.staged.manifest.entries(files) {
            enough.check()?;
            let meta = listed.during("read the manifest of", Side::Source, &self.staged.path)?.meta;
            files.remove_file(target, Path::new(&meta.path)).during("remove", Side::Target, path.join(&meta.path))?;
            let source = files.open(&self.staged.tree, Path::new(&meta.path)).during("open", Side::Source, self.staged.path.join(&meta.path))?;
            // Where it stays in memory the drive is less busy, which its counters show.
            let _ = files.evict(&source);
        }
        Ok(())
    }
}
