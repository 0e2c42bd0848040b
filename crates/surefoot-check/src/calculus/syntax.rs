//! Programs of the calculus.
//!
//! ```text
//! s ::= x := f(e..) | x := nd f(e..)          deterministic, nondeterministic operation
//!     | g := seed e.. | x := draw g e..       generator with state; a draw advances g
//!     | k := fold k e.. | x := rnd(k, e..)    keyed draw: pure
//!     | x := env w                            time, order of files, entropy
//!     | s; s | if c(e..) s s | for i < e s
//!     | ckpt L | out e..
//!     | x := map j < e { s; e } reduce T      T: tree | ring | unordered
//! e ::= x | constant | rank | workers
//! ```

/// Name of the built-in function that counts. `succ(x, c..)` adds to `x` an amount that the constants
/// `c..` determine, 1 if there are none. With other operands it is an ordinary function.
pub const SUCCESSOR: &str = "succ";

/// Variable of a program: an index into [`Program::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub u32);

/// Uninterpreted name of a function, a constant, a condition or an environment source: an index into
/// [`Program::symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// Name of a checkpoint: an index into [`Program::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Origin of a statement. The producer of the program defines what the number means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

/// Operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// Value of a variable.
    Variable(Variable),
    /// Literal, setting or data set: the same in every execution of the program.
    Constant(Symbol),
    /// Rank of the executing worker.
    Rank,
    /// Number of workers.
    Workers,
}

impl Operand {
    /// Variable that is read.
    pub fn variable(self) -> Option<Variable> {
        match self {
            Operand::Variable(variable) => Some(variable),
            _ => None,
        }
    }
}

/// Order in which the results of a parallel map are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduction {
    /// Along one binary tree over the elements, independent of their distribution over workers.
    Tree,
    /// Within each worker first, then from worker to worker.
    Ring,
    /// In the order of arrival.
    Unordered,
}

/// Statement of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `x := f(e..)`: equal operands give equal values. The function named [`SUCCESSOR`] counts.
    Compute {
        /// Variable that is written.
        target: Variable,
        /// Function.
        function: Symbol,
        /// Operands.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `x := nd f(e..)`: equal operands may give different values.
    Nondeterministic {
        /// Variable that is written.
        target: Variable,
        /// Function.
        function: Symbol,
        /// Operands.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `g := seed e..`: creates or re-seeds a generator.
    Seed {
        /// Generator.
        generator: Variable,
        /// Seed.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `x := draw g e..`: reads the generator and advances it. The statement alone, not its operands,
    /// determines how far.
    Draw {
        /// Variable that is written.
        target: Variable,
        /// Generator.
        generator: Variable,
        /// Other inputs of the value, such as its shape.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `k := fold k e..`: derives a key from a key and numbers.
    Fold {
        /// Variable that is written.
        target: Variable,
        /// Key.
        key: Operand,
        /// Numbers that are folded in.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `x := rnd(k, e..)`: a pure function of the key and the numbers.
    Keyed {
        /// Variable that is written.
        target: Variable,
        /// Key.
        key: Operand,
        /// Numbers that distinguish draws with the same key.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `x := env w`: reads a value that differs between executions.
    Read {
        /// Variable that is written.
        target: Variable,
        /// Environment source: time, order of files, entropy.
        what: Symbol,
        /// Origin.
        site: Site,
    },
    /// `if c(e..) s s`.
    If {
        /// Condition.
        condition: Symbol,
        /// Operands of the condition.
        operands: Vec<Operand>,
        /// Executed if the condition holds.
        then: Vec<Statement>,
        /// Executed otherwise.
        otherwise: Vec<Statement>,
        /// Origin.
        site: Site,
    },
    /// `for i < e s`. The bound is evaluated once, before the first iteration. The counter is set at
    /// the start of each iteration and keeps its last value after the loop.
    For {
        /// 0-based iteration counter.
        counter: Variable,
        /// Number of iterations.
        bound: Operand,
        /// Loop body.
        body: Vec<Statement>,
        /// Origin.
        site: Site,
    },
    /// `ckpt L`: the program may be stopped here and restarted.
    Checkpoint {
        /// Name.
        label: Label,
        /// Origin.
        site: Site,
    },
    /// `out e..`: result of the program. Executions are compared by their outputs.
    Output {
        /// Values that are output.
        operands: Vec<Operand>,
        /// Origin.
        site: Site,
    },
    /// `x := map j < e { s; e } reduce T`. Variables written by the body are local to an element,
    /// except for generators that the body may draw from before it creates them: all elements share
    /// those. Checkpoints in the body are ignored.
    Map {
        /// Variable that is written.
        target: Variable,
        /// 0-based element number.
        element: Variable,
        /// Number of elements.
        bound: Operand,
        /// Executed for each element on one of the workers.
        body: Vec<Statement>,
        /// Result of an element.
        result: Operand,
        /// Order in which the results are combined.
        reduction: Reduction,
        /// Origin.
        site: Site,
    },
}

impl Statement {
    /// Variables that the statement writes itself, without those its blocks write.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Variable> {
        let targets = match self {
            Statement::Compute { target, .. }
            | Statement::Nondeterministic { target, .. }
            | Statement::Fold { target, .. }
            | Statement::Keyed { target, .. }
            | Statement::Read { target, .. }
            | Statement::Seed { generator: target, .. }
            | Statement::For { counter: target, .. }
            | Statement::Map { target, .. } => [Some(*target), None],
            Statement::Draw { target, generator, .. } => [Some(*target), Some(*generator)],
            Statement::If { .. } | Statement::Checkpoint { .. } | Statement::Output { .. } => {
                [None, None]
            }
        };
        targets.into_iter().flatten()
    }

    /// Branches of a conditional, or the body of a loop or a map.
    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = &[Statement]> {
        let blocks: [Option<&[Statement]>; 2] = match self {
            Statement::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Statement::For { body, .. } | Statement::Map { body, .. } => [Some(body), None],
            _ => [None, None],
        };
        blocks.into_iter().flatten()
    }

    /// Origin of the statement.
    pub fn site(&self) -> Site {
        match self {
            Statement::Compute { site, .. }
            | Statement::Nondeterministic { site, .. }
            | Statement::Seed { site, .. }
            | Statement::Draw { site, .. }
            | Statement::Fold { site, .. }
            | Statement::Keyed { site, .. }
            | Statement::Read { site, .. }
            | Statement::If { site, .. }
            | Statement::For { site, .. }
            | Statement::Checkpoint { site, .. }
            | Statement::Output { site, .. }
            | Statement::Map { site, .. } => *site,
        }
    }
}

/// Program of the calculus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Names of variables.
    pub variables: Vec<String>,
    /// Names of functions, constants, conditions and environment sources.
    pub symbols: Vec<String>,
    /// Names of checkpoints.
    pub labels: Vec<String>,
    /// Statements, in order of execution.
    pub body: Vec<Statement>,
}

impl Program {
    /// Adds a variable. Names need not be unique.
    pub fn variable(&mut self, name: impl Into<String>) -> Variable {
        self.variables.push(name.into());
        Variable(last_index(&self.variables))
    }

    /// Adds a symbol. Names need not be unique.
    pub fn symbol(&mut self, name: impl Into<String>) -> Symbol {
        self.symbols.push(name.into());
        Symbol(last_index(&self.symbols))
    }

    /// Adds a label.
    pub fn label(&mut self, name: impl Into<String>) -> Label {
        self.labels.push(name.into());
        Label(last_index(&self.labels))
    }

    /// Returns the name of a variable.
    pub fn name(&self, variable: Variable) -> &str {
        &self.variables[variable.0 as usize]
    }

    /// Returns the name of a symbol.
    pub fn symbol_name(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol.0 as usize]
    }

    /// True if a function applied to these operands adds a constant amount to the first.
    pub(super) fn counts(&self, function: Symbol, operands: &[Operand]) -> bool {
        let is_constant = |operand: &Operand| matches!(operand, Operand::Constant(_));
        self.symbol_name(function) == SUCCESSOR
            && !operands.is_empty()
            && operands[1..].iter().all(is_constant)
    }
}

fn last_index(names: &[String]) -> u32 {
    u32::try_from(names.len() - 1).expect("a program has fewer names than fit into memory")
}
