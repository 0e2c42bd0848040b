//! A run: a plan with its data on a device, on its way from the first step to the last.
//!
//! What can be done with it is a file each: [`training`] has the loop, with validation, the best
//! model and checkpoints; [`step`] one step of it; [`state`] what a run is between two steps, its
//! checkpoint and its digest; [`replay`] repeats steps that were done before; [`capsule`] packs one
//! step so that it can be repeated anywhere.

pub(crate) mod capsule;
mod replay;
pub(crate) mod state;
pub(crate) mod step;
mod training;

pub(crate) use training::better;

use crate::compute::Compute;
use crate::error::TrainError;
use crate::metric::metric_name;
use crate::network::Network;
use crate::optimizer::Updater;
use crate::parameters::Parameters;
use crate::shard::Examples;
use crate::watch::{Rhythm, main_arrays};
use crate::worker_pool::WorkerPool;
use state::Seal;
use std::ops::Range;
use std::time::Duration;
use step::Order;
use surefoot_data::{Dataset, Part};
use surefoot_diagnose::{Evaluation, Facts, LayerInfo, LayerObservation, Observation};
use surefoot_plan::{Layer, Plan, Weight, layer_names};
use surefoot_record::{Digest, Part as DigestPart};
use training::Best;

/// What happens while a run trains, for whoever looks on.
pub trait Watcher {
    /// A step was done. `loss` and `metric` are those of its batch.
    fn step(&mut self, progress: &Progress);

    /// The step was observed, with its layers if their turn had come.
    fn observed(&mut self, _observation: &Observation) {}

    /// A part of the data was evaluated.
    fn evaluated(&mut self, evaluation: &Evaluation);

    /// What to do after this step.
    fn flow(&self) -> Flow;
}

/// What to do after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    GoOn,
    /// Wait: [`Run::train`] may be called again.
    Pause,
    /// Stop, so that it can be gone on with later, in another process.
    Interrupt,
    /// Stop for good: the run is not worth going on with.
    GiveUp,
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All steps were done.
    Finished,
    /// It waits.
    Paused,
    /// Somebody asked to stop; it can be gone on with.
    Interrupted,
    /// It was not worth going on with.
    Hopeless,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// The epoch of this step, from 1.
    pub epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// The loss of this step's batch.
    pub loss: f64,
    /// The metric of this step's batch.
    pub metric: Option<f64>,
}

/// What a plan comes to with its data, known before anything runs.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The layers that are watched.
    pub layers: Vec<LayerInfo>,
    /// Parameters that learn.
    pub parameters: u64,
    /// Steps of an epoch.
    pub steps_per_epoch: u64,
    /// Multiplications of a step, forward and backward, counted rather than measured.
    pub operations: u64,
    /// Into how many shards a batch is cut.
    pub shards: usize,
    /// How often it is observed.
    pub rhythm: Rhythm,
    /// What the metric is called.
    pub metric: &'static str,
    /// The digest of the data.
    pub data: Digest,
    /// What the parts of a step's digest cover.
    pub digest_parts: Vec<DigestPart>,
    /// What a diagnosis reasons with.
    pub facts: Facts,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// Why it ended.
    pub end: End,
    /// Steps done in all.
    pub steps: u64,
    /// Time that this call took: steps, evaluations, checkpoints.
    pub training: Duration,
    /// The delivered model's evaluation: the best so far by the validation split. Where there is
    /// none, the last model is delivered, and judged by the training split.
    pub best: Option<Evaluation>,
    /// The evaluation of the model as it was at the end.
    pub last: Option<Evaluation>,
    /// The delivered model on the test split, if there is one.
    pub test: Option<Evaluation>,
    /// The digest of the delivered model.
    pub digest: Digest,
    /// The delivered model.
    pub model: Vec<Weight>,
}

/// Workers that are of use in judging, however few the shards.
const JUDGES: usize = 8;

/// A run in the making, on one device.
pub struct Run<'a, B: Compute> {
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
    rhythm: Rhythm,
    step: u64,
    /// Steps in all.
    steps: u64,
    best: Option<Best>,
    last: Option<Evaluation>,
    /// The order of samples in the epoch that a step was last done of.
    order: Option<Order>,
    /// The numbers of the samples of the last step, which its digest covers.
    samples: Vec<u64>,
    seal: Seal,
    /// The layers as last observed, and the weights before the step: kept for their memory.
    layers: Vec<LayerObservation>,
    before: Vec<f32>,
}

impl<'a, B: Compute> Run<'a, B> {
    /// A run before its first step. `weights` replace initial values, `workers` threads share the
    /// work of a step.
    pub fn new(
        plan: &'a Plan,
        data: &'a Dataset,
        weights: &[Weight],
        workers: usize,
        device: B::Device,
    ) -> Result<Self, TrainError> {
        check_symbols(plan, data)?;
        let network = Network::<B>::new(&plan.model, &data.input_shape);
        let mut parameters = Parameters::new(network.declarations.clone(), plan.seed);
        if parameters.learned() == 0 {
            return Err(TrainError::NothingToLearn);
        }
        for weight in weights {
            if !parameters.load(weight) {
                return Err(TrainError::ForeignWeight {
                    layer: weight.layer.clone(),
                    name: weight.name.clone(),
                    shape: weight.shape.clone(),
                });
            }
        }
        let examples = |part: &Part| Examples::new(&part.features, &data.input_shape);
        let batch = batch_size(plan, data);
        let shards = shards(plan, &network, batch).min(batch);
        let steps = steps_per_epoch(plan, data).saturating_mul(plan.training.epochs);
        Ok(Self {
            updater: Updater::new(plan.training.optimizer, parameters.learned()),
            steps,
            seal: Seal::new(&parameters),
            shards,
            rhythm: Rhythm::new(&plan.watch, &network, batch, steps),
            train: examples(&data.train),
            validation: examples(&data.validation),
            test: examples(&data.test),
            arrays: main_arrays(&network, &parameters),
            plan,
            data,
            device,
            network,
            parameters,
            // More workers than shards would have nothing to do but judge.
            worker_pool: WorkerPool::new(workers.min(shards.max(JUDGES))),
            step: 0,
            best: None,
            last: None,
            order: None,
            samples: Vec::new(),
            layers: Vec::new(),
            before: Vec::new(),
        })
    }

    /// Shares the work of a step among so many threads from now on. The bits stay the same.
    pub fn set_workers(&mut self, workers: usize) {
        let workers = workers.min(self.shards.max(JUDGES));
        if workers != self.worker_pool.size() {
            self.worker_pool = WorkerPool::new(workers);
        }
    }

    /// Takes for the initial values those of `weights` that fit a parameter by name and shape.
    pub fn adopt(&mut self, weights: &[Weight]) {
        for weight in weights {
            self.parameters.load(weight);
        }
    }

    /// What is known of the run before it starts.
    pub fn outline(&self) -> Outline {
        Outline {
            layers: self.network.layers(),
            parameters: self.network.parameters(),
            steps_per_epoch: self.steps_per_epoch(),
            // Each weight is used once on the way forward and twice on the way back.
            operations: 3 * self.network.work * self.batch_size() as u64,
            shards: self.shards,
            rhythm: self.rhythm,
            metric: metric_name(self.data.task),
            data: Digest(self.data.digest),
            digest_parts: self.seal.parts().to_vec(),
            facts: crate::facts::of(
                self.plan,
                self.data,
                self.network.layers(),
                self.steps_per_epoch(),
            ),
        }
    }

    fn steps_per_epoch(&self) -> u64 {
        steps_per_epoch(self.plan, self.data)
    }

    fn batch_size(&self) -> usize {
        batch_size(self.plan, self.data)
    }
}

fn batch_size(plan: &Plan, data: &Dataset) -> usize {
    plan.training.batch_size.min(data.train.len.max(1))
}

fn steps_per_epoch(plan: &Plan, data: &Dataset) -> u64 {
    data.train.len.div_ceil(plan.training.batch_size) as u64
}

/// Into how many shards a batch is cut: enough to share among workers, and not so many that each
/// is too small to compute well. Depends on the plan alone.
fn shards<B: Compute>(plan: &Plan, network: &Network<B>, batch: usize) -> usize {
    /// Samples that a shard should have at least.
    const SAMPLES: usize = 32;
    /// Multiplications below which sharing a step costs more than it gains.
    const WORTH_SHARING: u64 = 4_000_000;
    match plan.training.shards {
        Some(shards) => shards,
        None if network.work * (batch as u64) < WORTH_SHARING => 1,
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

/// The layers that do something themselves, in the order of [`layer_names`].
fn leaves(layers: &[Layer]) -> Vec<&Layer> {
    layers
        .iter()
        .flat_map(|layer| match layer {
            Layer::Residual(residual) => leaves(&residual.layers),
            other => vec![other],
        })
        .collect()
}
