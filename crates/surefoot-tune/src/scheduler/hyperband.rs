//! Hyperband with promotion.

use super::asha::{Curves, Rungs};
use super::{Decision, Schedule, ScheduleHistory, Scheduler, Search};
use crate::registry::{above_one, positive_fraction};
use serde::{Deserialize, Serialize};

/// Hyperband (Li et al., 2018): successive halving in brackets, each with a later first rung. Promoted
/// trials continue.
///
/// A bracket starts a number of trials and promotes the best `1 / reduction_factor` of a rung once all of them
/// have reached it. A worker that would have to wait starts the next bracket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HyperbandPromotion {
    /// Position of the first rung of the first bracket, as a fraction of the planned epochs.
    #[serde(deserialize_with = "positive_fraction")]
    pub first_rung: f64,
    /// Ratio of trials, and of epochs, between two rungs.
    #[serde(deserialize_with = "above_one")]
    pub reduction_factor: f64,
}

impl Default for HyperbandPromotion {
    fn default() -> HyperbandPromotion {
        HyperbandPromotion { first_rung: 1.0 / 27.0, reduction_factor: 3.0 }
    }
}

impl Scheduler for HyperbandPromotion {
    fn name(&self) -> &'static str {
        "hyperband"
    }

    fn schedule(&self, _: &Search<'_>) -> Box<dyn Schedule> {
        let rungs = Rungs::new(self.first_rung, self.reduction_factor);
        Box::new(Brackets { rungs, curves: Curves::default() })
    }
}

struct Brackets {
    rungs: Rungs,
    curves: Curves,
}

impl Schedule for Brackets {
    fn decide(&mut self, history: &ScheduleHistory) -> Decision {
        self.curves.read(history);
        let planned = history.trials().iter().filter_map(|trial| trial.planned).max();
        let Some(planned) = planned else {
            return Decision::Start { point: None, until: 1 };
        };
        let rungs = self.rungs.of(planned);
        let mut first = 0;
        for bracket in 0.. {
            let all = rungs.len();
            let rungs = &rungs[bracket % all..];
            let size = self.size(rungs.len(), all);
            let started = history.trials().len().saturating_sub(first).min(size);
            if let Some(decision) = self.promote(history, first..first + started, size, rungs) {
                return decision;
            }
            if started < size {
                return Decision::Start { point: None, until: rungs[0] };
            }
            first += size;
        }
        Decision::Wait
    }
}

impl Brackets {
    /// Trials of a bracket with `rungs` of `all` rungs: the same budget for every bracket.
    fn size(&self, rungs: usize, all: usize) -> usize {
        let share = all as f64 / rungs as f64;
        (share * libm::pow(self.rungs.factor, (rungs - 1) as f64)).ceil() as usize
    }

    /// The next promotion in a bracket, if a rung is complete.
    fn promote(
        &self,
        history: &ScheduleHistory,
        started: std::ops::Range<usize>,
        size: usize,
        rungs: &[u64],
    ) -> Option<Decision> {
        let trials = history.trials();
        if let Some(decision) = self.curves.before_first(history, started.clone(), rungs) {
            return Some(decision);
        }
        let mut members: Vec<usize> = started.collect();
        if members.len() < size {
            return None;
        }
        for pair in rungs.windows(2) {
            let &[rung, next] = pair else { continue };
            let is_there = |&number: &usize| {
                trials[number].steps >= rung
                    || trials[number].is_over
                    || !self.curves.is_finite(number)
            };
            if !members.iter().all(is_there) {
                return None;
            }
            let cost = |number: &usize| self.curves.best(*number, rung).unwrap_or(f64::INFINITY);
            members.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.cmp(b)));
            let promoted = (members.len() as f64 / self.rungs.factor).max(1.0) as usize;
            members.truncate(promoted);
            let can_continue = |number: &&usize| {
                let trial = &trials[**number];
                trial.is_paused() && trial.until < next && self.curves.is_finite(**number)
            };
            if let Some(&number) = members.iter().find(can_continue) {
                let planned = trials[number].planned.unwrap_or(next);
                return Some(Decision::Continue { trial: number as u64, until: next.min(planned) });
            }
        }
        None
    }
}
