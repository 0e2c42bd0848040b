//! Collapse after learning.

use super::shape::{self, Shape};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::number::rough;

/// The run had learned and lost it again by the end: the accuracy is less than half of its best, or
/// the loss is more than half of the way back to its start.
///
/// For curves without a known baseline; with one, a relapse is an
/// [`OscillatingLoss`](super::OscillatingLoss).
#[derive(Clone, Copy, Debug, Default)]
pub struct Collapse;

/// Final metric relative to its best that is too low.
const METRIC_LEFT: f64 = 0.5;
/// Best metric from which on something had been learned.
const METRIC_LEARNED: f64 = 0.4;
/// Loss relative to its start below which something had been learned.
const LOSS_LEARNED: f64 = 0.6;
/// Share of the way back to the start that is a collapse.
const WAY_BACK: f64 = 0.5;
/// Smallest number of values that a collapse is read from.
const LEAST: usize = 8;

impl Detector for Collapse {
    fn problem(&self) -> Problem {
        Problem::COLLAPSE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn finish(&mut self, context: &Context<'_>) -> Option<Finding> {
        if context.facts.has_baseline() {
            return None;
        }
        let long = |shape: &Shape| shape.count >= LEAST;
        if shape::has_accuracy(context)
            && let Some(shape) = Shape::of(&shape::metrics(context)).filter(long)
            && shape.highest >= METRIC_LEARNED
            && shape.last < METRIC_LEFT * shape.highest
        {
            let percent = |value: f64| rough(100.0 * value);
            let message = format!(
                "The accuracy reached {}% and fell back to {}%.",
                percent(shape.highest),
                percent(shape.last)
            );
            let limit = METRIC_LEFT * shape.highest;
            return Some(self.finding(context, message).with(Measure::Metric, shape.last, limit));
        }
        let shape = Shape::of(&shape::losses(context)).filter(long)?;
        let limit = shape.lowest + WAY_BACK * (shape.first - shape.lowest);
        let has_scale = shape.lowest > 0.0 && !context.curve.has_negative_loss();
        let learned = has_scale && shape.lowest <= LOSS_LEARNED * shape.first;
        (learned && shape.last_low >= limit && !shape::metric_has_gained(context, 0.2)).then(|| {
            let message = format!(
                "The loss fell from {} to {} and rose again to {}.",
                rough(shape.first),
                rough(shape.lowest),
                rough(shape.last)
            );
            self.finding(context, message).with(Measure::Loss, shape.last, limit)
        })
    }
}

impl Collapse {
    fn finding(self, context: &Context<'_>, message: String) -> Finding {
        Finding::new(self.problem(), context.step(), message).since(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::curve;
    use super::*;

    #[test]
    fn a_loss_that_returns_to_its_start_is_found() {
        let found = |end: f64| {
            let loss = move |step| if step > 20 { end } else { 4.0 / step as f64 };
            curve(30, move |step, seen| seen.loss = loss(step)).run(Collapse)
        };
        assert!(found(3.8).is_some_and(|found| found.message.contains("rose again")));
        assert_eq!(found(1.0), None);
    }

    #[test]
    fn an_accuracy_that_is_lost_is_found() {
        let course = curve(30, |step, seen| {
            seen.loss = 1.0;
            seen.metric = Some(if step > 20 { 0.1 } else { 0.03 * step as f64 });
        });
        assert!(course.run(Collapse).is_some_and(|found| found.message.contains("fell back")));
    }

    #[test]
    fn a_last_spike_is_not_a_collapse() {
        let course = curve(30, |step, seen| {
            seen.loss = if step == 30 { 5.0 } else { 4.0 / step as f64 };
        });
        assert_eq!(course.run(Collapse), None);
    }
}
