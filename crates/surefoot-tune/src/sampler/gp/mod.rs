//! Bayesian optimization with a Gaussian process.
//!
//! The `egobox-ego` crate (0.42) has about 150 dependencies and supports neither pending points nor
//! conditional parameters. A Cholesky factor, a kernel and a minimizer are a page each, with the same bits
//! on every machine.

pub(crate) mod cholesky;
pub(crate) mod embedding;
mod process;

use self::embedding::Embedding;
use self::process::{Costs, Process};
use super::acquisition::log_improvement;
use super::descent::descend;
use super::draws::Draws;
use super::frame::{Axis, Frame, Row};
use super::model_data::ModelData;
use super::{SampleRequest, Sampler, sobol};
use crate::space::Point;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Bayesian optimization with a Gaussian process: a Matérn 5/2 kernel with a length scale per parameter,
/// maximum a posteriori kernel parameters, and log expected improvement.
///
/// Suited to expensive trials and few parameters: it uses each trial best and takes longest per
/// suggestion.
///
/// * Huge costs are compressed.
/// * A failed trial has the cost of the worst. An imputed cost has more noise than a measured one.
/// * A running trial has the cost that the process predicts, so nothing is left to improve there.
/// * Choices have a length scale each. A missing parameter is in the middle of its domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gp {
    /// Number of ended trials before the model is used; until then, [Sobol](super::Sobol) points.
    pub n_startup_trials: usize,
    /// Limit on trials in the model: the best half and the latest half of more. Time grows with the cube.
    pub max_trials: NonZeroUsize,
    /// Number of candidates before local search.
    pub n_candidates: NonZeroUsize,
    /// Noise variance of imputed costs, relative to the variance of all costs.
    #[serde(deserialize_with = "crate::registry::fraction")]
    pub imputed_noise: f64,
}

impl Default for Gp {
    fn default() -> Gp {
        Gp {
            n_startup_trials: 10,
            max_trials: NonZeroUsize::MIN.saturating_add(199),
            n_candidates: NonZeroUsize::MIN.saturating_add(511),
            imputed_noise: 0.1,
        }
    }
}

/// Best trials with candidates around them, and candidates around each.
const INCUMBENTS: usize = 4;
const AROUND: usize = 24;

/// Candidates to improve by local search, rounds, and gradient steps per round.
const IMPROVED: usize = 6;
const ROUNDS: usize = 3;
const STEPS: usize = 30;

impl Sampler for Gp {
    fn name(&self) -> &'static str {
        "gp"
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let elsewhere = || sobol::point(request.space, request.seed, request.number);
        let frame = Frame::new(request.space);
        let data = ModelData::new(&frame, request.history, self.max_trials.get());
        // Counts all ended trials, not only those in the model.
        if request.history.over().count() < self.n_startup_trials.max(1) {
            return elsewhere();
        }
        let embedding = Embedding::new(&frame);
        let embedded = |rows: &[Row]| rows.iter().map(|row| embedding.of(row)).collect();
        // Standardized costs have variance 1.
        let doubt = |imputed: &bool| if *imputed { self.imputed_noise } else { 0.0 };
        let costs =
            Costs { values: data.costs.clone(), doubts: data.imputed.iter().map(doubt).collect() };
        let process = Process::fit(embedded(&data.rows), costs, frame.axes().len())
            .and_then(|process| process.believing(embedded(&data.pending)));
        let Some(process) = process else {
            return elsewhere();
        };
        let search = AcquisitionSearch {
            frame: &frame,
            embedding: &embedding,
            process: &process,
            best: data.best(),
        };
        let mut draws = Draws::new(request.key());
        let incumbents = data.incumbents(INCUMBENTS);
        let found = search.best(&incumbents, self.n_candidates.get(), &mut draws);
        match found.into_iter().find(|row| !data.has(row)) {
            Some(row) => frame.point(&row),
            None => elsewhere(),
        }
    }
}

/// Maximizes the expected improvement.
struct AcquisitionSearch<'a> {
    frame: &'a Frame<'a>,
    embedding: &'a Embedding,
    process: &'a Process,
    best: f64,
}

impl AcquisitionSearch<'_> {
    /// Candidates, best first.
    fn best(&self, incumbents: &[&Row], candidates: usize, draws: &mut Draws) -> Vec<Row> {
        let mut rows: Vec<Row> = (0..candidates).map(|_| self.frame.random(draws)).collect();
        for incumbent in incumbents {
            rows.extend((0..AROUND).map(|_| self.near(incumbent, draws)));
        }
        let mut ranked: Vec<(f64, Row)> =
            rows.into_iter().map(|row| (self.worth(&row), row)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (worth, row) in ranked.iter_mut().take(IMPROVED) {
            (*worth, *row) = self.improved(*worth, row.clone(), draws);
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().map(|(_, row)| row).collect()
    }

    fn worth(&self, row: &Row) -> f64 {
        let belief = self.process.believe(&self.embedding.of(row));
        log_improvement(self.best, belief.mean, belief.deviation).log
    }

    /// A nearby point: numbers perturbed, one choice in ten replaced.
    fn near(&self, row: &Row, draws: &mut Draws) -> Row {
        let spread = 0.2 * draws.uniform();
        let moved = row.iter().zip(self.frame.axes()).map(|(&at, axis)| match *axis {
            _ if at.is_nan() => at,
            Axis::Choice(n) if draws.uniform() < 0.1 => draws.below(n) as f64,
            Axis::Choice(_) => at,
            Axis::Real | Axis::Whole => draws.truncated(at, spread),
        });
        let moved: Row = moved.collect();
        self.frame.settled(&moved, draws)
    }

    /// Local search: numbers along the gradient and integers and choices one by one, in turns.
    fn improved(&self, mut worth: f64, mut row: Row, draws: &mut Draws) -> (f64, Row) {
        for _ in 0..ROUNDS {
            let before = worth;
            for next in [self.slid(&row, draws), self.exchanged(&row, draws)] {
                if let Some((next_worth, next)) = next.filter(|(next, _)| *next > worth) {
                    (worth, row) = (next_worth, next);
                }
            }
            if worth <= before {
                break;
            }
        }
        (worth, row)
    }

    /// Moves the numbers of a point along the gradient.
    fn slid(&self, row: &Row, draws: &mut Draws) -> Option<(f64, Row)> {
        let numbers: Vec<usize> = (0..row.len())
            .filter(|&i| !row[i].is_nan() && !matches!(self.frame.axes()[i], Axis::Choice(_)))
            .collect();
        if numbers.is_empty() {
            return None;
        }
        let start: Vec<f64> = numbers.iter().map(|&i| row[i]).collect();
        let mut point = self.embedding.of(row);
        let lowest = descend(&start, (0.0, 1.0), STEPS, |at, gradient| {
            for (&axis, &at) in numbers.iter().zip(at) {
                point[self.embedding.first(axis)] = at;
            }
            let (belief, by_mean, by_deviation) = self.process.slopes(&point);
            let improvement = log_improvement(self.best, belief.mean, belief.deviation);
            for (&axis, gradient) in numbers.iter().zip(gradient) {
                let i = self.embedding.first(axis);
                *gradient = -(improvement.by_mean * by_mean[i]
                    + improvement.by_deviation * by_deviation[i]);
            }
            -improvement.log
        });
        let mut moved = row.clone();
        for (&axis, &at) in numbers.iter().zip(&lowest.at) {
            moved[axis] = at;
        }
        let moved = self.frame.settled(&moved, draws);
        Some((self.worth(&moved), moved))
    }

    /// Best point that differs in one choice, or by 1 in one integer.
    fn exchanged(&self, row: &Row, draws: &mut Draws) -> Option<(f64, Row)> {
        let mut best: Option<(f64, Row)> = None;
        for (index, axis) in self.frame.axes().iter().enumerate() {
            let at = row[index];
            let others: Vec<f64> = match *axis {
                _ if at.is_nan() => continue,
                Axis::Real => continue,
                Axis::Whole => {
                    [-1, 1].iter().filter_map(|&by| self.frame.step(index, at, by)).collect()
                }
                Axis::Choice(n) => (0..n).map(|i| i as f64).filter(|&i| i != at).collect(),
            };
            for other in others {
                let mut next = row.clone();
                next[index] = other;
                let next = self.frame.settled(&next, draws);
                let worth = self.worth(&next);
                if best.as_ref().is_none_or(|(best, _)| worth > *best) {
                    best = Some((worth, next));
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;
    use crate::space::{Domain, Value};

    fn float(point: &Point, name: &str) -> f64 {
        match point.get(name) {
            Some(&Value::Float(x)) => x,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[test]
    fn a_smooth_minimum_is_found_in_few_trials() {
        let space = fixture::space([
            ("x", Domain::Uniform(-5.0, 5.0)),
            ("y", Domain::LogUniform(1e-3, 1e3)),
        ]);
        let cost = |p: &Point| (float(p, "x") - 1.0).powi(2) + float(p, "y").ln().powi(2);
        let history = fixture::minimized(&Gp::default(), &space, 1, 30, cost);
        assert!(history.best().expect("a cost") < 1e-2);
    }

    #[test]
    fn no_point_of_a_small_space_is_tried_twice() {
        let space =
            fixture::space([("c", fixture::words(["a", "b", "c"])), ("n", Domain::Int(1, 5))]);
        let cost = |p: &Point| match p.get("n") {
            Some(&Value::Int(n)) => (n as f64 - 3.0).powi(2),
            other => panic!("n is {other:?}"),
        };
        let history =
            fixture::minimized(&Gp { n_startup_trials: 3, ..Gp::default() }, &space, 1, 12, cost);
        let trials = &history.trials()[3..];
        for (i, trial) in trials.iter().enumerate() {
            assert!(trials[..i].iter().all(|other| other.point != trial.point));
        }
    }
}
