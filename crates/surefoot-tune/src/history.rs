//! History of trials that a sampler sees.

use crate::space::{Point, Space};
use serde::{Deserialize, Serialize};

/// What became of a trial, for those who only care how good its point is.
///
/// Lower is better: whoever maximises turns the sign before a value comes here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// It runs. A sampler should not send another one to the same place.
    Running,
    /// It reached this, which is finite: to its end, or to where it went wrong.
    Cost(f64),
    /// It was stopped, and would have come to about this, which is finite.
    Imputed(f64),
    /// It failed, or what it reached is no finite number: as bad as the worst there is.
    Failed,
}

impl TrialOutcome {
    /// The outcome of a trial that reached `cost`, whatever number that is.
    pub fn of(cost: f64) -> TrialOutcome {
        if cost.is_finite() { TrialOutcome::Cost(cost) } else { TrialOutcome::Failed }
    }

    /// The outcome of a trial that was stopped and would have come to about `cost`.
    pub fn imputed(cost: f64) -> TrialOutcome {
        if cost.is_finite() { TrialOutcome::Imputed(cost) } else { TrialOutcome::Failed }
    }

    /// What it cost, as far as is known.
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
    /// Its number in the study.
    pub number: u64,
    /// What it is run with.
    pub point: Point,
    /// What became of it.
    pub outcome: TrialOutcome,
}

/// The trials of a study, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    trials: Vec<TrialResult>,
}

impl History {
    /// A history of trials, in whatever order.
    pub fn new(mut trials: Vec<TrialResult>) -> History {
        trials.sort_by_key(|trial| trial.number);
        History { trials }
    }

    /// Adds a trial, or puts what is known of it now in the place of what was.
    pub fn tell(&mut self, result: TrialResult) {
        match self.trials.binary_search_by_key(&result.number, |trial| trial.number) {
            Ok(index) => self.trials[index] = result,
            Err(index) => self.trials.insert(index, result),
        }
    }

    /// The trials that have all parameters of a space, with those parameters only.
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

    /// Those that are over, with a cost each: what is worthless costs as much as the worst that
    /// is not, or 0 where there is none.
    pub fn over(&self) -> impl Iterator<Item = (&Point, f64)> {
        let costs = self.trials.iter().filter_map(|trial| trial.outcome.cost());
        let worst = costs.reduce(f64::max).unwrap_or(0.0);
        self.trials.iter().filter_map(move |trial| match trial.outcome {
            TrialOutcome::Cost(cost) | TrialOutcome::Imputed(cost) => Some((&trial.point, cost)),
            TrialOutcome::Failed => Some((&trial.point, worst)),
            TrialOutcome::Running => None,
        })
    }

    /// The points of trials that run.
    pub fn pending(&self) -> impl Iterator<Item = &Point> {
        let pending = self.trials.iter().filter(|t| t.outcome == TrialOutcome::Running);
        pending.map(|trial| &trial.point)
    }

    /// The lowest cost so far.
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
    fn what_is_worthless_costs_as_much_as_the_worst() {
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
    fn what_is_told_again_takes_the_place_of_what_was_known() {
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
    fn infinities_are_worthless_in_both_directions() {
        assert_eq!(TrialOutcome::of(f64::INFINITY), TrialOutcome::Failed);
        assert_eq!(TrialOutcome::of(f64::NEG_INFINITY), TrialOutcome::Failed);
    }
}
