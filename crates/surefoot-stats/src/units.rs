//! Counts units of a layer whose values are all zero, such as dead ReLUs.

/// Columns looked at together: few enough for their flags to stay in registers or the L1 cache.
const STRIP: usize = 256;

/// The share of columns of a row-major `[rows, columns]` matrix whose every value is exactly zero.
///
/// Use it where a unit is a column, as in the outputs of a dense layer over a batch. NaN is not
/// zero. Without columns or without values the share is 0. A last row that is cut short counts for
/// the columns it reaches.
///
/// Allocates nothing, and stops reading columns once each of them has shown a value.
///
/// ```
/// let outputs = [0.0, 1.0, 0.0, 2.0, -0.0, 0.0];
/// assert_eq!(surefoot_stats::zero_columns(&outputs, 2), 0.5);
/// ```
pub fn zero_columns(values: &[f32], columns: usize) -> f64 {
    if values.is_empty() || columns == 0 {
        return 0.0;
    }
    let mut dead = 0;
    for start in (0..columns).step_by(STRIP) {
        let width = STRIP.min(columns - start);
        let mut alive = [false; STRIP];
        let alive = &mut alive[..width];
        for rows in values.chunks(columns.saturating_mul(8)) {
            for row in rows.chunks(columns) {
                let strip = row.get(start..).unwrap_or(&[]);
                for (alive, &value) in alive.iter_mut().zip(strip) {
                    *alive |= value != 0.0;
                }
            }
            if alive.iter().all(|&alive| alive) {
                break;
            }
        }
        dead += alive.iter().filter(|&&alive| !alive).count();
    }
    dead as f64 / columns as f64
}

/// The share of rows of a row-major `[rows, rest]` matrix whose every value is exactly zero.
///
/// Use it where a unit is a row, as in weights stored one unit after the other. NaN is not zero.
/// Without rows, or with fewer values than rows, the share is 0. Values after the last whole row
/// are left out.
///
/// ```
/// let weights = [0.0, 0.0, 0.5, 0.0];
/// assert_eq!(surefoot_stats::zero_rows(&weights, 2), 0.5);
/// ```
pub fn zero_rows(values: &[f32], rows: usize) -> f64 {
    let width = values.len().checked_div(rows).unwrap_or(0);
    if width == 0 {
        return 0.0;
    }
    let is_dead = |row: &&[f32]| row.iter().all(|&value| value == 0.0);
    let dead = values.chunks_exact(width).take(rows).filter(is_dead).count();
    dead as f64 / rows as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_units_or_values_no_share_is_dead() {
        assert_eq!(zero_columns(&[], 3), 0.0);
        assert_eq!(zero_columns(&[0.0; 3], 0), 0.0);
        assert_eq!(zero_rows(&[], 3), 0.0);
        assert_eq!(zero_rows(&[0.0; 3], 0), 0.0);
        assert_eq!(zero_rows(&[0.0; 3], 4), 0.0);
    }

    #[test]
    fn negative_zero_is_zero_and_nan_is_not() {
        assert_eq!(zero_columns(&[-0.0, f32::NAN, 0.0, 0.0], 2), 0.5);
        assert_eq!(zero_rows(&[-0.0, 0.0, f32::NAN, 0.0], 2), 0.5);
    }

    #[test]
    fn columns_beyond_one_strip_and_rows_beyond_one_look_are_seen() {
        let (rows, columns) = (50, 3 * STRIP + 10);
        let mut values = vec![0.0; rows * columns];
        for column in (0..columns).step_by(2) {
            values[(column % rows) * columns + column] = 1.0;
        }
        assert_eq!(zero_columns(&values, columns), 0.5);
    }

    #[test]
    fn a_column_that_comes_alive_in_the_last_row_is_alive() {
        let mut values = [0.0; 2 * 33];
        values[65] = 1e-45;
        assert_eq!(zero_columns(&values, 2), 0.5);
    }

    #[test]
    fn a_last_row_that_is_cut_short_counts_for_the_columns_it_reaches() {
        assert_eq!(zero_columns(&[0.0, 0.0, 1.0], 2), 0.5);
    }
}
