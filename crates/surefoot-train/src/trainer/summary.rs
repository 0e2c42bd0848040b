//! The result of a training: the delivered model and the summary.

use crate::callback::StopReason;
use crate::error::TrainError;
use crate::repair::RepairResult;
use crate::run::{Outline, TrainingResult};
use std::sync::Arc;
use surefoot_data::Preprocessing;
use surefoot_diagnose::{DetectorPanic, Finding, Severity};
use surefoot_plan::Plan;
use surefoot_record::{Array, MetricSummary, Recorder, RunSummary, Status};

/// The result of [`Trainer::train`](crate::Trainer::train).
#[derive(Debug)]
pub struct TrainSummary {
    /// The summary, as written to the record. Not written if the run was interrupted.
    pub summary: RunSummary,
    /// [`StopReason::Interrupted`] if the run or its repair was interrupted.
    pub reason: StopReason,
    /// Findings in the plan as given.
    pub findings: Vec<Finding>,
    /// Result of the plan as given.
    pub given: TrainingResult,
    /// Result of the repair, if one was made.
    pub repair: Option<RepairResult>,
    /// Facts about the plan as given.
    pub outline: Arc<Outline>,
    pub(super) plan: Plan,
}

impl TrainSummary {
    /// The delivered result: that of the best attempt, or of the plan as given.
    pub fn delivered(&self) -> &TrainingResult {
        let delivered = self.repair.as_ref().and_then(|repair| repair.delivered.as_ref());
        delivered.map_or(&self.given, |delivered| &delivered.result)
    }

    /// The delivered plan.
    pub fn plan(&self) -> &Plan {
        let delivered = self.repair.as_ref().and_then(|repair| repair.delivered.as_ref());
        delivered.map_or(&self.plan, |delivered| &delivered.plan)
    }

    /// The first problem found in the plan as given.
    pub fn problem(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.severity == Severity::Problem)
    }
}

/// The summary of a run.
pub(super) fn summarize(
    given: &TrainingResult,
    findings: &[Finding],
    panics: &[DetectorPanic],
    repair: Option<&RepairResult>,
    (metric, seconds, run): (&str, f64, String),
) -> RunSummary {
    let problems = findings.iter().filter(|finding| finding.severity == Severity::Problem);
    // Problems of attempts count only if the plan as given had one.
    let found = repair.iter().filter(|repair| !repair.dismissed).flat_map(|repair| &repair.found);
    let mut ids: Vec<String> = Vec::new();
    for finding in problems.chain(found) {
        let id = finding.problem.id();
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    let delivered = repair.and_then(|repair| repair.delivered.as_ref());
    let result = delivered.map_or(given, |delivered| &delivered.result);
    RunSummary {
        status: match repair {
            Some(repair) if repair.solved => Status::Repaired,
            Some(repair) if repair.dismissed => Status::Normal,
            Some(repair) if repair.declined => Status::Problem,
            Some(_) => Status::Failed,
            None if !ids.is_empty() => Status::Problem,
            None if is_sound(given) => Status::Normal,
            None => Status::Failed,
        },
        problems: ids,
        remedies: delivered.map(|delivered| delivered.remedies.clone()).unwrap_or_default(),
        failed_detectors: panics.iter().map(|panic| panic.problem.id().to_owned()).collect(),
        metric: MetricSummary {
            name: metric.to_owned(),
            before: given.last.as_ref().and_then(|last| last.metric),
            after: result.best.as_ref().and_then(|best| best.metric),
        },
        steps: given.steps + repair.map_or(0, |repair| repair.steps),
        seconds,
        digest: result.digest,
        run,
    }
}

/// Returns true if the run ended with finite numbers, even if an earlier model is delivered.
fn is_sound(result: &TrainingResult) -> bool {
    result.last_loss.is_finite()
        && result
            .best
            .as_ref()
            .is_some_and(|best| best.metric.is_some_and(f64::is_finite) && best.loss.is_finite())
}

/// Writes the preprocessing of the delivered model.
pub(super) fn write_preprocessing(
    recorder: &mut Recorder,
    preprocessing: &Preprocessing,
) -> Result<(), TrainError> {
    let json = serde_json::to_string_pretty(preprocessing).map_err(|error| TrainError::Io {
        action: "write the preprocessing to",
        path: recorder.dir().to_owned(),
        source: error.into(),
    })?;
    Ok(recorder.write_preprocessing(&format!("{json}\n"))?)
}

/// Writes the model and the plan of a run, and closes its record.
pub(super) fn write_model(
    mut recorder: Recorder,
    result: &TrainingResult,
    plan: &str,
    summary: &RunSummary,
) -> Result<(), TrainError> {
    let weights = result.model.iter();
    let model: Vec<Array> = weights
        .map(|weight| {
            let name = format!("{}.{}", weight.layer, weight.name);
            Array::new(name, &weight.shape, weight.values.clone())
        })
        .collect();
    recorder.write_model(&model)?;
    recorder.write_final_plan(plan)?;
    if let Some(test) = &result.test {
        recorder.evaluation(test)?;
    }
    Ok(recorder.finish(summary)?)
}
