//! The statistics against a naive oracle: two passes in `f64`, and a sort.

use half::{bf16, f16};
use proptest::prelude::*;
use surefoot_stats::{Element, Moments, Summary, merge_tree, moments, quartiles, summarize};

/// [`Summary`] computed from the definitions.
fn naive(values: &[f64]) -> Summary {
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let counts = Summary {
        nan: values.iter().filter(|x| x.is_nan()).count() as u64,
        inf: values.iter().filter(|x| x.is_infinite()).count() as u64,
        ..Summary::default()
    };
    if finite.is_empty() {
        return counts;
    }
    let n = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / n;
    let central = |power: i32| finite.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let variance = central(2);
    let l1 = finite.iter().map(|x| x.abs()).sum::<f64>();
    Summary {
        count: finite.len() as u64,
        zeros: finite.iter().filter(|x| **x == 0.0).count() as u64,
        mean,
        variance,
        skewness: if variance == 0.0 { 0.0 } else { central(3) / variance.powf(1.5) },
        kurtosis: if variance == 0.0 { 0.0 } else { central(4) / (variance * variance) - 3.0 },
        min: finite.iter().copied().fold(f64::INFINITY, f64::min),
        max: finite.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        l1,
        l2: finite.iter().map(|x| x * x).sum::<f64>().sqrt(),
        abs_mean: l1 / n,
        linf: finite.iter().copied().map(f64::abs).fold(0.0, f64::max),
        ..counts
    }
}

fn assert_close(name: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{name}: {found} is not {expected}");
}

fn assert_agrees<T: Element>(values: &[T]) {
    let expected = naive(&values.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
    let found = moments(values).finish();
    let counts = |s: &Summary| (s.count, s.nan, s.inf, s.zeros);
    assert_eq!(counts(&found), counts(&expected));
    assert_eq!((found.min, found.max, found.linf), (expected.min, expected.max, expected.linf));
    // Rounding scales with the size of the values; the shape is relative to the spread already,
    // and the naive mean is the less exact one.
    let size = expected.linf.max(f64::MIN_POSITIVE);
    assert_close("mean", found.mean / size, expected.mean / size, 1e-13);
    assert_close("variance", found.variance / size / size, expected.variance / size / size, 1e-13);
    assert_close("l1", found.l1, expected.l1, 1e-12 * expected.l1);
    assert_close("l2", found.l2, expected.l2, 1e-12 * expected.l2);
    assert_close("abs_mean", found.abs_mean, expected.abs_mean, 1e-12 * expected.abs_mean);
    if expected.variance.sqrt() > 1e-6 * size {
        let shape = 1e-8 * (1.0 + expected.kurtosis.abs());
        assert_close("skewness", found.skewness, expected.skewness, shape);
        assert_close("kurtosis", found.kurtosis, expected.kurtosis, shape);
    }
}

fn numbers(summary: &Summary) -> Vec<f64> {
    let quartiles = summary.quartiles.unwrap_or_default();
    vec![
        summary.mean,
        summary.variance,
        summary.skewness,
        summary.kurtosis,
        summary.min,
        summary.max,
        summary.l1,
        summary.l2,
        summary.abs_mean,
        summary.linf,
        summary.zero_ratio(),
        summary.std(),
        quartiles.q1,
        quartiles.median,
        quartiles.q3,
    ]
}

/// Values as tensors have them: about a mean, some zero, a few not finite.
fn tensor(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        20 => -1.0..1.0,
        2 => Just(0.0),
        1 => Just(-0.0),
        1 => -1e3..1e3,
    ];
    let odd = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)];
    let spoilt = prop::collection::vec((any::<prop::sample::Index>(), odd), 0..4);
    let (scale, shift) = (-20_i32..20, prop_oneof![Just(0.0), -100.0..100.0]);
    (prop::collection::vec(value, len), scale, shift, spoilt).prop_map(
        |(mut values, scale, shift, spoilt)| {
            for value in &mut values {
                *value = (*value + shift) * f64::from(scale).exp2();
            }
            for (index, odd) in spoilt {
                if !values.is_empty() {
                    let index = index.index(values.len());
                    values[index] = odd;
                }
            }
            values
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn short_tensors_agree_with_the_oracle(values in tensor(0..70)) {
        assert_agrees(&values);
        assert_agrees(&values.iter().map(|&x| x as f32).collect::<Vec<_>>());
        assert_agrees(&values.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>());
        assert_agrees(&values.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>());
    }

    #[test]
    fn no_statistic_of_any_bits_is_nan(values in prop::collection::vec(any::<f64>(), 0..50)) {
        for number in numbers(&summarize(&values)) {
            prop_assert!(!number.is_nan());
        }
        let halves = values.split_at(values.len() / 2);
        for number in numbers(&moments(halves.0).merge(&moments(halves.1)).finish()) {
            prop_assert!(!number.is_nan());
        }
    }

    #[test]
    fn merging_at_any_cut_is_close_to_the_whole(values in tensor(1..200), cut in 0..200_usize) {
        let (left, right) = values.split_at(cut.min(values.len()));
        let merged = Moments::of(left).merge(&Moments::of(right)).finish();
        let whole = Moments::of(&values).finish();
        prop_assert_eq!(merged.count, whole.count);
        let size = whole.linf.max(f64::MIN_POSITIVE);
        assert_close("mean", merged.mean / size, whole.mean / size, 1e-14);
        let (found, expected) = (merged.variance / size / size, whole.variance / size / size);
        assert_close("variance", found, expected, 1e-14);
    }

    #[test]
    fn the_quartiles_are_in_order_and_within_the_extremes(values in tensor(1..600)) {
        let summary = summarize(&values);
        if let Some(q) = summary.quartiles {
            let ascending = [summary.min, q.q1, q.median, q.q3, summary.max];
            prop_assert!(ascending.is_sorted(), "{ascending:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn long_tensors_agree_with_the_oracle(values in tensor(4000..20_000)) {
        assert_agrees(&values);
        assert_agrees(&values.iter().map(|&x| x as f32).collect::<Vec<_>>());
    }
}

#[test]
fn noise_about_a_hundred_million_keeps_its_variance_and_shape() {
    // Without cancellation the offset must not matter: the noise is exact at either place.
    let noise: Vec<f64> =
        (0..50_000).map(|i| f64::from(i * 7919 % 50_021) / 4096.0 - 6.0).collect();
    let offset: Vec<f64> = noise.iter().map(|x| x + 1e8).collect();
    let (near, far) = (summarize(&noise), summarize(&offset));
    assert_close("variance", far.variance, near.variance, 1e-12 * near.variance);
    assert_close("skewness", far.skewness, near.skewness, 1e-10);
    assert_close("kurtosis", far.kurtosis, near.kurtosis, 1e-10);
    assert_close("mean", far.mean - 1e8, near.mean, 3e-8);

    let noise: Vec<f32> = (0..50_000).map(|i| (i * 7919 % 50_021 / 64 * 8) as f32).collect();
    let offset: Vec<f32> = noise.iter().map(|x| x + 1e8).collect();
    let (near, far) = (summarize(&noise), summarize(&offset));
    assert_close("variance", far.variance, near.variance, 1e-12 * near.variance);
    assert_close("kurtosis", far.kurtosis, near.kurtosis, 1e-10);
}

#[test]
fn an_empty_slice_of_parts_is_like_no_part() {
    assert_eq!(merge_tree(&[moments::<f32>(&[]), moments(&[1.0_f32])]), moments(&[1.0_f32]));
    assert_eq!(quartiles::<bf16>(&[]), None);
}
