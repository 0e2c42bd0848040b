//! Which worker runs which trial.

use super::{
    HASTY, PATIENT, begun, claim, complete, is_silent, open, pass, point, silence, start, view,
    wait_until,
};
use std::thread::{scope, sleep};
use std::time::Duration;
use surefoot_tune::storage::{
    ClaimLimits, ClaimState, Claimed, HeartbeatThread, Storage, StorageError, TrialState,
};

pub(crate) fn trial_numbers_are_unique_and_without_gaps(url: &str) {
    let (_, study) = open(url);
    let workers: Vec<Vec<u64>> = scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut storage = Storage::open(url).expect("a store");
                    let claims = (0..10).map(|_| claim(&mut storage, &study, &PATIENT).number);
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

pub(crate) fn waiting_trials_run_before_new_ones(url: &str) {
    let (mut storage, study) = open(url);
    assert_eq!(storage.enqueue(study.id, &point(0.25)), Ok(0));
    assert_eq!(storage.enqueue(study.id, &point(0.75)), Ok(1));
    let first = claim(&mut storage, &study, &PATIENT);
    assert_eq!((first.number, first.point), (0, Some(point(0.25))));
    assert_eq!(claim(&mut storage, &study, &PATIENT).number, 1);
    let new = claim(&mut storage, &study, &PATIENT);
    assert_eq!((new.number, new.point), (2, None));
}

pub(crate) fn a_study_is_done_when_its_last_trial_has_ended(url: &str) {
    let (mut storage, study) = open(url);
    let limits = ClaimLimits { max_trials: Some(1), ..PATIENT };
    let claim = claim(&mut storage, &study, &limits);
    assert_eq!(storage.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    storage.start(&claim, &start(0.1)).expect("a start");
    storage.finish(&claim, &complete(1.0), 2.0).expect("an end");
    assert_eq!(storage.claim(study.id, "b", &limits), Ok(Claimed::Done));
}

pub(crate) fn the_next_worker_continues_a_lost_trial(url: &str) {
    let (mut storage, study) = open(url);
    let dead = begun(&mut storage, &study);
    storage.report(&dead, 1, 0.5, 1.0).expect("a report");
    pass();
    let next = claim(&mut storage, &study, &HASTY);
    assert_eq!((next.number, next.attempt, next.reported), (0, 2, 1));
    assert_eq!(next.point, Some(point(0.1)));
    assert_eq!(next.run.as_deref(), Some("runs/a"));
    let states: Vec<ClaimState> = view(&mut storage, &study).trials()[0]
        .attempts
        .iter()
        .map(|attempt| attempt.state)
        .collect();
    assert_eq!(states, [ClaimState::Lost, ClaimState::Running]);
}

pub(crate) fn a_lost_claim_cannot_write(url: &str) {
    let (mut storage, study) = open(url);
    let dead = begun(&mut storage, &study);
    pass();
    let next = claim(&mut storage, &study, &HASTY);
    let before = view(&mut storage, &study);
    let lost = Err(StorageError::ClaimLost { number: 0 });
    assert_eq!(storage.heartbeat(&dead), lost);
    assert_eq!(storage.start(&dead, &start(0.1)), lost);
    assert_eq!(storage.report(&dead, 1, 0.5, 1.0), lost);
    assert_eq!(storage.release(&dead), lost);
    assert_eq!(storage.finish(&dead, &complete(0.5), 1.0), lost);
    let after = view(&mut storage, &study);
    assert_eq!(after.change(), before.change());
    assert_eq!(after.trials(), before.trials());
    storage.finish(&next, &complete(0.7), 1.0).expect("an end");
    assert_eq!(storage.finish(&dead, &complete(0.7), 1.0), lost);
}

pub(crate) fn heartbeats_keep_a_claim(url: &str) {
    let (mut storage, study) = open(url);
    let claim = begun(&mut storage, &study);
    let limits = ClaimLimits { max_trials: Some(1), ..PATIENT };
    let thread = HeartbeatThread::open(url).expect("a thread");
    let heartbeat = thread.start(&claim, Duration::from_millis(5));
    silence(url);
    wait_until("no heartbeat", || !is_silent(url));
    assert_eq!(storage.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    assert!(!heartbeat.claim_lost());
    drop(heartbeat);
    // The last heartbeat may be under way.
    sleep(Duration::from_millis(50));
    silence(url);
    let taken = storage.claim(study.id, "b", &limits).expect("a claim");
    assert!(matches!(taken, Claimed::Trial(_)), "{taken:?}");
    let heartbeat = thread.start(&claim, Duration::from_millis(5));
    wait_until("the claim is not lost", || heartbeat.claim_lost());
}

pub(crate) fn a_trial_fails_after_too_many_lost_attempts(url: &str) {
    let (mut storage, study) = open(url);
    let limits = ClaimLimits { max_trials: Some(1), max_attempts: 3, ..HASTY };
    for attempt in 1..=3 {
        assert_eq!(claim(&mut storage, &study, &limits).attempt, attempt);
        pass();
    }
    assert_eq!(storage.claim(study.id, "d", &limits), Ok(Claimed::Done));
    let view = view(&mut storage, &study);
    let message = "lost after 3 attempts".to_owned();
    assert_eq!(view.trials()[0].state, TrialState::Failed { message });
    assert_eq!(view.trials()[0].attempts.len(), 3);
}

pub(crate) fn the_trials_of_a_dead_worker_are_free_at_once(url: &str) {
    let (mut storage, study) = open(url);
    let limits = ClaimLimits { max_attempts: 2, ..PATIENT };
    let claimed =
        |storage: &mut Storage, worker: &str| match storage.claim(study.id, worker, &limits) {
            Ok(Claimed::Trial(claim)) => claim,
            other => panic!("{other:?}"),
        };
    let dead = claimed(&mut storage, "a");
    let alive = claimed(&mut storage, "b");
    assert_eq!(storage.mark_dead(study.id, "a", &limits), Ok(vec![0]));
    assert_eq!(storage.mark_dead(study.id, "a", &limits), Ok(vec![]));
    assert_eq!(storage.heartbeat(&dead), Err(StorageError::ClaimLost { number: 0 }));
    assert_eq!(storage.heartbeat(&alive), Ok(()));
    let again = claimed(&mut storage, "a");
    assert_eq!((again.number, again.attempt), (0, 2));
    assert_eq!(storage.mark_dead(study.id, "a", &limits), Ok(vec![0]));
    let view = view(&mut storage, &study);
    let message = "lost after 2 attempts".to_owned();
    assert_eq!(view.trials()[0].state, TrialState::Failed { message });
}

pub(crate) fn a_released_trial_is_not_a_lost_attempt(url: &str) {
    let (mut storage, study) = open(url);
    let limits = ClaimLimits { max_attempts: 1, ..PATIENT };
    for _ in 0..3 {
        let claim = claim(&mut storage, &study, &limits);
        assert_eq!(claim.number, 0);
        storage.release(&claim).expect("given back");
        storage.release(&claim).expect("and once more");
        assert_eq!(storage.heartbeat(&claim), Err(StorageError::ClaimLost { number: 0 }));
    }
    assert_eq!(view(&mut storage, &study).trials()[0].state, TrialState::Waiting);
}
