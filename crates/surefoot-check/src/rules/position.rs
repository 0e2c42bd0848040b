//! How far the loops around a save have come.

use super::Script;
use super::part::Part;
use super::skipping::Skipping;
use crate::MemberKind;
use crate::lift::facts::{Holdings, Loop, LoopId, Runner, Save};

/// How far a loop around a save has come.
#[derive(Clone)]
pub(super) struct Position {
    /// Whether the loop goes through data.
    pub is_over_data: bool,
    /// What the script counts its rounds with, if it does.
    pub counter: Option<Counter>,
    /// Whether the round is over when the checkpoint is made, but for what follows in its body.
    pub is_round_over: bool,
    /// What runs the loop, if the script does not.
    pub runner: Option<Runner>,
    /// Whether a resumed run begins the loop again although the checkpoint holds the count.
    pub is_unused: bool,
}

/// What a script counts rounds with.
#[derive(Clone)]
pub(super) enum Counter {
    /// The number that the head of the loop gives.
    Head(String),
    /// A name that the body counts.
    Body(String),
}

/// How far the loops around a save have come.
pub(super) fn positions(script: &Script<'_>, loops: &[LoopId], save: Option<&Save>) -> Vec<Part> {
    let all = &script.lifted.loops;
    let nothing = Holdings::default();
    let holdings = save.map_or(&nothing, |save| &save.holdings);
    let skipping = save.and_then(|save| Skipping::of(script, save));
    let innermost = loops.iter().rfind(|id| all[id.0 as usize].trains);
    let mut parts = Vec::new();
    for (depth, id) in loops.iter().enumerate() {
        let looped: &Loop = &all[id.0 as usize];
        let position = Position {
            is_over_data: looped.is_over_data,
            counter: counter_of(script, looped),
            is_round_over: Some(id) == innermost,
            runner: looped.runner,
            is_unused: false,
        };
        if let (Some((iterator, name)), true) = (&looped.iterator, looped.trains) {
            parts.push(Part {
                name: name.clone(),
                kind: MemberKind::Position,
                thing: None,
                reason: format!("The data goes on from where `{name}` is."),
                saved: holdings.objects.contains(iterator),
                used_at: Some(looped.site),
                position: Some(Position { is_over_data: true, counter: None, ..position.clone() }),
            });
        }
        // What a `while` counts is state like any other.
        if looped.is_while || !looped.trains {
            continue;
        }
        // A count over inner rounds tells the outer round too.
        let is_held = loops[depth..].iter().any(|id| {
            all[id.0 as usize].positions.iter().any(|it| holdings.variables.contains(it))
        });
        let is_used = (depth == 0 && !looped.is_over_data)
            || skipping.as_ref().is_none_or(|it| it.skips(looped.site));
        let name = looped.name.clone().unwrap_or_else(|| {
            if looped.is_over_data { "batch".to_owned() } else { "round".to_owned() }
        });
        let reason = format!("The loop goes on from `{name}`.");
        parts.push(Part {
            name,
            kind: MemberKind::Position,
            thing: None,
            reason,
            saved: is_held && is_used,
            used_at: Some(looped.site),
            position: Some(Position { is_unused: is_held && !is_used, ..position }),
        });
    }
    parts
}

/// What a script counts the rounds of a loop with.
fn counter_of(script: &Script<'_>, looped: &Loop) -> Option<Counter> {
    if let Some(name) = &looped.name {
        return Some(Counter::Head(name.clone()));
    }
    let mut positions = looped.positions.iter();
    let counted = positions.find(|it| script.lifted.named.contains_key(it))?;
    Some(Counter::Body(script.name_of(*counted).to_owned()))
}
