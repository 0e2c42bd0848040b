//! Features of one measure: scaled to a common mean and spread, or to a common range.

use serde::{Deserialize, Serialize};
use surefoot_plan::Scale;

/// Scaling of features, `(x - offset) / divisor`, fitted on the training part.
///
/// It is saved with a model to scale new data in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The mean, or the minimum, of each feature; of each channel for images and sequences.
    pub offset: Vec<f64>,
    /// The standard deviation, or the range, likewise; 1 where all values are the same.
    pub divisor: Vec<f64>,
}

impl Scaling {
    /// Fits a scaling to samples; `None` if the plan has no scaling.
    ///
    /// Samples of one dimension are scaled feature by feature, others channel by channel (last
    /// dimension). The standard deviation is that of the population, divided by n.
    #[must_use]
    pub fn fit(rule: Scale, features: &[f32], shape: &[usize]) -> Option<Scaling> {
        let channels = shape.last().copied().filter(|&channels| channels > 0)?;
        let (offset, divisor) = match rule {
            Scale::None => return None,
            Scale::Standardise => deviations(features, channels),
            Scale::MinMax => ranges(features, channels),
        };
        Some(Scaling { offset, divisor })
    }

    /// Undoes the scaling, value by value.
    pub fn undo(&self, values: &mut [f64]) {
        for (i, value) in values.iter_mut().enumerate() {
            let channel = i % self.offset.len().max(1);
            if let (Some(offset), Some(divisor)) =
                (self.offset.get(channel), self.divisor.get(channel))
            {
                *value = *value * divisor + offset;
            }
        }
    }

    /// Scales features in place, whole samples of the shape that the scaling was fitted to.
    pub fn apply(&self, features: &mut [f32]) {
        if self.offset.is_empty() {
            return;
        }
        for values in features.chunks_mut(self.offset.len()) {
            for ((value, offset), divisor) in values.iter_mut().zip(&self.offset).zip(&self.divisor)
            {
                *value = ((f64::from(*value) - offset) / divisor) as f32;
            }
        }
    }
}

/// Mean and standard deviation of each channel, in two passes for accuracy. Missing values do not count.
fn deviations(features: &[f32], channels: usize) -> (Vec<f64>, Vec<f64>) {
    let mut counts = vec![0.0_f64; channels];
    let mut means = vec![0.0; channels];
    for values in features.chunks(channels) {
        for ((mean, count), &value) in means.iter_mut().zip(&mut counts).zip(values) {
            if !value.is_nan() {
                *mean += f64::from(value);
                *count += 1.0;
            }
        }
    }
    means.iter_mut().zip(&counts).for_each(|(mean, count)| *mean /= count.max(1.0));
    let mut squares = vec![0.0; channels];
    for values in features.chunks(channels) {
        for ((square, mean), &value) in squares.iter_mut().zip(&means).zip(values) {
            if !value.is_nan() {
                let distance = f64::from(value) - mean;
                *square += distance * distance;
            }
        }
    }
    for (((mean, square), count), (low, high)) in
        means.iter_mut().zip(&mut squares).zip(&counts).zip(extents(features, channels))
    {
        if low < high {
            *square = (*square / count).sqrt();
        } else {
            // Rounding may leave the mean of equal values beside them.
            (*mean, *square) = (low, 1.0);
        }
    }
    (means, squares)
}

/// Minimum and range of each channel.
fn ranges(features: &[f32], channels: usize) -> (Vec<f64>, Vec<f64>) {
    extents(features, channels)
        .map(|(low, high)| (low, if low < high { high - low } else { 1.0 }))
        .unzip()
}

/// Minimum and maximum of each channel; 0 and 0 if there are no values. Missing values do not count.
fn extents(features: &[f32], channels: usize) -> impl Iterator<Item = (f64, f64)> {
    let mut extents = vec![(f32::NAN, f32::NAN); channels];
    for values in features.chunks(channels) {
        for ((low, high), &value) in extents.iter_mut().zip(values) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    let number = |value: f32| if value.is_nan() { 0.0 } else { f64::from(value) };
    extents.into_iter().map(move |(low, high)| (number(low), number(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_missing_value_stays_missing_and_does_not_count() {
        for rule in [Scale::Standardise, Scale::MinMax] {
            let found = scaled(rule, &[f32::NAN, 1.0, 3.0, f32::NAN], &[1]);
            assert!(found[0].is_nan() && found[3].is_nan());
            assert_eq!(found[1..3], scaled(rule, &[1.0, 3.0], &[1]));
        }
    }

    fn scaled(rule: Scale, features: &[f32], shape: &[usize]) -> Vec<f32> {
        let mut features = features.to_vec();
        Scaling::fit(rule, &features, shape).unwrap().apply(&mut features);
        features
    }

    #[test]
    fn each_feature_has_its_own_scale() {
        let found = scaled(Scale::MinMax, &[0.0, 100.0, 1.0, 300.0, 2.0, 200.0], &[2]);
        assert_eq!(found, [0.0, 0.0, 0.5, 1.0, 1.0, 0.5]);
    }

    #[test]
    fn images_are_scaled_by_channel() {
        let images: Vec<f32> = (0..2 * 3 * 3 * 2).map(|i| (i * i) as f32).collect();
        let scaling = Scaling::fit(Scale::Standardise, &images, &[3, 3, 2]).unwrap();
        assert_eq!(scaling.offset.len(), 2);
    }

    #[test]
    fn a_constant_feature_becomes_zero() {
        for rule in [Scale::Standardise, Scale::MinMax] {
            assert_eq!(scaled(rule, &[0.1; 7], &[1]), [0.0; 7]);
        }
    }

    #[test]
    fn nothing_cancels_far_from_zero() {
        let far: Vec<f32> = (0..1000).map(|i| 1e6 + (i % 2) as f32).collect();
        let found = scaled(Scale::Standardise, &far, &[1]);
        assert!(found.iter().all(|x| (x.abs() - 1.0).abs() < 1e-6));
    }

    #[test]
    fn no_scale_is_no_scaling() {
        assert_eq!(Scaling::fit(Scale::None, &[1.0, 2.0], &[1]), None);
    }

    #[test]
    fn a_scaling_survives_being_saved() {
        let scaling = Scaling::fit(Scale::Standardise, &[0.1, 0.2, 0.7], &[1]).unwrap();
        let text = serde_json::to_string(&scaling).unwrap();
        assert_eq!(serde_json::from_str::<Scaling>(&text).unwrap(), scaling);
    }

    proptest! {
        #[test]
        fn standardised_features_have_mean_0_and_variance_1(
            features in prop::collection::vec(-1e3_f32..1e3, 2..200),
        ) {
            let found = scaled(Scale::Standardise, &features, &[1]);
            let count = found.len() as f64;
            let mean = found.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
            let variance = found.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
            prop_assert!(mean.abs() < 1e-3);
            prop_assert!((variance - 1.0).abs() < 1e-3);
        }

        #[test]
        fn min_max_features_span_0_to_1(features in prop::collection::vec(-1e3_f32..1e3, 2..200)) {
            let found = scaled(Scale::MinMax, &features, &[1]);
            prop_assert!(found.iter().all(|x| (0.0..=1.0).contains(x)));
            prop_assert!(found.contains(&0.0) && found.contains(&1.0));
        }
    }
}
