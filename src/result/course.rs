//! What a window was like over time and bytes: samples, levels and falls of the rate, stalls, drift, what the kernel said meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{CurveShape, KernelEvent, Measured, RateChange};
use crate::measure::Samples;

/// Progress over time: at most 600 real sample times and the cumulative series taken at them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Sample times, ns since the window opened.
    pub t_ns: Vec<u64>,
    /// What was read at those times.
    pub series: Vec<Series>,
}

impl Timeline {
    /// The record of samples, named in the order in which the recorder got them.
    #[must_use]
    pub fn of(samples: Samples, names: &[(&str, Measured)]) -> Self {
        let series = names.iter().zip(samples.values).map(|(&(of, what), values)| Series { of: of.to_owned(), what, values });
        Self { series: series.collect(), t_ns: samples.t_ns }
    }

    /// Drops every second sample, the last one excepted.
    pub fn halve(&mut self) {
        let last = self.t_ns.len().saturating_sub(1);
        fn thin<T>(values: &mut Vec<T>, last: usize) {
            let mut index = 0;
            values.retain(|_| {
                index += 1;
                (index - 1) % 2 == 0 || index - 1 == last
            });
        }
        thin(&mut self.t_ns, last);
        for series in &mut self.series {
            thin(&mut series.values, last);
        }
    }
}

/// One series of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// `work` for what the workload did, else a drive's id.
    pub of: String,
    /// The quantity.
    pub what: Measured,
    /// One value for each time; null where it could not be read.
    pub values: Vec<Option<i64>>,
}

/// What a rate did over bytes and time. Rates are derived: bytes over the time without stalls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Whose bytes: the target drive's id, or `work` where it has no counters. Work goes into this machine's memory first, so its changes are no drive's.
    pub of: String,
    /// Which bytes.
    pub what: Measured,
    /// What it looks like.
    pub shape: CurveShape,
    /// Why the shape is unknown, or why a fall is not held against the drive.
    pub because: Option<String>,
    /// The stretches of one rate, in order: one where it is steady or a ramp.
    pub levels: Vec<Level>,
    /// Where the rate changed at once, by at least 15 %.
    pub change_points: Vec<ChangePoint>,
    /// When nothing moved.
    pub stalls: Stalls,
    /// How the rate went up or down bit by bit within the longest level; null where that is too short to say.
    pub drift: Option<Drift>,
}

/// A stretch of one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Bytes since the window opened, at its beginning.
    pub from_bytes: u64,
    /// Bytes since the window opened, at its end.
    pub to_bytes: u64,
    /// Its beginning, ns since the window opened.
    pub from_ns: u64,
    /// Its end, ns since the window opened.
    pub to_ns: u64,
    /// Time in it in which nothing moved, ns.
    pub stalled_ns: u64,
}

impl Level {
    /// Its bytes, and its time without stalls in ns.
    #[must_use]
    pub fn bytes_and_ns(&self) -> (u64, u64) {
        let ns = self.to_ns.saturating_sub(self.from_ns).saturating_sub(self.stalled_ns);
        (self.to_bytes.saturating_sub(self.from_bytes), ns)
    }
}

/// A place at which the rate changed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Bytes since the window opened: for the first fall, the size of the fast part.
    pub at_bytes: u64,
    /// When, ns since the window opened.
    pub at_ns: u64,
    /// In which direction.
    pub change: RateChange,
}

/// Times of at least one second in which nothing moved, or a drive with requests completed none, and went on later.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// All together, ns.
    pub total_ns: u64,
    /// The longest ones, at most 20, in the order in which they came: beginning and end, ns since the window opened.
    pub longest: Vec<(u64, u64)>,
}

/// The first and the last third of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// Bytes of the first third.
    pub first_bytes: u64,
    /// Its time without stalls, ns.
    pub first_ns: u64,
    /// Bytes of the last third.
    pub last_bytes: u64,
    /// Its time without stalls, ns.
    pub last_ns: u64,
    /// Whether the rate went one way by more than a tenth, and not by chance.
    pub significant: bool,
    /// The correlation of rate and temperature, −1 to 1; null where temperatures are not known or hardly changed.
    pub celsius_correlation: Option<f64>,
}

/// A message of the kernel's about a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelMessage {
    /// When it was seen, ns since the window opened; within 50 ms after it was said.
    pub t_ns: u64,
    /// The drive's id.
    pub drive: String,
    /// What it reports.
    pub kind: KernelEvent,
    /// The message, with controls spelled out.
    pub line: String,
}
