//! Recorded runs are repeated, compared and packed.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::{assert_snapshot, with_settings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::{BATCH_NORM, CIRCLES, FAULTY, Folder, KERAS_FILE, KERAS_PLAN, LONG, Outcome};

/// Fields that depend on time or on the machine.
const FILTERS: [(&str, &str); 3] = [
    (r"in \d[\d.]* s", "in [time]"),
    (r"[\d,]+ bytes", "[size] bytes"),
    (r"(?m)^note: recorded with \d+ workers .*\n", ""),
];

macro_rules! shown {
    ($name:expr, $text:expr) => {
        with_settings!({filters => FILTERS}, { assert_snapshot!($name, $text) })
    };
}

/// A run of 32 steps with checkpoints at every tenth.
fn circles() -> Folder {
    let folder = Folder::with("circles.toml", CIRCLES);
    train(&folder, &[]);
    folder
}

fn train(folder: &Folder, more: &[&str]) {
    let every = ["circles.toml", "--set", "training.checkpoint_every=10"];
    folder.digest(&[&every, more].concat());
}

/// The last line of JSON.
fn result(outcome: &Outcome) -> Value {
    let last = outcome.events().pop();
    last.unwrap_or_else(|| panic!("{}", outcome.stderr))
}

/// Changes the record of a step: the digest, and one part of it.
fn change_digest(run: &Path, step: u64, part: usize) {
    let header = std::fs::read(run.join("header.json")).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let parts = header["digest_parts"].as_array().unwrap().len();
    let path = run.join("digests.bin");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = (24 + 8 * parts) * usize::try_from(step).unwrap();
    bytes[at + 8] ^= 1;
    bytes[at + 24 + 8 * part] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// Everything that is in a directory, to see that nothing was changed.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), std::fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_replay_agrees_and_writes_nothing() {
    let folder = circles();
    let before = contents(folder.path());
    let outcome = folder.run(&["replay", "runs/circles-001/"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    shown!("replay_agrees", outcome.shown());
    for workers in ["1", "2", "3", "8"] {
        let outcome = folder.run(&["replay", "runs/circles-001", "--workers", workers, "--json"]);
        let result = result(&outcome);
        assert_eq!(result["agrees"], true, "{}", outcome.stdout);
        assert_eq!(result["checked"], 33);
    }
    assert!(contents(folder.path()) == before);
}

/// Faults that a replay reports after `change` to a file of a run.
fn faults(file: &str, change: impl Fn(&mut Vec<u8>)) -> (Option<i32>, String) {
    let folder = circles();
    let path = folder.path().join("runs/circles-001").join(file);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let outcome = folder.run(&["replay", "runs/circles-001", "--json"]);
    (outcome.code, result(&outcome)["faults"].to_string())
}

#[test]
fn missing_and_extra_digests_are_faults() {
    let entry = |bytes: &[u8]| bytes.len() / 33;
    let (code, text) = faults("digests.bin", |bytes| {
        let entry = entry(bytes);
        bytes.drain(7 * entry..8 * entry);
    });
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no entry for step 7"), "{text}");
    let (code, text) = faults("digests.bin", |bytes| bytes.push(0));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("1 bytes after its last valid entry"), "{text}");
}

#[test]
fn another_model_than_that_of_the_summary_is_a_fault() {
    let (code, text) = faults("model.safetensors", |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("model.safetensors does not have the digest"), "{text}");
}

#[test]
fn a_range_starts_at_the_nearest_checkpoint() {
    let folder = circles();
    let cases = [
        (&["--from", "25"][..], 20, 8),
        (&["--from", "30", "--to", "30"], 20, 1),
        (&["--from", "31"], 30, 2),
        (&["--from", "1", "--to", "5"], 0, 5),
        (&["--to", "0"], 0, 1),
    ];
    for (range, start, checked) in cases {
        let arguments = [&["replay", "runs/circles-001", "--json"], range].concat();
        let outcome = folder.run(&arguments);
        let result = result(&outcome);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(result["start"], start, "{range:?}");
        assert_eq!(result["checked"], checked, "{range:?}");
    }
}

#[test]
fn the_first_mismatch_names_step_and_layer() {
    let folder = circles();
    let run = folder.path().join("runs/circles-001");
    change_digest(&run, 17, 4);
    change_digest(&run, 21, 1);
    let outcome = folder.run(&["replay", "runs/circles-001"]);
    assert_eq!(outcome.code, Some(1));
    shown!("replay_disagrees", outcome.shown());
    let outcome = folder.run(&["replay", "runs/circles-001", "--json"]);
    let mismatch = &result(&outcome)["mismatch"];
    assert_eq!(mismatch["step"], 17);
    assert_eq!(mismatch["quantity"], "parameters");
    assert_eq!(mismatch["layer"], "dense_2");
    let later = folder.run(&["replay", "runs/circles-001", "--from", "21", "--json"]);
    assert_eq!(later.code, Some(1));
    assert_eq!(result(&later)["mismatch"]["quantity"], "loss");
    let before = folder.run(&["replay", "runs/circles-001", "--to", "16"]);
    assert_eq!(before.code, Some(0));
}

#[test]
fn a_foreign_checkpoint_is_detected() {
    let folder = circles();
    train(&folder, &["--seed", "9"]);
    let checkpoint = |run: &str| {
        let path = format!("runs/{run}/checkpoints/step-000000030.ckpt");
        folder.path().join(path)
    };
    std::fs::copy(checkpoint("circles-002"), checkpoint("circles-001")).unwrap();
    let outcome = folder.run(&["replay", "runs/circles-001", "--from", "32"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stdout.contains("the checkpoint at step 30 differs"), "{}", outcome.stdout);
}

#[test]
fn a_damaged_checkpoint_is_skipped() {
    let folder = circles();
    let path = "runs/circles-001/checkpoints/step-000000030.ckpt";
    std::fs::write(folder.path().join(path), "torn").unwrap();
    let outcome = folder.run(&["replay", "runs/circles-001", "--from", "32", "--json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(result(&outcome)["start"], 20);
    assert!(outcome.stderr.contains("is damaged"), "{}", outcome.stderr);
}

#[test]
fn attempts_can_be_replayed() {
    let folder = Folder::with("deep.toml", FAULTY);
    folder.digest(&["deep.toml"]);
    for run in ["runs/deep-001", "runs/deep-001/attempts/attempt-001"] {
        let outcome = folder.run(&["replay", run, "--json"]);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(result(&outcome)["checked"].as_u64().unwrap() > 5);
    }
}

#[test]
fn a_run_of_a_keras_file_is_repeated_from_its_weights() {
    let folder = Folder::with("plan.toml", &KERAS_PLAN.replace("1500", "20"));
    folder.run(&["train", "plan.toml", "--model", KERAS_FILE, "--no-repair"]);
    let outcome = folder.run(&["replay", "runs/plan-001"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn another_environment_is_reported_first() {
    let folder = circles();
    let path = folder.path().join("runs/circles-001/header.json");
    let header = std::fs::read_to_string(&path).unwrap();
    let header = header.replace("\"gemm\": \"0.19.0\"", "\"gemm\": \"0.18.0\"");
    std::fs::write(path, header).unwrap();
    let outcome = folder.run(&["replay", "runs/circles-001", "--json"]);
    assert_eq!(outcome.code, Some(0));
    let warning = "warning: gemm was 0.18.0 when the run was started and is 0.19.0";
    assert!(outcome.stderr.starts_with(warning), "{}", outcome.stderr);
    assert_eq!(outcome.events()[0]["event"], "environment");
}

const TABLE: &str = r#"
[data]
source = { kind = "csv", path = "table.csv" }
task = "binary"
[[model]]
layer = "dense"
units = 1
activation = "sigmoid"
[training]
epochs = 3
"#;

fn rows(count: usize) -> String {
    let rows = (0..count).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 2));
    format!("a,b,y\n{}", rows.collect::<String>())
}

/// A run on a table, and another on the same that has changed since.
fn tables() -> Folder {
    let folder = Folder::with("table.toml", TABLE);
    folder.write("table.csv", &rows(40));
    folder.run(&["train", "table.toml", "--no-repair"]);
    folder
}

#[test]
fn changed_and_moved_data_have_different_errors() {
    let folder = tables();
    folder.write("table.csv", &rows(42));
    let changed = folder.run(&["replay", "runs/table-001"]);
    assert_eq!(changed.code, Some(2));
    assert!(changed.stderr.contains("the data differ from those"), "{}", changed.stderr);

    folder.write("moved/table.csv", &rows(40));
    std::fs::remove_file(folder.path().join("table.csv")).unwrap();
    let lost = folder.run(&["replay", "runs/table-001"]);
    assert_eq!(lost.code, Some(2));
    assert!(lost.stderr.contains("--base DIR"), "{}", lost.stderr);
    let found = folder.run(&["replay", "runs/table-001", "--base", "moved"]);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
}

#[test]
fn wrong_input_is_named() {
    let folder = circles();
    folder.write("empty/nothing.txt", "");
    folder.write("empty.capsule", "");
    let complaint = |arguments: &[&str]| {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.stdout);
        assert_eq!(outcome.stdout, "");
        outcome.stderr
    };
    let run = "runs/circles-001";
    let mut all = String::new();
    for arguments in [
        &["replay", "nowhere"][..],
        &["replay", "empty"],
        &["replay", run, "--to", "33"],
        &["replay", run, "--from", "9", "--to", "3"],
        &["replay", "empty.capsule"],
        &["replay", "circles.toml"],
        &["replay", "circles.toml", "--from", "3"],
        &["capsule", run],
        &["capsule", run, "--step", "0"],
        &["capsule", run, "--step", "33"],
        &["capsule", run, "--step", "3", "-o", "nowhere/x.capsule"],
        &["compare", run, "nowhere"],
    ] {
        all.push_str(&format!("$ surefoot {}\n", arguments.join(" ")));
        all.push_str(&complaint(arguments));
    }
    let digests = folder.path().join(run).join("digests.bin");
    let whole = std::fs::read(&digests).unwrap();
    std::fs::write(&digests, &whole[..whole.len() / 2]).unwrap();
    all.push_str(&format!("$ truncated digests\n{}", complaint(&["replay", run])));
    let header = folder.path().join(run).join("header.json");
    let text = std::fs::read_to_string(&header).unwrap();
    std::fs::write(&header, text.replace("\"format\": 2", "\"format\": 9")).unwrap();
    all.push_str(&format!("$ newer\n{}", complaint(&["compare", run, run])));
    std::fs::write(&header, text.replace("\"format\": 2", "\"format\": 1")).unwrap();
    all.push_str(&format!("$ older\n{}", complaint(&["replay", run])));
    shown!("wrong_input", all);
}

#[test]
fn equal_runs_compare_as_equal() {
    let folder = circles();
    train(&folder, &["--workers", "1"]);
    let outcome = folder.run(&["compare", "runs/circles-001", "runs/circles-002"]);
    assert_eq!(outcome.code, Some(0));
    shown!("compare_equal", outcome.shown());
    let json = folder.run(&["compare", "runs/circles-001", "runs/circles-002", "--json"]);
    let result = result(&json);
    assert_eq!(result["equal"], true);
    assert!(result["divergence"].is_null());
    assert_eq!(result["steps"], serde_json::json!([32, 32]));
}

#[test]
fn the_first_divergence_names_step_and_layer() {
    let folder = circles();
    train(&folder, &["--set", "training.optimizer.learning_rate=0.03"]);
    train(&folder, &["--seed", "4"]);
    let compare = |other: &str| {
        let outcome = folder.run(&["compare", "runs/circles-001", other]);
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        outcome
    };
    shown!("compare_rate", compare("runs/circles-002").shown());
    let seed = compare("runs/circles-003").stdout;
    assert!(seed.contains("they diverge before the first step"), "{seed}");
    let json = folder.run(&["compare", "runs/circles-001", "runs/circles-002", "--json"]);
    let divergence = &result(&json)["divergence"];
    assert_eq!(divergence["step"], 1);
    assert_eq!(divergence["quantity"], "parameters");
    assert_eq!(divergence["layer"], "dense_1");
}

#[test]
fn a_late_divergence_is_found() {
    let folder = circles();
    let schedule = r#"training.schedule={decay="step",decay_steps=16,decay_rate=0.5}"#;
    train(&folder, &["--set", schedule]);
    let outcome = folder.run(&["compare", "runs/circles-001", "runs/circles-002", "--json"]);
    let result = result(&outcome);
    assert_eq!(result["divergence"]["step"], 17, "{}", outcome.stdout);
    assert_eq!(result["divergence"]["quantity"], "parameters");
    assert_eq!(result["divergence"]["observed"]["what"], "weight");
}

#[test]
fn layers_of_different_plans_are_matched_by_name() {
    let folder = circles();
    let dropout = CIRCLES.replacen(
        "[[model]]\nlayer = \"dense\"\nunits = 1",
        "[[model]]\nlayer = \"dropout\"\nrate = 0.5\n\n[[model]]\nlayer = \"dense\"\nunits = 1",
        1,
    );
    folder.write("circles.toml", &dropout);
    train(&folder, &[]);
    let outcome = folder.run(&["compare", "runs/circles-001", "runs/circles-002", "--json"]);
    let observed = &result(&outcome)["divergence"]["observed"];
    assert_eq!(observed["layer"], "dense_2", "{}", outcome.stdout);
    // The output is sixteen or more sigmoids, whose norm is at most the root of the batch.
    let norms = observed["norms"].as_array().unwrap();
    let largest = norms.iter().filter_map(Value::as_f64).fold(0.0, f64::max);
    assert!(largest <= 32_f64.sqrt(), "{observed}");
}

#[test]
fn a_shorter_run_is_compared_to_its_end() {
    let folder = circles();
    train(&folder, &["--set", "training.epochs=4"]);
    let outcome = folder.run(&["compare", "runs/circles-001", "runs/circles-002"]);
    assert_eq!(outcome.code, Some(0));
    shown!("compare_shorter", outcome.shown());
}

#[test]
fn comparing_runs_needs_no_data() {
    let folder = tables();
    folder.write("table.csv", &rows(42));
    folder.run(&["train", "table.toml", "--no-repair"]);
    std::fs::remove_file(folder.path().join("table.csv")).unwrap();
    let outcome = folder.run(&["compare", "runs/table-001", "runs/table-002"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    for part in ["the digest of the data differs", "they diverge at step 1", "batch"] {
        assert!(outcome.stdout.contains(part), "{}", outcome.stdout);
    }
}

#[test]
fn a_capsule_needs_neither_run_nor_data() {
    let folder = Folder::with("cnn.toml", BATCH_NORM);
    // 48 samples: the third batch of an epoch is short, and has shards that are smaller still.
    let short = ["--set", "training.batch_size=20"];
    folder.run(&[&["train", "cnn.toml", "--no-repair"], &short[..]].concat());
    for step in ["2", "6"] {
        let packed = folder.run(&["capsule", "runs/cnn-001", "--step", step, "-o", "x.capsule"]);
        assert_eq!(packed.code, Some(0), "{}", packed.stderr);
        let elsewhere = Folder::new();
        let file = elsewhere.path().join("x.capsule");
        std::fs::copy(folder.path().join("x.capsule"), &file).unwrap();
        for workers in ["1", "3"] {
            let repeat = ["replay", "x.capsule", "--json", "--workers", workers];
            let outcome = elsewhere.run(&repeat);
            assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
            let result = result(&outcome);
            assert_eq!(result["agrees"], true);
            assert_eq!(result["step"].to_string(), step);
            assert!(result["first_non_finite"].is_null());
            assert_eq!(result["layers"].as_array().unwrap().len(), 6);
        }
    }
    let outcome = folder.run(&["replay", "x.capsule"]);
    shown!("capsule", outcome.shown());
}

/// A learning rate so high that the second step is beyond all numbers.
fn exploding() -> Folder {
    let folder = Folder::with("circles.toml", CIRCLES);
    let mse = ["--set", "training.loss=mse", "--set", "model.1.activation=linear"];
    let rate = ["--set", r#"training.optimizer={name="sgd",learning_rate=1e30}"#];
    let train = ["train", "circles.toml", "--no-repair"];
    folder.run(&[&train[..], &mse, &rate].concat());
    folder
}

#[test]
fn the_first_nan_step_is_packed_by_default() {
    let folder = exploding();
    let packed = folder.run(&["capsule", "runs/circles-001", "--json"]);
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    let file = result(&packed)["file"].as_str().unwrap().to_owned();
    let outcome = folder.run(&["replay", &file, "--json"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let repeated = result(&outcome);
    let place = repeated["first_non_finite"]["place"].as_str();
    assert!(place.is_some_and(|it| it != "parameters_before"), "{repeated}");
    let shown = folder.run(&["replay", &file]);
    shown!("capsule_of_nan", shown.shown());
}

#[test]
fn damaged_and_foreign_capsules_are_rejected() {
    let folder = circles();
    folder.run(&["capsule", "runs/circles-001", "--step", "3", "-o", "x.capsule"]);
    let whole = std::fs::read(folder.path().join("x.capsule")).unwrap();
    let complaint = |bytes: &[u8]| {
        std::fs::write(folder.path().join("y.capsule"), bytes).unwrap();
        let outcome = folder.run(&["replay", "y.capsule"]);
        assert_eq!(outcome.code, Some(2));
        outcome.stderr
    };
    let mut torn = whole.clone();
    torn[whole.len() / 2] ^= 1;
    assert!(complaint(&torn).contains("y.capsule is damaged"));
    assert!(complaint(&whole[..100]).contains("y.capsule is damaged"));
}

#[cfg(unix)]
#[test]
fn a_replay_can_be_interrupted_and_runs_in_parallel() {
    let folder = Folder::with("long.toml", &LONG.replace("epochs = 150", "epochs = 600"));
    folder.digest(&["long.toml"]);
    let first = folder.start(&["replay", "runs/long-001", "--json"]);
    let second = folder.start(&["replay", "runs/long-001", "--workers", "1"]);
    // It listens once it has said that it begins.
    let mut first = first;
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(first.stdout.take().unwrap());
    while !line.contains("\"replaying\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut lines, &mut line).unwrap() > 0);
    }
    let id = first.id().to_string();
    let kill = std::process::Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.unwrap().success());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn an_unfinished_run_is_replayed_to_its_last_step() {
    let folder = Folder::with("long.toml", &LONG.replace("epochs = 150", "epochs = 100000"));
    let mut child = folder.start(&["train", "long.toml", "--no-repair", "--quiet"]);
    let digests = folder.path().join("runs/long-001/digests.bin");
    let begun = std::time::Instant::now();
    while std::fs::metadata(&digests).map_or(0, |file| file.len()) < 10_000 {
        assert!(begun.elapsed().as_secs() < 60, "no digests came");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let replay = ["replay", "runs/long-001", "--to", "60"];
    let going = folder.run(&replay);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(going.code, Some(0), "{}", going.stderr);
    assert!(going.stderr.contains("is not finished"), "{}", going.stderr);
    assert_eq!(folder.run(&replay).code, Some(0));
}

#[test]
fn help_has_every_option_and_examples() {
    let folder = Folder::new();
    for command in ["replay", "compare", "capsule"] {
        let outcome = folder.run(&[command, "--help"]);
        assert_eq!(outcome.code, Some(0));
        shown!(format!("help_{command}"), outcome.stdout);
    }
}
