//! What frameworks that train by themselves have in common: loops that no script writes, and checkpoints
//! that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;

use super::Lift;
use super::facts::{Holdings, Loop, LoopId, Role, Runner, Save};
use super::lightning::Trainer;
use super::loops::assigned;
use super::object::Kind;
use super::pipeline::Pipeline;
use super::scope::{Owner, Slot};
use super::value::{Arguments, Function, Models, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site, Statement, Variable};
use crate::library::Callback;

/// What is known of the frameworks in a script.
#[derive(Default)]
pub(super) struct Frameworks<'a> {
    /// The call whose arguments were evaluated last.
    pub call: Option<&'a ExprCall>,
    /// Whether Keras trains, for each call of a model that is open.
    pub training: Vec<bool>,
    /// How many evaluations that a framework makes are open.
    pub evaluating: usize,
    /// The optimizers that models are compiled with.
    pub optimizers: BTreeMap<ObjectId, ObjectId>,
    /// Optimizers without a memory.
    pub forgetful: BTreeSet<ObjectId>,
    /// Optimizers that have their variables, so that these can be read from a file.
    pub built: BTreeSet<ObjectId>,
    /// Files that models were read from.
    pub weights: Vec<WeightsRead>,
    /// What tells that a loop of a framework is to stop, innermost last.
    pub stops: Vec<Variable>,
    /// The optimizers of the Lightning module that is trained.
    pub module_optimizers: Vec<ObjectId>,
    /// Whether the script uses JAX, so that it may train what is no model.
    pub uses_jax: bool,
    /// Whether it writes values to JSON files.
    pub dumps_json: bool,
    /// Whether it saves arrays under names.
    pub saves_arrays: bool,
}

/// A model that was read from a file.
#[derive(Clone, Debug)]
pub(super) struct WeightsRead {
    /// The model.
    pub model: ObjectId,
    /// Its optimizer, which is in the file too.
    pub optimizer: ObjectId,
    /// Whether reading leaves the optimizer out.
    pub leaves_out: bool,
    /// The file.
    pub file: Option<String>,
    /// Where.
    pub site: Site,
    /// When.
    pub moment: super::facts::Moment,
    /// Whether it is in a loop.
    pub in_loop: bool,
}

/// An object of a framework that is no model, optimizer or generator.
#[derive(Clone, Debug)]
pub(super) enum Framework<'a> {
    /// A pipeline of `tf.data`.
    Pipeline(Pipeline<'a>),
    /// `tf.train.Checkpoint`: the container of what it saves.
    Checkpoint(ObjectId),
    /// `tf.train.CheckpointManager` of such a checkpoint.
    Manager(ObjectId),
    /// A callback of Keras.
    Callback(Callback, Arguments<'a>),
    /// A callback of Lightning that writes checkpoints.
    ModelCheckpoint {
        /// Whether it leaves the optimizers out.
        is_without_optimizers: bool,
    },
    /// A trainer of Lightning.
    Trainer(Trainer<'a>),
}

impl Framework<'_> {
    /// What has a state among them.
    pub(super) fn role(&self) -> Option<Role> {
        match self {
            Framework::Callback(Callback::EarlyStopping | Callback::Plateau, _) => {
                Some(Role::Callback)
            }
            _ => None,
        }
    }
}

impl<'a> Lift<'a> {
    /// A new object of a framework.
    pub(super) fn make_framework(
        &mut self,
        framework: Framework<'a>,
        name: &str,
        site: Site,
    ) -> ObjectId {
        let id = self.make(Kind::Framework(Rc::new(framework)), name, site);
        let cell = self.object(id).cell;
        self.compute(cell, "new", Vec::new(), site);
        id
    }

    /// Where the last call names an argument; the call itself if it does not.
    pub(super) fn keyword_site(&mut self, name: &str, otherwise: Site) -> Site {
        let keywords = self.frameworks.call.map(|call| &call.arguments.keywords);
        let found = keywords.and_then(|keywords| {
            let is_it = |it: &&ruff_python_ast::Keyword| {
                it.arg.as_ref().is_some_and(|arg| arg.as_str() == name)
            };
            keywords.iter().find(is_it)
        });
        found.map_or(otherwise, |keyword| self.site(keyword.range()))
    }

    /// A loop that a framework runs. What happens in one round is up to `body`, which is given the counter.
    pub(super) fn run_library_loop(
        &mut self,
        site: Site,
        runner: Runner,
        name: &str,
        is_over_data: bool,
        body: impl FnOnce(&mut Lift<'a>, Variable),
    ) {
        let stop = self.program.variable("stopped");
        self.compute(stop, "going on", Vec::new(), site);
        let counter = self.program.variable(name);
        let id = LoopId(u32::try_from(self.facts.loops.len()).unwrap_or(u32::MAX));
        let moment = self.moment();
        self.facts.loops.push(Loop {
            site,
            parent: self.loops.last().copied(),
            counter,
            name: Some(name.to_owned()),
            positions: vec![counter],
            is_over_data,
            trains: false,
            is_while: false,
            runner: Some(runner),
            end: None,
            frames: Vec::new(),
            names: BTreeMap::new(),
            pass_draws: Vec::new(),
            iterator: None,
            moment,
        });
        self.loops.push(id);
        self.stops.push(None);
        self.frameworks.stops.push(stop);
        self.blocks.push(Vec::new());
        body(self, counter);
        self.end_round(id, site);
        let inner = self.blocks.pop().unwrap_or_default();
        self.frameworks.stops.pop();
        self.stops.pop();
        self.loops.pop();
        let condition = self.program.symbol("stopped");
        let bound = Operand::Constant(self.function("count"));
        self.emit(Statement::For {
            counter,
            bound,
            body: vec![Statement::If {
                condition,
                operands: vec![Operand::Variable(stop)],
                then: Vec::new(),
                otherwise: inner,
                site,
            }],
            site,
        });
    }

    /// The outermost loop of a framework that is open ends early, depending on `operands`.
    pub(super) fn stop_library_loop(&mut self, operands: Vec<Operand>, site: Site) {
        if let Some(stop) = self.frameworks.stops.first().copied() {
            let mut all = vec![Operand::Variable(stop)];
            all.extend(operands);
            self.compute(stop, "stop", all, site);
        }
    }

    /// Forgets the literals in attributes that the methods of an object write.
    pub(super) fn forget_fields(&mut self, id: ObjectId) {
        let id = self.actual(id);
        let Some(class) = self.object(id).class.clone() else {
            return;
        };
        let methods = class.code.body.iter().filter_map(|it| it.as_function_def_stmt());
        for method in methods.filter(|it| it.name.as_str() != "__init__") {
            for field in assigned(&method.body).fields {
                self.forget_literal(Owner::Object(id), field);
            }
        }
    }

    /// Calls a method of an object's class, if the project has it.
    pub(super) fn call_hook(
        &mut self,
        id: ObjectId,
        name: &str,
        positional: Vec<Value<'a>>,
        site: Site,
    ) -> Option<Value<'a>> {
        let function = self.hook(id, name)?;
        let range = self.range_of(site);
        let arguments = Arguments { positional, named: Vec::new() };
        Some(self.enter(&function, arguments, range))
    }

    /// A method of an object's class, if the project has it.
    pub(super) fn hook(&mut self, id: ObjectId, name: &str) -> Option<Rc<Function<'a>>> {
        let class = self.object(id).class.clone()?;
        match self.class_attribute(&class, name)?.shape {
            Shape::Function(function) => Some(self.bind_method(&function, id)),
            _ => None,
        }
    }

    /// Gives an object an attribute that its framework sets.
    pub(super) fn give_field(&mut self, id: ObjectId, name: &'static str, value: &Value<'a>) {
        let slot = Slot { shape: value.shape.clone(), variable: None, models: value.models };
        self.object_mut(id).fields.insert(name, slot);
    }

    /// A checkpoint of a training loop.
    pub(super) fn note_save(&mut self, holdings: Holdings, site: Site) {
        let label = self.program.label("save");
        let loops = self.loops.clone();
        let frames = self.open_frames();
        let names = self.visible_names();
        self.facts.saves.push(Save {
            label,
            site,
            loops,
            holdings,
            frames,
            names,
            is_candidate: false,
        });
        self.emit(Statement::Checkpoint { label, site });
    }

    /// A value of its own, computed from others.
    pub(super) fn computed(
        &mut self,
        name: &str,
        operands: Vec<Operand>,
        models: Models,
        site: Site,
    ) -> Value<'a> {
        let target = self.program.variable(name);
        self.compute(target, name, operands, site);
        let mut value = Value::plain(vec![Operand::Variable(target)]);
        value.models = models;
        value
    }

    /// All objects in a value: in tuples, lists and dictionaries too.
    pub(super) fn objects_in(&self, value: &Value<'a>) -> Vec<ObjectId> {
        let mut found = Vec::new();
        let mut open = vec![(value.clone(), 0)];
        while let Some((value, depth)) = open.pop() {
            let is_container = value
                .as_object()
                .is_some_and(|id| matches!(self.object(id).kind, Kind::Container(_)));
            match value.as_object() {
                Some(id) if !is_container => found.push(self.actual(id)),
                _ if depth < 4 => {
                    let parts = self.parts_of(&value);
                    open.extend(parts.into_iter().rev().map(|part| (part, depth + 1)));
                }
                _ => {}
            }
        }
        found
    }

    /// Notes that the loops around take data from something that goes on from round to round.
    pub(super) fn note_iterator(&mut self, value: &Value<'a>) {
        let Some(id) = value.as_object().filter(|id| self.pipeline(*id).is_some()) else {
            return;
        };
        let id = self.actual(id);
        let name = self.object(id).name.clone().unwrap_or_else(|| "iterator".to_owned());
        if let Some(around) = self.loops.last() {
            let looped = &mut self.facts.loops[around.0 as usize];
            looped.iterator.get_or_insert((id, name));
        }
    }
}
