//! Optimizers of Keras: compiling models with them, and their steps.

use std::rc::Rc;

use ruff_text_size::TextRange;

use super::Lift;
use super::object::Kind;
use super::value::{Arguments, Models, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site};

impl<'a> Lift<'a> {
    pub(super) fn new_keras_optimizer(
        &mut self,
        is_plain: bool,
        arguments: &Arguments<'a>,
        site: Site,
    ) -> ObjectId {
        // A wrapper is the optimizer that it wraps.
        let inner = arguments.get(0, "inner_optimizer").and_then(Value::as_object);
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
        let kind = Kind::Optimizer { models: Vec::new(), tensors: Vec::new() };
        self.make(kind, "optimizer", site)
    }

    pub(super) fn is_optimizer(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Optimizer { .. })
    }

    /// The optimizer that a model is compiled with.
    pub(super) fn optimizer_of(&self, model: ObjectId) -> Option<ObjectId> {
        let model = self.actual(model);
        let found = self.frameworks.optimizers.iter().find(|(id, _)| self.actual(**id) == model);
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
    pub(super) fn compile(&mut self, id: ObjectId, arguments: &Arguments<'a>, site: Site) {
        let given = arguments.get(0, "optimizer");
        let optimizer = match given.and_then(Value::as_object) {
            Some(optimizer) if self.is_optimizer(optimizer) => self.actual(optimizer),
            _ => {
                let optimizer = self.empty_optimizer(site);
                let cell = self.object(optimizer).cell;
                self.compute(cell, "new", Vec::new(), site);
                if given.and_then(Value::as_text).is_some_and(|it| it.eq_ignore_ascii_case("sgd")) {
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
                self.computed_gradients.insert(gradients);
            }
        }
        let actual = self.actual(optimizer);
        self.frameworks.built.insert(actual);
        if self.frameworks.forgetful.contains(&actual) {
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
                whole.operands.retain(|it| *it != Operand::Variable(self.cell(id)));
                self.note_step();
                let operands = whole.operands;
                let variables = self.computed("step", operands.clone(), whole.models, site);
                let memory = self.computed("moments", operands, Models::default(), site);
                return Some(Value::of(Shape::Tuple(Rc::new([variables, memory]))));
            }
            "build" => {
                let optimizer = self.actual(id);
                self.frameworks.built.insert(optimizer);
            }
            "finalize_variable_values" | "get_config" => {}
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
}
