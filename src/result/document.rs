//! The record of a whole measurement: who, where, what, how often, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::drive::Drive;
use super::hardware::Controller;
use super::numbers::{percent, plain};
use super::phase::{Phase, Point};
use super::terms::{Answer, Better, Origin, Severity, Status};
use crate::units::Scale;
use crate::{Error, Result};

/// The name of the schema without its version.
pub const SCHEMA_FAMILY: &str = "copysim.result/";
/// The major version that this copysim writes; it reads this one and older ones. Raise it when a field is removed or its meaning changes.
pub const SCHEMA_MAJOR: u32 = 1;
/// The schema that this copysim writes.
pub const SCHEMA: &str = "copysim.result/1";

/// A record. What was not found out is null, never 0; field names carry units; MB and GB are powers of ten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// `copysim.result/` and the major version.
    pub schema: String,
    /// Unique.
    pub id: String,
    /// Where the figures come from.
    pub origin: Origin,
    /// How it ended.
    pub status: Status,
    /// The exit code of the process; null until it ends.
    pub exit_code: Option<u8>,
    /// The sentence that ended it before all was done.
    pub error: Option<String>,
    /// When it was begun (RFC 3339, UTC).
    #[schemars(with = "String")]
    pub started_at: jiff::Timestamp,
    /// The user's own name for it.
    pub label: Option<String>,
    /// The program that wrote it.
    pub copysim: Copysim,
    /// The machines.
    pub hosts: Vec<Host>,
    /// The directories that the user named and what is under them.
    pub drives: Vec<Drive>,
    /// The model that was asked, in a simulation.
    pub model: Option<Value>,
    /// The trees that were worked on.
    pub corpora: Vec<Corpus>,
    /// The streams of operations that were played.
    pub profiles: Vec<Profile>,
    /// The suite that the scenarios belong to.
    pub suite: Option<Value>,
    /// What was planned.
    pub scenarios: Vec<Scenario>,
    /// What was done, in order.
    pub runs: Vec<Run>,
    /// What follows from the runs: see `summary`.
    pub summary: Vec<Summary>,
    /// Figures of merit, each with its formula.
    pub scores: Vec<Score>,
    /// Reservations about the whole.
    pub flags: Vec<Flag>,
    /// What is left behind; null until it is known.
    pub aftermath: Option<Aftermath>,
}

impl Document {
    /// A record of a measurement that has just begun: should nothing more be written, it was interrupted.
    #[must_use]
    pub fn begin(id: impl Into<String>, started_at: jiff::Timestamp, copysim: Copysim) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: id.into(),
            origin: Origin::Measured,
            status: Status::Interrupted,
            exit_code: None,
            error: None,
            started_at,
            label: None,
            copysim,
            hosts: Vec::new(),
            drives: Vec::new(),
            model: None,
            corpora: Vec::new(),
            profiles: Vec::new(),
            suite: None,
            scenarios: Vec::new(),
            runs: Vec::new(),
            summary: Vec::new(),
            scores: Vec::new(),
            flags: Vec::new(),
            aftermath: None,
        }
    }

    /// Reads a record. Fields that this version does not know are ignored.
    ///
    /// # Errors
    /// [`Error::Refused`] with a sentence: not JSON, not a record of copysim, a newer major version, or not of the shape that its version promises.
    pub fn from_json(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).map_err(|error| Error::Refused(format!("this is not JSON: {error}")))?;
        let schema = value.get("schema").and_then(Value::as_str);
        let schema = schema.ok_or_else(|| Error::Refused("this JSON is no result of copysim: it has no \"schema\"".to_owned()))?;
        check_version(schema)?;
        // From the text and not from the value, so that the error names the place.
        serde_json::from_str(text).map_err(|error| Error::Refused(format!("this result is damaged: {error}")))
    }

    /// A drive and all that is under it, each once, the nearest first.
    #[must_use]
    pub fn chain<'d>(&'d self, drive: &'d Drive) -> Vec<&'d Drive> {
        let mut chain = vec![drive];
        let mut next = 0;
        while let Some(drive) = chain.get(next).copied() {
            for under in drive.under.iter().filter_map(|id| self.drive(id)) {
                if chain.iter().all(|known| known.id != under.id) {
                    chain.push(under);
                }
            }
            next += 1;
        }
        chain
    }

    /// The drive with an id.
    #[must_use]
    pub fn drive(&self, id: &str) -> Option<&Drive> {
        self.drives.iter().find(|drive| drive.id == id)
    }
}

/// Checks that a record of this schema can be read and gives its major version.
///
/// # Errors
/// [`Error::Refused`] for another family or a newer major version.
pub fn check_version(schema: &str) -> Result<u32> {
    let version = schema.strip_prefix(SCHEMA_FAMILY).and_then(|version| version.parse().ok());
    match version {
        None => Err(Error::Refused(format!("this is no result of copysim: its schema is {schema:?}, expected \"{SCHEMA}\""))),
        Some(version) if version > SCHEMA_MAJOR => Err(Error::Refused(format!(
            "this result was written by a newer copysim: its schema is \"{schema}\", this one reads up to \"{SCHEMA}\"; please update copysim"
        ))),
        Some(version) => Ok(version),
    }
}

/// The program that wrote a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Copysim {
    /// Its version.
    pub version: String,
    /// The commit it was built from.
    pub commit: Option<String>,
    /// The target triple it was built for.
    pub target: String,
    /// Its command line without the program's name.
    pub arguments: Vec<String>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its id in this record.
    pub id: String,
    /// Its rank where several work together.
    pub rank: u32,
    /// Its name; only with `--identify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The operating system and its version.
    pub os: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The model of the CPU.
    pub cpu: Option<String>,
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// Logical cores that copysim may use.
    pub cores: Option<u32>,
    /// Maker and model of the machine.
    pub machine: Option<String>,
    /// Who chooses the CPU's frequency: the governor, or several where cores differ.
    pub cpu_governor: Option<String>,
    /// The driver that sets the CPU's frequency.
    pub cpu_frequency_driver: Option<String>,
    /// The deepest idle state that the CPU may enter.
    pub deepest_idle_state: Option<String>,
    /// How long the CPU takes to leave it, ns.
    pub idle_exit_ns: Option<u64>,
    /// Where its power comes from: `mains` or `battery`.
    pub power: Option<String>,
    /// How full its battery is.
    pub battery_percent: Option<u8>,
    /// Whether it is a virtual machine.
    pub virtualised: Option<bool>,
    /// What it is virtualised by.
    pub hypervisor: Option<String>,
    /// Swap space.
    pub swap_bytes: Option<u64>,
    /// Swap space in use at the start.
    pub swap_used_bytes: Option<u64>,
    /// The controllers that drives may hang on.
    #[serde(default)]
    pub controllers: Vec<Controller>,
}

/// A tree that was worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Corpus {
    /// Its name.
    pub name: String,
    /// What a person calls its files: "photos"; absent in records from before it was kept.
    #[serde(default = "default_noun")]
    pub noun: String,
    /// The version of its spec.
    pub version: u32,
    /// Its seed.
    pub seed: u64,
    /// Its scale; different scales are never compared as equals.
    #[serde(with = "percent")]
    #[schemars(with = "f64")]
    pub scale_percent: Scale,
    /// How many files.
    pub files: u64,
    /// Their lengths, summed.
    pub bytes: u64,
    /// BLAKE3 over the manifest, in hexadecimal.
    pub root_digest: String,
    /// Bytes allocated for it on the source.
    pub stored_bytes: Option<u64>,
    /// Extents in which it lies on the source.
    pub extents: Option<u64>,
    /// How long it had been there when the first window opened.
    pub staged_age_s: Option<u64>,
}

fn default_noun() -> String {
    "files".to_owned()
}

/// A stream of operations that was played.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The version of its spec.
    pub version: u32,
    /// BLAKE3 over its operations, in hexadecimal.
    pub digest: String,
    /// How many operations.
    pub ops: u64,
}

/// What was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// BLAKE3 over its spec, in hexadecimal.
    pub spec_digest: String,
    /// Its spec as resolved.
    pub spec: Value,
    /// Its scale.
    #[serde(with = "percent")]
    #[schemars(with = "f64")]
    pub scale_percent: Scale,
    /// Which drive does what.
    pub roles: Roles,
}

/// Which drive does what: ids. Null where a scenario has no such role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Roles {
    /// Where data are read from.
    pub source: Option<String>,
    /// Where data are written to.
    pub target: Option<String>,
}

impl Roles {
    /// The drive that the scenario is about: the target, or the source where there is none.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.target.as_deref().or(self.source.as_deref())
    }
}

/// One repetition of all phases of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its number within the scenario and arm, from 1.
    pub index: u32,
    /// The scenario: an index into `scenarios`.
    pub scenario: usize,
    /// Its place in the order in which all runs were made, from 1.
    pub order: u32,
    /// The side of an A/B comparison.
    pub arm: Option<String>,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
}

/// One metric over the runs that count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The scenario: an index into `scenarios`.
    pub scenario: usize,
    /// The side of an A/B comparison.
    pub arm: Option<String>,
    /// The phase's name.
    pub phase: String,
    /// Where in a sweep it stands.
    pub point: Point,
    /// What it is, with its unit.
    pub metric: String,
    /// Which direction is the better one.
    pub better: Better,
    /// How many runs count.
    pub n: usize,
    /// Their values, in the order of the runs.
    #[serde(serialize_with = "plain::list")]
    pub values: Vec<f64>,
    /// The middle one, or the mean of the middle two.
    #[serde(serialize_with = "plain::one")]
    pub median: f64,
    /// The least.
    #[serde(serialize_with = "plain::one")]
    pub min: f64,
    /// The greatest.
    #[serde(serialize_with = "plain::one")]
    pub max: f64,
    /// Whether this is the figure to quote.
    pub headline: bool,
}

/// A figure of merit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Its name.
    pub name: String,
    /// How it is computed.
    pub formula: String,
    /// From what.
    pub inputs: Value,
    /// What comes out.
    pub value: Option<f64>,
}

/// A reservation about a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    /// Its name in the registry.
    pub code: String,
    /// How much it takes from the figure.
    pub severity: Severity,
    /// What happened, as a sentence.
    pub message: String,
    /// Where.
    pub at: Option<Place>,
}

/// Where in the work something happened. What does not apply is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The drive's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Time since the window opened, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t_ns: Option<u64>,
    /// Bytes of work done until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// A file's path in the corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What is left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Aftermath {
    /// What was kept on the drives.
    pub kept: Vec<Kept>,
    /// The command that removes it; null when nothing was kept.
    pub remove_with: Option<String>,
    /// Whether the measured drive may be unplugged.
    pub unplug: Answer,
    /// Why, or why not.
    pub unplug_because: Option<String>,
}

/// Something that was kept on a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Where.
    pub path: String,
    /// How much space it takes.
    pub bytes: Option<u64>,
    /// What it is, in words.
    pub what: String,
}
