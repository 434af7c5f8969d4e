//! The marked directory that holds everything of copysim's on a drive, and the only code that deletes.
//!
//! All of it is reached from one open directory, name by name, through no link and into no other mount. Only one process has it open at a time.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::directory::{self, shown};
use super::lock::{busy, holder_of_file};
use super::marker::{self, Marker};
use super::names::{capacity_name, is_capacity_name, is_copy_name, is_corpus_name, is_kept_name, is_run_name, kept_name};
use super::remove::{Removal, remove_tree};
use crate::platform::{Handle, Host, Kind, Locking, Stat, System, is_unsupported};
use crate::{Context, Error, IoFailure, Result, Side};

/// The name of a workspace in the directory that the user named.
pub const NAME: &str = "copysim-workspace";
const CORPORA: &str = "corpora";
const RUNS: &str = "runs";
const PROBE: &str = "probe";

/// Files that keep others out: backup programs, media libraries, desktop search, git. <https://bford.info/cachedir/> gives the first line of the first.
const SIGNS: [(&str, &str); 4] = [
    (
        "CACHEDIR.TAG",
        "Signature: 8a477f597d28d172789f06886806bc55\n# This file marks the directory as one that copysim can make again: no backup is needed.\n",
    ),
    (".nomedia", ""),
    (".metadata_never_index", ""),
    (".gitignore", "*\n"),
];

/// How often opening is tried again when another process makes or removes the workspace meanwhile.
const TRIES: u32 = 10;

/// An open workspace. It stays locked until it is dropped; the process opens each at most once.
pub struct Workspace<'s> {
    system: System<'s>,
    directory: PathBuf,
    path: PathBuf,
    dir: Handle,
    top: Handle,
    identity: [Identity; 2],
    /// Holds the lock.
    _marker: Handle,
    leftovers: Leftovers,
}

/// What tells a directory from every other on the machine.
type Identity = ((u32, u32), u64);

fn identity(stat: &Stat) -> Identity {
    (stat.device, stat.inode)
}

/// What runs that were killed had left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// How many runs.
    pub runs: u64,
    /// What was removed.
    pub removal: Removal,
}

/// The directory of one run.
#[derive(Debug)]
pub struct RunDir {
    /// The name of the run: time and a random part.
    pub id: String,
    /// Where it is, for people.
    pub path: PathBuf,
    /// The open directory.
    pub dir: Handle,
}

/// What cleaning came to.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// What was removed.
    pub removal: Removal,
    /// What is not copysim's and was left alone. Then the workspace stays too.
    pub foreign: Vec<PathBuf>,
}

impl<'s> Workspace<'s> {
    /// Opens the workspace in a directory, made if missing, and removes what killed runs had left.
    ///
    /// # Errors
    /// `Refused` where the directory is none, can't be written to, lies in a workspace, or holds something of that name that is not copysim's, and while another copysim has it open.
    pub fn open_or_create(system: System<'s>, directory: &Path) -> Result<Self> {
        let opened = Self::open(system, directory, true)?;
        let mut workspace = opened.ok_or_else(|| Error::Internal(format!("no workspace was made in {}", shown(directory))))?;
        workspace.probe()?;
        for (name, content) in SIGNS {
            workspace.make_file(name, content.as_bytes())?;
        }
        for name in [CORPORA, RUNS] {
            match system.files.make_dir(&workspace.top, Path::new(name), 0o777) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(read_only(error, "make", &workspace.path.join(name))),
                _ => workspace.open_in_top(name)?,
            };
        }
        for run in workspace.entries(RUNS, is_run_name)? {
            workspace.leftovers.runs += 1;
            let removed = workspace.remove_in(RUNS, &run)?;
            workspace.leftovers.removal.add(removed);
        }
        Ok(workspace)
    }

    /// Opens the workspace in a directory as it is, `None` when there is none. Nothing is written, so it may be read-only.
    ///
    /// # Errors
    /// As `open_or_create`, except for the read-only drive.
    pub fn open_existing(system: System<'s>, directory: &Path) -> Result<Option<Self>> {
        Self::open(system, directory, false)
    }

    fn open(system: System<'s>, directory: &Path, create: bool) -> Result<Option<Self>> {
        let (dir, directory) = directory::open(system.files, directory)?;
        directory::refuse_inside_workspace(system.files, &dir, &directory)?;
        let path = directory.join(NAME);
        for _ in 0..TRIES {
            let top = match system.files.open_dir_beneath(&dir, Path::new(NAME)) {
                Ok(top) => top,
                Err(error) if error.kind() == io::ErrorKind::NotFound && !create => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => match system.files.make_dir(&dir, Path::new(NAME), 0o777) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(read_only(error, "make", &path)),
                    _ => continue,
                },
                Err(error) => return Err(not_ours(error, &path)),
            };
            match Self::lock(system, &top, &path, create)? {
                Locked::Marker(marker) => {
                    let mut identities = [identity(&Self::look(system, &dir, &directory)?); 2];
                    identities[1] = identity(&Self::look(system, &top, &path)?);
                    let leftovers = Leftovers::default();
                    return Ok(Some(Self { system, directory, path, dir, top, identity: identities, _marker: marker, leftovers }));
                }
                Locked::Nothing => return Ok(None),
                Locked::Changed => {}
            }
        }
        Err(Error::Refused(format!("{} keeps changing: other programs make and remove it", shown(&path))))
    }

    /// Locks the marker and judges it. A marker that is missing from an empty directory, or not written whole in one that is empty else, is what a killed creation leaves:
    /// it is completed.
    fn lock(system: System<'s>, top: &Handle, path: &Path, create: bool) -> Result<Locked> {
        let files = system.files;
        let name = Path::new(marker::NAME);
        let (marker, locking) = match files.lock_file(top, name) {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match (holds_nothing_but(system, top, path, &[])?, create) {
                    (false, _) => Err(Error::Refused(foreign(path, "has no valid MARKER"))),
                    (true, false) => Ok(Locked::Nothing),
                    (true, true) => match files.create(top, name, 0o666) {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(read_only(error, "create", &path.join(name))),
                        _ => Ok(Locked::Changed),
                    },
                };
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) => {
                return Err(Error::Refused(foreign(path, "has no valid MARKER")));
            }
            Err(error) => return Err(error).during("open", Side::Host, path.join(name)),
        };
        let stat = Self::look(system, &marker, &path.join(name))?;
        if stat.kind != Kind::File {
            return Err(Error::Refused(foreign(path, "has no valid MARKER")));
        }
        if locking == Locking::Busy {
            return Err(Error::Refused(busy(&format!("using {}", shown(path)), holder_of_file(&Host::real(), path, &stat))));
        }
        // Between opening and locking it may have been removed by the one who held the lock.
        match files.stat_at(top, name) {
            Ok(named) if identity(&named) == identity(&stat) => {}
            _ => return Ok(Locked::Changed),
        }
        match marker::judge(&read_start(system, &marker).during("read", Side::Host, path.join(name))?) {
            Marker::Valid => Ok(Locked::Marker(marker)),
            Marker::Newer(version) => Err(Error::Refused(format!(
                "{} was made by a newer copysim (version {version} of the workspace): use that one, or remove it with that one's clean",
                shown(path)
            ))),
            Marker::HalfMade if holds_nothing_but(system, top, path, &[marker::NAME])? => {
                if !create {
                    return Ok(Locked::Nothing);
                }
                let written = write_at_start(system, &marker, marker::content(random()).as_bytes());
                written.and_then(|()| sync(system, &marker)).map_err(|error| read_only(error, "write to", &path.join(name)))?;
                // The directory's entry must be as durable as the marker; where directories cannot be flushed the next start completes it again.
                sync(system, top).during("flush", Side::Host, path)?;
                Ok(Locked::Marker(marker))
            }
            Marker::HalfMade | Marker::Foreign => Err(Error::Refused(foreign(path, "has no valid MARKER"))),
        }
    }

    /// The directory that the user named, resolved.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The workspace's own path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open workspace directory, for asking about its file system.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.top
    }

    /// What runs that were killed had left, found and removed at opening.
    #[must_use]
    pub fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }

    /// Whether the path still leads to the directories that were opened: to be asked before each phase.
    ///
    /// # Errors
    /// When it does not: the drive was unplugged, or another was put in its place.
    pub fn still_here(&self) -> Result<()> {
        let files = self.system.files;
        let directory = files.open_root(&self.directory).during("find again", Side::Host, &self.directory)?;
        let top = files.open_dir_beneath(&directory, Path::new(NAME)).during("find again", Side::Host, &self.path)?;
        for ((handle, path), known) in [(&directory, &self.directory), (&top, &self.path)].into_iter().zip(self.identity) {
            if identity(&Self::look(self.system, handle, path)?) != known {
                let source = io::Error::other("another directory is there now; was the drive exchanged or mounted again?");
                return Err(Error::Io(IoFailure { operation: "find again", side: Side::Host, path: path.clone(), offset: None, source }));
            }
        }
        Ok(())
    }

    /// Makes the directory of a new run.
    ///
    /// # Errors
    /// What the system answered.
    pub fn new_run(&self) -> Result<RunDir> {
        self.make_run(str::to_owned)
    }

    /// Makes the directory of a new check of the capacity: the next start leaves it alone, so that it can go on.
    ///
    /// # Errors
    /// What the system answered.
    pub fn new_capacity_check(&self) -> Result<RunDir> {
        self.make_run(capacity_name)
    }

    fn make_run(&self, name: impl Fn(&str) -> String) -> Result<RunDir> {
        let time = self.system.clock.wall().strftime("%Y%m%dT%H%M%SZ");
        let id = name(&format!("{time}-{:08x}", random() >> 32));
        let parent = self.path.join(RUNS);
        let runs = self.open_in_top(RUNS)?;
        let path = parent.join(&id);
        self.system.files.make_dir(&runs, Path::new(&id), 0o777).map_err(|error| read_only(error, "make", &path))?;
        let opened = self.system.files.open_dir_beneath(&runs, Path::new(&id));
        if opened.is_err() {
            // Why it can't be opened is the error to tell; nothing is in it yet.
            let _ = self.system.files.remove_dir(&runs, Path::new(&id));
        }
        let dir = opened.during("open", Side::Target, &path)?;
        Ok(RunDir { id, path, dir })
    }

    /// The checks of the capacity that are not over or were kept, oldest first.
    ///
    /// # Errors
    /// What the system answered.
    pub fn capacity_checks(&self) -> Result<Vec<RunDir>> {
        let runs = self.open_in_top(RUNS)?;
        let open = |name: OsString| {
            let path = self.path.join(RUNS).join(&name);
            let dir = self.system.files.open_dir_beneath(&runs, Path::new(&name)).during("open", Side::Target, &path)?;
            Ok(RunDir { id: name.to_string_lossy().into_owned(), path, dir })
        };
        self.entries(RUNS, is_capacity_name)?.into_iter().map(open).collect()
    }

    /// Removes a run.
    ///
    /// # Errors
    /// When the run's directory is not reachable from the workspace any more. What could not be removed is told in the answer.
    pub fn remove(&self, run: RunDir) -> Result<Removal> {
        // Some file systems keep a removed directory that is open.
        drop(run.dir);
        self.remove_in(RUNS, OsStr::new(&run.id))
    }

    /// Keeps the copy of a run, under a name that the next start leaves alone; `clean` removes it. Gives its path.
    ///
    /// # Errors
    /// What the system answered; the copy is removed then, now or by the next start.
    pub fn keep(&self, run: RunDir) -> Result<PathBuf> {
        let name = kept_name(&run.id);
        // Some file systems do not rename a directory that is open.
        drop(run.dir);
        let renamed = self
            .open_in_top(RUNS)
            .and_then(|runs| self.system.files.rename(&runs, Path::new(&run.id), Path::new(&name)).during("rename", Side::Target, &run.path));
        if renamed.is_err() {
            // Why it is not kept is the error to tell.
            let _ = self.remove_in(RUNS, OsStr::new(&run.id));
        }
        renamed.map(|()| self.path.join(RUNS).join(name))
    }

    /// The copies that were kept.
    ///
    /// # Errors
    /// What the system answered.
    pub fn kept(&self) -> Result<Vec<PathBuf>> {
        let names = self.entries(RUNS, is_kept_name)?;
        Ok(names.into_iter().map(|name| self.path.join(RUNS).join(name)).collect())
    }

    /// The names of the corpora here, whole or not.
    ///
    /// # Errors
    /// What the system answered.
    pub fn corpora(&self) -> Result<Vec<String>> {
        let names = self.entries(CORPORA, is_corpus_name)?;
        Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// Opens the directory of a corpus (`names::corpus_name`); `None` when it is missing.
    ///
    /// # Errors
    /// What the system answered.
    pub fn corpus(&self, name: &str) -> Result<Option<Handle>> {
        check_corpus_name(name)?;
        let Some(corpora) = self.open_in_top_if_there(CORPORA)? else { return Ok(None) };
        match self.system.files.open_dir_beneath(&corpora, Path::new(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some).during("open", Side::Source, self.corpus_path(name)),
        }
    }

    /// Makes the directory of a corpus, which must not exist, and opens it.
    ///
    /// # Errors
    /// What the system answered.
    pub fn create_corpus(&self, name: &str) -> Result<Handle> {
        check_corpus_name(name)?;
        let corpora = self.open_in_top(CORPORA)?;
        let path = self.corpus_path(name);
        self.system.files.make_dir(&corpora, Path::new(name), 0o777).map_err(|error| read_only(error, "make", &path))?;
        self.system.files.open_dir_beneath(&corpora, Path::new(name)).during("open", Side::Source, path)
    }

    /// Removes a corpus, whole or not.
    ///
    /// # Errors
    /// When the directory of the corpora is not reachable any more. What could not be removed is told in the answer.
    pub fn remove_corpus(&self, name: &str) -> Result<Removal> {
        check_corpus_name(name)?;
        self.remove_in(CORPORA, OsStr::new(name))
    }

    /// Where a corpus is or would be.
    #[must_use]
    pub fn corpus_path(&self, name: &str) -> PathBuf {
        self.path.join(CORPORA).join(name)
    }

    /// What lies in the workspace and is not copysim's, at most a hundred of it.
    ///
    /// # Errors
    /// What the system answered.
    pub fn foreign(&self) -> Result<Vec<PathBuf>> {
        let is_own_file = |name: &OsStr| name == marker::NAME || name == PROBE || SIGNS.iter().any(|(sign, _)| name == *sign);
        let own_in_top =
            |name: &OsStr, kind| if name == CORPORA || name == RUNS { kind == Kind::Directory } else { is_own_file(name) && kind == Kind::File };
        let mut foreign = Vec::new();
        self.collect_foreign(&self.top, &self.path, own_in_top, &mut foreign)?;
        for (place, is_own) in [(CORPORA, is_corpus_name as fn(&OsStr) -> bool), (RUNS, is_copy_name)] {
            if let Some(dir) = self.open_in_top_if_there(place)? {
                self.collect_foreign(&dir, &self.path.join(place), |name, kind| is_own(name) && kind == Kind::Directory, &mut foreign)?;
            }
        }
        foreign.sort();
        Ok(foreign)
    }

    fn collect_foreign(&self, dir: &Handle, path: &Path, is_own: impl Fn(&OsStr, Kind) -> bool, foreign: &mut Vec<PathBuf>) -> Result<()> {
        const AT_MOST: usize = 100;
        let files = self.system.files;
        let listed = files.list(dir, &mut |entry| {
            let kind = files.stat_at(dir, Path::new(&entry.name)).map_or(Kind::Other, |stat| stat.kind);
            if foreign.len() < AT_MOST && !is_own(&entry.name, kind) {
                foreign.push(path.join(entry.name));
            }
            Ok(())
        });
        listed.during("list", Side::Host, path)
    }

    /// Removes the workspace when it holds neither corpora nor copies. None of these is removed, whatever the file system says about them.
    ///
    /// # Errors
    /// What the system answered.
    pub fn remove_if_empty(self) -> Result<()> {
        if self.corpora()?.is_empty() && self.entries(RUNS, is_copy_name)?.is_empty() && self.foreign()?.is_empty() {
            return self.take_down(Removal::default()).complete();
        }
        Ok(())
    }

    /// Removes all copies, kept ones too, and corpora, and the workspace itself when nothing foreign is in it.
    ///
    /// # Errors
    /// What the system answered to listing; what could not be removed is told in the answer.
    pub fn clean(self) -> Result<Cleaned> {
        let mut cleaned = Cleaned { foreign: self.foreign()?, ..Cleaned::default() };
        for (place, is_own) in [(RUNS, is_copy_name as fn(&OsStr) -> bool), (CORPORA, is_corpus_name)] {
            for name in self.entries(place, is_own)? {
                cleaned.removal.add(self.remove_in(place, &name)?);
            }
        }
        if !(cleaned.foreign.is_empty() && cleaned.removal.is_complete()) {
            return Ok(cleaned);
        }
        Ok(Cleaned { removal: self.take_down(cleaned.removal), ..cleaned })
    }

    /// Removes what makes the workspace one, and adds to a removal what is left of it.
    fn take_down(self, mut removal: Removal) -> Removal {
        let files = self.system.files;
        // The marker last: until then a killed cleaning leaves a workspace, afterwards an empty directory, which the next start takes up.
        let Self { system, dir, top, path, _marker: marker, .. } = self;
        let directories = [CORPORA, RUNS].map(|name| (name, Kind::Directory));
        let own_files = [PROBE].into_iter().chain(SIGNS.iter().map(|(name, _)| *name)).chain([marker::NAME]);
        for (name, kind) in directories.into_iter().chain(own_files.map(|name| (name, Kind::File))) {
            let remove = if kind == Kind::Directory { files.remove_dir(&top, Path::new(name)) } else { files.remove_file(&top, Path::new(name)) };
            match remove {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    removal.leave(path.join(name), "remove", error);
                    return removal;
                }
                _ => {}
            }
        }
        drop(top);
        let mut removed = files.remove_dir(&dir, Path::new(NAME));
        // Some file systems keep the marker under another name for as long as it is open; it held the lock up to here.
        drop(marker);
        for _ in 0..TRIES {
            match &removed {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    system.clock.sleep(Duration::from_millis(100));
                    removed = files.remove_dir(&dir, Path::new(NAME));
                }
                _ => break,
            }
        }
        if let Err(error) = removed {
            removal.leave(path, "remove", error);
        }
        removal
    }

    /// Shows that the target takes data: some write-protected media accept a new file and refuse only its content. One that is full would take them: whether
    /// there is enough space is asked later.
    fn probe(&self) -> Result<()> {
        let files = self.system.files;
        let path = self.path.join(PROBE);
        let remove = || match files.remove_file(&self.top, Path::new(PROBE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(read_only(error, "remove", &path)),
            _ => Ok(()),
        };
        remove()?;
        let is_full = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        let file = match files.create(&self.top, Path::new(PROBE), 0o666) {
            Err(error) if is_full(&error) => return Ok(()),
            created => created.map_err(|error| read_only(error, "create", &path))?,
        };
        let written = write_at_start(self.system, &file, &[b'.'; 4096]).and_then(|()| sync(self.system, &file));
        let closed = files.close(file);
        let removed = remove();
        match written.and(closed) {
            Err(error) if !is_full(&error) => Err(read_only(error, "write to", &path)),
            _ => removed,
        }
    }

    fn make_file(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        match self.system.files.create(&self.top, Path::new(name), 0o666) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(read_only(error, "create", &path)),
            Ok(file) => write_at_start(self.system, &file, content).during("write to", Side::Target, path),
        }
    }

    fn look(system: System<'_>, handle: &Handle, path: &Path) -> Result<Stat> {
        system.files.stat(handle).during("look at", Side::Host, path)
    }

    fn open_in_top(&self, name: &str) -> Result<Handle> {
        let path = self.path.join(name);
        self.system.files.open_dir_beneath(&self.top, Path::new(name)).map_err(|error| not_ours(error, &path))
    }

    fn open_in_top_if_there(&self, name: &str) -> Result<Option<Handle>> {
        match self.open_in_top(name) {
            Err(Error::Io(failure)) if failure.source.kind() == io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The directories in one of ours whose names are of the kind that we make.
    fn entries(&self, place: &str, is_own: fn(&OsStr) -> bool) -> Result<Vec<OsString>> {
        let files = self.system.files;
        let Some(dir) = self.open_in_top_if_there(place)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        let listed = files.list(&dir, &mut |entry| {
            if !is_own(&entry.name) {
                return Ok(());
            }
            match files.stat_at(&dir, Path::new(&entry.name)) {
                Ok(stat) if stat.kind == Kind::Directory => names.push(entry.name),
                // What can't be looked at is not taken for missing: a workspace that seems empty is removed.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            Ok(())
        });
        listed.during("list", Side::Host, self.path.join(place))?;
        names.sort();
        Ok(names)
    }

    fn remove_in(&self, place: &str, name: &OsStr) -> Result<Removal> {
        let dir = match self.open_in_top(place) {
            // What stays is named, not where it lies.
            Err(Error::Io(failure)) => return Err(failure.source).during("remove", Side::Target, self.path.join(place).join(name)),
            answer => answer?,
        };
        Ok(remove_tree(self.system, &dir, &self.path.join(place), name))
    }
}

enum Locked {
    /// The workspace is ours.
    Marker(Handle),
    /// There is no workspace yet, and none was to be made.
    Nothing,
    /// Something changed meanwhile: look again.
    Changed,
}

fn check_corpus_name(name: &str) -> Result<()> {
    if is_corpus_name(OsStr::new(name)) { Ok(()) } else { Err(Error::Internal(format!("\"{name}\" is not the name of a corpus directory"))) }
}

fn holds_nothing_but(system: System<'_>, dir: &Handle, path: &Path, names: &[&str]) -> Result<bool> {
    let mut others = false;
    let listed = system.files.list(dir, &mut |entry| {
        others |= !names.iter().any(|name| entry.name == *name);
        Ok(())
    });
    listed.during("list", Side::Host, path)?;
    Ok(!others)
}

/// The first bytes of a file, one more than a marker can have.
fn read_start(system: System<'_>, file: &Handle) -> io::Result<Vec<u8>> {
    let mut content = vec![0; marker::MAX_BYTES];
    let mut length = 0;
    while length < content.len() {
        match system.files.read_at(file, &mut content[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    content.truncate(length);
    Ok(content)
}

/// Writes from the current position, which is the start of a file that was just opened.
fn write_at_start(system: System<'_>, file: &Handle, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match system.files.write(file, data)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => data = &data[written..],
        }
    }
    Ok(())
}

fn sync(system: System<'_>, file: &Handle) -> io::Result<()> {
    match system.files.sync(file) {
        Err(error) if is_unsupported(&error) => Ok(()),
        answer => answer,
    }
}

/// A number that no other process draws.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The refusal of a target that is read-only or not the user's to write to; other failures as they are.
fn read_only(error: io::Error, operation: &'static str, path: &Path) -> Error {
    let failure = IoFailure { operation, side: Side::Target, path: path.to_owned(), offset: None, source: error };
    match failure.errno() {
        Some(libc::EROFS) => Error::Refused(format!("the target is read-only: {failure}")),
        Some(libc::EACCES | libc::EPERM) => Error::Refused(failure.to_string()),
        _ => Error::Io(failure),
    }
}

/// The refusal of something that has a name of ours and is not ours; other failures as they are.
fn not_ours(error: io::Error, path: &Path) -> Error {
    match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => Error::Refused(foreign(path, "is not a directory")),
        Some(libc::EXDEV) => Error::Refused(foreign(path, "has another file system mounted on it")),
        _ => Error::Io(IoFailure { operation: "open", side: Side::Host, path: path.to_owned(), offset: None, source: error }),
    }
}

fn foreign(path: &Path, why: &str) -> String {
    format!("{} {why}, so it is not copysim's and stays untouched: move it away, or name another directory", shown(path))
}

#[cfg(test)]
#[path = "workspace_tests.rs"]
mod tests;
