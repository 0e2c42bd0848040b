//! The training loop: epochs of steps, validation, the best model, checkpoints.

use super::step::penalize;
use super::{Progress, TrainingResult, TrainingRun};
use crate::callback::{Callback, Callbacks, RunContext, Step, StopReason};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::loss::TargetView;
use crate::metric::{Tally, metric_name};
use crate::shard::{self, Batch};
use std::sync::Arc;
use std::time::{Duration, Instant};
use surefoot_diagnose::{Evaluation, Observation, Split};
use surefoot_plan::Weight;
use surefoot_record::{Event, StateDigest};

/// The best model so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(super) evaluation: Evaluation,
    pub(super) values: Vec<f32>,
}

impl<B: Compute> TrainingRun<'_, B> {
    /// Trains to the end, or until a callback requests a stop.
    ///
    /// After [`StopReason::Paused`] the run can be trained further.
    pub fn train(
        &mut self,
        callbacks: &mut [&mut dyn Callback],
    ) -> Result<TrainingResult, TrainError> {
        let mut list: Vec<&mut dyn Callback> = Vec::new();
        for callback in callbacks {
            list.push(&mut **callback);
        }
        let context = RunContext::new(Arc::clone(&self.outline));
        self.train_with(u64::MAX, &mut Callbacks::new(list, context))
    }

    /// As [`train`](Self::train), with a pause after step `until`.
    pub(crate) fn train_with(
        &mut self,
        until: u64,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<TrainingResult, TrainError> {
        let begun = Instant::now();
        let first = self.step;
        callbacks.start()?;
        let saves = callbacks.need_state();
        if self.step == 0 && saves {
            callbacks.digest(self.standing_digest())?;
        }
        let reason = self.train_steps(until, saves, callbacks)?;
        let evaluated = self.last.as_ref().map(|last| last.step);
        let stopped = !reason.is_resumable() && self.step > first;
        if stopped && evaluated != Some(self.step) {
            self.evaluate_model(self.step.div_ceil(self.steps_per_epoch()), callbacks)?;
        }
        let result = self.result(reason, begun.elapsed());
        if reason != StopReason::Paused {
            callbacks.end(&result)?;
        }
        Ok(result)
    }

    fn train_steps(
        &mut self,
        until: u64,
        saves: bool,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<StopReason, TrainError> {
        let per_epoch = self.steps_per_epoch();
        if let Some(reason) = callbacks.run.stop_requested().filter(|r| !r.is_resumable()) {
            return Ok(reason);
        }
        while self.step < self.steps {
            let epoch = self.step / per_epoch;
            let ends_epoch = self.step % per_epoch + 1 == per_epoch;
            let observation = self.execute();
            self.last_loss = observation.loss;
            if saves {
                callbacks.digest(self.step_digest(observation.loss))?;
            }
            let progress = self.progress(&observation);
            callbacks.step(&Step { progress, observation: &observation })?;
            self.layers = observation.layers;
            if ends_epoch {
                self.end_epoch(epoch, callbacks)?;
            }
            let stop = callbacks.run.stop_requested();
            if let Some(reason) = stop.filter(|reason| !reason.is_resumable()) {
                return Ok(reason);
            }
            // The state of the last step is delivered as the model; it needs no checkpoint.
            if self.step == self.steps || ends_epoch && self.is_good_enough() {
                break;
            }
            let due = match self.plan.training.checkpoint_every {
                Some(every) => self.step.is_multiple_of(every),
                None => ends_epoch && self.schedule.saves(self.step - per_epoch, self.step),
            };
            let interrupted = stop == Some(StopReason::Interrupted);
            if saves && (due || interrupted) {
                callbacks.checkpoint(&self.checkpoint())?;
            }
            if interrupted {
                return Ok(StopReason::Interrupted);
            }
            if self.step >= until || stop == Some(StopReason::Paused) {
                return Ok(StopReason::Paused);
            }
        }
        Ok(StopReason::Finished)
    }

    pub(super) fn progress(&self, observation: &Observation) -> Progress {
        Progress {
            step: self.step,
            steps: self.steps,
            epoch: observation.epoch,
            epochs: self.plan.training.epochs,
            loss: observation.loss,
            metric: observation.metric,
        }
    }

    fn end_epoch(&mut self, epoch: u64, callbacks: &mut Callbacks<'_>) -> Result<(), TrainError> {
        let last = epoch + 1 == self.plan.training.epochs;
        // Without a validation split the training split is evaluated once, at the end.
        let needed = last || self.plan.training.stop_at.is_some();
        if self.evaluated_split() == Split::Train && !needed {
            return Ok(());
        }
        self.evaluate_model(epoch + 1, callbacks)
    }

    /// Returns true if the last evaluation reached the metric at which training ends.
    fn is_good_enough(&self) -> bool {
        let metric = self.last.as_ref().and_then(|last| last.metric);
        metric.zip(self.plan.training.stop_at).is_some_and(|(metric, goal)| metric >= goal)
    }

    /// Evaluates the model and keeps it if it is the best.
    fn evaluate_model(
        &mut self,
        epoch: u64,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<(), TrainError> {
        let evaluation = self.evaluate(self.evaluated_split(), epoch);
        callbacks.evaluation(&evaluation)?;
        self.last = Some(evaluation.clone());
        if self.best.as_ref().is_none_or(|best| better(&evaluation, &best.evaluation)) {
            let (by, value) = match evaluation.metric {
                Some(metric) => (metric_name(self.data.task), metric),
                None => ("loss", evaluation.loss),
            };
            callbacks.event(&Event::Best { step: self.step, epoch, by: by.to_owned(), value })?;
            self.best = Some(Best { evaluation, values: self.parameters.values.clone() });
        }
        Ok(())
    }

    pub(super) fn evaluated_split(&self) -> Split {
        if self.data.validation.len > 0 { Split::Validation } else { Split::Train }
    }

    fn evaluate(&mut self, split: Split, epoch: u64) -> Evaluation {
        self.share(|run| run.judge(split, epoch))
    }

    fn judge(&self, split: Split, epoch: u64) -> Evaluation {
        let (part, examples) = match split {
            Split::Train => (&self.data.train, &self.train),
            Split::Validation => (&self.data.validation, &self.validation),
            Split::Test => (&self.data.test, &self.test),
        };
        let ids: Vec<usize> = (0..part.len).collect();
        let batch = Batch {
            examples,
            targets: TargetView::new(&part.targets, self.data.task)
                .at_positions(self.data.positions),
            ids: &ids,
            samples: &part.ids,
            seed: self.plan.seed,
            epoch,
            loss: self.plan.training.loss,
        };
        let uploaded = self.parameters.upload::<B>(&self.device);
        let tally = shard::judge(&self.network, &uploaded, batch, &self.worker_pool, &self.device);
        Evaluation {
            epoch,
            step: self.step,
            split,
            loss: tally.as_ref().map_or(f64::NAN, Tally::mean_loss)
                + penalize(&self.parameters, None),
            metric: tally.and_then(|tally| tally.metric(self.data.task)),
        }
    }

    fn result(&mut self, reason: StopReason, training: Duration) -> TrainingResult {
        let best = self.best.as_ref().map(|best| best.evaluation.clone());
        let delivered = match &self.best {
            Some(best) => best.values.clone(),
            None => self.parameters.values.clone(),
        };
        // The test split is evaluated with the delivered parameters.
        let last = std::mem::replace(&mut self.parameters.values, delivered);
        let epoch = best.as_ref().map_or(0, |best| best.epoch);
        let test = (reason == StopReason::Finished && self.data.test.len > 0)
            .then(|| self.evaluate(Split::Test, epoch));
        let model: Vec<Weight> = self.parameters.weights().collect();
        self.parameters.values = last;
        let mut digest = StateDigest::new();
        for weight in &model {
            digest.update_f32(&format!("{}.{}", weight.layer, weight.name), &weight.values);
        }
        TrainingResult {
            reason,
            last_loss: self.last_loss,
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

/// Returns true if `new` is better than `old`: by the metric, then by the loss. A missing metric and
/// a NaN loss are worse than any number.
fn better(new: &Evaluation, old: &Evaluation) -> bool {
    let metric = |e: &Evaluation| e.metric.unwrap_or(f64::NEG_INFINITY);
    let loss = |e: &Evaluation| {
        if e.loss.is_nan() { f64::INFINITY } else { e.loss }
    };
    (metric(new), -loss(new)) > (metric(old), -loss(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(metric: Option<f64>, loss: f64) -> Evaluation {
        Evaluation { epoch: 1, step: 1, split: Split::Validation, loss, metric }
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
    fn missing_metrics_and_nan_losses_are_worse_than_any_number() {
        let nan = evaluation(Some(0.1), f64::NAN);
        assert!(better(&evaluation(Some(0.1), 9.0), &nan));
        assert!(!better(&nan, &evaluation(Some(0.1), 9.0)));
        assert!(better(&evaluation(None, 1.0), &evaluation(None, f64::NAN)));
        assert!(better(&evaluation(Some(0.1), 1.0), &evaluation(None, 0.5)));
    }
}
