//! One trial: a small piece of work on a place of its own with one operation struck, and all that came of it.

use std::backtrace::Backtrace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

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

use super::faulty::{Faulty, FaultyCaches, OPERATIONS, Shot};
use super::place::Place;

/// Where data come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    Target,
    Directory,
    Memory,
    Generator,
}

/// What is done.
pub enum Work {
    /// A whole measurement.
    Measure { from: From, options: Options },
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
            Work::Measure { from, options } => self.measure(*from, options, &place, system, &listener, &saved),
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
        observer: &dyn Observer,
        saved: &Mutex<Vec<Document>>,
    ) -> (Result<()>, Option<Document>) {
        let (host, nowhere, cancel) = (place.host(), copysim::catalogue::Environment { configuration: None }, Cancel::default());
        let kind = if from == From::Target { "same-drive" } else { "cross-drive" };
        let (target, source) = (place.target(), place.source());
        let request = Request {
            scenario: &format!("{}-{kind}", self.corpus),
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
        let save = |document: &Document| {
            saved.lock().unwrap().push(document.clone());
            Ok(())
        };
        let around = Around { system, host: &host, observer, cancel: &cancel, save: &save };
        let copysim = Copysim { version: "0".to_owned(), commit: None, target: "test".to_owned(), arguments: Vec::new() };
        let (document, outcome) = run(&plan, around, copysim);
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

/// What the next start and `clean` do, undisturbed.
fn clean(place: &Place) -> Result<()> {
    let files = Faulty::new(None, place.memory(), place.device());
    let clock = FakeClock::stepping(1_000);
    let system = System { files: &files, clock: &clock, caches: &FaultyCaches { calls: AtomicU64::new(0), fails: None } };
    for path in place.workspaces() {
        let Some(directory) = path.parent() else { continue };
        let workspace = Workspace::open_or_create(system, directory)?;
        remove_unfinished(system, &workspace, &Listener::default())?;
        let left: Vec<_> = place.unfinished().into_iter().filter(|left| left.starts_with(&path)).collect();
        if !left.is_empty() {
            return Err(Error::Internal(format!("{left:?} stay")));
        }
        workspace.clean()?;
    }
    Ok(())
}
