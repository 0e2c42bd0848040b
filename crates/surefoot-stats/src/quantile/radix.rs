//! Selection by counting digits of keys: for 16-bit floats, and where a sample was misleading.
//!
//! Keys order like their elements. Counting the leading 16 bits shows in which of them a rank lies;
//! counting the next 16 bits of those keys narrows it further. A 16-bit float needs one pass, an
//! `f32` two, an `f64` four, for any values.

use super::{Neighbours, finite, ranks};
use crate::element::Element;

const DIGIT_BITS: u32 = 16;

/// For each quartile the values next to it, `None` if there is no finite value.
pub(crate) fn neighbours<T: Element>(parts: &[&[T]]) -> Option<Neighbours<T>> {
    let mut counter = DigitCounter::new(parts);
    let count = counter.count();
    if count == 0 {
        return None;
    }
    let pairs = ranks(count).map(|(low, high)| (counter.at(low), counter.at(high)));
    Some(Neighbours { count, pairs })
}

/// The values at two ranks.
pub(super) fn pair<T: Element>(parts: &[&[T]], (low, high): (u64, u64)) -> (T, T) {
    let mut counter = DigitCounter::new(parts);
    (counter.at(low), counter.at(high))
}

struct DigitCounter<'a, T> {
    parts: &'a [&'a [T]],
    /// For each digit from the leading one, the counts of its values after the latest prefix.
    /// Neighbouring ranks mostly share all but the last digit.
    digits: Vec<Digit>,
}

struct Digit {
    /// The bits before this digit.
    prefix: u64,
    counts: Vec<u64>,
}

impl<'a, T: Element> DigitCounter<'a, T> {
    fn new(parts: &'a [&'a [T]]) -> DigitCounter<'a, T> {
        let leading = Digit { prefix: 0, counts: count(parts, T::KEY_BITS - DIGIT_BITS, 0) };
        DigitCounter { parts, digits: vec![leading] }
    }

    /// Number of finite values.
    fn count(&self) -> u64 {
        self.digits.iter().take(1).flat_map(|digit| &digit.counts).sum()
    }

    /// The finite value at a rank; the largest if the rank is beyond them.
    fn at(&mut self, mut rank: u64) -> T {
        let mut prefix = 0;
        for depth in 0..T::KEY_BITS / DIGIT_BITS {
            let depth = depth as usize;
            if self.digits.get(depth).is_none_or(|digit| digit.prefix != prefix) {
                self.digits.truncate(depth);
                let shift = T::KEY_BITS - DIGIT_BITS * (depth as u32 + 1);
                self.digits.push(Digit { prefix, counts: count(self.parts, shift, prefix) });
            }
            let mut found = 0;
            for (digit, &count) in self.digits[depth].counts.iter().enumerate() {
                if count == 0 {
                    continue;
                }
                found = digit;
                if rank < count {
                    break;
                }
                rank -= count;
            }
            prefix = prefix << DIGIT_BITS | found as u64;
        }
        T::from_key(prefix)
    }
}

/// Counts the values of the digit above `shift` in keys with the prefix `prefix`.
fn count<T: Element>(parts: &[&[T]], shift: u32, prefix: u64) -> Vec<u64> {
    let mut counts = vec![0; 1 << DIGIT_BITS];
    for value in finite(parts) {
        let key: u64 = value.key().into() >> shift;
        if key >> DIGIT_BITS == prefix {
            counts[(key & 0xffff) as usize] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_rank_gives_the_value_that_sorting_puts_there() {
        let mut values: Vec<f64> = (0..200).map(|i| f64::from(i % 17) * 1e-3 - 0.005).collect();
        values.extend([1e300, -1e300, f64::NAN, f64::INFINITY, 0.0, -0.0]);
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let parts = [&values[..50], &values[50..]];
        let mut counter = DigitCounter::new(&parts);
        assert_eq!(counter.count(), sorted.len() as u64);
        for (rank, &expected) in sorted.iter().enumerate() {
            assert_eq!(counter.at(rank as u64), expected);
        }
        // Backwards, so that what was counted last does not always fit.
        for (rank, &expected) in sorted.iter().enumerate().rev().step_by(7) {
            assert_eq!(counter.at(rank as u64), expected);
        }
    }

    #[test]
    fn sixteen_bits_take_one_digit() {
        let values = [3.0, -1.0, 2.0].map(f16::from_f32);
        let parts = [&values[..]];
        let mut counter = DigitCounter::new(&parts);
        assert_eq!([0, 1, 2].map(|rank| counter.at(rank).to_f32()), [-1.0, 2.0, 3.0]);
        assert_eq!(counter.digits.len(), 1);
    }
}
