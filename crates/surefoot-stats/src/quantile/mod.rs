//! Exact quartiles without a full sort.
//!
//! A quartile lies at a rank between two neighbouring values, which are found by selection. Few
//! values are selected from a copy. For many values of 32 or 64 bits, a sample bounds the
//! neighbours, and one pass keeps the values within the bounds (see [`sift`]); values of 16 bits
//! are counted (see [`radix`]).

pub(crate) mod radix;
pub(crate) mod sift;

use crate::element::Element;
use crate::simd::Isa;

/// The quartiles of a tensor, interpolated linearly between neighbouring values as
/// `numpy.percentile` does by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quartiles {
    /// The first quartile.
    pub q1: f64,
    /// The second quartile.
    pub median: f64,
    /// The third quartile.
    pub q3: f64,
}

/// The values next to each quartile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbours<T> {
    /// Number of finite values.
    count: u64,
    /// For each quartile, the values at its two [`ranks`].
    pairs: [(T, T); 3],
}

/// Up to here the copy is made on the stack.
const FEW: usize = 256;

/// Up to here it is made on the heap: a sample would save little.
const SOME: usize = 1 << 14;

/// The exact quartiles of the finite values of a slice, `None` if it has none.
///
/// ```
/// let quartiles = surefoot_stats::quartiles(&[4.0_f32, 1.0, 3.0, 2.0]).unwrap();
/// assert_eq!((quartiles.q1, quartiles.median, quartiles.q3), (1.75, 2.5, 3.25));
/// ```
pub fn quartiles<T: Element>(values: &[T]) -> Option<Quartiles> {
    quartiles_of_parts(&[values])
}

/// The same as [`quartiles`] of all parts one after the other, which are not copied together.
pub fn quartiles_of_parts<T: Element>(parts: &[&[T]]) -> Option<Quartiles> {
    quartiles_on(Isa::best(), parts)
}

fn quartiles_on<T: Element>(isa: Isa, parts: &[&[T]]) -> Option<Quartiles> {
    let len = len(parts);
    let neighbours = if len <= FEW {
        let mut few = [T::Key::default(); FEW];
        let mut count = 0;
        for (key, value) in few.iter_mut().zip(finite(parts)) {
            *key = value.key();
            count += 1;
        }
        neighbours_within(&mut few[..count])
    } else if len <= SOME {
        let mut some = Vec::with_capacity(len);
        some.extend(finite(parts).map(|value| value.key()));
        neighbours_within(&mut some)
    } else {
        T::neighbours(isa, parts)
    };
    neighbours.map(interpolate)
}

/// Number of values, finite or not.
fn len<T>(parts: &[&[T]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// The finite values of all parts, in order.
fn finite<T: Element>(parts: &[&[T]]) -> impl Iterator<Item = T> {
    parts.iter().copied().flatten().copied().filter(|value| value.finite())
}

/// Ranks of the values next to each quartile of `count` sorted values: `k * (count - 1) / 4`
/// rounded down, and the next.
fn ranks(count: u64) -> [(u64, u64); 3] {
    let last = count.saturating_sub(1);
    [1, 2, 3].map(|k| {
        // last * k / 4, written so that it does not overflow.
        let low = last / 4 * k + last % 4 * k / 4;
        (low, last.min(low + 1))
    })
}

/// Selects the neighbours from the keys of all finite values, which are left in another order.
fn neighbours_within<T: Element>(keys: &mut [T::Key]) -> Option<Neighbours<T>> {
    let count = keys.len() as u64;
    let mut pairs = [(T::from_key(0), T::from_key(0)); 3];
    let mut start = 0;
    for (pair, (low, _)) in pairs.iter_mut().zip(ranks(count)) {
        // Values before an earlier quartile are smaller.
        let low = low as usize;
        *pair = pair_at(&mut keys[start..], low - start)?;
        start = low;
    }
    Some(Neighbours { count, pairs })
}

/// The values at a rank and the next, or the last twice. Partitions the keys about the rank; `None`
/// if it is beyond them.
fn pair_at<T: Element>(keys: &mut [T::Key], rank: usize) -> Option<(T, T)> {
    if rank >= keys.len() {
        return None;
    }
    let (_, &mut low, above) = keys.select_nth_unstable(rank);
    let high = above.iter().copied().min().unwrap_or(low);
    Some((T::from_key(low.into()), T::from_key(high.into())))
}

fn interpolate<T: Element>(neighbours: Neighbours<T>) -> Quartiles {
    let last = neighbours.count.saturating_sub(1);
    let [q1, median, q3] = [1, 2, 3].map(|k| {
        let (low, high) = neighbours.pairs[k as usize - 1];
        let (low, high) = (low.to_f64(), high.to_f64());
        let fraction = (last % 4 * k % 4) as f64 / 4.0;
        let gap = high - low;
        let between = if gap.is_infinite() {
            low * (1.0 - fraction) + high * fraction
        } else if fraction < 0.5 {
            // From the nearer side, as NumPy does.
            low + gap * fraction
        } else {
            high - gap * (1.0 - fraction)
        };
        // Adding zero turns -0 into +0.
        between + 0.0
    });
    Quartiles { q1, median, q3 }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use proptest::prelude::*;

    use super::*;

    fn by_sorting(values: &[f64]) -> Option<Quartiles> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |quarters: usize| {
            let (low, rest) = (quarters * last / 4, (quarters * last % 4) as f64 / 4.0);
            let (low, high) = (sorted[low], sorted[last.min(low + 1)]);
            low + (high - low) * rest
        };
        Some(Quartiles { q1: at(1), median: at(2), q3: at(3) })
    }

    /// Values in an order without a pattern, with the quartiles far from the ends.
    fn noise(len: usize) -> Vec<f64> {
        let step = |state: &mut u64| {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            Some((*state >> 33) as f64 / (1u64 << 31) as f64)
        };
        let uniform: Vec<f64> = std::iter::successors(Some(1), |_| Some(1))
            .scan(42, |state, _: u64| step(state))
            .take(4 * len)
            .collect();
        uniform.chunks(4).map(|four| four.iter().sum::<f64>() - 2.0).collect()
    }

    fn assert_exact<T: Element>(values: &[T]) {
        let expected = by_sorting(&values.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
        for isa in Isa::all() {
            let found = quartiles_on(isa, &[values]);
            match (expected, found) {
                (None, None) => {}
                (Some(expected), Some(found)) => {
                    let pairs = [
                        (expected.q1, found.q1),
                        (expected.median, found.median),
                        (expected.q3, found.q3),
                    ];
                    for (expected, found) in pairs {
                        let error = (expected - found).abs();
                        assert!(error <= 1e-15 * expected.abs(), "{expected} is not {found}");
                    }
                }
                _ => panic!("{expected:?} is not {found:?} on {isa:?}"),
            }
        }
    }

    fn assert_exact_in_every_format(values: &[f64]) {
        assert_exact(values);
        assert_exact(&values.iter().map(|&x| x as f32).collect::<Vec<_>>());
        assert_exact(&values.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>());
        assert_exact(&values.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>());
    }

    #[test]
    fn no_finite_value_has_no_quartiles() {
        assert_eq!(quartiles::<f32>(&[]), None);
        assert_eq!(quartiles_of_parts::<f32>(&[]), None);
        for len in [1, FEW + 1, SOME + 1, 4 * SOME] {
            assert_eq!(quartiles(&vec![f32::NAN; len]), None);
            assert_eq!(quartiles(&vec![f64::INFINITY; len]), None);
            assert_eq!(quartiles(&vec![f16::INFINITY; len]), None);
        }
    }

    #[test]
    fn one_finite_value_is_every_quartile() {
        for len in [1, FEW + 1, SOME + 1, 4 * SOME] {
            let mut values = vec![f32::NEG_INFINITY; len];
            values[len / 2] = 7.0;
            let all = Quartiles { q1: 7.0, median: 7.0, q3: 7.0 };
            assert_eq!(quartiles(&values), Some(all));
        }
    }

    #[test]
    fn all_remainders_of_the_count_interpolate() {
        for len in 1..40 {
            assert_exact_in_every_format(&noise(len));
        }
        for len in SOME + 1..SOME + 9 {
            assert_exact_in_every_format(&noise(len));
        }
    }

    #[test]
    fn a_large_slice_is_exact_in_every_format() {
        assert_exact_in_every_format(&noise(300_001));
    }

    #[test]
    fn a_sorted_slice_is_exact() {
        let mut values = noise(100_000);
        values.sort_by(f64::total_cmp);
        assert_exact_in_every_format(&values);
        values.reverse();
        assert_exact_in_every_format(&values);
    }

    #[test]
    fn values_that_repeat_are_exact() {
        // A ReLU's outputs: the first quartile is zero, and the median beside it or zero too.
        for share in [0.2, 0.25, 0.4999, 0.5, 0.75, 0.9, 1.0] {
            let mut values = noise(100_000);
            let zeros = (share * values.len() as f64) as usize;
            for i in 0..zeros {
                let len = values.len();
                values[i * 7919 % len] = 0.0;
            }
            assert_exact_in_every_format(&values);
        }
        assert_exact_in_every_format(&noise(100_000).iter().map(|x| x.round()).collect::<Vec<_>>());
        assert_exact_in_every_format(&vec![0.5; 100_000]);
    }

    #[test]
    fn a_quartile_between_two_values_that_many_repeat_is_exact() {
        for last in 40_000..40_008 {
            for share in 1..4 {
                let first = last * share / 4 + 1;
                let mut values = vec![1.0; last + 1];
                for i in 0..first {
                    values[i * 7 % (last + 1)] = 0.0;
                }
                assert_exact(&values);
            }
        }
    }

    #[test]
    fn nan_and_infinity_are_left_out() {
        let mut values = noise(100_000);
        for (i, value) in values.iter_mut().enumerate() {
            match i % 10 {
                0 | 5 => *value = f64::NEG_INFINITY,
                3 => *value = f64::INFINITY,
                7 => *value = f64::NAN,
                _ => {}
            }
        }
        assert_exact_in_every_format(&values);
    }

    #[test]
    fn a_slice_that_deceives_any_sample_is_still_exact() {
        for period in 2..70 {
            let mut values = noise(40_000);
            for value in values.iter_mut().step_by(period) {
                *value += 100.0;
            }
            assert_exact(&values);
            assert_exact(&values.iter().map(|&x| x as f32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        for len in [10, 1000, 100_000] {
            let values = noise(len);
            let (a, b) = values.split_at(len / 3);
            let (b, c) = b.split_at(1);
            assert_eq!(quartiles_of_parts(&[a, &[], b, c]), quartiles(&values));
        }
    }

    #[test]
    fn the_widest_gap_does_not_overflow() {
        let quartiles = quartiles(&[-f64::MAX, f64::MAX]).unwrap();
        assert_eq!(quartiles.median, 0.0);
        assert!(quartiles.q1 < -0.49 * f64::MAX && quartiles.q3 < 0.51 * f64::MAX);
    }

    proptest! {
        #[test]
        fn any_floats_give_what_sorting_gives(values in prop::collection::vec(any::<f32>(), 0..2000)) {
            assert_exact(&values);
        }
    }
}
