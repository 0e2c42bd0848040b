//! What a lifted script is beside its program: who is who, and what happened when.

use std::collections::{BTreeMap, BTreeSet};

use super::value::{FrameId, ObjectId};
use crate::Place;
use crate::Rule;
use crate::calculus::{Label, Operand, Program, Site, Variable};
use crate::library::{Environment, Family, Global};

/// A loop: an index into [`Lifted::loops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoopId(pub u32);

/// The order of events, as they follow each other in the text of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(pub u32);

/// A script in the calculus.
#[derive(Debug, Default)]
pub(crate) struct Lifted {
    /// The program.
    pub program: Program,
    /// Where its statements come from.
    pub sites: Vec<Place>,
    /// What has a state.
    pub things: Vec<Thing>,
    /// Every draw.
    pub draws: Vec<Draw>,
    /// Every seeding.
    pub seeds: Vec<Seed>,
    /// Every save.
    pub saves: Vec<Save>,
    /// Values that are written beside checkpoints.
    pub asides: Vec<Aside>,
    /// Every loop.
    pub loops: Vec<Loop>,
    /// Every load, and which of its keys are used.
    pub loads: Vec<Load>,
    /// Everything that is put back from a checkpoint.
    pub restores: Vec<Restore>,
    /// Optimizers that are not put back although they are in the checkpoint.
    pub left_out: Vec<LeftOut>,
    /// What is read from the environment.
    pub reads: Vec<Read>,
    /// Operations that may give other bits for the same input.
    pub unsteady: Vec<Unsteady>,
    /// Switches that make a script less repeatable.
    pub switches: Vec<SwitchSet>,
    /// Calls that could not be resolved and take part in training.
    pub unknown: Vec<Unknown>,
    /// Writes of cells outside of training steps: made anew, initialised.
    pub rewrites: Vec<Rewrite>,
    /// Variables that people named, and the frame each lives in, if it is no attribute.
    pub named: BTreeMap<Variable, Option<FrameId>>,
    /// Generators of processes that load data, which nobody seeds.
    pub unseeded_processes: Vec<ObjectId>,
    /// Keys that are made from others.
    pub folds: Vec<Fold>,
    /// Variables that hold keys.
    pub keys: BTreeSet<Variable>,
    /// The attribute of an object that a variable or an object is kept in.
    pub kept_in: BTreeMap<Kept, (ObjectId, String)>,
    /// Whether it trains anything.
    pub trains: bool,
    /// What its checkpoints are made with.
    pub style: Style,
    /// Whether the script may run on a GPU.
    pub uses_cuda: bool,
    /// Whether it asks for deterministic algorithms.
    pub asks_for_determinism: bool,
    /// Whether this is code that others call, entered with arguments that are not known.
    pub is_library: bool,
}

/// What an attribute can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kept {
    /// Data.
    Variable(Variable),
    /// Something with a state.
    Object(ObjectId),
}

/// What checkpoints are made with.
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

/// Something with a state.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// The object.
    pub object: ObjectId,
    /// The variable of its state.
    pub cell: Variable,
    /// That of its gradients, if it is a model.
    pub gradients: Option<Variable>,
    /// What people call it.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Where it is made.
    pub site: Site,
    /// Whether it is part of another one.
    pub is_part: bool,
}

/// The beginning of a script, where what has no other place is.
pub(crate) const START: Site = Site(0);

/// What has a state.
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
    /// A generator that was made.
    Generator(Family),
    /// A generator that is always there.
    Global(Global),
    /// A generator of a process that loads data.
    Worker(Global),
    /// A list, a queue.
    Container,
    /// A dictionary.
    Dictionary,
    /// A set.
    Set,
    /// What a callback of Keras remembers.
    Callback,
    /// Another object with a state of its own.
    State,
}

/// A draw from a generator.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// The generator.
    pub generator: ObjectId,
    /// Where to look.
    pub site: Site,
    /// What for.
    pub purpose: Purpose,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopId>,
    /// Where an evaluation leads to it, if one does.
    pub evaluation: Option<Site>,
    /// Whether it happens in a process that loads data.
    pub in_worker: bool,
    /// Whether each of these processes has its own copy of the generator, and nothing seeds it there.
    pub is_copied: bool,
    /// Whether it is in a function that applies a model without training it.
    pub is_probe: bool,
    /// What is drawn.
    pub target: Variable,
    /// When.
    pub moment: Moment,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Initial parameters.
    Parameters,
    /// The order of the data.
    Order,
    /// The order of the data where nobody asked for another one: `fit` shuffles by itself.
    DefaultOrder,
    /// The seed of the processes that load data.
    WorkerSeed,
    /// Dropout and the like.
    Layer,
    /// Anything else.
    Values,
}

/// A seeding of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    /// The generator.
    pub generator: ObjectId,
    /// Where.
    pub site: Site,
    /// What the seed is computed from.
    pub operands: Vec<Operand>,
    /// Whether it is in a loop.
    pub in_loop: bool,
    /// When.
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
    /// What is saved.
    pub holdings: Holdings,
    /// The frames whose names can be seen from here or from its callers.
    pub frames: Vec<FrameId>,
    /// Whether it is a checkpoint only if it turns out to hold something that must be saved.
    pub is_candidate: bool,
    /// What the objects that others are kept in are called there.
    pub names: BTreeMap<ObjectId, String>,
}

/// Values that are written to a file of their own in a loop.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    /// The call.
    pub site: Site,
    /// What is written.
    pub holdings: Holdings,
}

/// What a value holds on to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holdings {
    /// Objects whose state is in it.
    pub objects: Vec<ObjectId>,
    /// Variables that are in it.
    pub variables: Vec<Variable>,
    /// Its keys, and what is under each.
    pub keys: Vec<Key>,
    /// Whether there may be more in it than is known.
    pub is_open: bool,
}

/// An entry of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub name: String,
    /// Where it is put in.
    pub site: Option<Site>,
    /// What is under it.
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
    /// What people call how far it has come.
    pub name: Option<String>,
    /// Variables that tell how far it has come.
    pub positions: Vec<Variable>,
    /// Whether it goes through data.
    pub is_over_data: bool,
    /// Whether a step of an optimizer happens in it.
    pub trains: bool,
    /// Generators that are drawn from when it begins to go through data.
    pub pass_draws: Vec<ObjectId>,
    /// What it takes data from that goes on from round to round, and what people call it.
    pub iterator: Option<(ObjectId, String)>,
    /// Whether the script writes `while`.
    pub is_while: bool,
    /// What runs it, if the script does not.
    pub runner: Option<Runner>,
    /// A checkpoint at the end of its body.
    pub end: Option<Label>,
    /// The frames whose names can be seen from there or from its callers.
    pub frames: Vec<FrameId>,
    /// What the objects that others are kept in are called there.
    pub names: BTreeMap<ObjectId, String>,
    /// When it begins.
    pub moment: Moment,
}

/// A framework that runs loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `fit` of Keras.
    Fit,
    /// The trainer of Lightning.
    Trainer,
}

/// The state of an optimizer that is in a file of weights, and that reading the file leaves out.
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
    /// Whether it goes where its use cannot be followed.
    pub escapes: bool,
    /// What the file is called in the script.
    pub file: Option<String>,
}

/// Something put back from a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// The variable that is written.
    pub variable: Variable,
    /// The object, if it is one.
    pub object: Option<ObjectId>,
    /// Where.
    pub site: Site,
    /// The loops around it.
    pub in_loop: bool,
    /// When.
    pub moment: Moment,
}

/// Something read from the environment.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// What.
    pub what: Environment,
    /// Where.
    pub site: Site,
    /// What is called, as people write it.
    pub call: String,
    /// Where the order of a set is first made use of.
    pub taken_at: Option<Site>,
    /// What is read.
    pub variable: Variable,
    /// Whether a process that loads data reads it.
    pub in_worker: bool,
}

/// A key made from another one and numbers.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// The key.
    pub variable: Variable,
    /// Where.
    pub site: Site,
}

/// An operation that may give other bits for the same input.
#[derive(Clone, Debug)]
pub(crate) struct Unsteady {
    /// Which.
    pub operation: &'static str,
    /// Where.
    pub site: Site,
}

/// A switch that is set.
#[derive(Clone, Debug)]
pub(crate) struct SwitchSet {
    /// The finding it makes.
    pub rule: Rule,
    /// Where.
    pub site: Site,
}

/// A call that could not be resolved.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    /// What is called.
    pub callee: String,
    /// Where.
    pub site: Site,
    /// Its part in the training.
    pub part: String,
    /// Whether it trains by itself; then it is told even where no training is seen.
    pub trains: bool,
}

/// A cell that is written anew outside of a training step.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite {
    /// The variable.
    pub variable: Variable,
    /// Where.
    pub site: Site,
    /// Whether it is in a loop.
    pub in_loop: bool,
    /// When.
    pub moment: Moment,
}

impl Lifted {
    /// Whether anything is trained, so that the rest can matter.
    pub(crate) fn matters(&self) -> bool {
        self.trains || self.unknown.iter().any(|it| it.trains)
    }

    /// Where a statement comes from.
    pub(crate) fn place(&self, site: Site) -> Place {
        self.sites[site.0 as usize].clone()
    }

    /// The thing whose state or gradients this variable is.
    pub(crate) fn thing(&self, variable: Variable) -> Option<&Thing> {
        self.things.iter().find(|thing| thing.cell == variable || thing.gradients == Some(variable))
    }
}
