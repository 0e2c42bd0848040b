//! Which variables matter at which checkpoint.
//!
//! A variable is live where its value can still reach an output, through data, or through a
//! condition or a bound that decides about one. That it is read is not enough: what a log needs is
//! not what a restart needs.

use super::flow::{Flow, Node};
use super::outline::Item;
use super::scoped::{Mark, Scoped};
use super::solve::origin;
use super::syntax::{Operand, Site, Statement, Variable};

/// For each node whether an output depends on it.
pub(super) fn relevant(flow: &Flow) -> Vec<bool> {
    let mut relevant = vec![false; flow.nodes.len()];
    let mut open: Vec<Node> = flow.outputs.clone();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut relevant[node.index()], true) {
            open.extend_from_slice(flow.edges(node));
        }
    }
    relevant
}

/// What is live at a checkpoint.
pub(super) struct Live {
    /// For each variable the site that needs it next, if any does.
    pub(super) variables: Vec<Option<Site>>,
    /// Nodes that take something from outside, are still to come, and matter.
    pub(super) fresh: Vec<Node>,
}

/// What is live at each checkpoint, in the order of [`Flow::stops`].
pub(super) fn live(
    flow: &Flow,
    relevant: &[bool],
    variables: usize,
    body: &[Item<'_>],
) -> Vec<Live> {
    let takes_in = |at: &u32| {
        origin(flow, Node(*at)).is_some_and(|o| o.kind.is_external()) && relevant[*at as usize]
    };
    let externals: Vec<Node> = (0..flow.nodes.len() as u32).filter(takes_in).map(Node).collect();
    let mut reader = Reader {
        flow,
        relevant,
        live: Scoped::new(vec![None; variables + externals.len()]),
        variables,
        externals,
        recording: true,
        in_map: false,
        found: Vec::new(),
    };
    reader.block(body);
    reader.found.reverse();
    reader.found
}

/// Goes through the program backwards.
struct Reader<'f> {
    flow: &'f Flow,
    relevant: &'f [bool],
    /// The next use of each variable, and after the variables of each of `externals`: nothing ever
    /// ends those, so one is live as long as it is still to come.
    live: Scoped<Option<Site>>,
    variables: usize,
    externals: Vec<Node>,
    /// Whether checkpoints are taken down; not while it is only asked what a body needs.
    recording: bool,
    in_map: bool,
    found: Vec<Live>,
}

impl Reader<'_> {
    fn matters(&self, node: Node) -> bool {
        self.relevant[node.index()]
    }

    fn end(&mut self, variable: Variable) {
        self.live.set(variable.0 as usize, None);
    }

    fn need(&mut self, operands: &[Operand], site: Site) {
        for operand in operands {
            if let Operand::Variable(variable) = operand {
                self.live.set(variable.0 as usize, Some(site));
            }
        }
    }

    fn block(&mut self, items: &[Item<'_>]) {
        for item in items.iter().rev() {
            self.statement(item);
        }
    }

    fn statement(&mut self, item: &Item<'_>) {
        let made = self.flow.made[item.number as usize];
        let also = self.flow.also[item.number as usize];
        match item.statement {
            Statement::Compute { target, operands, site, .. }
            | Statement::Seed { generator: target, operands, site } => {
                self.end(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                }
            }
            Statement::Nondeterministic { target, operands, site, .. } => {
                self.end(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                }
                self.take_in(made, *site);
            }
            Statement::Read { target, site, .. } => {
                self.end(*target);
                self.take_in(made, *site);
            }
            Statement::Fold { target, key, operands, site }
            | Statement::Keyed { target, key, operands, site } => {
                self.end(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                    self.need(&[*key], *site);
                }
            }
            Statement::Draw { target, generator, operands, site } => {
                self.end(*target);
                self.end(*generator);
                if self.matters(made) {
                    self.need(operands, *site);
                }
                if self.matters(made) || self.matters(also) {
                    self.need(&[Operand::Variable(*generator)], *site);
                }
            }
            Statement::If { operands, site, .. } => {
                let mark = self.live.branch();
                self.block(&item.blocks[1]);
                let otherwise = self.live.take_back(mark);
                let mark = self.live.branch();
                self.block(&item.blocks[0]);
                let then = self.live.take_back(mark);
                self.live.meet(then, otherwise, |_, a, b| a.or(b));
                if self.matters(made) {
                    self.need(operands, *site);
                }
            }
            Statement::For { counter, bound, site, .. } => {
                self.iteration(&item.blocks[0], *counter);
                if self.matters(made) {
                    self.need(&[*bound], *site);
                }
            }
            Statement::Map { target, element, bound, result, site, .. } => {
                self.end(*target);
                let was = std::mem::replace(&mut self.in_map, true);
                let mark = self.live.branch();
                if self.matters(also) {
                    self.need(&[*result], *site);
                }
                self.block(&item.blocks[0]);
                self.end(*element);
                self.add(mark);
                self.in_map = was;
                self.take_in(also, *site);
                if self.matters(made) {
                    self.need(&[*bound], *site);
                }
            }
            Statement::Checkpoint { .. } => {
                if self.recording && !self.in_map {
                    let (variables, externals) = self.live.values().split_at(self.variables);
                    self.found.push(Live {
                        variables: variables.to_vec(),
                        fresh: externals
                            .iter()
                            .zip(&self.externals)
                            .filter_map(|(live, node)| live.map(|_| *node))
                            .collect(),
                    });
                }
            }
            Statement::Output { operands, site } => self.need(operands, *site),
        }
    }

    /// What a node takes from outside is still to come, if it takes in anything that matters.
    fn take_in(&mut self, node: Node, site: Site) {
        if let Ok(at) = self.externals.binary_search(&node) {
            self.live.set(self.variables + at, Some(site));
        }
    }

    /// What the branch since the mark needs at its beginning is needed besides what is needed here:
    /// it may not be executed, or more than once.
    fn add(&mut self, mark: Mark) {
        for (at, site) in self.live.take_back(mark) {
            if site.is_some() {
                self.live.set(at, site);
            }
        }
    }

    fn iteration(&mut self, body: &[Item<'_>], counter: Variable) {
        let was = std::mem::replace(&mut self.recording, false);
        let mark = self.live.branch();
        self.block(body);
        self.end(counter);
        self.add(mark);
        self.recording = was;
        if self.recording {
            // Now everything is known that is needed at the end of the body.
            let mark = self.live.branch();
            self.block(body);
            self.live.take_back(mark);
        }
    }
}
