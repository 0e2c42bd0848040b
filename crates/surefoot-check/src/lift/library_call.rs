//! Calls of libraries: the meaning of each [`Effect`].

use std::rc::Rc;

use super::{
    Args, DYNAMIC_NAME, Effect, Environment, Global, Heap, Kind, Layer, Lift, ObjectId, Operand,
    Purpose, Shape, Value, library, purpose_of, without_order,
};

impl<'a> Lift<'a> {
    /// Calls something of a library.
    pub(super) fn call_library(&mut self, name: &Rc<str>, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        if let Some(builtin) = name.strip_prefix("builtins.") {
            return self.call_builtin(builtin, args);
        }
        if let Some(value) = self.call_special(name, &args) {
            return value;
        }
        if let Some(name) = name.strip_prefix("torch.")
            && let Some(value) = self.call_nondeterministic(name, &args)
        {
            return value;
        }
        let Some(effect) = library::effect_of(name) else {
            return self.call_unknown(name, &args);
        };
        match effect {
            Effect::Pure => self.heap.pure(&args),
            Effect::Silent | Effect::NoGrad => Value::constant(),
            Effect::Same => args.positional.into_iter().next().unwrap_or_default(),
            Effect::Settings => Value::of(Shape::Settings),
            Effect::Draw(global) | Effect::DrawInto(global) => {
                let generator = self.generator_for(&args, global);
                let whole = self.heap.combine(args.all());
                let drawn = self.draw(generator, purpose_of(name), whole.operands, site);
                drawn.with_models(whole.models)
            }
            Effect::DrawUnless(global, parameter) => {
                let whole = self.heap.combine(args.all());
                match args.name(parameter) {
                    Some(passed) if !passed.is_none() => whole,
                    _ if args.flag("shuffle") == Some(false) => whole,
                    _ => self.draw_global(global, Purpose::Values, whole.operands, site),
                }
            }
            Effect::SeededDraw(global) => self.seeded_draw(global, name, &args),
            Effect::Keras(call) => self.call_keras(call, name, args),
            Effect::TensorFlow(call) => self.call_tensorflow(call, name, &args),
            Effect::Jax(call) => self.call_jax(call, args),
            Effect::Lightning(call) => self.call_lightning(call, &args),
            Effect::Hub(call) => self.call_hub(call, &args),
            Effect::Unknown => self.call_unknown(name, &args),
            Effect::Seed(globals) => {
                for global in globals {
                    let generator = self.global(*global);
                    self.seed(generator, &args);
                }
                Value::none()
            }
            Effect::Generator(family) => Value::object(self.make_generator(family, &args)),
            Effect::GetState(global) => {
                let generator = self.global(global);
                self.state_of(generator, site)
            }
            Effect::SetState(global) => {
                let generator = self.global(global);
                if let Some(value) = args.first() {
                    self.restore(generator, value, site);
                }
                Value::none()
            }
            Effect::Read(what) => {
                let content = self.heap.combine(args.all());
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
                self.new_layer(layer, &args)
            }
            Effect::Functional(layer) => {
                let whole = self.heap.combine(args.all());
                let trains = args.flag("training") != Some(false) && self.mode_of_call();
                self.apply_layer(layer, None, Global::Torch, trains, whole, site)
            }
            Effect::Container => {
                let id = self.make_module(Layer::default(), site);
                self.absorb_each(id, args.all(), site);
                Value::object(id)
            }
            Effect::Optimizer => {
                let id = self.make_optimizer(&args);
                // SGD without momentum has no state.
                if &**name == "torch.optim.SGD" && !args.may_be_true(2, "momentum") {
                    self.libraries.stateless_optimizers.insert(id);
                }
                Value::object(id)
            }
            Effect::Scheduler => Value::object(self.make_scheduler(&args)),
            Effect::Scaler => self.make_new(Kind::Scaler, "scaler", [], site),
            Effect::Average | Effect::Copy => {
                self.copy(args.first(), effect == Effect::Average, site)
            }
            Effect::Loader => self.new_loader(&args),
            Effect::Sampler(order) => {
                let generator = self.heap.generator_of(&args);
                let kind = Kind::Sampler { order, generator, from: args.first_or_default() };
                Value::object(self.make(kind, "sampler", site))
            }
            Effect::Dataset => self.new_dataset(&args),
            Effect::Transform(layer, global) => {
                let parts = args.all().filter(|it| !it.is_data()).cloned().collect();
                let kind = Kind::Transform { layer, global, parts };
                Value::object(self.make(kind, "transform", site))
            }
            Effect::Transforms { draws } => {
                let parts = args.first().map_or_else(Vec::new, |it| self.heap.parts_of(it));
                let layer = Layer { draws, ..Layer::default() };
                let kind = Kind::Transform { layer, global: Global::Torch, parts };
                Value::object(self.make(kind, "transforms", site))
            }
            Effect::Split => {
                let generator = self.generator_for(&args, Global::Torch);
                let whole = self.heap.combine(args.all());
                let from = self.draw(generator, Purpose::Order, whole.operands, site);
                let parts = args.first().and_then(Value::as_object);
                let lengths = args.get(1, "lengths").and_then(|it| self.heap.container_in(it));
                let count = lengths.filter(|it| it.is_closed).map_or(2, |it| it.elements.len());
                let part = |_| {
                    let (from, parts) = (from.clone(), parts.into_iter().collect());
                    let operands = from.operands.clone();
                    let kind = Kind::Dataset { from, transforms: Vec::new(), parts };
                    let id = self.make(kind, "part", site);
                    self.write_state(id, "part", operands, site);
                    Value::object(id)
                };
                Value::of(Shape::Tuple((0..count.clamp(1, 8)).map(part).collect()))
            }
            Effect::Save { what } => {
                let what = args.positional.get(what).or_else(|| args.name("obj"));
                self.save(what, &args);
                Value::none()
            }
            Effect::Load => self.load(&args),
            Effect::CopyFile => {
                self.output_models(site);
                Value::constant()
            }
            Effect::Rank => Value::plain(vec![Operand::Rank]),
            Effect::Workers => Value::plain(vec![Operand::Workers]),
            Effect::Set(switch) => self.program.set_switch(switch, &args),
            Effect::State => {
                let whole = self.heap.combine(args.all());
                self.make_new(Kind::State, "state", whole.operands, site)
            }
            Effect::Backward => {
                let whole = self.heap.combine(args.all());
                self.backward(&whole, site);
                Value::constant()
            }
            Effect::Nondeterministic(operation) => self.call_operation(operation, &args),
        }
    }

    /// The generator among the arguments, or a global one.
    pub(super) fn generator_for(&mut self, args: &Args<'a>, global: Global) -> ObjectId {
        self.heap.generator_of(args).unwrap_or_else(|| self.global(global))
    }

    /// Calls an operation that is not deterministic on a GPU in training.
    pub(super) fn call_operation(&mut self, operation: &'static str, args: &Args<'a>) -> Value<'a> {
        let mut whole = self.heap.combine(args.all());
        if self.mode_of_call() {
            whole.operands = self.program.nondeterministic(operation, whole.operands, args.site);
        }
        whole
    }

    /// Library functions that need more than an effect.
    fn call_special(&mut self, name: &str, args: &Args<'a>) -> Option<Value<'a>> {
        let site = args.site;
        let first = || args.first().cloned();
        Some(match name {
            "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => {
                let data = self.heap.combine(args.positional.iter().take(1));
                Value { shape: Shape::Parameters(Rc::new([])), ..data }
            }
            // These call a function of the script.
            "absl.app.run" | "fire.Fire" | "typer.run" | "tyro.cli" => {
                self.call_with(first()?, vec![Value::of(Shape::Settings)], site)
            }
            "torch.multiprocessing.spawn" | "torch.multiprocessing.start_processes" => {
                let function = args.get(0, "fn").cloned()?;
                let passed = args.get(1, "args").cloned().unwrap_or_default();
                let mut positional = vec![Value::plain(vec![Operand::Rank])];
                positional.extend(self.heap.parts_of(&passed));
                self.call_with(function, positional, site)
            }
            "multiprocessing.Process" | "torch.multiprocessing.Process" => {
                let function = args.name("target").cloned()?;
                let passed = args.name("args").cloned().unwrap_or_default();
                self.call_with(function, self.heap.parts_of(&passed), site)
            }
            "functools.partial" => {
                let callee = first()?;
                let mut rest = args.clone();
                rest.positional.remove(0);
                Value::of(Shape::Partial(Rc::new((callee, rest))))
            }
            "typing.cast" => args.get(1, "val").cloned()?,
            "itertools.cycle" | "itertools.islice" | "itertools.tee" | "contextlib.closing" => {
                first()?
            }
            "itertools.chain" | "itertools.chain.from_iterable" => {
                let models = self.heap.models_in(args.all());
                let models = Some(models).filter(|it| !it.is_empty())?;
                Value::of(Shape::Parameters(models.into()))
            }
            "itertools.count" => Value::of(Shape::Range),
            "collections.deque"
            | "collections.defaultdict"
            | "collections.OrderedDict"
            | "collections.Counter"
            | "queue.Queue"
            | "queue.deque" => {
                let entries = args.first().and_then(|it| self.heap.container_in(it));
                let mut container = entries.cloned().unwrap_or_default();
                container.has_keys = !name.ends_with("deque") && !name.ends_with("Queue");
                let whole = self.heap.combine(args.all());
                self.make_new(Kind::Container(container), "container", whole.operands, site)
            }
            // The order is kept unless `shuffle=True`.
            "sklearn.model_selection.KFold"
            | "sklearn.model_selection.StratifiedKFold"
            | "sklearn.model_selection.StratifiedGroupKFold"
                if args.flag("shuffle") != Some(true) =>
            {
                self.heap.pure(args)
            }
            "numpy.sort" | "numpy.unique" | "natsort.natsorted" | "natsort.os_sorted" => {
                let values = args.positional.iter().cloned();
                let sorted: Vec<_> = values.map(|it| without_order(it, &self.heap)).collect();
                self.heap.combine(&sorted)
            }
            "numpy.savez" | "numpy.savez_compressed" => {
                self.save_arrays(args);
                Value::none()
            }
            "json.dump" if !self.program.loops.is_empty() => {
                let holdings = self.heap.holdings(&first()?, 4);
                self.program.facts.asides.push(super::facts::Aside { site, holdings });
                Value::none()
            }
            "json.load" if self.libraries.dumps_json => self.load(args),
            "numpy.load" if self.libraries.saves_arrays => self.load(args),
            "torch.initial_seed" => {
                let generator = self.global(Global::Torch);
                Value::variable(self.heap.object(generator).cell)
            }
            "os.getenv" => self.environment_variable(&first()?),
            _ if name.starts_with("torch.distributions.") && is_class(name) => {
                let whole = self.heap.combine(args.all());
                Value { shape: Shape::Distribution, ..whole }
            }
            _ => return None,
        })
    }

    /// Returns true if a function of a model is called in training.
    pub(super) fn mode_of_call(&self) -> bool {
        let mut calls = self.execution.calls.iter().rev();
        let receiver = calls.find_map(|call| call.receiver.filter(|id| self.heap.is_module(*id)));
        receiver.is_none_or(|id| self.heap.trains(id))
    }
}

impl<'a> Heap<'a> {
    /// A pure computation; entries of a checkpoint are passed through.
    fn pure(&self, args: &Args<'a>) -> Value<'a> {
        if let Some(first) = args.first()
            && matches!(first.shape, Shape::Loaded(..))
        {
            return first.clone();
        }
        self.combine(args.all())
    }

    /// The arguments of a call and another value, as data.
    pub(super) fn combine_with(&self, args: &Args<'a>, value: &Value<'a>) -> Value<'a> {
        let mut whole = self.combine(args.all());
        whole.depend_on(&self.data(value));
        whole
    }

    /// The values in a tuple or a list.
    pub(super) fn parts_of(&self, value: &Value<'a>) -> Vec<Value<'a>> {
        match &value.shape {
            Shape::Tuple(parts) => parts.to_vec(),
            _ => {
                self.container_in(value).map_or_else(Vec::new, |it| it.values().cloned().collect())
            }
        }
    }
}

/// Returns true if a qualified name ends in that of a class.
fn is_class(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
}
