//! Asynchronous successive halving with promotion.

use super::{Decision, Schedule, ScheduleHistory, Scheduler, Search};
use crate::pruner::finite_or_worst;
use crate::registry::{above_one, positive_fraction};
use serde::{Deserialize, Serialize};

/// Asynchronous successive halving with promotion (Li et al., *A System for Massively Parallel
/// Hyperparameter Tuning*, 2020).
///
/// A trial pauses at each rung. The first rung is at the fraction `first_rung` of the planned epochs, at
/// least 2; each further one is `reduction_factor` times as far. A free worker promotes the best paused trial of the
/// highest rung at which it is among the best `1 / reduction_factor`, and starts a new one if there is
/// none. Unlike the pruner of this name, a trial that is not promoted at once can be promoted later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AshaPromotion {
    /// Position of the first rung, as a fraction of the planned epochs.
    #[serde(deserialize_with = "positive_fraction")]
    pub first_rung: f64,
    /// Ratio of trials, and of epochs, between two rungs.
    #[serde(deserialize_with = "above_one")]
    pub reduction_factor: f64,
}

impl Default for AshaPromotion {
    fn default() -> AshaPromotion {
        AshaPromotion { first_rung: 1.0 / 27.0, reduction_factor: 4.0 }
    }
}

impl Scheduler for AshaPromotion {
    fn name(&self) -> &'static str {
        "asha"
    }

    fn schedule(&self, _: &Search<'_>) -> Box<dyn Schedule> {
        Box::new(Promotions {
            rungs: Rungs::new(self.first_rung, self.reduction_factor),
            curves: Curves::default(),
        })
    }
}

struct Promotions {
    rungs: Rungs,
    curves: Curves,
}

impl Schedule for Promotions {
    fn decide(&mut self, history: &ScheduleHistory) -> Decision {
        self.curves.read(history);
        let trials = history.trials();
        let planned = trials.iter().filter_map(|trial| trial.planned).max();
        let rungs = planned.map_or_else(Vec::new, |planned| self.rungs.of(planned));
        if let Some(decision) = self.curves.before_first(history, 0..trials.len(), &rungs) {
            return decision;
        }
        for pair in rungs.windows(2).rev() {
            let &[rung, next] = pair else { continue };
            let mut reached: Vec<(f64, usize)> = (0..trials.len())
                .filter_map(|number| Some((self.curves.best(number, rung)?, number)))
                .collect();
            reached.sort_by(|a, b| a.0.total_cmp(&b.0));
            reached.truncate((reached.len() as f64 / self.rungs.factor) as usize);
            let can_continue = |number: usize| {
                let trial = &trials[number];
                trial.is_paused() && trial.until < next && self.curves.is_finite(number)
            };
            if let Some((_, number)) = reached.into_iter().find(|&(_, number)| can_continue(number))
            {
                let planned = trials[number].planned.unwrap_or(next);
                return Decision::Continue { trial: number as u64, until: next.min(planned) };
            }
        }
        Decision::Start { point: None, until: rungs.first().copied().unwrap_or(1) }
    }
}

/// Epochs at which trials pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rungs {
    first: f64,
    pub(super) factor: f64,
}

impl Rungs {
    pub(super) fn new(first: f64, factor: f64) -> Rungs {
        // A factor of 1 would never terminate.
        Rungs { first, factor: factor.max(1.1) }
    }

    /// Rungs of trials with this many epochs, the end included.
    pub(super) fn of(&self, planned: u64) -> Vec<u64> {
        let mut rungs = Vec::new();
        // The first epoch says little about the last.
        let mut rung = (self.first * planned as f64).max(2.0);
        while (rung.round() as u64) < planned {
            rungs.push(rung.round() as u64);
            rung *= self.factor;
        }
        rungs.push(planned);
        rungs
    }
}

/// Lowest costs of all trials, read from a history once.
#[derive(Default)]
pub(super) struct Curves {
    read: usize,
    /// Step and lowest cost so far of each report of a trial.
    lowest: Vec<Vec<(u64, f64)>>,
    dead: Vec<bool>,
}

impl Curves {
    pub(super) fn read(&mut self, history: &ScheduleHistory) {
        let trials = history.trials().len();
        self.lowest.resize(trials, Vec::new());
        self.dead.resize(trials, false);
        for report in &history.reports()[self.read..] {
            let number = report.trial as usize;
            let before = self.lowest[number].last().map_or(f64::INFINITY, |&(_, cost)| cost);
            self.lowest[number].push((report.step, before.min(finite_or_worst(report.cost))));
            self.dead[number] |= !report.cost.is_finite();
        }
        self.read = history.reports().len();
    }

    /// Lowest cost of a trial up to a step, if it has reached it.
    pub(super) fn best(&self, number: usize, step: u64) -> Option<f64> {
        let curve = &self.lowest[number];
        let reached = curve.partition_point(|&(at, _)| at < step);
        curve.get(reached).map(|&(_, cost)| cost)
    }

    /// Continues a trial that was started before the rungs were known.
    pub(super) fn before_first(
        &self,
        history: &ScheduleHistory,
        mut trials: std::ops::Range<usize>,
        rungs: &[u64],
    ) -> Option<Decision> {
        let first = *rungs.first()?;
        let number = trials.find(|&number| {
            let trial = &history.trials()[number];
            trial.is_paused() && trial.until < first && self.is_finite(number)
        })?;
        Some(Decision::Continue { trial: number as u64, until: first })
    }

    /// True if the trial has reported no NaN or infinite cost.
    pub(super) fn is_finite(&self, number: usize) -> bool {
        !self.dead[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_spaced_geometrically_up_to_the_end() {
        let rungs = Rungs::new(1.0 / 27.0, 4.0);
        assert_eq!(rungs.of(51), [2, 8, 32, 51].map(|rung| rung.min(51)));
        assert_eq!(rungs.of(1), [1]);
        assert_eq!(rungs.of(2), [2]);
    }
}
