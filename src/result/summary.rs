//! What follows from the runs: for each phase of a scenario the median and range of its times and rates, over the runs that count.

use super::document::{Document, Flag, Summary};
use super::phase::{Phase, Point};
use super::terms::{Better, PhaseKind, PhaseStatus, Severity};
use crate::measure::statistics::spread;

/// The shortest window from which a rate is derived, ns: below it chance decides.
pub const SHORTEST_WINDOW_NS: u64 = 1_000_000_000;

/// A metric: its name with the unit, which direction is better, whether it is the one to quote, and how it follows from a phase.
struct Metric {
    name: &'static str,
    better: Better,
    headline: bool,
    of: fn(&Phase) -> Option<f64>,
}

const METRICS: [Metric; 7] = [
    Metric { name: "ready_ns", better: Better::Lower, headline: true, of: |phase| Some(phase.launch.as_ref()?.ready_ns? as f64) },
    Metric { name: "durable_bytes_per_s", better: Better::Higher, headline: true, of: durable_bytes_per_s },
    Metric { name: "returned_bytes_per_s", better: Better::Higher, headline: false, of: returned_bytes_per_s },
    Metric { name: "files_per_s", better: Better::Higher, headline: false, of: files_per_s },
    Metric { name: "durable_ns", better: Better::Lower, headline: false, of: |phase| phase.window.durable_ns.map(|ns| ns as f64) },
    Metric { name: "returned_ns", better: Better::Lower, headline: false, of: |phase| phase.window.returned_ns.map(|ns| ns as f64) },
    Metric { name: "quiet_ns", better: Better::Lower, headline: false, of: |phase| phase.window.quiet_ns.map(|ns| ns as f64) },
];

/// The summary of a record. Phases that failed, were interrupted, carry an invalidating flag or lost data give no values; windows too short for a rate
/// give only times.
#[must_use]
pub fn summarise(document: &Document) -> Vec<Summary> {
    let mut summary = Vec::new();
    for (scenario, arm, phase, point) in groups(document) {
        let members: Vec<&Phase> = document
            .runs
            .iter()
            .filter(|run| run.scenario == scenario && run.arm.as_deref() == arm)
            .flat_map(|run| &run.phases)
            .filter(|member| member.name == phase && member.point == point && counts(document, member))
            .collect();
        for metric in &METRICS {
            let values: Vec<f64> = members.iter().filter_map(|member| (metric.of)(member)).collect();
            if let Some(found) = spread(&values) {
                summary.push(Summary {
                    scenario,
                    arm: arm.map(str::to_owned),
                    phase: phase.to_owned(),
                    point,
                    metric: metric.name.to_owned(),
                    better: metric.better,
                    n: values.len(),
                    values,
                    median: found.median,
                    min: found.min,
                    max: found.max,
                    headline: metric.headline,
                });
            }
        }
    }
    summary
}

/// Whether a phase's figures count at all.
#[must_use]
pub fn counts(document: &Document, phase: &Phase) -> bool {
    phase.status == PhaseStatus::Ok && !invalidated(&phase.flags) && !invalidated(&document.flags) && !phase.data_differ()
}

/// Whether rates may be derived from a phase: it counts, and its durable end is known and not too close to its start.
#[must_use]
pub fn has_rate(document: &Document, phase: &Phase) -> bool {
    counts(document, phase) && long_enough(phase.window.durable_ns)
}

fn long_enough(ns: Option<u64>) -> bool {
    ns.is_some_and(|ns| ns >= SHORTEST_WINDOW_NS)
}

fn invalidated(flags: &[Flag]) -> bool {
    flags.iter().any(|flag| flag.severity == Severity::Invalid)
}

/// The phases that are measured, as they first appear: scenario, arm, name, point.
fn groups(document: &Document) -> Vec<(usize, Option<&str>, &str, Point)> {
    let mut groups = Vec::new();
    for run in &document.runs {
        for phase in &run.phases {
            let group = (run.scenario, run.arm.as_deref(), phase.name.as_str(), phase.point);
            let measured = !matches!(phase.kind, PhaseKind::Idle | PhaseKind::Precondition | PhaseKind::Control);
            if measured && !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    groups.sort_by_key(|group| group.0);
    groups
}

fn durable_bytes_per_s(phase: &Phase) -> Option<f64> {
    long_enough(phase.window.durable_ns).then(|| bytes_per_s(phase.bytes, phase.window.durable_ns)).flatten()
}

fn returned_bytes_per_s(phase: &Phase) -> Option<f64> {
    // Where the durable end gives no rate, this one would be all that a reader sees.
    let both = long_enough(phase.window.durable_ns) && long_enough(phase.window.returned_ns);
    both.then(|| bytes_per_s(phase.bytes, phase.window.returned_ns)).flatten()
}

fn files_per_s(phase: &Phase) -> Option<f64> {
    let seconds = phase.window.durable_ns? as f64 / 1e9;
    (long_enough(phase.window.durable_ns) && phase.files > 0).then(|| phase.files as f64 / seconds)
}

/// Whole bytes per second, rounded to nearest; none where no bytes moved.
fn bytes_per_s(bytes: u64, ns: Option<u64>) -> Option<f64> {
    let ns = u128::from(ns.filter(|&ns| ns > 0)?);
    (bytes > 0).then(|| ((u128::from(bytes) * 1_000_000_000 + ns / 2) / ns) as f64)
}
