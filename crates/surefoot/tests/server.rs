//! Studies on a PostgreSQL server.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

#[path = "../../surefoot-tune/tests/server/mod.rs"]
mod server;
mod support;

use serde_json::{Value, json};
use server::Server;
use support::search::PLAN;
use support::{Folder, Outcome};

/// Trials of a study, without durations and paths.
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
fn two_searches_share_a_study() {
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

#[test]
#[ignore = "needs PostgreSQL"]
fn a_wrong_password_is_wrong_input() {
    let server = Server::start_with_password("open sesame");
    let folder = Folder::with("study.toml", PLAN);
    let url = server.url_by_socket("postgres");
    let mut command = folder.command(&["tune", "study.toml", "--store", &url]);
    let outcome: Outcome = command.env("PGPASSWORD", "abracadabra").output().unwrap().into();
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("password authentication failed"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("abracadabra"));
    let outcome = folder.run(&["tune", "study.toml", "--store", &url]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_and_trials_do_not_show_the_password() {
    let server = Server::start_with_password("sesame");
    let script = "env > own.txt; cat /proc/$PPID/environ /proc/$PPID/cmdline > worker.txt; \
                  echo '{\"value\": 1}'";
    let study = format!(
        "[tune]\ncommand = '''{script}'''\ndirection = \"minimize\"\ntrials = 1\nworkers = 1\n\
         [parameters]\nx = {{ int = [1, 9] }}\n"
    );
    let folder = Folder::with("study.toml", &study);
    let url = server.url_by_socket("postgres");
    let in_url = url.replace("surefoot@", "surefoot:sesame@");
    for (url, password, name) in [(&url, "sesame", "first"), (&in_url, "", "second")] {
        let name = format!("tune.name=\"{name}\"");
        let arguments = ["tune", "study.toml", "--store", url, "--set", &name];
        let mut command = folder.command(&arguments);
        let outcome: Outcome = command.env("PGPASSWORD", password).output().unwrap().into();
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        for file in ["own.txt", "worker.txt"] {
            let bytes = std::fs::read(folder.path().join(file)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(text.contains("SUREFOOT") || text.contains("--worker"), "{text}");
            assert!(!text.contains("sesame"), "{file}: {text}");
        }
        assert!(!outcome.stdout.contains("sesame") && !outcome.stderr.contains("sesame"));
    }
}
