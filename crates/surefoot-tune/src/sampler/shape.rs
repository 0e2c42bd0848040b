//! Robust standardization of costs.

use crate::history::TrialOutcome;
use libm::{log, sqrt};

/// Limit of compressed costs, in distances from the median to the best.
const MOST: f64 = 4.0;

/// Standardized costs (mean 0, deviation 1); `None` for running trials.
///
/// The order is kept, and so are distances up to as far above the median as the best is below it. Beyond
/// that, costs grow logarithmically up to a limit, so that a loss of 1e30 does not hide all other
/// differences. A failed trial has the cost of the worst.
pub(super) fn shaped(outcomes: &[TrialOutcome]) -> Vec<Option<f64>> {
    let mut costs: Vec<f64> = outcomes.iter().filter_map(|o| o.cost()).collect();
    costs.sort_by(f64::total_cmp);
    let compressed = |cost| compressed(cost, &costs);
    let worst = costs.last().map_or(0.0, |&worst| compressed(worst));
    let shape = |outcome: &TrialOutcome| match outcome {
        TrialOutcome::Cost(cost) | TrialOutcome::Imputed(cost) => Some(compressed(*cost)),
        TrialOutcome::Failed => Some(worst),
        TrialOutcome::Running => None,
    };
    let mut shaped: Vec<Option<f64>> = outcomes.iter().map(shape).collect();
    standardize(&mut shaped);
    shaped
}

/// A cost in units of the distance from the median to the best, compressed if large.
fn compressed(cost: f64, sorted: &[f64]) -> f64 {
    let (Some(&best), Some(&median), Some(&worst)) =
        (sorted.first(), sorted.get(sorted.len() / 2), sorted.last())
    else {
        return 0.0;
    };
    // Halved, because the difference of two costs can overflow.
    let unit = match median / 2.0 - best / 2.0 {
        unit if unit > 0.0 => unit,
        _ => worst / 2.0 - best / 2.0,
    };
    if unit <= 0.0 {
        return 0.0;
    }
    let distance = (cost / 2.0 - median / 2.0) / unit;
    if distance <= 1.0 { distance } else { (1.0 + log(distance)).min(MOST) }
}

fn standardize(values: &mut [Option<f64>]) {
    let n = values.iter().flatten().count().max(1) as f64;
    let mean = values.iter().flatten().sum::<f64>() / n;
    let variance = values.iter().flatten().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let scale = if variance > 0.0 { 1.0 / sqrt(variance) } else { 1.0 };
    for value in values.iter_mut().flatten() {
        *value = (*value - mean) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;
    use proptest::prelude::*;

    #[test]
    fn a_huge_cost_does_not_hide_other_differences() {
        let outcomes = [1.0, 2.0, 3.0, 1e30, f64::NAN].map(TrialOutcome::of);
        let shaped: Vec<f64> = shaped(&outcomes).into_iter().flatten().collect();
        assert!(shaped[1] - shaped[0] > 0.2, "{shaped:?}");
        assert_eq!(shaped[3], shaped[4]);
    }

    proptest! {
        #[test]
        fn costs_stay_ordered_and_finite(outcomes in fixture::outcomes()) {
            let shaped = shaped(&outcomes);
            let pairs = || outcomes.iter().zip(&shaped);
            for (outcome, shape) in pairs() {
                prop_assert_eq!(*outcome == TrialOutcome::Running, shape.is_none());
                prop_assert!(shape.is_none_or(|shape| shape.is_finite() && shape.abs() < 100.0));
                for (other, other_shape) in pairs() {
                    if let (Some(a), Some(b)) = (outcome.cost(), other.cost()) {
                        prop_assert!(a > b || shape <= other_shape);
                    }
                }
            }
        }
    }
}
