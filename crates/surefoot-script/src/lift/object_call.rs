//! Calls of objects and of their methods.

use std::rc::Rc;

use ruff_python_ast::Expr;
use ruff_text_size::TextRange;

use super::Lift;
use super::builtin::without_order;
use super::facts::Purpose;
use super::generator::purpose_of;
use super::object::Kind;
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site};
use crate::library::{self, Environment, Global};

/// Methods that change a list, a set, a dictionary or a queue.
const MUTATORS: [&str; 18] = [
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "popleft",
    "push",
    "put",
    "remove",
    "reset",
    "reverse",
    "setdefault",
    "sort",
    "update",
];

impl<'a> Lift<'a> {
    /// Calls an object: a model with its input, a transform with a sample.
    pub(super) fn call_object(
        &mut self,
        id: ObjectId,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let site = self.site(range);
        match self.object(id).kind.clone() {
            Kind::Module { layer, .. } => {
                let copied = self
                    .object(id)
                    .copy_of
                    .map(|original| (self.root(original), self.actual(id)));
                if let Some(pair) = copied {
                    self.copies.push(pair);
                }
                let result = self.call_model(id, layer, arguments, range, site);
                if copied.is_some() {
                    self.copies.pop();
                }
                result
            }
            Kind::Transform {
                layer,
                global,
                parts,
            } => {
                let mut value = self.combine(arguments.all());
                for part in parts {
                    let arguments = Arguments {
                        positional: vec![value],
                        named: Vec::new(),
                    };
                    let result = self.call_value(part, arguments, range);
                    value = self.data(&result);
                }
                self.apply_layer(layer, global, true, value, site)
            }
            _ => match self
                .object(id)
                .class
                .clone()
                .and_then(|class| self.class_attribute(&class, "__call__"))
            {
                Some(Value {
                    shape: Shape::Function(function),
                    ..
                }) => {
                    let bound = self.bind_method(&function, id);
                    self.enter(&bound, arguments, range)
                }
                _ => {
                    let mut whole = self.combine(arguments.all());
                    whole.depend_on(&self.data(&Value::object(id)));
                    whole
                }
            },
        }
    }

    fn call_model(
        &mut self,
        id: ObjectId,
        layer: library::Layer,
        arguments: Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Value<'a> {
        if layer.is_keras {
            return self.call_keras_model(id, layer, arguments, range, site);
        }
        let cell = self.cell(id);
        let forward = self.object(id).class.clone().and_then(|class| {
            self.class_attribute(&class, "forward")
                .or_else(|| self.class_attribute(&class, "__call__"))
        });
        if let Some(Value {
            shape: Shape::Function(function),
            ..
        }) = forward
        {
            let bound = self.bound_method(&function, id);
            let mut result = self.enter(&bound, arguments, range);
            let models = self.models_of(id).and(result.models);
            mark(&mut result, Operand::Variable(cell), models);
            return result;
        }
        let mut value = self.combine(arguments.all());
        let parts = self.object(id).parts.clone();
        if parts.is_empty() || parts.len() > 64 {
            let trains = self.trains(id);
            value = self.apply_layer(layer, Global::Torch, trains, value, site);
            if layer.keeps_statistics && trains {
                let operands = value.operands.clone();
                self.write_cell(id, operands, site);
            }
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
        let models = self.models_of(id).and(value.models);
        mark(&mut value, Operand::Variable(cell), models);
        value
    }

    /// Calls a method of a library's object.
    pub(super) fn call_object_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let site = self.site(range);
        match (name, arguments.positional.first()) {
            ("state_dict", _) if !matches!(self.object(id).kind, Kind::Plain) => {
                let root = self.root(id);
                return Value {
                    shape: Shape::State(Rc::new([root])),
                    operands: Vec::new(),
                    models: self.models_of(root),
                };
            }
            ("load_state_dict", Some(state)) => {
                let state = state.clone();
                self.put_back(id, &state, site);
                return Value::constant();
            }
            _ => {}
        }
        if matches!(self.object(id).kind, Kind::Container(_)) {
            return self.call_container_method(id, name, arguments, range, site);
        }
        match self.object(id).kind.clone() {
            Kind::Module { .. } => self.call_model_method(id, name, arguments, range, site),
            Kind::Optimizer { models, .. } => match name {
                _ if self.is_of_keras(name) => self
                    .call_keras_optimizer(id, name, &arguments, range, site)
                    .unwrap_or_else(Value::constant),
                "step" => {
                    if let Some(closure) = arguments
                        .get(0, "closure")
                        .filter(|it| !it.is_data())
                        .cloned()
                    {
                        self.call_value(closure, Arguments::default(), range);
                    }
                    self.optimizer_step(id, &[], site);
                    Value::constant()
                }
                "zero_grad" => {
                    self.clear_gradients(&models, site);
                    Value::constant()
                }
                "add_param_group" => {
                    let more = self.models_in(arguments.all());
                    if let Kind::Optimizer { models, .. } = &mut self.object_mut(id).kind {
                        models.extend(more);
                    }
                    Value::constant()
                }
                _ => self.state_and(id, &arguments),
            },
            Kind::Scheduler { optimizers } => match name {
                "step" | "step_update" | "batch_step" => {
                    let whole = self.combine(arguments.all());
                    self.write_cell(id, whole.operands, site);
                    let cell = self.object(id).cell;
                    for optimizer in optimizers {
                        self.write_cell(optimizer, vec![Operand::Variable(cell)], site);
                    }
                    Value::constant()
                }
                _ => self.state_and(id, &arguments),
            },
            Kind::Scaler => match name {
                "scale" => self.state_and(id, &arguments),
                "step" => {
                    let cell = self.object(id).cell;
                    if let Some(optimizer) = arguments.positional.first().and_then(Value::as_object)
                    {
                        self.optimizer_step(optimizer, &[Operand::Variable(cell)], site);
                    }
                    Value::constant()
                }
                "update" => {
                    let gradients: Vec<Operand> = self
                        .all_roots()
                        .into_iter()
                        .filter_map(|root| match self.object(root).kind {
                            Kind::Module { gradients, .. } => Some(Operand::Variable(gradients)),
                            _ => None,
                        })
                        .collect();
                    self.write_cell(id, gradients, site);
                    Value::constant()
                }
                _ => self.state_and(id, &arguments),
            },
            Kind::Generator(_) => self.call_generator_method(id, name, arguments, site),
            Kind::Container(_) => Value::constant(),
            Kind::Dataset { from, .. } => match name {
                "__getitem__" => self.element_of_object(
                    id,
                    Operand::Constant(
                        self.functions
                            .get("count")
                            .copied()
                            .unwrap_or(crate::calculus::Symbol(0)),
                    ),
                    range,
                ),
                _ => {
                    let mut whole = self.combine(arguments.all());
                    whole.depend_on(&self.data(&from));
                    whole
                }
            },
            Kind::Framework(framework) => {
                self.call_framework_method(id, &framework, name, arguments, site)
            }
            Kind::State => {
                if let Some(value) = self.call_variable_method(id, name, &arguments, site) {
                    return value;
                }
                let whole = self.combine(arguments.all());
                if name == "reset" {
                    let cell = self.object(id).cell;
                    self.compute(cell, "new", Vec::new(), site);
                    return Value::constant();
                }
                if matches!(name, "step" | "update" | "push" | "add") {
                    self.write_cell(id, whole.operands, site);
                    return Value::constant();
                }
                self.state_and(id, &arguments)
            }
            Kind::Plain | Kind::Loader(_) | Kind::Sampler { .. } | Kind::Transform { .. } => {
                if let Some(value) = self.call_flax_method(id, name, &arguments, site) {
                    return value;
                }
                match name {
                    "__len__" | "set_epoch" => Value::constant(),
                    _ => self.combine(arguments.all()),
                }
            }
        }
    }

    /// The state of an object and the arguments of a call, as data.
    fn state_and(&mut self, id: ObjectId, arguments: &Arguments<'a>) -> Value<'a> {
        let mut whole = self.combine(arguments.all());
        let cell = Operand::Variable(self.cell(id));
        if !whole.operands.contains(&cell) {
            whole.operands.push(cell);
        }
        whole
    }

    fn call_model_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        arguments: Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Value<'a> {
        let root = self.root(id);
        if self.is_keras(id)
            && let Some(value) = self.call_keras_method(id, name, &arguments, range, site)
        {
            return value;
        }
        if let Some(value) = self.call_lightning_method(id, name, &arguments, site) {
            return value;
        }
        match name {
            "train" | "eval" | "requires_grad_" | "to" | "cuda" | "cpu" | "half" | "float"
            | "double" | "bfloat16" | "type" | "share_memory" | "to_empty" | "xpu" | "compile" => {
                if matches!(name, "train" | "eval") {
                    let on = name == "train"
                        && !matches!(
                            arguments.positional.first().map(|it| &it.shape),
                            Some(Shape::Bool(false))
                        );
                    if let Kind::Module { trains, .. } = &mut self.object_mut(root).kind {
                        *trains = on;
                    }
                }
                Value::object(id)
            }
            "parameters"
            | "named_parameters"
            | "buffers"
            | "named_buffers"
            | "trainable_parameters" => Value {
                shape: Shape::Parameters(Rc::new([root])),
                operands: Vec::new(),
                models: self.models_of(id),
            },
            "zero_grad" => {
                self.clear_gradients(&[root], site);
                Value::constant()
            }
            "apply" => {
                if let Some(function) = arguments.positional.into_iter().next() {
                    self.call_value(
                        function,
                        Arguments {
                            positional: vec![Value::object(id)],
                            named: Vec::new(),
                        },
                        range,
                    );
                }
                Value::object(id)
            }
            "modules" | "children" | "named_modules" | "named_children" | "items" | "values" => {
                Value::object(id)
            }
            "register_buffer" | "register_parameter" => {
                if let (Some(name), Some(value)) = (
                    arguments.get(0, "name").and_then(Value::as_text).copied(),
                    arguments
                        .positional
                        .get(1)
                        .or_else(|| arguments.name("tensor")),
                ) {
                    self.register(id, name, value, site);
                }
                Value::constant()
            }
            "append" | "add_module" | "insert" | "extend" | "register_module" => {
                for value in arguments.all().cloned().collect::<Vec<_>>() {
                    self.absorb_all(id, &value, site);
                }
                Value::object(id)
            }
            "update_parameters" | "update" => {
                let whole = self.combine(arguments.all());
                let cell = self.object(root).cell;
                self.write_cell(id, whole.operands, site);
                if !self.loops.is_empty() {
                    self.note_trained(cell);
                }
                Value::constant()
            }
            "backward" => {
                let whole = self.combine(arguments.all());
                self.backward(&whole, site);
                Value::constant()
            }
            "reset_parameters" | "init_weights" | "_init_weights" | "initialize"
            | "_reset_parameters" => {
                let generator = self.global(Global::Torch);
                let drawn = self.draw(generator, Purpose::Parameters, Vec::new(), site);
                self.write_cell(id, drawn.operands, site);
                Value::constant()
            }
            "no_sync" | "register_forward_hook" | "register_hook" | "hparams" => Value::constant(),
            _ => self.call_object(id, arguments, range),
        }
    }

    fn call_generator_method(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: Arguments<'a>,
        site: Site,
    ) -> Value<'a> {
        match name {
            "manual_seed" | "seed" | "reset_from_seed" => {
                self.seed(id, &arguments, site);
                Value::object(id)
            }
            "get_state" | "getstate" => self.state_of(id, site),
            "set_state" | "setstate" | "reset" => {
                if let Some(state) = arguments.positional.first() {
                    self.put_back(id, state, site);
                }
                Value::object(id)
            }
            "initial_seed" | "device" => Value::constant(),
            _ => {
                let whole = self.combine(arguments.all());
                let drawn = self.draw(id, purpose_of(name), whole.operands, site);
                if name == "shuffle"
                    && let Some(first) = arguments.positional.first()
                {
                    self.write_argument(first, &drawn, site);
                }
                drawn
            }
        }
    }

    fn call_container_method(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: Arguments<'a>,
        range: TextRange,
        site: Site,
    ) -> Value<'a> {
        let whole = self.combine(arguments.all());
        let cell = Operand::Variable(self.cell(id));
        let in_loop = !self.loops.is_empty();
        match name {
            _ if MUTATORS.contains(&name) => {
                if let Kind::Container(container) = &mut self.object_mut(id).kind {
                    match name {
                        "append" | "add" | "insert" | "push" | "appendleft" => {
                            let value = arguments
                                .positional
                                .last()
                                .cloned()
                                .unwrap_or_else(Value::constant);
                            let is_thing = !value.is_data();
                            if container.elements.len() < 64 && (is_thing || !in_loop) {
                                container.elements.push(value);
                            }
                        }
                        "extend" => {}
                        "sort" => {}
                        "clear" => container.elements.clear(),
                        _ => {}
                    }
                    if in_loop || !matches!(name, "append" | "sort") {
                        container.is_closed = false;
                    }
                }
                if matches!(name, "extend" | "update") {
                    let more: Vec<Value<'a>> = arguments
                        .positional
                        .iter()
                        .flat_map(|it| self.parts_of(it))
                        .collect();
                    let entries = arguments
                        .positional
                        .iter()
                        .filter_map(Value::as_object)
                        .find_map(|other| match &self.object(other).kind {
                            Kind::Container(container) => Some(container.entries.clone()),
                            _ => None,
                        });
                    if let Kind::Container(container) = &mut self.object_mut(id).kind {
                        match entries {
                            Some(entries) if !entries.is_empty() => {
                                container.entries.extend(entries)
                            }
                            _ => container.elements.extend(more.into_iter().take(64)),
                        }
                        container.entries.extend(
                            arguments
                                .named
                                .iter()
                                .map(|(key, value)| (*key, value.clone(), site)),
                        );
                    }
                }
                if name == "clear" {
                    let variable = self.object(id).cell;
                    self.compute(variable, "new", Vec::new(), site);
                } else {
                    self.write_cell(id, whole.operands, site);
                }
                if let Some(Value {
                    shape: Shape::Loaded(..),
                    ..
                }) = arguments.positional.first()
                {
                    self.note_restore(self.cell(id), id, site);
                }
                Value::plain(vec![cell])
            }
            "items" | "values" => {
                let Kind::Container(container) = &self.object(id).kind else {
                    return Value::constant();
                };
                let has_things = container
                    .entries
                    .iter()
                    .any(|(_, value, _)| !value.is_data());
                if !has_things {
                    return Value::plain(vec![cell]);
                }
                let pairs = container.entries.iter().map(|(key, value, _)| match name {
                    "items" => Value::of(Shape::Tuple(Rc::new([
                        Value::of(Shape::Text(key)),
                        value.clone(),
                    ]))),
                    _ => value.clone(),
                });
                Value::of(Shape::Tuple(pairs.collect()))
            }
            "get" => {
                let key = arguments
                    .positional
                    .first()
                    .cloned()
                    .unwrap_or_else(Value::constant);
                self.item(&Value::object(id), &key, range)
            }
            "copy" => Value::object(id),
            _ => {
                let mut whole = whole;
                whole.operands.push(cell);
                whole
            }
        }
    }

    /// Calls a method of data: of a tensor, an array, a path, of whatever a library gave.
    pub(super) fn call_data_method(
        &mut self,
        receiver: &'a Expr,
        base: Value<'a>,
        name: &'a str,
        arguments: Arguments<'a>,
        range: TextRange,
    ) -> Value<'a> {
        if let Shape::Stranger(id) = base.shape
            && let Some(value) = self.call_stranger(id, &base, name, &arguments, range)
        {
            return value;
        }
        let site = self.site(range);
        let mut whole = self.combine(arguments.all());
        let data = self.data(&base);
        match name {
            "assign" | "assign_add" | "assign_sub"
                if matches!(base.shape, Shape::Parameters(_) | Shape::Plain) =>
            {
                self.mutate(receiver, &whole, site);
                return base;
            }
            "apply_gradients" => {
                whole.depend_on(&data);
                self.note_step();
                return self.computed("state", whole.operands, whole.models, site);
            }
            "backward" => {
                self.backward(&data, site);
                return Value::constant();
            }
            "strftime" | "isoformat" | "format" => return Value::constant(),
            "glob" | "rglob" | "iterdir" => {
                whole.depend_on(&data);
                return self.unordered(Environment::FileOrder, name, whole, range);
            }
            "imap_unordered" => {
                let elements = arguments
                    .positional
                    .get(1)
                    .cloned()
                    .unwrap_or_else(Value::constant);
                return self.unordered(Environment::Arrival, name, elements, range);
            }
            "sort" if matches!(base.shape, Shape::Unordered(..)) => {
                let sorted = without_order(base, self);
                self.assign(receiver, sorted, range);
                return Value::constant();
            }
            "sample" | "rsample" | "sample_n" if matches!(base.shape, Shape::Distribution) => {
                whole.depend_on(&data);
                let generator = self.global(Global::Torch);
                let mut drawn = self.draw(generator, Purpose::Values, whole.operands.clone(), site);
                drawn.models = whole.models;
                return drawn;
            }
            // Rows of a table of pandas, in an order of their own.
            "sample"
                if arguments.name("frac").is_some() && !is_given(&arguments, "random_state") =>
            {
                whole.depend_on(&data);
                let generator = self.global(Global::NumPy);
                return self.draw(generator, Purpose::Values, whole.operands, site);
            }
            "multinomial" | "bernoulli" => {
                whole.depend_on(&data);
                let generator = self
                    .generator_of(&arguments)
                    .unwrap_or_else(|| self.global(Global::Torch));
                let mut drawn = self.draw(generator, Purpose::Values, whole.operands.clone(), site);
                drawn.models = whole.models;
                return drawn;
            }
            "parameters" | "named_parameters" if !data.models.is_empty() => {
                let roots = self.roots_of(data.models);
                return Value {
                    shape: Shape::Parameters(roots.into()),
                    operands: Vec::new(),
                    models: data.models,
                };
            }
            "state_dict" if !data.models.is_empty() => {
                let roots = self.roots_of(data.models);
                return Value {
                    shape: Shape::State(roots.into()),
                    operands: Vec::new(),
                    models: data.models,
                };
            }
            "load_state_dict" if !data.models.is_empty() => {
                if let Some(state) = arguments.positional.first() {
                    for root in self.roots_of(data.models) {
                        self.put_back(root, state, site);
                    }
                }
                return Value::constant();
            }
            _ => {}
        }
        if library::in_place_draw(name) {
            let generator = self
                .generator_of(&arguments)
                .unwrap_or_else(|| self.global(Global::Torch));
            let drawn = self.draw(generator, Purpose::Values, whole.operands, site);
            self.mutate(receiver, &drawn, site);
            return base;
        }
        let unsteady = library::nondeterministic_method(name).filter(|_| self.mode_of_call());
        if MUTATORS.contains(&name) || (name.ends_with('_') && !name.ends_with("__")) {
            if let Some(operation) = unsteady {
                whole.operands = self.unsteady(operation, whole.operands, site);
            }
            self.mutate(receiver, &whole, site);
            if matches!(base.shape, Shape::Parameters(_)) {
                return base;
            }
        }
        whole.depend_on(&data);
        if let Some(operation) = unsteady {
            whole.operands = self.unsteady(operation, whole.operands, site);
        }
        whole
    }
}

/// Whether an argument is there, and not `None`.
fn is_given(arguments: &Arguments<'_>, name: &str) -> bool {
    arguments
        .name(name)
        .is_some_and(|it| !matches!(it.shape, Shape::None))
}

/// Adds to what a value is computed from, part by part.
pub(super) fn mark<'a>(value: &mut Value<'a>, operand: Operand, models: super::value::Models) {
    value.models = models;
    match &value.shape {
        Shape::Tuple(parts) => {
            let parts = parts.iter().map(|part| {
                let mut part = part.clone();
                let models = models.and(part.models);
                if part.is_data() || matches!(part.shape, Shape::Tuple(_)) {
                    mark(&mut part, operand, models);
                }
                part
            });
            value.shape = Shape::Tuple(parts.collect());
        }
        _ if value.is_data() => {
            value.shape = match value.shape {
                Shape::Distribution => Shape::Distribution,
                _ => Shape::Plain,
            };
            if !value.operands.contains(&operand) {
                value.operands.push(operand);
            }
        }
        _ => {}
    }
}
