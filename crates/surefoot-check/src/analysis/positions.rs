//! Positions in the loops around a save.

use super::requirements::Requirement;
use super::resumption::{Resumption, loop_at, mentions};
use crate::MemberKind;
use crate::lift::facts::{Holdings, Loop, LoopId, Runner, Save};
use crate::rules::RuleContext;

/// Position in a loop around a save.
#[derive(Clone)]
pub(crate) struct Position {
    /// True if the loop iterates over data.
    pub is_over_data: bool,
    /// Variable that counts the iterations.
    pub counter: Option<Counter>,
    /// True if the checkpoint is saved in this loop's own body, after the training step.
    pub is_iteration_done: bool,
    /// Framework that runs the loop.
    pub runner: Option<Runner>,
    /// True if the checkpoint holds the position and a resumed run starts the loop again anyway.
    pub is_unused: bool,
}

/// Variable that counts iterations.
#[derive(Clone)]
pub(crate) enum Counter {
    /// Target of the loop head.
    Head(String),
    /// Variable that the body increments.
    Body(String),
}

/// Returns the positions in the loops around a save that it must hold.
pub(super) fn positions(
    context: &RuleContext<'_>,
    loops: &[LoopId],
    save: Option<&Save>,
) -> Vec<Requirement> {
    let nothing = Holdings::default();
    let holdings = save.map_or(&nothing, |save| &save.holdings);
    let resumption = save.and_then(|save| Resumption::of(context, save));
    let innermost = loops.iter().rfind(|id| context.looped(**id).trains);
    let mut requirements = Vec::new();
    for (depth, id) in loops.iter().enumerate() {
        let looped = context.looped(*id);
        let position = Position {
            is_over_data: looped.is_over_data,
            counter: counter_of(context, looped),
            is_iteration_done: Some(id) == innermost,
            runner: looped.runner,
            is_unused: false,
        };
        if let (Some((iterator, name)), true) = (&looped.iterator, looped.trains) {
            requirements.push(Requirement {
                name: name.clone(),
                kind: MemberKind::Position,
                thing: None,
                reason: format!("A resumed run continues the data from the position of `{name}`."),
                saved: holdings.objects.contains(iterator),
                used_at: Some(looped.site),
                position: Some(Position { is_over_data: true, counter: None, ..position.clone() }),
            });
        }
        // The counter of a `while` loop is ordinary state.
        if looped.is_while || !looped.trains {
            continue;
        }
        // A count of inner iterations determines the outer one too.
        let is_held = loops[depth..].iter().any(|id| {
            let positions = &context.looped(*id).positions;
            positions.iter().any(|it| holdings.variables.contains(it))
        }) || starts_from(context, looped, holdings);
        let is_used = (depth == 0 && !looped.is_over_data)
            || resumption.as_ref().is_none_or(|it| it.skips(looped.site));
        let name = looped.name.clone().unwrap_or_else(|| {
            if looped.is_over_data { "batch".to_owned() } else { "iteration".to_owned() }
        });
        let reason = format!("A resumed run continues the loop from `{name}`.");
        requirements.push(Requirement {
            name,
            kind: MemberKind::Position,
            thing: None,
            reason,
            saved: is_held && is_used,
            used_at: Some(looped.site),
            position: Some(Position { is_unused: is_held && !is_used, ..position }),
        });
    }
    requirements
}

/// Returns the variable that counts the iterations of a loop.
fn counter_of(context: &RuleContext<'_>, looped: &Loop) -> Option<Counter> {
    if let Some(name) = &looped.name {
        return Some(Counter::Head(name.clone()));
    }
    let mut positions = looped.positions.iter();
    let counted = positions.find(|it| context.lifted.named.contains_key(it))?;
    Some(Counter::Body(context.name_of(*counted).to_owned()))
}

/// True if the head of a loop reads an object that the checkpoint holds: `range(scheduler.last_epoch, 9)`.
fn starts_from(context: &RuleContext<'_>, looped: &Loop, holdings: &Holdings) -> bool {
    let place = context.place(looped.site);
    let module = &context.project.script(place.file).module;
    let held = context.lifted.things.iter().filter(|it| holdings.objects.contains(&it.object));
    let names = held.map(|it| it.name.rsplit('.').next().unwrap_or(&it.name).to_owned()).collect();
    let head = loop_at(module, &place.range);
    !looped.is_over_data && head.is_some_and(|it| mentions(&it.iter, &names))
}
