//! Conclusion of a lift: outputs and the list of objects.

use std::collections::BTreeSet;

use super::{Lift, Lifted, ObjectId, Operand, ProgramBuilder, START, Statement, Style, Thing};

impl<'a> Lift<'a> {
    /// Outputs the trained variables and lists the objects with state.
    pub(super) fn finish(mut self) -> (Lifted, BTreeSet<usize>) {
        let trained: Vec<Operand> =
            self.program.trained.iter().copied().map(Operand::Variable).collect();
        self.program.facts.trains = !trained.is_empty();
        if !trained.is_empty() {
            self.program.emit(Statement::Output { operands: trained, site: START });
        }
        let mut body = self.program.blocks.pop().unwrap_or_default();
        // Global generators start with entropy.
        let globals: Vec<ObjectId> = self.heap.globals.values().copied().collect();
        for id in globals.into_iter().rev() {
            let target = self.heap.object(id).cell;
            let name = format!("entropy of {}", self.program.name(target));
            let what = self.program.function(&name);
            body.insert(0, Statement::Read { target, what, site: START });
        }
        self.program.program.body = body;
        self.program.facts.style = self.style();
        for index in 0..self.heap.objects.len() {
            let id = ObjectId(u32::try_from(index).unwrap_or(u32::MAX));
            if self.heap.objects[index].same.is_some() {
                continue;
            }
            let Some(role) = self.heap.role(id) else { continue };
            let object = self.heap.object(id);
            let gradients = self.heap.gradients(id);
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
                loops: object.loops.clone(),
            };
            self.program.facts.things.push(thing);
        }
        let mut saves = std::mem::take(&mut self.program.facts.saves);
        for save in &mut saves {
            save.loops.retain(|id| !self.is_search(*id));
        }
        self.program.facts.saves = saves;
        // Merged objects share one variable.
        for object in self.heap.objects.iter() {
            let Some(same) = object.same else { continue };
            let (from, to) = (object.cell, self.heap.object(same).cell);
            let facts = &mut self.program.facts;
            let restored = facts.restores.iter_mut().map(|it| &mut it.variable);
            let rewritten = facts.rewrites.iter_mut().map(|it| &mut it.variable);
            for variable in restored.chain(rewritten).filter(|it| **it == from) {
                *variable = to;
            }
        }
        let ProgramBuilder { program, mut facts, .. } = self.program;
        facts.program = program;
        (facts, self.execution.entered)
    }

    /// Checkpoint format of the script.
    pub(super) fn style(&self) -> Style {
        if self.heap.models.iter().any(|id| self.heap.is_keras(*id)) {
            return Style::TensorFlow;
        }
        if self.libraries.uses_jax && self.heap.models.is_empty() {
            return Style::Values;
        }
        Style::Torch
    }
}
