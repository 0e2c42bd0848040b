//! What checkpoints lack.

use super::bound::Bound;
use super::held::through_copies;
use super::part::{Part, parts};
use super::{Script, code, generator_name, listed, repeated};
use crate::calculus::{Label, Site};
use crate::lift::facts::{LoopId, Runner, Save};
use crate::{Checkpoint, Finding, Member, MemberKind, Rule};

/// Checks every save in a training loop, and derives what each training loop must save.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) -> Vec<Checkpoint> {
    let mut checkpoints = Vec::new();
    for save in resumable(script) {
        let parts = parts(script, save_label(script, save), save.site, &save.loops, Some(save));
        report(script, save, &parts, findings);
        repeated::find(script, save, findings);
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
        save.loops.first().is_some_and(|id| loops[id.0 as usize].trains)
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
    let holds_state = needed.members.iter().any(|member| held.contains(&member.variable));
    let holds_position = save.loops.iter().any(|id| {
        let positions = &script.lifted.loops[id.0 as usize].positions;
        positions.iter().any(|it| held.contains(it))
    });
    holds_state && (holds_position || !script.lifted.loads.is_empty())
}

/// A resumed run begins with the next round, not in the middle of the one that saved.
pub(super) fn save_label(script: &Script<'_>, save: &Save) -> Label {
    let innermost = save.loops.last().and_then(|id| script.lifted.loops[id.0 as usize].end);
    innermost.unwrap_or(save.label)
}

fn report(script: &Script<'_>, save: &Save, parts: &[Part], findings: &mut Vec<Finding>) {
    if save.holdings.is_open {
        return;
    }
    let missing = |kind: MemberKind| {
        parts.iter().filter(|part| !part.saved && part.kind == kind).collect::<Vec<_>>()
    };
    let (positions, counts): (Vec<&Part>, Vec<&Part>) =
        missing(MemberKind::Position).into_iter().partition(|part| part.position.is_some());
    let mut states = missing(MemberKind::State);
    states.extend(counts);
    if !states.is_empty() {
        let names: Vec<String> = states.iter().map(|part| format!("`{}`", part.name)).collect();
        let message = format!(
            "This checkpoint does not hold {}. A run resumed from it goes on with other values than the one that was stopped.",
            listed(&names)
        );
        let help = code::entries(&states, script.lifted.style);
        findings.push(with_notes(script, Rule::MissingState, save.site, message, help, &states));
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
        part.used_at
            .map_or_else(String::new, |site| format!(" at {}", script.line(site, save.site)))
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
            let names: Vec<String> = parts.iter().map(|part| format!("`{}`", part.name)).collect();
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
    with_notes(script, Rule::MissingPosition, save.site, message, help, parts)
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
            finding.notes.push(script.note(used_at, part.reason.clone()));
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
    Checkpoint { place: script.place(site), saves, members: members.collect(), save, restore }
}
