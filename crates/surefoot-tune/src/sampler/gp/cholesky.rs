//! Cholesky factorization.
//!
//! Plain loops suffice for a few hundred rows; a linear algebra library would be the heaviest dependency
//! of this crate.

/// Lower triangle of a square matrix, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Lower {
    rows: Vec<Vec<f64>>,
}

impl Lower {
    /// Builds a triangle from its entries.
    pub(crate) fn new(n: usize, entry: impl Fn(usize, usize) -> f64) -> Lower {
        let row = |i| (0..=i).map(|j| entry(i, j)).collect();
        Lower { rows: (0..n).map(row).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Entry of row `i` and column `j <= i`.
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.rows[i][j]
    }

    /// The factor L of this symmetric matrix L Lᵀ, or `None` if it is not positive definite.
    pub(crate) fn factor(mut self) -> Option<Lower> {
        for i in 0..self.len() {
            let (done, rest) = self.rows.split_at_mut(i);
            let row = &mut rest[0];
            for (j, above) in done.iter().enumerate() {
                row[j] = (row[j] - dot(&row[..j], &above[..j])) / above[j];
            }
            let square = row[i] - dot(&row[..i], &row[..i]);
            if square.is_nan() || square <= 0.0 {
                return None;
            }
            row[i] = libm::sqrt(square);
        }
        Some(self)
    }

    /// Solves L x = b.
    pub(crate) fn forward(&self, b: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = Vec::with_capacity(b.len());
        for (i, row) in self.rows.iter().enumerate() {
            x.push((b[i] - dot(&row[..i], &x)) / row[i]);
        }
        x
    }

    /// Solves Lᵀ x = b.
    pub(crate) fn backward(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for (i, row) in self.rows.iter().enumerate().rev() {
            x[i] /= row[i];
            let found = x[i];
            x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * found);
        }
        x
    }

    /// Lower triangle of the inverse of L Lᵀ.
    pub(crate) fn inverse(&self) -> Lower {
        let n = self.len();
        // Columns of L⁻¹, each from its diagonal downwards.
        let columns: Vec<Vec<f64>> = (0..n).map(|j| self.inverse_column(j)).collect();
        Lower::new(n, |i, j| dot(&columns[i], &columns[j][i - j..]))
    }

    fn inverse_column(&self, j: usize) -> Vec<f64> {
        let mut column = vec![1.0 / self.rows[j][j]];
        for row in &self.rows[j + 1..] {
            let i = j + column.len();
            column.push(-dot(&row[j..i], &column) / row[i]);
        }
        column
    }
}

/// Sums eight products at a time, which vectorizes with the same order of additions on every machine.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_wide, a_rest) = a.as_chunks::<8>();
    let (b_wide, b_rest) = b[..a.len()].as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_wide.iter().zip(b_wide) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize) -> Lower {
        Lower::new(n, |i, j| libm::exp(-((i - j) as f64).powi(2) / 3.0) + f64::from(i == j))
    }

    #[test]
    fn solutions_solve_and_the_inverse_inverts() {
        let n = 21;
        let factor = matrix(n).factor().expect("positive definite");
        let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let x = factor.backward(&factor.forward(&b));
        let full = |m: &Lower, i: usize, j: usize| m.at(i.max(j), i.min(j));
        let (matrix, inverse) = (matrix(n), factor.inverse());
        for (i, b) in b.iter().enumerate() {
            let sum: f64 = (0..n).map(|j| full(&matrix, i, j) * x[j]).sum();
            assert!((sum - b).abs() < 1e-9);
            for k in 0..n {
                let sum: f64 = (0..n).map(|j| full(&matrix, i, j) * full(&inverse, j, k)).sum();
                assert!((sum - f64::from(i == k)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_factor() {
        assert!(Lower::new(2, |_, _| 1.0).factor().is_none());
        assert!(Lower::new(1, |_, _| f64::NAN).factor().is_none());
    }
}
