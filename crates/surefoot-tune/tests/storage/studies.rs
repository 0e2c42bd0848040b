//! Studies are made once and joined by those that look for the same.

use super::{PATIENT, begun, by_hand, complete, new_study, open, space, view};
use surefoot_tune::storage::{
    Claim, NewStudy, Storage, StorageError, StoredStudy, TrialState, View,
};
use surefoot_tune::{Direction, Domain, PruneReason, Space};

pub(crate) fn a_study_is_stored_unchanged(url: &str) {
    let (mut storage, study) = open(url);
    let new = new_study();
    assert_eq!(study.document, new.document);
    assert_eq!(study.space, new.space);
    assert_eq!((study.direction, study.seed), (new.direction, new.seed));
    assert_eq!(study.vectors, surefoot_tune::storage::vectors());
    let claim = begun(&mut storage, &study);
    let reason = PruneReason {
        by: "median".to_owned(),
        message: "It is \u{201c}worse\u{201d} than half; don't go on.".to_owned(),
        evidence: Vec::new(),
        counts: true,
    };
    let end = TrialState::Pruned { value: None, reason };
    storage.finish(&claim, &end, 1.5).expect("an end");
    drop(storage);
    let mut storage = Storage::open_existing(url).expect("a store");
    let again = storage.study("digits").expect("a study");
    assert_eq!((again.trials, again.created), (1, study.created));
    assert_eq!(storage.studies(), Ok(vec![again.clone()]));
    let view = view(&mut storage, &again);
    let trial = &view.trials()[0];
    assert_eq!(trial.final_state(), Some(&end));
    assert_eq!((trial.planned, trial.seconds), (Some(3), Some(1.5)));
    assert!(trial.ended >= Some(trial.created));
}

pub(crate) fn a_different_study_of_the_same_name_is_an_error(url: &str) {
    let (mut storage, _) = open(url);
    let other_budget = NewStudy { document: "trials = 500".to_owned(), ..new_study() };
    assert!(storage.join(&other_budget).is_ok());
    let mut parameters = space().parameters().to_vec();
    parameters[0].domain = Domain::Uniform(0.0, 2.0);
    parameters[1].name = "lr".to_owned();
    let other = NewStudy {
        space: Space::new(parameters).expect("a space"),
        direction: Direction::Maximize,
        seed: 7,
        ..new_study()
    };
    let error = storage.join(&other).expect_err("refused").to_string();
    let clauses = "the existing study `digits` differs: direction is minimize, here maximize; \
                   seed is 18446744073709551615, here 7; \
                   parameter `momentum` has other values; parameter `rate` is missing here; \
                   parameter `lr` is new";
    assert!(error.ends_with(clauses), "{error}");
    let other = NewStudy { fingerprint: "{\"epochs\"=20}".to_owned(), ..new_study() };
    let error = storage.join(&other).expect_err("refused").to_string();
    let end = "the existing study `digits` differs: `epochs` is 10, here 20";
    assert!(error.ends_with(end), "{error}");
}

pub(crate) fn a_missing_study_is_an_error(url: &str) {
    let (mut storage, _) = open(url);
    let error = storage.study("letters").expect_err("none").to_string();
    assert!(error.ends_with("no study `letters` (found: digits)"), "{error}");
}

pub(crate) fn another_layout_is_an_error_and_untouched(url: &str) {
    open(url);
    by_hand(url, "UPDATE surefoot_schema SET version = 99").expect("by hand");
    let is_file = !url.starts_with("postgres");
    if is_file {
        // A later layout may keep its file otherwise than this one.
        by_hand(url, "PRAGMA journal_mode = delete").expect("by hand");
    }
    let before = is_file.then(|| std::fs::read(url).expect("a file"));
    let error = Storage::open(url).expect_err("refused").to_string();
    let end = "written by another version of Surefoot (layout 99, supported: 4)";
    assert!(error.ends_with(end), "{error}");
    let after = is_file.then(|| std::fs::read(url).expect("a file"));
    assert!(before == after, "the file has changed");
}

pub(crate) fn open_existing_creates_nothing(url: &str) {
    let error = Storage::open_existing(url).expect_err("refused");
    assert!(matches!(error, StorageError::Missing { .. }), "{error}");
    let error = Storage::open_existing(url).expect_err("still not there");
    assert!(matches!(error, StorageError::Missing { .. }), "{error}");
}

/// Deleting is for those who can type SQL, and takes all of a study with it.
pub(crate) fn deleting_a_study_deletes_its_trials(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    storage.report(&claim, 1, 0.5, 1.0).expect("a report");
    storage.finish(&claim, &complete(0.5), 1.0).expect("an end");
    by_hand(url, "DELETE FROM surefoot_study").expect("deleted");
    assert_eq!(storage.studies(), Ok(Vec::new()));
    is_gone(&mut storage, &study, &claim);
    let (mut storage, study) = open(url);
    assert_eq!(view(&mut storage, &study).trials(), []);
    assert_eq!(begun(&mut storage, &study).number, 0);
    assert_eq!(view(&mut storage, &study).reports(0), []);
}

pub(crate) fn a_recreated_study_is_a_different_study(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    by_hand(url, "DELETE FROM surefoot_study").expect("deleted");
    if !url.starts_with("postgres") {
        // As in stores that have forgotten which numbers they gave.
        by_hand(url, "DELETE FROM sqlite_sequence").expect("forgotten");
    }
    let (_, again) = open(url);
    begun(&mut storage, &again);
    is_gone(&mut storage, &study, &claim);
    let view = view(&mut storage, &again);
    assert_eq!(view.trials().len(), 1);
    assert_eq!(view.reports(0), []);
}

/// Nothing is written and nothing is read of a study that is gone.
fn is_gone(storage: &mut Storage, study: &StoredStudy, claim: &Claim) {
    let store_name = storage.name().to_owned();
    let gone = StorageError::Deleted { storage: store_name };
    let text = gone.to_string();
    let end = "the study was deleted";
    assert!(text.ends_with(end), "{text}");
    let claimed = storage.claim(study.id, "worker", &PATIENT);
    assert_eq!(claimed.expect_err("gone"), gone);
    assert_eq!(storage.report(claim, 1, 0.5, 1.0), Err(gone.clone()));
    assert_eq!(storage.finish(claim, &complete(0.5), 1.0), Err(gone.clone()));
    let lost = Err(StorageError::ClaimLost { number: claim.number });
    assert_eq!(storage.heartbeat(claim), lost);
    assert_eq!(storage.refresh(&mut View::new(study)), Err(gone));
}
