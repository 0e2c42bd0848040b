//! `surefoot export`: a study for other programs.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use std::process::Command;
use support::Folder;
use support::search::searched;

fn read(folder: &Folder, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(file)).unwrap()
}

#[test]
fn the_extension_selects_the_format() {
    let folder = searched();
    let outcome = folder.run(&["export", "runs/numbers", "-o", "numbers.csv"]);
    assert_snapshot!(outcome.shown());
    let table = read(&folder, "numbers.csv");
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some(
            "number,state,value,rate,units,optimizer,momentum,reason,message,epochs,planned,seconds,\
             operations,attempts,run"
        )
    );
    assert!(lines.next().unwrap().starts_with("0,complete,0.9,"));
    assert!(table.contains("1,failed,,"), "{table}");

    for (file, begins) in [
        ("numbers.parquet", "PAR1"),
        ("numbers.jsonl", "{\"number\":0,"),
        ("numbers.log", "{\"directions\":[1],"),
    ] {
        let outcome = folder.run(&["export", "runs/numbers/study.db", "-o", file]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        assert!(bytes.starts_with(begins.as_bytes()), "{file}");
    }
}

#[test]
fn json_output_has_file_and_trials() {
    let folder = searched();
    let arguments = ["export", "runs/numbers", "-o", "x", "--format", "jsonl", "--json"];
    let outcome = folder.run(&arguments);
    assert_eq!(outcome.stdout, "{\"event\":\"export\",\"file\":\"x\",\"trials\":6}\n");
    assert_eq!(read(&folder, "x").lines().count(), 6);
}

#[test]
fn invalid_stores_and_formats_are_rejected() {
    let folder = Folder::with("text.db", "This is a text, and no database.\n");
    let shown = [
        &["export", "elsewhere", "-o", "x.csv"][..],
        &["export", "text.db", "-o", "x.csv"],
        &["export", "text.db", "-o", "x"],
        &["export", "text.db", "-o", "x", "--format", "xml"],
        &["export", "text.db", "-o", "elsewhere/x.csv"],
    ]
    .map(|arguments| folder.run(arguments).shown());
    assert_snapshot!(shown.join("\n"));
    assert!(!folder.path().join("x.csv").exists());
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["export", "--help"]).shown());
}

/// Opens the journal, and says what Optuna finds in it.
const OPEN: &str = r#"
import json, math, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

study = optuna.load_study(study_name="numbers", storage=JournalStorage(JournalFileBackend("numbers.log")))
trials = study.get_trials()
assert study.direction == optuna.study.StudyDirection.MINIMIZE
assert [t.state.name for t in trials] == ["COMPLETE", "FAIL", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
assert study.best_trial.number == 5 and study.best_value == 0.4
assert trials[5].intermediate_values == {1: 0.9, 2: 0.4}
assert math.isnan(trials[2].intermediate_values[1])
assert trials[2].user_attrs["surefoot:value"] == "NaN"
assert "no disk" in trials[1].user_attrs["surefoot:message"]

rows = [json.loads(line) for line in open("numbers.jsonl")]
for trial, row in zip(trials, rows, strict=True):
    trial._validate()
    assert trial.params == row["parameters"], (trial.params, row["parameters"])
kinds = {name: repr(d) for trial in trials for name, d in trial.distributions.items()}
assert kinds["rate"] == "FloatDistribution(high=10.0, log=True, low=0.001, step=None)", kinds
assert kinds["units"] == "IntDistribution(high=64, log=False, low=2, step=1)", kinds
assert kinds["optimizer"] == "CategoricalDistribution(choices=('adam', 'sgd'))", kinds

# Optuna can go on with it.
study.optimize(lambda trial: trial.suggest_float("rate", 1e-3, 10.0, log=True), n_trials=1)
assert len(study.get_trials()) == 7
"#;

#[test]
#[ignore = "needs Optuna; ./test runs it"]
fn optuna_opens_and_continues_the_journal() {
    let folder = searched();
    for file in ["numbers.log", "numbers.jsonl"] {
        let outcome = folder.run(&["export", "runs/numbers", "-o", file]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(python);
    command.args(["-c", OPEN]).current_dir(folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn trials_can_go_to_stdout() {
    let folder = searched();
    let outcome = folder.run(&["export", "runs/numbers", "-o", "-", "--format", "csv"]);
    folder.run(&["export", "runs/numbers", "-o", "numbers.csv"]);
    assert_eq!(outcome.stdout, read(&folder, "numbers.csv"));
    assert!(!folder.path().join("-").exists());
}

#[test]
fn a_store_is_never_overwritten() {
    let folder = searched();
    let store = folder.path().join("runs/numbers/study.db");
    let before = std::fs::read(&store).unwrap();
    for arguments in
        [["export", "runs/numbers", "--format", "csv"].as_slice(), &["report", "runs/numbers"]]
    {
        let onto = ["-o", "runs/../runs/numbers/study.db"];
        let outcome = folder.run(&[arguments, &onto].concat());
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("is the store itself"), "{}", outcome.stderr);
    }
    assert_eq!(std::fs::read(&store).unwrap(), before);
}
