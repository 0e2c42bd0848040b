//! Prospect: whether a trial can still end among the best.

use super::standing::{Ended, Standing, is_done, progress};
use super::{PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use serde::{Deserialize, Serialize};

/// Ends a trial that is surely not among the best now, and does not move enough to get there.
///
/// Two things have to come together:
///
/// * *It is behind.* Of all trials before, those that were stopped included, more than `keep` were better
///   after as many epochs. That share is known better the more trials there were, so its lower
///   bound counts (Wilson's, `sure` standard deviations away). That lets the rule begin with the first
///   trials: to be behind all of three says something, to be behind one of three does not.
/// * *It lies still.* A trial that is behind and moves may come down yet: those that overshoot
///   at first, and networks that wait before they learn, are behind nearly all others for a tenth of
///   their time and end among the best. Trials that are stuck do not move. And where a sampler has found a
///   good place, all trials are nearly equal, and the best of them is made by chance, which takes costs
///   as far as they usually move. So the rule asks how far the trial would come by `fall` of its trend
///   in every epoch that is left, and by a swing of so many of its recent movements. Only if that is not
///   below the bar, the cost that `keep` of the others are better than, is there no prospect. A
///   single movement may be small by chance, so it counts as what is usual, if that is more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prospect {
    /// The share of all trials that may be better.
    pub keep: f64,
    /// How many standard deviations sure it has to be that more are.
    pub sure: f64,
    /// How many of its recent movements, up or down, chance may take it down at once. Unset, it
    /// depends on the sampler ([`swing_for`](Self::swing_for)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swing: Option<f64>,
    /// The part of its trend, if that is downwards, that may go on to the end.
    pub fall: f64,
    /// The share of its epochs that a trial has done before it is judged.
    pub from: f64,
    /// How many others there have to be.
    pub trials: usize,
}

impl Default for Prospect {
    fn default() -> Self {
        Self { keep: 0.12, sure: 1.2, swing: None, fall: 0.4, from: 0.06, trials: 3 }
    }
}

/// The swing where points do not depend on how trials end: the best of them comes once, and has to be kept.
const SWING: f64 = 3.0;
/// The swing where they do. Such a sampler soon tries many points that are nearly as good, and comes back to where
/// one was stopped that was good: more trials are worth more to it than each of them.
const SWING_TO_LEARN_FROM: f64 = 1.0;

/// The share of the planned epochs over which movement is looked at.
const RECENT: f64 = 0.08;
/// The share over which the trend is, at least: long enough that chance does not make one.
const TREND: f64 = 0.16;
/// Trials are compared by the best of so many costs: chance makes one bad more often than two.
const LATE: usize = 3;

impl Prospect {
    /// The swing where none is set, with a sampler that learns from trials or one that does not.
    pub fn swing_for(learns: bool) -> f64 {
        match learns {
            true => SWING_TO_LEARN_FROM,
            false => SWING,
        }
    }
}

impl Pruner for Prospect {
    fn name(&self) -> &'static str {
        "prospect"
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        // From one report nobody can tell whether it moves.
        let moves_are_known = trial.costs.len() >= 2;
        if is_done(trial) || !moves_are_known || progress(trial) < self.from {
            return None;
        }
        let mut standing = Standing::of_late(trial, others, Ended::AtTheirBest, LATE)?;
        let (better, count) = (standing.better(), standing.count());
        let surely = lower_bound(better, count, self.sure);
        if count < self.trials || surely <= self.keep {
            return None;
        }
        let bar = standing.bar(self.keep)?;
        let left = (trial.planned - trial.costs.len()) as f64;
        let movement = if trial.costs.len() == 2 {
            movement(trial).max(usual_first_movement(others))
        } else {
            movement(trial)
        };
        let swing = self.swing.unwrap_or(SWING);
        let lucky = standing.cost - swing * movement - self.fall * trend(trial) * left;
        (lucky >= bar).then(|| {
            let sentence = format!(
                "After {} of {} epochs, {better} of {count} trials were better of late, and it does not \
                 move enough to catch up.",
                trial.costs.len(),
                trial.planned
            );
            PruneReason::new(self.name(), sentence)
                .with("share that is surely better", surely, self.keep)
                .with("cost it could reach", lucky, bar)
        })
    }
}

/// How far the cost moves in a epoch of late, up or down. What is no number does not move.
fn movement(trial: &LearningCurve) -> f64 {
    let window = (RECENT * trial.planned as f64).round();
    let costs = last(&trial.costs, window as usize);
    let steps = costs.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let path: f64 = steps.filter(|step| step.is_finite()).sum();
    path / (costs.len() as f64 - 1.0).max(1.0)
}

/// How far costs move from the first epoch to the second, in the middle of all trials that have both.
fn usual_first_movement(others: &[LearningCurve]) -> f64 {
    let step = |other: &LearningCurve| Some((other.costs.get(1)? - other.costs[0]).abs());
    let mut steps: Vec<f64> = others.iter().filter_map(step).collect();
    steps.retain(|step| step.is_finite());
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

/// How much the cost falls in a epoch, by a line through the second half of the curve; 0 if it rises.
/// The first cost says where the trial began and not how it goes on, so it is left out.
fn trend(trial: &LearningCurve) -> f64 {
    let shortest = (TREND * trial.planned as f64).round() as usize;
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

/// The costs of the last `window` epochs, one at least, and the one before.
fn last(costs: &[f64], window: usize) -> &[f64] {
    &costs[costs.len().saturating_sub(window.max(1) + 1)..]
}

/// The lower bound of Wilson's interval for a share of which `some` of `all` were seen.
fn lower_bound(some: usize, all: usize, deviations: f64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    let (n, z) = (all as f64, deviations);
    let share = some as f64 / n;
    let spread = (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    (share + z * z / (2.0 * n) - z * spread) / (1.0 + z * z / n)
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{curve, ended};
    use super::*;
    use proptest::prelude::*;

    /// Twenty trials that came down, to ends from 0.4 on.
    fn others() -> Vec<LearningCurve> {
        let costs = |i: i32| (1..=10).map(move |t| 0.4 + 0.01 * f64::from(i) + 0.3 / f64::from(t));
        (0..20).map(|i| ended(&costs(i).collect::<Vec<_>>())).collect()
    }

    fn judge(costs: &[f64]) -> Option<PruneReason> {
        Prospect::default().judge(&curve(costs), &others())
    }

    #[test]
    fn a_trial_that_is_stuck_behind_the_others_is_stopped() {
        let reason = judge(&[0.7, 0.693, 0.693]).unwrap();
        assert!(reason.sentence.contains("20 of 20"), "{}", reason.sentence);
    }

    #[test]
    fn a_trial_among_the_best_goes_on() {
        assert_eq!(judge(&[0.7, 0.55, 0.5]), None);
    }

    #[test]
    fn a_trial_that_overshot_and_comes_down_goes_on() {
        let overshot: Vec<f64> = (0..12).map(|t| 0.7 + 1.5 * (-0.2 * f64::from(t)).exp()).collect();
        let mut others = others();
        for other in &mut others {
            other.costs.resize(50, 0.45);
            other.planned = 50;
        }
        let trial = |costs: &[f64]| LearningCurve { planned: 50, ..curve(costs) };
        let rule = Prospect::default();
        assert_eq!(rule.judge(&trial(&overshot), &others), None);
        assert!(rule.judge(&trial(&[0.87; 12]), &others).is_some());
    }

    #[test]
    fn a_trial_that_swings_as_far_as_it_is_behind_goes_on() {
        let still = [0.7, 0.55, 0.54, 0.54, 0.54];
        assert!(judge(&still).is_some());
        let swinging = [0.7, 0.55, 0.6, 0.54, 0.58];
        assert_eq!(judge(&swinging), None);
        let hopes_for_less =
            Prospect { swing: Some(Prospect::swing_for(true)), ..Prospect::default() };
        assert!(hopes_for_less.judge(&curve(&swinging), &others()).is_some());
    }

    #[test]
    fn a_single_movement_counts_as_what_is_usual() {
        // The others moved by 0.15 at first; one step that is smaller says little.
        assert_eq!(judge(&[0.81, 0.809]), None);
        assert!(judge(&[0.81, 0.809, 0.808]).is_some());
        let far_behind = judge(&[1.2, 1.199]);
        assert!(far_behind.is_some());
    }

    #[test]
    fn trials_that_were_stopped_count_among_those_that_are_worse() {
        // The two survivors are better; the others, which were stopped, are not.
        let mut others: Vec<LearningCurve> = (0..18).map(|_| ended(&[0.7, 0.693])).collect();
        others.extend([ended(&[0.5; 10]), ended(&[0.5; 10])]);
        let fair = curve(&[0.6; 5]);
        assert_eq!(Prospect::default().judge(&fair, &others), None);
    }

    #[test]
    fn to_be_behind_one_of_three_says_nothing() {
        let few = [ended(&[0.4; 10]), ended(&[0.8; 10]), ended(&[0.9; 10])];
        let rule = Prospect::default();
        assert_eq!(rule.judge(&curve(&[0.6; 4]), &few), None);
        assert!(rule.judge(&curve(&[1.0; 4]), &few).is_some());
        assert_eq!(rule.judge(&curve(&[1.0; 4]), &few[..2]), None);
    }

    proptest! {
        #[test]
        fn what_is_no_number_makes_no_trial_better(at in 0usize..6, bad in prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)
        ]) {
            let mut costs = vec![0.7, 0.693, 0.694, 0.693, 0.693, 0.693];
            costs[at] = bad;
            // A broken point is no movement; the last one is worse than all.
            prop_assert!(judge(&costs).is_some());
        }

        #[test]
        fn the_lower_bound_is_below_the_share_and_grows_with_the_evidence(
            some in 0usize..50, more in 0usize..50, z in 0.0f64..3.0
        ) {
            let all = some + more;
            prop_assume!(all > 0);
            let bound = lower_bound(some, all, z);
            prop_assert!(bound <= some as f64 / all as f64 + 1e-12);
            prop_assert!(lower_bound(2 * some, 2 * all, z) >= bound - 1e-12);
        }
    }
}
