//! The laws of the calculus, on random programs in random interpretations.

mod programs;

use std::cell::Cell;

use programs::{Class, number, programs};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use surefoot_check::calculus::{
    Execution, Interpretation, Label, Omission, Program, Typing, WorkerCause, infer, parse, resume,
    run,
};

/// Executes a law on programs of a class, and says how often it was put to the test.
fn hold(
    class: Class,
    cases: u32,
    law: impl Fn(&Program, &Cell<u32>) -> Result<(), TestCaseError>,
) -> u32 {
    let tested = Cell::new(0);
    // The same programs every time: that a member is missed is found by a search with an end.
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
    // The program is in the message, as text.
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, _) | TestError::Abort(why)) => panic!("{why}"),
    }
    tested.get()
}

fn execution(environment: u64, workers: u64, schedule: u64) -> Execution {
    Execution { environment, workers, schedule }
}

/// Soundness: a restart from what is saved puts out what the uninterrupted run does, in another
/// environment if nothing from outside is still to come, and with other workers if nothing depends
/// on them.
#[test]
fn a_restart_from_what_is_saved_repeats_the_run() {
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

/// Whether leaving something out shows in some interpretation.
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

/// Minimality: in free and liberal programs, leaving out any member changes what is put out.
#[test]
fn nothing_is_saved_in_vain() {
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
                    "{:?} is not missed at {}",
                    omission,
                    label
                );
            }
        }
        Ok(())
    };
    assert!(hold(Class::Fresh, 1200, law) > 1500);
}

/// That a program computes the same thing twice can make a member idle.
#[test]
fn members_of_programs_that_repeat_themselves_may_be_idle() {
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

/// What a program puts out on several numbers of workers, with several schedules.
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
fn accepted_programs_are_the_same_on_any_number_of_workers() {
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

/// A shared generator is left aside: where nothing is used of it but how far it was moved, the order
/// of the draws does not show.
#[test]
fn programs_that_are_not_accepted_differ_with_the_workers() {
    let law = |program: &Program, tested: &Cell<u32>| {
        let found = infer(program).worker_dependences();
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

/// A draw by rank, a draw from a shared generator, a ring or an unordered reduction, with its
/// result put out.
const FAULTS: [&str; 5] = [
    "g := seed 1 rank\nx := draw g\nout x",
    "x := rnd(7, rank)\nout x",
    "g := seed 1\nx := map j < n {\n y := draw g\n y\n} reduce tree\nout x",
    "x := map j < n {\n y := rnd(7, j)\n y\n} reduce ring\nout x",
    "x := map j < n {\n y := rnd(7, j)\n y\n} reduce unordered\nout x",
];

/// The program with the fault after it. They have no name in common.
fn with_fault(program: &Program, fault: &str) -> Program {
    let mut with = parse(&format!("{program}{fault}")).expect("programs print as programs");
    number(&mut with.body, &mut 0);
    with
}

#[test]
fn a_fault_put_into_an_accepted_program_is_rejected_and_shows() {
    let law = |program: &Program, tested: &Cell<u32>| {
        if !infer(program).worker_dependences().is_empty() {
            return Ok(());
        }
        for fault in FAULTS {
            let faulty = with_fault(program, fault);
            prop_assert!(!infer(&faulty).worker_dependences().is_empty(), "{}", fault);
            let differs = (0..1000).any(|seed| !is_same_on_all(&faulty, Interpretation(seed)));
            prop_assert!(differs, "{} does not show", fault);
            tested.set(tested.get() + 1);
        }
        Ok(())
    };
    assert!(hold(Class::Any, 300, law) > 300);
}

#[test]
fn printed_programs_read_as_the_same_programs() {
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
