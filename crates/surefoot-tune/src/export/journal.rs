//! Journals for Optuna's `JournalFileBackend`: one JSON line per operation.
//!
//! One line creates the study and one adds each trial, as `Study.add_trial` does. Fields unknown to
//! Optuna become user attributes. NaN and infinities are written as Python writes them, which
//! `serde_json` cannot do.

use crate::direction::Direction;
use crate::space::{Domain, Parameter, Point, Value};
use crate::storage::{FrozenTrial, Millis, StoredStudy, TrialReport, TrialState, View};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Operation codes.
const CREATE_STUDY: u8 = 0;
const SET_STUDY_USER_ATTR: u8 = 2;
const CREATE_TRIAL: u8 = 4;

/// Writer id of the lines.
const WORKER: &str = "surefoot";

/// Optuna's state codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptunaState {
    Running = 0,
    Complete = 1,
    Pruned = 2,
    Fail = 3,
    Waiting = 4,
}

pub(super) fn write(study: &StoredStudy, view: &View) -> Result<String, serde_json::Error> {
    let direction = match study.direction {
        Direction::Minimize => 1,
        Direction::Maximize => 2,
    };
    let mut lines = vec![
        json!({"directions": [direction], "op_code": CREATE_STUDY, "study_name": study.name,
               "worker_id": WORKER})
        .to_string(),
    ];
    for (key, value) in
        [("surefoot:seed", json!(study.seed)), ("surefoot:version", json!(study.program))]
    {
        let line = json!({"op_code": SET_STUDY_USER_ATTR, "study_id": 0, "user_attr": {key: value},
                          "worker_id": WORKER});
        lines.push(line.to_string());
    }
    for trial in view.trials() {
        lines.push(line(study, trial, view.reports(trial.number))?);
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// The line that adds a trial.
fn line(
    study: &StoredStudy,
    trial: &FrozenTrial,
    reports: &[TrialReport],
) -> Result<String, serde_json::Error> {
    let (state, value) = state(trial);
    let empty = Point::default();
    let point = trial.point.as_ref().unwrap_or(&empty);
    let mut distributions = BTreeMap::new();
    let mut params = BTreeMap::new();
    for parameter in study.space.parameters() {
        if let Some(value) = point.get(&parameter.name) {
            let distribution = distribution(parameter).to_string();
            distributions.insert(parameter.name.clone(), Json::String(distribution));
            params.insert(parameter.name.clone(), internal(parameter, value));
        }
    }
    let started = trial.attempts.first().map(|attempt| attempt.began);
    let started = match state {
        OptunaState::Waiting => Json::Null,
        _ => Json::String(iso(started.unwrap_or(trial.created))),
    };
    // Optuna runs a waiting trial with these fixed values.
    let system = match (state, &trial.point) {
        (OptunaState::Waiting, Some(point)) => json!({"fixed_params": point}),
        _ => json!({}),
    };
    let intermediate =
        reports.iter().map(|report| format!("\"{}\":{}", report.step, python(report.value)));
    let mut fields = vec![
        field("op_code", &CREATE_TRIAL)?,
        field("worker_id", &WORKER)?,
        field("study_id", &0)?,
        field("datetime_start", &started)?,
        field("state", &(state as u8))?,
        field("value", &value)?,
        field("values", &Json::Null)?,
        field("distributions", &distributions)?,
        field("params", &params)?,
        field("user_attrs", &attributes(trial, reports))?,
        field("system_attrs", &system)?,
        format!("\"intermediate_values\":{{{}}}", intermediate.collect::<Vec<_>>().join(",")),
    ];
    if matches!(state, OptunaState::Complete | OptunaState::Pruned | OptunaState::Fail) {
        let ended = iso(trial.ended.unwrap_or(trial.created));
        fields.push(field("datetime_complete", &ended)?);
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

fn field(key: &str, value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(format!("\"{key}\":{}", serde_json::to_string(value)?))
}

/// A number in Python's JSON.
fn python(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        value if value.is_infinite() && value > 0.0 => "Infinity".to_owned(),
        value if value.is_infinite() => "-Infinity".to_owned(),
        value => json!(value).to_string(),
    }
}

/// Optuna's state and value of a trial.
///
/// A complete trial with a non-finite value is failed for Optuna, which rejects NaN. A converged trial is
/// complete.
fn state(trial: &FrozenTrial) -> (OptunaState, Option<f64>) {
    let finite = trial.value().filter(|value| value.is_finite());
    match (&trial.state, finite) {
        (TrialState::Complete { .. }, Some(_)) => (OptunaState::Complete, finite),
        (TrialState::Complete { .. }, None) => (OptunaState::Fail, None),
        (TrialState::Pruned { reason, .. }, Some(_)) if reason.counts => {
            (OptunaState::Complete, finite)
        }
        (TrialState::Pruned { .. }, _) => (OptunaState::Pruned, finite),
        (TrialState::Failed { .. }, _) => (OptunaState::Fail, None),
        (TrialState::Running | TrialState::Paused | TrialState::Lost, _) => {
            (OptunaState::Running, None)
        }
        (TrialState::Waiting, _) => (OptunaState::Waiting, None),
    }
}

fn distribution(parameter: &Parameter) -> Json {
    let float = |low: f64, high: f64, log: bool| {
        json!({"attributes": {"high": high, "log": log, "low": low, "step": null},
               "name": "FloatDistribution"})
    };
    let int = |low: i64, high: i64, log: bool| {
        json!({"attributes": {"high": high, "log": log, "low": low, "step": 1},
               "name": "IntDistribution"})
    };
    match &parameter.domain {
        Domain::Uniform(low, high) => float(*low, *high, false),
        Domain::LogUniform(low, high) => float(*low, *high, true),
        Domain::Int(low, high) => int(*low, *high, false),
        Domain::LogInt(low, high) => int(*low, *high, true),
        Domain::Choice(values) => {
            json!({"attributes": {"choices": values}, "name": "CategoricalDistribution"})
        }
    }
}

/// Optuna's internal value: a number, or the index of a choice.
fn internal(parameter: &Parameter, value: &Value) -> Json {
    match &parameter.domain {
        Domain::Choice(values) => json!(values.iter().position(|other| other == value)),
        _ => json!(value),
    }
}

/// User attributes for fields unknown to Optuna.
fn attributes(trial: &FrozenTrial, reports: &[TrialReport]) -> BTreeMap<String, Json> {
    let mut attributes = BTreeMap::new();
    let mut put = |key: &str, value: Json| {
        attributes.insert(format!("surefoot:{key}"), value);
    };
    put("state", json!(trial.state.name()));
    match &trial.state {
        TrialState::Pruned { reason, .. } => {
            put("reason", json!(reason.by));
            put("message", json!(reason.message));
        }
        TrialState::Failed { message } => put("message", json!(message)),
        _ => {}
    }
    if let Some(value) = trial.value().filter(|value| !value.is_finite()) {
        put("value", json!(python(value)));
    }
    if let Some(planned) = trial.planned {
        put("planned", json!(planned));
    }
    if let Some(seconds) = trial.seconds {
        put("seconds", json!(seconds));
    }
    let operations: f64 = reports.iter().map(|report| report.operations).sum();
    if operations > 0.0 {
        put("operations", json!(operations));
    }
    put("attempts", json!(trial.attempts.len()));
    if let Some(run) = &trial.run {
        put("run", json!(run));
    }
    attributes
}

/// ISO 8601 time in UTC.
fn iso(time: Millis) -> String {
    let (days, within) = (time.div_euclid(86_400_000), time.rem_euclid(86_400_000));
    let (year, month, day) = date(days);
    let (hour, minute) = (within / 3_600_000, within / 60_000 % 60);
    let (second, milli) = (within / 1000 % 60, within % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}000+00:00")
}

/// Year, month and day of days since 1970. Years start in March here, so the leap day is last.
fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture;

    fn lines() -> Vec<String> {
        let (study, view) = fixture::study();
        let text = write(&study, &view).expect("JSON");
        assert!(text.ends_with("}\n"));
        text.lines().map(str::to_owned).collect()
    }

    /// A line without its times, which differ between runs.
    fn timeless(line: &str) -> String {
        let mut parts = Vec::new();
        for (i, part) in line.split("\"20").enumerate() {
            let rest = part.split_once('"').map_or("", |(_, rest)| rest);
            parts.push(if i == 0 { part } else { rest });
        }
        parts.join("\"TIME\"")
    }

    #[test]
    fn a_study_begins_with_its_name_and_direction() {
        let lines = lines();
        assert_eq!(lines.len(), 3 + 6);
        assert_eq!(
            lines[0],
            r#"{"directions":[1],"op_code":0,"study_name":"s","worker_id":"surefoot"}"#
        );
    }

    #[test]
    fn a_complete_trial_has_distributions_and_values() {
        assert_eq!(
            timeless(&lines()[3]),
            r#"{"op_code":4,"worker_id":"surefoot","study_id":0,"datetime_start":"TIME","#
                .to_owned()
                + r#""state":1,"value":0.25,"values":null,"distributions":{"#
                + r#""optimizer":"{\"attributes\":{\"choices\":[\"adam\",\"sgd\"]},\"name\":\"CategoricalDistribution\"}","#
                + r#""rate":"{\"attributes\":{\"high\":1.0,\"log\":true,\"low\":0.0001,\"step\":null},\"name\":\"FloatDistribution\"}","#
                + r#""units":"{\"attributes\":{\"high\":64,\"log\":false,\"low\":2,\"step\":1},\"name\":\"IntDistribution\"}"},"#
                + r#""params":{"optimizer":0,"rate":0.001,"units":16},"user_attrs":{"surefoot:attempts":1,"#
                + r#""surefoot:operations":30.0,"surefoot:planned":3,"surefoot:run":"runs/s/trial-00000","#
                + r#""surefoot:seconds":1.5,"surefoot:state":"complete"},"system_attrs":{},"#
                + r#""intermediate_values":{"1":0.75,"2":0.5,"3":0.25},"datetime_complete":"TIME"}"#
        );
    }

    #[test]
    fn states_match_optuna_and_nan_is_failed() {
        let lines = lines();
        let head = |line: &String| {
            let (_, rest) = line.split_once("\"state\":").expect("a state");
            let (state, _) = rest.split_once(",\"values\"").expect("a value");
            state.to_owned()
        };
        let heads: Vec<String> = lines[3..].iter().map(head).collect();
        assert_eq!(
            heads,
            [
                "1,\"value\":0.25",
                "2,\"value\":0.9",
                "3,\"value\":null",
                "3,\"value\":null",
                "1,\"value\":0.125",
                "0,\"value\":null",
            ]
        );
        assert!(lines[4].contains(r#""surefoot:reason":"median""#));
        assert!(lines[6].contains(r#""surefoot:value":"NaN""#));
        assert!(lines[6].contains(r#""intermediate_values":{"1":NaN}"#));
        assert!(!lines[8].contains("datetime_complete"));
    }

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(iso(951_782_400_123), "2000-02-29T00:00:00.123000+00:00");
        assert_eq!(iso(4_107_542_399_999), "2100-02-28T23:59:59.999000+00:00");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999000+00:00");
    }
}
