//! One step: the batch, its gradient, the optimizer.

use super::TrainingRun;
use crate::compute::Compute;
use crate::layer::MovingUpdate;
use crate::loss::TargetView;
use crate::observe::Observer;
use crate::optimizer::Updater;
use crate::parameters::{Parameters, Role};
use crate::schedule::learning_rate;
use crate::shard::{self, Batch};
use surefoot_diagnose::Observation;
use surefoot_random::{Key, Permutation, Purpose};

/// The order of samples in an epoch.
pub(super) struct Order {
    epoch: u64,
    /// None if they are not shuffled.
    permutation: Option<Permutation>,
}

impl<B: Compute> TrainingRun<'_, B> {
    /// Does the next step.
    pub(super) fn execute(&mut self) -> Observation {
        let epoch = self.step / self.steps_per_epoch();
        let ids = self.next_batch();
        self.advance(&ids, epoch)
    }

    /// The training samples of the next step, by their place in the training split.
    pub(super) fn next_batch(&mut self) -> Vec<usize> {
        let epoch = self.step / self.steps_per_epoch();
        let within = self.step % self.steps_per_epoch();
        let samples = self.data.train.len as u64;
        let size = self.plan.training.batch_size as u64;
        let order = match self.order.take().filter(|order| order.epoch == epoch) {
            Some(order) => order,
            None => Order {
                epoch,
                permutation: self.plan.training.shuffle.then(|| {
                    let key = Key::new(self.plan.seed, Purpose::Shuffle).epoch(epoch);
                    Permutation::new(key, samples)
                }),
            },
        };
        let order = self.order.insert(order);
        (within * size..((within + 1) * size).min(samples))
            .map(|i| order.permutation.as_ref().map_or(i, |order| order.get(i)) as usize)
            .collect()
    }

    /// One optimizer step on the training samples `ids`.
    pub(super) fn advance(&mut self, ids: &[usize], epoch: u64) -> Observation {
        self.share(|run| run.learn(ids, epoch))
    }

    fn learn(&mut self, ids: &[usize], epoch: u64) -> Observation {
        let optimizer = &self.plan.training.optimizer;
        let watch = &self.plan.watch;
        let rate = learning_rate(
            optimizer.learning_rate,
            &self.plan.training.schedule,
            self.step,
            self.steps,
        );
        let step = self.step + 1;
        self.samples.clear();
        self.samples.extend(ids.iter().map(|&i| self.data.train.ids[i]));
        let batch = Batch {
            examples: &self.train,
            targets: TargetView::new(&self.data.train.targets, self.data.task)
                .at_positions(self.data.positions),
            ids,
            samples: &self.samples,
            seed: self.plan.seed,
            epoch,
            loss: self.plan.training.loss,
        };
        let (outcome, moving) = shard::compute(
            &self.network,
            &mut self.parameters,
            batch,
            (self.shards, &self.worker_pool),
            self.schedule.look(step, watch),
            &self.device,
        );
        let Some(outcome) = outcome else { unreachable!("an epoch has no empty batch") };
        let mut gradient = outcome.gradient;
        let observer = self.schedule.observes(step).then(|| Observer {
            watch,
            arrays: &self.arrays,
            quartiles: self.schedule.takes_quartiles(step),
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
        let mut observation = Observation::new(step, outcome.tally.mean_loss() + penalty)
            .with_epoch(epoch + 1)
            .with_metric(outcome.tally.metric(self.data.task))
            .with_learning_rate(rate)
            .with_layers(layers)
            .with_input(input);
        observation.mae = outcome.tally.mae();
        observation.top_class_share = outcome.tally.top_class_share();
        observation
    }
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
