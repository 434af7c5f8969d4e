//! The repetitions of one phase: what a section of a view is about.

use crate::result::summary;
use crate::result::{Document, Phase, PhaseKind, PhaseStatus, Point, Roles, Summary};
use crate::units::Bytes;

/// One phase (at one point of a sweep, on one side of a comparison) in all runs of its scenario.
pub(super) struct Group<'a> {
    pub document: &'a Document,
    pub scenario: usize,
    pub arm: Option<&'a str>,
    pub point: Point,
    pub name: &'a str,
    pub kind: PhaseKind,
    /// The phase in each run, with the run's number.
    pub members: Vec<(u32, &'a Phase)>,
}

/// All groups of a record, by scenario, in the order in which they first appear.
pub(super) fn groups(document: &Document) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in &document.runs {
        for phase in &run.phases {
            let (scenario, arm) = (run.scenario, run.arm.as_deref());
            let same = |group: &&mut Group<'_>| (group.scenario, group.arm, group.name, group.point) == (scenario, arm, &phase.name, phase.point);
            match groups.iter_mut().find(same) {
                Some(group) => group.members.push((run.index, phase)),
                None => groups.push(Group {
                    document,
                    scenario,
                    arm,
                    point: phase.point,
                    name: &phase.name,
                    kind: phase.kind,
                    members: vec![(run.index, phase)],
                }),
            }
        }
    }
    groups.sort_by_key(|group| group.scenario);
    groups
}

impl<'a> Group<'a> {
    /// Whether it measures, rather than prepares or waits.
    pub fn measures(&self) -> bool {
        !matches!(self.kind, PhaseKind::Idle | PhaseKind::Precondition | PhaseKind::Control)
    }

    /// Whether a phase's figures count.
    pub fn counts(&self, phase: &Phase) -> bool {
        summary::counts(self.document, phase)
    }

    /// Whether rates may be derived from a phase.
    pub fn has_rate(&self, phase: &Phase) -> bool {
        summary::has_rate(self.document, phase)
    }

    /// Which drives play which part.
    pub fn roles(&self) -> Roles {
        self.document.scenarios.get(self.scenario).map(|scenario| scenario.roles.clone()).unwrap_or_default()
    }

    /// Its name with what tells it from others in the record.
    pub fn title(&self) -> String {
        let mut parts = Vec::new();
        if self.document.scenarios.len() > 1 {
            parts.extend(self.document.scenarios.get(self.scenario).map(|scenario| scenario.name.clone()));
        }
        parts.push(self.name.to_owned());
        let point = self.point;
        parts.extend(point.block_bytes.map(|bytes| format!("{} blocks", Bytes(bytes))));
        parts.extend(point.queue_depth.map(|depth| format!("depth {depth}")));
        parts.extend(point.threads.map(|threads| if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }));
        parts.extend(point.compressible_percent.map(|percent| format!("{percent} % compressible")));
        parts.extend(self.arm.map(|arm| format!("arm {arm}")));
        parts.join(", ")
    }

    /// The summary of one metric.
    pub fn summary(&self, metric: &str) -> Option<&'a Summary> {
        self.document.summary.iter().find(|summary| {
            (summary.scenario, summary.arm.as_deref(), summary.phase.as_str(), summary.point) == (self.scenario, self.arm, self.name, self.point)
                && summary.metric == metric
        })
    }

    /// The run whose details stand for all: the middle one by durable time of those that count (the faster of two middle ones), else of those that
    /// were finished.
    pub fn typical(&self) -> Option<(u32, &'a Phase)> {
        let time = |phase: &Phase| phase.window.durable_ns.or(phase.window.returned_ns);
        let middle = |accept: &dyn Fn(&Phase) -> bool| {
            let mut accepted: Vec<_> = self.members.iter().copied().filter(|(_, phase)| accept(phase) && time(phase).is_some()).collect();
            accepted.sort_by_key(|(_, phase)| time(phase));
            accepted.get(accepted.len().checked_sub(1)? / 2).copied()
        };
        middle(&|phase| self.counts(phase)).or_else(|| middle(&|phase| phase.status == PhaseStatus::Ok))
    }

    /// Whether bytes are written in it.
    pub fn writes(&self) -> bool {
        matches!(self.kind, PhaseKind::Copy | PhaseKind::Write)
            || self.members.iter().any(|(_, phase)| phase.work.is_some_and(|work| work.written_bytes > 0))
    }
}
