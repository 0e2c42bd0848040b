//! The same bits: in two runs, on any number of workers, and after an interruption at any step.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::Path;
use surefoot_data::Dataset;
use surefoot_plan::{Document, Plan};
use surefoot_record::{Checkpoint, Digest, StepDigest};
use surefoot_train::{
    Callback, Cpu, RunContext, Step, StopReason, TrainError, TrainingResult, TrainingRun,
};

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

/// One shard, and operations large enough to be shared by threads: convolutions with and without
/// strides, batch statistics, products of matrices.
const LARGE_CNN: &str = r#"
seed = 3
model = [
  { layer = "conv2d", filters = 32, kernel_size = 3, padding = "same", activation = "relu" },
  { layer = "conv2d", filters = 32, kernel_size = 3, padding = "same" },
  { layer = "batch_norm" },
  { layer = "activation", activation = "silu" },
  { layer = "max_pool2d" },
  { layer = "conv2d", filters = 64, kernel_size = 3, padding = "same" },
  { layer = "conv2d", filters = 128, kernel_size = 3, strides = 2, padding = "same" },
  { layer = "flatten" },
  { layer = "dense", units = 200, activation = "tanh" },
  { layer = "dense", units = 3, activation = "softmax" },
]
[data]
source = { kind = "shapes", samples = 70, size = 16, channels = 3, classes = 3 }
split = { validation = 0.0, test = 0.0 }
[training]
epochs = 1
batch_size = 64
shards = 1
"#;

/// The same for attention and layer normalization.
const LARGE_TRANSFORMER: &str = r#"
seed = 4
model = [
  { layer = "embedding", input_dim = 4, output_dim = 96 },
  { layer = "position_embedding" },
  { layer = "transformer", num_heads = 3, feed_forward = 200, activation = "gelu", dropout = 0.1 },
  { layer = "global_average_pool" },
  { layer = "dense", units = 4, activation = "softmax" },
]
[data]
source = { kind = "copy", samples = 34, length = 40, symbols = 4 }
split = { validation = 0.0, test = 0.0 }
[training]
epochs = 1
batch_size = 16
shards = 1
optimizer = "nadam"
"#;

fn load(text: &str) -> (Plan, Dataset) {
    let plan = Document::parse(text, "plan.toml").unwrap().plan().unwrap();
    let data = surefoot_data::load(&plan.data, plan.seed, Path::new(".")).unwrap();
    (plan, data)
}

/// Keeps the digests and the checkpoint of a run, and interrupts it after a step.
#[derive(Default)]
struct Memory {
    stop_at: u64,
    digests: Vec<(u64, Digest)>,
    checkpoint: Option<Checkpoint>,
}

impl Callback for Memory {
    fn needs_state(&self) -> bool {
        true
    }

    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        if step.progress.step == self.stop_at {
            run.stop(StopReason::Interrupted);
        }
        Ok(())
    }

    fn on_digest(&mut self, step: &StepDigest, _: &mut RunContext) -> Result<(), TrainError> {
        self.digests.push((step.step, step.digest));
        Ok(())
    }

    fn on_checkpoint(
        &mut self,
        checkpoint: &Checkpoint,
        _: &mut RunContext,
    ) -> Result<(), TrainError> {
        self.checkpoint = Some(checkpoint.clone());
        Ok(())
    }
}

/// Trains from a checkpoint or from the start, to step `until` or to the end.
fn train(
    (plan, data): &(Plan, Dataset),
    workers: usize,
    from: Option<&Checkpoint>,
    until: u64,
) -> (Memory, TrainingResult) {
    let mut run = TrainingRun::<Cpu>::new(plan, data, &[], workers, Default::default()).unwrap();
    if let Some(checkpoint) = from {
        run.restore(checkpoint).unwrap();
    }
    let mut memory = Memory { stop_at: until, ..Memory::default() };
    let report = run.train(&mut [&mut memory]).unwrap();
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
fn shared_operations_give_the_same_bits_on_any_number_of_workers() {
    let in_shards = LARGE_CNN.replace("shards = 1", "shards = 2");
    for text in [LARGE_CNN, &in_shards, LARGE_TRANSFORMER] {
        for portable in ["", "portable = true\n"] {
            let job = load(&format!("{text}{portable}"));
            let (one, report) = train(&job, 1, None, u64::MAX);
            for workers in [2, 3, 4, 8] {
                let (more, same) = train(&job, workers, None, u64::MAX);
                assert_eq!(more.digests, one.digests, "{workers} workers");
                assert_eq!(same.digest, report.digest, "{workers} workers");
            }
        }
    }
}

#[test]
fn an_interruption_after_any_step_changes_no_bit() {
    for text in [MLP, CNN, LSTM, LARGE_CNN] {
        let job = load(text);
        let (whole, delivered) = train(&job, 2, None, u64::MAX);
        let steps = delivered.steps;
        for step in 1..steps {
            let (first, report) = train(&job, 2, None, step);
            assert_eq!(report.reason, StopReason::Interrupted);
            let checkpoint = first.checkpoint.unwrap();
            assert_eq!(checkpoint.step, step);
            let (rest, report) = train(&job, 1, Some(&checkpoint), u64::MAX);
            let joined = [first.digests, rest.digests].concat();
            assert_eq!(joined, whole.digests, "interrupted after step {step}");
            assert_eq!(report.digest, delivered.digest, "after step {step}");
            let best =
                |report: &TrainingResult| report.best.as_ref().map(|best| (best.step, best.loss));
            assert_eq!(best(&report), best(&delivered), "after step {step}");
        }
    }
}

#[test]
fn a_replay_has_the_same_digests_from_any_checkpoint() {
    let job = load(MLP);
    let (whole, _) = train(&job, 2, None, u64::MAX);
    for from in [0, 1, 8, 13] {
        let (plan, data) = &job;
        let mut run = TrainingRun::<Cpu>::new(plan, data, &[], 3, Default::default()).unwrap();
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
