//! Interpreter: runs programs, and resumes them from checkpoints.

use super::interpretation::{Interpretation, hash};
use super::recompute::{Recomputation, Within};
use crate::calculus::flow::FlowCheckpoint;
use crate::calculus::outline::{Item, outline, shared};
use crate::calculus::syntax::{Label, Operand, Program, Reduction, Statement, Variable};
use crate::calculus::typing::Typing;

/// Conditions that differ between executions of a program in one interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    /// Seed of external values, nondeterministic results and the order of arrival.
    pub(super) environment: u64,
    /// Number of workers, at least 1.
    pub(super) workers: u64,
    /// Seed of the assignment of elements to workers, and of their order.
    pub(super) schedule: u64,
}

impl Execution {
    /// Worker that executes the code outside maps.
    pub(super) fn rank(&self) -> u64 {
        hash([self.schedule, 0]) % self.workers
    }

    /// Worker that executes an element of a map.
    pub(super) fn worker(&self, map: u32, element: u64) -> u64 {
        hash([self.schedule, 1, map.into(), element]) % self.workers
    }

    /// Elements in the order in which workers execute them.
    fn order(&self, map: u32, elements: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..elements).collect();
        if self.workers > 1 {
            order.sort_by_key(|j| hash([self.schedule, 2, map.into(), *j]));
        }
        order
    }
}

/// Outputs and snapshots of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    /// Outputs.
    pub(super) outputs: Vec<u64>,
    /// Snapshot of each visit of a checkpoint, in order.
    pub(super) snapshots: Vec<Snapshot>,
}

/// State of an execution at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Checkpoint.
    pub(super) label: Label,
    /// Number of outputs before it.
    pub(super) outputs: usize,
    /// Number of its statement.
    statement: u32,
    values: Vec<u64>,
    positions: Vec<Position>,
}

/// Position in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    iteration: u64,
    bound: u64,
}

/// Part of a save set that a restart does not restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omission {
    /// Nothing.
    Nothing,
    /// A member.
    Member(Variable),
    /// Number of iterations of the loop with this counter.
    Bound(Variable),
}

/// Runs a program from its start.
pub(super) fn run(
    program: &Program,
    interpretation: Interpretation,
    execution: Execution,
) -> Trace {
    let items = outline(&program.body, &mut 0);
    let mut machine = Machine::new(program, interpretation, execution);
    machine.block(&items);
    Trace { outputs: machine.outputs, snapshots: machine.snapshots }
}

/// Resumes a program from a checkpoint in another execution, and returns its outputs. Restores the save
/// set except for the omission, recomputes what is recomputable, and sets everything else to arbitrary
/// values.
pub(super) fn resume(
    program: &Program,
    typing: &Typing,
    snapshot: &Snapshot,
    omission: Omission,
    interpretation: Interpretation,
    execution: Execution,
) -> Vec<u64> {
    let items = outline(&program.body, &mut 0);
    let mut machine = Machine::new(program, interpretation, execution);
    let mut checkpoints = typing.flow.checkpoints.iter();
    let checkpoint = checkpoints.find(|it| it.statement == snapshot.statement);
    let path = path_to(&items, snapshot.statement);
    if let (Some(checkpoint), Some(path)) = (checkpoint, path) {
        machine.restore(typing, checkpoint, snapshot, omission);
        machine.block_from(&items, &path);
    }
    machine.outputs
}

/// Numbers of the enclosing statements, outermost first, and of the statement.
fn path_to(items: &[Item<'_>], number: u32) -> Option<Vec<u32>> {
    items.iter().find_map(|item| {
        if item.number == number {
            return Some(vec![number]);
        }
        let inner = item.blocks.iter().find_map(|b| path_to(b, number))?;
        Some([vec![item.number], inner].concat())
    })
}

struct Machine<'p> {
    program: &'p Program,
    interpretation: Interpretation,
    execution: Execution,
    values: Vec<u64>,
    outputs: Vec<u64>,
    snapshots: Vec<Snapshot>,
    /// Positions in the enclosing loops, outermost first.
    positions: Vec<Position>,
    /// Iterations of the enclosing loops and elements of the enclosing maps.
    moment: Vec<u64>,
    /// Workers of the enclosing maps.
    ranks: Vec<u64>,
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program, interpretation: Interpretation, execution: Execution) -> Self {
        Machine {
            program,
            interpretation,
            execution,
            values: vec![0; program.variables.len()],
            outputs: Vec::new(),
            snapshots: Vec::new(),
            positions: Vec::new(),
            moment: Vec::new(),
            ranks: Vec::new(),
        }
    }

    fn restore(
        &mut self,
        typing: &Typing,
        checkpoint: &FlowCheckpoint,
        snapshot: &Snapshot,
        omission: Omission,
    ) {
        let mut recomputation =
            Recomputation::new(&typing.flow, self.interpretation, self.execution);
        let garbage = |what: usize| hash([self.execution.environment, 3, what as u64]);
        let recomputable = |node| typing.solution.get(node).quality.is_recomputable();
        let save = typing.save(checkpoint.label).cloned().unwrap_or_default();
        let around = checkpoint.loops.iter().zip(&snapshot.positions);
        let mut within: Within = around
            .clone()
            .map(|(around, position)| (around.statement, position.iteration))
            .collect();
        within.sort_unstable();

        for (at, node) in checkpoint.state.iter().enumerate() {
            let variable = Variable(at as u32);
            self.values[at] = if omission == Omission::Member(variable) {
                garbage(at)
            } else if save.member(variable).is_some() {
                snapshot.values[at]
            } else if recomputable(*node) {
                recomputation.value(*node, &within)
            } else {
                garbage(at)
            };
        }
        for (depth, (around, position)) in around.enumerate() {
            let bound = if omission == Omission::Bound(around.counter) {
                self.interpretation.bound(garbage(depth))
            } else if save.bounds.contains(&around.counter) {
                position.bound
            } else if recomputable(around.bound) {
                recomputation.value(around.bound, &within)
            } else {
                self.interpretation.bound(garbage(depth))
            };
            self.positions.push(Position { iteration: position.iteration, bound });
        }
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Variable(variable) => self.values[variable.0 as usize],
            Operand::Constant(symbol) => self.interpretation.constant(symbol),
            Operand::Rank => self.ranks.last().copied().unwrap_or(self.execution.rank()),
            Operand::Workers => self.execution.workers,
        }
    }

    fn operands(&self, first: Option<u64>, operands: &[Operand]) -> Vec<u64> {
        let rest = operands.iter().map(|operand| self.operand(*operand));
        first.into_iter().chain(rest).collect()
    }

    fn set(&mut self, variable: Variable, value: u64) {
        self.values[variable.0 as usize] = value;
    }

    /// External value that a statement reads in the current iteration.
    fn external(&self, statement: u32, operands: &[u64]) -> u64 {
        let head = [self.execution.environment, 4, statement.into()];
        let moment = self.moment.iter().copied();
        hash(head.into_iter().chain(moment).chain(operands.iter().copied()))
    }

    fn block(&mut self, items: &[Item<'_>]) {
        for item in items {
            self.statement(item);
        }
    }

    /// Executes the statements after the one that `path` leads to.
    fn block_from(&mut self, items: &[Item<'_>], path: &[u32]) {
        let at = items.iter().position(|item| Some(&item.number) == path.first());
        let Some((at, item)) = at.map(|at| (at, &items[at])) else {
            return;
        };
        let inner = &path[1..];
        let leads_into =
            |block: &&Vec<Item<'_>>| block.iter().any(|item| Some(&item.number) == inner.first());
        if let Some(block) = item.blocks.iter().find(leads_into) {
            if let Statement::For { counter, .. } = item.statement {
                let position = self.positions[self.moment.len()];
                self.moment.push(position.iteration);
                self.block_from(block, inner);
                self.moment.pop();
                self.positions.pop();
                self.iterations(block, *counter, position.iteration + 1, position.bound);
            } else {
                self.block_from(block, inner);
            }
        }
        self.block(&items[at + 1..]);
    }

    fn iterations(&mut self, body: &[Item<'_>], counter: Variable, first: u64, bound: u64) {
        for iteration in first..bound {
            self.set(counter, iteration);
            self.positions.push(Position { iteration, bound });
            self.moment.push(iteration);
            self.block(body);
            self.moment.pop();
            self.positions.pop();
        }
    }

    fn statement(&mut self, item: &Item<'_>) {
        let meaning = self.interpretation;
        match item.statement {
            Statement::Compute { target, function, operands, .. } => {
                let values = self.operands(None, operands);
                let value = if self.program.counts(*function, operands) {
                    meaning.count(&values)
                } else {
                    meaning.apply(*function, &values)
                };
                self.set(*target, value);
            }
            Statement::Nondeterministic { target, operands, .. } => {
                let value = self.external(item.number, &self.operands(None, operands));
                self.set(*target, value);
            }
            Statement::Read { target, .. } => {
                let value = self.external(item.number, &[]);
                self.set(*target, value);
            }
            Statement::Seed { generator, operands, .. } => {
                self.set(*generator, meaning.seed(&self.operands(None, operands)))
            }
            Statement::Draw { target, generator, operands, .. } => {
                let from = self.operand(Operand::Variable(*generator));
                let values = self.operands(Some(from), operands);
                self.set(*generator, meaning.next(item.number, from));
                self.set(*target, meaning.draw(item.number, &values));
            }
            Statement::Fold { target, key, operands, .. } => {
                let values = self.operands(Some(self.operand(*key)), operands);
                self.set(*target, meaning.fold(&values));
            }
            Statement::Keyed { target, key, operands, .. } => {
                let values = self.operands(Some(self.operand(*key)), operands);
                self.set(*target, meaning.keyed(&values));
            }
            Statement::If { condition, operands, .. } => {
                let holds = meaning.condition(*condition, &self.operands(None, operands));
                self.block(&item.blocks[usize::from(!holds)]);
            }
            Statement::For { counter, bound, .. } => {
                let bound = meaning.bound(self.operand(*bound));
                self.iterations(&item.blocks[0], *counter, 0, bound);
            }
            Statement::Checkpoint { label, .. } => {
                if self.ranks.is_empty() {
                    self.snapshots.push(Snapshot {
                        label: *label,
                        outputs: self.outputs.len(),
                        statement: item.number,
                        values: self.values.clone(),
                        positions: self.positions.clone(),
                    });
                }
            }
            Statement::Output { operands, .. } => {
                self.outputs.push(hash(self.operands(None, operands)));
            }
            Statement::Map { target, element, bound, result, reduction, .. } => {
                let elements = meaning.bound(self.operand(*bound));
                let mut results = self.map(item, *element, elements, *result);
                if *reduction == Reduction::Unordered && self.execution.workers > 1 {
                    let arrival = self.external(item.number, &[]);
                    let mut order: Vec<usize> = (0..results.len()).collect();
                    order.sort_by_key(|j| hash([arrival, *j as u64]));
                    results = order.into_iter().map(|j| results[j]).collect();
                }
                let Execution { workers, .. } = self.execution;
                let worker = |j| self.execution.worker(item.number, j);
                let value = meaning.collect(item.number, *reduction, &results, worker, workers);
                self.set(*target, value);
            }
        }
    }

    /// Executes a map and returns the results. Only shared generators keep what the body writes.
    fn map(
        &mut self,
        item: &Item<'_>,
        element: Variable,
        elements: u64,
        result: Operand,
    ) -> Vec<u64> {
        let body = &item.blocks[0];
        let shared = shared(element, body);
        let mut outside = self.values.clone();
        let mut results = vec![0; elements as usize];
        for j in self.execution.order(item.number, elements) {
            self.set(element, j);
            self.ranks.push(self.execution.worker(item.number, j));
            self.moment.push(j);
            self.block(body);
            results[j as usize] = self.operand(result);
            self.moment.pop();
            self.ranks.pop();
            for generator in &shared {
                let at = generator.0 as usize;
                outside[at] = self.values[at];
            }
            self.values.clone_from(&outside);
        }
        results
    }
}
