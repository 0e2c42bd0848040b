//! Abnormal features: outliers cut off or left out and missing values filled in, as the training part suggests.

use surefoot_plan::{Data, Missing, Outliers};
use surefoot_stats::{Quartiles, quartiles};

use crate::dataset::Part;

/// Values farther from the quartiles than this many interquartile ranges are outliers ("far out" in
/// Tukey's terms); two values in a million of a normal distribution.
const FAR: f64 = 3.0;

/// The result of [`clean`].
#[derive(Debug, Default)]
pub(crate) struct Cleaned {
    /// Range of normal values in each channel; `None` without limits, empty if nothing is clipped.
    pub(crate) limits: Vec<Option<[f32; 2]>>,
    /// Replacement of missing values in each channel; empty if they are not replaced.
    pub(crate) means: Vec<f32>,
    /// Notes about the changes.
    pub(crate) notes: Vec<String>,
}

/// Clips outliers, or drops the training samples that have them, and fills in missing values as the
/// plan states. `None` if every training sample has an outlier.
///
/// Outliers are treated first: they would distort the means, and means filled in first would narrow
/// the range of normal values.
pub(crate) fn clean(
    parts: &mut [Part; 3],
    data: &Data,
    shape: &[usize],
    target_width: usize,
) -> Option<Cleaned> {
    let channels = shape.last().map_or(1, |&channels| channels.max(1));
    let mut cleaned = Cleaned::default();
    if data.outliers == Outliers::Clip {
        let limits = limits_of(&parts[0].features, channels);
        let clipped = clip(parts, channels, &limits);
        cleaned.limits = limits.into_iter().map(finite).collect();
        if clipped > 0 {
            cleaned.notes.push(format!("features cut off as outliers: {clipped}"));
        }
    }
    if data.outliers == Outliers::Drop {
        let limits = limits_of(&parts[0].features, channels);
        let (kept, dropped) =
            without_outliers(&parts[0], shape.iter().product(), target_width, &limits);
        if kept.len == 0 {
            return None;
        }
        parts[0] = kept;
        if dropped > 0 {
            cleaned.notes.push(format!("training samples left out for outliers: {dropped}"));
        }
    }
    if data.missing == Missing::Impute {
        cleaned.means = means(&parts[0].features, channels);
        let imputed = impute(parts, channels, &cleaned.means);
        if imputed > 0 {
            cleaned.notes.push(format!(
                "missing features replaced by the mean of the training part: {imputed}"
            ));
        }
    }
    Some(cleaned)
}

/// The samples of `part` whose values are all within the limits of their channels, and the number of
/// the others. Missing values are not outliers.
fn without_outliers(
    part: &Part,
    width: usize,
    target_width: usize,
    limits: &[(f32, f32)],
) -> (Part, usize) {
    let normal = |(value, &(low, high)): (&f32, &(f32, f32))| {
        !value.is_finite() || (low..=high).contains(value)
    };
    let is_kept = |i: &u64| {
        let features = &part.features[*i as usize * width..][..width];
        features.chunks(limits.len()).all(|values| values.iter().zip(limits).all(normal))
    };
    let kept: Vec<u64> = (0..part.len as u64).filter(is_kept).collect();
    let dropped = part.len - kept.len();
    let mut rest = Part::gather(&part.features, width, &part.targets, target_width, kept);
    rest.ids.iter_mut().for_each(|id| *id = part.ids[*id as usize]);
    (rest, dropped)
}

fn limits_of(features: &[f32], channels: usize) -> Vec<(f32, f32)> {
    (0..channels).map(|channel| limits(features, channels, channel)).collect()
}

fn finite((low, high): (f32, f32)) -> Option<[f32; 2]> {
    (low.is_finite() && high.is_finite()).then_some([low, high])
}

/// Clips the outliers of each channel to the nearest normal value. Returns their number. Missing
/// values stay missing.
fn clip(parts: &mut [Part; 3], channels: usize, limits: &[(f32, f32)]) -> usize {
    let mut clipped = 0;
    for part in parts {
        for values in part.features.chunks_mut(channels) {
            for (value, &(low, high)) in values.iter_mut().zip(limits) {
                if value.is_finite() && !(low..=high).contains(value) {
                    *value = value.clamp(low, high);
                    clipped += 1;
                }
            }
        }
    }
    clipped
}

/// Range of normal values in a channel.
fn limits(features: &[f32], channels: usize, channel: usize) -> (f32, f32) {
    let values: Vec<f32> = features.iter().skip(channel).step_by(channels).copied().collect();
    let Some(found) = quartiles(&values) else {
        return EVERYTHING;
    };
    if found.q1 < found.q3 {
        return reach(&found);
    }
    // Half of the values are the same, as in images on a plain ground: the others decide.
    let ground = found.median as f32;
    let others: Vec<f32> = values.into_iter().filter(|&value| value != ground).collect();
    match quartiles(&others) {
        Some(found) if found.q1 < found.q3 => {
            let (low, high) = reach(&found);
            (low.min(ground), high.max(ground))
        }
        _ => EVERYTHING,
    }
}

/// The limits of a channel without spread.
const EVERYTHING: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

fn reach(found: &Quartiles) -> (f32, f32) {
    let reach = FAR * (found.q3 - found.q1);
    ((found.q1 - reach) as f32, (found.q3 + reach) as f32)
}

/// Replaces missing values by the mean of their channel. Returns their number.
fn impute(parts: &mut [Part; 3], channels: usize, means: &[f32]) -> usize {
    let mut imputed = 0;
    for part in parts {
        for values in part.features.chunks_mut(channels) {
            for (value, &mean) in values.iter_mut().zip(means) {
                if !value.is_finite() {
                    *value = mean;
                    imputed += 1;
                }
            }
        }
    }
    imputed
}

/// Mean of the present values of each channel, 0 if there are none.
fn means(features: &[f32], channels: usize) -> Vec<f32> {
    let mut sums = vec![(0.0, 0_u64); channels];
    for values in features.chunks(channels) {
        for ((sum, count), &value) in sums.iter_mut().zip(values) {
            if value.is_finite() {
                *sum += f64::from(value);
                *count += 1;
            }
        }
    }
    sums.into_iter().map(|(sum, count)| (sum / count.max(1) as f64) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Targets;

    const GAP: f32 = f32::NAN;

    fn clip(parts: &mut [Part; 3], channels: usize) -> usize {
        let limits = limits_of(&parts[0].features, channels);
        super::clip(parts, channels, &limits)
    }

    fn impute(parts: &mut [Part; 3], channels: usize) -> usize {
        let means = means(&parts[0].features, channels);
        super::impute(parts, channels, &means)
    }

    /// A training part and a validation part of these features.
    fn parts(train: &[f32], validation: &[f32]) -> [Part; 3] {
        [train, validation, &[]].map(|features| Part {
            features: features.to_vec(),
            targets: Targets::Values(Vec::new()),
            len: 0,
            ids: Vec::new(),
        })
    }

    #[test]
    fn outliers_are_cut_to_three_ranges_beyond_the_quartiles() {
        let mut found = parts(&[1.0, 2.0, 3.0, 4.0, 1000.0], &[-1000.0, 9.0]);
        assert_eq!(clip(&mut found, 1), 2);
        assert_eq!(found[0].features, [1.0, 2.0, 3.0, 4.0, 10.0]);
        assert_eq!(found[1].features, [-4.0, 9.0]);
    }

    #[test]
    fn training_samples_with_outliers_are_dropped() {
        let features = [1.0, 5.0, 2.0, 5.0, 3.0, 6.0, 4.0, 7.0, 1000.0, 6.0];
        let part = Part {
            features: features.to_vec(),
            targets: Targets::Classes(vec![0, 1, 2, 3, 4]),
            len: 5,
            ids: vec![10, 11, 12, 13, 14],
        };
        let limits = limits_of(&part.features, 2);
        let (rest, dropped) = without_outliers(&part, 2, 1, &limits);
        assert_eq!((dropped, rest.len), (1, 4));
        assert_eq!(rest.features, features[..8]);
        assert_eq!(rest.targets, Targets::Classes(vec![0, 1, 2, 3]));
        assert_eq!(rest.ids, [10, 11, 12, 13]);
    }

    #[test]
    fn on_a_plain_ground_the_other_values_decide() {
        let mut features = vec![0.0; 20];
        features.extend([1.0, 2.0, 3.0, 4.0, 9000.0]);
        let mut found = parts(&features, &[]);
        assert_eq!(clip(&mut found, 1), 1);
        assert_eq!(found[0].features[24], 10.0);
    }

    #[test]
    fn the_limits_are_those_of_the_training_part() {
        let mut found = parts(&[0.0, 1.0], &[50.0, 60.0, 70.0]);
        assert_eq!(clip(&mut found, 1), 3);
        assert_eq!(found[1].features, [2.25; 3]);
    }

    #[test]
    fn each_channel_has_its_own_limits() {
        let mut found = parts(&[1.0, 100.0, 2.0, 200.0, 3.0, 300.0], &[300.0, 300.0]);
        assert_eq!(clip(&mut found, 2), 1);
        assert_eq!(found[1].features, [5.5, 300.0]);
    }

    #[test]
    fn a_channel_without_spread_is_left_alone() {
        let values = [0.0, 0.0, 0.0, 0.0, 7.0];
        let mut found = parts(&values, &[9.0]);
        assert_eq!(clip(&mut found, 1), 0);
        assert_eq!(found[0].features, values);
    }

    #[test]
    fn nothing_is_cut_where_the_limits_are_beyond_all_numbers() {
        let mut found = parts(&[f32::MIN, f32::MAX], &[]);
        assert_eq!(clip(&mut found, 1), 0);
    }

    #[test]
    fn a_gap_takes_no_part_in_the_limits_and_stays() {
        let mut found = parts(&[1.0, 2.0, GAP, 3.0, 4.0], &[GAP, 99.0]);
        assert_eq!(clip(&mut found, 1), 1);
        assert!(found[0].features[2].is_nan() && found[1].features[0].is_nan());
        assert_eq!(found[1].features[1], 7.75);
    }

    #[test]
    fn a_gap_is_filled_with_the_mean_of_the_training_part() {
        let mut found = parts(&[1.0, GAP, 3.0], &[GAP, 100.0]);
        assert_eq!(impute(&mut found, 1), 2);
        assert_eq!(found[0].features, [1.0, 2.0, 3.0]);
        assert_eq!(found[1].features, [2.0, 100.0]);
    }

    #[test]
    fn each_channel_has_its_own_mean() {
        let mut found = parts(&[1.0, 10.0, GAP, 30.0, 3.0, GAP], &[]);
        impute(&mut found, 2);
        assert_eq!(found[0].features, [1.0, 10.0, 2.0, 30.0, 3.0, 20.0]);
    }

    #[test]
    fn a_channel_that_training_never_sees_becomes_zero() {
        let mut found = parts(&[GAP, GAP], &[GAP, 5.0]);
        assert_eq!(impute(&mut found, 1), 3);
        assert_eq!(found[0].features, [0.0, 0.0]);
        assert_eq!(found[1].features, [0.0, 5.0]);
    }
}
