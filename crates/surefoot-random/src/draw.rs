//! Draws: turns the words of a key's stream into numbers of a distribution.
//!
//! Each distribution is one small function of one word, of 32 or 64 bits, shared by the single draw
//! and the fill, which therefore agree bit for bit.

use crate::key::Key;
use crate::philox::{BLOCKS, Stream, WORDS};
use crate::quantile::{normal_from_bits, truncated_normal_from_bits};

/// Single draws. Each costs two Philox blocks to find the key's stream and one for the draw, some
/// 60 ns together.
impl Key {
    /// A word of 32 random bits.
    #[inline]
    #[must_use]
    pub fn word(self, index: u64) -> u32 {
        word(self.stream(), index)
    }

    /// A word of 64 random bits: words `2 * index` (the low half) and `2 * index + 1`.
    #[inline]
    #[must_use]
    pub fn u64(self, index: u64) -> u64 {
        double_word(self.stream(), index)
    }

    /// A uniform number in `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    #[must_use]
    pub fn uniform(self, index: u64) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.u64(index) >> 11) as f64 * STEP
    }

    /// A uniform number in `[0, 1)`, a multiple of 2⁻²⁴.
    ///
    /// It uses half the words of [`Key::uniform`] and is not its rounded value.
    #[inline]
    #[must_use]
    pub fn uniform_f32(self, index: u64) -> f32 {
        uniform_f32_from_word(self.word(index))
    }

    /// A number from the standard normal distribution, by inversion of its distribution function
    /// (algorithm AS 241), within ±8.3.
    ///
    /// Inversion uses one word per number where Box–Muller pairs two, needs no sine, and also
    /// serves [`Key::truncated_normal`].
    #[inline]
    #[must_use]
    pub fn normal(self, index: u64) -> f64 {
        normal_from_bits(self.u64(index))
    }

    /// A number from the standard normal distribution truncated to ±2, as in Keras.
    ///
    /// Its standard deviation is 0.8796, not 1: divide by that for a required variance.
    #[inline]
    #[must_use]
    pub fn truncated_normal(self, index: u64) -> f64 {
        truncated_normal_from_bits(self.u64(index))
    }

    /// `true` with probability `p`, to the nearest multiple of 2⁻³².
    ///
    /// Always `true` when `p` is 1 or more, never when it is 0, less or not a number.
    #[inline]
    #[must_use]
    pub fn bernoulli(self, index: u64, p: f64) -> bool {
        u64::from(self.word(index)) < bernoulli_threshold(p)
    }

    /// A uniform number in `0..n`, without bias; 0 when `n` is 0.
    #[inline]
    #[must_use]
    pub fn below(self, index: u64, n: u64) -> u64 {
        below(self.stream(), index, n)
    }
}

/// Fills: `out[i]` is the single draw at index `i`, rounded to `f32` where the draw is an `f64`.
/// They compute the key's stream once and many blocks at a time: with AVX2 about 1 ns for a uniform
/// or Bernoulli number and 10 to 20 for a normal one (`benches/fill.rs`).
impl Key {
    /// Fills a slice with [`Key::uniform_f32`].
    pub fn fill_uniform_f32(self, out: &mut [f32]) {
        fill(self.stream(), out, |[word]| uniform_f32_from_word(word));
    }

    /// Fills a slice with [`Key::normal`].
    pub fn fill_normal_f32(self, out: &mut [f32]) {
        fill(self.stream(), out, |[low, high]| normal_from_bits(join(low, high)) as f32);
    }

    /// Fills a slice with [`Key::truncated_normal`].
    pub fn fill_truncated_normal_f32(self, out: &mut [f32]) {
        fill(self.stream(), out, |[low, high]| truncated_normal_from_bits(join(low, high)) as f32);
    }

    /// Fills a slice with `scale` where [`Key::bernoulli`] is `true` and 0 elsewhere.
    ///
    /// With `p` the probability to keep a unit and `scale` its inverse this is a dropout mask.
    pub fn fill_bernoulli_f32(self, p: f64, scale: f32, out: &mut [f32]) {
        match bernoulli_threshold(p).checked_sub(1) {
            None => out.fill(0.0),
            Some(last) => {
                let last = last as u32;
                fill(self.stream(), out, |[word]| if word <= last { scale } else { 0.0 });
            }
        }
    }
}

#[inline]
fn word(stream: Stream, index: u64) -> u32 {
    stream.block(index / 4)[(index % 4) as usize]
}

#[inline]
fn double_word(stream: Stream, index: u64) -> u64 {
    let [a, b, c, d] = stream.block(index / 2);
    if index.is_multiple_of(2) { join(a, b) } else { join(c, d) }
}

#[inline]
fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[inline]
fn uniform_f32_from_word(word: u32) -> f32 {
    const STEP: f32 = 1.0 / (1u32 << 24) as f32;
    (word >> 8) as f32 * STEP
}

/// Number of the 2³² words that count as success. Adding a half and truncating rounds; the cast
/// maps negative values and NaN to 0.
#[inline]
fn bernoulli_threshold(p: f64) -> u64 {
    const ALL: u64 = 1 << 32;
    ((p * ALL as f64 + 0.5) as u64).min(ALL)
}

/// Lemire's method (*Fast Random Integer Generation in an Interval*, 2019): the upper half of
/// word × n, drawn again when the lower half falls among the 2⁶⁴ mod n values that would be one
/// too many. Another attempt reads the same index of another stream, so that indices stay apart.
#[inline]
pub(crate) fn below(stream: Stream, index: u64, n: u64) -> u64 {
    if n == 0 {
        return 0;
    }
    let mut attempts = (1..).map(|attempt| stream.child(attempt));
    let mut product = u128::from(double_word(stream, index)) * u128::from(n);
    if (product as u64) < n {
        let excess = n.wrapping_neg() % n;
        while (product as u64) < excess
            && let Some(again) = attempts.next()
        {
            product = u128::from(double_word(again, index)) * u128::from(n);
        }
    }
    (product >> 64) as u64
}

/// Fills a slice from `W` words per number, with the widest instructions at hand.
fn fill<const W: usize>(stream: Stream, out: &mut [f32], draw: impl Fn([u32; W]) -> f32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { fill_avx2(stream, out, draw) };
    }
    fill_portable(stream, out, draw);
}

/// [`fill_portable`], compiled for AVX2. The operations are the same and so are the bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_avx2<const W: usize>(stream: Stream, out: &mut [f32], draw: impl Fn([u32; W]) -> f32) {
    fill_portable(stream, out, draw);
}

#[inline(always)]
fn fill_portable<const W: usize>(stream: Stream, out: &mut [f32], draw: impl Fn([u32; W]) -> f32) {
    let mut words = [0; WORDS];
    for (first, out) in (0..).step_by(BLOCKS).zip(out.chunks_mut(WORDS / W)) {
        stream.blocks(first, &mut words);
        for (out, &words) in out.iter_mut().zip(words.as_chunks().0) {
            *out = draw(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::Purpose;

    #[test]
    fn words_of_all_widths_are_views_of_the_same_blocks() {
        let key = Key::new(1, Purpose::Noise);
        let [a, b, c, d] = key.stream().block(5);
        assert_eq!([20, 21, 22, 23].map(|index| key.word(index)), [a, b, c, d]);
        assert_eq!([10, 11].map(|index| key.u64(index)), [join(a, b), join(c, d)]);
    }

    #[test]
    fn probabilities_become_counts_of_words() {
        assert_eq!(bernoulli_threshold(0.5), 1 << 31);
        assert_eq!(bernoulli_threshold(1.0 / (1u64 << 32) as f64), 1);
        for never in [0.0, -0.0, -1.0, 1e-11, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(bernoulli_threshold(never), 0, "{never}");
        }
        for always in [1.0, 1.0 - 1e-11, 2.0, f64::MAX, f64::INFINITY] {
            assert_eq!(bernoulli_threshold(always), 1 << 32, "{always}");
        }
    }

    #[test]
    fn nothing_is_below_zero_and_only_zero_below_one() {
        let key = Key::new(1, Purpose::Sample);
        assert_eq!((key.below(9, 0), key.below(9, 1)), (0, 0));
    }

    /// Half of the words are rejected for this limit, so every index is redrawn at some point.
    #[test]
    fn rejected_words_are_drawn_again() {
        let key = Key::new(1, Purpose::Sample);
        let n = (1 << 63) + 1;
        let above_half = (0..1000).filter(|&i| key.below(i, n) > n / 2).count();
        assert!((450..550).contains(&above_half), "{above_half}");
        assert!((0..1000).all(|i| key.below(i, n) < n));
    }

    #[test]
    fn the_last_index_can_be_drawn() {
        let key = Key::new(1, Purpose::Sample);
        assert_eq!(key.word(u64::MAX), key.stream().block(u64::MAX / 4)[3]);
        assert!(key.uniform(u64::MAX) < 1.0);
        assert!(key.below(u64::MAX, u64::MAX) < u64::MAX);
    }

    fn key() -> impl Strategy<Value = Key> {
        any::<[u64; 4]>().prop_map(|[seed, epoch, sample, site]| {
            let key = Key::new(seed, Purpose::Dropout);
            key.epoch(epoch).sample(sample).site(site)
        })
    }

    proptest! {
        #[test]
        fn fills_are_the_single_draws(key in key(), len in 0usize..200, p in -0.1..1.1) {
            let mut out = vec![f32::NAN; len];
            key.fill_uniform_f32(&mut out);
            prop_assert!((0..).zip(&out).all(|(i, &x)| x == key.uniform_f32(i)));
            key.fill_normal_f32(&mut out);
            prop_assert!((0..).zip(&out).all(|(i, &x)| x == key.normal(i) as f32));
            key.fill_truncated_normal_f32(&mut out);
            prop_assert!((0..).zip(&out).all(|(i, &x)| x == key.truncated_normal(i) as f32));
            key.fill_bernoulli_f32(p, 1.5, &mut out);
            let mask = |i| if key.bernoulli(i, p) { 1.5 } else { 0.0 };
            prop_assert!((0..).zip(&out).all(|(i, &x)| x == mask(i)));
        }

        #[test]
        fn fills_do_not_depend_on_the_instructions(key in key(), len in 0usize..200) {
            let draw = |[low, high]: [u32; 2]| normal_from_bits(join(low, high)) as f32;
            let (mut wide, mut portable) = (vec![f32::NAN; len], vec![f32::NAN; len]);
            fill(key.stream(), &mut wide, draw);
            fill_portable(key.stream(), &mut portable, draw);
            prop_assert_eq!(wide, portable);
        }

        #[test]
        fn numbers_below_are_below(key in key(), index: u64, n in 1u64..) {
            prop_assert!(key.below(index, n) < n);
        }
    }
}
