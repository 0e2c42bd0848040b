//! Calls of objects and of their methods.

use std::rc::Rc;

use super::{Args, Heap, Kind, Lift, ObjectId, Operand, Shape, Value, push_new};

impl<'a> Lift<'a> {
    /// Calls an object: a model with its input, a transform with a sample.
    pub(super) fn call_object(&mut self, id: ObjectId, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        match self.heap.object(id).kind.clone() {
            Kind::Module { layer, .. } => {
                let original = self.heap.object(id).copy_of;
                let copied = original.map(|it| (self.heap.root(it), self.heap.actual(id)));
                self.heap.copies.extend(copied);
                let result = self.call_model(id, layer, args);
                if copied.is_some() {
                    self.heap.copies.pop();
                }
                result
            }
            Kind::Transform { layer, global, parts } => {
                let mut value = self.heap.combine(args.all());
                for part in parts {
                    value = self.apply(part, value, site);
                }
                self.apply_layer(layer, None, global, true, value, site)
            }
            _ => match self.hook(id, "__call__") {
                Some(function) => self.enter(&function, args),
                None => self.heap.combine_with(&args, &Value::object(id)),
            },
        }
    }

    /// Calls a method of a library's object.
    pub(super) fn call_object_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match (name, args.first()) {
            ("state_dict", _) if !matches!(self.heap.object(id).kind, Kind::Plain) => {
                let root = self.heap.root(id);
                let models = self.heap.models_of(root);
                return Value::of(Shape::State(Rc::new([root]))).with_models(models);
            }
            ("load_state_dict", Some(state)) => {
                let state = state.clone();
                self.restore(id, &state, site);
                return Value::constant();
            }
            _ => {}
        }
        if self.heap.container(id).is_some() {
            return self.call_container_method(id, name, args);
        }
        match self.heap.object(id).kind.clone() {
            Kind::Module { .. } => self.call_model_method(id, name, args),
            Kind::Optimizer { models, .. } => match name {
                _ if self.is_of_keras(name) => {
                    self.call_keras_optimizer(id, name, &args).unwrap_or_default()
                }
                "step" => {
                    let closure = args.get(0, "closure").filter(|it| !it.is_data());
                    if let Some(closure) = closure {
                        self.call_with(closure.clone(), Vec::new(), site);
                    }
                    self.optimizer_step(id, &[], site);
                    Value::constant()
                }
                "zero_grad" => {
                    self.clear_gradients(&models, site);
                    Value::constant()
                }
                "add_param_group" => {
                    let more = self.heap.models_in(args.all());
                    if let Kind::Optimizer { models, .. } = &mut self.heap.object_mut(id).kind {
                        models.extend(more);
                    }
                    Value::constant()
                }
                _ => self.heap.state_and(id, &args),
            },
            Kind::Scheduler { optimizers } => match name {
                "step" | "step_update" | "batch_step" => {
                    let whole = self.heap.combine(args.all());
                    self.write_cell(id, whole.operands, site);
                    let rate = Operand::Variable(self.heap.object(id).cell);
                    for optimizer in optimizers {
                        self.write_cell(optimizer, [rate], site);
                    }
                    Value::constant()
                }
                _ => self.heap.state_and(id, &args),
            },
            Kind::Scaler => match name {
                "scale" => self.heap.state_and(id, &args),
                "step" => {
                    let cell = self.heap.object(id).cell;
                    if let Some(optimizer) = args.first().and_then(Value::as_object) {
                        self.optimizer_step(optimizer, &[Operand::Variable(cell)], site);
                    }
                    Value::constant()
                }
                "update" => {
                    let roots = self.heap.all_roots().into_iter();
                    let gradients = roots.filter_map(|root| self.heap.gradients(root));
                    let gradients: Vec<Operand> = gradients.map(Operand::Variable).collect();
                    self.write_cell(id, gradients, site);
                    Value::constant()
                }
                _ => self.heap.state_and(id, &args),
            },
            Kind::Generator(_) => self.call_generator_method(id, name, args),
            Kind::Container(_) => Value::constant(),
            Kind::Dataset { .. } if name == "__getitem__" => {
                let by = Operand::Constant(self.program.function("count"));
                self.element_of_object(id, by, site)
            }
            Kind::Dataset { from, .. } => self.heap.combine_with(&args, &from),
            Kind::Framework(framework) => self.call_framework_method(id, &framework, name, args),
            Kind::State => {
                if let Some(generator) = self.heap.environments.get(&self.heap.actual(id)).copied()
                {
                    return self.call_environment_method(id, generator, name, &args);
                }
                if let Some(value) = self.call_variable_method(id, name, &args) {
                    return value;
                }
                if name == "reset" {
                    self.write_state(id, "new", [], site);
                    return Value::constant();
                }
                if matches!(name, "step" | "update" | "push" | "add") {
                    let whole = self.heap.combine(args.all());
                    self.write_cell(id, whole.operands, site);
                    return Value::constant();
                }
                self.heap.state_and(id, &args)
            }
            Kind::Plain | Kind::Loader(_) | Kind::Sampler { .. } | Kind::Transform { .. } => {
                if let Some(value) = self.call_flax_method(id, name, &args) {
                    return value;
                }
                match name {
                    "__len__" | "set_epoch" => Value::constant(),
                    _ => self.heap.combine(args.all()),
                }
            }
        }
    }
}

impl<'a> Heap<'a> {
    /// The state of an object and the arguments of a call, as data.
    pub(super) fn state_and(&self, id: ObjectId, args: &Args<'a>) -> Value<'a> {
        let mut whole = self.combine(args.all());
        push_new(&mut whole.operands, self.state(id));
        whole
    }
}
