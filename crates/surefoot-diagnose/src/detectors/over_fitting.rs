//! Over-fitting.

use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{Evaluation, Split};

/// The validation loss has risen far above its best while the training loss went on falling, and the
/// metric, where there is one, has suffered: a classifier that is surer of the same answers has not
/// fitted too much.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverFitting;

/// By how much the metric has fallen where it has suffered.
const SUFFERED: f64 = 0.02;
/// For how many evaluations it must not have been near its best.
const LASTING: usize = 3;

impl Detector for OverFitting {
    fn problem(&self) -> Problem {
        Problem::OVER_FITTING
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss, Quantity::Validation]
    }

    fn evaluate(&mut self, evaluation: &Evaluation, context: &Context<'_>) -> Option<Finding> {
        if evaluation.split != Split::Validation {
            return None;
        }
        let validation = context.curve.evaluations().iter();
        let losses: Vec<&Evaluation> =
            validation.filter(|e| e.split == Split::Validation && e.loss.is_finite()).collect();
        let best = losses.iter().min_by(|a, b| a.loss.total_cmp(&b.loss))?;
        let limit = best.loss * (1.0 + context.thresholds.over_fitting);
        let recent = losses.iter().rev().take(LASTING);
        if losses.len() <= LASTING || !recent.clone().all(|e| e.loss > limit && e.step > best.step)
        {
            return None;
        }
        let best_metric = losses.iter().filter_map(|e| e.metric).reduce(f64::max);
        let suffered = |(best, now): (f64, f64)| best - now > SUFFERED;
        if !best_metric.zip(evaluation.metric).is_none_or(suffered) {
            return None;
        }
        let blocks = context.curve.blocks();
        let then = blocks.iter().rev().find(|block| block.last <= best.step)?;
        let now = blocks.last()?;
        if now.loss >= then.loss {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                evaluation.step,
                format!(
                    "Since epoch {} the model improves on the training split and gets worse on \
                     the validation split.",
                    best.epoch
                ),
            )
            .warning()
            .since(best.step)
            .with(Measure::ValidationLoss, evaluation.loss, limit)
            .with(Measure::BestValidationLoss, best.loss, None)
            .with(Measure::TrainingLoss, now.loss, None),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::facts;
    use super::*;
    use crate::diagnosis::Diagnosis;
    use crate::observation::Observation;
    use crate::thresholds::Thresholds;

    fn run(validation: impl Fn(u64) -> f64) -> Vec<Finding> {
        let mut diagnosis =
            Diagnosis::with(facts(), Thresholds::default(), vec![Box::new(OverFitting)]);
        for step in 1..=200 {
            let loss = 1.0 / step as f64;
            diagnosis.observe(&Observation::new(step, loss).with_epoch(step.div_ceil(20)));
            if step % 20 == 0 {
                diagnosis.evaluate(&Evaluation {
                    epoch: step / 20,
                    step,
                    split: Split::Validation,
                    loss: validation(step / 20),
                    metric: None,
                });
            }
        }
        diagnosis.findings().to_vec()
    }

    #[test]
    fn a_validation_loss_that_rises_is_found() {
        let found = run(|epoch| (epoch as f64 - 3.0).abs() + 1.0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].since, 60);
    }

    #[test]
    fn a_flat_one_is_not() {
        assert!(run(|epoch| 1.0 + 0.1 * (epoch % 2) as f64).is_empty());
    }
}
