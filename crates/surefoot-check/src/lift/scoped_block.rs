//! `with` blocks.

use super::{Effect, Lift, Operand, Shape, library};
use ruff_python_ast::{Expr, StmtWith};
use ruff_text_size::Ranged;
use std::rc::Rc;

impl<'a> Lift<'a> {
    pub(super) fn run_with(&mut self, with: &'a StmtWith) {
        let mut quiet = 0;
        let mut forked = None;
        for item in &with.items {
            let value = self.eval(&item.context_expr);
            if self.is_no_grad(&item.context_expr) {
                quiet += 1;
            }
            if self.is_fork(&item.context_expr) {
                let generator = self.global(library::Global::Torch);
                let site = self.site(item.range());
                let kept = self.program.variable("kept");
                let cell = self.heap.object(generator).cell;
                self.program.compute(kept, "copy", [Operand::Variable(cell)], site);
                forked = Some((cell, kept, site));
            }
            if let Some(target) = &item.optional_vars {
                let site = self.site(item.range());
                self.assign(target, value, site);
            }
        }
        self.execution.no_grad += quiet;
        if quiet > 0 {
            self.execution.no_grad_calls.push(self.execution.calls.len());
        }
        self.run_block(&with.body);
        self.execution.no_grad -= quiet;
        if quiet > 0 {
            self.execution.no_grad_calls.pop();
        }
        if let Some((cell, kept, site)) = forked {
            self.program.compute(cell, "copy", [Operand::Variable(kept)], site);
        }
    }

    fn callee_name(&mut self, expression: &'a Expr) -> Option<Rc<str>> {
        let Expr::Call(call) = expression else {
            return None;
        };
        match self.eval(&call.func).shape {
            Shape::Library(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn is_no_grad(&mut self, expression: &'a Expr) -> bool {
        self.callee_name(expression)
            .is_some_and(|name| library::effect_of(&name) == Some(Effect::NoGrad))
    }

    fn is_fork(&mut self, expression: &'a Expr) -> bool {
        self.callee_name(expression).is_some_and(|name| &*name == "torch.random.fork_rng")
    }
}
