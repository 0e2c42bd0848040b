//! What the types of the calculus say.

use std::fmt;
use std::sync::Arc;

use super::syntax::{Program, Site, Symbol, Variable};

/// What a value is made of. Of several things, the last in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// Constants alone: literals, settings, the data.
    Plan,
    /// Also seeds, keys, and counters of the loops around it. It is recomputed from them.
    Key,
    /// Also what an earlier iteration left: parameters, moments, generators that are drawn from.
    History,
    /// Also what is read from outside, or computed in a way that does not repeat.
    External,
}

impl Quality {
    /// Whether a restart can compute such a value from the program and the counters.
    pub fn is_recomputable(self) -> bool {
        self <= Quality::Key
    }
}

/// What an [`Origin`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginKind {
    /// A generator was seeded.
    Seed,
    /// The environment was read.
    Environment,
    /// An operation that does not repeat.
    Nondeterministic,
    /// The order in which the results of workers arrived.
    Arrival,
}

impl OriginKind {
    /// Whether another execution may find another value there.
    pub fn is_external(self) -> bool {
        self != OriginKind::Seed
    }
}

/// A place where something comes into a program that its constants do not determine, and seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// What it is.
    pub kind: OriginKind,
    /// The statement.
    pub site: Site,
    /// What is read or applied there, if it has a name.
    pub symbol: Option<Symbol>,
}

/// Why a value differs with the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerCause {
    /// The number of the worker is read.
    Rank,
    /// The number of workers is read.
    Workers,
    /// A reduction within each worker, then from worker to worker.
    Ring,
    /// A reduction in the order of arrival.
    Unordered,
    /// All elements of a map draw from this generator, in the order in which workers get to them.
    Shared(Variable),
    /// An output in the body of a map.
    Output,
}

/// A dependence on the number, the ranks or the speed of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerDependence {
    /// Where it comes in.
    pub site: Site,
    /// How.
    pub cause: WorkerCause,
}

/// The type of a variable at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// What its value is made of.
    pub quality: Quality,
    /// Everything it depends on, through data and through conditions, sorted.
    pub sources: Arc<[Origin]>,
    /// Why it differs with the workers, if it does; where there are several causes, one of them.
    pub workers: Option<WorkerDependence>,
}

impl Type {
    /// Its sources that another execution may find otherwise.
    pub fn external(&self) -> impl Iterator<Item = &Origin> {
        self.sources.iter().filter(|origin| origin.kind.is_external())
    }
}

/// What a checkpoint must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Save {
    /// Variables whose values cannot be recomputed and matter for what comes, in the order of the
    /// program's variables.
    pub members: Vec<Member>,
    /// The counters of the loops around the checkpoint, outermost first.
    pub counters: Vec<Variable>,
    /// Those of the counters beside which the number of iterations must be saved, because that
    /// cannot be recomputed either.
    pub bounds: Vec<Variable>,
    /// Variables that matter for what comes and change in the loops around the checkpoint, but
    /// follow from the counters: a restart either saves them or computes them.
    pub recomputed: Vec<Recomputed>,
    /// What the program takes from outside after the checkpoint, and lets reach an output. While
    /// there is any, no checkpoint makes a restart repeat the run.
    pub fresh: Vec<Origin>,
}

impl Save {
    /// The member that is this variable.
    pub fn member(&self, variable: Variable) -> Option<&Member> {
        self.members.iter().find(|member| member.variable == variable)
    }
}

/// A variable that a checkpoint must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The variable.
    pub variable: Variable,
    /// [`Quality::History`] or [`Quality::External`].
    pub quality: Quality,
    /// Why it cannot be recomputed.
    pub reason: Reason,
    /// The statement that needs it next.
    pub used_at: Site,
}

/// A variable that a restart finds from the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recomputed {
    /// The variable.
    pub variable: Variable,
    /// The statement that needs it next.
    pub used_at: Site,
}

/// Why a value cannot be recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Each iteration of a loop makes it from what the one before left.
    Carried {
        /// The loop.
        around: Site,
    },
    /// A generator that is drawn from in a loop.
    Moved {
        /// The loop.
        around: Site,
        /// The draw.
        drawn_at: Site,
    },
    /// It is computed from a variable that a loop carries round.
    Derived {
        /// That variable.
        from: Variable,
        /// The loop.
        around: Site,
    },
    /// Workers draw from it, or from what it is made of, as they get to it.
    Shared {
        /// The generator.
        generator: Variable,
        /// The map.
        site: Site,
    },
    /// It depends on something outside.
    External {
        /// On what.
        origin: Origin,
    },
}

impl Reason {
    /// One sentence about a variable called `it`. `place` names sites.
    pub fn sentence(&self, it: &str, program: &Program, place: impl Fn(Site) -> String) -> String {
        match *self {
            Reason::Carried { around } => {
                format!("{it} is carried round the loop at {}.", place(around))
            }
            Reason::Moved { around, drawn_at } => format!(
                "{it} is moved on by the draw at {} in the loop at {}.",
                place(drawn_at),
                place(around)
            ),
            Reason::Derived { from, around } => format!(
                "{it} is computed from {}, which is carried round the loop at {}.",
                program.name(from),
                place(around)
            ),
            Reason::Shared { generator, site } => format!(
                "{it} depends on the order in which workers draw from {} at {}.",
                program.name(generator),
                place(site)
            ),
            Reason::External { origin } => {
                let site = place(origin.site);
                let what = origin.symbol.map_or("a value", |symbol| program.symbol_name(symbol));
                match origin.kind {
                    OriginKind::Environment => format!(
                        "{it} depends on {what}, read from the environment at {site}; another execution reads something else."
                    ),
                    OriginKind::Nondeterministic => format!(
                        "{it} depends on {what} at {site}, which need not give the same value again."
                    ),
                    OriginKind::Arrival => {
                        format!("{it} depends on the order in which results arrive at {site}.")
                    }
                    OriginKind::Seed => format!("{it} depends on the seed at {site}."),
                }
            }
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quality::Plan => "plan",
            Quality::Key => "key",
            Quality::History => "history",
            Quality::External => "external",
        })
    }
}
