//! `if`, `try` and `match` statements.

use super::{Lift, Operand, Shape, Site, Statement, Value};
use ruff_python_ast::{
    CmpOp, ElifElseClause, ExceptHandler, Expr, ExprCompare, Stmt, StmtIf, StmtMatch, StmtTry,
};
use ruff_text_size::Ranged;

impl<'a> Lift<'a> {
    /// Executes an `if` statement. If one side leaves the block, the rest of the block runs in the other side;
    /// returns true in that case.
    pub(super) fn run_if(&mut self, branch: &'a StmtIf, rest: &'a [Stmt]) -> bool {
        self.run_branch(Some(&branch.test), &branch.body, &branch.elif_else_clauses, rest)
    }

    fn run_branch(
        &mut self,
        test: Option<&'a Expr>,
        body: &'a [Stmt],
        clauses: &'a [ElifElseClause],
        rest: &'a [Stmt],
    ) -> bool {
        let Some(test) = test else {
            self.run_block(body);
            return false;
        };
        let value = self.eval(test);
        if let Some(holds) = self.certainty(test, &value) {
            if holds {
                self.run_block(body);
                return leaves(body);
            }
            let Some((clause, others)) = clauses.split_first() else {
                return false;
            };
            return self.run_branch(clause.test.as_ref(), &clause.body, others, rest);
        }
        let site = self.site(test.range());
        let operands = self.heap.data(&value).operands;
        let body_leaves = leaves(body);
        let others_leave = clauses.last().is_some_and(|it| it.test.is_none())
            && clauses.iter().all(|it| leaves(&it.body));
        let rest_of_body: &'a [Stmt] = if others_leave && !body_leaves { rest } else { &[] };
        let rest_of_others: &'a [Stmt] = if body_leaves { rest } else { &[] };
        let blocks = self.branch(
            Some(test),
            vec![
                &mut |lift| {
                    lift.run_block(body);
                    lift.run_block(rest_of_body);
                },
                &mut |lift| {
                    let done = match clauses.split_first() {
                        Some((clause, others)) => {
                            let test = clause.test.as_ref();
                            lift.run_branch(test, &clause.body, others, rest_of_others)
                        }
                        None => false,
                    };
                    if !done {
                        lift.run_block(rest_of_others);
                    }
                },
            ],
        );
        self.emit_if("if", operands, blocks, site);
        body_leaves || others_leave
    }

    /// Value of a condition, if it is the same in every execution.
    pub(super) fn certainty(&self, test: &Expr, value: &Value<'a>) -> Option<bool> {
        match test {
            Expr::Compare(compare) if matches!(&*compare.left, Expr::Name(name) if name.id == "__name__") =>
            {
                let name = self.look_up("__name__");
                Some(matches!(name.map(|it| it.shape), Some(Shape::Text("__main__"))))
            }
            // Flags as text: `build(split="train")`.
            Expr::Compare(compare) => self.compared(compare),
            Expr::BooleanLiteral(it) => Some(it.value),
            Expr::NumberLiteral(_) => match value.shape {
                Shape::Int(number) => Some(number != 0),
                _ => None,
            },
            Expr::Name(name) if name.id == "TYPE_CHECKING" => Some(false),
            // Pipelines are built depending on flags.
            Expr::Name(name) if is_mode(name.id.as_str()) => match value.shape {
                Shape::Bool(holds) => Some(holds),
                _ => None,
            },
            // Data sets store the flags they are created with.
            Expr::Attribute(_) if self.libraries.sampling > 0 => match value.shape {
                Shape::Bool(holds) => Some(holds),
                Shape::None => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Compares a parameter with a text, if both are known.
    fn compared(&self, compare: &ExprCompare) -> Option<bool> {
        let (Expr::Name(name), [operator], [Expr::StringLiteral(text)]) =
            (&*compare.left, &compare.ops[..], &compare.comparators[..])
        else {
            return None;
        };
        let call = self.execution.calls.last()?;
        let slot = self.scope.frame(call.frame).slots.get(name.id.as_str())?;
        let Shape::Text(value) = slot.shape else {
            return None;
        };
        match operator {
            CmpOp::Eq => Some(text.value.to_str() == value),
            CmpOp::NotEq => Some(text.value.to_str() != value),
            _ => None,
        }
    }

    pub(super) fn run_try(&mut self, it: &'a StmtTry) {
        self.execution.tries += 1;
        self.run_block(&it.body);
        self.execution.tries -= 1;
        for handler in &it.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            let site = self.site(handler.range());
            self.run_optionally(&handler.body, "except", Vec::new(), site);
        }
        self.run_block(&it.orelse);
        self.run_block(&it.finalbody);
    }

    pub(super) fn run_match(&mut self, it: &'a StmtMatch) {
        let subject = self.eval(&it.subject);
        let operands = self.heap.data(&subject).operands;
        for case in &it.cases {
            let site = self.site(case.pattern.range());
            self.run_optionally(&case.body, "case", operands.clone(), site);
        }
    }

    /// Executes a block that may be skipped.
    fn run_optionally(
        &mut self,
        body: &'a [Stmt],
        condition: &str,
        operands: Vec<Operand>,
        site: Site,
    ) {
        let blocks = self.branch(None, vec![&mut |lift| lift.run_block(body), &mut |_| {}]);
        self.emit_if(condition, operands, blocks, site);
    }

    /// Emits a conditional with these two blocks.
    fn emit_if(
        &mut self,
        condition: &str,
        operands: Vec<Operand>,
        mut blocks: Vec<Vec<Statement>>,
        site: Site,
    ) {
        let otherwise = blocks.pop().unwrap_or_default();
        let then = blocks.pop().unwrap_or_default();
        let condition = self.program.symbol(condition);
        self.program.emit(Statement::If { condition, operands, then, otherwise, site });
    }
}

/// Returns true if a block certainly leaves the function or the iteration of the loop.
pub(super) fn leaves(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Return(_) | Stmt::Break(_) | Stmt::Continue(_)) => true,
        Some(Stmt::If(it)) => {
            let clauses = &it.elif_else_clauses;
            clauses.last().is_some_and(|clause| clause.test.is_none())
                && leaves(&it.body)
                && clauses.iter().all(|clause| leaves(&clause.body))
        }
        Some(Stmt::With(it)) => leaves(&it.body),
        _ => false,
    }
}

/// Returns true for names of flags that select training or evaluation.
fn is_mode(name: &str) -> bool {
    matches!(
        name,
        "training" | "train" | "is_training" | "is_train" | "shuffle" | "shuffled" | "augment"
    )
}
