//! The rate over bytes: where it changed at once (the end of a fast cache), where it went down slowly, and where nothing happened.
//!
//! A curve of cumulative bytes is cut into cells (`cells`), stalls are taken out, and the logarithm of each cell's rate is fitted by levels and lines
//! under noise that has a memory (`fit`). What is found is the place of each change and the rates on its two sides.

mod cells;
mod drift;
mod fit;
#[cfg(test)]
mod simulation;
mod squares;

use super::stall::Gap;
use cells::Cells;
pub use drift::Drift;

/// A change of the rate that counts, as a share of the higher rate. Files of different sizes, a journal or another program move the rate of a real drive by a
/// tenth; what lies behind a fast cache is slower by far more.
pub const LEAST_CHANGE: f64 = 0.15;
/// The part of all bytes that a level must hold.
pub const LEAST_SHARE: f64 = 0.025;
/// Fewer cells say nothing.
const LEAST_CELLS: usize = 20;

/// A stretch of work at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// Bytes done when it begins.
    pub from_bytes: u64,
    /// Bytes done when it ends.
    pub to_bytes: u64,
    /// When it begins, on the time line of the samples.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// How long it stood still in between; no part of its rate.
    pub stalled_ns: u64,
}

impl Level {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.to_bytes.saturating_sub(self.from_bytes)
    }

    /// Its time without stalls, ns.
    #[must_use]
    pub fn moving_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).saturating_sub(self.stalled_ns)
    }

    /// The logarithm of its rate.
    fn log_rate(&self) -> f64 {
        self.rate().max(1.0).ln()
    }

    /// Its rate, bytes/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes() as f64 * 1e9 / self.moving_ns().max(1) as f64
    }
}

/// What a curve looks like.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// There is too little of it to say.
    Unknown(&'static str),
    /// One rate from beginning to end, within [`LEAST_CHANGE`].
    Steady(Level),
    /// The rate went up or down bit by bit: no place is that of a change.
    Ramp(Level),
    /// Two levels or more: the rate changed at once from each to the next.
    Levels(Vec<Level>),
}

impl Shape {
    /// All that is known of its levels: one where it is steady or a ramp, none where it is unknown.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        match self {
            Self::Unknown(_) => &[],
            Self::Steady(level) | Self::Ramp(level) => std::slice::from_ref(level),
            Self::Levels(levels) => levels,
        }
    }

    /// Whether the rate ever changed at once to a lower one.
    #[must_use]
    pub fn falls(&self) -> bool {
        self.levels().windows(2).any(|pair| pair[1].rate() < pair[0].rate())
    }
}

/// A curve that was measured, and what it looks like.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What it looks like.
    pub shape: Shape,
    /// How it went up or down bit by bit within its longest level; `None` where that is too short to say.
    pub drift: Option<Drift>,
}

/// Looks at cumulative bytes at sample times (any distances; unknown values are left out). `stalls` are those that were seen while sampling; where there are none,
/// a second without progress between samples is taken for one. `celsius` are temperatures at the same times, where there are any.
#[must_use]
pub fn look(t_ns: &[u64], bytes: &[Option<i64>], stalls: &[Gap], celsius: Option<&[Option<i64>]>) -> Curve {
    let unknown = |why| Curve { shape: Shape::Unknown(why), drift: None };
    let Some(mut cells) = Cells::of(t_ns, bytes, stalls) else { return unknown("nothing moved") };
    loop {
        if cells.used() < LEAST_CELLS {
            return unknown("there are too few samples");
        }
        let found = fit::fit(&cells.log_rates());
        // A short piece between others is an accident, not a level: it is left out, and the rest is looked at again.
        match cells.accident(&found) {
            Some(range) => cells.leave_out(range),
            None => {
                let shape = shape(&cells, &found);
                let longest = shape.levels().iter().max_by_key(|level| level.moving_ns()).copied().unwrap_or_default();
                let drift = Drift::within(&cells.within(&longest), celsius.map(|celsius| (t_ns, celsius)));
                return Curve { shape: settled(shape, drift.as_ref()), drift };
            }
        }
    }
}

/// A slow start, or a slow end, is no ramp: where the last third is as fast as the first the rate did not go anywhere. (Of a change by [`LEAST_CHANGE`] from end to
/// end the thirds differ by two thirds; half is asked for.)
fn settled(shape: Shape, drift: Option<&Drift>) -> Shape {
    match (shape, drift) {
        (Shape::Ramp(level), Some(drift)) if drift.ratio().ln().abs() < -(-LEAST_CHANGE / 2.0).ln_1p() => Shape::Steady(level),
        (shape, _) => shape,
    }
}

fn shape(cells: &Cells, found: &fit::Fit) -> Shape {
    if found.changes().is_empty() {
        let whole = cells.whole();
        return if found.total_change() >= -(-LEAST_CHANGE).ln_1p() { Shape::Ramp(whole) } else { Shape::Steady(whole) };
    }
    Shape::Levels(cells.levels(&found.changes().iter().map(|change| change.at).collect::<Vec<_>>()))
}
