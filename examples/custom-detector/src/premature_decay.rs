//! A detector for learning rates that decay too early.

use surefoot_diagnose::{Context, Detector, Finding, Measure, Problem, Quantity};

/// The loss stagnates after the learning rate has decayed, before the training has converged.
///
/// Surefoot's `slow_convergence` reports rates below 1% in the first half of the training. Schedules
/// copied from a shorter training often keep a few percent: the updates look normal, but the loss
/// stagnates.
///
/// A loss that stagnates at a constant rate is not reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrematureDecay {
    /// Share of the highest learning rate below which the rate is low.
    pub(crate) little_rate: f64,
    /// Relative change of the loss below which it stagnates.
    pub(crate) little_change: f64,
    /// Skill of a run that has nearly converged.
    pub(crate) nearly_done: f64,
}

impl PrematureDecay {
    /// The reported problem.
    pub(crate) const PROBLEM: Problem = Problem::new("premature_decay");
}

impl Default for PrematureDecay {
    fn default() -> Self {
        Self {
            // Below the usual drops, to a half, a fifth or a tenth, after which runs still learn.
            little_rate: 0.05,
            // The mean over a tenth of the training is that stable in spite of batch noise.
            little_change: 0.02,
            // A decay is meant for the last part of the training.
            nearly_done: 0.9,
        }
    }
}

/// Blocks that the loss is averaged over: a tenth of a training of 200 steps.
const TENTH: usize = 20;

impl Detector for PrematureDecay {
    fn problem(&self) -> Problem {
        Self::PROBLEM
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss, Quantity::Model]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let curve = context.curve;
        let left = curve.learning_rate_fraction();
        // A low rate is normal near the end.
        if left > self.little_rate || curve.progress(context.facts).is_none_or(|p| p > 0.75) {
            return None;
        }
        let (loss, before) = curve.recent_losses(TENTH)?;
        let change = (before - loss).abs() / before;
        let skill = curve.recent_skill(TENTH)?;
        if !(change < self.little_change && skill < self.nearly_done) {
            return None;
        }
        let since = curve.recent(2 * TENTH).first()?.first;
        let sentence = format!(
            "The learning rate has decayed to {:.1}% of what it was, and since step {since} the \
             loss stagnates at {loss:.3}.",
            100.0 * left
        );
        Some(
            Finding::new(self.problem(), context.step(), sentence)
                .since(since)
                .with(Measure::LearningRateFraction, left, self.little_rate)
                .with(Measure::LossChange, change, self.little_change)
                .with(Measure::Skill, skill, self.nearly_done),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Diagnosis, Facts, Observation, TaskKind, Thresholds};

    /// Finds problems in a run of 200 steps, with loss and learning rate by progress from 0 to 1.
    fn find(loss: impl Fn(f64) -> f64, rate: impl Fn(f64) -> f64) -> Option<Finding> {
        let facts = Facts {
            task: Some(TaskKind::Binary),
            steps_per_epoch: Some(20),
            epochs: Some(10),
            baseline_loss: Some(1.0),
            ..Facts::default()
        };
        let own: Vec<Box<dyn Detector>> = vec![Box::new(PrematureDecay::default())];
        let mut diagnosis = Diagnosis::with(facts, Thresholds::default(), own);
        for step in 1..=200 {
            let progress = step as f64 / 200.0;
            // Batch noise.
            let loss = loss(progress) * (1.0 + 0.1 * (step as f64).sin());
            let seen = Observation::new(step, loss)
                .with_epoch((step - 1) / 20 + 1)
                .with_learning_rate(rate(progress));
            diagnosis.observe(&seen);
        }
        diagnosis.finish();
        diagnosis.findings().first().cloned()
    }

    fn decayed(progress: f64) -> f64 {
        if progress < 0.2 { 0.1 } else { 0.001 }
    }

    #[test]
    fn a_loss_that_stagnates_after_a_decay_is_found() {
        let found = find(|p| (1.0 - 2.0 * p).max(0.6), decayed).unwrap();
        assert_eq!(found.problem, PrematureDecay::PROBLEM);
        assert!((70..=90).contains(&found.step) && found.since >= 30, "{found:?}");
        assert_eq!(found.value(&Measure::LearningRateFraction), Some(0.01));
    }

    #[test]
    fn a_falling_loss_is_not_a_problem() {
        assert_eq!(find(|p| 1.0 - 0.5 * p, decayed), None);
    }

    #[test]
    fn a_converged_run_is_not_a_problem() {
        assert_eq!(find(|p| (1.0 - 9.0 * p).max(0.05), decayed), None);
    }

    #[test]
    fn a_decay_at_the_end_is_not_a_problem() {
        assert_eq!(find(|_| 0.6, |p| if p < 0.8 { 0.1 } else { 0.001 }), None);
    }

    #[test]
    fn a_constant_rate_is_not_a_problem() {
        assert_eq!(find(|_| 0.6, |_| 0.1), None);
    }
}
