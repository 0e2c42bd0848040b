//! Whole searches on made-up learning curves.

use super::*;
use crate::sampler::fixture::{self, words};
use crate::space::{Condition, Domain, Parameter, Space, Value};

/// Runs a search with one worker for a number of epochs, or until nothing is left to run. `epoch` returns the cost and
/// the effort of an epoch.
fn search(
    space: &Space,
    planned: u64,
    epochs: usize,
    epoch: impl Fn(&Point, u64) -> (f64, f64),
) -> ScheduleHistory {
    let search = Search { space, seed: 3, candidates: None, is_suggested: false };
    let mut schedule = FreezeThaw::default().schedule(&search);
    let mut history = ScheduleHistory::default();
    while history.reports().len() < epochs {
        let number = match schedule.decide(&history) {
            Decision::Wait => break,
            Decision::Continue { trial, until } => {
                history.extend(trial, until);
                trial
            }
            Decision::Start { point, until } => {
                history.start(ScheduledTrial {
                    point,
                    planned: Some(planned),
                    until,
                    steps: 0,
                    is_over: false,
                });
                history.trials().len() as u64 - 1
            }
        };
        while history.trials()[number as usize].is_pending() {
            let trial = &history.trials()[number as usize];
            let step = trial.steps + 1;
            let (cost, effort) = epoch(trial.point.as_ref().unwrap(), step);
            history.report(ScheduledReport { trial: number, step, cost, effort });
            history.update(number, |trial| trial.is_over = step == planned);
        }
    }
    history
}

fn number(point: &Point, name: &str) -> Option<f64> {
    match point.get(name)? {
        Value::Float(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        _ => None,
    }
}

fn is_word(point: &Point, name: &str, word: &str) -> bool {
    point.get(name) == Some(&Value::Text(word.to_owned()))
}

#[test]
fn many_trials_are_all_trained_to_their_end_if_the_budget_allows() {
    // More observations than the model keeps: trials without any of them must not be forgotten.
    let space = fixture::space([("n", Domain::Int(1, 400))]);
    let history = search(&space, 3, usize::MAX, |point, step| {
        (number(point, "n").unwrap() / 400.0 + 1.0 / step as f64, 1.0)
    });
    assert!(history.reports().len() > MOST_ROWS, "{}", history.reports().len());
    assert!(history.trials().len() > 300, "{}", history.trials().len());
    assert!(history.trials().iter().all(|trial| trial.is_over));
}

#[test]
fn an_equal_improvement_for_less_effort_is_preferred() {
    let space =
        fixture::space([("size", words(["small", "large"])), ("x", Domain::Uniform(0.0, 1.0))]);
    let share = |effort: f64| {
        let history = search(&space, 20, 300, |point, step| {
            let gap = number(point, "x").unwrap() - 0.4;
            let effort = if is_word(point, "size", "large") { effort } else { 1.0 };
            (gap * gap + 0.5 / step as f64, effort)
        });
        let point = |trial: u64| history.trials()[trial as usize].point.as_ref().unwrap();
        let large = history.reports().iter().filter(|r| is_word(point(r.trial), "size", "large"));
        large.count() as f64 / history.reports().len() as f64
    };
    let (equal, costly) = (share(1.0), share(16.0));
    assert!(equal > 0.25, "{equal}");
    assert!(
        costly < 0.5 * equal,
        "{costly} of the epochs are costly, {equal} if all cost the same"
    );
}

#[test]
fn conditional_parameters_are_searched() {
    let only = |name: &str, word: &str| Parameter {
        name: name.to_owned(),
        domain: Domain::Uniform(0.0, 1.0),
        conditions: vec![Condition {
            parameter: "optimizer".to_owned(),
            values: vec![Value::Text(word.to_owned())],
        }],
    };
    let optimizer = Parameter {
        name: "optimizer".to_owned(),
        domain: words(["sgd", "adam"]),
        conditions: Vec::new(),
    };
    let space = Space::new(vec![optimizer, only("momentum", "sgd"), only("beta", "adam")]).unwrap();
    let history = search(&space, 20, 300, |point, step| {
        let end = match number(point, "momentum") {
            Some(momentum) => (momentum - 0.3).powi(2),
            None => 0.2 + (number(point, "beta").unwrap() - 0.7).powi(2),
        };
        (end + 0.5 / step as f64, 1.0)
    });
    // A fifth of random configurations is as close.
    let is_close = |trial: &&ScheduledTrial| {
        let momentum = number(trial.point.as_ref().unwrap(), "momentum");
        momentum.is_some_and(|momentum| (momentum - 0.3).abs() < 0.2)
    };
    let later = &history.trials()[FreezeThaw::default().n_startup_trials..];
    let close = later.iter().filter(is_close).count();
    assert!(2 * close > later.len(), "{close} of {}", later.len());
}
