//! Tests with a server that fails for a while.
//!
//! The pause between two retries is a closure of the test, which ends the outage. No test depends on time.

#[path = "../../tests/server/mod.rs"]
mod server;

use super::fixture::digits;
use super::postgres::Postgres;
use super::{Claim, ClaimLimits, Claimed, Storage, StorageError, StoredStudy};
use server::Server;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls for the next retries, one each.
type Retries = Mutex<VecDeque<Box<dyn FnOnce() + Send>>>;

fn lock(retries: &Retries) -> MutexGuard<'_, VecDeque<Box<dyn FnOnce() + Send>>> {
    retries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database whose outages end at a retry.
struct Outages {
    server: Arc<Server>,
    url: String,
    storage: Storage,
    study: StoredStudy,
    retries: Arc<Retries>,
}

impl Outages {
    fn new(answer_timeout: Duration, setting: Option<&str>) -> Outages {
        let server = Arc::new(Server::start());
        let url = server.database("studies");
        if let Some(setting) = setting {
            sql_at(&server, &format!("ALTER DATABASE studies SET {setting}"));
        }
        let retries: Arc<Retries> = Arc::default();
        let shared = Arc::clone(&retries);
        let pause = move |_| {
            let retry = lock(&shared).pop_front();
            if let Some(retry) = retry {
                retry();
            }
        };
        let database = Postgres::open(&url, true).expect("a server");
        let retry = Duration::from_secs(60);
        let database = database.with_retries(answer_timeout, retry, pause);
        let mut storage = Storage { database: Box::new(database) };
        let study = storage.join(&digits()).expect("a study");
        Outages { server, url, storage, study, retries }
    }

    /// Adds a call for a retry.
    fn on_retry(&self, call: impl FnOnce() + Send + 'static) {
        lock(&self.retries).push_back(Box::new(call));
    }

    /// Claims a trial, with all retries of [`on_retry`](Self::on_retry).
    fn claim(&mut self) -> Claim {
        let claim = claim(&mut self.storage, &self.study);
        assert!(lock(&self.retries).is_empty(), "too few retries");
        claim
    }

    fn sql(&self, sql: &str) {
        sql_at(&self.server, sql);
    }
}

fn claim(storage: &mut Storage, study: &StoredStudy) -> Claim {
    match storage.claim(study.id, "worker", &ClaimLimits::default()) {
        Ok(Claimed::Trial(claim)) => claim,
        other => panic!("no trial: {other:?}"),
    }
}

fn sql_at(server: &Server, sql: &str) {
    let url = server.url_by_socket("postgres");
    let mut client = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
    client.batch_execute(sql).expect("an answer");
}

const DISCONNECT: &str =
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'studies'";

#[test]
#[ignore = "needs PostgreSQL"]
fn a_call_to_a_hanging_server_is_retried() {
    let mut outages = Outages::new(Duration::from_millis(500), None);
    assert_eq!(outages.claim().number, 0);
    let paused = outages.server.pause();
    outages.on_retry(move || drop(paused));
    assert_eq!(outages.claim().number, 1);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_hanging_server_is_given_up() {
    let server = Server::start();
    let url = server.database("studies");
    let database = Postgres::open(&url, true).expect("a server");
    let answer_timeout = Duration::from_millis(500);
    let database = database.with_retries(answer_timeout, Duration::ZERO, |_| {});
    let mut storage = Storage { database: Box::new(database) };
    let paused = server.pause();
    let error = storage.join(&digits()).expect_err("no answer");
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error}");
    drop(paused);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_ended_session_is_replaced() {
    let mut outages = Outages::new(Duration::from_secs(30), None);
    for number in 0..2 {
        assert_eq!(outages.claim().number, number);
        outages.sql(DISCONNECT);
        outages.on_retry(|| {});
    }
    outages.claim();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_statement_that_times_out_is_retried() {
    let setting = "statement_timeout = '200ms'";
    let mut outages = Outages::new(Duration::from_secs(30), Some(setting));
    let mut other = postgres::Client::connect(&outages.url, postgres::NoTls).expect("a connection");
    let lock = "SET statement_timeout = 0; BEGIN; SELECT id FROM surefoot_study FOR UPDATE";
    other.batch_execute(lock).expect("a lock");
    outages.on_retry(move || other.batch_execute("COMMIT").expect("an end"));
    assert_eq!(outages.claim().number, 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_failover_is_retried_but_a_read_only_server_is_not() {
    let mut outages = Outages::new(Duration::from_secs(30), None);
    outages.sql("ALTER DATABASE studies SET default_transaction_read_only = on");
    outages.sql(DISCONNECT);
    let mut other = Storage::open(&outages.url).expect("a storage");
    let error = other.join(&digits()).expect_err("read-only");
    assert!(matches!(error, StorageError::ReadOnly { .. }), "{error}");
    outages.on_retry(|| {}); // Replaces the ended session.
    let server = Arc::clone(&outages.server);
    outages.on_retry(move || {
        sql_at(&server, "ALTER DATABASE studies RESET default_transaction_read_only");
    });
    assert_eq!(outages.claim().number, 0);
}
