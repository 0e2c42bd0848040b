//! What stoppers would have done.

use crate::output::Role;
use serde::Serialize;
use surefoot_tune::simulate::Tally;

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
