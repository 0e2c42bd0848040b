//! What a sampler is told of the trials so far.

use crate::space::Point;
use serde::{Deserialize, Serialize};

/// What became of a trial, for those who only care how good its point is.
///
/// Lower is better: whoever maximises turns the sign before a value comes here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It runs. A sampler should not send another one to the same place.
    Pending,
    /// It reached this, which is finite: to its end, or to where it went wrong.
    Cost(f64),
    /// It was stopped, and would have come to about this, which is finite.
    Foreseen(f64),
    /// It failed, or what it reached is no finite number: as bad as the worst there is.
    Worthless,
}

impl Outcome {
    /// The outcome of a trial that reached `cost`, whatever number that is.
    pub fn of(cost: f64) -> Outcome {
        if cost.is_finite() { Outcome::Cost(cost) } else { Outcome::Worthless }
    }

    /// The outcome of a trial that was stopped and would have come to about `cost`.
    pub fn foreseen(cost: f64) -> Outcome {
        if cost.is_finite() { Outcome::Foreseen(cost) } else { Outcome::Worthless }
    }

    /// What it cost, as far as is known.
    pub fn cost(self) -> Option<f64> {
        match self {
            Outcome::Cost(cost) | Outcome::Foreseen(cost) => Some(cost),
            Outcome::Pending | Outcome::Worthless => None,
        }
    }
}

/// A trial as a sampler sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Its number in the study.
    pub number: u64,
    /// What it is run with.
    pub point: Point,
    /// What became of it.
    pub outcome: Outcome,
}

/// The trials of a study, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    trials: Vec<Told>,
}

impl History {
    /// A history of trials, in whatever order.
    pub fn new(mut trials: Vec<Told>) -> History {
        trials.sort_by_key(|trial| trial.number);
        History { trials }
    }

    /// Adds a trial, or puts what is known of it now in the place of what was.
    pub fn tell(&mut self, told: Told) {
        match self.trials.binary_search_by_key(&told.number, |trial| trial.number) {
            Ok(index) => self.trials[index] = told,
            Err(index) => self.trials.insert(index, told),
        }
    }

    /// All trials.
    pub fn trials(&self) -> &[Told] {
        &self.trials
    }

    /// Those that are over, with a cost each: what is worthless costs as much as the worst that
    /// is not, or 0 where there is none.
    pub fn over(&self) -> impl Iterator<Item = (&Point, f64)> {
        let costs = self.trials.iter().filter_map(|trial| trial.outcome.cost());
        let worst = costs.reduce(f64::max).unwrap_or(0.0);
        self.trials.iter().filter_map(move |trial| match trial.outcome {
            Outcome::Cost(cost) | Outcome::Foreseen(cost) => Some((&trial.point, cost)),
            Outcome::Worthless => Some((&trial.point, worst)),
            Outcome::Pending => None,
        })
    }

    /// The points of trials that run.
    pub fn pending(&self) -> impl Iterator<Item = &Point> {
        let pending = self.trials.iter().filter(|t| t.outcome == Outcome::Pending);
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

    fn told(number: u64, outcome: Outcome) -> Told {
        Told { number, point: Point::default(), outcome }
    }

    #[test]
    fn what_is_worthless_costs_as_much_as_the_worst() {
        let history = History::new(vec![
            told(2, Outcome::of(f64::NAN)),
            told(0, Outcome::of(1.0)),
            told(3, Outcome::Pending),
            told(1, Outcome::of(5.0)),
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
            history.tell(told(number, Outcome::Pending));
        }
        history.tell(told(1, Outcome::Cost(0.5)));
        let expected =
            vec![told(0, Outcome::Pending), told(1, Outcome::Cost(0.5)), told(2, Outcome::Pending)];
        assert_eq!(history, History::new(expected));
    }

    #[test]
    fn infinities_are_worthless_in_both_directions() {
        assert_eq!(Outcome::of(f64::INFINITY), Outcome::Worthless);
        assert_eq!(Outcome::of(f64::NEG_INFINITY), Outcome::Worthless);
    }
}
