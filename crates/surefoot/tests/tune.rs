//! Searches find, repeat, survive and are replayed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::{assert_snapshot, with_settings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use support::search::PLAN as STUDY;
use support::{Folder, Outcome};

/// The lines of shell of a command, and a range for it.
fn command(script: &str) -> String {
    let script = script.replace('\n', "; ");
    format!(
        "[tune]\ncommand = '''{script}'''\ndirection = \"minimize\"\ntrials = 4\nworkers = 1\n\
         sampler = \"random\"\n[parameters]\nx = {{ int = [1, 9] }}\n"
    )
}

fn tune(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["tune", "study.toml", "--json"], more].concat())
}

/// Trials by number, without what takes time or depends on the place.
fn trials(outcome: &Outcome) -> BTreeMap<u64, Value> {
    let events = outcome.events().into_iter();
    let trials = events.filter(|event| event["event"] == "trial");
    trials
        .map(|mut trial| {
            let fields = trial.as_object_mut().unwrap();
            for key in ["seconds", "run", "attempts"] {
                fields.remove(key);
            }
            (trial["number"].as_u64().unwrap(), trial)
        })
        .collect()
}

#[test]
fn the_same_study_and_seed_give_the_same_trials() {
    let folder = Folder::with("study.toml", STUDY);
    let once = tune(&folder, &["--runs", "a"]);
    let again = tune(&folder, &["--runs", "b"]);
    assert_eq!(once.code, Some(0), "{}", once.stderr);
    assert_eq!(trials(&once).len(), 12);
    assert_eq!(trials(&once), trials(&again));
    let other = tune(&folder, &["--runs", "c", "--seed", "8"]);
    assert_ne!(trials(&once), trials(&other));
    let summary = once.summary();
    let best = &summary["best"];
    let values = trials(&once).into_values();
    let values = values.filter(|t| t["state"] == "complete").map(|t| t["value"].as_f64().unwrap());
    assert_eq!(best["value"].as_f64(), values.reduce(f64::max));
    assert!(best["parameters"]["training.optimizer.learning_rate"].is_number());
}

#[test]
fn a_trial_is_a_run_that_can_be_replayed() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--trials", "2", "--pruner", "none"]);
    let outcome = folder.run(&["replay", "runs/study/trial-00001"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn a_finished_study_can_be_extended() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--trials", "3"]);
    let done = tune(&folder, &["--trials", "3"]);
    assert_eq!(trials(&done).len(), 0);
    assert_eq!(done.summary()["trials"], 3);
    let more = tune(&folder, &["--trials", "5"]);
    assert_eq!(trials(&more).keys().copied().collect::<Vec<_>>(), [3, 4]);
    let whole = tune(&folder, &["--trials", "5", "--runs", "whole"]);
    assert_eq!(trials(&whole)[&4], trials(&more)[&4]);
}

#[test]
fn a_different_study_of_the_same_name_is_rejected() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--trials", "1"]);
    folder.write("study.toml", &STUDY.replace("[2, 16]", "[2, 32]"));
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("`model.0.units` has other values"), "{}", outcome.stderr);
}

#[test]
fn directories_of_another_study_are_neither_used_nor_removed() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--trials", "2", "--pruner", "none"]);
    let model = folder.path().join("runs/study/trial-00000/model.safetensors");
    let before = std::fs::read(&model).unwrap();
    for file in ["study.db", "study.db-wal", "study.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join("runs/study").join(file));
    }
    let other = tune(&folder, &["--trials", "2", "--seed", "8"]);
    assert_eq!(other.code, Some(3), "{}", other.stdout);
    assert!(other.stderr.contains("trial-00000 already exists"), "{}", other.stderr);
    assert_eq!(std::fs::read(&model).unwrap(), before);
}

#[test]
fn a_lost_store_is_rebuilt_from_run_directories() {
    let study = STUDY.replace("epochs = 12", "epochs = 12\ncheckpoint_every = 1");
    let folder = Folder::with("study.toml", &study);
    let once = tune(&folder, &[]);
    for file in ["study.db", "study.db-wal", "study.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join("runs/study").join(file));
    }
    let again = tune(&folder, &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(trials(&again), trials(&once));
}

#[test]
fn a_damaged_store_is_wrong_input() {
    let folder = Folder::with("study.toml", &command("echo '{\"value\": 1}'"));
    assert_eq!(tune(&folder, &[]).code, Some(0));
    let store = folder.path().join("runs/study/study.db");
    let mut content = std::fs::read(&store).unwrap();
    content.iter_mut().skip(100).for_each(|byte| *byte = 0xa5);
    std::fs::write(&store, content).unwrap();
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("damaged"), "{}", outcome.stderr);
}

#[test]
fn an_unwritable_store_is_wrong_input() {
    let folder = Folder::with("study.toml", &command("echo '{\"value\": 1}'"));
    let wrong = [
        ["--store", "/proc/study.db"],
        ["--store", "study.toml/study.db"],
        ["--runs", "study.toml/runs"],
        ["--runs", "/proc/runs"],
    ];
    for arguments in wrong {
        let outcome = tune(&folder, &arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_deleted_store_is_noticed_at_the_next_heartbeat() {
    let script = "rm runs/study/study.db\nsleep 100\necho '{\"value\": 1}'";
    let folder = Folder::with("study.toml", &command(script));
    let begun = Instant::now();
    let outcome = tune(&folder, &["--set", "tune.patience='1s'"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("moved or deleted while in use"), "{}", outcome.stderr);
}

#[test]
fn missing_data_are_reported_before_the_first_trial() {
    let study = STUDY
        .replace("{ kind = \"circles\", samples = 200 }", "{ kind = \"csv\", path = \"no.csv\" }");
    let study = study.replace("scale =", "task = \"binary\"\nscale =");
    let folder = Folder::with("study.toml", &study);
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("no.csv"), "{}", outcome.stderr);
    assert!(folder.runs().is_empty());
}

#[test]
fn flat_trials_are_pruned_with_a_reason() {
    // A loss that does not move.
    let line = r#"{\"epoch\": $i, \"epochs\": 40, \"loss\": 0.7, \"value\": 0.7}"#;
    let study = command(&format!("for i in $(seq 1 40); do echo \"{line}\"; done"));
    let folder = Folder::with("study.toml", &study);
    let outcome = tune(&folder, &["--pruner", "diagnosis", "--set", "tune.protect=0"]);
    let trials = trials(&outcome);
    let stopped: Vec<&Value> = trials.values().filter(|t| t["state"] == "pruned").collect();
    assert!(!stopped.is_empty(), "{}", outcome.stdout);
    for trial in stopped {
        assert!(trial["value"].is_number());
        assert!(trial["reason"]["message"].as_str().is_some_and(|s| s.ends_with('.')));
        assert!(trial["epochs"].as_u64().unwrap() < 40);
    }
}

#[test]
fn commands_without_epochs_are_pruned() {
    // Every trial is worse than those before, and improves no faster.
    let count = "n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count";
    let line = r#"{\"epoch\": $i, \"value\": $((100 * n - i))}"#;
    let study = command(&format!("{count}; for i in $(seq 1 20); do echo \"{line}\"; done"));
    let folder = Folder::with("study.toml", &study);
    let outcome = tune(&folder, &["--pruner", "prospect", "--set", "tune.protect=0"]);
    let trials = trials(&outcome);
    let states: Vec<&Value> = trials.values().map(|trial| &trial["state"]).collect();
    assert_eq!(states, ["complete", "complete", "complete", "pruned"]);
    assert_eq!(trials[&3]["epochs"], 2);
}

#[test]
fn a_budget_of_operations_is_machine_independent() {
    let folder = Folder::with("study.toml", &STUDY.replace("trials = 12\n", ""));
    let budget = ["--set", "tune.operations=2e6"];
    let once = tune(&folder, &[&budget[..], &["--runs", "a"]].concat());
    let again = tune(&folder, &[&budget[..], &["--runs", "b", "--threads", "2"]].concat());
    assert!(!trials(&once).is_empty());
    assert_eq!(trials(&once), trials(&again));
    let spent: f64 = trials(&once).values().map(|t| t["operations"].as_f64().unwrap()).sum();
    // The stretch in which it ends is done to its end.
    assert!(spent <= 2.1e6, "{spent}");
}

#[test]
fn a_command_gets_its_parameters_and_reports() {
    let study = command(
        "echo \"for x=$SUREFOOT_PARAMETER_X\"\necho \"{\\\"value\\\": $SUREFOOT_PARAMETER_X}\"",
    );
    let folder = Folder::with("study.toml", &study);
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for trial in trials(&outcome).values() {
        assert_eq!(trial["value"].as_f64(), trial["parameters"]["x"].as_f64());
        let dir = format!("runs/study/trial-{:05}", trial["number"].as_u64().unwrap());
        let log = std::fs::read_to_string(folder.path().join(dir).join("output.log")).unwrap();
        assert!(log.starts_with("for x="), "{log}");
    }
}

#[test]
fn a_command_runs_in_the_directory_of_its_study() {
    let folder = Folder::new();
    let path = folder.path().join("somewhere");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("study.toml"), command("cat value.json")).unwrap();
    std::fs::write(path.join("value.json"), "{\"value\": 7}\n").unwrap();
    let outcome = folder.run(&["tune", "somewhere/study.toml", "--trials", "1", "--json"]);
    assert_eq!(outcome.summary()["best"]["value"], 7.0, "{}", outcome.stderr);
    let log = folder.path().join("runs/study/trial-00000/output.log");
    assert!(log.exists());
}

#[test]
fn a_pruned_command_can_save_its_state() {
    // The shell dies of the signal at once, and what it has started goes on.
    let folder = Folder::with("study.toml", &command("sh trial.sh\n:"));
    let script = "trap 'sleep 1; touch $SUREFOOT_DIR/saved; exit' TERM\n\
                  echo '{\"value\": 1}'\nwhile :; do sleep 0.05; done\n";
    folder.write("trial.sh", script);
    let outcome = tune(&folder, &["--budget", "1s"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(folder.path().join("runs/study/trial-00000/saved").exists());
}

#[test]
fn failing_and_silent_commands_are_failed_trials() {
    let folder = Folder::with("study.toml", &command("echo no luck >&2\nexit 3"));
    let outcome = tune(&folder, &["--trials", "1"]);
    assert_eq!(outcome.code, Some(1));
    let message = trials(&outcome)[&0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("exit code 3: no luck"), "{message}");
    let folder = Folder::with("study.toml", &command("echo done"));
    let outcome = tune(&folder, &["--trials", "1"]);
    let message = trials(&outcome)[&0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("without reporting a value"), "{message}");
}

#[test]
fn a_search_stops_if_all_trials_fail() {
    let folder = Folder::with("study.toml", &command("exit 3"));
    let outcome = folder.run(&["tune", "study.toml", "--trials", "1000"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("stopped because the last"), "{}", outcome.stderr);
    let failed = outcome.stdout.matches("exit code 3").count();
    assert!((10..100).contains(&failed), "{failed}");
}

#[test]
fn a_killed_worker_is_replaced_at_once() {
    let study = STUDY.replace("epochs = 12", "epochs = 2000\ncheckpoint_every = 10");
    let folder = Folder::with("study.toml", &study);
    let begun = Instant::now();
    let child = folder.start(&["tune", "study.toml", "--trials", "1", "--pruner", "none"]);
    let trial = folder.path().join("runs/study/trial-00000/header.json");
    while !trial.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    workers(&folder).into_iter().for_each(kill);
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Not after the minute that a silent worker has.
    assert!(begun.elapsed() < Duration::from_secs(50));
    let said = "a worker was killed (signal: 9 (SIGKILL)) at trial 0";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn nan_values_are_stored_and_never_the_best() {
    let script =
        "if [ $SUREFOOT_TRIAL = 1 ]\nthen echo '{\"value\": NaN}'\nelse echo '{\"value\": 5}'\nfi";
    let script = script.replace("then echo", "then :; echo").replace("]\nthen", "]; then");
    let folder = Folder::with("study.toml", &command(&script.replace("else echo", "else :; echo")));
    let outcome = tune(&folder, &[]);
    assert_eq!(trials(&outcome)[&1]["value"], json!("NaN"), "{}", outcome.stdout);
    assert_eq!(outcome.summary()["best"]["value"], json!(5.0));
}

/// The processes that work at a study.
fn workers(folder: &Folder) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let cwd = std::fs::read_link(entry.path().join("cwd"));
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if cwd.is_ok_and(|cwd| cwd == folder.path()) && line.contains("--worker\0") {
            found.push(id);
        }
    }
    found
}

fn kill(id: u32) {
    let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
}

/// Kills workers of a search at moments and in an order that look random, until `count` have died.
fn kill_workers(folder: &Folder, count: u64, killed: &mut u64) {
    let begun = Instant::now();
    while *killed < count {
        let late = begun.elapsed() > Duration::from_secs(120);
        assert!(!late, "only {killed} could be killed");
        // Multiplied by an odd number, the upper bits of a counter are well mixed.
        let mixed = (*killed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        std::thread::sleep(Duration::from_millis(20 + (mixed >> 32) % 300));
        let crew = workers(folder);
        if let Some(id) = crew.get((mixed >> 16) as usize % crew.len().max(1)) {
            kill(*id);
            *killed += 1;
        }
    }
}

#[test]
fn a_hundred_kills_lose_no_trial_and_change_no_result() {
    let study = STUDY.replace("epochs = 12", "epochs = 300\ncheckpoint_every = 10");
    let study = study.replace("seed = 7", "seed = 7\nattempts = 1000\npatience = '4s'");
    let folder = Folder::with("study.toml", &study);
    let start = || {
        let options = ["--json", "--pruner", "none", "--workers", "4"];
        let endless = [["tune", "study.toml", "--trials", "100000"].as_slice(), &options];
        folder.start(&endless.concat())
    };
    let mut killed = 0;
    let mut first = start();
    kill_workers(&folder, 50, &mut killed);
    // Its workers give back what they do when they see that they are left to themselves.
    kill(first.id());
    first.wait().unwrap();
    let mut second = start();
    kill_workers(&folder, 100, &mut killed);
    kill(second.id());
    second.wait().unwrap();
    let left = Instant::now();
    while !workers(&folder).is_empty() {
        assert!(left.elapsed() < Duration::from_secs(60), "workers stay");
        std::thread::sleep(Duration::from_millis(20));
    }

    let exported = |store: &str| -> Vec<Value> {
        let outcome = folder.run(&["export", store, "--output", "trials.jsonl"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let text = std::fs::read_to_string(folder.path().join("trials.jsonl")).unwrap();
        let lines = text.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let begun = exported("runs/study").len().to_string();
    let to_the_end = ["--pruner", "none", "--trials", &begun, "--workers", "4"];
    for runs in ["runs", "whole"] {
        let outcome = tune(&folder, &[to_the_end.as_slice(), &["--runs", runs]].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let (rows, whole) = (exported("runs/study"), exported("whole/study"));
    assert_eq!(rows.len(), whole.len());
    let (mut lost, mut released) = (0, 0);
    for (row, whole) in rows.iter().zip(&whole) {
        for key in ["number", "state", "value", "parameters"] {
            assert_eq!(row[key], whole[key], "{key} of {}", row["number"]);
        }
        let values = |row: &Value| -> Vec<(Value, Value)> {
            let reports = row["reports"].as_array().unwrap().iter();
            reports.map(|report| (report["step"].clone(), report["value"].clone())).collect()
        };
        assert_eq!(values(row), values(whole));
        let attempts = row["attempts"].as_array().unwrap().iter();
        let fates: Vec<&str> = attempts.map(|attempt| attempt["state"].as_str().unwrap()).collect();
        let (last, earlier) = fates.split_last().unwrap();
        assert_eq!(*last, "finished");
        for fate in earlier {
            match *fate {
                "lost" => lost += 1,
                "released" => released += 1,
                other => panic!("{other} before the end: {fates:?}"),
            }
        }
    }
    assert!(lost >= 20, "only {lost} of a hundred kills hit a trial");
    assert!(released <= 8, "{released} given back by twice four workers");
}

#[test]
fn an_interrupted_search_continues() {
    let study = STUDY.replace("epochs = 12", "epochs = 200");
    let folder = Folder::with("study.toml", &study);
    let child = folder.start(&["tune", "study.toml", "--json", "--pruner", "none"]);
    let first = folder.path().join("runs/study/trial-00001/header.json");
    let begun = Instant::now();
    while !first.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert!(workers(&folder).is_empty());
    let rest = tune(&folder, &["--pruner", "none"]);
    assert_eq!(rest.summary()["complete"], 12);
    let whole = tune(&folder, &["--pruner", "none", "--runs", "whole"]);
    for (number, trial) in trials(&rest) {
        assert_eq!(trial, trials(&whole)[&number]);
    }
}

#[test]
fn findings_survive_an_interruption() {
    let study = r#"[tune]
trials = 1
workers = 1
sampler = "random"
pruner = "agv"
protect = 0

[data]
source = { kind = "circles", samples = 60000 }

[[model]]
layer = "dense"
units = 192
activation = "relu"

[[model]]
layer = "dense"
units = 192
activation = "relu"

[[model]]
layer = "dense"
units = 1

[training]
epochs = 4
batch_size = 2
loss = "mse"

[training.optimizer]
name = "sgd"
learning_rate = { choice = [1e30] }
"#;
    let folder = Folder::with("study.toml", study);
    let child = folder.start(&["tune", "study.toml", "--json"]);
    let header = folder.path().join("runs/study/trial-00000/header.json");
    let begun = Instant::now();
    while !header.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(2));
    }
    // Within the first epoch, after the indicator has spoken: it does so once.
    std::thread::sleep(Duration::from_millis(600));
    let id = child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status();
    assert!(interrupted.unwrap().success());
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    let rest = tune(&folder, &[]);
    let trial = &trials(&rest)[&0];
    assert_eq!(trial["reason"]["by"], "agv", "{}", rest.stdout);
    assert_eq!(trial["epochs"], 1);
}

#[test]
fn recorded_trials_are_simulated_without_training() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--pruner", "none"]);
    let outcome = folder.run(&["simulate", "runs/study", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let rules = outcome.events();
    let rule = |name: &str| rules.iter().find(|r| r["rule"] == name).unwrap().clone();
    assert_eq!(rule("default")["total"]["trials"], 12);
    assert_eq!(rule("agv")["total"]["top"], 10);
    // What it would have done is what it does.
    let live = tune(&folder, &["--runs", "live"]);
    let pruned = trials(&live).into_values().filter(|t| t["state"] == "pruned").count();
    assert_eq!(rule("default")["total"]["pruned"], pruned);
}

#[test]
fn all_methods_are_compared_on_recorded_trials() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--pruner", "none", "--sampler", "random", "--trials", "60"]);
    let run = || folder.run(&["simulate", "runs/study", "--methods", "--seeds", "2", "--json"]);
    let outcome = run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let methods: Vec<_> = outcome.events().iter().map(|it| it["method"].clone()).collect();
    assert!(methods.contains(&json!("random")) && methods.last() == Some(&json!("freeze_thaw")));
    assert_eq!(outcome.stdout, run().stdout);
}

#[test]
fn searches_are_simulated_on_recorded_trials() {
    let folder = Folder::with("study.toml", STUDY);
    tune(&folder, &["--pruner", "none"]);
    tune(&folder, &["--pruner", "none", "--seed", "5", "--runs", "more"]);
    let stores = ["simulate", "runs/study", "more/study", "--sampler", "tpe"];
    let options = ["--share", "0.5", "--seeds", "6", "--pruner", "median"];
    let run = || folder.run(&[stores.as_slice(), &options, &["--json"]].concat());
    let outcome = run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let searched = outcome.events().pop().unwrap();
    assert_eq!(searched["rule"], "median");
    let [name, gain] = searched["tasks"][0].as_array().unwrap().as_slice() else {
        panic!("one ground of both studies: {searched}");
    };
    assert_eq!((name, &gain["searches"]), (&json!("study"), &json!(6)));
    let number = |key: &str| gain[key].as_f64().unwrap();
    assert!(number("plain_trials") > 6.0 && number("trials") > number("plain_trials"));
    assert_eq!(outcome.stdout, run().stdout);
    let shown = |extra: &[&str]| folder.run(&[stores.as_slice(), &options, extra].concat());
    let (once, by_task) = (shown(&[]).stdout, shown(&["--by-task"]).stdout);
    assert!(!once.contains("\n    study "), "{once}");
    assert!(by_task.contains("\n    study "), "{by_task}");
    let replayed = folder.run(&[&stores[..3], &["--pruner", "median", "--by-task"]].concat());
    let rows = replayed.stdout;
    assert!(rows.contains("\n    study ") && rows.contains("\n    study of more/study "), "{rows}");

    let fails = |options: &[&str]| {
        let outcome = folder.run(&[&stores[..3], options].concat());
        assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
        outcome.stderr
    };
    assert!(fails(&["--sampler", "tpee"]).contains("available: random, sobol, tpe, gp, smac"));
    assert!(fails(&["--methods"]).contains("needs at least 50 complete trials"));
    assert!(fails(&["--sampler", "tpe", "--share", "0"]).contains("--share must be above 0"));
    let tiny = fails(&["--sampler", "tpe", "--share", "0.001"]);
    assert!(tiny.contains("completes no trial"), "{tiny}");
    assert!(fails(&["./more/../more/study"]).contains("more/study is given twice"));
    assert!(fails(&["--pruner", "none"]).contains("nothing to simulate"));
    assert!(fails(&["nowhere"]).contains("nowhere does not exist"));
    let folder_of_studies = fails(&["more"]);
    assert!(folder_of_studies.contains("it contains studies: more/study"));
    assert!(fails(&["more/study/trial-00000"]).contains("is a run, not a study"));
    let twice = ["--sweep", "prospect.quantile=0.1,0.2", "--set", "prospect.quantile=0.3"];
    assert!(fails(&twice).contains("`prospect.quantile` is given twice"));
    assert!(fails(&["--seeds", "6"]).contains("--sampler"));
}

#[test]
fn a_dry_run_shows_the_search() {
    let folder = Folder::with("study.toml", STUDY);
    let dry = ["tune", "study.toml", "--threads", "1", "--dry-run"];
    let outcome = folder.run(&dry);
    assert_snapshot!(outcome.shown());
    assert!(folder.runs().is_empty());

    let searched = tune(&folder, &["--trials", "3", "--pruner", "none"]);
    assert_eq!(searched.code, Some(0), "{}", searched.stderr);
    let changed = folder.run(&dry);
    assert_eq!(changed.code, Some(2));
    assert!(changed.stderr.contains("the existing study `study` differs"), "{}", changed.stderr);
    let again = folder.run(&[dry.as_slice(), &["--pruner", "none", "--json"]].concat());
    let outline = again.events().pop().unwrap();
    assert_eq!(outline["found"], json!({"complete": 3}));
    assert_eq!(outline["trials"], 12);
    let again = folder.run(&[dry.as_slice(), &["--pruner", "none"]].concat());
    let line = "runs/study/study.db, with 3 trials: 3 complete";
    assert!(again.stdout.contains(line), "{}", again.stdout);
}

#[test]
fn errors_of_overrides_point_to_the_command_line() {
    let folder = Folder::with("study.toml", STUDY);
    for (key, value) in [
        ("tune.sampler", "randon"),
        ("tune.sampler.startup", "many"),
        ("tune.trails", "5"),
        ("tune.pruner", "['mediam']"),
        ("training.epoch", "5"),
        ("model.0.units", "{ log_int = [4] }"),
    ] {
        let setting = format!("{key}={value}");
        let outcome = tune(&folder, &["--trials", "5", "--set", &setting]);
        assert_eq!(outcome.code, Some(2));
        let blamed = format!("--> --set {setting}\n");
        assert!(outcome.stderr.contains(&blamed), "{}", outcome.stderr);
    }
    // What is wrong with the file stays there, in its own line.
    let folder = Folder::with("study.toml", &STUDY.replace("epochs = 12", "epochs = -12"));
    let outcome = tune(&folder, &["--set", "tune.protect=4", "--budget", "5s"]);
    let line = STUDY.lines().position(|line| line == "epochs = 12").unwrap() + 1;
    let place = format!("--> study.toml:{line}:");
    assert!(outcome.stderr.contains(&place), "{}", outcome.stderr);
}

#[test]
fn training_a_study_suggests_tune() {
    let folder = Folder::with("study.toml", STUDY);
    let outcome = folder.run(&["train", "study.toml"]);
    assert_eq!(outcome.code, Some(2));
    assert_snapshot!(outcome.stderr);
}

#[test]
fn a_search_prints_its_trials_and_summary() {
    let folder = Folder::with("study.toml", STUDY);
    let outcome = folder.run(&["tune", "study.toml", "--trials", "5"]);
    with_settings!({filters => [(r"time       .*", "time       [time]")]}, {
        assert_snapshot!(outcome.shown());
    });
}

#[test]
fn errors_in_a_study_show_their_line() {
    for (name, old, new) in [
        ("unknown_sampler", "\"random\"", "\"randon\""),
        ("unknown_pruner", "seed = 7", "seed = 7\npruner = [\"diagnosis\", \"mediam\"]"),
        ("wrong_range", "[2, 16]", "[16, 2]"),
        ("misspelt_range", "log_int", "log_itn"),
        ("newer", "[tune]", "[tune]\nversion = 2"),
        (
            "setting_of_a_pruner",
            "seed = 7",
            "seed = 7\npruner = { name = \"asha\", reduction_factor = 0 }",
        ),
    ] {
        let folder = Folder::with("study.toml", &STUDY.replace(old, new));
        let outcome = folder.run(&["tune", "study.toml"]);
        assert_eq!(outcome.code, Some(2));
        assert_snapshot!(format!("wrong_{name}"), outcome.stderr);
    }
}

#[test]
fn help_has_every_option_and_examples() {
    let folder = Folder::new();
    assert_snapshot!("help_of_tune", folder.run(&["tune", "--help"]).stdout);
    assert_snapshot!("help_of_simulate", folder.run(&["simulate", "--help"]).stdout);
}
