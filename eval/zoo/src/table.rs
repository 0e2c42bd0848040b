//! The result tables, with the paper's values.

use crate::evaluate::{Row, Treated};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use surefoot_diagnose::detectors;

/// Aggregated results of several cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Buggy plans.
    pub plans: u64,
    /// Plans with a detected problem.
    pub detected: u64,
    /// Plans with the right problem.
    pub right: u64,
    /// Repaired plans.
    pub repaired: u64,
    /// Mean share of steps until detection.
    pub delay: f64,
    /// Mean number of steps until detection.
    pub delay_steps: f64,
    /// Mean metric without repair.
    pub before: f64,
    /// Mean metric of the delivered models.
    pub after: f64,
    /// Mean metric of the twins.
    pub twin: f64,
    /// Delivered models below that of the plan as given.
    pub worse: u64,
    /// Mean cost of all trainings with repair, relative to without.
    pub work: f64,
    /// Mean cost along the longest chain of trainings on two cores, relative to without.
    pub time: f64,
    /// Mean number of attempts.
    pub attempts: f64,
    /// Number of repaired plans with each remedy.
    pub remedies: BTreeMap<String, u64>,
}

/// The result of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct Tables {
    /// Always `zoo`.
    pub event: &'static str,
    /// The seed of the zoo.
    pub seed: u64,
    /// All cases.
    pub cases: u64,
    /// Healthy plans, each trained on three seeds.
    pub healthy: u64,
    /// Healthy plans with a problem found on any seed.
    pub false_alarms: u64,
    /// Healthy plans with a finding of each detector on any seed. Warnings are not necessarily false:
    /// a healthy run can have a spike.
    pub found_in_healthy: BTreeMap<String, u64>,
    /// All buggy plans.
    pub all: Line,
    /// By the problem that the fault causes.
    pub problems: BTreeMap<String, Line>,
    /// By data set.
    pub data: BTreeMap<&'static str, Line>,
    /// The same with AutoTrainer's rules.
    pub autotrainer: OtherRules,
}

/// Results of other rules than Surefoot's.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OtherRules {
    /// Healthy plans with a problem found on any seed.
    pub false_alarms: u64,
    /// All buggy plans.
    pub all: Line,
    /// By the problem that the fault causes.
    pub problems: BTreeMap<String, Line>,
}

/// AutoTrainer's mean improvement of the accuracy in points, by problem (Table 4).
const PAPER_GAIN: [(&str, f64); 8] = [
    ("vanishing_gradient", 41.39),
    ("exploding_gradient", 65.92),
    ("dying_relu", 45.01),
    ("oscillating_loss", 15.14),
    ("slow_convergence", 44.87),
    ("improper_output_activation", 28.10),
    ("improper_loss", 11.79),
    ("abnormal_data", 21.23),
];

/// AutoTrainer's remedies that worked, by problem (Table 2).
const PAPER_REMEDIES: [(&str, &str); 8] = [
    ("vanishing_gradient", "activation 37, batch_norm 12 of 53"),
    ("exploding_gradient", "activation 47, batch_norm 2, clip_gradient 1 of 54"),
    ("dying_relu", "activation 16, batch_norm 7, initializer 1 of 24"),
    ("oscillating_loss", "optimizer 20, learning_rate 10 of 30"),
    ("slow_convergence", "optimizer 154, learning_rate 13 of 167"),
    ("improper_output_activation", "activation 66 of 66"),
    ("improper_loss", "loss 65 of 65"),
    ("abnormal_data", "normalize_data 47 of 47"),
];

impl Tables {
    /// The tables of `rows`.
    pub fn new(seed: u64, rows: &[Row]) -> Tables {
        let healthy: Vec<&Row> = rows.iter().filter(|row| row.healthy).collect();
        let buggy: Vec<(&Row, &Treated)> = healthy
            .iter()
            .filter_map(|row| Some((*row, row.faulty.as_ref()?.treated.as_ref()?)))
            .collect();
        let mut problems: BTreeMap<String, Vec<&Treated>> = BTreeMap::new();
        let mut data: BTreeMap<&'static str, Vec<&Treated>> = BTreeMap::new();
        for (row, treated) in &buggy {
            if let Some(fault) = row.fault {
                let problem = fault.problem().id().to_owned();
                problems.entry(problem).or_default().push(treated);
            }
            data.entry(row.data.name()).or_default().push(treated);
        }
        let mut found_in_healthy: BTreeMap<String, u64> = detectors::all()
            .iter()
            .map(|detector| (detector.problem().id().to_owned(), 0))
            .collect();
        for id in healthy.iter().flat_map(|row| &row.findings) {
            *found_in_healthy.entry(id.clone()).or_default() += 1;
        }
        let all: Vec<&Treated> = buggy.iter().map(|(_, treated)| *treated).collect();
        let alarmed = |row: &&&Row| !row.autotrainer_alarms.is_empty();
        let mut autotrainer = OtherRules {
            false_alarms: healthy.iter().filter(alarmed).count() as u64,
            ..OtherRules::default()
        };
        let mut others: BTreeMap<String, Vec<&Treated>> = BTreeMap::new();
        for row in &healthy {
            let treated = row.faulty.as_ref().and_then(|faulty| faulty.autotrainer.as_ref());
            if let (Some(fault), Some(treated)) = (row.fault, treated) {
                others.entry(fault.problem().id().to_owned()).or_default().push(treated);
            }
        }
        autotrainer.all = Line::new(&others.values().flatten().copied().collect::<Vec<_>>());
        autotrainer.problems = others.into_iter().map(|(k, v)| (k, Line::new(&v))).collect();
        Tables {
            event: "zoo",
            seed,
            cases: rows.len() as u64,
            healthy: healthy.len() as u64,
            false_alarms: healthy.iter().filter(|row| !row.alarms.is_empty()).count() as u64,
            found_in_healthy,
            all: Line::new(&all),
            problems: problems.into_iter().map(|(k, v)| (k, Line::new(&v))).collect(),
            data: data.into_iter().map(|(k, v)| (k, Line::new(&v))).collect(),
            autotrainer,
        }
    }

    /// Surefoot's rules and AutoTrainer's, side by side.
    fn both_rules(&self) -> String {
        let mut text = format!(
            "Surefoot's rules / AutoTrainer's rules: false alarms in {} / {} of {} healthy plans.\n\n",
            self.false_alarms, self.autotrainer.false_alarms, self.healthy
        );
        let columns = ["plans", "detected", "right", "repaired", "after", "attempts", "time"];
        let widths = [7, 15, 15, 15, 15, 13, 13];
        let cells = |name: &str, cells: &[String]| {
            let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
            format!("{name:<28}{}\n", cells.collect::<String>())
        };
        text += &cells("problem", &columns.map(str::to_owned));
        let line = |name: &str, a: &Line, b: &Line| {
            let share = |of: fn(&Line) -> (u64, u64)| {
                let [a, b] = [a, b].map(|line| {
                    let (count, of) = of(line);
                    100.0 * count as f64 / of.max(1) as f64
                });
                format!("{a:.1} / {b:.1}")
            };
            let all = [
                a.plans.to_string(),
                share(|line| (line.detected, line.plans)),
                share(|line| (line.right, line.plans)),
                share(|line| (line.repaired, line.plans)),
                format!("{:.1} / {:.1}", 100.0 * a.after, 100.0 * b.after),
                format!("{:.1} / {:.1}", a.attempts, b.attempts),
                format!("{:.2} / {:.2}", a.time, b.time),
            ];
            cells(name, &all)
        };
        for (id, _) in PAPER_GAIN {
            let lines = self.problems.get(id).zip(self.autotrainer.problems.get(id));
            text += &lines.map_or_else(String::new, |(a, b)| line(id, a, b));
        }
        text += &line("all", &self.all, &self.autotrainer.all);
        text + "\nDetected, right and repaired are percentages of all plans.\n"
    }

    /// The tables as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} plans from seed {}, {} of them healthy, each trained on three seeds.\n\
             False alarms: in {} of {} healthy plans.\n",
            self.cases, self.seed, self.healthy, self.false_alarms, self.healthy
        );
        let heading = |name: &str| {
            format!(
                "{name:<28}{:>6}{:>10}{:>8}{:>14}{:>10}{:>8}{:>8}{:>7}{:>8}{:>8}{:>7}{:>7}{:>7}",
                "plans",
                "detected",
                "right",
                "after steps",
                "repaired",
                "before",
                "after",
                "twin",
                "gain",
                "paper",
                "worse",
                "work",
                "time"
            )
        };
        let line = |name: &str, line: &Line, paper: Option<f64>| {
            let percent = |share: f64| format!("{:.1}", 100.0 * share);
            let rate = |count: u64, of: u64| percent(count as f64 / of.max(1) as f64);
            format!(
                "{name:<28}{:>6}{:>10}{:>8}{:>14}{:>10}{:>8}{:>8}{:>7}{:>8}{:>8}{:>7}{:>7.2}{:>7.2}",
                line.plans,
                rate(line.detected, line.plans),
                rate(line.right, line.detected),
                format!("{:.0} ({:.0}%)", line.delay_steps, 100.0 * line.delay),
                rate(line.repaired, line.detected),
                percent(line.before),
                percent(line.after),
                percent(line.twin),
                percent(line.after - line.before),
                paper.map_or_else(String::new, |gain| format!("{gain:.1}")),
                line.worse,
                line.work,
                line.time
            )
        };
        let _ = writeln!(text, "{}", heading("problem"));
        for (id, gain) in PAPER_GAIN {
            if let Some(found) = self.problems.get(id) {
                let _ = writeln!(text, "{}", line(id, found, Some(gain)));
            }
        }
        let _ = writeln!(text, "{}\n", line("all", &self.all, Some(36.42)));
        let _ = writeln!(text, "{}", heading("data"));
        for (name, found) in &self.data {
            let _ = writeln!(text, "{}", line(name, found, None));
        }
        let _ = writeln!(text, "\n{:<28}{:<96}paper", "problem", "remedies that worked");
        for (id, paper) in PAPER_REMEDIES {
            if let Some(found) = self.problems.get(id) {
                let remedies = found.remedies.iter();
                let mut remedies: Vec<(&String, &u64)> = remedies.collect();
                remedies.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
                let ours: Vec<String> =
                    remedies.iter().map(|(id, count)| format!("{id} {count}")).collect();
                let ours = match ours.is_empty() {
                    true => format!("none of {}", found.detected),
                    false => format!("{} of {}", ours.join(", "), found.detected),
                };
                let _ = writeln!(text, "{id:<28}{ours:<95} {paper}");
            }
        }
        let _ = writeln!(text, "\n{:<28}found in healthy plans", "detector");
        for (id, count) in &self.found_in_healthy {
            let share = 100.0 * *count as f64 / self.healthy.max(1) as f64;
            let _ = writeln!(text, "{id:<28}{count:>4} ({share:.1}%)");
        }
        if self.autotrainer.all.plans > 0 {
            let _ = write!(text, "\n{}", self.both_rules());
        }
        let _ = write!(
            text,
            "\nElsewhere, detected, right and repaired are percentages (right and repaired: of the detected); \
             before, after, twin and gain points.\nWorse: delivered models below that of the plan's \
             own best epoch.\nWork: steps of all trainings with repair, weighted by their cost, by those of \
             the plain training.\nTime: the same along the longest chain of trainings on two cores, \
             counted and not measured; the paper's time is 2.14."
        );
        text
    }
}

impl Line {
    fn new(treated: &[&Treated]) -> Line {
        let count = |what: &dyn Fn(&Treated) -> bool| treated.iter().filter(|t| what(t)).count();
        let mean = |what: &dyn Fn(&Treated) -> Option<f64>| {
            let values: Vec<f64> = treated.iter().filter_map(|t| what(t)).collect();
            // An empty sum is -0.
            (0.0 + values.iter().sum::<f64>()) / values.len().max(1) as f64
        };
        let mut remedies = BTreeMap::new();
        for treated in treated.iter().filter(|treated| treated.repaired) {
            let mut counted: Vec<&String> = Vec::new();
            for id in &treated.remedies {
                if !counted.contains(&id) {
                    *remedies.entry(id.clone()).or_default() += 1;
                    counted.push(id);
                }
            }
        }
        Line {
            plans: treated.len() as u64,
            detected: count(&|t| t.problem.is_some()) as u64,
            right: count(&|t| t.right) as u64,
            repaired: count(&|t| t.repaired) as u64,
            delay: mean(&|t| t.delay.map(|[step, of]| step as f64 / of.max(1) as f64)),
            delay_steps: mean(&|t| t.delay.map(|[step, _]| step as f64)),
            before: mean(&|t| Some(t.before)),
            after: mean(&|t| Some(t.after)),
            twin: mean(&|t| Some(t.twin)),
            worse: count(&|t| t.after < t.alone) as u64,
            work: mean(&|t| Some(t.work)),
            time: mean(&|t| Some(t.time)),
            attempts: mean(&|t| Some(t.attempts as f64)),
            remedies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::DatasetKind;
    use crate::evaluate::Faulty;
    use crate::fault::{Degree, Fault};

    fn row(case: u64, repaired: bool) -> Row {
        Row {
            event: "case",
            case,
            data: DatasetKind::Circles,
            fault: Some(Fault::LowRate),
            degree: Some(Degree::Mild),
            healthy: true,
            twin: vec![1.0; 3],
            alarms: Vec::new(),
            findings: ["loss_spike".to_owned()].into(),
            autotrainer_alarms: vec!["slow_convergence".to_owned()],
            faulty: Some(Faulty {
                plain: vec![0.5; 3],
                buggy: true,
                autotrainer: Some(treated(false)),
                treated: Some(treated(repaired)),
            }),
        }
    }

    fn treated(repaired: bool) -> Treated {
        Treated {
            seed: 1,
            problem: Some("slow_convergence".to_owned()),
            right: true,
            delay: Some([50, 1000]),
            repaired,
            remedies: vec!["learning_rate".to_owned()],
            attempts: 2,
            before: 0.5,
            after: if repaired { 1.0 } else { 0.5 },
            twin: 1.0,
            alone: 0.6,
            work: 1.5,
            time: 1.2,
        }
    }

    #[test]
    fn cases_are_counted_by_problem_and_data() {
        let tables = Tables::new(7, &[row(0, true), row(1, false)]);
        let line = &tables.problems["slow_convergence"];
        assert_eq!((line.plans, line.detected, line.repaired), (2, 2, 1));
        assert_eq!((line.delay, line.after), (0.05, 0.75));
        assert_eq!(line.worse, 1, "0.5 is below the best epoch of the plan alone");
        assert_eq!(line.remedies["learning_rate"], 1);
        assert_eq!(tables.data["circles"], *line);
        assert_eq!(tables.found_in_healthy["loss_spike"], 2);
        assert_eq!(tables.found_in_healthy["dying_relu"], 0);
        let other = &tables.autotrainer;
        assert_eq!((other.false_alarms, other.all.plans, other.all.repaired), (2, 2, 0));
        assert!(tables.text().contains("100.0 / 100.0"), "{}", tables.text());
    }
}
