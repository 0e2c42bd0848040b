//! Rank of a trial among the others at the same epoch.

use crate::learning_curve::LearningCurve;

/// A cost for comparisons: NaN and infinite costs are worse than every finite one.
pub(crate) fn finite_or_worst(cost: f64) -> f64 {
    if cost.is_finite() { cost } else { f64::INFINITY }
}

/// Treatment of trials that ended before the epoch of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    /// Ignored, which leaves only survivors in the comparison.
    Excluded,
    /// Compared by their best cost, so the comparison covers all trials.
    AtBest,
}

/// The cost of a trial and those of the others at the same epoch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rank {
    pub(super) cost: f64,
    others: Vec<f64>,
}

impl Rank {
    /// Compares last costs; `None` before the first report. Running trials that are not as far are
    /// ignored.
    pub(super) fn new(
        trial: &LearningCurve,
        others: &[LearningCurve],
        early: EarlyEnd,
    ) -> Option<Rank> {
        Rank::over_last(1, trial, others, early)
    }

    /// Compares the best of the last `window` costs, which is less noisy than the last cost.
    pub(super) fn over_last(
        window: usize,
        trial: &LearningCurve,
        others: &[LearningCurve],
        early: EarlyEnd,
    ) -> Option<Rank> {
        let epoch = trial.costs.len();
        let from = epoch.saturating_sub(window);
        let at = |other: &LearningCurve| match other.costs.get(from..epoch) {
            Some(costs) => Some(best(costs)),
            None if other.over && early == EarlyEnd::AtBest => Some(best(&other.costs)),
            None => None,
        };
        (epoch > 0).then(|| Rank {
            cost: best(&trial.costs[from..]),
            others: others.iter().filter_map(at).collect(),
        })
    }

    /// Number of other trials.
    pub(super) fn count(&self) -> usize {
        self.others.len()
    }

    /// Number of other trials that are better.
    pub(super) fn better(&self) -> usize {
        self.others.iter().filter(|cost| **cost < self.cost).count()
    }

    /// The quantile of the other costs.
    pub(super) fn quantile(&mut self, share: f64) -> Option<f64> {
        let last = self.others.len().checked_sub(1)?;
        let rank = ((share * self.others.len() as f64) as usize).min(last);
        let (_, cost, _) = self.others.select_nth_unstable_by(rank, f64::total_cmp);
        Some(*cost)
    }
}

fn best(costs: &[f64]) -> f64 {
    costs.iter().copied().map(finite_or_worst).fold(f64::INFINITY, f64::min)
}

/// Completed fraction of the planned epochs.
pub(super) fn progress(trial: &LearningCurve) -> f64 {
    trial.costs.len() as f64 / trial.planned.max(1) as f64
}

/// True if no epochs are left.
pub(super) fn is_done(trial: &LearningCurve) -> bool {
    trial.over || trial.costs.len() >= trial.planned
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A running trial of ten epochs.
    pub(crate) fn curve(costs: &[f64]) -> LearningCurve {
        LearningCurve { number: 0, costs: costs.to_vec(), planned: 10, over: false }
    }

    /// An ended trial of ten epochs.
    pub(crate) fn ended(costs: &[f64]) -> LearningCurve {
        LearningCurve { over: true, ..curve(costs) }
    }

    #[test]
    fn trials_that_ended_early_are_excluded_or_kept_at_their_best() {
        let others = [ended(&[1.0, 3.0]), ended(&[5.0]), curve(&[0.5])];
        let now = curve(&[4.0, 4.0]);
        let among = |early| Rank::new(&now, &others, early).unwrap();
        let survivors = among(EarlyEnd::Excluded);
        assert_eq!((survivors.count(), survivors.better()), (1, 1));
        let all = among(EarlyEnd::AtBest);
        assert_eq!((all.count(), all.better()), (2, 1));
    }

    #[test]
    fn non_finite_costs_rank_last() {
        let others = [ended(&[f64::NAN]), ended(&[f64::NEG_INFINITY]), ended(&[2.0])];
        for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let rank = Rank::new(&curve(&[cost]), &others, EarlyEnd::Excluded).unwrap();
            assert_eq!(rank.better(), 1);
        }
    }

    #[test]
    fn a_window_ignores_a_single_bad_cost() {
        let others = [ended(&[2.0, 2.0]), ended(&[1.0, 9.0])];
        let now = curve(&[1.5, 3.0]);
        let rank = Rank::over_last(2, &now, &others, EarlyEnd::Excluded).unwrap();
        assert_eq!((rank.cost, rank.better()), (1.5, 1));
        assert_eq!(Rank::over_last(2, &curve(&[]), &others, EarlyEnd::Excluded), None);
    }

    #[test]
    fn the_quantile_has_its_share_below_it() {
        let others: Vec<LearningCurve> = (0..10).map(|i| ended(&[f64::from(i)])).collect();
        let mut rank = Rank::new(&curve(&[4.5]), &others, EarlyEnd::Excluded).unwrap();
        assert_eq!(rank.quantile(0.2), Some(2.0));
        assert_eq!(rank.quantile(1.0), Some(9.0));
    }
}
