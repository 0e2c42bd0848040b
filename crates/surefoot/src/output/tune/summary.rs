//! How a search ended.

use super::{best, parameters, value};
use crate::output::{Console, Role, number};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use surefoot_tune::storage::{FrozenTrial, TrialState, View};
use surefoot_tune::study::Task;
use surefoot_tune::{Point, Study};

/// How a search ended.
pub(crate) struct Summary<'a> {
    study: &'a Study,
    best: Option<(&'a FrozenTrial, f64)>,
    told: Told<'a>,
}

/// What programs are told.
#[derive(Serialize)]
struct Told<'a> {
    event: &'static str,
    study: &'a str,
    trials: usize,
    complete: usize,
    stopped: usize,
    failed: usize,
    /// Trials that are not over: they wait to be gone on with.
    open: usize,
    /// Who ended how many trials.
    stopped_by: BTreeMap<&'a str, usize>,
    /// The share of the planned epochs that stopped trials were spared.
    saved: f64,
    /// Which part of the budget is used up.
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
    /// What a study has come to.
    pub(crate) fn of(study: &'a Study, view: &'a View, store: &'a str, elapsed: Duration) -> Self {
        let trials = view.trials();
        let count = |word: &str| trials.iter().filter(|t| t.state.name() == word).count();
        let mut stopped_by = BTreeMap::new();
        for trial in trials {
            if let TrialState::Pruned { reason, .. } = &trial.state {
                *stopped_by.entry(reason.by.as_str()).or_insert(0) += 1;
            }
        }
        let best = best(study, view);
        let told = Told {
            event: "summary",
            study: &study.name,
            trials: trials.len(),
            complete: count("complete"),
            stopped: count("pruned"),
            failed: count("failed"),
            open: count("waiting") + count("running") + count("lost"),
            stopped_by,
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
        Self { study, best, told }
    }

    /// The best trial.
    pub(crate) fn best(&self) -> Option<&'a FrozenTrial> {
        self.best.map(|(trial, _)| trial)
    }

    /// Tells it.
    pub(crate) fn show(&self, dir: &Path, console: &Console) {
        console.say(&self.text(dir));
        console.event(&self.told);
    }

    fn text(&self, dir: &Path) -> String {
        let told = &self.told;
        let mut counts = vec![format!("{} complete", told.complete)];
        if told.stopped > 0 {
            let by = told.stopped_by.iter().map(|(by, count)| format!("{by} {count}"));
            let by = by.collect::<Vec<_>>().join(", ");
            counts.push(format!("{} stopped ({by})", told.stopped));
        }
        if told.failed > 0 {
            counts.push(format!("{} failed", told.failed));
        }
        if told.open > 0 {
            counts.push(format!("{} to go on with", told.open));
        }
        let mut lines = vec![
            String::new(),
            format!("  {:<10} {}: {}", "trials", told.trials, counts.join(", ")),
        ];
        if told.stopped > 0 {
            let saved = told.saved * 100.0;
            lines.push(format!("  {:<10} {saved:.0}% of the planned epochs", "saved"));
        }
        match self.best {
            Some((trial, reached)) => {
                let reached = Role::Good.paint(value(self.study, reached));
                let objective = self.study.settings.objective.name();
                lines.push(format!(
                    "  {:<10} {reached} {objective} (trial {})",
                    "best", trial.number
                ));
                if let Some(point) = &trial.point {
                    lines.push(format!("  {:<10} {}", "with", parameters(point)));
                }
                if let (Some(run), Task::Plan(_)) = (&trial.run, &self.study.task) {
                    lines.push(format!("  {:<10} {run}", "run"));
                }
            }
            None => lines.push(format!("  {:<10} no trial came to a result", "best")),
        }
        let time = number::time(told.seconds);
        let why = match told.ended_by {
            Some(Spent::Trials) => ", all trials are done",
            Some(Spent::Time) => ", which is all it had",
            Some(Spent::Operations) => ", the operations are used up",
            None => "",
        };
        lines.push(format!("  {:<10} {time}{why}", "time"));
        let page = dir.join("report.html");
        let page = page.display().to_string();
        let is_own = Path::new(told.store) == dir.join("study.db");
        // Others may be in the same store.
        let study = match is_own {
            true => String::new(),
            false => format!(" --study {}", quoted(told.study)),
        };
        let command = format!("surefoot report {}{study} -o {}", quoted(told.store), quoted(&page));
        lines.push(format!("  {:<10} {}", "report", Role::Literal.paint(command)));
        lines.join("\n")
    }
}

/// A part of the budget, by its key in the study.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Spent {
    Trials,
    Time,
    Operations,
}

/// Which part of its budget a search has used up.
fn spent(study: &Study, view: &View, elapsed: Duration) -> Option<Spent> {
    let settings = &study.settings;
    let over = view.trials().iter().filter(|trial| trial.final_state().is_some());
    let over = over.count() as u64;
    if settings.trials.is_some_and(|trials| over >= trials) {
        return Some(Spent::Trials);
    }
    let operations = settings.operations;
    if operations.is_some_and(|operations| view.operations() >= operations) {
        return Some(Spent::Operations);
    }
    settings.time.is_some_and(|time| elapsed >= time).then_some(Spent::Time)
}

/// A word of a command as it can be pasted into a shell: `&` and `?` of a URL mean something there.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./_-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// The share of the epochs planned for trials that are over which was not run because they were
/// stopped.
fn saved(view: &View) -> f64 {
    let (mut planned, mut spared) = (0.0, 0.0);
    for trial in view.trials() {
        let (Some(end), Some(curve)) = (trial.final_state(), view.curve(trial.number)) else {
            continue;
        };
        planned += curve.planned as f64;
        if matches!(end, TrialState::Pruned { .. }) {
            spared += curve.planned.saturating_sub(curve.costs.len()) as f64;
        }
    }
    if planned > 0.0 { spared / planned } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_a_shell_would_understand_otherwise_is_quoted() {
        for plain in ["runs/digits/study.db", "postgres://me@%2Ftmp:5499/studies"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(
            quoted("postgres://me@db/s?sslmode=verify-ca&sslrootcert=/ca's.pem"),
            r"'postgres://me@db/s?sslmode=verify-ca&sslrootcert=/ca'\''s.pem'"
        );
    }
}
