//! Generalised least squares for levels and lines under noise that remembers: the transform of Prais and Winsten, then ordinary least squares.

/// Noise of less than a thousandth is not that of a drive, and nothing can be divided by none.
pub(super) const LEAST_VARIANCE: f64 = 1e-6;

/// A piece of the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) sloped: bool,
}

impl Piece {
    pub(super) fn middle(&self) -> f64 {
        (self.start + self.end - 1) as f64 / 2.0
    }
}

/// A fit by generalised least squares.
pub(super) struct Squares {
    pub(super) rss: f64,
    pub(super) coefficients: Vec<f64>,
    /// The inverse of the normal matrix.
    pub(super) inverse: Vec<Vec<f64>>,
    pub(super) residuals: Vec<f64>,
}

impl Squares {
    /// The variance of the noise without its memory. Each border costs a degree of freedom, as each coefficient does: it was put where it fits.
    pub(super) fn variance(&self, pieces: &[Piece]) -> f64 {
        let free = self.residuals.len().saturating_sub(self.coefficients.len() + pieces.len() - 1).max(1);
        (self.rss / free as f64).max(LEAST_VARIANCE)
    }
}

/// What a piece of the series is made of, each with one coefficient: a column that is one on the piece and one that climbs through its middle.
pub(super) fn columns(n: usize, pieces: &[Piece]) -> Vec<Vec<f64>> {
    let on = |piece: &Piece, value: &dyn Fn(f64) -> f64| {
        (0..n).map(|t| if (piece.start..piece.end).contains(&t) { value(t as f64) } else { 0.0 }).collect()
    };
    let mut columns = Vec::new();
    for piece in pieces {
        columns.push(on(piece, &|_| 1.0));
        if piece.sloped {
            columns.push(on(piece, &|t| t - piece.middle()));
        }
    }
    columns
}

/// The series after the transform of Prais and Winsten.
fn whitened(values: &[f64], phi: f64) -> Vec<f64> {
    let first = values.first().map(|value| value * (1.0 - phi * phi).sqrt());
    first.into_iter().chain(values.windows(2).map(|pair| pair[1] - phi * pair[0])).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn least_squares(y: &[f64], columns: &[Vec<f64>], phi: f64) -> Option<Squares> {
    let white: Vec<Vec<f64>> = columns.iter().map(|column| whitened(column, phi)).collect();
    let u = whitened(y, phi);
    let right: Vec<f64> = white.iter().map(|column| dot(column, &u)).collect();
    let inverse = invert(white.iter().map(|a| white.iter().map(|b| dot(a, b)).collect()).collect())?;
    let coefficients: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
    let rss = (dot(&u, &u) - dot(&coefficients, &right)).max(0.0);
    let fitted = |t: usize| columns.iter().zip(&coefficients).map(|(column, coefficient)| column[t] * coefficient).sum::<f64>();
    let residuals = y.iter().enumerate().map(|(t, value)| value - fitted(t)).collect();
    Some(Squares { rss, coefficients, inverse, residuals })
}

pub(super) fn fit_pieces(y: &[f64], pieces: &[Piece], phi: f64) -> Option<Squares> {
    least_squares(y, &columns(y.len(), pieces), phi)
}

/// The inverse by Gauss and Jordan with pivots; `None` when there is none.
fn invert(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut inverse: Vec<Vec<f64>> = (0..n).map(|row| (0..n).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column];
        for value in matrix[column].iter_mut().chain(inverse[column].iter_mut()) {
            *value /= scale;
        }
        let (pivot_row, pivot_inverse) = (matrix[column].clone(), inverse[column].clone());
        for row in (0..n).filter(|&row| row != column) {
            let factor = matrix[row][column];
            matrix[row].iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value -= factor * pivot);
            inverse[row].iter_mut().zip(&pivot_inverse).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    Some(inverse)
}
