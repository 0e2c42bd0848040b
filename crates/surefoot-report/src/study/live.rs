//! The data of a study for the board, which draws the charts of trials itself.

use serde::Serialize;
use serde_json::{Value as Json, json};
use surefoot_tune::storage::TrialState;
use surefoot_tune::{Direction, Value};

use super::axis::{Axis, cut};
use super::importance::Importance;
use super::selection::Selection;
use super::status::Status;
use super::values::{Spread, Values};
use super::{StudyPage, StudyTrial, ended, headline};
use crate::scale::Scale;

/// Minimum distance between ticks.
const GAP: f64 = 0.2;

/// Maximum number of points of a curve.
const POINTS: usize = 100;

/// Parts of the static report that the board shows as they are.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fragments {
    summary: String,
    importance: String,
    ended: String,
    study: String,
    /// Parameters by importance, as positions in the space.
    order: Vec<usize>,
}

impl Fragments {
    /// Draws the parts.
    pub(crate) fn of(page: &StudyPage<'_>) -> Fragments {
        let ranking = page.ranking();
        let importance = Importance::of(page);
        let parameters = page.space.parameters();
        let most = importance.most(parameters.len());
        let position = |name: &str| parameters.iter().position(|p| p.name == name);
        Fragments {
            summary: headline::header(page, &ranking).into_string(),
            importance: importance.section(page).into_string(),
            ended: ended::section(page).into_string(),
            study: headline::study_section(page).into_string(),
            order: most.iter().filter_map(|parameter| position(&parameter.name)).collect(),
        }
    }
}

/// The study in a list.
pub(crate) fn row(page: &StudyPage<'_>) -> Json {
    let count = |status| page.trials.iter().filter(|trial| trial.status() == status).count();
    let running = page.trials.iter().filter(|t| matches!(t.trial.state, TrialState::Running));
    let running = running.count();
    let ranking = page.ranking();
    json!({
        "name": page.name,
        "store": page.store,
        "objective": page.objective_name(),
        "better": page.better(),
        "best": ranking.first().map(|(_, value)| *value),
        "best_trial": ranking.first().map(|(trial, _)| trial.number()),
        "trials": page.trials.len(),
        "complete": count(Status::Complete),
        "paused": count(Status::Paused),
        "pruned": count(Status::Pruned),
        "failed": count(Status::Failed),
        "running": running,
        "seconds": page.trials.iter().filter_map(StudyTrial::seconds).sum::<f64>(),
    })
}

/// Trials for which `is_changed` returns true, in columns, and the axes.
pub(crate) fn data(page: &StudyPage<'_>, is_changed: impl Fn(u64) -> bool) -> Json {
    let ranking = page.ranking();
    let values = Values::of(page);
    let axes: Vec<Axis<'_>> = page.space.parameters().iter().map(Axis::of).collect();
    let changed = page.trials.iter().filter(|trial| is_changed(trial.number()));
    let changed: Vec<&StudyTrial<'_>> = changed.collect();
    let mut row = row(page);
    row["maximize"] = (page.direction == Direction::Maximize).into();
    row["axes"] = axes.iter().map(axis).collect();
    row["scale"] = scale(&values.spread.scale);
    row["trials"] = columns(&changed, &axes);
    row["curves"] = curves(page, &Selection::of(page, &ranking));
    row["epochs"] = page.trials.iter().map(|trial| trial.reports.len()).max().unwrap_or(0).into();
    row
}

fn axis(axis: &Axis<'_>) -> Json {
    let ticks = axis.ticks(GAP);
    let ticks: Vec<Json> = ticks.iter().map(|tick| json!([tick.place, tick.label])).collect();
    json!({
        "name": axis.name(),
        "start": axis.start(),
        "absent": axis.absent(),
        "log": axis.is_log(),
        "ticks": ticks,
    })
}

fn scale(scale: &Scale) -> Json {
    let (low, high) = scale.bounds();
    let ticks = scale.ticks(5);
    let ticks = ticks.iter().map(|tick| json!([tick.place, scale.label(tick)]));
    json!({ "low": low, "high": high, "log": scale.is_log(), "ticks": ticks.collect::<Json>() })
}

fn columns(trials: &[&StudyTrial<'_>], axes: &[Axis<'_>]) -> Json {
    let column = |of: &dyn Fn(&StudyTrial<'_>) -> Json| -> Json {
        trials.iter().map(|trial| of(trial)).collect()
    };
    let point = |axis: &Axis<'_>| -> Json {
        let value = |trial: &&StudyTrial<'_>| {
            let value = trial.trial.point.as_ref().and_then(|point| axis.value(point));
            value.map_or(Json::Null, shown)
        };
        trials.iter().map(value).collect()
    };
    let place = |axis: &Axis<'_>| -> Json {
        let place = |trial: &&StudyTrial<'_>| {
            let point = trial.trial.point.as_ref();
            point.map(|point| rounded(axis.place(point, trial.number()), 4))
        };
        trials.iter().map(|trial| json!(place(trial))).collect()
    };
    let attempts = |trial: &StudyTrial<'_>| {
        let attempts = trial.trial.attempts.iter();
        attempts.map(|a| json!([a.worker, a.began, a.ended, a.state.name()])).collect::<Json>()
    };
    json!({
        "number": column(&|trial| trial.number().into()),
        "state": column(&|trial| trial.trial.state.name().into()),
        "value": column(&|trial| trial.reached().map(significant).into()),
        "counts": column(&|trial| trial.counts().into()),
        "epochs": column(&|trial| trial.reports.len().into()),
        "planned": column(&|trial| trial.trial.planned.into()),
        "seconds": column(&|trial| trial.seconds().map(|s| rounded(s, 2)).into()),
        "why": column(&|trial| why(&trial.trial.state).into()),
        "run": column(&|trial| trial.trial.run.is_some().into()),
        "attempts": column(&attempts),
        "points": axes.iter().map(point).collect::<Json>(),
        "places": axes.iter().map(place).collect::<Json>(),
    })
}

/// Why a trial ended before its plan did.
fn why(state: &TrialState) -> Option<String> {
    match state {
        TrialState::Pruned { reason, .. } => {
            Some(format!("{}: {}", cut(&reason.by, 40), cut(&reason.message, 160)))
        }
        TrialState::Failed { message } => Some(cut(message, 160)),
        TrialState::Lost => Some("the heartbeat of its worker is overdue".to_owned()),
        _ => None,
    }
}

/// Learning curves of the selected trials: number, then steps and values in turn.
fn curves(page: &StudyPage<'_>, selection: &Selection) -> Json {
    let selected = page.trials.iter().filter(|trial| selection.has(trial.number()));
    let reports = selected.clone().flat_map(|trial| trial.reports);
    let spread = Spread::of(reports.map(|report| report.value).collect(), page.direction);
    let lines = selected.filter(|trial| !trial.reports.is_empty()).map(|trial| {
        let every = trial.reports.len().div_ceil(POINTS).max(1);
        let last = trial.reports.len() - 1;
        let kept = trial.reports.iter().enumerate();
        let kept = kept.filter(|(i, _)| i % every == 0 || *i == last);
        let points = kept.flat_map(|(_, report)| [json!(report.step), significant(report.value)]);
        json!([trial.number(), points.collect::<Json>()])
    });
    json!({
        "lines": lines.collect::<Json>(),
        "scale": scale(&spread.scale),
        "note": selection.note(),
    })
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Float(value) => significant(*value),
        Value::Int(value) => json!(value),
        other => json!(cut(&super::axis::shown(other), 60)),
    }
}

/// A number with six significant digits; null if it is NaN or infinite.
pub(crate) fn significant(value: f64) -> Json {
    if value == 0.0 || !value.is_finite() {
        return json!(if value == 0.0 { Some(0.0) } else { None });
    }
    let digits = 5 - value.abs().log10().floor() as i32;
    // Beyond this the factor would overflow.
    if !(-300..=300).contains(&digits) {
        return json!(value);
    }
    let factor = 10_f64.powi(digits.abs());
    json!(match digits >= 0 {
        true => (value * factor).round() / factor,
        false => (value / factor).round() * factor,
    })
}

fn rounded(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::Made;

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(significant(0.123_456_789), json!(0.123_457));
        assert_eq!(significant(-98_765_432.1), json!(-98_765_400.0));
        assert_eq!(significant(1e-310), json!(1e-310));
        assert_eq!(significant(f64::NAN), Json::Null);
        assert_eq!(significant(0.0), json!(0.0));
    }

    #[test]
    fn only_changed_trials_are_sent() {
        let made = Made::study(50);
        let data = data(&made.page(), |number| number >= 45);
        assert_eq!(data["trials"]["number"], json!([45, 46, 47, 48, 49]));
        assert_eq!(data["trials"]["points"].as_array().unwrap().len(), 5);
        assert!(data["curves"]["lines"].as_array().unwrap().len() > 40);
        assert_eq!(data["running"], 3);
    }

    #[test]
    fn fragments_are_those_of_the_report() {
        let made = Made::study(50);
        let page = made.page();
        let fragments = Fragments::of(&page);
        let report = crate::study_report(&page);
        for part in [&fragments.summary, &fragments.importance, &fragments.ended, &fragments.study]
        {
            assert!(report.contains(part.as_str()));
            // The board's content security policy does not allow it.
            assert!(!part.contains("style="), "{part}");
        }
    }
}
