//! Progress of a search: a line for each trial that ended or is the best so far, and the running trials below.

use super::{TrialEvent, best, counting, value};
use crate::output::screen::Screen;
use crate::output::{Role, number};
use std::time::Duration;
use surefoot_tune::Study;
use surefoot_tune::scheduler::ScheduleHistory;
use surefoot_tune::storage::{FrozenTrial, TrialState, View};

/// Failed trials after which a search without any other outcome stops.
const MAX_FAILURES_AT_START: usize = 10;
/// Failed trials in a row after which a search stops. Half of the points of a study may fail.
const MAX_FAILURES_IN_A_ROW: usize = 30;

/// Progress of a search.
pub(crate) struct SearchProgress<'a> {
    study: &'a Study,
    /// True for trials whose end was printed.
    printed: Vec<bool>,
    /// Epochs at which a trial was last paused.
    paused: Vec<usize>,
    /// Number of trials that had ended before this search.
    before: usize,
    /// Prefix of the names of this process's workers.
    pool: String,
    /// Trials of this process that did not fail.
    not_failed: usize,
    /// Failed trials since the last one that did not.
    failed: usize,
    /// Lowest cost of the printed trials.
    best: f64,
}

impl<'a> SearchProgress<'a> {
    /// Starts after the trials that have ended already.
    pub(crate) fn new(study: &'a Study, view: &View, pool: &str) -> Self {
        let over = |trial: &FrozenTrial| trial.final_state().is_some();
        let printed: Vec<bool> = view.trials().iter().map(over).collect();
        Self {
            study,
            before: printed.iter().filter(|printed| **printed).count(),
            pool: pool.to_owned(),
            not_failed: 0,
            failed: 0,
            best: best(study, view)
                .map_or(f64::INFINITY, |(_, value)| study.settings.direction.cost(value)),
            paused: view.trials().iter().map(|trial| view.steps(trial.number)).collect(),
            printed,
        }
    }

    /// Prints the first line.
    pub(crate) fn open(&self, store: &str, screen: &Screen) {
        let name = Role::Strong.paint(&self.study.name);
        let text = match self.before {
            0 => format!("  searching {name}, stored in {store}"),
            n => {
                let trials = number::counted(n as u64, "trial");
                format!("  continuing {name} after {trials}, stored in {store}")
            }
        };
        screen.mention(&text);
    }

    /// Prints new results and redraws the running trials.
    pub(crate) fn update(&mut self, view: &View, elapsed: Duration, screen: &Screen) {
        self.printed.resize(view.trials().len(), false);
        self.paused.resize(view.trials().len(), 0);
        for trial in view.trials() {
            let printed = &mut self.printed[trial.number as usize];
            let steps = view.steps(trial.number);
            let paused = &mut self.paused[trial.number as usize];
            let is_paused = trial.state == TrialState::Paused && *paused < steps;
            if is_paused || trial.final_state().is_some() && !*printed {
                *printed = !is_paused;
                *paused = steps;
                self.count(trial);
                screen.event(&TrialEvent::of(trial, view));
                let cost =
                    counting(trial, view).map(|value| self.study.settings.direction.cost(value));
                // In the order of printing, not of ending.
                let is_best = cost.is_some_and(|cost| cost < self.best);
                self.best = cost.map_or(self.best, |cost| self.best.min(cost));
                // A trial may pause many times.
                if is_best || !is_paused {
                    screen.say(&line(self.study, trial, view, is_best, screen.width()));
                }
            }
        }
        screen.draw(&self.lines(view, elapsed));
    }

    /// Counts failures of this process's trials; other machines may have other problems.
    fn count(&mut self, trial: &FrozenTrial) {
        let worker = trial.attempts.last().map(|attempt| attempt.worker.as_str());
        if !worker.is_some_and(|worker| worker.starts_with(&self.pool)) {
            return;
        }
        match trial.final_state() {
            Some(TrialState::Failed { .. }) => self.failed += 1,
            _ => (self.not_failed, self.failed) = (self.not_failed + 1, 0),
        }
    }

    /// Number of failed trials in a row.
    pub(crate) fn failures_in_a_row(&self) -> usize {
        self.failed
    }

    /// Number of failed trials; 0 if any ended otherwise.
    pub(crate) fn failures_only(&self) -> usize {
        match self.not_failed {
            0 => self.failed,
            _ => 0,
        }
    }

    /// True if so many trials failed that the next one will fail too.
    pub(crate) fn keeps_failing(&self) -> bool {
        match self.not_failed {
            0 => self.failed >= MAX_FAILURES_AT_START,
            _ => self.failed >= MAX_FAILURES_IN_A_ROW,
        }
    }

    /// Running trials and totals.
    fn lines(&self, view: &View, elapsed: Duration) -> Vec<String> {
        let running = view.trials().iter().filter(|t| t.state == TrialState::Running);
        let mut lines: Vec<String> = running
            .map(|trial| {
                let reports = view.reports(trial.number);
                let last = reports.last().map(|report| value(self.study, report.value));
                format!(
                    "{:>5}  running   {:>7}  {:>9}",
                    trial.number,
                    epochs(trial, view),
                    last.unwrap_or_default()
                )
            })
            .collect();
        let over = self.printed.iter().filter(|printed| **printed).count();
        let paused = view.trials().iter().filter(|t| t.state == TrialState::Paused).count();
        let mut parts = vec![match (self.study.settings.trials, &self.study.settings.scheduler) {
            (Some(all), None) => format!("{over} of {all} trials"),
            (Some(all), Some(_)) => {
                let done = trainings(view);
                let trials = number::counted(view.trials().len() as u64, "trial");
                format!("{done:.1} of {all} trainings, {trials}")
            }
            (None, _) => number::counted(over as u64, "trial"),
        }];
        if paused > 0 {
            parts.push(format!("{paused} paused"));
        }
        if let Some((trial, best)) = best(self.study, view) {
            let best = value(self.study, best);
            parts.push(format!("best {best} (trial {})", trial.number));
        }
        let done = match self.study.settings.scheduler {
            Some(_) => trainings(view) as usize,
            None => over,
        };
        if let Some(left) = self.time_left(done, elapsed) {
            parts.push(format!("{} left", number::time(left.as_secs_f64())));
        }
        lines.push(parts.join(", "));
        lines
    }

    /// Estimated remaining time, from the budget and the average duration of a trial.
    fn time_left(&self, over: usize, elapsed: Duration) -> Option<Duration> {
        let settings = &self.study.settings;
        let by_time = settings.time.map(|time| time.saturating_sub(elapsed));
        let done = over.checked_sub(self.before).filter(|done| *done >= 3);
        let by_trials = settings.trials.zip(done).and_then(|(all, done)| {
            let left = (all as f64 - over as f64).max(0.0);
            Duration::try_from_secs_f64(elapsed.as_secs_f64() / done as f64 * left).ok()
        });
        match (by_time, by_trials) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Full trainings that the epochs so far amount to.
fn trainings(view: &View) -> f64 {
    let mut history = ScheduleHistory::default();
    view.update_schedule(&mut history);
    history.trainings()
}

/// Completed and planned epochs.
pub(super) fn epochs(trial: &FrozenTrial, view: &View) -> String {
    let done = view.steps(trial.number);
    match trial.planned {
        Some(planned) => format!("{done}/{planned}"),
        None => done.to_string(),
    }
}

/// Line of a trial that ended or was paused.
fn line(
    study: &Study,
    trial: &FrozenTrial,
    view: &View,
    is_best: bool,
    width: Option<usize>,
) -> String {
    let reached = view.value(trial.number).map(|reached| value(study, reached));
    let head = format!(
        "{:>5}  {:<8}  {:>7}  {:>9}",
        trial.number,
        trial.state.name(),
        epochs(trial, view),
        reached.unwrap_or_default()
    );
    let (role, note) = match trial.final_state() {
        Some(TrialState::Pruned { reason, .. }) => {
            (Role::Quiet, format!("{}: {}", reason.by, reason.message))
        }
        Some(TrialState::Failed { message }) => {
            (Role::Warning, message.lines().collect::<Vec<_>>().join(" "))
        }
        _ if is_best => (Role::Good, "best so far".to_owned()),
        _ => (Role::Quiet, String::new()),
    };
    if note.is_empty() {
        return head;
    }
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(head.len() + 2));
    let note = match note.chars().count() > room {
        true => note.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
        false => note,
    };
    format!("{head}  {}", role.paint(note))
}
