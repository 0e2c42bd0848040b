//! Statements numbered in the order of the text.

use std::collections::BTreeSet;

use super::syntax::{Statement, Variable};

/// Statement with its number and its blocks.
pub(super) struct Item<'p> {
    pub(super) number: u32,
    pub(super) statement: &'p Statement,
    /// Branches of a conditional, or the body of a loop or a map.
    pub(super) blocks: Vec<Vec<Item<'p>>>,
}

/// Numbers statements, starting at `next`.
pub(super) fn outline<'p>(block: &'p [Statement], next: &mut u32) -> Vec<Item<'p>> {
    block
        .iter()
        .map(|statement| {
            let number = *next;
            *next += 1;
            let blocks = statement.blocks().map(|block| outline(block, next)).collect();
            Item { number, statement, blocks }
        })
        .collect()
}

/// Collects the variables that a block may write. A map writes its result and shared generators.
pub(super) fn written(block: &[Item<'_>], into: &mut BTreeSet<Variable>) {
    for item in block {
        into.extend(item.statement.targets());
        match item.statement {
            Statement::Map { element, .. } => into.extend(shared(*element, &item.blocks[0])),
            _ => item.blocks.iter().for_each(|block| written(block, into)),
        }
    }
}

/// Returns the generators that the elements of a map share: the body may draw from them before it
/// creates them. All other variables that the body writes are local to an element.
pub(super) fn shared(element: Variable, body: &[Item<'_>]) -> BTreeSet<Variable> {
    let mut shared = BTreeSet::new();
    drawn_before_made(body, &mut BTreeSet::from([element]), &mut shared);
    shared
}

/// Collects generators that are drawn from while they may not be in `made`. Adds to `made` what the
/// block writes on every path.
fn drawn_before_made(
    block: &[Item<'_>],
    made: &mut BTreeSet<Variable>,
    drawn: &mut BTreeSet<Variable>,
) {
    for item in block {
        match item.statement {
            Statement::Draw { target, generator, .. } => {
                if !made.contains(generator) {
                    drawn.insert(*generator);
                }
                made.insert(*target);
            }
            Statement::If { .. } => {
                let mut otherwise = made.clone();
                drawn_before_made(&item.blocks[0], made, drawn);
                drawn_before_made(&item.blocks[1], &mut otherwise, drawn);
                made.retain(|variable| otherwise.contains(variable));
            }
            // The loop may have no iteration.
            Statement::For { counter, .. } => {
                let mut within = made.clone();
                within.insert(*counter);
                drawn_before_made(&item.blocks[0], &mut within, drawn);
            }
            Statement::Map { target, element, .. } => {
                let inner = shared(*element, &item.blocks[0]);
                drawn.extend(inner.difference(made));
                made.insert(*target);
            }
            statement => made.extend(statement.targets()),
        }
    }
}
