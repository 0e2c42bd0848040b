//! History of trials that a sampler sees.

use crate::space::{Point, Space};
use serde::{Deserialize, Serialize};

/// Outcome of a trial as a cost. Lower is better; maximized values have their sign changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// Still running. Samplers avoid the same point.
    Running,
    /// Finite cost, at its end or when an indicator stopped it.
    Cost(f64),
    /// Pruned, with this imputed final cost, which is finite.
    Imputed(f64),
    /// Failed, or the cost is not finite. Counts as the worst finite cost.
    Failed,
}

impl TrialOutcome {
    /// Outcome of a trial with any cost.
    pub fn of(cost: f64) -> TrialOutcome {
        if cost.is_finite() { TrialOutcome::Cost(cost) } else { TrialOutcome::Failed }
    }

    /// Outcome of a pruned trial with an imputed cost.
    pub fn imputed(cost: f64) -> TrialOutcome {
        if cost.is_finite() { TrialOutcome::Imputed(cost) } else { TrialOutcome::Failed }
    }

    /// The measured or imputed cost.
    pub fn cost(self) -> Option<f64> {
        match self {
            TrialOutcome::Cost(cost) | TrialOutcome::Imputed(cost) => Some(cost),
            TrialOutcome::Running | TrialOutcome::Failed => None,
        }
    }
}

/// A trial as a sampler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Number in the study.
    pub number: u64,
    /// Parameter values.
    pub point: Point,
    /// Outcome.
    pub outcome: TrialOutcome,
}

/// The trials of a study, sorted by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    trials: Vec<TrialResult>,
}

impl History {
    /// Creates a history from trials in any order.
    pub fn new(mut trials: Vec<TrialResult>) -> History {
        trials.sort_by_key(|trial| trial.number);
        History { trials }
    }

    /// Adds or replaces a trial.
    pub fn tell(&mut self, result: TrialResult) {
        match self.trials.binary_search_by_key(&result.number, |trial| trial.number) {
            Ok(index) => self.trials[index] = result,
            Err(index) => self.trials.insert(index, result),
        }
    }

    /// The trials that have all parameters of a space, reduced to those parameters.
    pub fn project(&self, space: &Space) -> History {
        let project = |trial: &TrialResult| {
            let mut point = Point::default();
            for parameter in space.parameters() {
                let value = trial.point.get(&parameter.name)?;
                let value = Some(value).filter(|value| parameter.domain.contains(value))?;
                point.0.insert(parameter.name.clone(), value.clone());
            }
            Some(TrialResult { number: trial.number, point, outcome: trial.outcome })
        };
        History { trials: self.trials.iter().filter_map(project).collect() }
    }

    /// All trials.
    pub fn trials(&self) -> &[TrialResult] {
        &self.trials
    }

    /// Points and costs of ended trials. Failed trials have the worst finite cost, or 0 if there is none.
    pub fn over(&self) -> impl Iterator<Item = (&Point, f64)> {
        let costs = self.trials.iter().filter_map(|trial| trial.outcome.cost());
        let worst = costs.reduce(f64::max).unwrap_or(0.0);
        self.trials.iter().filter_map(move |trial| match trial.outcome {
            TrialOutcome::Cost(cost) | TrialOutcome::Imputed(cost) => Some((&trial.point, cost)),
            TrialOutcome::Failed => Some((&trial.point, worst)),
            TrialOutcome::Running => None,
        })
    }

    /// Points of running trials.
    pub fn pending(&self) -> impl Iterator<Item = &Point> {
        let pending = self.trials.iter().filter(|t| t.outcome == TrialOutcome::Running);
        pending.map(|trial| &trial.point)
    }

    /// Lowest cost.
    pub fn best(&self) -> Option<f64> {
        let costs = self.trials.iter().filter_map(|trial| trial.outcome.cost());
        costs.reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(number: u64, outcome: TrialOutcome) -> TrialResult {
        TrialResult { number, point: Point::default(), outcome }
    }

    #[test]
    fn failed_trials_have_the_worst_cost() {
        let history = History::new(vec![
            result(2, TrialOutcome::of(f64::NAN)),
            result(0, TrialOutcome::of(1.0)),
            result(3, TrialOutcome::Running),
            result(1, TrialOutcome::of(5.0)),
        ]);
        let costs: Vec<f64> = history.over().map(|(_, cost)| cost).collect();
        assert_eq!(costs, [1.0, 5.0, 5.0]);
        assert_eq!(history.best(), Some(1.0));
        assert_eq!(history.pending().count(), 1);
    }

    #[test]
    fn a_trial_is_replaced_by_its_number() {
        let mut history = History::default();
        for number in [2, 0, 1] {
            history.tell(result(number, TrialOutcome::Running));
        }
        history.tell(result(1, TrialOutcome::Cost(0.5)));
        let expected = vec![
            result(0, TrialOutcome::Running),
            result(1, TrialOutcome::Cost(0.5)),
            result(2, TrialOutcome::Running),
        ];
        assert_eq!(history, History::new(expected));
    }

    #[test]
    fn infinite_costs_are_failures() {
        assert_eq!(TrialOutcome::of(f64::INFINITY), TrialOutcome::Failed);
        assert_eq!(TrialOutcome::of(f64::NEG_INFINITY), TrialOutcome::Failed);
    }
}
