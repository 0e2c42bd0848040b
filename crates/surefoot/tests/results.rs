//! `surefoot init`, `predict` and `export` of a run: from a table to predictions.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use support::{CIRCLES, Folder, Outcome};

/// Patients: a number, a ward, an age with gaps, and an illness that depends on both.
fn patients() -> String {
    let rows = (0..120_u32).map(|row| {
        let ward = ["north", "south", "west"][(row % 3) as usize];
        let age = row * 37 % 90;
        let ill = if age > 45 && ward != "west" { "yes" } else { "no" };
        let age = if row % 20 == 7 { String::new() } else { age.to_string() };
        format!("{row},{ward},{age},{ill}\n")
    });
    format!("id,ward,age,ill\n{}", rows.collect::<String>())
}

/// A folder with a table, the plan of it and a run.
fn trained() -> Folder {
    let folder = Folder::with("patients.csv", &patients());
    succeeded(folder.run(&["init", "patients.csv"]));
    let train = ["train", "plan.toml", "--no-repair", "--set", "training.epochs=30"];
    succeeded(folder.run(&train));
    folder
}

fn succeeded(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    outcome
}

/// The message of wrong input.
fn complaint(folder: &Folder, arguments: &[&str]) -> String {
    let outcome = folder.run(arguments);
    assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout, "");
    outcome.stderr
}

#[test]
fn init_drafts_a_plan_and_prints_its_choices() {
    let folder = Folder::with("patients.csv", &patients());
    assert_snapshot!("init", succeeded(folder.run(&["init", "patients.csv"])).shown());
    let plan = std::fs::read_to_string(folder.path().join("plan.toml")).unwrap();
    assert_snapshot!("init_plan", plan);
    let arguments = ["init", "patients.csv", "--target", "age", "-o", "age.toml", "--json"];
    let outcome = succeeded(folder.run(&arguments));
    let event = &outcome.events()[0];
    assert_eq!(event["target"], "age");
    assert_eq!(event["task"], "regression");
    assert_eq!(event["excluded"][0]["column"], "id");
}

#[test]
fn init_rejects_wrong_input_and_overwrites_nothing() {
    let folder = Folder::with("patients.csv", &patients());
    folder.write("plan.toml", "mine");
    folder.write("empty.csv", "");
    let messages = [
        complaint(&folder, &["init", "patients.csv"]),
        complaint(&folder, &["init", "missing.csv", "-o", "x.toml"]),
        complaint(&folder, &["init", "empty.csv", "-o", "x.toml"]),
        complaint(&folder, &["init", "patients.csv", "-o", "x.toml", "--target", "size"]),
    ];
    assert_snapshot!(messages.concat());
    assert_eq!(std::fs::read_to_string(folder.path().join("plan.toml")).unwrap(), "mine");
    assert!(!folder.path().join("x.toml").exists());
}

#[test]
fn predict_reads_columns_by_name_and_prints_every_row() {
    let folder = trained();
    // Another order, a gap, and no target.
    folder.write("new.csv", "age,id,ward\n80,1,south\n,2,north\n10,3,west\n80,4,west\n");
    let run = "runs/patients-001";
    let printed = succeeded(folder.run(&["predict", run, "new.csv"])).stdout;
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("class,p(no),p(yes)"));
    let classes: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(classes.len(), 4, "{printed}");
    assert_eq!((classes[0], classes[2]), ("yes", "no"), "{printed}");
    succeeded(folder.run(&["predict", run, "new.csv", "-o", "out.csv"]));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.csv")).unwrap(), printed);
    let events = succeeded(folder.run(&["predict", run, "new.csv", "--json"])).events();
    assert_eq!(events.len(), 5);
    assert_eq!(events[0]["class"], "yes");
    let sum: f64 =
        ["no", "yes"].iter().map(|c| events[0]["probabilities"][c].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    assert_eq!(events[4]["samples"], 4);
}

#[test]
fn predict_rejects_data_that_do_not_fit() {
    let folder = trained();
    folder.write("without.csv", "id,ward\n1,north\n");
    folder.write("unknown.csv", "ward,age\neast,30\n");
    folder.write("text.csv", "ward,age\nnorth,old\n");
    folder.write("header.csv", "ward,age\n");
    let run = "runs/patients-001";
    let mut messages = String::new();
    for file in ["without.csv", "unknown.csv", "text.csv", "header.csv", "missing.csv", "plan.toml"]
    {
        messages.push_str(&complaint(&folder, &["predict", run, file]));
    }
    messages.push_str(&complaint(&folder, &["predict", "runs", "unknown.csv"]));
    assert_snapshot!(messages);
}

#[test]
fn a_run_without_a_model_cannot_be_used() {
    let folder = Folder::with("circles.toml", CIRCLES);
    succeeded(folder.run(&["train", "circles.toml"]));
    std::fs::remove_file(folder.path().join("runs/circles-001/model.safetensors")).unwrap();
    for arguments in [
        ["predict", "runs/circles-001", "circles.toml"],
        ["export", "runs/circles-001", "model.py"],
        ["export", "runs/circles-001", "model.onnx"],
    ] {
        let message = complaint(&folder, &arguments);
        assert!(message.contains("has no delivered model"), "{message}");
    }
}

#[test]
fn a_run_is_exported_by_its_extension() {
    let folder = Folder::with("circles.toml", CIRCLES);
    succeeded(folder.run(&["train", "circles.toml"]));
    let run = "runs/circles-001";
    for (file, format, start) in [
        ("model.py", "pytorch", &b"\"\"\"PyTorch module"[..]),
        // The version of the format, then the producer.
        ("model.onnx", "onnx", b"\x08\x08\x12\x08surefoot"),
    ] {
        let outcome = succeeded(folder.run(&["export", run, file, "--json"]));
        assert_eq!(outcome.events()[0]["format"], format);
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        assert!(bytes.starts_with(start), "{file}");
    }
    let message = complaint(&folder, &["export", run, "model.pt"]);
    assert!(message.contains("pass a .py file for PyTorch, or .onnx"), "{message}");
}
