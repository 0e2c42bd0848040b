//! What is diagnosed: a run of surefoot's, or the log of another's.

use super::settings::Given;
use crate::failure::Failure;
use crate::output::number::{counted, grouped};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Evaluation, Facts, Observation, Quantity, Split, Thresholds, detectors};
use surefoot_plan::Plan;
use surefoot_record::Record;
use surefoot_record::logs::{Log, Map, Unit};

/// A run or a log that can be read.
pub(super) enum Subject {
    Run {
        run: Box<Record>,
        facts: Box<Facts>,
        evaluations: Vec<Evaluation>,
    },
    Log {
        log: Box<Log>,
        /// As it was named.
        path: PathBuf,
    },
}

impl Subject {
    /// Opens what is at `path`.
    pub(super) fn open(path: &Path, map: &Map) -> Result<Subject, Failure> {
        if !path.join("header.json").exists() {
            let log = surefoot_record::logs::read(path, map)?;
            return Ok(Subject::Log { log: Box::new(log), path: path.to_owned() });
        }
        if !map.is_empty() {
            return Err(Failure::input(format!(
                "{} is a run of surefoot's, which has no columns to --map",
                path.display()
            )));
        }
        let run = Record::open(path)?;
        Ok(Subject::Run {
            facts: Box::new(run.header().facts.clone()),
            evaluations: run.evaluations()?,
            run: Box::new(run),
        })
    }

    /// Puts in what was stated.
    pub(super) fn complete(&mut self, given: &Given) {
        match self {
            Subject::Run { facts, .. } => {
                facts.epochs = given.epochs.or(facts.epochs);
                facts.steps_per_epoch = given.steps_per_epoch.or(facts.steps_per_epoch);
                given.complete(facts);
            }
            Subject::Log { log, .. } => {
                log.plan(given.epochs, given.steps_per_epoch);
                given.complete(&mut log.facts);
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Subject::Run { run, .. } => run.dir(),
            Subject::Log { path, .. } => path,
        }
    }

    pub(super) fn facts(&self) -> &Facts {
        match self {
            Subject::Run { facts, .. } => facts,
            Subject::Log { log, .. } => &log.facts,
        }
    }

    pub(super) fn evaluations(&self) -> &[Evaluation] {
        match self {
            Subject::Run { evaluations, .. } => evaluations,
            Subject::Log { log, .. } => &log.evaluations,
        }
    }

    /// Calls a function with each step, in order.
    pub(super) fn each_step(&self, mut visit: impl FnMut(&Observation)) -> Result<(), Failure> {
        match self {
            Subject::Run { run, .. } => {
                for seen in run.observations()? {
                    visit(&seen?);
                }
            }
            Subject::Log { log, .. } => log.steps.iter().for_each(visit),
        }
        Ok(())
    }

    /// The thresholds that it was made with, as far as it states them.
    pub(super) fn thresholds(&self) -> Thresholds {
        let Subject::Run { run, .. } = self else {
            return Thresholds::default();
        };
        let plan = Plan::parse(run.plan(), "plan.toml").ok();
        let detectors = detectors::all();
        let stated = plan.and_then(|plan| surefoot_repair::thresholds(&plan, &detectors).ok());
        stated.unwrap_or_default()
    }

    /// What can be seen in it.
    pub(super) fn available(&self) -> BTreeSet<Quantity> {
        let Subject::Run { run, facts, evaluations } = self else {
            return self.log().map_or_else(BTreeSet::new, |log| log.available.clone());
        };
        let watched = run.header().observe_every > 0 && !facts.layers.is_empty();
        let validated = evaluations.iter().any(|e| e.split == Split::Validation);
        let known = facts.task.is_some() && facts.loss.is_some() && !facts.layers.is_empty();
        [
            (Quantity::Loss, true),
            (Quantity::Metric, facts.metric.is_some()),
            (Quantity::Gradients, watched),
            (Quantity::Weights, watched),
            (Quantity::Outputs, watched),
            (Quantity::Validation, validated),
            (Quantity::Model, known),
        ]
        .into_iter()
        .filter_map(|(quantity, there)| there.then_some(quantity))
        .collect()
    }

    fn log(&self) -> Option<&Log> {
        match self {
            Subject::Run { .. } => None,
            Subject::Log { log, .. } => Some(log),
        }
    }

    /// What it counts in.
    pub(super) fn unit(&self) -> Unit {
        self.log().map_or(Unit::Step, |log| log.origin.unit)
    }

    /// Its own number of a step.
    pub(super) fn at(&self, step: u64) -> u64 {
        self.log().map_or(step, |log| log.at(step))
    }

    /// How much of what it has, after `steps` in `epochs`.
    pub(super) fn description(&self, steps: u64, epochs: u64) -> String {
        let Some(log) = self.log() else {
            let available: Vec<&str> = self.available().iter().map(|q| q.name()).collect();
            return format!(
                "{} in {}, with {}",
                counted(steps, "step"),
                counted(epochs, "epoch"),
                available.join(", ")
            );
        };
        let mut amount = match log.origin.unit {
            Unit::Epoch => counted(steps, "epoch"),
            Unit::Row => counted(steps, "row"),
            Unit::Step => format!(
                "{} from step {} to {}",
                counted(steps, "row"),
                grouped(log.at(1)),
                grouped(log.at(steps))
            ),
        };
        if log.origin.unit != Unit::Epoch && epochs > 1 {
            amount.push_str(&format!(" in {}", counted(epochs, "epoch")));
        }
        let series = log.origin.series.iter().map(|series| match series.mapped {
            true => format!("{} as {}", series.name, series.role),
            false => series.name.clone(),
        });
        let series: Vec<String> = series.collect();
        format!("{amount}, with {}", series.join(", "))
    }
}
