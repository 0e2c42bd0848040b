//! Records of repair attempts.

use super::prepared::{ADOPTED, KERAS_COPY};
use super::summary::write_model;
use crate::error::TrainError;
use crate::run::{Outline, TrainingResult};
use std::path::{Path, PathBuf};
use surefoot_plan::Plan;
use surefoot_record::{
    Attempt, AttemptOutcome, Environment, Header, MetricSummary, Recorder, RunSummary, Status,
};

/// The folder of attempts inside a run directory.
const ATTEMPTS: &str = "attempts";

/// Gives every attempt a run directory below that of the run.
pub(crate) struct AttemptRecorder {
    dir: PathBuf,
    /// Header entries that attempts share with the run.
    more: serde_json::Map<String, serde_json::Value>,
    environment: Environment,
}

impl AttemptRecorder {
    pub(crate) fn new(run: &Recorder, environment: Environment) -> Self {
        Self {
            dir: run.dir().to_owned(),
            more: run.header().more.clone().into_iter().collect(),
            environment,
        }
    }

    /// The directory of attempt `number`, relative to that of the run.
    pub(crate) fn place(number: u32) -> String {
        format!("{ATTEMPTS}/attempt-{number:03}")
    }

    pub(crate) fn create(
        &self,
        attempt: &Attempt,
        plan: &Plan,
        outline: &Outline,
        keeps_weights: bool,
    ) -> Result<Recorder, TrainError> {
        let mut header = super::header(outline, self.environment.clone());
        // An attempt that is resumed on its own is not repaired.
        super::RepairPolicy::Off.note(&mut header);
        self.copy(super::prepared::BASE, &mut header);
        let keras = self.more.get(KERAS_COPY).and_then(|file| file.as_str());
        if let Some(file) = keras.filter(|_| keeps_weights) {
            header.more.insert(ADOPTED.to_owned(), format!("../../{file}").into());
        }
        Ok(Recorder::create_at(&self.dir.join(&attempt.run), &plan.to_toml(), header)?)
    }

    fn copy(&self, key: &str, header: &mut Header) {
        if let Some(value) = self.more.get(key) {
            header.more.insert(key.to_owned(), value.clone());
        }
    }

    pub(crate) fn finish(
        recorder: Recorder,
        outcome: &AttemptOutcome,
        plan: &Plan,
        result: &TrainingResult,
        (metric, seconds): (&str, f64),
    ) -> Result<(), TrainError> {
        let found = outcome.finding.as_ref();
        let summary = RunSummary {
            status: if found.is_none() { Status::Normal } else { Status::Problem },
            problems: found.iter().map(|f| f.problem.id().to_owned()).collect(),
            remedies: Vec::new(),
            failed_detectors: Vec::new(),
            metric: MetricSummary {
                name: metric.to_owned(),
                before: result.last.as_ref().and_then(|last| last.metric),
                after: outcome.metric,
            },
            steps: result.steps,
            seconds,
            digest: result.digest,
            run: recorder.dir().display().to_string(),
        };
        write_model(recorder, result, &plan.to_toml(), &summary)
    }
}

/// Removes the attempts of a run: its repair starts over when it is resumed.
pub(super) fn remove_attempts(run: &Path) -> Result<(), TrainError> {
    let path = run.join(ATTEMPTS);
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(TrainError::Io { action: "remove", path, source })
        }
        _ => Ok(()),
    }
}
