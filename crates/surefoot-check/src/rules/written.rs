//! What a loop writes.

use std::collections::BTreeSet;

use crate::calculus::{Site, Statement, Variable};

/// The variables that the loop with this counter writes.
pub(super) fn written_in(
    statements: &[Statement],
    counter: Variable,
) -> Option<BTreeSet<Variable>> {
    statements.iter().find_map(|statement| match statement {
        Statement::For { counter: it, body, .. } if *it == counter => {
            let mut written = BTreeSet::new();
            gather_written(body, &mut written);
            Some(written)
        }
        Statement::For { body, .. } | Statement::Map { body, .. } => written_in(body, counter),
        Statement::If { then, otherwise, .. } => {
            written_in(then, counter).or_else(|| written_in(otherwise, counter))
        }
        _ => None,
    })
}

/// Where the last statement is that writes a variable.
pub(super) fn last_written_at(statements: &[Statement], variable: Variable) -> Option<Site> {
    statements.iter().rev().find_map(|statement| match statement {
        Statement::Compute { target, site, .. }
        | Statement::Nondeterministic { target, site, .. }
        | Statement::Fold { target, site, .. }
        | Statement::Keyed { target, site, .. }
        | Statement::Read { target, site, .. }
        | Statement::Seed { generator: target, site, .. } => (*target == variable).then_some(*site),
        Statement::Draw { target, generator, site, .. } => {
            (*target == variable || *generator == variable).then_some(*site)
        }
        Statement::If { then, otherwise, .. } => {
            last_written_at(otherwise, variable).or_else(|| last_written_at(then, variable))
        }
        Statement::For { body, .. } => last_written_at(body, variable),
        Statement::Map { body, target, site, .. } => match *target == variable {
            true => Some(*site),
            false => last_written_at(body, variable),
        },
        Statement::Checkpoint { .. } | Statement::Output { .. } => None,
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
            Statement::Draw { target, generator, .. } => {
                written.extend([*target, *generator]);
            }
            Statement::Seed { generator, .. } => {
                written.insert(*generator);
            }
            Statement::If { then, otherwise, .. } => {
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
