//! Decisions of a scheduler for one worker.

use crate::scheduler::{Decision, Schedule, ScheduleHistory, SchedulerConfig, Search};
use crate::space::Space;
use crate::storage::{Scheduled, StoredStudy, View};

/// Tolerance of the budget for the order of summation.
const ROUNDING: f64 = 1e-9;

/// A scheduler and what it has seen.
pub(crate) struct Scheduling {
    scheduler: SchedulerConfig,
    space: Space,
    seed: u64,
    is_suggested: bool,
    schedule: Box<dyn Schedule>,
    history: ScheduleHistory,
    /// Budget in full trainings.
    budget: Option<u64>,
}

impl Scheduling {
    pub(crate) fn new(
        scheduler: &SchedulerConfig,
        study: &StoredStudy,
        is_suggested: bool,
        budget: Option<u64>,
    ) -> Scheduling {
        let (space, seed) = (study.space.clone(), study.seed);
        let search = Search { space: &space, seed, candidates: None, is_suggested };
        Scheduling {
            schedule: scheduler.schedule(&search),
            scheduler: scheduler.clone(),
            space,
            seed,
            is_suggested,
            history: ScheduleHistory::default(),
            budget,
        }
    }

    /// Starts a new schedule if trials have added parameters. It makes the decisions of one that has known them from
    /// the start.
    pub(crate) fn set_space(&mut self, space: Space) {
        if self.space != space {
            let (seed, is_suggested) = (self.seed, self.is_suggested);
            let search = Search { space: &space, seed, candidates: None, is_suggested };
            self.schedule = self.scheduler.schedule(&search);
            self.space = space;
        }
    }

    /// Decides on what a view contains.
    pub(crate) fn decide(&mut self, view: &View) -> Scheduled {
        view.update_schedule(&mut self.history);
        let left = self.budget.map(|budget| budget as f64 - self.history.trainings());
        self.history.set_left(left);
        let decision = match left {
            Some(left) if left < ROUNDING => Decision::Wait,
            _ => self.schedule.decide(&self.history),
        };
        Scheduled {
            decision,
            decisions: self.history.decisions(),
            budget: self.budget,
            seen: view.change(),
        }
    }
}

impl std::fmt::Debug for Scheduling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduling").field("budget", &self.budget).finish_non_exhaustive()
    }
}
