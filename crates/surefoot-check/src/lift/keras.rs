//! Keras: layers, models, optimizers and files.
//!
//! Each call of a layer has a training flag, inherited from the enclosing call by default.
//! Training itself is in [`super::fit`].

use std::rc::Rc;

use super::{
    Args, Code, Family, Framework, Global, Heap, Initial, KERAS_LAYER, Keras, Kind, Layer,
    Libraries, Lift, Models, ObjectId, Operand, Purpose, Shape, Site, Value, is_fixed_initializer,
    is_one_of,
};

/// The attribute under which a layer with a seed keeps its generator.
const SEEDS: &str = "seed_generator";

/// Methods of models that compute something from their arguments.
const COMPUTED: &str =
    "compute_loss compiled_loss compute_output_shape add_loss add_metric compute_metrics";

/// Methods of models that neither train nor draw.
const SILENT: &str = "build summary get_config to_json count_params reset_states reset_metrics \
    get_metrics_result make_train_function save_spec get_build_config get_compile_config";

impl<'a> Lift<'a> {
    /// Calls something of Keras.
    pub(super) fn call_keras(&mut self, call: Keras, name: &str, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        match call {
            Keras::Layer(layer) => self.new_keras_layer(layer, name, &args),
            Keras::Model | Keras::Sequential => {
                let shown = self.execution.statement.unwrap_or(site);
                let id = self.make_module(KERAS_LAYER, shown);
                match call {
                    Keras::Model => self.adopt(id, &args),
                    _ => self.absorb_each(id, args.all(), site),
                }
                Value::object(id)
            }
            Keras::Optimizer { is_plain } => {
                Value::object(self.new_keras_optimizer(is_plain, &args))
            }
            Keras::Schedule => Value::library("keras.schedule"),
            Keras::Initializer(initial) => self.heap.new_initializer(initial, &args),
            Keras::Callback(callback) => {
                let framework = Framework::Callback(callback, args);
                Value::object(self.make_framework(framework, "callback", site))
            }
            Keras::Directory => self.new_directory(&args),
            Keras::SetValue => {
                if let [variable, value, ..] = &args.positional[..] {
                    let value = self.heap.data(value);
                    self.write_argument(&variable.clone(), &value, site);
                }
                Value::none()
            }
            Keras::Load => {
                let layer = Layer { has_parameters: true, ..KERAS_LAYER };
                let id = self.make_module(layer, site);
                self.write_state(id, "loaded", [], site);
                let file = self.program.file_name(args.get(0, "filepath"));
                self.note_weights(id, file, false, site);
                Value::object(id)
            }
        }
    }

    fn new_keras_layer(&mut self, mut layer: Layer, name: &str, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let shown = self.execution.statement.unwrap_or(site);
        let has = |name: &&str| args.may_be_true(usize::MAX, name);
        layer.draws |= ["dropout", "recurrent_dropout"].iter().any(has);
        let mode = args.get(2, "interpolation").and_then(Value::as_text);
        if name.ends_with("UpSampling2D") && mode.is_some_and(|mode| *mode == "bilinear") {
            layer.nondeterministic = Some("the gradient of a bilinear resize");
        }
        let id = self.make_module(layer, shown);
        let cell = self.heap.object(id).cell;
        let is_application = name.contains("applications.");
        let is_drawn = match self.initial_of(args) {
            Some(operands) => {
                self.program.compute(cell, "initial", operands, shown);
                false
            }
            None if is_application => {
                matches!(args.name("weights").map(|it| &it.shape), Some(Shape::None))
            }
            None => layer.draws_parameters,
        };
        if is_drawn {
            let drawn = self.draw_global(Global::TensorFlow, Purpose::Parameters, [], shown);
            self.program.compute(cell, "initial", drawn.operands, shown);
        }
        if layer.draws
            && let Some(seed) = args.name("seed").cloned()
            && !seed.is_none()
        {
            let generator = match seed.as_object() {
                Some(passed) if self.heap.is_tensorflow_generator(passed) => passed,
                _ => {
                    let passed = Args::of(vec![seed], site);
                    self.make_generator(Family::TensorFlow, &passed)
                }
            };
            self.heap.set_field(id, SEEDS, &Value::object(generator));
        }
        let whole = self.heap.combine(args.all().filter(|it| it.is_data()));
        if !whole.operands.is_empty() && layer.has_parameters {
            self.write_cell(id, whole.operands, shown);
        }
        self.absorb_each(id, args.all(), shown);
        Value::object(id)
    }

    /// Source of initial values passed by an argument; drawn by default.
    fn initial_of(&self, args: &Args<'a>) -> Option<Vec<Operand>> {
        let (_, passed) = args.named.iter().find(|(name, _)| {
            name.ends_with("initializer")
                && !name.starts_with("bias")
                && !name.starts_with("recurrent")
        })?;
        match &passed.shape {
            Shape::Library(name)
                if matches!(&**name, "keras.initializer.seeded" | "keras.initializer.fixed") =>
            {
                Some(passed.operands.clone())
            }
            Shape::Text(name) if is_fixed_initializer(name) => Some(Vec::new()),
            _ => None,
        }
    }

    /// Makes all layers that took part in computing the arguments submodules of a model.
    pub(super) fn adopt(&mut self, id: ObjectId, args: &Args<'a>) {
        let site = args.site;
        let mut models = self.heap.combine(args.all()).models;
        for part in args.all().flat_map(|it| self.heap.parts_of(it)) {
            models = models.and(part.models);
        }
        for (number, layer) in self.heap.models.clone().into_iter().enumerate() {
            let layer = self.heap.root(layer);
            if models.has(number) && self.heap.is_keras(layer) {
                self.absorb(id, layer, site);
            }
        }
    }

    /// Calls a model or a layer of Keras.
    pub(super) fn call_keras_model(
        &mut self,
        id: ObjectId,
        layer: Layer,
        mut args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        let flag = args.flag("training");
        let trains = flag.unwrap_or_else(|| self.libraries.keras_trains());
        self.libraries.training.push(trains);
        let cell = self.heap.cell(id);
        let mut value = if let Some(function) = self.hook(id, "call") {
            let has_flag = match function.code {
                Code::Def(code) => code.parameters.includes("training"),
                Code::Lambda(_) => false,
            };
            if has_flag && flag.is_none() {
                args.named.retain(|(name, _)| *name != "training");
                args.named.push(("training", Value::of(Shape::Bool(trains))));
            }
            self.enter(&function, args)
        } else {
            let value = self.heap.combine(args.all());
            self.apply_parts(id, layer, trains, value, site)
        };
        self.libraries.training.pop();
        let models = self.heap.models_of(id).and(own_models(self, id)).and(value.models);
        value.mark(Operand::Variable(cell), models);
        value
    }

    /// Applies a model to its input: its parts in turn, or itself if it is a layer.
    pub(super) fn apply_parts(
        &mut self,
        id: ObjectId,
        layer: Layer,
        trains: bool,
        mut value: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        let parts = self.heap.object(id).parts.clone();
        if !parts.is_empty() && parts.len() <= 64 {
            for part in parts {
                value = self.apply(Value::object(part), value, site);
            }
            return value;
        }
        let (global, own) = match layer.is_keras {
            true => (Global::TensorFlow, self.heap.field(id, SEEDS)),
            false => (Global::Torch, None),
        };
        let generator = own.and_then(|it| it.as_object());
        value = self.apply_layer(layer, generator, global, trains, value, site);
        if layer.keeps_statistics && trains {
            let operands = value.operands.clone();
            self.write_cell(id, operands, site);
        }
        value
    }
    /// Calls a method of a Keras model; `None` for pure computations.
    pub(super) fn call_keras_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        let root = self.heap.root(id);
        Some(match name {
            "compile" => {
                self.compile(id, args);
                Value::none()
            }
            "fit" | "fit_generator" => self.fit(id, args),
            "train_on_batch" => {
                let batch = self.heap.combine(args.all());
                self.keras_train_step(id, batch, site)
            }
            "evaluate" | "evaluate_generator" | "test_on_batch" | "predict"
            | "predict_generator" | "predict_on_batch" => {
                self.note_probe();
                let data = args.first().or_else(|| args.name("x")).cloned();
                self.keras_evaluate(id, data.as_ref(), site)
            }
            "add" => {
                self.absorb_each(id, args.positional.iter(), site);
                Value::none()
            }
            "get_weights" => self.state_of(root, site),
            "set_weights" => {
                let state = args.get(0, "weights").cloned()?;
                self.restore(id, &state, site);
                Value::none()
            }
            "save" | "save_weights" | "export" => {
                self.save_model(id, name, args);
                Value::none()
            }
            "load_weights" => {
                let file = self.program.file_name(args.get(0, "filepath"));
                let leaves_out = self.leaves_optimizer_out(id, file.as_deref());
                self.note_weights(id, file, leaves_out, site);
                if self.scope.marks.is_empty()
                    && self.execution.tries == 0
                    && self.program.loops.is_empty()
                {
                    let cell = self.heap.cell(id);
                    self.program.compute(cell, "loaded", [], site);
                }
                Value::none()
            }
            "stateless_call" => {
                let whole = self.heap.combine(args.all());
                let output =
                    self.program.computed("output", whole.operands.clone(), whole.models, site);
                let state = self.program.computed("state", whole.operands, Models::default(), site);
                Value::tuple([output, state])
            }
            "add_weight" | "add_variable" => self.new_weight(args),
            _ if is_one_of(name, COMPUTED) => self.heap.combine(args.all()),
            _ if is_one_of(name, SILENT) => Value::constant(),
            "get_layer" => Value::object(id),
            _ => return None,
        })
    }

    /// A weight that a layer makes for itself.
    fn new_weight(&mut self, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let shown = self.execution.statement.unwrap_or(site);
        let operands = self.initial_of(args).unwrap_or_else(|| {
            self.draw_global(Global::TensorFlow, Purpose::Parameters, [], shown).operands
        });
        Value { shape: Shape::Parameters(Rc::new([])), ..Value::plain(operands) }
    }
}

impl<'a> Heap<'a> {
    fn new_initializer(&self, initial: Initial, args: &Args<'a>) -> Value<'a> {
        let seed = match initial {
            Initial::Fixed => return Value::library("keras.initializer.fixed"),
            Initial::Drawn(position) => args.get(position, "seed"),
        };
        let Some(seed) = seed.filter(|it| !it.is_none()) else {
            return Value::library("keras.initializer.drawn");
        };
        let mut value = Value::library("keras.initializer.seeded");
        value.operands = self.data(seed).operands;
        value
    }

    /// Returns true if an object is a model or a layer of Keras.
    pub(super) fn is_keras(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Module { layer, .. } if layer.is_keras)
    }
}

impl Libraries {
    /// Returns true if the call of a model that is open trains.
    fn keras_trains(&self) -> bool {
        self.training.last().copied().unwrap_or(false)
    }
}

/// Number of the model that an object is, even as a submodule.
fn own_models(lift: &Lift<'_>, id: ObjectId) -> Models {
    match lift.heap.object(id).kind {
        Kind::Module { number, .. } => Models::one(number),
        _ => Models::default(),
    }
}
