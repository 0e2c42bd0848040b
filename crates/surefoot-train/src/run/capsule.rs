//! Packs one step into a capsule, and repeats it.

use super::TrainingRun;
use crate::compute::Compute;
use crate::error::TrainError;
use serde::{Deserialize, Serialize};
use surefoot_data::{Dataset, Part, Preprocessing, Targets};
use surefoot_diagnose::{LayerInfo, Observation};
use surefoot_plan::{ObserveEvery, Plan, Task, Watch};
use surefoot_record::{Array, Capsule, CapsuleFacts, Checkpoint, StepDigest, Values};

/// Prefix of a checkpoint's arrays.
const STATE: &str = "state.";

/// Inputs of a step besides the plan, the state and the batch.
#[derive(Debug, Serialize, Deserialize)]
struct Training {
    /// Total steps, for the learning rate schedule.
    steps: u64,
    /// Shards per full batch.
    shards: usize,
    input_shape: Vec<usize>,
    /// One more than the largest symbol; 0 if the features are not symbols.
    symbols: usize,
    task: String,
    classes: usize,
    target_width: usize,
    positions: usize,
}

impl<B: Compute> TrainingRun<'_, B> {
    /// Packs the next step and completes `facts`. The batch is packed as the network receives it:
    /// cleaned, scaled, channels last.
    pub fn pack(&mut self, facts: CapsuleFacts) -> Result<Capsule, TrainError> {
        let ids = self.next_batch();
        let part = &self.data.train;
        let width = part.features.len() / part.len.max(1);
        let mut arrays = self.checkpoint().arrays;
        // A step does not depend on the best model.
        arrays.retain(|array| !array.name.starts_with("best."));
        for array in &mut arrays {
            array.name.insert_str(0, STATE);
        }
        let features: Vec<f32> = ids
            .iter()
            .flat_map(|&id| part.features[id * width..][..width].iter().copied())
            .collect();
        let mut shape = vec![ids.len()];
        shape.extend(&self.data.input_shape);
        arrays.push(Array::new("batch.features", &shape, features));
        arrays.push(match &part.targets {
            Targets::Classes(classes) => {
                let width = self.data.positions;
                let classes: Vec<u64> = ids
                    .iter()
                    .flat_map(|&id| classes[id * width..][..width].iter().map(|&it| it.into()))
                    .collect();
                Array::new("batch.targets", &[classes.len()], classes)
            }
            Targets::Values(values) => {
                let width = self.data.target_width * self.data.positions;
                let values: Vec<f32> = ids
                    .iter()
                    .flat_map(|&id| values[id * width..][..width].iter().copied())
                    .collect();
                Array::new("batch.targets", &[ids.len(), width], values)
            }
        });
        let samples: Vec<u64> = ids.iter().map(|&id| part.ids[id]).collect();
        arrays.push(Array::new("batch.samples", &[ids.len()], samples));
        let training = Training {
            steps: self.steps,
            shards: self.shards,
            input_shape: self.data.input_shape.clone(),
            symbols: self.data.symbols,
            task: self.data.task.name().to_owned(),
            classes: self.data.classes,
            target_width: self.data.target_width,
            positions: self.data.positions,
        };
        let training = serde_json::to_value(training);
        Ok(Capsule {
            facts: CapsuleFacts {
                step: self.step + 1,
                epoch: self.step / self.steps_per_epoch() + 1,
                training: training
                    .map_err(|error| TrainError::ForeignCapsule(error.to_string()))?,
                ..facts
            },
            arrays,
        })
    }
}

/// Origin of the first NaN or infinite value in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The parameters of a layer, before the step.
    Before(String),
    /// The samples.
    Input,
    /// The output of a layer.
    Output(String),
    /// The loss, with finite outputs.
    Loss,
    /// The gradient of a layer.
    Gradient(String),
    /// The optimizer's update of a layer.
    Update(String),
}

/// A repeated step.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// The layers.
    pub layers: Vec<LayerInfo>,
    /// Their observation.
    pub observation: Observation,
    /// The digest of the state after the step.
    pub digest: StepDigest,
    /// Origin of the first non-finite value, if there is one.
    pub origin: Option<Origin>,
}

/// Repeats the step in a capsule, given its plan.
pub fn repeat<B: Compute>(
    plan: &Plan,
    capsule: &Capsule,
    workers: usize,
    device: B::Device,
) -> Result<Repeated, TrainError> {
    let mut plan = plan.clone();
    // Observing does not change the state.
    plan.watch = Watch {
        every: ObserveEvery::Every(std::num::NonZeroU64::MIN),
        quartiles: ObserveEvery::Never,
        ..Watch::default()
    };
    let (training, data) = unpack(&plan, capsule)?;
    let mut run = TrainingRun::<B>::new(&plan, &data, &[], workers, device)?;
    if !run.network.width.is_multiple_of(training.positions) {
        return Err(TrainError::ForeignCapsule("its targets do not fit the model".to_owned()));
    }
    run.steps = training.steps;
    run.shards = training.shards;
    run.set_workers(workers);
    run.restore(&state(capsule))?;
    let stale = first_stale(&run);
    let ids: Vec<usize> = (0..data.train.len).collect();
    let observation = run.advance(&ids, capsule.facts.epoch - 1);
    let digest = run.step_digest(observation.loss).clone();
    let layers = run.network.layers();
    let origin = stale.map(Origin::Before).or_else(|| origin(&layers, &observation));
    Ok(Repeated { layers, observation, digest, origin })
}

/// The first layer with a parameter that is not finite.
fn first_stale<B: Compute>(run: &TrainingRun<'_, B>) -> Option<String> {
    let declarations = run.parameters.declarations().iter().enumerate();
    let mut stale = declarations.filter(|(id, _)| {
        let values = &run.parameters.values[run.parameters.range(*id)];
        !values.iter().all(|value| value.is_finite())
    });
    stale.next().map(|(_, array)| array.layer.clone())
}

/// Origin of the first non-finite value, in the order of a step.
fn origin(layers: &[LayerInfo], seen: &Observation) -> Option<Origin> {
    let finite = |summary: &Option<surefoot_stats::Summary>| {
        summary.as_ref().is_none_or(|s| s.nan == 0 && s.inf == 0)
    };
    if !finite(&seen.input) {
        return Some(Origin::Input);
    }
    let named = || layers.iter().zip(&seen.layers);
    let name = |info: &LayerInfo| info.name.clone();
    if let Some((info, _)) = named().find(|(_, seen)| !finite(&seen.output)) {
        return Some(Origin::Output(name(info)));
    }
    if !seen.loss.is_finite() {
        return Some(Origin::Loss);
    }
    // Gradients come back from the last layer to the first.
    if let Some((info, _)) = named().rev().find(|(_, seen)| !finite(&seen.gradient)) {
        return Some(Origin::Gradient(name(info)));
    }
    let moved = named().find(|(_, seen)| !finite(&seen.weight));
    moved.map(|(info, _)| Origin::Update(name(info)))
}

/// The state before the step.
fn state(capsule: &Capsule) -> Checkpoint {
    let arrays = capsule.arrays.iter().filter_map(|array| {
        let name = array.name.strip_prefix(STATE)?.to_owned();
        Some(Array { name, ..array.clone() })
    });
    Checkpoint {
        step: capsule.facts.step - 1,
        epoch: capsule.facts.epoch,
        state: serde_json::Value::Null,
        arrays: arrays.collect(),
    }
}

/// The batch as a data set.
fn unpack(plan: &Plan, capsule: &Capsule) -> Result<(Training, Dataset), TrainError> {
    let foreign = |reason: &str| TrainError::ForeignCapsule(reason.to_owned());
    let training: Training = serde_json::from_value(capsule.facts.training.clone())
        .map_err(|error| TrainError::ForeignCapsule(error.to_string()))?;
    let task = Task::named(&training.task).ok_or_else(|| foreign("unknown task"))?;
    let has_classes = matches!(task, Task::Binary | Task::MultiClass);
    let lacks =
        |name: &str| TrainError::ForeignCapsule(format!("`{name}` is missing or has another size"));
    let ids = match capsule.array("batch.samples").map(|array| &array.data) {
        Some(Values::U64(ids)) if !ids.is_empty() => ids.clone(),
        _ => return Err(lacks("batch.samples")),
    };
    let counts = [training.shards, training.positions];
    if capsule.facts.step == 0 || capsule.facts.epoch == 0 || counts.contains(&0) {
        return Err(foreign("steps, epochs, shards and positions count from 1"));
    }
    if ids.len().max(training.shards) > plan.training.batch_size {
        return Err(foreign("its batch is larger than the plan's"));
    }
    let len = ids.len();
    let mut sides = training.input_shape.iter();
    let size = sides.try_fold(len, |size, side| size.checked_mul(*side));
    let features = capsule.array("batch.features").and_then(Array::as_f32);
    let features = features
        .filter(|values| Some(values.len()) == size)
        .ok_or_else(|| lacks("batch.features"))?;
    let row = training.target_width.checked_mul(training.positions);
    let numbers = row.and_then(|row| row.checked_mul(len));
    let targets = match capsule.array("batch.targets").map(|array| &array.data) {
        Some(Values::U64(classes))
            if Some(classes.len()) == len.checked_mul(training.positions) && has_classes =>
        {
            let known = |&class: &u64| u32::try_from(class).ok();
            let classes: Option<Vec<u32>> = classes.iter().map(known).collect();
            let inside = classes.filter(|c| c.iter().all(|&c| (c as usize) < training.classes));
            Targets::Classes(inside.ok_or_else(|| lacks("batch.targets"))?)
        }
        Some(Values::F32(values)) if Some(values.len()) == numbers && !has_classes => {
            Targets::Values(values.clone())
        }
        _ => return Err(lacks("batch.targets")),
    };
    let empty = Part {
        features: Vec::new(),
        targets: match has_classes {
            true => Targets::Classes(Vec::new()),
            false => Targets::Values(Vec::new()),
        },
        len: 0,
        ids: Vec::new(),
    };
    let data = Dataset {
        train: Part { features: features.to_vec(), targets, len, ids },
        validation: empty.clone(),
        test: empty,
        input_shape: training.input_shape.clone(),
        integer_input: training.symbols > 0,
        symbols: training.symbols,
        task,
        classes: training.classes,
        class_names: Vec::new(),
        feature_names: Vec::new(),
        target_width: training.target_width,
        positions: training.positions,
        preprocessing: Preprocessing::default(),
        digest: 0,
        notes: Vec::new(),
    };
    Ok((training, data))
}
