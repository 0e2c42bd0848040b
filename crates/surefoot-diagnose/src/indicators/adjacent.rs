//! Change of the gradient from one layer to the one before it.

use crate::curve::{LayerBlock, median};
use crate::detector::Context;
use crate::detectors::weighted;

/// Fewest pairs of layers for a median.
const FEWEST: usize = 3;

/// Median over the pairs of neighboring layers of the gradient of the earlier one, divided by that of the later
/// one: above 1 it grows backwards, below 1 it shrinks. One for each of the last `count` blocks in which layers were
/// observed, the newest first; `None` with fewer blocks or too few layers.
///
/// A layer's gradient is its root mean square, so that a wide layer does not look stronger than a
/// narrow one.
pub(super) fn amplifications(context: &Context<'_>, count: usize) -> Option<Vec<f64>> {
    let weighted = weighted(context);
    let blocks = context.curve.layers().rev().take(count);
    let middles: Option<Vec<f64>> = blocks.map(|layers| middle(layers, &weighted)).collect();
    middles.filter(|middles| middles.len() == count)
}

fn middle(layers: &[LayerBlock], weighted: &[usize]) -> Option<f64> {
    let sizes: Option<Vec<f64>> =
        weighted.iter().map(|&layer| layers.get(layer)?.gradient_rms).collect();
    let ratios: Vec<f64> =
        sizes?.windows(2).map(|pair| pair[0] / pair[1]).filter(|ratio| !ratio.is_nan()).collect();
    (ratios.len() >= FEWEST).then(|| median(ratios.into_iter()))?
}
