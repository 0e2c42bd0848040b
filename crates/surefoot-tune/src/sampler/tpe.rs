//! Tree-structured Parzen estimators: look where good trials are dense and bad ones are not.

use super::draws::Draws;
use super::frame::{Frame, Row};
use super::parzen::Parzen;
use super::{SampleRequest, Sampler, sobol};
use crate::history::TrialResult;
use crate::space::Point;
use libm::{ceil, log};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// TPE (Bergstra et al., *Algorithms for Hyper-Parameter Optimization*, 2011), multivariate, with a
/// constant liar.
///
/// Trials are split into the good ones, which are a share of those that are over, and the rest. A
/// density is fitted to each, candidates are drawn from that of the good ones, and the
/// candidate whose densities have the largest ratio is tried.
///
/// * What is worthless is never good, however few others there are.
/// * What runs counts as bad: that is the constant liar.
/// * The better of the good trials count for more (Watanabe, *Tree-Structured Parzen Estimator*,
///   2023, weighs them by improvement; this weighs by rank, which no single enormous
///   cost can upset). Of the bad ones, the older count for less.
/// * Costs matter by their order alone.
///
/// Beside Optuna's, which it is measured against in `docs/samplers.md`: more candidates, more good
/// trials, weights by rank, a Sobol start, wider kernels for choices, conditional parameters in the
/// same density as the others, and failed trials that are learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tpe {
    /// The search starts with points of a [Sobol](super::Sobol) sequence until so many trials are
    /// over.
    pub startup: usize,
    /// How many candidates are compared. More are greedier.
    pub candidates: NonZeroUsize,
    /// Which share of the trials is good, rounded up; at most 25 trials are.
    #[serde(deserialize_with = "super::settings::share")]
    pub good: f64,
}

impl Default for Tpe {
    fn default() -> Tpe {
        Tpe { startup: 10, candidates: NonZeroUsize::MIN.saturating_add(63), good: 0.2 }
    }
}

/// No more trials than this are good. Late in a long search, more would be mediocre ones.
const MOST_GOOD: usize = 25;

/// So many of the latest bad trials count fully; those before count the less, the older they are.
const RECENT: usize = 25;

/// So many bad trials are looked at: the latest half of them, and older ones at even distances. A
/// density of ten thousand kernels looks the same and takes a fifth of a second.
const MOST_BAD: usize = 500;

impl Sampler for Tpe {
    fn name(&self) -> &'static str {
        "tpe"
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let trials = request.history.trials();
        let pending = request.history.pending().count();
        let over = trials.len() - pending;
        if over < self.startup {
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
        for _ in 0..self.candidates.get() {
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
    /// The good trials, best first, and all others by number.
    fn split<'a>(
        &self,
        trials: &'a [TrialResult],
        over: usize,
    ) -> (Vec<&'a TrialResult>, Vec<&'a TrialResult>) {
        let cost = |trial: &TrialResult| trial.outcome.cost();
        let with_cost = trials.iter().filter_map(|trial| Some((cost(trial)?, trial)));
        let mut ranked: Vec<(f64, &TrialResult)> = with_cost.collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.number.cmp(&b.1.number)));
        let share = ceil(self.good.clamp(0.0, 1.0) * over as f64) as usize;
        let good = share.clamp(1, MOST_GOOD).min(ranked.len());
        let (good, rest) = ranked.split_at(good);
        let other = trials.iter().filter(|trial| cost(trial).is_none());
        let mut bad: Vec<&TrialResult> =
            rest.iter().map(|&(_, trial)| trial).chain(other).collect();
        bad.sort_by_key(|trial| trial.number);
        (good.iter().map(|&(_, trial)| trial).collect(), thinned(bad))
    }
}

/// At most [`MOST_BAD`] of them: the latest half, and as many of the older ones at even distances.
fn thinned(bad: Vec<&TrialResult>) -> Vec<&TrialResult> {
    if bad.len() <= MOST_BAD {
        return bad;
    }
    let (old, recent) = bad.split_at(bad.len() - MOST_BAD / 2);
    let kept = MOST_BAD - recent.len();
    let old = (0..kept).map(|i| old[i * old.len() / kept]);
    old.chain(recent.iter().copied()).collect()
}

/// Weights that fall with the rank as those of CMA-ES do, and add up to how many there are.
fn by_rank(n: usize) -> Vec<f64> {
    let weight = |rank: usize| log(n as f64 + 1.0) - log(rank as f64 + 1.0);
    let total: f64 = (0..n).map(weight).sum();
    (0..n).map(|rank| weight(rank) * n as f64 / total).collect()
}

/// Weights that rise from almost nothing for the oldest to 1 for the recent ones.
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

    fn mean_ask(history: &History) -> f64 {
        let space = line();
        let suggest = |seed| {
            x(&Tpe::default().suggest(&SampleRequest { space: &space, seed, number: 99, history }))
        };
        (0..100).map(suggest).sum::<f64>() / 100.0
    }

    #[test]
    fn a_minimum_is_approached() {
        let history = fixture::minimised(&Tpe::default(), &line(), 1, 40, |p| (x(p) - 0.7).powi(2));
        assert!(history.best().expect("a cost") < 1e-3);
    }

    #[test]
    fn the_better_choice_is_taken_more_often() {
        let space = fixture::space([("c", fixture::words(["a", "b", "c", "d"]))]);
        let good = Value::Text("c".to_owned());
        let is_good = |point: &Point| point.get("c") == Some(&good);
        let cost = |point: &Point| f64::from(!is_good(point));
        let history = fixture::minimised(&Tpe::default(), &space, 1, 60, cost);
        let taken = history.trials()[10..].iter().filter(|t| is_good(&t.point));
        assert!(taken.count() > 25);
    }

    #[test]
    fn what_is_worthless_is_kept_away_from_even_if_nothing_else_is_known() {
        let worthless = |number| result(number, number as f64 / 40.0, TrialOutcome::Failed);
        let history = History::new((0..20).map(worthless).collect());
        assert!(mean_ask(&history) > 0.6);
    }

    #[test]
    fn what_runs_is_kept_away_from() {
        let known = (0..10)
            .map(|i| result(i, 0.1 * i as f64, TrialOutcome::Cost((0.45 - 0.1 * i as f64).abs())));
        let without = History::new(known.clone().collect());
        let runs = (10..20).map(|i| result(i, 0.4, TrialOutcome::Running));
        let with = History::new(known.chain(runs).collect());
        assert!(mean_ask(&with) > mean_ask(&without) + 0.02);
    }

    #[test]
    fn costs_count_by_their_order_alone() {
        let outcome = |i: u64| 0.37 * ((i * 7) % 20) as f64;
        let costs = |scale: fn(f64) -> f64| {
            let result = |i| result(i, i as f64 / 20.0, TrialOutcome::Cost(scale(outcome(i))));
            mean_ask(&History::new((0..20).map(result).collect()))
        };
        assert_eq!(costs(|c| c), costs(|c| c.powi(3) * 1e250));
    }
}
