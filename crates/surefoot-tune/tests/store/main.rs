//! What every store keeps to, whichever database it is in.

mod claims;
mod progress;
#[cfg(feature = "postgres")]
#[path = "../server/mod.rs"]
mod server;
mod studies;
mod views;

use rusqlite::Connection;
use std::thread::sleep;
use std::time::Duration;
use surefoot_tune::store::{Claim, Claimed, End, Limits, NewStudy, Start, Store, Study, View};
use surefoot_tune::{Direction, Domain, Parameter, Point, Space, Value};

/// A behaviour a test, each on a SQLite file of its own; PostgreSQL gets all of them on one server.
macro_rules! every_store {
    ($($concept:ident { $($behaviour:ident)* })*) => {
        mod sqlite {
            $($(#[test]
            fn $behaviour() {
                let dir = tempfile::tempdir().expect("a directory");
                crate::$concept::$behaviour(&dir.path().join("study.db").display().to_string());
            })*)*
        }

        #[cfg(feature = "postgres")]
        #[test]
        fn postgresql_does_all_that_sqlite_does() {
            let test = "postgresql_does_all_that_sqlite_does";
            let Some(server) = server::Server::start(test) else {
                return;
            };
            $($(eprintln!("{}", stringify!($behaviour));
            $concept::$behaviour(&server.database(stringify!($behaviour)));)*)*
        }
    };
}

every_store! {
    claims {
        numbers_are_given_out_once_and_without_gaps
        what_waits_is_run_before_anything_new
        a_study_is_done_when_its_last_trial_is_over
        a_lost_trial_goes_to_the_next_worker_as_it_is
        what_a_worker_writes_that_was_thought_dead_changes_nothing
        signs_of_life_keep_a_trial
        a_trial_that_kills_its_workers_fails
        a_worker_that_is_known_to_be_dead_is_not_waited_for
        a_trial_that_is_given_back_is_no_death
    }
    progress {
        reports_can_be_made_twice_and_not_otherwise
        a_resumed_trial_replaces_what_came_after_its_checkpoint
        an_end_can_be_told_twice_and_not_otherwise
        what_is_over_cannot_be_changed_by_hand
        what_cannot_be_shown_is_not_stored
        numbers_come_back_bit_by_bit
    }
    studies {
        a_study_comes_back_as_it_was
        studies_that_look_for_something_else_are_not_joined
        a_study_that_is_not_there_is_named
        a_store_of_a_later_layout_is_left_alone
        a_store_that_is_not_there_is_not_made_by_a_reader
        a_study_is_deleted_with_all_that_is_in_it
        a_study_that_is_deleted_and_made_again_is_another_one
    }
    views {
        a_view_that_grew_is_a_view_made_new
        a_sampler_can_be_asked_again_with_what_it_knew
        samplers_are_told_what_a_stopped_trial_would_have_come_to
        pruners_see_the_courses_of_the_others_in_costs
        a_trial_that_does_not_say_its_stretches_has_those_of_the_longest
    }
}

/// Long enough that nobody is thought dead, however slow the machine.
const PATIENT: Limits = Limits { trials: None, deaths: 3, grace: Duration::from_secs(600) };

/// Short enough for a test to wait for.
const HASTY: Limits = Limits { grace: Duration::from_millis(1), ..PATIENT };

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
        fingerprint: "{\"epochs\"=10}".to_owned(),
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
    Point(values.map(|(name, value)| (name.to_owned(), Value::Float(value))).into())
}

fn start(rate: f64) -> Start {
    Start { point: point(rate), seen: None, planned: Some(3), run: Some("runs/a".to_owned()) }
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
    view.reports(number).iter().map(|report| report.value).collect()
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
    connection.execute_batch(sql).map_err(|error| error.to_string())
}
