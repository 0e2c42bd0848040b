//! The page of whole records.
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
fn a_repaired_run_is_told_from_beginning_to_end() {
    let runs = tempfile::tempdir().unwrap();
    let page = page(&repaired(runs.path()));
    for part in [
        "The plan was stopped after step 120 of 1,600 because most ReLU units were dead (dying ReLU).",
        "Three remedies were tried; attempt 2 (S2) worked: Use leaky ReLU instead of ReLU in all hidden layers.",
        "Accuracy on the validation split went from 49.8% to 97.1%.",
        "delivered: attempt 2",
        "since step 81, certain at step 120",
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
fn the_same_record_gives_the_same_bytes() {
    let runs = tempfile::tempdir().unwrap();
    let dir = repaired(runs.path());
    assert_eq!(page(&dir), page(&dir));
}

#[test]
fn nothing_that_is_recorded_can_run_or_load() {
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
fn a_run_that_was_killed_has_a_page() {
    let runs = tempfile::tempdir().unwrap();
    let script = dying();
    let mut recorder = script.begin(runs.path(), "killed", PLAN);
    script.record(&mut recorder);
    recorder.sync().unwrap();
    let page = page(recorder.dir());
    assert!(page.contains("The run has not ended: it is recorded up to step 120 of 1,600"));
    assert!(page.contains("not finished"));
}

#[test]
fn a_run_without_a_step_has_a_page() {
    let runs = tempfile::tempdir().unwrap();
    let recorder = healthy().begin(runs.path(), "new", PLAN);
    let page = page(recorder.dir());
    assert!(page.contains("no step of it is recorded yet"));
}

#[test]
fn a_delivered_attempt_that_is_gone_is_said_to_be() {
    let runs = tempfile::tempdir().unwrap();
    let dir = repaired(runs.path());
    std::fs::remove_dir_all(dir.join("attempts")).unwrap();
    let page = page(&dir);
    assert!(page.contains("cannot be read any more"));
    assert!(page.contains("went from 49.8% to 97.1%"));
}

#[test]
fn a_regression_without_a_validation_split_names_what_it_has() {
    let runs = tempfile::tempdir().unwrap();
    let mut script = healthy();
    script.metric_name = "r2";
    script.metric = |epoch| 0.9 - 50.0 * (-(epoch as f64)).exp();
    script.split = Split::Train;
    let page = page(&script.run(runs.path(), "friedman", Status::Normal));
    assert!(page.contains("R² on the training split (there is no validation split) is"));
    assert!(page.contains("What is below −1 is off the chart."));
}

#[test]
fn numbers_that_are_none_are_shown_as_such() {
    let runs = tempfile::tempdir().unwrap();
    let page = page(&exploded(runs.path()));
    assert!(page.contains("not a number"));
    assert!(page.contains("The axis goes by powers of ten."));
    assert!(!page.contains("NaN%") && !page.contains("\"NaN") && !page.contains("LNaN"));
}

#[test]
fn a_damaged_record_is_refused() {
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
