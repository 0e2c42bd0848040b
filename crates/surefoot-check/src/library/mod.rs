//! What is known of other people's code.
//!
//! A library is a file here with one function, `effect`, from a qualified name without its first part
//! to what a call of it does. Names that a table does not list but whose library is known are pure:
//! computations of their arguments. Names of a library that is not known at all are *unknown*, and a
//! call of one that takes part in training is told.
//!
//! To add a library:
//! 1. write `library/NAME.rs` with `pub(super) fn effect(name: &str) -> Option<Effect>`,
//! 2. add its root to [`effect_of`], and to [`canonical`] if it is known under several names,
//! 3. if an [`Effect`] is missing, add it there and give it its meaning in `lift/library_call.rs`;
//!    methods of library objects get theirs in `lift/object_call.rs` and the files of methods beside it.
//!
//! Frameworks that run the training themselves have their own kinds of calls, in [`Effect::Keras`] and
//! its neighbours, and a file in `lift/` that executes them.

mod jax;
mod keras;
mod lightning;
mod numpy;
mod others;
mod standard;
mod tensorflow;
mod torch;
mod torchvision;

pub(crate) use jax::{Apply, Jax};
pub(crate) use keras::{Callback, Initial, Keras, PLAIN as KERAS_LAYER, is_fixed_initializer};
pub(crate) use lightning::Lightning;
pub(crate) use tensorflow::TensorFlow;
pub(crate) use torch::{MENDED, in_place_draw, nondeterministic_method};

/// The generators that are there without being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Global {
    /// PyTorch's, on all devices.
    Torch,
    /// NumPy's, behind `np.random`.
    NumPy,
    /// That of the module `random`.
    Python,
    /// TensorFlow's.
    TensorFlow,
}

/// Whose generator an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    /// `torch.Generator`.
    Torch,
    /// `numpy.random.Generator` and `RandomState`.
    NumPy,
    /// `random.Random`.
    Python,
    /// `tf.random.Generator`, `keras.random.SeedGenerator`.
    TensorFlow,
    /// The order of a pipeline of `tf.data`.
    Pipeline,
}

/// Things that differ from one execution to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Environment {
    /// Entropy from the system.
    Entropy,
    /// Clocks.
    Clock,
    /// Process ids, random identifiers.
    Identity,
    /// The order in which a file system lists files.
    FileOrder,
    /// The order of a set.
    SetOrder,
    /// `hash` of a text.
    Hash,
    /// The order in which results arrive.
    Arrival,
}

/// What a layer does when it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    /// It has parameters or buffers.
    pub has_parameters: bool,
    /// Its initial parameters are drawn.
    pub draws_parameters: bool,
    /// It draws when it is called in training.
    pub draws: bool,
    /// It keeps statistics of what passes through it in training.
    pub keeps_statistics: bool,
    /// The operation it uses that may give other bits for the same input.
    pub nondeterministic: Option<&'static str>,
    /// It is one of Keras, which tells it at each call whether it trains.
    pub is_keras: bool,
}

impl Layer {
    /// What two of them do together.
    pub(crate) fn and(self, other: Layer) -> Layer {
        Layer {
            has_parameters: self.has_parameters || other.has_parameters,
            draws_parameters: self.draws_parameters || other.draws_parameters,
            draws: self.draws || other.draws,
            keeps_statistics: self.keeps_statistics || other.keeps_statistics,
            nondeterministic: self.nondeterministic.or(other.nondeterministic),
            is_keras: self.is_keras || other.is_keras,
        }
    }
}

/// A switch that changes what is repeatable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Switch {
    /// `torch.use_deterministic_algorithms(True, warn_only=..)`.
    Deterministic,
    /// `torch.set_float32_matmul_precision("high")`.
    MatmulPrecision,
    /// `torch.compile(mode="max-autotune")`.
    Compile,
    /// `tf.config.experimental.enable_tensor_float_32_execution(True)`.
    TensorFloat,
    /// `jax.config.update("jax_default_matmul_precision", ..)`.
    Jax,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Computes something from its arguments.
    Pure,
    /// Nothing that training depends on: prints, logs, plots, writes files.
    Silent,
    /// Gives its first argument back, perhaps wrapped.
    Same,
    /// Draws from a global generator, or from the one passed to it.
    Draw(Global),
    /// Draws and writes its first argument.
    DrawInto(Global),
    /// Draws unless this argument is given as a number, as `random_state` in scikit-learn.
    DrawUnless(Global, &'static str),
    /// Draws from the generator passed to it, or from a global one unless `seed` is given.
    SeededDraw(Global),
    /// Seeds global generators from its first argument.
    Seed(&'static [Global]),
    /// A generator of its own, seeded by its first argument, or by the system.
    Generator(Family),
    /// The state of a global generator.
    GetState(Global),
    /// Puts the state of a global generator back.
    SetState(Global),
    /// Reads what another execution would read differently.
    Read(Environment),
    /// A layer or a model.
    Module(Layer),
    /// A function of a model: what a layer does, without parameters.
    Functional(Layer),
    /// Something with trainable parameters made from other modules.
    Container,
    /// An optimizer of the parameters it is given.
    Optimizer,
    /// A learning-rate schedule of an optimizer.
    Scheduler,
    /// A gradient scaler.
    Scaler,
    /// A moving average of a model.
    Average,
    /// A copy of its first argument that lives its own life.
    Copy,
    /// Gives batches of a data set.
    Loader,
    /// An order of the data.
    Sampler(Sampler),
    /// A data set, with a transform perhaps.
    Dataset,
    /// A transform of data.
    Transform(Layer, Global),
    /// Transforms one after the other, or one of them.
    Transforms {
        /// Whether it draws which, or whether at all.
        draws: bool,
    },
    /// Splits or subsets a data set by chance.
    Split,
    /// Saves its first argument.
    Save {
        /// The place of what is saved among the arguments.
        what: usize,
    },
    /// Loads what was saved.
    Load,
    /// Copies a file: the best model, usually.
    CopyFile,
    /// The number of this process.
    Rank,
    /// How many processes there are.
    Workers,
    /// Sets a switch.
    Set(Switch),
    /// Another state that has `state_dict`.
    State,
    /// A scope in which nothing is trained.
    NoGrad,
    /// Gradients of the loss, or whatever else is trained, written: `accelerator.backward(loss)`.
    Backward,
    /// An operation that may give other bits for the same input.
    Nondeterministic(&'static str),
    /// Parsed arguments of the command line: settings.
    Settings,
    /// Something of Keras.
    Keras(Keras),
    /// Something of TensorFlow.
    TensorFlow(TensorFlow),
    /// Something of JAX.
    Jax(Jax),
    /// Something of Lightning.
    Lightning(Lightning),
}

/// Orders of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// As they are.
    Sequential,
    /// Drawn from a generator.
    Random,
    /// A function of a seed and the epoch.
    Distributed,
}

/// The name under which a library is known here.
pub(crate) fn canonical(name: &str) -> std::borrow::Cow<'_, str> {
    const ALIASES: [(&str, &str); 7] = [
        ("tensorflow.keras", "keras"),
        ("tensorflow.python.keras", "keras"),
        ("tf_keras", "keras"),
        ("lightning.pytorch", "pytorch_lightning"),
        ("lightning", "pytorch_lightning"),
        ("pytorch_lightning", "pytorch_lightning"),
        ("tensorflow.compat.v1", "tensorflow"),
    ];
    for (from, to) in ALIASES {
        if let Some(rest) = name.strip_prefix(from)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return if from == to { name.into() } else { format!("{to}{rest}").into() };
        }
    }
    name.into()
}

/// The last part of a qualified name where the script makes it while running: `models.__dict__[name]`.
pub(crate) const SOMETHING: &str = "any";

/// What a call of a qualified name does; nothing if the library is not known.
pub(crate) fn effect_of(name: &str) -> Option<Effect> {
    let (root, rest) = name.split_once('.').unwrap_or((name, ""));
    match root {
        "torch" => torch::effect(rest),
        "torchvision" => torchvision::effect(rest),
        "numpy" => numpy::effect(rest),
        "keras" => keras::effect(rest),
        "tensorflow" => tensorflow::effect(rest),
        "tensorflow_datasets" => tensorflow::datasets(rest),
        "pytorch_lightning" => lightning::effect(rest),
        _ => standard::effect(root, rest)
            .or_else(|| jax::effect(root, rest))
            .or_else(|| others::effect(root, rest)),
    }
}
