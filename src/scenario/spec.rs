//! A scenario as it is written in TOML: phases over corpora, and how often.

use serde::{Deserialize, Serialize};

use crate::workload::launch::{ShapeSpec, StepSpec};

/// A scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSpec {
    /// Its name.
    pub name: String,
    /// Raised whenever what it measures changes.
    pub version: u32,
    /// What it does, as a phrase.
    pub summary: String,
    /// How often all phases are repeated.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// What is timed, in order.
    pub phase: Vec<PhaseSpec>,
    /// The start of the program that `launch` phases play, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<StepSpec>,
    /// What those steps come to at 100 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapeSpec>,
}

/// How full a file system may be made: a full one has no room for its own needs.
pub const FILL_PERCENT: std::ops::RangeInclusive<u8> = 1..=98;

fn default_runs() -> u32 {
    3
}

/// One timed piece of work; its kind is its key, so that errors point at the right characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseSpec {
    /// Copies a corpus to the target.
    Copy(CopySpec),
    /// Fills the target with data that it has never seen.
    Fill(FillSpec),
    /// Plays the start of a program.
    Launch(LaunchSpec),
    /// All phases of another scenario: a suite is made of them.
    Scenario(String),
}

/// A copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopySpec {
    /// The corpus: a name, or the path of a spec.
    pub corpus: String,
    /// Which drive it is copied from.
    pub from: Role,
}

/// A filling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillSpec {
    /// How full the file system is at the end, percent; `--fill` says otherwise.
    pub to_percent: u8,
}

/// The start of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchSpec {
    /// Its name in results.
    pub name: String,
    /// The tree of the program: a corpus by name, or the path of a spec.
    pub program: String,
    /// Which start it is.
    pub start: Start,
    /// What goes on on the same drive meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<DuringSpec>,
    /// The scenario whose steps are played; this one's where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_of: Option<String>,
    /// How much memory there is for what is read, percent of all that is read; as much as the machine has where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_percent: Option<u8>,
    /// The scenario whose phases stand in where memory can't be limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
}

/// Which start of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The first one: nothing of it is in this machine's memory.
    Cold,
    /// The next one: it was started just before.
    Second,
}

/// What goes on while a program starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuringSpec {
    /// The corpus that is copied from the drive to itself, over and over.
    pub copy: String,
    /// The share of it that is copied, percent.
    pub scale_percent: u8,
}

/// What a drive does in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Data are read from it.
    Source,
    /// Data are written to it; a copy from it to itself reads too.
    Target,
}

impl ScenarioSpec {
    /// Reads a spec.
    ///
    /// # Errors
    /// A text that names line, column and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spec: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if spec.phase.is_empty() {
            return Err("a scenario has at least one [[phase]]".to_owned());
        }
        let too_full = |phase: &&PhaseSpec| matches!(phase, PhaseSpec::Fill(fill) if !FILL_PERCENT.contains(&fill.to_percent));
        if spec.phase.iter().any(|phase| too_full(&phase)) {
            return Err("fill.to_percent: between 1 and 98".to_owned());
        }
        let launches: Vec<&LaunchSpec> =
            spec.phase.iter().filter_map(|phase| if let PhaseSpec::Launch(launch) = phase { Some(launch) } else { None }).collect();
        if launches.iter().any(|launch| launch.steps_of.is_none()) == spec.step.is_empty() {
            return Err("[[step]]s are what launch phases play that have no steps_of: a scenario has both or neither".to_owned());
        }
        if launches.iter().filter_map(|launch| launch.memory_percent).any(|percent| !(10..=90).contains(&percent)) {
            return Err("launch.memory_percent: between 10 and 90".to_owned());
        }
        if launches.iter().any(|launch| launch.otherwise.is_some() && launch.memory_percent.is_none()) {
            return Err("launch.otherwise: stands in where memory_percent can't be had, which is not asked for".to_owned());
        }
        spec.step.iter().try_for_each(StepSpec::check)?;
        if launches.iter().filter_map(|launch| launch.during.as_ref()).any(|during| !(1..=100).contains(&during.scale_percent)) {
            return Err("launch.during.scale_percent: between 1 and 100".to_owned());
        }
        if launches.iter().any(|launch| launch.name.trim().is_empty()) {
            return Err("launch.name: a start has a name".to_owned());
        }
        if !(1..=1000).contains(&spec.runs) {
            return Err(format!("runs = {}: a scenario runs at least once and at most 1000 times", spec.runs));
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::catalogue::SCENARIOS;

    #[test]
    fn every_built_in_scenario_parses_and_bears_its_name() {
        assert_eq!(SCENARIOS.built_in.len(), 43);
        for (name, text) in SCENARIOS.built_in {
            assert_eq!(ScenarioSpec::parse(text).unwrap().name, *name);
        }
    }

    #[test]
    fn errors_name_their_place() {
        let unknown = ScenarioSpec::parse("name = 'x'\nversion = 1\nsummary = ''\n[[phase]]\ncopy = { corpus = 'jpg', form = 'source' }\n");
        let message = unknown.unwrap_err();
        assert!(message.contains("line 5") && message.contains("form"), "{message}");
        let kind = ScenarioSpec::parse("name = 'x'\nversion = 1\nsummary = ''\n[[phase]]\nmove = {}\n").unwrap_err();
        assert!(kind.contains("line 5") && kind.contains("copy"), "{kind}");
    }
}
