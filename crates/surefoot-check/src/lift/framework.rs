//! Shared parts of the framework models: training loops run by a framework, and the checkpoints it
//! writes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ruff_text_size::Ranged;

use super::{
    Args, Callback, Function, Global, Holdings, Kind, Lift, ObjectId, Operand, Owner, Pipeline,
    Role, Runner, Save, Shape, Site, Statement, Trainer, Value, Variable, assigned,
};

/// State of the library models: frameworks that train, and worker processes that load data.
#[derive(Default)]
pub(super) struct Libraries {
    /// Generators in the worker processes of each loader.
    pub workers: BTreeMap<ObjectId, BTreeMap<Global, ObjectId>>,
    /// Generators of the current worker process, while one loads data.
    pub worker_globals: Option<BTreeMap<Global, ObjectId>>,
    /// True if the current worker process runs a `worker_init_fn`.
    pub worker_has_init: bool,
    /// First object that the current worker process creates itself.
    pub worker_first: u32,
    /// Number of data-set samples being computed.
    pub sampling: usize,
    /// True if Keras trains, for each call of a model that is open.
    pub training: Vec<bool>,
    /// Number of open evaluations run by a framework.
    pub evaluating: usize,
    /// The optimizers that models are compiled with.
    pub optimizers: BTreeMap<ObjectId, ObjectId>,
    /// Optimizers without state.
    pub stateless_optimizers: BTreeSet<ObjectId>,
    /// Optimizers whose variables exist, so that they can be loaded from a file.
    pub built: BTreeSet<ObjectId>,
    /// Files that models were read from.
    pub weights: Vec<WeightsRead>,
    /// Stop variables of the open framework loops, innermost last.
    pub stops: Vec<Variable>,
    /// The optimizers of the Lightning module that is trained.
    pub module_optimizers: Vec<ObjectId>,
    /// Objects that an accelerator prepared, and saves.
    pub prepared: Vec<ObjectId>,
    /// True if the script uses JAX, which trains plain values.
    pub uses_jax: bool,
    /// True if it writes values to JSON files.
    pub dumps_json: bool,
    /// True if it saves arrays under names.
    pub saves_arrays: bool,
}

/// A model that was read from a file.
#[derive(Clone, Debug)]
pub(super) struct WeightsRead {
    /// The model.
    pub model: ObjectId,
    /// Its optimizer, which is in the file too.
    pub optimizer: ObjectId,
    /// True if reading leaves the optimizer out.
    pub leaves_out: bool,
    /// The file.
    pub file: Option<String>,
    pub site: Site,
    pub moment: super::facts::Moment,
}

/// An object of a framework other than models, optimizers and generators.
#[derive(Clone, Debug)]
pub(super) enum Framework<'a> {
    /// A pipeline of `tf.data`.
    Pipeline(Pipeline<'a>),
    /// `tf.train.Checkpoint`, or a manager of one: container of the saved objects.
    Checkpoint(ObjectId),
    /// A callback of Keras.
    Callback(Callback, Args<'a>),
    /// A callback of Lightning that writes checkpoints.
    ModelCheckpoint {
        /// True if it leaves the optimizers out.
        is_without_optimizers: bool,
    },
    /// A trainer of Lightning.
    Trainer(Trainer<'a>),
    /// A trainer of Transformers.
    HubTrainer { model: Value<'a>, data: Value<'a> },
    /// `accelerate.Accelerator`.
    Accelerator,
}

impl Framework<'_> {
    /// Role, for objects with state.
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
        self.write_state(id, "new", Vec::new(), site);
        id
    }

    /// Site of a keyword argument, or of the call.
    pub(super) fn keyword_site(&mut self, name: &str, args: &Args<'a>) -> Site {
        let keyword = args.call.and_then(|call| call.arguments.find_keyword(name));
        keyword.map_or(args.site, |keyword| self.site(keyword.range()))
    }

    /// Emits a loop that a framework runs. `body` emits one iteration and receives the counter.
    pub(super) fn run_library_loop(
        &mut self,
        site: Site,
        runner: Runner,
        name: &str,
        is_over_data: bool,
        body: impl FnOnce(&mut Lift<'a>, Variable),
    ) {
        let stop = self.program.variable("stopped");
        self.program.compute(stop, "going on", [], site);
        let counter = self.program.variable(name);
        let id = self.program.open_loop(counter, Some(name.to_owned()), site);
        let looped = &mut self.program.facts.loops[id.0 as usize];
        looped.is_over_data = is_over_data;
        looped.runner = Some(runner);
        self.program.stops.push(None);
        self.libraries.stops.push(stop);
        self.program.blocks.push(Vec::new());
        body(self, counter);
        self.end_round(id, site);
        let inner = self.program.blocks.pop().unwrap_or_default();
        self.libraries.stops.pop();
        self.program.stops.pop();
        self.program.loops.pop();
        let condition = self.program.symbol("stopped");
        let bound = Operand::Constant(self.program.function("count"));
        self.program.emit(Statement::For {
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

    /// Ends the outermost open framework loop early, depending on `operands`.
    pub(super) fn stop_library_loop(&mut self, operands: Vec<Operand>, site: Site) {
        if let Some(stop) = self.libraries.stops.first().copied() {
            let mut all = vec![Operand::Variable(stop)];
            all.extend(operands);
            self.program.compute(stop, "stop", all, site);
        }
    }

    /// Forgets the literals in attributes that the methods of an object write.
    pub(super) fn forget_fields(&mut self, id: ObjectId) {
        let id = self.heap.actual(id);
        let Some(class) = self.heap.object(id).class.clone() else {
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
        Some(self.enter(&function, Args::of(positional, site)))
    }

    /// A method of an object's class, if the project has it.
    pub(super) fn hook(&self, id: ObjectId, name: &str) -> Option<Rc<Function<'a>>> {
        let class = self.heap.object(id).class.clone()?;
        match self.class_attribute(&class, name)?.shape {
            Shape::Function(function) => Some(self.bind_method(&function, id)),
            _ => None,
        }
    }

    /// A checkpoint of a training loop.
    pub(super) fn note_save(&mut self, holdings: Holdings, file: Option<String>, site: Site) {
        let label = self.program.label("save");
        let loops = self.program.loops.clone();
        let frames = self.open_frames();
        let names = self.visible_names();
        self.program.facts.saves.push(Save {
            label,
            site,
            loops,
            holdings,
            file,
            frames,
            names,
            is_candidate: false,
        });
        self.program.emit(Statement::Checkpoint { label, site });
    }

    /// Records an iterator that continues across the iterations of the enclosing loop.
    pub(super) fn note_iterator(&mut self, value: &Value<'a>) {
        let Some(id) = value.as_object().filter(|id| self.heap.pipeline(*id).is_some()) else {
            return;
        };
        let id = self.heap.actual(id);
        let name = self.heap.object(id).name.clone().unwrap_or_else(|| "iterator".to_owned());
        if let Some(around) = self.program.loops.last() {
            let looped = &mut self.program.facts.loops[around.0 as usize];
            looped.iterator.get_or_insert((id, name));
        }
    }
}
