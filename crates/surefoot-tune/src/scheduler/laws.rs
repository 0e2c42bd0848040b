//! Laws that every scheduler obeys.

use super::{Decision, ScheduleHistory, ScheduledReport, ScheduledTrial, SchedulerConfig, Search};
use crate::sampler::fixture;
use crate::space::{Domain, Point, Space};
use proptest::prelude::*;
use surefoot_random::{Key, Purpose};

const PLANNED: u64 = 20;

fn space() -> Space {
    fixture::conditional()
}

/// A search with some parallel workers whose costs are drawn from a key, one of twenty NaN.
struct Searcher<'a> {
    config: &'a SchedulerConfig,
    space: &'a Space,
    seed: u64,
    history: ScheduleHistory,
}

impl Searcher<'_> {
    fn search(&self) -> Search<'_> {
        Search { space: self.space, seed: self.seed, candidates: None, is_suggested: false }
    }

    /// The decision of a schedule that has seen nothing before.
    fn fresh(&self) -> Decision {
        self.config.schedule(&self.search()).decide(&self.history)
    }

    fn apply(&mut self, decision: &Decision) -> Option<u64> {
        match decision.clone() {
            Decision::Wait => None,
            Decision::Continue { trial, until } => {
                let known = &self.history.trials()[trial as usize];
                assert!(known.is_paused(), "{decision:?} of {known:?}");
                assert!(until > known.steps && until <= PLANNED, "{decision:?} of {known:?}");
                self.history.extend(trial, until);
                Some(trial)
            }
            Decision::Start { point, until } => {
                assert!(until > 0);
                let number = self.history.trials().len() as u64;
                let key = Key::new(self.seed, Purpose::Generate).epoch(number);
                let point = point.unwrap_or_else(|| self.space.at(|i| key.uniform(i as u64)));
                assert!(self.space.contains(&point));
                let point = Some(point);
                self.history.start(ScheduledTrial {
                    point,
                    planned: None,
                    until,
                    steps: 0,
                    is_over: false,
                });
                Some(number)
            }
        }
    }

    /// Runs an epoch of a trial. Returns true if its worker is free.
    fn run(&mut self, number: u64) -> bool {
        let step = self.history.trials()[number as usize].steps + 1;
        let key = Key::new(self.seed, Purpose::Generate).epoch(number).sample(step);
        let level = Key::new(self.seed, Purpose::Generate).epoch(number).uniform(99);
        let cost = match key.uniform(0) < 0.02 {
            true => f64::NAN,
            false => level + 1.0 / step as f64 + 0.05 * key.uniform(1),
        };
        self.history.update(number, |trial| trial.planned = Some(PLANNED));
        let effort = if number.is_multiple_of(3) { 4.0 } else { 1.0 };
        self.history.report(ScheduledReport { trial: number, step, cost, effort });
        if step == PLANNED || cost.is_nan() {
            self.history.update(number, |trial| trial.is_over = true);
        }
        !self.history.trials()[number as usize].is_pending()
    }
}

/// Runs a search and compares every `fresh`th decision with that of a schedule that has seen nothing before.
fn check(
    config: &SchedulerConfig,
    space: &Space,
    seed: u64,
    workers: usize,
    epochs: usize,
    fresh: u64,
) {
    let history = ScheduleHistory::default();
    let mut searcher = Searcher { config, space, seed, history };
    let mut schedule = config.schedule(&searcher.search());
    let mut running: Vec<u64> = Vec::new();
    for epoch in 0..epochs {
        while running.len() < workers {
            let decision = schedule.decide(&searcher.history);
            if searcher.history.decisions().is_multiple_of(fresh) {
                assert_eq!(searcher.fresh(), decision, "{}", config.name());
            }
            match searcher.apply(&decision) {
                Some(number) => running.push(number),
                None => break,
            }
        }
        assert!(!running.is_empty(), "{} waits for nothing", config.name());
        let index = epoch % running.len();
        if searcher.run(running[index]) {
            running.remove(index);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn decisions_depend_on_the_history_alone(seed: u64, workers in 1_usize..5) {
        for config in SchedulerConfig::all() {
            check(&config, &space(), seed, workers, 120, 1);
        }
    }
}

#[test]
fn decisions_of_a_long_search_depend_on_the_history_alone() {
    for config in SchedulerConfig::all() {
        check(&config, &space(), 4, 3, 1500, 150);
    }
}

#[test]
fn a_space_that_is_not_declared_is_searched() {
    for config in SchedulerConfig::all() {
        check(&config, &Space::default(), 3, 2, 80, 1);
    }
}

#[test]
fn a_space_of_two_points_is_trained_to_its_end() {
    let space = fixture::space([("n", Domain::Int(1, 2))]);
    let config = SchedulerConfig::named("freeze_thaw").unwrap();
    let mut searcher =
        Searcher { config: &config, space: &space, seed: 1, history: ScheduleHistory::default() };
    let mut schedule = config.schedule(&searcher.search());
    while let Some(number) = {
        let decision = schedule.decide(&searcher.history);
        searcher.apply(&decision)
    } {
        while !searcher.run(number) {}
    }
    let trials = searcher.history.trials();
    let points: Vec<&Point> = trials.iter().filter_map(|trial| trial.point.as_ref()).collect();
    assert_eq!(points.len(), 2, "{points:?}");
    assert!(points[0] != points[1] && trials.iter().all(|trial| trial.is_over));
}

#[test]
fn a_trial_with_nan_is_never_continued() {
    for config in SchedulerConfig::all() {
        let space = space();
        let mut searcher = Searcher {
            config: &config,
            space: &space,
            seed: 5,
            history: ScheduleHistory::default(),
        };
        let mut schedule = config.schedule(&searcher.search());
        for _ in 0..60 {
            let decision = schedule.decide(&searcher.history);
            let number = searcher.apply(&decision).expect("something to run");
            let step = searcher.history.trials()[number as usize].steps + 1;
            let trial = &searcher.history.trials()[number as usize];
            assert!(number != 0 || trial.steps == 0, "{} continues trial 0", config.name());
            let cost = if number == 0 { f64::NAN } else { 1.0 / step as f64 };
            searcher.history.update(number, |trial| trial.planned = Some(PLANNED));
            let until = searcher.history.trials()[number as usize].until;
            for step in step..=until.min(PLANNED) {
                searcher.history.report(ScheduledReport { trial: number, step, cost, effort: 0.0 });
            }
            if until >= PLANNED {
                searcher.history.update(number, |trial| trial.is_over = true);
            }
        }
    }
}
