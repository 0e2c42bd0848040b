//! Values of `--set`: thresholds, and facts that a log does not contain.

use crate::failure::Failure;
use std::str::FromStr;
use surefoot_diagnose::{Detector, Facts, TaskKind, Thresholds};

/// All settings.
#[derive(Debug, Default)]
pub(super) struct DiagnoseSettings {
    pub(super) thresholds: Thresholds,
    pub(super) stated: StatedFacts,
}

/// Facts that were stated.
#[derive(Debug, Default)]
pub(super) struct StatedFacts {
    task: Option<TaskKind>,
    chance: Option<f64>,
    baseline_loss: Option<f64>,
    pub(super) epochs: Option<u64>,
    pub(super) steps_per_epoch: Option<u64>,
}

const FACTS: &str =
    "facts.task, facts.chance, facts.baseline_loss, facts.epochs and facts.steps_per_epoch";

impl DiagnoseSettings {
    /// Applies the `--set` values to `thresholds` and collects the stated facts.
    pub(super) fn read(
        settings: &[(String, String)],
        thresholds: Thresholds,
        detectors: &[Box<dyn Detector>],
    ) -> Result<DiagnoseSettings, Failure> {
        let mut read = DiagnoseSettings { thresholds, stated: StatedFacts::default() };
        for (key, value) in settings {
            // The thresholds and detectors are those of the rules already.
            if key == "rules" {
                continue;
            }
            let set = match key.split_once('.') {
                Some(("diagnose", _)) => read.thresholds.set(key, value),
                Some(("facts", fact)) => read.stated.set(fact, value),
                _ => Err(format!(
                    "there is no `{key}`; there are rules, thresholds (diagnose.NAME) and facts: {FACTS}"
                )),
            };
            set.map_err(Failure::input)?;
        }
        let known: Vec<_> = detectors.iter().map(|detector| detector.problem()).collect();
        if let Some(unknown) = read.thresholds.off.iter().find(|off| !known.contains(off)) {
            let known: Vec<&str> = known.iter().map(|problem| problem.id()).collect();
            return Err(Failure::input(format!(
                "`diagnose.off` has no problem `{unknown}` to switch off; there are {}",
                known.join(", ")
            )));
        }
        Ok(read)
    }
}

impl StatedFacts {
    fn set(&mut self, fact: &str, value: &str) -> Result<(), String> {
        match fact {
            "task" => {
                self.task = Some(match value.trim_matches('"') {
                    "binary" => TaskKind::Binary,
                    "multi_class" => TaskKind::MultiClass,
                    "multi_label" => TaskKind::MultiLabel,
                    "regression" => TaskKind::Regression,
                    _ => {
                        return Err(format!(
                            "`facts.task` is binary, multi_class, multi_label or regression, not `{value}`"
                        ));
                    }
                });
            }
            "chance" => {
                self.chance = Some(parse(fact, value, "a number", |n: &f64| n.is_finite())?)
            }
            "baseline_loss" => {
                self.baseline_loss = Some(parse(fact, value, "a positive number", |n: &f64| {
                    n.is_finite() && *n > 0.0
                })?);
            }
            "epochs" => self.epochs = Some(parse(fact, value, "a count from 1", |n| *n > 0)?),
            "steps_per_epoch" => {
                self.steps_per_epoch = Some(parse(fact, value, "a count from 1", |n| *n > 0)?);
            }
            _ => return Err(format!("there is no `facts.{fact}`; there are {FACTS}")),
        }
        Ok(())
    }

    /// Adds the stated facts. The chance level of a binary accuracy is 0.5 by default.
    pub(super) fn complete(&self, facts: &mut Facts) {
        facts.task = self.task.or(facts.task);
        facts.chance = self.chance.or(facts.chance);
        facts.baseline_loss = self.baseline_loss.or(facts.baseline_loss);
        if facts.task == Some(TaskKind::Binary) && facts.metric.as_deref() == Some("accuracy") {
            facts.chance = facts.chance.or(Some(0.5));
        }
    }
}

fn parse<T: FromStr>(
    fact: &str,
    value: &str,
    what: &str,
    fits: impl Fn(&T) -> bool,
) -> Result<T, String> {
    let number = value.parse().ok().filter(fits);
    number.ok_or_else(|| format!("`facts.{fact}` is {what}, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, value: &str) -> Result<DiagnoseSettings, Failure> {
        DiagnoseSettings::read(&[(key.to_owned(), value.to_owned())], Thresholds::default(), &[])
    }

    #[test]
    fn facts_and_thresholds_are_set_by_their_keys() {
        let mut facts = Facts { metric: Some("accuracy".to_owned()), ..Facts::default() };
        let settings = read("facts.task", "binary").unwrap();
        settings.stated.complete(&mut facts);
        assert_eq!((facts.task, facts.chance), (Some(TaskKind::Binary), Some(0.5)));
        read("facts.chance", "0.9").unwrap().stated.complete(&mut facts);
        assert_eq!(facts.chance, Some(0.9));
        let settings = read("diagnose.theta", "0.8").unwrap();
        assert_eq!(settings.thresholds.theta, 0.8);
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        for (key, value) in [
            ("theta", "1"),
            ("diagnose.thetta", "1"),
            ("diagnose.off", "[\"no_such_problem\"]"),
            ("facts.task", "ternary"),
            ("facts.epochs", "0"),
            ("facts.baseline_loss", "-1"),
            ("facts.chance", "nan"),
            ("facts.layers", "3"),
        ] {
            assert!(read(key, value).is_err(), "{key}={value}");
        }
    }
}
