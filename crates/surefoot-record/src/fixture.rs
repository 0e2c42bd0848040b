//! A run that is quick and has everything in it, for tests.

use std::path::{Path, PathBuf};

use serde_json::json;
use surefoot_diagnose::{
    Evaluation, LayerInfo, LayerObservation, Observation, Quartiles, Split, Summary,
};

use crate::array::Array;
use crate::checkpoint::Checkpoint;
use crate::digest::{Digest, StateDigest};
use crate::header::{Environment, Header};
use crate::record::Record;
use crate::recorder::Recorder;
use crate::step_digest::{Part, Quantity, StepDigest};
use crate::summary::{MetricSummary, RunSummary, Status};

pub(crate) const PLAN: &str = "seed = 7\n[model]\nlayers = []\n";
const LAYERS: [&str; 3] = ["dense_1", "dense_2", "out"];

pub(crate) fn header() -> Header {
    let layers = LAYERS.map(|name| LayerInfo {
        name: name.to_owned(),
        kind: surefoot_diagnose::LayerKind::Dense,
        parameters: 20,
        units: Some(4),
        ..LayerInfo::default()
    });
    Header {
        facts: surefoot_diagnose::Facts { layers: layers.to_vec(), ..Default::default() },
        digest_parts: vec![Part::of(Quantity::Parameters)],
        environment: Environment::detect(),
        ..Header::default()
    }
}

fn summary(step: u64, of: u64) -> Summary {
    let x = (step * 31 + of * 7) as f64 * 0.01;
    let odd = match step % 5 {
        0 => f64::INFINITY,
        1 => -0.0,
        _ => x.sin(),
    };
    Summary {
        count: step * of,
        nan: step % 3,
        inf: step % 2,
        zeros: of,
        mean: x,
        variance: x * x,
        skewness: odd,
        kurtosis: -x,
        min: f64::NEG_INFINITY,
        max: x + 1.0,
        l1: x * 3.0,
        l2: f64::NAN,
        abs_mean: 0.1 + x,
        linf: 1e-320,
        quartiles: (!step.is_multiple_of(4)).then_some(Quartiles {
            q1: x,
            median: x + 0.25,
            q3: x + 0.5,
        }),
    }
}

/// Steps of all kinds: with and without layers, input and each part of a layer.
pub(crate) fn observation(step: u64) -> Observation {
    let layer = |of: u64| LayerObservation {
        gradient: (of != 1).then(|| summary(step, of)),
        weight: Some(summary(step + 1, of)),
        output: step.is_multiple_of(2).then(|| summary(step + 2, of)),
        dead_units: (of != 2).then_some(0.25),
        update_ratio: step.is_multiple_of(3).then_some(f64::NAN),
        saturated: None,
    };
    let loss = if step.is_multiple_of(11) { f64::NAN } else { 1.0 / step as f64 };
    let mut observation = Observation::new(step, loss)
        .with_epoch(step / 10 + 1)
        .with_metric((step % 2 == 1).then_some(0.5))
        .with_learning_rate((step % 8 != 3).then_some(0.1))
        .with_layers(if step % 6 == 5 { Vec::new() } else { (0..3).map(layer).collect() })
        .with_input((step % 4 == 1).then(|| summary(step, 9)));
    observation.mae = step.is_multiple_of(5).then_some(0.25);
    observation.top_class_share = step.is_multiple_of(7).then_some(1.0);
    observation
}

/// A training that is over at once: the state after a step is a function of the one before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Training {
    pub(crate) step: u64,
    weights: Vec<f32>,
}

impl Training {
    pub(crate) fn new() -> Training {
        Training { step: 0, weights: vec![0.5; 20] }
    }

    pub(crate) fn from(checkpoint: Option<&Checkpoint>) -> Training {
        let Some(checkpoint) = checkpoint else {
            return Training::new();
        };
        let weights = checkpoint.array("weights").and_then(Array::as_f32);
        Training { step: checkpoint.step, weights: weights.unwrap().to_vec() }
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            step: self.step,
            epoch: self.step / 10 + 1,
            state: json!({"position": self.step % 10}),
            arrays: vec![Array::new("weights", &[4, 5], self.weights.clone())],
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut digest = StateDigest::new();
        digest.update_f32("weights", &self.weights);
        digest.finish()
    }

    pub(crate) fn step_digest(&self) -> StepDigest {
        let mut digest = StepDigest::default();
        digest.seal(self.step, &[self.digest()]);
        digest
    }

    /// A step with all that is recorded of it: an evaluation every 10, a checkpoint every 20.
    pub(crate) fn step(&mut self, recorder: &mut Recorder) {
        self.step += 1;
        for weight in &mut self.weights {
            *weight = (*weight * 1.1 + self.step as f32).sin();
        }
        recorder.observe(&observation(self.step));
        recorder.digest(&self.step_digest());
        if self.step.is_multiple_of(10) {
            recorder
                .evaluation(&Evaluation {
                    epoch: self.step / 10,
                    step: self.step,
                    split: Split::Validation,
                    loss: f64::NAN,
                    metric: Some(f64::from(self.weights[0])),
                })
                .unwrap();
        }
        if self.step.is_multiple_of(20) {
            recorder.checkpoint(&self.checkpoint()).unwrap();
        }
    }

    pub(crate) fn until(&mut self, recorder: &mut Recorder, step: u64) {
        while self.step < step {
            self.step(recorder);
        }
    }

    pub(crate) fn finish(&self, mut recorder: Recorder) {
        let run = recorder.dir().display().to_string();
        recorder.write_final_plan(PLAN).unwrap();
        recorder.write_model(&self.checkpoint().arrays).unwrap();
        recorder
            .finish(&RunSummary {
                status: Status::Normal,
                problems: Vec::new(),
                remedies: Vec::new(),
                failed_detectors: Vec::new(),
                metric: MetricSummary {
                    name: "accuracy".to_owned(),
                    before: Some(0.5),
                    after: Some(0.5),
                },
                steps: self.step,
                seconds: 0.0,
                digest: self.digest(),
                run,
            })
            .unwrap();
    }
}

pub(crate) fn begin(runs: &Path) -> (Recorder, PathBuf) {
    let recorder = Recorder::create(runs, "toy", PLAN, header()).unwrap();
    let dir = recorder.dir().to_owned();
    (recorder, dir)
}

pub(crate) fn resume(dir: &Path) -> (Recorder, Training) {
    let (recorder, checkpoint) = Recorder::resume(dir, &Environment::default()).unwrap();
    let training = Training::from(checkpoint.as_ref());
    (recorder, training)
}

/// Everything in the record of a run but where it is and how often it was resumed, as a text, so
/// that NaN equals NaN.
pub(crate) fn content(dir: &Path) -> String {
    let run = Record::open(dir).unwrap();
    let observations: Vec<_> = run.observations().unwrap().map(Result::unwrap).collect();
    let events = run.events().unwrap();
    let events = events.iter().filter(|event| event.kind() != "resumed");
    let summary =
        run.summary().unwrap().map(|summary| RunSummary { run: String::new(), ..summary });
    format!(
        "{} {:?} {observations:#?} {:#?} {:?} {:?} {:?} {summary:?}",
        run.plan(),
        run.final_plan().unwrap(),
        events.collect::<Vec<_>>(),
        run.digests().unwrap(),
        run.checkpoint().unwrap(),
        run.model().unwrap(),
    )
}

/// The steps that can be read back, each checked to be as it was recorded.
pub(crate) fn readable_steps(dir: &Path) -> u64 {
    let mut count = 0;
    for read in Record::open(dir).unwrap().observations().unwrap() {
        count += 1;
        assert_eq!(format!("{:?}", read.unwrap()), format!("{:?}", observation(count)));
    }
    count
}

/// Copies the current state of a run to another directory.
pub(crate) fn snapshot(dir: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            snapshot(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
