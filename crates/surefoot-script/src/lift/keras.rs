//! Keras: layers, models, optimizers, and what is read from and written to files.
//!
//! Layers learn at each call whether they train; what is not told is inherited from the call around it.
//! Training itself is in [`super::fit`].

use std::rc::Rc;

use ruff_text_size::TextRange;

use super::Lift;
use super::facts::{Holdings, Load, Purpose};
use super::framework::{Framework, WeightsRead};
use super::object::Kind;
use super::object_call::mark;
use super::value::{Arguments, Code, Models, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site, Variable};
use crate::library::{Family, Global, Initial, KERAS_LAYER, Keras, Layer, is_fixed_initializer};

/// The attribute under which a layer with a seed keeps its generator.
const SEEDS: &str = "seed_generator";

impl<'a> Lift<'a> {
    /// Calls something of Keras.
    pub(super) fn call_keras(
        &mut self,
        call: Keras,
        name: &str,
        arguments: Arguments<'a>,
        site: Site,
    ) -> Value<'a> {
        match call {
            Keras::Layer(layer) => self.new_keras_layer(layer, name, &arguments, site),
            Keras::Model => {
                let shown = self.statement.unwrap_or(site);
                let id = self.make_module(KERAS_LAYER, shown);
                self.adopt(id, &arguments, site);
                Value::object(id)
            }
            Keras::Sequential => {
                let shown = self.statement.unwrap_or(site);
                let id = self.make_module(KERAS_LAYER, shown);
                for value in arguments.all().cloned().collect::<Vec<_>>() {
                    self.absorb_all(id, &value, site);
                }
                Value::object(id)
            }
            Keras::Optimizer { is_plain } => {
                Value::object(self.new_keras_optimizer(is_plain, &arguments, site))
            }
            Keras::Schedule => Value::library("keras.schedule"),
            Keras::Initializer(initial) => self.new_initializer(initial, &arguments),
            Keras::Callback(callback) => {
                let framework = Framework::Callback(callback, arguments);
                Value::object(self.make_framework(framework, "callback", site))
            }
            Keras::Directory => self.new_directory(&arguments, site),
            Keras::SetValue => {
                if let [variable, value, ..] = &arguments.positional[..] {
                    let value = self.data(value);
                    self.write_argument(&variable.clone(), &value, site);
                }
                Value::of(Shape::None)
            }
            Keras::Load => {
                let layer = Layer {
                    has_parameters: true,
                    ..KERAS_LAYER
                };
                let id = self.make_module(layer, site);
                let cell = self.object(id).cell;
                self.compute(cell, "loaded", Vec::new(), site);
                let file = self.file_name(arguments.get(0, "filepath"));
                self.note_weights(id, file, site);
                Value::object(id)
            }
        }
    }

    fn new_keras_layer(
        &mut self,
        mut layer: Layer,
        name: &str,
        arguments: &Arguments<'a>,
        site: Site,
    ) -> Value<'a> {
        let shown = self.statement.unwrap_or(site);
        if arguments.may_be_true(usize::MAX, "dropout")
            || arguments.may_be_true(usize::MAX, "recurrent_dropout")
        {
            layer.draws = true;
        }
        let mode = arguments.get(2, "interpolation").and_then(Value::as_text);
        if name.ends_with("UpSampling2D") && mode.is_some_and(|mode| *mode == "bilinear") {
            layer.nondeterministic = Some("the gradient of a bilinear resize");
        }
        let id = self.make_module(layer, shown);
        let cell = self.object(id).cell;
        let is_application = name.contains("applications.");
        let is_drawn = match self.initial_of(arguments) {
            Some(operands) => {
                self.compute(cell, "initial", operands, shown);
                false
            }
            None if is_application => {
                matches!(
                    arguments.name("weights").map(|it| &it.shape),
                    Some(Shape::None)
                )
            }
            None => layer.draws_parameters,
        };
        if is_drawn {
            let generator = self.global(Global::TensorFlow);
            let drawn = self.draw(generator, Purpose::Parameters, Vec::new(), shown);
            self.compute(cell, "initial", drawn.operands, shown);
        }
        if layer.draws
            && let Some(seed) = arguments.name("seed").cloned()
            && !matches!(seed.shape, Shape::None)
        {
            let generator = match seed.as_object() {
                Some(given) if self.is_tensorflow_generator(given) => given,
                _ => {
                    let given = Arguments {
                        positional: vec![seed],
                        named: Vec::new(),
                    };
                    self.make_generator(Family::TensorFlow, &given, shown)
                }
            };
            self.give_field(id, SEEDS, &Value::object(generator));
        }
        let whole = self.combine(arguments.all().filter(|it| it.is_data()));
        if !whole.operands.is_empty() && layer.has_parameters {
            self.write_cell(id, whole.operands, shown);
        }
        for value in arguments.all().cloned().collect::<Vec<_>>() {
            self.absorb_all(id, &value, shown);
        }
        Value::object(id)
    }

    /// What initial values come from, if an argument says so; otherwise they are drawn.
    fn initial_of(&self, arguments: &Arguments<'a>) -> Option<Vec<Operand>> {
        let (_, given) = arguments.named.iter().find(|(name, _)| {
            name.ends_with("initializer")
                && !name.starts_with("bias")
                && !name.starts_with("recurrent")
        })?;
        match &given.shape {
            Shape::Library(name) => match &**name {
                "keras.initializer.seeded" | "keras.initializer.fixed" => {
                    Some(given.operands.clone())
                }
                _ => None,
            },
            Shape::Text(name) if is_fixed_initializer(name) => Some(Vec::new()),
            _ => None,
        }
    }

    fn new_initializer(&mut self, initial: Initial, arguments: &Arguments<'a>) -> Value<'a> {
        let seed = match initial {
            Initial::Fixed => return Value::library("keras.initializer.fixed"),
            Initial::Drawn(position) => arguments.get(position, "seed"),
        };
        let Some(seed) = seed.filter(|it| !matches!(it.shape, Shape::None)) else {
            return Value::library("keras.initializer.drawn");
        };
        let mut value = Value::library("keras.initializer.seeded");
        value.operands = self.data(seed).operands;
        value
    }

    fn new_keras_optimizer(
        &mut self,
        is_plain: bool,
        arguments: &Arguments<'a>,
        site: Site,
    ) -> ObjectId {
        // A wrapper is the optimizer that it wraps.
        let inner = arguments
            .get(0, "inner_optimizer")
            .and_then(Value::as_object);
        if let Some(inner) = inner.filter(|id| self.is_optimizer(*id)) {
            return inner;
        }
        let id = self.empty_optimizer(site);
        let rest = self.combine(arguments.all().filter(|it| it.is_data()));
        let cell = self.object(id).cell;
        self.compute(cell, "new", rest.operands, site);
        let rate = arguments.get(0, "learning_rate");
        let has_momentum = arguments.may_be_true(1, "momentum");
        // A schedule counts the steps.
        if is_plain && !has_momentum && rate.is_none_or(Value::is_data) {
            self.frameworks.forgetful.insert(id);
        }
        id
    }

    fn empty_optimizer(&mut self, site: Site) -> ObjectId {
        let kind = Kind::Optimizer {
            models: Vec::new(),
            tensors: Vec::new(),
        };
        self.make(kind, "optimizer", site)
    }

    pub(super) fn is_optimizer(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Optimizer { .. })
    }

    /// Whether an object is a model or a layer of Keras.
    pub(super) fn is_keras(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Module { layer, .. } if layer.is_keras)
    }

    /// All layers that took part in values are parts of a model made from them.
    pub(super) fn adopt(&mut self, id: ObjectId, arguments: &Arguments<'a>, site: Site) {
        let mut models = Models::default();
        for value in arguments.all() {
            models = models.and(value.models);
            for part in self.parts_of(value) {
                models = models.and(part.models);
            }
            models = models.and(self.data(value).models);
        }
        let layers: Vec<ObjectId> = self
            .models
            .iter()
            .enumerate()
            .filter(|(number, _)| models.has(*number))
            .map(|(_, layer)| *layer)
            .collect();
        for layer in layers {
            let layer = self.root(layer);
            if self.is_keras(layer) {
                self.absorb(id, layer, site);
            }
        }
    }

    /// Calls a model or a layer of Keras.
    pub(super) fn call_keras_model(
        &mut self,
        id: ObjectId,
        layer: Layer,
        mut arguments: Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Value<'a> {
        let told = match arguments.name("training").map(|it| &it.shape) {
            Some(Shape::Bool(trains)) => Some(*trains),
            _ => None,
        };
        let trains = told.unwrap_or_else(|| self.keras_trains());
        self.frameworks.training.push(trains);
        let cell = self.cell(id);
        let mut value = if let Some(function) = self.hook(id, "call") {
            let wants = match function.code {
                Code::Def(code) => code.parameters.includes("training"),
                Code::Lambda(_) => false,
            };
            if wants && told.is_none() {
                arguments.named.retain(|(name, _)| *name != "training");
                arguments
                    .named
                    .push(("training", Value::of(Shape::Bool(trains))));
            }
            self.enter(&function, arguments, range)
        } else {
            let mut value = self.combine(arguments.all());
            let parts = self.object(id).parts.clone();
            if parts.is_empty() || parts.len() > 64 {
                value = self.apply_keras_layer(id, layer, trains, value, site);
            } else {
                for part in parts {
                    let arguments = Arguments {
                        positional: vec![value],
                        named: Vec::new(),
                    };
                    let result = self.call_object(part, arguments, range);
                    value = self.data(&result);
                }
            }
            value
        };
        self.frameworks.training.pop();
        let models = self
            .models_of(id)
            .and(own_models(self, id))
            .and(value.models);
        mark(&mut value, Operand::Variable(cell), models);
        value
    }

    /// Whether the call of a model that is open trains.
    pub(super) fn keras_trains(&self) -> bool {
        self.frameworks.training.last().copied().unwrap_or(false)
    }

    fn apply_keras_layer(
        &mut self,
        id: ObjectId,
        layer: Layer,
        trains: bool,
        mut value: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        if !trains {
            return value;
        }
        if layer.draws {
            let own = self.field(id, SEEDS).and_then(|it| it.as_object());
            let generator = own.unwrap_or_else(|| self.global(Global::TensorFlow));
            let drawn = self.draw(generator, Purpose::Layer, value.operands.clone(), site);
            value.depend_on(&drawn);
        }
        if let Some(operation) = layer.nondeterministic {
            value.operands = self.unsteady(operation, std::mem::take(&mut value.operands), site);
        }
        if layer.keeps_statistics {
            let operands = value.operands.clone();
            self.write_cell(id, operands, site);
        }
        value
    }

    /// The optimizer that a model is compiled with.
    pub(super) fn optimizer_of(&self, model: ObjectId) -> Option<ObjectId> {
        let model = self.actual(model);
        let found = self
            .frameworks
            .optimizers
            .iter()
            .find(|(id, _)| self.actual(**id) == model);
        found.map(|(_, optimizer)| self.actual(*optimizer))
    }

    /// The optimizer of a model, made if it has none yet.
    pub(super) fn optimizer_for(&mut self, model: ObjectId, site: Site) -> ObjectId {
        let model = self.actual(model);
        if let Some(optimizer) = self.optimizer_of(model) {
            return optimizer;
        }
        let optimizer = self.empty_optimizer(site);
        let cell = self.object(optimizer).cell;
        self.compute(cell, "new", Vec::new(), site);
        self.frameworks.optimizers.insert(model, optimizer);
        optimizer
    }

    /// `model.compile(..)`.
    fn compile(&mut self, id: ObjectId, arguments: &Arguments<'a>, site: Site) {
        let given = arguments.get(0, "optimizer");
        let optimizer = match given.and_then(Value::as_object) {
            Some(optimizer) if self.is_optimizer(optimizer) => self.actual(optimizer),
            _ => {
                let optimizer = self.empty_optimizer(site);
                let cell = self.object(optimizer).cell;
                self.compute(cell, "new", Vec::new(), site);
                if given
                    .and_then(Value::as_text)
                    .is_some_and(|it| it.eq_ignore_ascii_case("sgd"))
                {
                    self.frameworks.forgetful.insert(optimizer);
                }
                optimizer
            }
        };
        let id = self.actual(id);
        if let Some(before) = self.optimizer_of(id)
            && before != optimizer
        {
            // What was read into the optimizer before is gone.
            let cell = self.object(before).cell;
            self.note_rewrite(cell, site);
            self.objects[before.0 as usize].same = Some(optimizer);
        }
        if self.object(optimizer).name.is_none() {
            self.object_mut(optimizer).name = Some("optimizer".to_owned());
        }
        self.frameworks.optimizers.insert(id, optimizer);
        self.give_field(id, "optimizer", &Value::object(optimizer));
    }

    /// One step of an optimizer of Keras.
    pub(super) fn keras_step(
        &mut self,
        optimizer: ObjectId,
        roots: &[ObjectId],
        gradient: &[Operand],
        site: Site,
    ) {
        for root in roots {
            if let Kind::Module { gradients, .. } = self.object(*root).kind {
                let mut operands = vec![Operand::Variable(self.object(*root).cell)];
                operands.extend(
                    gradient
                        .iter()
                        .filter(|it| !operands.contains(it))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                self.compute(gradients, "gradient", operands, site);
            }
        }
        if self.frameworks.forgetful.contains(&self.actual(optimizer)) {
            for root in roots {
                if let Kind::Module { gradients, .. } = self.object(*root).kind {
                    let cell = self.object(*root).cell;
                    let operands = vec![Operand::Variable(cell), Operand::Variable(gradients)];
                    self.compute(cell, "step", operands, site);
                    self.note_trained(cell);
                }
            }
            self.note_step();
            return;
        }
        if let Kind::Optimizer { models, .. } = &mut self.object_mut(optimizer).kind {
            for root in roots {
                if !models.contains(root) {
                    models.push(*root);
                }
            }
        }
        self.optimizer_step(optimizer, &[], site);
    }

    /// Whether a method of an optimizer is one that only Keras has.
    pub(super) fn is_of_keras(&self, name: &str) -> bool {
        matches!(
            name,
            "apply_gradients"
                | "apply"
                | "minimize"
                | "stateless_apply"
                | "build"
                | "get_weights"
                | "set_weights"
                | "get_config"
        )
    }

    /// A method of an optimizer of Keras; nothing if it is one of PyTorch.
    pub(super) fn call_keras_optimizer(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: &Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Option<Value<'a>> {
        match name {
            "apply_gradients" | "apply" => {
                let mut given: Vec<Value<'a>> = Vec::new();
                for value in arguments.all() {
                    match &value.shape {
                        Shape::Zip(parts) => given.extend(parts.iter().cloned()),
                        _ => given.push(value.clone()),
                    }
                }
                let roots = self.models_in(given.iter());
                let gradient = self.combine(given.iter().take(1)).operands;
                self.step_variables(id, &given, &gradient, site);
                self.keras_step(id, &roots, &gradient, site);
            }
            "minimize" => {
                let mut loss = arguments.positional.first().cloned()?;
                if !loss.is_data() {
                    loss = self.call_value(loss, Arguments::default(), range);
                }
                let roots = self.models_in(arguments.all().chain([&loss]));
                let gradient = self.data(&loss).operands;
                let variables: Vec<Value<'a>> = arguments.all().skip(1).cloned().collect();
                self.step_variables(id, &variables, &gradient, site);
                self.keras_step(id, &roots, &gradient, site);
            }
            "stateless_apply" => {
                let mut whole = self.combine(arguments.all());
                whole
                    .operands
                    .retain(|it| *it != Operand::Variable(self.cell(id)));
                self.note_step();
                let operands = whole.operands;
                let variables = self.computed("step", operands.clone(), whole.models, site);
                let memory = self.computed("moments", operands, Models::default(), site);
                return Some(Value::of(Shape::Tuple(Rc::new([variables, memory]))));
            }
            "build" | "finalize_variable_values" | "get_config" => {}
            "get_weights" | "variables" => return Some(self.state_of(id, site)),
            "set_weights" => {
                let state = arguments.positional.first().cloned()?;
                self.put_back(id, &state, site);
            }
            _ => return None,
        }
        Some(Value::constant())
    }

    /// Variables that belong to no model are trained as well.
    fn step_variables(
        &mut self,
        optimizer: ObjectId,
        given: &[Value<'a>],
        gradient: &[Operand],
        site: Site,
    ) {
        for value in given {
            for id in self.objects_in(value) {
                if matches!(self.object(id).kind, Kind::State) {
                    let cell = self.cell(id);
                    let mut operands = vec![Operand::Variable(cell)];
                    operands.extend(gradient);
                    operands.push(Operand::Variable(self.cell(optimizer)));
                    self.compute(cell, "step", operands, site);
                    self.note_trained(cell);
                }
            }
        }
    }

    /// A method of a model of Keras; nothing if it is one that computes.
    pub(super) fn call_keras_method(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: &Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Option<Value<'a>> {
        let root = self.root(id);
        Some(match name {
            "compile" => {
                self.compile(id, arguments, site);
                Value::of(Shape::None)
            }
            "fit" | "fit_generator" => self.fit(id, arguments, range, site),
            "train_on_batch" => {
                let batch = self.combine(arguments.all());
                self.keras_train_step(id, batch, range, site)
            }
            "evaluate" | "evaluate_generator" | "test_on_batch" | "predict"
            | "predict_generator" | "predict_on_batch" => {
                self.note_probe();
                let data = arguments
                    .positional
                    .first()
                    .or_else(|| arguments.name("x"))
                    .cloned();
                self.keras_evaluate(id, data.as_ref(), range, site)
            }
            "add" => {
                for value in arguments.positional.clone() {
                    self.absorb_all(id, &value, site);
                }
                Value::of(Shape::None)
            }
            "get_weights" => self.state_of(root, site),
            "set_weights" => {
                let state = arguments.get(0, "weights").cloned()?;
                self.put_back(id, &state, site);
                Value::of(Shape::None)
            }
            "save" | "save_weights" | "export" => {
                self.save_model(id, name, arguments, site);
                Value::of(Shape::None)
            }
            "load_weights" => {
                let file = self.file_name(arguments.get(0, "filepath"));
                self.note_weights(id, file, site);
                if self.marks.is_empty() && self.tries == 0 && self.loops.is_empty() {
                    let cell = self.cell(id);
                    self.compute(cell, "loaded", Vec::new(), site);
                }
                Value::of(Shape::None)
            }
            "stateless_call" => {
                let whole = self.combine(arguments.all());
                let output = self.computed("output", whole.operands.clone(), whole.models, site);
                let state = self.computed("state", whole.operands, Models::default(), site);
                Value::of(Shape::Tuple(Rc::new([output, state])))
            }
            "add_weight" | "add_variable" => self.new_weight(arguments, site),
            "compute_loss"
            | "compiled_loss"
            | "compute_output_shape"
            | "add_loss"
            | "add_metric"
            | "compute_metrics" => self.combine(arguments.all()),
            "build"
            | "summary"
            | "get_config"
            | "to_json"
            | "count_params"
            | "reset_states"
            | "reset_metrics"
            | "get_metrics_result"
            | "make_train_function"
            | "save_spec"
            | "get_build_config"
            | "get_compile_config" => Value::constant(),
            "get_layer" => Value::object(id),
            _ => return None,
        })
    }

    /// A weight that a layer makes for itself.
    fn new_weight(&mut self, arguments: &Arguments<'a>, site: Site) -> Value<'a> {
        let shown = self.statement.unwrap_or(site);
        let operands = match self.initial_of(arguments) {
            Some(operands) => operands,
            None => {
                let generator = self.global(Global::TensorFlow);
                self.draw(generator, Purpose::Parameters, Vec::new(), shown)
                    .operands
            }
        };
        Value {
            shape: Shape::Parameters(Rc::new([])),
            operands,
            models: Models::default(),
        }
    }

    /// What a file of a model holds.
    pub(super) fn model_holdings(
        &self,
        id: ObjectId,
        file: Option<&str>,
        is_weights: bool,
    ) -> Holdings {
        let mut holdings = Holdings {
            objects: vec![self.root(id)],
            ..Holdings::default()
        };
        // Only the old format for weights leaves the optimizer out.
        let is_bare = is_weights
            && file.is_some_and(|file| {
                (file.ends_with(".h5") || file.ends_with(".hdf5")) && !file.ends_with(".weights.h5")
            });
        if !is_bare && let Some(optimizer) = self.optimizer_of(id) {
            holdings.objects.push(optimizer);
        }
        holdings
    }

    /// `model.save(..)`: a checkpoint if it is made in a loop and read again, the result otherwise.
    fn save_model(&mut self, id: ObjectId, name: &str, arguments: &Arguments<'a>, site: Site) {
        let file = self.file_name(arguments.get(0, "filepath"));
        let holdings = self.model_holdings(id, file.as_deref(), name == "save_weights");
        if !self.loops.is_empty() && self.is_read_again(file.as_deref()) {
            self.restore_weights(file.as_deref(), &holdings);
            let mut holdings = holdings;
            self.hold_positions(&mut holdings);
            self.note_save(holdings, site);
            return;
        }
        self.put_out(&holdings, site);
    }

    /// Files of models have no place for positions; scripts keep them elsewhere, if they do.
    pub(super) fn hold_positions(&self, holdings: &mut Holdings) {
        for id in &self.loops {
            let positions: &Vec<Variable> = &self.facts.loops[id.0 as usize].positions;
            holdings.variables.extend(positions);
        }
    }

    /// Whether a model was read from this file before.
    pub(super) fn is_read_again(&self, file: Option<&str>) -> bool {
        file.is_some()
            && self
                .frameworks
                .weights
                .iter()
                .any(|read| read.file.as_deref() == file && !read.in_loop)
    }

    /// Notes that a model is read from a file.
    fn note_weights(&mut self, id: ObjectId, file: Option<String>, site: Site) {
        let optimizer = self.optimizer_for(id, site);
        let moment = self.moment();
        self.frameworks.weights.push(WeightsRead {
            model: self.root(id),
            optimizer,
            file,
            site,
            moment,
            in_loop: !self.loops.is_empty(),
        });
    }

    /// Now that a file turns out to be a checkpoint, what was read from it was restored.
    pub(super) fn restore_weights(&mut self, file: Option<&str>, holdings: &Holdings) {
        let reads: Vec<WeightsRead> = self
            .frameworks
            .weights
            .iter()
            .filter(|read| read.file.as_deref() == file && file.is_some())
            .cloned()
            .collect();
        for read in reads {
            self.facts.loads.push(Load {
                site: read.site,
                keys: Vec::new(),
                escapes: false,
                file: read.file.clone(),
            });
            for object in [read.model, read.optimizer] {
                let object = self.actual(object);
                if holdings.objects.contains(&object) {
                    let variable = self.cell(object);
                    self.facts.restores.push(super::facts::Restore {
                        variable,
                        object: Some(object),
                        site: read.site,
                        in_loop: read.in_loop,
                        moment: read.moment,
                    });
                }
            }
        }
    }
}

/// The models that an object itself is, also if it is part of another.
fn own_models(lift: &Lift<'_>, id: ObjectId) -> Models {
    match lift.object(id).kind {
        Kind::Module { number, .. } => Models::one(number),
        _ => Models::default(),
    }
}
