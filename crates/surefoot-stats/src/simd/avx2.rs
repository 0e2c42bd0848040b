//! The inner loops with AVX2: a chunk of eight is two registers of four `f64`.

use std::arch::x86_64::*;

use super::portable::sift_rest;
use super::{LANES, Sums};
use crate::quantile::sift::Sieve;

/// Half of the lanes of [`Sums`].
#[derive(Clone, Copy)]
struct Half {
    powers: [__m256d; 4],
    absolute: __m256d,
}

impl Half {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Half {
        let zero = _mm256_setzero_pd();
        Half { powers: [zero; 4], absolute: zero }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn push(&mut self, value: __m256d, pivot: __m256d) {
        let distance = _mm256_sub_pd(value, pivot);
        let square = _mm256_mul_pd(distance, distance);
        let [s1, s2, s3, s4] = &mut self.powers;
        *s1 = _mm256_add_pd(*s1, distance);
        *s2 = _mm256_add_pd(*s2, square);
        *s3 = _mm256_add_pd(*s3, _mm256_mul_pd(square, distance));
        *s4 = _mm256_add_pd(*s4, _mm256_mul_pd(square, square));
        let magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), value);
        self.absolute = _mm256_add_pd(self.absolute, magnitude);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn sums_f32(values: &[f32], pivot: f64) -> Sums {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut low, mut high) = (Half::new(), Half::new());
    let center = _mm256_set1_pd(pivot);
    for chunk in chunks {
        let x = load_f32(chunk);
        low.push(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), center);
        high.push(_mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)), center);
    }
    // A separate loop, because the sums occupy all registers.
    let mut min = _mm256_set1_ps(f32::INFINITY);
    let mut max = _mm256_set1_ps(f32::NEG_INFINITY);
    let mut zeros = _mm256_setzero_si256();
    for chunk in chunks {
        let x = load_f32(chunk);
        min = _mm256_min_ps(min, x);
        max = _mm256_max_ps(max, x);
        let is_zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, _mm256_setzero_ps());
        zeros = _mm256_sub_epi32(zeros, _mm256_castps_si256(is_zero));
    }
    let mut sums = join(low, high);
    sums.min = store_f32(min).into_iter().fold(f32::INFINITY, f32::min).into();
    sums.max = store_f32(max).into_iter().fold(f32::NEG_INFINITY, f32::max).into();
    sums.zeros = store_u32(zeros).into_iter().map(u64::from).sum();
    sums.push_rest(rest, pivot);
    sums
}

#[target_feature(enable = "avx2")]
pub(super) fn sums_f64(values: &[f64], pivot: f64) -> Sums {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut low, mut high) = (Half::new(), Half::new());
    let center = _mm256_set1_pd(pivot);
    for chunk in chunks {
        let [x, y] = load_f64(chunk);
        low.push(x, center);
        high.push(y, center);
    }
    // A separate loop, because the sums occupy all registers.
    let mut min = _mm256_set1_pd(f64::INFINITY);
    let mut max = _mm256_set1_pd(f64::NEG_INFINITY);
    let mut zeros = _mm256_setzero_si256();
    for chunk in chunks {
        for x in load_f64(chunk) {
            min = _mm256_min_pd(min, x);
            max = _mm256_max_pd(max, x);
            let is_zero = _mm256_cmp_pd::<_CMP_EQ_OQ>(x, _mm256_setzero_pd());
            zeros = _mm256_sub_epi64(zeros, _mm256_castpd_si256(is_zero));
        }
    }
    let mut sums = join(low, high);
    sums.min = store_f64(min).into_iter().fold(f64::INFINITY, f64::min);
    sums.max = store_f64(max).into_iter().fold(f64::NEG_INFINITY, f64::max);
    sums.zeros = store_u64(zeros).into_iter().sum();
    sums.push_rest(rest, pivot);
    sums
}

/// The lanes of both halves in the order of [`Sums`], without the extremes and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn join(low: Half, high: Half) -> Sums {
    let join = |low, high| {
        let ([a, b, c, d], [e, f, g, h]) = (store_f64(low), store_f64(high));
        [a, b, c, d, e, f, g, h]
    };
    Sums {
        powers: [0, 1, 2, 3].map(|power| join(low.powers[power], high.powers[power])),
        absolute: join(low.absolute, high.absolute),
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        zeros: 0,
    }
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn sift_f32(values: &[f32], sieves: &mut [Sieve<f32>; 3]) -> u64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let lows = [0, 1, 2].map(|i| _mm256_set1_ps(sieves[i].low));
    let highs = [0, 1, 2].map(|i| _mm256_set1_ps(sieves[i].high));
    let infinity = _mm256_set1_ps(f32::INFINITY);
    let mut count = 0;
    let mut at_most_low = [0; 3];
    for chunk in chunks {
        let x = load_f32(chunk);
        let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
        let finite = _mm256_cmp_ps::<_CMP_LT_OQ>(magnitude, infinity);
        count += u64::from(_mm256_movemask_ps(finite).count_ones());
        for i in 0..3 {
            let low = _mm256_and_ps(finite, _mm256_cmp_ps::<_CMP_LE_OQ>(x, lows[i]));
            let high = _mm256_and_ps(finite, _mm256_cmp_ps::<_CMP_LT_OQ>(x, highs[i]));
            at_most_low[i] += u64::from(_mm256_movemask_ps(low).count_ones());
            let between = _mm256_movemask_ps(_mm256_andnot_ps(low, high));
            sieves[i].push(chunk, between.cast_unsigned());
        }
    }
    for (sieve, at_most_low) in sieves.iter_mut().zip(at_most_low) {
        sieve.at_most_low += at_most_low;
    }
    count + sift_rest(rest, sieves)
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn sift_f64(values: &[f64], sieves: &mut [Sieve<f64>; 3]) -> u64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let lows = [0, 1, 2].map(|i| _mm256_set1_pd(sieves[i].low));
    let highs = [0, 1, 2].map(|i| _mm256_set1_pd(sieves[i].high));
    let infinity = _mm256_set1_pd(f64::INFINITY);
    let mut count = 0;
    let mut at_most_low = [0; 3];
    for chunk in chunks {
        let halves = load_f64(chunk);
        for i in 0..3 {
            let mut between = 0;
            for (half, x) in halves.into_iter().enumerate() {
                let magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
                let finite = _mm256_cmp_pd::<_CMP_LT_OQ>(magnitude, infinity);
                if i == 0 {
                    count += u64::from(_mm256_movemask_pd(finite).count_ones());
                }
                let low = _mm256_and_pd(finite, _mm256_cmp_pd::<_CMP_LE_OQ>(x, lows[i]));
                let high = _mm256_and_pd(finite, _mm256_cmp_pd::<_CMP_LT_OQ>(x, highs[i]));
                at_most_low[i] += u64::from(_mm256_movemask_pd(low).count_ones());
                between |= _mm256_movemask_pd(_mm256_andnot_pd(low, high)) << (4 * half);
            }
            sieves[i].push(chunk, between.cast_unsigned());
        }
    }
    for (sieve, at_most_low) in sieves.iter_mut().zip(at_most_low) {
        sieve.at_most_low += at_most_low;
    }
    count + sift_rest(rest, sieves)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_f32(chunk: &[f32; LANES]) -> __m256 {
    // SAFETY: the array is as long as the register, and the load requires no alignment.
    unsafe { _mm256_loadu_ps(chunk.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_f64(chunk: &[f64; LANES]) -> [__m256d; 2] {
    let at = chunk.as_ptr();
    // SAFETY: the array is as long as two registers, and the loads require no alignment.
    unsafe { [_mm256_loadu_pd(at), _mm256_loadu_pd(at.add(4))] }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_f32(register: __m256) -> [f32; 8] {
    // SAFETY: both are eight f32 without padding, and any bits are valid f32.
    unsafe { std::mem::transmute(register) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_f64(register: __m256d) -> [f64; 4] {
    // SAFETY: both are four f64 without padding, and any bits are valid f64.
    unsafe { std::mem::transmute(register) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_u32(register: __m256i) -> [u32; 8] {
    // SAFETY: both are 256 bits without padding, and any bits are valid u32.
    unsafe { std::mem::transmute(register) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_u64(register: __m256i) -> [u64; 4] {
    // SAFETY: both are 256 bits without padding, and any bits are valid u64.
    unsafe { std::mem::transmute(register) }
}
