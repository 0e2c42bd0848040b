//! Scheduled searches on recorded trials, and their epochs.

use super::replay::Alert;
use super::search::TrialTable;
use crate::history::{History, TrialOutcome, TrialResult};
use crate::pruner::PruningConfig;
use crate::sampler::{SampleRequest, Sampler};
use crate::scheduler::{
    Decision, ScheduleHistory, ScheduledReport, ScheduledTrial, Scheduler, Search,
};
use crate::space::Point;
use surefoot_random::{Key, Permutation, Purpose};

/// An epoch that a simulated search ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchedEpoch {
    /// Index of the recorded trial.
    pub trial: usize,
    /// Effort of all workers at its end.
    pub spent: f64,
    /// Cost, possibly NaN or infinite.
    pub cost: f64,
    /// True if the trial has run to its end.
    pub is_last: bool,
}

impl TrialTable {
    /// Runs a search with a scheduler on `workers` parallel workers until the budget is spent or nothing is
    /// left to run. `sampler` suggests the points that the scheduler leaves open.
    pub fn schedule(
        &self,
        scheduler: &dyn Scheduler,
        sampler: &dyn Sampler,
        seed: u64,
        workers: usize,
        budget: f64,
    ) -> Vec<SearchedEpoch> {
        let points: Vec<Point> = (0..self.len()).map(|trial| self.point(trial).clone()).collect();
        let search =
            Search { space: self.space(), seed, candidates: Some(&points), is_suggested: false };
        let mut simulation = Simulation {
            table: self,
            schedule: scheduler.schedule(&search),
            history: ScheduleHistory::default(),
            free: (0..self.len()).collect(),
            trials: Vec::new(),
            running: Vec::new(),
            searched: Vec::new(),
            spent: 0.0,
        };
        while simulation.spent < budget {
            while simulation.running.len() < workers && simulation.assign(sampler, seed).is_some() {
            }
            if !simulation.advance() {
                break;
            }
        }
        simulation.searched
    }

    /// Epochs of a search with a sampler and pruners.
    pub fn search_epochs(
        &self,
        sampler: &dyn Sampler,
        seed: u64,
        settings: &PruningConfig,
        found: &[Vec<Alert>],
        budget: f64,
    ) -> Vec<SearchedEpoch> {
        let mut epochs = Vec::new();
        let mut spent = 0.0;
        for searched in self.search(sampler, seed, settings, found, budget) {
            let record = self.record(searched.trial);
            for (index, epoch) in record.epochs[..searched.epochs].iter().enumerate() {
                spent += epoch.spent;
                epochs.push(SearchedEpoch {
                    trial: searched.trial,
                    spent,
                    cost: epoch.cost,
                    is_last: index + 1 == record.epochs.len(),
                });
            }
        }
        epochs
    }

    /// Draws recorded trials at random, each once.
    pub fn random_draws(&self) -> impl Sampler + use<> {
        RandomDraws { points: (0..self.len()).map(|trial| self.point(trial).clone()).collect() }
    }
}

struct RandomDraws {
    points: Vec<Point>,
}

impl Sampler for RandomDraws {
    fn name(&self) -> &'static str {
        "random"
    }

    fn learns(&self) -> bool {
        false
    }

    fn suggest(&self, request: &SampleRequest<'_>) -> Point {
        let key = Key::new(request.seed, Purpose::Subset);
        let order = Permutation::new(key, self.points.len() as u64);
        let place = order.get(request.number % self.points.len() as u64);
        self.points[place as usize].clone()
    }
}

/// A trial that a worker runs.
struct Running {
    number: usize,
    /// Time at which its next epoch ends.
    ends: f64,
}

struct Simulation<'a> {
    table: &'a TrialTable,
    schedule: Box<dyn crate::scheduler::Schedule>,
    history: ScheduleHistory,
    free: Vec<usize>,
    /// Recorded trial of each trial.
    trials: Vec<usize>,
    running: Vec<Running>,
    searched: Vec<SearchedEpoch>,
    spent: f64,
}

impl Simulation<'_> {
    /// Gives a free worker something to do; `None` if it has to wait.
    fn assign(&mut self, sampler: &dyn Sampler, seed: u64) -> Option<()> {
        let now = self.running.iter().map(|running| running.ends).fold(f64::INFINITY, f64::min);
        let now = if now.is_finite() { now } else { 0.0 };
        let number = match self.schedule.decide(&self.history) {
            Decision::Wait => return None,
            Decision::Continue { trial, until } => {
                self.history.extend(trial, until);
                trial as usize
            }
            Decision::Start { point, until } => {
                if self.free.is_empty() {
                    return None;
                }
                let number = self.trials.len();
                let point = point.unwrap_or_else(|| {
                    sampler.suggest(&SampleRequest {
                        space: self.table.space(),
                        seed,
                        number: number as u64,
                        history: &self.sampler_history(),
                    })
                });
                let trial = self.free.remove(self.table.nearest(&point, &self.free));
                self.trials.push(trial);
                self.history.start(ScheduledTrial {
                    point: Some(self.table.point(trial).clone()),
                    planned: Some(self.table.record(trial).epochs.len() as u64),
                    until,
                    steps: 0,
                    is_over: false,
                });
                number
            }
        };
        let ends = now + self.effort(number);
        self.running.push(Running { number, ends });
        Some(())
    }

    /// Effort of the next epoch of a trial.
    fn effort(&self, number: usize) -> f64 {
        let step = self.history.trials()[number].steps as usize;
        self.table.record(self.trials[number]).epochs[step].spent
    }

    /// Runs the epoch that ends first. Returns false if nothing runs.
    fn advance(&mut self) -> bool {
        let order = |a: &&Running, b: &&Running| a.ends.total_cmp(&b.ends);
        let Some(first) = self.running.iter().min_by(order).map(|running| running.number) else {
            return false;
        };
        let effort = self.effort(first);
        let trial = self.trials[first];
        let step = self.history.trials()[first].steps + 1;
        let epochs = &self.table.record(trial).epochs;
        let cost = epochs[step as usize - 1].cost;
        let is_last = step as usize == epochs.len();
        self.spent += effort;
        self.history.report(ScheduledReport { trial: first as u64, step, cost, effort });
        self.searched.push(SearchedEpoch { trial, spent: self.spent, cost, is_last });
        if is_last || !cost.is_finite() {
            self.history.update(first as u64, |trial| trial.is_over = true);
        }
        let is_free = !self.history.trials()[first].is_pending();
        let next = if is_free { 0.0 } else { self.effort(first) };
        match is_free {
            true => self.running.retain(|running| running.number != first),
            false => {
                let running = self.running.iter_mut().find(|running| running.number == first);
                running.into_iter().for_each(|running| running.ends += next);
            }
        }
        true
    }

    /// Results for a sampler: the lowest cost so far.
    fn sampler_history(&self) -> History {
        let mut lowest = vec![f64::INFINITY; self.trials.len()];
        for report in self.history.reports() {
            if report.cost.is_finite() {
                let lowest = &mut lowest[report.trial as usize];
                *lowest = lowest.min(report.cost);
            }
        }
        let results = lowest.iter().enumerate().map(|(number, &cost)| TrialResult {
            number: number as u64,
            point: self.table.point(self.trials[number]).clone(),
            outcome: match &self.history.trials()[number] {
                trial if trial.steps == 0 => TrialOutcome::Running,
                trial if trial.is_over => TrialOutcome::of(cost),
                _ => TrialOutcome::imputed(cost),
            },
        });
        History::new(results.collect())
    }
}
