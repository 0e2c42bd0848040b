//! Telling evaluation from training.

use super::{Call, Execution, Lift, ProgramBuilder, Site, Variable, push_new};

impl<'a> Lift<'a> {
    /// Returns true during an evaluation of the model.
    pub(super) fn is_evaluation(&self) -> bool {
        if self.libraries.evaluating > 0 {
            return true;
        }
        let mut models =
            self.heap.models.iter().filter(|id| self.heap.object(**id).owner.is_none());
        if self.execution.no_grad > 0
            && !self.heap.models.is_empty()
            && models.all(|id| !self.heap.trains(*id) || !self.heap.has_parameters(*id))
        {
            return true;
        }
        self.execution.calls.iter().any(Call::evaluates)
    }

    /// Marks the draws of the current function as probes, because it applies a model without training
    /// it.
    pub(super) fn note_probe(&mut self) {
        let Some(call) = self.execution.calls.last().filter(|call| call.loops > 0) else {
            return;
        };
        for draw in &mut self.program.facts.draws[call.draws..] {
            draw.is_probe = true;
        }
    }
}

impl<'a> Execution<'a> {
    /// Site in the open evaluation that leads to the current statement.
    pub(super) fn evaluation_site(&self, site: Site) -> Site {
        let evaluation = self.calls.iter().rposition(|call| call.evaluates() || call.is_no_grad);
        let inside = evaluation.map(|at| at + 1).or_else(|| self.no_grad_calls.first().copied());
        let next = inside.and_then(|at| self.calls.get(at));
        next.map_or(site, |call| call.site)
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Records that a variable is trained.
    pub(super) fn note_trained(&mut self, variable: Variable) {
        push_new(&mut self.trained, variable);
    }

    /// Records a training step in all enclosing loops.
    pub(super) fn note_step(&mut self, site: Site) {
        self.facts.steps.push(site);
        for id in &self.loops {
            self.facts.loops[id.0 as usize].trains = true;
        }
    }
}
