//! Optimizers and their schedules.

use super::{Args, Kind, Lift, ObjectId, Operand, Shape, Site, Value, Variable};

impl<'a> Lift<'a> {
    /// An optimizer of the parameters that are its first argument.
    pub(super) fn make_optimizer(&mut self, args: &Args<'a>) -> ObjectId {
        let site = args.site;
        let passed = args.get(0, "params").cloned();
        let mut models = self.heap.models_in(passed.iter());
        let parts = passed.as_ref().map_or_else(Vec::new, |it| self.heap.parts_of(it));
        for value in passed.iter().chain(&parts) {
            if let Shape::Unknown(id) = value.shape {
                models.push(self.make_unknown_a_model(id, value.operands.clone()));
            }
        }
        let mut tensors: Vec<Variable> = Vec::new();
        for value in passed.iter().chain(&parts).filter(|_| models.is_empty()) {
            if let [Operand::Variable(variable)] = value.operands[..] {
                tensors.push(variable);
            }
        }
        let id = self.make(Kind::Optimizer { models, tensors }, "optimizer", site);
        let rest = self.heap.combine(args.all().filter(|it| it.is_data()));
        self.write_state(id, "new", rest.operands, site);
        id
    }

    /// The objects in a value, with unknown optimizers among them.
    pub(super) fn optimizers_in(&mut self, value: &Value<'a>, site: Site) -> Vec<ObjectId> {
        let mut parts = self.heap.parts_of(value);
        parts.push(value.clone());
        for part in &parts {
            self.optimizer_in(part, site);
        }
        parts.retain(|it| matches!(it.shape, Shape::Unknown(_)));
        let mut all = self.heap.objects_in(value);
        all.extend(parts.iter().filter_map(|it| self.optimizer_in(it, site)));
        all
    }

    /// The object in a value. An unknown one made from parameters is an optimizer.
    fn optimizer_in(&mut self, value: &Value<'a>, site: Site) -> Option<ObjectId> {
        let Shape::Unknown(id) = value.shape else {
            return value.as_object();
        };
        let unknown = &self.heap.unknown_objects[id.0];
        if unknown.object.is_none() && unknown.takes_parameters {
            let kind = Kind::Optimizer { models: unknown.received.clone(), tensors: Vec::new() };
            let object = self.make(kind, "optimizer", site);
            let cell = self.heap.object(object).cell;
            self.program.compute_first(cell, "new", site);
            self.heap.unknown_objects[id.0].object = Some(object);
        }
        self.unwrapped(id)
    }

    pub(super) fn make_scheduler(&mut self, args: &Args<'a>) -> ObjectId {
        let site = args.site;
        let mut optimizers = Vec::new();
        for value in args.all() {
            let Some(id) = self.optimizer_in(value, site) else {
                continue;
            };
            match &self.heap.object(id).kind {
                Kind::Optimizer { .. } => optimizers.push(id),
                Kind::Scheduler { optimizers: others } => optimizers.extend(others.iter().copied()),
                _ => {}
            }
        }
        let id = self.make(Kind::Scheduler { optimizers }, "scheduler", site);
        let rest = self.heap.combine(args.all().filter(|it| it.is_data()));
        self.write_state(id, "new", rest.operands, site);
        id
    }
}
