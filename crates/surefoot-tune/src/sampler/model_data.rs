//! Input of the model-based samplers.

use super::frame::{Frame, Row, same};
use super::shape::shaped;
use crate::history::{History, TrialOutcome, TrialResult};

/// The trials that a model is fitted to.
pub(super) struct ModelData {
    /// Points of ended trials.
    pub(super) rows: Vec<Row>,
    /// Their [standardized](shaped) costs.
    pub(super) costs: Vec<f64>,
    /// True for imputed costs.
    pub(super) imputed: Vec<bool>,
    /// Points of running trials.
    pub(super) pending: Vec<Row>,
}

impl ModelData {
    /// Takes at most `most` ended and `most` running trials.
    pub(super) fn new(frame: &Frame<'_>, history: &History, most: usize) -> ModelData {
        let over = best_and_latest(history, most);
        let outcomes: Vec<TrialOutcome> = over.iter().map(|trial| trial.outcome).collect();
        let pending: Vec<Row> = history.pending().map(|point| frame.row(point)).collect();
        let first = pending.len().saturating_sub(most);
        ModelData {
            rows: over.iter().map(|trial| frame.row(&trial.point)).collect(),
            costs: shaped(&outcomes).into_iter().flatten().collect(),
            imputed: outcomes.iter().map(is_imputed).collect(),
            pending: pending[first..].to_vec(),
        }
    }

    pub(super) fn best(&self) -> f64 {
        self.costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Points of the best trials, best first.
    pub(super) fn incumbents(&self, most: usize) -> Vec<&Row> {
        let mut by_cost: Vec<usize> = (0..self.rows.len()).collect();
        by_cost.sort_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b]).then(a.cmp(&b)));
        by_cost.iter().take(most).map(|&i| &self.rows[i]).collect()
    }

    /// True if the point was tried or is running.
    pub(super) fn has(&self, row: &Row) -> bool {
        let mut rows = self.rows.iter().chain(&self.pending);
        rows.any(|other| same(row, other))
    }
}

/// Ended trials by number; of more than `most`, the best half and the latest half.
fn best_and_latest(history: &History, most: usize) -> Vec<&TrialResult> {
    let over = history.trials().iter();
    let mut over: Vec<&TrialResult> = over.filter(|t| t.outcome != TrialOutcome::Running).collect();
    if over.len() <= most {
        return over;
    }
    let mut latest = over.split_off(over.len() - most.div_ceil(2));
    over.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.number.cmp(&b.number)));
    over.truncate(most / 2);
    over.append(&mut latest);
    over.sort_by_key(|trial| trial.number);
    over
}

fn is_imputed(outcome: &TrialOutcome) -> bool {
    matches!(outcome, TrialOutcome::Imputed(_))
}

fn cost(trial: &TrialResult) -> f64 {
    trial.outcome.cost().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;

    #[test]
    fn the_best_and_the_latest_trials_are_kept() {
        let space = fixture::conditional();
        let outcomes: Vec<TrialOutcome> =
            (0..50).map(|i| TrialOutcome::Cost(f64::from(i))).collect();
        let history = History::new(fixture::history(&space, 1, &outcomes));
        let numbers: Vec<u64> = best_and_latest(&history, 6).iter().map(|t| t.number).collect();
        assert_eq!(numbers, [0, 1, 2, 47, 48, 49]);
    }
}
