//! Which worker runs which trial.

use super::{HASTY, PATIENT, begun, claim, complete, open, pass, point, start, view};
use std::thread::{scope, sleep};
use std::time::Duration;
use surefoot_tune::store::{Claimed, End, Error, Fate, Heart, Limits, State, Store};

pub(crate) fn numbers_are_given_out_once_and_without_gaps(url: &str) {
    let (_, study) = open(url);
    let workers: Vec<Vec<u64>> = scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = Store::open(url).expect("a store");
                    let claims = (0..10).map(|_| claim(&mut store, &study, &PATIENT).number);
                    claims.collect()
                })
            })
            .collect();
        let numbers = workers.into_iter().map(|worker| worker.join().expect("a worker"));
        numbers.collect()
    });
    let mut numbers = workers.concat();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<u64>>());
}

pub(crate) fn what_waits_is_run_before_anything_new(url: &str) {
    let (mut store, study) = open(url);
    assert_eq!(store.enqueue(study.id, &point(0.25)), Ok(0));
    assert_eq!(store.enqueue(study.id, &point(0.75)), Ok(1));
    let first = claim(&mut store, &study, &PATIENT);
    assert_eq!((first.number, first.point), (0, Some(point(0.25))));
    assert_eq!(claim(&mut store, &study, &PATIENT).number, 1);
    let new = claim(&mut store, &study, &PATIENT);
    assert_eq!((new.number, new.point), (2, None));
}

pub(crate) fn a_study_is_done_when_its_last_trial_is_over(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits { trials: Some(1), ..PATIENT };
    let claim = claim(&mut store, &study, &limits);
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    store.start(&claim, &start(0.1)).expect("a start");
    store.finish(&claim, &complete(1.0), 2.0).expect("an end");
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Done));
}

pub(crate) fn a_lost_trial_goes_to_the_next_worker_as_it_is(url: &str) {
    let (mut store, study) = open(url);
    let dead = begun(&mut store, &study);
    store.report(&dead, 1, 0.5, 1.0).expect("a report");
    pass();
    let next = claim(&mut store, &study, &HASTY);
    assert_eq!((next.number, next.attempt, next.reported), (0, 2, 1));
    assert_eq!(next.point, Some(point(0.1)));
    assert_eq!(next.run.as_deref(), Some("runs/a"));
    let fates: Vec<Fate> =
        view(&mut store, &study).trials()[0].attempts.iter().map(|attempt| attempt.fate).collect();
    assert_eq!(fates, [Fate::Lost, Fate::Running]);
}

pub(crate) fn what_a_worker_writes_that_was_thought_dead_changes_nothing(url: &str) {
    let (mut store, study) = open(url);
    let dead = begun(&mut store, &study);
    pass();
    let next = claim(&mut store, &study, &HASTY);
    let before = view(&mut store, &study);
    let lost = Err(Error::ClaimLost { number: 0 });
    assert_eq!(store.heartbeat(&dead), lost);
    assert_eq!(store.start(&dead, &start(0.1)), lost);
    assert_eq!(store.report(&dead, 1, 0.5, 1.0), lost);
    assert_eq!(store.release(&dead), lost);
    assert_eq!(store.finish(&dead, &complete(0.5), 1.0), lost);
    let after = view(&mut store, &study);
    assert_eq!(after.change(), before.change());
    assert_eq!(after.trials(), before.trials());
    store.finish(&next, &complete(0.7), 1.0).expect("an end");
    assert_eq!(store.finish(&dead, &complete(0.7), 1.0), lost);
}

pub(crate) fn signs_of_life_keep_a_trial(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    let limits = Limits { trials: Some(1), grace: Duration::from_secs(3), ..PATIENT };
    let heart = Heart::open(url).expect("a heart");
    let pulse = heart.beat_for(&claim, Duration::from_millis(100));
    sleep(Duration::from_secs(4));
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    assert!(!pulse.lost());
    drop(pulse);
    sleep(Duration::from_secs(4));
    let taken = store.claim(study.id, "b", &limits).expect("an answer");
    assert!(matches!(taken, Claimed::Trial(_)), "{taken:?}");
    let pulse = heart.beat_for(&claim, Duration::from_millis(10));
    sleep(Duration::from_secs(1));
    assert!(pulse.lost());
}

pub(crate) fn a_trial_that_kills_its_workers_fails(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits { trials: Some(1), deaths: 3, ..HASTY };
    for attempt in 1..=3 {
        assert_eq!(claim(&mut store, &study, &limits).attempt, attempt);
        pass();
    }
    assert_eq!(store.claim(study.id, "d", &limits), Ok(Claimed::Done));
    let view = view(&mut store, &study);
    let message = "its workers died 3 times".to_owned();
    assert_eq!(view.trials()[0].state, State::Over(End::Failed { message }));
    assert_eq!(view.trials()[0].attempts.len(), 3);
}

pub(crate) fn a_worker_that_is_known_to_be_dead_is_not_waited_for(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits { deaths: 2, ..PATIENT };
    let claimed = |store: &mut Store, worker: &str| match store.claim(study.id, worker, &limits) {
        Ok(Claimed::Trial(claim)) => claim,
        other => panic!("{other:?}"),
    };
    let dead = claimed(&mut store, "a");
    let alive = claimed(&mut store, "b");
    assert_eq!(store.bury(study.id, "a", &limits), Ok(vec![0]));
    assert_eq!(store.bury(study.id, "a", &limits), Ok(vec![]));
    assert_eq!(store.heartbeat(&dead), Err(Error::ClaimLost { number: 0 }));
    assert_eq!(store.heartbeat(&alive), Ok(()));
    let again = claimed(&mut store, "a");
    assert_eq!((again.number, again.attempt), (0, 2));
    assert_eq!(store.bury(study.id, "a", &limits), Ok(vec![0]));
    let view = view(&mut store, &study);
    let message = "its workers died 2 times".to_owned();
    assert_eq!(view.trials()[0].state, State::Over(End::Failed { message }));
}

pub(crate) fn a_trial_that_is_given_back_is_no_death(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits { deaths: 1, ..PATIENT };
    for _ in 0..3 {
        let claim = claim(&mut store, &study, &limits);
        assert_eq!(claim.number, 0);
        store.release(&claim).expect("given back");
        store.release(&claim).expect("and once more");
        assert_eq!(store.heartbeat(&claim), Err(Error::ClaimLost { number: 0 }));
    }
    assert_eq!(view(&mut store, &study).trials()[0].state, State::Waiting);
}
