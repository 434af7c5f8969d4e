//! Levels and lines through a series whose noise remembers: y(t) = f(t) + e(t), e(t) = φ·e(t−1) + ε(t).
//!
//! 1. φ and the noise from differences, which a few changes of level hardly touch.
//! 2. Candidates by optimal partitioning (Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE Signal Processing Letters 12, 2005;
//!    PELT of Killick, Fearnhead and Eckley 2012 is the same with pruning, which 600 points do not need). The cost of a piece is its residual sum of squares after
//!    the transform of Prais and Winsten (1954), which turns noise with a memory into noise without; a piece is a level or a line.
//! 3. Judgement by generalised least squares over the whole series, borders included: a border stays while leaving it out raises the residual sum of squares by
//!    more than [`BORDER`] variances, and while two levels fit better than one line. The weakest goes first.

use super::LEAST_CHANGE;
use super::squares::{LEAST_VARIANCE, Piece, columns, fit_pieces, least_squares};

/// What a border must explain, in variances of the noise: the square of the largest of several hundred standard normal values that chance gives in one of some
/// thousand steady series, and somewhat more because the variance is estimated. Frozen; `simulation` holds the promise.
const BORDER: f64 = 19.0;
/// What a border costs while candidates are sought: less, so that none is missed.
const CANDIDATE: f64 = 14.0;
/// What a slope must explain.
const SLOPE: f64 = 14.0;
/// How much better two levels must fit than one line in their place.
const NO_LINE: f64 = 2.0;
/// What one more parameter must explain where a way between levels is compared with steps.
const PARAMETER: f64 = 3.0;
/// The usual memory of rates of drives, and how many cells it counts for beside what the series itself says.
const PHI: f64 = 0.5;
const PHI_CELLS: f64 = 60.0;
/// The memory is taken to be within these.
const PHI_RANGE: (f64, f64) = (0.25, 0.85);
/// A line has at least this share of the cells: what is shorter is a change at once.
const LEAST_LINE: f64 = 0.10;
/// How far a border is moved to where it fits best.
const AROUND: usize = 3;
/// More changes than these are no levels any more; the weakest go.
const MOST_BORDERS: usize = 15;

/// Pieces and what they came to.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pieces: Vec<Piece>,
    /// Level in the middle and slope of each piece.
    values: Vec<(f64, f64)>,
    changes: Vec<Change>,
}

/// A change at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// The first value after it.
    pub(super) at: usize,
    /// How much the series changes: what comes after less what was before.
    pub(super) size: f64,
    error: f64,
}

impl Fit {
    /// Where the series changes at once, by at least [`LEAST_CHANGE`].
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The difference between the highest and the lowest place of what was fitted.
    pub(super) fn total_change(&self) -> f64 {
        let ends = self.pieces.iter().zip(&self.values).flat_map(|(piece, &(level, slope))| {
            let half = (piece.end - piece.start - 1) as f64 / 2.0;
            [level - slope * half, level + slope * half]
        });
        let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (high - low).max(0.0)
    }
}

/// The median of absolute values, scaled to the standard deviation of a normal variable (0.6745 is its upper quartile).
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let mut sizes: Vec<f64> = values.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0) / 0.674_5
}

fn differences(y: &[f64], lag: usize) -> f64 {
    spread(y.windows(lag + 1).map(|window| window[lag] - window[0]))
}

/// The standard deviation of the noise, from differences, for a memory of [`PHI`] (with which that of differences is the same).
pub(super) fn noise(y: &[f64]) -> f64 {
    differences(y, 1)
}

fn shrink(phi: f64, n: usize) -> f64 {
    ((phi * n as f64 + PHI * PHI_CELLS) / (n as f64 + PHI_CELLS)).clamp(PHI_RANGE.0, PHI_RANGE.1)
}

/// The memory from differences: Var(y(t) − y(t−2)) / Var(y(t) − y(t−1)) = 1 + φ.
fn first_phi(y: &[f64]) -> f64 {
    let (one, two) = (differences(y, 1), differences(y, 2));
    shrink(if one > 0.0 { (two * two) / (one * one) - 1.0 } else { PHI }, y.len() / 3)
}

/// Sums from which the residual sum of squares of any piece follows.
struct Sums {
    phi: f64,
    y: Vec<f64>,
    /// Prefix sums over t of u, u², t·u, t, t² with u = y(t) − φ·y(t−1).
    sums: Vec<[f64; 5]>,
}

impl Sums {
    fn of(y: &[f64], phi: f64) -> Self {
        let mut sums = vec![[0.0; 5], [0.0; 5]];
        for t in 1..y.len() {
            let (u, time) = (y[t] - phi * y[t - 1], t as f64);
            let last = sums[t];
            let add = [u, u * u, time * u, time, time * time];
            sums.push(std::array::from_fn(|index| last[index] + add[index]));
        }
        Self { phi, y: y.to_vec(), sums }
    }

    /// The residual sums of squares of a level and of a line through the cells from `start` to before `end`.
    fn level_and_line(&self, start: usize, end: usize) -> (f64, f64) {
        let phi = self.phi;
        let [u, uu, tu, t, tt] = std::array::from_fn(|index| self.sums[end][index] - self.sums[start + 1][index]);
        let m = (end - start - 1) as f64;
        // Rows after the first: 1−φ for the level; (t−o) − φ(t−1−o) = (1−φ)(t−o) + φ for the slope, with o the piece's middle.
        let (c, o) = (1.0 - phi, (start + end - 1) as f64 / 2.0);
        // The first row: √(1−φ²) times (1, start−o | y).
        let (w, x0, y0) = (1.0 - phi * phi, start as f64 - o, self.y[start]);
        let d = phi - c * o;
        let xx00 = w + c * c * m;
        let xy0 = w * y0 + c * u;
        let yy = w * y0 * y0 + uu;
        let xx01 = w * x0 + c * (c * t + d * m);
        let xx11 = w * x0 * x0 + c * c * tt + 2.0 * c * d * t + d * d * m;
        let xy1 = w * x0 * y0 + c * tu + d * u;
        let level = yy - xy0 * xy0 / xx00;
        let (left, right) = (xx11 - xx01 * xx01 / xx00, xy1 - xx01 * xy0 / xx00);
        let line = if left > 1e-12 { level - right * right / left } else { level };
        (level.max(0.0), line.max(0.0))
    }
}

/// The cheapest partition into pieces.
fn candidates(y: &[f64], phi: f64, variance: f64) -> Vec<Piece> {
    /// At the ends one cell is never a piece: it has a neighbour on one side only.
    const SHORTEST_END: usize = 2;
    let n = y.len();
    let sums = Sums::of(y, phi);
    let least_line = shortest_line(n);
    let mut best = vec![(f64::INFINITY, 0, false); n + 1];
    best[0] = (-CANDIDATE * variance, 0, false);
    for end in 1..=n {
        for start in 0..end {
            let before = best[start].0;
            if before.is_infinite() || ((start == 0 || end == n) && end - start < SHORTEST_END) {
                continue;
            }
            let (level, line) = sums.level_and_line(start, end);
            let line = if end - start >= least_line { line + SLOPE * variance } else { f64::INFINITY };
            let cost = before + CANDIDATE * variance + level.min(line);
            if cost < best[end].0 {
                best[end] = (cost, start, line < level);
            }
        }
    }
    let (mut pieces, mut end) = (Vec::new(), n);
    while end > 0 {
        let (_, start, sloped) = best[end];
        pieces.push(Piece { start, end, sloped });
        end = start;
    }
    pieces.reverse();
    pieces
}

fn shortest_line(n: usize) -> usize {
    ((n as f64 * LEAST_LINE) as usize).max(6)
}

/// Two neighbouring pieces as one.
fn joined(pieces: &[Piece], border: usize, sloped: bool) -> Vec<Piece> {
    let mut pieces = pieces.to_vec();
    let next = pieces.remove(border + 1);
    pieces[border] = Piece { start: pieces[border].start, end: next.end, sloped };
    pieces
}

/// Fits levels and lines to a series of at least some twenty values.
pub(super) fn fit(y: &[f64]) -> Fit {
    let mut phi = first_phi(y);
    let one = differences(y, 1);
    let variance = (one * one * (1.0 + phi) / 2.0).max(LEAST_VARIANCE);
    let mut pieces = candidates(y, phi, variance);
    let mut moved = 0;
    while let Some(now) = fit_pieces(y, &pieces, phi) {
        let variance = now.variance(&pieces);
        phi = phi_of(&now.residuals, now.coefficients.len());
        let Some(now) = fit_pieces(y, &pieces, phi) else { break };
        match weakest(y, &pieces, phi, variance, now.rss) {
            Some(fewer) => pieces = fewer,
            None if moved < 2 => {
                moved += 1;
                pieces = moved_to_best(y, pieces, phi);
            }
            None => break,
        }
    }
    while let Some(found) = without_stairs(y, &pieces, phi) {
        pieces = found;
    }
    result(y, pieces, phi)
}

/// The memory of residuals, with its bias towards zero (Kendall 1954: (1 + 3φ)/n, and one more for each coefficient) taken out.
fn phi_of(residuals: &[f64], coefficients: usize) -> f64 {
    let n = residuals.len();
    let squares: f64 = residuals.iter().map(|value| value * value).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares <= 0.0 {
        return PHI;
    }
    let raw = products / squares;
    shrink(raw + (coefficients as f64 + 3.0 * raw) / n as f64, n)
}

/// The pieces with one border or slope less: the one that explains least, when it explains too little.
fn weakest(y: &[f64], pieces: &[Piece], phi: f64, variance: f64, rss: f64) -> Option<Vec<Piece>> {
    let gain = |fewer: &[Piece]| fit_pieces(y, fewer, phi).map_or(f64::INFINITY, |fewer| (fewer.rss - rss) / variance);
    let mut worst: Option<(f64, Vec<Piece>)> = None;
    let mut consider = |missing: f64, fewer: Vec<Piece>| {
        if missing < 0.0 && worst.as_ref().is_none_or(|(least, _)| missing < *least) {
            worst = Some((missing, fewer));
        }
    };
    for border in 0..pieces.len() - 1 {
        let (left, right) = (pieces[border], pieces[border + 1]);
        let line = joined(pieces, border, true);
        let long = right.end - left.start >= shortest_line(y.len());
        if left.sloped || right.sloped {
            consider(gain(&line) - BORDER, line);
            continue;
        }
        let level = joined(pieces, border, false);
        consider(gain(&level) - BORDER, level);
        if long {
            consider(gain(&line) - NO_LINE, line);
        }
    }
    for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.sloped) {
        let mut fewer = pieces.to_vec();
        fewer[index] = Piece { sloped: false, ..*piece };
        consider(gain(&fewer) - SLOPE, fewer);
    }
    if worst.is_none() && pieces.len() > MOST_BORDERS {
        let all = (0..pieces.len() - 1).map(|border| joined(pieces, border, pieces[border].sloped || pieces[border + 1].sloped));
        return all.min_by(|a, b| gain(a).total_cmp(&gain(b)));
    }
    worst.map(|(_, fewer)| fewer)
}

/// The pieces with a line in place of steps that lead the same way, where a way of some length between the outer levels fits as well as the steps do. What such a
/// line explains is no change at once.
fn without_stairs(y: &[f64], pieces: &[Piece], phi: f64) -> Option<Vec<Piece>> {
    let n = y.len();
    let steps = fit_pieces(y, pieces, phi)?;
    let variance = steps.variance(pieces);
    let flat = |border: usize| !pieces[border].sloped && !pieces[border + 1].sloped;
    let jump = |border: usize| {
        let before: usize = pieces[..border].iter().map(|piece| 1 + usize::from(piece.sloped)).sum();
        steps.coefficients[before + 1] - steps.coefficients[before]
    };
    for first in 0..pieces.len() - 1 {
        for last in (first..pieces.len() - 1).rev() {
            if !(first..=last).all(|border| flat(border) && jump(border) * jump(first) > 0.0) {
                continue;
            }
            // Each step costs its place and its size, the way two places and one size, and there are more ways to try.
            let allowed = (2.0 * (last - first) as f64 - 3.0) * PARAMETER * variance;
            let (left, right) = (pieces[first], pieces[last + 1]);
            let mut others = pieces.to_vec();
            others.splice(first..=last + 1, [Piece { start: left.start, end: right.end, sloped: false }]);
            let fixed = columns(n, &others);
            let least = shortest_line(n);
            let stride = n.div_ceil(60);
            let mut best = (f64::INFINITY, 0, 0);
            for from in (left.start..pieces[first + 1].start).step_by(stride) {
                let earliest = (from + least).max(pieces[last].end);
                for to in (earliest..right.end).step_by(stride) {
                    let mut all = fixed.clone();
                    let way = |t: usize| ((t as f64 + 0.5 - from as f64) / (to - from) as f64).clamp(0.0, 1.0);
                    all.push((0..n).map(|t| if (left.start..right.end).contains(&t) { way(t) } else { 0.0 }).collect());
                    let rss = least_squares(y, &all, phi).map_or(f64::INFINITY, |fit| fit.rss);
                    if rss < best.0 {
                        best = (rss, from, to);
                    }
                }
            }
            if best.0 < steps.rss + allowed {
                let (_, from, to) = best;
                let way = [(left.start, from, false), (from, to, true), (to, right.end, false)];
                let way = way.into_iter().filter(|(start, end, _)| end > start).map(|(start, end, sloped)| Piece { start, end, sloped });
                let mut found = pieces.to_vec();
                found.splice(first..=last + 1, way);
                return Some(found);
            }
        }
    }
    None
}

/// The pieces with each border where it fits best.
fn moved_to_best(y: &[f64], mut pieces: Vec<Piece>, phi: f64) -> Vec<Piece> {
    for border in 0..pieces.len() - 1 {
        let at = pieces[border].end;
        let (low, high) = (pieces[border].start + 1, pieces[border + 1].end - 1);
        let places = (at.saturating_sub(AROUND).max(low))..=(at + AROUND).min(high);
        let with = |place: usize| {
            let mut pieces = pieces.clone();
            pieces[border].end = place;
            pieces[border + 1].start = place;
            pieces
        };
        let best = places.map(|place| (fit_pieces(y, &with(place), phi).map_or(f64::INFINITY, |fit| fit.rss), place));
        if let Some((_, place)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) {
            pieces = with(place);
        }
    }
    pieces
}

/// The fit of these pieces, without borders at which the rate changes by less than counts.
fn result(y: &[f64], mut pieces: Vec<Piece>, phi: f64) -> Fit {
    let least = -(-LEAST_CHANGE).ln_1p();
    loop {
        let Some(fit) = fit_pieces(y, &pieces, phi) else {
            return Fit { pieces: Vec::new(), values: Vec::new(), changes: Vec::new() };
        };
        let variance = fit.variance(&pieces);
        let mut column = 0;
        let (mut values, mut columns) = (Vec::new(), Vec::new());
        for piece in &pieces {
            columns.push(column);
            values.push((fit.coefficients[column], if piece.sloped { fit.coefficients[column + 1] } else { 0.0 }));
            column += 1 + usize::from(piece.sloped);
        }
        // The change at a border: the right piece's value minus the left one's, both half a cell from their ends.
        let jump = |border: usize| {
            let (left, right) = (&pieces[border], &pieces[border + 1]);
            let place = left.end as f64 - 0.5;
            let mut terms = vec![(columns[border + 1], 1.0), (columns[border], -1.0)];
            if right.sloped {
                terms.push((columns[border + 1] + 1, place - right.middle()));
            }
            if left.sloped {
                terms.push((columns[border] + 1, left.middle() - place));
            }
            let size: f64 = terms.iter().map(|&(column, x)| fit.coefficients[column] * x).sum();
            let square: f64 =
                terms.iter().flat_map(|&(a, x)| terms.iter().map(move |&(b, z)| (a, x, b, z))).map(|(a, x, b, z)| x * z * fit.inverse[a][b]).sum();
            Change { at: right.start, size, error: (square * variance).max(0.0).sqrt() }
        };
        let jumps: Vec<Change> = (0..pieces.len() - 1).map(jump).collect();
        // Levels that differ too little are one.
        let small = (0..jumps.len()).filter(|&border| !pieces[border].sloped && !pieces[border + 1].sloped && jumps[border].size.abs() < least);
        if let Some(border) = small.min_by(|&a, &b| jumps[a].size.abs().total_cmp(&jumps[b].size.abs())) {
            pieces = joined(&pieces, border, false);
            continue;
        }
        let counts = |change: &Change| change.size.abs() >= least && change.size * change.size >= BORDER * change.error * change.error;
        return Fit { changes: jumps.into_iter().filter(counts).collect(), pieces, values };
    }
}

/// How much a line through the series climbs from its first to its last value, and how many standard errors that is.
pub(super) fn climb(y: &[f64]) -> Option<(f64, f64)> {
    let n = y.len();
    let phi = first_phi(y);
    let line = [Piece { start: 0, end: n, sloped: true }];
    let phi = phi_of(&fit_pieces(y, &line, phi)?.residuals, 2);
    let fit = fit_pieces(y, &line, phi)?;
    let variance = (fit.rss / n.saturating_sub(2).max(1) as f64).max(LEAST_VARIANCE);
    let slope = fit.coefficients[1];
    Some((slope * (n as f64 - 1.0), slope.abs() / (fit.inverse[1][1] * variance).max(f64::MIN_POSITIVE).sqrt()))
}
