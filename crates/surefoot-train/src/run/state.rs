//! The state of a run between two steps: its checkpoint and its digest.

use super::TrainingRun;
use super::training::Best;
use crate::compute::Compute;
use crate::error::TrainError;
use crate::kernel::parallel;
use crate::optimizer::Updater;
use crate::parameters::{Parameters, Role};
use std::ops::Range;
use surefoot_diagnose::Evaluation;
use surefoot_record::{
    Array, Checkpoint, Digest, Part as DigestPart, Quantity, StepDigest, Values,
};

/// A part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name in the checkpoint.
    pub name: &'static str,
    /// Consequence of leaving it out.
    pub why: &'static str,
}

/// The parts of a checkpoint: everything that a later step or the delivered model depends on and that
/// does not follow from the plan and the data.
///
/// The epoch, the order of samples, the learning rate and all random draws follow from the number
/// of steps done. Optimizers without memory have no `optimizer.N`, only Nadam has a
/// `optimizer.momentum_product`, and before the first evaluation there is no `best`.
pub const CHECKPOINT_MEMBERS: [Member; 8] = [
    Member {
        name: "step",
        why: "training would continue with other samples, draws and learning rates",
    },
    Member {
        name: "parameters",
        why: "what was learned would be lost, and the moving statistics of normalisations",
    },
    Member { name: "optimizer.N", why: "the optimizer would restart without its gradient history" },
    Member {
        name: "optimizer.momentum_product",
        why: "Nadam would correct its momentum as in its first step",
    },
    Member {
        name: "best.parameters",
        why: "a model that was better than all later ones could not be delivered",
    },
    Member { name: "best.step", why: "the step of the delivered model would be unknown" },
    Member {
        name: "best.loss",
        why: "of two models with the same metric the wrong one could be delivered",
    },
    Member { name: "best.metric", why: "a worse model could take the place of the best" },
];

impl<B: Compute> TrainingRun<'_, B> {
    /// Restores the state of `checkpoint`.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let saved = Saved(checkpoint);
        let all = self.parameters.values.len();
        self.parameters.values = saved.floats("parameters", all)?;
        for (i, slot) in self.updater.slots.iter_mut().enumerate() {
            *slot = saved.floats(&format!("optimizer.{i}"), slot.len())?;
        }
        if self.updater.multiplies_momentum() {
            self.updater.momentum_product = saved.double("optimizer.momentum_product")?;
        }
        self.best = match checkpoint.array("best.parameters") {
            None => None,
            Some(_) => {
                let step = saved.counter("best.step")?;
                Some(Best {
                    values: saved.floats("best.parameters", all)?,
                    evaluation: Evaluation {
                        step,
                        epoch: step.div_ceil(self.steps_per_epoch()),
                        split: self.evaluated_split(),
                        loss: saved.double("best.loss")?,
                        // A metric that is not defined is stored as NaN, which no metric is.
                        metric: Some(saved.double("best.metric")?).filter(|m| !m.is_nan()),
                    },
                })
            }
        };
        self.step = checkpoint.step;
        Ok(())
    }

    /// The current state: all of [`CHECKPOINT_MEMBERS`].
    pub fn checkpoint(&self) -> Checkpoint {
        let flat = |name: &str, values: &[f32]| Array::new(name, &[values.len()], values.to_vec());
        let double = |name: &str, value: f64| Array::new(name, &[], vec![value]);
        let mut arrays = vec![flat("parameters", &self.parameters.values)];
        for (i, slot) in self.updater.slots.iter().enumerate() {
            arrays.push(flat(&format!("optimizer.{i}"), slot));
        }
        if self.updater.multiplies_momentum() {
            let product = self.updater.momentum_product;
            arrays.push(double("optimizer.momentum_product", product));
        }
        if let Some(Best { evaluation, values }) = &self.best {
            arrays.push(flat("best.parameters", values));
            arrays.push(Array::new("best.step", &[], vec![evaluation.step]));
            arrays.push(double("best.loss", evaluation.loss));
            let metric = evaluation.metric.unwrap_or(f64::NAN);
            arrays.push(double("best.metric", metric));
        }
        Checkpoint {
            step: self.step,
            epoch: self.step / self.steps_per_epoch() + 1,
            state: serde_json::Value::Null,
            arrays,
        }
    }

    /// The digest of the last step, given its loss.
    pub(super) fn step_digest(&mut self, loss: f64) -> &StepDigest {
        self.share(|run| {
            run.seal.seal(run.step, (&run.samples, loss), &run.parameters, &run.updater);
        });
        &self.seal.sealed
    }

    /// The digest of the state alone, with an empty batch and a loss of zero.
    pub fn standing_digest(&mut self) -> &StepDigest {
        self.seal.seal(self.step, (&[], 0.0), &self.parameters, &self.updater)
    }
}

/// Reads a checkpoint.
struct Saved<'a>(&'a Checkpoint);

impl Saved<'_> {
    fn floats(&self, name: &str, len: usize) -> Result<Vec<f32>, TrainError> {
        self.0
            .array(name)
            .and_then(Array::as_f32)
            .filter(|values| values.len() == len)
            .map(<[f32]>::to_vec)
            .ok_or_else(|| self.lacks(name))
    }

    fn double(&self, name: &str) -> Result<f64, TrainError> {
        match self.0.array(name).map(|array| &array.data) {
            Some(Values::F64(values)) if values.len() == 1 => Ok(values[0]),
            _ => Err(self.lacks(name)),
        }
    }

    fn counter(&self, name: &str) -> Result<u64, TrainError> {
        match self.0.array(name).map(|array| &array.data) {
            Some(Values::U64(values)) if values.len() == 1 => Ok(values[0]),
            _ => Err(self.lacks(name)),
        }
    }

    fn lacks(&self, name: &str) -> TrainError {
        TrainError::ForeignCheckpoint {
            step: self.0.step,
            reason: format!("`{name}` is missing or has another size"),
        }
    }
}

/// Computes the digests of steps.
///
/// Everything is hashed at every step. That is a pass over parameters and optimizer memory that
/// have just been written, so they are in the cache if they fit in it at all.
pub(super) struct Seal {
    parts: Vec<DigestPart>,
    /// Parameter ranges of the parts that belong to layers.
    ranges: Vec<Range<usize>>,
    // Buffers that are reused.
    digests: Vec<Digest>,
    sealed: StepDigest,
}

impl Seal {
    /// Of a model with these parameters.
    pub(super) fn new(parameters: &Parameters) -> Self {
        let mut parts = vec![
            DigestPart::of(Quantity::Batch),
            DigestPart::of(Quantity::Loss),
            DigestPart::of(Quantity::Optimizer),
        ];
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for quantity in [Quantity::Parameters, Quantity::Statistics] {
            for (id, declaration) in parameters.declarations().iter().enumerate() {
                let moves = declaration.role == Role::Moving;
                if moves != (quantity == Quantity::Statistics) {
                    continue;
                }
                let part = DigestPart::of_layer(quantity, &declaration.layer);
                let range = parameters.range(id);
                // The arrays of a layer lie one after the other.
                match ranges.last_mut() {
                    Some(last) if parts.last() == Some(&part) && last.end == range.start => {
                        last.end = range.end;
                    }
                    _ => {
                        parts.push(part);
                        ranges.push(range);
                    }
                }
            }
        }
        Self { parts, ranges, digests: Vec::new(), sealed: StepDigest::default() }
    }

    /// The parts of a digest.
    pub(super) fn parts(&self) -> &[DigestPart] {
        &self.parts
    }

    fn seal(
        &mut self,
        step: u64,
        (samples, loss): (&[u64], f64),
        parameters: &Parameters,
        updater: &Updater,
    ) -> &StepDigest {
        self.digests.clear();
        self.digests.push(Digest::of_u64(samples));
        // As it is, so that it can be read in the record.
        self.digests.push(Digest(loss.to_bits().into()));
        let layers = self.ranges.iter().map(|range| &parameters.values[range.clone()]);
        let arrays: Vec<&[f32]> = updater.slots.iter().map(Vec::as_slice).chain(layers).collect();
        let mut digests = vec![Digest(0); arrays.len()];
        parallel::chunks_mut(&mut digests, 1, |index, digest| {
            digest[0] = Digest::of_f32(arrays[index]);
        });
        let (slots, layers) = digests.split_at(updater.slots.len());
        self.digests.push(digest_of(updater, slots));
        self.digests.extend_from_slice(layers);
        self.sealed.seal(step, &self.digests);
        &self.sealed
    }
}

/// The digest of an optimizer's memory, given those of its slots.
fn digest_of(updater: &Updater, slots: &[Digest]) -> Digest {
    /// The most slots that an optimizer has.
    const SLOTS: usize = 4;
    let mut bytes = [0; SLOTS * 16 + 8];
    assert!(slots.len() <= SLOTS, "a slot would go unseen");
    bytes[..8].copy_from_slice(&updater.momentum_product.to_bits().to_le_bytes());
    for (to, slot) in bytes[8..].chunks_exact_mut(16).zip(slots) {
        to.copy_from_slice(&slot.0.to_le_bytes());
    }
    Digest::of(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;
    use crate::callback::{Callback, RunContext, Step, StopReason};
    use std::path::Path;
    use surefoot_data::Dataset;
    use surefoot_plan::{Document, Plan};

    /// With everything that a checkpoint can hold. The metric is always 1, so that the loss decides
    /// which model is the best, and it is soon at its best.
    const PLAN: &str = r#"
seed = 4
[data]
source = { kind = "blobs", samples = 60, centers = 2, features = 2, spread = 0.2 }
split = { validation = 0.3, test = 0.0 }
[[model]]
layer = "dense"
units = 4
activation = "tanh"
[[model]]
layer = "batch_norm"
momentum = 0.5
[[model]]
layer = "dense"
units = 1
activation = "sigmoid"
[training]
epochs = 12
batch_size = 8
optimizer = { name = "nadam", learning_rate = 0.3 }
"#;

    fn load() -> (Plan, Dataset) {
        let plan = Document::parse(PLAN, "plan.toml").unwrap().plan().unwrap();
        let data = surefoot_data::load(&plan.data, plan.seed, Path::new(".")).unwrap();
        (plan, data)
    }

    fn start<'a>((plan, data): &'a (Plan, Dataset)) -> TrainingRun<'a, Cpu> {
        TrainingRun::new(plan, data, &[], 1, Default::default()).unwrap()
    }

    /// Everything a run promises.
    fn outcome(mut run: TrainingRun<'_, Cpu>) -> String {
        let report = run.train(&mut []).unwrap();
        assert_eq!(report.reason, StopReason::Finished);
        let last = run.standing_digest().digest;
        format!("{:?} {:?} {last} {}", report.best, report.last, report.digest)
    }

    /// A checkpoint in the middle of an epoch, after the best model of all.
    fn interrupted(job: &(Plan, Dataset)) -> Checkpoint {
        let mut best = start(job);
        let whole = best.train(&mut []).unwrap();
        let after = whole.best.unwrap().step + 2;
        assert!(after < whole.steps, "the best model is the last");
        struct PauseAt(u64);
        impl Callback for PauseAt {
            fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
                if step.progress.step == self.0 {
                    run.stop(StopReason::Paused);
                }
                Ok(())
            }
        }
        let mut run = start(job);
        run.train(&mut [&mut PauseAt(after)]).unwrap();
        assert_ne!(run.step % run.steps_per_epoch(), 0);
        run.checkpoint()
    }

    /// Resets one member of a checkpoint to its value at the start of a run.
    fn forget(run: &mut TrainingRun<'_, Cpu>, member: &str, fresh: TrainingRun<'_, Cpu>) {
        let best = run.best.as_mut().unwrap();
        match member {
            "step" => run.step = 0,
            "parameters" => run.parameters.values = fresh.parameters.values,
            "optimizer.N" => run.updater.slots = fresh.updater.slots,
            "optimizer.momentum_product" => {
                run.updater.momentum_product = fresh.updater.momentum_product;
            }
            "best.parameters" => best.values = fresh.parameters.values,
            "best.step" => best.evaluation.step = 0,
            "best.loss" => best.evaluation.loss = f64::INFINITY,
            "best.metric" => best.evaluation.metric = None,
            other => panic!("no way to leave out {other}"),
        }
    }

    #[test]
    fn leaving_out_any_member_of_a_checkpoint_changes_the_outcome() {
        let job = load();
        let whole = outcome(start(&job));
        let checkpoint = interrupted(&job);
        let resumed = |forgotten: Option<&str>| {
            let mut run = start(&job);
            run.restore(&checkpoint).unwrap();
            if let Some(member) = forgotten {
                forget(&mut run, member, start(&job));
            }
            outcome(run)
        };
        assert_eq!(resumed(None), whole);
        for member in CHECKPOINT_MEMBERS {
            assert_ne!(resumed(Some(member.name)), whole, "without {}", member.name);
        }
    }

    #[test]
    fn each_array_of_the_optimizer_is_a_member() {
        let job = load();
        let whole = outcome(start(&job));
        let checkpoint = interrupted(&job);
        for slot in 0..2 {
            let mut run = start(&job);
            run.restore(&checkpoint).unwrap();
            run.updater.slots[slot].fill(0.0);
            assert_ne!(outcome(run), whole, "without optimizer.{slot}");
        }
    }

    #[test]
    fn the_members_are_what_a_checkpoint_holds() {
        let held = interrupted(&load()).arrays;
        let mut held: Vec<String> = held.into_iter().map(|array| array.name).collect();
        held.retain(|name| name != "optimizer.1");
        let listed = CHECKPOINT_MEMBERS.iter().map(|member| member.name);
        let listed: Vec<String> =
            listed.filter(|name| *name != "step").map(|name| name.replace('N', "0")).collect();
        assert_eq!(held, listed);
    }

    #[test]
    fn a_checkpoint_without_one_of_its_arrays_is_refused() {
        let job = load();
        let whole = interrupted(&job);
        for place in 0..whole.arrays.len() {
            let mut torn = whole.clone();
            let array = torn.arrays.remove(place);
            // Without its model there is no best at all, and that is a checkpoint too.
            if array.name == "best.parameters" {
                continue;
            }
            let error = start(&job).restore(&torn).unwrap_err().to_string();
            assert!(error.contains(&array.name), "{error}");
        }
    }

    #[test]
    fn a_digest_covers_every_value_of_the_state() {
        let job = load();
        let mut run = start(&job);
        run.execute();
        let parts = run.seal.parts().to_vec();
        let digest = |run: &mut TrainingRun<'_, Cpu>, loss: f64| run.step_digest(loss).clone();
        let before = digest(&mut run, 0.5);
        let changed = |change: &dyn Fn(&mut TrainingRun<'_, Cpu>), part: DigestPart| {
            let mut other = start(&job);
            other.execute();
            change(&mut other);
            let after = digest(&mut other, 0.5);
            assert_ne!(after.digest, before.digest, "{part:?}");
            let differing: Vec<&DigestPart> = parts
                .iter()
                .zip(before.parts.iter().zip(&after.parts))
                .filter(|(_, (before, after))| before != after)
                .map(|(part, _)| part)
                .collect();
            assert_eq!(differing, [&part]);
        };
        let flip = |value: &mut f32| *value = f32::from_bits(value.to_bits() ^ 1);
        for (id, array) in run.parameters.declarations().iter().enumerate() {
            let quantity = match array.role {
                Role::Moving => Quantity::Statistics,
                _ => Quantity::Parameters,
            };
            for place in run.parameters.range(id) {
                let part = DigestPart::of_layer(quantity, &array.layer);
                changed(&|run| flip(&mut run.parameters.values[place]), part);
            }
        }
        for slot in 0..2 {
            for place in 0..run.parameters.learned() {
                changed(
                    &|run| flip(&mut run.updater.slots[slot][place]),
                    DigestPart::of(Quantity::Optimizer),
                );
            }
        }
        let product = |run: &mut TrainingRun<'_, Cpu>| run.updater.momentum_product *= 0.5;
        changed(&product, DigestPart::of(Quantity::Optimizer));
        let swap = |run: &mut TrainingRun<'_, Cpu>| run.samples.swap(0, 1);
        changed(&swap, DigestPart::of(Quantity::Batch));
        assert_ne!(digest(&mut run, 0.25).digest, before.digest);
        run.step += 1;
        assert_ne!(digest(&mut run, 0.5).digest, before.digest);
    }
}
