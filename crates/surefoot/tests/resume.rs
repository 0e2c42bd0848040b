//! Interrupted and killed runs go on to the same bits.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use support::{CIRCLES, FAULTY, Folder, KERAS_FILE, KERAS_PLAN, LONG, Outcome};

fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a file is there.
fn wait_for(path: &Path) {
    wait_until(&path.display().to_string(), || path.exists());
}

/// Waits until a run goes on; then it listens for signals too.
fn wait_for_resume(run: &Path) {
    wait_until("the event", || {
        let events = std::fs::read_to_string(run.join("events.jsonl"));
        events.is_ok_and(|events| events.contains("\"resumed\""))
    });
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let status = Command::new("kill").args([&format!("-{name}"), &id]).status();
    assert!(status.unwrap().success());
}

/// The record without what says that it was interrupted.
fn events_of(folder: &Folder, run: &str) -> Vec<String> {
    let path = folder.path().join("runs").join(run).join("events.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let kept = text.lines().filter(|line| {
        !["\"started\"", "\"resumed\"", "\"interrupted\""].iter().any(|kind| line.contains(kind))
    });
    kept.map(str::to_owned).collect()
}

fn bytes_of(folder: &Folder, run: &str, file: &str) -> Vec<u8> {
    std::fs::read(folder.path().join("runs").join(run).join(file)).unwrap()
}

fn assert_same_record(folder: &Folder, run: &str, whole: &str) {
    assert_eq!(events_of(folder, run), events_of(folder, whole));
    for file in ["digests.bin", "model.safetensors", "observations.layers.parquet"] {
        assert!(bytes_of(folder, run, file) == bytes_of(folder, whole, file), "{file} differs");
    }
}

#[test]
fn a_killed_run_resumes_with_the_same_bits() {
    let folder = Folder::with("long.toml", &LONG.replace("epochs = 150", "epochs = 300"));
    let whole = folder.digest(&["long.toml"]);
    assert_eq!(folder.runs(), ["long-001"]);

    // Killed this long after its directory appeared, and again after each resume.
    let mut child = folder.start(&["train", "long.toml"]);
    let run = folder.path().join("runs/long-002");
    wait_for(&run.join("header.json"));
    let mut kills = 0;
    for milliseconds in [1, 35, 120, 3, 71, 210] {
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        kills += u32::from(!child.wait().unwrap().success());
        child = folder.start(&["train", "--resume", "runs/long-002", "--workers", "1"]);
    }
    assert!(child.wait().unwrap().success());
    assert!(kills > 2, "killed only {kills} times: the plan is too short");
    let outcome = folder.run(&["train", "--resume", "runs/long-002", "--json"]);
    assert_eq!(outcome.summary()["digest"], whole.as_str());
    assert_same_record(&folder, "long-002", "long-001");
}

#[test]
fn an_interrupted_run_resumes_with_the_same_bits() {
    let folder = Folder::with("long.toml", LONG);
    let plan = ["long.toml", "--set", "training.checkpoint_every=100000"];
    let whole = folder.digest(&plan);
    for name in ["INT", "TERM"] {
        let child = folder.start(&[&["train"], &plan[..]].concat());
        wait_for(&folder.path().join("runs/long-002/header.json"));
        std::thread::sleep(Duration::from_millis(5));
        signal(&child, name);
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
        let run = folder.runs().pop().unwrap();
        let command = format!("surefoot train --resume runs/{run}");
        assert!(outcome.stderr.contains(&command), "{}", outcome.stderr);

        let resumed = folder.run(&["train", "--resume", &format!("runs/{run}"), "--json"]);
        assert!(resumed.stderr.contains("continues from step"), "{}", resumed.stderr);
        assert_eq!(resumed.events()[0]["event"], "resumed");
        assert!(resumed.events()[0]["step"].as_u64().unwrap() > 0);
        assert_eq!(resumed.summary()["digest"], whole.as_str());
        std::fs::remove_dir_all(folder.path().join("runs").join(run)).unwrap();
    }
}

#[test]
fn resuming_a_finished_run_prints_its_summary() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let digest = folder.digest(&["circles.toml"]);
    let outcome = folder.run(&["train", "--resume", "runs/circles-001/", "--json"]);
    assert_eq!(outcome.code, Some(0));
    assert_eq!(outcome.summary()["digest"], digest.as_str());
    assert_eq!(outcome.summary()["run"], "runs/circles-001");
    assert!(outcome.stderr.contains("runs/circles-001 is finished"), "{}", outcome.stderr);
}

#[test]
fn a_run_has_one_process_at_a_time() {
    let folder = Folder::with("long.toml", &LONG.replace("epochs = 150", "epochs = 100000"));
    let mut first = folder.start(&["train", "long.toml"]);
    wait_for(&folder.path().join("runs/long-001/header.json"));
    let second = folder.run(&["train", "--resume", "runs/long-001"]);
    assert_eq!(second.code, Some(2));
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_run_of_a_keras_file_resumes_from_its_weights() {
    let folder = Folder::with("plan.toml", KERAS_PLAN);
    folder.write("model.h5", "");
    std::fs::copy(KERAS_FILE, folder.path().join("model.h5")).unwrap();
    let never = "training.checkpoint_every=100000000";
    let train = ["plan.toml", "--model", "model.h5", "--no-repair", "--set", never];
    let whole = folder.digest(&train);
    let mut child = folder.start(&[&["train"], &train[..]].concat());
    wait_for(&folder.path().join("runs/plan-002/header.json"));
    std::thread::sleep(Duration::from_millis(2));
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was too quick to kill");
    // All that is needed is in the run.
    std::fs::remove_file(folder.path().join("model.h5")).unwrap();
    assert_eq!(folder.digest(&["--resume", "runs/plan-002"]), whole);
}

/// The summary of a run, without its duration and directory.
fn promised(outcome: &Outcome) -> Value {
    let mut summary = outcome.summary();
    for key in ["seconds", "run"] {
        summary.as_object_mut().unwrap().remove(key);
    }
    summary
}

#[test]
fn a_killed_repair_starts_over_with_the_same_bits() {
    let folder = Folder::with("deep.toml", FAULTY);
    let whole = folder.run(&["train", "deep.toml", "--json"]);
    assert_eq!(whole.summary()["status"], "repaired", "{}", whole.stderr);

    // Killed this long after its first attempt began, and again after each resume.
    let mut child = folder.start(&["train", "deep.toml"]);
    let run = folder.path().join("runs/deep-002");
    let stale = run.join("attempts/stale");
    let mut kills = 0;
    for milliseconds in [0, 9, 45, 20] {
        // What is left of attempts goes after the events have been cut back.
        wait_until("an attempt", || {
            let events = std::fs::read_to_string(run.join("events.jsonl"));
            !stale.exists() && events.is_ok_and(|e| e.contains("\"event\":\"attempt\""))
        });
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        kills += u32::from(!child.wait().unwrap().success());
        if !run.join("summary.json").exists() {
            std::fs::write(&stale, "").unwrap();
        }
        child = folder.start(&["train", "--resume", "runs/deep-002", "--workers", "1"]);
    }
    assert!(child.wait().unwrap().success());
    assert!(kills > 1, "killed only {kills} times: the repair is too short");
    let outcome = folder.run(&["train", "--resume", "runs/deep-002", "--json"]);
    assert_eq!(promised(&outcome), promised(&whole));
    assert_same_record(&folder, "deep-002", "deep-001");
    for attempt in ["attempt-001", "attempt-002"] {
        let inside = |run: &str| format!("{run}/attempts/{attempt}");
        assert_same_record(&folder, &inside("deep-002"), &inside("deep-001"));
    }
    assert!(!stale.exists());
}

#[test]
fn an_interrupted_repair_resumes_with_the_same_bits() {
    let folder = Folder::with("deep.toml", &FAULTY.replace("epochs = 20", "epochs = 60"));
    let whole = folder.run(&["train", "deep.toml", "--json"]);
    let child = folder.start(&["train", "deep.toml"]);
    wait_for(&folder.path().join("runs/deep-002/attempts/attempt-001/header.json"));
    signal(&child, "INT");
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    for part in ["interrupted during the repair", "surefoot train --resume runs/deep-002"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    let resumed = folder.run(&["train", "--resume", "runs/deep-002", "--json"]);
    assert_eq!(promised(&resumed), promised(&whole));
    assert_same_record(&folder, "deep-002", "deep-001");
}

#[test]
fn a_resumed_run_keeps_its_repair_mode() {
    let plan = FAULTY.replace("epochs = 20", "epochs = 60");
    let folder = Folder::with("deep.toml", &plan);
    let child = folder.start(&["train", "deep.toml", "--no-repair"]);
    wait_for(&folder.path().join("runs/deep-001/header.json"));
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let resumed = folder.run(&["train", "--resume", "runs/deep-001", "--json"]);
    let summary = resumed.summary();
    assert_eq!(summary["status"], "problem", "{}", resumed.stderr);
    assert_eq!(summary["problems"][0], "vanishing_gradient");
    assert!(!folder.path().join("runs/deep-001/attempts").exists());
}

/// A run of `plan`, killed before its first checkpoint.
fn killed(folder: &Folder, plan: &str) {
    let endless =
        ["--set", "training.epochs=1000000", "--set", "training.checkpoint_every=100000000"];
    let mut child = folder.start(&[&["train", plan], &endless[..]].concat());
    wait_for(&folder.path().join("runs/circles-001/header.json"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn another_plan_is_rejected() {
    let folder = Folder::with("circles.toml", CIRCLES);
    killed(&folder, "circles.toml");
    for arguments in [&["circles.toml"][..], &["--seed", "8"]] {
        let resume = ["train", "--resume", "runs/circles-001"];
        let outcome = folder.run(&[&resume, arguments].concat());
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("differs from the plan"), "{}", outcome.stderr);
    }
}

const TABLE_PLAN: &str = r#"name = "table"

[data]
source = { kind = "csv", path = "../data/table.csv" }
task = "binary"

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 100000
checkpoint_every = 20
"#;

fn table(rows: usize) -> String {
    let rows = (0..rows).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 2));
    format!("a,b,y\n{}", rows.collect::<String>())
}

/// A run on a table, interrupted.
fn interrupted_table() -> Folder {
    let folder = Folder::with("plans/table.toml", TABLE_PLAN);
    folder.write("data/table.csv", &table(40));
    let child = folder.start(&["train", "plans/table.toml"]);
    wait_for(&folder.path().join("runs/table-001/header.json"));
    std::thread::sleep(Duration::from_millis(30));
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    folder
}

#[test]
fn a_run_can_be_resumed_from_any_folder() {
    let folder = interrupted_table();
    let run = folder.path().join("runs/table-001");
    let elsewhere = Folder::new();
    let mut child = elsewhere.start(&["train", "--quiet", "--resume", run.to_str().unwrap()]);
    wait_for_resume(&run);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // And so does a new run of the recorded plan.
    let plan = run.join("plan.toml");
    let plan = [plan.to_str().unwrap(), "--set", "training.epochs=1"];
    elsewhere.digest(&plan);
}

#[test]
fn changed_data_are_rejected() {
    let folder = interrupted_table();
    folder.write("data/table.csv", &table(42));
    let outcome = folder.run(&["train", "--resume", "runs/table-001"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("the data differ from those"), "{}", outcome.stderr);
}

#[test]
fn moved_data_are_found_by_their_plan() {
    let folder = interrupted_table();
    std::fs::create_dir(folder.path().join("new")).unwrap();
    for name in ["plans", "data"] {
        let to = folder.path().join("new").join(name);
        std::fs::rename(folder.path().join(name), to).unwrap();
    }
    let lost = folder.run(&["train", "--resume", "runs/table-001"]);
    assert_eq!(lost.code, Some(2));
    assert!(lost.stderr.contains("name it too"), "{}", lost.stderr);
    let child = folder.start(&["train", "new/plans/table.toml", "--resume", "runs/table-001"]);
    wait_for_resume(&folder.path().join("runs/table-001"));
    signal(&child, "INT");
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
}

#[test]
fn another_environment_causes_a_warning() {
    let folder = interrupted_table();
    let path = folder.path().join("runs/table-001/header.json");
    let header = std::fs::read_to_string(&path).unwrap();
    let other = header.replace("\"device\": \"cpu\"", "\"device\": \"cuda:0\"");
    assert_ne!(other, header);
    std::fs::write(path, other).unwrap();
    let child = folder.start(&["train", "--resume", "runs/table-001"]);
    wait_for_resume(&folder.path().join("runs/table-001"));
    signal(&child, "INT");
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    let warning = "warning: the device was cuda:0 when the run was started and is cpu";
    assert!(outcome.stderr.contains(warning), "{}", outcome.stderr);
}
