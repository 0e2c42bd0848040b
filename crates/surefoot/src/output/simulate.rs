//! What stoppers would have done.

use crate::output::Role;
use serde::Serialize;
use surefoot_tune::simulate::{Gain, Tally};

/// What a set of rules did to recorded trials.
#[derive(Serialize)]
pub(crate) struct Outcome {
    pub(crate) event: &'static str,
    pub(crate) rule: String,
    pub(crate) total: Tally,
    pub(crate) tasks: Vec<(String, Tally)>,
}

/// A table with a row for each.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let width = outcomes
        .iter()
        .map(|o| o.rule.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let head = format!(
        "  {:width$}  {:>14}  {:>6}  {:>12}  {:>9}",
        "rule", "stopped", "saved", "top ten kept", "best kept"
    );
    let mut lines = vec![Role::Strong.paint(head)];
    for outcome in outcomes {
        let total = &outcome.total;
        let stopped = format!("{} of {}", total.stopped, total.trials);
        let share = |share: f64, of: usize| match of {
            0 => "-".to_owned(),
            _ => format!("{:.1}%", 100.0 * share),
        };
        let mut line = format!(
            "  {:width$}  {stopped:>14}  {:>6}  {:>12}  {:>9}",
            outcome.rule,
            share(total.saved(), total.trials),
            share(total.top_share(), total.top),
            share(total.best_share(), total.bests)
        );
        if total.by.keys().any(|by| *by != outcome.rule) {
            let by = total.by.iter().map(|(by, count)| format!("{by} {count}"));
            let by = by.collect::<Vec<_>>().join(", ");
            line.push_str(&Role::Quiet.paint(format!("  {by}")));
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// What a set of rules gained searches.
#[derive(Serialize)]
pub(crate) struct Gained<'a> {
    pub(crate) event: &'static str,
    pub(crate) rule: &'a str,
    pub(crate) sampler: &'static str,
    pub(crate) tasks: Vec<(&'a str, Gain)>,
}

impl Gained<'_> {
    /// The average over all tasks.
    fn mean(&self, measure: impl Fn(&Gain) -> f64) -> f64 {
        let sum: f64 = self.tasks.iter().map(|(_, gain)| measure(gain)).sum();
        sum / self.tasks.len().max(1) as f64
    }
}

/// A table of gains, line by line: searches take a while.
pub(crate) struct Gains {
    width: usize,
}

impl Gains {
    pub(crate) fn new<'a>(rules: impl Iterator<Item = &'a str>) -> Gains {
        let width = rules.map(|rule| rule.chars().count()).max().unwrap_or(0);
        Gains {
            width: width.max(4),
        }
    }

    pub(crate) fn head(&self) -> String {
        let (width, rule) = (self.width, "rule");
        Role::Strong.paint(format!(
            "  {rule:width$}  {:>6}  {:>6}  {:>5}  {:>10}  {:>7}",
            "trials", "more", "TSBA", "on average", "Top10HR"
        ))
    }

    pub(crate) fn row(&self, gained: &Gained<'_>) -> String {
        let width = self.width;
        format!(
            "  {:width$}  {:>6.0}  {:>+5.0}%  {:>+4.0}%  {:>+9.0}%  {:>6.0}%",
            gained.rule,
            gained.mean(|gain| gain.trials),
            100.0 * gained.mean(Gain::more),
            100.0 * gained.mean(Gain::tsba),
            100.0 * gained.mean(Gain::average_tsba),
            100.0 * gained.mean(|gain| gain.top10hr)
        )
    }
}
