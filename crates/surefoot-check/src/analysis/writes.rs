//! Variables that loops write.

use std::collections::BTreeSet;

use crate::calculus::{Site, Statement, Variable};

/// Returns the body of the loop with a counter.
pub(super) fn loop_body(statements: &[Statement], counter: Variable) -> Option<&[Statement]> {
    statements.iter().find_map(|statement| match statement {
        Statement::For { counter: it, body, .. } if *it == counter => Some(&body[..]),
        _ => statement.blocks().find_map(|block| loop_body(block, counter)),
    })
}

/// Collects the variables that statements write.
pub(super) fn written(statements: &[Statement]) -> BTreeSet<Variable> {
    let mut written = BTreeSet::new();
    for statement in statements {
        written.extend(statement.targets());
        written.extend(statement.blocks().flat_map(self::written));
    }
    written
}

/// Returns the last statement that writes a variable, other than as the counter of a loop.
pub(super) fn last_written_at(statements: &[Statement], variable: Variable) -> Option<Site> {
    statements.iter().rev().find_map(|statement| {
        let is_loop = matches!(statement, Statement::For { .. });
        if !is_loop && statement.targets().any(|it| it == variable) {
            return Some(statement.site());
        }
        statement.blocks().rev().find_map(|block| last_written_at(block, variable))
    })
}
