//! Keras, under any of its names: `keras`, `tf.keras`, `tf_keras`.
//!
//! What Keras draws without a seed comes from one global state, which `keras.utils.set_random_seed` and
//! `tf.random.set_seed` set.

use super::{Effect, Family, Global, Layer};

/// Calls of Keras whose meaning is its own; see `lift/keras.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keras {
    /// A layer.
    Layer(Layer),
    /// A model or a layer to inherit from, or one made from inputs and outputs.
    Model,
    /// Layers one after the other.
    Sequential,
    /// An optimizer, which learns of its variables later.
    Optimizer {
        /// Whether it remembers nothing unless it is given momentum.
        is_plain: bool,
    },
    /// A schedule of the learning rate.
    Schedule,
    /// Gives initial values.
    Initializer(Initial),
    /// Something that `fit` calls.
    Callback(Callback),
    /// Batches from the files of a directory.
    Directory,
    /// A whole model out of a file.
    Load,
    /// Writes a variable.
    SetValue,
}

/// Where initial values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// They are always the same.
    Fixed,
    /// Drawn; the seed is the argument at this position.
    Drawn(usize),
}

/// Callbacks that matter to a run, or to one that is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callback {
    /// Keeps the model, the optimizer and the epoch, and puts them back.
    Backup,
    /// Writes the model to a file.
    Checkpoint,
    /// Remembers the best value, and stops the training.
    EarlyStopping,
    /// Remembers the best value, and lowers the learning rate.
    Plateau,
    /// Sets the learning rate by a function of the epoch.
    Schedule,
    /// Calls functions that it was given.
    Lambda,
    /// A class to inherit from.
    Base,
    /// Only tells somebody something.
    Silent,
}

/// A layer of Keras that does nothing of note.
pub(crate) const PLAIN: Layer = Layer {
    has_parameters: false,
    draws_parameters: false,
    draws: false,
    keeps_statistics: false,
    nondeterministic: None,
    is_keras: true,
};
const WEIGHTS: Layer = Layer { has_parameters: true, draws_parameters: true, ..PLAIN };
const CONSTANT: Layer = Layer { has_parameters: true, ..PLAIN };
const STATISTICS: Layer = Layer { has_parameters: true, keeps_statistics: true, ..PLAIN };
const DRAWS: Layer = Layer { draws: true, ..PLAIN };
/// A model whose parts are not known: most normalise their batches.
const APPLICATION: Layer = Layer { has_parameters: true, keeps_statistics: true, ..PLAIN };

/// What a call of `keras.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
    // Keras is known under many paths; those of its own source tree end alike.
    let name = name.strip_prefix("src.").unwrap_or(name);
    let (module, _) = name.split_once('.').unwrap_or(("", name));
    Some(match module {
        _ if matches!(name, "utils.set_random_seed" | "set_random_seed") => {
            Effect::Seed(&[Global::Python, Global::NumPy, Global::TensorFlow])
        }
        _ if last == "SeedGenerator" => Effect::Generator(Family::TensorFlow),
        "random" if matches!(last, "shuffle") => Effect::SeededDraw(Global::TensorFlow),
        "random" if !is_class => Effect::SeededDraw(Global::TensorFlow),
        "backend" if last.starts_with("random_") || last == "dropout" => {
            Effect::SeededDraw(Global::TensorFlow)
        }
        "backend" if last == "set_value" => Effect::Keras(Keras::SetValue),
        "layers" if is_class => layer(last),
        "" | "models" | "engine" | "training" | "sequential" | "functional"
            if last == "Sequential" =>
        {
            Effect::Keras(Keras::Sequential)
        }
        "" | "models" | "engine" | "training"
            if matches!(last, "Model" | "Layer" | "Functional") =>
        {
            Effect::Keras(Keras::Model)
        }
        "optimizers" if name.contains("schedules") => Effect::Keras(Keras::Schedule),
        "optimizers" if is_class => Effect::Keras(Keras::Optimizer { is_plain: last == "SGD" }),
        "mixed_precision" if last == "LossScaleOptimizer" => {
            Effect::Keras(Keras::Optimizer { is_plain: false })
        }
        "initializers" if last != "get" => Effect::Keras(Keras::Initializer(initializer(last))),
        "callbacks" if is_class => Effect::Keras(Keras::Callback(callback(last))),
        "applications" if is_class => Effect::Keras(Keras::Layer(APPLICATION)),
        "utils" | "preprocessing" if last.ends_with("_dataset_from_directory") => {
            Effect::Keras(Keras::Directory)
        }
        "models" | "saving" if last == "load_model" => Effect::Keras(Keras::Load),
        "models" if last == "clone_model" => Effect::Copy,
        "utils" if matches!(last, "plot_model" | "model_to_dot") => Effect::Silent,
        "losses" | "metrics" | "regularizers" | "constraints" | "activations" => Effect::Pure,
        _ => Effect::Pure,
    })
}

/// Layers, by the last part of their names.
fn layer(name: &str) -> Effect {
    let layer = match name {
        "Layer" => return Effect::Keras(Keras::Model),
        "Dense"
        | "EinsumDense"
        | "Embedding"
        | "LSTM"
        | "GRU"
        | "SimpleRNN"
        | "LSTMCell"
        | "GRUCell"
        | "SimpleRNNCell"
        | "ConvLSTM1D"
        | "ConvLSTM2D"
        | "ConvLSTM3D"
        | "MultiHeadAttention"
        | "GroupedQueryAttention"
        | "GroupQueryAttention"
        | "LocallyConnected1D"
        | "LocallyConnected2D"
        | "CuDNNLSTM"
        | "CuDNNGRU" => WEIGHTS,
        "BatchNormalization" | "SyncBatchNormalization" | "SpectralNormalization" => STATISTICS,
        "LayerNormalization" | "GroupNormalization" | "RMSNormalization" | "PReLU" => CONSTANT,
        "Dropout" | "SpatialDropout1D" | "SpatialDropout2D" | "SpatialDropout3D"
        | "GaussianDropout" | "GaussianNoise" | "AlphaDropout" | "MixUp" | "CutMix"
        | "RandAugment" | "AugMix" => DRAWS,
        _ if name.starts_with("Random") => DRAWS,
        _ if name.contains("Conv") => WEIGHTS,
        _ => PLAIN,
    };
    Effect::Keras(Keras::Layer(layer))
}

fn initializer(name: &str) -> Initial {
    match name {
        "Zeros"
        | "Ones"
        | "Constant"
        | "Identity"
        | "zeros"
        | "ones"
        | "constant"
        | "identity"
        | "IdentityInitializer"
        | "STFTInitializer"
        | "STFT" => Initial::Fixed,
        "RandomNormal" | "RandomUniform" | "TruncatedNormal" => Initial::Drawn(2),
        "VarianceScaling" => Initial::Drawn(3),
        "Orthogonal" | "OrthogonalInitializer" => Initial::Drawn(1),
        _ => Initial::Drawn(0),
    }
}

/// Whether a layer draws its initial values if it is told to use the initializer of this name.
pub(crate) fn is_fixed_initializer(name: &str) -> bool {
    initializer(name) == Initial::Fixed
}

fn callback(name: &str) -> Callback {
    match name {
        "BackupAndRestore" => Callback::Backup,
        "ModelCheckpoint" => Callback::Checkpoint,
        "EarlyStopping" => Callback::EarlyStopping,
        "ReduceLROnPlateau" => Callback::Plateau,
        "LearningRateScheduler" => Callback::Schedule,
        "LambdaCallback" => Callback::Lambda,
        "Callback" => Callback::Base,
        _ => Callback::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolutions_have_weights_and_dropout_draws() {
        let of = |name| match effect(name) {
            Some(Effect::Keras(Keras::Layer(layer))) => layer,
            other => panic!("{other:?}"),
        };
        assert!(of("layers.Conv2DTranspose").draws_parameters);
        assert!(of("layers.SpatialDropout2D").draws);
        assert!(of("layers.RandomFlip").draws);
        assert!(!of("layers.Flatten").has_parameters);
    }

    #[test]
    fn a_schedule_is_no_optimizer() {
        let schedule = Effect::Keras(Keras::Schedule);
        assert_eq!(effect("optimizers.schedules.CosineDecay"), Some(schedule));
        let adam = Effect::Keras(Keras::Optimizer { is_plain: false });
        assert_eq!(effect("optimizers.legacy.Adam"), Some(adam));
    }
}
