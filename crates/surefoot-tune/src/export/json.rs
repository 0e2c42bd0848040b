//! JSON lines, one trial each with its learning curve. Non-finite numbers are the strings `"NaN"`,
//! `"Infinity"` and `"-Infinity"`.

use crate::pruner::PruneReason;
use crate::space::Point;
use crate::storage::{FrozenTrial, Millis, TrialAttempt, TrialState, View};
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    state: &'a str,
    #[serde(with = "surefoot_diagnose::number::optional")]
    value: Option<f64>,
    parameters: Option<&'a Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a PruneReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    planned: Option<u32>,
    seconds: Option<f64>,
    run: Option<&'a str>,
    created: Millis,
    ended: Option<Millis>,
    attempts: &'a [TrialAttempt],
    reports: Vec<Reported>,
}

#[derive(Serialize)]
struct Reported {
    step: u32,
    #[serde(with = "surefoot_diagnose::number")]
    value: f64,
    seconds: f64,
    operations: f64,
}

pub(super) fn write(view: &View) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for trial in view.trials() {
        text.push_str(&line(view, trial)?);
        text.push('\n');
    }
    Ok(text)
}

/// A trial with its learning curve as a JSON object. The view must contain the reports.
pub fn line(view: &View, trial: &FrozenTrial) -> Result<String, serde_json::Error> {
    let (reason, message) = match &trial.state {
        TrialState::Pruned { reason, .. } => (Some(reason), None),
        TrialState::Failed { message } => (None, Some(message.as_str())),
        _ => (None, None),
    };
    let reports = view.reports(trial.number).iter().map(|report| Reported {
        step: report.step,
        value: report.value,
        seconds: report.seconds,
        operations: report.operations,
    });
    serde_json::to_string(&Line {
        number: trial.number,
        state: trial.state.name(),
        value: view.value(trial.number),
        parameters: trial.point.as_ref(),
        reason,
        message,
        planned: trial.planned,
        seconds: trial.seconds,
        run: trial.run.as_deref(),
        created: trial.created,
        ended: trial.ended,
        attempts: &trial.attempts,
        reports: reports.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;
    use serde_json::{Value, json};

    #[test]
    fn a_line_has_a_trial_with_its_learning_curve() {
        let (_, view) = fixture::study();
        let text = write(&view).expect("JSON");
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let lines: Vec<Value> = lines.collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(
            lines[0]["parameters"],
            json!({"optimizer": "adam", "rate": 0.001, "units": 16})
        );
        assert_eq!(lines[0]["reports"][2]["value"], json!(0.25));
        assert_eq!(lines[1]["reason"]["by"], json!("median"));
        assert_eq!(lines[2]["message"], json!("no\ndisk"));
        assert_eq!(lines[3]["value"], json!("NaN"));
        assert_eq!(lines[5]["value"], Value::Null);
        assert_eq!(lines[5]["attempts"][0]["state"], json!("running"));
    }
}
