//! Studies are made once and joined by those that look for the same.

use super::{PATIENT, begun, by_hand, complete, new_study, open, space, view};
use surefoot_tune::store::{Claim, End, Error, NewStudy, Store, Study, View};
use surefoot_tune::{Direction, Domain, PruneReason, Space};

pub(crate) fn a_study_comes_back_as_it_was(url: &str) {
    let (mut store, study) = open(url);
    let new = new_study();
    assert_eq!(study.document, new.document);
    assert_eq!(study.space, new.space);
    assert_eq!((study.direction, study.seed), (new.direction, new.seed));
    let claim = begun(&mut store, &study);
    let reason = PruneReason {
        by: "median".to_owned(),
        message: "It is \u{201c}worse\u{201d} than half; don't go on.".to_owned(),
        evidence: Vec::new(),
        counts: true,
    };
    let end = End::Stopped { value: None, reason };
    store.finish(&claim, &end, 1.5).expect("an end");
    drop(store);
    let mut store = Store::open_existing(url).expect("a store");
    let again = store.study("digits").expect("a study");
    assert_eq!((again.trials, again.created), (1, study.created));
    assert_eq!(store.studies(), Ok(vec![again.clone()]));
    let view = view(&mut store, &again);
    let trial = &view.trials()[0];
    assert_eq!(trial.end(), Some(&end));
    assert_eq!((trial.planned, trial.seconds), (Some(3), Some(1.5)));
    assert!(trial.ended >= Some(trial.created));
}

pub(crate) fn studies_that_look_for_something_else_are_not_joined(url: &str) {
    let (mut store, _) = open(url);
    let other_budget = NewStudy { document: "trials = 500".to_owned(), ..new_study() };
    assert!(store.join(&other_budget).is_ok());
    let mut parameters = space().parameters().to_vec();
    parameters[0].domain = Domain::Uniform(0.0, 2.0);
    parameters[1].name = "lr".to_owned();
    let other = NewStudy {
        space: Space::new(parameters).expect("a space"),
        direction: Direction::Maximize,
        seed: 7,
        ..new_study()
    };
    let error = store.join(&other).expect_err("refused").to_string();
    let clauses = "the study `digits` is another one: it is to minimize, this one to maximize; \
                   its seed is 18446744073709551615, this one's 7; \
                   its parameter `momentum` has other values; only it has the parameter `rate`; \
                   only this one has the parameter `lr`";
    assert!(error.ends_with(clauses), "{error}");
    let other = NewStudy { fingerprint: "{\"epochs\"=20}".to_owned(), ..new_study() };
    let error = store.join(&other).expect_err("refused").to_string();
    let end = "the study `digits` is another one: `epochs` is 10 in it, 20 here";
    assert!(error.ends_with(end), "{error}");
}

pub(crate) fn a_study_that_is_not_there_is_named(url: &str) {
    let (mut store, _) = open(url);
    let error = store.study("letters").expect_err("none").to_string();
    assert!(error.ends_with("there is no study `letters` (there are: digits)"), "{error}");
}

pub(crate) fn a_store_of_a_later_layout_is_left_alone(url: &str) {
    open(url);
    by_hand(url, "UPDATE surefoot_schema SET version = 99").expect("by hand");
    let is_file = !url.starts_with("postgres");
    if is_file {
        // A later layout may keep its file otherwise than this one.
        by_hand(url, "PRAGMA journal_mode = delete").expect("by hand");
    }
    let before = is_file.then(|| std::fs::read(url).expect("a file"));
    let error = Store::open(url).expect_err("refused").to_string();
    let end = "a later Surefoot has written this store (layout 99; this one knows 1)";
    assert!(error.ends_with(end), "{error}");
    let after = is_file.then(|| std::fs::read(url).expect("a file"));
    assert!(before == after, "the file has changed");
}

pub(crate) fn a_store_that_is_not_there_is_not_made_by_a_reader(url: &str) {
    let error = Store::open_existing(url).expect_err("refused");
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    let error = Store::open_existing(url).expect_err("still not there");
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}

/// Deleting is for those who can type SQL, and takes all of a study with it.
pub(crate) fn a_study_is_deleted_with_all_that_is_in_it(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    store.report(&claim, 1, 0.5, 1.0).expect("a report");
    store.finish(&claim, &complete(0.5), 1.0).expect("an end");
    by_hand(url, "DELETE FROM surefoot_study").expect("deleted");
    assert_eq!(store.studies(), Ok(Vec::new()));
    is_gone(&mut store, &study, &claim);
    let (mut store, study) = open(url);
    assert_eq!(view(&mut store, &study).trials(), []);
    assert_eq!(begun(&mut store, &study).number, 0);
    assert_eq!(view(&mut store, &study).reports(0), []);
}

pub(crate) fn a_study_that_is_deleted_and_made_again_is_another_one(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    by_hand(url, "DELETE FROM surefoot_study").expect("deleted");
    if !url.starts_with("postgres") {
        // As in stores that have forgotten which numbers they gave.
        by_hand(url, "DELETE FROM sqlite_sequence").expect("forgotten");
    }
    let (_, again) = open(url);
    begun(&mut store, &again);
    is_gone(&mut store, &study, &claim);
    let view = view(&mut store, &again);
    assert_eq!(view.trials().len(), 1);
    assert_eq!(view.reports(0), []);
}

/// Nothing is written and nothing is read of a study that is gone.
fn is_gone(store: &mut Store, study: &Study, claim: &Claim) {
    let store_name = store.name().to_owned();
    let gone = Error::Gone { store: store_name };
    let text = gone.to_string();
    let end = "the study is gone: somebody has deleted it";
    assert!(text.ends_with(end), "{text}");
    let claimed = store.claim(study.id, "worker", &PATIENT);
    assert_eq!(claimed.expect_err("gone"), gone);
    assert_eq!(store.report(claim, 1, 0.5, 1.0), Err(gone.clone()));
    assert_eq!(store.finish(claim, &complete(0.5), 1.0), Err(gone.clone()));
    let lost = Err(Error::ClaimLost { number: claim.number });
    assert_eq!(store.heartbeat(claim), lost);
    assert_eq!(store.refresh(&mut View::new(study)), Err(gone));
}
