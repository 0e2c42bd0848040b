//! What checkpoints lack.

use std::collections::{BTreeMap, BTreeSet};

use super::bound::Bound;
use super::held::through_copies;
use super::skipping::Skipping;
use super::{Script, code, generator_name, listed};
use crate::calculus::{Label, Member as Needed, Reason, Save as Needs, Site, Statement, Variable};
use crate::lift::ObjectId;
use crate::lift::facts::{Holdings, Kept, Loop, LoopId, Role, Runner, Save, Thing};
use crate::{Checkpoint, Finding, Member, MemberKind, Rule};

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

/// Checks every save in a training loop, and derives what each training loop must save.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) -> Vec<Checkpoint> {
    let mut checkpoints = Vec::new();
    for save in resumable(script) {
        let parts = parts(
            script,
            save_label(script, save),
            save.site,
            &save.loops,
            Some(save),
        );
        report(script, save, &parts, findings);
        checkpoints.push(checkpoint(script, save.site, save.loops[0], true, parts));
    }
    for (index, looped) in script.lifted.loops.iter().enumerate() {
        let id = LoopId(u32::try_from(index).unwrap_or(u32::MAX));
        let has_save = resumable(script).any(|save| save.loops.contains(&id));
        if let (Some(label), false) = (looped.end, has_save) {
            let parts = parts(script, label, looped.site, &[id], None);
            if !parts.is_empty() {
                checkpoints.push(checkpoint(script, looped.site, id, false, parts));
            }
        }
    }
    checkpoints
}

/// Saves that a run could go on from: those in a loop that trains.
pub(super) fn resumable<'s>(script: &'s Script<'_>) -> impl Iterator<Item = &'s Save> {
    let loops = &script.lifted.loops;
    script.lifted.saves.iter().filter(|save| {
        save.loops
            .first()
            .is_some_and(|id| loops[id.0 as usize].trains)
            && (!save.is_candidate || is_proven(script, save))
    })
}

/// Whether a save of values holds something that must be saved, and tells how far the training is or is
/// loaded again.
fn is_proven(script: &Script<'_>, save: &Save) -> bool {
    let (Some(needed), Some(outermost)) = (script.typing.save(save.label), save.loops.first())
    else {
        return false;
    };
    let counter = script.lifted.loops[outermost.0 as usize].counter;
    let held = through_copies(&script.lifted.program, counter, &save.holdings.variables);
    let holds_state = needed
        .members
        .iter()
        .any(|member| held.contains(&member.variable));
    let holds_position = save.loops.iter().any(|id| {
        let positions = &script.lifted.loops[id.0 as usize].positions;
        positions.iter().any(|it| held.contains(it))
    });
    holds_state && (holds_position || !script.lifted.loads.is_empty())
}

/// A resumed run begins with the next round, not in the middle of the one that saved.
pub(super) fn save_label(script: &Script<'_>, save: &Save) -> Label {
    let innermost = save
        .loops
        .last()
        .and_then(|id| script.lifted.loops[id.0 as usize].end);
    innermost.unwrap_or(save.label)
}

fn report(script: &Script<'_>, save: &Save, parts: &[Part], findings: &mut Vec<Finding>) {
    if save.holdings.is_open {
        return;
    }
    let missing = |kind: MemberKind| {
        parts
            .iter()
            .filter(|part| !part.saved && part.kind == kind)
            .collect::<Vec<_>>()
    };
    let (positions, counts): (Vec<&Part>, Vec<&Part>) = missing(MemberKind::Position)
        .into_iter()
        .partition(|part| part.position.is_some());
    let mut states = missing(MemberKind::State);
    states.extend(counts);
    if !states.is_empty() {
        let names: Vec<String> = states
            .iter()
            .map(|part| format!("`{}`", part.name))
            .collect();
        let message = format!(
            "This checkpoint does not hold {}. A run resumed from it goes on with other values than the one that was stopped.",
            listed(&names)
        );
        let help = code::entries(&states, script.lifted.style);
        findings.push(with_notes(
            script,
            Rule::MissingState,
            save.site,
            message,
            help,
            &states,
        ));
    }
    let generators = missing(MemberKind::Generator);
    if !generators.is_empty() {
        let names: Vec<String> = generators
            .iter()
            .map(|part| match &part.thing {
                Some(thing) => generator_name(thing),
                None => format!("the key `{}`", part.name),
            })
            .collect();
        let message = format!(
            "This checkpoint does not hold the state of {}. A run resumed from it draws other numbers than the one that was stopped.",
            listed(&names)
        );
        let help = code::entries(&generators, script.lifted.style);
        findings.push(with_notes(
            script,
            Rule::MissingGenerator,
            save.site,
            message,
            help,
            &generators,
        ));
    }
    if !positions.is_empty() {
        findings.push(without_position(script, save, &positions));
    }
}

/// What is said of loops that a resumed run would begin again.
fn without_position(script: &Script<'_>, save: &Save, parts: &[&Part]) -> Finding {
    let line = |part: &Part| {
        part.used_at.map_or_else(String::new, |site| {
            format!(" at {}", script.line(site, save.site))
        })
    };
    let is_over_data = |part: &&&Part| part.position.as_ref().is_some_and(|it| it.is_over_data);
    let is_unused = |part: &&Part| part.position.as_ref().is_some_and(|it| it.is_unused);
    let (message, begins) = match parts.iter().find(is_over_data) {
        Some(data) if is_unused(data) => (
            format!(
                "This checkpoint is made in the middle of the loop over the data{}, and nothing skips what is done when it is loaded.",
                line(data)
            ),
            "the pass",
        ),
        Some(data) => (
            format!(
                "This checkpoint is made in the middle of the loop over the data{} and does not say how far that has come.",
                line(data)
            ),
            "the pass",
        ),
        None if parts.iter().all(is_unused) => (
            format!(
                "This checkpoint is made in the middle of the loop{}, and nothing skips what is done when it is loaded.",
                line(parts[0])
            ),
            "the loop",
        ),
        None => {
            let names: Vec<String> = parts
                .iter()
                .map(|part| format!("`{}`", part.name))
                .collect();
            (
                format!(
                    "This checkpoint does not hold {}, and so does not say how far the training has come.",
                    listed(&names)
                ),
                "the loop",
            )
        }
    };
    let message = format!("{message} A run resumed from it begins {begins} again.");
    let unsaved: Vec<&Part> = parts.iter().filter(|it| !is_unused(it)).copied().collect();
    let mut help = code::entries(&unsaved, script.lifted.style);
    if parts.iter().any(|part| is_over_data(&part)) {
        help = format!(
            "Skip the batches that are done after a restart, or save at the end of the pass. {help}"
        );
    } else if unsaved.is_empty() {
        help = "Begin the loop where it was.".to_owned();
    }
    let is_fitted = |part: &&Part| {
        let runner = part.position.as_ref().and_then(|it| it.runner);
        runner == Some(Runner::Fit)
    };
    if parts.iter().all(is_fitted) {
        help = "Pass `initial_epoch` to `fit`, or use `keras.callbacks.BackupAndRestore`, which keeps the epoch as well.".to_owned();
    }
    let help = help.trim_end().to_owned();
    with_notes(
        script,
        Rule::MissingPosition,
        save.site,
        message,
        help,
        parts,
    )
}

fn with_notes(
    script: &Script<'_>,
    rule: Rule,
    site: Site,
    message: String,
    help: String,
    parts: &[&Part],
) -> Finding {
    let mut finding = script.finding(rule, site, message, help);
    for part in parts {
        if let Some(used_at) = part.used_at {
            finding
                .notes
                .push(script.note(used_at, part.reason.clone()));
        }
    }
    finding
}

fn checkpoint(
    script: &Script<'_>,
    site: Site,
    outermost: LoopId,
    saves: bool,
    parts: Vec<Part>,
) -> Checkpoint {
    let file = script.project.script(script.place(site).file);
    let bound = Bound::of(&file.module.body);
    let runner = script.lifted.loops[outermost.0 as usize].runner;
    let (save, restore) = code::both(&parts, script.lifted.style, runner, &bound);
    let members = parts.into_iter().map(|part| Member {
        name: part.name,
        kind: part.kind,
        reason: part.reason,
        saved: part.saved,
        used_at: part.used_at.map(|site| script.place(site)),
    });
    Checkpoint {
        place: script.place(site),
        saves,
        members: members.collect(),
        save,
        restore,
    }
}

/// What has to be saved at a label, in the order state, generators, positions.
fn parts(
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
        let Some(mut part) = part_of(script, member, names, site) else {
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
        (
            part.kind,
            part.thing.as_ref().map_or(Role::State, |thing| thing.role),
        )
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
    needed: &Needs,
    names: &BTreeMap<ObjectId, String>,
    loops: &[LoopId],
    holdings: &Holdings,
) -> Vec<Part> {
    let all = &script.lifted.loops;
    let is_count = |variable: Variable| {
        loops
            .iter()
            .any(|id| all[id.0 as usize].positions.contains(&variable))
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
fn is_needed_at_save(script: &Script<'_>, save: Option<&Save>, member: &Needed) -> bool {
    let at_save = save.and_then(|save| script.typing.save(save.label));
    at_save.is_none_or(|needed| needed.member(member.variable).is_some())
}

fn part_of(
    script: &Script<'_>,
    member: &Needed,
    names: &BTreeMap<ObjectId, String>,
    site: Site,
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
            _ if thing.gradients == Some(variable) => (
                format!("the gradients of {}", thing.name),
                MemberKind::State,
            ),
            Role::Container | Role::State if !is_named(script, thing) => return None,
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
    let reason = sentence(script, member, &shown, site);
    Some(Part {
        name,
        kind,
        thing,
        reason,
        saved: false,
        used_at: Some(member.used_at),
        position: None,
    })
}

/// Whether somebody gave an object a name.
fn is_named(script: &Script<'_>, thing: &Thing) -> bool {
    thing.name != script.name_of(thing.cell)
}

fn sentence(script: &Script<'_>, member: &Needed, shown: &str, site: Site) -> String {
    let line = |at: Site| script.line(at, site);
    match member.reason {
        Reason::Moved { drawn_at, .. } => format!("{shown} is drawn from at {}.", line(drawn_at)),
        Reason::Carried { around } => format!(
            "{shown} is carried from round to round of the loop at {}.",
            line(around)
        ),
        Reason::Derived { from, around } => match script.lifted.named.contains_key(&from) {
            true => format!(
                "{shown} is computed from `{}`, which the loop at {} carries from round to round.",
                script.name_of(from),
                line(around)
            ),
            false => format!(
                "{shown} depends on earlier rounds of the loop at {}.",
                line(around)
            ),
        },
        Reason::Shared { site: at, .. } => format!(
            "{shown} depends on the order in which workers draw at {}.",
            line(at)
        ),
        Reason::External { .. } => {
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

/// How far the loops around a save have come.
fn positions(script: &Script<'_>, loops: &[LoopId], save: Option<&Save>) -> Vec<Part> {
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
                position: Some(Position {
                    is_over_data: true,
                    counter: None,
                    ..position.clone()
                }),
            });
        }
        // What a `while` counts is state like any other.
        if looped.is_while || !looped.trains {
            continue;
        }
        // A count over inner rounds tells the outer round too.
        let is_held = loops[depth..].iter().any(|id| {
            all[id.0 as usize]
                .positions
                .iter()
                .any(|it| holdings.variables.contains(it))
        });
        let is_used = (depth == 0 && !looped.is_over_data)
            || skipping.as_ref().is_none_or(|it| it.skips(looped.site));
        let name = looped.name.clone().unwrap_or_else(|| {
            if looped.is_over_data {
                "batch".to_owned()
            } else {
                "round".to_owned()
            }
        });
        let reason = format!("The loop goes on from `{name}`.");
        parts.push(Part {
            name,
            kind: MemberKind::Position,
            thing: None,
            reason,
            saved: is_held && is_used,
            used_at: Some(looped.site),
            position: Some(Position {
                is_unused: is_held && !is_used,
                ..position
            }),
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

/// The variables that the loop with this counter writes.
fn written_in(statements: &[Statement], counter: Variable) -> Option<BTreeSet<Variable>> {
    statements.iter().find_map(|statement| match statement {
        Statement::For {
            counter: it, body, ..
        } if *it == counter => {
            let mut written = BTreeSet::new();
            gather_written(body, &mut written);
            Some(written)
        }
        Statement::For { body, .. } | Statement::Map { body, .. } => written_in(body, counter),
        Statement::If {
            then, otherwise, ..
        } => written_in(then, counter).or_else(|| written_in(otherwise, counter)),
        _ => None,
    })
}

fn gather_written(statements: &[Statement], written: &mut BTreeSet<Variable>) {
    for statement in statements {
        match statement {
            Statement::Compute { target, .. }
            | Statement::Nondeterministic { target, .. }
            | Statement::Fold { target, .. }
            | Statement::Keyed { target, .. }
            | Statement::Read { target, .. } => {
                written.insert(*target);
            }
            Statement::Draw {
                target, generator, ..
            } => {
                written.extend([*target, *generator]);
            }
            Statement::Seed { generator, .. } => {
                written.insert(*generator);
            }
            Statement::If {
                then, otherwise, ..
            } => {
                gather_written(then, written);
                gather_written(otherwise, written);
            }
            Statement::For { body, counter, .. } => {
                written.insert(*counter);
                gather_written(body, written);
            }
            Statement::Map { body, target, .. } => {
                written.insert(*target);
                gather_written(body, written);
            }
            Statement::Checkpoint { .. } | Statement::Output { .. } => {}
        }
    }
}
