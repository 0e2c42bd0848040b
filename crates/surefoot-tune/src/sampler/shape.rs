//! Costs in a shape that models of them can take.

use crate::history::TrialOutcome;
use libm::{log, sqrt};

/// A cost further above the median than the best is below it is drawn in, and counts for no more
/// than this many times that distance.
const MOST: f64 = 4.0;

/// What each outcome counts for, with mean 0 and deviation 1; `None` for what runs.
///
/// Costs keep their order, and from the best to the median and as far again they keep their
/// distances. Beyond that they grow with the logarithm, up to a limit, so that a loss of 1e30 is bad and no worse:
/// it must not flatten everything else. What is worthless counts as the worst that is not.
pub(super) fn shaped(outcomes: &[TrialOutcome]) -> Vec<Option<f64>> {
    let mut costs: Vec<f64> = outcomes.iter().filter_map(|o| o.cost()).collect();
    costs.sort_by(f64::total_cmp);
    let drawn_in = |cost| drawn_in(cost, &costs);
    let worst = costs.last().map_or(0.0, |&worst| drawn_in(worst));
    let shape = |outcome: &TrialOutcome| match outcome {
        TrialOutcome::Cost(cost) | TrialOutcome::Imputed(cost) => Some(drawn_in(*cost)),
        TrialOutcome::Failed => Some(worst),
        TrialOutcome::Running => None,
    };
    let mut shaped: Vec<Option<f64>> = outcomes.iter().map(shape).collect();
    standardise(&mut shaped);
    shaped
}

/// A cost in units of the distance from the median to the best, drawn in where it is large.
fn drawn_in(cost: f64, sorted: &[f64]) -> f64 {
    let (Some(&best), Some(&median), Some(&worst)) =
        (sorted.first(), sorted.get(sorted.len() / 2), sorted.last())
    else {
        return 0.0;
    };
    // Halves, because the difference of two costs can be beyond the largest number.
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

fn standardise(values: &mut [Option<f64>]) {
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
    fn an_enormous_cost_leaves_the_others_apart() {
        let outcomes = [1.0, 2.0, 3.0, 1e30, f64::NAN].map(TrialOutcome::of);
        let shaped: Vec<f64> = shaped(&outcomes).into_iter().flatten().collect();
        assert!(shaped[1] - shaped[0] > 0.2, "{shaped:?}");
        assert_eq!(shaped[3], shaped[4]);
    }

    proptest! {
        #[test]
        fn the_order_is_kept_and_all_is_finite(outcomes in fixture::outcomes()) {
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
