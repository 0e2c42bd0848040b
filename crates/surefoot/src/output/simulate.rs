//! Output of `surefoot simulate`.

use crate::output::{Role, number};
use serde::Serialize;
use surefoot_tune::pruner::PruningConfig;
use surefoot_tune::simulate::{Gain, Tally};

/// Result of a set of rules.
#[derive(Serialize)]
pub(crate) struct RuleResult {
    pub(crate) event: &'static str,
    pub(crate) rule: String,
    pub(crate) total: Tally,
    pub(crate) tasks: Vec<(String, Tally)>,
}

/// Label of a task row.
fn below(task: &str) -> String {
    format!("  {task}")
}

/// One row per rule, optionally with one per task below.
pub(crate) fn table(outcomes: &[RuleResult], by_task: bool) -> String {
    let rows = outcomes.iter().flat_map(|outcome| {
        let tasks = outcome.tasks.iter().filter(|_| by_task);
        let tasks = tasks.map(|(task, tally)| (below(task), &outcome.rule, tally));
        let total = (outcome.rule.clone(), &outcome.rule, &outcome.total);
        std::iter::once(total).chain(tasks)
    });
    let rows: Vec<(String, &String, &Tally)> = rows.collect();
    let names = rows.iter().map(|(name, ..)| name.chars().count());
    let width = names.max().unwrap_or(0).max(4);
    let head = format!(
        "  {:width$}  {:>14}  {:>6}  {:>12}  {:>9}",
        "rule", "pruned", "saved", "top ten kept", "best kept"
    );
    let mut lines = vec![Role::Strong.paint(head)];
    for (name, rule, tally) in rows {
        let pruned = format!("{} of {}", tally.pruned, tally.trials);
        let share = |share: f64, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{:.1}%", 100.0 * share),
        };
        let mut line = format!(
            "  {name:width$}  {pruned:>14}  {:>6}  {:>12}  {:>9}",
            share(tally.saved(), tally.trials),
            share(tally.top_share(), tally.top),
            share(tally.best_share(), tally.bests)
        );
        if tally.by.keys().any(|by| by != rule) {
            let by = tally.by.iter().map(|(by, count)| format!("{by} {count}"));
            let by = by.collect::<Vec<_>>().join(", ");
            line.push_str(&Role::Quiet.paint(format!("  {by}")));
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// Gain of a set of rules for searches, averaged over tasks and for each.
#[derive(Serialize)]
pub(crate) struct Gained<'a> {
    event: &'static str,
    rule: &'a str,
    sampler: &'static str,
    /// Budget as a fraction of the time of all recorded trials.
    share: f64,
    /// Mean number of trials of a search.
    trials: f64,
    /// Relative increase over searches without pruning.
    more: f64,
    /// Fraction of the recorded trials that a search uses.
    taken: f64,
    tsba: f64,
    average_tsba: f64,
    top10hr: f64,
    tasks: Vec<(&'a str, Gain)>,
}

/// Name, number of recorded trials and gain of a task.
pub(crate) type SearchedTask<'a> = (&'a str, usize, Gain);

impl<'a> Gained<'a> {
    pub(crate) fn new(
        rule: &'a str,
        sampler: &'static str,
        share: f64,
        tasks: &[SearchedTask<'a>],
    ) -> Gained<'a> {
        let mean = |measure: &dyn Fn(usize, &Gain) -> f64| {
            let measured = tasks.iter().map(|(_, size, gain)| measure(*size, gain));
            measured.sum::<f64>() / tasks.len().max(1) as f64
        };
        Gained {
            event: "searched",
            rule,
            sampler,
            share,
            trials: mean(&|_, gain| gain.trials),
            more: mean(&|_, gain| gain.more()),
            taken: mean(&|size, gain| gain.trials / size as f64),
            tsba: mean(&|_, gain| gain.tsba()),
            average_tsba: mean(&|_, gain| gain.average_tsba()),
            top10hr: mean(&|_, gain| gain.top10hr),
            tasks: tasks.iter().map(|&(task, _, gain)| (task, gain)).collect(),
        }
    }
}

/// Describes the tasks: name, recorded trials, and trials of a search without pruners.
pub(crate) fn tables_text(tables: &[(&str, usize, f64)], seeds: usize, sampler: &str) -> String {
    let searches = match seeds {
        1 => "1 search".to_owned(),
        n => format!("{n} searches"),
    };
    let lines = tables.iter().map(|(task, size, plain)| {
        let recorded = number::counted(*size as u64, "recorded trial");
        format!(
            "  {task}: {searches} with {sampler} on {recorded}; {plain:.1} trials per search without pruners\n"
        )
    });
    lines.collect()
}

/// Note on protection in the overview.
pub(crate) fn protection(default: &PruningConfig) -> String {
    let best = match default.protect {
        0 => "none".to_owned(),
        1 => "the best trial".to_owned(),
        n => format!("the {n} best trials"),
    };
    Role::Quiet.paint(format!(
        "\n  The default protects {best}; the other rows protect none (change with --set protect=N)"
    ))
}

/// Table of gains, printed row by row as results arrive.
pub(crate) struct Gains {
    width: usize,
    by_task: bool,
}

impl Gains {
    /// Sizes the columns for these rules and tasks.
    pub(crate) fn new<'a>(
        rules: impl Iterator<Item = &'a str>,
        tasks: impl Iterator<Item = &'a str>,
        by_task: bool,
    ) -> Gains {
        let tasks = tasks.filter(|_| by_task).map(below);
        let names = rules.map(str::to_owned).chain(tasks);
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        Gains { width: width.max(4), by_task }
    }

    pub(crate) fn head(&self) -> String {
        let (width, rule) = (self.width, "rule");
        Role::Strong.paint(format!(
            "  {rule:width$}  {:>6}  {:>6}  {:>5}  {:>6}  {:>10}  {:>7}",
            "trials", "more", "taken", "TSBA", "on average", "Top10HR"
        ))
    }

    /// Row of a rule and of its tasks.
    pub(crate) fn rows(&self, gained: &Gained<'_>, tasks: &[SearchedTask<'_>]) -> String {
        let mut rows = vec![self.row(gained.rule, gained)];
        if self.by_task {
            rows.extend(tasks.iter().map(|task| {
                let alone = Gained::new(gained.rule, gained.sampler, gained.share, &[*task]);
                self.row(&below(task.0), &alone)
            }));
        }
        rows.join("\n")
    }

    fn row(&self, name: &str, gained: &Gained<'_>) -> String {
        let width = self.width;
        // Avoids "-0".
        let percent = |share: f64| (100.0 * share).round() + 0.0;
        format!(
            "  {name:width$}  {:>6.0}  {:>+5.0}%  {:>4.0}%  {:>+5.0}%  {:>+9.0}%  {:>6.0}%",
            gained.trials,
            percent(gained.more),
            percent(gained.taken),
            percent(gained.tsba),
            percent(gained.average_tsba),
            percent(gained.top10hr)
        )
    }

    /// Legend of the columns.
    pub(crate) fn foot(&self) -> String {
        let lines = [
            "more        increase of the number of trials over a search without pruners",
            "taken       fraction of the recorded trials used; lower is more reliable",
            "TSBA        time saved until the best value of the same search without pruners is found;",
            "            negative if it is not found within the budget",
            "on average  the same for the average over all searches, which is less noisy",
            "Top10HR     fraction of the ten best trials of both searches that it found; 50% is no gain",
        ];
        Role::Quiet.paint(format!("\n  {}", lines.join("\n  ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_shown_line_by_line() {
        let gain = |trials, reached| Gain {
            searches: 20,
            trials,
            plain_trials: 50.0,
            reached,
            plain_reached: 0.6,
            average_reached: 0.5,
            plain_average_reached: 1.0,
            top10hr: 0.7,
        };
        let tasks = [("a", 1000, gain(100.0, 0.3)), ("b", 500, gain(50.0, 1.0))];
        let gained = Gained::new("median", "tpe", 0.05, &tasks);
        let rules = ["median", "extrapolation"];
        let table = Gains::new(rules.into_iter(), ["a", "b"].into_iter(), true);
        let text = [table.head(), table.rows(&gained, &tasks), table.foot()].join("\n");
        let text = anstream::adapter::strip_str(&text).to_string();
        insta::assert_snapshot!(text);
    }
}
