//! The calculus program under construction, and the facts recorded beside it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    BranchId, DYNAMIC_NAME, Environment, Label, Lifted, LoopId, Models, Moment, NondeterministicOp,
    Operand, Program, Rewrite, Site, Statement, Symbol, Unknown, Value, Variable,
};

/// Number of statements after which functions are no longer entered, which bounds the time per script.
const MAX_STATEMENTS: usize = 40_000;

/// Writes the statements of a program, innermost block last.
pub(super) struct ProgramBuilder<'a> {
    pub program: Program,
    pub facts: Lifted,
    pub functions: HashMap<String, Symbol>,
    pub blocks: Vec<Vec<Statement>>,
    emitted: usize,
    /// Open loops, outermost first.
    pub loops: Vec<LoopId>,
    /// For each open loop, the variable that is true once it was left early.
    pub stops: Vec<Option<Variable>>,
    /// Orders of the open loops that differ between executions.
    pub orders: Vec<(Environment, Variable)>,
    clock: u32,
    /// Innermost open branch.
    pub branch: Option<BranchId>,
    /// Variables of everything that is trained.
    pub trained: Vec<Variable>,
    /// Variables of tuple elements.
    pub part_variables: HashMap<(Variable, usize), Variable>,
    /// Command-line settings that the script overwrites with a drawn value.
    pub drawn_settings: BTreeMap<&'a str, Variable>,
    /// Unknown callees already reported.
    reported_unknowns: BTreeSet<String>,
}

impl<'a> ProgramBuilder<'a> {
    /// Creates an empty program of a script that starts at `start`.
    pub(super) fn new(start: crate::Place) -> ProgramBuilder<'a> {
        ProgramBuilder {
            program: Program::default(),
            facts: Lifted { sites: vec![start], ..Lifted::default() },
            functions: HashMap::new(),
            blocks: vec![Vec::new()],
            emitted: 0,
            loops: Vec::new(),
            stops: Vec::new(),
            orders: Vec::new(),
            clock: 0,
            branch: None,
            trained: Vec::new(),
            part_variables: HashMap::new(),
            drawn_settings: BTreeMap::new(),
            reported_unknowns: BTreeSet::new(),
        }
    }

    /// Creates a variable.
    pub(super) fn variable(&mut self, name: &str) -> Variable {
        self.program.variable(name)
    }

    /// Creates a symbol.
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        self.program.symbol(name)
    }

    /// Creates a checkpoint label.
    pub(super) fn label(&mut self, name: &str) -> Label {
        self.program.label(name)
    }

    /// Name of a variable.
    pub(super) fn name(&self, variable: Variable) -> &str {
        self.program.name(variable)
    }

    pub(super) fn emit(&mut self, statement: Statement) {
        self.emitted += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    /// The symbol of a function, a constant or a thing that is read.
    pub(super) fn function(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.functions.get(name) {
            return *symbol;
        }
        let symbol = self.program.symbol(name);
        self.functions.insert(name.to_owned(), symbol);
        symbol
    }

    /// `target := name(operands)`.
    pub(super) fn compute(
        &mut self,
        target: Variable,
        name: &str,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) {
        let function = self.function(name);
        let operands = operands.into_iter().collect();
        self.emit(Statement::Compute { target, function, operands, site });
    }

    /// An operation that is not deterministic on a GPU.
    pub(super) fn nondeterministic(
        &mut self,
        operation: &'static str,
        operands: Vec<Operand>,
        site: Site,
    ) -> Vec<Operand> {
        if !self.facts.uses_cuda || self.facts.is_deterministic {
            return operands;
        }
        let target = self.program.variable("nondeterministic");
        let function = self.function(operation);
        self.facts.nondeterministic_ops.push(NondeterministicOp { operation, site });
        self.emit(Statement::Nondeterministic { target, function, operands, site });
        vec![Operand::Variable(target)]
    }

    /// Returns true if the statement limit is reached.
    pub(super) fn is_exhausted(&self) -> bool {
        self.emitted > MAX_STATEMENTS
    }

    /// `target := name()` before all loops.
    pub(super) fn compute_first(&mut self, target: Variable, name: &str, site: Site) {
        let function = self.function(name);
        if let Some(block) = self.blocks.first_mut() {
            block.push(Statement::Compute { target, function, operands: Vec::new(), site });
        }
    }

    /// The orders that anything accumulated in the open loops depends on.
    pub(super) fn open_orders(&self) -> impl Iterator<Item = Operand> {
        self.orders.iter().map(|(_, order)| Operand::Variable(*order))
    }

    /// Records a write of state outside of a training step.
    pub(super) fn note_rewrite(&mut self, variable: Variable, site: Site) {
        let moment = self.moment();
        self.facts.rewrites.push(Rewrite { variable, site, moment });
    }

    /// The next moment.
    pub(super) fn moment(&mut self) -> Moment {
        self.clock += 1;
        Moment { order: self.clock, branch: self.branch, in_loop: !self.loops.is_empty() }
    }

    /// Reports that an unknown callee takes part in the training, once per callee.
    pub(super) fn report_unknown(&mut self, callee: &str, site: Site, part: &str, trains: bool) {
        let callee = shown(callee);
        if self.reported_unknowns.insert(callee.clone()) {
            self.facts.unknown.push(Unknown { callee, site, part: part.to_owned(), trains });
        }
    }

    /// Computes a value into a new variable, with the function of the same name.
    pub(super) fn computed(
        &mut self,
        name: &str,
        operands: impl IntoIterator<Item = Operand>,
        models: Models,
        site: Site,
    ) -> Value<'a> {
        self.computed_as(name, name, operands, models, site)
    }

    /// Computes a value into a new variable.
    pub(super) fn computed_as(
        &mut self,
        name: &str,
        function: &str,
        operands: impl IntoIterator<Item = Operand>,
        models: Models,
        site: Site,
    ) -> Value<'a> {
        let target = self.program.variable(name);
        self.compute(target, function, operands, site);
        Value::variable(target).with_models(models)
    }
}

/// Callee, as written in Python.
fn shown(callee: &str) -> String {
    match callee.strip_suffix(DYNAMIC_NAME) {
        Some(module) if module.ends_with('.') => format!("{module}__dict__[..]"),
        _ => callee.to_owned(),
    }
}
