//! Types of all nodes of a data-flow graph.
//!
//! Nodes that depend on each other have the same type, so the solver visits strongly connected
//! components, each after its dependencies.

use super::flow::{Flow, Kind, Node};
use super::intern::{Key, SetId, Sets, TypeId, Types};
use super::syntax::Reduction;
use super::types::{Origin, OriginKind, Quality, Type, WorkerCause, WorkerDependence};

/// Types of the nodes of a graph.
pub(super) struct Solution {
    pub(super) types: Types,
    /// Type of each node.
    of: Vec<TypeId>,
    /// For each node with quality [`Quality::History`], the loop-carried value or shared generator that
    /// makes it so.
    root: Vec<Option<Node>>,
    /// Component of each node.
    component: Vec<u32>,
    /// Nodes of each component.
    members: Vec<Vec<Node>>,
}

impl Solution {
    pub(super) fn of(flow: &Flow) -> Solution {
        let (component, members) = components(flow);
        let mut solver = Solver {
            flow,
            component: &component,
            sets: Sets::default(),
            facts: vec![Facts::default(); flow.nodes.len()],
        };
        for nodes in &members {
            solver.component(nodes);
        }
        let Solver { sets, facts, .. } = solver;
        let mut types = Types::new(sets);
        Solution {
            of: facts.iter().map(|fact| types.keep(fact.key())).collect(),
            root: facts.iter().map(|fact| fact.root).collect(),
            types,
            component,
            members,
        }
    }

    pub(super) fn get(&self, node: Node) -> &Type {
        self.types.get(self.id(node))
    }

    pub(super) fn id(&self, node: Node) -> TypeId {
        self.of[node.index()]
    }

    /// Returns the loop-carried value or shared generator that a node depends on.
    pub(super) fn root(&self, node: Node) -> Option<Node> {
        self.root[node.index()]
    }

    /// Returns the strongly connected component of a node.
    pub(super) fn cycle(&self, node: Node) -> &[Node] {
        &self.members[self.component[node.index()] as usize]
    }
}

/// Returns the dependence on workers that a node introduces.
pub(super) fn worker_cause(flow: &Flow, node: Node) -> Option<WorkerDependence> {
    let definition = &flow.nodes[node.index()];
    let cause = match definition.kind {
        Kind::Rank(_) => WorkerCause::Rank,
        Kind::Workers => WorkerCause::Workers,
        Kind::Collect(_, Reduction::Ring) => WorkerCause::Ring,
        Kind::Collect(_, Reduction::Unordered) => WorkerCause::Unordered,
        Kind::Output(true) => WorkerCause::Output,
        Kind::SharedHead | Kind::SharedExit => WorkerCause::Shared(definition.variable?),
        _ => return None,
    };
    Some(WorkerDependence { site: definition.site, cause })
}

/// Returns the origin that a node introduces.
pub(super) fn origin(flow: &Flow, node: Node) -> Option<Origin> {
    let definition = &flow.nodes[node.index()];
    let (kind, symbol) = match definition.kind {
        Kind::Seed => (OriginKind::Seed, None),
        Kind::Read(what) => (OriginKind::Environment, Some(what)),
        Kind::Nondeterministic(function) => (OriginKind::Nondeterministic, Some(function)),
        Kind::Collect(_, Reduction::Unordered) => (OriginKind::Arrival, None),
        _ => return None,
    };
    Some(Origin { kind, site: definition.site, symbol })
}

#[derive(Clone, Copy)]
struct Facts {
    /// Can be computed from constants, seeds and the counters of enclosing loops.
    closed: bool,
    /// Depends on a seed, a key or a counter.
    keyed: bool,
    /// Depends on an external value.
    external: bool,
    sources: SetId,
    workers: Option<WorkerDependence>,
    root: Option<Node>,
}

impl Default for Facts {
    fn default() -> Self {
        Facts {
            closed: true,
            keyed: false,
            external: false,
            sources: SetId::default(),
            workers: None,
            root: None,
        }
    }
}

impl Facts {
    fn key(&self) -> Key {
        Key { quality: self.quality(), sources: self.sources, workers: self.workers }
    }

    fn quality(&self) -> Quality {
        match self {
            Facts { closed: true, keyed, .. } => {
                if *keyed {
                    Quality::Key
                } else {
                    Quality::Plan
                }
            }
            Facts { external: true, .. } => Quality::External,
            _ => Quality::History,
        }
    }
}

struct Solver<'f> {
    flow: &'f Flow,
    component: &'f [u32],
    sets: Sets,
    facts: Vec<Facts>,
}

impl Solver<'_> {
    fn component(&mut self, nodes: &[Node]) {
        let home = self.component[nodes[0].index()];
        let inside = |node: Node| self.component[node.index()] == home;
        let is_cycle = nodes.len() > 1 || self.flow.edges(nodes[0]).contains(&nodes[0]);
        let mut facts = Facts::default();
        for node in nodes {
            let own = self.own(*node);
            facts.closed &= own.closed;
            facts.keyed |= own.keyed;
            facts.external |= own.external;
            facts.workers = facts.workers.or(own.workers);
            facts.root = facts.root.or(own.root);
            if let Some(origin) = origin(self.flow, *node) {
                let set = self.sets.single(origin);
                facts.sources = self.sets.union(facts.sources, set);
            }
            for made_from in self.flow.edges(*node) {
                if inside(*made_from) {
                    continue;
                }
                let from = self.facts[made_from.index()];
                facts.closed &= from.closed;
                facts.keyed |= from.keyed;
                facts.external |= from.external;
                facts.workers = facts.workers.or(from.workers);
                facts.root = facts.root.or(from.root);
                facts.sources = self.sets.union(facts.sources, from.sources);
            }
        }
        if is_cycle && !nodes.iter().all(|node| self.only_counts(*node, home)) {
            facts.closed = false;
            facts.root = nodes.iter().copied().filter(|node| self.is_head(*node)).min();
        }
        for node in nodes {
            self.facts[node.index()] = facts;
        }
    }

    fn is_head(&self, node: Node) -> bool {
        matches!(self.flow.nodes[node.index()].kind, Kind::Head(_) | Kind::SharedHead)
    }

    /// Returns the facts that a node introduces, without those of its inputs.
    fn own(&self, node: Node) -> Facts {
        let mut facts = Facts { workers: worker_cause(self.flow, node), ..Facts::default() };
        match self.flow.nodes[node.index()].kind {
            Kind::Seed
            | Kind::Draw
            | Kind::Next
            | Kind::Fold
            | Kind::Keyed
            | Kind::Counter(_)
            | Kind::Head(_) => facts.keyed = true,
            Kind::Read(_) | Kind::Nondeterministic(_) | Kind::Collect(_, Reduction::Unordered) => {
                facts.external = true;
                facts.closed = false;
            }
            Kind::SharedHead | Kind::SharedExit => {
                facts.closed = false;
                facts.root = Some(node);
            }
            _ => {}
        }
        facts
    }

    /// True if a node of a cycle does nothing but count iterations.
    fn only_counts(&self, node: Node, home: u32) -> bool {
        let inside = |node: Node| self.component[node.index()] == home;
        match self.flow.nodes[node.index()].kind {
            Kind::Head(_) | Kind::Count => true,
            Kind::Exit(_) => !inside(self.flow.edges(node)[0]),
            _ => false,
        }
    }
}

/// Finds strongly connected components with Tarjan's algorithm, without recursion. Returns the component
/// of each node and the nodes of each component; a component follows its dependencies.
fn components(flow: &Flow) -> (Vec<u32>, Vec<Vec<Node>>) {
    const UNSEEN: u32 = u32::MAX;
    let count = flow.nodes.len();
    let mut order = vec![UNSEEN; count];
    let mut low = vec![0u32; count];
    let mut component = vec![UNSEEN; count];
    let mut members: Vec<Vec<Node>> = Vec::new();
    let mut open: Vec<Node> = Vec::new();
    let mut path: Vec<(Node, usize)> = Vec::new();
    let mut seen = 0;

    for start in 0..count as u32 {
        if order[start as usize] != UNSEEN {
            continue;
        }
        path.push((Node(start), 0));
        while let Some((node, edge)) = path.pop() {
            let at = node.index();
            if edge == 0 {
                order[at] = seen;
                low[at] = seen;
                seen += 1;
                open.push(node);
            }
            let edges = flow.edges(node);
            // The edge visited last has its final `low`.
            if let Some(done) = edge.checked_sub(1).map(|last| edges[last].index())
                && component[done] == UNSEEN
            {
                low[at] = low[at].min(low[done]);
            }
            if let Some(next) = edges.get(edge) {
                path.push((node, edge + 1));
                let to = next.index();
                if order[to] == UNSEEN {
                    path.push((*next, 0));
                }
                continue;
            }
            if low[at] == order[at] {
                let first = open.iter().rposition(|other| *other == node).unwrap_or(0);
                let mut nodes = open.split_off(first);
                nodes.sort_unstable();
                for node in &nodes {
                    component[node.index()] = members.len() as u32;
                }
                members.push(nodes);
            }
        }
    }
    (component, members)
}
