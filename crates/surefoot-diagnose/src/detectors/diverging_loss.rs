//! Diverging loss.

use super::conditions;
use super::shape::{self, Shape};
use crate::curve::REPLACED;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::number::rough;

/// The loss rises instead of falling and ends far above where it started.
///
/// A run with a known baseline is watched while it trains: the loss is three times that of the first
/// blocks, still rises, and nothing is learned. Without a baseline it is reported if a step changed
/// the weights by a third of their size and the loss has stayed at three times that of the first step
/// since. A complete curve is judged at its end, because a loss may rise for a while and recover: the
/// training loss is then a fifth above its start and half above its best; a validation loss has to be
/// ten times both, because overfitting raises it too. A metric that improved all the same is proof of
/// the opposite.
#[derive(Clone, Copy, Debug, Default)]
pub struct DivergingLoss;

/// Loss relative to its start that is too high at the end.
const ABOVE_START: f64 = 1.2;
/// Loss relative to its best that is too high at the end.
const ABOVE_BEST: f64 = 1.5;
/// The same for a validation loss, relative to both.
const VALIDATION: f64 = 10.0;
/// Loss relative to that of the first blocks that is too high while training.
const LIVE: f64 = 3.0;
/// Rise of the loss over four blocks by which it counts as still rising.
const RISING: f64 = 1.2;
/// Share of the missing metric that a sound run gains.
const GAINED: f64 = 0.2;
/// Skill from which on a high loss does not matter.
const SKILLED: f64 = 0.5;

impl Detector for DivergingLoss {
    fn problem(&self) -> Problem {
        Problem::DIVERGING_LOSS
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let needed = context.thresholds.alpha + 1;
        let blocks = context.curve.blocks();
        if context.warming_up() || blocks.len() < 3 * needed || conditions::has_plain_cause(context)
        {
            return None;
        }
        if !context.facts.has_baseline() {
            return destroyed(context, 2 * needed);
        }
        if !context.has_run_for(0.05) || !conditions::has_learned_nothing(context) {
            return None;
        }
        let start = crate::curve::mean(blocks[..needed].iter().map(|block| Some(block.loss)))?;
        let (now, before) = context.curve.recent_losses(needed)?;
        let recent = context.curve.recent(needed);
        let high = start > 0.0 && recent.iter().all(|block| block.loss >= LIVE * start);
        (high && now >= RISING * before).then(|| {
            finding(context, "loss", Measure::Loss, start, now, LIVE)
                .since(recent.first().map_or(1, |block| block.first))
        })
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        let skilled = context.curve.recent_skill(context.thresholds.alpha + 1);
        if context.facts.has_baseline() && skilled.is_none_or(|skill| skill >= SKILLED)
            || shape::metric_has_gained(context, GAINED)
        {
            return None;
        }
        if !context.facts.has_baseline()
            && let Some(finding) = destroyed(context, shape::LEAST)
        {
            return Some(finding);
        }
        let training = Shape::of(&shape::losses(context));
        let has_scale = !context.curve.has_negative_loss();
        if let Some(shape) = training.filter(|loss| has_scale && has_risen(loss)) {
            let (first, last) = (shape.first, shape.last);
            return Some(
                finding(context, "loss", Measure::Loss, first, last, ABOVE_START).since(1),
            );
        }
        let shape = Shape::of(&shape::validation_losses(context))?;
        let high = shape.lowest > 0.0
            && shape.last >= VALIDATION * shape.first
            && shape.last >= VALIDATION * shape.lowest;
        high.then(|| {
            let (name, measure) = ("validation loss", Measure::ValidationLoss);
            finding(context, name, measure, shape.first, shape.last, VALIDATION).since(1)
        })
    }
}

/// Finds a step that changed the weights so much that the last `blocks` have a much higher loss than
/// the first step.
fn destroyed(context: &Context<'_>, blocks: usize) -> Option<Finding> {
    let start = context.curve.start_loss().filter(|&start| start > 0.0)?;
    let recent = context.curve.recent(blocks);
    let is_high = recent.len() == blocks && recent.iter().all(|block| block.loss >= LIVE * start);
    let (peak, at) = context.curve.peak_update();
    if !is_high || peak < REPLACED || !conditions::was_destroyed_by_a_step(context) {
        return None;
    }
    let loss = recent.last()?.loss;
    let rate = context.curve.learning_rate().or(context.facts.learning_rate);
    let message = format!(
        "The loss has risen from {} to {}, because a step changed the weights by {:.0}% of their size: \
         the learning rate{} is too high.",
        rough(start),
        rough(loss),
        100.0 * peak,
        rate.map_or_else(String::new, |rate| format!(" of {}", rough(rate))),
    );
    Some(
        Finding::new(Problem::DIVERGING_LOSS, context.step(), message)
            .since(at)
            .with(Measure::Loss, loss, LIVE * start)
            .with(Measure::LargestUpdateRatio, peak, REPLACED),
    )
}

/// Returns true for a loss that ends far above its start and its best. Losses around zero, such as
/// those of policies, have no scale to compare with.
pub(super) fn has_risen(loss: &Shape) -> bool {
    loss.lowest > 0.0
        && loss.first > 0.0
        && loss.last >= ABOVE_START * loss.first
        && loss.last >= ABOVE_BEST * loss.lowest
}

fn finding(
    context: &Context<'_>,
    name: &str,
    measure: Measure,
    start: f64,
    now: f64,
    factor: f64,
) -> Finding {
    let message = format!("The {name} rises: from {} to {}.", rough(start), rough(now));
    Finding::new(Problem::DIVERGING_LOSS, context.step(), message).with(
        measure,
        now,
        factor * start,
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, curve, facts};
    use super::*;

    fn found(loss: impl Fn(u64) -> f64) -> Option<Finding> {
        curve(30, |step, seen| seen.loss = loss(step)).run(DivergingLoss)
    }

    #[test]
    fn a_loss_that_ends_above_its_start_is_found() {
        let finding = found(|step| 2.0 + 0.2 * step as f64).unwrap();
        assert!(finding.message.contains("from 2.2 to"), "{}", finding.message);
    }

    #[test]
    fn a_loss_that_recovers_or_stays_level_is_left_alone() {
        assert_eq!(found(|step| if step == 9 { 300.0 } else { 1.0 / step as f64 }), None);
        assert_eq!(found(|step| 1.0 + 0.02 * (step % 5) as f64), None);
    }

    #[test]
    fn a_metric_that_improves_excuses_a_rising_loss() {
        let mut course = curve(30, |step, seen| seen.loss = step as f64);
        course.change(|step, seen| seen.metric = Some(0.03 * step as f64));
        assert_eq!(course.run(DivergingLoss), None);
    }

    #[test]
    fn a_validation_loss_that_explodes_is_found() {
        let course = curve(30, |step, seen| seen.loss = 1.0 / step as f64);
        let found =
            |loss: fn(u64) -> f64| course.with_validation(loss, |_| None).run(DivergingLoss);
        let finding = found(|step| step as f64 * step as f64).unwrap();
        assert!(finding.message.starts_with("The validation loss"), "{}", finding.message);
        assert_eq!(found(|step| 1.0 + 0.1 * step as f64), None);
    }

    #[test]
    fn a_rising_loss_is_found_while_training() {
        let mut course = Course::new(facts()).skill(|_| 0.0);
        course.change(|step, seen| seen.loss = 0.7 * 1.05_f64.powi(step as i32));
        let finding = course.run(DivergingLoss).unwrap();
        assert!(finding.step < 60, "{}", finding.step);
    }
}
