//! Rounds that a resumed run does once more: saved when they were done, and begun again.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::Script;
use super::skipping::loop_at;
use crate::calculus::{Label, Operand, Statement, Variable};
use crate::lift::facts::{Key, Save};
use crate::{Finding, Place, Rule};

/// Looks at the number of the round in a checkpoint, and at what is done with it.
pub(super) fn find(script: &Script<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let loops = &script.lifted.loops;
    let Some(looped) = save.loops.last().map(|id| &loops[id.0 as usize]) else {
        return;
    };
    let Some(name) = looped.name.as_deref().filter(|_| looped.trains && !looped.is_while) else {
        return;
    };
    if !is_round_over(script, looped.counter, save.label) {
        return;
    }
    let Some(key) = save.holdings.keys.iter().find(|key| {
        let text = key.site.map_or("", |site| script.text(&script.place(site)));
        text.rsplit([':', '=']).next().map(str::trim) == Some(name)
    }) else {
        return;
    };
    if let Some(place) = begun_again(script, &script.place(looped.site), key) {
        let message = format!(
            "The checkpoint is made when the round `{name}` is done, and a resumed run begins with that round: it is trained twice."
        );
        let help = format!("Begin with the next one: `checkpoint[\"{}\"] + 1`.", key.name);
        let mut finding =
            Finding { rule: Rule::MissingPosition, place, message, help, notes: Vec::new() };
        let saved = key.site.unwrap_or(save.site);
        let note = "It is saved here, after the training.";
        finding.notes.push(script.note(saved, note));
        findings.push(finding);
    }
}

/// Whether all that a round of the loop trains is trained where it saves.
fn is_round_over(script: &Script<'_>, counter: Variable, label: Label) -> bool {
    let body = &script.lifted.program.body;
    let mut trained = BTreeSet::new();
    for statement in body {
        if let Statement::Output { operands, .. } = statement {
            trained.extend(operands.iter().filter_map(|it| match it {
                Operand::Variable(variable) => Some(*variable),
                _ => None,
            }));
        }
    }
    let mut order = Order {
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

/// What a loop trains before and after a save.
struct Order<'t> {
    counter: Variable,
    label: Label,
    trained: &'t BTreeSet<Variable>,
    is_inside: bool,
    before: bool,
    saved: bool,
    after: bool,
}

impl Order<'_> {
    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::For { counter, body, .. } if *counter == self.counter => {
                    self.is_inside = true;
                    self.block(body);
                    self.is_inside = false;
                }
                Statement::For { body, .. } | Statement::Map { body, .. } => self.block(body),
                Statement::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                Statement::Checkpoint { label, .. } => self.saved |= *label == self.label,
                Statement::Compute { target, .. } if self.is_inside => {
                    let is_trained = self.trained.contains(target);
                    self.before |= is_trained && !self.saved;
                    self.after |= is_trained && self.saved;
                }
                _ => {}
            }
        }
    }
}

/// Where the loop begins with the number that was saved, as it is.
fn begun_again(script: &Script<'_>, looped: &Place, key: &Key) -> Option<Place> {
    let module = &script.project.script(looped.file).module;
    let Expr::Call(range) = &*loop_at(module, &looped.range)?.iter else {
        return None;
    };
    let [first, _, ..] = &*range.arguments.args else {
        return None;
    };
    let place =
        |expression: &Expr| Place { file: looped.file, range: expression.range().to_std_range() };
    let is_read = |name: &String| *name == key.name;
    let mut loads = script.lifted.loads.iter();
    if !loads.any(|load| load.keys.iter().any(is_read)) {
        return None;
    }
    if is_entry(first, &key.name) {
        return Some(place(first));
    }
    let mut beginnings = Beginnings {
        script,
        looped,
        name: script.text(&place(first)),
        values: Vec::new(),
        is_changed: false,
    };
    beginnings.visit_body(&module.body);
    if beginnings.is_changed {
        return None;
    }
    let is_plain = |it: &&Expr| is_entry(it, &key.name) || it.is_literal_expr();
    if !beginnings.values.iter().all(is_plain) {
        return None;
    }
    let mut values = beginnings.values.into_iter();
    values.find(|it| is_entry(it, &key.name)).map(place)
}

/// Whether an expression is an entry of something: `checkpoint["epoch"]`.
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

/// All values that a name is given.
struct Beginnings<'s, 'a> {
    script: &'s Script<'s>,
    looped: &'s Place,
    name: &'s str,
    values: Vec<&'a Expr>,
    /// Whether it is changed in a way of its own.
    is_changed: bool,
}

impl Beginnings<'_, '_> {
    fn is_it(&self, target: &Expr) -> bool {
        let place = Place { file: self.looped.file, range: target.range().to_std_range() };
        self.script.text(&place) == self.name
    }
}

impl<'a> Visitor<'a> for Beginnings<'_, 'a> {
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
