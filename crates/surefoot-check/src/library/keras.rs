//! Keras, under any of its names: `keras`, `tf.keras`, `tf_keras`.
//!
//! Unseeded draws use one global state, which `keras.utils.set_random_seed` and
//! `tf.random.set_seed` set.

use super::{Calls, Effect, Family, Global, Layer, Library, effect_of};

/// Calls implemented in `lift/keras.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keras {
    /// A layer.
    Layer(Layer),
    /// A base class of models and layers, or a functional model.
    Model,
    /// A sequential model.
    Sequential,
    /// An optimizer; its variables are assigned by `compile`.
    Optimizer {
        /// True if it has no state without momentum.
        is_plain: bool,
    },
    /// A learning-rate schedule.
    Schedule,
    /// An initializer.
    Initializer(Initial),
    /// A callback of `fit`.
    Callback(Callback),
    /// Batches from the files of a directory.
    Directory,
    /// Loads a whole model from a file.
    Load,
    /// Writes a variable.
    SetValue,
}

/// Source of initial values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Constant.
    Fixed,
    /// Drawn; the seed is the argument at this position.
    Drawn(usize),
}

/// Callbacks that affect a run or its resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callback {
    /// Saves and restores the model, the optimizer and the epoch.
    Backup,
    /// Writes the model to a file.
    Checkpoint,
    /// Stops the training; its state is the best value so far.
    EarlyStopping,
    /// Lowers the learning rate; its state is the best value so far.
    Plateau,
    /// Sets the learning rate by a function of the epoch.
    Schedule,
    /// Calls functions of the script.
    Lambda,
    /// The base class.
    Base,
    /// Logging only.
    Silent,
}

/// A layer without parameters.
pub(crate) const PLAIN: Layer = Layer { is_keras: true, ..Layer::PLAIN };
const WEIGHTS: Layer = Layer { has_parameters: true, draws_parameters: true, ..PLAIN };
const CONSTANT: Layer = Layer { has_parameters: true, ..PLAIN };
/// Also whole applications: most have batch normalization.
const STATISTICS: Layer = Layer { has_parameters: true, keeps_statistics: true, ..PLAIN };
const DRAWS: Layer = Layer { draws: true, ..PLAIN };

const CALLS: Calls = &[
    (
        "utils.set_random_seed set_random_seed",
        Effect::Seed(&[Global::Python, Global::NumPy, Global::TensorFlow]),
    ),
    ("*.SeedGenerator", Effect::Generator(Family::TensorFlow)),
    ("random.@", Effect::Pure),
    ("random.* backend.random_* backend.dropout", Effect::SeededDraw(Global::TensorFlow)),
    ("backend.set_value", Effect::Keras(Keras::SetValue)),
    (
        "Sequential models.*Sequential engine.*Sequential training.*Sequential \
         sequential.*Sequential functional.*Sequential",
        Effect::Keras(Keras::Sequential),
    ),
    ("optimizers.*schedules*", Effect::Keras(Keras::Schedule)),
    ("mixed_precision.*LossScaleOptimizer", Effect::Keras(Keras::Optimizer { is_plain: false })),
    ("initializers.get", Effect::Pure),
    ("applications.@", Effect::Keras(Keras::Layer(STATISTICS))),
    (
        "utils.*_dataset_from_directory preprocessing.*_dataset_from_directory",
        Effect::Keras(Keras::Directory),
    ),
    ("models.load_model saving.*load_model", Effect::Keras(Keras::Load)),
    ("models.clone_model", Effect::Copy),
    ("utils.plot_model utils.model_to_dot", Effect::Silent),
    ("Model Layer Functional", Effect::Keras(Keras::Model)),
];

const MODELS: Calls = &[("Model Layer Functional", Effect::Keras(Keras::Model))];

const OPTIMIZERS: Calls = &[
    ("SGD", Effect::Keras(Keras::Optimizer { is_plain: true })),
    ("@", Effect::Keras(Keras::Optimizer { is_plain: false })),
];

const LAYERS: Calls = &[
    ("Layer", Effect::Keras(Keras::Model)),
    (
        "Dense EinsumDense Embedding LSTM GRU SimpleRNN LSTMCell GRUCell SimpleRNNCell \
         MultiHeadAttention GroupedQueryAttention GroupQueryAttention LocallyConnected1D \
         LocallyConnected2D CuDNNLSTM CuDNNGRU",
        layer(WEIGHTS),
    ),
    ("BatchNormalization SyncBatchNormalization SpectralNormalization", layer(STATISTICS)),
    ("LayerNormalization GroupNormalization RMSNormalization PReLU", layer(CONSTANT)),
    (
        "Dropout SpatialDropout1D SpatialDropout2D SpatialDropout3D GaussianDropout GaussianNoise \
         AlphaDropout MixUp CutMix RandAugment AugMix Random*",
        layer(DRAWS),
    ),
    ("*Conv*", layer(WEIGHTS)),
    ("*", layer(PLAIN)),
];

const INITIALIZERS: Calls = &[
    (
        "Zeros Ones Constant Identity zeros ones constant identity IdentityInitializer \
         STFTInitializer STFT",
        initializer(Initial::Fixed),
    ),
    ("RandomNormal RandomUniform TruncatedNormal", initializer(Initial::Drawn(2))),
    ("VarianceScaling", initializer(Initial::Drawn(3))),
    ("Orthogonal OrthogonalInitializer", initializer(Initial::Drawn(1))),
    ("*", initializer(Initial::Drawn(0))),
];

const CALLBACKS: Calls = &[
    ("BackupAndRestore", callback(Callback::Backup)),
    ("ModelCheckpoint", callback(Callback::Checkpoint)),
    ("EarlyStopping", callback(Callback::EarlyStopping)),
    ("ReduceLROnPlateau", callback(Callback::Plateau)),
    ("LearningRateScheduler", callback(Callback::Schedule)),
    ("LambdaCallback", callback(Callback::Lambda)),
    ("Callback", callback(Callback::Base)),
    ("*", callback(Callback::Silent)),
];

const fn layer(layer: Layer) -> Effect {
    Effect::Keras(Keras::Layer(layer))
}

const fn initializer(initial: Initial) -> Effect {
    Effect::Keras(Keras::Initializer(initial))
}

const fn callback(callback: Callback) -> Effect {
    Effect::Keras(Keras::Callback(callback))
}

pub(super) const LIBRARIES: &[Library] = &[Library {
    aliases: &[
        ("tensorflow.keras.src", "keras"),
        ("tensorflow.keras", "keras"),
        ("tensorflow.python.keras", "keras"),
        ("tf_keras.src", "keras"),
        ("tf_keras", "keras"),
        ("keras.src", "keras"),
    ],
    sections: &[
        ("layers.@", LAYERS),
        ("models.@", MODELS),
        ("engine.@", MODELS),
        ("training.@", MODELS),
        ("optimizers.@", OPTIMIZERS),
        ("initializers.*", INITIALIZERS),
        ("callbacks.@", CALLBACKS),
    ],
    ..Library::new("keras", CALLS)
}];

/// Returns true if the initializer of this name draws nothing.
pub(crate) fn is_fixed_initializer(name: &str) -> bool {
    effect_of(&format!("keras.initializers.{name}")) == Some(initializer(Initial::Fixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolutions_have_weights_and_dropout_draws() {
        let of = |name| match effect_of(&format!("keras.{name}")) {
            Some(Effect::Keras(Keras::Layer(layer))) => layer,
            other => panic!("{other:?}"),
        };
        assert!(of("layers.Conv2DTranspose").draws_parameters);
        assert!(of("layers.SpatialDropout2D").draws);
        assert!(of("layers.RandomFlip").draws);
        assert!(!of("layers.Flatten").has_parameters);
    }

    #[test]
    fn schedules_are_not_optimizers() {
        let schedule = Effect::Keras(Keras::Schedule);
        assert_eq!(effect_of("keras.optimizers.schedules.CosineDecay"), Some(schedule));
        let adam = Effect::Keras(Keras::Optimizer { is_plain: false });
        assert_eq!(effect_of("keras.optimizers.legacy.Adam"), Some(adam));
    }
}
