//! Time of claims and reports in a study of 10,000 trials with 20 reports each:
//! `cargo bench -p surefoot-tune --bench store`.
//!
//! The trials are put there by SQL; what is measured goes through the store, with every commit on
//! the disk. `ask` is claim, history, a random point and start; `tell` is a report and the end.

#[cfg(feature = "postgres")]
#[path = "../tests/server/mod.rs"]
mod server;

use std::hint::black_box;
use std::time::{Duration, Instant};
use surefoot_random::{Key, Purpose};
use surefoot_tune::storage::{ClaimLimits, Claimed, NewStudy, Start, Storage, TrialState, View};
use surefoot_tune::{Direction, Domain, Parameter, PruneReason, Space};

const TRIALS: u64 = 10_000;
const REPORTS: u64 = 20;
const ROUNDS: u64 = 100;

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let url = dir.path().join("study.db").display().to_string();
    println!("SQLite");
    measure(&url, |sql| {
        let database = rusqlite::Connection::open(&url).expect("a database");
        database.execute_batch(sql).expect("rows");
    });
    #[cfg(feature = "postgres")]
    if server::Server::is_installed() {
        let server = server::Server::start();
        let url = server.database("studies");
        println!("PostgreSQL on this machine");
        measure(&url, |sql| {
            let client = postgres::Client::connect(&url, postgres::NoTls);
            client.expect("a server").batch_execute(sql).expect("rows");
        });
    }
}

fn measure(url: &str, by_hand: impl Fn(&str)) {
    let parameters = (0..6).map(|i| Parameter {
        name: format!("parameter {i}"),
        domain: Domain::Uniform(0.0, 1.0),
        conditions: Vec::new(),
    });
    let study = NewStudy {
        name: "digits".to_owned(),
        fingerprint: String::new(),
        document: String::new(),
        space: Space::new(parameters.collect()).expect("a space"),
        direction: Direction::Minimize,
        seed: 1,
    };
    let mut storage = Storage::open(url).expect("a store");
    let study = storage.join(&study).expect("a study");
    let start = |number: u64, seen: u64| {
        let key = Key::new(study.seed, Purpose::Sample).epoch(number);
        let mut site = 0;
        Start {
            point: study.space.point(|parameter| {
                site += 1;
                parameter.domain.at(key.uniform(site))
            }),
            seen: Some(seen),
            planned: Some(REPORTS as u32),
            run: None,
        }
    };
    let point = serde_json::to_string(&start(0, 0).point).expect("a text");
    by_hand(&rows(&point));

    let mut view = View::new(&study);
    once("first history", || storage.refresh(&mut view).expect("a view"));
    once("first curves", || storage.refresh_reports(&mut view).expect("a view"));
    let [mut ask, mut report, mut judge, mut tell] = [(); 4].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let claimed = storage.claim(study.id, "worker", &ClaimLimits::default());
        let Claimed::Trial(claim) = claimed.expect("an answer") else {
            panic!("no trial");
        };
        storage.refresh_reports(&mut view).expect("a view");
        black_box(view.history());
        let start = start(claim.number, view.change());
        storage.start(&claim, &start).expect("a start");
        ask.push(begun.elapsed());

        let begun = Instant::now();
        storage.report(&claim, 1, 0.5, 1.0).expect("a report");
        report.push(begun.elapsed());

        let begun = Instant::now();
        storage.refresh_reports(&mut view).expect("a view");
        black_box(view.others(claim.number));
        judge.push(begun.elapsed());

        let begun = Instant::now();
        storage.report(&claim, 2, 0.5, 1.0).expect("a report");
        storage.finish(&claim, &TrialState::Complete { value: 0.5 }, 2.0).expect("an end");
        tell.push(begun.elapsed());
    }
    summary("ask", ask);
    summary("report", report);
    summary("curves of all others", judge);
    summary("tell", tell);
}

/// Fills a study with ended trials, three of four of them pruned.
fn rows(point: &str) -> String {
    let reason = PruneReason::new("prospect", "It improves too slowly.");
    let reason = serde_json::to_string(&reason).expect("a text");
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {TRIALS} - 1)
         INSERT INTO surefoot_trial (study, number, state, creator, point, seen, planned, value,
            seconds, reason, attempt, deaths, reported, reporter, created, ended, point_change, end_change, changed)
         SELECT 1, i, CASE i % 4 WHEN 0 THEN 'complete' ELSE 'pruned' END, 'creator ' || i, '{point}',
            0, {REPORTS}, 0.5, 20.0, CASE i % 4 WHEN 0 THEN NULL ELSE '{reason}' END, 1, 0,
            {REPORTS}, 1, 0, 0, i * 100 + 1, i * 100 + 99, i * 100 + 99 FROM n;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {TRIALS} - 1)
         INSERT INTO surefoot_attempt (study, number, attempt, token, worker, began, ended, state)
         SELECT 1, i, 1, 'token ' || i, 'worker', 0, 0, 'finished' FROM n;
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n
            WHERE i < {TRIALS} * {REPORTS} - 1)
         INSERT INTO surefoot_report (study, number, step, attempt, value, seconds, operations,
            reported, change)
         SELECT 1, i / {REPORTS}, i % {REPORTS} + 1, 1, 0.5, 1.0, 1e9, 0,
            i / {REPORTS} * 100 + 2 + i % {REPORTS} FROM n;
         UPDATE surefoot_study SET trials = {TRIALS}, change = {TRIALS} * 100;"
    )
}

fn once(name: &str, call: impl FnOnce()) {
    let begun = Instant::now();
    call();
    let taken = begun.elapsed().as_secs_f64() * 1e3;
    println!("  {name:<24} {taken:8.2} ms once");
}

fn summary(name: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let at = |share: usize| taken[(taken.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "  {name:<24} {:8.2} ms median {:8.2} ms 95% {:8.2} ms worst",
        at(50),
        at(95),
        at(100)
    );
}
