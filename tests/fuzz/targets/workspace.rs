//! The files of a workspace that another may have written: its marker, and what lies beside a corpus.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use copysim::corpus::Corpus;
use copysim::drive::{Workspace, workspace};
use copysim::platform::OS;
use copysim::progress::Cancel;
use copysim::scenario::events::{Event, Observer};
use copysim::scenario::stage::stage;
use copysim::units::Scale;

use super::{Input, assert_shown};

struct Deaf;

impl Observer for Deaf {
    fn on(&self, _: Event) {}

    fn ask(&self, _: &str) -> Option<bool> {
        None
    }
}

/// A place in memory with a whole corpus, for each thread one.
struct Place {
    root: tempfile::TempDir,
    corpus: Corpus,
    good: [(PathBuf, Vec<u8>); 3],
}

fn corpus() -> Corpus {
    let nowhere = copysim::catalogue::Environment { configuration: None };
    copysim::corpus::catalogue::corpus("zero-fill", 0, Scale::from_hundredths(1), &nowhere).unwrap()
}

impl Place {
    fn new() -> Self {
        let memory = std::env::var("COPYSIM_FUZZ_MEMORY").unwrap_or_else(|_| "/dev/shm".to_owned());
        let root = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
        let corpus = corpus();
        let workspace = Workspace::open_or_create(OS, root.path()).unwrap();
        stage(OS, &workspace, &corpus, &Deaf, &Cancel::default(), &mut |_| Ok(())).unwrap();
        let of_corpus = workspace.corpus_path(&corpus.id());
        drop(workspace);
        let files = [root.path().join(workspace::NAME).join("MARKER"), of_corpus.join("STAGED"), of_corpus.join("MANIFEST")];
        let good = files.map(|path| (path.clone(), fs::read(path).unwrap()));
        Self { root, corpus, good }
    }
}

fn with_place<T>(work: impl FnOnce(&Place) -> T) -> T {
    thread_local! {
        static PLACE: OnceLock<Place> = const { OnceLock::new() };
    }
    PLACE.with(|place| work(place.get_or_init(Place::new)))
}

/// Which file, and its content.
pub fn seeds() -> Vec<Vec<u8>> {
    with_place(|place| {
        let good = place.good.iter().enumerate().map(|(index, (_, content))| [&[index as u8], content.as_slice()].concat());
        good.chain([b"\x00copysim-workspace 2\nx".to_vec(), b"\x00".to_vec(), b"\x01".to_vec()]).collect()
    })
}

pub fn run(data: &[u8]) {
    with_place(|place| {
        let mut input = Input(data);
        let (path, good) = &place.good[input.number(1) as usize % place.good.len()];
        fs::write(path, input.0).unwrap();
        match Workspace::open_or_create(OS, place.root.path()) {
            Err(error) => {
                assert_eq!(error.exit_code(), 2, "{error}");
                assert_eq!(fs::read(path).unwrap(), input.0, "what was refused was touched");
            }
            // A corpus that can't be trusted is made again.
            Ok(workspace) => {
                let staged = stage(OS, &workspace, &place.corpus, &Deaf, &Cancel::default(), &mut |_| Ok(())).unwrap();
                assert!(staged.manifest.corpus == place.corpus);
                for foreign in workspace.foreign().unwrap() {
                    assert_shown(&foreign.to_string_lossy());
                }
            }
        }
        fs::write(path, good).unwrap();
    });
}
