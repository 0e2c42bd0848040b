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
    others: Vec<Rival>,
}

/// Another trial.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rival {
    /// Cost at the epoch of the comparison.
    cost: f64,
    /// Best cost at any epoch.
    best: f64,
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
        let at = |other: &LearningCurve| {
            let best_of_all = best(&other.costs);
            let cost = match other.costs.get(from..epoch) {
                Some(costs) => best(costs),
                None if other.over && early == EarlyEnd::AtBest => best_of_all,
                None => return None,
            };
            Some(Rival { cost, best: best_of_all })
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
        self.better_than_chance(f64::INFINITY)
    }

    /// Number of other trials that are better and have been below a [chance level](chance_level).
    pub(super) fn better_than_chance(&self, chance: f64) -> usize {
        let is_better = |other: &&Rival| other.cost < self.cost && other.best < chance;
        self.others.iter().filter(is_better).count()
    }

    /// The quantile of the other costs.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let mut costs: Vec<f64> = self.others.iter().map(|other| other.cost).collect();
        let last = costs.len().checked_sub(1)?;
        let rank = ((share * costs.len() as f64) as usize).min(last);
        let (_, cost, _) = costs.select_nth_unstable_by(rank, f64::total_cmp);
        Some(*cost)
    }
}

/// Range of a flat curve, in median changes per epoch. Fifty epochs of noise stay within four.
const FLAT: f64 = 4.0;

/// Reports that show a plateau.
const PLATEAU: usize = 3;

/// Costs that no trial can improve: an accuracy of 1, a loss of 0. A plateau there is no sign of chance.
const PERFECT: [f64; 2] = [-1.0, 0.0];

/// Upper bound of the costs that prove learning: trials that have learned nothing reach it as well. It is infinite if no
/// trial looks like that.
///
/// Two kinds of trials show it. Some are flat from their first report on, so that their best cost is a matter of noise. The
/// median over at least two of them counts, because one may have learned everything before its first report. Others end
/// on a plateau at exactly the cost at which another trial ends, as classifiers do that predict the same class for every
/// sample.
pub(super) fn chance_level(others: &[LearningCurve]) -> f64 {
    let mut flat: Vec<f64> = others.iter().filter_map(flat_level).collect();
    flat.sort_by(f64::total_cmp);
    let flat = match flat.as_slice() {
        [] | [_] => f64::INFINITY,
        flat => flat[flat.len() / 2],
    };
    let mut plateaus: Vec<f64> = others.iter().filter_map(plateau).collect();
    plateaus.sort_by(f64::total_cmp);
    let shared = plateaus.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    shared.fold(flat, f64::min)
}

/// Best cost of a flat curve.
fn flat_level(curve: &LearningCurve) -> Option<f64> {
    let costs = &curve.costs;
    if costs.len() < PLATEAU || costs.iter().any(|cost| !cost.is_finite()) {
        return None;
    }
    let mut changes: Vec<f64> = costs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    changes.sort_by(f64::total_cmp);
    let noise = changes[changes.len() / 2];
    let best = best(costs);
    let worst = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A short curve that falls steadily is not flat.
    let steps = FLAT.min(changes.len() as f64 / 2.0);
    (worst - best <= steps * noise && !PERFECT.contains(&best)).then_some(best)
}

/// Last cost of a curve that ends with equal costs, its best ones.
fn plateau(curve: &LearningCurve) -> Option<f64> {
    let from = curve.costs.len().checked_sub(PLATEAU)?;
    let level = curve.last().filter(|level| level.is_finite() && !PERFECT.contains(level))?;
    let is_level = curve.costs[from..].iter().all(|cost| *cost == level);
    (is_level && curve.best() == Some(level)).then_some(level)
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
        let rank = Rank::new(&curve(&[4.5]), &others, EarlyEnd::Excluded).unwrap();
        assert_eq!(rank.quantile(0.2), Some(2.0));
        assert_eq!(rank.quantile(1.0), Some(9.0));
    }

    #[test]
    fn flat_and_shared_levels_are_chance() {
        assert_eq!(chance_level(&[]), f64::INFINITY);
        let learned = ended(&[0.9, 0.5, 0.4, 0.3, 0.25, 0.22, 0.2]);
        assert_eq!(chance_level(std::slice::from_ref(&learned)), f64::INFINITY);
        let noisy = |low: f64| ended(&[0.70, low, 0.70, low, 0.70, low]);
        assert_eq!(chance_level(&[learned.clone(), noisy(0.69)]), f64::INFINITY);
        assert_eq!(chance_level(&[learned.clone(), noisy(0.69), noisy(0.68)]), 0.69);
        let collapsed = ended(&[-0.4, -0.6, -0.77, -0.77, -0.77]);
        assert_eq!(chance_level(&[learned.clone(), collapsed.clone()]), f64::INFINITY);
        assert_eq!(chance_level(&[learned, collapsed.clone(), collapsed]), -0.77);
        let perfect = ended(&[-0.9, -1.0, -1.0, -1.0]);
        assert_eq!(chance_level(&[perfect.clone(), perfect]), f64::INFINITY);
    }
}
