//! Searches on recorded trials.

use super::record::RecordedTrial;
use super::replay::{Alert, Played, alerts, play};
use crate::history::{History, TrialOutcome, TrialResult};
use crate::imputation::{Finished, Imputation, is_cut_short, lowest};
use crate::learning_curve::LearningCurve;
use crate::pruner::{PruneReason, PruningConfig};
use crate::sampler::{SampleRequest, Sampler};
use crate::space::{Domain, Parameter, Point, Space, SpaceError, Value};

/// Squared distance of two choices, where a range of numbers has length 1: slightly more than the mean
/// distance of random numbers.
const OTHER_CHOICE: f64 = 0.25;

/// Ratio of largest to smallest number from which a logarithmic scale is assumed, as for learning rates.
const LOGARITHMIC: f64 = 100.0;

/// Recorded trials on which samplers can search.
///
/// A replay keeps the points of the recorded search, but with other pruning a learning sampler would
/// suggest other points. Here each suggestion is answered with the nearest unused recorded trial. This
/// needs many more recorded trials than a search runs, but hundreds of searches take less time than one
/// training.
#[derive(Clone, Debug)]
pub struct TrialTable {
    space: Space,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    record: RecordedTrial,
    point: Point,
    /// Places of the parameters from 0 to 1; `None` for inactive ones.
    places: Vec<Option<f64>>,
    /// Final value as a cost.
    truth: f64,
}

/// A trial of a simulated search.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Index of the recorded trial.
    pub trial: usize,
    /// Number of epochs that ran.
    pub epochs: usize,
    /// Reason, if it was pruned.
    pub reason: Option<PruneReason>,
    /// Spent fraction of the budget at its end.
    pub when: f64,
    /// Final cost; `None` if it was pruned as bad or its cost is not finite.
    pub cost: Option<f64>,
}

/// Tolerance of the budget for the order of summation.
const ROUNDING: f64 = 1e-9;

impl TrialTable {
    /// Keeps the completed trials with a point of the space.
    pub fn new(space: Space, trials: Vec<RecordedTrial>) -> TrialTable {
        let entry = |record: RecordedTrial| {
            let point = record.point.clone().filter(|point| space.contains(point))?;
            let place = |p: &Parameter| Some(p.domain.place(point.get(&p.name)?));
            Some(Entry {
                places: space.parameters().iter().map(place).collect(),
                truth: record.truth?,
                point,
                record,
            })
        };
        let entries = trials.into_iter().filter_map(entry).collect();
        TrialTable { space, entries }
    }

    /// A table for curves without a recorded space: the bounding box of all parameters that are numbers in
    /// every trial. A curve counts with its lowest cost, as in a study.
    pub fn spanned(mut trials: Vec<RecordedTrial>) -> Result<TrialTable, SpaceError> {
        let points: Vec<&Point> = trials.iter().filter_map(|t| t.point.as_ref()).collect();
        let names = points.first().into_iter().flat_map(|point| point.0.keys());
        let parameters = names.filter_map(|name| {
            let numbers = points.iter().map(|point| number(point.get(name)?));
            Some(Parameter {
                name: name.clone(),
                domain: span(&numbers.collect::<Option<Vec<f64>>>()?)?,
                conditions: Vec::new(),
            })
        });
        let space = Space::new(parameters.collect())?;
        for trial in &mut trials {
            if let Some(point) = &mut trial.point {
                let values = space.parameters().iter().filter_map(|parameter| {
                    let number = number(point.get(&parameter.name)?)?;
                    Some((parameter.name.clone(), Value::Float(number)))
                });
                *point = Point(values.collect());
            }
            let costs = trial.epochs.iter().map(|epoch| epoch.cost);
            let lowest = costs.filter(|cost| cost.is_finite()).reduce(f64::min);
            trial.truth = trial.truth.map(|_| lowest.unwrap_or(f64::NAN));
        }
        Ok(TrialTable::new(space, trials))
    }

    /// Search space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Number of trials.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without trials.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Point of a trial.
    pub(super) fn point(&self, trial: usize) -> &Point {
        &self.entries[trial].point
    }

    /// Record of a trial.
    pub(super) fn record(&self, trial: usize) -> &RecordedTrial {
        &self.entries[trial].record
    }

    /// Counts time in epochs of average length.
    pub fn count_in_epochs(&mut self) {
        let epochs: usize = self.entries.iter().map(|entry| entry.record.epochs.len()).sum();
        let unit = self.spent() / epochs.max(1) as f64;
        let all = self.entries.iter_mut().flat_map(|entry| &mut entry.record.epochs);
        all.for_each(|epoch| epoch.spent /= unit);
    }

    /// Time of all trials.
    pub fn spent(&self) -> f64 {
        let records = self.entries.iter().map(|entry| &entry.record);
        let epochs = records.flat_map(|record| &record.epochs);
        epochs.map(|epoch| epoch.spent).sum()
    }

    /// Findings of the indicators in each trial.
    pub fn alerts(&self, settings: &PruningConfig) -> Vec<Vec<Alert>> {
        let entries = self.entries.iter();
        let found = entries.map(|entry| match settings.indicators.is_empty() {
            true => Vec::new(),
            false => alerts(&entry.record, settings),
        });
        found.collect()
    }

    /// Runs a search until the budget is spent or all trials are used. `found` comes from
    /// [`alerts`](Self::alerts).
    pub fn search(
        &self,
        sampler: &dyn Sampler,
        seed: u64,
        settings: &PruningConfig,
        found: &[Vec<Alert>],
        budget: f64,
    ) -> Vec<Searched> {
        let rules = settings.pruner_set();
        let mut free: Vec<usize> = (0..self.len()).collect();
        let mut searched: Vec<Searched> = Vec::new();
        let mut curves: Vec<LearningCurve> = Vec::new();
        let mut spent = 0.0;
        while !free.is_empty() {
            let number = searched.len() as u64;
            let wanted = sampler.suggest(&SampleRequest {
                space: &self.space,
                seed,
                number,
                history: &self.history(&searched, &curves),
            });
            let trial = free.remove(self.nearest(&wanted, &free));
            let entry = &self.entries[trial];
            let left = budget * (1.0 + ROUNDING) - spent;
            let Played { mut curve, reason, spent: its } =
                play(&entry.record, &found[trial], number, &curves, &rules, left);
            spent += its;
            if its > left {
                break;
            }
            let cost = match &reason {
                None => Some(entry.truth),
                Some(reason) if reason.counts => curve.best(),
                Some(_) => None,
            };
            searched.push(Searched {
                trial,
                epochs: curve.costs.len(),
                reason,
                when: spent / budget,
                cost: cost.filter(|cost| cost.is_finite()),
            });
            curve.over = true;
            curves.push(curve);
        }
        searched
    }

    /// Index of the nearest unused trial, the first among equals.
    pub(super) fn nearest(&self, point: &Point, free: &[usize]) -> usize {
        let parameters = self.space.parameters();
        let place = |p: &Parameter| Some(p.domain.place(point.get(&p.name)?));
        let wanted: Vec<Option<f64>> = parameters.iter().map(place).collect();
        let distance = |trial: usize| {
            let both = wanted.iter().zip(&self.entries[trial].places);
            let apart = both.zip(parameters).map(|(both, parameter)| match both {
                (Some(a), Some(b)) => match parameter.domain {
                    Domain::Choice(_) if a == b => 0.0,
                    Domain::Choice(_) => OTHER_CHOICE,
                    _ => (a - b) * (a - b),
                },
                // A parameter active in only one of them depends on another that already counts.
                _ => 0.0,
            });
            apart.sum::<f64>()
        };
        let distances = free.iter().map(|&trial| distance(trial));
        let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        nearest.map_or(0, |(index, _)| index)
    }

    /// The history as the store of a study returns it.
    fn history(&self, searched: &[Searched], curves: &[LearningCurve]) -> History {
        let trials = || searched.iter().zip(curves);
        let finished = trials().filter_map(|(trial, curve)| {
            let is_finished = trial.reason.is_none() && trial.cost.is_some();
            is_finished.then(|| Finished {
                lowest: lowest(curve.costs.iter().copied()).collect(),
                cost: self.entries[trial.trial].truth,
            })
        });
        let mut imputation = Imputation::new(finished.collect());
        let results = trials().map(|(trial, curve)| {
            let entry = &self.entries[trial.trial];
            let cost = match &trial.reason {
                None => entry.truth,
                Some(reason) if reason.counts => curve.best().unwrap_or(f64::NAN),
                Some(_) => curve.last().unwrap_or(f64::NAN),
            };
            let outcome = match &trial.reason {
                Some(reason) if is_cut_short(reason) && cost.is_finite() => {
                    let lowest = lowest(curve.costs.iter().copied()).last().unwrap_or(cost);
                    TrialOutcome::imputed(imputation.cost(lowest, curve.costs.len()))
                }
                _ => TrialOutcome::of(cost),
            };
            TrialResult { number: curve.number, point: entry.point.clone(), outcome }
        });
        History::new(results.collect())
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Bool(_) | Value::Text(_) => None,
    }
}

/// Smallest domain that contains all numbers; `None` for a single number.
fn span(numbers: &[f64]) -> Option<Domain> {
    let low = numbers.iter().copied().reduce(f64::min)?;
    let high = numbers.iter().copied().reduce(f64::max)?;
    if low == high {
        return None;
    }
    match low > 0.0 && high > LOGARITHMIC * low {
        true => Some(Domain::LogUniform(low, high)),
        false => Some(Domain::Uniform(low, high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direction::Direction;
    use crate::pruner::PrunerConfig;
    use crate::sampler::SamplerConfig;
    use crate::storage::{ClaimLimits, Claimed, NewStudy, Start, Storage, TrialState, View};
    use std::sync::Mutex;
    use std::time::Duration;

    fn trial(values: &[(&str, Value)], costs: &[f64]) -> RecordedTrial {
        let mut trial = RecordedTrial::from_losses(costs, costs);
        let values = values.iter().map(|(n, v)| ((*n).to_owned(), v.clone()));
        trial.point = Some(Point(values.collect()));
        trial
    }

    /// Three hundred trials of ten epochs; the closer `x` is to 0.3, the lower their final costs.
    fn table() -> TrialTable {
        let trials = (0..300).map(|i| {
            let x = f64::from(i) / 299.0;
            let end = (x - 0.3) * (x - 0.3);
            let costs: Vec<f64> = (1..=10).map(|t| end + 0.1 / f64::from(t)).collect();
            let rate = 10f64.powf(-4.0 * x);
            trial(&[("x", Value::Float(x)), ("rate", Value::Float(rate))], &costs)
        });
        TrialTable::spanned(trials.collect()).unwrap()
    }

    fn search(settings: &PruningConfig, name: &str, seed: u64) -> Vec<Searched> {
        let table = table();
        let sampler = SamplerConfig::named(name).unwrap();
        let found = table.alerts(settings);
        table.search(&*sampler, seed, settings, &found, 200.0)
    }

    #[test]
    fn the_space_is_the_bounding_box() {
        let trials = [(1, "a", 3e-5), (2, "b", 0.1)].map(|(layers, word, rate)| {
            let (layers, word) = (Value::Int(layers), Value::Text(word.to_owned()));
            let rate = Value::Float(rate);
            trial(&[("layers", layers), ("word", word), ("rate", rate)], &[1.0])
        });
        let table = TrialTable::spanned(trials.into()).unwrap();
        let parameters = table.space().parameters().iter();
        let domains: Vec<_> = parameters.map(|p| (p.name.as_str(), p.domain.clone())).collect();
        let expected =
            [("layers", Domain::Uniform(1.0, 2.0)), ("rate", Domain::LogUniform(3e-5, 0.1))];
        assert_eq!(domains, expected);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_curve_counts_with_its_lowest_cost() {
        let values = [("x", Value::Float(0.5))];
        let other = [("x", Value::Float(0.7))];
        let trials = vec![trial(&values, &[0.5, 0.2, f64::NAN, 0.4]), trial(&other, &[f64::NAN])];
        let table = TrialTable::spanned(trials).unwrap();
        assert_eq!(table.entries[0].truth, 0.2);
        assert!(table.entries[1].truth.is_nan());
    }

    #[test]
    fn a_search_uses_each_trial_once_within_the_budget() {
        let searched = search(&PruningConfig::none(), "random", 7);
        assert_eq!(searched.len(), 20);
        assert_eq!(searched.last().map(|trial| trial.when), Some(1.0));
        let mut trials: Vec<usize> = searched.iter().map(|trial| trial.trial).collect();
        trials.sort_unstable();
        trials.dedup();
        assert_eq!(trials.len(), 20);
        assert_eq!(searched, search(&PruningConfig::none(), "random", 7));
        assert_ne!(searched, search(&PruningConfig::none(), "random", 8));
    }

    #[test]
    fn a_learning_sampler_finds_good_trials() {
        let mean = |name: &str| {
            let costs = (0..5).flat_map(|seed| search(&PruningConfig::none(), name, seed));
            let late = costs.filter(|trial| trial.when > 0.6);
            let late: Vec<f64> = late.filter_map(|trial| trial.cost).collect();
            late.iter().sum::<f64>() / late.len() as f64
        };
        assert!(mean("tpe") < 0.7 * mean("random"));
    }

    #[test]
    fn pruning_fits_more_trials_into_the_budget() {
        let median = PrunerConfig::named("median").unwrap();
        let searched = search(&PruningConfig::only(median), "tpe", 7);
        assert!(searched.len() > 22, "{}", searched.len());
        let is_pruned = |trial: &Searched| trial.reason.is_some() && trial.cost.is_none();
        assert!(searched.iter().any(is_pruned));
    }

    /// Draws at random and records the history it received.
    struct Listener(Mutex<History>);

    impl Sampler for Listener {
        fn name(&self) -> &'static str {
            "listener"
        }

        fn suggest(&self, request: &SampleRequest<'_>) -> Point {
            *self.0.lock().unwrap() = request.history.clone();
            request.space.at(|i| request.key().uniform(i as u64))
        }
    }

    /// The history of a store with the same trials.
    fn stored(table: &TrialTable, searched: &[Searched]) -> History {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("study.db");
        let mut storage = Storage::open(file.to_str().unwrap()).unwrap();
        let study = NewStudy {
            name: "curves".to_owned(),
            fingerprint: String::new(),
            document: String::new(),
            space: table.space().clone(),
            direction: Direction::Minimize,
            seed: 7,
        };
        let study = storage.join(&study).unwrap();
        let limits = ClaimLimits {
            max_trials: None,
            max_attempts: 1,
            heartbeat_timeout: Duration::from_secs(3600),
        };
        for trial in searched {
            let Claimed::Trial(claim) = storage.claim(study.id, "worker", &limits).unwrap() else {
                panic!("there is always another trial");
            };
            let entry = &table.entries[trial.trial];
            let start =
                Start { point: entry.point.clone(), seen: None, planned: Some(10), run: None };
            storage.start(&claim, &start).unwrap();
            let costs = entry.record.epochs[..trial.epochs].iter();
            for (step, epoch) in (1..).zip(costs.clone()) {
                storage.report(&claim, step, epoch.cost, 1.0).unwrap();
            }
            let end = match &trial.reason {
                None => TrialState::Complete { value: entry.truth },
                Some(reason) => TrialState::Pruned {
                    value: costs.last().map(|epoch| epoch.cost),
                    reason: reason.clone(),
                },
            };
            storage.finish(&claim, &end, 1.0).unwrap();
        }
        let mut view = View::new(&study);
        storage.refresh_reports(&mut view).unwrap();
        view.history()
    }

    #[test]
    fn the_history_matches_that_of_a_store() {
        let mut trials: Vec<RecordedTrial> =
            table().entries.into_iter().map(|e| e.record).collect();
        // Some trials report NaN, at their first epoch or later.
        for (i, trial) in trials.iter_mut().enumerate().filter(|(i, _)| i % 5 == 0) {
            trial.epochs[i % 3].cost = f64::NAN;
        }
        let table = TrialTable::spanned(trials).unwrap();
        let settings = PruningConfig::default();
        let found = table.alerts(&settings);
        let listener = Listener(Mutex::default());
        let searched = table.search(&listener, 3, &settings, &found, 300.0);
        let results = listener.0.into_inner().unwrap();
        // The last trial exceeded the budget, and no other was requested.
        let known = &searched[..results.trials().len()];
        let by = |name: &str| {
            let reasons = known.iter().filter_map(|trial| trial.reason.as_ref());
            reasons.filter(|reason| reason.by == name).count()
        };
        assert!(by("prospect") > 5 && by("agv") + by("non_finite") > 1, "{known:?}");
        assert_eq!(results, stored(&table, known));
    }
}
