//! The subject of a diagnosis: a recorded run or a log of another program.

use super::settings::StatedFacts;
use crate::failure::Failure;
use crate::output::number::{counted, grouped};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Diagnosis, Facts, Quantity, Thresholds};
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
        /// Path as stated.
        path: PathBuf,
    },
}

impl Subject {
    /// Opens the run at `path`, or the runs in the log.
    pub(super) fn open(path: &Path, map: &Map) -> Result<Vec<Subject>, Failure> {
        if !path.join("header.json").exists() {
            let logs = surefoot_record::logs::read(path, map)?.into_iter();
            let subject = |log| Subject::Log { log: Box::new(log), path: path.to_owned() };
            return Ok(logs.map(subject).collect());
        }
        if !map.is_empty() {
            return Err(Failure::input(format!(
                "{} is a recorded run; --map applies to logs",
                path.display()
            )));
        }
        let record = Box::new(Record::open(path)?);
        Ok(vec![Subject::Record { facts: Box::new(record.header().facts.clone()), record }])
    }

    /// Adds facts that the user stated.
    pub(super) fn complete(&mut self, stated: &StatedFacts) {
        match self {
            Subject::Record { facts, .. } => {
                facts.epochs = stated.epochs.or(facts.epochs);
                facts.steps_per_epoch = stated.steps_per_epoch.or(facts.steps_per_epoch);
                stated.complete(facts);
            }
            Subject::Log { log, .. } => {
                log.plan(stated.epochs, stated.steps_per_epoch);
                stated.complete(&mut log.facts);
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
        let stated = plan.and_then(|plan| {
            let detectors = surefoot_train::rules(&plan).detectors();
            surefoot_train::thresholds(&plan, &detectors).ok()
        });
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

    /// Number of a step in that unit; 0 is before the first.
    pub(super) fn at(&self, step: u64) -> u64 {
        self.log().filter(|_| step > 0).map_or(step, |log| log.at(step))
    }

    /// The path, and the run in it if there are several.
    pub(super) fn name(&self) -> String {
        let path = self.path().display();
        match self.log().and_then(|log| log.origin.run.as_deref()) {
            Some(run) => format!("{path} ({run})"),
            None => path.to_string(),
        }
    }

    /// Rows and cells of a log that were left out, in sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        self.log().map_or_else(Vec::new, |log| log.warnings.clone())
    }

    /// Returns true for a log that is too short to judge.
    pub(super) fn is_too_short(&self) -> bool {
        self.log().is_some_and(Log::is_too_short)
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
