//! A search while it goes on: a line for each trial that is over, and below them those that run.

use super::{TrialEvent, best, counting, value};
use crate::output::screen::Screen;
use crate::output::{Role, number};
use std::time::Duration;
use surefoot_tune::Study;
use surefoot_tune::storage::{FrozenTrial, TrialState, View};

/// After so many trials that have all failed, the next will fail as well.
const HOPELESS_FROM_THE_START: usize = 10;
/// The same where others have not. Half of the points of a study may be such that trials fail.
const HOPELESS_AFTER_OTHERS: usize = 30;

/// How a search stands.
pub(crate) struct Standing<'a> {
    study: &'a Study,
    /// Which trials were told to be over.
    told: Vec<bool>,
    /// How many there were when this began.
    before: usize,
    /// What the names of the workers begin with that this process looks after.
    crew: String,
    /// How many of their trials have ended otherwise than by failing, and how many have failed since the last of those.
    sound: usize,
    failed: usize,
    /// The lowest cost of those that were told and count.
    best: f64,
}

impl<'a> Standing<'a> {
    /// A search as it is found. What is over already is not told again.
    pub(crate) fn new(study: &'a Study, view: &View, crew: &str) -> Self {
        let over = |trial: &FrozenTrial| trial.final_state().is_some();
        let told: Vec<bool> = view.trials().iter().map(over).collect();
        Self {
            study,
            before: told.iter().filter(|told| **told).count(),
            crew: crew.to_owned(),
            sound: 0,
            failed: 0,
            best: best(study, view)
                .map_or(f64::INFINITY, |(_, value)| study.settings.direction.cost(value)),
            told,
        }
    }

    /// Says what is about to go on.
    pub(crate) fn open(&self, store: &str, screen: &Screen) {
        let name = Role::Strong.paint(&self.study.name);
        let text = match self.before {
            0 => format!("  searching {name}, kept in {store}"),
            n => {
                let trials = number::counted(n as u64, "trial");
                format!("  going on with {name} after {trials}, kept in {store}")
            }
        };
        screen.mention(&text);
    }

    /// Tells what has happened, and shows what goes on.
    pub(crate) fn update(&mut self, view: &View, elapsed: Duration, screen: &Screen) {
        self.told.resize(view.trials().len(), false);
        for trial in view.trials() {
            let told = &mut self.told[trial.number as usize];
            if trial.final_state().is_some() && !*told {
                *told = true;
                self.count(trial);
                screen.event(&TrialEvent::of(trial, view));
                let cost = counting(trial).map(|value| self.study.settings.direction.cost(value));
                // By the order in which they are told, not by what else has ended meanwhile.
                let is_best = cost.is_some_and(|cost| cost < self.best);
                self.best = cost.map_or(self.best, |cost| self.best.min(cost));
                screen.say(&line(self.study, trial, view, is_best, screen.width()));
            }
        }
        screen.draw(&self.lines(view, elapsed));
    }

    /// Those of other machines say nothing of this one.
    fn count(&mut self, trial: &FrozenTrial) {
        let worker = trial.attempts.last().map(|attempt| attempt.worker.as_str());
        if !worker.is_some_and(|worker| worker.starts_with(&self.crew)) {
            return;
        }
        match trial.final_state() {
            Some(TrialState::Failed { .. }) => self.failed += 1,
            _ => (self.sound, self.failed) = (self.sound + 1, 0),
        }
    }

    /// How many trials have failed here one after the other.
    pub(crate) fn failures_in_a_row(&self) -> usize {
        self.failed
    }

    /// How many trials have failed here; 0 if any ended otherwise.
    pub(crate) fn failures_only(&self) -> usize {
        match self.sound {
            0 => self.failed,
            _ => 0,
        }
    }

    /// Whether the next trial will fail as well: the first ones all have, or so many that it cannot be chance.
    pub(crate) fn is_hopeless(&self) -> bool {
        match self.sound {
            0 => self.failed >= HOPELESS_FROM_THE_START,
            _ => self.failed >= HOPELESS_AFTER_OTHERS,
        }
    }

    /// What is drawn below: the trials that run, and how far it is.
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
        let over = self.told.iter().filter(|told| **told).count();
        let mut parts = vec![match self.study.settings.trials {
            Some(all) => format!("{over} of {all} trials"),
            None => number::counted(over as u64, "trial"),
        }];
        if let Some((trial, best)) = best(self.study, view) {
            let best = value(self.study, best);
            parts.push(format!("best {best} (trial {})", trial.number));
        }
        if let Some(left) = self.time_left(over, elapsed) {
            parts.push(format!("{} left", number::time(left.as_secs_f64())));
        }
        lines.push(parts.join(", "));
        lines
    }

    /// How long it will still take: until the budget ends, or as long as trials took so far.
    fn time_left(&self, over: usize, elapsed: Duration) -> Option<Duration> {
        let settings = &self.study.settings;
        let by_time = settings.time.map(|time| time.saturating_sub(elapsed));
        let done = over.checked_sub(self.before).filter(|done| *done >= 3);
        let by_trials = settings.trials.zip(done).and_then(|(all, done)| {
            let left = (all as f64 - over as f64).max(0.0);
            // Nobody waits for longer than a duration can be.
            Duration::try_from_secs_f64(elapsed.as_secs_f64() / done as f64 * left).ok()
        });
        match (by_time, by_trials) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// How many of its epochs a trial has done.
fn epochs(trial: &FrozenTrial, view: &View) -> String {
    let done = view.reports(trial.number).len();
    match trial.planned {
        Some(planned) => format!("{done}/{planned}"),
        None => done.to_string(),
    }
}

/// A trial that is over.
fn line(
    study: &Study,
    trial: &FrozenTrial,
    view: &View,
    is_best: bool,
    width: Option<usize>,
) -> String {
    let reached = trial.value().map(|reached| value(study, reached));
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
        _ if is_best => (Role::Good, "the best so far".to_owned()),
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
