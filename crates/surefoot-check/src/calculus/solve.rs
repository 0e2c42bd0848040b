//! The types of all nodes, from what they are made of.
//!
//! Nodes that depend on each other have the same sources, so strongly connected components are
//! visited, each after those it depends on.

use super::flow::{Flow, Kind, Node};
use super::intern::{Key, SetId, Sets, TypeId, Types};
use super::syntax::Reduction;
use super::types::{Origin, OriginKind, Quality, Type, WorkerCause, WorkerDependence};

/// The types of nodes.
pub(super) struct Solution {
    pub(super) types: Types,
    /// For each node its type.
    of: Vec<TypeId>,
    /// For each node that is history, where that begins: a value that a loop carries round, or a
    /// shared generator.
    root: Vec<Option<Node>>,
    /// For each node its component.
    component: Vec<u32>,
    /// The nodes of each component.
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

    /// Where the history of a node begins.
    pub(super) fn root(&self, node: Node) -> Option<Node> {
        self.root[node.index()]
    }

    /// The nodes that depend on this one and on which it depends, itself among them.
    pub(super) fn circle(&self, node: Node) -> &[Node] {
        &self.members[self.component[node.index()] as usize]
    }
}

/// What a node is by itself, in the eyes of the workers.
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

/// What a node takes from outside, or the seed that it is.
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
    /// It can be computed from constants, seeds and the counters around it.
    closed: bool,
    /// More than constants are in it.
    keyed: bool,
    /// Something from outside is in it.
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
        let is_circle = nodes.len() > 1 || self.flow.edges(nodes[0]).contains(&nodes[0]);
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
        if is_circle && !nodes.iter().all(|node| self.only_counts(*node, home)) {
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

    /// What the node brings in by itself.
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

    /// Whether the node, part of a circle, does no more to it than to count how often it is passed.
    fn only_counts(&self, node: Node, home: u32) -> bool {
        let inside = |node: Node| self.component[node.index()] == home;
        match self.flow.nodes[node.index()].kind {
            Kind::Head(_) | Kind::Count => true,
            Kind::Exit(_) => !inside(self.flow.edges(node)[0]),
            _ => false,
        }
    }
}

/// Tarjan's algorithm, without recursion: each node's component, and the nodes of each component. A
/// component comes after all it depends on.
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
            // Whatever was just left has its lowest reach; taking it in again does no harm.
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
