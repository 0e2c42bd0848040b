//! Lightning, under any of its names: `lightning`, `lightning.pytorch`, `pytorch_lightning`.

use super::{Effect, Global, Layer};

/// Calls of Lightning whose meaning is its own; see `lift/lightning.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lightning {
    /// Runs a training.
    Trainer,
    /// Writes checkpoints while it runs.
    Checkpoint,
    /// Averages the model while it runs.
    Average,
    /// Another callback. Its state is in the checkpoints.
    Callback,
}

/// What a call of `pytorch_lightning.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    let last = name.rsplit('.').next().unwrap_or(name);
    Some(match last {
        "seed_everything" => Effect::Seed(&[Global::Python, Global::NumPy, Global::Torch]),
        "LightningModule" => Effect::Module(Layer::default()),
        "Trainer" => Effect::Lightning(Lightning::Trainer),
        "ModelCheckpoint" => Effect::Lightning(Lightning::Checkpoint),
        "StochasticWeightAveraging" | "WeightAveraging" | "EMAWeightAveraging" => {
            Effect::Lightning(Lightning::Average)
        }
        _ if name.starts_with("callbacks.") => Effect::Lightning(Lightning::Callback),
        _ if name.starts_with("loggers.") || name.starts_with("profilers.") => Effect::Silent,
        _ if last.starts_with("rank_zero_") => Effect::Silent,
        _ => Effect::Pure,
    })
}
