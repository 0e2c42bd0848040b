//! Calls of objects and of their methods.

use std::rc::Rc;

use super::Lift;
use super::heap::Heap;
use super::object::Kind;
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::calculus::Operand;

impl<'a> Lift<'a> {
    /// Calls an object: a model with its input, a transform with a sample.
    pub(super) fn call_object(&mut self, id: ObjectId, arguments: Arguments<'a>) -> Value<'a> {
        let site = arguments.site;
        match self.heap.object(id).kind.clone() {
            Kind::Module { layer, .. } => {
                let copied = self
                    .heap
                    .object(id)
                    .copy_of
                    .map(|original| (self.heap.root(original), self.heap.actual(id)));
                if let Some(pair) = copied {
                    self.heap.copies.push(pair);
                }
                let result = self.call_model(id, layer, arguments);
                if copied.is_some() {
                    self.heap.copies.pop();
                }
                result
            }
            Kind::Transform { layer, global, parts } => {
                let mut value = self.heap.combine(arguments.all());
                for part in parts {
                    let arguments = Arguments::of(vec![value], site);
                    let result = self.call_value(part, arguments);
                    value = self.heap.data(&result);
                }
                self.apply_layer(layer, global, true, value, site)
            }
            _ => match self
                .heap
                .object(id)
                .class
                .clone()
                .and_then(|class| self.class_attribute(&class, "__call__"))
            {
                Some(Value { shape: Shape::Function(function), .. }) => {
                    let bound = self.bind_method(&function, id);
                    self.enter(&bound, arguments)
                }
                _ => {
                    let mut whole = self.heap.combine(arguments.all());
                    whole.depend_on(&self.heap.data(&Value::object(id)));
                    whole
                }
            },
        }
    }

    /// Calls a method of a library's object.
    pub(super) fn call_object_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        match (name, arguments.first()) {
            ("state_dict", _) if !matches!(self.heap.object(id).kind, Kind::Plain) => {
                let root = self.heap.root(id);
                return Value {
                    shape: Shape::State(Rc::new([root])),
                    operands: Vec::new(),
                    models: self.heap.models_of(root),
                };
            }
            ("load_state_dict", Some(state)) => {
                let state = state.clone();
                self.restore(id, &state, site);
                return Value::constant();
            }
            _ => {}
        }
        if matches!(self.heap.object(id).kind, Kind::Container(_)) {
            return self.call_container_method(id, name, arguments);
        }
        match self.heap.object(id).kind.clone() {
            Kind::Module { .. } => self.call_model_method(id, name, arguments),
            Kind::Optimizer { models, .. } => match name {
                _ if self.is_of_keras(name) => {
                    self.call_keras_optimizer(id, name, &arguments).unwrap_or_default()
                }
                "step" => {
                    if let Some(closure) =
                        arguments.get(0, "closure").filter(|it| !it.is_data()).cloned()
                    {
                        self.call_value(closure, Arguments::of(Vec::new(), site));
                    }
                    self.optimizer_step(id, &[], site);
                    Value::constant()
                }
                "zero_grad" => {
                    self.clear_gradients(&models, site);
                    Value::constant()
                }
                "add_param_group" => {
                    let more = self.heap.models_in(arguments.all());
                    if let Kind::Optimizer { models, .. } = &mut self.heap.object_mut(id).kind {
                        models.extend(more);
                    }
                    Value::constant()
                }
                _ => self.heap.state_and(id, &arguments),
            },
            Kind::Scheduler { optimizers } => match name {
                "step" | "step_update" | "batch_step" => {
                    let whole = self.heap.combine(arguments.all());
                    self.write_cell(id, whole.operands, site);
                    let cell = self.heap.object(id).cell;
                    for optimizer in optimizers {
                        self.write_cell(optimizer, vec![Operand::Variable(cell)], site);
                    }
                    Value::constant()
                }
                _ => self.heap.state_and(id, &arguments),
            },
            Kind::Scaler => match name {
                "scale" => self.heap.state_and(id, &arguments),
                "step" => {
                    let cell = self.heap.object(id).cell;
                    if let Some(optimizer) = arguments.first().and_then(Value::as_object) {
                        self.optimizer_step(optimizer, &[Operand::Variable(cell)], site);
                    }
                    Value::constant()
                }
                "update" => {
                    let gradients: Vec<Operand> = self
                        .heap
                        .all_roots()
                        .into_iter()
                        .filter_map(|root| match self.heap.object(root).kind {
                            Kind::Module { gradients, .. } => Some(Operand::Variable(gradients)),
                            _ => None,
                        })
                        .collect();
                    self.write_cell(id, gradients, site);
                    Value::constant()
                }
                _ => self.heap.state_and(id, &arguments),
            },
            Kind::Generator(_) => self.call_generator_method(id, name, arguments),
            Kind::Container(_) => Value::constant(),
            Kind::Dataset { from, .. } => match name {
                "__getitem__" => self.element_of_object(
                    id,
                    Operand::Constant(
                        self.program
                            .functions
                            .get("count")
                            .copied()
                            .unwrap_or(crate::calculus::Symbol(0)),
                    ),
                    site,
                ),
                _ => {
                    let mut whole = self.heap.combine(arguments.all());
                    whole.depend_on(&self.heap.data(&from));
                    whole
                }
            },
            Kind::Framework(framework) => {
                self.call_framework_method(id, &framework, name, arguments)
            }
            Kind::State => {
                if let Some(generator) = self.heap.environments.get(&self.heap.actual(id)).copied()
                {
                    return self.call_environment_method(id, generator, name, &arguments);
                }
                if let Some(value) = self.call_variable_method(id, name, &arguments) {
                    return value;
                }
                let whole = self.heap.combine(arguments.all());
                if name == "reset" {
                    self.write_state(id, "new", Vec::new(), site);
                    return Value::constant();
                }
                if matches!(name, "step" | "update" | "push" | "add") {
                    self.write_cell(id, whole.operands, site);
                    return Value::constant();
                }
                self.heap.state_and(id, &arguments)
            }
            Kind::Plain | Kind::Loader(_) | Kind::Sampler { .. } | Kind::Transform { .. } => {
                if let Some(value) = self.call_flax_method(id, name, &arguments) {
                    return value;
                }
                match name {
                    "__len__" | "set_epoch" => Value::constant(),
                    _ => self.heap.combine(arguments.all()),
                }
            }
        }
    }
}

impl<'a> Heap<'a> {
    /// The state of an object and the arguments of a call, as data.
    pub(super) fn state_and(&mut self, id: ObjectId, arguments: &Arguments<'a>) -> Value<'a> {
        let mut whole = self.combine(arguments.all());
        let cell = Operand::Variable(self.cell(id));
        if !whole.operands.contains(&cell) {
            whole.operands.push(cell);
        }
        whole
    }
}
