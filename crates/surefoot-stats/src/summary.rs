//! The statistics of a tensor.

use crate::element::Element;
use crate::moments::{Moments, moments};
use crate::quantile::{Quartiles, quartiles};

/// Statistics of a tensor.
///
/// All but the counts of NaN and infinity cover the finite values. No field is ever NaN: without
/// finite values every number is 0 and there are no quartiles, which is also the [`Default`].
///
/// For `f64` beyond about 1e76 the powers leave the range of `f64`. The variance and the norms may
/// then be infinite, and the skewness and kurtosis are 0, as they are below about 1e-76.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of finite values.
    pub count: u64,
    /// Number of NaN values.
    pub nan: u64,
    /// Number of infinite values, of either sign.
    pub inf: u64,
    /// Number of zeros, of either sign.
    pub zeros: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The population variance: the mean square distance from the mean, divided by the count and
    /// not by one less. Exactly 0 for a constant tensor.
    pub variance: f64,
    /// The third standardized moment, without a correction for bias. 0 for a constant tensor.
    pub skewness: f64,
    /// The *excess* kurtosis: the fourth standardized moment less the 3 of a normal distribution,
    /// without a correction for bias. 0 for a constant tensor.
    pub kurtosis: f64,
    /// The smallest value; 0 is never negative zero.
    pub min: f64,
    /// The largest value; 0 is never negative zero.
    pub max: f64,
    /// The sum of absolute values.
    pub l1: f64,
    /// The root of the sum of squares.
    pub l2: f64,
    /// The mean of absolute values.
    pub abs_mean: f64,
    /// The largest absolute value.
    pub linf: f64,
    /// Quartiles, if they were computed and there is a finite value.
    pub quartiles: Option<Quartiles>,
}

impl Summary {
    pub(crate) fn of_moments(moments: &Moments) -> Summary {
        let counts = Summary { nan: moments.nan, inf: moments.inf, ..Summary::default() };
        if moments.count == 0 {
            return counts;
        }
        let Moments { m2, m3, m4, mean, .. } = *moments;
        let n = moments.count as f64;
        let variance = m2 / n;
        let linf = moments.max.abs().max(moments.min.abs());
        // A fourth power that is subnormal has lost its digits.
        let has_shape = m4.is_normal() && m2.is_normal() && m3.is_finite();
        let shape = |x: f64| if has_shape && x.is_finite() { x } else { 0.0 };
        Summary {
            count: moments.count,
            zeros: moments.zeros,
            mean,
            variance,
            skewness: shape(m3 / n / (variance * variance.sqrt())),
            kurtosis: shape(m4 / n / variance / variance - 3.0),
            // Adding zero turns -0 into +0.
            min: moments.min + 0.0,
            max: moments.max + 0.0,
            l1: moments.l1,
            // Both terms are positive, so nothing cancels. The largest value alone is used where
            // the squares underflow.
            l2: (m2 + n * mean * mean).sqrt().max(linf),
            abs_mean: moments.l1 / n,
            linf,
            ..counts
        }
    }

    /// The share of zeros among the finite values, 0 if there are none.
    pub fn zero_ratio(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.zeros as f64 / self.count as f64 }
    }

    /// The population standard deviation.
    pub fn std(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// All statistics of a slice: [`moments`](moments()) and [`quartiles`](quartiles()).
pub fn summarize<T: Element>(values: &[T]) -> Summary {
    Summary { quartiles: quartiles(values), ..moments(values).finish() }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn an_empty_slice_gives_the_default() {
        assert_eq!(summarize::<f32>(&[]), Summary::default());
        assert_eq!(summarize::<f64>(&[]).zero_ratio(), 0.0);
    }

    #[test]
    fn only_nan_and_infinity_gives_their_counts_and_zeros() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        assert_eq!(summarize(&values), Summary { nan: 2, inf: 2, ..Summary::default() });
    }

    #[test]
    fn zeros_of_either_sign_count_and_come_out_positive() {
        for values in [[0.0_f32, -0.0, 0.0, -0.0], [-0.0; 4]] {
            let summary = summarize(&values);
            assert_eq!(summary.zeros, 4);
            assert_eq!(summary.zero_ratio(), 1.0);
            let quartiles = summary.quartiles.unwrap();
            for zero in [summary.min, summary.max, summary.linf, summary.l2, quartiles.median] {
                assert_eq!(zero.to_bits(), 0);
            }
        }
    }

    #[test]
    fn a_constant_slice_has_no_spread_and_no_shape() {
        for len in [1, 2, 3, 7, 8, 9, 100, 5000, 100_000] {
            let summary = summarize(&vec![0.1_f32; len]);
            let value = f64::from(0.1_f32);
            assert_eq!(summary.mean, value, "{len}");
            assert_eq!(summary.variance, 0.0, "{len}");
            assert_eq!(summary.skewness, 0.0, "{len}");
            assert_eq!(summary.kurtosis, 0.0, "{len}");
            assert_eq!((summary.min, summary.max), (value, value));
        }
    }

    #[test]
    fn known_values_give_known_statistics() {
        let summary = summarize(&[-4.0_f64, 0.0, 0.0, 4.0, 10.0]);
        assert_eq!(summary.mean, 2.0);
        assert_eq!(summary.variance, 22.4);
        assert_eq!((summary.min, summary.max), (-4.0, 10.0));
        assert_eq!((summary.l1, summary.abs_mean, summary.linf), (18.0, 3.6, 10.0));
        assert!((summary.l2 - 132.0_f64.sqrt()).abs() < 1e-14);
        assert_eq!(summary.zero_ratio(), 0.4);
        // Values of scipy.stats.skew and scipy.stats.kurtosis.
        assert!((summary.skewness - 0.543_313_449_468_332_2).abs() < 1e-14, "{summary:?}");
        assert!((summary.kurtosis + 0.831_632_653_061_224_2).abs() < 1e-14, "{summary:?}");
        assert_eq!(summary.quartiles, Some(Quartiles { q1: 0.0, median: 0.0, q3: 4.0 }));
    }

    #[test]
    fn every_format_gives_the_same_for_values_all_of_them_hold() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i % 200) - 64.0).collect();
        let expected = summarize(&values);
        let f32s: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let f16s: Vec<f16> = values.iter().map(|&x| f16::from_f64(x)).collect();
        let bf16s: Vec<bf16> = values.iter().map(|&x| bf16::from_f64(x)).collect();
        assert_eq!(summarize(&f32s), expected);
        assert_eq!(summarize(&f16s), expected);
        assert_eq!(summarize(&bf16s), expected);
        assert_eq!(summarize(&f16s[..20]), summarize(&values[..20]));
        assert_eq!(summarize(&bf16s[..20]), summarize(&values[..20]));
    }

    #[test]
    fn a_small_variance_survives_a_large_mean() {
        // ±1 about 1e8, where f32 steps by 8 and f64 by 1.5e-8.
        let f64s: Vec<f64> = (0..100_000).map(|i| 1e8 + f64::from(i % 2 * 2 - 1)).collect();
        let summary = summarize(&f64s);
        assert_eq!((summary.mean, summary.variance), (1e8, 1.0));
        assert_eq!((summary.skewness, summary.kurtosis), (0.0, -2.0));
        let f32s: Vec<f32> = (0..100_000).map(|i| 1e8 + 8.0 * (i % 2 * 2 - 1) as f32).collect();
        let summary = summarize(&f32s);
        assert_eq!((summary.mean, summary.variance), (1e8, 64.0));
        assert_eq!((summary.skewness, summary.kurtosis), (0.0, -2.0));
    }

    #[test]
    fn subnormal_values_keep_their_shape_in_f32_and_their_norm_in_f64() {
        let tiny = f32::from_bits(1);
        let summary = summarize(&[tiny, -tiny, tiny, -tiny]);
        assert_eq!(summary.zeros, 0);
        assert_eq!(summary.kurtosis, -2.0);
        assert_eq!(summary.l2, 2.0 * f64::from(tiny));
        let tiny = f64::from_bits(1);
        let summary = summarize(&[tiny, -tiny]);
        assert_eq!((summary.zeros, summary.kurtosis, summary.l2), (0, 0.0, tiny));
    }
}
