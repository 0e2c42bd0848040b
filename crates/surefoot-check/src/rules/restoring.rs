//! What is saved and not restored, or restored too early.

use super::checkpoints::{resumable, save_label};
use super::part::holds;
use super::{Script, generator_name};
use crate::lift::facts::{Key, Load, Restore, Role, Save};
use crate::{Finding, Rule};

/// Compares what is saved with what is loaded.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) {
    for save in resumable(script) {
        not_restored(script, save, findings);
        asides(script, save, findings);
        left_out(script, save, findings);
        restored_before_the_pass(script, save, findings);
    }
    for restore in &script.lifted.restores {
        if !restore.in_loop {
            restored_early(script, restore, findings);
        }
    }
}

/// What is written beside a checkpoint that is restored, and read by nobody.
fn asides(script: &Script<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let is_restored =
        |restore: &&Restore| restore.object.is_some_and(|id| save.holdings.objects.contains(&id));
    let Some(restore) = script.lifted.restores.iter().find(is_restored) else {
        return;
    };
    for aside in &script.lifted.asides {
        for key in &aside.holdings.keys {
            let is_read = script
                .lifted
                .loads
                .iter()
                .any(|load| load.escapes || load.keys.contains(&key.name));
            if is_read || !is_needed(script, save, key) {
                continue;
            }
            let message = format!(
                "`{}` is written here, and nothing reads it again: a resumed run begins with another value.",
                key.name
            );
            let help = format!(
                "Read it where the checkpoint is restored, at {}.",
                script.line(restore.site, aside.site)
            );
            findings.push(script.finding(Rule::NotRestored, aside.site, message, help));
        }
    }
}

/// An optimizer that is in a file of weights and has no variables yet when that is read.
fn left_out(script: &Script<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let needed = script.typing.save(save_label(script, save));
    for left_out in &script.lifted.left_out {
        let is_needed = needed.is_some_and(|needed| {
            needed.members.iter().any(|member| {
                let thing = script.lifted.thing(member.variable);
                thing.is_some_and(|thing| thing.object == left_out.object)
            })
        });
        if !is_needed || !save.holdings.objects.contains(&left_out.object) {
            continue;
        }
        let message = "This reads the weights and skips the state of the optimizer, which has no variables before the training begins: a resumed run begins with an empty one.".to_owned();
        let help = "Save the whole model to a `.keras` file and load it with `keras.models.load_model`, or call `model.optimizer.build(model.trainable_variables)` first.".to_owned();
        let mut finding = script.finding(Rule::NotRestored, left_out.site, message, help);
        finding.notes.push(script.note(save.site, "The checkpoint is made here."));
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
}

fn not_restored(script: &Script<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let is_of_it =
        |load: &&Load| save.holdings.keys.iter().any(|key| load.keys.contains(&key.name));
    let loads: Vec<&Load> = script.lifted.loads.iter().filter(is_of_it).collect();
    if loads.is_empty() || loads.iter().any(|load| load.escapes) {
        return;
    }
    for key in &save.holdings.keys {
        if loads.iter().any(|load| load.keys.contains(&key.name)) || !is_needed(script, save, key) {
            continue;
        }
        let message = format!(
            "`{}` is saved here, and nothing restores it: a resumed run begins with another value.",
            key.name
        );
        let help = format!(
            "Put it back where the checkpoint is loaded, at {}: `checkpoint[\"{}\"]`.",
            script.line(loads[0].site, save.site),
            key.name
        );
        let mut finding =
            script.finding(Rule::NotRestored, key.site.unwrap_or(save.site), message, help);
        finding.notes.push(script.note(loads[0].site, "The checkpoint is loaded here."));
        findings.push(finding);
    }
}

/// In the middle of a pass the generator has already been drawn from for it; a restart that puts it back
/// and then begins the pass draws once more.
fn restored_before_the_pass(script: &Script<'_>, save: &Save, findings: &mut Vec<Finding>) {
    for id in &save.loops {
        let looped = &script.lifted.loops[id.0 as usize];
        let is_saved = looped.positions.iter().any(|it| save.holdings.variables.contains(it));
        for generator in looped.pass_draws.iter().filter(|_| is_saved) {
            let Some(thing) = script.lifted.things.iter().find(|thing| thing.object == *generator)
            else {
                continue;
            };
            let restore =
                script.lifted.restores.iter().find(|it| it.variable == thing.cell && !it.in_loop);
            let Some(restore) = restore.filter(|_| save.holdings.objects.contains(generator))
            else {
                continue;
            };
            let name = generator_name(thing);
            let message = format!(
                "The state of {name} is restored here, but the loop at {} draws from it when it begins, once more than in the run that was stopped in the middle of it.",
                script.line(looped.site, restore.site)
            );
            let help = "Give the loader a generator of its own, `generator=torch.Generator()`, or restore the state after its iterator is made.".to_owned();
            let mut finding = script.finding(Rule::RestoredEarly, restore.site, message, help);
            finding.notes.push(script.note(looped.site, "Going through the data draws here."));
            findings.push(finding);
        }
    }
}

/// Whether what a key holds has to be in the checkpoint.
fn is_needed(script: &Script<'_>, save: &Save, key: &Key) -> bool {
    let Some(needed) = script.typing.save(save_label(script, save)) else {
        return false;
    };
    let is_member = needed
        .members
        .iter()
        .any(|member| holds(&key.holdings, member.variable, script.lifted.thing(member.variable)));
    let is_position = save.loops.iter().any(|id| {
        let looped = &script.lifted.loops[id.0 as usize];
        looped.trains && looped.positions.iter().any(|it| key.holdings.variables.contains(it))
    });
    is_member || is_position
}

fn restored_early(script: &Script<'_>, restore: &Restore, findings: &mut Vec<Finding>) {
    let lifted = script.lifted;
    let begin = lifted
        .loops
        .iter()
        .filter(|it| it.parent.is_none() && it.trains && it.moment > restore.moment)
        .map(|it| it.moment)
        .min();
    let Some(begin) = begin else { return };
    let between = |moment| moment > restore.moment && moment < begin;
    let Some(thing) = lifted.thing(restore.variable) else {
        return;
    };
    let later = match thing.role {
        Role::Global(_) | Role::Generator(_) => {
            let drawn = lifted.draws.iter().find(|draw| {
                draw.generator == thing.object && between(draw.moment) && draw.loops.is_empty()
            });
            let seeded = lifted.seeds.iter().find(|seed| {
                seed.generator == thing.object && between(seed.moment) && !seed.in_loop
            });
            let drawn = drawn.map(|draw| (draw.site, "draws from it"));
            drawn.or_else(|| seeded.map(|seed| (seed.site, "seeds it")))
        }
        _ => {
            let rewritten = lifted
                .rewrites
                .iter()
                .find(|it| it.variable == restore.variable && between(it.moment) && !it.in_loop);
            rewritten.map(|it| (it.site, "writes it anew"))
        }
    };
    let Some((site, what)) = later else { return };
    let name = match thing.role {
        Role::Global(_) | Role::Generator(_) => generator_name(thing),
        _ => format!("`{}`", thing.name),
    };
    let message = format!(
        "The state of {name} is restored here, but {} still {what} before training goes on.",
        script.line(site, restore.site)
    );
    let help = "Restore it last, right before the training loop.".to_owned();
    let mut finding = script.finding(Rule::RestoredEarly, restore.site, message, help);
    finding.notes.push(script.note(site, format!("This {what}.")));
    findings.push(finding);
}
