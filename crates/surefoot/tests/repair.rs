//! `surefoot train` on plans with a fault: what it says, what it does, what it leaves behind.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::{CIRCLES, FAULTY, Folder, KERAS_FILE, Outcome};

/// Removes from snapshots what differs from machine to machine.
macro_rules! stable {
    ($text:expr) => {
        insta::with_settings!({filters => vec![
            (r"[0-9a-f]{32}", "[digest]"),
            (r"\d+\.\d+ s\b", "[time]"),
            (r"\d+\.\d%", "[metric]"),
            (r"\d\.\de-\d+", "[number]"),
            (r"epoch \d+", "[epoch]"),
            (r"[\d,]+ steps", "[steps]"),
        ]}, { assert_snapshot!($text) })
    };
}

/// One remedy at a time, of which the first repairs it.
const ONE: [&str; 2] = ["--set", "repair.parallel=1"];

/// A remedy that does not help, and no other.
const USELESS: [&str; 6] = [
    "--set",
    "repair.order=['batch_norm']",
    "--set",
    "repair.attempts=1",
    "--set",
    "training.optimizer={name='adam',learning_rate=1e-9}",
];

fn train(folder: &Folder, arguments: &[&str]) -> Outcome {
    folder.run(&[&["train", "deep.toml"], arguments].concat())
}

fn faulty() -> Folder {
    Folder::with("deep.toml", FAULTY)
}

/// The kinds of the events that a run recorded.
fn recorded(folder: &Folder, run: &str) -> Vec<Value> {
    let path = folder.path().join("runs").join(run).join("events.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let events = events.iter();
    events.filter(|event| event["event"] == kind).collect()
}

#[test]
fn a_repair_prints_findings_attempts_and_summary() {
    stable!(train(&faulty(), &ONE).shown());
}

#[test]
fn no_repair_reports_problems_only() {
    let folder = faulty();
    stable!(train(&folder, &["--no-repair"]).shown());
    assert!(!folder.path().join("runs/deep-001/attempts").exists());
}

#[test]
fn a_run_that_cannot_be_repaired_has_failed() {
    let outcome = train(&faulty(), &USELESS);
    assert_eq!(outcome.code, Some(1));
    stable!(outcome.shown());
}

#[test]
fn quiet_prints_nothing_of_a_repair() {
    let outcome = train(&faulty(), &["--quiet"]);
    let said = (outcome.stdout.as_str(), outcome.stderr.as_str());
    assert_eq!((outcome.code, said), (Some(0), ("", "")));
}

#[test]
fn json_events_match_the_record() {
    let folder = faulty();
    let outcome = train(&folder, &[&["--json"][..], &ONE].concat());
    let told = outcome.events();
    let kinds = ["finding", "attempt", "stopped", "outcome", "delivered", "summary"];
    let mut order: Vec<&str> = told.iter().map(|e| e["event"].as_str().unwrap()).collect();
    order.retain(|kind| kinds.contains(kind));
    order.dedup();
    assert_eq!(order, kinds);
    let recorded = recorded(&folder, "deep-001");
    for kind in &kinds[..5] {
        assert_eq!(of_kind(&told, kind), of_kind(&recorded, kind));
    }
    let summary = outcome.summary();
    assert_eq!(summary["status"], "repaired");
    assert_eq!(summary["problems"], json!(["vanishing_gradient"]));
    assert_eq!(summary["remedies"], json!(["activation"]));
    let metric = &summary["metric"];
    assert!(metric["before"].as_f64().unwrap() < 0.6, "{metric}");
    assert!(metric["after"].as_f64().unwrap() > 0.95, "{metric}");
    let outcomes = of_kind(&recorded, "outcome");
    let tried: u64 = outcomes.iter().map(|o| o["steps"].as_u64().unwrap()).sum();
    let stopped = of_kind(&recorded, "stopped")[0]["step"].as_u64().unwrap();
    assert_eq!(summary["steps"], stopped + tried);
}

#[test]
fn an_attempt_is_a_run_that_can_be_read_and_trained_again() {
    let folder = faulty();
    let digest = folder.digest(&["deep.toml"]);
    let run = folder.path().join("runs/deep-001");
    let events = recorded(&folder, "deep-001");
    let delivered = of_kind(&events, "delivered")[0]["attempt"].as_u64().unwrap();
    let attempt = run.join(format!("attempts/attempt-{delivered:03}"));
    for name in ["plan.final.toml", "model.safetensors"] {
        let read = |dir: &std::path::Path| std::fs::read(dir.join(name)).unwrap();
        assert!(read(&run) == read(&attempt), "{name} differs");
    }
    let plan = attempt.join("plan.toml");
    let attempt = attempt.to_str().unwrap();
    assert_eq!(folder.digest(&[plan.to_str().unwrap()]), digest);
    assert_eq!(folder.run(&["diagnose", attempt]).code, Some(0));
    assert_eq!(folder.run(&["report", attempt]).code, Some(0));
    let page = folder.run(&["report", "runs/deep-001", "-o", "-"]).stdout;
    assert!(page.contains("One remedy was tried") || page.contains("remedies were tried"));
}

#[test]
fn diagnosing_the_record_finds_the_live_findings() {
    let folder = faulty();
    let settings = ["--set", "diagnose.beta_2=0.00001"];
    let live = train(&folder, &[&["--json"][..], &settings].concat());
    let again = folder.run(&["diagnose", "runs/deep-001", "--json"]);
    let (live, again) = (live.events(), again.events());
    assert!(!of_kind(&live, "finding").is_empty());
    assert_eq!(of_kind(&live, "finding"), of_kind(&again, "finding"));
}

#[test]
fn the_plan_as_given_is_delivered_if_nothing_is_better() {
    let folder = faulty();
    let outcome = train(&folder, &[&["--json"][..], &USELESS].concat());
    let summary = outcome.summary();
    assert_eq!(summary["status"], "failed");
    assert_eq!(summary["problems"][0], "vanishing_gradient");
    let (before, after) = (&summary["metric"]["before"], &summary["metric"]["after"]);
    assert!(after.as_f64() >= before.as_f64(), "{summary}");
    let delivered = of_kind(&outcome.events(), "delivered")[0]["attempt"].clone();
    assert_eq!(delivered == 0, summary["remedies"] == json!([]));
}

#[test]
fn workers_do_not_change_a_repair() {
    let folder = faulty();
    let digests = ["1", "2", "5"].map(|n| folder.digest(&["deep.toml", "--workers", n]));
    assert!(digests.iter().all(|d| *d == digests[0]), "{digests:?}");
}

#[test]
fn resuming_a_finished_repair_prints_its_summary() {
    let folder = faulty();
    let first = train(&folder, &[]).stdout;
    let again = folder.run(&["train", "--resume", "runs/deep-001"]).stdout;
    assert!(again.contains("(epoch "), "{again}");
    assert!(first.ends_with(&again), "{first}\n{again}");
}

#[test]
fn invalid_repair_settings_are_rejected_first() {
    let folder = Folder::with("circles.toml", CIRCLES);
    for (name, arguments) in [
        ("forbid", &["--set", "repair.forbid=['activation', 'S20']"][..]),
        ("order", &["--set", "repair.order=['s2']"]),
        ("off", &["--set", "diagnose.off=['dying_rely']"]),
        ("approve", &["--approve"]),
        ("both", &["--approve", "--no-repair"]),
    ] {
        let outcome = folder.run(&[&["train", "circles.toml"], arguments].concat());
        assert_eq!(outcome.code, Some(2), "{name}");
        assert_snapshot!(name, outcome.shown());
    }
    assert!(folder.runs().is_empty());
}

#[test]
fn the_example_of_every_problem_is_found_and_repaired() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/problems");
    let mut plans: Vec<_> = std::fs::read_dir(examples)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    plans.sort();
    assert_eq!(plans.len(), 8);
    for plan in plans {
        let folder = Folder::new();
        let outcome = folder.run(&["train", plan.to_str().unwrap(), "--json", "--quiet"]);
        let summary = outcome.summary();
        let problem = plan.file_stem().unwrap().to_str().unwrap().replace('-', "_");
        assert_eq!(summary["status"], "repaired", "{summary}");
        assert_eq!(summary["problems"][0], problem, "{summary}");
        let metric = |key: &str| summary["metric"][key].as_f64().unwrap();
        assert!(metric("after") > metric("before") + 0.2, "{summary}");
    }
}

#[test]
fn a_keras_model_is_repaired() {
    let plan = r#"
[data]
source = { kind = "blobs", samples = 400, centers = 2, features = 3, spread = 1.0 }
scale = "standardise"

[training]
epochs = 60
optimizer = { name = "adam", learning_rate = 1e-8 }
loss = "mse"
"#;
    let folder = Folder::with("blobs.toml", plan);
    let outcome = folder.run(&["train", "blobs.toml", "--model", KERAS_FILE, "--json"]);
    let summary = outcome.summary();
    assert_eq!(summary["status"], "repaired", "{summary}");
    assert_eq!(summary["metric"]["name"], "accuracy");
    // Its layers come from the file, so the plan as delivered has them written out.
    let run = folder.path().join(summary["run"].as_str().unwrap());
    let delivered = std::fs::read_to_string(run.join("plan.final.toml")).unwrap();
    assert!(delivered.contains("[[model]]"), "{delivered}");
}
