//! Facts about a lifted script beside its program: objects, draws, saves, loops.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Environment, Family, FrameId, Global, Label, LoadId, ObjectId, Operand, Place, Program, Rule,
    Site, Variable,
};

/// A loop: an index into [`Lifted::loops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoopId(pub u32);

/// Position of an event in the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Position in the order of the program text.
    pub order: u32,
    /// Innermost branch around it.
    pub branch: Option<BranchId>,
    /// True if it is in a loop.
    pub in_loop: bool,
}

/// One side of a conditional: an index into [`Lifted::branches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BranchId(pub u32);

/// One side of a conditional.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// Branch around the conditional.
    pub parent: Option<BranchId>,
    /// Number of the conditional; its other sides have the same.
    pub conditional: u32,
    /// Text of the test without `not`, and its value on this side.
    pub test: Option<(String, bool)>,
}

/// A script in the calculus.
#[derive(Debug, Default)]
pub(crate) struct Lifted {
    /// The program.
    pub program: Program,
    /// Source locations, indexed by site.
    pub sites: Vec<Place>,
    /// Objects with state.
    pub things: Vec<Thing>,
    /// Sides of conditionals.
    pub branches: Vec<Branch>,
    /// Every draw.
    pub draws: Vec<Draw>,
    /// Every seeding.
    pub seeds: Vec<Seed>,
    /// Every save.
    pub saves: Vec<Save>,
    /// Values written to other files than checkpoints.
    pub asides: Vec<Aside>,
    /// Calls of unknown libraries that receive an optimizer.
    pub handed_over: Vec<Site>,
    /// Backward passes and training steps.
    pub steps: Vec<Site>,
    /// Every loop.
    pub loops: Vec<Loop>,
    /// Loads, with the keys that are used.
    pub loads: Vec<Load>,
    /// State restored from checkpoints.
    pub restores: Vec<Restore>,
    /// Optimizers in a checkpoint that are not restored.
    pub left_out: Vec<LeftOut>,
    /// Reads from the environment.
    pub reads: Vec<Read>,
    /// Operations that are not deterministic on a GPU.
    pub nondeterministic_ops: Vec<NondeterministicOp>,
    /// Switches that make a script less reproducible.
    pub switches: Vec<SwitchSet>,
    /// Unknown calls that take part in training.
    pub unknown: Vec<Unknown>,
    /// Writes of state outside of training steps: re-creation, initialization.
    pub rewrites: Vec<Rewrite>,
    /// Named variables and their frames; attributes have no frame.
    pub named: BTreeMap<Variable, Option<FrameId>>,
    /// Unseeded generators of data-loading worker processes.
    pub unseeded_processes: Vec<ObjectId>,
    /// Derived keys.
    pub folds: Vec<Fold>,
    /// Variables that hold keys.
    pub keys: BTreeSet<Variable>,
    /// Attribute that holds a variable or an object.
    pub kept_in: BTreeMap<Kept, (ObjectId, String)>,
    /// True if it trains anything.
    pub trains: bool,
    /// Checkpoint format.
    pub style: Style,
    /// True if the script may run on a GPU.
    pub uses_cuda: bool,
    /// True if it switches deterministic algorithms on.
    pub is_deterministic: bool,
    /// True if a limit cut the execution short.
    pub is_truncated: bool,
    /// True for code without a caller, entered with guessed arguments.
    pub is_library: bool,
}

/// Contents of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kept {
    /// Data.
    Variable(Variable),
    /// An object with state.
    Object(ObjectId),
}

/// Checkpoint format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// `torch.save`.
    #[default]
    Torch,
    /// `tf.train.Checkpoint`.
    TensorFlow,
    /// Values of JAX and NumPy, pickled.
    Values,
}

/// An object with state.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// The object.
    pub object: ObjectId,
    /// Variable of its state.
    pub cell: Variable,
    /// Variable of its gradients, for models.
    pub gradients: Option<Variable>,
    /// Name in the script.
    pub name: String,
    pub role: Role,
    /// Site of its creation.
    pub site: Site,
    /// True if it is part of another one.
    pub is_part: bool,
    /// Loops around its creation, outermost first.
    pub loops: Vec<LoopId>,
}

/// Start of the script, for facts without another location.
pub(crate) const START: Site = Site(0);

/// Kind of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// Parameters and buffers.
    Model,
    /// An optimizer.
    Optimizer,
    /// A learning-rate schedule.
    Scheduler,
    /// A gradient scaler.
    Scaler,
    /// A moving average of a model.
    Average,
    /// A generator created by the script.
    Generator(Family),
    /// A global generator.
    Global(Global),
    /// A generator of a data-loading worker process.
    Worker(Global),
    /// A list, a queue.
    Container,
    /// A dictionary.
    Dictionary,
    /// A set.
    Set,
    /// State of a Keras callback.
    Callback,
    /// A Gym environment.
    Environment,
    /// Another object with state.
    State,
}

/// A draw from a generator.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// The generator.
    pub generator: ObjectId,
    /// Site that a finding points at.
    pub site: Site,
    /// Purpose.
    pub purpose: Purpose,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopId>,
    /// Site in an evaluation that leads to it, if there is one.
    pub evaluation: Option<Site>,
    /// True in a data-loading worker process.
    pub in_worker: bool,
    /// True if each worker process has an unseeded copy of the generator.
    pub is_copied: bool,
    /// True if it is in a function that applies a model without training it.
    pub is_probe: bool,
    /// Variable that receives the value.
    pub target: Variable,
    pub moment: Moment,
}

/// Purpose of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Initial parameters.
    Parameters,
    /// The order of the data.
    Order,
    /// Order of the data where `fit` shuffles by default.
    DefaultOrder,
    /// Seed of the data-loading worker processes.
    WorkerSeed,
    /// Randomness of a layer, such as dropout.
    Layer,
    /// Anything else.
    Values,
}

/// A seeding of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    /// The generator.
    pub generator: ObjectId,
    pub site: Site,
    /// Operands of the seed.
    pub operands: Vec<Operand>,
    pub moment: Moment,
}

/// A call that saves.
#[derive(Clone, Debug)]
pub(crate) struct Save {
    /// The checkpoint of the program.
    pub label: Label,
    /// The call.
    pub site: Site,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopId>,
    /// Saved value.
    pub holdings: Holdings,
    /// File name, as far as the script shows it.
    pub file: Option<String>,
    /// Frames of the open calls and modules.
    pub frames: Vec<FrameId>,
    /// True if it counts as a checkpoint only if it holds state that must be saved.
    pub is_candidate: bool,
    /// Names, visible there, of the objects that hold other objects.
    pub names: BTreeMap<ObjectId, String>,
}

/// Values written to a separate file in a loop.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    /// The call.
    pub site: Site,
    /// Saved value.
    pub holdings: Holdings,
}

/// Contents of a saved value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holdings {
    /// Objects whose state it contains.
    pub objects: Vec<ObjectId>,
    /// Variables that are in it.
    pub variables: Vec<Variable>,
    /// Entries.
    pub keys: Vec<Key>,
    /// True if it may have unknown contents.
    pub is_open: bool,
}

/// An entry of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub name: String,
    /// Site of the entry.
    pub site: Option<Site>,
    /// Value of the entry.
    pub holdings: Holdings,
}

/// A loop of the script.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The loop.
    pub site: Site,
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// Its counter in the program.
    pub counter: Variable,
    /// Name of the variable that counts iterations.
    pub name: Option<String>,
    /// Variables that hold its position.
    pub positions: Vec<Variable>,
    /// True if it iterates over data.
    pub is_over_data: bool,
    /// True if a step of an optimizer happens in it.
    pub trains: bool,
    /// Generators drawn from at the start of a pass over the data.
    pub pass_draws: Vec<ObjectId>,
    /// Iterator that continues across iterations, and its name.
    pub iterator: Option<(ObjectId, String)>,
    /// True for `while` loops.
    pub is_while: bool,
    /// Framework that runs the loop, if any.
    pub runner: Option<Runner>,
    /// Label of the checkpoint at the end of its body.
    pub end: Option<Label>,
    /// Frames of the open calls and modules.
    pub frames: Vec<FrameId>,
    /// Names, visible there, of the objects that hold other objects.
    pub names: BTreeMap<ObjectId, String>,
    /// Moment at which it starts.
    pub moment: Moment,
}

/// A framework that runs loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `fit` of Keras.
    Fit,
    /// The trainer of Lightning.
    Trainer,
    /// The trainer of Transformers.
    Hub,
    /// An unknown library, with functions of the script.
    Unknown,
}

/// Optimizer state in a weights file that loading skips.
#[derive(Clone, Debug)]
pub(crate) struct LeftOut {
    /// The optimizer.
    pub object: ObjectId,
    /// The call that reads.
    pub site: Site,
}

/// A call that loads.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The call.
    pub site: Site,
    /// Keys that are read from it.
    pub keys: Vec<String>,
    /// True if its use cannot be followed.
    pub escapes: bool,
    /// File name, as far as the script shows it.
    pub file: Option<String>,
    pub moment: Moment,
}

/// State restored from a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// The variable that is written.
    pub variable: Variable,
    /// The object, if it is one.
    pub object: Option<ObjectId>,
    /// Checkpoint that it comes from.
    pub load: LoadId,
    pub site: Site,
    pub moment: Moment,
}

/// A read from the environment.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub what: Environment,
    pub site: Site,
    /// Callee, as written in Python.
    pub call: String,
    /// First site that depends on the order of a set.
    pub taken_at: Option<Site>,
    /// Variable that is read.
    pub variable: Variable,
    /// True in a data-loading worker process.
    pub in_worker: bool,
}

/// A key derived from another key and numbers.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// The key.
    pub variable: Variable,
    pub site: Site,
}

/// An operation that is not deterministic on a GPU.
#[derive(Clone, Debug)]
pub(crate) struct NondeterministicOp {
    pub operation: &'static str,
    pub site: Site,
}

/// A switch that is set.
#[derive(Clone, Debug)]
pub(crate) struct SwitchSet {
    /// Rule that it violates.
    pub rule: Rule,
    pub site: Site,
}

/// A call that could not be resolved.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    /// Callee.
    pub callee: String,
    pub site: Site,
    /// Role in the training.
    pub part: String,
    /// True if it runs the training itself; it is then reported even if no training is seen.
    pub trains: bool,
}

/// A write of state outside of a training step.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite {
    /// The variable.
    pub variable: Variable,
    pub site: Site,
    pub moment: Moment,
}

impl Lifted {
    /// Returns true if no execution reaches both moments.
    pub(crate) fn exclude_each_other(&self, one: Moment, other: Moment) -> bool {
        let around = |moment: Moment| {
            let parent = |id: &BranchId| self.branches[id.0 as usize].parent;
            std::iter::successors(moment.branch, parent)
        };
        let are_sides = |a: BranchId, b: BranchId| {
            let (one, other) = (&self.branches[a.0 as usize], &self.branches[b.0 as usize]);
            let is_contrary = match (&one.test, &other.test) {
                (Some((one, holds)), Some((other, also))) => one == other && holds != also,
                _ => false,
            };
            (a != b && one.conditional == other.conditional) || is_contrary
        };
        around(one).any(|a| around(other).any(|b| are_sides(a, b)))
    }

    /// Returns true if anything is trained.
    pub(crate) fn is_relevant(&self) -> bool {
        self.trains || self.unknown.iter().any(|it| it.trains)
    }

    /// Source location of a site.
    pub(crate) fn place(&self, site: Site) -> Place {
        self.sites[site.0 as usize].clone()
    }

    /// Finds the object whose state or gradients a variable holds.
    pub(crate) fn thing(&self, variable: Variable) -> Option<&Thing> {
        self.things.iter().find(|thing| thing.cell == variable || thing.gradients == Some(variable))
    }
}
