//! A plan being trained on one device.
//!
//! [`training`] is the loop with validation, the best model and checkpoints; [`step`] a single step;
//! [`state`] the checkpoint and the digest; [`replay`] repeats recorded steps; [`capsule`] packs a step
//! into a file.

pub(crate) mod capsule;
mod replay;
pub(crate) mod state;
pub(crate) mod step;
mod training;

use crate::callback::StopReason;
use crate::compute::Compute;
use crate::error::TrainError;
use crate::kernel::{Vectors, is_portable_machine};
use crate::metric::metric_name;
use crate::network::Network;
use crate::observe::{ObserveSchedule, main_arrays};
use crate::optimizer::Updater;
use crate::parameters::Parameters;
use crate::shard::Examples;
use crate::worker_pool::WorkerPool;
use state::Seal;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use step::Order;
use surefoot_data::{Dataset, Part};
use surefoot_diagnose::{Evaluation, Facts, LayerInfo, LayerObservation};
use surefoot_plan::{Layer, Plan, Weight, layer_names};
use surefoot_record::{Array, Digest, Part as DigestPart, StateDigest};
use training::Best;

/// Position of a run, with the loss and metric of its last batch.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Total steps.
    pub steps: u64,
    /// 1-based epoch of this step.
    pub epoch: u64,
    /// Total epochs.
    pub epochs: u64,
    /// The loss of this step's batch.
    pub loss: f64,
    /// The metric of this step's batch.
    pub metric: Option<f64>,
}

/// Facts about a run that are fixed before its first step.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Observed layers.
    pub layers: Vec<LayerInfo>,
    /// Trainable parameters.
    pub parameters: u64,
    /// Steps per epoch.
    pub steps_per_epoch: u64,
    /// Multiplications per step, forward and backward.
    pub operations: u64,
    /// Shards per batch.
    pub shards: usize,
    /// Steps at which layers are observed.
    pub schedule: ObserveSchedule,
    /// Name of the metric.
    pub metric: &'static str,
    /// Digest of the data.
    pub data: Digest,
    /// Parts of a step's digest.
    pub digest_parts: Vec<DigestPart>,
    /// Facts for the diagnosis.
    pub facts: Facts,
}

impl Outline {
    /// Cost of a step in multiplications: those of the network, and what the rest of the step is worth.
    /// Comparable between plans, and independent of the machine.
    pub fn step_cost(&self) -> u64 {
        /// A step of a tiny network takes as long as this many multiplications of a larger one.
        const REST: u64 = 200_000;
        self.operations.saturating_add(REST)
    }
}

/// Result of a training run.
#[derive(Clone, Debug)]
pub struct TrainingResult {
    /// Reason why it ended.
    pub reason: StopReason,
    /// Loss of the last step's batch; NaN before the first step.
    pub last_loss: f64,
    /// Total steps done.
    pub steps: u64,
    /// Duration of the last call, with evaluations and checkpoints.
    pub training: Duration,
    /// Evaluation of the delivered model: the best on the validation split, or without one the last
    /// model on the training split.
    pub best: Option<Evaluation>,
    /// Evaluation of the last model.
    pub last: Option<Evaluation>,
    /// Evaluation of the delivered model on the test split.
    pub test: Option<Evaluation>,
    /// Digest of the delivered model.
    pub digest: Digest,
    /// The delivered model.
    pub model: Vec<Weight>,
}

/// Workers that can share operations and evaluations, however few the shards.
const MOST_WORKERS: usize = 8;

/// A plan being trained on one device.
pub struct TrainingRun<'a, B: Compute> {
    plan: &'a Plan,
    data: &'a Dataset,
    device: B::Device,
    network: Network<B>,
    train: Examples,
    validation: Examples,
    test: Examples,
    parameters: Parameters,
    arrays: Vec<Vec<Range<usize>>>,
    updater: Updater,
    shards: usize,
    worker_pool: WorkerPool,
    schedule: ObserveSchedule,
    step: u64,
    /// Steps in all.
    steps: u64,
    best: Option<Best>,
    last: Option<Evaluation>,
    last_loss: f64,
    outline: Arc<Outline>,
    /// Order of samples in the current epoch.
    order: Option<Order>,
    /// Sample ids of the last step, for its digest.
    samples: Vec<u64>,
    seal: Seal,
    // Buffers that are reused.
    layers: Vec<LayerObservation>,
    before: Vec<f32>,
}

impl<'a, B: Compute> TrainingRun<'a, B> {
    /// Builds the network. `weights` replace initial values; `workers` threads share a step.
    pub fn new(
        plan: &'a Plan,
        data: &'a Dataset,
        weights: &[Weight],
        workers: usize,
        device: B::Device,
    ) -> Result<Self, TrainError> {
        if plan.training.portable && !is_portable_machine() {
            return Err(TrainError::NotPortable("this CPU does not have AVX2 and FMA"));
        }
        let Blueprint { network, mut parameters, seal, outline } =
            Blueprint::new(plan, data, weights)?;
        parameters.allocate(plan.seed);
        for weight in weights {
            parameters.load(weight);
        }
        let examples = |part: &Part| Examples::new(&part.features, &data.input_shape);
        let shards = outline.shards;
        Ok(Self {
            updater: Updater::new(plan.training.optimizer, parameters.learned()),
            steps: outline.steps_per_epoch.saturating_mul(plan.training.epochs),
            seal,
            shards,
            schedule: outline.schedule,
            outline: Arc::new(outline),
            train: examples(&data.train),
            validation: examples(&data.validation),
            test: examples(&data.test),
            arrays: main_arrays(&network, &parameters),
            plan,
            data,
            device,
            network,
            parameters,
            worker_pool: WorkerPool::new(workers.min(shards.max(MOST_WORKERS)))
                .with(Vectors::of(&plan.training)),
            step: 0,
            best: None,
            last: None,
            last_loss: f64::NAN,
            order: None,
            samples: Vec::new(),
            layers: Vec::new(),
            before: Vec::new(),
        })
    }

    /// Changes the number of threads that share a step. The bits stay the same.
    pub fn set_workers(&mut self, workers: usize) {
        let workers = workers.min(self.shards.max(MOST_WORKERS));
        if workers != self.worker_pool.size() {
            self.worker_pool = WorkerPool::new(workers).with(self.worker_pool.vectors);
        }
    }

    /// Loads those `weights` that match a parameter by name and shape.
    pub fn adopt(&mut self, weights: &[Weight]) {
        for weight in weights {
            self.parameters.load(weight);
        }
    }

    /// Facts about the run that are fixed before its first step.
    pub fn outline(&self) -> &Arc<Outline> {
        &self.outline
    }

    fn steps_per_epoch(&self) -> u64 {
        steps_per_epoch(self.plan, self.data)
    }

    /// Calls `body`; the workers share the operations in it if a step is large and is not cut into
    /// shards.
    fn share<R: Send>(&mut self, body: impl FnOnce(&mut Self) -> R + Send) -> R {
        let work = self.network.work.saturating_mul(batch_size(self.plan, self.data) as u64);
        if self.shards > 1 || work < WORTH_SHARING {
            return self.worker_pool.vectors.within(|| body(self));
        }
        let worker_pool = self.worker_pool.clone();
        worker_pool.enter(|| body(self))
    }
}

/// A run before its memory is allocated.
pub(crate) struct Blueprint<B: Compute> {
    network: Network<B>,
    /// Without values.
    parameters: Parameters,
    seal: Seal,
    pub(crate) outline: Outline,
}

impl<B: Compute> Blueprint<B> {
    /// Compiles the network and checks that it can be trained from `weights`.
    pub(crate) fn new(plan: &Plan, data: &Dataset, weights: &[Weight]) -> Result<Self, TrainError> {
        check_symbols(plan, data)?;
        let network = Network::<B>::new(&plan.model, &data.input_shape);
        let parameters = Parameters::unallocated(network.declarations.clone());
        if parameters.learned() == 0 {
            return Err(TrainError::NothingToLearn);
        }
        if let Some(weight) = weights.iter().find(|weight| !parameters.fits(weight)) {
            return Err(TrainError::ForeignWeight {
                layer: weight.layer.clone(),
                name: weight.name.clone(),
                shape: weight.shape.clone(),
            });
        }
        let batch = batch_size(plan, data);
        let steps_per_epoch = steps_per_epoch(plan, data);
        let steps = steps_per_epoch.saturating_mul(plan.training.epochs);
        let seal = Seal::new(&parameters);
        let outline = Outline {
            layers: network.layers(),
            parameters: network.parameters(),
            steps_per_epoch,
            // Each weight is used once in the forward pass and twice in the backward pass.
            operations: network.work.saturating_mul(3).saturating_mul(batch as u64),
            shards: shards(plan, &network, batch).min(batch),
            schedule: ObserveSchedule::new(&plan.watch, &network, batch, steps),
            metric: metric_name(data.task),
            data: Digest(data.digest),
            digest_parts: seal.parts().to_vec(),
            facts: crate::facts::of(plan, data, network.layers(), steps_per_epoch),
        };
        Ok(Self { network, parameters, seal, outline })
    }
}

/// Digest of a recorded model of `plan`, as in the summary of its run. `None` if arrays are missing,
/// have another shape or do not belong to the plan.
pub fn model_digest(plan: &Plan, input_shape: &[usize], model: &[Array]) -> Option<Digest> {
    let declarations = Network::<crate::Cpu>::new(&plan.model, input_shape).declarations;
    let mut digest = StateDigest::new();
    for declaration in &declarations {
        let name = format!("{}.{}", declaration.layer, declaration.name);
        let array = model.iter().find(|array| array.name == name)?;
        if array.shape != declaration.shape {
            return None;
        }
        digest.update_f32(&name, array.as_f32()?);
    }
    (model.len() == declarations.len()).then(|| digest.finish())
}

fn batch_size(plan: &Plan, data: &Dataset) -> usize {
    plan.training.batch_size.min(data.train.len.max(1))
}

fn steps_per_epoch(plan: &Plan, data: &Dataset) -> u64 {
    data.train.len.div_ceil(plan.training.batch_size) as u64
}

/// Multiplications of a forward pass below which sharing a step costs more than it gains.
const WORTH_SHARING: u64 = 4_000_000;

/// Shards per batch: enough to share among workers, each large enough to compute efficiently. A large
/// network has one, since each shard needs a gradient of all parameters; its operations are shared
/// instead. Depends on the plan alone.
fn shards<B: Compute>(plan: &Plan, network: &Network<B>, batch: usize) -> usize {
    /// Minimum samples per shard.
    const SAMPLES: usize = 32;
    /// Parameters above which the gradients of shards cost more than sharing every operation.
    const LARGE: u64 = 1 << 20;
    match plan.training.shards {
        Some(shards) => shards,
        None if network.work.saturating_mul(batch as u64) < WORTH_SHARING => 1,
        None if network.parameters() > LARGE => 1,
        None => (batch / SAMPLES).clamp(1, 8),
    }
}

/// Checks that every embedding has a row for every symbol of the data.
fn check_symbols(plan: &Plan, data: &Dataset) -> Result<(), TrainError> {
    if !data.integer_input {
        return Ok(());
    }
    let names = layer_names(&plan.model);
    for (layer, name) in leaves(&plan.model).into_iter().zip(names) {
        if let Layer::Embedding(embedding) = layer
            && embedding.input_dim < data.symbols
        {
            return Err(TrainError::TooFewSymbols {
                layer: name,
                rows: embedding.input_dim,
                largest: data.symbols - 1,
            });
        }
    }
    Ok(())
}

/// Layers without residual blocks around them, in the order of [`layer_names`].
pub(crate) fn leaves(layers: &[Layer]) -> Vec<&Layer> {
    layers
        .iter()
        .flat_map(|layer| match layer {
            Layer::Residual(residual) => {
                let mut inside = leaves(&residual.layers);
                inside.extend(leaves(residual.shortcut.as_deref().unwrap_or_default()));
                inside
            }
            other => vec![other],
        })
        .collect()
}

#[cfg(test)]
mod portable_tests;
