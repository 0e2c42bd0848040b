//! Searches that pause trials and continue them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::search::PLAN;
use support::{Folder, Outcome};

fn plan() -> Folder {
    let study = PLAN.replace("sampler = \"random\"", "scheduler = \"freeze_thaw\"");
    Folder::with("study.toml", &study)
}

fn tune(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["tune", "study.toml", "--json"], more].concat())
}

/// The last event of each trial, without what takes time or depends on the place.
fn trials(outcome: &Outcome) -> BTreeMap<u64, Value> {
    let mut trials = BTreeMap::new();
    for mut event in outcome.events() {
        if event["event"] == "trial" {
            let fields = event.as_object_mut().unwrap();
            for key in ["seconds", "run", "attempts"] {
                fields.remove(key);
            }
            trials.insert(event["number"].as_u64().unwrap(), event);
        }
    }
    trials
}

fn states(outcome: &Outcome) -> Vec<String> {
    let state = |trial: &Value| trial["state"].as_str().unwrap().to_owned();
    trials(outcome).values().map(state).collect()
}

#[test]
fn plans_are_scheduled_by_default_and_trials_continue_bit_for_bit() {
    let folder = plan();
    let named = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    folder.write("study.toml", &named.replace("scheduler = \"freeze_thaw\"\n", ""));
    let outcome = tune(&folder, &["--trials", "6"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let states = states(&outcome);
    assert!(states.iter().any(|state| state == "paused"), "{states:?}");
    let summary = outcome.summary();
    let best = summary["best"]["number"].as_u64().unwrap();
    assert!(summary["paused"].as_u64().unwrap() > 0 && summary["trials"].as_u64().unwrap() > 6);
    // The budget ends with the best trial, which was paused on its way.
    assert_eq!(trials(&outcome)[&best]["epochs"], 12);
    let run = format!("runs/study/trial-{best:05}");
    let events = std::fs::read_to_string(folder.path().join(&run).join("events.jsonl")).unwrap();
    assert!(events.contains("resumed"), "never paused");
    let replayed = folder.run(&["replay", &run]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.stdout, replayed.stderr);
}

#[test]
fn a_paused_trial_has_the_same_value_everywhere() {
    let folder = Folder::with("study.toml", PLAN);
    let outcome = tune(&folder, &["--trials", "6", "--scheduler", "freeze_thaw"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let exported = folder.run(&["export", "runs/study", "-o", "study.csv"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let table = std::fs::read_to_string(folder.path().join("study.csv")).unwrap();
    let trials = trials(&outcome);
    let mut paused = 0;
    for (row, trial) in table.lines().skip(1).zip(trials.values()) {
        let [number, state, value] = row.splitn(4, ',').take(3).collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        assert_eq!(
            (number, state),
            (&*trial["number"].to_string(), trial["state"].as_str().unwrap())
        );
        assert_eq!(value.parse().ok(), trial["value"].as_f64(), "{row}");
        paused += usize::from(state == "paused");
    }
    assert!(paused > 3, "{table}");
    let report = folder.run(&["report", "runs/study", "-o", "study.html"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let page = std::fs::read_to_string(folder.path().join("study.html")).unwrap();
    assert!(page.contains(&format!("{paused} are paused")), "{paused}");
}

#[test]
fn only_pauses_of_the_best_trial_are_printed() {
    let folder = Folder::with("study.toml", PLAN);
    let arguments = ["tune", "study.toml", "--trials", "6", "--scheduler", "freeze_thaw"];
    let outcome = folder.run(&arguments);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let pauses: Vec<&str> =
        outcome.stdout.lines().filter(|line| line.contains("  paused  ")).collect();
    assert!(!pauses.is_empty(), "{}", outcome.stdout);
    assert!(pauses.iter().all(|line| line.ends_with("best so far")), "{}", outcome.stdout);
}

#[test]
fn the_same_study_and_seed_give_the_same_search() {
    let folder = plan();
    let once = tune(&folder, &["--trials", "4", "--runs", "a"]);
    let again = tune(&folder, &["--trials", "4", "--runs", "b"]);
    assert_eq!(once.code, Some(0), "{}", once.stderr);
    assert_eq!(trials(&once), trials(&again));
    // The larger budget continues the search.
    let more = tune(&folder, &["--trials", "5", "--runs", "a"]);
    assert!(!trials(&more).is_empty());
}

#[test]
fn killed_workers_lose_no_trial() {
    let folder = plan();
    let study = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    folder.write("study.toml", &study.replace("seed = 7", "seed = 7\nattempts = 50"));
    let mut child =
        folder.start(&["tune", "study.toml", "--trials", "60", "--workers", "2", "--json"]);
    let mut killed = 0;
    while killed < 5 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(100));
        let workers = children(child.id());
        if let Some(worker) = workers.get(killed % workers.len().max(1)) {
            let status = Command::new("kill").args(["-KILL", &worker.to_string()]).status();
            killed += usize::from(status.is_ok_and(|status| status.success()));
        }
    }
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert_eq!((outcome.code, killed), (Some(0), 5), "{}", outcome.stderr);
    let summary = outcome.summary();
    let count = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!(count("failed") + count("open"), 0, "{summary}");
    assert_eq!(count("trials"), count("complete") + count("paused") + count("pruned"));
    let best = format!("runs/study/trial-{:05}", summary["best"]["number"].as_u64().unwrap());
    let replayed = folder.run(&["replay", &best]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.stdout, replayed.stderr);
}

/// Processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let place = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(Path::new(&place)).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// A program that stays alive and counts its epochs in a file.
const PROGRAM: &str = r#"
echo started >> starts
while read -r line; do
    dir=$(echo "$line" | sed 's/.*"dir":"\([^"]*\)".*/\1/')
    epoch=$(cat "$dir/epoch" 2>/dev/null || echo 0)
    case "$line" in *'"trial":2,'*) echo '{"error": "no memory"}'; continue ;; esac
    while [ $epoch -lt 6 ]; do
        epoch=$((epoch + 1))
        echo $epoch > "$dir/epoch"
        echo "{\"epoch\": $epoch, \"epochs\": 6, \"loss\": 0.5, \"value\": 0.$((9 - epoch))}"
        read -r answer
        case "$answer" in *true*) break ;; esac
    done
    echo '{"end": true}'
done
"#;

fn program() -> Folder {
    let folder = Folder::with(
        "study.toml",
        "[tune]\ncommand = \"sh program.sh\"\nkeep_alive = true\nresume = true\n\
         direction = \"minimize\"\ntrials = 5\nworkers = 1\n[parameters]\nx = { int = [1, 99] }\n",
    );
    folder.write("program.sh", PROGRAM);
    folder
}

#[test]
fn a_program_stays_alive_between_trials_and_continues_paused_ones() {
    let folder = program();
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts, "started\n");
    let trials = trials(&outcome);
    assert_eq!(trials[&2]["state"], "failed");
    assert_eq!(trials[&2]["message"], "no memory");
    let states = states(&outcome);
    let count = |word: &str| states.iter().filter(|state| *state == word).count();
    assert!(count("paused") > 3 && count("complete") > 0, "{states:?}");
    let reports = folder.path().join("runs/study/trial-00000/reports.jsonl");
    assert!(std::fs::read_to_string(reports).unwrap().starts_with("1\t{\"epoch\": 1,"));
}

#[test]
fn a_program_that_exits_fails_its_trial_and_is_started_again() {
    let folder = program();
    let program = PROGRAM.replace("echo '{\"error\": \"no memory\"}'; continue", "exit 3");
    folder.write("program.sh", &program);
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 2);
    assert_eq!(trials(&outcome)[&2]["message"], "the program exited during the trial");
}

#[test]
fn a_scheduler_needs_trials_that_can_resume() {
    let folder = program();
    let study = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    let study = study.replace("resume = true", "scheduler = \"asha\"");
    folder.write("study.toml", &study);
    let outcome = tune(&folder, &[]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("a scheduler pauses trials"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("resume = true"), "{}", outcome.stderr);
}
