//! A stored study for tests of exports.

use crate::pruner::PruneReason;
use crate::space::{Condition, Domain, Parameter, Point, Space, Value};
use crate::storage::{
    ClaimLimits, Claimed, NewStudy, Start, StepCost, Storage, StoredStudy, TrialState, View,
};

/// Six trials: complete, pruned, failed, complete with NaN, converged, running.
pub(super) fn study() -> (StoredStudy, View) {
    let dir = tempfile::tempdir().expect("a directory");
    let url = dir.path().join("study.db").display().to_string();
    let mut storage = Storage::open(&url).expect("a storage");
    let study = storage.join(&new_study()).expect("a study");
    let stopped = |value: f64, by: &str, message: &str, counts: bool| TrialState::Pruned {
        value: Some(value),
        reason: PruneReason {
            by: by.to_owned(),
            message: message.to_owned(),
            evidence: Vec::new(),
            counts,
        },
    };
    let message = "no\ndisk".to_owned();
    let worse = "It is worse than \"half\", at least.";
    let trials: [(Point, &[f64], Option<TrialState>, f64); 6] = [
        (
            point("adam", 0.001, None, 16),
            &[0.75, 0.5, 0.25],
            Some(TrialState::Complete { value: 0.25 }),
            1.5,
        ),
        (point("sgd", 0.1, Some(0.5), 32), &[0.9], Some(stopped(0.9, "median", worse, false)), 0.5),
        (point("adam", 0.01, None, 16), &[], Some(TrialState::Failed { message }), 0.25),
        (
            point("adam", 0.01, None, 16),
            &[f64::NAN],
            Some(TrialState::Complete { value: f64::NAN }),
            1.0,
        ),
        (
            point("sgd", 0.5, Some(0.0), 64),
            &[0.125, 0.25],
            Some(stopped(0.125, "nmg", "No more gain.", true)),
            1.0,
        ),
        (point("sgd", 0.25, Some(0.75), 32), &[0.5, 0.4], None, 0.0),
    ];
    for (number, (point, curve, end, seconds)) in trials.into_iter().enumerate() {
        let claimed = storage.claim(study.id, "worker", &ClaimLimits::default());
        let Ok(Claimed::Trial(claim)) = claimed else {
            panic!("no trial: {claimed:?}");
        };
        let start = Start {
            point,
            seen: Some(0),
            planned: Some(3),
            run: Some(format!("runs/s/trial-{number:05}")),
        };
        storage.start(&claim, &start).expect("a start");
        for (step, value) in (1..).zip(curve) {
            let effort = StepCost { seconds: 0.5, operations: 10.0 };
            storage.report(&claim, step, *value, effort).expect("a report");
        }
        if let Some(end) = end {
            storage.finish(&claim, &end, seconds).expect("an end");
        }
    }
    let mut view = View::new(&study);
    storage.refresh_reports(&mut view).expect("a view");
    (study, view)
}

fn new_study() -> NewStudy {
    let words = ["adam", "sgd"].map(|word| Value::Text(word.to_owned()));
    let parameter = |name: &str, domain: Domain| Parameter {
        name: name.to_owned(),
        domain,
        conditions: Vec::new(),
    };
    let mut momentum = parameter("momentum", Domain::Uniform(0.0, 0.99));
    momentum
        .conditions
        .push(Condition { parameter: "optimizer".to_owned(), values: vec![words[1].clone()] });
    let space = Space::new(vec![
        parameter("optimizer", Domain::Choice(words.to_vec())),
        parameter("rate", Domain::LogUniform(1e-4, 1.0)),
        momentum,
        parameter("units", Domain::Int(2, 64)),
    ]);
    NewStudy {
        name: "s".to_owned(),
        fingerprint: String::new(),
        document: String::new(),
        space: space.expect("a space"),
        direction: crate::Direction::Minimize,
        seed: 7,
    }
}

fn point(optimizer: &str, rate: f64, momentum: Option<f64>, units: i64) -> Point {
    let mut point = Point::default();
    let mut put = |name: &str, value: Value| point.0.insert(name.to_owned(), value);
    put("optimizer", Value::Text(optimizer.to_owned()));
    put("rate", Value::Float(rate));
    if let Some(momentum) = momentum {
        put("momentum", Value::Float(momentum));
    }
    put("units", Value::Int(units));
    point
}
