//! Views of a study, for samplers and pruners.

use super::{HASTY, PATIENT, begun, claim, complete, new_study, open, pass, point, start, view};
use std::collections::BTreeSet;
use surefoot_tune::storage::{
    Claim, ClaimLimits, NewStudy, Start, Storage, StoredStudy, TrialState, View,
};
use surefoot_tune::{Direction, PruneReason, TrialOutcome};

/// A study in which much happens: two workers that die, report, stop and fail. Calls `look` before
/// each point is chosen, as a worker would ask its sampler.
fn eventful(storage: &mut Storage, study: &StoredStudy, mut look: impl FnMut(&mut Storage, u64)) {
    let limits = ClaimLimits { max_attempts: 2, ..HASTY };
    let mut held: Vec<Claim> = Vec::new();
    for round in 0..40_u32 {
        let limits = if round % 7 == 6 { limits } else { PATIENT };
        if round % 7 == 6 {
            pass();
        }
        let claim = claim(storage, study, &limits);
        if claim.point.is_none() {
            look(storage, claim.number);
            let start = Start {
                seen: Some(view(storage, study).change()),
                ..start(f64::from(round) / 40.0)
            };
            storage.start(&claim, &start).expect("a start");
        }
        held.push(claim);
        if held.len() < 3 {
            continue;
        }
        let oldest = held.remove(0);
        let reported = storage.report(&oldest, oldest.reported + 1, f64::from(round), 1.0);
        let stopped = |by: &str| TrialState::Pruned {
            value: Some(round.into()),
            reason: PruneReason::new(by, "It leads nowhere."),
        };
        let ended = match round % 6 {
            0 => storage.finish(&oldest, &complete(f64::INFINITY), 1.0),
            1 => storage.release(&oldest),
            2 => storage.finish(&oldest, &stopped("prospect"), 1.0),
            3 => storage.finish(&oldest, &stopped("erg"), 1.0),
            4 => {
                let message = "it broke".to_owned();
                storage.finish(&oldest, &TrialState::Failed { message }, 1.0)
            }
            _ => storage.finish(&oldest, &complete(round.into()), 1.0),
        };
        // Those that were thought dead have lost both.
        assert_eq!(reported.is_ok(), ended.is_ok());
        if round % 10 == 0 {
            storage.enqueue(study.id, &point(0.9)).expect("a trial");
        }
    }
}

pub(crate) fn an_updated_view_equals_a_new_one(url: &str) {
    let (mut storage, study) = open(url);
    let mut growing = View::new(&study);
    eventful(&mut storage, &study, |storage, _| {
        storage.refresh_reports(&mut growing).expect("a view");
        let new = view(storage, &study);
        assert_eq!(growing.trials(), new.trials());
        assert_eq!(growing.history(), new.history());
        for trial in new.trials() {
            assert_eq!(growing.reports(trial.number), new.reports(trial.number));
        }
    });
    let states: BTreeSet<&str> = growing.trials().iter().map(|t| t.state.name()).collect();
    assert!(states.is_superset(&["complete", "pruned", "failed", "running"].into()), "{states:?}");
}

pub(crate) fn the_history_of_a_sampler_can_be_rebuilt(url: &str) {
    let (mut storage, study) = open(url);
    let mut asked = Vec::new();
    eventful(&mut storage, &study, |storage, number| {
        asked.push((number, view(storage, &study).history()));
    });
    let end = view(&mut storage, &study);
    let differing = asked.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert!(asked.len() > 10 && differing > 10);
    for (number, history) in asked {
        let seen = end.trials()[number as usize].seen.expect("a sampler was asked");
        assert_eq!(end.history_at(seen), history, "trial {number}");
    }
}

pub(crate) fn pruners_see_learning_curves_as_costs(url: &str) {
    let mut storage = Storage::open(url).expect("a store");
    let study = NewStudy { direction: Direction::Maximize, ..new_study() };
    let study = storage.join(&study).expect("a study");
    let first = begun(&mut storage, &study);
    let second = begun(&mut storage, &study);
    let _silent = begun(&mut storage, &study);
    storage.report(&first, 1, 0.25, 1.0).expect("a report");
    storage.report(&second, 1, 0.75, 1.0).expect("a report");
    storage.report(&first, 2, 0.5, 1.0).expect("a report");
    storage.finish(&first, &complete(0.5), 2.0).expect("an end");
    let view = view(&mut storage, &study);
    let others = view.others(second.number);
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].costs, [-0.25, -0.5]);
    assert_eq!((others[0].planned, others[0].over), (3, true));
    assert_eq!(view.curve(1).expect("a curve").costs, [-0.75]);
    assert_eq!(view.history().trials()[0].outcome, TrialOutcome::Cost(-0.5));
}

pub(crate) fn unknown_lengths_are_those_of_the_longest_trial(url: &str) {
    let (mut storage, study) = open(url);
    let mut silent = |reports: u32| {
        let claim = claim(&mut storage, &study, &PATIENT);
        let start = Start { planned: None, ..start(0.5) };
        storage.start(&claim, &start).expect("a start");
        for step in 1..=reports {
            storage.report(&claim, step, 1.0, 1.0).expect("a report");
        }
        let view = view(&mut storage, &study);
        let planned = view.curve(claim.number).expect("a curve").planned;
        storage.finish(&claim, &complete(1.0), 1.0).expect("an end");
        planned
    };
    assert_eq!(silent(7), 7);
    assert_eq!(silent(2), 7);
    assert_eq!(silent(9), 9);
    assert_eq!(silent(1), 9);
}

pub(crate) fn pruned_trials_have_imputed_costs(url: &str) {
    let (mut storage, study) = open(url);
    let whole = begun(&mut storage, &study);
    for (step, cost) in [(1, 0.9), (2, 0.5), (3, 0.3)] {
        storage.report(&whole, step, cost, 1.0).expect("a report");
    }
    storage.finish(&whole, &complete(0.3), 3.0).expect("an end");
    for by in ["prospect", "erg"] {
        let stopped = begun(&mut storage, &study);
        storage.report(&stopped, 1, 1.0, 1.0).expect("a report");
        let end = TrialState::Pruned {
            value: Some(1.0),
            reason: PruneReason::new(by, "It does not learn."),
        };
        storage.finish(&stopped, &end, 1.0).expect("an end");
    }
    let view = view(&mut storage, &study);
    let history = view.history();
    let told: Vec<TrialOutcome> = history.trials().iter().map(|told| told.outcome).collect();
    let fallen = 1.0 - (0.9 - 0.3);
    let expected =
        [TrialOutcome::Cost(0.3), TrialOutcome::Imputed(fallen), TrialOutcome::Cost(1.0)];
    assert_eq!(told, expected);
}
