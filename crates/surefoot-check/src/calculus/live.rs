//! Liveness of variables at checkpoints.
//!
//! A variable is live if its value can still reach an output, through data or through a condition or a
//! bound that controls one. A variable that is only logged is not live.

use super::flow::{Flow, Node};
use super::outline::Item;
use super::scoped::{Mark, Scoped};
use super::solve::origin;
use super::syntax::{Operand, Site, Statement, Variable};

/// Returns for each node whether an output depends on it.
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

/// Liveness at one checkpoint.
pub(super) struct Live {
    /// Next use of each variable; `None` if it is dead.
    pub(super) variables: Vec<Option<Site>>,
    /// Nodes after the checkpoint that read external values and reach an output.
    pub(super) fresh: Vec<Node>,
}

/// Returns the liveness at each checkpoint, in the order of [`Flow::checkpoints`].
pub(super) fn live(
    flow: &Flow,
    relevant: &[bool],
    variables: usize,
    body: &[Item<'_>],
) -> Vec<Live> {
    let is_external = |at: &u32| {
        origin(flow, Node(*at)).is_some_and(|o| o.kind.is_external()) && relevant[*at as usize]
    };
    let externals: Vec<Node> = (0..flow.nodes.len() as u32).filter(is_external).map(Node).collect();
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

/// Walks the program backwards.
struct Reader<'f> {
    flow: &'f Flow,
    relevant: &'f [bool],
    /// Next use of each variable, then of each of `externals`, which stay live from their statement
    /// back to the start.
    live: Scoped<Option<Site>>,
    variables: usize,
    externals: Vec<Node>,
    /// False during the first walk over a loop body, which only finds what the body needs.
    recording: bool,
    in_map: bool,
    found: Vec<Live>,
}

impl Reader<'_> {
    fn matters(&self, node: Node) -> bool {
        self.relevant[node.index()]
    }

    fn kill(&mut self, variable: Variable) {
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
                self.kill(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                }
            }
            Statement::Nondeterministic { target, operands, site, .. } => {
                self.kill(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                }
                self.mark_external(made, *site);
            }
            Statement::Read { target, site, .. } => {
                self.kill(*target);
                self.mark_external(made, *site);
            }
            Statement::Fold { target, key, operands, site }
            | Statement::Keyed { target, key, operands, site } => {
                self.kill(*target);
                if self.matters(made) {
                    self.need(operands, *site);
                    self.need(&[*key], *site);
                }
            }
            Statement::Draw { target, generator, operands, site } => {
                self.kill(*target);
                self.kill(*generator);
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
                let otherwise = self.live.roll_back(mark);
                let mark = self.live.branch();
                self.block(&item.blocks[0]);
                let then = self.live.roll_back(mark);
                self.live.merge(then, otherwise, |_, a, b| a.or(b));
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
                self.kill(*target);
                let was = std::mem::replace(&mut self.in_map, true);
                let mark = self.live.branch();
                if self.matters(also) {
                    self.need(&[*result], *site);
                }
                self.block(&item.blocks[0]);
                self.kill(*element);
                self.add(mark);
                self.in_map = was;
                self.mark_external(also, *site);
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

    /// Marks an external node as live if it is one of `externals`.
    fn mark_external(&mut self, node: Node, site: Site) {
        if let Ok(at) = self.externals.binary_search(&node) {
            self.live.set(self.variables + at, Some(site));
        }
    }

    /// Adds what the branch since the mark needs at its start to what is live here: the branch may run
    /// any number of times.
    fn add(&mut self, mark: Mark) {
        for (at, site) in self.live.roll_back(mark) {
            if site.is_some() {
                self.live.set(at, site);
            }
        }
    }

    fn iteration(&mut self, body: &[Item<'_>], counter: Variable) {
        let was = std::mem::replace(&mut self.recording, false);
        let mark = self.live.branch();
        self.block(body);
        self.kill(counter);
        self.add(mark);
        self.recording = was;
        if self.recording {
            // The second walk starts with everything that is live at the end of the body.
            let mark = self.live.branch();
            self.block(body);
            self.live.roll_back(mark);
        }
    }
}
