//! Properties of every sampler.

use super::{Gp, SampleRequest, Sampler, SamplerConfig, Smac, Tpe, fixture};
use crate::history::{History, TrialOutcome, TrialResult};
use crate::space::{Point, Space};
use proptest::prelude::*;
use surefoot_random::{Key, Permutation, Purpose};

fn samplers() -> impl Iterator<Item = SamplerConfig> {
    SamplerConfig::all()
}

fn suggest(sampler: &dyn Sampler, space: &Space, seed: u64, results: Vec<TrialResult>) -> Point {
    let history = History::new(results);
    sampler.suggest(&SampleRequest {
        space,
        seed,
        number: history.trials().len() as u64,
        history: &history,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A suggestion lies in the space, is reproducible, and ignores the order of the history.
    #[test]
    fn suggestions_are_reproducible_points_of_the_space(
        space in fixture::spaces(),
        outcomes in fixture::outcomes(),
        seed: u64,
    ) {
        let results = fixture::history(&space, seed, &outcomes);
        let order = Permutation::new(Key::new(seed, Purpose::Shuffle), results.len() as u64);
        let shuffled: Vec<TrialResult> = (0..results.len() as u64)
            .map(|i| results[order.get(i) as usize].clone())
            .collect();
        for sampler in samplers() {
            let point = suggest(&*sampler, &space, seed, results.clone());
            prop_assert!(space.contains(&point), "{}: {point:?}", sampler.name());
            let again = suggest(&*sampler, &space, seed, results.clone());
            prop_assert_eq!(&point, &again, "{}", sampler.name());
            let reordered = suggest(&*sampler, &space, seed, shuffled.clone());
            prop_assert_eq!(&point, &reordered, "{}", sampler.name());
        }
    }

    /// Failed trials count as worst whether costs are values or negated values.
    #[test]
    fn a_failure_is_the_worst_in_both_directions(seed in 0_u64..1000) {
        let space = fixture::space([("x", crate::Domain::Uniform(0.0, 1.0))]);
        for sign in [1.0, -1.0] {
            let results = |number: u64| {
                let x = (number as f64 + 0.5) / 24.0;
                let outcome = if x < 0.5 { TrialOutcome::Failed } else { TrialOutcome::Cost(sign * x) };
                TrialResult { number, point: space.at(|_| x), outcome }
            };
            let results: Vec<TrialResult> = (0..24).map(results).collect();
            let learning: [Box<dyn Sampler>; 3] = [
                Box::new(Tpe::default()),
                Box::new(Gp::default()),
                Box::new(Smac { random_fraction: 0.0, ..Smac::default() }),
            ];
            for sampler in learning {
                let point = suggest(&*sampler, &space, seed, results.clone());
                let x = space.parameters()[0].domain.place(&point.0["x"]);
                prop_assert!(x > 0.3, "{} suggests {x} with sign {sign}", sampler.name());
            }
        }
    }
}

#[test]
fn an_empty_space_has_one_point() {
    let space = Space::new(Vec::new()).expect("a space");
    let outcomes = [TrialOutcome::Cost(1.0); 20];
    for sampler in samplers() {
        let results = fixture::history(&space, 1, &outcomes);
        assert_eq!(suggest(&*sampler, &space, 1, results), Point::default(), "{}", sampler.name());
    }
}

#[test]
fn an_exhausted_space_still_has_a_suggestion() {
    let space = fixture::space([("c", fixture::words(["a", "b"]))]);
    let outcomes = [TrialOutcome::Cost(1.0); 20];
    for sampler in samplers() {
        let results = fixture::history(&space, 1, &outcomes);
        assert!(space.contains(&suggest(&*sampler, &space, 1, results)), "{}", sampler.name());
    }
}

/// Pinned bits: a change here changes every recorded search.
#[test]
fn suggestions_are_pinned() {
    let space = fixture::conditional();
    let outcomes: Vec<TrialOutcome> = (0..30)
        .map(|i| match i % 6 {
            4 => TrialOutcome::Failed,
            5 => TrialOutcome::Running,
            _ => TrialOutcome::Cost(f64::from((i * 7) % 30)),
        })
        .collect();
    let results = fixture::history(&space, 1, &outcomes);
    let answers: Vec<String> = samplers()
        .map(|sampler| {
            let point = suggest(&*sampler, &space, 1, results.clone());
            let point = serde_json::to_string(&point).expect("text");
            format!("{} {point}", sampler.name())
        })
        .collect();
    let pinned = [
        r#"random {"momentum":0.21931719878909087,"optimizer":"sgd","rate":0.02530504442524908}"#,
        r#"sobol {"optimizer":"adam","rate":0.02022878666613755}"#,
        r#"tpe {"momentum":0.8566359138156067,"optimizer":"sgd","rate":0.00001597238162469802}"#,
        r#"gp {"optimizer":"adam","rate":0.0010489754551388614}"#,
        r#"smac {"momentum":0.4434528623717747,"optimizer":"sgd","rate":0.000045861862506674365}"#,
    ];
    assert_eq!(answers, pinned);
}
