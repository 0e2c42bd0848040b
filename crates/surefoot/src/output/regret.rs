//! Output of `surefoot simulate --methods`.

use crate::output::{Role, number};
use serde::Serialize;
use surefoot_tune::simulate::{BUDGETS, Regrets};

/// Result of a search method.
#[derive(Serialize)]
pub(crate) struct MethodResult {
    pub(crate) event: &'static str,
    pub(crate) method: String,
    pub(crate) workers: usize,
    /// Mean over tasks.
    pub(crate) total: Regrets,
    pub(crate) tasks: Vec<(String, Regrets)>,
}

/// Describes the tasks: name and recorded trials.
pub(crate) fn methods_text(tasks: &[(&str, usize)], seeds: usize, workers: usize) -> String {
    let mut lines: Vec<String> = tasks
        .iter()
        .map(|(task, size)| format!("  {task}: {}", number::counted(*size as u64, "trial")))
        .collect();
    let workers = number::counted(workers as u64, "worker");
    lines.push(format!("  searches per task and method: {seeds}, each with {workers}\n"));
    lines.join("\n")
}

/// One row per method, optionally with one per task below, and a legend.
pub(crate) fn regret_table(results: &[MethodResult], by_task: bool) -> String {
    let rows = results.iter().flat_map(|result| {
        let tasks = result.tasks.iter().filter(|_| by_task);
        let tasks = tasks.map(|(task, regrets)| (format!("  {task}"), regrets));
        std::iter::once((result.method.clone(), &result.total)).chain(tasks)
    });
    let rows: Vec<(String, &Regrets)> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(6);
    let budgets =
        |of: &str| BUDGETS.map(|budget| format!("{:>8}", format!("{of} {budget}"))).join(" ");
    let head =
        format!("  {:width$}  {}  {}  {:>5}", "method", budgets("at"), budgets("end"), "TSBA");
    let mut lines = vec![Role::Strong.paint(head)];
    for (name, regrets) in rows {
        let cells = |regrets: &[f64; 4]| regrets.map(|regret| format!("{regret:>8.2}")).join(" ");
        lines.push(format!(
            "  {name:width$}  {}  {}  {:>4.0}%",
            cells(&regrets.regret),
            cells(&regrets.finished),
            (100.0 * regrets.tsba).round() + 0.0
        ));
    }
    let legend = [
        "at N   regret after N epochs: distance of the best value from the best recorded one, where",
        "       the median of all final values is 1",
        "end N  the same, counting only trials that ran to their end; 1 without any",
        "TSBA   epochs saved until the mean best value of random search with 20 trials is reached",
    ];
    lines.push(Role::Quiet.paint(format!("\n  {}", legend.join("\n  "))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_rows() {
        let regrets = |factor: f64| Regrets {
            searches: 20,
            regret: [0.86, 0.79, 0.68, 0.52].map(|regret| factor * regret),
            finished: [1.0, 0.8, 0.7, 0.5].map(|regret| factor * regret),
            tsba: 1.0 - factor,
        };
        let result = |method: &str, factor| MethodResult {
            event: "method",
            method: method.to_owned(),
            workers: 1,
            total: regrets(factor),
            tasks: vec![("a task".to_owned(), regrets(factor))],
        };
        let results = [result("random", 1.0), result("freeze_thaw", 0.2)];
        let text = [methods_text(&[("a task", 1000)], 20, 1), regret_table(&results, true)];
        let text = anstream::adapter::strip_str(&text.join("\n")).to_string();
        insta::assert_snapshot!(text);
    }
}
