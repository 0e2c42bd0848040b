//! Searches in syntax trees.

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt, statement_visitor};
use statement_visitor::StatementVisitor;

/// Visits the expressions in statements. The parts of an expression are visited if `visit` returns true.
pub(crate) fn each_expr<'a>(body: &'a [Stmt], visit: impl FnMut(&'a Expr) -> bool) {
    Exprs(visit).visit_body(body);
}

/// Visits all statements, also those in other statements.
pub(crate) fn each_stmt<'a>(body: &'a [Stmt], visit: impl FnMut(&'a Stmt)) {
    Stmts(visit).visit_body(body);
}

/// True if an expression in statements satisfies a condition.
pub(crate) fn has_expr<'a>(body: &'a [Stmt], is_it: impl Fn(&'a Expr) -> bool) -> bool {
    let mut found = false;
    each_expr(body, |expression| {
        found = found || is_it(expression);
        !found
    });
    found
}

/// True if an expression or a part of it satisfies a condition.
pub(crate) fn has_part<'a>(whole: &'a Expr, is_it: impl Fn(&'a Expr) -> bool) -> bool {
    let mut found = false;
    let mut visitor = Exprs(|expression| {
        found = found || is_it(expression);
        !found
    });
    visitor.visit_expr(whole);
    found
}

struct Exprs<F>(F);

impl<'a, F: FnMut(&'a Expr) -> bool> Visitor<'a> for Exprs<F> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if (self.0)(expression) {
            walk_expr(self, expression);
        }
    }
}

struct Stmts<F>(F);

impl<'a, F: FnMut(&'a Stmt)> StatementVisitor<'a> for Stmts<F> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        (self.0)(statement);
        statement_visitor::walk_stmt(self, statement);
    }
}
