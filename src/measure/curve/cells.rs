//! A curve of cumulative bytes as cells, each with bytes and time, of which the rate can be judged.

use std::ops::Range;

use super::super::stall::{Gap, STALL_NS};
use super::fit::{self, Fit};
use super::{LEAST_SHARE, Level};

/// The first and last this much of all bytes is no part of the curve: names and journals trickle before and after the data.
const ENDS: f64 = 0.005;
/// Above this noise of the log rate pairs of cells become one, as long as this many remain: counters move in bursts of requests.
const BURSTY: f64 = 0.20;
const ENOUGH: usize = 40;
/// A cell is out of line when it differs from both neighbours by this many standard deviations.
const SPIKE: f64 = 5.0;
/// Noise is taken to be at least this.
const LEAST_NOISE: f64 = 0.005;
/// A piece that both neighbours leave behind is a level when it has at least this share of the cells; a shorter one is an accident.
const LEAST_PIECE: f64 = 0.05;

/// A level lasts longer than a cell, by which the beginning of all may differ: the drive is asked for something some time after the clock was started.
const LEAST_CELL: f64 = 1.25;

/// A piece of the curve.
#[derive(Debug, Clone, Copy)]
struct Cell {
    level: Level,
    used: bool,
}

/// A curve in pieces.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    /// In the order in which they came; none overlaps another.
    stalls: Vec<Gap>,
    total_bytes: u64,
}

/// The known samples: time and bytes since the first of them, neither ever falling.
fn points(t_ns: &[u64], bytes: &[Option<i64>]) -> Vec<(u64, u64)> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    let known = t_ns.iter().zip(bytes).filter_map(|(&t_ns, bytes)| Some((t_ns, bytes.and_then(|bytes| u64::try_from(bytes).ok())?)));
    for (t_ns, bytes) in known {
        if points.last().is_none_or(|last| t_ns > last.0 && bytes >= last.1) {
            points.push((t_ns, bytes));
        }
    }
    points
}

/// Where the samples themselves show a second without progress; the second list holds the stretches beside it, of which some part may have stood still too.
fn visible_stalls(points: &[(u64, u64)]) -> (Vec<Gap>, Vec<Gap>) {
    let (mut stalls, mut beside) = (Vec::new(), Vec::new());
    let mut from = 0;
    for index in 1..points.len() {
        if points[index].1 != points[from].1 {
            let gap = Gap { from_ns: points[from].0, to_ns: points[index - 1].0 };
            if gap.ns() >= STALL_NS {
                stalls.push(gap);
                beside.push(Gap { from_ns: gap.to_ns, to_ns: points[index].0 });
                if from > 0 {
                    beside.push(Gap { from_ns: points[from - 1].0, to_ns: gap.from_ns });
                }
            }
            from = index;
        }
    }
    (stalls, beside)
}

fn overlap(gaps: &[Gap], from_ns: u64, to_ns: u64) -> u64 {
    gaps.iter().map(|gap| gap.to_ns.min(to_ns).saturating_sub(gap.from_ns.max(from_ns))).sum()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Cells {
    /// The cells of a curve; `None` when nothing moved.
    pub(super) fn of(t_ns: &[u64], bytes: &[Option<i64>], stalls: &[Gap]) -> Option<Self> {
        let points = points(t_ns, bytes);
        let (first, last) = (points.first()?.1, points.last()?.1);
        let total = last - first;
        let ends = (total as f64 * ENDS) as u64;
        let begin = points.iter().rposition(|point| point.1 - first <= ends)?;
        let end = points.iter().position(|point| last - point.1 <= ends)?;
        if total == 0 || end <= begin {
            return None;
        }
        let points = points.get(begin..=end)?;
        let (seen, beside) = visible_stalls(points);
        let (stalls, beside) = if stalls.is_empty() { (seen, beside) } else { (stalls.to_vec(), Vec::new()) };
        let mut pieces = Vec::new();
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let stalled_ns = overlap(&stalls, from.0, to.0);
            let level = Level { from_bytes: from.1 - first, to_bytes: to.1 - first, from_ns: from.0, to_ns: to.0, stalled_ns };
            pieces.push(Cell { level, used: overlap(&beside, from.0, to.0) == 0 });
        }
        let mut cells = Self { cells: pieces, stalls, total_bytes: total };
        cells.merge();
        while cells.used() >= 2 * ENOUGH && fit::noise(&cells.log_rates()) > BURSTY {
            cells.pair();
        }
        cells.cut_ends();
        cells.leave_out_spikes();
        Some(cells)
    }

    /// Cuts cells off both ends that are far slower than what follows inwards: in part of their time the drive was not asked for anything yet, or any more.
    fn cut_ends(&mut self) {
        /// So many at an end.
        const MOST: usize = 2;
        let sd = fit::noise(&self.log_rates()).max(LEAST_NOISE);
        let slower = |end: &Cell, inner: &Cell| end.level.log_rate() < inner.level.log_rate() - SPIKE * sd;
        for _ in 0..MOST {
            if matches!(self.cells.as_slice(), [first, second, ..] if slower(first, second)) {
                self.cells.remove(0);
            }
            if matches!(self.cells.as_slice(), [.., inner, last] if slower(last, inner)) {
                self.cells.pop();
            }
        }
    }

    /// Makes one cell of those that are too short for a rate, or in which nothing moved.
    fn merge(&mut self) {
        let usual = middle(self.cells.iter().filter(|cell| cell.level.stalled_ns == 0).map(|cell| cell.level.moving_ns() as f64).collect());
        let mut merged: Vec<Cell> = Vec::new();
        let whole = |cell: &Cell| cell.level.bytes() > 0 && cell.level.moving_ns() as f64 >= usual / 2.0;
        for cell in self.cells.drain(..) {
            match merged.last_mut().filter(|last| !whole(last)) {
                Some(last) => last.join(&cell),
                None => merged.push(cell),
            }
        }
        if let Some(short) = merged.pop_if(|last| !whole(last)) {
            match merged.last_mut() {
                Some(last) => last.join(&short),
                None => merged.push(short),
            }
        }
        self.cells = merged;
    }

    /// Makes one cell of two.
    fn pair(&mut self) {
        let mut paired = Vec::with_capacity(self.cells.len() / 2 + 1);
        let (pairs, rest) = self.cells.as_chunks::<2>();
        for [first, second] in pairs {
            let mut both = *first;
            both.join(second);
            paired.push(both);
        }
        paired.extend(rest);
        self.cells = paired;
    }

    fn leave_out_spikes(&mut self) {
        let y = self.log_rates();
        let sd = fit::noise(&y).max(LEAST_NOISE);
        let spikes: Vec<usize> = (1..y.len().saturating_sub(1))
            .filter(|&index| {
                let (before, after) = (y[index] - y[index - 1], y[index] - y[index + 1]);
                before * after > 0.0 && before.abs().min(after.abs()) > SPIKE * sd
            })
            .collect();
        for index in spikes.into_iter().rev() {
            self.leave_out(index..index + 1);
        }
    }

    /// How many cells are judged.
    pub(super) fn used(&self) -> usize {
        self.cells.iter().filter(|cell| cell.used).count()
    }

    fn judged(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| cell.used)
    }

    /// The logarithms of the rates of the cells that are judged.
    pub(super) fn log_rates(&self) -> Vec<f64> {
        self.judged().map(|(_, cell)| cell.level.log_rate()).collect()
    }

    /// The cells that are judged and lie within a level.
    pub(super) fn within(&self, level: &Level) -> Vec<Level> {
        self.judged().map(|(_, cell)| cell.level).filter(|cell| cell.from_bytes >= level.from_bytes && cell.to_bytes <= level.to_bytes).collect()
    }

    /// Judges some of the cells that are judged no longer.
    pub(super) fn leave_out(&mut self, range: Range<usize>) {
        let those: Vec<usize> = self.judged().map(|(index, _)| index).skip(range.start).take(range.len()).collect();
        for index in those {
            self.cells[index].used = false;
        }
    }

    /// A piece that is too short for a level: the shortest one.
    pub(super) fn accident(&self, found: &Fit) -> Option<Range<usize>> {
        let judged: Vec<&Cell> = self.judged().map(|(_, cell)| cell).collect();
        let count = judged.len();
        let mut borders = vec![0];
        borders.extend(found.changes().iter().map(|change| change.at));
        borders.push(count);
        if borders.len() == 2 {
            return None;
        }
        let usual = middle(judged.iter().map(|cell| cell.level.moving_ns() as f64).collect());
        let levels = self.levels(&borders[1..borders.len() - 1]);
        let pieces = borders.windows(2).map(|pair| pair[0]..pair[1]).zip(&levels);
        let too_short = |(piece, level): &(Range<usize>, &Level)| {
            let least = match (piece.start, piece.end) {
                (0, _) => 2.0,
                (_, end) if end == count => 3.0,
                _ => (count as f64 * LEAST_PIECE).max(4.0).min(if self.leads_on(piece, found) { 3.0 } else { f64::MAX }),
            };
            // Where a border lies within a cell, less of it is left than the cells say.
            (piece.len() as f64) < least
                || (level.bytes() as f64) < self.total_bytes as f64 * LEAST_SHARE
                || (level.moving_ns() as f64) < usual * LEAST_CELL
        };
        pieces.filter(too_short).map(|(piece, _)| piece).min_by_key(Range::len)
    }

    /// Whether a piece lies between the rates on its sides, as the middle one of three levels does.
    fn leads_on(&self, piece: &Range<usize>, found: &Fit) -> bool {
        let changes = found.changes();
        let jump = |at: usize| changes.iter().find(|change| change.at == at).map_or(0.0, |change| change.size);
        jump(piece.start) * jump(piece.end) > 0.0
    }

    /// The whole curve as one level.
    pub(super) fn whole(&self) -> Level {
        self.levels(&[])[0]
    }

    /// The levels between changes that lie before these of the judged cells. The place of a change within the cells around it follows from their bytes and time
    /// and the rates on both sides.
    pub(super) fn levels(&self, changes: &[usize]) -> Vec<Level> {
        let judged: Vec<usize> = self.judged().map(|(index, _)| index).collect();
        let mut borders = vec![0];
        borders.extend(changes.iter().filter_map(|&at| judged.get(at)));
        borders.push(self.cells.len());
        let sum = |range: Range<usize>| {
            let mut sum = self.cells[range.start];
            self.cells[range.start + 1..range.end].iter().for_each(|cell| sum.join(cell));
            sum.level
        };
        let mut levels: Vec<Level> = borders.windows(2).map(|pair| sum(pair[0]..pair[1])).collect();
        for (index, &at) in borders[1..borders.len() - 1].iter().enumerate() {
            // The cells on both sides of the border are left out of the rates by which it is placed.
            let before = if borders[index] + 1 < at { sum(borders[index]..at - 1) } else { levels[index] }.rate();
            let after = if at + 1 < borders[index + 2] { sum(at + 1..borders[index + 2]) } else { levels[index + 1] }.rate();
            let both = sum(at - 1..at + 1);
            let (bytes, seconds) = (both.bytes() as f64, both.moving_ns() as f64 / 1e9);
            let fast = ((seconds - bytes / after) / (1.0 / before - 1.0 / after)).clamp(0.0, bytes);
            if !fast.is_finite() {
                continue;
            }
            let place_bytes = both.from_bytes + fast as u64;
            let moving_until = both.from_ns + (fast / before * 1e9) as u64;
            let stalled_before =
                |until: u64, gap: &Gap| if gap.from_ns <= until { until + overlap(&[*gap], both.from_ns, both.to_ns) } else { until };
            let place_ns = self.stalls.iter().fold(moving_until, stalled_before).min(both.to_ns);
            (levels[index].to_bytes, levels[index].to_ns) = (place_bytes, place_ns);
            (levels[index + 1].from_bytes, levels[index + 1].from_ns) = (place_bytes, place_ns);
        }
        for level in &mut levels {
            level.stalled_ns = overlap(&self.stalls, level.from_ns, level.to_ns);
        }
        levels
    }
}

impl Cell {
    fn join(&mut self, next: &Self) {
        self.level.to_bytes = next.level.to_bytes;
        self.level.to_ns = next.level.to_ns;
        self.level.stalled_ns += next.level.stalled_ns;
        self.used &= next.used;
    }
}
