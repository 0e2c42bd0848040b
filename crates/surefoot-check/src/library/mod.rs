//! Models of library calls.
//!
//! A library is one file with a constant `LIBRARIES`: tables from qualified names to the [`Effect`] of a call.
//! Names that a table does not list have the effect [`Library::otherwise`]. Calls of a library without a table
//! are *unknown*, and are reported if they take part in training.
//!
//! To add a library, write `library/NAME.rs` and add it to [`TABLES`]. If an [`Effect`] is missing, add it
//! here and implement it in `lift/library_call.rs`; methods of library objects are in `lift/object_call.rs`.
//! Frameworks that run the training loop themselves have effects of their own, such as [`Effect::Keras`],
//! and a file in `lift/` that executes them.

mod jax;
mod keras;
mod lightning;
mod numpy;
mod others;
mod standard;
mod table;
mod tensorflow;
mod torch;
mod torchvision;

pub(crate) use jax::{Apply, Jax};
pub(crate) use keras::{Callback, Initial, Keras, PLAIN as KERAS_LAYER, is_fixed_initializer};
pub(crate) use lightning::Lightning;
use table::{Calls, Library};
pub(crate) use table::{canonical, effect_of};
pub(crate) use tensorflow::TensorFlow;
pub(crate) use torch::{FIXED_OPERATIONS, in_place_draw, nondeterministic_method};

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
    /// A layer without parameters that draws nothing.
    pub(crate) const PLAIN: Layer = Layer {
        has_parameters: false,
        draws_parameters: false,
        draws: false,
        keeps_statistics: false,
        nondeterministic: None,
        is_keras: false,
    };

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

/// The tables of all libraries.
const TABLES: &[&[Library]] = &[
    jax::LIBRARIES,
    keras::LIBRARIES,
    lightning::LIBRARIES,
    numpy::LIBRARIES,
    others::LIBRARIES,
    standard::LIBRARIES,
    tensorflow::LIBRARIES,
    torch::LIBRARIES,
    torchvision::LIBRARIES,
];

/// The last part of a qualified name where the script makes it while running: `models.__dict__[name]`.
pub(crate) const SOMETHING: &str = "any";
