//! Which code that nobody calls is worth entering: that which trains or saves.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt};

/// Methods that are called where something is trained or saved.
const WORDS: [&str; 9] = [
    "apply_gradients",
    "apply_updates",
    "backward",
    "fit",
    "minimize",
    "step",
    "train_on_batch",
    "train_step",
    "value_and_grad",
];

/// Whether statements call something that trains.
pub(super) fn trains(body: &[Stmt]) -> bool {
    let mut found = Trains(false);
    found.visit_body(body);
    found.0
}

struct Trains(bool);

impl<'a> Visitor<'a> for Trains {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.0 {
            return;
        }
        if let Expr::Call(call) = expression
            && let Expr::Attribute(it) = &*call.func
            && WORDS.contains(&it.attr.as_str())
        {
            self.0 = true;
            return;
        }
        walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_steps_an_optimizer_trains() {
        let body = |text: &str| ruff_python_parser::parse_module(text).unwrap().into_syntax().body;
        assert!(trains(&body("def f(o):\n    for x in y:\n        o.step()\n")));
        assert!(!trains(&body("def f(x):\n    return x.sum()\n")));
    }
}
