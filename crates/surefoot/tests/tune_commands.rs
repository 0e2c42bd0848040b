//! Programs as trials: what they report, what they leave behind, and what becomes of them when somebody is killed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, Outcome};

/// A study whose trials are a script of the shell, without pruners.
fn folder(script: &str) -> Folder {
    let study = "[tune]\ncommand = \"sh trial.sh\"\ndirection = \"minimize\"\ntrials = 4\nworkers = 1\n\
                 sampler = \"random\"\npruner = \"none\"\nprotect = 0\n[parameters]\nx = { int = [1, 9] }\n";
    let folder = Folder::with("study.toml", study);
    folder.write("trial.sh", script);
    folder
}

fn tune(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["tune", "study.toml", "--json"], more].concat())
}

fn trials(outcome: &Outcome) -> Vec<Value> {
    let mut trials = outcome.events();
    trials.retain(|event| event["event"] == "trial");
    trials.sort_by_key(|trial| trial["number"].as_u64());
    trials
}

/// The first trial as the store has it.
fn first_trial(folder: &Folder) -> Value {
    let outcome = folder.run(&["export", "runs/study/study.db", "--output", "trials.jsonl"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let text = std::fs::read_to_string(folder.path().join("trials.jsonl")).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// States in which its attempts ended.
fn claim_states(folder: &Folder) -> Vec<String> {
    let trial = first_trial(folder);
    let attempts = trial["attempts"].as_array().unwrap().iter();
    attempts.map(|attempt| attempt["state"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(signal: &str, target: &str) {
    let status = Command::new("kill").args([signal, "--", target]).status();
    assert!(status.unwrap().success());
}

fn is_alive(pid: &str) -> bool {
    // One that has ended and that nobody has asked for its status is dead as well.
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn ctrl_c_releases_the_trial_and_ends_its_processes() {
    let folder = folder("echo $$ > pid\nwhile :; do sleep 0.05; done\n");
    // A terminal sends it to all: the search, and its workers.
    let mut command = folder.command(&["tune", "study.toml"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().unwrap();
    let pid = folder.path().join("pid");
    wait_for("it never began", || pid.exists());
    signal("-INT", &format!("-{}", child.id()));
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert_eq!(claim_states(&folder), ["released"]);
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!is_alive(&pid), "{pid} is left");
}

#[test]
fn an_orphaned_command_is_ended_before_the_next_attempt() {
    let folder = folder(
        // In a session of its own, and with nothing of its worker's.
        "if [ -z $AGAIN ]; then AGAIN=1 setsid sh $0 3>&- 4>&-; exit; fi\n\
         if [ -e first ]; then\n\
         case \"$(cat /proc/$(cat first)/stat 2>/dev/null)\" in ''|*') Z '*) echo '{\"value\": 0}';; *) echo '{\"value\": 1}';; esac\n\
         exit\nfi\n\
         echo $$ > first\nwhile :; do sleep 0.05; done\n",
    );
    let child = folder.start(&["tune", "study.toml", "--trials", "1", "--json"]);
    let first = folder.path().join("first");
    wait_for("it never began", || {
        std::fs::read_to_string(&first).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let mut worker = std::fs::read_to_string(&first).unwrap();
    while !is_surefoot(&worker) {
        worker = parent(&worker);
    }
    signal("-KILL", worker.trim());
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.summary()["best"]["value"], json!(0.0), "both ran");
}

fn status(pid: &str) -> String {
    let status = Path::new("/proc").join(pid.trim()).join("status");
    std::fs::read_to_string(status).unwrap()
}

fn is_surefoot(pid: &str) -> bool {
    let status = status(pid);
    status.lines().next().is_some_and(|name| name.contains("surefoot"))
}

fn parent(pid: &str) -> String {
    let status = status(pid);
    let line = status.lines().find(|line| line.starts_with("PPid:"));
    line.unwrap()["PPid:".len()..].trim().to_owned()
}

#[test]
fn background_processes_of_a_command_are_ended() {
    let folder = folder(
        "while :; do echo still here; sleep 0.05; done &\necho $! > pid\necho '{\"value\": 1}'\n",
    );
    let begun = Instant::now();
    let outcome = tune(&folder, &["--trials", "1"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Not even the ten seconds that one has which does not end when it is asked to.
    assert!(begun.elapsed() < Duration::from_secs(9));
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!is_alive(&pid), "{pid} is left");
}

#[test]
fn an_existing_directory_is_an_error() {
    let folder = folder("echo '{\"value\": 1}'\n");
    folder.write("runs/study/trial-00000/thesis.txt", "mine");
    // However often somebody tries, and whoever.
    for workers in ["1", "1", "2"] {
        let outcome = tune(&folder, &["--trials", "1", "--workers", workers]);
        assert_eq!(outcome.code, Some(3), "{}", outcome.stdout);
        let said = "trial-00000 already exists and does not belong to this study";
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
    let dir = folder.path().join("runs/study/trial-00000");
    let names = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["thesis.txt"]);
}

#[test]
fn zero_based_epochs_continue_after_a_restart() {
    let folder = folder(
        "e=0\n[ -e $SUREFOOT_DIR/done ] && e=3\n\
         for v in 5 4 1 3 3 3; do\n\
         if [ $e -le ${n:=0} ]; then echo \"{\\\"epoch\\\": $n, \\\"epochs\\\": 6, \\\"value\\\": $v}\"; fi\n\
         n=$((n + 1))\n\
         if [ $n = 3 ] && [ $e = 0 ]; then touch $SUREFOOT_DIR/done; sleep 60; fi\n\
         done\n",
    );
    let child = folder.start(&["tune", "study.toml", "--trials", "1"]);
    let done = folder.path().join("runs/study/trial-00000/done");
    wait_for("it never began", || done.exists());
    wait_for("it never reported", || {
        first_trial(&folder)["reports"].as_array().unwrap().len() == 3
    });
    signal("-INT", &child.id().to_string());
    child.wait_with_output().unwrap();
    let outcome = tune(&folder, &["--trials", "1"]);
    let trial = &trials(&outcome)[0];
    assert_eq!((&trial["value"], &trial["epochs"]), (&json!(1.0), &json!(6)), "{}", outcome.stderr);
}

#[test]
fn foreign_directories_are_not_removed() {
    let folder = Folder::with("study.toml", support::search::PLAN);
    let study = ["--trials", "1", "--pruner", "none", "--json"];
    let epochs = ["--set", "training.epochs=20000"];
    let child = folder.start(&[&["tune", "study.toml"], &study[..], &epochs].concat());
    let header = folder.path().join("runs/study/trial-00000/header.json");
    wait_for("it never began", || header.exists());
    signal("-INT", &child.id().to_string());
    child.wait_with_output().unwrap();
    folder.write("elsewhere/study/trial-00000/thesis.txt", "mine");
    let there = ["--runs", "elsewhere", "--store", "runs/study/study.db"];
    let outcome = folder.run(&[&["tune", "study.toml"], &study[..], &epochs, &there].concat());
    assert_eq!(outcome.code, Some(3), "{}", outcome.stdout);
    let thesis = folder.path().join("elsewhere/study/trial-00000/thesis.txt");
    assert_eq!(std::fs::read_to_string(thesis).unwrap(), "mine");
}

#[test]
fn variables_of_an_outer_search_are_removed() {
    let folder = folder("echo \"{\\\"value\\\": ${SUREFOOT_PARAMETER_Y:-0}}\"\n");
    let mut command = folder.command(&["tune", "study.toml", "--json", "--trials", "1"]);
    command.env("SUREFOOT_PARAMETER_Y", "7");
    let outcome: Outcome = command.output().unwrap().into();
    assert_eq!(outcome.summary()["best"]["value"], json!(0.0));
}

#[test]
fn a_report_every_five_epochs_is_a_step() {
    // The later trials are worse. What reports its last epoch is not stopped any more.
    let folder = folder(
        "for i in 5 10 15 20; do\n\
         echo \"{\\\"epoch\\\": $i, \\\"epochs\\\": 20, \\\"value\\\": $SUREFOOT_TRIAL}\"\ndone\n",
    );
    let rule = "tune.pruner={ name = 'median', warmup = 0.9, n_startup_trials = 1 }";
    let outcome = tune(&folder, &["--set", rule]);
    let states = trials(&outcome);
    assert_eq!(states.len(), 4, "{}{}", outcome.stdout, outcome.stderr);
    for trial in states {
        assert_eq!((&trial["state"], &trial["epochs"]), (&json!("complete"), &json!(4)));
    }
    assert_eq!(outcome.summary()["saved"], json!(0.0));
}

#[test]
fn infinite_values_are_not_the_best() {
    let folder = folder("for v in 3 2 -Infinity NaN 4; do echo \"{\\\"value\\\": $v}\"; done\n");
    let outcome = tune(&folder, &["--trials", "1"]);
    assert_eq!(outcome.summary()["best"]["value"], json!(2.0));
}

#[test]
fn a_final_value_is_not_pruned() {
    let folder = folder(
        "for i in 1 2 3 4; do\n\
         echo \"{\\\"epoch\\\": $i, \\\"epochs\\\": 20, \\\"value\\\": 1}\"\ndone\n\
         echo \"{\\\"epoch\\\": 5, \\\"epochs\\\": 20, \\\"value\\\": $SUREFOOT_TRIAL, \\\"final\\\": true}\"\n",
    );
    let rule = "tune.pruner={ name = 'median', warmup = 0.2, n_startup_trials = 1 }";
    let outcome = tune(&folder, &["--set", rule]);
    let values: Vec<(Value, Value)> = trials(&outcome)
        .into_iter()
        .map(|trial| (trial["state"].clone(), trial["value"].clone()))
        .collect();
    let expected: Vec<(Value, Value)> =
        (0..4).map(|number| (json!("complete"), json!(f64::from(number)))).collect();
    assert_eq!(values, expected, "{}", outcome.stderr);
}

#[test]
fn layers_may_be_named_late() {
    let layer = |name: &str, gradient: &str| {
        format!(
            "\\\"{name}\\\": {{\\\"gradient\\\": {gradient}, \\\"zero_outputs\\\": 1.0, \\\"activation\\\": \\\"relu\\\"}}"
        )
    };
    let names = ["a", "b", "c", "d", "e"].iter();
    let layers: Vec<String> = names
        .zip(["1e4", "1e2", "1", "1e-2", "1e-4"])
        .map(|(name, gradient)| layer(name, gradient))
        .collect();
    let layers = layers.join(", ");
    let folder = folder(&format!(
        "for i in $(seq 1 200); do\n\
         echo \"{{\\\"epoch\\\": $i, \\\"epochs\\\": 200, \\\"loss\\\": 1, \\\"value\\\": 1, \\\"layers\\\": {{$layers}}}}\"\n\
         layers='{}'\ndone\n",
        layers.replace('\\', "")
    ));
    for indicator in ["eag", "lar"] {
        let outcome = tune(&folder, &["--trials", "1", "--pruner", indicator, "--runs", indicator]);
        let trial = &trials(&outcome)[0];
        assert_eq!(trial["reason"]["by"], indicator, "{}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn a_nan_value_prunes_with_indicators_alone() {
    let folder = folder(
        "for i in $(seq 1 20); do echo \"{\\\"epoch\\\": $i, \\\"epochs\\\": 20, \\\"value\\\": NaN}\"; done\n",
    );
    let outcome = tune(&folder, &["--trials", "1", "--pruner", "diagnosis"]);
    let trial = &trials(&outcome)[0];
    assert_eq!((&trial["reason"]["by"], &trial["epochs"]), (&json!("non_finite"), &json!(1)));
}

#[test]
fn a_search_stops_when_trials_keep_failing() {
    let folder = folder("[ $SUREFOOT_TRIAL -lt 2 ] || exit 3\necho '{\"value\": 1}'\n");
    let outcome = tune(&folder, &["--trials", "500"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("stopped because"), "{}", outcome.stderr);
    let tried = trials(&outcome).len();
    assert!((32..100).contains(&tried), "{tried}");
}
