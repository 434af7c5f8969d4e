//! A scenario resolved against drives and options: every path, byte and step known, nothing done yet.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::catalogue;
use super::fill;
use super::memory;
use super::needs::need;
use super::options::{Options, State};
use super::spec::{CopySpec, FILL_PERCENT, FillSpec, LaunchSpec, PhaseSpec, Role, ScenarioSpec, Start};
use crate::catalogue::{Environment, Found, is_path};
use crate::corpus::Corpus;
use crate::corpus::catalogue::corpus;
use crate::drive::{Drive, Medium};
use crate::engine::Engine;
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, Space, System};
use crate::result::PhaseKind;
use crate::units::Scale;
use crate::workload::copy::Order;
use crate::workload::launch::{Play, StepSpec};

/// A corpus is staged in memory when it takes at most this share of what is available: the copy's own pages need room too.
const MEMORY_SHARE_PERCENT: u64 = 50;

/// What is going to be done.
pub struct Plan {
    /// The scenario.
    pub scenario: ScenarioSpec,
    /// BLAKE3 of its text.
    pub spec_digest: blake3::Hash,
    /// What is timed in each run, in order.
    pub phases: Vec<PlannedPhase>,
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
    /// How full the target is made first, percent.
    pub fill_percent: Option<u8>,
    /// The space of the target's file system when the plan was made.
    pub space: Space,
}

/// One timed piece of work on a tree.
#[derive(Clone)]
pub struct PlannedPhase {
    /// Its name in the record: `copy`, and the corpus where there are several.
    pub name: String,
    /// The tree.
    pub corpus: Corpus,
    /// What is done with it.
    pub work: PlannedWork,
}

/// What is done with a tree.
#[derive(Clone)]
pub enum PlannedWork {
    /// It is copied from a drive to the target.
    Copy(Role),
    /// It is written to the target while it is made.
    Fill,
    /// The start of the program that it is is played on the target.
    Launch(Box<PlannedLaunch>),
}

/// A start to be played.
#[derive(Clone)]
pub struct PlannedLaunch {
    /// Its steps as they are written.
    pub steps: Vec<StepSpec>,
    /// The steps made concrete.
    pub play: Play,
    /// Which start it is.
    pub start: Start,
    /// What is copied from the target to itself meanwhile.
    pub during: Option<Corpus>,
    /// How much memory there is for what is read, percent of all that is read; `None` for as much as the machine has.
    pub memory_percent: Option<u8>,
    /// What stands in where memory can't be limited.
    pub otherwise: Vec<PlannedPhase>,
}

impl PlannedPhase {
    /// What it is in the record.
    #[must_use]
    pub fn kind(&self) -> PhaseKind {
        match self.work {
            PlannedWork::Copy(_) => PhaseKind::Copy,
            PlannedWork::Fill => PhaseKind::Write,
            PlannedWork::Launch(_) => PhaseKind::Launch,
        }
    }

    /// Which drive it is copied from; `None` where it is no copy.
    #[must_use]
    pub fn copied_from(&self) -> Option<Role> {
        if let PlannedWork::Copy(from) = self.work { Some(from) } else { None }
    }

    /// On which drive its tree must be; `None` for one that is made while it is written.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.staged().first().map(|(role, _)| *role)
    }

    /// The start that is played, where it is one.
    #[must_use]
    pub fn launch(&self) -> Option<&PlannedLaunch> {
        if let PlannedWork::Launch(launch) = &self.work { Some(launch) } else { None }
    }

    /// The corpora that must be there before, and on which drive: its own first.
    #[must_use]
    pub fn staged(&self) -> Vec<(Role, &Corpus)> {
        match &self.work {
            PlannedWork::Copy(from) => vec![(*from, &self.corpus)],
            PlannedWork::Fill => Vec::new(),
            PlannedWork::Launch(launch) => {
                let beside = launch.during.iter().map(|corpus| (Role::Target, corpus));
                let otherwise = launch.otherwise.iter().flat_map(Self::staged);
                std::iter::once((Role::Target, &self.corpus)).chain(beside).chain(otherwise).collect()
            }
        }
    }
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
    /// The directory to measure; `None` for the current one, which is never filled up.
    pub target: Option<&'a Path>,
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
        if request.target.is_none() && scenario.phase.iter().any(|phase| matches!(phase, PhaseSpec::Fill(_))) {
            return Err(Error::Refused(format!("{} fills a drive: name a directory on it", scenario.name)));
        }
        let target = resolve_directory(host, system, request.target.unwrap_or(Path::new(".")), Side::Target)?;
        let target_drive = Drive::identify(host, system.files, &target)?;
        let asked = system.files.open_root(&target).and_then(|dir| system.files.space(&dir));
        let fills = scenario.phase.iter().any(|phase| matches!(phase, PhaseSpec::Fill(_)));
        // Else it is asked again before anything is written.
        let matters = fills || options.fill.is_some() || options.state == State::Dirty;
        let space = if matters { asked.during("ask for the space of", Side::Target, &target)? } else { asked.unwrap_or_default() };
        let making = Making { options: &options, environment, system, space, target: &target };
        let mut phases = making.phases(&scenario, &found)?;
        let several = phases.len() > 1;
        for index in 0..phases.len() {
            let corpus = phases[index].corpus.spec.name.clone();
            if several && phases[index].name == "copy" {
                phases[index].name = format!("copy {corpus}");
            }
            if phases[..index].iter().any(|phase| phase.name == phases[index].name) {
                return Err(found.error(&format!("two phases are called \"{}\": each name and each copied corpus once", phases[index].name)));
            }
        }
        let fills = phases.iter().any(|phase| matches!(phase.work, PlannedWork::Fill));
        let fill_percent = options.fill.filter(|&percent| percent > 0 && !fills);
        let crosses = phases.iter().any(|phase| phase.copied_from() == Some(Role::Source));
        let launches = phases.iter().any(|phase| phase.launch().is_some());
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
                if source == target || is_one_directory(system, &source, &target)? {
                    return Err(Error::Refused(format!("{} is source and target at once: name two directories", source.display())));
                }
                let drive = Box::new(Drive::identify(host, system.files, &source)?);
                Source::Directory(source, drive)
            }
            (true, None) => memory_or_generator(&phases, system, host),
        };
        if let Source::Generated = source
            && let Some(obstacle) = obstacle_to_making(&engine, &options)
        {
            return Err(Error::Refused(format!(
                "the corpus does not fit in memory beside its copy, so it would be made while it is written, which {obstacle} can't do: \
                 name a directory with --source, or use a smaller --scale"
            )));
        }
        if fills && let Some(obstacle) = obstacle_to_making(&engine, &options) {
            return Err(Error::Refused(format!("{} writes data that are made meanwhile, which {obstacle} can't do", scenario.name)));
        }
        check_state(&options, phases.len(), fills, &engine, &target_drive, space)?;
        if launches && (options.control || options.keep) {
            return Err(Error::Refused("--control and --keep are for copies: a start leaves none".to_owned()));
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
        let spec_digest = blake3::hash(found.text.as_bytes());
        let plan = Self { spec_digest, scenario, phases, target, target_drive, source, options, runs, fill_percent, space };
        plan.check_limits()?;
        Ok(plan)
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
}

/// What the phases of a scenario are planned by.
struct Making<'a> {
    options: &'a Options,
    environment: &'a Environment,
    system: System<'a>,
    space: Space,
    target: &'a Path,
}

impl Making<'_> {
    /// The phases of a scenario; those of the scenarios of a suite bear its name.
    fn phases(&self, scenario: &ScenarioSpec, found: &Found) -> Result<Vec<PlannedPhase>> {
        let mut phases = Vec::new();
        for spec in &scenario.phase {
            let PhaseSpec::Scenario(name) = spec else {
                phases.push(self.phase(spec, scenario, found)?);
                continue;
            };
            let (part, part_found) = catalogue::scenario(&beside(name, found), self.environment)?;
            if part.phase.iter().any(|phase| matches!(phase, PhaseSpec::Scenario(_))) {
                return Err(found.error(&format!("scenario = \"{name}\": a suite is not made of suites")));
            }
            for phase in self.phases(&part, &part_found)? {
                phases.push(PlannedPhase { name: format!("{}: {}", part.name, phase.name), ..phase });
            }
        }
        Ok(phases)
    }

    fn phase(&self, spec: &PhaseSpec, scenario: &ScenarioSpec, found: &Found) -> Result<PlannedPhase> {
        let Self { options, environment, system, space, target } = *self;
        let named = |name: &str, scale| corpus(&beside(name, found), options.seed, scale, environment);
        Ok(match spec {
            PhaseSpec::Copy(CopySpec { corpus, from }) => {
                PlannedPhase { name: "copy".to_owned(), corpus: named(corpus, options.scale)?, work: PlannedWork::Copy(*from) }
            }
            PhaseSpec::Fill(FillSpec { to_percent }) => {
                let corpus = fill::up_to(options.fill.unwrap_or(*to_percent), space, system.clock, options.scale, target)?;
                PlannedPhase { name: "fill".to_owned(), corpus, work: PlannedWork::Fill }
            }
            PhaseSpec::Launch(LaunchSpec { name, program, start, during, steps_of, memory_percent, otherwise }) => {
                let corpus = named(program, options.scale)?;
                let other = |name: &str| catalogue::scenario(&beside(name, found), environment);
                let steps = match steps_of {
                    Some(other_name) => other(other_name)?.0.step,
                    None => scenario.step.clone(),
                };
                let play = Play::new(&steps, &corpus)?;
                let otherwise = match otherwise {
                    Some(name) => {
                        let (spec, found) = other(name)?;
                        self.phases(&spec, &found)?
                    }
                    None => Vec::new(),
                };
                let part = |percent: u8| Scale::from_hundredths((options.scale.hundredths() * u32::from(percent) / 100).max(1));
                let during = during.as_ref().map(|during| named(&during.copy, part(during.scale_percent))).transpose()?;
                PlannedPhase {
                    name: name.clone(),
                    corpus,
                    work: PlannedWork::Launch(Box::new(PlannedLaunch {
                        steps,
                        play,
                        start: *start,
                        during,
                        memory_percent: *memory_percent,
                        otherwise,
                    })),
                }
            }
            PhaseSpec::Scenario(name) => return Err(found.error(&format!("scenario = \"{name}\" stands within another"))),
        })
    }
}

/// A corpus that a scenario's file names by a relative path lies beside that file.
fn beside<'a>(name: &'a str, scenario: &Found) -> Cow<'a, str> {
    let directory = Path::new(&scenario.origin).parent().filter(|_| is_path(name) && is_path(&scenario.origin));
    directory.and_then(|directory| directory.join(name).into_os_string().into_string().ok()).map_or(Cow::Borrowed(name), Cow::Owned)
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

/// Whether two paths lead to one directory, by whichever links and mounts.
fn is_one_directory(system: System<'_>, one: &Path, other: &Path) -> Result<bool> {
    let identity = |path: &Path| -> Result<_> {
        let stat = system.files.open_root(path).and_then(|dir| system.files.stat(&dir)).during("look at", Side::Host, path)?;
        Ok((stat.device, stat.inode))
    };
    Ok(identity(one)? == identity(other)?)
}

/// What among the choices can't write a corpus that is made meanwhile.
fn obstacle_to_making(engine: &Engine, options: &Options) -> Option<&'static str> {
    match engine {
        Engine::Files("buffered", _) if options.threads <= 1 => None,
        Engine::Files("buffered", _) => Some("--threads"),
        _ => Some("this engine"),
    }
}

/// What can't be had of `--fill`, `--state` and `--control` is said before anything is written.
fn check_state(options: &Options, phases: usize, fills: bool, engine: &Engine, drive: &Drive, space: Space) -> Result<()> {
    let refuse = |sentence: &str| Err(Error::Refused(sentence.to_owned()));
    if options.fill.is_some_and(|percent| percent > *FILL_PERCENT.end()) {
        return refuse("--fill: at most 98 %, a full file system has no room for its own needs");
    }
    if options.control && phases > 1 {
        return refuse("--control: it is compared with one copy, and this scenario has several");
    }
    if options.control && fills {
        return refuse("--control: what this scenario writes is new to the drive anyway");
    }
    if options.control && !matches!(engine, Engine::Files("buffered", _)) {
        return refuse("--control: only the engine \"buffered\" can write other data than it reads");
    }
    let needs_space = options.state == State::Dirty || options.fill.is_some_and(|percent| percent > 0);
    if needs_space && (space.total_bytes.is_none() || space.available_bytes.is_none()) {
        return refuse("--fill and --state dirty: the file system does not say how much space it has");
    }
    let discards = drive.has_mount_option("discard") || drive.has_mount_option("discard=async");
    if options.state == State::Dirty && discards {
        return refuse("--state dirty: the file system is mounted with discard and tells the drive of all that is removed");
    }
    Ok(())
}

/// Memory, where the corpora fit there with room to spare, else the generator: never a drive that the user did not name.
fn memory_or_generator(phases: &[PlannedPhase], system: System<'_>, host: &Host) -> Source {
    let from_source = phases.iter().filter(|phase| phase.copied_from() == Some(Role::Source));
    let bytes: u64 = from_source.map(|phase| need(&phase.corpus).space_bytes()).sum();
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
