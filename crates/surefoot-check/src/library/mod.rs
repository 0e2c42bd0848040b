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
pub(crate) use others::Hub;
use table::{Calls, Library};
pub(crate) use table::{canonical, effect_of};
pub(crate) use tensorflow::TensorFlow;
pub(crate) use torch::{FIXED_OPERATIONS, in_place_draw, nondeterministic_method};

/// Global generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Global {
    /// PyTorch's, on all devices.
    Torch,
    /// NumPy's, behind `np.random`.
    NumPy,
    /// That of the module `random`, as `random.random`.
    Python,
    /// TensorFlow's.
    TensorFlow,
}

/// Library of a generator object.
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
    /// The generator of a Gym environment.
    Environment,
}

/// Inputs that differ from one execution to the next.
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

/// Behaviour of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Has parameters or buffers.
    pub has_parameters: bool,
    /// Draws its initial parameters.
    pub draws_parameters: bool,
    /// Draws when called in training mode.
    pub draws: bool,
    /// Updates running statistics in training mode.
    pub keeps_statistics: bool,
    /// The operation in it that is not deterministic on a GPU.
    pub nondeterministic: Option<&'static str>,
    /// A layer of Keras, where each call says if it trains.
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

    /// Behaviour of two layers together.
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

/// A library switch that affects reproducibility.
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

/// Effect of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    /// A pure computation.
    Pure,
    /// Output only: prints, logs, plots, writes files.
    Silent,
    /// Returns its first argument, possibly wrapped.
    Same,
    /// Draws from a global generator, or from the one passed to it.
    Draw(Global),
    /// Draws and writes its first argument.
    DrawInto(Global),
    /// Draws unless this argument is a number, as `random_state` in scikit-learn.
    DrawUnless(Global, &'static str),
    /// Draws from the generator passed to it, or from a global one unless `seed` is given.
    SeededDraw(Global),
    /// Seeds global generators from its first argument.
    Seed(&'static [Global]),
    /// Creates a generator, seeded by its first argument or by the system.
    Generator(Family),
    /// Returns the state of a global generator.
    GetState(Global),
    /// Restores the state of a global generator.
    SetState(Global),
    /// Reads an input that differs between executions.
    Read(Environment),
    /// A layer or a model.
    Module(Layer),
    /// A layer as a function, without parameters.
    Functional(Layer),
    /// A container of modules.
    Container,
    /// An optimizer of the parameters passed to it.
    Optimizer,
    /// A learning-rate schedule of an optimizer.
    Scheduler,
    /// A gradient scaler.
    Scaler,
    /// A moving average of a model.
    Average,
    /// A deep copy of its first argument.
    Copy,
    /// A loader of batches.
    Loader,
    /// An order of the data.
    Sampler(Sampler),
    /// A data set, with an optional transform.
    Dataset,
    /// A transform of data.
    Transform(Layer, Global),
    /// A composition of transforms.
    Transforms {
        /// True if it selects transforms at random.
        draws: bool,
    },
    /// A random split of a data set.
    Split,
    /// Saves an argument.
    Save {
        /// Position of the saved argument.
        what: usize,
    },
    /// Loads a checkpoint.
    Load,
    /// Copies a file, usually the best model.
    CopyFile,
    /// Rank of this process.
    Rank,
    /// Number of processes.
    Workers,
    /// Sets a switch.
    Set(Switch),
    /// Another object with `state_dict`.
    State,
    /// A scope without gradients.
    NoGrad,
    /// A backward pass: `accelerator.backward(loss)`.
    Backward,
    /// An operation that is not deterministic on a GPU.
    Nondeterministic(&'static str),
    /// Settings from the command line or a file.
    Settings,
    /// A call of Keras.
    Keras(Keras),
    /// A call of TensorFlow.
    TensorFlow(TensorFlow),
    /// A call of JAX.
    Jax(Jax),
    /// A call of Lightning.
    Lightning(Lightning),
    /// A call of Transformers, Accelerate or Gym.
    Hub(Hub),
    /// Makes an object of a class that settings name.
    Unknown,
}

/// Orders of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampler {
    /// Unchanged.
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

/// Stands for a name that is computed at run time: `models.__dict__[name]`.
pub(crate) const DYNAMIC_NAME: &str = "any";
