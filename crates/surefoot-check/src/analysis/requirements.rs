//! State that a checkpoint must save, with the reasons.

use std::collections::BTreeMap;

use super::copies::through_copies;
use super::generators::{capitalized, generator_name};
use super::positions::{Position, positions};
use super::writes::{last_written_at, loop_body, written};
use crate::MemberKind;
use crate::calculus::{Label, SaveReason, SaveSet, SavedVariable, Site, Variable};
use crate::lift::ObjectId;
use crate::lift::facts::{Holdings, Kept, LoopId, Role, START, Save, Thing};
use crate::rules::RuleContext;

/// Something that a checkpoint must save.
pub(crate) struct Requirement {
    /// Name in the context.
    pub name: String,
    pub kind: MemberKind,
    /// Object with the state; `None` for plain variables.
    pub thing: Option<Thing>,
    /// Reason, as a sentence.
    pub reason: String,
    /// True if the script saves it.
    pub saved: bool,
    /// Next use.
    pub used_at: Option<Site>,
    /// Set for the position in a loop.
    pub position: Option<Position>,
}

/// Returns what must be saved at a label, in the order state, generators, positions.
pub(super) fn requirements(
    context: &RuleContext<'_>,
    label: Label,
    site: Site,
    loops: &[LoopId],
    save: Option<&Save>,
) -> Vec<Requirement> {
    let Some(needed) = context.typing.save(label) else {
        return Vec::new();
    };
    let nothing = Holdings::default();
    let holdings = save.map_or(&nothing, |save| &save.holdings);
    let (frames, names) = match save {
        Some(save) => (&save.frames, &save.names),
        None => {
            let looped = context.looped(loops[0]);
            (&looped.frames, &looped.names)
        }
    };
    let outermost = context.looped(loops[0]).counter;
    let body = loop_body(&context.lifted.program.body, outermost).unwrap_or_default();
    let written = written(body);
    let held = through_copies(&context.lifted.program, outermost, &holdings.variables);
    let mut found: Vec<Requirement> = Vec::new();
    for member in &needed.members {
        // A restart runs the code before the loops again, and recomputes what is recomputable at
        // the save.
        if !written.contains(&member.variable) || !is_needed_at_save(context, save, member) {
            continue;
        }
        let Some(mut requirement) = requirement(context, member, names, site, loops) else {
            continue;
        };
        let is_local = context
            .lifted
            .named
            .get(&member.variable)
            .copied()
            .flatten()
            .is_some_and(|frame| !frames.contains(&frame));
        let is_there =
            |it: &Requirement| it.name == requirement.name && it.kind == requirement.kind;
        if is_local || found.iter().any(is_there) {
            continue;
        }
        requirement.saved = holds(holdings, member.variable, requirement.thing.as_ref())
            || held.contains(&member.variable)
            || is_aside(context, member.variable, requirement.thing.as_ref());
        found.push(requirement);
    }
    found.sort_by_key(|it| (it.kind, it.thing.as_ref().map_or(Role::State, |thing| thing.role)));
    found.extend(counts(context, needed, names, loops, holdings));
    for requirement in positions(context, loops, save) {
        if !found.iter().any(|it| it.name == requirement.name) {
            found.push(requirement);
        }
    }
    found
}

/// Counters of the script that later steps use. They follow from the position, but a restart that does
/// not save them must compute them.
fn counts(
    context: &RuleContext<'_>,
    needed: &SaveSet,
    names: &BTreeMap<ObjectId, String>,
    loops: &[LoopId],
    holdings: &Holdings,
) -> Vec<Requirement> {
    let is_count = |variable: Variable| {
        loops.iter().any(|id| context.looped(*id).positions.contains(&variable))
    };
    let mut found = Vec::new();
    for count in needed.recomputed.iter().filter(|it| is_count(it.variable)) {
        if context.lifted.named.contains_key(&count.variable) {
            let name = name_seen(
                context,
                Kept::Variable(count.variable),
                names,
                context.name_of(count.variable),
            );
            found.push(Requirement {
                reason: format!("`{name}` counts iterations and is used again."),
                name,
                kind: MemberKind::Position,
                thing: None,
                saved: holdings.variables.contains(&count.variable),
                used_at: Some(count.used_at),
                position: None,
            });
        }
    }
    found
}

/// Returns the name of a variable or an object at the checkpoint.
fn name_seen(
    context: &RuleContext<'_>,
    kept: Kept,
    names: &BTreeMap<ObjectId, String>,
    name: &str,
) -> String {
    match context.lifted.kept_in.get(&kept) {
        Some((owner, field)) if name.starts_with("self.") => match names.get(owner) {
            Some(owner) => format!("{owner}.{field}"),
            None => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

/// True if a member is required at the save itself, and not only at the end of that iteration.
fn is_needed_at_save(
    context: &RuleContext<'_>,
    save: Option<&Save>,
    member: &SavedVariable,
) -> bool {
    let at_save = save.and_then(|save| context.typing.save(save.label));
    at_save.is_none_or(|needed| needed.member(member.variable).is_some())
}

fn requirement(
    context: &RuleContext<'_>,
    member: &SavedVariable,
    names: &BTreeMap<ObjectId, String>,
    site: Site,
    loops: &[LoopId],
) -> Option<Requirement> {
    let variable = member.variable;
    let thing = context.lifted.thing(variable);
    let seen = |name: &str| {
        let kept = thing.map_or(Kept::Variable(variable), |thing| Kept::Object(thing.object));
        name_seen(context, kept, names, name)
    };
    let (name, kind) = match thing {
        Some(thing) if thing.is_part => return None,
        Some(thing) => match thing.role {
            Role::Worker(_) => return None,
            Role::Global(_) | Role::Generator(_) => (seen(&thing.name), MemberKind::Generator),
            _ if thing.gradients == Some(variable) => {
                (format!("the gradients of {}", thing.name), MemberKind::State)
            }
            // A container that each iteration makes anew is local to it.
            Role::Container | Role::Dictionary | Role::Set | Role::State
                if !is_named(context, thing)
                    || loops.last().is_some_and(|id| thing.loops.contains(id)) =>
            {
                return None;
            }
            _ => (seen(&thing.name), MemberKind::State),
        },
        None if context.lifted.named.contains_key(&variable) => {
            let kind = if context.lifted.keys.contains(&variable) {
                MemberKind::Generator
            } else {
                MemberKind::State
            };
            (seen(context.name_of(variable)), kind)
        }
        None => return None,
    };
    let thing = thing.filter(|thing| thing.cell == variable).cloned();
    let shown = match (&thing, kind) {
        (Some(thing), MemberKind::Generator) => capitalized(&generator_name(thing)),
        _ => format!("`{name}`"),
    };
    let reason = sentence(context, member, &shown, site, loops);
    Some(Requirement {
        name,
        kind,
        thing,
        reason,
        saved: false,
        used_at: used_at(context, member),
        position: None,
    })
}

/// Returns the next use of a member; for one that is only output at the end, the last write.
fn used_at(context: &RuleContext<'_>, member: &SavedVariable) -> Option<Site> {
    if member.used_at != START {
        return Some(member.used_at);
    }
    last_written_at(&context.lifted.program.body, member.variable)
}

/// True if an object has a name in the script.
fn is_named(context: &RuleContext<'_>, thing: &Thing) -> bool {
    thing.name != context.name_of(thing.cell)
}

/// Describes why a member is required. Names only loops around the save; others, such as
/// comprehensions, end before it.
fn sentence(
    context: &RuleContext<'_>,
    member: &SavedVariable,
    shown: &str,
    site: Site,
    loops: &[LoopId],
) -> String {
    let line = |at: Site| context.line(at, site);
    let is_around = |at: Site| {
        let mut sites = loops.iter().map(|id| context.looped(*id).site);
        sites.any(|site| site == at)
    };
    match member.reason {
        SaveReason::Carried { around } | SaveReason::Derived { around, .. }
            if !is_around(around) =>
        {
            format!("{shown} changes during the training and is used again.")
        }
        SaveReason::Moved { drawn_at, .. } => {
            format!("{shown} is drawn from at {}.", line(drawn_at))
        }
        SaveReason::Carried { around } => {
            format!("{shown} is carried over between iterations of the loop at {}.", line(around))
        }
        SaveReason::Derived { from, around } => match context.lifted.named.contains_key(&from) {
            true => format!(
                "{shown} is computed from `{}`, which the loop at {} carries over between iterations.",
                context.name_of(from),
                line(around)
            ),
            false => {
                format!("{shown} depends on earlier iterations of the loop at {}.", line(around))
            }
        },
        SaveReason::Shared { site: at, .. } => {
            format!("{shown} depends on the order in which workers draw at {}.", line(at))
        }
        SaveReason::External { .. } => {
            format!("{shown} changes during the training and is used again.")
        }
    }
}

/// True if the script writes a variable to a file next to its checkpoints.
fn is_aside(context: &RuleContext<'_>, variable: Variable, thing: Option<&Thing>) -> bool {
    let mut asides = context.lifted.asides.iter();
    asides.any(|aside| holds(&aside.holdings, variable, thing))
}

/// True if a save holds a variable, directly or as the state of an object.
pub(crate) fn holds(holdings: &Holdings, variable: Variable, thing: Option<&Thing>) -> bool {
    holdings.variables.contains(&variable)
        || thing.is_some_and(|thing| holdings.objects.contains(&thing.object))
}
