//! Decisions of a scheduler for one worker.

use crate::scheduler::{Decision, Schedule, ScheduleHistory, Scheduler, Search};
use crate::storage::{Scheduled, StoredStudy, View};

/// Tolerance of the budget for the order of summation.
const ROUNDING: f64 = 1e-9;

/// A scheduler and what it has seen.
pub(crate) struct Scheduling {
    schedule: Box<dyn Schedule>,
    history: ScheduleHistory,
    /// Budget in full trainings.
    budget: Option<u64>,
}

impl Scheduling {
    pub(crate) fn new(
        scheduler: &dyn Scheduler,
        study: &StoredStudy,
        is_suggested: bool,
        budget: Option<u64>,
    ) -> Scheduling {
        let search =
            Search { space: &study.space, seed: study.seed, candidates: None, is_suggested };
        let schedule = scheduler.schedule(&search);
        Scheduling { schedule, history: ScheduleHistory::default(), budget }
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
