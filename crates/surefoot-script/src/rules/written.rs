//! What a loop writes.

use std::collections::BTreeSet;

use crate::calculus::{Statement, Variable};

/// The variables that the loop with this counter writes.
pub(super) fn written_in(
    statements: &[Statement],
    counter: Variable,
) -> Option<BTreeSet<Variable>> {
    statements.iter().find_map(|statement| match statement {
        Statement::For {
            counter: it, body, ..
        } if *it == counter => {
            let mut written = BTreeSet::new();
            gather_written(body, &mut written);
            Some(written)
        }
        Statement::For { body, .. } | Statement::Map { body, .. } => written_in(body, counter),
        Statement::If {
            then, otherwise, ..
        } => written_in(then, counter).or_else(|| written_in(otherwise, counter)),
        _ => None,
    })
}

fn gather_written(statements: &[Statement], written: &mut BTreeSet<Variable>) {
    for statement in statements {
        match statement {
            Statement::Compute { target, .. }
            | Statement::Nondeterministic { target, .. }
            | Statement::Fold { target, .. }
            | Statement::Keyed { target, .. }
            | Statement::Read { target, .. } => {
                written.insert(*target);
            }
            Statement::Draw {
                target, generator, ..
            } => {
                written.extend([*target, *generator]);
            }
            Statement::Seed { generator, .. } => {
                written.insert(*generator);
            }
            Statement::If {
                then, otherwise, ..
            } => {
                gather_written(then, written);
                gather_written(otherwise, written);
            }
            Statement::For { body, counter, .. } => {
                written.insert(*counter);
                gather_written(body, written);
            }
            Statement::Map { body, target, .. } => {
                written.insert(*target);
                gather_written(body, written);
            }
            Statement::Checkpoint { .. } | Statement::Output { .. } => {}
        }
    }
}
