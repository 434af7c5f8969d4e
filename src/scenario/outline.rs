//! A plan for a person to read: every step, in order.

use super::fill;
use super::options::State;
use super::plan::{Plan, PlannedLaunch, PlannedPhase, Source};
use super::spec::{Role, Start};
use crate::drive::workspace::NAME as WORKSPACE;
use crate::units::{Bytes, count, files};
use crate::workload::launch::shape;

impl Plan {
    /// The plan for a person to read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.scenario.name, self.scenario.summary), format!("  measures    {}", self.target_drive)];
        let copies = self.phases.iter().any(|phase| phase.copied_from().is_some());
        if copies {
            lines.push(format!("  copies from {}", self.source_phrase()));
        }
        let workspace = self.target.join(WORKSPACE);
        let mut step = 0;
        let mut add = |text: String| {
            step += 1;
            lines.push(format!("  {step:>2}. {text}"));
        };
        for role in [Role::Source, Role::Target] {
            for corpus in self.staged_on(role) {
                let size = format!("{}, {}", files(corpus.file_count()), Bytes(corpus.byte_count()));
                let place = match (&self.source, role) {
                    (_, Role::Target) | (Source::Target, _) => workspace.clone(),
                    (Source::Directory(path, _) | Source::Memory(path), Role::Source) => path.join(WORKSPACE),
                    (Source::Generated, Role::Source) => continue,
                };
                add(format!("make {} ({size}) in {}, or reuse it", corpus.id(), place.join("corpora").display()));
            }
        }
        if copies && self.engine_copies() {
            add("copy up to 64 MB from memory to memory, a few times, to know how fast the copier itself is".to_owned());
        }
        let cache = match self.options.cache {
            crate::cache::evict::Wanted::Cold => "drop caches",
            crate::cache::evict::Wanted::Warm => "read the source into the cache",
            crate::cache::evict::Wanted::AsIs => "leave caches as they are",
        };
        let staged: u64 = self.staged_on(Role::Target).iter().map(|corpus| corpus.byte_count()).sum();
        if self.options.state == State::Dirty {
            add("write all of the free space once, and remove what was written".to_owned());
        }
        if let Some(percent) = self.fill_percent {
            let bytes = Bytes(fill::missing_bytes(percent, self.space).saturating_sub(staged));
            add(format!("fill the target to {percent} % with about {bytes} of new data, which stay until the end"));
        }
        let settle = humantime::format_duration(self.options.settle_time());
        let trim = if self.options.state == State::Trimmed { "tell the drive of its free space, " } else { "" };
        let traced = if self.options.block_trace { " and traced" } else { "" };
        for run in 1..=self.runs {
            for phase in &self.phases {
                if let Some(launch) = phase.launch() {
                    add(launched(run, phase, launch, &settle.to_string(), traced));
                    continue;
                }
                let (work, cache) = if phase.copied_from().is_some() { ("copy", format!("{cache}, ")) } else { ("write", String::new()) };
                add(format!(
                    "run {run}: {trim}flush, {cache}wait until idle for {settle}; then, timed{traced}: {work} {} ({}) to {}, and flush",
                    phase.corpus.id(),
                    Bytes(phase.corpus.byte_count()),
                    workspace.join("runs").display()
                ));
                let verify = if self.options.verify { "read the copy again, cold, and compare it; " } else { "" };
                let remove = if self.options.keep && run == self.runs { "keep the copy" } else { "remove the copy" };
                add(format!("run {run}: {verify}{remove}"));
            }
        }
        if self.options.control {
            add("control: the same once more, timed, with data that the drive has never seen in place of what is read; remove them".to_owned());
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

/// A start as a step of the plan.
fn launched(run: u32, phase: &PlannedPhase, launch: &PlannedLaunch, settle: &str, traced: &str) -> String {
    let shape = shape(&launch.play);
    let before = match launch.start {
        Start::Cold => "drop caches",
        Start::Second => "play the start once",
    };
    let during = launch.during.as_ref().map_or_else(String::new, |corpus| format!(" while {} is copied on the drive over and over", corpus.id()));
    format!(
        "run {run}: {before}, wait until idle for {settle}; then, timed{traced}: play the start of {} in {} steps ({} reads of {}, {} writes of {}){during}",
        phase.corpus.id(),
        launch.play.steps.len(),
        count(shape.reads),
        Bytes(shape.read_bytes),
        count(shape.writes),
        Bytes(shape.written_bytes)
    )
}
