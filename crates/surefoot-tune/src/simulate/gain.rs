//! Gain of pruning for a search, in BTTackler's measures.

use super::search::Searched;
use super::tally::TOP;
use serde::Serialize;

/// Searches with pruning compared with the same searches without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Number of pairs of searches.
    pub searches: usize,
    /// Mean number of trials with pruning.
    pub trials: f64,
    /// Mean number of trials without.
    pub plain_trials: f64,
    /// Mean fraction of the budget until the best cost of the plain search is reached; 1 if never.
    pub reached: f64,
    /// The same fraction for the plain search.
    pub plain_reached: f64,
    /// Fraction of the budget until the mean best cost reaches the final mean of the plain searches, which is
    /// less noisy than single bests.
    pub average_reached: f64,
    /// The same fraction for the plain searches.
    pub plain_average_reached: f64,
    /// Top10HR: fraction of the ten best trials of both searches found with pruning (Definition 3.3).
    pub top10hr: f64,
}

impl Gain {
    /// Compares searches with the plain searches of the same seeds; `None` if a plain search found nothing.
    pub fn of(plain: &[Vec<Searched>], searches: &[Vec<Searched>]) -> Option<Gain> {
        let (plain_courses, their_courses) = (curves(plain), curves(searches));
        let bests = plain_courses.iter().map(|curve| Some(curve.last()?.1));
        let bests: Option<Vec<f64>> = bests.collect();
        let bests = bests.filter(|bests| !bests.is_empty())?;
        let pairs = || plain.iter().zip(searches);
        let reached = |curves: &[Vec<(f64, f64)>]| {
            let times = curves.iter().zip(&bests);
            mean(times.map(|(curve, best)| reaches(curve, *best)))
        };
        let average = mean(bests.iter().copied());
        Some(Gain {
            searches: searches.len(),
            trials: mean(searches.iter().map(|search| search.len() as f64)),
            plain_trials: mean(plain.iter().map(|search| search.len() as f64)),
            reached: reached(&their_courses),
            plain_reached: reached(&plain_courses),
            average_reached: reaches(&averaged(&their_courses), average),
            plain_average_reached: reaches(&averaged(&plain_courses), average),
            top10hr: mean(pairs().map(|(plain, search)| hit_ratio(search, plain))),
        })
    }

    /// TSBA (Definition 3.4) of averaged times, as in the paper's Table 4.
    pub fn tsba(&self) -> f64 {
        1.0 - self.reached / self.plain_reached
    }

    /// TSBA of the averaged searches.
    pub fn average_tsba(&self) -> f64 {
        1.0 - self.average_reached / self.plain_average_reached
    }

    /// Relative increase of the number of trials.
    pub fn more(&self) -> f64 {
        self.trials / self.plain_trials - 1.0
    }
}

/// Times and costs of the successive bests of each search.
fn curves(searches: &[Vec<Searched>]) -> Vec<Vec<(f64, f64)>> {
    let curves = searches.iter().map(|search| {
        let mut curve: Vec<(f64, f64)> = Vec::new();
        for (when, cost) in search.iter().filter_map(|t| Some((t.when, t.cost?))) {
            if curve.last().is_none_or(|(_, best)| cost < *best) {
                curve.push((when, cost));
            }
        }
        curve
    });
    curves.collect()
}

/// Time at which a cost was reached, or the whole budget. The tolerance covers the order of summation.
fn reaches(curve: &[(f64, f64)], cost: f64) -> f64 {
    let near = cost + 1e-12 * cost.abs();
    let found = curve.iter().find(|(_, best)| *best <= near);
    found.map_or(1.0, |(when, _)| *when)
}

/// Mean best cost over time, from when all searches have one.
fn averaged(curves: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> = curves.iter().flatten().map(|(when, _)| *when).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let at = |time: f64| {
        let bests = curves.iter().map(|curve| {
            let until = curve.partition_point(|(when, _)| *when <= time);
            Some(curve[until.checked_sub(1)?].1)
        });
        let bests: Option<Vec<f64>> = bests.collect();
        Some((time, mean(bests?.into_iter())))
    };
    times.into_iter().filter_map(at).collect()
}

/// Ties are shared.
fn hit_ratio(search: &[Searched], plain: &[Searched]) -> f64 {
    let top = |search: &[Searched], ours: bool| {
        let mut costs: Vec<f64> = search.iter().filter_map(|trial| trial.cost).collect();
        costs.sort_by(f64::total_cmp);
        costs.truncate(TOP);
        costs.into_iter().map(move |cost| (cost, ours))
    };
    let mut pool: Vec<(f64, bool)> = top(search, true).chain(top(plain, false)).collect();
    pool.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = TOP.min(pool.len());
    let Some(&(edge, _)) = places.checked_sub(1).and_then(|last| pool.get(last)) else {
        return 0.5;
    };
    let inside = pool.iter().filter(|(cost, _)| *cost < edge);
    let tied = pool.iter().filter(|(cost, _)| *cost == edge);
    let left = places - inside.clone().count();
    let ours_inside = inside.filter(|(_, ours)| *ours).count() as f64;
    let ours_tied = mean(tied.map(|(_, ours)| f64::from(u8::from(*ours))));
    (ours_inside + left as f64 * ours_tied) / places as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, n), value| (sum + value, n + 1));
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(trials: &[(f64, Option<f64>)]) -> Vec<Searched> {
        let trial = |&(when, cost): &(f64, Option<f64>)| Searched {
            trial: 0,
            epochs: 1,
            reason: None,
            when,
            cost,
        };
        trials.iter().map(trial).collect()
    }

    #[test]
    fn reaching_the_best_in_half_the_time_saves_half() {
        let plain = [searched(&[(0.2, Some(3.0)), (0.8, Some(1.0)), (1.0, Some(2.0))])];
        let sooner = searched(&[(0.1, Some(3.0)), (0.2, None), (0.4, Some(1.0)), (0.5, Some(2.0))]);
        let gain = Gain::of(&plain, &[sooner]).unwrap();
        assert_eq!((gain.reached, gain.plain_reached), (0.4, 0.8));
        assert_eq!((gain.tsba(), gain.average_tsba()), (0.5, 0.5));
        assert!((gain.more() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(gain.top10hr, 0.5);
        assert_eq!(Gain::of(&[searched(&[(0.5, None)])], &plain), None);
        assert_eq!(Gain::of(&[], &[]), None);
    }

    #[test]
    fn a_best_never_reached_takes_the_whole_budget() {
        let plain = searched(&[(0.5, Some(1.0))]);
        let worse = searched(&[(0.5, Some(2.0)), (0.9, None)]);
        let plain = [plain];
        assert_eq!(Gain::of(&plain, &[worse]).unwrap().tsba(), -1.0);
        let nothing = searched(&[(0.5, None)]);
        let gain = Gain::of(&plain, &[nothing]).unwrap();
        let gained = (gain.tsba(), gain.average_tsba(), gain.top10hr);
        assert_eq!(gained, (-1.0, -1.0, 0.0));
    }

    #[test]
    fn the_average_starts_when_all_searches_have_a_best() {
        let one = searched(&[(0.1, Some(4.0)), (0.5, Some(2.0))]);
        let other = searched(&[(0.3, Some(2.0)), (0.9, Some(0.0))]);
        let curves = curves(&[one, other]);
        let expected = vec![(0.3, 3.0), (0.5, 2.0), (0.9, 1.0)];
        assert_eq!(averaged(&curves), expected);
    }

    #[test]
    fn the_ten_best_of_both_are_counted_and_ties_shared() {
        let costs = |range: std::ops::Range<u32>| -> Vec<Searched> {
            let costs = range.map(|cost| (0.5, Some(f64::from(cost))));
            searched(&costs.collect::<Vec<_>>())
        };
        assert_eq!(hit_ratio(&costs(0..10), &costs(10..20)), 1.0);
        assert_eq!(hit_ratio(&costs(10..20), &costs(0..10)), 0.0);
        assert_eq!(hit_ratio(&costs(0..20), &costs(0..20)), 0.5);
        assert_eq!(hit_ratio(&costs(0..3), &costs(3..6)), 0.5);
    }
}
