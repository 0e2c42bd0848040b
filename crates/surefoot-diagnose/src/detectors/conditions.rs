//! Conditions shared by detectors: learning too little, and causes that explain other symptoms.
//!
//! AutoTrainer's second symptom is always an accuracy that "remains low": `max(Acc) ≤ Θ`. Here it is
//! expressed as *skill*: 0 for the best constant prediction, 1 for a perfect one. With unbalanced
//! classes, or more than two, an accuracy of 60% may be excellent or worse than guessing; a skill is
//! comparable.

use super::{abnormal_data, improper_loss, improper_output_activation};
use crate::detector::Context;
use crate::layer::LayerKind;

/// Number of blocks over which skill is averaged: at least four, and enough that their samples
/// average out chance.
pub(super) fn window(context: &Context<'_>) -> usize {
    const SAMPLES: u64 = 256;
    let batch = context.facts.batch_size.unwrap_or(32).max(1) as u64;
    let block = context.curve.block_steps() * batch;
    (SAMPLES.div_ceil(block) as usize).max(4)
}

/// Returns true if the run has learned too little for its progress: less than half after the first
/// 3% of the training, less than 90% after 15%. Θ moves these skills, and α these shares.
///
/// If the number of steps is unknown, the run may be at its very beginning at any time, so only half
/// is expected.
pub(super) fn is_behind(context: &Context<'_>) -> bool {
    let Some(best) = best_skill(context) else {
        return false;
    };
    let horizon = context.curve.progress(context.facts).is_some();
    let half = context.thresholds.expected_skill(0.5);
    let most = context.thresholds.expected_skill(0.9);
    if !context.has_run_for(share_of(context, 6)) {
        false
    } else if !context.has_run_for(share_of(context, 30)) {
        best < half
    } else {
        best < if horizon { most } else { half } || has_relapsed(context, LASTING)
    }
}

/// Share of the training that `blocks` are with the default α.
pub(super) fn share_of(context: &Context<'_>, blocks: usize) -> f64 {
    context.thresholds.lasting(blocks) as f64 / crate::curve::BLOCKS as f64
}

/// Number of blocks after which a relapse counts without other symptoms.
pub(super) const LASTING: usize = 40;
/// Loss of skill that counts as a relapse.
pub(super) const RELAPSE: f64 = 0.3;

/// Returns true if the mean skill of the last `blocks` is far below the best.
pub(super) fn has_relapsed(context: &Context<'_>, blocks: usize) -> bool {
    let recent = context.curve.recent_skill(blocks);
    let best = context.curve.best_skill(blocks);
    recent.zip(best).is_some_and(|(recent, best)| best - recent >= RELAPSE)
}

/// Returns true if the run never did better than guessing.
pub(super) fn has_learned_nothing(context: &Context<'_>) -> bool {
    best_skill(context).is_some_and(|best| best < context.thresholds.low_skill())
}

/// Best skill so far; 1 if the metric is at least `good_enough`.
fn best_skill(context: &Context<'_>) -> Option<f64> {
    let best = context.curve.best_skill(window(context))?;
    let user = context.thresholds.good_enough;
    let good = context
        .curve
        .recent(window(context))
        .iter()
        .all(|block| block.metric.is_some_and(|metric| metric >= user));
    Some(if good { 1.0 } else { best })
}

/// Returns true if NaN or infinite inputs were found, so that all other ones are a consequence.
pub(super) fn has_broken_input(context: &Context<'_>) -> bool {
    let off = context.thresholds.off.contains(&crate::Problem::ABNORMAL_DATA);
    context.curve.has_broken_input() && !off
}

/// Returns true if the data, the output activation or the loss function explains the symptoms. Then
/// those of gradients are a consequence and not reported.
pub(super) fn has_plain_cause(context: &Context<'_>) -> bool {
    let off = |problem| context.thresholds.off.contains(&problem);
    has_broken_input(context)
        || (abnormal_data::is_suspect(context) && !off(crate::Problem::ABNORMAL_DATA))
        || (improper_output_activation::is_suspect(context.facts)
            && !off(crate::Problem::IMPROPER_OUTPUT_ACTIVATION))
        || (improper_loss::is_suspect(context.facts) && !off(crate::Problem::IMPROPER_LOSS))
}

/// Indices of trainable layers. Excludes normalization, whose gradients have another scale, and
/// embeddings, of which a batch updates only some rows.
pub(crate) fn weighted(context: &Context<'_>) -> Vec<usize> {
    let layers = context.facts.layers.iter().enumerate();
    layers
        .filter(|(_, layer)| {
            layer.parameters > 0
                && !layer.frozen
                && !layer.kind.is_norm()
                && !layer.kind.is_embedding()
        })
        .map(|(i, _)| i)
        .collect()
}

/// Gain of the initial weights (median over the hidden layers); `None` if it was not observed or if
/// the first step changed the weights too much.
pub(super) fn gain(context: &Context<'_>) -> Option<f64> {
    let (update, at) = context.curve.peak_update();
    if at == 1 && update >= DESTRUCTIVE {
        return None;
    }
    let gains = &context.curve.initial().gains;
    let weighted = weighted(context);
    // The output layer is often narrow, and no layer follows it.
    let hidden = weighted.split_last().map_or(&[][..], |(_, hidden)| hidden);
    let gains = hidden.iter().filter_map(|&i| gains.get(i).copied().flatten());
    crate::curve::median(gains).filter(|gain| !gain.is_nan())
}

/// Largest relative update of any step; `None` if updates were not observed.
pub(super) fn largest_update(context: &Context<'_>) -> Option<f64> {
    let (update, step) = context.curve.peak_update();
    (step > 0).then_some(update)
}

/// Batch sizes up to this are too small for batch statistics.
const TINY_BATCH: usize = 4;

/// Returns true for batch normalization over batches of a few samples.
pub(super) fn normalizes_tiny_batches(context: &Context<'_>) -> bool {
    let mut layers = context.facts.layers.iter();
    has_tiny_batches(context) && layers.any(|layer| layer.kind == LayerKind::BatchNorm)
}

/// Returns true for batches of a few samples.
fn has_tiny_batches(context: &Context<'_>) -> bool {
    let size = context.facts.batch_size;
    size.is_some_and(|size| size <= TINY_BATCH)
}

/// Gain below which initial weights are tiny.
pub(super) const SMALL_GAIN: f64 = 0.3;

/// Update ratio of a step that destroys the weights.
pub(super) const DESTRUCTIVE: f64 = 0.08;

/// Update ratio of a step on a tiny batch that destroys the weights, if updates are small afterwards.
const DESTRUCTIVE_TINY_BATCH: f64 = 0.01;
/// Ratio of the largest to the current update beyond which updates are small.
const STILL: f64 = 50.0;

/// Returns true if a step destroyed the weights: by a large update, or by a smaller one on a tiny
/// batch after which the updates became small. Tiny initial weights do not count, because any update
/// is large compared to them.
pub(super) fn was_destroyed_by_a_step(context: &Context<'_>) -> bool {
    let gain = gain(context);
    let (peak, _) = context.curve.peak_update();
    // Compare at the same learning rate.
    let now = context.curve.update_ratio();
    let still = now.is_some_and(|now| now * STILL <= peak * context.curve.learning_rate_fraction());
    let displaced = has_tiny_batches(context) && peak >= DESTRUCTIVE_TINY_BATCH && still;
    (peak >= DESTRUCTIVE || displaced) && gain.is_none_or(|gain| gain >= SMALL_GAIN)
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::super::fixture::{Course, facts};
    use crate::facts::Facts;
    use crate::finding::Problem;

    /// The same run without a known number of steps.
    fn open_ended() -> Facts {
        Facts { steps_per_epoch: None, epochs: None, ..facts() }
    }

    fn problems(course: &Course) -> Vec<Problem> {
        course.run_all(all()).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn a_healthy_run_of_unknown_length_has_no_findings() {
        let course = Course::of_length(open_ended(), 4000).skill(|p| 0.95 * p.sqrt());
        assert_eq!(problems(&course), []);
    }

    #[test]
    fn dead_units_are_found_in_a_run_of_unknown_length() {
        let mut course = Course::of_length(open_ended(), 1000).skill(|_| 0.0);
        course.change(|_, seen| seen.layers[1].dead_units = Some(1.0));
        assert_eq!(problems(&course), [Problem::DYING_RELU]);
    }

    #[test]
    fn unscaled_inputs_are_found_in_a_run_of_unknown_length() {
        let course = Course::of_length(open_ended(), 1000).input(200.0, 80.0).skill(|_| 0.0);
        assert!(problems(&course).contains(&Problem::ABNORMAL_DATA));
    }
}
