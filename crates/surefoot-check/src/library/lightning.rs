//! Lightning, under any of its names: `lightning`, `lightning.pytorch`, `pytorch_lightning`.

use super::{Effect, Global, Layer, Library};

/// Calls implemented in `lift/lightning.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lightning {
    /// The trainer.
    Trainer,
    /// Writes checkpoints while it runs.
    Checkpoint,
}

pub(super) const LIBRARIES: &[Library] = &[Library {
    aliases: &[("lightning.pytorch", "pytorch_lightning"), ("lightning", "pytorch_lightning")],
    ..Library::new(
        "pytorch_lightning",
        &[
            ("*.seed_everything", Effect::Seed(&[Global::Python, Global::NumPy, Global::Torch])),
            ("*.LightningModule", Effect::Module(Layer::PLAIN)),
            ("*.Trainer *.from_argparse_args", Effect::Lightning(Lightning::Trainer)),
            ("*.ModelCheckpoint", Effect::Lightning(Lightning::Checkpoint)),
            // The state of other callbacks is in the checkpoints.
            ("callbacks.* loggers.* profilers.* *.rank_zero_*", Effect::Silent),
        ],
    )
}];
