//! What is written to things with a state.

use super::Lift;
use super::object::Kind;
use super::value::{ObjectId, Shape, Value};
use crate::calculus::{Operand, Site, Variable};
use ruff_python_ast::Expr;
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Makes a value a parameter or a buffer of a model.
    pub(super) fn register(&mut self, id: ObjectId, name: &'a str, value: &Value<'a>, site: Site) {
        let cell = self.cell(id);
        let mut operands = vec![Operand::Variable(cell)];
        operands.extend(self.data(value).operands);
        self.compute(cell, "parameter", operands, site);
        let root = self.root(id);
        for id in [id, root] {
            if let Kind::Module { layer, .. } = &mut self.object_mut(id).kind {
                layer.has_parameters = true;
            }
        }
        let id = self.actual(id);
        let slot = super::scope::Slot {
            shape: Shape::Parameters(Rc::new([id])),
            variable: None,
            models: self.models_of(id),
        };
        self.object_mut(id).fields.insert(name, slot);
    }

    /// Writes the parameters of models.
    pub(super) fn write_models(&mut self, ids: &[ObjectId], value: &Value<'a>, site: Site) {
        let operands = self.data(value).operands;
        for id in ids {
            let cell = self.cell(*id);
            let mut all = vec![Operand::Variable(cell)];
            all.extend(operands.iter().copied());
            self.compute(cell, "write", all, site);
            if self.loops.is_empty() {
                // What is cut out of them, say, was restored with them.
                if !operands.contains(&Operand::Variable(cell)) {
                    self.note_rewrite(cell, site);
                }
            } else if self.holds_gradients(&operands) {
                self.note_trained(cell);
                self.note_step();
            } else if operands.iter().any(
                |it| matches!(it, Operand::Variable(it) if *it != cell && self.cells.contains(it)),
            ) {
                // An average of another model.
                self.note_trained(cell);
            }
        }
    }

    /// Whether gradients are among the operands.
    pub(super) fn holds_gradients(&self, operands: &[Operand]) -> bool {
        self.models.iter().any(|id| match self.object(*id).kind {
            Kind::Module { gradients, .. } => operands.contains(&Operand::Variable(gradients)),
            _ => false,
        })
    }

    /// `cell := f(cell, operands)` for the state of an object.
    pub(super) fn write_cell(&mut self, id: ObjectId, operands: Vec<Operand>, site: Site) {
        if matches!(
            self.object(id).kind,
            Kind::Plain | Kind::Loader(_) | Kind::Transform { .. } | Kind::Framework(_)
        ) {
            return;
        }
        let cell = self.cell(id);
        let mut all = vec![Operand::Variable(cell)];
        all.extend(operands.into_iter().filter(|operand| *operand != Operand::Variable(cell)));
        self.compute(cell, "write", all, site);
    }

    /// Changes whatever an expression stands for.
    pub(super) fn mutate(&mut self, expression: &'a Expr, by: &Value<'a>, site: Site) {
        let value = self.eval_quietly(expression);
        let operands = self.data(by).operands;
        match value.shape {
            Shape::Object(id) => self.write_cell(id, operands, site),
            Shape::Parameters(ids) => self.write_models(&ids, by, site),
            Shape::Plain | Shape::Unordered(..) | Shape::None | Shape::Int(_) => {
                match (expression, value.operands.as_slice()) {
                    (Expr::Name(_) | Expr::Attribute(_), [Operand::Variable(variable)])
                        if !self.is_cell(*variable) =>
                    {
                        let mut all = vec![Operand::Variable(*variable)];
                        all.extend(
                            operands.into_iter().filter(|it| *it != Operand::Variable(*variable)),
                        );
                        self.compute(*variable, "changed", all, site);
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

    /// Whether a variable is the state of an object.
    pub(super) fn is_cell(&self, variable: Variable) -> bool {
        self.cells.contains(&variable)
    }
}
