//! Checkpoints of training loops, and what each must save.

use super::bound_names::BoundNames;
use super::copies::through_copies;
use super::requirements::{Requirement, requirements};
use super::restart_code;
use crate::calculus::{Label, Site};
use crate::lift::facts::{LoopId, Save};
use crate::rules::RuleContext;
use crate::{Member, RequiredCheckpoint};

/// A save in a training loop, or the end of an iteration of a training loop that saves nothing.
pub(crate) struct AnalyzedCheckpoint<'s> {
    /// The save; `None` if the loop has none.
    pub save: Option<&'s Save>,
    /// State that must be saved.
    pub requirements: Vec<Requirement>,
    /// Save or loop.
    site: Site,
    outermost: LoopId,
}

/// Finds the checkpoints of a script.
pub(crate) fn analyze<'s>(context: &RuleContext<'s>) -> Vec<AnalyzedCheckpoint<'s>> {
    let lifted = context.lifted;
    let saves = lifted.saves.iter().filter(|it| is_resumable(context, it));
    // Code that was not executed may save or restore the rest.
    let saves: Vec<&Save> = saves.filter(|_| !lifted.is_truncated).collect();
    let mut checkpoints = Vec::new();
    for save in &saves {
        let label = save_label(context, save);
        checkpoints.push(AnalyzedCheckpoint {
            save: Some(save),
            requirements: requirements(context, label, save.site, &save.loops, Some(save)),
            site: save.site,
            outermost: save.loops[0],
        });
    }
    for (id, looped) in (0..).map(LoopId).zip(&lifted.loops) {
        let has_save = saves.iter().any(|save| save.loops.contains(&id));
        if let (Some(label), false) = (looped.end, has_save) {
            let requirements = requirements(context, label, looped.site, &[id], None);
            if !requirements.is_empty() {
                let (save, site) = (None, looped.site);
                checkpoints.push(AnalyzedCheckpoint { save, requirements, site, outermost: id });
            }
        }
    }
    checkpoints
}

/// True if a run can resume from a save: it is in a loop that trains, and is not an export.
fn is_resumable(context: &RuleContext<'_>, save: &Save) -> bool {
    save.loops.first().is_some_and(|id| context.looped(*id).trains)
        && (!save.is_candidate || is_proven(context, save))
}

/// True if a save of plain values contains required state, and the position or a load too.
fn is_proven(context: &RuleContext<'_>, save: &Save) -> bool {
    let (Some(needed), Some(outermost)) = (context.typing.save(save.label), save.loops.first())
    else {
        return false;
    };
    let counter = context.looped(*outermost).counter;
    let held = through_copies(&context.lifted.program, counter, &save.holdings.variables);
    let holds_state = needed.members.iter().any(|member| held.contains(&member.variable));
    let mut loops = save.loops.iter().map(|id| context.looped(*id));
    let holds_position = loops.any(|it| it.positions.iter().any(|it| held.contains(it)));
    holds_state && (holds_position || !context.lifted.loads.is_empty())
}

/// Returns the label of the point where a resumed run continues: the end of the iteration that saves.
pub(crate) fn save_label(context: &RuleContext<'_>, save: &Save) -> Label {
    let innermost = save.loops.last().and_then(|id| context.looped(*id).end);
    innermost.unwrap_or(save.label)
}

impl AnalyzedCheckpoint<'_> {
    /// Describes the checkpoint for users, with the code that saves and restores it.
    pub(crate) fn describe(&self, context: &RuleContext<'_>) -> RequiredCheckpoint {
        let place = context.place(self.site);
        let file = context.project.script(place.file);
        let names = BoundNames::of(&file.module.body);
        let looped = context.looped(self.outermost);
        let style = context.lifted.style;
        // The code saves at the end of an iteration, because a resumed run starts with the next one.
        let required = looped.end.map_or_else(Vec::new, |label| {
            requirements(context, label, looped.site, &[self.outermost], None)
        });
        let line = context.line(looped.site, self.site);
        let (save, restore) = restart_code::both(&required, style, looped.runner, &names, &line);
        let members = self.requirements.iter().map(|it| Member {
            name: it.name.clone(),
            kind: it.kind,
            reason: it.reason.clone(),
            saved: it.saved,
            used_at: it.used_at.map(|site| context.place(site)),
        });
        RequiredCheckpoint {
            place,
            saves: self.save.is_some(),
            members: members.collect(),
            save,
            restore,
        }
    }
}
