//! Where a trial stands among the others after as many epochs.

use crate::learning_curve::LearningCurve;

/// A cost as pruners compare it: what is no finite number is worse than all that are.
pub(crate) fn sound(cost: f64) -> f64 {
    if cost.is_finite() { cost } else { f64::INFINITY }
}

/// What to make of trials that ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// They are left out. What is left are survivors: half of them is not half of all.
    LeftOut,
    /// They would be where they were at their best. So a trial is compared with all there were.
    AtTheirBest,
}

/// The costs of other trials after as many epochs as one has done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    /// The cost of the trial itself.
    pub(super) cost: f64,
    others: Vec<f64>,
}

impl Standing {
    /// Where `trial` stands now; `None` before its first epoch is done.
    ///
    /// Others that run and are not yet as far are left out.
    pub(super) fn of(
        trial: &LearningCurve,
        others: &[LearningCurve],
        ended: Ended,
    ) -> Option<Standing> {
        Standing::of_late(trial, others, ended, 1)
    }

    /// The same by the best of the last `late` costs, which is less subject to chance than the last.
    pub(super) fn of_late(
        trial: &LearningCurve,
        others: &[LearningCurve],
        ended: Ended,
        late: usize,
    ) -> Option<Standing> {
        let epoch = trial.costs.len();
        let from = epoch.saturating_sub(late);
        let at = |other: &LearningCurve| match other.costs.get(from..epoch) {
            Some(costs) => Some(best(costs)),
            None if other.over && ended == Ended::AtTheirBest => Some(best(&other.costs)),
            None => None,
        };
        (epoch > 0).then(|| Standing {
            cost: best(&trial.costs[from..]),
            others: others.iter().filter_map(at).collect(),
        })
    }

    /// How many others there are.
    pub(super) fn count(&self) -> usize {
        self.others.len()
    }

    /// How many of them are better.
    pub(super) fn better(&self) -> usize {
        let better = self.others.iter().filter(|cost| **cost < self.cost);
        better.count()
    }

    /// The cost that so large a share of the others is better than.
    pub(super) fn bar(&mut self, share: f64) -> Option<f64> {
        let last = self.others.len().checked_sub(1)?;
        let rank = ((share * self.others.len() as f64) as usize).min(last);
        let (_, bar, _) = self.others.select_nth_unstable_by(rank, f64::total_cmp);
        Some(*bar)
    }
}

fn best(costs: &[f64]) -> f64 {
    costs.iter().copied().map(sound).fold(f64::INFINITY, f64::min)
}

/// The share of its epochs that a trial has done.
pub(super) fn progress(trial: &LearningCurve) -> f64 {
    trial.costs.len() as f64 / trial.planned.max(1) as f64
}

/// Whether all epochs are done: then there is nothing left to stop.
pub(super) fn is_done(trial: &LearningCurve) -> bool {
    trial.over || trial.costs.len() >= trial.planned
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A trial of ten epochs that has reported these.
    pub(crate) fn curve(costs: &[f64]) -> LearningCurve {
        LearningCurve { number: 0, costs: costs.to_vec(), planned: 10, over: false }
    }

    /// The same, ended.
    pub(crate) fn ended(costs: &[f64]) -> LearningCurve {
        LearningCurve { over: true, ..curve(costs) }
    }

    #[test]
    fn trials_that_ended_before_are_left_out_or_stand_at_their_best() {
        let others = [ended(&[1.0, 3.0]), ended(&[5.0]), curve(&[0.5])];
        let now = curve(&[4.0, 4.0]);
        let among = |ended| Standing::of(&now, &others, ended).unwrap();
        let survivors = among(Ended::LeftOut);
        assert_eq!((survivors.count(), survivors.better()), (1, 1));
        let all = among(Ended::AtTheirBest);
        assert_eq!((all.count(), all.better()), (2, 1));
    }

    #[test]
    fn what_is_no_number_is_worst_and_never_better_than_anything() {
        let others = [ended(&[f64::NAN]), ended(&[f64::NEG_INFINITY]), ended(&[2.0])];
        for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let standing = Standing::of(&curve(&[cost]), &others, Ended::LeftOut).unwrap();
            assert_eq!(standing.better(), 1);
        }
    }

    #[test]
    fn by_the_best_of_late_a_single_bad_cost_does_not_count() {
        let others = [ended(&[2.0, 2.0]), ended(&[1.0, 9.0])];
        let now = curve(&[1.5, 3.0]);
        let standing = Standing::of_late(&now, &others, Ended::LeftOut, 2).unwrap();
        assert_eq!((standing.cost, standing.better()), (1.5, 1));
        assert_eq!(Standing::of_late(&curve(&[]), &others, Ended::LeftOut, 2), None);
    }

    #[test]
    fn the_bar_has_its_share_below_it() {
        let others: Vec<LearningCurve> = (0..10).map(|i| ended(&[f64::from(i)])).collect();
        let mut standing = Standing::of(&curve(&[4.5]), &others, Ended::LeftOut).unwrap();
        assert_eq!(standing.bar(0.2), Some(2.0));
        assert_eq!(standing.bar(1.0), Some(9.0));
    }
}
