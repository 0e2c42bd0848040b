//! Summary of a search.

use super::progress::epochs;
use super::{best, parameters, value};
use crate::output::{Console, Role, number};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use surefoot_tune::scheduler::ScheduleHistory;
use surefoot_tune::storage::{FrozenTrial, TrialState, View};
use surefoot_tune::study::Task;
use surefoot_tune::{Point, Study};

/// Summary of a search.
pub(crate) struct Summary<'a> {
    study: &'a Study,
    best: Option<(&'a FrozenTrial, f64)>,
    /// Completed and planned epochs of the best trial.
    best_epochs: String,
    event: SummaryEvent<'a>,
}

/// JSON event of the summary.
#[derive(Serialize)]
struct SummaryEvent<'a> {
    event: &'static str,
    study: &'a str,
    trials: usize,
    complete: usize,
    pruned: usize,
    failed: usize,
    paused: usize,
    /// Waiting, running and lost trials.
    open: usize,
    /// Pruned trials by pruner or indicator.
    pruned_by: BTreeMap<&'a str, usize>,
    /// Fraction of the planned epochs saved by pruning and pausing.
    saved: f64,
    /// Exhausted part of the budget.
    ended_by: Option<Spent>,
    best: Option<BestTrial<'a>>,
    seconds: f64,
    store: &'a str,
}

#[derive(Serialize)]
struct BestTrial<'a> {
    number: u64,
    value: f64,
    parameters: Option<&'a Point>,
    run: Option<&'a str>,
}

impl<'a> Summary<'a> {
    /// Summarizes a study.
    pub(crate) fn of(study: &'a Study, view: &'a View, store: &'a str, elapsed: Duration) -> Self {
        let trials = view.trials();
        let count = |word: &str| trials.iter().filter(|t| t.state.name() == word).count();
        let mut pruned_by = BTreeMap::new();
        for trial in trials {
            if let TrialState::Pruned { reason, .. } = &trial.state {
                *pruned_by.entry(reason.by.as_str()).or_insert(0) += 1;
            }
        }
        let best = best(study, view);
        let event = SummaryEvent {
            event: "summary",
            study: &study.name,
            trials: trials.len(),
            complete: count("complete"),
            pruned: count("pruned"),
            failed: count("failed"),
            paused: count("paused"),
            open: count("waiting") + count("running") + count("lost"),
            pruned_by,
            saved: saved(view),
            ended_by: spent(study, view, elapsed),
            best: best.map(|(trial, value)| BestTrial {
                number: trial.number,
                value,
                parameters: trial.point.as_ref(),
                run: trial.run.as_deref(),
            }),
            seconds: elapsed.as_secs_f64(),
            store,
        };
        let best_epochs = best.map_or_else(String::new, |(trial, _)| epochs(trial, view));
        Self { study, best, best_epochs, event }
    }

    /// The best trial.
    pub(crate) fn best(&self) -> Option<&'a FrozenTrial> {
        self.best.map(|(trial, _)| trial)
    }

    /// Prints the summary.
    pub(crate) fn show(&self, dir: &Path, console: &Console) {
        console.say(&self.text(dir));
        console.event(&self.event);
    }

    fn text(&self, dir: &Path) -> String {
        let event = &self.event;
        let mut counts = vec![format!("{} complete", event.complete)];
        if event.pruned > 0 {
            let by = event.pruned_by.iter().map(|(by, count)| format!("{by} {count}"));
            let by = by.collect::<Vec<_>>().join(", ");
            counts.push(format!("{} pruned ({by})", event.pruned));
        }
        if event.failed > 0 {
            counts.push(format!("{} failed", event.failed));
        }
        if event.paused > 0 {
            counts.push(format!("{} paused", event.paused));
        }
        if event.open > 0 {
            counts.push(format!("{} unfinished", event.open));
        }
        let mut lines = vec![
            String::new(),
            format!("  {:<10} {}: {}", "trials", event.trials, counts.join(", ")),
        ];
        if event.pruned + event.paused > 0 && self.study.settings.scheduler.is_none() {
            let saved = event.saved * 100.0;
            lines.push(format!("  {:<10} {saved:.0}% of the planned epochs", "saved"));
        }
        match self.best {
            Some((trial, reached)) => {
                let reached = Role::Good.paint(value(self.study, reached));
                let objective = self.study.settings.objective.name();
                let state = match trial.state {
                    TrialState::Paused => format!(", paused at epoch {}", self.best_epochs),
                    _ => String::new(),
                };
                lines.push(format!(
                    "  {:<10} {objective} {reached} (trial {}{state})",
                    "best", trial.number
                ));
                if let Some(point) = &trial.point {
                    lines.push(format!("  {:<10} {}", "with", parameters(point)));
                }
                if let (Some(run), Task::Plan(_)) = (&trial.run, &self.study.task) {
                    lines.push(format!("  {:<10} {run}", "run"));
                }
            }
            None => lines.push(format!("  {:<10} no trial produced a result", "best")),
        }
        let time = number::time(event.seconds);
        let why = match event.ended_by {
            Some(Spent::Trials) if self.study.settings.scheduler.is_some() => {
                ", epoch budget used up"
            }
            Some(Spent::Trials) => ", all trials finished",
            Some(Spent::Time) => ", time budget used up",
            Some(Spent::Operations) => ", operations budget used up",
            None => "",
        };
        lines.push(format!("  {:<10} {time}{why}", "time"));
        let page = dir.join("report.html");
        let page = page.display().to_string();
        let is_own = Path::new(event.store) == dir.join("study.db");
        // A shared store may have other studies.
        let study = match is_own {
            true => String::new(),
            false => format!(" --study {}", quoted(event.study)),
        };
        let command =
            format!("surefoot report {}{study} -o {}", quoted(event.store), quoted(&page));
        lines.push(format!("  {:<10} {}", "report", Role::Literal.paint(command)));
        lines.join("\n")
    }
}

/// Part of a budget, by its key in the study.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Spent {
    Trials,
    Time,
    Operations,
}

/// The exhausted part of the budget.
fn spent(study: &Study, view: &View, elapsed: Duration) -> Option<Spent> {
    let settings = &study.settings;
    let over = view.trials().iter().filter(|trial| trial.final_state().is_some());
    let done = match settings.scheduler {
        None => over.count() as f64,
        Some(_) => {
            let mut history = ScheduleHistory::default();
            view.update_schedule(&mut history);
            history.trainings() + 1e-9
        }
    };
    if settings.trials.is_some_and(|trials| done >= trials as f64) {
        return Some(Spent::Trials);
    }
    let operations = settings.operations;
    if operations.is_some_and(|operations| view.operations() >= operations) {
        return Some(Spent::Operations);
    }
    settings.time.is_some_and(|time| elapsed >= time).then_some(Spent::Time)
}

/// Quotes a word for the shell, such as a URL with `&` and `?`.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./_-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// Fraction of the planned epochs of ended and paused trials that did not run.
fn saved(view: &View) -> f64 {
    let (mut planned, mut spared) = (0.0, 0.0);
    for trial in view.trials() {
        let is_paused = trial.state == TrialState::Paused;
        let Some(curve) = view.curve(trial.number).filter(|curve| curve.over || is_paused) else {
            continue;
        };
        planned += curve.planned as f64;
        if is_paused || matches!(trial.state, TrialState::Pruned { .. }) {
            spared += curve.planned.saturating_sub(curve.costs.len()) as f64;
        }
    }
    if planned > 0.0 { spared / planned } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn shell_characters_are_quoted() {
        for plain in ["runs/digits/study.db", "postgres://me@%2Ftmp:5499/studies"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(
            quoted("postgres://me@db/s?sslmode=verify-ca&sslrootcert=/ca's.pem"),
            r"'postgres://me@db/s?sslmode=verify-ca&sslrootcert=/ca'\''s.pem'"
        );
    }
}
