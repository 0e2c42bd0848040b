//! Prospect: prunes trials that can no longer reach the best.

use super::rank::{EarlyEnd, Rank, chance_level, is_done, progress};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use crate::registry::{fraction, non_negative};
use serde::{Deserialize, Serialize};

/// Prunes a trial that is behind the best trials and improves too slowly to catch up.
///
/// Both conditions must hold:
///
/// * *It is behind.* More than `quantile` of all earlier trials, pruned ones included, were better at
///   the same epoch. The lower bound of the Wilson interval (`z` standard deviations) is compared, so
///   the rule can start with the first trials: being worse than all of three is evidence, being worse
///   than one of three is not. Trials that are no better than chance or than their own noise do not
///   count as better: a classifier that predicts the majority class is ahead of many that learn.
/// * *It cannot catch up.* A trial that is behind may still improve: networks that overshoot or wait
///   before they learn are often behind for a tenth of the time and end among the best. The optimistic
///   final cost subtracts `trend_factor` of the current trend for every remaining epoch, and
///   `noise_factor` times the recent change per epoch. The trial is pruned if that is not below the
///   `quantile` of the other costs. After only two reports, the change counts as at least the usual
///   first change of other trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prospect {
    /// Fraction of all trials that may be better.
    #[serde(deserialize_with = "fraction")]
    pub quantile: f64,
    /// Confidence in that fraction, in standard deviations.
    #[serde(deserialize_with = "non_negative")]
    pub z: f64,
    /// Possible gain by chance, in recent changes per epoch. The default depends on the sampler
    /// ([`default_noise_factor`](Self::default_noise_factor)).
    #[serde(deserialize_with = "optional_non_negative")]
    pub noise_factor: Option<f64>,
    /// Fraction of the current trend that may continue to the end.
    #[serde(deserialize_with = "non_negative")]
    pub trend_factor: f64,
    /// Fraction of the planned epochs before the first decision.
    #[serde(deserialize_with = "fraction")]
    pub warmup: f64,
    /// Number of other trials required.
    pub n_startup_trials: usize,
}

impl Default for Prospect {
    fn default() -> Self {
        Self {
            quantile: 0.12,
            z: 1.2,
            noise_factor: None,
            trend_factor: 0.4,
            warmup: 0.06,
            n_startup_trials: 3,
        }
    }
}

fn optional_non_negative<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    struct NonNegative(#[serde(deserialize_with = "non_negative")] f64);
    Ok(Option::<NonNegative>::deserialize(d)?.map(|number| number.0))
}

/// Fraction of the planned epochs over which the recent change is measured.
const CHANGE_WINDOW: f64 = 0.08;
/// Least fraction of the planned epochs over which the trend is measured.
const TREND_WINDOW: f64 = 0.16;
/// Trials are compared by the best of this many last costs, which is less noisy than one.
const RANK_WINDOW: usize = 3;

impl Prospect {
    /// The noise factor for samplers that learn from results, and for those that do not.
    ///
    /// A learning sampler returns to good regions, so more trials are worth more than each single one.
    /// Without learning, the best trial occurs once and must be kept.
    pub fn default_noise_factor(learns: bool) -> f64 {
        if learns { 1.0 } else { 3.0 }
    }
}

impl Pruner for Prospect {
    fn name(&self) -> &'static str {
        "prospect"
    }

    fn prune(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        // One report shows no change.
        if is_done(trial) || trial.costs.len() < 2 || progress(trial) < self.warmup {
            return None;
        }
        let rank = Rank::over_last(RANK_WINDOW, trial, others, EarlyEnd::AtBest)?;
        let count = rank.count();
        let is_behind = |better| wilson_lower_bound(better, count, self.z) > self.quantile;
        // The chance level takes longer to compute than the rank.
        if count < self.n_startup_trials || !is_behind(rank.better()) {
            return None;
        }
        let better = rank.better_than_chance(chance_level(others));
        if !is_behind(better) {
            return None;
        }
        let share = wilson_lower_bound(better, count, self.z);
        let bar = rank.quantile(self.quantile)?;
        let left = (trial.planned - trial.costs.len()) as f64;
        let change = if trial.costs.len() == 2 {
            change(trial).max(usual_first_change(others))
        } else {
            change(trial)
        };
        let noise_factor = self.noise_factor.unwrap_or(Self::default_noise_factor(false));
        let optimistic =
            rank.cost - noise_factor * change - self.trend_factor * trend(trial) * left;
        (optimistic >= bar).then(|| {
            let why = format!(
                "worse than {better} of {count} trials and improving too slowly to catch up"
            );
            PruneReason::at(self.name(), trial, why)
                .with("fraction of better trials (lower bound)", share, self.quantile)
                .with("optimistic final cost", optimistic, bar)
        })
    }
}

/// Mean absolute change per epoch in the recent window. Non-finite changes count as 0.
fn change(trial: &LearningCurve) -> f64 {
    let window = (CHANGE_WINDOW * trial.planned as f64).round();
    let costs = last(&trial.costs, window as usize);
    let steps = costs.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let path: f64 = steps.filter(|step| step.is_finite()).sum();
    path / (costs.len() as f64 - 1.0).max(1.0)
}

/// Median absolute change from the first epoch to the second.
fn usual_first_change(others: &[LearningCurve]) -> f64 {
    let step = |other: &LearningCurve| Some((other.costs.get(1)? - other.costs[0]).abs());
    let mut steps: Vec<f64> = others.iter().filter_map(step).collect();
    steps.retain(|step| step.is_finite());
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

/// Decrease per epoch, from a line through the second half of the curve; 0 if it rises. The first
/// cost reflects the initial weights and is left out.
fn trend(trial: &LearningCurve) -> f64 {
    let shortest = (TREND_WINDOW * trial.planned as f64).round() as usize;
    let window = shortest.max(trial.costs.len() / 2);
    let costs = last(trial.costs.get(1..).unwrap_or_default(), window);
    let n = costs.len() as f64;
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, costs.iter().sum::<f64>() / n);
    let (mut across, mut along) = (0.0, 0.0);
    for (x, y) in costs.iter().enumerate() {
        across += (x as f64 - x_mean).powi(2);
        along += (x as f64 - x_mean) * (y - y_mean);
    }
    let fall = -along / across;
    if costs.len() > 2 && fall.is_finite() { fall.max(0.0) } else { 0.0 }
}

/// The last `window` costs (at least one) and the one before.
fn last(costs: &[f64], window: usize) -> &[f64] {
    &costs[costs.len().saturating_sub(window.max(1) + 1)..]
}

/// Lower bound of the Wilson score interval for a proportion of `some` in `all`.
fn wilson_lower_bound(some: usize, all: usize, z: f64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    let n = all as f64;
    let share = some as f64 / n;
    let spread = (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    (share + z * z / (2.0 * n) - z * spread) / (1.0 + z * z / n)
}

#[cfg(test)]
mod tests {
    use super::super::rank::tests::{curve, ended};
    use super::*;
    use proptest::prelude::*;

    /// Twenty trials with falling costs that end above 0.4.
    fn others() -> Vec<LearningCurve> {
        let costs = |i: i32| (1..=10).map(move |t| 0.4 + 0.01 * f64::from(i) + 0.3 / f64::from(t));
        (0..20).map(|i| ended(&costs(i).collect::<Vec<_>>())).collect()
    }

    fn prune(costs: &[f64]) -> Option<PruneReason> {
        Prospect::default().prune(&curve(costs), &others())
    }

    #[test]
    fn a_flat_trial_behind_the_others_is_pruned() {
        let reason = prune(&[0.7, 0.693, 0.693]).unwrap();
        assert!(reason.message.contains("20 of 20"), "{}", reason.message);
    }

    #[test]
    fn a_trial_among_the_best_continues() {
        assert_eq!(prune(&[0.7, 0.55, 0.5]), None);
    }

    #[test]
    fn a_trial_that_overshot_and_recovers_continues() {
        let overshot: Vec<f64> = (0..12).map(|t| 0.7 + 1.5 * (-0.2 * f64::from(t)).exp()).collect();
        let mut others = others();
        for other in &mut others {
            let end = other.last().unwrap();
            other.costs.resize(50, end);
            other.planned = 50;
        }
        let trial = |costs: &[f64]| LearningCurve { planned: 50, ..curve(costs) };
        let rule = Prospect::default();
        assert_eq!(rule.prune(&trial(&overshot), &others), None);
        assert!(rule.prune(&trial(&[0.87; 12]), &others).is_some());
    }

    #[test]
    fn a_noisy_trial_continues() {
        let still = [0.7, 0.55, 0.54, 0.54, 0.54];
        assert!(prune(&still).is_some());
        let swinging = [0.7, 0.55, 0.6, 0.54, 0.58];
        assert_eq!(prune(&swinging), None);
        let strict = Prospect { noise_factor: Some(1.0), ..Prospect::default() };
        assert!(strict.prune(&curve(&swinging), &others()).is_some());
    }

    #[test]
    fn a_first_change_counts_as_the_usual_one() {
        // The others changed by 0.15 at first; a single smaller step is weak evidence.
        assert_eq!(prune(&[0.81, 0.809]), None);
        assert!(prune(&[0.81, 0.809, 0.808]).is_some());
        let far_behind = prune(&[1.2, 1.199]);
        assert!(far_behind.is_some());
    }

    #[test]
    fn pruned_trials_count_as_worse() {
        // The two survivors are better, the eighteen pruned trials are not.
        let mut others: Vec<LearningCurve> = (0..18).map(|_| ended(&[0.7, 0.693])).collect();
        others.extend([0.49, 0.5].map(|end| ended(&[0.7, 0.6, 0.55, 0.52, 0.51, end])));
        let fair = curve(&[0.6; 5]);
        assert_eq!(Prospect::default().prune(&fair, &others), None);
    }

    #[test]
    fn one_better_trial_of_three_is_not_enough() {
        let falling = |end: f64| ended(&[end + 0.1, end + 0.04, end + 0.02, end + 0.01, end]);
        let few = [falling(0.4), falling(0.8), falling(0.9)];
        let rule = Prospect::default();
        assert_eq!(rule.prune(&curve(&[0.6; 4]), &few), None);
        assert!(rule.prune(&curve(&[1.0; 4]), &few).is_some());
        assert_eq!(rule.prune(&curve(&[1.0; 4]), &few[..2]), None);
    }

    /// Accuracies of sixteen PyTorch trainings (random depth, width, activation, rate and class weight) on a task with
    /// 75% of one class. Fifteen never get better than the majority class; one starts with the other class and reaches
    /// 0.92.
    fn recorded() -> Vec<LearningCurve> {
        let curves: Vec<Vec<f64>> =
            serde_json::from_str(include_str!("recorded/majority_class.json")).expect("curves");
        let curve = |(number, values): (u64, Vec<f64>)| LearningCurve {
            number,
            planned: values.len(),
            costs: values.into_iter().map(|value| -value).collect(),
            over: true,
        };
        (0..).zip(curves).map(curve).collect()
    }

    /// Replays recorded curves one after the other and returns the costs of the trials that were not pruned.
    fn completed(curves: &[LearningCurve]) -> Vec<f64> {
        let pruners = crate::pruner::PruningConfig::default().pruner_set();
        let mut others: Vec<LearningCurve> = Vec::new();
        let mut completed = Vec::new();
        for full in curves {
            let ends = (1..full.planned).find(|&epochs| {
                let costs = full.costs[..epochs].to_vec();
                let trial = LearningCurve { costs, over: false, ..full.clone() };
                pruners.decide(&trial, &others, &[], &[]).is_some()
            });
            match ends {
                Some(epochs) => others
                    .push(LearningCurve { costs: full.costs[..epochs].to_vec(), ..full.clone() }),
                None => {
                    completed.extend(full.best());
                    others.push(full.clone());
                }
            }
        }
        completed
    }

    #[test]
    fn trials_at_chance_do_not_prune_a_learner() {
        let mut curves = recorded();
        for _ in 0..curves.len() {
            curves.rotate_left(1);
            let best = completed(&curves).into_iter().fold(f64::INFINITY, f64::min);
            assert_eq!(best, -0.92);
        }
    }

    #[test]
    fn trials_above_chance_prune_those_at_chance() {
        let mut curves = recorded();
        let learner = curves.iter().find(|curve| curve.best() == Some(-0.92)).cloned();
        let learners = vec![learner.expect("a learner"); 8];
        curves.splice(0..0, learners);
        assert_eq!(completed(&curves), [-0.92; 9]);
    }

    proptest! {
        #[test]
        fn a_non_finite_cost_never_saves_a_trial(at in 0usize..6, bad in prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)
        ]) {
            let mut costs = vec![0.7, 0.693, 0.694, 0.693, 0.693, 0.693];
            costs[at] = bad;
            prop_assert!(prune(&costs).is_some());
        }

        #[test]
        fn the_bound_is_below_the_share_and_grows_with_the_evidence(
            some in 0usize..50, more in 0usize..50, z in 0.0f64..3.0
        ) {
            let all = some + more;
            prop_assume!(all > 0);
            let bound = wilson_lower_bound(some, all, z);
            prop_assert!(bound <= some as f64 / all as f64 + 1e-12);
            prop_assert!(wilson_lower_bound(2 * some, 2 * all, z) >= bound - 1e-12);
        }
    }
}
