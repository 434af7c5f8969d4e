//! Steps made concrete: which file, which place, which size, in which order, all known before the clock starts.

use std::collections::HashSet;

use super::steps::{ArchiveSpec, Does, LibrariesSpec, MapSpec, PAGE, ReadSpec, SearchSpec, StepSpec, WriteSpec};
use crate::corpus::random::{Choices, Shares};
use crate::corpus::{Corpus, FileMeta};
use crate::error::{Error, Result};
use crate::units::Scale;

/// The part of an archive that its index takes, at its end.
const INDEX_BYTES: u64 = 64 << 10;

/// One thing that is asked of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Opens a name that is not there.
    Miss(String),
    /// Opens the file.
    Open,
    /// Looks at the open file.
    Stat,
    /// Reads of the open file.
    Read {
        /// Where.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// Maps the open file.
    Map,
    /// Faults a part of the mapping in.
    Fault {
        /// Where.
        offset: u64,
        /// How much is read around it.
        len: u64,
    },
    /// Closes the file.
    Close,
    /// Makes a file for writing, under the name that it has until it is whole.
    Create,
    /// Writes on where the last write ended.
    Write {
        /// How many bytes.
        len: u64,
    },
    /// Flushes the file that is being written.
    Flush,
    /// Closes the file and gives it its name.
    Rename,
}

/// What one thread does, one act after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The file: within the tree, or for what is written within the run's directory.
    pub path: String,
    /// Its length, bytes.
    pub len: u64,
    /// What is done with it.
    pub acts: Vec<Act>,
}

/// A step made concrete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedStep {
    /// What the program does in it.
    pub does: String,
    /// So many items at once.
    pub at_once: u32,
    /// The items, in order.
    pub items: Vec<Item>,
    /// How long it thinks after each act, ns; after nothing where there are no items.
    pub think_ns: u64,
}

impl PlayedStep {
    /// How often it thinks.
    #[must_use]
    pub fn thoughts(&self) -> u64 {
        let acts: usize = self.items.iter().map(|item| item.acts.len()).sum();
        (acts as u64).max(1)
    }
}

/// A start made concrete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Play {
    /// The steps, in order.
    pub steps: Vec<PlayedStep>,
}

impl Play {
    /// The play of these steps over a tree. At a scale other than 100 % reads, faults, misses and thinking scale, and files as far as there are any.
    ///
    /// # Errors
    /// `Refused` where a step wants files of a directory that the tree does not have.
    pub fn new(steps: &[StepSpec], corpus: &Corpus) -> Result<Self> {
        let mut tree = Tree::of(corpus)?;
        let key = corpus.key();
        let mut played = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let maker = Maker { tree: &mut tree, choices: Choices::new(&key, &format!("step {index}")), scale: corpus.scale(), step };
            played.push(maker.make(index)?);
        }
        Ok(Self { steps: played })
    }

    /// All acts, in the order of the items that they belong to.
    pub fn acts(&self) -> impl Iterator<Item = (&PlayedStep, &Item, &Act)> {
        self.steps.iter().flat_map(|step| step.items.iter().flat_map(move |item| item.acts.iter().map(move |act| (step, item, act))))
    }

    /// How long it thinks in all, ns.
    #[must_use]
    pub fn think_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.think_ns * step.thoughts()).sum()
    }

    /// Files that it writes.
    #[must_use]
    pub fn written(&self) -> Vec<(&str, u64)> {
        let items = self.steps.iter().flat_map(|step| &step.items);
        items.filter(|item| item.acts.contains(&Act::Create)).map(|item| (item.path.as_str(), item.len)).collect()
    }
}

/// The files of a tree, and which of them a step has opened: none is opened by two, or the second would find it in memory.
struct Tree {
    id: String,
    files: Vec<FileMeta>,
    opened: HashSet<u64>,
    /// The files at 100 %, where the tree is at another scale.
    full: Option<Vec<String>>,
}

impl Tree {
    fn of(corpus: &Corpus) -> Result<Self> {
        let full = || -> Result<Vec<String>> {
            let full = Corpus::new(corpus.spec.clone(), corpus.seed, Scale::FULL)?;
            Ok(full.files()?.map(|file| file.path).collect())
        };
        let full = if corpus.scale() == Scale::FULL { None } else { Some(full()?) };
        Ok(Self { id: corpus.id(), files: corpus.files()?.collect(), opened: HashSet::new(), full })
    }

    /// # Errors
    /// A phrase where there is no file below a directory.
    fn has(&self, from: &str) -> std::result::Result<(), String> {
        if self.files.iter().any(|file| is_below(&file.path, from)) { Ok(()) } else { Err(format!("{} has no files in \"{from}\"", self.id)) }
    }

    /// So many files below a directory that no step has opened yet, spread evenly, in manifest order. At another scale than 100 % it is the same share of them.
    ///
    /// # Errors
    /// A phrase where there are none.
    fn choose(&mut self, from: &str, wanted: u32) -> std::result::Result<Vec<FileMeta>, String> {
        let below: Vec<&FileMeta> = self.files.iter().filter(|file| is_below(&file.path, from)).collect();
        let at_full = self.full.as_ref().map_or(below.len(), |paths| paths.iter().filter(|path| is_below(path, from)).count());
        let wanted = (wanted as usize * below.len()).div_ceil(at_full.max(1));
        let left: Vec<&FileMeta> = below.into_iter().filter(|file| !self.opened.contains(&file.ordinal)).collect();
        if left.is_empty() && (self.full.is_none() || at_full == 0) {
            return Err(format!("{} has no files in \"{from}\" that no step before has opened", self.id));
        }
        let wanted = wanted.min(left.len());
        let chosen: Vec<FileMeta> = (0..wanted).map(|index| left[index * left.len() / wanted].clone()).collect();
        self.opened.extend(chosen.iter().map(|file| file.ordinal));
        Ok(chosen)
    }
}

/// Whether a file lies below a directory of the tree; `.` is the tree itself.
fn is_below(path: &str, directory: &str) -> bool {
    directory == "." || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Makes one step.
struct Maker<'a> {
    tree: &'a mut Tree,
    choices: Choices,
    scale: Scale,
    step: &'a StepSpec,
}

/// Pages next to each other, and how they are read: by so many pages at a time.
type Run = Vec<u64>;

impl Maker<'_> {
    fn make(mut self, index: usize) -> Result<PlayedStep> {
        let items = match self.step.does() {
            Does::Search(search) => self.search(search)?,
            Does::Read(read) => self.read(read)?,
            Does::Map(map) => self.map(map)?,
            Does::Libraries(libraries) => self.libraries(libraries)?,
            Does::Archive(archive) => self.archive(archive)?,
            Does::Write(write) => self.write(write, index),
            Does::Think => Vec::new(),
        };
        let mut step = PlayedStep { does: self.step.does.clone(), at_once: self.step.at_once, items, think_ns: 0 };
        step.think_ns = self.scale.of(u64::from(self.step.think_ms) * 1_000_000) / step.thoughts();
        Ok(step)
    }

    fn scaled(&self, number: u32) -> u64 {
        self.scale.of(u64::from(number)).max(1)
    }

    fn choose(&mut self, from: &str, wanted: u32) -> Result<Vec<FileMeta>> {
        self.tree.choose(from, wanted).map_err(|reason| Error::Refused(format!("step \"{}\": {reason}", self.step.does)))
    }

    fn search(&mut self, search: &SearchSpec) -> Result<Vec<Item>> {
        // In a directory that is there, as a search path has it.
        self.tree.has(&search.from).map_err(|reason| Error::Refused(format!("step \"{}\": {reason}", self.step.does)))?;
        let name = |choices: &mut Choices| format!("{}/{:016x}", search.from, choices.bits());
        let items = (0..self.scaled(search.misses)).map(|_| {
            let path = name(&mut self.choices);
            Item { acts: vec![Act::Miss(path.clone())], path, len: 0 }
        });
        Ok(items.collect())
    }

    fn read(&mut self, read: &ReadSpec) -> Result<Vec<Item>> {
        let items = self.choose(&read.from, read.files)?.into_iter().map(|file| {
            let mut acts = vec![Act::Open, Act::Stat];
            let end = file.len.min(read.first_bytes.unwrap_or(u64::MAX));
            let mut offset = 0;
            while offset < end {
                let len = read.block_bytes.min(end - offset);
                acts.push(Act::Read { offset, len });
                offset += len;
            }
            acts.push(Act::Close);
            Item { path: file.path, len: file.len, acts }
        });
        Ok(items.collect())
    }

    fn map(&mut self, map: &MapSpec) -> Result<Vec<Item>> {
        let files = self.choose(&map.from, map.files)?;
        let counts = shares(self.scaled(map.faults), &files);
        let mut items = Vec::new();
        for (file, faults) in files.iter().zip(counts) {
            let runs = equal_runs(faults, map.run, map.around_bytes);
            for part in self.places(file, 0, 0, runs) {
                let faults = part.into_iter().map(|(offset, pages)| Act::Fault { offset, len: pages * PAGE });
                let acts = [Act::Open, Act::Map].into_iter().chain(faults).chain([Act::Close]).collect();
                items.push(Item { path: file.path.clone(), len: file.len, acts });
            }
        }
        Ok(items)
    }

    fn libraries(&mut self, libraries: &LibrariesSpec) -> Result<Vec<Item>> {
        let mut files = self.choose(&libraries.from, libraries.files)?;
        // Who needs whom is drawn as an order: each comes after those that it may need.
        shuffle(&mut files, &mut self.choices);
        let counts = shares(self.scaled(libraries.faults), &files);
        let mut items = Vec::new();
        for (file, faults) in files.iter().zip(counts) {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            let misses = (0..libraries.misses_each).map(|directory| Act::Miss(format!("{}/search-{directory}-{name}", libraries.from)));
            let mut acts: Vec<Act> = misses.collect();
            acts.extend([Act::Open, Act::Read { offset: 0, len: PAGE.min(file.len) }, Act::Stat, Act::Map]);
            // One after another: what a library needs must be there.
            let runs = equal_runs(faults, libraries.run, libraries.around_bytes);
            acts.extend(self.runs(file, PAGE, 0, runs).concat().into_iter().map(|(offset, pages)| Act::Fault { offset, len: pages * PAGE }));
            acts.push(Act::Close);
            items.push(Item { path: file.path.clone(), len: file.len, acts });
        }
        Ok(items)
    }

    fn archive(&mut self, archive: &ArchiveSpec) -> Result<Vec<Item>> {
        let files = self.choose(&archive.from, archive.files)?;
        let mut sizes: Vec<u64> = Vec::new();
        for reads in &archive.reads {
            sizes.extend(std::iter::repeat_n(reads.bytes / PAGE, usize::try_from(self.scaled(reads.n)).unwrap_or(0)));
        }
        let reads = sizes.len() as u64;
        shuffle(&mut sizes, &mut self.choices);
        let mut sizes = sizes.into_iter();
        let counts = shares(reads, &files);
        let mut items = Vec::new();
        for (file, reads) in files.iter().zip(counts) {
            let index = file.len.saturating_sub(INDEX_BYTES) / PAGE * PAGE;
            let of_file: Vec<u64> = sizes.by_ref().take(usize::try_from(reads).unwrap_or(0)).collect();
            let runs: Vec<Run> = of_file.chunks(archive.run as usize).map(<[u64]>::to_vec).collect();
            for (number, part) in self.places(file, 0, file.len - index, runs).into_iter().enumerate() {
                let mut acts = vec![Act::Open];
                if number == 0 {
                    acts.extend([Act::Stat, Act::Read { offset: index, len: file.len - index }]);
                }
                acts.extend(part.into_iter().map(|(offset, pages)| Act::Read { offset, len: pages * PAGE }));
                acts.push(Act::Close);
                items.push(Item { path: file.path.clone(), len: file.len, acts });
            }
        }
        Ok(items)
    }

    fn write(&self, write: &WriteSpec, index: usize) -> Vec<Item> {
        let files = self.scaled(write.files);
        let item = |number: u64| {
            let mut acts = vec![Act::Create];
            let mut left = write.bytes;
            while left > 0 {
                let len = write.block_bytes.min(left);
                acts.push(Act::Write { len });
                left -= len;
            }
            // Those that are flushed are spread evenly among the others.
            let upto = |number: u64| (number * u64::from(write.flushed)).div_ceil(u64::from(write.files));
            if upto(number + 1) > upto(number) {
                acts.push(Act::Flush);
            }
            acts.push(Act::Rename);
            Item { path: format!("step-{index:02}-{number:04}"), len: write.bytes, acts }
        };
        (0..files).map(item).collect()
    }

    /// The places of runs in a file, shuffled and shared among as many parts as work on it at once.
    fn places(&mut self, file: &FileMeta, front: u64, back: u64, runs: Vec<Run>) -> Vec<Vec<(u64, u64)>> {
        let places = self.runs(file, front, back, runs);
        let parts = (self.step.at_once as usize).min(places.len()).max(1);
        let each = places.len().div_ceil(parts).max(1);
        let mut parts: Vec<Vec<(u64, u64)>> = places.chunks(each).map(<[_]>::concat).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        parts
    }

    /// Runs laid out in a file with gaps between them, none twice, then shuffled. `front` and `back` bytes of the file are left out. What does not fit is left
    /// out, too: a file at a small scale has few pages.
    fn runs(&mut self, file: &FileMeta, front: u64, back: u64, mut runs: Vec<Run>) -> Vec<Vec<(u64, u64)>> {
        let first = front.div_ceil(PAGE);
        let pages = (file.len.saturating_sub(back) / PAGE).saturating_sub(first);
        let mut taken: u64 = runs.iter().flatten().sum();
        while taken > pages {
            let Some(last) = runs.pop() else { break };
            taken -= last.iter().sum::<u64>();
        }
        let weights: Vec<u64> = runs.iter().map(|_| 1 + self.choices.below(1 << 20)).collect();
        // The gap behind the last run is one of them.
        let all = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>() + (1 << 19);
        let mut gaps = Shares::new(pages - taken, all);
        let mut at = first;
        let mut places: Vec<Vec<(u64, u64)>> = Vec::new();
        for (run, weight) in runs.iter().zip(weights) {
            at += gaps.next(weight);
            let mut place = Vec::new();
            for &length in run {
                place.push((at * PAGE, length));
                at += length;
            }
            places.push(place);
        }
        shuffle(&mut places, &mut self.choices);
        places
    }
}

/// So many pieces of a size in all, `run` of them next to each other.
fn equal_runs(number: u64, run: u32, bytes: u64) -> Vec<Run> {
    let (run, pages) = (u64::from(run), bytes / PAGE);
    let full = (0..number / run).map(|_| vec![pages; run as usize]);
    let rest = Some(vec![pages; (number % run) as usize]).filter(|rest| !rest.is_empty());
    full.chain(rest).collect()
}

/// A number of things shared among files in proportion to their length.
fn shares(number: u64, files: &[FileMeta]) -> Vec<u64> {
    let mut shares = Shares::new(number, files.iter().map(|file| u128::from(file.len)).sum());
    files.iter().map(|file| shares.next(file.len)).collect()
}

/// A random order (Fisher and Yates).
fn shuffle<T>(things: &mut [T], choices: &mut Choices) {
    for last in (1..things.len()).rev() {
        things.swap(last, choices.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::catalogue::Environment;
    use crate::corpus::catalogue::corpus;
    use crate::scenario::catalogue::scenario;
    use crate::scenario::spec::{PhaseSpec, ScenarioSpec};
    use crate::workload::launch::{differences, shape};

    const STARTS: [&str; 5] = ["browser", "game", "ide", "office-suite", "photo-editor"];

    fn start(program: &str, percent: u32) -> (ScenarioSpec, Play) {
        let environment = Environment::default();
        let (spec, _) = scenario(&format!("app-load-{program}"), &environment).unwrap();
        let PhaseSpec::Launch(launch) = &spec.phase[0] else { panic!("{program} is no start") };
        let tree = corpus(&launch.program, 0, Scale::from_hundredths(percent * 100), &environment).unwrap();
        let play = Play::new(&spec.step, &tree).unwrap();
        (spec, play)
    }

    #[test]
    fn every_start_has_the_shape_that_its_scenario_states() {
        let mut wrong = Vec::new();
        for program in STARTS {
            let (spec, play) = start(program, 100);
            let found = shape(&play);
            let differences = spec.shape.map_or_else(|| vec!["no shape is stated".to_owned()], |stated| differences(&found, &stated));
            wrong.extend((!differences.is_empty()).then(|| format!("{program}: {differences:?}: {found:?}")));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// What is read twice would come from memory the second time.
    #[test]
    fn no_page_is_read_twice_and_none_lies_beyond_its_file() {
        for (program, percent) in STARTS.into_iter().flat_map(|program| [100, 7, 1].map(|percent| (program, percent))) {
            let (_, play) = start(program, percent);
            let mut pages: HashSet<(&str, u64)> = HashSet::new();
            let mut opened: HashMap<&str, &str> = HashMap::new();
            for (step, item, act) in play.acts() {
                if *act == Act::Open {
                    assert_eq!(*opened.entry(&item.path).or_insert(&step.does), step.does, "{} is opened by two steps", item.path);
                }
                let (Act::Read { offset, len } | Act::Fault { offset, len }) = act else { continue };
                let mapped = item.len.next_multiple_of(PAGE);
                assert!(
                    *len > 0 && offset + len <= if matches!(act, Act::Fault { .. }) { mapped } else { item.len },
                    "{program}: {act:?} of {item:?}"
                );
                for page in offset / PAGE..(offset + len).div_ceil(PAGE) {
                    assert!(pages.insert((&item.path, page)), "{program} at {percent} %: {} page {page} is read twice", item.path);
                }
            }
            assert!(pages.len() > 20, "{program}");
        }
    }

    #[test]
    fn the_same_tree_is_played_the_same_way() {
        assert_eq!(start("ide", 20).1, start("ide", 20).1);
    }

    #[test]
    fn thinking_is_spread_over_what_is_done_and_scales() {
        let (spec, play) = start("game", 100);
        let stated: u64 = spec.step.iter().map(|step| u64::from(step.think_ms) * 1_000_000).sum();
        assert!(play.think_ns() <= stated && play.think_ns() > stated / 1000 * 995, "{} of {stated}", play.think_ns());
        let tenth = start("game", 10).1.think_ns();
        assert!(tenth > stated / 1000 * 95 && tenth <= stated / 10, "{tenth}");
    }

    fn step(text: &str) -> std::result::Result<StepSpec, String> {
        let step: StepSpec = toml::from_str(text).map_err(|error| error.to_string())?;
        step.check().map(|()| step)
    }

    #[test]
    fn steps_that_say_nothing_or_too_much_are_refused_with_their_key() {
        for (text, said) in [
            ("does = 'x'", "say one of"),
            ("does = 'x'\nread = { from = 'lib', files = 1 }\nsearch = { from = 'lib', misses = 1 }", "say one of"),
            ("does = 'x'\nat_once = 0\nthink_ms = 1", "at_once"),
            ("does = 'x'\nread = { from = 'lib', files = 0 }", "read.files"),
            ("does = 'x'\nread = { from = 'lib', files = 1, block_bytes = 1000 }", "read.block_bytes"),
            ("does = 'x'\nread = { from = 'lib', files = 1, first_bytes = 0 }", "read.first_bytes"),
            ("does = 'x'\nmap = { from = 'lib', files = 1, faults = 1, run = 0 }", "map.run"),
            ("does = 'x'\narchive = { from = 'lib', files = 1, reads = [] }", "archive.reads"),
            ("does = 'x'\narchive = { from = 'lib', files = 1, reads = [{ bytes = 5, n = 1 }] }", "archive.reads.bytes"),
            ("does = 'x'\nwrite = { files = 1, bytes = 1, flushed = 2 }", "write.flushed"),
            ("does = 'x'\nwrite = { files = 1, bytes = 1, renamed = 2 }", "renamed"),
        ] {
            let refused = step(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
        let missing = step("does = 'x'\nread = { from = 'nowhere', files = 1 }").unwrap();
        let tree = corpus("browser", 0, Scale::FULL, &Environment::default()).unwrap();
        assert!(Play::new(&[missing], &tree).unwrap_err().to_string().contains("nowhere"));
    }
}
