//! A run that is killed (SIGKILL) at random instants and resumed each time ends like one that was
//! left alone.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use surefoot_diagnose::{LayerInfo, LayerObservation, Observation, Summary};
use surefoot_record::{
    Array, Checkpoint, Digest, Environment, Event, Header, MetricSummary, Part, Quantity, Record,
    Recorder, Result, RunSummary, Status, StepDigest,
};

const STEPS: u64 = 3000;
const DIR: &str = "SUREFOOT_TEST_RUN";

fn observation(step: u64, weights: &[f32]) -> Observation {
    let summary = Summary {
        count: step,
        mean: f64::from(weights[0]),
        max: f64::INFINITY,
        ..Summary::default()
    };
    let layer = LayerObservation { gradient: Some(summary), ..LayerObservation::default() };
    Observation::new(step, f64::from(weights[1]))
        .with_epoch(step / 100 + 1)
        .with_learning_rate(0.1)
        .with_layers(vec![layer; 4])
        .with_input(summary)
}

fn digest(step: u64, weights: &[f32]) -> StepDigest {
    let mut digest = StepDigest::default();
    digest.seal(step, &[Digest::of_f32(weights)]);
    digest
}

fn begin(runs: &Path) -> PathBuf {
    let layer = |i: usize| LayerInfo { name: format!("layer_{i}"), ..LayerInfo::default() };
    let header = Header {
        facts: surefoot_diagnose::Facts {
            layers: (0..4).map(layer).collect(),
            ..Default::default()
        },
        digest_parts: vec![Part::of(Quantity::Parameters)],
        ..Header::default()
    };
    let recorder = Recorder::create(runs, "kill", "seed = 1\n", header).unwrap();
    recorder.dir().to_owned()
}

/// Resumes a run and trains it to its end.
fn train(dir: &Path) -> Result<()> {
    let (mut recorder, checkpoint) = Recorder::resume(dir, &Environment::default())?;
    let (mut step, mut weights) = match &checkpoint {
        None => (0, vec![0.5_f32; 64]),
        Some(checkpoint) => {
            let weights = checkpoint.array("weights").and_then(Array::as_f32);
            (checkpoint.step, weights.unwrap().to_vec())
        }
    };
    while step < STEPS {
        step += 1;
        for weight in &mut weights {
            *weight = (*weight * 1.3 + step as f32).sin();
        }
        recorder.observe(&observation(step, &weights));
        recorder.digest(&digest(step, &weights));
        if step.is_multiple_of(50) {
            let value = json!({"event": "pulse", "step": step});
            recorder.event(&Event::Other(value))?;
        }
        if step.is_multiple_of(100) {
            recorder.checkpoint(&Checkpoint {
                step,
                epoch: step / 100 + 1,
                state: json!({}),
                arrays: vec![Array::new("weights", &[64], weights.clone())],
            })?;
        }
    }
    recorder.write_model(&[Array::new("weights", &[64], weights.clone())])?;
    recorder.finish(&RunSummary {
        status: Status::Normal,
        problems: Vec::new(),
        remedies: Vec::new(),
        failed_detectors: Vec::new(),
        metric: MetricSummary { name: "accuracy".to_owned(), before: None, after: None },
        steps: step,
        seconds: 0.0,
        digest: digest(step, &weights).digest,
        run: String::new(),
    })
}

/// Content of the record as text, so that NaN equals NaN.
fn content(dir: &Path) -> [String; 6] {
    let run = Record::open(dir).unwrap();
    let observations: Vec<_> = run.observations().unwrap().map(Result::unwrap).collect();
    let events = run.events().unwrap();
    let events: Vec<_> = events.iter().filter(|e| e.kind() != "resumed").collect();
    [
        format!("{observations:#?}"),
        format!("{events:#?}"),
        format!("{:#?}", run.digests().unwrap()),
        format!("{:?}", run.checkpoint().unwrap()),
        format!("{:?}", run.model().unwrap()),
        format!("{:?}", run.summary().unwrap()),
    ]
}

/// This test binary again, as the process that is killed.
fn child(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "trains_in_a_child", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test by itself: what the child process does.
#[test]
fn trains_in_a_child() {
    if let Some(dir) = std::env::var_os(DIR) {
        train(Path::new(&dir)).unwrap();
    }
}

#[test]
fn a_killed_and_resumed_run_ends_like_one_left_alone() {
    let runs = tempfile::tempdir().unwrap();
    let alone = begin(runs.path());
    train(&alone).unwrap();
    let expected = content(&alone);

    for seed in 0..3_u64 {
        let dir = begin(runs.path());
        let mut kills = 0;
        for attempt in 0_u64.. {
            let mut child = child(&dir);
            // Short at first, so that the child dies even where it is quick, and ever longer, so
            // that it ends even where it is slow.
            let wait = 1 + (seed * 7919 + attempt * 104_729) % (4 + attempt);
            std::thread::sleep(Duration::from_millis(wait));
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                break;
            }
            kills += 1;
            let run = Record::open(&dir).unwrap();
            for (step, read) in (1..).zip(run.observations().unwrap()) {
                assert_eq!(read.unwrap().step, step);
            }
            run.events().unwrap();
            run.checkpoint().unwrap();
            if run.summary().unwrap().is_some() {
                break;
            }
            assert!(attempt < 500, "the run makes no progress");
        }
        assert!(kills > 0);
        for (part, (found, expected)) in content(&dir).iter().zip(&expected).enumerate() {
            let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
            assert_eq!(differs, None, "part {part}, seed {seed}, {kills} kills");
            assert!(found == expected, "part {part}, seed {seed}, {kills} kills");
        }
    }
}
