//! Studies drawn from recorded trials.

use super::record::{RecordedTrial, Task};
use super::replay::{Alert, alerts, replay};
use super::tally::Tally;
use crate::pruner::PruningConfig;
use surefoot_random::{Key, Purpose, choose};

/// Order of replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// As recorded: one study.
    Recorded,
    /// One study per seed, of trials drawn without replacement: random search on recorded results.
    Drawn {
        /// Trials per study.
        trials: usize,
        /// Seeds.
        seeds: Vec<u64>,
    },
}

impl Order {
    /// Indices of the trials of each study, in a record of `count` trials.
    fn studies(&self, count: usize) -> Vec<Vec<usize>> {
        match self {
            Order::Recorded => vec![(0..count).collect()],
            Order::Drawn { trials, seeds } => {
                let draw = |seed: &u64| {
                    let key = Key::new(*seed, Purpose::Subset);
                    let drawn = choose(key, count as u64, *trials as u64);
                    drawn.map(|place| place as usize).collect()
                };
                seeds.iter().map(draw).collect()
            }
        }
    }
}

/// Replays a task under the given pruning rules.
pub fn measure(task: &Task, order: &Order, settings: &PruningConfig) -> Tally {
    let found: Vec<Vec<Alert>> = if settings.indicators.is_empty() {
        vec![Vec::new(); task.trials.len()]
    } else {
        task.trials.iter().map(|trial| alerts(trial, settings)).collect()
    };
    let mut tally = Tally::default();
    for study in order.studies(task.trials.len()) {
        let trials: Vec<&RecordedTrial> = study.iter().map(|&i| &task.trials[i]).collect();
        let alerts = study.iter().map(|&i| found[i].as_slice());
        let watched: Vec<_> = trials.iter().copied().zip(alerts).collect();
        tally.add(&Tally::of(&trials, &replay(&watched, settings)));
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_drawn_without_replacement_and_repeat() {
        let order = Order::Drawn { trials: 30, seeds: vec![1, 2] };
        let studies = order.studies(50);
        assert_eq!(studies, order.studies(50));
        assert_ne!(studies[0], studies[1]);
        for mut study in studies {
            study.sort_unstable();
            study.dedup();
            assert_eq!(study.len(), 30);
        }
    }

    #[test]
    fn a_task_is_measured_over_all_its_studies() {
        let losses = |i: usize| vec![1.0 / (i + 1) as f64; 10];
        let trials = (0..20).map(|i| RecordedTrial::from_losses(&losses(i), &losses(i)));
        let task = Task { name: "made up".to_owned(), trials: trials.collect() };
        let order = Order::Drawn { trials: 15, seeds: vec![1, 2, 3] };
        let tally = measure(&task, &order, &PruningConfig::none());
        assert_eq!((tally.studies, tally.trials, tally.top), (3, 45, 30));
        assert_eq!((tally.saved(), tally.best_share()), (0.0, 1.0));
        let whole = measure(&task, &Order::Recorded, &PruningConfig::none());
        assert_eq!((whole.studies, whole.trials), (1, 20));
    }
}
