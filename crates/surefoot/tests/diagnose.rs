//! `surefoot diagnose`: input handling. Findings are tested with the detectors.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use support::{CIRCLES, Folder};

const HISTORY: &str = "epoch,accuracy,loss,val_accuracy,val_loss\n\
                       0,0.5,0.7,0.5,0.7\n1,0.75,0.5,0.7,0.6\n2,0.9,0.3,0.8,0.5\n";

/// Error message for wrong input; stdout must be empty.
fn complaint(content: &str, arguments: &[&str]) -> String {
    let folder = Folder::with("history.csv", content);
    let outcome = folder.run(&[&["diagnose"], arguments].concat());
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout, "");
    outcome.stderr
}

#[test]
fn help_has_every_option_and_examples() {
    assert_snapshot!(Folder::new().run(&["diagnose", "--help"]).shown());
}

#[test]
fn the_first_line_says_what_was_read() {
    let folder = Folder::with("history.csv", HISTORY);
    let first = |arguments: &[&str]| {
        let outcome = folder.run(&[&["diagnose"], arguments].concat());
        outcome.stdout.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        first(&["history.csv"]),
        "history.csv: 3 epochs, with accuracy, loss, val_accuracy, val_loss"
    );
    assert_eq!(
        first(&["history.csv", "--map", "loss=val_loss"]),
        "history.csv: 3 epochs, with accuracy, val_accuracy, val_loss as loss"
    );
    folder.write("steps.csv", "global_step,Train Loss\n100,3\n200,2\n1200,1\n");
    assert_eq!(first(&["steps.csv"]), "steps.csv: 3 rows from step 100 to 1,200, with Train Loss");
}

#[test]
fn a_damaged_table_of_a_run_is_wrong_input() {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.digest(&["circles.toml"]);
    folder.write("runs/circles-001/observations.layers.parquet", "PAR1 damaged PAR1");
    for command in ["diagnose", "report"] {
        let outcome = folder.run(&[command, "runs/circles-001"]);
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("observations.layers.parquet"), "{}", outcome.stderr);
    }
}

#[test]
fn a_recorded_run_has_everything_to_be_seen() {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.digest(&["circles.toml"]);
    let outcome = folder.run(&["diagnose", "runs/circles-001", "--json"]);
    assert_eq!(
        outcome.stderr.lines().next().unwrap_or_default(),
        "runs/circles-001: 32 steps in 8 epochs, with the loss, the metric, gradients, weights, \
         outputs, a validation split, the model and its task"
    );
    let last = outcome.events().pop().unwrap();
    assert_eq!(last["event"], "diagnosis");
    assert_eq!(last["path"], "runs/circles-001");
    assert_eq!((&last["steps"], &last["unit"]), (&32.into(), &"step".into()));
    assert_eq!(last["not_observable"], serde_json::json!([]));
    let problems = last["problems"].as_array().unwrap().len();
    assert_eq!(outcome.code, Some(i32::from(problems > 0)));
}

#[test]
fn a_file_without_a_loss_says_what_it_has_and_what_to_do() {
    assert_snapshot!(complaint("time,quality\n1,2\n", &["history.csv"]));
}

#[test]
fn wrong_input_is_explained() {
    assert_snapshot!("wrong_path", complaint(HISTORY, &["nowhere.csv"]));
    assert_snapshot!("wrong_folder", complaint(HISTORY, &["."]));
    for (name, arguments) in [
        ("wrong_value", ["--set", "diagnose.theta=high"]),
        ("wrong_fact", ["--set", "facts.task=ternary"]),
        ("wrong_key", ["--set", "theta=1"]),
        ("wrong_column", ["--map", "loss=cost"]),
        ("wrong_role", ["--map", "cost=loss"]),
    ] {
        let arguments = [&["history.csv"][..], &arguments].concat();
        assert_snapshot!(name, complaint(HISTORY, &arguments));
    }
}

#[test]
fn several_paths_are_diagnosed_and_one_that_is_wrong_does_not_stop_the_others() {
    let folder = Folder::with("history.csv", HISTORY);
    folder.write("nan.csv", "epoch,loss\n0,nan\n1,nan\n");
    let outcome = folder.run(&["diagnose", "history.csv", "nan.csv", "--json"]);
    assert_eq!(outcome.code, Some(1));
    let events = outcome.events();
    let found = |event: &&serde_json::Value| event["event"] == "diagnosis";
    let results: Vec<_> = events.iter().filter(found).collect();
    assert_eq!(results[0]["too_short"], true);
    assert_eq!(results[1]["problems"], serde_json::json!(["non_finite_loss"]));
    let outcome = folder.run(&["diagnose", "nowhere.csv", "nan.csv"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stdout.contains("non-finite loss"), "{}", outcome.stdout);
}

#[test]
fn an_unknown_threshold_lists_the_known_ones() {
    let complaint = complaint(HISTORY, &["history.csv", "--set", "diagnose.thetta=1"]);
    assert!(complaint.contains("unknown key `diagnose.thetta`; expected one of diagnose.beta_1,"));
}

#[test]
fn a_damaged_event_file_is_named_with_the_place() {
    let folder = Folder::with("log/events.out.tfevents.1", "this is not one at all");
    let outcome = folder.run(&["diagnose", "log"]);
    assert_snapshot!(outcome.shown());
}
