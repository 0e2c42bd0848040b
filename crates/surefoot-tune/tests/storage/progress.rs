//! Writes of a worker while it runs a trial.

use super::{
    HASTY, PATIENT, begun, by_hand, claim, complete, new_study, open, pass, point, start, values,
    view,
};
use surefoot_tune::PruneReason;
use surefoot_tune::storage::{Claimed, NewStudy, Start, Storage, StorageError, TrialState, View};

pub(crate) fn a_report_can_be_repeated_but_not_changed(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    for _ in 0..2 {
        storage.report(&claim, 1, f64::NAN, 1.0).expect("a report");
    }
    let contradiction = |result: Result<(), StorageError>| match result {
        Err(StorageError::Conflict { number: 0, message }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        contradiction(storage.report(&claim, 1, 0.5, 1.0)),
        "step 1 was reported as NaN and is now 0.5"
    );
    assert_eq!(
        contradiction(storage.start(&claim, &start(0.2))),
        "the trial already has another point"
    );
    assert_eq!(view(&mut storage, &study).reports(0).len(), 1);
    storage.report(&claim, 3, 0.5, 1.0).expect("a report");
    assert_eq!(
        contradiction(storage.report(&claim, 2, 0.5, 1.0)),
        "step 2 is reported after step 3"
    );
}

pub(crate) fn skipped_steps_have_the_value_before_them(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    for (step, value) in [(2, 0.5), (5, 0.3)] {
        storage.report(&claim, step, value, 1.0).expect("a report");
    }
    let view = view(&mut storage, &study);
    assert_eq!(view.steps(0), 5);
    assert_eq!(view.reports(0).len(), 2);
    let curve = view.curve(0).expect("a curve");
    assert_eq!(curve.costs, [0.5, 0.5, 0.5, 0.5, 0.3]);
}

pub(crate) fn a_resumed_trial_replaces_the_reports_after_its_checkpoint(url: &str) {
    let (mut storage, study) = open(url);
    let dead = begun(&mut storage, &study);
    let mut growing = View::new(&study);
    for step in 1..=4 {
        storage.report(&dead, step, step.into(), 1.0).expect("a report");
    }
    storage.refresh_reports(&mut growing).expect("a view");
    assert_eq!(values(&growing, 0), [1.0, 2.0, 3.0, 4.0]);
    pass();
    let next = claim(&mut storage, &study, &HASTY);
    storage.report(&next, 3, 30.0, 1.0).expect("a report");
    storage.refresh_reports(&mut growing).expect("a view");
    assert_eq!(values(&growing, 0), [1.0, 2.0, 30.0]);
    assert_eq!(values(&view(&mut storage, &study), 0), [1.0, 2.0, 30.0]);
    let back = storage.report(&next, 2, 20.0, 1.0);
    assert!(matches!(back, Err(StorageError::Conflict { .. })), "{back:?}");
    storage.report(&next, 4, 40.0, 1.0).expect("a report");
    assert_eq!(values(&view(&mut storage, &study), 0), [1.0, 2.0, 30.0, 40.0]);
}

pub(crate) fn a_final_state_can_be_repeated_but_not_changed(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    for _ in 0..2 {
        storage.finish(&claim, &complete(f64::NAN), 1.0).expect("an end");
    }
    let change = view(&mut storage, &study).change();
    let over = Err(StorageError::Ended { number: 0 });
    assert_eq!(storage.finish(&claim, &complete(0.5), 1.0), over);
    let message = "out of memory".to_owned();
    assert_eq!(storage.finish(&claim, &TrialState::Failed { message }, 1.0), over);
    let lost = Err(StorageError::ClaimLost { number: 0 });
    assert_eq!(storage.report(&claim, 1, 0.5, 1.0), lost);
    assert_eq!(storage.release(&claim), lost);
    assert_eq!(view(&mut storage, &study).change(), change);
}

pub(crate) fn a_trigger_protects_final_states(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    let update = "UPDATE surefoot_trial SET message = 'x'";
    assert_eq!(by_hand(url, update), Ok(()));
    storage.finish(&claim, &complete(0.5), 1.0).expect("an end");
    let refused = by_hand(url, update).expect_err("refused");
    assert!(refused.contains("a trial that has ended does not change"), "{refused}");
}

pub(crate) fn control_characters_are_replaced(url: &str) {
    let mut storage = Storage::open(url).expect("a store");
    let study = NewStudy {
        name: "dig\0its".to_owned(),
        fingerprint: "{\"epochs\"=\"\0\"}".to_owned(),
        document: "\0\r\n".to_owned(),
        ..new_study()
    };
    storage.join(&study).expect("a study");
    let study = storage.join(&study).expect("the same");
    assert_eq!((study.name.as_str(), study.document.as_str()), ("dig\u{fffd}its", "\u{fffd}\r\n"));
    let claimed = storage.claim(study.id, "work\0er", &PATIENT);
    let Ok(Claimed::Trial(claim)) = claimed else {
        panic!("{claimed:?}");
    };
    let start = Start { run: Some("runs\0/a".to_owned()), ..start(0.1) };
    storage.start(&claim, &start).expect("a start");
    let message = "Traceback:\n\t\0 is no \u{1b}[1mnumber\u{7}; \u{e4}".to_owned();
    storage.finish(&claim, &TrialState::Failed { message }, 1.0).expect("an end");
    let stopped = begun(&mut storage, &study);
    let reason = PruneReason::new("erg", "A \0 is kept where a text has other signs for it.");
    let end = TrialState::Pruned { value: None, reason };
    storage.finish(&stopped, &end, 1.0).expect("an end");
    let view = view(&mut storage, &study);
    let message = "Traceback:\n\t\u{fffd} is no \u{fffd}[1mnumber\u{fffd}; \u{e4}".to_owned();
    assert_eq!(view.trials()[0].final_state(), Some(&TrialState::Failed { message }));
    assert_eq!(view.trials()[0].attempts[0].worker, "work\u{fffd}er");
    assert_eq!(view.trials()[1].final_state(), Some(&end));
}

pub(crate) fn numbers_are_stored_bit_by_bit(url: &str) {
    let numbers = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        0.1 + 0.2,
        1.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        -1.797_693_134_862_315_5e308,
        9_007_199_254_740_993.0,
    ];
    let (mut storage, study) = open(url);
    for number in numbers {
        let claim = claim(&mut storage, &study, &PATIENT);
        storage.start(&claim, &start(number.abs().min(0.9))).expect("a start");
        storage.report(&claim, 1, number, number).expect("a report");
        storage.finish(&claim, &complete(number), number).expect("an end");
    }
    let view = view(&mut storage, &study);
    for (index, number) in numbers.iter().enumerate() {
        let trial = &view.trials()[index];
        let report = view.reports(index as u64)[0];
        let read = [
            trial.value().expect("a value"),
            trial.seconds.expect("seconds"),
            report.value,
            report.seconds,
        ];
        for read in read {
            assert_eq!(read.to_bits(), number.to_bits(), "{number}");
        }
        assert_eq!(trial.point, Some(point(number.abs().min(0.9))));
    }
}
