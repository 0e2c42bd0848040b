//! Uneven updates.

use super::conditions;
use crate::curve::{LayerBlock, median};
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// A few layers are updated much more, or much less, than the others, for several blocks.
///
/// A step usually changes weights by a thousandth of their size. A layer that it changes by more than
/// [`Thresholds::largest_update`](crate::Thresholds) does not keep what it learns; one that it changes
/// ten thousand times less than the median layer does not learn. Examples are an output layer or an
/// embedding with another learning rate, or behind a constant factor. Layers whose weights started at
/// zero, such as those of adapters, change a lot at first, so the first tenth of the training and the
/// first hundred steps are left out. An embedding may have rows that no batch contains, so it is not
/// compared with the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnevenUpdates;

/// Update relative to the median of the layers below which a layer does not learn.
const STILL: f64 = 1e-4;
/// Largest share of the layers that can be exceptions.
const FEW: f64 = 0.34;
/// Number of first steps in which layers are not compared.
const FIRST_STEPS: u64 = 100;
/// Share of the training after which layers are compared.
const SETTLED: f64 = 0.1;

impl Detector for UnevenUpdates {
    fn problem(&self) -> Problem {
        Problem::UNEVEN_UPDATES
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Weights]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let needed = context.thresholds.alpha + 1;
        let weighted = conditions::weighted(context);
        if weighted.len() < 3
            || context.curve.layers().len() < needed
            || !context.has_run_for(SETTLED)
            || context.step() < FIRST_STEPS
        {
            return None;
        }
        let limit = context.thresholds.largest_update;
        let ratio = |layers: &[LayerBlock], i: usize| layers.get(i)?.update_ratio;
        let middle =
            |layers: &[LayerBlock]| median(weighted.iter().filter_map(|&i| ratio(layers, i)));
        let lasts = |is_odd: &dyn Fn(f64, f64) -> bool| -> Vec<usize> {
            let odd = |i: &usize| {
                context.curve.layers().rev().take(needed).all(|layers| {
                    let pair = ratio(layers, *i).zip(middle(layers));
                    pair.is_some_and(|(ratio, middle)| is_odd(ratio, middle))
                })
            };
            weighted.iter().copied().filter(odd).collect()
        };
        let overwritten = lasts(&|ratio, middle| ratio >= limit && middle < 0.1 * limit);
        // A layer that does not change at all is reported as unchanged.
        let still = lasts(&|ratio, middle| ratio > 0.0 && ratio < STILL * middle);
        let (layers, bound) =
            if overwritten.is_empty() { (still, None) } else { (overwritten, Some(limit)) };
        if layers.is_empty() || layers.len() as f64 > FEW * weighted.len() as f64 {
            return None;
        }
        let last = context.curve.last_layers()?;
        let ratios = layers.iter().filter_map(|&i| ratio(last, i));
        let (own, middle) = (median(ratios)?, middle(last)?);
        let message = format!(
            "A step changes these layers by {} of their size, and the median layer by {}: they {}.",
            crate::number::rough(own),
            crate::number::rough(middle),
            if bound.is_some() { "do not keep what they learn" } else { "do not learn" }
        );
        let name = |i: &usize| context.facts.layers[*i].name.clone();
        Some(
            Finding::new(self.problem(), context.step(), message)
                .warning()
                .since(context.curve.recent(needed).first()?.first)
                .within(layers.iter().map(name).collect())
                .with(Measure::UpdateRatio, own, bound.unwrap_or(STILL * middle)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;

    fn found(ratio: impl Fn(u64) -> f64 + 'static) -> Option<Finding> {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| seen.layers[3].update_ratio = Some(ratio(step)));
        course.run(UnevenUpdates)
    }

    #[test]
    fn a_layer_that_hardly_moves_is_named() {
        let finding = found(|_| 1e-8).unwrap();
        assert_eq!(finding.layers, ["dense_4"]);
        assert!(finding.message.contains("do not learn"), "{}", finding.message);
    }

    #[test]
    fn a_layer_that_is_replaced_is_named() {
        let finding = found(|_| 0.6).unwrap();
        assert!(finding.message.contains("do not keep"), "{}", finding.message);
    }

    #[test]
    fn weights_that_started_at_zero_and_small_rates_are_fine() {
        assert_eq!(found(|step| 1.0 / step as f64), None);
        assert_eq!(found(|_| 1e-5), None);
        assert_eq!(found(|_| 0.0), None);
    }
}
