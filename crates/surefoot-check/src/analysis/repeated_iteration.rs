//! Iterations that a resumed run repeats: saved after their training step, and started again.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::resumption::loop_at;
use crate::Place;
use crate::calculus::{Label, Site, Statement, Variable};
use crate::lift::facts::{Key, Save};
use crate::rules::RuleContext;

/// Start of a training loop with an iteration that is already complete.
pub(crate) struct RepeatedIteration {
    /// Expression with the saved iteration.
    pub place: Place,
    /// Name of the iteration in the loop.
    pub name: String,
    /// Key of the iteration in the checkpoint.
    pub key: String,
    pub saved_at: Site,
}

/// Finds the iteration that a run resumed from a save would repeat.
pub(crate) fn repeated_iteration(
    context: &RuleContext<'_>,
    save: &Save,
) -> Option<RepeatedIteration> {
    let looped = context.looped(*save.loops.last()?);
    let name = looped.name.as_deref().filter(|_| looped.trains && !looped.is_while)?;
    if !is_iteration_done(context, looped.counter, save.label) {
        return None;
    }
    let key = save.holdings.keys.iter().find(|key| {
        let text = key.site.map_or("", |site| context.text(&context.place(site)));
        text.rsplit([':', '=']).next().map(str::trim) == Some(name)
    })?;
    Some(RepeatedIteration {
        place: start_with_saved(context, &context.place(looped.site), key)?,
        name: name.to_owned(),
        key: key.name.clone(),
        saved_at: key.site.unwrap_or(save.site),
    })
}

/// True if the training step of an iteration is complete at a save.
fn is_iteration_done(context: &RuleContext<'_>, counter: Variable, label: Label) -> bool {
    let body = &context.lifted.program.body;
    let mut trained = BTreeSet::new();
    for statement in body {
        if let Statement::Output { operands, .. } = statement {
            trained.extend(operands.iter().filter_map(|it| it.variable()));
        }
    }
    let mut order = TrainingOrder {
        counter,
        label,
        trained: &trained,
        is_inside: false,
        before: false,
        saved: false,
        after: false,
    };
    order.block(body);
    order.before && order.saved && !order.after
}

/// Training before and after a save in a loop.
struct TrainingOrder<'t> {
    counter: Variable,
    label: Label,
    trained: &'t BTreeSet<Variable>,
    is_inside: bool,
    before: bool,
    saved: bool,
    after: bool,
}

impl TrainingOrder<'_> {
    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::For { counter, body, .. } if *counter == self.counter => {
                    self.is_inside = true;
                    self.block(body);
                    self.is_inside = false;
                }
                Statement::Checkpoint { label, .. } => self.saved |= *label == self.label,
                Statement::Compute { target, .. } if self.is_inside => {
                    let is_trained = self.trained.contains(target);
                    self.before |= is_trained && !self.saved;
                    self.after |= is_trained && self.saved;
                }
                _ => statement.blocks().for_each(|block| self.block(block)),
            }
        }
    }
}

/// Returns the place where the loop starts with the saved iteration, unchanged.
fn start_with_saved(context: &RuleContext<'_>, looped: &Place, key: &Key) -> Option<Place> {
    let module = &context.project.script(looped.file).module;
    let Expr::Call(range) = &*loop_at(module, &looped.range)?.iter else {
        return None;
    };
    let [first, _, ..] = &*range.arguments.args else {
        return None;
    };
    let place =
        |expression: &Expr| Place { file: looped.file, range: expression.range().to_std_range() };
    let is_read = |name: &String| *name == key.name;
    let mut loads = context.lifted.loads.iter();
    if !loads.any(|load| load.keys.iter().any(is_read)) {
        return None;
    }
    if is_entry(first, &key.name) {
        return Some(place(first));
    }
    let mut assignments = Assignments {
        context,
        looped,
        name: context.text(&place(first)),
        values: Vec::new(),
        is_changed: false,
    };
    assignments.visit_body(&module.body);
    if assignments.is_changed {
        return None;
    }
    let is_plain = |it: &&Expr| is_entry(it, &key.name) || it.is_literal_expr();
    if !assignments.values.iter().all(is_plain) {
        return None;
    }
    let mut values = assignments.values.into_iter();
    values.find(|it| is_entry(it, &key.name)).map(place)
}

/// True for an entry of a dictionary: `checkpoint["epoch"]`.
fn is_entry(expression: &Expr, key: &str) -> bool {
    let is_key = |it: &Expr| matches!(it, Expr::StringLiteral(text) if text.value.to_str() == key);
    match expression {
        Expr::Subscript(it) => is_key(&it.slice),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(method) if matches!(method.attr.as_str(), "get" | "pop") => {
                call.arguments.args.first().is_some_and(is_key)
            }
            Expr::Name(name) if name.id == "int" => {
                let mut arguments = call.arguments.args.iter();
                arguments.next().is_some_and(|it| is_entry(it, key))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Values that are assigned to a name.
struct Assignments<'s, 'a> {
    context: &'s RuleContext<'s>,
    looped: &'s Place,
    name: &'s str,
    values: Vec<&'a Expr>,
    /// True if it is changed in another way.
    is_changed: bool,
}

impl Assignments<'_, '_> {
    fn is_it(&self, target: &Expr) -> bool {
        let place = Place { file: self.looped.file, range: target.range().to_std_range() };
        self.context.text(&place) == self.name
    }
}

impl<'a> Visitor<'a> for Assignments<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(it) => {
                for target in &it.targets {
                    if self.is_it(target) {
                        self.values.push(&it.value);
                    }
                    let parts = match target {
                        Expr::Tuple(it) => &it.elts[..],
                        Expr::List(it) => &it.elts[..],
                        _ => &[],
                    };
                    let values = match &*it.value {
                        Expr::Tuple(values) if values.elts.len() == parts.len() => &values.elts[..],
                        _ => &[],
                    };
                    for (index, part) in parts.iter().enumerate() {
                        match values.get(index) {
                            Some(value) if self.is_it(part) => self.values.push(value),
                            _ => self.is_changed |= self.is_it(part),
                        }
                    }
                }
            }
            Stmt::AnnAssign(it) if self.is_it(&it.target) => {
                self.values.extend(it.value.as_deref());
            }
            Stmt::AugAssign(it) => self.is_changed |= self.is_it(&it.target),
            _ => {}
        }
        walk_stmt(self, statement);
    }
}
