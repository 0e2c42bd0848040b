//! The subject of a diagnosis: a recorded run or a log of another program.

use super::settings::Given;
use crate::failure::Failure;
use crate::output::number::{counted, grouped};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Diagnosis, Facts, Quantity, Thresholds, detectors};
use surefoot_plan::Plan;
use surefoot_record::logs::{Log, Map, Unit};
use surefoot_record::{Record, Replay};

/// A recorded run or a log.
pub(super) enum Subject {
    Record {
        record: Box<Record>,
        facts: Box<Facts>,
    },
    Log {
        log: Box<Log>,
        /// Path as given.
        path: PathBuf,
    },
}

impl Subject {
    /// Opens the run or log at `path`.
    pub(super) fn open(path: &Path, map: &Map) -> Result<Subject, Failure> {
        if !path.join("header.json").exists() {
            let log = surefoot_record::logs::read(path, map)?;
            return Ok(Subject::Log { log: Box::new(log), path: path.to_owned() });
        }
        if !map.is_empty() {
            return Err(Failure::input(format!(
                "{} is a recorded run; --map applies to logs",
                path.display()
            )));
        }
        let record = Box::new(Record::open(path)?);
        Ok(Subject::Record { facts: Box::new(record.header().facts.clone()), record })
    }

    /// Adds facts that the user stated.
    pub(super) fn complete(&mut self, given: &Given) {
        match self {
            Subject::Record { facts, .. } => {
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
            Subject::Record { record, .. } => record.dir(),
            Subject::Log { path, .. } => path,
        }
    }

    pub(super) fn facts(&self) -> &Facts {
        match self {
            Subject::Record { facts, .. } => facts,
            Subject::Log { log, .. } => &log.facts,
        }
    }

    /// Feeds all steps and evaluations to `diagnosis`.
    pub(super) fn replay(&self, diagnosis: &mut Diagnosis) -> Result<Replay, Failure> {
        Ok(match self {
            Subject::Record { record, .. } => record.replay(diagnosis)?,
            Subject::Log { log, .. } => log.replay(diagnosis),
        })
    }

    /// Thresholds of the plan; the defaults for a log.
    pub(super) fn thresholds(&self) -> Thresholds {
        let Subject::Record { record, .. } = self else {
            return Thresholds::default();
        };
        let plan = Plan::parse(record.plan(), "plan.toml").ok();
        let detectors = detectors::all();
        let stated = plan.and_then(|plan| surefoot_train::thresholds(&plan, &detectors).ok());
        stated.unwrap_or_default()
    }

    /// Returns the quantities that it contains.
    pub(super) fn available(&self) -> Result<BTreeSet<Quantity>, Failure> {
        Ok(match self {
            Subject::Record { record, .. } => record.available()?,
            Subject::Log { log, .. } => log.available.clone(),
        })
    }

    fn log(&self) -> Option<&Log> {
        match self {
            Subject::Record { .. } => None,
            Subject::Log { log, .. } => Some(log),
        }
    }

    /// Unit in which steps are numbered.
    pub(super) fn unit(&self) -> Unit {
        self.log().map_or(Unit::Step, |log| log.origin.unit)
    }

    /// Number of a step in that unit.
    pub(super) fn at(&self, step: u64) -> u64 {
        self.log().map_or(step, |log| log.at(step))
    }

    /// Describes the amount and kind of data.
    pub(super) fn description(&self, replay: Replay) -> Result<String, Failure> {
        let Replay { steps, epochs } = replay;
        let Some(log) = self.log() else {
            let available: Vec<&str> = self.available()?.iter().map(|q| q.name()).collect();
            return Ok(format!(
                "{} in {}, with {}",
                counted(steps, "step"),
                counted(epochs, "epoch"),
                available.join(", ")
            ));
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
        Ok(format!("{amount}, with {}", series.join(", ")))
    }
}
