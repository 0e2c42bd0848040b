//! SMAC: a random forest says where an improvement can be expected.

use super::acquisition::log_improvement;
use super::draws::Draws;
use super::forest::{Forest, Growth, filled};
use super::frame::{Axis, Frame, Row};
use super::known::Known;
use super::{SampleRequest, Sampler, sobol};
use crate::space::Point;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Bayesian optimisation with a random forest (Hutter et al., *Sequential Model-Based Optimization for
/// General Algorithm Configuration*, 2011), as SMAC3 has it: log expected improvement from the mean and variance
/// over the trees, local search around the best trials, and points drawn evenly now and then.
///
/// For spaces with many choices and conditions, and costs that jump.
///
/// * Costs are drawn in where they are enormous, and apart where they are close to the best.
/// * What is worthless costs as much as the worst that is not.
/// * What runs is taken to cost the mean: a constant liar.
/// * A parameter that is not there has a value of its own, which trees can split off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smac {
    /// The search starts with points of a [Sobol](super::Sobol) sequence until so many trials are
    /// over.
    pub startup: usize,
    /// How many trees the forest has.
    pub trees: NonZeroUsize,
    /// How few trials a leaf of a tree can have.
    pub leaf: NonZeroUsize,
    /// Which share of the trials is drawn evenly, whatever the forest says.
    #[serde(deserialize_with = "super::settings::share")]
    pub interleave: f64,
    /// How many points are compared before the best of them are improved upon.
    pub candidates: NonZeroUsize,
    /// How many trials the forest is fitted to. Of more, half are the best and half the latest.
    pub trials: NonZeroUsize,
}

impl Default for Smac {
    fn default() -> Smac {
        let some = |n: usize| NonZeroUsize::MIN.saturating_add(n - 1);
        Smac {
            startup: 10,
            trees: some(30),
            leaf: some(1),
            interleave: 0.1,
            candidates: some(1000),
            trials: some(500),
        }
    }
}

/// How many of the best trials, and of the candidates, a local search starts from.
const STARTS: usize = 10;

/// How many steps a local search makes at most.
const STEPS: usize = 20;

/// The neighbours of a number: how many, and how far.
const NEIGHBOURS: usize = 4;
const DISTANCE: f64 = 0.2;

/// The least variance: all trees can agree, and an improvement still be possible.
const LEAST_VARIANCE: f64 = 1e-10;

impl Sampler for Smac {
    fn name(&self) -> &'static str {
        "smac"
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let frame = Frame::new(request.space);
        let known = Known::new(&frame, request.history, self.trials.get());
        // Of all there were, not of those that are looked at.
        if request.history.over().count() < self.startup.max(1) {
            return sobol::point(request.space, request.seed, request.number);
        }
        let mut draws = Draws::new(request.key());
        if draws.uniform() < self.interleave {
            return frame.point(&frame.random(&mut draws));
        }
        let costs = drawn_apart(&known);
        let hunt = Hunt {
            frame: &frame,
            best: costs.iter().copied().fold(f64::INFINITY, f64::min),
            forest: self.forest(&frame, request, &known, costs),
        };
        let incumbents = known.incumbents(STARTS);
        let found = hunt.best(&incumbents, self.candidates.get(), &mut draws);
        let new = found.into_iter().find(|row| !known.has(row));
        frame.point(&new.unwrap_or_else(|| frame.random(&mut draws)))
    }
}

impl Smac {
    fn forest(
        &self,
        frame: &Frame<'_>,
        request: &SampleRequest<'_>,
        known: &Known,
        mut costs: Vec<f64>,
    ) -> Forest {
        let axes = frame.axes();
        let all = known.rows.iter().chain(&known.pending);
        let rows: Vec<Row> = all.map(|row| filled(axes, row)).collect();
        let liar = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
        costs.resize(rows.len(), liar);
        let growth = Growth { trees: self.trees.get(), leaf: self.leaf.get() };
        Forest::fit(axes, &rows, &costs, growth, request.key().site(FOREST))
    }
}

/// Logarithms of how far costs are from the best: a tree describes a part of the space by its mean, and
/// without them the differences between the best would be lost in those between the worst. SMAC3 does
/// the same.
fn drawn_apart(known: &Known) -> Vec<f64> {
    let best = known.best();
    let apart = |cost: &f64| libm::log(cost - best + NEAR);
    known.costs.iter().map(apart).collect()
}

/// What is closer to the best than this, in deviations of all costs, is hardly told from it.
const NEAR: f64 = 0.1;

/// Sets the draws of the forest apart from those of the search.
const FOREST: u64 = 1;

/// The search for the point with the largest expected improvement.
struct Hunt<'a> {
    frame: &'a Frame<'a>,
    forest: Forest,
    best: f64,
}

impl Hunt<'_> {
    /// Points worth trying, best first.
    fn best(&self, incumbents: &[&Row], candidates: usize, draws: &mut Draws) -> Vec<Row> {
        let rows = (0..candidates).map(|_| self.frame.random(draws));
        let mut ranked: Vec<(f64, Row)> = rows.map(|row| (self.worth(&row), row)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut starts: Vec<(f64, Row)> = ranked.iter().take(STARTS).cloned().collect();
        starts.extend(incumbents.iter().map(|&row| (self.worth(row), row.clone())));
        for (worth, row) in starts {
            ranked.push(self.climbed(worth, row, draws));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().map(|(_, row)| row).collect()
    }

    fn worth(&self, row: &Row) -> f64 {
        let estimate = self.forest.estimate(&filled(self.frame.axes(), row));
        let deviation = libm::sqrt(estimate.variance.max(LEAST_VARIANCE));
        log_improvement(self.best, estimate.mean, deviation).log
    }

    /// Goes to the best neighbour for as long as that is better.
    fn climbed(&self, mut worth: f64, mut row: Row, draws: &mut Draws) -> (f64, Row) {
        for _ in 0..STEPS {
            let neighbours = self.neighbours(&row, draws).into_iter();
            let neighbours = neighbours.map(|row| (self.worth(&row), row));
            match neighbours.reduce(|a, b| if b.0 > a.0 { b } else { a }) {
                Some(next) if next.0 > worth => (worth, row) = next,
                _ => break,
            }
        }
        (worth, row)
    }

    /// Points that differ in one parameter.
    fn neighbours(&self, row: &Row, draws: &mut Draws) -> Vec<Row> {
        let mut neighbours = Vec::new();
        for (index, axis) in self.frame.axes().iter().enumerate() {
            let at = row[index];
            let others: Vec<f64> = match *axis {
                _ if at.is_nan() => continue,
                Axis::Choice(n) => (0..n).map(|i| i as f64).filter(|&i| i != at).collect(),
                Axis::Real | Axis::Whole => {
                    (0..NEIGHBOURS).map(|_| draws.truncated(at, DISTANCE)).collect()
                }
            };
            for other in others {
                let mut next = row.clone();
                next[index] = other;
                neighbours.push(self.frame.settled(&next, draws));
            }
        }
        neighbours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;
    use crate::space::Value;

    #[test]
    fn a_conditional_minimum_is_found() {
        let space = fixture::conditional();
        let cost = |p: &Point| match (p.get("momentum"), p.get("rate")) {
            (Some(&Value::Float(momentum)), Some(&Value::Float(rate))) => {
                (momentum - 0.9).powi(2) + 0.1 * (rate.log10() + 2.0).powi(2)
            }
            _ => 1.0,
        };
        let history = fixture::minimised(&Smac::default(), &space, 1, 40, cost);
        assert!(history.best().expect("a cost") < 0.02);
    }

    #[test]
    fn some_trials_are_drawn_evenly() {
        let space = fixture::conditional();
        let even = Smac { interleave: 1.0, ..Smac::default() };
        let never = Smac { interleave: 0.0, ..Smac::default() };
        let cost = |p: &Point| f64::from(p.get("momentum").is_none());
        let with_momentum = |sampler: &Smac| {
            let history = fixture::minimised(sampler, &space, 1, 60, cost);
            history.trials()[10..].iter().filter(|t| t.point.get("momentum").is_some()).count()
        };
        assert!((15..35).contains(&with_momentum(&even)));
        assert!(with_momentum(&never) > 40);
    }
}
