//! What trials that were stopped would have come to, for samplers.
//!
//! What a trial had reached when it was stopped, after a tenth of its time perhaps, says little of its
//! point: it would have gone on to fall as the others did. A model that takes it as it is sees an
//! abyss around every trial that ran to its end, and does not leave it.

use crate::pruner::{NON_FINITE, PruneReason};
use std::collections::BTreeMap;

/// Whether a trial that was ended for this reason would have gone on to something else. What an indicator has
/// ended is told as it is: its training had gone wrong.
pub(crate) fn is_cut_short(reason: &PruneReason) -> bool {
    let indicators = surefoot_diagnose::indicators::PROBLEMS;
    reason.by != NON_FINITE && indicators.iter().all(|problem| problem.id() != reason.by)
}

/// The lowest cost up to each epoch, infinite before the first that is a number.
pub(crate) fn lowest(costs: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    costs.scan(f64::INFINITY, |lowest, cost| {
        if cost.is_finite() {
            *lowest = lowest.min(cost);
        }
        Some(*lowest)
    })
}

/// A trial that ran to its end.
pub(crate) struct Finished {
    /// Its [`lowest`] costs.
    pub(crate) lowest: Vec<f64>,
    /// What it came to.
    pub(crate) cost: f64,
}

/// How many trials, of those that ran to their end, say how one that was stopped would have fallen.
const NEAREST: usize = 5;

/// Trials that ran to their end, as a measure for those that did not.
pub(crate) struct Imputation {
    finished: Vec<Finished>,
    /// What those came to in the middle.
    usual: Option<f64>,
    /// After so many epochs, the lowest cost of each, in order, and how much it fell from there.
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

    /// The cost to expect at the end of a trial that had come down to `lowest` when it was stopped
    /// after so many epochs: it would have fallen as those did that stood nearest to it then, but
    /// not to among the better half of all. Otherwise it would not have been stopped.
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

/// Those that stood nearest, of which there are [`NEAREST`] at most.
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

/// The upper of the two in the middle, if there are two.
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
    fn a_stopped_trial_falls_as_the_others_did() {
        let mut imputation = Imputation::new(vec![
            finished(&[1.0, 0.8, 0.2]),
            finished(&[1.0, 0.9, 0.4]),
            finished(&[1.0, 0.7, 0.3]),
        ]);
        assert_eq!(imputation.cost(1.5, 1), 1.5 - 0.7);
        assert_eq!(imputation.cost(1.5, 2), 1.5 - 0.5);
    }

    #[test]
    fn those_that_stood_nearest_say_how_it_would_have_fallen() {
        let near = (0..5).map(|i| finished(&[2.0 + 0.01 * f64::from(i), 1.0]));
        let far = (0..9).map(|i| finished(&[9.0 + f64::from(i), 1.0]));
        let mut imputation = Imputation::new(near.chain(far).collect());
        assert_eq!(imputation.cost(2.5, 1), 2.5 - (2.02 - 1.0));
        assert_eq!(imputation.cost(13.0, 1), 13.0 - (13.0 - 1.0));
        assert_eq!(imputation.cost(1e6, 1), 1e6 - (15.0 - 1.0));
    }

    #[test]
    fn a_stopped_trial_is_never_among_the_better_half() {
        let mut imputation = Imputation::new(vec![
            finished(&[1.0, 0.2]),
            finished(&[1.0, 0.4]),
            finished(&[1.0, 0.3]),
        ]);
        assert_eq!(imputation.cost(0.9, 1), 0.3);
    }

    #[test]
    fn where_nothing_has_finished_the_lowest_stands() {
        assert_eq!(Imputation::new(Vec::new()).cost(0.9, 1), 0.9);
    }
}
