//! A study on a PostgreSQL server: several searches work at it, and it is read from there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

#[path = "../../surefoot-tune/tests/server/mod.rs"]
mod server;
mod support;

use serde_json::{Value, json};
use server::Server;
use support::search::PLAN;
use support::{Folder, Outcome};

/// The trials of a study, without what takes time or depends on the place.
fn exported(folder: &Folder, store: &str) -> Vec<Value> {
    let outcome = folder.run(&["export", store, "--output", "trials.jsonl"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let text = std::fs::read_to_string(folder.path().join("trials.jsonl")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| {
            let trial: Value = serde_json::from_str(line).unwrap();
            let reports = trial["reports"].as_array().unwrap().iter();
            let values: Vec<&Value> = reports.map(|report| &report["value"]).collect();
            json!([trial["number"], trial["state"], trial["value"], trial["parameters"], values])
        })
        .collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn two_searches_on_one_server_are_one_and_can_be_read_from_it() {
    let server = Server::start();
    let url = server.database("tune");
    // Two machines with nothing in common but the server.
    let [here, there] = [(); 2].map(|()| Folder::with("study.toml", PLAN));
    let tune = ["tune", "study.toml", "--json", "--pruner", "none"];
    let on_server = [tune.as_slice(), &["--store", &url]].concat();
    let searches = [&here, &there].map(|folder| folder.start(&on_server));
    for search in searches {
        let outcome: Outcome = search.wait_with_output().unwrap().into();
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.summary()["complete"], 12);
    }
    let runs = |folder: &Folder| {
        let entries = std::fs::read_dir(folder.path().join("runs/study")).unwrap();
        entries.count()
    };
    assert_eq!(runs(&here) + runs(&there), 12, "each trial has one place");

    let alone = Folder::with("study.toml", PLAN);
    let outcome = alone.run(&tune);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(exported(&here, &url), exported(&alone, "runs/study"));

    let page = here.run(&["report", &url, "--output", "page.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let page = std::fs::read_to_string(here.path().join("page.html")).unwrap();
    assert!(page.contains("training.optimizer.learning_rate"));
    let dry = there.run(&[on_server.as_slice(), &["--dry-run"]].concat());
    assert_eq!(dry.events()[0]["found"], json!({"complete": 12}));
}
