//! Writes to objects with state.

use super::{Heap, Kind, Lift, ObjectId, Operand, Shape, Site, Slot, Value, Variable, push_new};
use ruff_python_ast::Expr;
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Makes a value a parameter or a buffer of a model.
    pub(super) fn register(&mut self, id: ObjectId, name: &'a str, value: &Value<'a>, site: Site) {
        let cell = self.heap.cell(id);
        let own = [Operand::Variable(cell)].into_iter();
        let operands = own.chain(self.heap.data(value).operands);
        self.program.compute(cell, "parameter", operands, site);
        let root = self.heap.root(id);
        for id in [id, root] {
            if let Kind::Module { layer, .. } = &mut self.heap.object_mut(id).kind {
                layer.has_parameters = true;
            }
        }
        let id = self.heap.actual(id);
        let parameter = Value::of(Shape::Parameters(Rc::new([id])));
        let slot = Slot::of(parameter.with_models(self.heap.models_of(id)));
        self.heap.object_mut(id).fields.insert(name, slot);
    }

    /// Writes the parameters of models.
    pub(super) fn write_models(&mut self, ids: &[ObjectId], value: &Value<'a>, site: Site) {
        let operands = self.heap.data(value).operands;
        for id in ids {
            let cell = self.heap.cell(*id);
            let all = [Operand::Variable(cell)].into_iter().chain(operands.iter().copied());
            self.program.compute(cell, "write", all, site);
            if self.program.loops.is_empty() {
                // Slices, for instance, are restored with their source.
                if !operands.contains(&Operand::Variable(cell)) {
                    self.program.note_rewrite(cell, site);
                }
            } else if self.heap.holds_gradients(&operands) {
                self.program.note_trained(cell);
                self.program.note_step(site);
            } else if operands.iter().any(
                |it| matches!(it, Operand::Variable(it) if *it != cell && self.heap.cells.contains(it)),
            ) {
                // An average of another model.
                self.program.note_trained(cell);
            }
        }
    }

    /// `cell := f(cell, operands)` for the state of an object.
    pub(super) fn write_cell(
        &mut self,
        id: ObjectId,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) {
        if matches!(
            self.heap.object(id).kind,
            Kind::Plain | Kind::Loader(_) | Kind::Transform { .. } | Kind::Framework(_)
        ) {
            return;
        }
        let cell = self.heap.cell(id);
        let mut all = vec![Operand::Variable(cell)];
        all.extend(operands.into_iter().filter(|operand| *operand != Operand::Variable(cell)));
        if self.heap.container(id).is_none() {
            all.extend(self.program.open_orders());
        }
        self.program.compute(cell, "write", all, site);
    }

    /// Writes to the target of an expression.
    pub(super) fn mutate(&mut self, expression: &'a Expr, by: &Value<'a>, site: Site) {
        let value = self.eval_quietly(expression);
        let operands = self.heap.data(by).operands;
        match value.shape {
            Shape::Object(id) => self.write_cell(id, operands, site),
            Shape::Parameters(ids) => self.write_models(&ids, by, site),
            Shape::Plain | Shape::Unordered(..) | Shape::None | Shape::Int(_) => {
                match (expression, value.operands.as_slice()) {
                    (Expr::Name(_) | Expr::Attribute(_), [Operand::Variable(variable)])
                        if !self.heap.is_cell(*variable) =>
                    {
                        let mut all = vec![Operand::Variable(*variable)];
                        operands.into_iter().for_each(|it| push_new(&mut all, it));
                        all.extend(self.program.open_orders());
                        self.program.compute(*variable, "changed", all, site);
                    }
                    (Expr::Subscript(it), _) => self.mutate(&it.value, by, site),
                    (Expr::Attribute(it), _) => self.mutate(&it.value, by, site),
                    (Expr::Call(it), _) => {
                        if let Expr::Attribute(it) = &*it.func {
                            self.mutate(&it.value, by, site);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl<'a> Heap<'a> {
    /// Returns true if gradients are among the operands.
    fn holds_gradients(&self, operands: &[Operand]) -> bool {
        let gradients = self.models.iter().filter_map(|id| self.gradients(*id));
        gradients.map(Operand::Variable).any(|it| operands.contains(&it))
    }

    /// Returns true if a variable is the state of an object.
    fn is_cell(&self, variable: Variable) -> bool {
        self.cells.contains(&variable)
    }
}
