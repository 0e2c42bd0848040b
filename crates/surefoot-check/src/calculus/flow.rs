//! What each value of a program is made from: a graph with a node for every definition.
//!
//! One pass over the program makes it. Where a conditional or a loop may have written a variable, a
//! node of its own stands for the outcome, so that what decided about it is among what it is made
//! from. A value that a loop carries round makes a cycle.

use std::collections::BTreeSet;
use std::ops::Range;

use super::outline::{Item, shared, written};
use super::scoped::Scoped;
use super::settle::settle;
use super::syntax::{Label, Operand, Program, Reduction, Site, Statement, Symbol, Variable};

/// A node: an index into [`Flow::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node(pub(super) u32);

impl Node {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node stands for. In parentheses its edges, where they are not the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value of a variable that was never written.
    Unset,
    Constant(Symbol),
    /// The number of the worker that executes an element of the map with this number, or what is
    /// outside all maps.
    Rank(Option<u32>),
    Workers,
    /// The number of the iteration of the loop with this number.
    Counter(u32),
    /// The number of the element of the map with this number.
    Element(u32),
    Apply(Symbol),
    /// A function that counts.
    Count,
    Nondeterministic(Symbol),
    Read(Symbol),
    Seed,
    /// The value (the generator, operands).
    Draw,
    /// The generator after a draw (the generator).
    Next,
    Fold,
    Keyed,
    Condition(Symbol),
    /// How many iterations or elements (the operand).
    Bound,
    /// After a conditional (condition, then, otherwise).
    Either,
    /// At the beginning of an iteration of the loop (before the loop, at the end of the body).
    Head(u32),
    /// After the loop (bound, before the loop, at the end of the body).
    Exit(u32),
    /// The result of the map (bound, result).
    Collect(u32, Reduction),
    /// A shared generator in the map (before it, at the end of the body).
    SharedHead,
    /// The same after the map (bound, before it, at the end of the body).
    SharedExit,
    /// Whether it is in a map (operands, everything that decides whether it is reached).
    Output(bool),
}

/// What is known of a node besides its edges.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    /// The number of the statement.
    pub(super) statement: u32,
    pub(super) site: Site,
    /// What is written, if it is a variable.
    pub(super) variable: Option<Variable>,
    edges: Range<u32>,
}

/// A checkpoint and what holds there.
pub(super) struct Stop {
    pub(super) label: Label,
    pub(super) statement: u32,
    /// The node of each variable.
    pub(super) state: Vec<Node>,
    /// The loops around it, outermost first.
    pub(super) loops: Vec<Loop>,
}

/// A loop around a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) statement: u32,
    pub(super) counter: Variable,
    pub(super) bound: Node,
    /// What was made before its first iteration has a smaller number.
    pub(super) first: Node,
}

/// The graph.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) nodes: Vec<Definition>,
    edges: Vec<Node>,
    /// For each statement what makes its value, its bound or its condition; of a map the bound.
    pub(super) made: Vec<Node>,
    /// For each draw the generator afterwards, for each map its result.
    pub(super) also: Vec<Node>,
    pub(super) outputs: Vec<Node>,
    pub(super) stops: Vec<Stop>,
}

impl Flow {
    /// What the node is made from.
    pub(super) fn edges(&self, node: Node) -> &[Node] {
        let range = &self.nodes[node.index()].edges;
        &self.edges[range.start as usize..range.end as usize]
    }

    /// Lets a node be something that is made from nothing.
    pub(super) fn replace(&mut self, node: Node, kind: Kind) {
        let definition = &mut self.nodes[node.index()];
        definition.kind = kind;
        definition.edges = 0..0;
    }

    /// Reads a program of `statements` statements.
    pub(super) fn of(program: &Program, body: &[Item<'_>], statements: u32) -> Flow {
        let unset = Node(0);
        let mut reader = Reader {
            program,
            flow: Flow {
                made: vec![unset; statements as usize],
                also: vec![unset; statements as usize],
                ..Flow::default()
            },
            state: Scoped::new(vec![unset; program.variables.len()]),
            loops: Vec::new(),
            maps: Vec::new(),
            deciding: Vec::new(),
        };
        let nowhere = Place { statement: 0, site: Site::default() };
        reader.node(Kind::Unset, nowhere, None, &[]);
        reader.block(body);
        settle(&mut reader.flow);
        reader.flow
    }
}

/// Where a node comes from.
#[derive(Clone, Copy)]
struct Place {
    statement: u32,
    site: Site,
}

struct Reader<'p> {
    program: &'p Program,
    flow: Flow,
    /// The node of each variable, here.
    state: Scoped<Node>,
    loops: Vec<Loop>,
    /// The numbers of the maps around.
    maps: Vec<u32>,
    /// Conditions and bounds that decide whether this is reached.
    deciding: Vec<Node>,
}

impl Reader<'_> {
    fn node(
        &mut self,
        kind: Kind,
        place: Place,
        variable: Option<Variable>,
        edges: &[Node],
    ) -> Node {
        let start = count(self.flow.edges.len());
        self.flow.edges.extend_from_slice(edges);
        let node = Node(count(self.flow.nodes.len()));
        self.flow.nodes.push(Definition {
            kind,
            statement: place.statement,
            site: place.site,
            variable,
            edges: start..count(self.flow.edges.len()),
        });
        node
    }

    fn set_edge(&mut self, node: Node, which: u32, to: Node) {
        let at = self.flow.nodes[node.index()].edges.start + which;
        self.flow.edges[at as usize] = to;
    }

    fn get(&self, variable: Variable) -> Node {
        self.state.get(variable.0 as usize)
    }

    fn set(&mut self, variable: Variable, node: Node) {
        self.state.set(variable.0 as usize, node);
    }

    fn operand(&mut self, operand: Operand, place: Place) -> Node {
        match operand {
            Operand::Variable(variable) => self.get(variable),
            Operand::Constant(symbol) => self.node(Kind::Constant(symbol), place, None, &[]),
            Operand::Rank => self.node(Kind::Rank(self.maps.last().copied()), place, None, &[]),
            Operand::Workers => self.node(Kind::Workers, place, None, &[]),
        }
    }

    fn operands(&mut self, first: Option<Node>, operands: &[Operand], place: Place) -> Vec<Node> {
        let mut edges: Vec<Node> = first.into_iter().collect();
        for operand in operands {
            edges.push(self.operand(*operand, place));
        }
        edges
    }

    /// A value that a statement gives to a variable.
    fn assign(&mut self, kind: Kind, place: Place, target: Variable, edges: &[Node]) {
        let node = self.node(kind, place, Some(target), edges);
        self.flow.made[place.statement as usize] = node;
        self.set(target, node);
    }

    fn block(&mut self, items: &[Item<'_>]) {
        for item in items {
            self.statement(item);
        }
    }

    fn statement(&mut self, item: &Item<'_>) {
        let at = |site: &Site| Place { statement: item.number, site: *site };
        match item.statement {
            Statement::Compute { target, function, operands, site } => {
                let edges = self.operands(None, operands, at(site));
                let kind = if self.program.counts(*function, operands) {
                    Kind::Count
                } else {
                    Kind::Apply(*function)
                };
                self.assign(kind, at(site), *target, &edges);
            }
            Statement::Nondeterministic { target, function, operands, site } => {
                let edges = self.operands(None, operands, at(site));
                self.assign(Kind::Nondeterministic(*function), at(site), *target, &edges);
            }
            Statement::Seed { generator, operands, site } => {
                let edges = self.operands(None, operands, at(site));
                self.assign(Kind::Seed, at(site), *generator, &edges);
            }
            Statement::Draw { target, generator, operands, site } => {
                let from = self.get(*generator);
                let edges = self.operands(Some(from), operands, at(site));
                let next = self.node(Kind::Next, at(site), Some(*generator), &[from]);
                self.flow.also[item.number as usize] = next;
                self.set(*generator, next);
                self.assign(Kind::Draw, at(site), *target, &edges);
            }
            Statement::Fold { target, key, operands, site } => {
                let key = self.operand(*key, at(site));
                let edges = self.operands(Some(key), operands, at(site));
                self.assign(Kind::Fold, at(site), *target, &edges);
            }
            Statement::Keyed { target, key, operands, site } => {
                let key = self.operand(*key, at(site));
                let edges = self.operands(Some(key), operands, at(site));
                self.assign(Kind::Keyed, at(site), *target, &edges);
            }
            Statement::Read { target, what, site } => {
                self.assign(Kind::Read(*what), at(site), *target, &[]);
            }
            Statement::If { condition, operands, site, .. } => {
                let edges = self.operands(None, operands, at(site));
                let condition = self.node(Kind::Condition(*condition), at(site), None, &edges);
                self.conditional(item, condition, at(site));
            }
            Statement::For { counter, bound, site, .. } => {
                let bound = self.operand(*bound, at(site));
                let bound = self.node(Kind::Bound, at(site), None, &[bound]);
                self.iteration(item, *counter, bound, at(site));
            }
            Statement::Map { bound, site, .. } => {
                let bound = self.operand(*bound, at(site));
                let bound = self.node(Kind::Bound, at(site), None, &[bound]);
                self.map(item, bound, at(site));
            }
            Statement::Checkpoint { label, .. } => {
                if self.maps.is_empty() {
                    self.flow.stops.push(Stop {
                        label: *label,
                        statement: item.number,
                        state: self.state.values().to_vec(),
                        loops: self.loops.clone(),
                    });
                }
            }
            Statement::Output { operands, site } => {
                let mut edges = self.operands(None, operands, at(site));
                edges.extend_from_slice(&self.deciding);
                let node = self.node(Kind::Output(!self.maps.is_empty()), at(site), None, &edges);
                self.flow.made[item.number as usize] = node;
                self.flow.outputs.push(node);
            }
        }
    }

    fn conditional(&mut self, item: &Item<'_>, condition: Node, place: Place) {
        self.flow.made[item.number as usize] = condition;
        self.deciding.push(condition);
        let mark = self.state.branch();
        self.block(&item.blocks[0]);
        let then = self.state.take_back(mark);
        let mark = self.state.branch();
        self.block(&item.blocks[1]);
        let otherwise = self.state.take_back(mark);
        self.deciding.pop();

        let mut outcomes = Vec::new();
        self.state.meet(then, otherwise, |at, a, b| {
            outcomes.push((at, a, b));
            a
        });
        for (at, a, b) in outcomes {
            if a != b {
                let variable = Variable(count(at));
                let node = self.node(Kind::Either, place, Some(variable), &[condition, a, b]);
                self.set(variable, node);
            }
        }
    }

    fn iteration(&mut self, item: &Item<'_>, counter: Variable, bound: Node, place: Place) {
        self.flow.made[item.number as usize] = bound;
        let body = &item.blocks[0];
        let mut carried = BTreeSet::from([counter]);
        written(body, &mut carried);

        let first = Node(count(self.flow.nodes.len()));
        let heads = self.heads(Kind::Head(item.number), &carried, place);
        let number = self.node(Kind::Counter(item.number), place, Some(counter), &[]);
        self.set(counter, number);
        self.loops.push(Loop { statement: item.number, counter, bound, first });
        self.deciding.push(bound);
        self.block(body);
        self.deciding.pop();
        self.loops.pop();

        for (variable, before, head) in heads {
            let end = self.get(variable);
            self.set_edge(head, 1, end);
            let kind = Kind::Exit(item.number);
            let exit = self.node(kind, place, Some(variable), &[bound, before, end]);
            self.set(variable, exit);
        }
    }

    fn map(&mut self, item: &Item<'_>, bound: Node, place: Place) {
        let Statement::Map { target, element, result, reduction, .. } = item.statement else {
            return;
        };
        self.flow.made[item.number as usize] = bound;
        let body = &item.blocks[0];
        let shared = shared(*element, body);

        let mark = self.state.branch();
        let heads = self.heads(Kind::SharedHead, &shared, place);
        let number = self.node(Kind::Element(item.number), place, Some(*element), &[]);
        self.set(*element, number);
        self.maps.push(item.number);
        self.deciding.push(bound);
        self.block(body);
        let result = self.operand(*result, place);
        self.deciding.pop();
        self.maps.pop();
        let ends: Vec<Node> = heads.iter().map(|(v, ..)| self.get(*v)).collect();
        self.state.take_back(mark);

        for ((variable, before, head), end) in heads.into_iter().zip(ends) {
            self.set_edge(head, 1, end);
            let edges = [bound, before, end];
            let exit = self.node(Kind::SharedExit, place, Some(variable), &edges);
            self.set(variable, exit);
        }
        let kind = Kind::Collect(item.number, *reduction);
        let collected = self.node(kind, place, Some(*target), &[bound, result]);
        self.flow.also[item.number as usize] = collected;
        self.set(*target, collected);
    }

    /// Nodes for variables at the beginning of a body, with what they had before; what they have at
    /// its end is not known yet.
    fn heads(
        &mut self,
        kind: Kind,
        variables: &BTreeSet<Variable>,
        place: Place,
    ) -> Vec<(Variable, Node, Node)> {
        variables
            .iter()
            .map(|variable| {
                let before = self.get(*variable);
                let head = self.node(kind, place, Some(*variable), &[before, before]);
                self.set(*variable, head);
                (*variable, before, head)
            })
            .collect()
    }
}

/// Numbers of statements and nodes are 32 bits wide: programs fit into memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("a program has fewer parts than fit into memory")
}
