//! Programs of the calculus.
//!
//! ```text
//! s ::= x := f(e..) | x := nd f(e..)          deterministic, nondeterministic operation
//!     | g := seed e.. | x := draw g e..       generator with state; a draw writes g
//!     | k := fold k e.. | x := rnd(k, e..)    keyed draw: pure
//!     | x := env w                            time, order of files, entropy
//!     | s; s | if c(e..) s s | for i < e s
//!     | ckpt L | out e..
//!     | x := map j < e { s; e } reduce T      T: tree | ring | unordered
//! e ::= x | constant | rank | workers
//! ```

use std::fmt;

/// The name of the one function with a meaning of its own. `succ(x, c..)` is `x` and an amount that
/// the constants `c..` determine, one if there are none. With other operands it is like any other.
pub const SUCCESSOR: &str = "succ";

/// A variable of a program: an index into [`Program::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub u32);

/// The name of a function, a constant, a condition or a thing read from the environment: an index
/// into [`Program::symbols`]. Symbols have no fixed meaning; an interpretation gives them one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// The name of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Where a statement comes from. What the number means is up to whoever wrote the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

/// What operations are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// The value of a variable.
    Variable(Variable),
    /// A literal, a setting or the data: the same in every execution of the program.
    Constant(Symbol),
    /// The number of the worker that executes this.
    Rank,
    /// The number of workers.
    Workers,
}

/// The order in which the results of a parallel map are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduction {
    /// Along one binary tree over the elements, however they are spread over workers.
    Tree,
    /// First within each worker, then from worker to worker.
    Ring,
    /// As they arrive.
    Unordered,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `x := f(e..)`: the same operands give the same value. The function called
    /// [`SUCCESSOR`] counts: its value is its first operand, more by a constant amount.
    Compute {
        /// What is written.
        target: Variable,
        /// What is applied.
        function: Symbol,
        /// What it is applied to.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `x := nd f(e..)`: the same operands may give another value.
    Nondeterministic {
        /// What is written.
        target: Variable,
        /// What is applied.
        function: Symbol,
        /// What it is applied to.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `g := seed e..`.
    Seed {
        /// The generator that is made, or made anew.
        generator: Variable,
        /// What determines it.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `x := draw g e..`: depends on the generator, and moves it on. How far is a matter of the
    /// statement, not of the operands.
    Draw {
        /// What is written.
        target: Variable,
        /// The generator.
        generator: Variable,
        /// What else the value depends on, its shape for instance.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `k := fold k e..`: another key, from a key and numbers.
    Fold {
        /// What is written.
        target: Variable,
        /// The key.
        key: Operand,
        /// What is folded in.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `x := rnd(k, e..)`: a pure function of the key and the numbers.
    Keyed {
        /// What is written.
        target: Variable,
        /// The key.
        key: Operand,
        /// What tells this draw from others with the same key.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `x := env w`: another value in another execution.
    Read {
        /// What is written.
        target: Variable,
        /// What is read: time, the order of files, entropy.
        what: Symbol,
        /// Where it comes from.
        site: Site,
    },
    /// `if c(e..) s s`.
    If {
        /// The condition.
        condition: Symbol,
        /// What it depends on.
        operands: Vec<Operand>,
        /// Executed when it holds.
        then: Vec<Statement>,
        /// Executed when it does not.
        otherwise: Vec<Statement>,
        /// Where it comes from.
        site: Site,
    },
    /// `for i < e s`; the bound is taken once, before the first iteration. The counter is set at the
    /// beginning of each iteration, and afterwards keeps what it had in the last.
    For {
        /// Counts iterations, from zero.
        counter: Variable,
        /// How many there are.
        bound: Operand,
        /// Executed in each.
        body: Vec<Statement>,
        /// Where it comes from.
        site: Site,
    },
    /// `ckpt L`: here the program may be stopped, and started again.
    Checkpoint {
        /// Its name.
        label: Label,
        /// Where it comes from.
        site: Site,
    },
    /// `out e..`: what an execution is judged by.
    Output {
        /// What is put out.
        operands: Vec<Operand>,
        /// Where it comes from.
        site: Site,
    },
    /// `x := map j < e { s; e } reduce T`. What the body writes is its own, but for generators that
    /// it may draw from before it has made them itself: those are shared by all elements. Checkpoints
    /// in the body are none.
    Map {
        /// What is written.
        target: Variable,
        /// The number of the element, from zero.
        element: Variable,
        /// How many elements there are.
        bound: Operand,
        /// Executed for each, on one of the workers.
        body: Vec<Statement>,
        /// What is combined.
        result: Operand,
        /// In which order.
        reduction: Reduction,
        /// Where it comes from.
        site: Site,
    },
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Names of variables.
    pub variables: Vec<String>,
    /// Names of functions, constants, conditions and things read.
    pub symbols: Vec<String>,
    /// Names of checkpoints.
    pub labels: Vec<String>,
    /// What it does.
    pub body: Vec<Statement>,
}

impl Program {
    /// A new variable. Two may have the same name.
    pub fn variable(&mut self, name: impl Into<String>) -> Variable {
        self.variables.push(name.into());
        Variable(index(self.variables.len()))
    }

    /// A new symbol. Two may have the same name.
    pub fn symbol(&mut self, name: impl Into<String>) -> Symbol {
        self.symbols.push(name.into());
        Symbol(index(self.symbols.len()))
    }

    /// A new label.
    pub fn label(&mut self, name: impl Into<String>) -> Label {
        self.labels.push(name.into());
        Label(index(self.labels.len()))
    }

    /// The name of a variable.
    pub fn name(&self, variable: Variable) -> &str {
        &self.variables[variable.0 as usize]
    }

    /// Whether a function applied to these operands adds a constant amount to the first.
    pub(super) fn counts(&self, function: Symbol, operands: &[Operand]) -> bool {
        let is_constant = |operand: &Operand| matches!(operand, Operand::Constant(_));
        self.symbol_name(function) == SUCCESSOR
            && !operands.is_empty()
            && operands[1..].iter().all(is_constant)
    }

    /// The name of a symbol.
    pub fn symbol_name(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol.0 as usize]
    }
}

/// The index of the last of `count` things.
fn index(count: usize) -> u32 {
    u32::try_from(count - 1).expect("a program has fewer names than fit into memory")
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduction::Tree => "tree",
            Reduction::Ring => "ring",
            Reduction::Unordered => "unordered",
        })
    }
}
