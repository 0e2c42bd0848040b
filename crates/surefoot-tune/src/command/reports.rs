//! Reports of a trial: counted, diagnosed and kept.

use super::report::ReportLine;
use super::steps::StepCounter;
use crate::diagnosis::BackgroundDiagnosis;
use crate::direction::Direction;
use crate::objective::{Progress, WorkerError};
use crate::storage::TrialState;
use crate::trial::Trial;
use std::io::Write;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, LayerInfo, Split};

/// File in the trial directory that marks 0-based epochs.
const FROM_ZERO: &str = "epochs-from-0";

/// File in the trial directory with the reports of all attempts.
pub(super) const REPORTS: &str = "reports.jsonl";

/// Reports of a trial so far.
pub(crate) struct Reports {
    steps: StepCounter,
    /// File that marks 0-based epochs for later attempts.
    from_zero: PathBuf,
    direction: Direction,
    /// Last training step shown to the diagnosis.
    observed: u64,
    /// Value marked `final` by the command.
    pub(crate) result: Option<f64>,
    pub(crate) has_value: bool,
    layers: Vec<LayerInfo>,
    diagnosis: Option<BackgroundDiagnosis>,
    /// Keeps the reports; `None` if the file cannot be written, which does not end the trial.
    file: Option<std::fs::File>,
}

impl Reports {
    pub(crate) fn new(trial: &Trial<'_>, dir: &Path, direction: Direction) -> Reports {
        let from_zero = dir.join(FROM_ZERO);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(dir.join(REPORTS));
        Reports {
            steps: StepCounter::new(trial.reported(), trial.planned(), from_zero.exists()),
            from_zero,
            direction,
            observed: 0,
            result: None,
            has_value: false,
            layers: Vec::new(),
            diagnosis: None,
            file: file.ok(),
        }
    }

    /// Takes a report. Returns a state if the trial has to stop.
    pub(crate) fn take(
        &mut self,
        text: &str,
        line: &ReportLine,
        diagnosis: &impl Fn(Facts) -> Option<Diagnosis>,
        trial: &mut Trial<'_>,
    ) -> Result<Option<TrialState>, WorkerError> {
        self.observe(line, diagnosis);
        let Some(value) = line.value else {
            self.keep(None, text);
            return Ok(None);
        };
        self.has_value = true;
        if line.is_final {
            self.result = Some(value);
        }
        let (step, planned) = self.steps.next(line.epoch, line.epochs);
        self.keep(Some(step), text);
        if step == 1 && self.steps.starts_at_zero() {
            // If this fails, a later attempt counts epochs from 1.
            let _ = std::fs::write(&self.from_zero, "");
        }
        let findings = self.diagnosis.as_mut().map(BackgroundDiagnosis::findings);
        let findings = findings.unwrap_or_default();
        let state = trial.update(&Progress { step, planned, value, operations: 0.0, findings })?;
        Ok(match state {
            // Pruning a trial that has its final value saves nothing.
            Some(TrialState::Pruned { .. } | TrialState::Paused) if self.result.is_some() => None,
            state => state,
        })
    }

    /// Takes a training step without a value.
    pub(crate) fn observe_step(
        &mut self,
        line: &ReportLine,
        diagnosis: &impl Fn(Facts) -> Option<Diagnosis>,
    ) {
        self.observe(line, diagnosis);
        // Numbers and text: this cannot fail.
        self.keep(None, &serde_json::to_string(line).unwrap_or_default());
    }

    /// Keeps a report with the step it counts as.
    fn keep(&mut self, step: Option<u64>, text: &str) {
        let step = step.map_or_else(|| "null".to_owned(), |step| step.to_string());
        let line = format!("{step}\t{}\n", text.trim());
        if self.file.as_mut().is_some_and(|file| file.write_all(line.as_bytes()).is_err()) {
            self.file = None;
        }
    }

    /// Shows a report to the indicators, from the first loss on.
    fn observe(&mut self, line: &ReportLine, diagnosis: &impl Fn(Facts) -> Option<Diagnosis>) {
        if self.observed == 0 && line.loss.is_some() {
            let steps_per_epoch = match (line.steps, line.epochs) {
                (Some(steps), Some(epochs)) => Some(steps.div_ceil(epochs.max(1))),
                (Some(steps), None) => Some(steps),
                // One report an epoch.
                (None, _) => line.step.is_none().then_some(1),
            };
            let facts = Facts {
                steps_per_epoch,
                epochs: line.epochs.or(line.steps.map(|_| 1)),
                ..Facts::default()
            };
            // If no thread can be started, the trial runs without diagnosis.
            self.diagnosis =
                diagnosis(facts).and_then(|diagnosis| BackgroundDiagnosis::new(diagnosis).ok());
        }
        // Steps only increase. Epochs count as steps if there are none.
        if line.loss.is_some() {
            self.observed = line.step.or(line.epoch).unwrap_or(0).max(self.observed + 1);
        }
        let Some(diagnosis) = &mut self.diagnosis else {
            return;
        };
        // Losses are often reported every step and layers less often.
        if self.layers.is_empty() && !line.layers.0.is_empty() {
            self.layers = line.layer_infos();
            diagnosis.set_layers(self.layers.clone());
        }
        // Before the step, so that an improvement counts at once.
        if let Some(value) = line.value {
            diagnosis.evaluate(&Evaluation {
                epoch: line.epoch.unwrap_or(0),
                step: self.observed,
                split: Split::Validation,
                loss: self.direction.cost(value),
                metric: None,
            });
        }
        if let Some(observation) = line.observation(self.observed, &self.layers) {
            diagnosis.observe(&observation);
        }
    }
}
