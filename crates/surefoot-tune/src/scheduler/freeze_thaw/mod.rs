//! Freeze-thaw scheduling with a Gaussian process over learning curves.

mod grid;
mod pool;
mod process;
mod scale;
mod selection;
#[cfg(test)]
mod tests;

use self::grid::Grid;
use self::pool::Pool;
use self::process::{Prediction, Process, Target};
use self::scale::Scale;
use self::selection::select;
use super::{
    Decision, Schedule, ScheduleHistory, ScheduledReport, ScheduledTrial, Scheduler, Search,
};
use crate::registry::fraction;
use crate::sampler::acquisition::log_improvement;
use crate::space::Point;
use serde::{Deserialize, Serialize};
use surefoot_random::{Key, Purpose};

/// Trains whichever trial, started or new, is expected to improve most on the best result.
///
/// A Gaussian process predicts the final cost of every configuration from all curves so far: its covariance
/// is the product of one over configurations and one over epochs (Swersky et al., *Freeze-Thaw Bayesian
/// Optimization*, 2014). A decision continues a trial to its next pause. Trials that reported NaN or infinity are
/// never continued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FreezeThaw {
    /// Trials that start before the model is used.
    pub n_startup_trials: usize,
    /// Fraction of the decisions that start a random configuration, regardless of the model.
    #[serde(deserialize_with = "fraction")]
    pub random_fraction: f64,
    /// Fraction of the decisions that continue the trial with the lowest last cost, once a training is finished.
    #[serde(deserialize_with = "fraction")]
    pub leader_fraction: f64,
}

impl Default for FreezeThaw {
    fn default() -> FreezeThaw {
        FreezeThaw { n_startup_trials: 16, random_fraction: 0.05, leader_fraction: 0.15 }
    }
}

/// Growth of the number of observed trials after which the length scales are fitted again.
const REFIT: f64 = 1.3;

/// Trials that the length scales are fitted to: the best half and an even sample of the rest.
const FIT_TRIALS: usize = 80;

/// Observations that a fit keeps, and the number that causes one. The time of a decision grows with
/// the square of their number. In simulated searches, a quarter of them gave nearly the same regret.
const KEPT_ROWS: usize = 256;
const MOST_ROWS: usize = 512;

/// Number of observed trials from which on the first training is finished, and the fraction of the decisions
/// that continue it.
const FIRST_LEADER_TRIALS: usize = 30;
const FIRST_LEADER_FRACTION: f64 = 0.8;

/// Best trials with candidates around them.
const INCUMBENTS: usize = 4;

/// Separates the draws of decisions from those of trials.
const SITE: u64 = 0xf7ee;

impl Scheduler for FreezeThaw {
    fn name(&self) -> &'static str {
        "freeze_thaw"
    }

    fn schedule(&self, search: &Search<'_>) -> Box<dyn Schedule> {
        let pool = Pool::new(search);
        Box::new(Curves {
            options: *self,
            seed: search.seed,
            process: Process::new(pool.coordinates().dimensions()),
            pool,
            trials: Vec::new(),
            observed: Vec::new(),
            rows: Vec::new(),
            kept: Vec::new(),
            read: 0,
            next_fit: self.n_startup_trials.max(2),
        })
    }
}

/// The learning curves of a search and their model.
struct Curves {
    options: FreezeThaw,
    seed: u64,
    pool: Pool,
    process: Process,
    trials: Vec<Curve>,
    /// Trials in the order of their first observation.
    observed: Vec<usize>,
    /// All observations in the order in which they were made.
    rows: Vec<Row>,
    /// Observations of the process.
    kept: Vec<usize>,
    /// Number of reports read.
    read: usize,
    /// Number of observed trials at the next fit.
    next_fit: usize,
}

/// State of a trial as the model has observed it.
struct Curve {
    point: Option<Point>,
    target: Target,
    grid: Option<Grid>,
    /// Number of the last pause that was observed.
    index: u64,
    /// Its last observation.
    row: usize,
    /// True if the process has an observation of it.
    is_modelled: bool,
    /// Last cost.
    last: f64,
    /// Lowest finite cost.
    best: f64,
    /// True if it reported NaN or infinity.
    is_dead: bool,
    /// Sum of the efforts of its epochs, and their number.
    effort: (f64, f64),
}

/// An observation: the cost of a trial at a time.
#[derive(Clone, Copy)]
struct Row {
    trial: usize,
    time: f64,
    cost: f64,
}

impl Schedule for Curves {
    fn decide(&mut self, history: &ScheduleHistory) -> Decision {
        self.read(history);
        let trials = history.trials();
        let key = Key::new(self.seed, Purpose::Sample).epoch(history.decisions()).site(SITE);
        let is_open = |&number: &usize| trials[number].is_paused() && !self.trials[number].is_dead;
        let open: Vec<usize> = (0..trials.len()).filter(is_open).collect();
        // Paused before its first observation: its length was not known when it started.
        if let Some(&number) = open.iter().find(|&&number| self.trials[number].index == 0) {
            return self.proceed(trials, number);
        }
        if let Some(decision) = self.last_training(history, &open) {
            return decision;
        }
        let draw = key.uniform(0);
        if trials.len() < self.options.n_startup_trials || draw < self.options.random_fraction {
            let started: Vec<&[f64]> = self.started();
            if let Some(point) = self.pool.random(key, trials.len() as u64, &started) {
                return self.start(point);
            }
        }
        if draw < self.options.random_fraction + self.leader_fraction()
            && let Some(leader) = self.lowest(&open)
        {
            return self.proceed(trials, leader);
        }
        self.most_promising(trials, &open)
    }
}

impl Curves {
    /// Reads new trials and reports.
    fn read(&mut self, history: &ScheduleHistory) {
        for (number, trial) in history.trials().iter().enumerate() {
            // The point of a trial may become known after its start.
            let is_known = self.trials.get(number).map(|known| known.point == trial.point);
            if is_known == Some(true) {
                continue;
            }
            let coordinates = self.pool.coordinates();
            let at = trial.point.as_ref().map_or_else(Vec::new, |point| coordinates.of(point));
            self.pool.exclude(&at);
            let target = Target::new(number, at);
            match self.trials.get_mut(number) {
                Some(known) => {
                    known.point.clone_from(&trial.point);
                    known.target = target;
                }
                None => self.trials.push(Curve {
                    point: trial.point.clone(),
                    target,
                    grid: None,
                    index: 0,
                    row: 0,
                    is_modelled: false,
                    last: f64::INFINITY,
                    best: f64::INFINITY,
                    is_dead: false,
                    effort: (0.0, 0.0),
                }),
            }
        }
        for report in &history.reports()[self.read..] {
            let number = report.trial as usize;
            let Some(planned) = history.trials()[number].planned else { continue };
            self.observe(number, planned, report);
        }
        self.read = history.reports().len();
    }

    fn observe(&mut self, number: usize, planned: u64, report: &ScheduledReport) {
        let curve = &mut self.trials[number];
        let grid = *curve.grid.get_or_insert(Grid::new(planned));
        curve.last = report.cost;
        match report.cost.is_finite() {
            true => curve.best = curve.best.min(report.cost),
            false => curve.is_dead = true,
        }
        if report.effort > 0.0 && report.effort.is_finite() {
            curve.effort.0 += report.effort;
            curve.effort.1 += 1.0;
        }
        let index = if curve.is_dead { u64::MAX } else { grid.index(report.step) };
        if index <= curve.index {
            return;
        }
        let is_first = curve.index == 0;
        curve.index = index;
        let row = Row { trial: number, time: grid.time(report.step.max(2)), cost: report.cost };
        curve.row = self.rows.len();
        curve.is_modelled = true;
        self.process.push(&curve.target, row.time);
        self.kept.push(self.rows.len());
        self.rows.push(row);
        if is_first {
            self.observed.push(number);
        }
        if self.observed.len() >= self.next_fit || self.process.len() >= MOST_ROWS {
            self.fit();
            self.next_fit = (self.observed.len() as f64 * REFIT).ceil() as usize;
        }
        if is_first {
            self.renew();
        }
    }

    /// Observed trials, the lowest last cost first.
    fn ranked(&self) -> Vec<usize> {
        let mut ranked = self.observed.clone();
        let last = |number: usize| self.trials[number].last;
        let finite = |cost: f64| if cost.is_finite() { cost } else { f64::INFINITY };
        ranked.sort_by(|&a, &b| finite(last(a)).total_cmp(&finite(last(b))));
        ranked
    }

    /// The trial with the lowest last cost.
    fn lowest(&self, numbers: &[usize]) -> Option<usize> {
        let last = |number: usize| self.trials[number].last;
        numbers.iter().copied().min_by(|&a, &b| last(a).total_cmp(&last(b)))
    }

    fn renew(&mut self) {
        let ranked = self.ranked();
        let best = ranked.iter().take(INCUMBENTS).filter_map(|&n| self.trials[n].point.as_ref());
        let best: Vec<&Point> = best.collect();
        let started: Vec<&[f64]> =
            self.trials.iter().map(|trial| trial.target.at.as_slice()).collect();
        self.pool.renew(&best, &started, |target| {
            Efforts::expected(target, &self.process, &self.trials)
        });
    }

    fn started(&self) -> Vec<&[f64]> {
        self.trials.iter().map(|trial| trial.target.at.as_slice()).collect()
    }

    fn scale(&self) -> Scale {
        Scale::new(self.observed.iter().map(|&number| self.trials[number].last).collect())
    }

    /// Fits the length scales and rebuilds the process with the observations that matter most. Trials without any of
    /// them wait for the next fit: without its own curve a trial would look as uncertain as a new one.
    fn fit(&mut self) {
        let ranked = self.ranked();
        let trials: Vec<usize> = self.rows.iter().map(|row| row.trial).collect();
        self.kept = select(&trials, &ranked, KEPT_ROWS);
        self.trials.iter_mut().for_each(|trial| trial.is_modelled = false);
        let mut chosen = ranked;
        if chosen.len() > FIT_TRIALS {
            let rest = chosen.split_off(FIT_TRIALS / 2);
            let stride = rest.len() as f64 / (FIT_TRIALS / 2) as f64;
            chosen.extend((0..FIT_TRIALS / 2).map(|i| rest[(i as f64 * stride) as usize]));
        }
        let scale = self.scale();
        let rows: Vec<&Row> =
            chosen.iter().map(|&number| &self.rows[self.trials[number].row]).collect();
        let place = |row: &&Row| (self.trials[row.trial].target.at.clone(), row.time);
        let places: Vec<(Vec<f64>, f64)> = rows.iter().map(place).collect();
        let values: Vec<f64> = rows.iter().map(|row| scale.of(row.cost)).collect();
        self.process = self.process.fitted(&places, &values);
        for &row in &self.kept {
            let row = &self.rows[row];
            let curve = &mut self.trials[row.trial];
            curve.is_modelled = true;
            self.process.push(&curve.target, row.time);
        }
        self.trials.iter_mut().for_each(|trial| trial.target.truncate(0));
        self.pool.reset(|target| Efforts::expected(target, &self.process, &self.trials));
    }

    /// Fraction of the decisions that continue the leader. The first training is finished soon, but not before there
    /// is a choice: a leader among the first few is rarely the best.
    fn leader_fraction(&self) -> f64 {
        let is_finished = |curve: &Curve| curve.index == u64::MAX && !curve.is_dead;
        match self.trials.iter().any(is_finished) {
            true => self.options.leader_fraction,
            false if self.observed.len() < FIRST_LEADER_TRIALS => 0.0,
            false => FIRST_LEADER_FRACTION,
        }
    }

    fn start(&self, point: Option<Point>) -> Decision {
        let grid = self.trials.iter().rev().find_map(|trial| trial.grid);
        Decision::Start { point, until: grid.map_or(2, |grid| grid.next(0)) }
    }

    fn proceed(&self, trials: &[ScheduledTrial], number: usize) -> Decision {
        let trial = &trials[number];
        let until = trial.planned.map_or(u64::MAX, |planned| Grid::new(planned).next(trial.steps));
        Decision::Continue { trial: number as u64, until }
    }

    /// Continues the best trial to its end if the budget would not suffice for it later.
    fn last_training(&self, history: &ScheduleHistory, open: &[usize]) -> Option<Decision> {
        let left = history.left()?;
        let best = |number: usize| self.trials[number].best;
        let leader = (0..self.trials.len()).min_by(|&a, &b| best(a).total_cmp(&best(b)))?;
        let trial = &history.trials()[leader];
        let planned = trial.planned.filter(|_| open.contains(&leader))?;
        let needed = 1.0 - trial.steps as f64 / planned as f64;
        // The next decision may spend the budget of another pause.
        let pause = 4.0 / planned.min(64) as f64;
        (left <= needed + pause)
            .then_some(Decision::Continue { trial: leader as u64, until: planned })
    }

    /// The lowest cost so far, or the lowest that a started trial is expected to end with.
    ///
    /// An improvement on the lowest cost so far would mean little: most trials improve on it just by being trained
    /// longer, and the model would exploit the first good one.
    fn best_expected(&mut self, scale: &Scale, white: &[f64]) -> f64 {
        let lowest = self.trials.iter().map(|trial| trial.best).fold(f64::INFINITY, f64::min);
        let mut best = scale.of(lowest);
        for curve in self.trials.iter_mut().filter(|curve| curve.is_modelled && !curve.is_dead) {
            self.process.solve(&mut curve.target);
            best = best.min(self.process.predict(&curve.target, white).mean);
        }
        best
    }

    /// Starts or continues the configuration with the highest expected improvement for its effort.
    fn most_promising(&mut self, trials: &[ScheduledTrial], open: &[usize]) -> Decision {
        let scale = self.scale();
        let values: Vec<f64> = self.kept.iter().map(|&row| scale.of(self.rows[row].cost)).collect();
        let mut white = self.process.whiten(&values);
        let length = self.process.len();
        // A running trial is assumed to reach its predicted cost: the mean stays and the uncertainty shrinks.
        for (number, trial) in trials.iter().enumerate().filter(|(_, trial)| trial.is_pending()) {
            let time = trial.planned.map_or(FIRST_TIME, |planned| {
                Grid::new(planned).time(trial.until.min(planned).max(2))
            });
            self.process.push(&self.trials[number].target, time);
            white.push(0.0);
        }
        let best = self.best_expected(&scale, &white);
        let efforts = Efforts::of(&self.trials);
        let worth = |prediction: Prediction, effort: f64| {
            log_improvement(best, prediction.mean, prediction.deviation).log
                - efforts.excess(effort)
        };
        let mut highest = f64::NEG_INFINITY;
        let mut decision = None;
        for &number in open {
            let curve = &mut self.trials[number];
            if !curve.is_modelled {
                continue;
            }
            self.process.solve(&mut curve.target);
            let worth = worth(self.process.predict(&curve.target, &white), curve.effort());
            if worth > highest {
                (highest, decision) = (worth, Some(Ok(number)));
            }
        }
        let (mut sum, mut count) = (0.0, 0);
        let is_suggested = self.pool.is_suggested();
        let mut suggested = None;
        for candidate in self.pool.open() {
            self.process.solve(&mut candidate.target);
            let worth = worth(self.process.predict(&candidate.target, &white), candidate.effort);
            if is_suggested {
                sum += libm::exp(worth);
                count += 1;
                suggested = Some(libm::log(sum / f64::from(count)));
            } else if worth > highest {
                (highest, decision) = (worth, Some(Err(candidate.point.clone())));
            }
        }
        if suggested.is_some_and(|worth| worth > highest) {
            decision = Some(Err(None));
        }
        self.process.truncate(length);
        self.pool.truncate(length);
        self.trials.iter_mut().for_each(|trial| trial.target.truncate(length));
        match decision.or_else(|| self.lowest(open).map(Ok)) {
            Some(Ok(number)) => self.proceed(trials, number),
            Some(Err(point)) => self.start(point),
            None => Decision::Wait,
        }
    }
}

/// Time of the first pause of a trial of unknown length.
const FIRST_TIME: f64 = 0.2;

impl Curve {
    /// Logarithm of the mean effort of an epoch; NaN if unknown.
    fn effort(&self) -> f64 {
        libm::log(self.effort.0 / self.effort.1)
    }
}

/// Efforts of an epoch among the trials.
struct Efforts {
    /// Median of the logarithms; NaN if none is known.
    median: f64,
}

impl Efforts {
    fn of(trials: &[Curve]) -> Efforts {
        let mut known: Vec<f64> =
            trials.iter().map(Curve::effort).filter(|effort| effort.is_finite()).collect();
        known.sort_by(f64::total_cmp);
        Efforts { median: known.get(known.len() / 2).copied().unwrap_or(f64::NAN) }
    }

    /// Logarithm of the effort relative to the median, in whole octaves: a measured time varies from run to run, and
    /// a difference of less than the square root of 2 should not change a decision. 0 if unknown.
    fn excess(&self, effort: f64) -> f64 {
        let octaves = ((effort - self.median) / std::f64::consts::LN_2).round();
        if octaves.is_finite() { octaves * std::f64::consts::LN_2 } else { 0.0 }
    }

    /// Expected logarithm for a configuration: the mean of the trials in the model, weighted by their
    /// covariance.
    fn expected(target: &Target, process: &Process, trials: &[Curve]) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for trial in trials.iter().filter(|trial| trial.is_modelled) {
            let effort = trial.effort();
            if effort.is_finite() {
                let covariance = process.covariance(target, &trial.target);
                sum += covariance * effort;
                weight += covariance;
            }
        }
        sum / weight
    }
}
