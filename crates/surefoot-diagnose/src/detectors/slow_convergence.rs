//! Slow convergence.

use super::shape::{self, Shape};
use super::{conditions, diverging_loss};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// The loss is high and hardly gets lower.
///
/// AutoTrainer: from one iteration to the next the accuracy never rises by more than δ = 0.01.
///
/// Changed, because that is also true of every run that is nearly done, of one that starts well, and
/// of every run that is watched closely enough:
/// - A run is slow if its steps are: they move the weights by less than three hundred-thousandths
///   of themselves (twice that after the first eighth), where those of a run that
///   learns move them by a thousandth; or if its learning rate has decayed to nothing before half
///   of the steps were done. A run that learns, or has learned, is not slow however small its
///   steps.
/// - A network may stay at chance for half of the training and then learn all at once (parity does).
///   As long as its steps are of a sound size that is waiting, not failing. Only when all steps are
///   done and nothing was learned is it said that it was too slow.
/// - If the number of steps is unknown, a learning rate that has decayed may be that of the last ones.
///   There the steps are compared at the highest rate.
/// - In a log, the best constant prediction is unknown and the first loss is not one. There a run is
///   slow if its loss ends within 5% of its start (2% for less than ten values) or stands still above
///   half of it, and neither the validation loss nor a metric improved.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowConvergence;

/// The share of the highest learning rate that is next to nothing.
const DECAYED: f64 = 0.01;
/// A skill that is next to perfect with the default Θ: what is left to learn is little.
const NEARLY_DONE: f64 = 0.9;
/// Decrease of a loss without a baseline below which it is slow, and the same for a short curve.
const DECREASE: (f64, f64) = (0.05, 0.02);
/// Decrease below which a loss that does not change any more is high.
const HALF: f64 = 0.5;
/// Relative range of a loss that does not change.
const STILL: f64 = 1e-4;
/// Share of the missing metric that a sound run gains.
const GAINED: f64 = 0.1;
/// Number of values of a short curve.
const SHORT: usize = 10;

impl Detector for SlowConvergence {
    fn problem(&self) -> Problem {
        Problem::SLOW_CONVERGENCE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let curve = context.curve;
        let thresholds = context.thresholds;
        let progress = curve.progress(context.facts);
        let needed = thresholds.alpha + 1;
        let nearly_over = progress.is_some_and(|progress| progress >= 0.8);
        if context.warming_up()
            || nearly_over
            || !context.has_run_for(thresholds.patience)
            || curve.layers().len() < needed
        {
            return None;
        }
        if conditions::has_plain_cause(context) {
            return None;
        }
        let weighted = conditions::weighted(context);
        let mut fastest = 0.0_f64;
        for layers in curve.layers().rev().take(needed) {
            // Weights that do not change at all are a problem of their own.
            let ratios = weighted.iter().filter_map(|&i| layers.get(i)?.update_ratio);
            fastest = fastest.max(crate::curve::median(ratios.filter(|ratio| *ratio > 0.0))?);
        }
        if progress.is_none() {
            // A rate that has decayed may be that of the last steps: compare at the highest.
            fastest /= curve.learning_rate_fraction().max(f64::MIN_POSITIVE);
        }
        let skill = curve.recent_skill(needed)?;
        // Extrapolates to the last step; without a known one, to twice the steps so far.
        let before = curve.blocks().len().checked_sub(3 * needed)?;
        let earlier = mean_skill(context, before, before + needed)?;
        let slope = (skill - earlier) / (2 * needed) as f64;
        let left = progress.map_or(1.0, |progress| (1.0 - progress) / progress);
        let left = left * curve.blocks().len() as f64;
        let projected = skill + slope.max(0.0) * left;
        let leniency = if curve.elapsed(context.facts) > 0.12 { 2.0 } else { 1.0 };
        let limit = thresholds.least_update * leniency;
        let decayed = curve.learning_rate_fraction() < DECAYED
            && progress.is_some_and(|progress| progress < 0.5);
        let nearly_done = thresholds.expected_skill(NEARLY_DONE);
        let left_behind = curve.best_skill(needed)? < nearly_done
            && projected < nearly_done
            && slope <= thresholds.delta;
        if !(left_behind && (fastest < limit || decayed))
            || conditions::was_destroyed_by_a_step(context)
            || conditions::normalizes_tiny_batches(context)
        {
            return None;
        }
        if fastest >= limit {
            return Some(
                Finding::new(
                    self.problem(),
                    context.step(),
                    format!(
                        "The learning rate has decayed to {:.1}% of its maximum long before the \
                         run has learned.",
                        100.0 * curve.learning_rate_fraction()
                    ),
                )
                .with(Measure::LearningRateFraction, curve.learning_rate_fraction(), DECAYED)
                .with(Measure::UpdateRatio, fastest, None)
                .with(Measure::Skill, skill, None),
            );
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                format!(
                    "A step changes the weights by {} of their size, where a thousandth is usual: \
                     too slow to converge.",
                    crate::number::rough(fastest)
                ),
            )
            .since(curve.recent(needed).first()?.first)
            .with(Measure::UpdateRatio, fastest, limit)
            .with(Measure::LearningRateFraction, curve.learning_rate_fraction(), None)
            .with(Measure::ProjectedSkill, projected, nearly_done)
            .with(Measure::Skill, skill, None),
        )
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if !context.facts.has_baseline() {
            return self.level(context);
        }
        let skill = context.curve.recent_skill(context.thresholds.alpha + 1)?;
        let low = context.thresholds.low_skill();
        if !conditions::has_learned_nothing(context) || skill >= low {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                "All steps are done, and the model is hardly better than random guessing.",
            )
            .since(1)
            .with(Measure::Skill, skill, low),
        )
    }
}

impl SlowConvergence {
    /// Finds a loss that ends where it started.
    fn level(self, context: &Context<'_>) -> Option<Finding> {
        let losses = shape::losses(context);
        let loss = Shape::of(&losses)?;
        let limit = if loss.count < SHORT { DECREASE.1 } else { DECREASE.0 };
        let validation = Shape::of(&shape::validation_losses(context));
        if loss.lowest <= 0.0
            || context.curve.has_negative_loss()
            || diverging_loss::has_risen(&loss)
            || !(loss.decrease() < limit || has_stopped(&losses, &loss))
            || validation.is_some_and(|loss| loss.decrease() >= limit)
            || shape::metric_has_gained(context, GAINED)
        {
            return None;
        }
        let message = format!(
            "The loss hardly decreases: it starts at {} and ends at {}.",
            crate::number::rough(loss.first),
            crate::number::rough(loss.last)
        );
        Some(Finding::new(self.problem(), context.step(), message).since(1).with(
            Measure::Loss,
            loss.last,
            (1.0 - limit) * loss.first,
        ))
    }
}

/// Returns true for a high loss that does not change any more, as that of a model with a constant
/// output. Losses below 1 are often logged with too few digits to tell.
fn has_stopped(losses: &[f64], loss: &Shape) -> bool {
    let (from, to) = (losses.len() / 2, losses.len() - (losses.len() / 10).max(1));
    let settled = losses.get(from..to).unwrap_or_default();
    let low = settled.iter().copied().fold(f64::INFINITY, f64::min);
    let high = settled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    loss.count >= SHORT
        && loss.last >= 1.0
        && loss.decrease() < HALF
        && high - low <= STILL * loss.last
}

fn mean_skill(context: &Context<'_>, from: usize, to: usize) -> Option<f64> {
    let blocks = context.curve.blocks().get(from..to)?;
    crate::curve::mean(blocks.iter().map(|block| block.skill))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, curve, facts};
    use super::*;

    fn course(update: f64, skill: impl Fn(f64) -> f64 + 'static) -> Course {
        let mut course = Course::new(facts()).skill(skill);
        course.change(move |_, seen| {
            for layer in &mut seen.layers {
                layer.update_ratio = Some(update);
            }
        });
        course
    }

    #[test]
    fn tiny_steps_that_lead_nowhere_are_found_early() {
        let found = course(1e-6, |p| 0.1 * p).run(SlowConvergence).unwrap();
        assert!(found.step < 40, "{}", found.step);
    }

    #[test]
    fn tiny_steps_of_a_run_that_is_done_or_gets_there_are_fine() {
        assert_eq!(course(1e-6, |_| 0.95).run(SlowConvergence), None);
        assert_eq!(course(5e-5, |p| 1.1 * p).run(SlowConvergence), None);
    }

    #[test]
    fn a_level_loss_without_a_baseline_is_found() {
        let found = |loss: fn(f64) -> f64| {
            curve(50, move |step, seen| seen.loss = loss(step as f64)).run(SlowConvergence)
        };
        assert!(found(|step| 2311.0 + 30.0 / step).is_some_and(|f| f.message.contains("hardly")));
        assert!(found(|step| if step < 10.0 { 2300.0 } else { 1788.3 }).is_some());
        assert_eq!(found(|step| 0.12 + 0.05 / step), None);
        assert_eq!(found(|step| 5.0 + 3.0 / step), None);
    }

    #[test]
    fn a_level_loss_with_a_perfect_accuracy_is_fine() {
        let mut course = curve(50, |_, seen| seen.loss = 0.1);
        course.change(|_, seen| seen.metric = Some(0.97));
        assert_eq!(course.run(SlowConvergence), None);
    }

    #[test]
    fn waiting_at_chance_with_sound_steps_is_fine_until_the_end() {
        let late = course(1e-3, |p| if p > 0.8 { 1.0 } else { 0.0 });
        assert_eq!(late.run(SlowConvergence), None);
        let never = course(1e-3, |_| 0.02).run(SlowConvergence).unwrap();
        assert_eq!(never.step, 200);
        assert!(never.message.starts_with("All steps are done"));
    }
}
