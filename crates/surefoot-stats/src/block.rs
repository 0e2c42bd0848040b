//! The moments of one block of values, about a pivot taken from within the block.
//!
//! With a pivot `c` the powers of `d = x - c` are summed in a single pass, and the sums are moved to
//! the mean afterwards. That loses digits only in so far as `c` lies many standard deviations from
//! the mean. It cannot: `c` is the mean of `k` of the `n` values, and `k` values at a distance `δ`
//! from the mean already force a variance of at least `δ²k/n`. So at most `log2(n/k)` bits are lost,
//! 10 of 53 for a whole block and none to speak of for values in no particular order. A pivot of
//! zero is taken when values lie on both sides of it, and then `k` is one.

use crate::moments::Moments;
use crate::simd::{Isa, LANES, Lane, Sums, add_lanes};

/// Number of values that are summed before partial results are merged.
///
/// [`moments`](crate::moments()) of a slice is the [`merge_tree`](crate::merge_tree) of the moments
/// of its blocks. A slice that is cut after `BLOCK` values, or after a power of two times as many,
/// can therefore be measured piece by piece to the same bits.
///
/// It is long enough that merging costs no measurable time, and short enough that little precision
/// is lost within a block.
pub const BLOCK: usize = 8192;

/// The moments of at most [`BLOCK`] values.
#[inline]
pub(crate) fn moments<T: Lane>(isa: Isa, values: &[T]) -> Moments {
    if values.is_empty() {
        return Moments::default();
    }
    let pivot = pivot(values);
    let sums = T::sums(isa, values, pivot);
    if sums.are_finite() {
        about_mean(&sums, pivot, values.len())
    } else {
        without_nonfinite(isa, values)
    }
}

/// A point among the first values: zero if they lie about it, which spares a subtraction, or else
/// their mean. It is exact for a constant block.
#[inline]
fn pivot<T: Lane>(values: &[T]) -> f64 {
    let Some(first) = values.first_chunk::<LANES>() else {
        return values.first().map_or(0.0, |x| x.to_f64());
    };
    if first.iter().any(|&x| x <= T::ZERO) && first.iter().any(|&x| x >= T::ZERO) {
        return 0.0;
    }
    // Scaling before adding keeps the largest f64 from overflowing, and is exact.
    add_lanes(&first.map(|x| x.to_f64() * (1.0 / LANES as f64)))
}

/// Moves the sums from the pivot to the mean.
#[inline]
fn about_mean(sums: &Sums, pivot: f64, len: usize) -> Moments {
    let n = len as f64;
    let [s1, s2, s3, s4] = sums.powers();
    let shift = s1 / n;
    let shift2 = shift * shift;
    Moments {
        count: len as u64,
        nan: 0,
        inf: 0,
        zeros: sums.zeros,
        mean: pivot + shift,
        m2: (s2 - s1 * shift).max(0.0),
        m3: s3 - 3.0 * shift * s2 + 2.0 * s1 * shift2,
        m4: (s4 - 4.0 * shift * s3 + 6.0 * shift2 * s2 - 3.0 * s1 * shift2 * shift).max(0.0),
        l1: sums.absolute(),
        min: sums.min,
        max: sums.max,
    }
}

/// The moments of a block whose sums left the range of `f64`, as they do with a NaN or an infinity
/// in it: once more on a copy without those.
#[cold]
#[inline(never)]
fn without_nonfinite<T: Lane>(isa: Isa, values: &[T]) -> Moments {
    let (mut nan, mut inf) = (0, 0);
    let mut kept = [T::ZERO; BLOCK];
    let mut count = 0;
    for &value in values {
        if value.finite() {
            kept[count] = value;
            count += 1;
        } else if value.to_f64().is_nan() {
            nan += 1;
        } else {
            inf += 1;
        }
    }
    let kept = &kept[..count];
    if kept.is_empty() {
        return Moments { nan, inf, ..Moments::default() };
    }
    let pivot = pivot(kept);
    let sums = T::sums(isa, kept, pivot);
    let mut moments = about_mean(&sums, pivot, count);
    if !sums.are_finite() {
        // Only f64 gets here, with values beyond the fourth root of its range.
        let scale = 1.0 / count as f64;
        moments.mean = kept.iter().map(|x| x.to_f64() * scale).sum();
        let [_, s2, ..] = sums.powers();
        if !s2.is_finite() {
            moments.m2 = f64::INFINITY;
        }
        moments.m3 = 0.0;
        moments.m4 = f64::INFINITY;
    }
    Moments { nan, inf, ..moments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pivot_of_a_constant_block_is_the_constant() {
        for len in [1, 7, 8, 9, BLOCK] {
            let values = vec![0.1_f64; len];
            assert_eq!(pivot(&values), 0.1);
        }
        assert_eq!(pivot(&[f64::MAX; 8]), f64::MAX);
    }

    #[test]
    fn a_pivot_far_from_the_mean_costs_few_digits() {
        let mut values = vec![0.0_f64; BLOCK];
        values[..LANES].fill(1e9);
        let moments = moments(Isa::best(), &values);
        let p = LANES as f64 / BLOCK as f64;
        let variance = 1e18 * p * (1.0 - p);
        let relative = (moments.m2 / BLOCK as f64 - variance).abs() / variance;
        assert!(relative < 1e-13, "{relative:e}");
    }

    #[test]
    fn nonfinite_values_leave_the_rest_as_if_they_were_not_there() {
        let clean: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
        let mut dirty = clean.clone();
        dirty.insert(0, f32::NAN);
        dirty.insert(50, f32::INFINITY);
        dirty.push(f32::NEG_INFINITY);
        let expected = Moments { nan: 1, inf: 2, ..moments(Isa::best(), &clean) };
        assert_eq!(moments(Isa::best(), &dirty), expected);
    }

    #[test]
    fn a_spread_beyond_f64_gives_an_infinite_variance_and_a_finite_mean() {
        let moments = moments(Isa::best(), &[f64::MAX, -f64::MAX, f64::MAX, -f64::MAX]);
        assert_eq!(moments.mean, 0.0);
        assert_eq!(moments.m2, f64::INFINITY);
        assert_eq!(moments.m3, 0.0);
    }
}
