//! Types of values, and save sets of checkpoints.

use std::sync::Arc;

use super::syntax::{Site, Symbol, Variable};

/// Class of inputs that a value depends on. A value has the highest quality of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// Constants only: literals, settings, the data.
    Plan,
    /// Also seeds, keys, and counters of enclosing loops. A restart recomputes such a value.
    Key,
    /// Also state of an earlier iteration: parameters, optimizer moments, generators.
    History,
    /// Also external values and results of nondeterministic operations.
    External,
}

impl Quality {
    /// True if a restart can compute such a value from the program and the loop counters.
    pub fn is_recomputable(self) -> bool {
        self <= Quality::Key
    }
}

/// Kind of an [`Origin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginKind {
    /// Seeding of a generator.
    Seed,
    /// Read of the environment.
    Environment,
    /// Nondeterministic operation.
    Nondeterministic,
    /// Order in which the results of workers arrive.
    Arrival,
}

impl OriginKind {
    /// True if the value differs between executions.
    pub fn is_external(self) -> bool {
        self != OriginKind::Seed
    }
}

/// Statement that introduces a seed or a value that the constants do not determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Kind.
    pub kind: OriginKind,
    /// Statement.
    pub site: Site,
    /// Environment source or function, if it has a name.
    pub symbol: Option<Symbol>,
}

/// Reason why a value depends on the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerCause {
    /// Reads the rank of the worker.
    Rank,
    /// Reads the number of workers.
    Workers,
    /// Combines results within each worker, then from worker to worker.
    Ring,
    /// Combines results in the order of arrival.
    Unordered,
    /// All elements of a map draw from this generator, in the order in which workers process them.
    Shared(Variable),
    /// Outputs in the body of a map.
    Output,
}

/// Dependence on the number, the ranks or the speed of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerDependence {
    /// Statement that introduces it.
    pub site: Site,
    /// Cause.
    pub cause: WorkerCause,
}

/// Type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Class of inputs.
    pub quality: Quality,
    /// All origins that the value depends on, through data and conditions, sorted.
    pub sources: Arc<[Origin]>,
    /// Dependence on the workers; one of them if there are several.
    pub workers: Option<WorkerDependence>,
}

impl Type {
    /// Returns the sources that differ between executions.
    pub fn external(&self) -> impl Iterator<Item = &Origin> {
        self.sources.iter().filter(|origin| origin.kind.is_external())
    }
}

/// State that a checkpoint must save.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveSet {
    /// Live variables that cannot be recomputed, in the order of the program's variables.
    pub members: Vec<SavedVariable>,
    /// Counters of the enclosing loops, outermost first.
    pub counters: Vec<Variable>,
    /// Counters of enclosing loops whose number of iterations cannot be recomputed either and must be
    /// saved.
    pub bounds: Vec<Variable>,
    /// Live variables that change in the enclosing loops and follow from the counters. A restart saves
    /// or recomputes them.
    pub recomputed: Vec<Recomputed>,
    /// External values that the program reads after the checkpoint and that reach an output. If there
    /// are any, no checkpoint makes a restart repeat the run.
    pub fresh: Vec<Origin>,
}

impl SaveSet {
    /// Returns the member for a variable.
    pub fn member(&self, variable: Variable) -> Option<&SavedVariable> {
        self.members.iter().find(|member| member.variable == variable)
    }
}

/// Variable that a checkpoint must save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedVariable {
    /// Variable.
    pub variable: Variable,
    /// [`Quality::History`] or [`Quality::External`].
    pub quality: Quality,
    /// Reason why it cannot be recomputed.
    pub reason: SaveReason,
    /// Next statement that uses it.
    pub used_at: Site,
}

/// Variable that a restart computes from the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recomputed {
    /// Variable.
    pub variable: Variable,
    /// Next statement that uses it.
    pub used_at: Site,
}

/// Reason why a value cannot be recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveReason {
    /// Each iteration of a loop computes it from the previous one.
    Carried {
        /// Loop.
        around: Site,
    },
    /// Generator that a loop draws from.
    Moved {
        /// Loop.
        around: Site,
        /// Draw.
        drawn_at: Site,
    },
    /// Computed from a loop-carried variable.
    Derived {
        /// Loop-carried variable.
        from: Variable,
        /// Loop.
        around: Site,
    },
    /// Depends on the order in which workers draw from a generator.
    Shared {
        /// Generator.
        generator: Variable,
        /// Map.
        site: Site,
    },
    /// Depends on an external value.
    External {
        /// Origin of that value.
        origin: Origin,
    },
}
