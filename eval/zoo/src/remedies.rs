//! Each remedy alone, per problem: AutoTrainer's Table 6.

use crate::case::Case;
use crate::evaluate::{Looked, Settings, look_at_all, treat, with_rules};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use surefoot_diagnose::{Finding, Problem};
use surefoot_plan::Rules;
use surefoot_repair::{RepairConfig, order, remedies};

/// Result of one remedy for one problem.
#[derive(Clone, Debug, Serialize)]
pub struct RemedyLine {
    /// Always `remedy`.
    pub event: &'static str,
    /// Name of the rules.
    pub rules: &'static str,
    /// The problem that the fault causes.
    pub problem: String,
    /// Id of the only remedy that was allowed.
    pub remedy: String,
    /// Buggy plans in which a problem was found.
    pub plans: u64,
    /// Plans that it repaired.
    pub solved: u64,
    /// Mean gain of the metric in the repaired plans.
    pub gain: f64,
}

/// Repairs every buggy case with each remedy alone, by each of `rules`.
pub fn each_remedy(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    rules: &[Rules],
) -> Result<Vec<RemedyLine>, String> {
    let looked = look_at_all(cases, dir, workers, &Settings::default())?;
    let mut lines: Vec<RemedyLine> = Vec::new();
    for &rules in rules {
        for Looked { row, short, .. } in &looked {
            let (Some(short), Some(fault)) = (short, row.fault) else {
                continue;
            };
            let problem = fault.problem();
            for remedy in remedies_for(&problem, rules) {
                let mut plan = with_rules(&short.plan, rules);
                plan.repair.forbid = all(rules).filter(|id| *id != remedy).collect();
                let treated = treat(&plan, dir)?;
                if treated.problem.is_none() {
                    continue;
                }
                let name = crate::rules_name(rules);
                let is_line = |line: &RemedyLine| {
                    line.rules == name && line.problem == problem.id() && line.remedy == remedy
                };
                let at = lines.iter().position(is_line).unwrap_or_else(|| {
                    lines.push(RemedyLine {
                        event: "remedy",
                        rules: name,
                        problem: problem.id().to_owned(),
                        remedy: remedy.clone(),
                        plans: 0,
                        solved: 0,
                        gain: 0.0,
                    });
                    lines.len() - 1
                });
                let line = &mut lines[at];
                line.plans += 1;
                if treated.repaired {
                    line.solved += 1;
                    let gain = treated.after - treated.before;
                    line.gain += (gain - line.gain) / line.solved as f64;
                }
            }
        }
    }
    let place = |line: &RemedyLine| (line.rules, line.problem.clone());
    lines.sort_by_key(place);
    Ok(lines)
}

/// Ids of the remedies for `problem`, in the order of `rules`.
fn remedies_for(problem: &Problem, rules: Rules) -> Vec<String> {
    let config = match rules {
        Rules::Surefoot => RepairConfig::default(),
        Rules::AutoTrainer => RepairConfig::autotrainer(),
    };
    order(&Finding::new(problem.clone(), 1, ""), &config)
}

/// Ids of all remedies of `rules`.
fn all(rules: Rules) -> impl Iterator<Item = String> {
    let all = match rules {
        Rules::Surefoot => remedies::all(),
        Rules::AutoTrainer => remedies::autotrainer(),
    };
    all.into_iter().map(|remedy| remedy.id().to_owned())
}

/// The lines as a table.
pub fn remedies_text(lines: &[RemedyLine]) -> String {
    let mut text = String::from("| rules | problem | remedy | plans | solved | gain |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for line in lines {
        let share = 100.0 * line.solved as f64 / line.plans.max(1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {share:.0}% | {:+.1} |",
            line.rules,
            line.problem,
            line.remedy,
            line.plans,
            100.0 * line.gain
        );
    }
    text
}
