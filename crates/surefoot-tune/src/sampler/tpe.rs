//! Tree-structured Parzen estimators.

use super::draws::Draws;
use super::frame::{Frame, Row};
use super::parzen::Parzen;
use super::{SampleRequest, Sampler, sobol};
use crate::history::TrialResult;
use crate::space::Point;
use libm::{ceil, log};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Multivariate TPE (Bergstra et al., *Algorithms for Hyper-Parameter Optimization*, 2011) with a
/// constant liar.
///
/// The best fraction of the ended trials is good, the rest is bad. A density is fitted to each;
/// candidates are drawn from the good density, and the one with the largest ratio of the densities is
/// suggested.
///
/// * Failed trials are never good. Running trials are bad (the constant liar).
/// * Better good trials weigh more, by rank (Watanabe, *Tree-Structured Parzen Estimator*, 2023, weighs
///   by improvement, which one huge cost distorts). Older bad trials weigh less.
/// * Only the order of costs matters.
///
/// Differences from Optuna's TPE: more candidates, more good trials, weights by rank, a Sobol start,
/// wider kernels for choices, conditional parameters in the joint density, and learning from failed
/// trials. `docs/samplers.md` compares the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tpe {
    /// Number of ended trials before the model is used; until then, [Sobol](super::Sobol) points.
    pub n_startup_trials: usize,
    /// Number of candidates; more are greedier.
    pub n_candidates: NonZeroUsize,
    /// Fraction of good trials, rounded up, at most 25 trials.
    #[serde(deserialize_with = "crate::registry::fraction")]
    pub gamma: f64,
}

impl Default for Tpe {
    fn default() -> Tpe {
        Tpe { n_startup_trials: 10, n_candidates: NonZeroUsize::MIN.saturating_add(63), gamma: 0.2 }
    }
}

/// More good trials would include mediocre ones late in a long search.
const MOST_GOOD: usize = 25;

/// This many latest bad trials have full weight.
const RECENT: usize = 25;

/// Limit on bad trials: the latest half and an even selection of the older ones.
const MOST_BAD: usize = 500;

impl Sampler for Tpe {
    fn name(&self) -> &'static str {
        "tpe"
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let trials = request.history.trials();
        let pending = request.history.pending().count();
        let over = trials.len() - pending;
        if over < self.n_startup_trials {
            return sobol::point(request.space, request.seed, request.number);
        }
        let frame = Frame::new(request.space);
        let (good, bad) = self.split(trials, over);
        let rows = |trials: &[&TrialResult]| -> Vec<Row> {
            trials.iter().map(|trial| frame.row(&trial.point)).collect()
        };
        let (good, bad) = (rows(&good), rows(&bad));
        let likely = Parzen::new(&frame, &good, &by_rank(good.len()));
        let unlikely = Parzen::new(&frame, &bad, &by_age(bad.len()));
        let mut draws = Draws::new(request.key());
        let mut best = (f64::NEG_INFINITY, likely.draw(&mut draws));
        let mut terms = Vec::new();
        for _ in 0..self.n_candidates.get() {
            let row = likely.draw(&mut draws);
            let ratio =
                likely.log_density(&row, &mut terms) - unlikely.log_density(&row, &mut terms);
            if ratio > best.0 {
                best = (ratio, row);
            }
        }
        frame.point(&best.1)
    }
}

impl Tpe {
    /// Returns the good trials, best first, and the others by number.
    fn split<'a>(
        &self,
        trials: &'a [TrialResult],
        over: usize,
    ) -> (Vec<&'a TrialResult>, Vec<&'a TrialResult>) {
        let cost = |trial: &TrialResult| trial.outcome.cost();
        let with_cost = trials.iter().filter_map(|trial| Some((cost(trial)?, trial)));
        let mut ranked: Vec<(f64, &TrialResult)> = with_cost.collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.number.cmp(&b.1.number)));
        let share = ceil(self.gamma.clamp(0.0, 1.0) * over as f64) as usize;
        let good = share.clamp(1, MOST_GOOD).min(ranked.len());
        let (good, rest) = ranked.split_at(good);
        let other = trials.iter().filter(|trial| cost(trial).is_none());
        let mut bad: Vec<&TrialResult> =
            rest.iter().map(|&(_, trial)| trial).chain(other).collect();
        bad.sort_by_key(|trial| trial.number);
        (good.iter().map(|&(_, trial)| trial).collect(), thinned(bad))
    }
}

/// Keeps the latest half of [`MOST_BAD`] trials and an even selection of the older ones.
fn thinned(bad: Vec<&TrialResult>) -> Vec<&TrialResult> {
    if bad.len() <= MOST_BAD {
        return bad;
    }
    let (old, recent) = bad.split_at(bad.len() - MOST_BAD / 2);
    let kept = MOST_BAD - recent.len();
    let old = (0..kept).map(|i| old[i * old.len() / kept]);
    old.chain(recent.iter().copied()).collect()
}

/// Weights that fall with the rank as in CMA-ES, with sum `n`.
fn by_rank(n: usize) -> Vec<f64> {
    let weight = |rank: usize| log(n as f64 + 1.0) - log(rank as f64 + 1.0);
    let total: f64 = (0..n).map(weight).sum();
    (0..n).map(|rank| weight(rank) * n as f64 / total).collect()
}

/// Weights that rise from almost 0 for the oldest to 1 for recent trials.
fn by_age(n: usize) -> Vec<f64> {
    let old = n.saturating_sub(RECENT);
    let weight = |index: usize| {
        if index < old { (index as f64 + 1.0) / (old as f64 + 1.0) } else { 1.0 }
    };
    (0..n).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, TrialOutcome};
    use crate::sampler::fixture;
    use crate::space::{Domain, Value};

    fn x(point: &Point) -> f64 {
        match point.get("x") {
            Some(&Value::Float(x)) => x,
            other => panic!("x is {other:?}"),
        }
    }

    fn line() -> crate::Space {
        fixture::space([("x", Domain::Uniform(0.0, 1.0))])
    }

    fn result(number: u64, x: f64, outcome: TrialOutcome) -> TrialResult {
        let point = line().at(|_| x);
        TrialResult { number, point, outcome }
    }

    fn mean_suggestion(history: &History) -> f64 {
        let space = line();
        let suggest = |seed| {
            x(&Tpe::default().suggest(&SampleRequest { space: &space, seed, number: 99, history }))
        };
        (0..100).map(suggest).sum::<f64>() / 100.0
    }

    #[test]
    fn a_minimum_is_found() {
        let history = fixture::minimized(&Tpe::default(), &line(), 1, 40, |p| (x(p) - 0.7).powi(2));
        assert!(history.best().expect("a cost") < 1e-3);
    }

    #[test]
    fn the_better_choice_is_taken_more_often() {
        let space = fixture::space([("c", fixture::words(["a", "b", "c", "d"]))]);
        let good = Value::Text("c".to_owned());
        let is_good = |point: &Point| point.get("c") == Some(&good);
        let cost = |point: &Point| f64::from(!is_good(point));
        let history = fixture::minimized(&Tpe::default(), &space, 1, 60, cost);
        let taken = history.trials()[10..].iter().filter(|t| is_good(&t.point));
        assert!(taken.count() > 25);
    }

    #[test]
    fn failed_points_are_avoided_without_other_results() {
        let failed = |number| result(number, number as f64 / 40.0, TrialOutcome::Failed);
        let history = History::new((0..20).map(failed).collect());
        assert!(mean_suggestion(&history) > 0.6);
    }

    #[test]
    fn running_points_are_avoided() {
        let data = (0..10)
            .map(|i| result(i, 0.1 * i as f64, TrialOutcome::Cost((0.45 - 0.1 * i as f64).abs())));
        let without = History::new(data.clone().collect());
        let runs = (10..20).map(|i| result(i, 0.4, TrialOutcome::Running));
        let with = History::new(data.chain(runs).collect());
        assert!(mean_suggestion(&with) > mean_suggestion(&without) + 0.02);
    }

    #[test]
    fn only_the_order_of_costs_matters() {
        let outcome = |i: u64| 0.37 * ((i * 7) % 20) as f64;
        let costs = |scale: fn(f64) -> f64| {
            let result = |i| result(i, i as f64 / 20.0, TrialOutcome::Cost(scale(outcome(i))));
            mean_suggestion(&History::new((0..20).map(result).collect()))
        };
        assert_eq!(costs(|c| c), costs(|c| c.powi(3) * 1e250));
    }
}
