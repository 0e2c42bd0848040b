//! What every store keeps to, whichever database it is in.

#[cfg(feature = "postgres")]
mod server;

use rusqlite::Connection;
use std::collections::BTreeSet;
use std::thread::{scope, sleep};
use std::time::Duration;
use surefoot_tune::store::{
    Claim, Claimed, End, Error, Fate, Limits, NewStudy, Pulse, Start, State, Store, Study, View,
};
use surefoot_tune::{Direction, Domain, Outcome, Parameter, Point, Reason, Space, Value};

/// A behaviour a test, each on a SQLite file of its own; PostgreSQL gets all of them on one server.
macro_rules! every_store {
    ($($behaviour:ident)*) => {
        mod sqlite {
            $(#[test]
            fn $behaviour() {
                let dir = tempfile::tempdir().expect("a directory");
                super::$behaviour(&dir.path().join("study.db").display().to_string());
            })*
        }

        #[cfg(feature = "postgres")]
        #[test]
        fn postgresql_does_all_that_sqlite_does() {
            let Some(server) = server::Server::start("postgresql_does_all_that_sqlite_does") else {
                return;
            };
            $(eprintln!("{}", stringify!($behaviour));
            $behaviour(&server.database(stringify!($behaviour)));)*
        }
    };
}

every_store! {
    numbers_are_given_out_once_and_without_gaps
    what_waits_is_run_before_anything_new
    a_study_is_done_when_its_last_trial_is_over
    a_lost_trial_goes_to_the_next_worker_as_it_is
    what_a_worker_writes_that_was_thought_dead_changes_nothing
    signs_of_life_keep_a_trial
    a_trial_that_kills_its_workers_fails
    a_trial_that_is_given_back_is_no_death
    reports_can_be_made_twice_and_not_otherwise
    a_resumed_trial_replaces_what_came_after_its_checkpoint
    an_end_can_be_told_twice_and_not_otherwise
    what_is_over_cannot_be_changed_by_hand
    numbers_come_back_bit_by_bit
    a_study_comes_back_as_it_was
    studies_that_look_for_something_else_are_not_joined
    a_study_that_is_not_there_is_named
    a_view_that_grew_is_a_view_made_new
    a_sampler_can_be_asked_again_with_what_it_knew
    stoppers_see_the_courses_of_the_others_in_costs
    a_store_of_a_later_layout_is_left_alone
    a_store_that_is_not_there_is_not_made_by_a_reader
}

/// Long enough that nobody is thought dead, however slow the machine.
const PATIENT: Limits = Limits {
    trials: None,
    deaths: 3,
    grace: Duration::from_secs(600),
};

/// Short enough for a test to wait for.
const HASTY: Limits = Limits {
    grace: Duration::from_millis(1),
    ..PATIENT
};

fn space() -> Space {
    let domain = Domain::Uniform(0.0, 1.0);
    let parameters = ["momentum", "rate"].map(|name| Parameter {
        name: name.to_owned(),
        domain: domain.clone(),
        conditions: Vec::new(),
    });
    Space::new(parameters.to_vec()).expect("a space")
}

fn new_study() -> NewStudy {
    NewStudy {
        name: "digits".to_owned(),
        fingerprint: "plan 1".to_owned(),
        document: "[study]\nname = \"digits\" # it's \u{1f9ea}".to_owned(),
        space: space(),
        direction: Direction::Minimize,
        seed: u64::MAX,
    }
}

fn open(url: &str) -> (Store, Study) {
    let mut store = Store::open(url).expect("a store");
    let study = store.join(&new_study()).expect("a study");
    (store, study)
}

fn point(rate: f64) -> Point {
    let values = [("rate", rate), ("momentum", 0.5)];
    Point(
        values
            .map(|(name, value)| (name.to_owned(), Value::Float(value)))
            .into(),
    )
}

fn start(rate: f64) -> Start {
    Start {
        point: point(rate),
        seen: None,
        planned: 3,
        run: Some("runs/a".to_owned()),
    }
}

fn claim(store: &mut Store, study: &Study, limits: &Limits) -> Claim {
    match store.claim(study.id, "worker", limits).expect("an answer") {
        Claimed::Trial(claim) => claim,
        other => panic!("no trial: {other:?}"),
    }
}

/// A claim on a trial that is under way.
fn begun(store: &mut Store, study: &Study) -> Claim {
    let claim = claim(store, study, &PATIENT);
    store.start(&claim, &start(0.1)).expect("a start");
    claim
}

fn complete(value: f64) -> End {
    End::Complete { value }
}

fn view(store: &mut Store, study: &Study) -> View {
    let mut view = View::new(study);
    store.refresh_reports(&mut view).expect("a view");
    view
}

fn values(view: &View, number: u64) -> Vec<f64> {
    view.reports(number)
        .iter()
        .map(|report| report.value)
        .collect()
}

/// Lets the grace period of [`HASTY`] pass.
fn pass() {
    sleep(Duration::from_millis(30));
}

/// What somebody does with the database by hand.
fn by_hand(url: &str, sql: &str) -> Result<(), String> {
    #[cfg(feature = "postgres")]
    if url.starts_with("postgres") {
        let mut client = postgres::Client::connect(url, postgres::NoTls).expect("a connection");
        return client
            .batch_execute(sql)
            .map_err(|error| error.as_db_error().expect("an answer").message().to_owned());
    }
    let connection = Connection::open(url).expect("a file");
    connection
        .execute_batch(sql)
        .map_err(|error| error.to_string())
}

fn numbers_are_given_out_once_and_without_gaps(url: &str) {
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
        let numbers = workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker"));
        numbers.collect()
    });
    let mut numbers = workers.concat();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<u64>>());
}

fn what_waits_is_run_before_anything_new(url: &str) {
    let (mut store, study) = open(url);
    assert_eq!(store.enqueue(study.id, &point(0.25)), Ok(0));
    assert_eq!(store.enqueue(study.id, &point(0.75)), Ok(1));
    let first = claim(&mut store, &study, &PATIENT);
    assert_eq!((first.number, first.point), (0, Some(point(0.25))));
    assert_eq!(claim(&mut store, &study, &PATIENT).number, 1);
    let new = claim(&mut store, &study, &PATIENT);
    assert_eq!((new.number, new.point), (2, None));
}

fn a_study_is_done_when_its_last_trial_is_over(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits {
        trials: Some(1),
        ..PATIENT
    };
    let claim = claim(&mut store, &study, &limits);
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    store.start(&claim, &start(0.1)).expect("a start");
    store.finish(&claim, &complete(1.0), 2.0).expect("an end");
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Done));
}

fn a_lost_trial_goes_to_the_next_worker_as_it_is(url: &str) {
    let (mut store, study) = open(url);
    let dead = begun(&mut store, &study);
    store.report(&dead, 1, 0.5, 1.0).expect("a report");
    pass();
    let next = claim(&mut store, &study, &HASTY);
    assert_eq!((next.number, next.attempt, next.reported), (0, 2, 1));
    assert_eq!(next.point, Some(point(0.1)));
    assert_eq!(next.run.as_deref(), Some("runs/a"));
    let fates: Vec<Fate> = view(&mut store, &study).trials()[0]
        .attempts
        .iter()
        .map(|attempt| attempt.fate)
        .collect();
    assert_eq!(fates, [Fate::Lost, Fate::Running]);
}

fn what_a_worker_writes_that_was_thought_dead_changes_nothing(url: &str) {
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

fn signs_of_life_keep_a_trial(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    let limits = Limits {
        trials: Some(1),
        grace: Duration::from_secs(3),
        ..PATIENT
    };
    let pulse = Pulse::start(url, &claim, Duration::from_millis(100)).expect("a pulse");
    sleep(Duration::from_secs(4));
    assert_eq!(store.claim(study.id, "b", &limits), Ok(Claimed::Wait));
    assert!(!pulse.lost());
    drop(pulse);
    sleep(Duration::from_secs(4));
    let taken = store.claim(study.id, "b", &limits).expect("an answer");
    assert!(matches!(taken, Claimed::Trial(_)), "{taken:?}");
    let pulse = Pulse::start(url, &claim, Duration::from_millis(10)).expect("a pulse");
    sleep(Duration::from_secs(1));
    assert!(pulse.lost());
}

fn a_trial_that_kills_its_workers_fails(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits {
        trials: Some(1),
        deaths: 3,
        ..HASTY
    };
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

fn a_trial_that_is_given_back_is_no_death(url: &str) {
    let (mut store, study) = open(url);
    let limits = Limits {
        deaths: 1,
        ..PATIENT
    };
    for _ in 0..3 {
        let claim = claim(&mut store, &study, &limits);
        assert_eq!(claim.number, 0);
        store.release(&claim).expect("given back");
        store.release(&claim).expect("and once more");
        assert_eq!(store.heartbeat(&claim), Err(Error::ClaimLost { number: 0 }));
    }
    assert_eq!(view(&mut store, &study).trials()[0].state, State::Waiting);
}

fn reports_can_be_made_twice_and_not_otherwise(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    for _ in 0..2 {
        store.report(&claim, 1, f64::NAN, 1.0).expect("a report");
    }
    let contradiction = |result: Result<(), Error>| match result {
        Err(Error::Contradiction { number: 0, message }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        contradiction(store.report(&claim, 1, 0.5, 1.0)),
        "stretch 1 was reported as NaN and is now 0.5"
    );
    assert_eq!(
        contradiction(store.report(&claim, 3, 0.5, 1.0)),
        "stretch 3 is reported after stretch 1"
    );
    assert_eq!(
        contradiction(store.start(&claim, &start(0.2))),
        "it already has another point"
    );
    assert_eq!(view(&mut store, &study).reports(0).len(), 1);
}

fn a_resumed_trial_replaces_what_came_after_its_checkpoint(url: &str) {
    let (mut store, study) = open(url);
    let dead = begun(&mut store, &study);
    let mut growing = View::new(&study);
    for step in 1..=4 {
        store
            .report(&dead, step, step.into(), 1.0)
            .expect("a report");
    }
    store.refresh_reports(&mut growing).expect("a view");
    assert_eq!(values(&growing, 0), [1.0, 2.0, 3.0, 4.0]);
    pass();
    let next = claim(&mut store, &study, &HASTY);
    store.report(&next, 3, 30.0, 1.0).expect("a report");
    store.refresh_reports(&mut growing).expect("a view");
    assert_eq!(values(&growing, 0), [1.0, 2.0, 30.0]);
    assert_eq!(values(&view(&mut store, &study), 0), [1.0, 2.0, 30.0]);
    let back = store.report(&next, 2, 20.0, 1.0);
    assert!(matches!(back, Err(Error::Contradiction { .. })), "{back:?}");
    store.report(&next, 4, 40.0, 1.0).expect("a report");
    assert_eq!(values(&view(&mut store, &study), 0), [1.0, 2.0, 30.0, 40.0]);
}

fn an_end_can_be_told_twice_and_not_otherwise(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    for _ in 0..2 {
        store
            .finish(&claim, &complete(f64::NAN), 1.0)
            .expect("an end");
    }
    let change = view(&mut store, &study).change();
    let over = Err(Error::Over { number: 0 });
    assert_eq!(store.finish(&claim, &complete(0.5), 1.0), over);
    let message = "out of memory".to_owned();
    assert_eq!(store.finish(&claim, &End::Failed { message }, 1.0), over);
    let lost = Err(Error::ClaimLost { number: 0 });
    assert_eq!(store.report(&claim, 1, 0.5, 1.0), lost);
    assert_eq!(store.release(&claim), lost);
    assert_eq!(view(&mut store, &study).change(), change);
}

fn what_is_over_cannot_be_changed_by_hand(url: &str) {
    let (mut store, study) = open(url);
    let claim = begun(&mut store, &study);
    let update = "UPDATE surefoot_trial SET message = 'x'";
    assert_eq!(by_hand(url, update), Ok(()));
    store.finish(&claim, &complete(0.5), 1.0).expect("an end");
    let refused = by_hand(url, update).expect_err("refused");
    assert!(
        refused.contains("what is over does not change"),
        "{refused}"
    );
}

fn numbers_come_back_bit_by_bit(url: &str) {
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
    let (mut store, study) = open(url);
    for number in numbers {
        let claim = claim(&mut store, &study, &PATIENT);
        store
            .start(&claim, &start(number.abs().min(0.9)))
            .expect("a start");
        store.report(&claim, 1, number, number).expect("a report");
        store
            .finish(&claim, &complete(number), number)
            .expect("an end");
    }
    let view = view(&mut store, &study);
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

fn a_study_comes_back_as_it_was(url: &str) {
    let (mut store, study) = open(url);
    let new = new_study();
    assert_eq!(study.document, new.document);
    assert_eq!(study.space, new.space);
    assert_eq!((study.direction, study.seed), (new.direction, new.seed));
    let claim = begun(&mut store, &study);
    let reason = Reason {
        by: "median".to_owned(),
        sentence: "It is \u{201c}worse\u{201d} than half; don't go on.".to_owned(),
        evidence: Vec::new(),
        counts: true,
    };
    let end = End::Stopped {
        value: None,
        reason,
    };
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

fn studies_that_look_for_something_else_are_not_joined(url: &str) {
    let (mut store, _) = open(url);
    let other_budget = NewStudy {
        document: "trials = 500".to_owned(),
        ..new_study()
    };
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
    let other = NewStudy {
        fingerprint: "plan 2".to_owned(),
        ..new_study()
    };
    let error = store.join(&other).expect_err("refused").to_string();
    assert!(
        error.ends_with("it was made for `plan 1`, this one for `plan 2`"),
        "{error}"
    );
}

fn a_study_that_is_not_there_is_named(url: &str) {
    let (mut store, _) = open(url);
    let error = store.study("letters").expect_err("none").to_string();
    assert!(
        error.ends_with("there is no study `letters` (there are: digits)"),
        "{error}"
    );
}

/// A study in which much happens: two workers that die, report, stop and fail. Calls `look` before
/// each point is chosen, as a worker would ask its sampler.
fn eventful(store: &mut Store, study: &Study, mut look: impl FnMut(&mut Store, u64)) {
    let limits = Limits { deaths: 2, ..HASTY };
    let mut held: Vec<Claim> = Vec::new();
    for round in 0..40_u32 {
        let limits = if round % 7 == 6 { limits } else { PATIENT };
        if round % 7 == 6 {
            pass();
        }
        let claim = claim(store, study, &limits);
        if claim.point.is_none() {
            look(store, claim.number);
            let start = Start {
                seen: Some(view(store, study).change()),
                ..start(f64::from(round) / 40.0)
            };
            store.start(&claim, &start).expect("a start");
        }
        held.push(claim);
        if held.len() < 3 {
            continue;
        }
        let oldest = held.remove(0);
        let reported = store.report(&oldest, oldest.reported + 1, f64::from(round), 1.0);
        let ended = match round % 4 {
            0 => store.finish(&oldest, &complete(f64::INFINITY), 1.0),
            1 => store.release(&oldest),
            2 => {
                let message = "it broke".to_owned();
                store.finish(&oldest, &End::Failed { message }, 1.0)
            }
            _ => store.finish(&oldest, &complete(round.into()), 1.0),
        };
        // Those that were thought dead have lost both.
        assert_eq!(reported.is_ok(), ended.is_ok());
        if round % 10 == 0 {
            store.enqueue(study.id, &point(0.9)).expect("a trial");
        }
    }
}

fn a_view_that_grew_is_a_view_made_new(url: &str) {
    let (mut store, study) = open(url);
    let mut growing = View::new(&study);
    eventful(&mut store, &study, |store, _| {
        store.refresh_reports(&mut growing).expect("a view");
        let new = view(store, &study);
        assert_eq!(growing.trials(), new.trials());
        assert_eq!(growing.history(), new.history());
        assert_eq!(growing.history(), &growing.history_at(growing.change()));
        for trial in new.trials() {
            assert_eq!(growing.reports(trial.number), new.reports(trial.number));
        }
    });
    let states: BTreeSet<&str> = growing.trials().iter().map(|t| t.state.word()).collect();
    assert!(
        states.is_superset(&["complete", "failed", "running"].into()),
        "{states:?}"
    );
}

fn a_sampler_can_be_asked_again_with_what_it_knew(url: &str) {
    let (mut store, study) = open(url);
    let mut asked = Vec::new();
    eventful(&mut store, &study, |store, number| {
        asked.push((number, view(store, &study).history().clone()));
    });
    let end = view(&mut store, &study);
    let differing = asked
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .count();
    assert!(asked.len() > 10 && differing > 10);
    for (number, history) in asked {
        let seen = end.trials()[number as usize]
            .seen
            .expect("a sampler was asked");
        assert_eq!(end.history_at(seen), history, "trial {number}");
    }
}

fn stoppers_see_the_courses_of_the_others_in_costs(url: &str) {
    let mut store = Store::open(url).expect("a store");
    let study = NewStudy {
        direction: Direction::Maximize,
        ..new_study()
    };
    let study = store.join(&study).expect("a study");
    let first = begun(&mut store, &study);
    let second = begun(&mut store, &study);
    let _silent = begun(&mut store, &study);
    store.report(&first, 1, 0.25, 1.0).expect("a report");
    store.report(&second, 1, 0.75, 1.0).expect("a report");
    store.report(&first, 2, 0.5, 1.0).expect("a report");
    store.finish(&first, &complete(0.5), 2.0).expect("an end");
    let view = view(&mut store, &study);
    let others = view.others(second.number);
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].costs, [-0.25, -0.5]);
    assert_eq!((others[0].planned, others[0].over), (3, true));
    assert_eq!(view.course(1).expect("a course").costs, [-0.75]);
    assert_eq!(view.history().trials()[0].outcome, Outcome::Cost(-0.5));
}

fn a_store_of_a_later_layout_is_left_alone(url: &str) {
    open(url);
    by_hand(url, "UPDATE surefoot_schema SET version = 99").expect("by hand");
    let error = Store::open(url).expect_err("refused").to_string();
    let end = "a later Surefoot has written this store (layout 99; this one knows 1)";
    assert!(error.ends_with(end), "{error}");
}

fn a_store_that_is_not_there_is_not_made_by_a_reader(url: &str) {
    let error = Store::open_existing(url).expect_err("refused");
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    let error = Store::open_existing(url).expect_err("still not there");
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}
