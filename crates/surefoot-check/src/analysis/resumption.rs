//! Use of loaded checkpoints to skip completed iterations.
//!
//! A number in a checkpoint is a position only if the script skips completed iterations with it: in the
//! head of the loop, or by a test in its body. Loaded values are followed by name, in the files of the
//! loops. A name that is used twice therefore hides a finding; it never causes one.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Arguments, Expr, ExprCall, ModModule, Stmt, StmtFor, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::FileId;
use crate::calculus::Site;
use crate::lift::facts::{Load, Role, Save};
use crate::rules::RuleContext;
use crate::walk::{each_stmt, has_expr, has_part};

/// Values that a script loads from one of its checkpoints.
pub(super) struct Resumption<'s> {
    context: &'s RuleContext<'s>,
    /// Names, attributes and functions that hold loaded values.
    names: BTreeSet<String>,
    /// True if a loop discards batches before the training continues.
    forwards: bool,
}

impl<'s> Resumption<'s> {
    /// Follows the values loaded from a checkpoint. Returns `None` if the loads are unknown.
    pub(super) fn of(context: &'s RuleContext<'_>, save: &Save) -> Option<Resumption<'s>> {
        let loads = context.lifted.loads.iter();
        let loads: Vec<&Load> = loads.filter(|load| context.resumes(save, load)).collect();
        if loads.is_empty() || loads.iter().any(|load| load.escapes) {
            return None;
        }
        let places = loads.iter().map(|load| context.place(load.site));
        let mut follower = Follower {
            file: FileId(0),
            loads: places.map(|it| (it.file, it.range)).collect(),
            whole_objects: whole_objects(context),
            functions: Vec::new(),
            open: Vec::new(),
            names: BTreeSet::new(),
            forwards: false,
        };
        // A project may have thousands of files: only those with loads and loops are visited.
        let loops = context.lifted.loops.iter().map(|it| it.site);
        let sites = loads.iter().map(|load| load.site).chain(loops);
        let files: BTreeSet<FileId> = sites.map(|site| context.place(site).file).collect();
        let modules: Vec<(FileId, &ModModule)> =
            files.into_iter().map(|file| (file, &context.project.script(file).module)).collect();
        for (_, module) in &modules {
            each_stmt(&module.body, |it| follower.functions.extend(it.as_function_def_stmt()));
        }
        loop {
            let known = follower.names.len();
            for (file, module) in &modules {
                follower.file = *file;
                follower.visit_body(&module.body);
            }
            if follower.names.len() == known {
                break;
            }
        }
        Some(Resumption { context, names: follower.names, forwards: follower.forwards })
    }

    /// True if the loop at a site skips completed iterations. Loops inside frameworks do.
    pub(super) fn skips(&self, site: Site) -> bool {
        let place = self.context.place(site);
        let module = &self.context.project.script(place.file).module;
        let Some(looped) = loop_at(module, &place.range) else {
            return true;
        };
        self.forwards
            || mentions(&looped.iter, &self.names)
            || looped.body.iter().any(|it| self.is_skip(it))
    }

    /// True for `if i < done: continue`, and for `if i >= done:` around the step.
    fn is_skip(&self, statement: &Stmt) -> bool {
        let Stmt::If(it) = statement else {
            return false;
        };
        let continues = matches!(it.body.last(), Some(Stmt::Continue(_)));
        let steps = || has_expr(&it.body, is_step);
        (continues || steps()) && mentions(&it.test, &self.names)
    }
}

/// Names of objects that are restored as a whole: values from them are not positions.
fn whole_objects(context: &RuleContext<'_>) -> BTreeSet<String> {
    let restored = context.lifted.things.iter().filter(|thing| {
        !matches!(
            thing.role,
            Role::Container
                | Role::Dictionary
                | Role::Set
                | Role::State
                | Role::Callback
                | Role::Worker(_)
        )
    });
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    restored.map(|thing| last(&thing.name)).collect()
}

/// True if an expression contains one of the names.
pub(super) fn mentions(expression: &Expr, names: &BTreeSet<String>) -> bool {
    has_part(expression, |it| match it {
        Expr::Name(it) => names.contains(it.id.as_str()),
        Expr::Attribute(it) => names.contains(it.attr.as_str()),
        _ => false,
    })
}

/// Returns the name that an assignment or a method writes to.
fn target(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(it) => Some(it.id.as_str()),
        Expr::Attribute(it) => Some(it.attr.as_str()),
        Expr::Subscript(it) => target(&it.value),
        Expr::Starred(it) => target(&it.value),
        _ => None,
    }
}

/// True for a call that trains.
fn is_step(expression: &Expr) -> bool {
    let callee = expression.as_call_expr().and_then(|call| target(&call.func));
    matches!(callee, Some("backward" | "apply_gradients" | "train_on_batch"))
}

/// Returns the loop statement with a head at this range.
pub(super) fn loop_at<'a>(
    module: &'a ModModule,
    head: &std::ops::Range<usize>,
) -> Option<&'a StmtFor> {
    let mut found = None;
    each_stmt(&module.body, |statement| {
        let looped = statement.as_for_stmt();
        let is_it = |it: &&StmtFor| bytes(it.target.range().cover(it.iter.range())) == *head;
        found = looped.filter(is_it).or(found);
    });
    found
}

fn bytes(range: TextRange) -> std::ops::Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

/// Follows loaded values through assignments, arguments and results.
struct Follower<'a> {
    file: FileId,
    loads: Vec<(FileId, std::ops::Range<usize>)>,
    whole_objects: BTreeSet<String>,
    functions: Vec<&'a StmtFunctionDef>,
    /// Enclosing functions.
    open: Vec<&'a str>,
    names: BTreeSet<String>,
    forwards: bool,
}

impl<'a> Follower<'a> {
    fn has_some(&self, expression: &Expr) -> bool {
        let range = bytes(expression.range());
        let is_in = |load: &(FileId, std::ops::Range<usize>)| {
            load.0 == self.file && range.start <= load.1.start && load.1.end <= range.end
        };
        self.loads.iter().any(is_in) || mentions(expression, &self.names)
    }

    fn add(&mut self, name: &str) {
        if !self.whole_objects.contains(name) {
            self.names.insert(name.to_owned());
        }
    }

    fn assign(&mut self, to: &Expr, value: &Expr) {
        let parts = match to {
            Expr::Tuple(it) => &it.elts,
            Expr::List(it) => &it.elts,
            _ => {
                if let (true, Some(name)) = (self.has_some(value), target(to)) {
                    self.add(name);
                }
                return;
            }
        };
        match value {
            Expr::Tuple(values) if values.elts.len() == parts.len() => {
                for (to, value) in parts.iter().zip(&values.elts) {
                    self.assign(to, value);
                }
            }
            _ => parts.iter().for_each(|to| self.assign(to, value)),
        }
    }

    /// Follows arguments into the parameters of a function, or into the object of a method.
    fn pass(&mut self, call: &ExprCall) {
        let Arguments { args, keywords, .. } = &call.arguments;
        let name = target(&call.func).unwrap_or_default().to_owned();
        let called = self.functions.iter().filter(|it| it.name.as_str() == name);
        let called: Vec<&StmtFunctionDef> = called.copied().collect();
        let mut has_some = false;
        for (index, argument) in args.iter().enumerate() {
            if !self.has_some(argument) {
                continue;
            }
            has_some = true;
            for function in &called {
                let is_own = |name: &str| name == "self" || name == "cls";
                let mut parameters = function
                    .parameters
                    .iter_non_variadic_params()
                    .map(|it| it.parameter.name.as_str())
                    .filter(|it| !is_own(it));
                if let Some(parameter) = parameters.nth(index) {
                    self.add(parameter);
                }
            }
        }
        for keyword in keywords {
            if self.has_some(&keyword.value) {
                has_some = true;
                if let (Some(name), false) = (&keyword.arg, called.is_empty()) {
                    self.add(name.as_str());
                }
            }
        }
        if let (true, Expr::Attribute(method)) = (has_some && called.is_empty(), &*call.func)
            && let Some(object) = target(&method.value)
        {
            self.add(object);
        }
    }
}

impl<'a> Visitor<'a> for Follower<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(it) => it.targets.iter().for_each(|to| self.assign(to, &it.value)),
            Stmt::AnnAssign(it) => {
                if let Some(value) = &it.value {
                    self.assign(&it.target, value);
                }
            }
            Stmt::AugAssign(it) => self.assign(&it.target, &it.value),
            Stmt::Return(it) => {
                let is_some = it.value.as_ref().is_some_and(|it| self.has_some(it));
                if let (true, Some(function)) = (is_some, self.open.last()) {
                    let function = (*function).to_owned();
                    self.add(&function);
                }
            }
            Stmt::Expr(it) => {
                if let Expr::Call(call) = &*it.value {
                    self.pass(call);
                }
            }
            // `for _ in range(done): next(batches)`
            Stmt::For(it) => {
                let takes = it.body.iter().any(|it| matches!(it, Stmt::Expr(it) if matches!(&*it.value, Expr::Call(call) if target(&call.func) == Some("next"))));
                self.forwards |= takes && self.has_some(&it.iter);
            }
            Stmt::FunctionDef(it) => {
                self.open.push(it.name.as_str());
                walk_stmt(self, statement);
                self.open.pop();
                return;
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression {
            // A method call inside an expression reads its object; only functions take arguments over.
            if matches!(&*call.func, Expr::Name(_)) {
                self.pass(call);
            }
        }
        walk_expr(self, expression);
    }
}
