//! Imputed final costs of pruned trials, for samplers.
//!
//! The cost of a trial pruned after a tenth of its time says little about its point, because it would have
//! improved further. A model that used it as is would see a deep minimum at every completed trial and stay
//! there.

use crate::pruner::{NON_FINITE, PruneReason};
use std::collections::BTreeMap;

/// True if the final cost of a trial pruned for this reason must be imputed. Trials stopped by an indicator
/// count with their last cost, because their training failed.
pub(crate) fn is_cut_short(reason: &PruneReason) -> bool {
    let indicators = surefoot_diagnose::indicators::PROBLEMS;
    reason.by != NON_FINITE && indicators.iter().all(|problem| problem.id() != reason.by)
}

/// The lowest finite cost up to each epoch, infinite before the first.
pub(crate) fn lowest(costs: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    costs.scan(f64::INFINITY, |lowest, cost| {
        if cost.is_finite() {
            *lowest = lowest.min(cost);
        }
        Some(*lowest)
    })
}

/// A completed trial.
pub(crate) struct Finished {
    /// [`lowest`] costs by epoch.
    pub(crate) lowest: Vec<f64>,
    /// Final cost.
    pub(crate) cost: f64,
}

/// Number of similar completed trials to impute from.
const NEAREST: usize = 5;

/// Imputes final costs from completed trials.
pub(crate) struct Imputation {
    finished: Vec<Finished>,
    /// Median final cost.
    usual: Option<f64>,
    /// By epoch: sorted pairs of the lowest cost and its further improvement.
    falls: BTreeMap<usize, Vec<(f64, f64)>>,
}

impl Imputation {
    pub(crate) fn new(finished: Vec<Finished>) -> Imputation {
        Imputation {
            usual: median(finished.iter().map(|trial| trial.cost)),
            finished,
            falls: BTreeMap::new(),
        }
    }

    /// Imputes the final cost of a trial that was pruned after `epochs` with a lowest cost of `lowest`: the
    /// median further improvement of the most similar completed trials, but no better than the median
    /// final cost, or the trial would not have been pruned.
    pub(crate) fn cost(&mut self, lowest: f64, epochs: usize) -> f64 {
        let Some(usual) = self.usual else {
            return lowest;
        };
        let finished = &self.finished;
        let falls = self.falls.entry(epochs).or_insert_with(|| {
            let after = |trial: &Finished| trial.lowest.get(epochs.checked_sub(1)?).copied();
            let fall = |trial: &Finished| Some((after(trial)?, after(trial)? - trial.cost));
            let mut falls: Vec<(f64, f64)> = finished.iter().filter_map(fall).collect();
            falls.retain(|(_, fall)| fall.is_finite());
            falls.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            falls
        });
        let fall = median(nearest(falls, lowest).iter().map(|&(_, fall)| fall));
        (lowest - fall.unwrap_or(0.0)).max(usual)
    }
}

/// The [`NEAREST`] trials with the most similar lowest cost.
fn nearest(falls: &[(f64, f64)], lowest: f64) -> &[(f64, f64)] {
    let distance = |index: usize| (falls[index].0 - lowest).abs();
    let place = falls.partition_point(|&(other, _)| other < lowest);
    let mut from = place.saturating_sub(NEAREST);
    let mut to = (place + NEAREST).min(falls.len());
    while to - from > NEAREST {
        if distance(from) > distance(to - 1) {
            from += 1;
        } else {
            to -= 1;
        }
    }
    &falls[from..to]
}

/// The upper median.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(lowest: &[f64]) -> Finished {
        Finished { lowest: lowest.to_vec(), cost: *lowest.last().expect("a cost") }
    }

    #[test]
    fn pruned_trials_improve_like_completed_ones() {
        let mut imputation = Imputation::new(vec![
            finished(&[1.0, 0.8, 0.2]),
            finished(&[1.0, 0.9, 0.4]),
            finished(&[1.0, 0.7, 0.3]),
        ]);
        assert_eq!(imputation.cost(1.5, 1), 1.5 - 0.7);
        assert_eq!(imputation.cost(1.5, 2), 1.5 - 0.5);
    }

    #[test]
    fn similar_trials_determine_the_improvement() {
        let near = (0..5).map(|i| finished(&[2.0 + 0.01 * f64::from(i), 1.0]));
        let far = (0..9).map(|i| finished(&[9.0 + f64::from(i), 1.0]));
        let mut imputation = Imputation::new(near.chain(far).collect());
        assert_eq!(imputation.cost(2.5, 1), 2.5 - (2.02 - 1.0));
        assert_eq!(imputation.cost(13.0, 1), 13.0 - (13.0 - 1.0));
        assert_eq!(imputation.cost(1e6, 1), 1e6 - (15.0 - 1.0));
    }

    #[test]
    fn imputed_costs_are_never_in_the_better_half() {
        let mut imputation = Imputation::new(vec![
            finished(&[1.0, 0.2]),
            finished(&[1.0, 0.4]),
            finished(&[1.0, 0.3]),
        ]);
        assert_eq!(imputation.cost(0.9, 1), 0.3);
    }

    #[test]
    fn without_completed_trials_the_lowest_cost_is_used() {
        assert_eq!(Imputation::new(Vec::new()).cost(0.9, 1), 0.9);
    }
}
