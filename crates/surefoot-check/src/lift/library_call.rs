//! Calls of libraries: the meaning of each [`Effect`].

use std::rc::Rc;

use super::Lift;
use super::builtin::without_order;
use super::facts::Purpose;
use super::generator::purpose_of;
use super::heap::Heap;
use super::object::{Container, Kind};
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::calculus::Operand;
use crate::library::{self, DYNAMIC_NAME, Effect, Environment, Global, Layer};

impl<'a> Lift<'a> {
    /// Calls something of a library.
    pub(super) fn call_library(&mut self, name: &Rc<str>, arguments: Arguments<'a>) -> Value<'a> {
        let site = arguments.site;
        if let Some(builtin) = name.strip_prefix("builtins.") {
            return self.call_builtin(builtin, arguments);
        }
        if let Some(value) = self.call_special(name, &arguments) {
            return value;
        }
        if let Some(name) = name.strip_prefix("torch.")
            && let Some(value) = self.call_nondeterministic(name, &arguments)
        {
            return value;
        }
        let Some(effect) = library::effect_of(name) else {
            return self.call_unknown(name, &arguments);
        };
        match effect {
            Effect::Pure => self.heap.pure(&arguments),
            Effect::Silent | Effect::NoGrad => Value::constant(),
            Effect::Same => arguments.positional.into_iter().next().unwrap_or_default(),
            Effect::Settings => Value::of(Shape::Settings),
            Effect::Draw(global) | Effect::DrawInto(global) => {
                let generator =
                    self.heap.generator_of(&arguments).unwrap_or_else(|| self.global(global));
                let whole = self.heap.combine(arguments.all());
                let mut drawn = self.draw(generator, purpose_of(name), whole.operands, site);
                drawn.models = whole.models;
                drawn
            }
            Effect::DrawUnless(global, parameter) => {
                let whole = self.heap.combine(arguments.all());
                match arguments.name(parameter) {
                    Some(passed) if !passed.is_none() => whole,
                    _ if arguments.flag("shuffle") == Some(false) => whole,
                    _ => {
                        let generator = self.global(global);
                        self.draw(generator, Purpose::Values, whole.operands, site)
                    }
                }
            }
            Effect::SeededDraw(global) => self.seeded_draw(global, name, &arguments),
            Effect::Keras(call) => self.call_keras(call, name, arguments),
            Effect::TensorFlow(call) => self.call_tensorflow(call, name, &arguments),
            Effect::Jax(call) => self.call_jax(call, arguments),
            Effect::Lightning(call) => self.call_lightning(call, &arguments),
            Effect::Hub(call) => self.call_hub(call, &arguments),
            Effect::Unknown => self.call_unknown(name, &arguments),
            Effect::Seed(globals) => {
                for global in globals {
                    let generator = self.global(*global);
                    self.seed(generator, &arguments);
                }
                Value::none()
            }
            Effect::Generator(family) => Value::object(self.make_generator(family, &arguments)),
            Effect::GetState(global) => {
                let generator = self.global(global);
                self.state_of(generator, site)
            }
            Effect::SetState(global) => {
                let generator = self.global(global);
                if let Some(value) = arguments.first() {
                    self.restore(generator, value, site);
                }
                Value::none()
            }
            Effect::Read(what) => {
                let content = self.heap.combine(arguments.all());
                match what {
                    Environment::FileOrder | Environment::Arrival => {
                        self.unordered(what, name, content, site)
                    }
                    _ => Value::variable(self.read_environment(what, name, site)),
                }
            }
            Effect::Module(layer) => {
                if layer.has_parameters && name.rsplit('.').next() == Some(DYNAMIC_NAME) {
                    self.program.report_unknown(name, site, "it makes the model", false);
                }
                self.new_layer(layer, &arguments)
            }
            Effect::Functional(layer) => {
                let whole = self.heap.combine(arguments.all());
                let trains = arguments.flag("training") != Some(false) && self.mode_of_call();
                self.apply_layer(layer, Global::Torch, trains, whole, site)
            }
            Effect::Container => {
                let id = self.make_module(Layer::default(), site);
                for value in arguments.all() {
                    self.absorb_all(id, value, site);
                }
                Value::object(id)
            }
            Effect::Optimizer => {
                let id = self.make_optimizer(&arguments);
                // SGD without momentum has no state.
                if &**name == "torch.optim.SGD" && !arguments.may_be_true(2, "momentum") {
                    self.libraries.stateless_optimizers.insert(id);
                }
                Value::object(id)
            }
            Effect::Scheduler => Value::object(self.make_scheduler(&arguments)),
            Effect::Scaler => {
                let id = self.make(Kind::Scaler, "scaler", site);
                self.write_state(id, "new", Vec::new(), site);
                Value::object(id)
            }
            Effect::Average | Effect::Copy => {
                self.copy(arguments.first(), effect == Effect::Average, site)
            }
            Effect::Loader => self.new_loader(&arguments),
            Effect::Sampler(order) => {
                let from = arguments.first().cloned().unwrap_or_default();
                let generator = self.heap.generator_of(&arguments);
                let id = self.make(Kind::Sampler { order, generator, from }, "sampler", site);
                Value::object(id)
            }
            Effect::Dataset => self.new_dataset(&arguments),
            Effect::Transform(layer, global) => {
                let parts = arguments.all().filter(|it| !it.is_data()).cloned().collect();
                Value::object(self.make(
                    Kind::Transform { layer, global, parts },
                    "transform",
                    site,
                ))
            }
            Effect::Transforms { draws } => {
                let parts = arguments.first().map_or_else(Vec::new, |it| self.heap.parts_of(it));
                let layer = Layer { draws, ..Layer::default() };
                Value::object(self.make(
                    Kind::Transform { layer, global: Global::Torch, parts },
                    "transforms",
                    site,
                ))
            }
            Effect::Split => {
                let generator = self
                    .heap
                    .generator_of(&arguments)
                    .unwrap_or_else(|| self.global(Global::Torch));
                let whole = self.heap.combine(arguments.all());
                let drawn = self.draw(generator, Purpose::Order, whole.operands, site);
                let part = |lift: &mut Lift<'a>| {
                    let parts: Vec<ObjectId> =
                        arguments.positional.iter().take(1).filter_map(Value::as_object).collect();
                    let id = lift.make(
                        Kind::Dataset { from: drawn.clone(), transforms: Vec::new(), parts },
                        "part",
                        site,
                    );
                    let cell = lift.heap.object(id).cell;
                    lift.program.compute(cell, "part", drawn.operands.clone(), site);
                    Value::object(id)
                };
                let count = match arguments.get(1, "lengths").map(|it| &it.shape) {
                    Some(Shape::Object(id)) => match &self.heap.object(*id).kind {
                        Kind::Container(container) if container.is_closed => {
                            container.elements.len()
                        }
                        _ => 2,
                    },
                    _ => 2,
                };
                let parts: Vec<Value<'a>> = (0..count.clamp(1, 8)).map(|_| part(self)).collect();
                Value::tuple(parts)
            }
            Effect::Save { what } => {
                self.save(
                    arguments.positional.get(what).or_else(|| arguments.name("obj")),
                    &arguments,
                );
                Value::none()
            }
            Effect::Load => self.load(&arguments),
            Effect::CopyFile => {
                self.output_models(site);
                Value::constant()
            }
            Effect::Rank => Value::plain(vec![Operand::Rank]),
            Effect::Workers => Value::plain(vec![Operand::Workers]),
            Effect::Set(switch) => self.program.set_switch(switch, &arguments),
            Effect::State => {
                let whole = self.heap.combine(arguments.all());
                let id = self.make(Kind::State, "state", site);
                self.write_state(id, "new", whole.operands, site);
                Value::object(id)
            }
            Effect::Backward => {
                let whole = self.heap.combine(arguments.all());
                self.backward(&whole, site);
                Value::constant()
            }
            Effect::Nondeterministic(operation) => {
                let mut whole = self.heap.combine(arguments.all());
                if self.mode_of_call() {
                    whole.operands = self.program.nondeterministic(operation, whole.operands, site);
                }
                whole
            }
        }
    }

    /// Library functions that need more than an effect.
    pub(super) fn call_special(
        &mut self,
        name: &str,
        arguments: &Arguments<'a>,
    ) -> Option<Value<'a>> {
        let site = arguments.site;
        let first = || arguments.first().cloned();
        Some(match name {
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => {
                let data = self.heap.combine(arguments.positional.iter().take(1));
                Value { shape: Shape::Parameters(Rc::new([])), ..data }
            }
            // These call a function of the script.
            "absl.app.run" | "fire.Fire" | "typer.run" | "tyro.cli" => {
                self.call_with(first()?, vec![Value::of(Shape::Settings)], site)
            }
            "torch.multiprocessing.spawn" | "torch.multiprocessing.start_processes" => {
                let function = arguments.get(0, "fn").cloned()?;
                let passed = arguments.get(1, "args").cloned().unwrap_or_default();
                let mut positional = vec![Value::plain(vec![Operand::Rank])];
                positional.extend(self.heap.parts_of(&passed));
                self.call_with(function, positional, site)
            }
            "multiprocessing.Process" | "torch.multiprocessing.Process" => {
                let function = arguments.name("target").cloned()?;
                let passed = arguments.name("args").cloned().unwrap_or_default();
                self.call_with(function, self.heap.parts_of(&passed), site)
            }
            "functools.partial" => {
                let callee = first()?;
                let mut rest = arguments.clone();
                rest.positional.remove(0);
                Value::of(Shape::Partial(Rc::new((callee, rest))))
            }
            "typing.cast" => arguments.get(1, "val").cloned()?,
            "itertools.cycle" | "itertools.islice" | "itertools.tee" | "contextlib.closing" => {
                first()?
            }
            "itertools.chain" | "itertools.chain.from_iterable" => {
                let parameters: Vec<ObjectId> = self.heap.models_in(arguments.all());
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
                    .map(|id| self.heap.object(id).kind.clone());
                let mut container = match entries {
                    Some(Kind::Container(container)) => container,
                    _ => Container::default(),
                };
                container.has_keys = !name.ends_with("deque") && !name.ends_with("Queue");
                let whole = self.heap.combine(arguments.all());
                let id = self.make(Kind::Container(container), "container", site);
                self.write_state(id, "new", whole.operands, site);
                Value::object(id)
            }
            // The order is kept unless `shuffle=True`.
            "sklearn.model_selection.KFold"
            | "sklearn.model_selection.StratifiedKFold"
            | "sklearn.model_selection.StratifiedGroupKFold"
                if arguments.flag("shuffle") != Some(true) =>
            {
                self.heap.pure(arguments)
            }
            "numpy.sort" | "numpy.unique" | "natsort.natsorted" | "natsort.os_sorted" => {
                let values = arguments.positional.iter().cloned();
                let sorted: Vec<_> = values.map(|it| without_order(it, &self.heap)).collect();
                self.heap.combine(&sorted)
            }
            "numpy.savez" | "numpy.savez_compressed" => {
                self.save_arrays(arguments);
                Value::none()
            }
            "json.dump" if !self.program.loops.is_empty() => {
                let holdings = self.heap.holdings(&first()?, 4);
                self.program.facts.asides.push(super::facts::Aside { site, holdings });
                Value::none()
            }
            "json.load" if self.libraries.dumps_json => self.load(arguments),
            "numpy.load" if self.libraries.saves_arrays => self.load(arguments),
            "torch.initial_seed" => {
                let generator = self.global(Global::Torch);
                Value::variable(self.heap.object(generator).cell)
            }
            "os.getenv" => self.environment_variable(&first()?),
            _ if name.starts_with("torch.distributions.") && is_class(name) => {
                let whole = self.heap.combine(arguments.all());
                Value { shape: Shape::Distribution, ..whole }
            }
            _ => return None,
        })
    }

    /// Returns true if a function of a model is called in training.
    pub(super) fn mode_of_call(&self) -> bool {
        let receiver = self
            .execution
            .calls
            .iter()
            .rev()
            .find_map(|call| call.receiver.filter(|id| self.heap.is_module(*id)));
        receiver.is_none_or(|id| self.heap.trains(id))
    }
}

impl<'a> Heap<'a> {
    /// A pure computation; entries of a checkpoint are passed through.
    pub(super) fn pure(&mut self, arguments: &Arguments<'a>) -> Value<'a> {
        if let Some(first) = arguments.first()
            && matches!(first.shape, Shape::Loaded(..))
        {
            return first.clone();
        }
        self.combine(arguments.all())
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
}

/// Returns true if a qualified name ends in that of a class.
fn is_class(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
}
