//! A Gaussian process: try the point from which the largest improvement can be expected.
//!
//! Written here rather than built on `egobox-ego` 0.42. That crate brings about a hundred and fifty
//! others, among them a command line parser, a signal handler and a logger; takes no pending points, and knows
//! no conditional parameters. What is needed of a Gaussian process here is a Cholesky factor, a kernel and a
//! descent, a page each; with them an answer has the same bits on every machine and takes account of
//! what runs.

mod cholesky;
mod embedding;
mod process;

use self::embedding::Embedding;
use self::process::{Costs, Process};
use super::acquisition::log_improvement;
use super::descent::descend;
use super::draws::Draws;
use super::frame::{Axis, Frame, Row};
use super::known::Known;
use super::{SampleRequest, Sampler, sobol};
use crate::space::Point;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Bayesian optimisation with a Gaussian process: a Matérn 5/2 kernel with a length scale for each
/// parameter, the likeliest scales under weak beliefs, and the logarithm of expected improvement.
///
/// For trials that are expensive and parameters that are few: it makes the most of each trial, and takes
/// longest to answer.
///
/// * Costs are drawn in where they are enormous: they must not flatten everything else.
/// * What is worthless costs as much as the worst that is not.
/// * What was stopped, and is only imputed, is believed less than what was measured.
/// * What runs is believed to cost what the process expects, which leaves nothing to expect there.
/// * Different choices are apart, each by its own distance. A parameter that is not there is as if in the middle of its
///   domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gp {
    /// The search starts with points of a [Sobol](super::Sobol) sequence until so many trials are
    /// over.
    pub startup: usize,
    /// How many trials the process is fitted to. Time grows with the cube. Of more, half are the
    /// best and half the latest.
    pub trials: NonZeroUsize,
    /// How many points are compared before the best of them are improved upon.
    pub candidates: NonZeroUsize,
    /// The variance of the error of what is imputed, as a share of that of all costs.
    #[serde(deserialize_with = "super::settings::share")]
    pub doubt: f64,
}

impl Default for Gp {
    fn default() -> Gp {
        Gp {
            startup: 10,
            trials: NonZeroUsize::MIN.saturating_add(199),
            candidates: NonZeroUsize::MIN.saturating_add(511),
            doubt: 0.1,
        }
    }
}

/// How many of the best trials have candidates drawn around them, and how many each.
const INCUMBENTS: usize = 4;
const AROUND: usize = 24;

/// How many of the candidates are improved upon, for how many rounds of how many steps.
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
        let known = Known::new(&frame, request.history, self.trials.get());
        // Of all there were, not of those that are looked at.
        if request.history.over().count() < self.startup.max(1) {
            return elsewhere();
        }
        let embedding = Embedding::new(&frame);
        let embedded = |rows: &[Row]| rows.iter().map(|row| embedding.of(row)).collect();
        // Costs in their shape have variance 1.
        let doubt = |imputed: &bool| if *imputed { self.doubt } else { 0.0 };
        let costs = Costs {
            values: known.costs.clone(),
            doubts: known.imputed.iter().map(doubt).collect(),
        };
        let process = Process::fit(embedded(&known.rows), costs, frame.axes().len())
            .and_then(|process| process.believing(embedded(&known.pending)));
        let Some(process) = process else {
            return elsewhere();
        };
        let hunt =
            Hunt { frame: &frame, embedding: &embedding, process: &process, best: known.best() };
        let mut draws = Draws::new(request.key());
        let incumbents = known.incumbents(INCUMBENTS);
        let found = hunt.best(&incumbents, self.candidates.get(), &mut draws);
        match found.into_iter().find(|row| !known.has(row)) {
            Some(row) => frame.point(&row),
            None => elsewhere(),
        }
    }
}

/// The search for the point with the largest expected improvement.
struct Hunt<'a> {
    frame: &'a Frame<'a>,
    embedding: &'a Embedding,
    process: &'a Process,
    best: f64,
}

impl Hunt<'_> {
    /// Points worth trying, best first.
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

    /// A point close to another: numbers moved a little, one choice in ten another.
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

    /// Climbs from a point: numbers along the gradient, then whole numbers and choices one by one, by turns.
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

    /// The point where the numbers of this one end up along the gradient.
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

    /// The best point that differs in one choice, or by one in one whole number.
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
        let history = fixture::minimised(&Gp::default(), &space, 1, 30, cost);
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
        let history = fixture::minimised(&Gp { startup: 3, ..Gp::default() }, &space, 1, 12, cost);
        let trials = &history.trials()[3..];
        for (i, trial) in trials.iter().enumerate() {
            assert!(trials[..i].iter().all(|other| other.point != trial.point));
        }
    }
}
