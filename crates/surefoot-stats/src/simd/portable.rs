//! The inner loops for any machine, written lane by lane so that a compiler can vectorize them.

use super::{LANES, Lane, Sums};
use crate::quantile::sift::Sieve;

pub(super) fn sums<T: Lane>(values: &[T], pivot: f64) -> Sums {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let [mut s1, mut s2, mut s3, mut s4, mut absolute] = [[0.0; LANES]; 5];
    let mut min = [f64::INFINITY; LANES];
    let mut max = [f64::NEG_INFINITY; LANES];
    let mut zeros = [0_u64; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let value = chunk[lane].to_f64();
            let distance = value - pivot;
            let square = distance * distance;
            s1[lane] += distance;
            s2[lane] += square;
            s3[lane] += square * distance;
            s4[lane] += square * square;
            absolute[lane] += value.abs();
            min[lane] = if value < min[lane] { value } else { min[lane] };
            max[lane] = if value > max[lane] { value } else { max[lane] };
            zeros[lane] += u64::from(value == 0.0);
        }
    }
    let mut sums = Sums {
        powers: [s1, s2, s3, s4],
        absolute,
        min: min.into_iter().fold(f64::INFINITY, f64::min),
        max: max.into_iter().fold(f64::NEG_INFINITY, f64::max),
        zeros: zeros.into_iter().sum(),
    };
    sums.push_rest(rest, pivot);
    sums
}

pub(super) fn sift<T: Lane>(values: &[T], sieves: &mut [Sieve<T>; 3]) -> u64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut count = 0;
    for chunk in chunks {
        let finite = mask(chunk, |x| x.finite());
        count += u64::from(finite.count_ones());
        for sieve in sieves.iter_mut() {
            let at_most_low = finite & mask(chunk, |x| x <= sieve.low);
            let below_high = finite & mask(chunk, |x| x < sieve.high);
            sieve.at_most_low += u64::from(at_most_low.count_ones());
            sieve.push(chunk, below_high & !at_most_low);
        }
    }
    count + sift_rest(rest, sieves)
}

/// Offers values one by one.
pub(super) fn sift_rest<T: Lane>(rest: &[T], sieves: &mut [Sieve<T>; 3]) -> u64 {
    let mut count = 0;
    for &value in rest.iter().filter(|x| x.finite()) {
        count += 1;
        for sieve in sieves.iter_mut() {
            if value <= sieve.low {
                sieve.at_most_low += 1;
            } else if value < sieve.high {
                sieve.between.push(value);
            }
        }
    }
    count
}

/// A bit for each lane of which `is` holds.
#[inline(always)]
fn mask<T: Lane>(chunk: &[T; LANES], is: impl Fn(T) -> bool) -> u32 {
    let mut mask = 0;
    for (lane, &value) in chunk.iter().enumerate() {
        mask |= u32::from(is(value)) << lane;
    }
    mask
}
