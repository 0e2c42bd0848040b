//! Spaces and histories for tests.

use crate::history::{History, TrialOutcome, TrialResult};
use crate::space::{Condition, Domain, Parameter, Space, Value};
use proptest::prelude::*;
use surefoot_random::{Key, Purpose};

/// A space without conditions.
pub(crate) fn space<const N: usize>(parameters: [(&str, Domain); N]) -> Space {
    let parameters = parameters.map(|(name, domain)| Parameter {
        name: name.to_owned(),
        domain,
        conditions: Vec::new(),
    });
    Space::new(parameters.to_vec()).expect("a space")
}

/// A choice of strings.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Domain {
    Domain::Choice(words.map(|word| Value::Text(word.to_owned())).to_vec())
}

/// Optimizer, learning rate, and a momentum for one of two optimizers.
pub(crate) fn conditional() -> Space {
    let parameter =
        |name: &str, domain, conditions| Parameter { name: name.to_owned(), domain, conditions };
    let sgd = Condition {
        parameter: "optimizer".to_owned(),
        values: vec![Value::Text("sgd".to_owned())],
    };
    Space::new(vec![
        parameter("optimizer", words(["adam", "sgd"]), vec![]),
        parameter("momentum", Domain::Uniform(0.0, 0.99), vec![sgd]),
        parameter("rate", Domain::LogUniform(1e-5, 1.0), vec![]),
    ])
    .expect("a space")
}

fn domains() -> impl Strategy<Value = Domain> {
    prop_oneof![
        (-1e3..1e3, 0.0..1e3).prop_map(|(low, width)| Domain::Uniform(low, low + width)),
        (-1e3..1e3).prop_map(|only| Domain::Uniform(only, only)),
        (1e-6..1e3, 1.0..1e6).prop_map(|(low, by)| Domain::LogUniform(low, low * by)),
        (-100_i64..100, 0_i64..50).prop_map(|(low, width)| Domain::Int(low, low + width)),
        (1_i64..100, 0_i64..500).prop_map(|(low, width)| Domain::LogInt(low, low + width)),
        (1_i64..6).prop_map(|n| Domain::Choice((0..n).map(Value::Int).collect())),
    ]
}

/// Spaces of up to five parameters, some of them conditional.
pub(crate) fn spaces() -> impl Strategy<Value = Space> {
    let parameter = (domains(), any::<bool>(), 0.0..1.0, 0.0..1.0);
    prop::collection::vec(parameter, 1..6).prop_map(|drawn| {
        let mut parameters: Vec<Parameter> = Vec::new();
        for (index, (domain, depends, which, place)) in drawn.into_iter().enumerate() {
            let mut conditions = Vec::new();
            if depends && index > 0 {
                let other = &parameters[(which * index as f64) as usize];
                let mut values = vec![other.domain.at(place), other.domain.at(0.0)];
                values.dedup();
                conditions.push(Condition { parameter: other.name.clone(), values });
            }
            parameters.push(Parameter { name: format!("p{index}"), domain, conditions });
        }
        Space::new(parameters).expect("a space")
    })
}

/// Outcomes of all kinds: spread, imputed, equal, huge, failed and running.
pub(crate) fn outcomes() -> impl Strategy<Value = Vec<TrialOutcome>> {
    let outcome = prop_oneof![
        4 => (-10.0..10.0).prop_map(TrialOutcome::Cost),
        2 => (-10.0..10.0).prop_map(TrialOutcome::Imputed),
        1 => Just(TrialOutcome::Cost(1e30)),
        1 => Just(TrialOutcome::Cost(-1e300)),
        2 => Just(TrialOutcome::Failed),
        2 => Just(TrialOutcome::Running),
    ];
    let (worthless, equal) = (Just(TrialOutcome::Failed), Just(TrialOutcome::Cost(3.5)));
    prop_oneof![
        3 => prop::collection::vec(outcome, 0..40),
        1 => prop::collection::vec(worthless, 0..30),
        1 => prop::collection::vec(equal, 0..30),
        1 => prop::collection::vec(Just(TrialOutcome::Running), 0..30),
    ]
}

/// A history with these outcomes at random points.
pub(crate) fn history(space: &Space, seed: u64, outcomes: &[TrialOutcome]) -> Vec<TrialResult> {
    let results = |(number, &outcome): (u64, &TrialOutcome)| {
        let key = Key::new(seed, Purpose::Generate).epoch(number);
        TrialResult { number, point: space.at(|index| key.uniform(index as u64)), outcome }
    };
    (0..).zip(outcomes).map(results).collect()
}

/// Minimizes a function and returns the history.
pub(crate) fn minimized(
    sampler: &dyn super::Sampler,
    space: &Space,
    seed: u64,
    trials: u64,
    cost: impl Fn(&crate::space::Point) -> f64,
) -> History {
    let mut results = Vec::new();
    for number in 0..trials {
        let history = History::new(results.clone());
        let point =
            sampler.suggest(&super::SampleRequest { space, seed, number, history: &history });
        let outcome = TrialOutcome::of(cost(&point));
        results.push(TrialResult { number, point, outcome });
    }
    History::new(results)
}
