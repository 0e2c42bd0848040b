//! Calls of libraries: what each [`Effect`] does to the program.

use std::rc::Rc;

use ruff_text_size::TextRange;

use super::Lift;
use super::facts::{Purpose, Seed, SwitchSet};
use super::object::{Container, Kind, Loader, Source};
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::Rule;
use crate::calculus::{Operand, Site, Statement, Variable};
use crate::library::{self, Effect, Environment, Family, Global, Layer, Switch};

impl<'a> Lift<'a> {
    /// Calls something of a library.
    pub(super) fn call_library(
        &mut self,
        name: &Rc<str>,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        if let Some(builtin) = name.strip_prefix("builtins.") {
            return self.call_builtin(builtin, arguments, range);
        }
        if let Some(value) = self.call_special(name, &arguments, range) {
            return value;
        }
        let Some(effect) = library::effect_of(name) else {
            return self.call_unknown(name, &arguments, range);
        };
        let site = self.site(range);
        match effect {
            Effect::Pure => self.pure(&arguments),
            Effect::Silent | Effect::NoGrad => Value::constant(),
            Effect::Same => arguments
                .positional
                .into_iter()
                .next()
                .unwrap_or_else(Value::constant),
            Effect::Settings => Value::of(Shape::Settings),
            Effect::Draw(global) | Effect::DrawInto(global) => {
                let generator = self
                    .generator_of(&arguments)
                    .unwrap_or_else(|| self.global(global));
                let whole = self.combine(arguments.all());
                let mut drawn = self.draw(generator, purpose_of(name), whole.operands, site);
                drawn.models = whole.models;
                drawn
            }
            Effect::DrawUnless(global, parameter) => {
                let whole = self.combine(arguments.all());
                match arguments.name(parameter) {
                    Some(given) if !matches!(given.shape, Shape::None) => whole,
                    _ if matches!(
                        arguments.name("shuffle").map(|it| &it.shape),
                        Some(Shape::Bool(false))
                    ) =>
                    {
                        whole
                    }
                    _ => {
                        let generator = self.global(global);
                        self.draw(generator, Purpose::Values, whole.operands, site)
                    }
                }
            }
            Effect::SeededDraw(global) => self.seeded_draw(global, name, &arguments, site),
            Effect::Keras(call) => self.call_keras(call, name, arguments, site),
            Effect::TensorFlow(call) => self.call_tensorflow(call, name, &arguments, range, site),
            Effect::Jax(call) => self.call_jax(call, arguments, range, site),
            Effect::Lightning(call) => self.call_lightning(call, &arguments, site),
            Effect::Seed(globals) => {
                for global in globals {
                    let generator = self.global(*global);
                    self.seed(generator, &arguments, site);
                }
                Value::of(Shape::None)
            }
            Effect::Generator(family) => {
                Value::object(self.make_generator(family, &arguments, site))
            }
            Effect::GetState(global) => {
                let generator = self.global(global);
                self.state_of(generator, site)
            }
            Effect::SetState(global) => {
                let generator = self.global(global);
                if let Some(value) = arguments.positional.first() {
                    self.put_back(generator, value, site);
                }
                Value::of(Shape::None)
            }
            Effect::Read(what) => {
                let content = self.combine(arguments.all());
                match what {
                    Environment::FileOrder | Environment::Arrival => {
                        self.unordered(what, name, content, range)
                    }
                    _ => Value::plain(vec![Operand::Variable(
                        self.read_environment(what, name, site),
                    )]),
                }
            }
            Effect::Module(layer) => self.new_layer(layer, &arguments, site),
            Effect::Functional(layer) => {
                let whole = self.combine(arguments.all());
                let trains = !matches!(
                    arguments.name("training").map(|it| &it.shape),
                    Some(Shape::Bool(false))
                ) && self.mode_of_call();
                self.apply_layer(layer, Global::Torch, trains, whole, site)
            }
            Effect::Container => {
                let id = self.make_module(Layer::default(), site);
                for value in arguments.all().cloned().collect::<Vec<_>>() {
                    self.absorb_all(id, &value, site);
                }
                Value::object(id)
            }
            Effect::Optimizer => {
                let id = self.make_optimizer(&arguments, site);
                // Without momentum there is nothing that it remembers.
                if &**name == "torch.optim.SGD" && !arguments.may_be_true(2, "momentum") {
                    self.frameworks.forgetful.insert(id);
                }
                Value::object(id)
            }
            Effect::Scheduler => Value::object(self.make_scheduler(&arguments, site)),
            Effect::Scaler => {
                let id = self.make(Kind::Scaler, "scaler", site);
                let cell = self.object(id).cell;
                self.compute(cell, "new", Vec::new(), site);
                Value::object(id)
            }
            Effect::Average | Effect::Copy => self.copy(
                arguments.positional.first(),
                effect == Effect::Average,
                site,
            ),
            Effect::Loader => self.new_loader(&arguments, site),
            Effect::Sampler(order) => {
                let from = arguments
                    .positional
                    .first()
                    .cloned()
                    .unwrap_or_else(Value::constant);
                let generator = self.generator_of(&arguments);
                let id = self.make(
                    Kind::Sampler {
                        order,
                        generator,
                        from,
                    },
                    "sampler",
                    site,
                );
                Value::object(id)
            }
            Effect::Dataset => self.new_dataset(&arguments, site),
            Effect::Transform(layer, global) => {
                let parts = arguments
                    .all()
                    .filter(|it| !it.is_data())
                    .cloned()
                    .collect();
                Value::object(self.make(
                    Kind::Transform {
                        layer,
                        global,
                        parts,
                    },
                    "transform",
                    site,
                ))
            }
            Effect::Transforms { draws } => {
                let parts = arguments
                    .positional
                    .first()
                    .map_or_else(Vec::new, |it| self.parts_of(it));
                let layer = Layer {
                    draws,
                    ..Layer::default()
                };
                Value::object(self.make(
                    Kind::Transform {
                        layer,
                        global: Global::Torch,
                        parts,
                    },
                    "transforms",
                    site,
                ))
            }
            Effect::Split => {
                let generator = self
                    .generator_of(&arguments)
                    .unwrap_or_else(|| self.global(Global::Torch));
                let whole = self.combine(arguments.all());
                let drawn = self.draw(generator, Purpose::Order, whole.operands, site);
                let part = |lift: &mut Lift<'a>| {
                    let parts: Vec<ObjectId> = arguments
                        .positional
                        .iter()
                        .take(1)
                        .filter_map(Value::as_object)
                        .collect();
                    let id = lift.make(
                        Kind::Dataset {
                            from: drawn.clone(),
                            transforms: Vec::new(),
                            parts,
                        },
                        "part",
                        site,
                    );
                    let cell = lift.object(id).cell;
                    lift.compute(cell, "part", drawn.operands.clone(), site);
                    Value::object(id)
                };
                let count = match arguments.get(1, "lengths").map(|it| &it.shape) {
                    Some(Shape::Object(id)) => match &self.object(*id).kind {
                        Kind::Container(container) if container.is_closed => {
                            container.elements.len()
                        }
                        _ => 2,
                    },
                    _ => 2,
                };
                let parts: Vec<Value<'a>> = (0..count.clamp(1, 8)).map(|_| part(self)).collect();
                Value::of(Shape::Tuple(parts.into()))
            }
            Effect::Save { what } => {
                self.save(
                    arguments
                        .positional
                        .get(what)
                        .or_else(|| arguments.name("obj")),
                    &arguments,
                    range,
                );
                Value::of(Shape::None)
            }
            Effect::Load => self.load(&arguments, range),
            Effect::CopyFile => {
                self.put_out_models(site);
                Value::constant()
            }
            Effect::Rank => Value::plain(vec![Operand::Rank]),
            Effect::Workers => Value::plain(vec![Operand::Workers]),
            Effect::Set(switch) => self.set_switch(switch, &arguments, site),
            Effect::State => {
                let whole = self.combine(arguments.all());
                let id = self.make(Kind::State, "state", site);
                let cell = self.object(id).cell;
                self.compute(cell, "new", whole.operands, site);
                Value::object(id)
            }
            Effect::Backward => {
                let whole = self.combine(arguments.all());
                self.backward(&whole, site);
                Value::constant()
            }
            Effect::Nondeterministic(operation) => {
                let mut whole = self.combine(arguments.all());
                if self.mode_of_call() {
                    whole.operands = self.unsteady(operation, whole.operands, site);
                }
                whole
            }
        }
    }

    /// Library functions whose meaning depends on their arguments in a way of its own.
    fn call_special(
        &mut self,
        name: &str,
        arguments: &Arguments<'a>,
        range: TextRange,
    ) -> Option<Value<'a>> {
        let first = || arguments.positional.first().cloned();
        Some(match name {
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => {
                let data = self.combine(arguments.positional.iter().take(1));
                Value {
                    shape: Shape::Parameters(Rc::new([])),
                    ..data
                }
            }
            "functools.partial" => {
                let callee = first()?;
                let rest = Arguments {
                    positional: arguments.positional[1..].to_vec(),
                    named: arguments.named.clone(),
                };
                Value::of(Shape::Partial(Rc::new((callee, rest))))
            }
            "itertools.cycle" | "itertools.islice" | "itertools.tee" | "contextlib.closing" => {
                first()?
            }
            "itertools.chain" | "itertools.chain.from_iterable" => {
                let parameters: Vec<ObjectId> = self.models_in(arguments.all());
                if parameters.is_empty() {
                    return None;
                }
                Value::of(Shape::Parameters(parameters.into()))
            }
            "itertools.count" => Value::of(Shape::Range),
            "collections.deque"
            | "collections.defaultdict"
            | "collections.OrderedDict"
            | "collections.Counter"
            | "queue.Queue"
            | "queue.deque" => {
                let entries = first()
                    .and_then(|it| it.as_object())
                    .map(|id| self.object(id).kind.clone());
                let site = self.site(range);
                let container = match entries {
                    Some(Kind::Container(container)) => container,
                    _ => Container::default(),
                };
                let whole = self.combine(arguments.all());
                let id = self.make(Kind::Container(container), "container", site);
                let cell = self.object(id).cell;
                self.compute(cell, "new", whole.operands, site);
                Value::object(id)
            }
            "torch.nn.functional.interpolate"
            | "torch.nn.functional.upsample"
            | "torch.nn.Upsample" => {
                let position = if name.ends_with("Upsample") { 2 } else { 3 };
                let mode = arguments
                    .get(position, "mode")
                    .and_then(Value::as_text)
                    .copied()?;
                if !matches!(mode, "linear" | "bilinear" | "bicubic" | "trilinear") {
                    return None;
                }
                let operation = "the gradient of a linear interpolation";
                let site = self.site(range);
                if name.ends_with("Upsample") {
                    let layer = Layer {
                        nondeterministic: Some(operation),
                        ..Layer::default()
                    };
                    return Some(Value::object(self.make_module(layer, site)));
                }
                let mut whole = self.combine(arguments.all());
                if self.mode_of_call() {
                    whole.operands = self.unsteady(operation, whole.operands, site);
                }
                whole
            }
            // They keep the order unless they are told to shuffle.
            "sklearn.model_selection.KFold"
            | "sklearn.model_selection.StratifiedKFold"
            | "sklearn.model_selection.StratifiedGroupKFold"
                if !matches!(
                    arguments.name("shuffle").map(|it| &it.shape),
                    Some(Shape::Bool(true))
                ) =>
            {
                self.pure(arguments)
            }
            "numpy.savez" | "numpy.savez_compressed" => {
                self.save_arrays(arguments, range);
                Value::of(Shape::None)
            }
            "json.dump" if !self.loops.is_empty() => {
                let site = self.site(range);
                let holdings = self.holdings(&first()?, 4);
                self.facts
                    .asides
                    .push(super::facts::Aside { site, holdings });
                Value::of(Shape::None)
            }
            "json.load" if self.frameworks.dumps_json => self.load(arguments, range),
            "numpy.load" if self.frameworks.saves_arrays => self.load(arguments, range),
            "torch.initial_seed" => {
                let generator = self.global(Global::Torch);
                Value::plain(vec![Operand::Variable(self.object(generator).cell)])
            }
            "os.getenv" => self.environment_variable(&first()?),
            _ if name.starts_with("torch.distributions.") && is_class(name) => {
                let whole = self.combine(arguments.all());
                Value {
                    shape: Shape::Distribution,
                    ..whole
                }
            }
            _ => return None,
        })
    }

    /// A computation; what comes out of a checkpoint stays what it is.
    fn pure(&mut self, arguments: &Arguments<'a>) -> Value<'a> {
        if let Some(first) = arguments.positional.first()
            && matches!(first.shape, Shape::Loaded(..))
        {
            return first.clone();
        }
        self.combine(arguments.all())
    }

    /// Whether a function of a model is called in training.
    pub(super) fn mode_of_call(&self) -> bool {
        let receiver = self
            .calls
            .iter()
            .rev()
            .find_map(|call| call.receiver.filter(|id| self.is_module(*id)));
        receiver.is_none_or(|id| self.trains(id))
    }

    /// The generator among the arguments.
    pub(super) fn generator_of(&self, arguments: &Arguments<'a>) -> Option<ObjectId> {
        let named = ["generator", "rng", "random_state"]
            .into_iter()
            .find_map(|name| arguments.name(name));
        let all = named.into_iter().chain(arguments.positional.iter());
        all.filter_map(Value::as_object)
            .find(|id| matches!(self.object(*id).kind, Kind::Generator(_)))
    }

    /// Seeds a generator.
    pub(super) fn seed(&mut self, generator: ObjectId, arguments: &Arguments<'a>, site: Site) {
        let whole = self.combine(arguments.all());
        let generator = self.actual(generator);
        let is_nothing = arguments
            .all()
            .next()
            .is_none_or(|it| matches!(it.shape, Shape::None));
        let mut operands = whole.operands;
        if is_nothing {
            operands.push(Operand::Variable(self.read_environment(
                Environment::Entropy,
                "entropy",
                site,
            )));
        }
        let cell = self.object(generator).cell;
        let moment = self.moment();
        let in_loop = !self.loops.is_empty();
        self.facts.seeds.push(Seed {
            generator,
            site,
            operands: operands.clone(),
            in_loop,
            moment,
        });
        self.emit(Statement::Seed {
            generator: cell,
            operands,
            site,
        });
        self.note_rewrite(cell, site);
    }

    pub(super) fn make_generator(
        &mut self,
        family: Family,
        arguments: &Arguments<'a>,
        site: Site,
    ) -> ObjectId {
        let id = self.make(Kind::Generator(Source::Made(family)), "generator", site);
        let cell = self.object(id).cell;
        // PyTorch's begin with a fixed seed, the others with entropy.
        let given = arguments
            .positional
            .first()
            .or_else(|| arguments.name("seed"));
        let is_given =
            given.is_some_and(|it| !matches!(it.shape, Shape::None)) || family == Family::Torch;
        let mut operands = self.combine(arguments.all()).operands;
        if !is_given {
            operands.push(Operand::Variable(self.read_environment(
                Environment::Entropy,
                "entropy",
                site,
            )));
        }
        self.emit(Statement::Seed {
            generator: cell,
            operands,
            site,
        });
        id
    }

    /// A draw from the generator that is passed, or from the global one if no seed is.
    fn seeded_draw(
        &mut self,
        global: Global,
        name: &str,
        arguments: &Arguments<'a>,
        site: Site,
    ) -> Value<'a> {
        let whole = self.combine(arguments.all());
        let seed = arguments.name("seed");
        let given = seed
            .and_then(Value::as_object)
            .or_else(|| self.generator_of(arguments));
        let is_generator = |id: &ObjectId| matches!(self.object(*id).kind, Kind::Generator(_));
        let generator = match given.filter(is_generator) {
            Some(generator) => generator,
            None if seed.is_some_and(|it| !matches!(it.shape, Shape::None)) => return whole,
            None => self.global(global),
        };
        let mut drawn = self.draw(generator, purpose_of(name), whole.operands, site);
        drawn.models = whole.models;
        drawn
    }

    /// The state of an object, as it is now.
    pub(super) fn state_of(&mut self, id: ObjectId, site: Site) -> Value<'a> {
        let kept = self.program.variable("state");
        let cell = self.cell(id);
        self.compute(kept, "copy", vec![Operand::Variable(cell)], site);
        Value {
            shape: Shape::State(Rc::new([self.actual(id)])),
            operands: vec![Operand::Variable(kept)],
            models: self.models_of(id),
        }
    }

    fn new_layer(&mut self, layer: Layer, arguments: &Arguments<'a>, site: Site) -> Value<'a> {
        let shown = self.statement.unwrap_or(site);
        let id = self.make_module(layer, shown);
        let cell = self.object(id).cell;
        let is_pretrained = arguments.may_be_true(usize::MAX, "pretrained")
            || arguments.may_be_true(usize::MAX, "weights");
        if layer.draws_parameters && !is_pretrained {
            let generator = self.global(Global::Torch);
            let drawn = self.draw(generator, Purpose::Parameters, Vec::new(), shown);
            self.compute(cell, "initial", drawn.operands, shown);
        }
        let whole = self.combine(arguments.all().filter(|it| it.is_data()));
        if !whole.operands.is_empty() {
            self.write_cell(id, whole.operands, shown);
        }
        for value in arguments.all().cloned().collect::<Vec<_>>() {
            self.absorb_all(id, &value, shown);
        }
        Value::object(id)
    }

    /// Makes all models in a value parts of another.
    pub(super) fn absorb_all(&mut self, id: ObjectId, value: &Value<'a>, site: Site) {
        match &value.shape {
            Shape::Object(part) if self.is_module(*part) => self.absorb(id, *part, site),
            Shape::Object(part) => {
                if let Kind::Container(container) = self.object(*part).kind.clone() {
                    for value in container
                        .elements
                        .iter()
                        .chain(container.entries.iter().map(|(_, value, _)| value))
                    {
                        self.absorb_all(id, value, site);
                    }
                }
            }
            Shape::Tuple(parts) => {
                for part in parts.iter() {
                    self.absorb_all(id, part, site);
                }
            }
            _ => {}
        }
    }

    /// All models in values: whole ones, their parameters, what they computed.
    pub(super) fn models_in<'v>(&self, values: impl Iterator<Item = &'v Value<'a>>) -> Vec<ObjectId>
    where
        'a: 'v,
    {
        let mut found = Vec::new();
        for value in values {
            self.gather_models(value, &mut found, 4);
        }
        found
    }

    fn gather_models(&self, value: &Value<'a>, found: &mut Vec<ObjectId>, depth: usize) {
        let mut add = |id: ObjectId| {
            let root = self.root(id);
            if !found.contains(&root) {
                found.push(root);
            }
        };
        match &value.shape {
            Shape::Parameters(ids) => ids.iter().for_each(|id| add(*id)),
            Shape::Object(id) if self.is_module(*id) => add(*id),
            Shape::Object(id) if depth > 0 => {
                if let Kind::Container(container) = &self.object(*id).kind {
                    for value in container
                        .elements
                        .iter()
                        .chain(container.entries.iter().map(|(_, value, _)| value))
                    {
                        self.gather_models(value, found, depth - 1);
                    }
                }
            }
            Shape::Tuple(parts) if depth > 0 => parts
                .iter()
                .for_each(|part| self.gather_models(part, found, depth - 1)),
            _ => {}
        }
        for root in self.roots_of(value.models) {
            if !found.contains(&root) {
                found.push(root);
            }
        }
    }

    /// An optimizer of the parameters that are its first argument.
    pub(super) fn make_optimizer(&mut self, arguments: &Arguments<'a>, site: Site) -> ObjectId {
        let given = arguments.get(0, "params").cloned();
        let mut models = self.models_in(given.iter());
        let parts = given.as_ref().map_or_else(Vec::new, |it| self.parts_of(it));
        for value in given.iter().chain(&parts) {
            if let Shape::Stranger(id) = value.shape {
                models.push(self.recognize(id, value.operands.clone()));
            }
        }
        let mut tensors: Vec<Variable> = Vec::new();
        if models.is_empty() {
            for value in given.iter().chain(&parts) {
                if let [Operand::Variable(variable)] = value.operands[..] {
                    tensors.push(variable);
                }
            }
        }
        let id = self.make(Kind::Optimizer { models, tensors }, "optimizer", site);
        let rest = self.combine(arguments.all().filter(|it| it.is_data()));
        let cell = self.object(id).cell;
        self.compute(cell, "new", rest.operands, site);
        id
    }

    pub(super) fn make_scheduler(&mut self, arguments: &Arguments<'a>, site: Site) -> ObjectId {
        let mut optimizers = Vec::new();
        for id in arguments.all().filter_map(Value::as_object) {
            match &self.object(id).kind {
                Kind::Optimizer { .. } => optimizers.push(id),
                Kind::Scheduler { optimizers: others } => optimizers.extend(others.iter().copied()),
                _ => {}
            }
        }
        let id = self.make(Kind::Scheduler { optimizers }, "scheduler", site);
        let rest = self.combine(arguments.all().filter(|it| it.is_data()));
        let cell = self.object(id).cell;
        self.compute(cell, "new", rest.operands, site);
        id
    }

    /// A copy that lives its own life.
    fn copy(&mut self, original: Option<&Value<'a>>, averages: bool, site: Site) -> Value<'a> {
        let Some(value) = original else {
            return Value::constant();
        };
        let Some(id) = value.as_object() else {
            return match &value.shape {
                Shape::State(ids) => {
                    let ids = ids.clone();
                    ids.first()
                        .map_or_else(|| value.clone(), |id| self.state_of(*id, site))
                }
                Shape::Plain => self.data(value),
                _ => value.clone(),
            };
        };
        let id = self.actual(id);
        let original = self.object(id).clone();
        let copy = match original.kind {
            Kind::Module { layer, trains, .. } => {
                let copy = self.make_module(layer, site);
                if let Kind::Module {
                    averages: it,
                    trains: mode,
                    ..
                } = &mut self.object_mut(copy).kind
                {
                    *it = averages;
                    *mode = trains;
                }
                copy
            }
            Kind::Plain
            | Kind::Loader(_)
            | Kind::Transform { .. }
            | Kind::Dataset { .. }
            | Kind::Framework(_)
            | Kind::Sampler { .. } => return value.clone(),
            kind => self.make(kind, "copy", site),
        };
        let from = self.cell(id);
        let cell = self.object(copy).cell;
        self.compute(cell, "copy", vec![Operand::Variable(from)], site);
        let object = self.object_mut(copy);
        object.class = original.class;
        object.fields = original.fields;
        object.parts = original.parts;
        object.copy_of = Some(id);
        Value::object(copy)
    }

    fn new_loader(&mut self, arguments: &Arguments<'a>, site: Site) -> Value<'a> {
        let has_workers = arguments
            .get(5, "num_workers")
            .is_some_and(|it| !matches!(it.shape, Shape::Int(0)));
        let sampler = arguments
            .get(3, "sampler")
            .or_else(|| arguments.get(4, "batch_sampler"))
            .filter(|it| !matches!(it.shape, Shape::None));
        let loader = Loader {
            dataset: arguments
                .get(0, "dataset")
                .cloned()
                .unwrap_or_else(Value::constant),
            // A setting may be true; what the script computes is often `sampler is None`.
            shuffles: arguments.may_be_true(2, "shuffle"),
            sampler: sampler.cloned(),
            generator: self.generator_of(arguments),
            has_workers,
            init: arguments
                .get(9, "worker_init_fn")
                .filter(|it| !matches!(it.shape, Shape::None))
                .cloned(),
            collate: arguments
                .get(6, "collate_fn")
                .filter(|it| !it.is_data())
                .cloned(),
            is_opaque: false,
        };
        let id = self.make(Kind::Loader(Rc::new(loader)), "loader", site);
        let cell = self.object(id).cell;
        self.compute(cell, "new", Vec::new(), site);
        Value::object(id)
    }

    fn new_dataset(&mut self, arguments: &Arguments<'a>, site: Site) -> Value<'a> {
        let named = ["transform", "transforms", "target_transform"];
        let mut transforms: Vec<Value<'a>> = named
            .into_iter()
            .filter_map(|name| arguments.name(name))
            .cloned()
            .collect();
        let is_transform = |value: &&Value<'a>| match &value.shape {
            Shape::Object(id) => matches!(self.object(*id).kind, Kind::Transform { .. }),
            Shape::Function(_) | Shape::Partial(_) => true,
            _ => false,
        };
        transforms.extend(arguments.positional.iter().filter(is_transform).cloned());
        let mut parts = Vec::new();
        for value in &arguments.positional {
            parts.extend(
                self.parts_of(value)
                    .iter()
                    .chain([value])
                    .filter_map(Value::as_object)
                    .filter(|id| {
                        let object = self.object(*id);
                        matches!(object.kind, Kind::Dataset { .. })
                            || (matches!(object.kind, Kind::Plain) && object.class.is_some())
                    }),
            );
        }
        let from = self.combine(arguments.all());
        let id = self.make(
            Kind::Dataset {
                from: from.clone(),
                transforms,
                parts,
            },
            "dataset",
            site,
        );
        let cell = self.object(id).cell;
        self.compute(cell, "new", from.operands, site);
        Value::object(id)
    }

    /// The values in a tuple or a list.
    pub(super) fn parts_of(&self, value: &Value<'a>) -> Vec<Value<'a>> {
        match &value.shape {
            Shape::Tuple(parts) => parts.to_vec(),
            Shape::Object(id) => match &self.object(*id).kind {
                Kind::Container(container) => container
                    .elements
                    .iter()
                    .cloned()
                    .chain(container.entries.iter().map(|(_, value, _)| value.clone()))
                    .collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn set_switch(&mut self, switch: Switch, arguments: &Arguments<'a>, site: Site) -> Value<'a> {
        let rule = match switch {
            Switch::Deterministic => arguments
                .is_true(usize::MAX, "warn_only")
                .then_some(Rule::WarnOnly),
            Switch::MatmulPrecision => {
                let precision = arguments
                    .positional
                    .first()
                    .and_then(Value::as_text)
                    .copied();
                matches!(precision, Some("high" | "medium")).then_some(Rule::Precision)
            }
            Switch::TensorFloat => (!matches!(
                arguments.positional.first().map(|it| &it.shape),
                Some(Shape::Bool(false))
            ))
            .then_some(Rule::Precision),
            Switch::Jax => {
                let text = |at: usize| {
                    arguments
                        .positional
                        .get(at)
                        .and_then(Value::as_text)
                        .copied()
                };
                let is_low = matches!(
                    text(1),
                    Some("bfloat16" | "tensorfloat32" | "fastest" | "default" | "high")
                );
                (text(0) == Some("jax_default_matmul_precision") && is_low)
                    .then_some(Rule::Precision)
            }
            Switch::Compile => {
                let mode = arguments.name("mode").and_then(Value::as_text).copied();
                mode.is_some_and(|it| it.starts_with("max-autotune"))
                    .then_some(Rule::Autotune)
            }
        };
        if let Some(rule) = rule {
            self.facts.switches.push(SwitchSet { rule, site });
        }
        match (switch, arguments.positional.first()) {
            (Switch::Compile, Some(model)) => model.clone(),
            _ => Value::of(Shape::None),
        }
    }

    /// Sets an attribute of a library, which may be a switch.
    pub(super) fn set_library(&mut self, name: &str, value: &Value<'a>, site: Site) {
        let is_on = !matches!(
            value.shape,
            Shape::Bool(false) | Shape::None | Shape::Int(0)
        );
        let is_literal = matches!(value.shape, Shape::Bool(true));
        let rule = match name {
            "torch.backends.cudnn.benchmark" if is_literal => Rule::CudnnBenchmark,
            // Its neighbours of cuDNN and for half precision are on anyway.
            "torch.backends.cuda.matmul.allow_tf32" if is_literal => Rule::Precision,
            "torch._inductor.config.max_autotune"
            | "torch._inductor.config.coordinate_descent_tuning"
                if is_on =>
            {
                Rule::Autotune
            }
            _ => return,
        };
        self.facts.switches.push(SwitchSet { rule, site });
    }

    /// A call of a library that is not known.
    pub(super) fn call_unknown(
        &mut self,
        name: &str,
        arguments: &Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let whole = self.combine(arguments.all());
        let mut given: Vec<ObjectId> = Vec::new();
        for id in arguments.all().filter_map(Value::as_object) {
            let is_part = match &self.object(id).kind {
                Kind::Module { .. } => self.has_parameters(self.root(id)),
                kind => matches!(
                    kind,
                    Kind::Optimizer { .. }
                        | Kind::Generator(_)
                        | Kind::Loader(_)
                        | Kind::Scheduler { .. }
                ),
            };
            if is_part {
                given.push(self.root(id));
            }
        }
        for value in arguments.all() {
            if let Shape::Parameters(ids) = &value.shape {
                given.extend(ids.iter().map(|id| self.root(*id)));
            }
        }
        let site = self.site(range);
        if given.is_empty() && whole.models.is_empty() {
            return self.new_stranger(name, whole, site);
        }
        // What only computes with tensors is told once for the whole library.
        let package = name.split('.').next().unwrap_or(name);
        let callee = if given.is_empty() { package } else { name };
        let mut names: Vec<String> = given
            .iter()
            .filter_map(|id| self.object(*id).name.clone())
            .map(|name| format!("`{name}`"))
            .collect();
        names.sort();
        names.dedup();
        let what = match (given.is_empty(), names.is_empty()) {
            (true, _) => "it is given what a model computed".to_owned(),
            (false, true) => "it is given the model".to_owned(),
            (false, false) => format!("it is given {}", names.join(", ")),
        };
        self.tell_unknown(callee, site, &what, false);
        // It may train what it is given.
        if given
            .iter()
            .any(|id| matches!(self.object(*id).kind, Kind::Optimizer { .. }))
        {
            for root in self.all_roots() {
                let cell = self.object(root).cell;
                self.note_trained(cell);
            }
        }
        for id in given {
            self.write_cell(id, whole.operands.clone(), site);
        }
        whole
    }
}

/// What a function draws, by its name.
pub(super) fn purpose_of(name: &str) -> Purpose {
    match name.rsplit('.').next() {
        Some("shuffle" | "permutation" | "randperm" | "permuted") => Purpose::Order,
        _ => Purpose::Values,
    }
}

/// Whether a qualified name ends in that of a class.
fn is_class(name: &str) -> bool {
    name.rsplit('.')
        .next()
        .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
}
