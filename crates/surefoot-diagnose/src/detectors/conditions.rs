//! When a run may be said not to learn, and whether there is a plain reason for it.
//!
//! AutoTrainer's second symptom, everywhere, is an accuracy that "remains low": `max(Acc) ≤ Θ`. That
//! is put here in a form that needs no accuracy and knows what low is: *skill*, which is 0 for the
//! best prediction that does not look at the input and 1 for a perfect one. With classes of unequal
//! size, or more than two, 60% can be excellent or worse than nothing; a skill cannot.

use super::{abnormal_data, improper_loss, improper_output_activation};
use crate::detector::Context;

/// How many blocks a skill is averaged over: four, and as many as have so many samples together
/// that their accuracy is not luck.
pub(super) fn window(context: &Context<'_>) -> usize {
    const SAMPLES: u64 = 256;
    let batch = context.facts.batch_size.unwrap_or(32).max(1) as u64;
    let block = context.curve.block_steps() * batch;
    (SAMPLES.div_ceil(block) as usize).max(4)
}

/// Whether the run has so far learned little, by what may be asked of it by now: little after the
/// first steps, most of it later.
pub(super) fn is_behind(context: &Context<'_>) -> bool {
    let progress = context.curve.progress(context.facts);
    let Some(best) = best_skill(context) else {
        return false;
    };
    match progress {
        p if p < 0.03 => false,
        p if p < 0.15 => best < 0.5,
        _ => best < 0.9 || has_relapsed(context, LASTING),
    }
}

/// How many blocks a relapse has to last that has no other sign.
pub(super) const LASTING: usize = 40;
/// How much skill is lost in a relapse.
pub(super) const RELAPSE: f64 = 0.3;

/// Whether the run had learned and has lost much of it again, for so many blocks.
pub(super) fn has_relapsed(context: &Context<'_>, blocks: usize) -> bool {
    let recent = context.curve.recent_skill(blocks);
    let best = context.curve.best_skill(blocks);
    recent.zip(best).is_some_and(|(recent, best)| best - recent >= RELAPSE)
}

/// Whether the run has learned next to nothing: no block of it was better than guessing.
pub(super) fn has_learned_nothing(context: &Context<'_>) -> bool {
    best_skill(context).is_some_and(|best| best < context.thresholds.low_skill())
}

/// The best skill so far. An accuracy that the user calls good enough is good enough.
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

/// Whether there is a plain reason for a run not to learn: unfit data, output or loss. Then what
/// gradients do is an effect of it and not worth a finding of its own.
pub(super) fn has_plain_cause(context: &Context<'_>) -> bool {
    let off = |problem| context.thresholds.off.contains(&problem);
    (abnormal_data::is_suspect(context) && !off(crate::Problem::ABNORMAL_DATA))
        || (improper_output_activation::is_suspect(context.facts)
            && !off(crate::Problem::IMPROPER_OUTPUT_ACTIVATION))
        || (improper_loss::is_suspect(context.facts) && !off(crate::Problem::IMPROPER_LOSS))
}

/// The layers that have weights to watch: normalisation is left out, whose few weights have
/// gradients of another size, and so are embeddings, of whose rows a batch meets only some.
pub(crate) fn weighted(context: &Context<'_>) -> Vec<usize> {
    let layers = context.facts.layers.iter().enumerate();
    layers
        .filter(|(_, layer)| {
            layer.parameters > 0
                && !layer.frozen
                && !layer.kind.ends_with("_norm")
                && !layer.kind.ends_with("embedding")
        })
        .map(|(i, _)| i)
        .collect()
}

/// The gain of the initial weights, that of the middle layer; NaN if it was not seen, as after a
/// first step that has torn them.
pub(super) fn gain(context: &Context<'_>) -> f64 {
    let (update, at) = context.curve.peak_update();
    if at == 1 && update >= TEARING {
        return f64::NAN;
    }
    let gains = &context.curve.opening().gains;
    let weighted = weighted(context);
    // The output layer is often narrow, and what it puts out is not passed on.
    let hidden = weighted.split_last().map_or(&[][..], |(_, hidden)| hidden);
    let gains = hidden.iter().filter_map(|&i| gains.get(i).copied().flatten());
    crate::curve::median(gains).unwrap_or(f64::NAN)
}

/// So few samples are no average, and nothing to normalise over.
const FEW_SAMPLES: usize = 4;

/// Whether there is batch normalisation over batches of a few samples.
pub(super) fn normalises_few(context: &Context<'_>) -> bool {
    let mut layers = context.facts.layers.iter();
    has_few_samples(context) && layers.any(|layer| layer.kind == "batch_norm")
}

/// Whether a step sees only a few samples.
fn has_few_samples(context: &Context<'_>) -> bool {
    let size = context.facts.batch_size;
    size.is_some_and(|size| size <= FEW_SAMPLES)
}

/// The gain below which weights are tiny.
pub(super) const SMALL_GAIN: f64 = 0.3;

/// What share of the weights a step moves that tears them out of shape.
pub(super) const TEARING: f64 = 0.08;

/// What share of the weights a step of a few samples moves that throws a run, if it lies still
/// afterwards.
const THROWING: f64 = 0.01;
/// How many times smaller than the largest step those of a run are that lies still.
const STILL: f64 = 50.0;

/// Whether some step tore the weights out of shape, or a few samples, which are no average of
/// anything, threw them where nothing moves any more. Weights that were tiny to begin with do not
/// count: any step is large beside them.
pub(super) fn was_torn(context: &Context<'_>) -> bool {
    let gain = gain(context);
    let (peak, _) = context.curve.peak_update();
    // As large as the steps would be now at the rate of then.
    let now = context.curve.update_ratio();
    let still = now.is_some_and(|now| now * STILL <= peak * context.curve.learning_rate_fraction());
    let thrown = has_few_samples(context) && peak >= THROWING && still;
    (peak >= TEARING || thrown) && (gain.is_nan() || gain >= SMALL_GAIN)
}
