//! One trial: a small piece of work on a place of its own with one operation struck, and all that came of it.

use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use copysim::capacity::run as capacity;
use copysim::corpus::locate::Difference;
use copysim::corpus::manifest::Manifest;
use copysim::corpus::verify::{Subject, verify};
use copysim::corpus::{self, Corpus};
use copysim::drive::Workspace;
use copysim::platform::{FakeClock, System};
use copysim::progress::{Cancel, Counter};
use copysim::result::{Copysim, Document};
use copysim::scenario::events::{Event, Observer};
use copysim::scenario::memory;
use copysim::scenario::options::Options;
use copysim::scenario::plan::{Plan, Request, Source};
use copysim::scenario::run::{Around, run};
use copysim::scenario::stage::{remove_unfinished, stage};
use copysim::units::Scale;
use copysim::{Error, Result, Side};

use super::faulty::{Fault, Faulty, FaultyCaches, OPERATIONS, Shot};
use super::place::Place;

/// Where data come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    Target,
    Directory,
    Memory,
    Generator,
    /// Nothing: the target is filled with new data.
    New,
    /// The start of a program is played on the target.
    Start,
}

/// What is done.
pub enum Work {
    /// A whole measurement.
    Measure { from: From, options: Options },
    /// A check of the capacity; `again`: of one that was kept before.
    Capacity { options: capacity::Options, again: bool },
    /// A corpus is made, and then compared with itself.
    Corpus,
}

/// A piece of work that is tried again and again.
pub struct Case {
    pub name: &'static str,
    /// Its corpus.
    pub corpus: &'static str,
    /// Its size in hundredths of a percent.
    pub scale: u32,
    pub work: Work,
    /// From which call on the caches can't be dropped, and why.
    pub caches: Option<(u64, i32)>,
    /// Whether the machine has a directory in memory.
    pub has_memory: bool,
}

/// What came of it.
pub struct Trial {
    pub outcome: Result<()>,
    pub panicked: bool,
    pub document: Option<Document>,
    /// How often the record was kept, and as what.
    pub saved: Vec<Document>,
    pub notices: Vec<String>,
    pub counts: [u64; OPERATIONS.len()],
    /// Where the struck call came from, if it came to that.
    pub struck: Option<Backtrace>,
    /// Digests of the copies that were kept.
    pub kept: Vec<blake3::Hash>,
    /// Copies and corpora that should not be there.
    pub unfinished: Vec<String>,
    /// What is wrong with the place.
    pub damage: Vec<String>,
}

/// Who remembers what was said.
#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl Observer for Listener {
    fn on(&self, event: Event) {
        if let (Event::Notice(text), Ok(mut notices)) = (event, self.0.lock()) {
            notices.push(text);
        }
    }

    fn ask(&self, _: &str) -> Option<bool> {
        None
    }
}

impl Trial {
    /// Whether a sentence names something that is left.
    pub fn names_left(&self, text: &str) -> bool {
        self.unfinished.iter().filter_map(|left| Path::new(left).file_name()?.to_str()).any(|name| text.contains(name))
    }
}

/// A start that asks for everything that one can ask for.
const START: &str = r#"
name = "start"
version = 1
summary = "a start"
phase = [{ launch = { name = "cold", program = "CORPUS", start = "cold" } }, { launch = { name = "second", program = "CORPUS", start = "second" } }]
step = [
    { does = "search", search = { from = "lib", misses = 500 } },
    { does = "map", think_ms = 1, map = { from = "bin", files = 2, faults = 500, around_bytes = 8192 } },
    { does = "libraries", libraries = { from = "lib", files = 20, misses_each = 1, faults = 20000 } },
    { does = "archive", archive = { from = "resources", files = 3, reads = [{ bytes = 4096, n = 500 }] } },
    { does = "read", read = { from = "config", files = 100 } },
    { does = "write", write = { files = 500, bytes = 9000, block_bytes = 4096, flushed = 250 } },
]
"#;

impl Case {
    /// Does the work on a new place, with one operation struck or none.
    pub fn try_with(&self, shot: Option<Shot>) -> Trial {
        let place = Place::new();
        if !self.has_memory {
            place.without_memory();
        }
        let around = place.around();
        let files = Faulty::new(shot, place.memory(), place.device());
        let clock = FakeClock::stepping(1_000);
        let caches = FaultyCaches { calls: AtomicU64::new(0), fails: self.caches };
        let system = System { files: &files, clock: &clock, caches: &caches };
        let (listener, saved) = (Listener::default(), Mutex::new(Vec::new()));
        let done = catch_unwind(AssertUnwindSafe(|| match &self.work {
            Work::Measure { from, options } => self.measure(*from, options, &place, system, (&listener, &saved), shot),
            Work::Capacity { options, again } => check_capacity(options, *again, &place, system, (&listener, &saved), shot),
            Work::Corpus => (self.make_and_compare(&place, system, &listener), None),
        }));
        let panicked = done.is_err();
        let (outcome, document) = done.unwrap_or_else(|_| (Err(Error::Internal("panicked".to_owned())), None));
        let unfinished = place.unfinished().iter().map(|path| path.display().to_string()).collect();
        let (counts, kept) = (files.counts(), place.kept());
        let mut damage = Vec::new();
        if place.around() != around {
            damage.push("something outside the workspaces changed".to_owned());
        }
        if let Err(error) = clean(&place) {
            damage.push(format!("the next start does not clean up: {error}"));
        }
        if let left @ [_, ..] = place.workspaces().as_slice() {
            damage.push(format!("cleaning leaves {left:?}"));
        }
        Trial {
            outcome,
            panicked,
            document,
            saved: saved.into_inner().unwrap(),
            notices: listener.0.into_inner().unwrap(),
            counts,
            struck: files.into_struck(),
            kept,
            unfinished,
            damage,
        }
    }

    fn corpus(&self) -> Corpus {
        let nowhere = copysim::catalogue::Environment { configuration: None };
        corpus::catalogue::corpus(self.corpus, 0, Scale::from_hundredths(self.scale), &nowhere).unwrap()
    }

    fn measure(
        &self,
        from: From,
        options: &Options,
        place: &Place,
        system: System<'_>,
        (observer, saved): (&Listener, &Mutex<Vec<Document>>),
        shot: Option<Shot>,
    ) -> (Result<()>, Option<Document>) {
        let (host, nowhere, cancel) = (place.host(), copysim::catalogue::Environment { configuration: None }, Cancel::default());
        let start = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(start.path(), START.replace("CORPUS", self.corpus)).unwrap();
        let scenario = match from {
            From::New => "fill-drive".to_owned(),
            From::Start => start.path().display().to_string(),
            From::Target => format!("{}-same-drive", self.corpus),
            From::Directory | From::Memory | From::Generator => format!("{}-cross-drive", self.corpus),
        };
        let (target, source) = (place.target(), place.source());
        let request = Request {
            scenario: &scenario,
            target: Some(&target),
            source: matches!(from, From::Directory | From::Memory).then_some(source.as_path()),
            options: Options { scale: Scale::from_hundredths(self.scale), settle: Some(std::time::Duration::ZERO), yes: true, ..options.clone() },
        };
        let mut plan = match Plan::resolve(request, system, &host, &nowhere) {
            Ok(plan) => plan,
            Err(error) => return (Err(error), None),
        };
        // What this machine has of memory is not asked.
        if from == From::Memory {
            plan.source = Source::Memory(memory::place());
        }
        let save = |document: &Document| save(document, saved, shot);
        let around = Around { system, host: &host, observer, cancel: &cancel, save: &save };
        let (document, outcome) = run(&plan, around, copysim());
        (outcome, Some(document))
    }

    fn make_and_compare(&self, place: &Place, system: System<'_>, observer: &dyn Observer) -> Result<()> {
        let (corpus, cancel) = (self.corpus(), Cancel::default());
        let workspace = Workspace::open_or_create(system, &place.target())?;
        let staged = stage(system, &workspace, &corpus, observer, &cancel, &mut |_| Ok(()));
        if staged.is_err() {
            let _ = remove_unfinished(system, &workspace, observer);
        }
        drop(staged?);
        drop(workspace);
        let missing = || Error::Differ("the corpus is not there".to_owned());
        let workspace = Workspace::open_existing(system, &place.target())?.ok_or_else(missing)?;
        let dir = workspace.corpus(&corpus.id())?.ok_or_else(missing)?;
        let path = workspace.corpus_path(&corpus.id());
        let manifest = Manifest::open(system.files, &dir, &path)?.ok_or_else(missing)?;
        let tree = system
            .files
            .open_dir(&dir, Path::new("files"))
            .map_err(|source| Error::Io(copysim::IoFailure { operation: "open", side: Side::Target, path: path.clone(), offset: None, source }))?;
        let found =
            verify(Subject { files: system.files, tree: &tree, path: &path, side: Side::Target }, &manifest, 2, &Counter::default(), &cancel)?;
        if found.is_good() && found.extra_files == 0 {
            return Ok(());
        }
        Err(Error::Differ(format!("{} {:?}", found.differences.first().map(Difference::sentence).unwrap_or_default(), found.extra_examples)))
    }
}

fn copysim() -> Copysim {
    Copysim { version: "0".to_owned(), commit: None, target: "test".to_owned(), arguments: Vec::new() }
}

/// The name under which keeping the record is struck.
pub const SAVE: &str = "save";

/// Keeps the record, unless that is what fails.
fn save(document: &Document, saved: &Mutex<Vec<Document>>, shot: Option<Shot>) -> Result<()> {
    let mut saved = saved.lock().unwrap();
    saved.push(document.clone());
    match shot {
        Some(Shot { operation: SAVE, n, fault: Fault::Errno(errno) }) if n == saved.len() as u64 => {
            let source = std::io::Error::from_raw_os_error(errno);
            Err(Error::Io(copysim::IoFailure { operation: "write", side: Side::Host, path: "the record".into(), offset: None, source }))
        }
        _ => Ok(()),
    }
}

fn check_capacity(
    options: &capacity::Options,
    again: bool,
    place: &Place,
    system: System<'_>,
    (observer, saved): (&Listener, &Mutex<Vec<Document>>),
    shot: Option<Shot>,
) -> (Result<()>, Option<Document>) {
    let (host, cancel, results) = (place.host(), Cancel::default(), place.results());
    if again {
        let files = Faulty::new(None, place.memory(), place.device());
        let around = Around { system: System { files: &files, ..system }, host: &host, observer, cancel: &cancel, save: &|_| Ok(()) };
        let kept = capacity::Options { keep: true, ..options.clone() };
        capacity::run(&place.target(), &kept, &results, around, copysim()).1.unwrap();
    }
    let save = |document: &Document| save(document, saved, shot);
    let around = Around { system, host: &host, observer, cancel: &cancel, save: &save };
    let (document, outcome) = capacity::run(&place.target(), options, &results, around, copysim());
    (outcome, Some(document))
}

/// What the next start and `clean` do, undisturbed.
fn clean(place: &Place) -> Result<()> {
    let files = Faulty::new(None, place.memory(), place.device());
    let clock = FakeClock::stepping(1_000);
    let system = System { files: &files, clock: &clock, caches: &FaultyCaches { calls: AtomicU64::new(0), fails: None } };
    for path in place.workspaces() {
        let Some(directory) = path.parent() else { continue };
        // Another program that is just being started has all files of this process open until it runs.
        let tries = || (0..200).map(|_| Workspace::open_or_create(system, directory));
        let is_busy = |opened: &Result<Workspace<'_>>| matches!(opened, Err(Error::Refused(why)) if why.starts_with("another copysim is"));
        let opened = tries().inspect(|_| std::thread::sleep(std::time::Duration::from_millis(1))).find(|opened| !is_busy(opened));
        let workspace = opened.ok_or_else(|| Error::Internal("the workspace stays locked".to_owned()))??;
        remove_unfinished(system, &workspace, &Listener::default())?;
        let left: Vec<_> = place.unfinished().into_iter().filter(|left| left.starts_with(&path)).collect();
        if !left.is_empty() {
            return Err(Error::Internal(format!("{left:?} stay")));
        }
        workspace.clean()?;
    }
    Ok(())
}
