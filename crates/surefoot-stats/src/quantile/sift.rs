//! Selection after Floyd and Rivest (1975): a sample yields a bracket for each quartile, and one
//! pass counts the values up to each bracket and keeps those within it, some 2 % of ten million.
//!
//! The sample affects how much is kept, never the result: if the counts show that a quartile lies
//! outside its bracket, its digits are counted instead (see [`radix`]). The bounds of a bracket are
//! excluded from it, so that a frequent value, such as the zero of a ReLU, is counted and not
//! copied.

use super::{Neighbours, len, pair_at, radix, ranks};
use crate::simd::{Isa, LANES, Lane};

/// Two values of the tensor between which a quartile is expected, and what a pass found of them.
#[derive(Debug)]
pub(crate) struct Sieve<T> {
    pub(crate) low: T,
    pub(crate) high: T,
    /// Number of finite values up to the lower bound.
    pub(crate) at_most_low: u64,
    /// The values above the lower and below the upper bound.
    pub(crate) between: Vec<T>,
}

impl<T: Lane> Sieve<T> {
    /// Takes the values of the lanes whose bit is set.
    #[inline(always)]
    pub(crate) fn push(&mut self, chunk: &[T; LANES], mut mask: u32) {
        while mask != 0 {
            self.between.push(chunk[mask.trailing_zeros() as usize % LANES]);
            mask &= mask - 1;
        }
    }

    /// The keys of the values between the bounds, in the same allocation.
    fn into_keys(self) -> Vec<T::Key> {
        self.between.into_iter().map(|value| value.key()).collect()
    }

    /// The values at two neighbouring ranks, `None` if they are not in the bracket.
    fn pair(self, parts: &[&[T]], (low, high): (u64, u64)) -> Option<(T, T)> {
        let bounds = (self.low, self.high);
        let start = self.at_most_low;
        let end = start + self.between.len() as u64;
        if high < start {
            let is_bound = count(parts, |value| value < bounds.0) <= low;
            return is_bound.then_some((bounds.0, bounds.0));
        }
        if low >= end {
            let is_bound = count(parts, |value| value <= bounds.1) > high;
            return is_bound.then_some((bounds.1, bounds.1));
        }
        // The bounds are values of the tensor, so they are the nearest to the values between them.
        // If they are equal, the next value is unknown.
        if low < start {
            if bounds.0 == bounds.1 {
                return None;
            }
            let above = pair_at(&mut self.into_keys(), 0).map_or(bounds.1, |(first, _)| first);
            return Some((bounds.0, above));
        }
        let (value, next) = pair_at(&mut self.into_keys(), (low - start) as usize)?;
        Some((value, if high < end { next } else { bounds.1 }))
    }
}

/// For each quartile the values next to it, `None` if there is no finite value.
pub(crate) fn neighbours<T: Lane>(isa: Isa, parts: &[&[T]]) -> Option<Neighbours<T>> {
    let Some(mut sieves) = sieves(sample(parts), len(parts)) else {
        return radix::neighbours(parts);
    };
    let mut count = 0;
    for part in parts {
        count += T::sift(isa, part, &mut sieves);
    }
    if count == 0 {
        return None;
    }
    let find = |sieve: Sieve<T>, ranks| {
        sieve.pair(parts, ranks).unwrap_or_else(|| radix::pair(parts, ranks))
    };
    let ([a, b, c], [first, second, third]) = (sieves, ranks(count));
    let pairs = [find(a, first), find(b, second), find(c, third)];
    Some(Neighbours { count, pairs })
}

/// The keys of the finite values at a fixed stride.
///
/// For `n` values there are about `n^(2/3)`, which balances selecting from them against selecting
/// from what the brackets keep.
fn sample<T: Lane>(parts: &[&[T]]) -> Vec<T::Key> {
    let len = len(parts);
    // An odd stride visits all columns of a matrix whose width is a power of two.
    let stride = (len as f64).cbrt() as usize | 1;
    let mut sample = Vec::with_capacity(len / stride + 1);
    let mut next = stride / 2;
    for part in parts {
        let values = part.get(next..).unwrap_or(&[]).iter().step_by(stride);
        let taken = values.len();
        sample.extend(values.filter(|value| value.finite()).map(|value| value.key()));
        next = next + taken * stride - part.len();
    }
    sample
}

/// A sieve for each quartile, for `len` values in all, or `None` if the sample is too small.
///
/// The rank of a quantile `p` in a sample of `s` deviates by `√(s p (1-p))` if values are in no
/// particular order. The bounds are 3.5 times as far to either side: one call in a thousand misses.
fn sieves<T: Lane>(mut sample: Vec<T::Key>, len: usize) -> Option<[Sieve<T>; 3]> {
    let last = sample.len().checked_sub(1)?;
    let margins = [1, 2, 3].map(|k| {
        let quarters = (k * (4 - k) * sample.len()) as f64;
        (3.5 / 4.0 * quarters.sqrt()) as usize
    });
    if margins.iter().any(|&margin| margin > last / 4) {
        return None;
    }
    let stride = len / sample.len();
    let mut start = 0;
    let mut select = |rank: usize| {
        // Values before an earlier rank are smaller, so the bounds are selected in order.
        let rest = &mut sample[start..];
        let (_, &mut key, _) = rest.select_nth_unstable(rank.saturating_sub(start));
        start = start.max(rank);
        T::from_key(key.into())
    };
    Some([1, 2, 3].map(|k| {
        let (middle, margin) = (last * k / 4, margins[k - 1]);
        Sieve {
            low: select(middle - margin),
            high: select(last.min(middle + margin)),
            at_most_low: 0,
            // Expected number of values between the bounds, plus a quarter.
            between: Vec::with_capacity(stride * margin * 5 / 2),
        }
    }))
}

fn count<T: Lane>(parts: &[&[T]], is: impl Fn(T) -> bool) -> u64 {
    let is_counted = |value: T| u64::from(value.finite() & is(value));
    // Part by part, so that the inner loop is one over a slice and can be vectorized.
    parts.iter().map(|part| part.iter().map(|&value| is_counted(value)).sum::<u64>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::sealed::Sealed;

    fn sieve(low: f32, high: f32, at_most_low: u64, between: &[f32]) -> Sieve<f32> {
        let between = between.to_vec();
        Sieve { low, high, at_most_low, between }
    }

    #[test]
    fn ranks_within_on_and_beyond_the_bounds_are_told_apart() {
        let values = [0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0];
        let pair = |low, high| sieve(1.0, 4.0, 4, &[3.0, 2.0]).pair(&[&values], (low, high));
        assert_eq!(pair(0, 1), None);
        assert_eq!(pair(1, 2), Some((1.0, 1.0)));
        assert_eq!(pair(3, 4), Some((1.0, 2.0)));
        assert_eq!(pair(4, 5), Some((2.0, 3.0)));
        assert_eq!(pair(5, 6), Some((3.0, 4.0)));
        assert_eq!(pair(6, 7), Some((4.0, 4.0)));
        assert_eq!(pair(7, 8), None);
        assert_eq!(pair(8, 8), None);
    }

    #[test]
    fn an_empty_bracket_leads_from_bound_to_bound() {
        let values = [1.0, 1.0, 4.0, 4.0];
        assert_eq!(sieve(1.0, 4.0, 2, &[]).pair(&[&values], (1, 2)), Some((1.0, 4.0)));
    }

    #[test]
    fn a_bracket_of_one_value_does_not_tell_what_follows_it() {
        let values = [1.0, 1.0, 4.0, 4.0];
        let pair = |low, high| sieve(1.0, 1.0, 2, &[]).pair(&[&values], (low, high));
        assert_eq!(pair(0, 1), Some((1.0, 1.0)));
        assert_eq!(pair(1, 2), None);
        assert_eq!(pair(2, 3), None);
    }

    #[test]
    fn every_instruction_set_catches_the_same() {
        let mut values: Vec<f32> = (0..5003).map(|i| (i * 7919 % 5003) as f32 - 2500.0).collect();
        values[17] = f32::NAN;
        values[100] = f32::INFINITY;
        values[4000] = f32::NEG_INFINITY;
        let doubles: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let bounds = [(-2000.0, -1900.0), (-1950.0, 0.0), (2000.0, 2001.0)];
        let expected: [(u64, Vec<f32>); 3] = bounds.map(|(low, high)| {
            let finite = || values.iter().copied().filter(|x| x.is_finite());
            let below = finite().filter(|&x| x <= low).count() as u64;
            (below, finite().filter(|&x| low < x && x < high).collect())
        });
        for isa in Isa::all() {
            let mut found = bounds.map(|(low, high)| sieve(low, high, 0, &[]));
            let mut found64 = bounds.map(|(low, high)| Sieve {
                low: f64::from(low),
                high: f64::from(high),
                at_most_low: 0,
                between: Vec::new(),
            });
            assert_eq!(f32::sift(isa, &values, &mut found), 5000);
            assert_eq!(f64::sift(isa, &doubles, &mut found64), 5000);
            for i in 0..3 {
                let (at_most_low, between) = &expected[i];
                assert_eq!((found[i].at_most_low, &found[i].between), (*at_most_low, between));
                let narrow: Vec<f32> = found64[i].between.iter().map(|&x| x as f32).collect();
                assert_eq!((found64[i].at_most_low, &narrow), (*at_most_low, between));
            }
        }
    }

    #[test]
    fn a_sample_strides_across_parts_as_across_the_whole() {
        let values: Vec<f32> = (0..20_000).map(|i| i as f32).collect();
        let whole = sample(&[&values[..]]);
        let parts: Vec<&[f32]> = values.chunks(7).collect();
        assert_eq!(sample(&parts), whole);
        assert_eq!(whole[..2], [13.0_f32, 40.0].map(|x| x.key()));
    }

    #[test]
    fn a_sample_too_small_for_its_margins_gives_no_sieves() {
        assert!(sieves::<f32>(Vec::new(), 0).is_none());
        assert!(sieves::<f32>(vec![7; 20], 8000).is_none());
        assert!(sieves::<f32>(vec![7; 100], 1_000_000).is_some());
    }
}
