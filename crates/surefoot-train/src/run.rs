//! The training loop: epochs of steps, validation, the best model, checkpoints.
//!
//! What the next step depends on is the plan, the data, the number of steps done, the parameters,
//! the optimizer's memory and the best model so far; the sample order and every random draw follow
//! from the plan and the step. A checkpoint holds exactly that.

use crate::compute::Compute;
use crate::crew::Crew;
use crate::error::TrainError;
use crate::journal::Journal;
use crate::layer::MovingUpdate;
use crate::loss::TargetView;
use crate::metric::{Tally, metric_name};
use crate::network::Network;
use crate::optimizer::Updater;
use crate::parameters::{Parameters, Role};
use crate::schedule::learning_rate;
use crate::shard::{self, Batch, Examples};
use crate::watch::{Observer, Rhythm, main_arrays};
use std::ops::Range;
use std::time::{Duration, Instant};
use surefoot_data::{Dataset, Part};
use surefoot_diagnose::{Evaluation, Facts, LayerInfo, LayerObservation, Observation, Split};
use surefoot_plan::{Layer, Plan, Weight, layer_names};
use surefoot_random::{Key, Permutation, Purpose};
use surefoot_record::{Array, Checkpoint, Digest, Event, StateDigest, Values};

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
    /// Into how many shards a batch is cut.
    pub shards: usize,
    /// How often it is observed.
    pub rhythm: Rhythm,
    /// What the metric is called.
    pub metric: &'static str,
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
    crew: Crew,
    rhythm: Rhythm,
    step: u64,
    best: Option<Best>,
    last: Option<Evaluation>,
    /// The layers as last observed, and the weights before the step: kept for their memory.
    layers: Vec<LayerObservation>,
    before: Vec<f32>,
}

/// The best model so far.
#[derive(Clone, Debug)]
struct Best {
    evaluation: Evaluation,
    values: Vec<f32>,
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
        let batch = plan.training.batch_size.min(data.train.len.max(1));
        let shards = shards(plan, &network, batch).min(batch);
        let steps = steps_per_epoch(plan, data).saturating_mul(plan.training.epochs);
        Ok(Self {
            updater: Updater::new(plan.training.optimizer, parameters.learned()),
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
            crew: Crew::new(workers.min(shards.max(JUDGES))),
            step: 0,
            best: None,
            last: None,
            layers: Vec::new(),
            before: Vec::new(),
        })
    }

    /// Shares the work of a step among so many threads from now on. The bits stay the same.
    pub fn set_workers(&mut self, workers: usize) {
        let workers = workers.min(self.shards.max(JUDGES));
        if workers != self.crew.size() {
            self.crew = Crew::new(workers);
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
            shards: self.shards,
            rhythm: self.rhythm,
            metric: metric_name(self.data.task),
            facts: crate::facts::of(
                self.plan,
                self.data,
                self.network.layers(),
                self.steps_per_epoch(),
            ),
        }
    }

    /// Goes on from `checkpoint`.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let foreign = |reason: &str| TrainError::ForeignCheckpoint {
            step: checkpoint.step,
            reason: reason.to_owned(),
        };
        let floats = |name: &str, len: usize| {
            checkpoint
                .array(name)
                .and_then(Array::as_f32)
                .filter(|values| values.len() == len)
                .map(<[f32]>::to_vec)
                .ok_or_else(|| foreign(&format!("`{name}` is missing or has another size")))
        };
        let all = self.parameters.values.len();
        self.parameters.values = floats("parameters", all)?;
        for (i, slot) in self.updater.slots.iter_mut().enumerate() {
            *slot = floats(&format!("optimizer.{i}"), slot.len())?;
        }
        let numbers = checkpoint
            .array("numbers")
            .and_then(|array| match &array.data {
                Values::F64(numbers) if numbers.len() == 4 => Some(numbers),
                _ => None,
            })
            .ok_or_else(|| foreign("`numbers` is missing or has another size"))?;
        self.updater.momentum_product = numbers[0];
        self.best = match checkpoint.array("best") {
            None => None,
            Some(_) => Some(Best {
                values: floats("best", all)?,
                evaluation: Evaluation {
                    step: numbers[1] as u64,
                    epoch: (numbers[1] as u64).div_ceil(self.steps_per_epoch()),
                    split: self.judged_split(),
                    loss: numbers[2],
                    // A metric that is not defined is stored as NaN, which no metric is.
                    metric: Some(numbers[3]).filter(|m| !m.is_nan()),
                },
            }),
        };
        self.step = checkpoint.step;
        Ok(())
    }

    /// Trains to the end, or until the watcher asks to stop, writing the record on the way.
    pub fn train(
        &mut self,
        journal: &mut dyn Journal,
        watcher: &mut dyn Watcher,
    ) -> Result<Report, TrainError> {
        let begun = Instant::now();
        let per_epoch = self.steps_per_epoch();
        let total = per_epoch.saturating_mul(self.plan.training.epochs);
        let samples = self.data.train.len as u64;
        let mut order = self.order(self.step / per_epoch);
        let mut end = End::Finished;
        while self.step < total {
            let epoch = self.step / per_epoch;
            let within = self.step % per_epoch;
            if within == 0 {
                order = self.order(epoch);
            }
            let size = self.plan.training.batch_size as u64;
            let ids: Vec<usize> = (within * size..((within + 1) * size).min(samples))
                .map(|i| order.as_ref().map_or(i, |order| order.get(i)) as usize)
                .collect();
            let observation = self.advance(&ids, epoch, total);
            watcher.step(&Progress {
                step: self.step,
                steps: total,
                epoch: epoch + 1,
                epochs: self.plan.training.epochs,
                loss: observation.loss,
                metric: observation.metric,
            });
            if journal.wants_digests() {
                journal.digest(self.step, self.state_digest(observation.loss));
            }
            journal.observe(&observation);
            watcher.observed(&observation);
            self.layers = observation.layers;
            let epoch_ends = within + 1 == per_epoch;
            if epoch_ends {
                self.close_epoch(epoch, journal, watcher)?;
            }
            let due = match self.plan.training.checkpoint_every {
                Some(every) => self.step.is_multiple_of(every),
                None => epoch_ends && self.rhythm.saves(self.step - per_epoch, self.step),
            };
            let flow = watcher.flow();
            if flow == Flow::GiveUp {
                end = End::Hopeless;
                break;
            }
            // The last step's state is delivered as the model; it needs no checkpoint.
            if self.step == total {
                break;
            }
            if due || flow == Flow::Interrupt {
                journal.checkpoint(&self.checkpoint())?;
            }
            if flow == Flow::Interrupt {
                journal.event(&Event::Interrupted { step: self.step })?;
                journal.sync()?;
                end = End::Interrupted;
                break;
            }
            if flow == Flow::Pause {
                end = End::Paused;
                break;
            }
        }
        // What was learned since the last evaluation is judged too.
        let judged = self.last.as_ref().map(|last| last.step);
        if end == End::Hopeless && judged != Some(self.step) {
            self.judge(self.step.div_ceil(per_epoch), journal, watcher)?;
        }
        Ok(self.report(end, begun.elapsed()))
    }

    /// One optimizer step on the training samples `ids`.
    fn advance(&mut self, ids: &[usize], epoch: u64, total: u64) -> Observation {
        let optimizer = &self.plan.training.optimizer;
        let watch = &self.plan.watch;
        let rate = learning_rate(
            optimizer.learning_rate,
            &self.plan.training.schedule,
            self.step,
            total,
        );
        let step = self.step + 1;
        let samples: Vec<u64> = ids.iter().map(|&i| self.data.train.ids[i]).collect();
        let batch = Batch {
            examples: &self.train,
            targets: TargetView::new(&self.data.train.targets, self.data.task),
            ids,
            samples: &samples,
            seed: self.plan.seed,
            epoch,
            loss: self.plan.training.loss,
        };
        let (outcome, moving) = shard::compute(
            &self.network,
            &self.parameters,
            batch,
            (self.shards, &self.crew),
            self.rhythm.look(step, watch),
            &self.device,
        );
        let Some(outcome) = outcome else {
            unreachable!("an epoch has no empty batch")
        };
        let mut gradient = outcome.gradient;
        let observer = self.rhythm.observes(step).then(|| Observer {
            watch,
            arrays: &self.arrays,
            quartiles: self.rhythm.takes_quartiles(step),
        });
        let mut layers = std::mem::take(&mut self.layers);
        layers.clear();
        let input = observer.as_ref().and_then(|observer| {
            observer.before(&self.network, &outcome.notes, &gradient, &mut layers)
        });
        let penalty = penalize(&self.parameters, Some(&mut gradient));
        clip(&self.updater, &self.parameters, &mut gradient);
        let learned = self.parameters.learned();
        let values = &mut self.parameters.values[..learned];
        let observer = observer.filter(|_| watch.weights);
        if observer.is_some() {
            self.before.clear();
            self.before.extend_from_slice(values);
        }
        self.updater.update(values, &gradient, rate, step);
        if let Some(observer) = observer {
            observer.after(&mut layers, &self.before, values);
        }
        follow(&mut self.parameters, moving);
        self.step = step;
        Observation {
            step,
            epoch: epoch + 1,
            loss: outcome.tally.mean_loss() + penalty,
            metric: outcome.tally.metric(self.data.task),
            learning_rate: rate,
            mae: outcome.tally.mae(),
            top_class_share: outcome.tally.top_class_share(),
            layers,
            input,
        }
    }

    /// Validates after an epoch.
    fn close_epoch(
        &mut self,
        epoch: u64,
        journal: &mut dyn Journal,
        watcher: &mut dyn Watcher,
    ) -> Result<(), TrainError> {
        let last = epoch + 1 == self.plan.training.epochs;
        // Without a validation split the training split is judged once, at the end.
        if self.judged_split() == Split::Train && !last {
            return Ok(());
        }
        self.judge(epoch + 1, journal, watcher)
    }

    /// Evaluates the model and keeps it if it is the best.
    fn judge(
        &mut self,
        epoch: u64,
        journal: &mut dyn Journal,
        watcher: &mut dyn Watcher,
    ) -> Result<(), TrainError> {
        let evaluation = self.evaluate(self.judged_split(), epoch);
        journal.evaluation(&evaluation)?;
        watcher.evaluated(&evaluation);
        self.last = Some(evaluation.clone());
        if self
            .best
            .as_ref()
            .is_none_or(|best| better(&evaluation, &best.evaluation))
        {
            let (by, value) = match evaluation.metric {
                Some(metric) => (metric_name(self.data.task), metric),
                None => ("loss", evaluation.loss),
            };
            journal.event(&Event::Best {
                step: self.step,
                epoch,
                by: by.to_owned(),
                value,
            })?;
            self.best = Some(Best {
                evaluation,
                values: self.parameters.values.clone(),
            });
        }
        Ok(())
    }

    fn judged_split(&self) -> Split {
        if self.data.validation.len > 0 {
            Split::Validation
        } else {
            Split::Train
        }
    }

    fn evaluate(&self, split: Split, epoch: u64) -> Evaluation {
        let (part, examples) = match split {
            Split::Train => (&self.data.train, &self.train),
            Split::Validation => (&self.data.validation, &self.validation),
            Split::Test => (&self.data.test, &self.test),
        };
        let ids: Vec<usize> = (0..part.len).collect();
        let batch = Batch {
            examples,
            targets: TargetView::new(&part.targets, self.data.task),
            ids: &ids,
            samples: &part.ids,
            seed: self.plan.seed,
            epoch,
            loss: self.plan.training.loss,
        };
        let uploaded = self.parameters.upload::<B>(&self.device);
        let tally = shard::judge(&self.network, &uploaded, batch, &self.crew, &self.device);
        Evaluation {
            epoch,
            step: self.step,
            split,
            loss: tally.as_ref().map_or(f64::NAN, Tally::mean_loss)
                + penalize(&self.parameters, None),
            metric: tally.and_then(|tally| tally.metric(self.data.task)),
        }
    }

    /// The order of samples in `epoch`; none if they are not shuffled.
    fn order(&self, epoch: u64) -> Option<Permutation> {
        self.plan.training.shuffle.then(|| {
            let key = Key::new(self.plan.seed, Purpose::Shuffle).epoch(epoch);
            Permutation::new(key, self.data.train.len as u64)
        })
    }

    fn steps_per_epoch(&self) -> u64 {
        steps_per_epoch(self.plan, self.data)
    }

    /// The digest of all that the next step's parameters depend on, and of this step's loss.
    fn state_digest(&self, loss: f64) -> Digest {
        let mut digest = StateDigest::new();
        digest.update_u64("step", self.step);
        digest.update_f64("loss", loss);
        digest.update_f32("parameters", &self.parameters.values);
        for slot in &self.updater.slots {
            digest.update_f32("optimizer", slot);
        }
        digest.update_f64("momentum_product", self.updater.momentum_product);
        digest.finish()
    }

    fn checkpoint(&self) -> Checkpoint {
        let flat = |name: &str, values: &[f32]| Array::new(name, &[values.len()], values.to_vec());
        let mut arrays = vec![flat("parameters", &self.parameters.values)];
        for (i, slot) in self.updater.slots.iter().enumerate() {
            arrays.push(flat(&format!("optimizer.{i}"), slot));
        }
        let mut numbers = vec![self.updater.momentum_product, 0.0, 0.0, f64::NAN];
        if let Some(best) = &self.best {
            numbers[1] = best.evaluation.step as f64;
            numbers[2] = best.evaluation.loss;
            numbers[3] = best.evaluation.metric.unwrap_or(f64::NAN);
            arrays.push(flat("best", &best.values));
        }
        arrays.push(Array::new("numbers", &[4], numbers));
        Checkpoint {
            step: self.step,
            epoch: self.step / self.steps_per_epoch() + 1,
            state: serde_json::Value::Null,
            arrays,
        }
    }

    fn report(&mut self, end: End, training: Duration) -> Report {
        let best = self.best.as_ref().map(|best| best.evaluation.clone());
        let delivered = match &self.best {
            Some(best) => best.values.clone(),
            None => self.parameters.values.clone(),
        };
        // The delivered model stands in for the last one while it is looked at.
        let last = std::mem::replace(&mut self.parameters.values, delivered);
        let epoch = best.as_ref().map_or(0, |best| best.epoch);
        let test = (end == End::Finished && self.data.test.len > 0)
            .then(|| self.evaluate(Split::Test, epoch));
        let model: Vec<Weight> = self.parameters.weights().collect();
        self.parameters.values = last;
        let mut digest = StateDigest::new();
        for weight in &model {
            digest.update_f32(&format!("{}.{}", weight.layer, weight.name), &weight.values);
        }
        Report {
            end,
            steps: self.step,
            training,
            best,
            last: self.last.clone(),
            test,
            digest: digest.finish(),
            model,
        }
    }
}

fn steps_per_epoch(plan: &Plan, data: &Dataset) -> u64 {
    data.train.len.div_ceil(plan.training.batch_size) as u64
}

/// Moves the moving statistics towards a batch's.
pub(crate) fn follow(parameters: &mut Parameters, moving: Vec<MovingUpdate>) {
    for update in moving {
        let range = parameters.range(update.parameter);
        let keep = update.momentum;
        for (value, batch) in parameters.values[range].iter_mut().zip(update.batch) {
            *value = (f64::from(*value) * keep + batch * (1.0 - keep)) as f32;
        }
    }
}

/// Clips the gradients of all arrays as the optimizer says.
pub(crate) fn clip(updater: &Updater, parameters: &Parameters, gradient: &mut [f32]) {
    let arrays = (0..parameters.declarations().len())
        .filter(|&id| parameters.declarations()[id].role != Role::Moving)
        .map(|id| parameters.range(id));
    updater.clip(gradient, arrays);
}

/// The penalties on the weights; adds their gradient if asked.
pub(crate) fn penalize(parameters: &Parameters, mut gradient: Option<&mut [f32]>) -> f64 {
    let mut total = 0.0;
    for (id, declaration) in parameters.declarations().iter().enumerate() {
        let (l1, l2) = (declaration.regularizer.l1, declaration.regularizer.l2);
        if l1 == 0.0 && l2 == 0.0 {
            continue;
        }
        let range = parameters.range(id);
        for (i, &w) in parameters.values[range.clone()].iter().enumerate() {
            let w = f64::from(w);
            total += l1 * w.abs() + l2 * w * w;
            if let Some(gradient) = gradient.as_deref_mut() {
                let sign = if w == 0.0 { 0.0 } else { w.signum() };
                gradient[range.start + i] += (l1 * sign + 2.0 * l2 * w) as f32;
            }
        }
    }
    total
}

/// Whether `new` is better than `old`: by the metric, then by the loss. What cannot be measured is
/// worse than anything that can.
pub(crate) fn better(new: &Evaluation, old: &Evaluation) -> bool {
    let metric = |e: &Evaluation| e.metric.unwrap_or(f64::NEG_INFINITY);
    let loss = |e: &Evaluation| {
        if e.loss.is_nan() {
            f64::INFINITY
        } else {
            e.loss
        }
    };
    (metric(new), -loss(new)) > (metric(old), -loss(old))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(metric: Option<f64>, loss: f64) -> Evaluation {
        Evaluation {
            epoch: 1,
            step: 1,
            split: Split::Validation,
            loss,
            metric,
        }
    }

    #[test]
    fn a_model_is_better_by_metric_then_by_loss() {
        let old = evaluation(Some(0.8), 0.5);
        assert!(better(&evaluation(Some(0.9), 0.9), &old));
        assert!(better(&evaluation(Some(0.8), 0.4), &old));
        assert!(!better(&evaluation(Some(0.8), 0.5), &old));
        assert!(!better(&evaluation(Some(0.7), 0.1), &old));
    }

    #[test]
    fn what_cannot_be_measured_is_worse_than_anything() {
        let nan = evaluation(Some(0.1), f64::NAN);
        assert!(better(&evaluation(Some(0.1), 9.0), &nan));
        assert!(!better(&nan, &evaluation(Some(0.1), 9.0)));
        assert!(better(&evaluation(None, 1.0), &evaluation(None, f64::NAN)));
        assert!(better(&evaluation(Some(0.1), 1.0), &evaluation(None, 0.5)));
    }
}
