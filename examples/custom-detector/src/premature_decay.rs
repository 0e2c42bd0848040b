//! Premature decay: a detector from outside.

use surefoot_diagnose::{Context, Detector, Finding, Problem, Quantity};

/// The loss stands still, far from done, since the learning rate has decayed.
///
/// Surefoot's own `slow_convergence` speaks when less than a hundredth of the rate is left before half
/// of the training. Schedules copied from a shorter training are often not so drastic. They leave a
/// few percent, the steps are of a sound size, and the loss does not move any more.
///
/// A loss that stands still at a constant rate is none of its business.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrematureDecay {
    /// The share of the highest learning rate that is little.
    pub(crate) little_rate: f64,
    /// The change of the loss, as a share of it, that is none.
    pub(crate) little_change: f64,
    /// The skill of a run that is nearly done.
    pub(crate) nearly_done: f64,
}

impl PrematureDecay {
    /// What it looks for.
    pub(crate) const PROBLEM: Problem = Problem::new("premature_decay");
}

impl Default for PrematureDecay {
    fn default() -> Self {
        Self {
            // Below the usual drops, to a half, a fifth or a tenth, after which runs still learn.
            little_rate: 0.05,
            // The mean of a tenth of the training is that steady, whatever its batches do.
            little_change: 0.02,
            // The last of it is what a decay is for.
            nearly_done: 0.9,
        }
    }
}

/// How many blocks the loss is averaged over: a tenth of the training, if it has 200 steps.
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
        // Near the end a low rate is as it should be.
        if left > self.little_rate || curve.progress(context.facts) > 0.75 {
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
             loss stands still at {loss:.3}.",
            100.0 * left
        );
        Some(
            Finding::new(self.problem(), context.step(), sentence)
                .since(since)
                .with("learning rate left", left, self.little_rate)
                .with("change of the loss", change, self.little_change)
                .with("skill", skill, self.nearly_done),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Diagnosis, Facts, Observation, TaskKind, Thresholds};

    /// What is found in a run of 200 steps with these losses and learning rates, by its progress
    /// from 0 to 1.
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
            diagnosis.observe(&Observation {
                step,
                epoch: (step - 1) / 20 + 1,
                // Batches differ.
                loss: loss(progress) * (1.0 + 0.1 * (step as f64).sin()),
                metric: None,
                mae: None,
                learning_rate: rate(progress),
                top_class_share: None,
                layers: Vec::new(),
                input: None,
            });
        }
        diagnosis.finish();
        diagnosis.findings().first().cloned()
    }

    fn decayed(progress: f64) -> f64 {
        if progress < 0.2 { 0.1 } else { 0.001 }
    }

    #[test]
    fn a_loss_that_stands_still_since_the_rate_decayed_is_found() {
        let found = find(|p| (1.0 - 2.0 * p).max(0.6), decayed).unwrap();
        assert_eq!(found.problem, PrematureDecay::PROBLEM);
        assert!((70..=90).contains(&found.step) && found.since >= 30, "{found:?}");
        assert_eq!(found.number("learning rate left"), Some(0.01));
    }

    #[test]
    fn a_loss_that_falls_is_left_alone() {
        assert_eq!(find(|p| 1.0 - 0.5 * p, decayed), None);
    }

    #[test]
    fn a_run_that_is_nearly_done_is_left_alone() {
        assert_eq!(find(|p| (1.0 - 9.0 * p).max(0.05), decayed), None);
    }

    #[test]
    fn a_rate_that_falls_at_the_end_is_left_alone() {
        assert_eq!(find(|_| 0.6, |p| if p < 0.8 { 0.1 } else { 0.001 }), None);
    }

    #[test]
    fn a_loss_that_stands_still_at_a_constant_rate_is_none_of_its_business() {
        assert_eq!(find(|_| 0.6, |_| 0.1), None);
    }
}
