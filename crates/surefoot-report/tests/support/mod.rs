//! Generated records of different runs.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::path::{Path, PathBuf};
use surefoot_diagnose::{
    Evaluation, Facts, Finding, LayerInfo, LayerKind, LayerObservation, Observation, Problem,
    Split, Summary,
};
use surefoot_record::{
    Attempt, AttemptOutcome, AttemptState, Digest, Environment, Event, Header, MetricSummary,
    Recorder, RunSummary, Status,
};

pub(crate) const STEPS_PER_EPOCH: u64 = 40;
pub(crate) const EPOCHS: u64 = 40;

pub(crate) const PLAN: &str = r#"name = "moons"
seed = 7

[data]
source = { kind = "moons", samples = 1600 }

[[model]]
layer = "dense"
units = 16
activation = "relu"
"#;

/// A simulated training.
pub(crate) struct Script {
    pub(crate) layers: Vec<String>,
    pub(crate) steps: u64,
    pub(crate) every: u64,
    /// The loss at a step.
    pub(crate) loss: fn(u64) -> f64,
    /// The norm of the gradient of a layer at a step.
    pub(crate) norm: fn(u64, usize) -> Option<f64>,
    /// The metric after an epoch.
    pub(crate) metric: fn(u64) -> f64,
    pub(crate) metric_name: &'static str,
    pub(crate) split: Split,
}

/// Deterministic noise.
fn noise(step: u64) -> f64 {
    let mixed = (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D) >> 11;
    (mixed as f64 / (1_u64 << 53) as f64) - 0.5
}

/// A successful training.
pub(crate) fn healthy() -> Script {
    Script {
        layers: (1..=6).map(|i| format!("dense_{i}")).collect(),
        steps: STEPS_PER_EPOCH * EPOCHS,
        every: 4,
        loss: |step| {
            let decay = 0.69 * (-(step as f64) / 260.0).exp();
            (decay + 0.012) * (1.0 + 0.7 * noise(step))
        },
        norm: |step, layer| {
            let size = 0.4 * (-(step as f64) / 500.0).exp() + 0.02;
            Some(size * 1.5_f64.powi(layer as i32 - 3) * (1.0 + noise(step + layer as u64)))
        },
        metric: |epoch| 0.971 - 0.45 * (-(epoch as f64) / 5.0).exp(),
        metric_name: "accuracy",
        split: Split::Validation,
    }
}

/// A training with dying units.
pub(crate) fn dying() -> Script {
    Script {
        steps: 120,
        loss: |step| 0.693 + 0.08 * noise(step),
        norm: |step, layer| {
            let dead = 100_u64.saturating_sub(20 * layer as u64);
            let size = 10_f64.powf(-0.5 - step as f64 / 18.0 + layer as f64 / 2.0);
            Some(if step > dead && layer < 4 { 0.0 } else { size })
        },
        metric: |epoch| 0.49 + 0.003 * epoch as f64,
        ..healthy()
    }
}

impl Script {
    pub(crate) fn header(&self) -> Header {
        let layer = |name: &String| LayerInfo {
            name: name.clone(),
            kind: LayerKind::Dense,
            parameters: 272,
            units: Some(16),
            ..LayerInfo::default()
        };
        Header {
            facts: Facts {
                layers: self.layers.iter().map(layer).collect(),
                metric: Some(self.metric_name.to_owned()),
                steps_per_epoch: Some(STEPS_PER_EPOCH),
                epochs: Some(EPOCHS),
                chance: Some(if self.metric_name == "r2" { 0.0 } else { 0.5 }),
                ..Facts::default()
            },
            observe_every: self.every,
            // Fixed, so that the page is the same on every machine.
            environment: Environment {
                surefoot: "0.1.0".to_owned(),
                platform: "linux-x86_64".to_owned(),
                device: "cpu".to_owned(),
                workers: 2,
                threads: 2,
                cpu_features: vec!["avx2".to_owned(), "fma".to_owned()],
                data: Some(Digest(0x1234)),
                libraries: [("burn".to_owned(), "0.22.1".to_owned())].into(),
            },
            ..Header::default()
        }
    }

    pub(crate) fn begin(&self, runs: &Path, name: &str, plan: &str) -> Recorder {
        Recorder::create(runs, name, plan, self.header()).unwrap()
    }

    /// Records all steps and evaluations.
    pub(crate) fn record(&self, recorder: &mut Recorder) {
        for step in 1..=self.steps {
            recorder.observe(&self.observation(step));
            if step.is_multiple_of(STEPS_PER_EPOCH) {
                let epoch = step / STEPS_PER_EPOCH;
                let evaluation = Evaluation {
                    epoch,
                    step,
                    split: self.split,
                    loss: (self.loss)(step),
                    metric: Some((self.metric)(epoch)),
                };
                recorder.evaluation(&evaluation).unwrap();
            }
        }
    }

    fn observation(&self, step: u64) -> Observation {
        let layer = |i| LayerObservation {
            gradient: (self.norm)(step, i).map(|l2| Summary {
                count: 272,
                l2,
                ..Summary::default()
            }),
            ..LayerObservation::default()
        };
        let seen = (step - 1).is_multiple_of(self.every);
        let observation = Observation::new(step, (self.loss)(step))
            .with_epoch((step - 1) / STEPS_PER_EPOCH + 1)
            .with_learning_rate(0.01);
        match seen {
            true => observation.with_layers((0..self.layers.len()).map(layer).collect()),
            false => observation,
        }
    }

    pub(crate) fn summary(&self, status: Status, before: f64, after: f64) -> RunSummary {
        RunSummary {
            status,
            problems: Vec::new(),
            remedies: Vec::new(),
            failed_detectors: Vec::new(),
            metric: MetricSummary {
                name: self.metric_name.to_owned(),
                before: Some(before),
                after: Some(after),
            },
            steps: self.steps,
            seconds: 3.2,
            digest: Digest(0xfeed),
            run: "runs/moons-001".to_owned(),
        }
    }

    /// A finished run.
    pub(crate) fn run(&self, runs: &Path, name: &str, status: Status) -> PathBuf {
        let mut recorder = self.begin(runs, name, PLAN);
        let dir = recorder.dir().to_owned();
        self.record(&mut recorder);
        recorder.finish(&self.summary(status, 0.97, 0.971)).unwrap();
        dir
    }
}

/// A finding that most units of some layers are dead.
pub(crate) fn dead() -> Finding {
    let layers = ["dense_1", "dense_2", "dense_3"].map(str::to_owned);
    let sentence = "In 3 of 5 hidden layers more than 70% of the ReLU units put out zero for \
                    every sample.";
    Finding::new(Problem::DYING_RELU, 120, sentence)
        .since(81)
        .within(layers.to_vec())
        .with("dead units in dense_1", 0.9375, 0.7)
        .with("dead units in dense_2", 0.875, 0.7)
        .with("dead units in dense_3", 0.8125, 0.7)
}

fn attempt(number: u32, remedies: &[&str], change: &str, diff: &str, run: &str) -> Event {
    Event::Attempt(Attempt {
        step: 120,
        number,
        parent: 0,
        problem: Problem::DYING_RELU,
        remedies: remedies.iter().map(|id| (*id).to_owned()).collect(),
        change: change.to_owned(),
        diff: diff.to_owned(),
        run: run.to_owned(),
    })
}

fn outcome(
    number: u32,
    state: AttemptState,
    metric: f64,
    steps: u64,
    finding: Option<Finding>,
) -> Event {
    Event::Outcome(AttemptOutcome {
        step: 120,
        number,
        state,
        finding,
        metric: Some(metric),
        steps,
    })
}

/// A run that was stopped and repaired by the second of three attempts.
pub(crate) fn repaired(runs: &Path) -> PathBuf {
    let given = dying();
    let mut recorder = given.begin(runs, "moons", PLAN);
    let dir = recorder.dir().to_owned();
    given.record(&mut recorder);
    let attempts = dir.join("attempts");
    dying().run(&attempts, "01", Status::Failed);
    let better = healthy();
    let mut second = better.begin(&attempts, "02", &PLAN.replace("relu", "leaky_relu"));
    better.record(&mut second);
    let spike = "The loss of one batch was 6 times the median of those before.";
    let spike = Finding::new(Problem::LOSS_SPIKE, 900, spike).warning();
    second.event(&Event::Finding(spike.with("jump", 6.1, 5.0))).unwrap();
    second.finish(&better.summary(Status::Normal, 0.97, 0.971)).unwrap();

    let scale = "The features are on very different scales.";
    let scale = Finding::new(Problem::INPUT_SCALE, 1, scale).warning();
    let slow = Finding::new(Problem::SLOW_CONVERGENCE, 400, "The loss hardly moves.");
    let events = [
        Event::Finding(scale.with("largest standard deviation", 412.5, 100.0)),
        Event::Finding(dead()),
        Event::Stopped { step: 120, problem: Problem::DYING_RELU },
        attempt(
            1,
            &["initializer"],
            "Draw the initial weights from He's distribution in all dense layers.",
            " [[model]]\n layer = \"dense\"\n units = 16\n+kernel_initializer = \"he_normal\"\n activation = \"relu\"\n",
            "attempts/01-001",
        ),
        outcome(1, AttemptState::Persists, 0.499, 120, Some(dead())),
        attempt(
            2,
            &["activation"],
            "Use leaky ReLU instead of ReLU in all hidden layers.",
            " [[model]]\n layer = \"dense\"\n units = 16\n-activation = \"relu\"\n+activation = \"leaky_relu\"\n",
            "attempts/02-001",
        ),
        outcome(2, AttemptState::Repaired, 0.971, 1600, None),
        attempt(
            3,
            &["optimizer"],
            "Train with Adam instead of SGD.",
            " [training]\n-optimizer = { name = \"sgd\", learning_rate = 0.5 }\n+optimizer = { name = \"adam\", learning_rate = 0.001 }\n",
            "attempts/03-001",
        ),
        outcome(3, AttemptState::NewProblem, 0.63, 400, Some(slow)),
        Event::Delivered { step: 120, attempt: 2, metric: Some(0.971) },
    ];
    for event in events {
        recorder.event(&event).unwrap();
    }
    let summary = given.summary(Status::Repaired, 0.498, 0.971);
    recorder
        .finish(&RunSummary {
            problems: vec!["dying_relu".to_owned()],
            remedies: vec!["activation".to_owned()],
            steps: 2240,
            ..summary
        })
        .unwrap();
    dir
}

/// A run that continued with a NaN loss, of a deep model with long names.
pub(crate) fn exploded(runs: &Path) -> PathBuf {
    let script = Script {
        layers: (1..=34).map(|i| format!("residual_block_{i}.conv2d_<{i}>")).collect(),
        steps: 300,
        every: 1,
        loss: |step| match step {
            260.. => f64::NAN,
            _ => 2.3 * 1.035_f64.powi(step as i32),
        },
        norm: |step, layer| match (step, layer) {
            (260.., _) => Some(f64::NAN),
            (_, 0..34) if layer % 5 == 4 => None,
            (100..110, _) => None,
            _ => Some(10_f64.powf(step as f64 / 30.0 - layer as f64 / 12.0)),
        },
        metric: |epoch| if epoch > 6 { f64::NAN } else { 0.1 },
        ..healthy()
    };
    let mut recorder = script.begin(runs, "deep", PLAN);
    let dir = recorder.dir().to_owned();
    script.record(&mut recorder);
    let first = Finding::new(Problem::EXPLODING_GRADIENT, 180, "The gradients explode.")
        .since(140)
        .within(script.layers[..12].to_vec())
        .with("gradient norm", 3.2e9, 70.0);
    let second = Finding::new(Problem::NON_FINITE_LOSS, 260, "The loss is NaN.").with(
        "loss",
        f64::NAN,
        None,
    );
    for finding in [first, second] {
        recorder.event(&Event::Finding(finding)).unwrap();
    }
    recorder.finish(&script.summary(Status::Failed, f64::NAN, 0.1)).unwrap();
    dir
}
