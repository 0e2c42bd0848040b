//! Branches of the execution and their join.

use std::collections::HashMap;

use super::{
    Branch, BranchId, Heap, Kind, Lift, ObjectId, Operand, Owner, Sampler, Shape, Slot, Statement,
    push_new,
};
use ruff_python_ast::{Expr, UnaryOp};

impl<'a> Lift<'a> {
    /// Runs the sides of a conditional from the same state and returns their blocks. The first side runs if
    /// `test` holds. Afterwards, names have the join of their values.
    pub(super) fn branch(
        &mut self,
        test: Option<&Expr>,
        sides: Vec<&mut dyn FnMut(&mut Lift<'a>)>,
    ) -> Vec<Vec<Statement>> {
        let first_new = self.heap.objects.len();
        let mut blocks = Vec::new();
        let mut keys: Vec<(Owner, &'a str)> = Vec::new();
        let mut known = HashMap::new();
        let mut outcomes: Vec<HashMap<usize, Option<Slot<'a>>>> = Vec::new();
        let around = self.program.branch;
        let conditional = u32::try_from(self.program.facts.branches.len()).unwrap_or(u32::MAX);
        let tested = test.map(|test| match test {
            Expr::UnaryOp(it) if it.op == UnaryOp::Not => (self.shown(&it.operand), false),
            _ => (self.shown(test), true),
        });
        for (index, side) in sides.into_iter().enumerate() {
            let test = tested.clone().map(|(text, holds)| (text, holds == (index == 0)));
            let branches = &mut self.program.facts.branches;
            self.program.branch = Some(BranchId(u32::try_from(branches.len()).unwrap_or(u32::MAX)));
            branches.push(Branch { parent: around, conditional, test });
            let mark = self.scope.changes.len();
            self.scope.marks.push((self.scope.frames.len(), self.heap.objects.len()));
            self.program.blocks.push(Vec::new());
            side(self);
            blocks.push(self.program.blocks.pop().unwrap_or_default());
            self.scope.marks.pop();
            self.program.branch = around;
            let mut after = HashMap::new();
            for change in self.scope.changes.split_off(mark).into_iter().rev() {
                let key = *known.entry((change.owner, change.name)).or_insert_with(|| {
                    keys.push((change.owner, change.name));
                    keys.len() - 1
                });
                let now = self.slot(change.owner, change.name).cloned();
                after.entry(key).or_insert(now);
                self.replace(change.owner, change.name, change.before);
            }
            outcomes.push(after);
        }
        for (key, (owner, name)) in keys.into_iter().enumerate() {
            let mut joined: Option<Option<Slot<'a>>> = None;
            for (index, outcome) in outcomes.iter().enumerate() {
                let after = match outcome.get(&key) {
                    Some(slot) => slot.clone(),
                    None => self.slot(owner, name).cloned(),
                };
                joined = Some(match joined {
                    None => after,
                    Some(other) => self.join(other, after, first_new, blocks.get_mut(index)),
                });
            }
            self.set(owner, name, joined.flatten());
        }
        blocks
    }

    /// Joins a slot after two branches. Objects of the same kind are merged.
    fn join(
        &mut self,
        one: Option<Slot<'a>>,
        other: Option<Slot<'a>>,
        first_new: usize,
        block: Option<&mut Vec<Statement>>,
    ) -> Option<Slot<'a>> {
        let (Some(one), Some(other)) = (one.clone(), other.clone()) else {
            return one.or(other);
        };
        let models = one.models.and(other.models);
        let variable = one.variable.or(other.variable);
        let shape = match (one.shape, other.shape) {
            (Shape::Object(a), Shape::Object(b)) => {
                let (a, b) = (self.heap.actual(a), self.heap.actual(b));
                let is_new = |id: ObjectId| id.0 as usize >= first_new;
                let may_stand_for = |id| {
                    is_new(id) || (self.program.loops.is_empty() && !self.heap.is_optimized(id))
                };
                if a != b && may_stand_for(a) && may_stand_for(b) {
                    self.unite(a, b, block);
                }
                Shape::Object(a)
            }
            (Shape::Object(a), _) | (_, Shape::Object(a)) => Shape::Object(a),
            (Shape::Bool(a), Shape::Bool(b)) if a == b => Shape::Bool(a),
            (Shape::Int(a), Shape::Int(b)) if a == b => Shape::Int(a),
            (Shape::Text(a), Shape::Text(b)) if a == b => Shape::Text(a),
            (Shape::None, Shape::None) => Shape::None,
            (Shape::Key, Shape::Key) => Shape::Key,
            (Shape::None, loaded @ Shape::Loaded(..))
            | (loaded @ Shape::Loaded(..), Shape::None) => loaded,
            (Shape::None | Shape::Loaded(..), shape) | (shape, Shape::None | Shape::Loaded(..)) => {
                shape
            }
            (Shape::Unordered(what, order), _) | (_, Shape::Unordered(what, order)) => {
                Shape::Unordered(what, order)
            }
            (shape, _) if shape.is_callable() || matches!(shape, Shape::Tuple(_)) => shape,
            (_, shape) if shape.is_callable() => shape,
            (shape @ Shape::Unknown(_), _) | (_, shape @ Shape::Unknown(_)) => shape,
            _ => Shape::Plain,
        };
        Some(Slot { shape, variable, models })
    }

    /// Merges two objects, one created in each of two branches.
    fn unite(&mut self, a: ObjectId, b: ObjectId, block: Option<&mut Vec<Statement>>) {
        let (kept, gone) = (self.heap.object(a).clone(), self.heap.object(b).clone());
        if std::mem::discriminant(&kept.kind) != std::mem::discriminant(&gone.kind)
            || kept.owner.is_some() != gone.owner.is_some()
        {
            return;
        }
        let mut copies = vec![(kept.cell, Some(gone.cell))];
        match (&mut self.heap.object_mut(a).kind, &gone.kind) {
            (
                Kind::Module { gradients, layer, .. },
                Kind::Module { gradients: others, layer: other, .. },
            ) => {
                *layer = layer.and(*other);
                let gradients = *gradients;
                let is_computed = self.heap.computed_gradients.contains(others);
                copies.push((gradients, is_computed.then_some(*others)));
            }
            (
                Kind::Optimizer { models, tensors },
                Kind::Optimizer { models: others, tensors: other_tensors },
            ) => {
                others.iter().for_each(|it| push_new(models, *it));
                tensors.extend(other_tensors);
            }
            (Kind::Scheduler { optimizers }, Kind::Scheduler { optimizers: others }) => {
                optimizers.extend(others)
            }
            (Kind::Loader(one), Kind::Loader(other)) => {
                // Either side may run.
                let mut both = (**one).clone();
                both.shuffles |= other.shuffles;
                both.has_workers |= other.has_workers;
                both.init = both.init.or_else(|| other.init.clone());
                *one = std::rc::Rc::new(both);
            }
            (
                Kind::Dataset { transforms, parts, .. },
                Kind::Dataset { transforms: other_transforms, parts: other_parts, .. },
            ) => {
                transforms.extend(other_transforms.iter().cloned());
                parts.extend(other_parts);
            }
            (
                Kind::Transform { layer, parts, .. },
                Kind::Transform { layer: other, parts: other_parts, .. },
            ) => {
                *layer = layer.and(*other);
                parts.extend(other_parts.iter().cloned());
            }
            (Kind::Sampler { order, .. }, Kind::Sampler { order: other @ Sampler::Random, .. }) => {
                *order = *other;
            }
            (Kind::Container(one), Kind::Container(other)) => {
                one.is_closed = false;
                let things = other.elements.iter().filter(|it| !it.is_data());
                one.elements.extend(things.cloned());
            }
            _ => {}
        }
        if let Some(block) = block {
            for (target, from) in copies {
                let function = self.program.function(if from.is_some() { "copy" } else { "none" });
                let operands = from.map(Operand::Variable).into_iter().collect();
                block.push(Statement::Compute { target, function, operands, site: gone.site });
            }
        }
        self.heap.objects[b.0 as usize].same = Some(a);
    }
}

impl<'a> Heap<'a> {
    /// Returns true if an optimizer has this model.
    fn is_optimized(&self, id: ObjectId) -> bool {
        self.objects.iter().any(|object| match &object.kind {
            Kind::Optimizer { models, .. } => models.iter().any(|model| self.actual(*model) == id),
            _ => false,
        })
    }
}
