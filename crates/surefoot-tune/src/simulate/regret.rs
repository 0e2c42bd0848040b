//! Regret of simulated searches.

use super::schedule::SearchedEpoch;
use super::search::TrialTable;
use serde::Serialize;

/// Budgets at which the regret is measured, in epochs of a task with trials of equal length.
pub const BUDGETS: [f64; 4] = [100.0, 200.0, 500.0, 1000.0];

/// Full trainings of the random search that others are compared with.
const RANDOM_TRAININGS: f64 = 20.0;

/// Scale of the costs of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegretScale {
    best: f64,
    width: f64,
    /// Epochs of a full training.
    training: f64,
}

impl RegretScale {
    /// Scale of the recorded trials: 0 is the lowest cost, 1 the median of the final costs.
    pub fn of(table: &TrialTable) -> Option<RegretScale> {
        let costs = |trial: usize| table.record(trial).epochs.iter().map(|epoch| epoch.cost);
        let all = (0..table.len()).flat_map(costs);
        let best = all.filter(|cost| cost.is_finite()).reduce(f64::min)?;
        let last = (0..table.len()).filter_map(|trial| costs(trial).next_back());
        let finite = |cost: f64| if cost.is_finite() { cost } else { f64::INFINITY };
        let mut last: Vec<f64> = last.map(finite).collect();
        last.sort_by(f64::total_cmp);
        let median =
            last.get(last.len() / 2).copied().filter(|cost| cost.is_finite() && *cost > best)?;
        let epochs = (0..table.len()).map(|trial| table.record(trial).epochs.len());
        Some(RegretScale { best, width: median - best, training: epochs.max()? as f64 })
    }

    /// Epochs of a full training.
    pub fn training(&self) -> f64 {
        self.training
    }

    /// Epochs of the random search that others are compared with.
    pub fn limit(&self) -> f64 {
        RANDOM_TRAININGS * self.training
    }

    /// Regret of a search after this effort: of all epochs, or of finished trainings only. 1 if there are none.
    pub fn regret(&self, search: &[SearchedEpoch], spent: f64, finished: bool) -> f64 {
        let mut lowest = vec![];
        let mut best = f64::INFINITY;
        for epoch in search.iter().take_while(|epoch| epoch.spent <= spent) {
            if !finished {
                best = best.min(if epoch.cost.is_finite() { epoch.cost } else { f64::INFINITY });
                continue;
            }
            // A training counts with its lowest cost.
            if lowest.len() <= epoch.trial {
                lowest.resize(epoch.trial + 1, f64::INFINITY);
            }
            if epoch.cost < lowest[epoch.trial] {
                lowest[epoch.trial] = epoch.cost;
            }
            if epoch.is_last {
                best = best.min(lowest[epoch.trial]);
            }
        }
        if best.is_finite() { ((best - self.best) / self.width).min(1.0) } else { 1.0 }
    }

    /// Spent effort at which a search has reached a regret, at most `limit`.
    fn reached(&self, search: &[SearchedEpoch], regret: f64, limit: f64) -> f64 {
        let cost = self.best + regret * self.width;
        let found = search.iter().find(|epoch| epoch.cost <= cost);
        found.map_or(limit, |epoch| epoch.spent.min(limit))
    }
}

/// Mean results of a method on one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regrets {
    /// Number of searches.
    pub searches: usize,
    /// Regret at each of the [`BUDGETS`].
    pub regret: [f64; 4],
    /// Regret that counts finished trainings only.
    pub finished: [f64; 4],
    /// Effort saved until the mean best cost of random search with 20 trainings is reached.
    pub tsba: f64,
}

impl Regrets {
    /// Compares searches with random searches on the same task.
    pub fn of(
        scale: &RegretScale,
        searches: &[Vec<SearchedEpoch>],
        random: &[Vec<SearchedEpoch>],
    ) -> Regrets {
        let mean = |of: &dyn Fn(&[SearchedEpoch]) -> f64, searches: &[Vec<SearchedEpoch>]| {
            searches.iter().map(|search| of(search)).sum::<f64>() / searches.len().max(1) as f64
        };
        let limit = scale.limit();
        let target = mean(&|search| scale.regret(search, limit, false), random);
        let at = |finished: bool| {
            BUDGETS.map(|budget| mean(&|search| scale.regret(search, budget, finished), searches))
        };
        Regrets {
            searches: searches.len(),
            regret: at(false),
            finished: at(true),
            tsba: 1.0 - mean(&|search| scale.reached(search, target, limit), searches) / limit,
        }
    }

    /// Mean over tasks.
    pub fn mean(tasks: &[Regrets]) -> Regrets {
        let mean = |of: &dyn Fn(&Regrets) -> f64| {
            tasks.iter().map(of).sum::<f64>() / tasks.len().max(1) as f64
        };
        Regrets {
            searches: tasks.iter().map(|task| task.searches).sum(),
            regret: std::array::from_fn(|i| mean(&|task| task.regret[i])),
            finished: std::array::from_fn(|i| mean(&|task| task.finished[i])),
            tsba: mean(&|task| task.tsba),
        }
    }
}
