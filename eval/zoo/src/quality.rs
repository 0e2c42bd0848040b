//! Accuracy, precision and recall of the models before and after repair: AutoTrainer's Table 3.

use crate::case::Case;
use crate::evaluate::{Looked, Settings, look_at_all, with_rules};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use surefoot_data::Targets;
use surefoot_plan::{Loss, Plan, Rules, Task};
use surefoot_train::{Predictor, RepairMode, Trainer};

/// Quality of a classifier on the validation split. Precision and recall are means over the classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Share of right predictions.
    pub accuracy: f64,
    /// Share of the predictions of a class that are right; 0 if there are none.
    pub precision: f64,
    /// Share of a class that is recognized.
    pub recall: f64,
}

impl Quality {
    /// Compares predicted classes with the true ones.
    pub fn of(predicted: &[u32], classes: &[u32]) -> Quality {
        let kinds: Vec<u32> = {
            let mut kinds = classes.to_vec();
            kinds.sort_unstable();
            kinds.dedup();
            kinds
        };
        let pairs = || predicted.iter().zip(classes);
        let count = |is: &dyn Fn(u32, u32) -> bool| pairs().filter(|(p, c)| is(**p, **c)).count();
        let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        let mean = |of: &dyn Fn(u32) -> f64| {
            kinds.iter().map(|kind| of(*kind)).sum::<f64>() / kinds.len().max(1) as f64
        };
        let right = |kind: u32| count(&|p, c| p == kind && c == kind);
        Quality {
            accuracy: share(count(&|p, c| p == c), classes.len()),
            precision: mean(&|kind| share(right(kind), count(&|p, _| p == kind))),
            recall: mean(&|kind| share(right(kind), count(&|_, c| c == kind))),
        }
    }
}

/// Quality of the models of one case.
#[derive(Clone, Debug, Serialize)]
pub struct QualityLine {
    /// Always `quality`.
    pub event: &'static str,
    /// Name of the rules.
    pub rules: &'static str,
    /// Case number.
    pub case: u64,
    /// Name of its data.
    pub data: &'static str,
    /// True if it was repaired.
    pub repaired: bool,
    /// The plan as given.
    pub before: Quality,
    /// The delivered model.
    pub after: Quality,
}

/// Trains every buggy classification without and with repair, by each of `rules`.
pub fn qualities(
    cases: &[Case],
    dir: &Path,
    workers: usize,
    rules: &[Rules],
) -> Result<Vec<QualityLine>, String> {
    let looked = look_at_all(cases, dir, workers, &Settings::default())?;
    let mut lines = Vec::new();
    for &rules in rules {
        for Looked { row, short, .. } in &looked {
            let Some(short) = short else {
                continue;
            };
            let record = dir.join(format!("quality-{}-{}", row.case, crate::rules_name(rules)));
            let plan = with_rules(&short.plan, rules);
            let train = |mode: RepairMode<'_>, name: &str| -> Result<_, String> {
                let place = record.with_extension(name);
                let trainer = Trainer::new(plan.clone()).base(dir).workers(workers);
                let trained = trainer.repair(mode).record_at(&place).train();
                let trained = trained.map_err(|error| error.to_string())?;
                let found = quality(&place, dir)?;
                let _ = std::fs::remove_dir_all(&place);
                Ok((found, trained.repair.is_some_and(|repair| repair.solved)))
            };
            let (Some(before), _) = train(RepairMode::Off, "before")? else {
                continue;
            };
            let (after, repaired) = train(RepairMode::Auto, "after")?;
            lines.push(QualityLine {
                event: "quality",
                rules: crate::rules_name(rules),
                case: row.case,
                data: row.data.name(),
                repaired,
                before,
                after: after.unwrap_or_default(),
            });
        }
    }
    Ok(lines)
}

/// Quality of the delivered model of a run; `None` for a regression.
fn quality(run: &Path, dir: &Path) -> Result<Option<Quality>, String> {
    let predictor = Predictor::open(run).map_err(|error| error.to_string())?;
    let plan: &Plan = predictor.plan();
    let data = surefoot_data::load(&plan.data, plan.seed, dir);
    let data = data.map_err(|error| error.to_string())?;
    let Targets::Classes(classes) = &data.validation.targets else {
        return Ok(None);
    };
    let outputs = predictor.outputs(&data.validation.features);
    let width = outputs.len() / classes.len().max(1);
    // A logit of 0 is a probability of one half.
    let logits =
        matches!(plan.training.loss, Loss::BinaryCrossentropy { from_logits: true } | Loss::Hinge);
    let middle = if logits { 0.0 } else { 0.5 };
    let class = |row: &[f32]| match row {
        [one] => u32::from(f64::from(*one) > middle),
        row => {
            let largest = (0..row.len()).reduce(|a, b| if row[b] > row[a] { b } else { a });
            largest.unwrap_or(0) as u32
        }
    };
    let predicted: Vec<u32> = outputs.chunks(width.max(1)).map(class).collect();
    Ok((data.task != Task::Regression).then(|| Quality::of(&predicted, classes)))
}

/// Means over the repaired cases, by rules and data.
pub fn qualities_text(lines: &[QualityLine]) -> String {
    let mut text = String::from(
        "| rules | data | repaired | accuracy | precision | recall |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut groups: Vec<(&str, &str)> = lines.iter().map(|line| (line.rules, line.data)).collect();
    groups.extend(lines.iter().map(|line| (line.rules, "all")));
    groups.sort_by_key(|(rules, data)| (*rules, *data == "all", *data));
    groups.dedup();
    for (rules, data) in groups {
        let is_meant =
            |line: &&QualityLine| line.rules == rules && (data == "all" || line.data == data);
        let all: Vec<&QualityLine> = lines.iter().filter(is_meant).collect();
        let repaired: Vec<&&QualityLine> = all.iter().filter(|line| line.repaired).collect();
        let change = |of: fn(&Quality) -> f64| {
            let mean = |side: fn(&QualityLine) -> &Quality| {
                let values = repaired.iter().map(|line| of(side(line)));
                100.0 * values.sum::<f64>() / repaired.len().max(1) as f64
            };
            let (before, after) = (mean(|line| &line.before), mean(|line| &line.after));
            format!("{before:.1} -> {after:.1} ({:+.1})", after - before)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {rules} | {data} | {} of {} | {} | {} | {} |",
            repaired.len(),
            all.len(),
            change(|it| it.accuracy),
            change(|it| it.precision),
            change(|it| it.recall)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_recall_are_means_over_the_classes() {
        let found = Quality::of(&[0, 0, 0, 1], &[0, 0, 1, 1]);
        assert_eq!(found.accuracy, 0.75);
        assert_eq!(found.recall, 0.75);
        assert!((found.precision - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
        let constant = Quality::of(&[0, 0], &[0, 1]);
        assert_eq!((constant.precision, constant.recall), (0.25, 0.5));
    }
}
