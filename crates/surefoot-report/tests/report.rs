//! Pages of complete records.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use std::path::Path;
use support::{PLAN, dying, exploded, healthy, repaired};
use surefoot_diagnose::{Finding, Problem, Split};
use surefoot_record::{Event, Record, Status};
use surefoot_report::report;

fn page(dir: &Path) -> String {
    report(&Record::open(dir).unwrap()).unwrap()
}

#[test]
fn the_page_of_a_repaired_run_is_complete() {
    let runs = tempfile::tempdir().unwrap();
    let page = page(&repaired(runs.path()));
    for part in [
        "Training was stopped at step 120 of 1,600 because most ReLU units were dead (dying ReLU).",
        "Three remedies were tried; attempt 2 (activation) succeeded: Use leaky ReLU instead of ReLU in all hidden layers.",
        "Accuracy on the validation split improved from 49.8% to 97.1%.",
        "delivered: attempt 2",
        "since step 81, confirmed at step 120",
        "id=\"heat-given-title\"",
        "id=\"heat-delivered-title\"",
        "in attempt 2",
        "/attempts/02-001/plan.toml",
        "0000000000000000000000000000feed",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn pages_are_deterministic() {
    let runs = tempfile::tempdir().unwrap();
    let dir = repaired(runs.path());
    assert_eq!(page(&dir), page(&dir));
}

#[test]
fn recorded_text_is_escaped() {
    let runs = tempfile::tempdir().unwrap();
    let evil = "</title><script>alert(1)</script><img src=\"https://example.org/x\" onerror='x'>";
    let mut script = healthy();
    script.layers[2] = evil.to_owned();
    let plan = format!("name = '{evil}'\nseed = \"{evil}\"\n{PLAN}");
    let mut recorder = script.begin(runs.path(), evil, &plan);
    let dir = recorder.dir().to_owned();
    script.record(&mut recorder);
    let finding = Finding::new(Problem::DYING_RELU, 5, evil)
        .within(vec![evil.to_owned()])
        .with(evil, 1.0, None);
    recorder.event(&Event::Finding(finding)).unwrap();
    let text = serde_json::json!({
        "event": "attempt", "step": 5, "number": 1, "parent": 0, "problem": evil,
        "remedies": [evil], "change": evil, "diff": format!("+{evil}\n-{evil}\n {evil}"),
        "run": format!("../{evil}"),
    });
    recorder.event(&Event::Other(text)).unwrap();
    let mut summary = script.summary(Status::Failed, 0.1, 0.2);
    summary.metric.name = evil.to_owned();
    recorder.finish(&summary).unwrap();
    let page = page(&dir);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for part in ["<script", "<img", "src=", "url(http", "@import"] {
        let raw = page.replace("src=&quot;", "");
        assert!(!raw.contains(part), "{part}");
    }
}

#[test]
fn a_killed_run_has_a_page() {
    let runs = tempfile::tempdir().unwrap();
    let script = dying();
    let mut recorder = script.begin(runs.path(), "killed", PLAN);
    script.record(&mut recorder);
    recorder.sync().unwrap();
    let page = page(recorder.dir());
    assert!(page.contains("The run is unfinished: it is recorded up to step 120 of 1,600"));
    assert!(page.contains("unfinished"));
}

#[test]
fn a_run_without_a_step_has_a_page() {
    let runs = tempfile::tempdir().unwrap();
    let recorder = healthy().begin(runs.path(), "new", PLAN);
    let page = page(recorder.dir());
    assert!(page.contains("No steps have been recorded yet."));
}

#[test]
fn a_missing_delivered_attempt_is_reported() {
    let runs = tempfile::tempdir().unwrap();
    let dir = repaired(runs.path());
    std::fs::remove_dir_all(dir.join("attempts")).unwrap();
    let page = page(&dir);
    assert!(page.contains("cannot be read, so its curves are missing"));
    assert!(page.contains("improved from 49.8% to 97.1%"));
}

#[test]
fn a_regression_without_a_validation_split_names_the_training_split() {
    let runs = tempfile::tempdir().unwrap();
    let mut script = healthy();
    script.metric_name = "r2";
    script.metric = |epoch| 0.9 - 50.0 * (-(epoch as f64)).exp();
    script.split = Split::Train;
    let page = page(&script.run(runs.path(), "friedman", Status::Normal));
    assert!(page.contains("R² on the training split (no validation split) is"));
    assert!(page.contains("Values below −1 are off the chart."));
}

#[test]
fn non_finite_values_are_shown() {
    let runs = tempfile::tempdir().unwrap();
    let page = page(&exploded(runs.path()));
    assert!(page.contains("NaN or infinite"));
    assert!(page.contains("The axis is logarithmic."));
    assert!(!page.contains("NaN%") && !page.contains("\"NaN") && !page.contains("LNaN"));
}

#[test]
fn a_damaged_record_is_an_error() {
    let runs = tempfile::tempdir().unwrap();
    let dir = healthy().run(runs.path(), "x", Status::Normal);
    std::fs::write(dir.join("observations.steps.parquet"), "no table").unwrap();
    assert!(report(&Record::open(&dir).unwrap()).is_err());
}

#[test]
fn a_long_run_of_a_deep_model_has_a_small_page() {
    let runs = tempfile::tempdir().unwrap();
    let mut script = healthy();
    script.layers = (1..=34).map(|i| format!("conv2d_{i}")).collect();
    script.steps = 100_000;
    script.every = 10;
    let page = page(&script.run(runs.path(), "long", Status::Normal));
    assert!(page.len() < 200_000, "{}", page.len());
}
