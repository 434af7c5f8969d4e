//! One phase of one run: a copy, or the start of a program, in a directory of its own that is removed afterwards.

use super::Bench;
use super::ready::{Prepared, Ready, position};
use crate::drive::block_trace::Reads;
use crate::error::{Error, Result};
use crate::path_text::path_text;
use crate::result::{Kept, Phase, PhaseKind, PhaseStatus};
use crate::scenario::copy::{self, CopySource, Job};
use crate::scenario::events::Event;
use crate::scenario::launch;
use crate::scenario::plan::PlannedLaunch;
use crate::scenario::spec::Role;
use crate::scenario::window::{Place, Watched};

impl Bench<'_> {
    #[expect(clippy::too_many_arguments, reason = "one call for each phase, and each of these differs among them")]
    pub(super) fn work_once(
        &self,
        title: &str,
        ready: &Ready,
        fresh: Option<u64>,
        keep: bool,
        phase: &mut Phase,
        began_ns: u64,
        index: u32,
    ) -> Result<()> {
        let Self { plan, around, .. } = self;
        self.target.still_here()?;
        if let Some((workspace, ..)) = &self.source {
            workspace.still_here()?;
        }
        let target = self.target_place();
        let source = self.source.as_ref().map(|(_, counted, drive)| Place { drive, counted, id: "d1" });
        let from = match ready {
            Ready::OnTarget(staged) => CopySource::Staged { staged, place: Some(target) },
            Ready::OnSource(staged) => CopySource::Staged { staged, place: source },
            Ready::InMemory(staged) => CopySource::Staged { staged, place: None },
            Ready::Generated(manifest) => CopySource::Generated(manifest),
        };
        let run = self.target.new_run()?;
        // A corpus in another place than the source's is not read from it, and two directories of one drive are one drive.
        let source = source.filter(|source| matches!(ready, Ready::OnSource(_)) && !source.shares_counters(&target));
        let reads = match (&source, ready) {
            (Some(place), _) => Reads::Drive(place.drive),
            (None, Ready::OnTarget(_)) => Reads::Target,
            (None, _) => Reads::Nothing,
        };
        let traced = plan.options.block_trace.then_some(reads);
        let watched = Watched { traced, ..self.watched(title, source) };
        let job = Job {
            watched,
            options: &plan.options,
            engine: &self.engine,
            from: &from,
            run: &run,
            began_ns,
            log: self.log.as_ref(),
            fresh,
            is_new: matches!(phase.kind, PhaseKind::Write),
            tool_bytes_per_s: self.tool_bytes_per_s.get(),
        };
        if let Some(log) = &self.log {
            log.begin_run(index);
        }
        around.observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
        let mut done = copy::copy(&job, phase);
        // What follows is removing: it adds nothing to the phase.
        around.observer.on(Event::UnderWay(Box::new(phase.clone())));
        if let Some(log) = &self.log {
            done = done.and(log.end_run());
        }
        if keep && done.is_ok() {
            let path = path_text(&self.target.keep(run)?);
            self.kept.borrow_mut().push(Kept { path, bytes: Some(phase.bytes), what: "copy".to_owned() });
            return done;
        }
        let removed = self.remove(run);
        if let (Err(_), Err(left)) = (&done, &removed) {
            // The first failure is the one to return; that something is left behind must be said all the same.
            around.observer.on(Event::Notice(format!("the copy could not be removed: {left}")));
        }
        done.and(removed)
    }

    #[expect(clippy::too_many_arguments, reason = "one call for each phase, and each of these differs among them")]
    pub(super) fn launch_once(
        &self,
        title: &str,
        launch: &PlannedLaunch,
        prepared: &[Prepared],
        at: usize,
        verify: bool,
        phase: &mut Phase,
        began_ns: u64,
    ) -> Result<()> {
        let Self { plan, around, .. } = self;
        self.target.still_here()?;
        let staged = |at: usize| prepared[at].ready.staged().ok_or_else(|| Error::Internal(format!("{} was not staged", prepared[at].corpus.id())));
        let during = launch.during.as_ref().map(|corpus| position(prepared, Some(Role::Target), corpus).and_then(staged)).transpose()?;
        let run = self.target.new_run()?;
        let beside = match during.map(|_| self.target.new_run()).transpose() {
            Ok(beside) => beside,
            Err(error) => {
                // The error is the one to tell; what stays is removed by the next start.
                let _ = self.remove(run);
                return Err(error);
            }
        };
        let traced = plan.options.block_trace.then_some(Reads::Target);
        let job = launch::Job {
            watched: Watched { traced, ..self.watched(title, None) },
            options: &plan.options,
            launch,
            staged: staged(at)?,
            during: during.zip(beside.as_ref()),
            run: &run,
            verify,
            began_ns,
        };
        around.observer.on(Event::UnderWay(Box::new(Phase { status: PhaseStatus::Interrupted, ..phase.clone() })));
        let done = launch::launch(&job, phase);
        // What follows is removing: it adds nothing to the phase.
        around.observer.on(Event::UnderWay(Box::new(phase.clone())));
        let removed = self.remove(run).and(beside.map_or(Ok(()), |beside| self.remove(beside)));
        if let (Err(_), Err(left)) = (&done, &removed) {
            around.observer.on(Event::Notice(format!("what was written could not be removed: {left}")));
        }
        done.and(removed)
    }
}
