//! Behaviour of every storage, on SQLite and PostgreSQL.

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
use surefoot_tune::storage::{
    Claim, ClaimLimits, Claimed, NewStudy, Start, Storage, StoredStudy, TrialState, View,
};
use surefoot_tune::{Direction, Domain, Parameter, Point, Space, Value};

/// One test a behaviour on SQLite, all behaviours in one test on PostgreSQL.
macro_rules! every_storage {
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
        #[ignore = "needs PostgreSQL"]
        fn postgresql_passes_the_same_tests() {
            let server = server::Server::start();
            $($(eprintln!("{}", stringify!($behaviour));
            $concept::$behaviour(&server.database(stringify!($behaviour)));)*)*
        }
    };
}

every_storage! {
    claims {
        trial_numbers_are_unique_and_without_gaps
        waiting_trials_run_before_new_ones
        a_study_is_done_when_its_last_trial_has_ended
        the_next_worker_continues_a_lost_trial
        a_lost_claim_cannot_write
        heartbeats_keep_a_claim
        a_trial_fails_after_too_many_lost_attempts
        the_trials_of_a_dead_worker_are_free_at_once
        a_released_trial_is_not_a_lost_attempt
    }
    progress {
        a_report_can_be_repeated_but_not_changed
        skipped_steps_have_the_value_before_them
        a_resumed_trial_replaces_the_reports_after_its_checkpoint
        a_final_state_can_be_repeated_but_not_changed
        a_trigger_protects_final_states
        control_characters_are_replaced
        numbers_are_stored_bit_by_bit
    }
    studies {
        a_study_is_stored_unchanged
        a_different_study_of_the_same_name_is_an_error
        a_missing_study_is_an_error
        another_layout_is_an_error_and_untouched
        open_existing_creates_nothing
        deleting_a_study_deletes_its_trials
        a_recreated_study_is_a_different_study
    }
    views {
        an_updated_view_equals_a_new_one
        the_history_of_a_sampler_can_be_rebuilt
        pruned_trials_have_imputed_costs
        pruners_see_learning_curves_as_costs
        unknown_lengths_are_those_of_the_longest_trial
    }
}

/// No claim is lost, however slow the machine.
const PATIENT: ClaimLimits =
    ClaimLimits { max_trials: None, max_attempts: 3, heartbeat_timeout: Duration::from_secs(600) };

/// Claims are lost at once.
const HASTY: ClaimLimits = ClaimLimits { heartbeat_timeout: Duration::from_millis(1), ..PATIENT };

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

fn open(url: &str) -> (Storage, StoredStudy) {
    let mut storage = Storage::open(url).expect("a store");
    let study = storage.join(&new_study()).expect("a study");
    (storage, study)
}

fn point(rate: f64) -> Point {
    let values = [("rate", rate), ("momentum", 0.5)];
    Point(values.map(|(name, value)| (name.to_owned(), Value::Float(value))).into())
}

fn start(rate: f64) -> Start {
    Start { point: point(rate), seen: None, planned: Some(3), run: Some("runs/a".to_owned()) }
}

fn claim(storage: &mut Storage, study: &StoredStudy, limits: &ClaimLimits) -> Claim {
    match storage.claim(study.id, "worker", limits).expect("an answer") {
        Claimed::Trial(claim) => claim,
        other => panic!("no trial: {other:?}"),
    }
}

/// A claim on a started trial.
fn begun(storage: &mut Storage, study: &StoredStudy) -> Claim {
    let claim = claim(storage, study, &PATIENT);
    storage.start(&claim, &start(0.1)).expect("a start");
    claim
}

fn complete(value: f64) -> TrialState {
    TrialState::Complete { value }
}

fn view(storage: &mut Storage, study: &StoredStudy) -> View {
    let mut view = View::new(study);
    storage.refresh_reports(&mut view).expect("a view");
    view
}

fn values(view: &View, number: u64) -> Vec<f64> {
    view.reports(number).iter().map(|report| report.value).collect()
}

/// Waits until claims are lost under [`HASTY`].
fn pass() {
    sleep(Duration::from_millis(30));
}

/// Moves all heartbeats an hour into the past.
fn silence(url: &str) {
    by_hand(url, "UPDATE surefoot_trial SET heartbeat = heartbeat - 3600000").expect("silenced");
}

/// Returns true until a heartbeat follows [`silence`].
fn is_silent(url: &str) -> bool {
    let sql = "SELECT count(*) FROM surefoot_trial WHERE heartbeat < created - 1800000";
    #[cfg(feature = "postgres")]
    if url.starts_with("postgres") {
        let mut client = postgres::Client::connect(url, postgres::NoTls).expect("a connection");
        return client.query_one(sql, &[]).expect("a row").get::<_, i64>(0) > 0;
    }
    let connection = Connection::open(url).expect("a file");
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a row") > 0
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        sleep(Duration::from_millis(2));
    }
}

/// Runs SQL past the storage.
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
