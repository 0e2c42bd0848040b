//! Evidence that a run learns; then gradients and activations are no reason to prune it.

use super::limits::Limits;
use crate::curve::{Block, mean};
use crate::detector::Context;

/// Skill that proves learning.
const SKILLED: f64 = 0.2;

/// Returns true if the loss has fallen by [`Limits::gain`] of its first value or is falling, if the run
/// has skill, or if it has only begun. The published indicators do not ask.
pub(super) fn learns(context: &Context<'_>, limits: &Limits) -> bool {
    if limits.published {
        return false;
    }
    let blocks = context.curve.blocks();
    let window = limits.lasting.max(blocks.len() / 8);
    let begun = !context.has_run_for(limits.patience);
    let Some(first) = blocks.first().filter(|_| !begun && blocks.len() >= window) else {
        return true;
    };
    let skilled = context.curve.best_skill(window);
    let least = limits.gain * first.loss.abs();
    let now = loss(context.curve.recent(window));
    let gained = first.loss - now >= least;
    let falls =
        context.curve.recent_losses(window).is_some_and(|(now, before)| before - now >= least);
    gained || falls || skilled.is_some_and(|skill| skill >= SKILLED)
}

fn loss(blocks: &[Block]) -> f64 {
    mean(blocks.iter().map(|block| Some(block.loss))).unwrap_or(f64::NAN)
}
