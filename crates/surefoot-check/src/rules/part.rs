//! What has to be saved, and why.

use std::collections::BTreeMap;

use super::held::through_copies;
use super::position::{Position, positions};
use super::written::{last_written_at, written_in};
use super::{Script, generator_name};
use crate::MemberKind;
use crate::calculus::{Label, SaveReason, SaveSet, SavedVariable, Site, Variable};
use crate::lift::ObjectId;
use crate::lift::facts::{Holdings, Kept, LoopId, Role, START, Save, Thing};

/// Something that has to be saved.
pub(super) struct Part {
    /// What people call it.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
    /// What has its state, if it is an object.
    pub thing: Option<Thing>,
    /// Why.
    pub reason: String,
    /// Whether it is saved.
    pub saved: bool,
    /// Where it is needed next.
    pub used_at: Option<Site>,
    /// The loop it is the position of.
    pub position: Option<Position>,
}

/// What has to be saved at a label, in the order state, generators, positions.
pub(super) fn parts(
    script: &Script<'_>,
    label: Label,
    site: Site,
    loops: &[LoopId],
    save: Option<&Save>,
) -> Vec<Part> {
    let Some(needed) = script.typing.save(label) else {
        return Vec::new();
    };
    let nothing = Holdings::default();
    let holdings = save.map_or(&nothing, |save| &save.holdings);
    let (frames, names) = match save {
        Some(save) => (&save.frames, &save.names),
        None => {
            let looped = &script.lifted.loops[loops[0].0 as usize];
            (&looped.frames, &looped.names)
        }
    };
    let outermost = script.lifted.loops[loops[0].0 as usize].counter;
    let written = written_in(&script.lifted.program.body, outermost).unwrap_or_default();
    let held = through_copies(&script.lifted.program, outermost, &holdings.variables);
    let mut parts: Vec<Part> = Vec::new();
    for member in &needed.members {
        // What comes before the loops is done again by a restart, and so is what can be
        // recomputed where the script saves.
        if !written.contains(&member.variable) || !is_needed_at_save(script, save, member) {
            continue;
        }
        let Some(mut part) = part_of(script, member, names, site, loops) else {
            continue;
        };
        let is_local = script
            .lifted
            .named
            .get(&member.variable)
            .copied()
            .flatten()
            .is_some_and(|frame| !frames.contains(&frame));
        let is_there = |it: &Part| it.name == part.name && it.kind == part.kind;
        if is_local || parts.iter().any(is_there) {
            continue;
        }
        part.saved = holds(holdings, member.variable, part.thing.as_ref())
            || held.contains(&member.variable)
            || is_aside(script, member.variable, part.thing.as_ref());
        parts.push(part);
    }
    parts.sort_by_key(|part| {
        (part.kind, part.thing.as_ref().map_or(Role::State, |thing| thing.role))
    });
    parts.extend(counts(script, needed, names, loops, holdings));
    for part in positions(script, loops, save) {
        if !parts.iter().any(|it| it.name == part.name) {
            parts.push(part);
        }
    }
    parts
}

/// What the script counts itself and needs again: it follows from the rounds that are done, but a
/// restart that does not save it would have to compute it.
fn counts(
    script: &Script<'_>,
    needed: &SaveSet,
    names: &BTreeMap<ObjectId, String>,
    loops: &[LoopId],
    holdings: &Holdings,
) -> Vec<Part> {
    let all = &script.lifted.loops;
    let is_count = |variable: Variable| {
        loops.iter().any(|id| all[id.0 as usize].positions.contains(&variable))
    };
    let mut parts = Vec::new();
    for count in needed.recomputed.iter().filter(|it| is_count(it.variable)) {
        if script.lifted.named.contains_key(&count.variable) {
            let name = name_seen(
                script,
                Kept::Variable(count.variable),
                names,
                script.name_of(count.variable),
            );
            parts.push(Part {
                reason: format!("`{name}` counts the rounds, and is needed again."),
                name,
                kind: MemberKind::Position,
                thing: None,
                saved: holdings.variables.contains(&count.variable),
                used_at: Some(count.used_at),
                position: None,
            });
        }
    }
    parts
}

/// What something is called where a checkpoint is made.
fn name_seen(
    script: &Script<'_>,
    kept: Kept,
    names: &BTreeMap<ObjectId, String>,
    name: &str,
) -> String {
    match script.lifted.kept_in.get(&kept) {
        Some((owner, field)) if name.starts_with("self.") => match names.get(owner) {
            Some(owner) => format!("{owner}.{field}"),
            None => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

/// Whether a member is one at the save itself too, and not only at the end of that round.
fn is_needed_at_save(script: &Script<'_>, save: Option<&Save>, member: &SavedVariable) -> bool {
    let at_save = save.and_then(|save| script.typing.save(save.label));
    at_save.is_none_or(|needed| needed.member(member.variable).is_some())
}

fn part_of(
    script: &Script<'_>,
    member: &SavedVariable,
    names: &BTreeMap<ObjectId, String>,
    site: Site,
    loops: &[LoopId],
) -> Option<Part> {
    let variable = member.variable;
    let thing = script.lifted.thing(variable);
    let seen = |name: &str| {
        let kept = thing.map_or(Kept::Variable(variable), |thing| Kept::Object(thing.object));
        name_seen(script, kept, names, name)
    };
    let (name, kind) = match thing {
        Some(thing) if thing.is_part => return None,
        Some(thing) => match thing.role {
            Role::Worker(_) => return None,
            Role::Global(_) | Role::Generator(_) => (seen(&thing.name), MemberKind::Generator),
            _ if thing.gradients == Some(variable) => {
                (format!("the gradients of {}", thing.name), MemberKind::State)
            }
            Role::Container | Role::Dictionary | Role::Set | Role::State
                if !is_named(script, thing) =>
            {
                return None;
            }
            _ => (seen(&thing.name), MemberKind::State),
        },
        None if script.lifted.named.contains_key(&variable) => {
            let kind = if script.lifted.keys.contains(&variable) {
                MemberKind::Generator
            } else {
                MemberKind::State
            };
            (seen(script.name_of(variable)), kind)
        }
        None => return None,
    };
    let thing = thing.filter(|thing| thing.cell == variable).cloned();
    let shown = match (&thing, kind) {
        (Some(thing), MemberKind::Generator) => capitalized(&generator_name(thing)),
        _ => format!("`{name}`"),
    };
    let reason = sentence(script, member, &shown, site, loops);
    Some(Part {
        name,
        kind,
        thing,
        reason,
        saved: false,
        used_at: used_at(script, member),
        position: None,
    })
}

/// Where something is needed next. What is only put out in the end is shown where it is written.
fn used_at(script: &Script<'_>, member: &SavedVariable) -> Option<Site> {
    if member.used_at != START {
        return Some(member.used_at);
    }
    last_written_at(&script.lifted.program.body, member.variable)
}

/// Whether somebody gave an object a name.
fn is_named(script: &Script<'_>, thing: &Thing) -> bool {
    thing.name != script.name_of(thing.cell)
}

/// Why something is needed. Loops are named if they are around the save: others, in comprehensions for one,
/// end before it.
fn sentence(
    script: &Script<'_>,
    member: &SavedVariable,
    shown: &str,
    site: Site,
    loops: &[LoopId],
) -> String {
    let line = |at: Site| script.line(at, site);
    let is_around = |at: Site| {
        let mut sites = loops.iter().map(|id| script.lifted.loops[id.0 as usize].site);
        sites.any(|site| site == at)
    };
    match member.reason {
        SaveReason::Carried { around } | SaveReason::Derived { around, .. }
            if !is_around(around) =>
        {
            format!("{shown} changes as the training goes on, and is needed again.")
        }
        SaveReason::Moved { drawn_at, .. } => {
            format!("{shown} is drawn from at {}.", line(drawn_at))
        }
        SaveReason::Carried { around } => {
            format!("{shown} is carried from round to round of the loop at {}.", line(around))
        }
        SaveReason::Derived { from, around } => match script.lifted.named.contains_key(&from) {
            true => format!(
                "{shown} is computed from `{}`, which the loop at {} carries from round to round.",
                script.name_of(from),
                line(around)
            ),
            false => format!("{shown} depends on earlier rounds of the loop at {}.", line(around)),
        },
        SaveReason::Shared { site: at, .. } => {
            format!("{shown} depends on the order in which workers draw at {}.", line(at))
        }
        SaveReason::External { .. } => {
            format!("{shown} changes as the training goes on, and is needed again.")
        }
    }
}

pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Whether a script writes a variable to a file beside its checkpoints.
fn is_aside(script: &Script<'_>, variable: Variable, thing: Option<&Thing>) -> bool {
    let mut asides = script.lifted.asides.iter();
    asides.any(|aside| holds(&aside.holdings, variable, thing))
}

/// Whether a save holds a variable, as itself or as the state of an object.
pub(super) fn holds(holdings: &Holdings, variable: Variable, thing: Option<&Thing>) -> bool {
    holdings.variables.contains(&variable)
        || thing.is_some_and(|thing| holdings.objects.contains(&thing.object))
}
