//! What a plan takes: bytes written, space and inodes, and whether a drive has them.

use std::path::Path;

use super::fill;
use super::options::{Options, State};
use super::plan::{Plan, PlannedLaunch, PlannedPhase, PlannedWork, Source};
use super::spec::Role;
use crate::corpus::Corpus;
use crate::drive::space::{Need, Room};
use crate::drive::{Drive, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, System};
use crate::units::{Bytes, Scale};
use crate::workload::launch::{Play, shape};

impl Plan {
    pub(super) fn check_limits(&self) -> Result<()> {
        match self.options.max_write {
            Some(limit) if self.bytes_to_write() > limit => Err(Error::Refused(format!(
                "{} would be written, more than --max-write {}: use a smaller --scale or fewer --runs",
                Bytes(self.bytes_to_write()),
                Bytes(limit)
            ))),
            _ => Ok(()),
        }
    }

    /// Whether the engine copies at all.
    pub(super) fn engine_copies(&self) -> bool {
        self.options.engine != "null"
    }

    /// Whether corpora lie on the target itself.
    #[must_use]
    pub fn stages_on_target(&self) -> bool {
        !self.staged_on(Role::Target).is_empty()
    }

    /// Bytes that are written to the target in all, staging included, if no corpus is there yet. How much is copied while a program starts is not known before.
    #[must_use]
    pub fn bytes_to_write(&self) -> u64 {
        let timed: u64 = self.phases.iter().map(PlannedPhase::bytes_written).sum();
        let staged: u64 = self.staged_on(Role::Target).iter().map(|corpus| corpus.byte_count()).sum();
        let repeated = u64::from(self.runs) + u64::from(self.options.control);
        timed * repeated + staged + self.bytes_to_prepare(staged)
    }

    /// Bytes that are written to bring the target into its state, when so many are staged on it.
    #[must_use]
    pub fn bytes_to_prepare(&self, staged: u64) -> u64 {
        let fills = self.fill_percent.map_or(0, |percent| fill::missing_bytes(percent, self.space).saturating_sub(staged));
        let dirties = if self.options.state == State::Dirty { self.space.available_bytes.unwrap_or(0).saturating_sub(staged) } else { 0 };
        fills + dirties
    }

    /// The corpora that must be there on a drive, each once.
    #[must_use]
    pub fn staged_on(&self, role: Role) -> Vec<&Corpus> {
        let mut staged: Vec<&Corpus> = Vec::new();
        for (_, corpus) in self.phases.iter().flat_map(PlannedPhase::staged).filter(|(on, _)| *on == role) {
            if !staged.contains(&corpus) {
                staged.push(corpus);
            }
        }
        staged
    }

    /// What the target must hold at its fullest when the corpora whose ids are `present` are there already.
    #[must_use]
    pub fn target_need(&self, present: &[String]) -> Need {
        let phases = self.phases.iter().map(PlannedPhase::need);
        let staged = self.staged_on(Role::Target).into_iter().filter(|corpus| !present.contains(&corpus.id())).map(need);
        // One copy exists at a time, unless each of the last run stays; corpora stay.
        let most =
            |a: Need, b: Need| Need { bytes: a.bytes.max(b.bytes), inodes: a.inodes.max(b.inodes), largest_file: a.largest_file.max(b.largest_file) };
        let largest = phases.fold(Need::default(), if self.options.keep { add } else { most });
        staged.fold(largest, add)
    }

    /// What the source directory must hold in addition.
    #[must_use]
    pub fn source_need(&self, present: &[String]) -> Need {
        let staged = self.staged_on(Role::Source).into_iter().filter(|corpus| !present.contains(&corpus.id())).map(need);
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
        let phases = self.phases.iter().map(|phase| self.phase_at(phase, scale));
        Ok(Self {
            scenario: self.scenario.clone(),
            spec_digest: self.spec_digest,
            phases: phases.collect::<Result<_>>()?,
            target: self.target.clone(),
            target_drive: self.target_drive.clone(),
            source: Source::Target,
            options: Options { scale, ..self.options.clone() },
            runs: self.runs,
            fill_percent: self.fill_percent,
            space: self.space,
        })
    }
}

impl Plan {
    /// A phase of this plan at another scale.
    fn phase_at(&self, phase: &PlannedPhase, scale: Scale) -> Result<PlannedPhase> {
        let corpus = Corpus::new(phase.corpus.spec.clone(), phase.corpus.seed, scale)?;
        let PlannedWork::Launch(launch) = &phase.work else {
            return Ok(PlannedPhase { corpus, ..phase.clone() });
        };
        let play = Play::new(&launch.steps, &corpus)?;
        // The same share of what goes on meanwhile.
        let part = |during: &Corpus| {
            let hundredths = u64::from(during.scale().hundredths()) * u64::from(scale.hundredths()) / u64::from(self.options.scale.hundredths());
            Scale::from_hundredths(u32::try_from(hundredths).unwrap_or(u32::MAX).max(1))
        };
        let during = launch.during.as_ref().map(|during| Corpus::new(during.spec.clone(), during.seed, part(during))).transpose()?;
        let otherwise = launch.otherwise.iter().map(|phase| self.phase_at(phase, scale)).collect::<Result<_>>()?;
        let launch = PlannedLaunch { play, during, otherwise, ..launch.as_ref().clone() };
        Ok(PlannedPhase { name: phase.name.clone(), corpus, work: PlannedWork::Launch(Box::new(launch)) })
    }
}

impl PlannedPhase {
    /// Bytes that it writes to the target, once; without what goes on meanwhile.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        match &self.work {
            PlannedWork::Copy(_) | PlannedWork::Fill => self.corpus.byte_count(),
            PlannedWork::Launch(launch) => launch.play.written().iter().map(|(_, len)| len).sum(),
        }
    }

    /// Bytes that it works on, once: what tells how long it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.work {
            PlannedWork::Copy(_) | PlannedWork::Fill => self.corpus.byte_count(),
            PlannedWork::Launch(launch) => {
                let shape = shape(&launch.play);
                shape.read_bytes + shape.written_bytes
            }
        }
    }

    /// What it takes on the target while it is under way.
    fn need(&self) -> Need {
        match &self.work {
            PlannedWork::Copy(_) | PlannedWork::Fill => need(&self.corpus),
            PlannedWork::Launch(launch) => {
                let written = launch.play.written();
                let largest_file = written.iter().map(|(_, len)| *len).max().unwrap_or(0);
                let own = Need { bytes: self.bytes_written(), inodes: written.len() as u64 + 16, largest_file };
                launch.during.iter().map(need).fold(own, add)
            }
        }
    }
}

/// What a corpus takes.
pub(super) fn need(corpus: &Corpus) -> Need {
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
