//! A program with its statements numbered, in the order in which they are written down.

use std::collections::BTreeSet;

use super::syntax::{Statement, Variable};

/// A statement and what is inside it.
pub(super) struct Item<'p> {
    pub(super) number: u32,
    pub(super) statement: &'p Statement,
    /// The branches of a conditional, the body of a loop or a map.
    pub(super) blocks: Vec<Vec<Item<'p>>>,
}

/// Numbers statements, beginning with `next`.
pub(super) fn outline<'p>(block: &'p [Statement], next: &mut u32) -> Vec<Item<'p>> {
    block
        .iter()
        .map(|statement| {
            let number = *next;
            *next += 1;
            let blocks = match statement {
                Statement::If { then, otherwise, .. } => {
                    vec![outline(then, next), outline(otherwise, next)]
                }
                Statement::For { body, .. } | Statement::Map { body, .. } => {
                    vec![outline(body, next)]
                }
                _ => Vec::new(),
            };
            Item { number, statement, blocks }
        })
        .collect()
}

/// Every variable that a block may write to.
pub(super) fn written(block: &[Item<'_>], into: &mut BTreeSet<Variable>) {
    for item in block {
        match item.statement {
            Statement::Compute { target, .. }
            | Statement::Nondeterministic { target, .. }
            | Statement::Fold { target, .. }
            | Statement::Keyed { target, .. }
            | Statement::Read { target, .. } => {
                into.insert(*target);
            }
            Statement::Seed { generator, .. } => {
                into.insert(*generator);
            }
            Statement::Draw { target, generator, .. } => {
                into.insert(*target);
                into.insert(*generator);
            }
            Statement::If { .. } => item.blocks.iter().for_each(|block| written(block, into)),
            Statement::For { counter, .. } => {
                into.insert(*counter);
                written(&item.blocks[0], into);
            }
            Statement::Map { target, element, .. } => {
                into.insert(*target);
                into.extend(shared(*element, &item.blocks[0]));
            }
            Statement::Checkpoint { .. } | Statement::Output { .. } => {}
        }
    }
}

/// The generators that the elements of a map share: the body may draw from them before it has made
/// them itself. Whatever else the body writes is its own.
pub(super) fn shared(element: Variable, body: &[Item<'_>]) -> BTreeSet<Variable> {
    let mut shared = BTreeSet::new();
    drawn_unmade(body, &mut BTreeSet::from([element]), &mut shared);
    shared
}

/// Collects generators that are drawn from while they are not certainly in `made`, to which comes
/// what the block certainly writes.
fn drawn_unmade(block: &[Item<'_>], made: &mut BTreeSet<Variable>, drawn: &mut BTreeSet<Variable>) {
    for item in block {
        match item.statement {
            Statement::Compute { target, .. }
            | Statement::Nondeterministic { target, .. }
            | Statement::Fold { target, .. }
            | Statement::Keyed { target, .. }
            | Statement::Read { target, .. } => {
                made.insert(*target);
            }
            Statement::Seed { generator, .. } => {
                made.insert(*generator);
            }
            Statement::Draw { target, generator, .. } => {
                if !made.contains(generator) {
                    drawn.insert(*generator);
                }
                made.insert(*target);
            }
            Statement::If { .. } => {
                let mut otherwise = made.clone();
                drawn_unmade(&item.blocks[0], made, drawn);
                drawn_unmade(&item.blocks[1], &mut otherwise, drawn);
                made.retain(|variable| otherwise.contains(variable));
            }
            // It may have no iteration.
            Statement::For { counter, .. } => {
                let mut within = made.clone();
                within.insert(*counter);
                drawn_unmade(&item.blocks[0], &mut within, drawn);
            }
            Statement::Map { target, element, .. } => {
                let inner = shared(*element, &item.blocks[0]);
                drawn.extend(inner.difference(made));
                made.insert(*target);
            }
            Statement::Checkpoint { .. } | Statement::Output { .. } => {}
        }
    }
}
