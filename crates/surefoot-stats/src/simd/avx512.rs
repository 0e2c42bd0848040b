//! The inner loops with AVX-512: a chunk of eight is one register of `f64`.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::avx2::{load_f32, store_f32, store_u32};
use super::{LANES, Sums};
use crate::block::BLOCK;
use crate::quantile::sift::Sieve;

/// The lanes of [`Sums`], about a pivot; without `CENTER` the pivot is zero and not subtracted.
#[derive(Clone, Copy)]
struct Whole<const CENTER: bool> {
    pivot: __m512d,
    powers: [__m512d; 4],
    absolute: __m512d,
    /// Ones, hidden from the optimizer.
    one: __m512d,
}

impl<const CENTER: bool> Whole<CENTER> {
    #[inline]
    #[target_feature(enable = "avx2,avx512f")]
    fn new(pivot: f64) -> Whole<CENTER> {
        let zero = _mm512_setzero_pd();
        Whole {
            pivot: _mm512_set1_pd(pivot),
            powers: [zero; 4],
            absolute: zero,
            one: _mm512_set1_pd(black_box(1.0)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,avx512f")]
    fn push(&mut self, value: __m512d) {
        let distance = if CENTER { _mm512_sub_pd(value, self.pivot) } else { value };
        let square = _mm512_mul_pd(distance, distance);
        // The loop is bound by its additions. A product with one, added without rounding in
        // between, is the same addition to the bit, but runs on the units that multiply where
        // these are separate.
        let [s1, s2, s3, s4] = &mut self.powers;
        *s1 = _mm512_fmadd_pd(distance, self.one, *s1);
        *s2 = _mm512_add_pd(*s2, square);
        *s3 = _mm512_add_pd(*s3, _mm512_mul_pd(square, distance));
        *s4 = _mm512_add_pd(*s4, _mm512_mul_pd(square, square));
        self.absolute = _mm512_fmadd_pd(_mm512_abs_pd(value), self.one, self.absolute);
    }

    /// The sums, without the extremes and zeros.
    #[inline]
    #[target_feature(enable = "avx2,avx512f")]
    fn into_sums(self) -> Sums {
        Sums {
            powers: self.powers.map(|power| store_f64(power)),
            absolute: store_f64(self.absolute),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            zeros: 0,
        }
    }
}

#[target_feature(enable = "avx2,avx512f")]
pub(super) fn sums_f32(values: &[f32], pivot: f64) -> Sums {
    if pivot == 0.0 {
        sums_f32_about::<false>(values, pivot)
    } else {
        sums_f32_about::<true>(values, pivot)
    }
}

#[target_feature(enable = "avx2,avx512f")]
fn sums_f32_about<const CENTER: bool>(values: &[f32], pivot: f64) -> Sums {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = Whole::<CENTER>::new(pivot);
    let mut min = _mm256_set1_ps(f32::INFINITY);
    let mut max = _mm256_set1_ps(f32::NEG_INFINITY);
    let mut zeros = _mm256_setzero_si256();
    for chunk in chunks {
        let x = load_f32(chunk);
        lanes.push(_mm512_cvtps_pd(x));
        min = _mm256_min_ps(min, x);
        max = _mm256_max_ps(max, x);
        let is_zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, _mm256_setzero_ps());
        zeros = _mm256_sub_epi32(zeros, _mm256_castps_si256(is_zero));
    }
    let mut sums = lanes.into_sums();
    sums.min = store_f32(min).into_iter().fold(f32::INFINITY, f32::min).into();
    sums.max = store_f32(max).into_iter().fold(f32::NEG_INFINITY, f32::max).into();
    sums.zeros = store_u32(zeros).into_iter().map(u64::from).sum();
    sums.push_rest(rest, pivot);
    sums
}

#[target_feature(enable = "avx2,avx512f")]
pub(super) fn sums_f64(values: &[f64], pivot: f64) -> Sums {
    if pivot == 0.0 {
        sums_f64_about::<false>(values, pivot)
    } else {
        sums_f64_about::<true>(values, pivot)
    }
}

#[target_feature(enable = "avx2,avx512f")]
fn sums_f64_about<const CENTER: bool>(values: &[f64], pivot: f64) -> Sums {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = Whole::<CENTER>::new(pivot);
    let mut min = _mm512_set1_pd(f64::INFINITY);
    let mut max = _mm512_set1_pd(f64::NEG_INFINITY);
    let mut zeros = 0;
    for chunk in chunks {
        let x = load_f64(chunk);
        lanes.push(x);
        min = _mm512_min_pd(min, x);
        max = _mm512_max_pd(max, x);
        let is_zero = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, _mm512_setzero_pd());
        zeros += u64::from(is_zero.count_ones());
    }
    let mut sums = lanes.into_sums();
    sums.min = _mm512_reduce_min_pd(min);
    sums.max = _mm512_reduce_max_pd(max);
    sums.zeros = zeros;
    sums.push_rest(rest, pivot);
    sums
}

/// Number of `f32` in a register.
const WIDTH: usize = 16;

/// Offers values to the sieves in two steps: most lie in none of the brackets, and only those that
/// do are looked at again to see in which.
#[target_feature(enable = "avx2,avx512f,popcnt")]
pub(super) fn sift_f32(values: &[f32], sieves: &mut [Sieve<f32>; 3]) -> u64 {
    let mut count = 0;
    let mut near = [0.0; BLOCK + WIDTH];
    for block in values.chunks(BLOCK) {
        let (chunks, rest) = block.as_chunks::<WIDTH>();
        let mut gate = Gate::new(sieves);
        let mut len = 0;
        for chunk in chunks {
            let x = load_16(chunk);
            len += pack(x, gate.pass(x), &mut near[len..]);
        }
        if !rest.is_empty() {
            // NaN fills the register: it is not counted and passes no gate.
            let mut chunk = [f32::NAN; WIDTH];
            chunk[..rest.len()].copy_from_slice(rest);
            let x = load_16(&chunk);
            len += pack(x, gate.pass(x), &mut near[len..]);
        }
        let finite = total(gate.finite);
        count += finite;
        near[len..len + WIDTH].fill(f32::NAN);
        let (near, _) = near[..len.next_multiple_of(WIDTH)].as_chunks::<WIDTH>();
        for (sieve, above_low) in sieves.iter_mut().zip(gate.above_low) {
            sieve.at_most_low += finite - total(above_low);
            keep_between(near, sieve);
        }
    }
    count
}

/// Counts the values of a block and marks those in any bracket.
struct Gate {
    lows: [__m512; 3],
    highs: [__m512; 3],
    /// For each lane, the number of finite values.
    finite: __m512i,
    /// For each bracket and lane, the number of finite values above the lower bound.
    above_low: [__m512i; 3],
}

impl Gate {
    #[inline]
    #[target_feature(enable = "avx2,avx512f,popcnt")]
    fn new(sieves: &[Sieve<f32>; 3]) -> Gate {
        let zero = _mm512_setzero_si512();
        Gate {
            lows: [0, 1, 2].map(|i| _mm512_set1_ps(sieves[i].low)),
            highs: [0, 1, 2].map(|i| _mm512_set1_ps(sieves[i].high)),
            finite: zero,
            above_low: [zero; 3],
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,avx512f,popcnt")]
    fn pass(&mut self, x: __m512) -> __mmask16 {
        let one = _mm512_set1_epi32(1);
        let infinity = _mm512_set1_ps(f32::INFINITY);
        let finite = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(x), infinity);
        self.finite = _mm512_mask_add_epi32(self.finite, finite, self.finite, one);
        let mut passed = 0;
        for i in 0..3 {
            let above = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(finite, x, self.lows[i]);
            let tally = &mut self.above_low[i];
            *tally = _mm512_mask_add_epi32(*tally, above, *tally, one);
            let within = _mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(above, x, self.highs[i]);
            passed = _kor_mask16(passed, within);
        }
        passed
    }
}

/// Appends the values that lie in the bracket of a sieve.
#[inline]
#[target_feature(enable = "avx2,avx512f,popcnt")]
fn keep_between(chunks: &[[f32; WIDTH]], sieve: &mut Sieve<f32>) {
    let (low, high) = (_mm512_set1_ps(sieve.low), _mm512_set1_ps(sieve.high));
    let between = &mut sieve.between;
    let mut len = between.len();
    between.resize(len + WIDTH * (chunks.len() + 1), 0.0);
    for chunk in chunks {
        let x = load_16(chunk);
        let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, low);
        let within = _mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(above, x, high);
        len += pack(x, within, &mut between[len..]);
    }
    between.truncate(len);
}

/// Moves the values whose bit is set to the front, and returns their number. Writes a whole
/// register: a store of only those values is slow on some processors.
#[inline]
#[target_feature(enable = "avx2,avx512f,popcnt")]
fn pack(x: __m512, mask: __mmask16, front: &mut [f32]) -> usize {
    let packed = _mm512_maskz_compress_ps(mask, x);
    if let Some(front) = front.first_chunk_mut::<WIDTH>() {
        // SAFETY: the array is as long as the register, and the store requires no alignment.
        unsafe { _mm512_storeu_ps(front.as_mut_ptr(), packed) };
    }
    mask.count_ones() as usize
}

/// Adds up counts that one block cannot make overflow.
#[inline]
#[target_feature(enable = "avx2,avx512f")]
fn total(tallies: __m512i) -> u64 {
    u64::from(_mm512_reduce_add_epi32(tallies).cast_unsigned())
}

#[inline]
#[target_feature(enable = "avx2,avx512f")]
fn load_16(chunk: &[f32; WIDTH]) -> __m512 {
    // SAFETY: the array is as long as the register, and the load requires no alignment.
    unsafe { _mm512_loadu_ps(chunk.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,avx512f")]
fn load_f64(chunk: &[f64; LANES]) -> __m512d {
    // SAFETY: the array is as long as the register, and the load requires no alignment.
    unsafe { _mm512_loadu_pd(chunk.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,avx512f")]
fn store_f64(register: __m512d) -> [f64; LANES] {
    // SAFETY: both are eight f64 without padding, and any bits are valid f64.
    unsafe { std::mem::transmute(register) }
}
