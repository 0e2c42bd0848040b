//! The checkpoints of the trainer hold what the calculus says they must, and nothing in vain.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod training_loop;

use std::collections::BTreeSet;

use surefoot_check::calculus::{Label, Program, SaveSet, infer};
use surefoot_data::Dataset;
use surefoot_diagnose::Evaluation;
use surefoot_plan::Plan;
use surefoot_record::{Array, Checkpoint, Digest, StepDigest, Values};
use surefoot_train::{Callback, Cpu, RunContext, TrainError, TrainingResult, TrainingRun};
use training_loop::training_loop;

/// The trainer's loop in the calculus, and what its checkpoint must hold.
fn derived() -> (Program, SaveSet) {
    let program = training_loop();
    let save = infer(&program).save(Label(0)).unwrap().clone();
    (program, save)
}

/// Everything there is to remember: two slots and a number of the optimizer, normalisations, dropout,
/// a best model that stays the best because the rate is far too high.
fn plan() -> Plan {
    let text = r#"
[data]
source = { kind = "moons", samples = 200 }
split = { validation = 0.3, test = 0.1 }

[[model]]
layer = "dense"
units = 6
[[model]]
layer = "batch_norm"
[[model]]
layer = "dropout"
rate = 0.2
[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 12
batch_size = 16
checkpoint_every = 5
optimizer = { name = "nadam", learning_rate = 3.0 }
"#;
    Plan::parse(text, "checkpoint").unwrap()
}

fn data() -> Dataset {
    let plan = plan();
    surefoot_data::load(&plan.data, plan.seed, ".".as_ref()).unwrap()
}

fn steps_per_epoch() -> u64 {
    data().train.len.div_ceil(plan().training.batch_size) as u64
}

/// Keeps the checkpoints of a run, and the digest of each step.
#[derive(Default)]
struct Kept {
    checkpoints: Vec<Checkpoint>,
    digests: Vec<(u64, Digest)>,
}

impl Callback for Kept {
    fn needs_state(&self) -> bool {
        true
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
        self.checkpoints.push(checkpoint.clone());
        Ok(())
    }
}

/// Trains to the end, from a checkpoint or from the beginning.
fn train(from: Option<&Checkpoint>) -> (TrainingResult, Kept) {
    let (plan, data) = (plan(), data());
    let mut run = TrainingRun::<Cpu>::new(&plan, &data, &[], 1, Default::default()).unwrap();
    if let Some(checkpoint) = from {
        run.restore(checkpoint).unwrap();
    }
    let mut kept = Kept::default();
    let report = run.train(&mut [&mut kept]).unwrap();
    (report, kept)
}

/// The outputs of the loop, by which runs are compared.
#[derive(PartialEq)]
struct Outputs {
    digests: Vec<(u64, Digest)>,
    model: Digest,
    best: Option<Evaluation>,
    last: Option<Evaluation>,
}

fn outputs((report, kept): &(TrainingResult, Kept), after: u64) -> Outputs {
    let digests = kept.digests.iter().filter(|(step, _)| *step > after);
    Outputs {
        digests: digests.copied().collect(),
        model: report.digest,
        best: report.best.clone(),
        last: report.last.clone(),
    }
}

/// A run, and a checkpoint of it in the middle of an epoch, when the best model is already known.
fn interrupted() -> ((TrainingResult, Kept), Checkpoint) {
    let whole = train(None);
    let best = whole.0.best.as_ref().unwrap().step;
    let is_wanted = |c: &&Checkpoint| c.step > best && !c.step.is_multiple_of(steps_per_epoch());
    let checkpoint = whole.1.checkpoints.iter().find(is_wanted).cloned();
    (whole, checkpoint.expect("the best model comes early"))
}

/// The variable of the loop to which an array of a checkpoint belongs: `best.loss` to `best`.
fn belongs_to(array: &str) -> String {
    array.split('.').next().unwrap_or(array).to_owned()
}

#[test]
fn a_checkpoint_holds_what_the_types_of_the_loop_derive() {
    let (program, save) = derived();
    // Every field has to be named here: a new one is a question to the calculus.
    let Checkpoint { step, epoch, state, arrays } = interrupted().1;

    let held: BTreeSet<String> = arrays.iter().map(|a| belongs_to(&a.name)).collect();
    let derived = save.members.iter().map(|m| program.name(m.variable).to_owned());
    assert_eq!(held, derived.collect());
    assert_eq!(state, serde_json::Value::Null);

    // The counters, as one number; the epoch follows from it, for readers of the record.
    let counters: Vec<&str> = save.counters.iter().map(|c| program.name(*c)).collect();
    assert_eq!(counters, ["epoch", "batch"]);
    assert_eq!(save.bounds, []);
    assert_eq!(epoch, step / steps_per_epoch() + 1);
}

#[test]
fn the_loop_needs_no_generator_and_no_workers() {
    let program = training_loop();
    let typing = infer(&program);
    assert_eq!(typing.worker_dependences(), []);
    assert_eq!(derived().1.fresh, []);
}

#[test]
fn a_run_goes_on_from_a_checkpoint_as_if_nothing_had_happened() {
    let (whole, checkpoint) = interrupted();
    let resumed = train(Some(&checkpoint));
    assert!(outputs(&resumed, checkpoint.step) == outputs(&whole, checkpoint.step));
}

/// The checkpoint with one thing forgotten, for each thing there is.
fn with_something_forgotten(checkpoint: &Checkpoint) -> Vec<(String, Checkpoint)> {
    let mut all = Vec::new();
    for (at, array) in checkpoint.arrays.iter().enumerate() {
        let replaced = |data: Values| {
            let mut forgotten = checkpoint.clone();
            forgotten.arrays[at] = Array { data, ..array.clone() };
            forgotten
        };
        match &array.data {
            Values::F32(values) => {
                let data = Values::F32(vec![0.25; values.len()]);
                all.push((array.name.clone(), replaced(data)));
            }
            Values::F64(values) => {
                let data = Values::F64(values.iter().map(|value| value * 0.5).collect());
                all.push((array.name.clone(), replaced(data)));
            }
            Values::U64(values) => {
                let data = Values::U64(values.iter().map(|value| value + 1).collect());
                all.push((array.name.clone(), replaced(data)));
            }
            Values::Bytes(dtype, _) => panic!("`{}` has the type {dtype}", array.name),
        }
    }
    let mut forgotten = checkpoint.clone();
    forgotten.step -= 1;
    all.push(("step".into(), forgotten));
    all
}

#[test]
fn nothing_can_be_left_out_of_a_checkpoint() {
    let (whole, checkpoint) = interrupted();
    let expected = outputs(&whole, checkpoint.step);
    for (what, forgotten) in with_something_forgotten(&checkpoint) {
        let resumed = train(Some(&forgotten));
        assert!(outputs(&resumed, checkpoint.step) != expected, "{what}");
    }
}
