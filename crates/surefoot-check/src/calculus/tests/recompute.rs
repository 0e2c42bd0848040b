//! Recomputation of values from constants, seeds and counters, as a restart does it.

use std::collections::HashMap;

use super::interpretation::Interpretation;
use super::interpreter::Execution;
use crate::calculus::flow::{Flow, Kind, Node};

/// Numbers of the enclosing loops and maps, with the iteration or element.
pub(super) type Within = Vec<(u32, u64)>;

/// Evaluator of recomputable nodes. Panics for others.
pub(super) struct Recomputation<'f> {
    pub(super) flow: &'f Flow,
    pub(super) interpretation: Interpretation,
    pub(super) execution: Execution,
    known: HashMap<(Node, Within), u64>,
}

impl<'f> Recomputation<'f> {
    pub(super) fn new(
        flow: &'f Flow,
        interpretation: Interpretation,
        execution: Execution,
    ) -> Self {
        Recomputation { flow, interpretation, execution, known: HashMap::new() }
    }

    pub(super) fn value(&mut self, node: Node, within: &Within) -> u64 {
        let key = (node, within.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let value = self.compute(node, within);
        self.known.insert(key, value);
        value
    }

    fn compute(&mut self, node: Node, within: &Within) -> u64 {
        let definition = &self.flow.nodes[node.index()];
        let (kind, statement) = (definition.kind, definition.statement);
        let edges = self.flow.edges(node);
        let meaning = self.interpretation;
        match kind {
            Kind::Unset => 0,
            Kind::Constant(symbol) => meaning.constant(symbol),
            Kind::Rank(None) => self.execution.rank(),
            Kind::Rank(Some(map)) => self.execution.worker(map, number(within, map)),
            Kind::Workers => self.execution.workers,
            Kind::Counter(around) | Kind::Element(around) => number(within, around),
            Kind::Apply(function) => meaning.apply(function, &self.values(edges, within)),
            Kind::Count => meaning.count(&self.values(edges, within)),
            Kind::Seed => meaning.seed(&self.values(edges, within)),
            Kind::Draw => meaning.draw(statement, &self.values(edges, within)),
            Kind::Next => meaning.next(statement, self.value(edges[0], within)),
            Kind::Fold => meaning.fold(&self.values(edges, within)),
            Kind::Keyed => meaning.keyed(&self.values(edges, within)),
            Kind::Condition(symbol) => {
                u64::from(meaning.condition(symbol, &self.values(edges, within)))
            }
            Kind::Bound => meaning.bound(self.value(edges[0], within)),
            Kind::Either => {
                let holds = self.value(edges[0], within) == 1;
                self.value(edges[if holds { 1 } else { 2 }], within)
            }
            Kind::Head(around) => match number(within, around).checked_sub(1) {
                None => self.value(edges[0], within),
                Some(previous) => self.value(edges[1], &set(within, around, previous)),
            },
            Kind::Exit(around) => match self.value(edges[0], within).checked_sub(1) {
                None => self.value(edges[1], within),
                Some(last) => self.value(edges[2], &set(within, around, last)),
            },
            Kind::Collect(map, reduction) => {
                let elements = self.value(edges[0], within);
                let results: Vec<u64> =
                    (0..elements).map(|j| self.value(edges[1], &set(within, map, j))).collect();
                let Execution { workers, .. } = self.execution;
                let worker = |j| self.execution.worker(map, j);
                meaning.collect(map, reduction, &results, worker, workers)
            }
            Kind::Nondeterministic(_)
            | Kind::Read(_)
            | Kind::SharedHead
            | Kind::SharedExit
            | Kind::Output(_) => unreachable!("{kind:?} is not recomputable"),
        }
    }

    fn values(&mut self, nodes: &[Node], within: &Within) -> Vec<u64> {
        nodes.iter().map(|node| self.value(*node, within)).collect()
    }
}

fn number(within: &Within, around: u32) -> u64 {
    let found = within.iter().find(|(statement, _)| *statement == around);
    found.map_or(0, |(_, number)| *number)
}

fn set(within: &Within, around: u32, number: u64) -> Within {
    let mut within = within.clone();
    within.retain(|(statement, _)| *statement != around);
    within.push((around, number));
    within.sort_unstable();
    within
}
