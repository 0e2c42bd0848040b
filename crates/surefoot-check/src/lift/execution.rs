//! Control state of the abstract execution: open calls and the mode they run in.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::{Class, Code, FileId, FrameId, ObjectId, Site};

/// The part of the script that is being executed.
#[derive(Default)]
pub(super) struct Execution<'a> {
    /// Open calls, innermost last.
    pub calls: Vec<Call<'a>>,
    /// Addresses of the functions entered so far.
    pub entered: BTreeSet<usize>,
    /// Cache: functions that contain `yield`.
    pub generators: HashMap<usize, bool>,
    /// The statement being executed, outside of model constructors.
    pub statement: Option<Site>,
    /// Number of open scopes without gradients.
    pub no_grad: usize,
    /// Number of open calls at the start of each scope without gradients.
    pub no_grad_calls: Vec<usize>,
    /// True while the target of a `for` statement is bound.
    pub in_head: bool,
    /// Number of open `try` blocks.
    pub tries: usize,
    /// True if a limit cut the execution short.
    pub is_truncated: bool,
}

/// A call that was entered.
pub(super) struct Call<'a> {
    pub code: Code<'a>,
    pub file: FileId,
    pub class: Option<Rc<Class<'a>>>,
    pub receiver: Option<ObjectId>,
    /// Number of loops around the call.
    pub loops: usize,
    pub frame: FrameId,
    /// Site of the call.
    pub site: Site,
    /// True if a decorator disables gradients.
    pub is_no_grad: bool,
    /// Number of draws before the call.
    pub draws: usize,
}

impl Call<'_> {
    /// Returns true if a function evaluates the model, by its name.
    pub(super) fn evaluates(&self) -> bool {
        const NAMES: [&str; 5] = ["eval", "valid", "test", "infer", "visual"];
        let name = self.code.name().trim_start_matches('_');
        NAMES.iter().any(|it| name.starts_with(it))
            || name.contains("_eval")
            || name.contains("_valid")
    }
}
