//! Studies for tests.

use surefoot_random::{Key, Purpose};
use surefoot_report::{StudyPage, StudyTrial};
use surefoot_tune::storage::{ClaimState, FrozenTrial, TrialAttempt, TrialReport, TrialState};
use surefoot_tune::study::ObjectiveKind;
use surefoot_tune::{Condition, Direction, Domain, Parameter, Point, PruneReason, Space, Value};

/// A generated study.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) direction: Direction,
    pub(crate) trials: Vec<(FrozenTrial, Vec<TrialReport>)>,
}

impl Made {
    /// Trials with these ends and one parameter.
    pub(crate) fn of(states: Vec<TrialState>) -> Made {
        let space = Space::new(vec![parameter("rate", Domain::LogUniform(1e-4, 1.0))]);
        let trials = (0..).zip(states).map(|(number, state)| {
            let mut point = Point::default();
            let place = (number as f64 * 0.37).fract();
            let value = Domain::LogUniform(1e-4, 1.0).at(place);
            point.0.insert("rate".to_owned(), value);
            let value = if state.is_final() { state.value() } else { Some(0.5) };
            let values: Vec<f64> = value.into_iter().collect();
            (trial(number, state, point, 20), reports(&values))
        });
        Made {
            name: "made up".to_owned(),
            space: space.expect("a space"),
            direction: Direction::Minimize,
            trials: trials.collect(),
        }
    }

    /// A study over five parameters, one of them conditional, with trials in all states. The value of a
    /// trial depends mostly on `rate`.
    pub(crate) fn study(count: u64) -> Made {
        let space = space();
        let key = Key::new(1, Purpose::Generate);
        let mut made = Made {
            name: "digits".to_owned(),
            space: space.clone(),
            direction: Direction::Maximize,
            trials: Vec::new(),
        };
        for number in 0..count {
            let draw = key.sample(number);
            let mut site = 0;
            let point = space.point(|parameter| {
                site += 1;
                parameter.domain.at(draw.uniform(site))
            });
            let rate = space.parameters()[0].domain.place(point.get("rate").expect("a rate"));
            let adam = point.get("optimizer") == Some(&Value::Text("adam".to_owned()));
            let good = 1.0 - (rate - 0.55).abs() * 1.5 + if adam { 0.06 } else { 0.0 };
            let reached = (good * 0.9 + 0.1 * draw.uniform(90)).clamp(0.02, 0.995);
            let curve: Vec<f64> = (1..=20)
                .map(|epoch| {
                    let noise = 0.02 * (draw.uniform(100 + epoch) - 0.5);
                    reached * (1.0 - (-(epoch as f64) / 5.0).exp()) + noise
                })
                .collect();
            let (state, values) = fate(number, count, reached, rate, &curve, draw.uniform(91));
            let trial = trial(number, state, point, 20);
            made.trials.push((trial, reports(&values)));
        }
        made
    }

    /// The page of the study.
    pub(crate) fn page(&self) -> StudyPage<'_> {
        let best = |reports: &[TrialReport]| {
            let values = reports.iter().map(|report| report.value);
            values.reduce(|a, b| match self.direction {
                Direction::Minimize => a.min(b),
                Direction::Maximize => a.max(b),
            })
        };
        let trials = self.trials.iter().map(|(trial, reports)| StudyTrial {
            trial,
            reports,
            value: match trial.state {
                TrialState::Paused => best(reports),
                _ => trial.value(),
            },
        });
        StudyPage {
            name: &self.name,
            store: "runs/digits/study.db",
            objective: match self.direction {
                Direction::Minimize => ObjectiveKind::Loss,
                Direction::Maximize => ObjectiveKind::Metric,
            },
            direction: self.direction,
            space: &self.space,
            seed: 7,
            document: "[tune]\ntrials = 30\n",
            program: "0.1.0",
            trials: trials.collect(),
        }
    }
}

/// End of a trial and length of its curve.
fn fate(
    number: u64,
    count: u64,
    reached: f64,
    rate: f64,
    curve: &[f64],
    luck: f64,
) -> (TrialState, Vec<f64>) {
    if number + 3 >= count && count > 10 {
        return (TrialState::Running, curve[..7].to_vec());
    }
    if number % 41 == 40 {
        let message = "the command ended with exit code 1: out of memory";
        return (failed(message), Vec::new());
    }
    if rate > 0.93 {
        let mut values = curve[..2].to_vec();
        values.push(f64::NAN);
        return (stopped(Some(f64::NAN), "nan"), values);
    }
    if reached < 0.55 && luck < 0.8 {
        let by = if luck < 0.3 { "erg" } else { "median" };
        let epochs = 2 + (luck * 10.0) as usize;
        let last = curve[epochs - 1];
        return (stopped(Some(last), by), curve[..epochs].to_vec());
    }
    let best = curve.iter().copied().fold(f64::MIN, f64::max);
    (complete(best), curve.to_vec())
}

/// Five parameters; the last one is conditional.
fn space() -> Space {
    let word = |word: &str| Value::Text(word.to_owned());
    let mut momentum = parameter("training.optimizer.momentum", Domain::Uniform(0.0, 0.99));
    momentum
        .conditions
        .push(Condition { parameter: "optimizer".to_owned(), values: vec![word("sgd")] });
    let space = Space::new(vec![
        parameter("rate", Domain::LogUniform(1e-4, 10.0)),
        parameter("model.0.units", Domain::LogInt(2, 256)),
        parameter("layers", Domain::Int(1, 4)),
        parameter("optimizer", Domain::Choice(["adam", "sgd", "rmsprop"].map(word).to_vec())),
        momentum,
    ]);
    space.expect("a space")
}

pub(crate) fn parameter(name: &str, domain: Domain) -> Parameter {
    Parameter { name: name.to_owned(), domain, conditions: Vec::new() }
}

pub(crate) fn complete(value: f64) -> TrialState {
    TrialState::Complete { value }
}

pub(crate) fn stopped(value: Option<f64>, by: &str) -> TrialState {
    let reason = PruneReason {
        by: by.to_owned(),
        message: format!("It is worse than half of the others ({by})."),
        evidence: Vec::new(),
        counts: false,
    };
    TrialState::Pruned { value, reason }
}

pub(crate) fn failed(message: &str) -> TrialState {
    TrialState::Failed { message: message.to_owned() }
}

/// A trial of one of four workers.
fn trial(number: u64, state: TrialState, point: Point, planned: u32) -> FrozenTrial {
    let over = state.is_final();
    let began = 1_000_000 + (number / 4) as i64 * 9_000 + (number % 4) as i64 * 700;
    let ended = over.then(|| began + 5_000 + (number % 7) as i64 * 500);
    let attempt = TrialAttempt {
        number: 1,
        worker: format!("4711-{}", number % 4 + 1),
        began,
        ended,
        state: if over { ClaimState::Finished } else { ClaimState::Running },
    };
    FrozenTrial {
        number,
        state,
        point: Some(point),
        seen: Some(number),
        planned: Some(planned),
        run: Some(format!("runs/digits/trial-{number:05}")),
        seconds: over.then_some(6.5),
        attempts: vec![attempt],
        created: began,
        ended,
        point_change: Some(number * 3 + 1),
        end_change: over.then_some(number * 3 + 2),
    }
}

/// Reports of a trial.
pub(crate) fn reports(values: &[f64]) -> Vec<TrialReport> {
    let report = |(step, value): (u32, &f64)| TrialReport {
        step,
        attempt: 1,
        value: *value,
        seconds: 0.25,
        operations: 1e6,
        at: 1_000_000,
        change: 0,
    };
    (1..).zip(values).map(report).collect()
}
