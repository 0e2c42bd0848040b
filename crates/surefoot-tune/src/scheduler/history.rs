//! History of trials that a scheduler sees.

use crate::space::Point;

/// The trials of a study and their reports, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleHistory {
    trials: Vec<ScheduledTrial>,
    reports: Vec<ScheduledReport>,
    decisions: u64,
    /// Number of reports passed to `report`, those it ignored included.
    log_read: usize,
    left: Option<f64>,
}

/// A trial as a scheduler sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledTrial {
    /// Parameter values; `None` until its worker has sampled them.
    pub point: Option<Point>,
    /// Number of epochs if it runs to its end, once known.
    pub planned: Option<u64>,
    /// Total number of epochs before it pauses.
    pub until: u64,
    /// Number of reported epochs.
    pub steps: u64,
    /// True once it has ended, for whatever reason.
    pub is_over: bool,
}

impl ScheduledTrial {
    /// True while a worker runs it, or is about to.
    pub fn is_pending(&self) -> bool {
        !self.is_over && self.steps < self.until
    }

    /// True if it can be continued.
    pub fn is_paused(&self) -> bool {
        !self.is_over && !self.is_pending()
    }
}

/// An epoch that a trial has reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduledReport {
    /// Number of the trial.
    pub trial: u64,
    /// 1-based epoch.
    pub step: u64,
    /// Cost; lower is better. May be NaN or infinite.
    pub cost: f64,
    /// Effort of an epoch in any unit that is the same for all trials; 0 if unknown.
    pub effort: f64,
}

impl ScheduleHistory {
    /// Trials by number.
    pub fn trials(&self) -> &[ScheduledTrial] {
        &self.trials
    }

    /// Reports in the order in which they were made.
    pub fn reports(&self) -> &[ScheduledReport] {
        &self.reports
    }

    /// Number of decisions so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Budget that is left, in full trainings; `None` without a limit.
    pub fn left(&self) -> Option<f64> {
        self.left
    }

    /// Sets the budget that is left.
    pub fn set_left(&mut self, left: Option<f64>) {
        self.left = left;
    }

    /// Full trainings so far, where a trial counts with its share of the planned epochs.
    pub fn trainings(&self) -> f64 {
        let share = |trial: &ScheduledTrial| match trial.planned {
            Some(planned) if planned > 0 => (trial.steps as f64 / planned as f64).min(1.0),
            _ => f64::from(u8::from(trial.is_over)),
        };
        self.trials.iter().map(share).sum()
    }

    /// Adds a trial after a decision to start it.
    pub fn start(&mut self, trial: ScheduledTrial) {
        self.add(trial);
        self.decisions += 1;
    }

    /// Adds a trial that no decision has started.
    pub fn add(&mut self, trial: ScheduledTrial) {
        self.trials.push(trial);
    }

    pub(crate) fn log_read(&self) -> usize {
        self.log_read
    }

    /// Continues a trial after a decision to do so.
    pub fn extend(&mut self, trial: u64, until: u64) {
        if let Some(trial) = self.trials.get_mut(trial as usize) {
            trial.until = until;
        }
        self.decisions += 1;
    }

    /// Adds a report. An epoch that was reported before is ignored: an attempt that continues from a
    /// checkpoint repeats some.
    pub fn report(&mut self, report: ScheduledReport) {
        self.log_read += 1;
        let Some(trial) = self.trials.get_mut(report.trial as usize) else {
            return;
        };
        if report.step > trial.steps {
            trial.steps = report.step;
            self.reports.push(report);
        }
    }

    /// Changes a trial: its point or planned epochs became known, or it has ended.
    pub fn update(&mut self, trial: u64, change: impl FnOnce(&mut ScheduledTrial)) {
        if let Some(trial) = self.trials.get_mut(trial as usize) {
            change(trial);
        }
    }
}
