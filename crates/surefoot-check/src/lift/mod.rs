//! From Python to the calculus.
//!
//! A script is executed abstractly: each function is entered where it is called, each loop body
//! once, both sides of every branch. Names are bound to abstract values
//! ([`value`], [`scope`]), objects with state are on the heap ([`heap`]), and everything that computes,
//! draws, seeds or reads becomes a statement of the program ([`program`]). Other facts are recorded beside
//! it ([`facts`]).
//!
//! Loads of checkpoints emit nothing: the program is the uninterrupted run.

mod assignment;
mod attribute;
mod binding;
mod branch;
mod branching;
mod builtin;
mod call;
mod class;
mod compile;
mod comprehension;
mod container_method;
mod data_method;
mod data_source;
mod display;
mod emit;
mod entering;
mod evaluation;
mod execution;
mod expression;
pub(crate) mod facts;
mod finish;
mod fit;
mod framework;
mod generator;
mod generator_method;
mod heap;
mod hub;
mod importing;
mod item;
mod jax;
mod keras;
mod library_call;
mod lightning;
mod loader;
mod loops;
mod model_method;
mod module;
mod nondeterministic;
mod object;
mod object_call;
mod optimizer;
mod pipeline;
mod program;
mod saving;
mod scope;
mod scoped_block;
mod statement;
mod switch;
mod tensorflow;
mod uncalled;
mod unknown_object;
mod usage;
mod value;
mod weights;
mod writing;

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::calculus::{Label, Operand, Program, Site, Statement, Symbol, Variable};
use crate::library::{
    self, Apply, Callback, DYNAMIC_NAME, Effect, Environment, Family, Global, Hub, Initial, Jax,
    KERAS_LAYER, Keras, Layer, Lightning, Sampler, Switch, TensorFlow, canonical,
    is_fixed_initializer,
};
use crate::project::Project;
use crate::{FileId, Place, Rule};

use builtin::without_order;
use container_method::is_mutator;
use execution::{Call, Execution};
use facts::{
    Branch, BranchId, Draw, Fold, Holdings, Kept, Key, LeftOut, Lifted, Load, Loop, LoopId, Moment,
    NondeterministicOp, Purpose, Read, Restore, Rewrite, Role, Runner, START, Save, Seed, Style,
    SwitchSet, Thing, Unknown,
};
use framework::{Framework, Libraries, WeightsRead};
use generator::purpose_of;
use heap::Heap;
use hub::SEEDED;
use lightning::Trainer;
use loops::assigned;
use nondeterministic::op_of_arguments;
use object::{Container, GeneratorOrigin, Kind, Loader, Object};
use pipeline::Pipeline;
use program::ProgramBuilder;
use scope::{Owner, RESULT, Scope, Slot};
use unknown_object::UnknownObject;
use usage::Usage;
pub(crate) use value::ObjectId;
use value::{
    Args, Class, Code, FrameId, Function, LoadId, Models, SPREAD, Shape, UnknownId, Value, push_new,
};

/// Returns true if a name is one of the words in a list.
fn is_one_of(name: &str, words: &str) -> bool {
    words.split_whitespace().any(|word| word == name)
}

/// Maximum depth of entered calls.
const MAX_CALL_DEPTH: usize = 24;

/// Mode in which a file is lifted.
pub(crate) enum Entry<'s> {
    /// As a script.
    Script,
    /// As a library: functions and classes outside of this set of entered functions.
    Library(&'s BTreeSet<usize>),
}

/// Lifts a file; also returns the functions that were entered.
pub(crate) fn lift(project: &Project, file: FileId, entry: Entry<'_>) -> (Lifted, BTreeSet<usize>) {
    let mut lift = Lift::new(project, file);
    lift.program.facts.is_library = matches!(entry, Entry::Library(_));
    lift.run_module(file, matches!(entry, Entry::Script));
    if let Entry::Library(entered) = entry {
        lift.enter_uncalled(file, entered);
    }
    lift.finish()
}

/// A script being lifted.
pub(crate) struct Lift<'a> {
    project: &'a Project,
    scope: Scope<'a>,
    heap: Heap<'a>,
    program: ProgramBuilder<'a>,
    execution: Execution<'a>,
    libraries: Libraries,
}

impl<'a> Lift<'a> {
    pub(super) fn new(project: &'a Project, file: FileId) -> Lift<'a> {
        Lift {
            project,
            scope: Scope::default(),
            heap: Heap::default(),
            program: ProgramBuilder::new(Place { file, range: 0..0 }),
            execution: Execution::default(),
            libraries: Libraries::default(),
        }
    }

    /// Executes a module, once.
    pub(super) fn run_module(&mut self, file: FileId, is_main: bool) -> FrameId {
        if let Some(frame) = self.scope.module_frames.get(&file) {
            return *frame;
        }
        let frame = self.scope.new_frame(None, None, file);
        self.scope.frames[frame.0 as usize].module = Some(frame);
        self.scope.module_frames.insert(file, frame);
        let before = std::mem::replace(&mut self.scope.current, frame);
        let statement = self.execution.statement;
        let calls = std::mem::take(&mut self.execution.calls);
        let name = if is_main { "__main__" } else { "module" };
        self.declare("__name__", Value::of(Shape::Text(name)));
        let project = self.project;
        let script = project.script(file);
        let usage = Usage::of(&script.module);
        self.libraries.uses_jax |= usage.jax;
        self.libraries.dumps_json |= usage.json_dump;
        self.libraries.saves_arrays |= usage.array_save;
        self.program.facts.uses_cuda |= usage.gpu;
        self.program.facts.is_deterministic |= usage.deterministic;
        self.run_block(&script.module.body);
        self.execution.statement = statement;
        self.execution.calls = calls;
        self.scope.current = before;
        frame
    }

    /// Enters functions and classes that no script calls, with guessed arguments.
    fn enter_uncalled(&mut self, file: FileId, entered: &BTreeSet<usize>) {
        let frame = self.run_module(file, false);
        self.scope.current = frame;
        let project = self.project;
        for statement in &project.script(file).module.body {
            match statement {
                ruff_python_ast::Stmt::FunctionDef(code) => {
                    let address = std::ptr::from_ref(code) as usize;
                    let is_known =
                        entered.contains(&address) || self.execution.entered.contains(&address);
                    if is_known || !usage::trains(&code.body) {
                        continue;
                    }
                    let value = self.look_up(code.name.as_str());
                    if let Some(Shape::Function(function)) = value.map(|it| it.shape) {
                        self.enter_uncalled_function(&function);
                    }
                }
                ruff_python_ast::Stmt::ClassDef(code) => {
                    let value = self.look_up(code.name.as_str());
                    if let Some(Shape::Class(class)) = value.map(|it| it.shape)
                        && usage::trains(&code.body)
                    {
                        let site = self.site(code.name.range);
                        self.enter_uncalled_class(&class, entered, site);
                    }
                }
                _ => {}
            }
        }
    }

    /// The frames of the calls that are open, and of modules.
    pub(super) fn open_frames(&self) -> Vec<FrameId> {
        let mut frames: Vec<FrameId> = self.scope.module_frames.values().copied().collect();
        frames.extend(self.execution.calls.iter().map(|call| call.frame));
        let mut at = Some(self.scope.current);
        while let Some(frame) = at {
            frames.push(frame);
            at = self.scope.frame(frame).parent;
        }
        frames.sort_unstable();
        frames.dedup();
        frames
    }

    pub(super) fn bound_method(
        &self,
        function: &Rc<Function<'a>>,
        receiver: ObjectId,
    ) -> Rc<Function<'a>> {
        Rc::new(Function { receiver: Some(receiver), ..(**function).clone() })
    }
}
