//! SMAC: Bayesian optimization with a random forest.

use super::acquisition::log_improvement;
use super::draws::Draws;
use super::forest::{Forest, Growth, filled};
use super::frame::{Axis, Frame, Row};
use super::model_data::ModelData;
use super::{SampleRequest, Sampler, sobol};
use crate::space::Point;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Bayesian optimization with a random forest (Hutter et al., *Sequential Model-Based Optimization for
/// General Algorithm Configuration*, 2011), as in SMAC3: log expected improvement from the mean and
/// variance over the trees, local search around the best trials, and interleaved random points.
///
/// Suited to spaces with many choices and conditions, and to discontinuous costs.
///
/// * Huge costs are compressed, and differences near the best are spread.
/// * A failed trial has the cost of the worst. A running trial has the mean cost (constant liar).
/// * A missing parameter has a separate value that trees can split on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smac {
    /// Number of ended trials before the model is used; until then, [Sobol](super::Sobol) points.
    pub n_startup_trials: usize,
    /// Number of trees.
    pub n_trees: NonZeroUsize,
    /// Fewest trials in a leaf.
    pub min_samples_leaf: NonZeroUsize,
    /// Fraction of the trials that is drawn at random.
    #[serde(deserialize_with = "crate::registry::fraction")]
    pub random_fraction: f64,
    /// Number of candidates before local search.
    pub n_candidates: NonZeroUsize,
    /// Limit on trials in the model: the best half and the latest half of more.
    pub max_trials: NonZeroUsize,
}

impl Default for Smac {
    fn default() -> Smac {
        let some = |n: usize| NonZeroUsize::MIN.saturating_add(n - 1);
        Smac {
            n_startup_trials: 10,
            n_trees: some(30),
            min_samples_leaf: some(1),
            random_fraction: 0.1,
            n_candidates: some(1000),
            max_trials: some(500),
        }
    }
}

/// Starts of the local search, from the best trials and from the best candidates.
const STARTS: usize = 10;

/// Steps of a local search.
const STEPS: usize = 20;

/// Number and spread of the neighbors of a number.
const NEIGHBORS: usize = 4;
const DISTANCE: f64 = 0.2;

/// Least variance, for points where all trees agree.
const LEAST_VARIANCE: f64 = 1e-10;

impl Sampler for Smac {
    fn name(&self) -> &'static str {
        "smac"
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let frame = Frame::new(request.space);
        let data = ModelData::new(&frame, request.history, self.max_trials.get());
        // Counts all ended trials, not only those in the model.
        if request.history.over().count() < self.n_startup_trials.max(1) {
            return sobol::point(request.space, request.seed, request.number);
        }
        let mut draws = Draws::new(request.key());
        if draws.uniform() < self.random_fraction {
            return frame.point(&frame.random(&mut draws));
        }
        let costs = log_distances(&data);
        let search = AcquisitionSearch {
            frame: &frame,
            best: costs.iter().copied().fold(f64::INFINITY, f64::min),
            forest: self.forest(&frame, request, &data, costs),
        };
        let incumbents = data.incumbents(STARTS);
        let found = search.best(&incumbents, self.n_candidates.get(), &mut draws);
        let new = found.into_iter().find(|row| !data.has(row));
        frame.point(&new.unwrap_or_else(|| frame.random(&mut draws)))
    }
}

impl Smac {
    fn forest(
        &self,
        frame: &Frame<'_>,
        request: &SampleRequest<'_>,
        data: &ModelData,
        mut costs: Vec<f64>,
    ) -> Forest {
        let axes = frame.axes();
        let all = data.rows.iter().chain(&data.pending);
        let rows: Vec<Row> = all.map(|row| filled(axes, row)).collect();
        let liar = costs.iter().sum::<f64>() / costs.len().max(1) as f64;
        costs.resize(rows.len(), liar);
        let growth = Growth { trees: self.n_trees.get(), leaf: self.min_samples_leaf.get() };
        Forest::fit(axes, &rows, &costs, growth, request.key().site(FOREST))
    }
}

/// Logarithm of the distance from the best cost. Leaves predict means, which would hide the differences
/// near the best. SMAC3 does the same.
fn log_distances(data: &ModelData) -> Vec<f64> {
    let best = data.best();
    let apart = |cost: &f64| libm::log(cost - best + NEAR);
    data.costs.iter().map(apart).collect()
}

/// Offset of the logarithm, in standard deviations of all costs.
const NEAR: f64 = 0.1;

/// Separates the draws of the forest from those of the search.
const FOREST: u64 = 1;

/// Maximizes the expected improvement.
struct AcquisitionSearch<'a> {
    frame: &'a Frame<'a>,
    forest: Forest,
    best: f64,
}

impl AcquisitionSearch<'_> {
    /// Candidates, best first.
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

    /// Hill climbing to the best neighbor.
    fn climbed(&self, mut worth: f64, mut row: Row, draws: &mut Draws) -> (f64, Row) {
        for _ in 0..STEPS {
            let neighbors = self.neighbors(&row, draws).into_iter();
            let neighbors = neighbors.map(|row| (self.worth(&row), row));
            match neighbors.reduce(|a, b| if b.0 > a.0 { b } else { a }) {
                Some(next) if next.0 > worth => (worth, row) = next,
                _ => break,
            }
        }
        (worth, row)
    }

    /// Points that differ in one parameter.
    fn neighbors(&self, row: &Row, draws: &mut Draws) -> Vec<Row> {
        let mut neighbors = Vec::new();
        for (index, axis) in self.frame.axes().iter().enumerate() {
            let at = row[index];
            let others: Vec<f64> = match *axis {
                _ if at.is_nan() => continue,
                Axis::Choice(n) => (0..n).map(|i| i as f64).filter(|&i| i != at).collect(),
                Axis::Real | Axis::Whole => {
                    (0..NEIGHBORS).map(|_| draws.truncated(at, DISTANCE)).collect()
                }
            };
            for other in others {
                let mut next = row.clone();
                next[index] = other;
                neighbors.push(self.frame.settled(&next, draws));
            }
        }
        neighbors
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
        let history = fixture::minimized(&Smac::default(), &space, 1, 40, cost);
        assert!(history.best().expect("a cost") < 0.02);
    }

    #[test]
    fn a_fraction_of_the_trials_is_random() {
        let space = fixture::conditional();
        let even = Smac { random_fraction: 1.0, ..Smac::default() };
        let never = Smac { random_fraction: 0.0, ..Smac::default() };
        let cost = |p: &Point| f64::from(p.get("momentum").is_none());
        let with_momentum = |sampler: &Smac| {
            let history = fixture::minimized(sampler, &space, 1, 60, cost);
            history.trials()[10..].iter().filter(|t| t.point.get("momentum").is_some()).count()
        };
        assert!((15..35).contains(&with_momentum(&even)));
        assert!(with_momentum(&never) > 40);
    }
}
