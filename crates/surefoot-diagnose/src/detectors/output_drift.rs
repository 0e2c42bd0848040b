//! Outputs that grow without end.

use crate::detector::{Context, Detector, Quantity};
use crate::facts::TaskKind;
use crate::finding::{Finding, Problem};
use crate::layer::LayerKind;
use crate::measure::Measure;

/// The outputs of a layer grow to a hundred times their first size and beyond a thousand, and still
/// grow.
///
/// The z-loss of PaLM and the normalization layers of recent transformers prevent such drift:
/// half-precision numbers reach only 65,504 and have about three digits. Outputs that are large from
/// the start are due to unscaled inputs. The output layer of a regression has to reach its targets, so
/// it may grow. If the loss rises too, that is the problem, and another detector reports it.
#[derive(Clone, Debug, Default)]
pub struct OutputDrift {
    growth: Growth,
}

/// Absolute output from which on growth is a drift.
const LARGE: f64 = 1000.0;
/// Growth since the first blocks that is a drift.
const GROWTH: f64 = 100.0;
/// Loss relative to that of the first block above which it has risen.
const RISEN: f64 = 1.5;

impl Detector for OutputDrift {
    fn problem(&self) -> Problem {
        Problem::OUTPUT_DRIFT
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Outputs]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let layers = &context.facts.layers;
        let is_regression = context.facts.task == Some(TaskKind::Regression);
        let counted = |i: usize| {
            layers[i].kind != LayerKind::AttentionLogits
                && !(is_regression && i + 1 == layers.len())
        };
        let (worst, now, start) = self.growth.review(context, LARGE, GROWTH, counted)?;
        if context.curve.blocks().last()?.loss > RISEN * context.curve.first_loss()? {
            return None;
        }
        let message = format!(
            "The largest output of this layer has grown from {} to {} and still grows.",
            crate::number::rough(start),
            crate::number::rough(now)
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .warning()
                .within(vec![layers[worst].name.clone()])
                .with(Measure::LargestOutput, now, LARGE.max(GROWTH * start)),
        )
    }
}

/// Largest outputs of the layers since the first blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Largest output of each layer in the first blocks.
    start: Vec<Option<f64>>,
    reviews: usize,
}

/// Number of first blocks.
const FIRST: usize = 3;
/// Least growth in each half of the recent blocks of outputs that still grow.
const STILL: f64 = 1.03;

impl Growth {
    /// The counted layer whose outputs are largest, with its output now and at the start, if it is
    /// above `large` and `growth` times its start in all recent blocks, and still grows.
    pub(super) fn review(
        &mut self,
        context: &Context<'_>,
        large: f64,
        growth: f64,
        counted: impl Fn(usize) -> bool,
    ) -> Option<(usize, f64, f64)> {
        let last = context.curve.last_layers()?;
        if self.reviews < FIRST {
            self.reviews += 1;
            self.start.resize(last.len(), None);
            for (start, layer) in self.start.iter_mut().zip(last) {
                *start = layer.output.map(|output| start.unwrap_or(0.0).max(output));
            }
            return None;
        }
        let needed = context.thresholds.alpha + 1;
        let outputs = |i: usize| -> Vec<f64> {
            context.curve.layers().filter_map(|layers| layers.get(i)?.output).collect()
        };
        let mut worst: Option<(usize, f64, f64)> = None;
        for (i, start) in self.start.iter().enumerate() {
            let Some(start) = start.filter(|start| *start > 0.0 && counted(i)) else { continue };
            let outputs = outputs(i);
            let middle = outputs.get(outputs.len() / 2);
            let (Some(&first), Some(&middle), Some(&now)) =
                (outputs.first(), middle, outputs.last())
            else {
                continue;
            };
            let recent = outputs.iter().rev().take(needed);
            let is_large = outputs.len() >= needed
                && recent.copied().all(|output| output >= large && output >= growth * start);
            let still_grows = now >= STILL * middle && middle >= STILL * first;
            if is_large && still_grows && worst.is_none_or(|(_, most, _)| now > most) {
                worst = Some((i, now, start));
            }
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::Summary;

    fn found(output: impl Fn(f64) -> f64 + 'static) -> Option<Finding> {
        let mut course = Course::new(facts()).skill(|_| 0.5);
        course.change(move |step, seen| {
            let linf = output(step as f64);
            seen.layers[2].output = Some(Summary { count: 64, linf, ..Summary::default() });
        });
        course.run(OutputDrift::default())
    }

    #[test]
    fn outputs_that_grow_without_end_are_found() {
        assert_eq!(found(|step| 1.05_f64.powf(step)).unwrap().layers, ["dense_3"]);
    }

    #[test]
    fn large_inputs_and_outputs_that_settle_are_fine() {
        assert_eq!(found(|step| 1e5 * (1.0 + step)), None);
        assert_eq!(found(|step| 20.0 * step.sqrt()), None);
        assert_eq!(found(|step| if step < 20.0 { 1.0 } else { 2000.0 }), None);
    }
}
