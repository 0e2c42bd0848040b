//! Sweeps over options, chosen on one part of a record and reported on the rest.

use super::draw::{Order, measure};
use super::record::Task;
use super::tally::Tally;
use crate::pruner::{PruningConfig, PruningConfigError};
use std::str::FromStr;

/// Values to try for one option.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Key, as in [`PruningConfig::with`].
    pub key: String,
    /// Values.
    pub values: Vec<f64>,
}

impl FromStr for Axis {
    type Err = PruningConfigError;

    /// Parses `prospect.quantile=0.1,0.2`.
    fn from_str(text: &str) -> Result<Axis, PruningConfigError> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let fail = |message: String| PruningConfigError { key: key.to_owned(), message };
        let number = |value: &str| {
            let parsed = value.trim().parse::<f64>().ok().filter(|v| v.is_finite());
            parsed.ok_or_else(|| fail(format!("`{value}` is not a number; write `{key}=0.1,0.2`")))
        };
        Ok(Axis {
            key: key.trim().to_owned(),
            values: values.split(',').map(number).collect::<Result<_, _>>()?,
        })
    }
}

/// Least fraction of trials that must be kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Fraction of the best trials, on every task.
    pub top: f64,
    /// Fraction of the studies that keep their best trial, over all tasks.
    pub best: f64,
}

impl Default for Floor {
    /// Slightly above the goals for unseen tasks, 90% and 99%.
    fn default() -> Self {
        Self { top: 0.92, best: 0.99 }
    }
}

/// A combination of values with its result on the development part.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// One value per axis.
    pub values: Vec<f64>,
    /// Tally of each task.
    pub tallies: Vec<Tally>,
}

impl Tried {
    /// Tally of all tasks.
    pub fn total(&self) -> Tally {
        total(&self.tallies)
    }

    fn holds(&self, floor: &Floor) -> bool {
        let least = self.tallies.iter().map(Tally::top_share).fold(1.0, f64::min);
        least >= floor.top && self.total().best_share() >= floor.best
    }
}

/// Result of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// All combinations in grid order.
    pub tried: Vec<Tried>,
    /// Index of the chosen combination.
    pub chosen: usize,
    /// True if it meets the floor on the development part.
    pub holds: bool,
    /// The rules with the chosen values.
    pub settings: PruningConfig,
    /// Tallies on the held-out rest, by task.
    pub rest: Vec<Tally>,
}

/// Tries every combination of values on `development`, chooses the one that saves most among those that
/// meet `floor` (or, if none does, the one that keeps most), and measures it on `rest`.
pub fn sweep(
    development: &[Task],
    rest: &[Task],
    order: &Order,
    base: &PruningConfig,
    axes: &[Axis],
    floor: &Floor,
) -> Result<Sweep, PruningConfigError> {
    let mut tried = Vec::new();
    for values in grid(axes) {
        let settings = apply(base, axes, &values)?;
        let tallies = development.iter().map(|task| measure(task, order, &settings));
        tried.push(Tried { tallies: tallies.collect(), values });
    }
    let score = |tried: &Tried| {
        let total = tried.total();
        match tried.holds(floor) {
            true => (1.0, total.saved(), 0.0),
            false => (0.0, total.best_share() + total.top_share(), total.saved()),
        }
    };
    let mut chosen = 0;
    for i in 1..tried.len() {
        // The first of equals stays.
        if score(&tried[i]) > score(&tried[chosen]) {
            chosen = i;
        }
    }
    let settings = apply(base, axes, &tried[chosen].values)?;
    let rest = rest.iter().map(|task| measure(task, order, &settings));
    Ok(Sweep { holds: tried[chosen].holds(floor), rest: rest.collect(), chosen, settings, tried })
}

/// Splits a record in two: every other task, or every other trial of a single task.
pub fn split(tasks: &[Task]) -> (Vec<Task>, Vec<Task>) {
    let every_other = |parity: usize| move |(i, _): &(usize, _)| i % 2 == parity;
    match tasks {
        [one] => {
            let half = |parity: usize| {
                let trials = one.trials.iter().cloned().enumerate();
                vec![Task {
                    name: one.name.clone(),
                    trials: trials.filter(|(i, _)| i % 2 == parity).map(|(_, t)| t).collect(),
                }]
            };
            (half(0), half(1))
        }
        _ => {
            let half = |parity: usize| {
                let tasks = tasks.iter().cloned().enumerate();
                tasks.filter(every_other(parity)).map(|(_, task)| task).collect()
            };
            (half(0), half(1))
        }
    }
}

/// Sum over all tasks.
fn total(tallies: &[Tally]) -> Tally {
    tallies.iter().fold(Tally::default(), |mut sum, tally| {
        sum.add(tally);
        sum
    })
}

/// Every combination of values, the last axis changing fastest.
fn grid(axes: &[Axis]) -> Vec<Vec<f64>> {
    axes.iter().fold(vec![Vec::new()], |grid, axis| {
        let extended = grid.iter().flat_map(|values| {
            axis.values.iter().map(move |value| [values.as_slice(), &[*value]].concat())
        });
        extended.collect()
    })
}

fn apply(
    base: &PruningConfig,
    axes: &[Axis],
    values: &[f64],
) -> Result<PruningConfig, PruningConfigError> {
    let mut pairs = axes.iter().zip(values);
    pairs.try_fold(base.clone(), |settings, (axis, value)| settings.with(&axis.key, *value))
}

#[cfg(test)]
mod tests {
    use super::super::record::RecordedTrial;
    use super::*;
    use crate::pruner::{Median, PrunerConfig};

    /// Final costs in the order of initial ones, except that the best trial starts as the worst.
    fn task(name: &str) -> Task {
        let trials = (0..20).map(|i| {
            let level = 1.0 + f64::from((i * 7) % 20) / 10.0;
            let mut costs = vec![level; 20];
            if level == 1.0 {
                costs[..8].fill(5.0);
            }
            RecordedTrial::from_losses(&costs, &costs)
        });
        Task { name: name.to_owned(), trials: trials.skip(1).collect() }
    }

    fn late_bloomer(name: &str) -> Task {
        let mut task = task(name);
        let mut costs = vec![0.5; 20];
        costs[..8].fill(5.0);
        task.trials.push(RecordedTrial::from_losses(&costs, &costs));
        task
    }

    #[test]
    fn the_choice_saves_most_among_those_that_keep_enough() {
        let base = PruningConfig::only(PrunerConfig::new(Median::default()));
        let axes = ["median.warmup=0.2,0.45,0.6".parse().unwrap()];
        let floor = Floor { top: 0.5, best: 0.99 };
        let (dev, rest) = ([late_bloomer("a")], [late_bloomer("b")]);
        let sweep = sweep(&dev, &rest, &Order::Recorded, &base, &axes, &floor).unwrap();
        assert_eq!(sweep.tried.len(), 3);
        assert!(sweep.holds);
        assert_eq!(sweep.tried[sweep.chosen].values, [0.45]);
        assert_eq!(sweep.rest.len(), 1);
        assert_eq!(sweep.rest[0].best_share(), 1.0);
        assert!(sweep.tried[0].total().saved() > sweep.tried[1].total().saved());
    }

    #[test]
    fn an_unmet_floor_is_reported() {
        let base = PruningConfig::only(PrunerConfig::new(Median::default()));
        let axes = ["median.warmup=0.1,0.2".parse().unwrap()];
        let dev = [late_bloomer("a")];
        let floor = Floor::default();
        let sweep = sweep(&dev, &[], &Order::Recorded, &base, &axes, &floor).unwrap();
        assert!(!sweep.holds);
    }

    #[test]
    fn the_parts_of_a_record_do_not_overlap() {
        let (a, b) = split(&[task("one")]);
        assert_eq!((a[0].trials.len(), b[0].trials.len()), (10, 9));
        let (a, b) = split(&[task("a"), task("b"), task("c")]);
        let names = |tasks: &[Task]| tasks.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&a), names(&b)), (vec!["a".into(), "c".into()], vec!["b".into()]));
    }

    #[test]
    fn a_grid_has_every_combination() {
        let axes: [Axis; 2] = ["plc=1,2".parse().unwrap(), "erg=3,4".parse().unwrap()];
        let combinations = [[1.0, 3.0], [1.0, 4.0], [2.0, 3.0], [2.0, 4.0]];
        assert_eq!(grid(&axes), combinations.map(Vec::from));
        assert_eq!(grid(&[]), [Vec::<f64>::new()]);
    }

    #[test]
    fn an_invalid_axis_is_rejected() {
        assert!("plc".parse::<Axis>().is_err());
        assert!("plc=1,much".parse::<Axis>().unwrap_err().to_string().contains("`much`"));
        let axes = ["plk=1".parse().unwrap()];
        let error =
            sweep(&[], &[], &Order::Recorded, &PruningConfig::default(), &axes, &Floor::default());
        assert!(error.is_err());
    }
}
