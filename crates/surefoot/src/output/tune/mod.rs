//! Output of `surefoot tune`: dry run ([`Outline`]), progress ([`SearchProgress`]), [`Summary`].

mod outline;
mod progress;
mod summary;

pub(crate) use outline::Outline;
pub(crate) use progress::SearchProgress;
pub(crate) use summary::Summary;

use super::number;
use serde::Serialize;
use surefoot_tune::storage::{FrozenTrial, TrialState, View};
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Point, PruneReason, Study};

/// Formats an objective value.
fn value(study: &Study, value: f64) -> String {
    match study.settings.objective {
        ObjectiveKind::Loss => number::loss(value),
        ObjectiveKind::Metric | ObjectiveKind::Value => number::short(value),
    }
}

/// Formats parameters on one line.
fn parameters(point: &Point) -> String {
    let entries = point.0.iter().map(|(name, value)| {
        let value = match value {
            surefoot_tune::Value::Float(value) => number::significant(*value),
            value => value.to_string(),
        };
        format!("{name} = {value}")
    });
    entries.collect::<Vec<_>>().join(", ")
}

/// The best trial that is complete, paused, or was stopped because it had converged.
fn best<'v>(study: &Study, view: &'v View) -> Option<(&'v FrozenTrial, f64)> {
    let direction = study.settings.direction;
    let trials = view.trials().iter();
    let counting = trials.filter_map(|trial| Some((trial, counting(trial, view)?)));
    // The first of equals.
    counting.reduce(|best, other| match direction.cost(other.1) < direction.cost(best.1) {
        true => other,
        false => best,
    })
}

/// Finite value of a trial, if it counts.
fn counting(trial: &FrozenTrial, view: &View) -> Option<f64> {
    let value = match &trial.state {
        TrialState::Complete { .. } | TrialState::Paused => view.value(trial.number),
        TrialState::Pruned { value, reason } if reason.counts => *value,
        _ => None,
    };
    value.filter(|value| value.is_finite())
}

/// JSON event of a trial that has ended or was paused.
#[derive(Serialize)]
struct TrialEvent<'a> {
    event: &'static str,
    number: u64,
    state: &'a str,
    #[serde(with = "surefoot_diagnose::number::optional")]
    value: Option<f64>,
    epochs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a PruneReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    parameters: Option<&'a Point>,
    attempts: usize,
    seconds: Option<f64>,
    /// Multiplications, 0 if they are not counted.
    operations: f64,
    run: Option<&'a str>,
}

impl<'a> TrialEvent<'a> {
    fn of(trial: &'a FrozenTrial, view: &View) -> Self {
        let (reason, message) = match &trial.state {
            TrialState::Pruned { reason, .. } => (Some(reason), None),
            TrialState::Failed { message } => (None, Some(message.as_str())),
            _ => (None, None),
        };
        Self {
            event: "trial",
            number: trial.number,
            state: trial.state.name(),
            value: view.value(trial.number),
            epochs: view.steps(trial.number),
            reason,
            message,
            parameters: trial.point.as_ref(),
            attempts: trial.attempts.len(),
            seconds: trial.seconds,
            operations: view.operations_of(trial.number),
            run: trial.run.as_deref(),
        }
    }
}
