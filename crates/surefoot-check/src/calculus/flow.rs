//! Data-flow graph of a program: a node for every definition, in SSA form.
//!
//! One pass over the program builds it. Conditionals and loops merge variables in nodes that also
//! depend on the condition or the bound. A loop-carried value is a cycle.

use std::collections::BTreeSet;
use std::ops::Range;

use super::constants::propagate_constants;
use super::outline::{Item, shared, written};
use super::scoped::Scoped;
use super::syntax::{Label, Operand, Program, Reduction, Site, Statement, Symbol, Variable};

/// Index into [`Flow::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node(pub(super) u32);

impl Node {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of a node. Its edges are in parentheses where they are not the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Variable that was never written.
    Unset,
    Constant(Symbol),
    /// Rank of the worker that executes an element of the numbered map, or the code outside maps.
    Rank(Option<u32>),
    Workers,
    /// Iteration of the numbered loop.
    Counter(u32),
    /// Element of the numbered map.
    Element(u32),
    Apply(Symbol),
    /// Counting function.
    Count,
    Nondeterministic(Symbol),
    Read(Symbol),
    Seed,
    /// Drawn value (generator, operands).
    Draw,
    /// Generator after a draw (generator).
    Next,
    Fold,
    Keyed,
    Condition(Symbol),
    /// Number of iterations or elements (operand).
    Bound,
    /// After a conditional (condition, then, otherwise).
    Either,
    /// Start of an iteration of the loop (before the loop, end of the body).
    Head(u32),
    /// After the loop (bound, before the loop, end of the body).
    Exit(u32),
    /// Result of the map (bound, result).
    Collect(u32, Reduction),
    /// Shared generator in the map (before the map, end of the body).
    SharedHead,
    /// Shared generator after the map (bound, before the map, end of the body).
    SharedExit,
    /// Output, inside a map or not (operands, conditions and bounds that control it).
    Output(bool),
}

/// Node of the graph.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    /// Number of the statement.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the interpreter of the tests"))]
    pub(super) statement: u32,
    pub(super) site: Site,
    /// Variable that is written.
    pub(super) variable: Option<Variable>,
    edges: Range<u32>,
}

/// State of the program at a checkpoint.
pub(super) struct FlowCheckpoint {
    pub(super) label: Label,
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the interpreter of the tests"))]
    pub(super) statement: u32,
    /// Node of each variable.
    pub(super) state: Vec<Node>,
    /// Enclosing loops, outermost first.
    pub(super) loops: Vec<Loop>,
}

/// Enclosing loop of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the interpreter of the tests"))]
    pub(super) statement: u32,
    pub(super) counter: Variable,
    pub(super) bound: Node,
    /// First node of the loop; earlier nodes have smaller numbers.
    pub(super) first: Node,
}

/// Data-flow graph.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) nodes: Vec<Definition>,
    edges: Vec<Node>,
    /// For each statement the node of its value, bound or condition; for a map, of its bound.
    pub(super) made: Vec<Node>,
    /// For each draw the node of the generator afterwards; for each map, of its result.
    pub(super) also: Vec<Node>,
    pub(super) outputs: Vec<Node>,
    pub(super) checkpoints: Vec<FlowCheckpoint>,
}

impl Flow {
    /// Returns the inputs of a node.
    pub(super) fn edges(&self, node: Node) -> &[Node] {
        let range = &self.nodes[node.index()].edges;
        &self.edges[range.start as usize..range.end as usize]
    }

    /// Replaces a node by one without inputs.
    pub(super) fn replace(&mut self, node: Node, kind: Kind) {
        let definition = &mut self.nodes[node.index()];
        definition.kind = kind;
        definition.edges = 0..0;
    }

    /// Builds the graph of a program with `statements` statements.
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
            controlling: Vec::new(),
        };
        let nowhere = Place { statement: 0, site: Site::default() };
        reader.node(Kind::Unset, nowhere, None, &[]);
        reader.block(body);
        propagate_constants(&mut reader.flow);
        reader.flow
    }
}

/// Origin of a node.
#[derive(Clone, Copy)]
struct Place {
    statement: u32,
    site: Site,
}

struct Reader<'p> {
    program: &'p Program,
    flow: Flow,
    /// Current node of each variable.
    state: Scoped<Node>,
    loops: Vec<Loop>,
    /// Numbers of the enclosing maps.
    maps: Vec<u32>,
    /// Conditions and bounds of the enclosing statements.
    controlling: Vec<Node>,
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

    /// Adds the node of an assignment.
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
                    self.flow.checkpoints.push(FlowCheckpoint {
                        label: *label,
                        statement: item.number,
                        state: self.state.values().to_vec(),
                        loops: self.loops.clone(),
                    });
                }
            }
            Statement::Output { operands, site } => {
                let mut edges = self.operands(None, operands, at(site));
                edges.extend_from_slice(&self.controlling);
                let node = self.node(Kind::Output(!self.maps.is_empty()), at(site), None, &edges);
                self.flow.made[item.number as usize] = node;
                self.flow.outputs.push(node);
            }
        }
    }

    fn conditional(&mut self, item: &Item<'_>, condition: Node, place: Place) {
        self.flow.made[item.number as usize] = condition;
        self.controlling.push(condition);
        let mark = self.state.branch();
        self.block(&item.blocks[0]);
        let then = self.state.roll_back(mark);
        let mark = self.state.branch();
        self.block(&item.blocks[1]);
        let otherwise = self.state.roll_back(mark);
        self.controlling.pop();

        let mut outcomes = Vec::new();
        self.state.merge(then, otherwise, |at, a, b| {
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
        self.controlling.push(bound);
        self.block(body);
        self.controlling.pop();
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
        self.controlling.push(bound);
        self.block(body);
        let result = self.operand(*result, place);
        self.controlling.pop();
        self.maps.pop();
        let ends: Vec<Node> = heads.iter().map(|(v, ..)| self.get(*v)).collect();
        self.state.roll_back(mark);

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

    /// Adds nodes for variables at the start of a body. Their second edge is set after the body is read.
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

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("a program has fewer parts than fit into memory")
}
