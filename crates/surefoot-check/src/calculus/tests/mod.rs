//! Laws of the calculus, tested on random programs in random interpretations.
//!
//! The submodules hold the text form of programs and an interpreter, which only tests need.

mod interpretation;
mod interpreter;
mod parse;
mod print;
mod programs;
mod recompute;
mod token;

use std::cell::Cell;

use programs::{Class, number, programs};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

pub(crate) use self::parse::parse;

use self::interpretation::Interpretation;
use self::interpreter::{Execution, Omission, resume, run};
use super::{Label, Program, Typing, WorkerCause, infer};

/// Tests a law on random programs of a class, and returns how often it applied.
fn hold(
    class: Class,
    cases: u32,
    law: impl Fn(&Program, &Cell<u32>) -> Result<(), TestCaseError>,
) -> u32 {
    let tested = Cell::new(0);
    // A fixed seed: the search for an interpretation in which an omission shows is bounded.
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&programs(class), |program| {
        law(&program, &tested).map_err(|error| match error {
            TestCaseError::Fail(why) => TestCaseError::fail(format!("{why} in\n{program}")),
            other => other,
        })
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, _) | TestError::Abort(why)) => panic!("{why}"),
    }
    tested.get()
}

fn execution(environment: u64, workers: u64, schedule: u64) -> Execution {
    Execution { environment, workers, schedule }
}

/// Soundness: a restart from the save set outputs what the uninterrupted run does; in another
/// environment if no external value is read afterwards, and with other workers if no output depends on
/// them.
#[test]
fn a_restart_from_the_save_set_repeats_the_run() {
    let law = |program: &Program, tested: &Cell<u32>| {
        let typing = infer(program);
        let accepted = typing.worker_dependences().is_empty();
        for seed in 0..6 {
            let interpretation = Interpretation(seed);
            let here = execution(seed + 100, 1 + seed % 3, seed);
            let whole = run(program, interpretation, here);
            let stride = whole.snapshots.len() / 8 + 1;
            for snapshot in whole.snapshots.iter().step_by(stride) {
                let rest = &whole.outputs[snapshot.outputs..];
                let again = |there| {
                    let nothing = Omission::Nothing;
                    resume(program, &typing, snapshot, nothing, interpretation, there)
                };
                prop_assert_eq!(again(here), rest, "the same execution");
                let save = typing.save(snapshot.label).unwrap();
                if !save.fresh.is_empty() || rest.is_empty() {
                    continue;
                }
                tested.set(tested.get() + 1);
                let elsewhere = execution(seed + 200, here.workers, here.schedule);
                prop_assert_eq!(again(elsewhere), rest, "another environment");
                if accepted {
                    let others = execution(seed + 200, here.workers + 2, seed + 1);
                    prop_assert_eq!(again(others), rest, "other workers");
                }
            }
        }
        Ok(())
    };
    assert!(hold(Class::Any, 4000, law) > 15_000);
    assert!(hold(Class::Fresh, 1500, law) > 5000);
}

/// True if an omission changes the outputs in some interpretation.
fn is_missed(program: &Program, typing: &Typing, omission: Omission, label: &str) -> bool {
    (0..20_000).any(|seed| {
        let interpretation = Interpretation(seed);
        let here = execution(seed, 1 + seed % 3, seed);
        let whole = run(program, interpretation, here);
        let snapshots = whole
            .snapshots
            .iter()
            .filter(|snapshot| program.labels[snapshot.label.0 as usize] == label);
        let stride = snapshots.clone().count() / 16 + 1;
        snapshots.step_by(stride).any(|snapshot| {
            let rest = &whole.outputs[snapshot.outputs..];
            resume(program, typing, snapshot, omission, interpretation, here) != rest
        })
    })
}

/// Minimality: in free and liberal programs, the omission of any member changes the outputs.
#[test]
fn every_member_of_a_save_set_is_needed() {
    let law = |program: &Program, tested: &Cell<u32>| {
        let typing = infer(program);
        for (at, label) in (0..).zip(&program.labels) {
            let Some(save) = typing.save(Label(at)) else {
                continue;
            };
            let members = save.members.iter().map(|m| Omission::Member(m.variable));
            let bounds = save.bounds.iter().map(|counter| Omission::Bound(*counter));
            for omission in members.chain(bounds) {
                tested.set(tested.get() + 1);
                prop_assert!(
                    is_missed(program, &typing, omission, label),
                    "{:?} has no effect at {}",
                    omission,
                    label
                );
            }
        }
        Ok(())
    };
    assert!(hold(Class::Fresh, 1200, law) > 1500);
}

/// A program that computes the same value twice can have an unneeded member.
#[test]
fn programs_that_repeat_a_computation_may_save_too_much() {
    let is_needed = |set: &str| {
        let program = parse(&format!(
            "for i < n {{\n if c(x) {{\n y := {set}\n ckpt L\n }}\n out y\n x := g(x)\n}}"
        ));
        let program = program.unwrap();
        let typing = infer(&program);
        let x = typing.save(Label(0)).unwrap().members[0].variable;
        assert_eq!(program.name(x), "x");
        is_missed(&program, &typing, Omission::Member(x), "L")
    };
    assert!(!is_needed("f(a)"));
    assert!(is_needed("f(a, i)"));
}

/// Returns the outputs on several numbers of workers, with several schedules.
fn on_workers(program: &Program, interpretation: Interpretation) -> Vec<Vec<u64>> {
    let all = [1, 2, 3, 4, 8].into_iter();
    all.flat_map(|workers| {
        (0..3).map(move |schedule| {
            run(program, interpretation, execution(interpretation.0, workers, schedule))
        })
    })
    .map(|run| run.outputs)
    .collect()
}

fn is_same_on_all(program: &Program, interpretation: Interpretation) -> bool {
    let outputs = on_workers(program, interpretation);
    outputs.iter().all(|one| *one == outputs[0])
}

#[test]
fn programs_without_dependences_are_independent_of_workers() {
    let law = |program: &Program, tested: &Cell<u32>| {
        if !infer(program).worker_dependences().is_empty() {
            return Ok(());
        }
        tested.set(tested.get() + 1);
        for seed in 0..6 {
            prop_assert!(is_same_on_all(program, Interpretation(seed)));
        }
        Ok(())
    };
    assert!(hold(Class::Any, 4000, law) > 1000);
}

/// Shared generators are excluded: if only the number of draws matters, their order has no effect.
#[test]
fn programs_with_dependences_differ_with_the_workers() {
    let law = |program: &Program, tested: &Cell<u32>| {
        let typing = infer(program);
        let found = typing.worker_dependences();
        if found.iter().all(|one| matches!(one.cause, WorkerCause::Shared(_))) {
            return Ok(());
        }
        tested.set(tested.get() + 1);
        let differs = (0..20_000).any(|seed| !is_same_on_all(program, Interpretation(seed)));
        prop_assert!(differs, "the same on all workers");
        Ok(())
    };
    assert!(hold(Class::Fresh, 1000, law) > 200);
}

/// Statements that make an output depend on the workers.
const FAULTS: [&str; 5] = [
    "g := seed 1 rank\nx := draw g\nout x",
    "x := rnd(7, rank)\nout x",
    "g := seed 1\nx := map j < n {\n y := draw g\n y\n} reduce tree\nout x",
    "x := map j < n {\n y := rnd(7, j)\n y\n} reduce ring\nout x",
    "x := map j < n {\n y := rnd(7, j)\n y\n} reduce unordered\nout x",
];

/// Appends a fault to a program. They have no name in common.
fn with_fault(program: &Program, fault: &str) -> Program {
    let mut with = parse(&format!("{program}{fault}")).expect("programs print as programs");
    number(&mut with.body, &mut 0);
    with
}

#[test]
fn an_inserted_dependence_on_workers_is_found_and_changes_the_outputs() {
    let law = |program: &Program, tested: &Cell<u32>| {
        if !infer(program).worker_dependences().is_empty() {
            return Ok(());
        }
        for fault in FAULTS {
            let faulty = with_fault(program, fault);
            prop_assert!(!infer(&faulty).worker_dependences().is_empty(), "{}", fault);
            let differs = (0..1000).any(|seed| !is_same_on_all(&faulty, Interpretation(seed)));
            prop_assert!(differs, "{} has no effect", fault);
            tested.set(tested.get() + 1);
        }
        Ok(())
    };
    assert!(hold(Class::Any, 300, law) > 300);
}

#[test]
fn printed_programs_parse_to_the_same_program() {
    let law = |program: &Program, _: &Cell<u32>| {
        let text = program.to_string();
        let read = parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read.to_string(), text.clone());

        let named = |program: &Program| {
            let typing = infer(program);
            let labels = (0..program.labels.len()).map(|label| Label(label as u32));
            let saves = labels.map(|label| {
                let save = typing.save(label).cloned().unwrap_or_default();
                let names = save.members.iter();
                let mut names: Vec<String> =
                    names.map(|m| program.name(m.variable).to_owned()).collect();
                names.sort();
                names
            });
            saves.collect::<Vec<_>>()
        };
        prop_assert_eq!(named(program), named(&read));
        Ok(())
    };
    hold(Class::Any, 500, law);
}
