//! Partial results that merge, and the tree they merge along.

use crate::block::BLOCK;
use crate::element::Element;
use crate::simd::Isa;
use crate::summary::Summary;

/// Partial result of a [`Summary`] for some values: counts, extremes, the sum of absolute values,
/// the mean, and the sums of the second to fourth powers about it.
///
/// Partial results are combined by [`Moments::merge`] or [`merge_tree`] and turned into a summary
/// by [`Moments::finish`]. The default is the result of no values; merging it changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    pub(crate) count: u64,
    pub(crate) nan: u64,
    pub(crate) inf: u64,
    pub(crate) zeros: u64,
    pub(crate) mean: f64,
    pub(crate) m2: f64,
    pub(crate) m3: f64,
    pub(crate) m4: f64,
    pub(crate) l1: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments {
            count: 0,
            nan: 0,
            inf: 0,
            zeros: 0,
            mean: 0.0,
            m2: 0.0,
            m3: 0.0,
            m4: 0.0,
            l1: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Moments {
    /// The same as [`moments`].
    pub fn of<T: Element>(values: &[T]) -> Moments {
        moments(values)
    }

    /// Number of finite values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The result for the values of `self` followed by those of `other`.
    ///
    /// The formulas are Pébay's (2008) for merging central moments of any order. Merging is not
    /// associative to the last bit; use [`merge_tree`] for a result that does not depend on who
    /// computed which part.
    #[must_use]
    pub fn merge(&self, other: &Moments) -> Moments {
        let (a, b) = (self, other);
        let (nan, inf) = (a.nan + b.nan, a.inf + b.inf);
        if b.count == 0 {
            return Moments { nan, inf, ..*a };
        }
        if a.count == 0 {
            return Moments { nan, inf, ..*b };
        }
        let count = a.count + b.count;
        let n = count as f64;
        // The shares of the two sides.
        let (p, q) = (a.count as f64 / n, b.count as f64 / n);
        let delta = b.mean - a.mean;
        let delta2 = delta * delta;
        let between = a.count as f64 * q * delta2;
        let mean = if delta.is_finite() { a.mean + delta * q } else { a.mean * p + b.mean * q };
        let m3 = a.m3 + b.m3 + between * delta * (p - q) + 3.0 * delta * (p * b.m2 - q * a.m2);
        let m4 = a.m4
            + b.m4
            + between * delta2 * (p * p - p * q + q * q)
            + 6.0 * delta2 * (p * p * b.m2 + q * q * a.m2)
            + 4.0 * delta * (p * b.m3 - q * a.m3);
        Moments {
            count,
            nan,
            inf,
            zeros: a.zeros + b.zeros,
            mean,
            m2: a.m2 + b.m2 + between,
            // Infinities of opposite sign meet only when a sum has left the range of f64.
            m3: if m3.is_nan() { 0.0 } else { m3 },
            m4: if m4.is_nan() { f64::INFINITY } else { m4 },
            l1: a.l1 + b.l1,
            min: a.min.min(b.min),
            max: a.max.max(b.max),
        }
    }

    /// The statistics, without quartiles: those cannot be had from partial results.
    pub fn finish(&self) -> Summary {
        Summary::of_moments(self)
    }
}

/// Computes the moments and norms of a slice in one pass over memory on the calling thread.
///
/// Allocates nothing. A slice of up to 64 values takes some tens of nanoseconds.
pub fn moments<T: Element>(values: &[T]) -> Moments {
    moments_on(Isa::best(), values)
}

pub(crate) fn moments_on<T: Element>(isa: Isa, values: &[T]) -> Moments {
    if values.len() <= BLOCK {
        return T::block(isa, values);
    }
    let (left, right) = values.split_at(left_part(values.len().div_ceil(BLOCK)) * BLOCK);
    moments_on(isa, left).merge(&moments_on(isa, right))
}

/// Merges ordered partial results along a fixed binary tree: the left side has the largest power of
/// two of them that leaves some for the right, recursively.
///
/// The shape depends only on the number of parts. [`moments`] merges the blocks of a slice in the
/// same shape. So if every part but the last covers the same number of values, and that number is
/// [`BLOCK`] times a power of two, the result has the bits of [`moments`] of the whole.
pub fn merge_tree(parts: &[Moments]) -> Moments {
    match parts {
        [] => Moments::default(),
        [part] => *part,
        _ => {
            let (left, right) = parts.split_at(left_part(parts.len()));
            merge_tree(left).merge(&merge_tree(right))
        }
    }
}

/// Number of leaves on the left side, of two or more.
fn left_part(leaves: usize) -> usize {
    1 << (leaves - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::*;

    fn noise(len: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 % 10007) as f32 * 0.37).sin() + 0.25).collect()
    }

    #[test]
    fn the_left_side_is_the_largest_power_of_two_that_leaves_some() {
        assert_eq!([2, 3, 4, 5, 8, 9].map(left_part), [1, 2, 2, 4, 4, 8]);
    }

    #[test]
    fn merging_nothing_changes_nothing() {
        let some = moments(&[1.0_f32, f32::NAN, 3.0]);
        assert_eq!(some.merge(&Moments::default()), some);
        assert_eq!(Moments::default().merge(&some), some);
        assert_eq!(merge_tree(&[]), Moments::default());
    }

    #[test]
    fn merging_adds_the_counts_of_sides_without_finite_values() {
        let nan = moments(&[f32::NAN, f32::INFINITY]);
        let some = moments(&[f32::NAN, 0.0]);
        let both = nan.merge(&some);
        assert_eq!((both.count, both.nan, both.inf, both.zeros), (1, 2, 1, 1));
        assert_eq!(nan.merge(&some), some.merge(&nan));
    }

    #[test]
    fn aligned_parts_merge_to_the_bits_of_the_whole() {
        let values = noise(9 * BLOCK + 17);
        for blocks in [1, 2, 4, 8, 16] {
            let parts: Vec<_> = values.chunks(blocks * BLOCK).map(moments).collect();
            assert_eq!(merge_tree(&parts), moments(&values), "{blocks} blocks a part");
        }
    }

    fn assert_same_on_every_isa<T: Element>(values: &[T]) {
        let expected = moments_on(Isa::all()[0], values);
        for isa in Isa::all() {
            let found = moments_on(isa, values);
            assert_eq!(bits(&found), bits(&expected), "{isa:?}, {} values", values.len());
        }
    }

    /// Bits of all fields: equality of floats treats -0 as 0.
    fn bits(moments: &Moments) -> [u64; 11] {
        let Moments { count, nan, inf, zeros, .. } = *moments;
        let [mean, m2, m3, m4] =
            [moments.mean, moments.m2, moments.m3, moments.m4].map(f64::to_bits);
        let [l1, min, max] = [moments.l1, moments.min + 0.0, moments.max + 0.0].map(f64::to_bits);
        [count, nan, inf, zeros, mean, m2, m3, m4, l1, min, max]
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for len in (0..70).chain([1000, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 13]) {
            // About zero, and far from it.
            for offset in [0.0, 1000.0] {
                let mut values = noise(len);
                for (i, value) in values.iter_mut().enumerate() {
                    *value = if i % 11 == 3 { 0.0 } else { *value + offset };
                }
                assert_same_on_every_isa(&values);
                assert_same_on_every_isa(&values.iter().map(|&x| x.into()).collect::<Vec<f64>>());
                assert_same_on_every_isa(
                    &values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(),
                );
                assert_same_on_every_isa(
                    &values.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>(),
                );
            }
        }
    }

    proptest! {
        #[test]
        fn every_instruction_set_gives_the_same_bits_for_any_bits(
            singles in prop::collection::vec(any::<f32>(), 0..100),
            doubles in prop::collection::vec(any::<f64>(), 0..100),
        ) {
            assert_same_on_every_isa(&singles);
            assert_same_on_every_isa(&doubles);
        }
    }

    #[test]
    fn merging_keeps_a_mean_that_the_difference_of_means_cannot_express() {
        let both = moments(&[f64::MAX]).merge(&moments(&[-f64::MAX]));
        assert_eq!(both.mean, 0.0);
        assert_eq!(both.m2, f64::INFINITY);
        assert!(!both.m3.is_nan() && !both.m4.is_nan());
    }
}
