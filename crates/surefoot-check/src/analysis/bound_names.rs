//! Names that a file binds, so that generated code uses the same ones.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_parameter, walk_stmt};
use ruff_python_ast::{Alias, Expr, Parameter, Stmt};

/// Names that are imported, assigned or parameters, anywhere in a file.
#[derive(Default)]
pub(super) struct BoundNames<'a>(BTreeSet<&'a str>);

impl<'a> BoundNames<'a> {
    /// Collects the names of a file.
    pub(super) fn of(body: &'a [Stmt]) -> BoundNames<'a> {
        let mut bound = BoundNames::default();
        bound.visit_body(body);
        bound
    }

    /// True if the file binds the name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn import(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
        self.0.extend(name.split('.').next());
    }
}

impl<'a> Visitor<'a> for BoundNames<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(it) => it.names.iter().for_each(|alias| self.import(alias)),
            Stmt::ImportFrom(it) => it.names.iter().for_each(|alias| self.import(alias)),
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(it) = expression
            && it.ctx.is_store()
        {
            self.0.insert(it.id.as_str());
        }
        walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.0.insert(parameter.name.as_str());
        walk_parameter(self, parameter);
    }
}
