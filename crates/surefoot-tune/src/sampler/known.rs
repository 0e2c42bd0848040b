//! What is known of a study, as a model takes it.

use super::frame::{Frame, Row, same};
use super::shape::shaped;
use crate::history::{History, TrialOutcome, TrialResult};

/// The trials that a model is fitted to.
pub(super) struct Known {
    /// Those that are over.
    pub(super) rows: Vec<Row>,
    /// What each of them counts for, in the [shape](shaped) that models can take.
    pub(super) costs: Vec<f64>,
    /// Whether that is no more than imputed.
    pub(super) imputed: Vec<bool>,
    /// Those that run.
    pub(super) pending: Vec<Row>,
}

impl Known {
    /// All trials, or as many as `most` of those that are over and of those that run.
    pub(super) fn new(frame: &Frame<'_>, history: &History, most: usize) -> Known {
        let over = best_and_latest(history, most);
        let outcomes: Vec<TrialOutcome> = over.iter().map(|trial| trial.outcome).collect();
        let pending: Vec<Row> = history.pending().map(|point| frame.row(point)).collect();
        let first = pending.len().saturating_sub(most);
        Known {
            rows: over.iter().map(|trial| frame.row(&trial.point)).collect(),
            costs: shaped(&outcomes).into_iter().flatten().collect(),
            imputed: outcomes.iter().map(is_imputed).collect(),
            pending: pending[first..].to_vec(),
        }
    }

    /// The lowest cost.
    pub(super) fn best(&self) -> f64 {
        self.costs.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The trials that cost least, best first.
    pub(super) fn incumbents(&self, most: usize) -> Vec<&Row> {
        let mut by_cost: Vec<usize> = (0..self.rows.len()).collect();
        by_cost.sort_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b]).then(a.cmp(&b)));
        by_cost.iter().take(most).map(|&i| &self.rows[i]).collect()
    }

    /// Whether a point was tried, or is being tried.
    pub(super) fn has(&self, row: &Row) -> bool {
        let mut rows = self.rows.iter().chain(&self.pending);
        rows.any(|other| same(row, other))
    }
}

/// The trials that are over; where they are more than `most`, the best of them and the latest, half
/// and half. By number.
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
    fn many_trials_are_cut_down_to_the_best_and_the_latest() {
        let space = fixture::conditional();
        let outcomes: Vec<TrialOutcome> =
            (0..50).map(|i| TrialOutcome::Cost(f64::from(i))).collect();
        let history = History::new(fixture::history(&space, 1, &outcomes));
        let numbers: Vec<u64> = best_and_latest(&history, 6).iter().map(|t| t.number).collect();
        assert_eq!(numbers, [0, 1, 2, 47, 48, 49]);
    }
}
