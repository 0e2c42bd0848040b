//! Optimizers of Keras: compiling models with them, and their steps.

use super::{
    Args, Heap, Kind, Lift, Models, ObjectId, Operand, Shape, Site, Value, is_one_of, push_new,
};

impl<'a> Lift<'a> {
    pub(super) fn new_keras_optimizer(&mut self, is_plain: bool, args: &Args<'a>) -> ObjectId {
        let site = args.site;
        // A wrapper is the optimizer that it wraps.
        let inner = args.get(0, "inner_optimizer").and_then(Value::as_object);
        if let Some(inner) = inner.filter(|id| self.heap.is_optimizer(*id)) {
            return inner;
        }
        let id = self.empty_optimizer(site);
        let rest = self.heap.combine(args.all().filter(|it| it.is_data()));
        self.write_state(id, "new", rest.operands, site);
        let rate = args.get(0, "learning_rate");
        let has_momentum = args.may_be_true(1, "momentum");
        // A schedule counts the steps.
        if is_plain && !has_momentum && rate.is_none_or(Value::is_data) {
            self.libraries.stateless_optimizers.insert(id);
        }
        id
    }

    fn empty_optimizer(&mut self, site: Site) -> ObjectId {
        let kind = Kind::Optimizer { models: Vec::new(), tensors: Vec::new() };
        self.make(kind, "optimizer", site)
    }

    /// The optimizer that a model is compiled with.
    pub(super) fn optimizer_of(&self, model: ObjectId) -> Option<ObjectId> {
        let model = self.heap.actual(model);
        let found =
            self.libraries.optimizers.iter().find(|(id, _)| self.heap.actual(**id) == model);
        found.map(|(_, optimizer)| self.heap.actual(*optimizer))
    }

    /// The optimizer of a model, created on first use.
    pub(super) fn optimizer_for(&mut self, model: ObjectId, site: Site) -> ObjectId {
        let model = self.heap.actual(model);
        if let Some(optimizer) = self.optimizer_of(model) {
            return optimizer;
        }
        let optimizer = self.empty_optimizer(site);
        self.write_state(optimizer, "new", [], site);
        self.libraries.optimizers.insert(model, optimizer);
        optimizer
    }

    /// `model.compile(..)`.
    pub(super) fn compile(&mut self, id: ObjectId, args: &Args<'a>) {
        let site = args.site;
        let passed = args.get(0, "optimizer");
        let optimizer = match passed.and_then(Value::as_object) {
            Some(optimizer) if self.heap.is_optimizer(optimizer) => self.heap.actual(optimizer),
            _ => {
                let optimizer = self.empty_optimizer(site);
                self.write_state(optimizer, "new", [], site);
                if passed.and_then(Value::as_text).is_some_and(|it| it.eq_ignore_ascii_case("sgd"))
                {
                    self.libraries.stateless_optimizers.insert(optimizer);
                }
                optimizer
            }
        };
        let id = self.heap.actual(id);
        if let Some(before) = self.optimizer_of(id)
            && before != optimizer
        {
            // This discards optimizer state loaded earlier.
            let cell = self.heap.object(before).cell;
            self.program.note_rewrite(cell, site);
            self.heap.objects[before.0 as usize].same = Some(optimizer);
        }
        self.heap.object_mut(optimizer).name.get_or_insert_with(|| "optimizer".to_owned());
        self.libraries.optimizers.insert(id, optimizer);
        self.heap.set_field(id, "optimizer", &Value::object(optimizer));
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
            if let Some(gradients) = self.heap.gradients(*root) {
                let mut operands = vec![Operand::Variable(self.heap.object(*root).cell)];
                gradient.iter().for_each(|it| push_new(&mut operands, *it));
                self.program.compute(gradients, "gradient", operands, site);
                self.heap.computed_gradients.insert(gradients);
            }
        }
        let actual = self.heap.actual(optimizer);
        self.libraries.built.insert(actual);
        if self.libraries.stateless_optimizers.contains(&actual) {
            for root in roots {
                if let Some(gradients) = self.heap.gradients(*root) {
                    let cell = self.heap.object(*root).cell;
                    let operands = [cell, gradients].map(Operand::Variable);
                    self.program.compute(cell, "step", operands, site);
                    self.program.note_trained(cell);
                }
            }
            self.program.note_step(site);
            return;
        }
        if let Kind::Optimizer { models, .. } = &mut self.heap.object_mut(optimizer).kind {
            roots.iter().for_each(|root| push_new(models, *root));
        }
        self.optimizer_step(optimizer, &[], site);
    }

    /// Returns true if a method of an optimizer is one that only Keras has.
    pub(super) fn is_of_keras(&self, name: &str) -> bool {
        is_one_of(
            name,
            "apply_gradients apply minimize stateless_apply build get_weights set_weights get_config",
        )
    }

    /// Calls a method of a Keras optimizer; `None` for methods of PyTorch optimizers.
    pub(super) fn call_keras_optimizer(
        &mut self,
        id: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        match name {
            "apply_gradients" | "apply" => {
                let mut passed: Vec<Value<'a>> = Vec::new();
                for value in args.all() {
                    match &value.shape {
                        Shape::Zip(parts) => passed.extend(parts.iter().cloned()),
                        _ => passed.push(value.clone()),
                    }
                }
                let roots = self.heap.models_in(passed.iter());
                let gradient = self.heap.combine(passed.iter().take(1)).operands;
                self.step_variables(id, &passed, &gradient, site);
                self.keras_step(id, &roots, &gradient, site);
            }
            "minimize" => {
                let mut loss = args.first().cloned()?;
                if !loss.is_data() {
                    loss = self.call_value(loss, Args::none(site));
                }
                let roots = self.heap.models_in(args.all().chain([&loss]));
                let gradient = self.heap.data(&loss).operands;
                let variables: Vec<Value<'a>> = args.all().skip(1).cloned().collect();
                self.step_variables(id, &variables, &gradient, site);
                self.keras_step(id, &roots, &gradient, site);
            }
            "stateless_apply" => {
                let mut whole = self.heap.combine(args.all());
                whole.operands.retain(|it| *it != Operand::Variable(self.heap.cell(id)));
                self.program.note_step(site);
                let operands = whole.operands;
                let variables = self.program.computed("step", operands.clone(), whole.models, site);
                let memory = self.program.computed("moments", operands, Models::default(), site);
                return Some(Value::tuple([variables, memory]));
            }
            "build" => {
                let optimizer = self.heap.actual(id);
                self.libraries.built.insert(optimizer);
            }
            "get_config" => {}
            "get_weights" => return Some(self.state_of(id, site)),
            "set_weights" => {
                let state = args.first().cloned()?;
                self.restore(id, &state, site);
            }
            _ => return None,
        }
        Some(Value::constant())
    }

    /// Trains variables that belong to no model.
    fn step_variables(
        &mut self,
        optimizer: ObjectId,
        passed: &[Value<'a>],
        gradient: &[Operand],
        site: Site,
    ) {
        for value in passed {
            for id in self.heap.objects_in(value) {
                if matches!(self.heap.object(id).kind, Kind::State) {
                    let cell = self.heap.cell(id);
                    let mut operands = vec![Operand::Variable(cell)];
                    operands.extend(gradient);
                    operands.push(Operand::Variable(self.heap.cell(optimizer)));
                    self.program.compute(cell, "step", operands, site);
                    self.program.note_trained(cell);
                }
            }
        }
    }
}

impl<'a> Heap<'a> {
    pub(super) fn is_optimizer(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Optimizer { .. })
    }
}
