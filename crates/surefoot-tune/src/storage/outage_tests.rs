//! Tests: a server that is away for a while, or says for a while that it is not the right one.

#[path = "../../tests/server/mod.rs"]
mod server;

use super::fixture::digits;
use super::postgres::Postgres;
use super::{Claim, ClaimLimits, Claimed, Storage, StorageError, StoredStudy};
use server::Server;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

fn claim(storage: &mut Storage, study: &StoredStudy) -> Claim {
    match storage.claim(study.id, "worker", &ClaimLimits::default()) {
        Ok(Claimed::Trial(claim)) => claim,
        other => panic!("no trial: {other:?}"),
    }
}

/// A store with a study in the database `studies`, whose sessions are set as somebody wants them.
fn storage(server: &Server, setting: &str) -> (Storage, StoredStudy, String) {
    let url = server.database("studies");
    by_hand(server, &format!("ALTER DATABASE studies SET {setting}"));
    let mut storage = Storage::open(&url).expect("a store");
    let study = storage.join(&digits()).expect("a study");
    (storage, study, url)
}

fn by_hand(server: &Server, sql: &str) {
    let url = server.url_by_socket("postgres");
    let mut client = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
    client.batch_execute(sql).expect("an answer");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_hangs_is_given_up_and_gone_on_with() {
    let server = Server::start();
    let url = server.database("studies");
    let (answer, patience) = (Duration::from_secs(1), Duration::from_secs(3));
    let hasty = Postgres::hasty(&url, answer, patience).expect("a server");
    let mut storage = Storage { database: Box::new(hasty) };
    let study = storage.join(&digits()).expect("a study");
    let first = claim(&mut storage, &study);

    let paused = server.pause();
    let begun = Instant::now();
    let error = storage.heartbeat(&first).expect_err("no answer");
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error}");
    assert!(begun.elapsed() >= patience && begun.elapsed() < patience * 3);
    drop(paused);
    storage.heartbeat(&first).expect("a sign of life");

    let second = scope(|scope| {
        let paused = server.pause();
        scope.spawn(move || {
            sleep(answer * 2);
            drop(paused);
        });
        claim(&mut storage, &study)
    });
    assert_eq!(second.number, 1);
    assert_eq!(claim(&mut storage, &study).number, 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_session_that_was_silent_for_too_long_is_begun_again() {
    let server = Server::start();
    let (mut storage, study, _) = storage(&server, "idle_session_timeout = '300ms'");
    for number in 0..2 {
        sleep(Duration::from_secs(1));
        assert_eq!(claim(&mut storage, &study).number, number);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_takes_longer_than_the_server_allows_is_tried_again() {
    let server = Server::start();
    let (mut storage, study, url) = storage(&server, "statement_timeout = '300ms'");
    scope(|scope| {
        let mut other = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
        let lock = "SET statement_timeout = 0; BEGIN; SELECT id FROM surefoot_study FOR UPDATE";
        other.batch_execute(lock).expect("a lock");
        scope.spawn(move || {
            sleep(Duration::from_secs(2));
            other.batch_execute("COMMIT").expect("an end");
        });
        assert_eq!(claim(&mut storage, &study).number, 0);
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_could_be_written_is_waited_for() {
    let server = Server::start();
    let (mut writer, study, url) = storage(&server, "default_transaction_read_only = off");
    by_hand(
        &server,
        "ALTER DATABASE studies SET default_transaction_read_only = on;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'studies'",
    );
    let mut other = Storage::open(&url).expect("a store");
    let begun = Instant::now();
    let refused = other.join(&digits()).expect_err("it cannot be written");
    assert!(matches!(refused, StorageError::ReadOnly { .. }), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(5), "it was waited for");
    scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_secs(2));
            by_hand(&server, "ALTER DATABASE studies RESET default_transaction_read_only");
        });
        assert_eq!(claim(&mut writer, &study).number, 0);
    });
}
