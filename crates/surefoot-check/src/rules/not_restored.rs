use super::{Definition, Report, RuleContext};
use crate::analysis::checkpoints::save_label;
use crate::analysis::requirements::holds;
use crate::lift::facts::{Key, Load, Restore, Role, Save, Thing};
use crate::{Finding, Rule};

define_rule! {
    /// # Saved state is never restored
    ///
    /// ## What it does
    /// Finds entries of a checkpoint that later steps use and that the script never restores when it
    /// loads the checkpoint.
    ///
    /// ## Why is this bad?
    /// The script looks resumable and is not: state that is not restored starts from its initial
    /// value, although the file contains it. That makes the kink in the loss curve hard to explain.
    ///
    /// ## Example
    /// ```python
    /// import os
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.Adam(model.parameters())
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    ///
    /// start = 0
    /// if os.path.exists("last.pt"):
    ///     checkpoint = torch.load("last.pt")
    ///     model.load_state_dict(checkpoint["model"])
    ///     start = checkpoint["epoch"] + 1
    ///
    /// for epoch in range(start, 20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     torch.save(
    ///         {
    ///             "epoch": epoch,
    ///             "model": model.state_dict(),
    ///             "optimizer": optimizer.state_dict(),
    ///         },
    ///         "last.pt",
    ///     )
    /// ```
    ///
    /// ## How to fix it
    /// Restore every entry where the checkpoint is loaded.
    ///
    /// ```python
    /// import os
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.Adam(model.parameters())
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    ///
    /// start = 0
    /// if os.path.exists("last.pt"):
    ///     checkpoint = torch.load("last.pt")
    ///     model.load_state_dict(checkpoint["model"])
    ///     optimizer.load_state_dict(checkpoint["optimizer"])
    ///     start = checkpoint["epoch"] + 1
    ///
    /// for epoch in range(start, 20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     torch.save(
    ///         {
    ///             "epoch": epoch,
    ///             "model": model.state_dict(),
    ///             "optimizer": optimizer.state_dict(),
    ///         },
    ///         "last.pt",
    ///     )
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for save in context.saves() {
        unread_entries(context, save, &mut report.findings);
        unread_files(context, save, &mut report.findings);
        skipped_optimizers(context, save, &mut report.findings);
    }
}

/// Entries of a checkpoint that no load reads.
fn unread_entries(context: &RuleContext<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let shares_keys =
        |load: &&Load| save.holdings.keys.iter().any(|key| load.keys.contains(&key.name));
    let loads: Vec<&Load> = context.lifted.loads.iter().filter(shares_keys).collect();
    let mut resuming = loads.clone();
    resuming.retain(|load| context.resumes(save, load));
    if !is_resumption(context, save, &resuming) || loads.iter().any(|load| load.escapes) {
        return;
    }
    for key in &save.holdings.keys {
        if loads.iter().any(|load| load.keys.contains(&key.name)) || !is_needed(context, save, key)
        {
            continue;
        }
        let name = &key.name;
        let message = format!(
            "`{name}` is saved here and never restored: a resumed run starts with a different value."
        );
        let help = format!(
            "Restore it where the checkpoint is loaded, at {}: `checkpoint[\"{name}\"]`.",
            context.line(resuming[0].site, save.site)
        );
        let site = key.site.unwrap_or(save.site);
        let mut finding = context.finding(Rule::NotRestored, site, message, help);
        finding.notes.push(context.note(resuming[0].site, "The checkpoint is loaded here."));
        findings.push(finding);
    }
}

/// True if loads restore more than weights, from which a script may only start a new training.
fn is_resumption(context: &RuleContext<'_>, save: &Save, loads: &[&Load]) -> bool {
    let is_model = |thing: &&Thing| matches!(thing.role, Role::Model | Role::Average);
    let is_weights = |key: &Key| {
        let mut models = context.lifted.things.iter().filter(is_model);
        models.any(|thing| key.holdings.objects.contains(&thing.object))
    };
    let is_read = |key: &&Key| loads.iter().any(|load| load.keys.contains(&key.name));
    save.holdings.keys.iter().filter(is_read).any(|key| !is_weights(key))
}

/// Files written next to a checkpoint that nothing reads.
fn unread_files(context: &RuleContext<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let is_restored =
        |restore: &&Restore| restore.object.is_some_and(|id| save.holdings.objects.contains(&id));
    let Some(restore) = context.lifted.restores.iter().find(is_restored) else {
        return;
    };
    for aside in &context.lifted.asides {
        for key in &aside.holdings.keys {
            let mut loads = context.lifted.loads.iter();
            let is_read = loads.any(|load| load.escapes || load.keys.contains(&key.name));
            if is_read || !is_needed(context, save, key) {
                continue;
            }
            let message = format!(
                "`{}` is written here and never read: a resumed run starts with a different value.",
                key.name
            );
            let help = format!(
                "Read it where the checkpoint is restored, at {}.",
                context.line(restore.site, aside.site)
            );
            findings.push(context.finding(Rule::NotRestored, aside.site, message, help));
        }
    }
}

/// Optimizers in a file of weights that have no variables yet when the file is read.
fn skipped_optimizers(context: &RuleContext<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let needed = context.typing.save(save_label(context, save));
    for left_out in &context.lifted.left_out {
        let is_needed = needed.is_some_and(|needed| {
            needed.members.iter().any(|member| {
                let thing = context.lifted.thing(member.variable);
                thing.is_some_and(|thing| thing.object == left_out.object)
            })
        });
        if !is_needed || !save.holdings.objects.contains(&left_out.object) {
            continue;
        }
        let message = "This reads the weights and skips the state of the optimizer, which has no variables before the first training step: a resumed run starts with an empty optimizer.".to_owned();
        let help = "Save the whole model to a `.keras` file and load it with `keras.models.load_model`, or call `model.optimizer.build(model.trainable_variables)` first.".to_owned();
        let mut finding = context.finding(Rule::NotRestored, left_out.site, message, help);
        finding.notes.push(context.note(save.site, "The checkpoint is saved here."));
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
}

/// True if the checkpoint must save the value of a key.
fn is_needed(context: &RuleContext<'_>, save: &Save, key: &Key) -> bool {
    let Some(needed) = context.typing.save(save_label(context, save)) else {
        return false;
    };
    let mut members = needed.members.iter().map(|member| member.variable);
    let is_member = members.any(|it| holds(&key.holdings, it, context.lifted.thing(it)));
    let is_position = save.loops.iter().any(|id| {
        let looped = context.looped(*id);
        looped.trains && looped.positions.iter().any(|it| key.holdings.variables.contains(it))
    });
    is_member || is_position
}
