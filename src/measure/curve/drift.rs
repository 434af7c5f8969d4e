//! A rate that goes up or down bit by bit: how far, whether chance would do it, and whether temperature goes with it.

use super::{Level, fit};

/// A drift counts when the last third is slower or faster than the first by more than this share of it.
const LEAST: f64 = 0.10;
/// Standard errors of the slope from which on it is not chance. A rate whose noise remembers wanders; that is in the standard error.
const ERRORS: f64 = 3.7;
/// Fewer cells give no thirds.
const LEAST_CELLS: usize = 15;
/// A temperature that changes by less, in degrees, explains nothing.
const LEAST_DEGREES: f64 = 2.0;

/// The first and the last third of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Bytes of the first third of the cells.
    pub first_bytes: u64,
    /// Its time, ns, without stalls.
    pub first_ns: u64,
    /// Bytes of the last third.
    pub last_bytes: u64,
    /// Its time, ns, without stalls.
    pub last_ns: u64,
    /// Whether the rate went one way by more than a tenth, and not by chance.
    pub is_significant: bool,
    /// The correlation of rate and temperature (Pearson, −1 to 1); `None` without temperatures or where they hardly changed.
    pub celsius_correlation: Option<f64>,
}

impl Drift {
    /// The drift within the cells of one level.
    pub(super) fn within(cells: &[Level], celsius: Option<(&[u64], &[Option<i64>])>) -> Option<Self> {
        if cells.len() < LEAST_CELLS {
            return None;
        }
        let third = cells.len() / 3;
        let sum = |cells: &[Level]| (cells.iter().map(Level::bytes).sum::<u64>(), cells.iter().map(Level::moving_ns).sum::<u64>().max(1));
        let rate = |(bytes, ns): (u64, u64)| bytes as f64 / ns as f64;
        let (first, middle, last) = (sum(&cells[..third]), sum(&cells[third..cells.len() - third]), sum(&cells[cells.len() - third..]));
        let change = rate(last) / rate(first).max(f64::MIN_POSITIVE) - 1.0;
        let (low, high) = (rate(first).min(rate(last)), rate(first).max(rate(last)));
        let one_way = (low..=high).contains(&rate(middle));
        let y: Vec<f64> = cells.iter().map(Level::log_rate).collect();
        let beyond_chance = fit::climb(&y).is_some_and(|(climb, errors)| errors >= ERRORS && (climb > 0.0) == (change > 0.0));
        Some(Self {
            first_bytes: first.0,
            first_ns: first.1,
            last_bytes: last.0,
            last_ns: last.1,
            is_significant: change.abs() > LEAST && one_way && beyond_chance,
            celsius_correlation: celsius.and_then(|(t_ns, celsius)| correlation(cells, t_ns, celsius)),
        })
    }

    /// The rate of the last third over that of the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let rate = |bytes: u64, ns: u64| bytes as f64 / ns.max(1) as f64;
        rate(self.last_bytes, self.last_ns) / rate(self.first_bytes, self.first_ns).max(f64::MIN_POSITIVE)
    }
}

/// The correlation of the log rate with the last temperature that was read before the end of each cell.
fn correlation(cells: &[Level], t_ns: &[u64], celsius: &[Option<i64>]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|cell| {
            let before = t_ns.partition_point(|&t_ns| t_ns <= cell.to_ns).min(celsius.len());
            let degrees = celsius[..before].iter().rev().flatten().next()?;
            Some((*degrees as f64, cell.log_rate()))
        })
        .collect();
    let n = pairs.len() as f64;
    if pairs.len() < LEAST_CELLS {
        return None;
    }
    let degrees = || pairs.iter().map(|pair| pair.0);
    if degrees().fold(f64::MIN, f64::max) - degrees().fold(f64::MAX, f64::min) < LEAST_DEGREES {
        return None;
    }
    let (x, y) = (degrees().sum::<f64>() / n, pairs.iter().map(|pair| pair.1).sum::<f64>() / n);
    let product = |a: &dyn Fn(&(f64, f64)) -> f64, b: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(|pair| a(pair) * b(pair)).sum::<f64>();
    let (dx, dy) = (|pair: &(f64, f64)| pair.0 - x, |pair: &(f64, f64)| pair.1 - y);
    let scale = (product(&dx, &dx) * product(&dy, &dy)).sqrt();
    (scale > 0.0).then(|| product(&dx, &dy) / scale)
}
