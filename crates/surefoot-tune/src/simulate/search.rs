//! Whole searches among recorded trials.

use super::record::RecordedTrial;
use super::replay::{Alert, alerts};
use crate::course::Course;
use crate::history::{History, Outcome, Told};
use crate::sampler::{Question, Sampler};
use crate::space::{Domain, Parameter, Point, Space, SpaceError, Value};
use crate::stopper::{self, Reason, Settings};
use crate::store::foresight::{Finished, Foresight};
use surefoot_diagnose::Finding;

/// How far apart two choices are, squared, where numbers are 1 apart from one end of their range to
/// the other.
const OTHER_CHOICE: f64 = 0.25;

/// Numbers that span more than this, from the lowest to the highest, lie on a logarithmic scale.
const LOGARITHMIC: f64 = 100.0;

/// Recorded trials among which samplers can search.
///
/// A replay tells what rules do to the trials of a search that is over. But with other rules a sampler
/// that learns would have asked for other points. Here it asks, and the nearest of the recorded trials that was
/// not taken yet is the answer. That is not what the point itself would have come to, so it takes many
/// recorded trials, more than ten times as many as a search has; but a search takes no time, and hundreds
/// of them tell what three cannot.
#[derive(Clone, Debug)]
pub struct Ground {
    space: Space,
    trials: Vec<RecordedTrial>,
    points: Vec<Point>,
    places: Vec<Vec<Option<f64>>>,
}

/// A trial of a search among recorded ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Which of the recorded trials it is.
    pub place: usize,
    /// What had been spent when it ended, as a share of the budget.
    pub when: f64,
    /// What it came to; `None` if it was stopped as bad or came to no number.
    pub cost: Option<f64>,
}

impl Ground {
    /// Those of the trials that have a point of the space and ran to their end.
    pub fn new(space: Space, trials: Vec<RecordedTrial>) -> Ground {
        let is_known = |trial: &RecordedTrial| {
            let point = trial.point.as_ref();
            trial.truth.is_some() && point.is_some_and(|point| space.contains(point))
        };
        let mut trials = trials;
        trials.retain(is_known);
        let points: Vec<Point> = trials.iter().filter_map(|t| t.point.clone()).collect();
        Ground {
            places: points.iter().map(|point| places(&space, point)).collect(),
            points,
            space,
            trials,
        }
    }

    /// The same where nobody has recorded the space: the smallest that has all points. Only those
    /// parameters count that are numbers in all of them.
    pub fn spanned(mut trials: Vec<RecordedTrial>) -> Result<Ground, SpaceError> {
        let points: Vec<&Point> = trials.iter().filter_map(|t| t.point.as_ref()).collect();
        let names = points.first().into_iter().flat_map(|point| point.0.keys());
        let names = names.filter(|name| points.iter().all(|p| p.get(name).is_some()));
        let parameters = names.filter_map(|name| {
            let values = points.iter().filter_map(|point| point.get(name));
            Some(Parameter {
                name: name.clone(),
                domain: span(&values.collect::<Vec<_>>())?,
                conditions: Vec::new(),
            })
        });
        let space = Space::new(parameters.collect())?;
        let is_there = |name: &str| space.parameters().iter().any(|p| p.name == name);
        for point in trials.iter_mut().filter_map(|trial| trial.point.as_mut()) {
            point.0.retain(|name, _| is_there(name));
        }
        Ok(Ground::new(space, trials))
    }

    /// Where its points are from.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Adds the trials of another that is of the same space.
    pub fn join(&mut self, other: Ground) {
        self.trials.extend(other.trials);
        self.points.extend(other.points);
        self.places.extend(other.places);
    }

    /// How many trials there are.
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// What all trials took.
    pub fn spent(&self) -> f64 {
        let stretches = self.trials.iter().flat_map(|trial| &trial.stretches);
        stretches.map(|stretch| stretch.spent).sum()
    }

    /// What the indicators of `settings` find in each of the trials.
    pub fn alerts(&self, settings: &Settings) -> Vec<Vec<Alert>> {
        if settings.indicators.is_empty() {
            return vec![Vec::new(); self.trials.len()];
        }
        let trials = self.trials.iter();
        trials.map(|trial| alerts(trial, settings)).collect()
    }

    /// The trials of a search that end within the budget, with what the indicators find in them
    /// ([`alerts`](Self::alerts)) and under the rules of `settings`.
    pub fn search(
        &self,
        sampler: &dyn Sampler,
        seed: u64,
        settings: &Settings,
        found: &[Vec<Alert>],
        budget: f64,
    ) -> Vec<Searched> {
        let rules = settings.combination();
        let mut free: Vec<usize> = (0..self.len()).collect();
        let mut courses: Vec<Course> = Vec::new();
        let mut ends: Vec<End> = Vec::new();
        let mut spent = 0.0;
        let mut searched = Vec::new();
        while !free.is_empty() {
            let number = ends.len() as u64;
            let wanted = sampler.ask(&Question {
                space: &self.space,
                seed,
                number,
                history: &self.history(&ends, &courses),
            });
            let place = free.remove(self.nearest(&wanted, &free));
            let trial = &self.trials[place];
            let mut course = Course {
                number,
                costs: Vec::with_capacity(trial.stretches.len()),
                planned: trial.planned,
                over: false,
            };
            let mut reason = None;
            for stretch in &trial.stretches {
                spent += stretch.spent;
                course.costs.push(stretch.cost);
                let now = |alert: &&Alert| alert.stretch == course.costs.len();
                let now = found[place].iter().filter(now);
                let findings: Vec<Finding> = now.map(|alert| alert.finding.clone()).collect();
                reason = rules.decide(&course, &courses, &findings);
                if reason.is_some() || spent > budget {
                    break;
                }
            }
            if spent > budget {
                break;
            }
            let cost = match &reason {
                None => trial.truth,
                Some(reason) if reason.counts => course.best(),
                Some(_) => None,
            };
            searched.push(Searched {
                place,
                when: spent / budget,
                cost: cost.filter(|cost| cost.is_finite()),
            });
            course.over = true;
            courses.push(course);
            ends.push(End { place, reason });
        }
        searched
    }

    /// Which of those that are free is nearest, the first of several.
    fn nearest(&self, point: &Point, free: &[usize]) -> usize {
        let wanted = places(&self.space, point);
        let distance = |place: usize| {
            let parameters = self.space.parameters().iter();
            let both = wanted.iter().zip(&self.places[place]);
            let apart = parameters
                .zip(both)
                .map(|(parameter, both)| match (parameter, both) {
                    (_, (None, None)) => 0.0,
                    (parameter, (Some(a), Some(b))) => match parameter.domain {
                        Domain::Choice(_) if a == b => 0.0,
                        Domain::Choice(_) => OTHER_CHOICE,
                        _ => (a - b) * (a - b),
                    },
                    _ => OTHER_CHOICE,
                });
            apart.sum::<f64>()
        };
        let distances = free.iter().map(|&place| distance(place));
        let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        nearest.map_or(0, |(index, _)| index)
    }

    /// What a sampler is told, as a study's store tells it.
    fn history(&self, ends: &[End], courses: &[Course]) -> History {
        let finished = ends.iter().zip(courses).filter_map(|(end, course)| {
            let cost = self.trials[end.place].truth?;
            let is_finished = end.reason.is_none() && cost.is_finite();
            is_finished.then(|| Finished {
                lowest: lowest(course),
                cost,
            })
        });
        let mut foresight = Foresight::new(finished.collect());
        let told = ends.iter().zip(courses).map(|(end, course)| {
            let outcome = match &end.reason {
                None => self.trials[end.place].truth.map(Outcome::of),
                Some(reason) if stopper::NAMES.contains(&reason.by.as_str()) => {
                    let lowest = lowest(course).last().copied();
                    lowest.map(|cost| Outcome::foreseen(foresight.cost(cost, course.costs.len())))
                }
                Some(reason) if reason.counts => course.best().map(Outcome::of),
                Some(_) => course.last().map(Outcome::of),
            };
            Told {
                number: course.number,
                point: self.points[end.place].clone(),
                outcome: outcome.unwrap_or(Outcome::Worthless),
            }
        });
        History::new(told.collect())
    }
}

/// How a trial of a search ended.
struct End {
    place: usize,
    reason: Option<Reason>,
}

/// The lowest cost up to each stretch.
fn lowest(course: &Course) -> Vec<f64> {
    let costs = course.costs.iter().scan(f64::INFINITY, |lowest, &cost| {
        if cost.is_finite() {
            *lowest = lowest.min(cost);
        }
        Some(*lowest)
    });
    costs.collect()
}

/// Where a point lies, from 0 to 1 in each direction; `None` where it has no value.
fn places(space: &Space, point: &Point) -> Vec<Option<f64>> {
    let parameters = space.parameters().iter();
    let place = |p: &Parameter| Some(p.domain.place(point.get(&p.name)?));
    parameters.map(place).collect()
}

/// The smallest domain that has all values; `None` if there is only one, or one that is no number.
fn span(values: &[&Value]) -> Option<Domain> {
    let number = |value: &&Value| match value {
        Value::Float(value) => Some(*value),
        _ => None,
    };
    let floats: Vec<f64> = values.iter().filter_map(number).collect();
    let low = floats.iter().copied().reduce(f64::min)?;
    let high = floats.iter().copied().reduce(f64::max)?;
    let is_wide = low > 0.0 && high > LOGARITHMIC * low;
    match (floats.len() == values.len() && low < high, is_wide) {
        (true, true) => Some(Domain::LogUniform(low, high)),
        (true, false) => Some(Domain::Uniform(low, high)),
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler;
    use crate::stopper::Choice;

    /// Three hundred trials of ten stretches; the nearer `x` is to 0.3, the lower they end.
    fn ground() -> Ground {
        let trials = (0..300).map(|i| {
            let x = f64::from(i) / 299.0;
            let end = (x - 0.3) * (x - 0.3);
            let costs: Vec<f64> = (1..=10).map(|t| end + 0.1 / f64::from(t)).collect();
            let mut trial = RecordedTrial::from_losses(&costs, &costs);
            let rate = Value::Float(10f64.powf(-4.0 * x));
            let values = [("x", Value::Float(x)), ("rate", rate)];
            let values = values.map(|(name, value)| (name.to_owned(), value));
            trial.point = Some(Point(values.into()));
            trial
        });
        Ground::spanned(trials.collect()).unwrap()
    }

    fn search(settings: &Settings, name: &str, seed: u64) -> Vec<Searched> {
        let ground = ground();
        let sampler = sampler::named(name).unwrap();
        let found = ground.alerts(settings);
        ground.search(sampler.as_ref(), seed, settings, &found, 200.0)
    }

    #[test]
    fn the_space_is_what_the_points_span() {
        let domains: Vec<Domain> = ground()
            .space()
            .parameters()
            .iter()
            .map(|parameter| parameter.domain.clone())
            .collect();
        assert!(matches!(
            domains[..],
            [Domain::LogUniform(..), Domain::Uniform(0.0, 1.0)]
        ));
    }

    #[test]
    fn a_search_takes_each_trial_once_and_no_more_than_its_budget() {
        let searched = search(&Settings::none(), "random", 7);
        assert_eq!(searched.len(), 20);
        assert_eq!(searched.last().map(|trial| trial.when), Some(1.0));
        let mut places: Vec<usize> = searched.iter().map(|trial| trial.place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 20);
        assert_eq!(searched, search(&Settings::none(), "random", 7));
        assert_ne!(searched, search(&Settings::none(), "random", 8));
    }

    #[test]
    fn a_sampler_that_learns_goes_where_trials_are_good() {
        let mean = |name: &str| {
            let costs = (0..5).flat_map(|seed| search(&Settings::none(), name, seed));
            let late = costs.filter(|trial| trial.when > 0.6);
            let late: Vec<f64> = late.filter_map(|trial| trial.cost).collect();
            late.iter().sum::<f64>() / late.len() as f64
        };
        assert!(mean("tpe") < 0.7 * mean("random"));
    }

    #[test]
    fn more_trials_fit_in_the_budget_if_some_are_stopped() {
        let median: Choice = "median".parse().unwrap();
        let searched = search(&Settings::only(median), "tpe", 7);
        assert!(searched.len() > 22, "{}", searched.len());
        assert!(searched.iter().any(|trial| trial.cost.is_none()));
    }

    #[test]
    fn trials_that_are_added_are_searched_as_well() {
        let mut both = ground();
        both.join(ground());
        assert_eq!(both.len(), 600);
        assert_eq!(both.spent(), 6000.0);
        let sampler = sampler::named("random").unwrap();
        let found = both.alerts(&Settings::none());
        let all = both.search(sampler.as_ref(), 7, &Settings::none(), &found, 6000.0);
        assert_eq!(all.len(), 600);
    }
}
