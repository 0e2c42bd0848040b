//! The same bits: in two runs, on any number of workers, and after an interruption at any step.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::Path;
use surefoot_data::Dataset;
use surefoot_diagnose::{Evaluation, Observation};
use surefoot_plan::{Document, Plan};
use surefoot_record::{Checkpoint, Digest, Event, Result, StepDigest};
use surefoot_train::{Cpu, End, Flow, Journal, Progress, Report, Run, Watcher};

/// Dropout, batch statistics over shards, and an optimizer with every kind of memory.
const MLP: &str = r#"
seed = 5
[data]
source = { kind = "moons", samples = 130 }
split = { validation = 0.2, test = 0.0 }
[[model]]
layer = "dense"
units = 12
activation = "tanh"
[[model]]
layer = "batch_norm"
[[model]]
layer = "dropout"
rate = 0.3
[[model]]
layer = "dense"
units = 1
activation = "sigmoid"
[training]
epochs = 3
batch_size = 16
optimizer = "nadam"
shards = 4
"#;

const CNN: &str = r#"
seed = 9
[data]
source = { kind = "shapes", samples = 40, size = 8, classes = 3 }
[[model]]
layer = "conv2d"
filters = 4
kernel_size = 3
padding = "same"
activation = "relu"
[[model]]
layer = "max_pool2d"
[[model]]
layer = "flatten"
[[model]]
layer = "dense"
units = 3
activation = "softmax"
[training]
epochs = 2
batch_size = 16
shards = 5
"#;

const LSTM: &str = r#"
seed = 2
[data]
source = { kind = "parity", samples = 60, length = 6 }
[[model]]
layer = "embedding"
input_dim = 2
output_dim = 4
[[model]]
layer = "lstm"
units = 8
[[model]]
layer = "dense"
units = 1
activation = "sigmoid"
[training]
epochs = 2
batch_size = 16
shards = 8
optimizer = { name = "rmsprop", learning_rate = 0.01 }
"#;

fn load(text: &str) -> (Plan, Dataset) {
    let plan = Document::parse(text, "plan.toml").unwrap().plan().unwrap();
    let data = surefoot_data::load(&plan.data, plan.seed, Path::new(".")).unwrap();
    (plan, data)
}

/// Keeps the digests and the checkpoint of a run.
#[derive(Default)]
struct Memory {
    digests: Vec<(u64, Digest)>,
    checkpoint: Option<Checkpoint>,
}

impl Journal for Memory {
    fn wants_digests(&self) -> bool {
        true
    }

    fn observe(&mut self, _: &Observation) {}

    fn digest(&mut self, step: &StepDigest) {
        self.digests.push((step.step, step.digest));
    }

    fn event(&mut self, _: &Event) -> Result<()> {
        Ok(())
    }

    fn evaluation(&mut self, _: &Evaluation) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.checkpoint = Some(checkpoint.clone());
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Interrupts a run after a step.
struct StopAt {
    step: u64,
    now: u64,
}

impl StopAt {
    fn new(step: u64) -> Self {
        Self { step, now: 0 }
    }
}

impl Watcher for StopAt {
    fn step(&mut self, progress: &Progress) {
        self.now = progress.step;
    }

    fn evaluated(&mut self, _: &Evaluation) {}

    fn flow(&self) -> Flow {
        match self.now == self.step {
            true => Flow::Interrupt,
            false => Flow::GoOn,
        }
    }
}

/// Trains from a checkpoint, or from the start, until after a step, or to the end.
fn train(
    (plan, data): &(Plan, Dataset),
    workers: usize,
    from: Option<&Checkpoint>,
    until: u64,
) -> (Memory, Report) {
    let mut run = Run::<Cpu>::new(plan, data, &[], workers, Default::default()).unwrap();
    if let Some(checkpoint) = from {
        run.restore(checkpoint).unwrap();
    }
    let mut memory = Memory::default();
    let report = run.train(&mut memory, &mut StopAt::new(until)).unwrap();
    (memory, report)
}

#[test]
fn two_runs_have_equal_digests() {
    for text in [MLP, CNN, LSTM] {
        let job = load(text);
        let (one, first) = train(&job, 2, None, u64::MAX);
        let (other, second) = train(&job, 2, None, u64::MAX);
        assert!(one.digests.len() > 4);
        assert_eq!(one.digests, other.digests);
        assert_eq!(first.digest, second.digest);
    }
}

#[test]
fn another_seed_has_other_digests_from_the_start() {
    let (one, _) = train(&load(MLP), 1, None, u64::MAX);
    let (other, _) = train(&load(&MLP.replace("seed = 5", "seed = 6")), 1, None, u64::MAX);
    let pairs = one.digests.iter().zip(&other.digests);
    assert!(pairs.into_iter().all(|(one, other)| one.1 != other.1));
}

#[test]
fn any_number_of_workers_gives_the_same_bits() {
    for text in [MLP, CNN, LSTM] {
        let job = load(text);
        let (one, report) = train(&job, 1, None, u64::MAX);
        for workers in [2, 3, 4, 8] {
            let (more, same) = train(&job, workers, None, u64::MAX);
            assert_eq!(more.digests, one.digests, "{workers} workers");
            assert_eq!(same.digest, report.digest, "{workers} workers");
        }
    }
}

#[test]
fn an_interruption_after_any_step_changes_no_bit() {
    for text in [MLP, CNN, LSTM] {
        let job = load(text);
        let (whole, delivered) = train(&job, 2, None, u64::MAX);
        let steps = delivered.steps;
        for step in 1..steps {
            let (first, report) = train(&job, 2, None, step);
            assert_eq!(report.end, End::Interrupted);
            let checkpoint = first.checkpoint.unwrap();
            assert_eq!(checkpoint.step, step);
            let (rest, report) = train(&job, 1, Some(&checkpoint), u64::MAX);
            let joined = [first.digests, rest.digests].concat();
            assert_eq!(joined, whole.digests, "interrupted after step {step}");
            assert_eq!(report.digest, delivered.digest, "after step {step}");
            let best = |report: &Report| report.best.as_ref().map(|best| (best.step, best.loss));
            assert_eq!(best(&report), best(&delivered), "after step {step}");
        }
    }
}

#[test]
fn a_replay_comes_to_the_same_digests_from_any_checkpoint() {
    let job = load(MLP);
    let (whole, _) = train(&job, 2, None, u64::MAX);
    for from in [0, 1, 8, 13] {
        let (plan, data) = &job;
        let mut run = Run::<Cpu>::new(plan, data, &[], 3, Default::default()).unwrap();
        if from > 0 {
            let (first, _) = train(&job, 1, None, from);
            run.restore(&first.checkpoint.unwrap()).unwrap();
        }
        let mut digests = Vec::new();
        run.replay(u64::MAX, |_, digest| {
            digests.push((digest.step, digest.digest));
            true
        });
        // The first is of the state before the first step.
        assert_eq!(digests, whole.digests[from as usize + 1..]);
    }
}
