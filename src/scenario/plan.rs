//! A scenario resolved against drives and options: every path, byte and step known, nothing done yet.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::catalogue;
use super::memory;
use super::options::Options;
use super::spec::{CopySpec, PhaseSpec, Role, ScenarioSpec};
use crate::catalogue::{Environment, Found, is_path};
use crate::corpus::Corpus;
use crate::corpus::catalogue::corpus;
use crate::drive::space::{Need, Room};
use crate::drive::workspace::NAME as WORKSPACE;
use crate::drive::{Drive, Medium, Workspace};
use crate::engine::Engine;
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, System};
use crate::units::{Bytes, Scale, files};
use crate::workload::copy::Order;

/// A corpus is staged in memory when it takes at most this share of what is available: the copy's own pages need room too.
const MEMORY_SHARE_PERCENT: u64 = 50;

/// What is going to be done.
pub struct Plan {
    /// The scenario.
    pub scenario: ScenarioSpec,
    /// BLAKE3 of its text.
    pub spec_digest: blake3::Hash,
    /// Its copies, in order.
    pub copies: Vec<PlannedCopy>,
    /// The directory whose drive is measured, resolved.
    pub target: PathBuf,
    /// What is under it.
    pub target_drive: Drive,
    /// Where data come from.
    pub source: Source,
    /// What the user chose.
    pub options: Options,
    /// How often all is repeated.
    pub runs: u32,
}

/// One copy.
pub struct PlannedCopy {
    /// The name of its phase: `copy`, and the corpus where there are several.
    pub name: String,
    /// The corpus.
    pub corpus: Corpus,
    /// Which drive it is copied from.
    pub from: Role,
}

/// Where data come from that do not come from the target itself.
pub enum Source {
    /// There is no such role: the target is copied to itself.
    Target,
    /// A directory that the user named.
    Directory(PathBuf, Box<Drive>),
    /// A directory of copysim's own in memory.
    Memory(PathBuf),
    /// Made while writing.
    Generated,
}

/// What the user asked for.
pub struct Request<'a> {
    /// The scenario: a name or a path.
    pub scenario: &'a str,
    /// The directory to measure.
    pub target: &'a Path,
    /// The directory to copy from.
    pub source: Option<&'a Path>,
    /// The other choices.
    pub options: Options,
}

impl Plan {
    /// Resolves a request. Nothing is written.
    ///
    /// # Errors
    /// `Refused`: no such scenario, corpus or engine; options that contradict each other; a directory that is none.
    pub fn resolve(request: Request<'_>, system: System<'_>, host: &Host, environment: &Environment) -> Result<Self> {
        let Request { options, .. } = request;
        let (scenario, found) = catalogue::scenario(request.scenario, environment)?;
        let engine = Engine::named(&options.engine)?;
        let copies = scenario.phase.iter().map(|PhaseSpec::Copy(CopySpec { corpus: name, from })| {
            let name = beside(name, &found);
            Ok(PlannedCopy { name: String::new(), corpus: corpus(&name, options.seed, options.scale, environment)?, from: *from })
        });
        let mut copies = copies.collect::<Result<Vec<_>>>()?;
        let several = copies.len() > 1;
        for index in 0..copies.len() {
            let corpus = &copies[index].corpus.spec.name;
            let name = if several { format!("copy {corpus}") } else { "copy".to_owned() };
            if copies[..index].iter().any(|copy| copy.name == name) {
                return Err(found.error(&format!("two phases copy {corpus}: each corpus once")));
            }
            copies[index].name = name;
        }
        let target = resolve_directory(host, system, request.target, Side::Target)?;
        let target_drive = Drive::identify(host, system.files, &target)?;
        let crosses = copies.iter().any(|copy| copy.from == Role::Source);
        let source = match (crosses, request.source) {
            (false, None) => Source::Target,
            (false, Some(source)) => {
                return Err(Error::Refused(format!(
                    "{} copies within one drive: --source {} has no part in it (the -cross-drive scenarios take it)",
                    scenario.name,
                    source.display()
                )));
            }
            (true, Some(source)) => {
                let source = resolve_directory(host, system, source, Side::Source)?;
                if source == target {
                    return Err(Error::Refused(format!("{} is source and target at once: name two directories", source.display())));
                }
                let drive = Box::new(Drive::identify(host, system.files, &source)?);
                Source::Directory(source, drive)
            }
            (true, None) => memory_or_generator(&copies, system, host),
        };
        if let Source::Generated = source {
            let obstacle = match engine {
                Engine::Files("buffered", _) if options.threads <= 1 => None,
                Engine::Files("buffered", _) => Some("--threads"),
                _ => Some("this engine"),
            };
            if let Some(obstacle) = obstacle {
                return Err(Error::Refused(format!(
                    "the corpus does not fit in memory beside its copy, so it would be made while it is written, which {obstacle} can't do: \
                     name a directory with --source, or use a smaller --scale"
                )));
            }
        }
        if let Engine::Command(_) = engine
            && (options.threads > 1 || options.order != Order::Manifest)
        {
            return Err(Error::Refused("--threads and --order are for copysim's own engines: tell the other program by its own options".to_owned()));
        }
        let runs = options.runs.unwrap_or(scenario.runs);
        if runs == 0 {
            return Err(Error::Refused("--runs 0: a scenario runs at least once".to_owned()));
        }
        let plan = Self { spec_digest: blake3::hash(found.text.as_bytes()), scenario, copies, target, target_drive, source, options, runs };
        plan.check_limits()?;
        Ok(plan)
    }

    fn check_limits(&self) -> Result<()> {
        match self.options.max_write {
            Some(limit) if self.bytes_to_write() > limit => Err(Error::Refused(format!(
                "{} would be written, more than --max-write {}: use a smaller --scale or fewer --runs",
                Bytes(self.bytes_to_write()),
                Bytes(limit)
            ))),
            _ => Ok(()),
        }
    }

    /// Whether the corpora lie on the target itself.
    #[must_use]
    pub fn stages_on_target(&self) -> bool {
        self.copies.iter().any(|copy| copy.from == Role::Target)
    }

    /// Bytes that are written to the target in all, staging included, if no corpus is there yet.
    #[must_use]
    pub fn bytes_to_write(&self) -> u64 {
        let copied: u64 = self.copies.iter().map(|copy| copy.corpus.byte_count()).sum();
        copied * u64::from(self.runs) + self.staged_on(Role::Target).map(|copy| copy.corpus.byte_count()).sum::<u64>()
    }

    fn staged_on(&self, role: Role) -> impl Iterator<Item = &PlannedCopy> {
        self.copies.iter().filter(move |copy| copy.from == role)
    }

    /// What the target must hold at its fullest when the corpora whose ids are `present` are there already.
    #[must_use]
    pub fn target_need(&self, present: &[String]) -> Need {
        let copies = self.copies.iter().map(|copy| need(&copy.corpus));
        let staged = self.staged_on(Role::Target).filter(|copy| !present.contains(&copy.corpus.id())).map(|copy| need(&copy.corpus));
        // One copy exists at a time; corpora stay.
        let largest = copies.fold(Need::default(), |a, b| Need {
            bytes: a.bytes.max(b.bytes),
            inodes: a.inodes.max(b.inodes),
            largest_file: a.largest_file.max(b.largest_file),
        });
        staged.fold(largest, add)
    }

    /// What the source directory must hold in addition.
    #[must_use]
    pub fn source_need(&self, present: &[String]) -> Need {
        let staged = self.staged_on(Role::Source).filter(|copy| !present.contains(&copy.corpus.id())).map(|copy| need(&copy.corpus));
        staged.fold(Need::default(), add)
    }

    /// Refuses what does not fit; `Some` is a warning. `needed` tells what a plan needs: of this one, or of the same at another scale.
    ///
    /// # Errors
    /// `Refused`, with the largest scale that fits.
    pub fn check_space(&self, place: &Path, room: Room, needed: &dyn Fn(&Self) -> Need) -> Result<Option<String>> {
        room.check(&place.display().to_string(), self.options.scale, &|scale| match self.at(scale) {
            Ok(plan) => needed(&plan),
            // A scale at which the corpus can't be made does not fit either.
            Err(_) => NEVER,
        })
    }

    /// The same at another scale, for asking what would fit.
    ///
    /// # Errors
    /// `Refused` where the corpora can't be made at it.
    pub fn at(&self, scale: Scale) -> Result<Self> {
        let copies = self.copies.iter().map(|copy| {
            Ok(PlannedCopy { name: copy.name.clone(), corpus: Corpus::new(copy.corpus.spec.clone(), copy.corpus.seed, scale)?, from: copy.from })
        });
        Ok(Self {
            scenario: self.scenario.clone(),
            spec_digest: self.spec_digest,
            copies: copies.collect::<Result<_>>()?,
            target: self.target.clone(),
            target_drive: self.target_drive.clone(),
            source: Source::Target,
            options: Options { scale, ..self.options.clone() },
            runs: self.runs,
        })
    }

    /// Where data come from, as a phrase.
    #[must_use]
    pub fn source_phrase(&self) -> String {
        match &self.source {
            Source::Target => "the same drive".to_owned(),
            Source::Directory(_, drive) => drive.to_string(),
            Source::Memory(path) => format!("memory ({})", path.display()),
            Source::Generated => "the generator, while it is written (it does not fit in memory beside its copy)".to_owned(),
        }
    }

    /// The plan for a person to read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("{}: {}", self.scenario.name, self.scenario.summary),
            format!("  measures    {}", self.target_drive),
            format!("  copies from {}", self.source_phrase()),
        ];
        let workspace = self.target.join(WORKSPACE);
        let mut step = 0;
        let mut add = |text: String| {
            step += 1;
            lines.push(format!("  {step:>2}. {text}"));
        };
        for copy in &self.copies {
            let corpus = &copy.corpus;
            let size = format!("{}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
            let place = match (&self.source, copy.from) {
                (_, Role::Target) | (Source::Target, _) => Some(workspace.clone()),
                (Source::Directory(path, _) | Source::Memory(path), Role::Source) => Some(path.join(WORKSPACE)),
                (Source::Generated, Role::Source) => None,
            };
            if let Some(place) = place {
                add(format!("make {} ({size}) in {}, or reuse it", corpus.id(), place.join("corpora").display()));
            }
        }
        let cache = match self.options.cache {
            crate::cache::evict::Wanted::Cold => "drop caches",
            crate::cache::evict::Wanted::Warm => "read the source into the cache",
            crate::cache::evict::Wanted::AsIs => "leave caches as they are",
        };
        let traced = if self.options.block_trace { " and traced" } else { "" };
        for run in 1..=self.runs {
            for copy in &self.copies {
                let settle = humantime::format_duration(self.options.settle_time());
                add(format!(
                    "run {run}: flush, {cache}, wait until idle for {settle}; then, timed{traced}: copy {} ({}) to {}, and flush",
                    copy.corpus.id(),
                    Bytes(copy.corpus.byte_count()),
                    workspace.join("runs").display()
                ));
                let verify = if self.options.verify { "read the copy again, cold, and compare it; " } else { "" };
                let remove = if self.options.keep && run == self.runs { "keep the copy" } else { "remove the copy" };
                add(format!("run {run}: {verify}{remove}"));
            }
        }
        let need = self.target_need(&[]);
        lines.push(format!(
            "  needs {} of free space on the target and writes {} to it, all below {}",
            Bytes(need.space_bytes()),
            Bytes(self.bytes_to_write()),
            workspace.display()
        ));
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }
}

/// A corpus that a scenario's file names by a relative path lies beside that file.
fn beside<'a>(name: &'a str, scenario: &Found) -> Cow<'a, str> {
    let directory = Path::new(&scenario.origin).parent().filter(|_| is_path(name) && is_path(&scenario.origin));
    directory.and_then(|directory| directory.join(name).into_os_string().into_string().ok()).map_or(Cow::Borrowed(name), Cow::Owned)
}

fn need(corpus: &Corpus) -> Need {
    // A corpus that exists has sizes.
    let largest_file = corpus.files().map_or(0, |files| files.map(|file| file.len).max().unwrap_or(0));
    let files = corpus.file_count();
    // Directories hold some files each; a quarter is more than any of the layouts makes.
    Need { bytes: corpus.byte_count(), inodes: files + files / 4 + 16, largest_file }
}

/// Refuses a corpus that does not fit beside a workspace; `Some` is a warning.
///
/// # Errors
/// `Refused`, with the largest scale that fits.
pub fn corpus_room(system: System<'_>, workspace: &Workspace<'_>, corpus: &Corpus) -> Result<Option<String>> {
    let space = system.files.space(workspace.handle()).during("ask for the space of", Side::Target, workspace.path())?;
    let drive = Drive::identify(&Host::real(), system.files, workspace.directory())?;
    let room = Room { space, max_file_bytes: drive.max_file_bytes() };
    room.check(&workspace.directory().display().to_string(), corpus.scale(), &|scale| {
        Corpus::new(corpus.spec.clone(), corpus.seed, scale).map_or(NEVER, |corpus| need(&corpus))
    })
}

/// What no drive has room for: the need of a corpus that can't be made at a scale.
const NEVER: Need = Need { bytes: u64::MAX, inodes: u64::MAX, largest_file: u64::MAX };

fn add(a: Need, b: Need) -> Need {
    Need { bytes: a.bytes.saturating_add(b.bytes), inodes: a.inodes.saturating_add(b.inodes), largest_file: a.largest_file.max(b.largest_file) }
}

fn resolve_directory(host: &Host, system: System<'_>, path: &Path, side: Side) -> Result<PathBuf> {
    let wanted = if side == Side::Source { "name a directory to copy from" } else { "name a directory on the drive to measure" };
    if path.as_os_str().is_empty() {
        return Err(Error::Refused("the empty path names no directory".to_owned()));
    }
    match system.files.open_root(path) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) => {
            return Err(Error::Refused(format!("{} is not a directory: {wanted}", path.display())));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Refused(format!("{} does not exist: {wanted}", path.display())));
        }
        Err(error) => return Err(error).during("open", side, path),
    }
    let absolute = std::path::absolute(path).during("resolve", side, path)?;
    Ok(host.resolve(&absolute).unwrap_or(absolute))
}

/// Memory, where the corpora fit there with room to spare, else the generator: never a drive that the user did not name.
fn memory_or_generator(copies: &[PlannedCopy], system: System<'_>, host: &Host) -> Source {
    let bytes: u64 = copies.iter().map(|copy| need(&copy.corpus).space_bytes()).sum();
    let available = host.fact("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    });
    let is_memory = |drive: Drive| drive.medium == Medium::Memory;
    let place = Path::new(memory::MEMORY);
    let room = system.files.open_root(place).and_then(|dir| system.files.space(&dir)).ok().and_then(|space| space.available_bytes);
    let fits = |limit: Option<u64>| limit.is_some_and(|limit| bytes <= limit / 100 * MEMORY_SHARE_PERCENT);
    if fits(available) && fits(room) && Drive::identify(host, system.files, place).is_ok_and(is_memory) {
        Source::Memory(memory::place())
    } else {
        Source::Generated
    }
}
