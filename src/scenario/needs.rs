//! What a plan takes: bytes written, space and inodes, and whether a drive has them.

use std::path::Path;

use super::fill;
use super::options::{Options, State};
use super::plan::{Plan, PlannedPhase, Source};
use super::spec::Role;
use crate::corpus::Corpus;
use crate::drive::space::{Need, Room};
use crate::drive::{Drive, Workspace};
use crate::error::{Context, Error, Result, Side};
use crate::platform::{Host, System};
use crate::units::{Bytes, Scale};

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
        self.staged_on(Role::Target).next().is_some()
    }

    /// Bytes that are written to the target in all, staging included, if no corpus is there yet.
    #[must_use]
    pub fn bytes_to_write(&self) -> u64 {
        let timed: u64 = self.phases.iter().map(|phase| phase.corpus.byte_count()).sum();
        let staged: u64 = self.staged_on(Role::Target).map(|phase| phase.corpus.byte_count()).sum();
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

    fn staged_on(&self, role: Role) -> impl Iterator<Item = &PlannedPhase> {
        self.phases.iter().filter(move |phase| phase.from == Some(role))
    }

    /// What the target must hold at its fullest when the corpora whose ids are `present` are there already.
    #[must_use]
    pub fn target_need(&self, present: &[String]) -> Need {
        let phases = self.phases.iter().map(|phase| need(&phase.corpus));
        let staged = self.staged_on(Role::Target).filter(|phase| !present.contains(&phase.corpus.id())).map(|phase| need(&phase.corpus));
        // One copy exists at a time, unless each of the last run stays; corpora stay.
        let most =
            |a: Need, b: Need| Need { bytes: a.bytes.max(b.bytes), inodes: a.inodes.max(b.inodes), largest_file: a.largest_file.max(b.largest_file) };
        let largest = phases.fold(Need::default(), if self.options.keep { add } else { most });
        staged.fold(largest, add)
    }

    /// What the source directory must hold in addition.
    #[must_use]
    pub fn source_need(&self, present: &[String]) -> Need {
        let staged = self.staged_on(Role::Source).filter(|phase| !present.contains(&phase.corpus.id())).map(|phase| need(&phase.corpus));
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
        let phases = self.phases.iter().map(|phase| {
            let corpus = Corpus::new(phase.corpus.spec.clone(), phase.corpus.seed, scale)?;
            Ok(PlannedPhase { corpus, ..phase.clone() })
        });
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
