//! Reductions of rows, each in an order that does not depend on the vectors of the machine.

use super::{parallel, vectorized};

/// Values added at once, and independent sums of them: the vectors of AVX-512, and as many as hide
/// the latency of an addition.
const LANES: usize = 16;
const SUMS: usize = 8;
/// Number of values from which sums of all rows are shared, and number of columns of a part.
const SHARED: usize = 64 * 1024;
const COLUMNS: usize = 128;

/// The sum of each row of `width` values.
pub(crate) fn each_row(values: &[f32], width: usize) -> Vec<f32> {
    let rows = values.len() / width.max(1);
    let mut out = vec![0.0; rows];
    let part = (parallel::part(values.len(), width) / width.max(1)).max(1);
    parallel::chunks_mut(&mut out, part, |index, out| {
        let values = values[index * part * width..].chunks_exact(width);
        vectorized(
            #[inline(always)]
            || out.iter_mut().zip(values).for_each(|(sum, values)| *sum = row(values)),
        );
    });
    out
}

/// The sum of a row.
#[inline(always)]
pub(super) fn row(values: &[f32]) -> f32 {
    let mut sums = [[0.0; LANES]; SUMS];
    let mut blocks = values.chunks_exact(SUMS * LANES);
    for block in &mut blocks {
        for (sum, values) in sums.iter_mut().zip(block.chunks_exact(LANES)) {
            add(sum, values);
        }
    }
    // Neighbours are added pairwise: first whole sums, then, below, the halves of one.
    let [mut a, b, mut c, d, mut e, f, mut g, h] = sums;
    add(&mut a, &b);
    add(&mut c, &d);
    add(&mut e, &f);
    add(&mut g, &h);
    add(&mut a, &c);
    add(&mut e, &g);
    add(&mut a, &e);
    let mut vectors = blocks.remainder().chunks_exact(LANES);
    for values in &mut vectors {
        add(&mut a, values);
    }
    let mut half = LANES / 2;
    while half > 0 {
        let (left, right) = a.split_at_mut(half);
        add(left, &right[..half]);
        half /= 2;
    }
    a[0] + vectors.remainder().iter().sum::<f32>()
}

#[inline(always)]
fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// The sum of all rows of `width` values, one row after the other.
pub(crate) fn all_rows(values: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    let part = if values.len() < SHARED { width } else { COLUMNS };
    parallel::chunks_mut(&mut sums, part, |index, sums| {
        vectorized(
            #[inline(always)]
            || values.chunks_exact(width).for_each(|row| add(sums, &row[index * part..])),
        );
    });
    sums
}

/// The maximum of each row of `width` values; NaN if it has one.
pub(crate) fn row_maxima(values: &[f32], width: usize) -> Vec<f32> {
    let larger = |a: f32, &b: &f32| if a >= b || a.is_nan() { a } else { b };
    values.chunks_exact(width).map(|row| row.iter().fold(f32::NEG_INFINITY, larger)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_double_precision() {
        for width in [1, 15, 16, 17, 127, 128, 129, 300, 1000] {
            let values: Vec<f32> =
                (0..3 * width).map(|i| ((i * 37) % 101) as f32 * 0.01 - 0.3).collect();
            let sums = each_row(&values, width);
            assert_eq!(sums.len(), 3);
            for (row, sum) in values.chunks_exact(width).zip(sums) {
                let exact: f64 = row.iter().map(|&v| f64::from(v)).sum();
                assert!((f64::from(sum) - exact).abs() < 1e-4, "{width}: {sum}, {exact}");
            }
            let sums = all_rows(&values, width);
            for (column, sum) in sums.iter().enumerate() {
                let exact: f32 = (0..3).map(|row| values[row * width + column]).sum();
                assert_eq!(*sum, exact);
            }
        }
    }

    #[test]
    fn a_row_with_nan_has_no_maximum() {
        let values = [1.0, f32::NAN, 3.0, 4.0, -2.0, 4.5];
        let maxima = row_maxima(&values, 3);
        assert!(maxima[0].is_nan());
        assert_eq!(maxima[1], 4.5);
    }
}
