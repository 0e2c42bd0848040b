//! Wrong input: exit code 2, one clear message, nothing left behind.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use support::{CIRCLES, Folder};

const CSV_PLAN: &str = r#"name = "table"

[data]
source = { kind = "csv", path = "table.csv" }
task = "binary"

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 2
"#;

/// Message of a command about wrong input; fails unless it leaves no run behind.
fn complaint(folder: &Folder, arguments: &[&str]) -> String {
    let outcome = folder.run(&[&["train"], arguments].concat());
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout, "");
    assert!(!folder.path().join("runs").exists(), "a run was left behind");
    // Where the folder is differs from test to test.
    let here = format!("{}/", folder.path().display());
    outcome.stderr.replace(&here, "")
}

fn complaint_about_table(table: &str) -> String {
    let folder = Folder::with("table.toml", CSV_PLAN);
    folder.write("table.csv", table);
    complaint(&folder, &["table.toml"])
}

fn complaint_about(change: impl Fn(&str) -> String, arguments: &[&str]) -> String {
    let folder = Folder::with("circles.toml", &change(CIRCLES));
    complaint(&folder, &[&["circles.toml"], arguments].concat())
}

fn as_it_is(plan: &str) -> String {
    plan.to_owned()
}

#[test]
fn a_wrong_key_is_shown_with_its_line() {
    assert_snapshot!(complaint_about(|plan| plan.replace("units = 8", "unit = 8"), &[]));
}

#[test]
fn a_wrong_shape_is_shown_with_its_line() {
    assert_snapshot!(complaint_about(
        |plan| plan.replace("\"dense\"\nunits = 8", "\"conv2d\"\nfilters = 8\nkernel_size = 3"),
        &[]
    ));
}

#[test]
fn an_output_that_does_not_fit_the_loss_is_shown_with_its_line() {
    let loss = "training.loss=sparse_categorical_crossentropy";
    assert_snapshot!(complaint_about(as_it_is, &["--set", loss]));
}

#[test]
fn a_runs_directory_that_cannot_be_written_is_wrong_input() {
    assert_snapshot!(complaint_about(as_it_is, &["--runs", "circles.toml/runs"]));
}

#[test]
fn a_model_larger_than_memory_is_named_in_bytes() {
    let large = ["--set", "model.0.units=10000000000000"];
    let error = complaint_about(as_it_is, &large);
    assert!(error.contains("the model and a batch need 3520000000000280"), "{error}");
    assert!(error.contains(" bytes of memory, and "), "{error}");
    // A dry run shows the needs first.
    let folder = Folder::with("circles.toml", CIRCLES);
    let dry = ["train", "circles.toml", "--dry-run", "--json"];
    let outcome = folder.run(&[&dry[..], &large].concat());
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let memory = &outcome.events()[0]["memory"];
    assert!(memory["model"].as_u64() > Some(1 << 40), "{memory}");
    assert!(memory["total"].as_u64() > memory["model"].as_u64(), "{memory}");
}

#[test]
fn a_wrong_setting_is_named() {
    assert_snapshot!(complaint_about(as_it_is, &["--set", "training.epoch=3"]));
}

#[test]
fn a_missing_plan_is_named() {
    assert_snapshot!(complaint(&Folder::new(), &["nowhere.toml"]));
}

#[test]
fn a_missing_data_file_is_named() {
    assert_snapshot!(complaint(&Folder::with("table.toml", CSV_PLAN), &["table.toml"]));
}

#[test]
fn nan_in_a_cell_is_shown_with_its_place() {
    let folder = Folder::with("table.toml", CSV_PLAN);
    folder.write("table.csv", "a,b,y\n1,2,0\n3,NaN,1\n5,6,0\n");
    let refusing = ["table.toml", "--set", "data.missing=refuse"];
    assert_snapshot!(complaint(&folder, &refusing));
}

#[test]
fn a_file_of_one_line_is_too_short() {
    assert_snapshot!(complaint_about_table("a,b,y\n"));
}

#[test]
fn a_file_of_one_sample_is_too_short() {
    assert_snapshot!(complaint_about_table("a,b,y\n1,2,0\n"));
}

#[test]
fn an_empty_file_is_too_short() {
    assert_snapshot!(complaint_about_table(""));
}

#[test]
fn too_few_symbols_are_shown_with_their_line() {
    let folder = Folder::with(
        "copy.toml",
        r#"
[data]
source = { kind = "copy", samples = 40, length = 4, symbols = 6 }

[[model]]
layer = "embedding"
input_dim = 4
output_dim = 3

[[model]]
layer = "flatten"

[[model]]
layer = "dense"
units = 6
activation = "softmax"

[training]
epochs = 1
"#,
    );
    assert_snapshot!(complaint(&folder, &["copy.toml"]));
}

#[test]
fn a_model_that_learns_nothing_is_refused() {
    assert_snapshot!(complaint_about(
        |plan| {
            let (head, _) = plan.split_once("[[model]]").unwrap();
            let (_, tail) = plan.split_once("[training]").unwrap();
            let flatten = "[[model]]\nlayer = \"activation\"\nactivation = \"sigmoid\"\n";
            format!("{head}{flatten}\n[training]{tail}")
        },
        &["--set", "training.loss=categorical_crossentropy"]
    ));
}

#[test]
fn a_file_that_is_no_keras_model_is_refused() {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.write("model.h5", "not a model");
    assert_snapshot!(complaint(&folder, &["circles.toml", "--model", "model.h5"]));
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_device_that_is_not_there_is_refused() {
    assert_snapshot!(complaint_about(as_it_is, &["--device", "cuda:1"]));
}

#[test]
fn wrong_usage_is_explained() {
    let folder = Folder::new();
    assert_snapshot!("usage_no_plan", complaint(&folder, &[]));
    assert_snapshot!("usage_set", complaint(&folder, &["x.toml", "--set", "epochs"]));
    assert_snapshot!("usage_device", complaint(&folder, &["x.toml", "--device", "gpu"]));
    assert_snapshot!("usage_workers", complaint(&folder, &["x.toml", "--workers", "0"]));
}

#[test]
fn what_is_no_run_cannot_be_resumed() {
    let folder = Folder::new();
    assert_snapshot!(complaint(&folder, &["--resume", "elsewhere"]));
}
