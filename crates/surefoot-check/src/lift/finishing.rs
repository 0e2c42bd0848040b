//! The end of a script.

use std::collections::BTreeSet;

use super::Lift;
use super::facts::{Lifted, Style, Thing};
use super::object::Kind;
use super::value::ObjectId;
use crate::calculus::{Operand, Statement};

impl<'a> Lift<'a> {
    /// Puts out what was trained, and tells who is who.
    pub(super) fn finish(mut self) -> (Lifted, BTreeSet<usize>) {
        let trained: Vec<Operand> = self.trained.iter().copied().map(Operand::Variable).collect();
        self.facts.trains = !trained.is_empty();
        if !trained.is_empty() {
            self.emit(Statement::Output { operands: trained, site: self.start });
        }
        let mut body = self.blocks.pop().unwrap_or_default();
        // Generators that are always there begin with entropy.
        let globals: Vec<ObjectId> = self.globals.values().copied().collect();
        for id in globals.into_iter().rev() {
            let target = self.object(id).cell;
            let name = format!("entropy of {}", self.program.name(target));
            let what = self.function(&name);
            body.insert(0, Statement::Read { target, what, site: self.start });
        }
        self.program.body = body;
        self.facts.style = self.style();
        for index in 0..self.objects.len() {
            let id = ObjectId(u32::try_from(index).unwrap_or(u32::MAX));
            if self.objects[index].same.is_some() {
                continue;
            }
            let Some(role) = self.role(id) else { continue };
            let object = self.object(id);
            let gradients = match object.kind {
                Kind::Module { gradients, .. } => Some(gradients),
                _ => None,
            };
            let name =
                object.name.clone().unwrap_or_else(|| self.program.name(object.cell).to_owned());
            let thing = Thing {
                object: id,
                cell: object.cell,
                gradients,
                name,
                role,
                site: object.site,
                is_part: object.owner.is_some(),
            };
            self.facts.things.push(thing);
        }
        // What turned out to be the same has one variable.
        for index in 0..self.objects.len() {
            let from = self.objects[index].cell;
            if self.objects[index].same.is_some() {
                let id = ObjectId(u32::try_from(index).unwrap_or(u32::MAX));
                let to = self.object(id).cell;
                for restore in self.facts.restores.iter_mut().filter(|it| it.variable == from) {
                    restore.variable = to;
                }
                for rewrite in self.facts.rewrites.iter_mut().filter(|it| it.variable == from) {
                    rewrite.variable = to;
                }
            }
        }
        self.facts.program = self.program;
        (self.facts, self.entered)
    }

    /// What checkpoints of the script are made with.
    pub(super) fn style(&self) -> Style {
        if self.models.iter().any(|id| self.is_keras(*id)) {
            return Style::TensorFlow;
        }
        if self.frameworks.uses_jax && self.models.is_empty() {
            return Style::Values;
        }
        Style::Torch
    }
}
