//! `surefoot train`: what it prints, what it promises to programs, what it leaves behind.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use serde_json::Value;
use support::{BATCH_NORM, CIRCLES, Folder, KERAS_FILE, KERAS_PLAN, LONG, examples};

/// Removes from snapshots what differs from run to run or machine to machine.
macro_rules! stable {
    ($text:expr) => {
        insta::with_settings!({filters => vec![
            (r"[0-9a-f]{32}", "[digest]"),
            (r"\d+\.\d+ s\b", "[time]"),
            (r"\d+ workers?", "[workers]"),
            (r"every \d+ steps", "[rhythm]"),
            (r"\d+\.\d% \(epoch \d+\)", "[metric]"),
        ]}, { assert_snapshot!($text) })
    };
}

#[test]
fn help_has_every_option_and_examples() {
    let folder = Folder::new();
    assert_snapshot!("help", folder.run(&["--help"]).shown());
    assert_snapshot!("help_train", folder.run(&["train", "--help"]).shown());
}

#[test]
fn the_summary_is_printed() {
    let folder = Folder::with("circles.toml", CIRCLES);
    stable!(folder.run(&["train", "circles.toml"]).shown());
}

#[test]
fn a_dry_run_shows_the_model_and_leaves_nothing() {
    let folder = Folder::with("cnn.toml", BATCH_NORM);
    stable!(folder.run(&["train", "cnn.toml", "--dry-run"]).shown());
    let outcome = folder.run(&["train", "cnn.toml", "--dry-run", "--json", "--quiet"]);
    let outline = &outcome.events()[0];
    assert_eq!(outline["event"], "outline");
    assert_eq!(outline["layers"][0]["output_shape"], serde_json::json!([8, 8, 4]));
    assert_eq!(outcome.stderr, "");
    assert!(folder.runs().is_empty());
}

#[test]
fn the_last_line_of_json_is_the_summary_of_the_contract() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let outcome = folder.run(&["train", "circles.toml", "--json"]);
    assert_eq!(outcome.code, Some(0));
    let line = outcome.stdout.lines().last().unwrap();
    let mut rest = line;
    for key in [
        r#"{"event":"summary","status":"normal","problems":[],"remedies":[],"#,
        r#""metric":{"name":"accuracy","before":"#,
        r#","after":"#,
        r#"},"steps":32,"seconds":"#,
        r#","digest":""#,
        r#"","run":"runs/circles-001"}"#,
    ] {
        let (_, after) = rest.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
        rest = after;
    }
    let summary = outcome.summary();
    assert_eq!(summary["metric"]["before"], summary["metric"]["after"]);
    assert!(summary["metric"]["after"].as_f64().unwrap() > 0.5);
    let events = outcome.events();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(events[0]["run"], "runs/circles-001");
    let evaluations = events.iter().filter(|event| event["event"] == "evaluation");
    assert_eq!(evaluations.count(), 8);
    let recorded = folder.path().join("runs/circles-001/summary.json");
    assert_eq!(std::fs::read_to_string(recorded).unwrap().trim(), line);
}

#[test]
fn quiet_prints_nothing() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let outcome = folder.run(&["train", "circles.toml", "--quiet"]);
    assert_eq!((outcome.code, outcome.stdout, outcome.stderr), (Some(0), "".into(), "".into()));
    assert_eq!(folder.runs(), ["circles-001"]);
}

#[test]
fn a_run_directory_has_all_files_of_the_contract() {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.digest(&["circles.toml", "--set", "training.epochs=2"]);
    let run = folder.path().join("runs/circles-001");
    for name in [
        "plan.toml",
        "plan.final.toml",
        "observations.steps.parquet",
        "observations.layers.parquet",
        "events.jsonl",
        "digests.bin",
        "checkpoints",
        "model.safetensors",
        "summary.json",
    ] {
        assert!(run.join(name).exists(), "{name} is missing");
    }
    let plan = std::fs::read_to_string(run.join("plan.toml")).unwrap();
    assert_eq!(plan, CIRCLES.replace("epochs = 8", "epochs = 2"));
    let header = std::fs::read_to_string(run.join("header.json")).unwrap();
    let header: Value = serde_json::from_str(&header).unwrap();
    assert_eq!(header["observe_every"], 1);
    assert_eq!(header["layers"].as_array().unwrap().len(), 2);
}

#[test]
fn digests_depend_on_the_seed_only() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let first = folder.digest(&["circles.toml"]);
    assert_eq!(folder.digest(&["circles.toml"]), first);
    let other = folder.digest(&["circles.toml", "--seed", "4"]);
    assert_ne!(other, first);
    assert_eq!(folder.digest(&["circles.toml", "--set", "seed=4"]), other);
    let runs = ["circles-001", "circles-002", "circles-003", "circles-004"];
    assert_eq!(folder.runs(), runs);
}

#[test]
fn workers_do_not_change_the_digest() {
    for (plan, settings) in [(BATCH_NORM, &[][..]), (LONG, &["--set", "training.epochs=6"])] {
        let folder = Folder::with("plan.toml", plan);
        let digests = ["1", "2", "3", "4", "8"].map(|workers| {
            folder.digest(&[&["plan.toml", "--workers", workers], settings].concat())
        });
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    }
}

#[test]
fn a_nan_loss_is_a_problem_and_is_recorded() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let explode = "training.optimizer={ name = 'sgd', learning_rate = 1e30 }";
    let outcome = folder.run(&[
        "train",
        "circles.toml",
        "--json",
        "--no-repair",
        "--set",
        explode,
        "--set",
        "training.loss=mse",
        "--set",
        "model.1.activation=linear",
    ]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let summary = outcome.summary();
    assert_eq!((&summary["status"], &summary["steps"]), (&"problem".into(), &32.into()));
    assert!(folder.path().join("runs/circles-001/model.safetensors").exists());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let mut child = folder.start(&["train", "circles.toml", "--json"]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_to_stdout_is_reported() {
    let folder = Folder::with("circles.toml", CIRCLES);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = folder.command(&["train", "circles.toml"]);
    let child = command.stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot print"));
}

#[test]
fn every_example_trains_without_a_problem() {
    for plan in examples() {
        let folder = Folder::new();
        let plan = plan.to_str().unwrap();
        let outcome = folder.run(&["train", plan, "--json"]);
        let summary = outcome.summary();
        assert_eq!(summary["status"], "normal", "{plan}: {}", outcome.stderr);
        assert_eq!(summary["problems"], serde_json::json!([]));
        assert!(summary["metric"]["after"].as_f64().unwrap() > 0.95, "{plan}");
    }
}

#[test]
fn a_keras_file_provides_layers_and_weights() {
    let folder = Folder::with("plan.toml", KERAS_PLAN);
    let train = ["plan.toml", "--model", KERAS_FILE, "--no-repair"];
    let first = folder.digest(&train);
    assert_eq!(folder.digest(&train), first);
    let run = folder.path().join("runs/plan-001");
    let plan = std::fs::read_to_string(run.join("plan.toml")).unwrap();
    assert!(plan.contains("layer = \"dense\""), "{plan}");
    assert!(run.join("initial.h5").exists());
    // The weights matter: the recorded plan alone starts from random ones.
    let plan = ["runs/plan-001/plan.toml", "--no-repair"];
    assert_ne!(folder.digest(&plan), first);
}

#[test]
fn a_keras_model_must_fit_the_data() {
    let folder = Folder::with("plan.toml", KERAS_PLAN);
    let wrong = ["train", "plan.toml", "--model", KERAS_FILE, "--set", "data.source.features=5"];
    let outcome = folder.run(&wrong);
    assert_snapshot!(outcome.shown());
    assert!(folder.runs().is_empty());
}

#[test]
fn help_is_also_a_command() {
    let folder = Folder::new();
    for (command, option) in
        [(&["help"][..], &["--help"][..]), (&["help", "train"], &["train", "--help"])]
    {
        assert_eq!(folder.run(command).stdout, folder.run(option).stdout);
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = folder.run(&["completions", shell]);
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.stdout.contains("dry-run"), "{shell}: {}", outcome.stdout);
    }
}
