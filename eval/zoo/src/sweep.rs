//! Diagnoses with other thresholds and check intervals (AutoTrainer's Fig. 8, Table 5 and Fig. 7), and
//! by each indicator alone (BTTackler's Table 5).

use crate::case::Case;
use crate::evaluate::{Looked, Plain, Settings, look_at_all};
use crate::watch::Watch;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use surefoot_diagnose::indicators::{Limits, PROBLEMS};
use surefoot_diagnose::{Problem, Thresholds};
use surefoot_plan::Rules;

/// The paper's thresholds, the problem that each belongs to, and the values of the sweep. Θ belongs to
/// all problems.
const SWEEP: [(&str, Option<Problem>, [f64; 5]); 9] = [
    ("beta_1", Some(Problem::VANISHING_GRADIENT), [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]),
    ("beta_2", Some(Problem::VANISHING_GRADIENT), [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]),
    ("beta_3", Some(Problem::EXPLODING_GRADIENT), [10.0, 30.0, 70.0, 200.0, 1000.0]),
    ("gamma", Some(Problem::DYING_RELU), [0.3, 0.5, 0.7, 0.9, 0.99]),
    ("zeta", Some(Problem::OSCILLATING_LOSS), [0.003, 0.01, 0.03, 0.1, 0.3]),
    ("eta", Some(Problem::OSCILLATING_LOSS), [0.05, 0.1, 0.2, 0.3, 0.4]),
    ("delta", Some(Problem::SLOW_CONVERGENCE), [0.001, 0.004, 0.01, 0.014, 0.05]),
    ("omega", Some(Problem::ABNORMAL_DATA), [2.0, 5.0, 10.0, 20.0, 50.0]),
    ("theta", None, [0.5, 0.55, 0.6, 0.7, 0.9]),
];

/// The paper's check intervals (Table 5), after every iteration.
const INTERVALS: [usize; 7] = [1, 2, 3, 4, 5, 9, 15];

/// Detection with one value of a threshold.
#[derive(Clone, Debug, Serialize)]
pub struct SweepLine {
    /// Always `threshold`.
    pub event: &'static str,
    /// Name of the rules.
    pub rules: &'static str,
    /// The threshold.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// Buggy plans with the problem.
    pub buggy: u64,
    /// Those in which it was found.
    pub found: u64,
    /// Healthy trainings in which it was found.
    pub false_alarms: u64,
}

impl SweepLine {
    /// Share of the buggy plans in which the problem was found.
    pub fn recall(&self) -> f64 {
        self.found as f64 / self.buggy.max(1) as f64
    }

    /// Share of the findings that are in buggy plans; 1 without findings.
    pub fn precision(&self) -> f64 {
        match self.found + self.false_alarms {
            0 => 1.0,
            all => self.found as f64 / all as f64,
        }
    }
}

/// Diagnoses all cases with every value of every threshold, by each of `rules`.
pub fn sweep(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    rules: &[Rules],
) -> Result<Vec<SweepLine>, String> {
    let mut settings = Vec::new();
    let mut labels = Vec::new();
    for &rules in rules {
        for (key, problem, values) in SWEEP {
            for value in values {
                let mut changed = thresholds(rules);
                changed.set(key, &value.to_string())?;
                settings.push(Watch::Detectors(changed));
                labels.push((rules, key, problem.clone(), value));
            }
        }
    }
    let looked = look_at_all(cases, dir, workers, &both(settings))?;
    let lines = labels.into_iter().enumerate().map(|(i, (rules, key, problem, value))| {
        let concerns = |found: &Problem| problem.as_ref().is_none_or(|problem| problem == found);
        let finds = |plain: &Plain, is: &dyn Fn(&Problem) -> bool| {
            plain.watched[i].problems().any(|finding| is(&finding.problem))
        };
        let mut line = SweepLine {
            event: "threshold",
            rules: crate::rules_name(rules),
            key,
            value,
            buggy: 0,
            found: 0,
            false_alarms: 0,
        };
        for Looked { row, twins, faulty, .. } in &looked {
            if row.healthy {
                let alarms = twins.iter().filter(|twin| finds(twin, &concerns));
                line.false_alarms += alarms.count() as u64;
            }
            let injected = row.fault.filter(|fault| concerns(&fault.problem()));
            if let (Some(fault), Some(plain)) = (injected, faulty) {
                line.buggy += 1;
                let right = finds(plain, &|problem| fault.is(problem.id()));
                line.found += u64::from(right);
            }
        }
        line
    });
    Ok(lines.collect())
}

fn thresholds(rules: Rules) -> Thresholds {
    match rules {
        Rules::Surefoot => Thresholds::default(),
        Rules::AutoTrainer => Thresholds::autotrainer(),
    }
}

fn both(watches: Vec<Watch>) -> Settings {
    Settings { healthy: watches.clone(), faulty: watches }
}

/// The sweep as a table.
pub fn sweep_text(lines: &[SweepLine]) -> String {
    let mut text = String::from("| rules | threshold | value | buggy | recall | precision |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.0}% | {:.0}% |",
            line.rules,
            line.key,
            line.value,
            line.buggy,
            100.0 * line.recall(),
            100.0 * line.precision()
        );
    }
    text
}

/// Trainings that one indicator would end.
#[derive(Clone, Debug, Serialize)]
pub struct IndicatorLine {
    /// Always `indicator`.
    pub event: &'static str,
    /// `surefoot` or `bttackler`.
    pub rules: &'static str,
    /// Id of the indicator.
    pub indicator: String,
    /// Buggy plans.
    pub buggy: u64,
    /// Those that it ends.
    pub ended: u64,
    /// Mean share of their steps that are left then.
    pub saved: f64,
    /// Healthy trainings.
    pub healthy: u64,
    /// Those that it ends.
    pub false_alarms: u64,
}

/// Diagnoses all cases by each indicator alone, with Surefoot's limits and as published.
pub fn indicators(
    cases: &[Case],
    dir: &Path,
    workers: usize,
) -> Result<Vec<IndicatorLine>, String> {
    let limits = [("surefoot", Limits::default()), ("bttackler", Limits::bttackler())];
    let watches = limits.iter().map(|(_, limits)| Watch::Indicators(*limits)).collect();
    let looked = look_at_all(cases, dir, workers, &both(watches))?;
    let mut lines = Vec::new();
    for (i, (rules, _)) in limits.iter().enumerate() {
        for indicator in PROBLEMS {
            let step = |plain: &Plain| {
                let mut findings = plain.watched[i].findings.iter();
                findings.find(|finding| finding.problem == indicator).map(|finding| finding.step)
            };
            let twins = looked.iter().filter(|it| it.row.healthy).flat_map(|it| &it.twins);
            let buggy: Vec<&Plain> = looked.iter().filter_map(|it| it.faulty.as_ref()).collect();
            let left = |plain: &&Plain| {
                let steps = plain.steps[0].max(1) as f64;
                Some(1.0 - step(plain)? as f64 / steps)
            };
            let saved: Vec<f64> = buggy.iter().filter_map(left).collect();
            let (healthy, false_alarms) = twins.fold((0, 0), |(all, ended), twin| {
                (all + 1, ended + u64::from(step(twin).is_some()))
            });
            lines.push(IndicatorLine {
                event: "indicator",
                rules,
                indicator: indicator.id().to_owned(),
                buggy: buggy.len() as u64,
                ended: saved.len() as u64,
                // An empty sum is -0.
                saved: (0.0 + saved.iter().sum::<f64>()) / saved.len().max(1) as f64,
                healthy,
                false_alarms,
            });
        }
    }
    Ok(lines)
}

/// The indicators as a table.
pub fn indicators_text(lines: &[IndicatorLine]) -> String {
    let mut text = String::from(
        "| rules | indicator | buggy plans ended | steps saved in these | healthy trainings ended |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} of {} | {:.0}% | {} of {} |",
            line.rules,
            line.indicator,
            line.ended,
            line.buggy,
            100.0 * line.saved,
            line.false_alarms,
            line.healthy
        );
    }
    text
}

/// Delay and cost of one check interval.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalLine {
    /// Always `interval`.
    pub event: &'static str,
    /// Name of the rules.
    pub rules: &'static str,
    /// The problem that the fault causes, or `all`.
    pub problem: String,
    /// Iterations from one check to the next.
    pub check_every: usize,
    /// Buggy plans in which a problem is found.
    pub plans: u64,
    /// Mean number of iterations from the finding of a diagnosis that checks every iteration.
    pub delay: f64,
    /// Time of the diagnosis relative to that of the training. Depends on the machine.
    pub cost: f64,
}

/// Diagnoses all cases with every check interval, by each of `rules`.
pub fn intervals(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    rules: &[Rules],
) -> Result<Vec<IntervalLine>, String> {
    let with = |rules: Rules| {
        let interval = |check_every| Thresholds { check_every, ..thresholds(rules) };
        INTERVALS.map(interval).map(Watch::Detectors)
    };
    let faulty = rules.iter().flat_map(|rules| with(*rules)).collect();
    let settings = Settings { healthy: Vec::new(), faulty };
    let looked = look_at_all(cases, dir, workers, &settings)?;
    let mut lines = Vec::new();
    for (of_rules, &rules) in rules.iter().enumerate() {
        for (i, &check_every) in INTERVALS.iter().enumerate() {
            let first = of_rules * INTERVALS.len();
            let mut samples: Vec<(String, f64, f64)> = Vec::new();
            for Looked { row, faulty, .. } in &looked {
                let (Some(fault), Some(plain)) = (row.fault, faulty) else {
                    continue;
                };
                let at = |i: usize| plain.watched[first + i].problems().next().map(|f| f.step);
                let (Some(soonest), Some(found)) = (at(0), at(i)) else {
                    continue;
                };
                let delay = found.saturating_sub(soonest) as f64 / iteration(rules, plain);
                let seconds = plain.watched[first + i].time.as_secs_f64();
                let cost = seconds / plain.time.as_secs_f64().max(1e-9);
                samples.push((fault.problem().id().to_owned(), delay, cost));
            }
            let mut problems: Vec<String> = samples.iter().map(|it| it.0.clone()).collect();
            problems.sort();
            problems.dedup();
            problems.push("all".to_owned());
            for problem in problems {
                let is_meant = |it: &&(String, f64, f64)| problem == "all" || it.0 == problem;
                let meant: Vec<_> = samples.iter().filter(is_meant).collect();
                let mean = |value: fn(&(String, f64, f64)) -> f64| {
                    meant.iter().map(|it| value(it)).sum::<f64>() / meant.len().max(1) as f64
                };
                lines.push(IntervalLine {
                    event: "interval",
                    rules: crate::rules_name(rules),
                    problem,
                    check_every,
                    plans: meant.len() as u64,
                    delay: mean(|it| it.1),
                    cost: mean(|it| it.2),
                });
            }
        }
    }
    Ok(lines)
}

/// Steps of an iteration.
fn iteration(rules: Rules, plain: &Plain) -> f64 {
    let [steps, per_epoch] = plain.steps;
    match rules {
        Rules::Surefoot => surefoot_diagnose::block_steps(steps) as f64,
        Rules::AutoTrainer => per_epoch.max(1) as f64,
    }
}

/// The intervals as a table, with the delay in iterations by problem and the cost over all.
pub fn intervals_text(lines: &[IntervalLine]) -> String {
    let headings: Vec<String> = INTERVALS.iter().map(|n| format!("1/q = {n}")).collect();
    let mut text = format!("| rules | problem | plans | {} |\n", headings.join(" | "));
    text.push_str(&format!("| --- | --- | --- {}|\n", "| --- ".repeat(INTERVALS.len())));
    let firsts = lines.iter().filter(|line| line.check_every == 1);
    for first in firsts {
        let same =
            |line: &&IntervalLine| line.rules == first.rules && line.problem == first.problem;
        let row: Vec<&IntervalLine> = lines.iter().filter(same).collect();
        let cells = |value: &dyn Fn(&IntervalLine) -> String| {
            row.iter().map(|line| value(line)).collect::<Vec<_>>().join(" | ")
        };
        let delays = cells(&|line| format!("{:.2}", line.delay));
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "| {} | {} | {} | {delays} |", first.rules, first.problem, first.plans);
        if first.problem == "all" {
            let costs = cells(&|line| format!("{:.1}%", 100.0 * line.cost));
            let _ = writeln!(text, "| {} | cost | {} | {costs} |", first.rules, first.plans);
        }
    }
    text
}
