//! The training loop: epochs of steps, validation, the best model, checkpoints.

use super::step::penalize;
use super::{End, Flow, Progress, Report, Run, Watcher};
use crate::compute::Compute;
use crate::error::TrainError;
use crate::journal::Journal;
use crate::loss::TargetView;
use crate::metric::{Tally, metric_name};
use crate::shard::{self, Batch};
use std::time::{Duration, Instant};
use surefoot_diagnose::{Evaluation, Split};
use surefoot_plan::Weight;
use surefoot_record::{Event, StateDigest};

/// The best model so far.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(super) evaluation: Evaluation,
    pub(super) values: Vec<f32>,
}

impl<B: Compute> Run<'_, B> {
    /// Trains to the end, or until the watcher asks to stop, writing the record on the way.
    pub fn train(
        &mut self,
        journal: &mut dyn Journal,
        watcher: &mut dyn Watcher,
    ) -> Result<Report, TrainError> {
        let begun = Instant::now();
        let per_epoch = self.steps_per_epoch();
        let total = self.steps;
        let mut end = End::Finished;
        if self.step == 0 && journal.wants_digests() {
            journal.digest(self.standing_digest());
        }
        while self.step < total {
            let epoch = self.step / per_epoch;
            let within = self.step % per_epoch;
            let observation = self.execute();
            watcher.step(&Progress {
                step: self.step,
                steps: total,
                epoch: epoch + 1,
                epochs: self.plan.training.epochs,
                loss: observation.loss,
                metric: observation.metric,
            });
            if journal.wants_digests() {
                journal.digest(self.step_digest(observation.loss));
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
        if self.best.as_ref().is_none_or(|best| better(&evaluation, &best.evaluation)) {
            let (by, value) = match evaluation.metric {
                Some(metric) => (metric_name(self.data.task), metric),
                None => ("loss", evaluation.loss),
            };
            journal.event(&Event::Best { step: self.step, epoch, by: by.to_owned(), value })?;
            self.best = Some(Best { evaluation, values: self.parameters.values.clone() });
        }
        Ok(())
    }

    pub(super) fn judged_split(&self) -> Split {
        if self.data.validation.len > 0 { Split::Validation } else { Split::Train }
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

/// Whether `new` is better than `old`: by the metric, then by the loss. What cannot be measured is
/// worse than anything that can.
pub(crate) fn better(new: &Evaluation, old: &Evaluation) -> bool {
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
    fn what_cannot_be_measured_is_worse_than_anything() {
        let nan = evaluation(Some(0.1), f64::NAN);
        assert!(better(&evaluation(Some(0.1), 9.0), &nan));
        assert!(!better(&nan, &evaluation(Some(0.1), 9.0)));
        assert!(better(&evaluation(None, 1.0), &evaluation(None, f64::NAN)));
        assert!(better(&evaluation(Some(0.1), 1.0), &evaluation(None, 0.5)));
    }
}
