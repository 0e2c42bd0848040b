use super::{Definition, Report, RuleContext};
use crate::analysis::generators::generator_name;
use crate::lift::facts::{Moment, Restore, Rewrite, Role, Save};
use crate::{Finding, Rule};

define_rule! {
    /// # Restored state changes again before training continues
    ///
    /// ## What it does
    /// Finds state that is restored before a line that draws from it, seeds it or overwrites it.
    ///
    /// ## Why is this bad?
    /// Creating a model draws its initial weights; creating an optimizer resets its state; a seed
    /// overwrites the state of a generator. A generator that is restored before a model is created has
    /// advanced when training continues: every later dropout mask and shuffle differs from the
    /// uninterrupted run.
    ///
    /// ## Example
    /// ```python
    /// import os
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// start = 0
    /// checkpoint = None
    /// if os.path.exists("last.pt"):
    ///     checkpoint = torch.load("last.pt")
    ///     torch.set_rng_state(checkpoint["torch_rng"])
    ///
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.Adam(model.parameters())
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// if checkpoint is not None:
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
    ///             "torch_rng": torch.get_rng_state(),
    ///         },
    ///         "last.pt",
    ///     )
    /// ```
    ///
    /// ## How to fix it
    /// Restore everything last, directly before the training loop.
    ///
    /// ```python
    /// import os
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.Adam(model.parameters())
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// start = 0
    /// if os.path.exists("last.pt"):
    ///     checkpoint = torch.load("last.pt")
    ///     model.load_state_dict(checkpoint["model"])
    ///     optimizer.load_state_dict(checkpoint["optimizer"])
    ///     start = checkpoint["epoch"] + 1
    ///     torch.set_rng_state(checkpoint["torch_rng"])
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
    ///             "torch_rng": torch.get_rng_state(),
    ///         },
    ///         "last.pt",
    ///     )
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for save in context.saves() {
        drawn_by_the_pass(context, save, &mut report.findings);
    }
    for restore in context.lifted.restores.iter().filter(|it| !it.moment.in_loop) {
        report.findings.extend(changed_before_training(context, restore));
    }
}

/// Generators saved inside a pass over the data that the start of the pass draws from. The stopped run
/// has already made that draw, so a restart makes it twice.
fn drawn_by_the_pass(context: &RuleContext<'_>, save: &Save, findings: &mut Vec<Finding>) {
    let lifted = context.lifted;
    for looped in save.loops.iter().map(|id| context.looped(*id)) {
        if !looped.positions.iter().any(|it| save.holdings.variables.contains(it)) {
            continue;
        }
        let saved = looped.pass_draws.iter().filter(|it| save.holdings.objects.contains(it));
        for thing in saved.filter_map(|it| lifted.things.iter().find(|thing| thing.object == *it)) {
            let mut restores = lifted.restores.iter();
            let Some(restore) = restores.find(|it| it.variable == thing.cell && !it.moment.in_loop)
            else {
                continue;
            };
            let message = format!(
                "The state of {} is restored here, but the loop at {} draws from it when it starts. The stopped run had already made that draw.",
                generator_name(thing),
                context.line(looped.site, restore.site)
            );
            let help = "Give the loader a separate generator, `generator=torch.Generator()`, or restore the state after its iterator is created.".to_owned();
            let mut finding = context.finding(Rule::RestoredEarly, restore.site, message, help);
            finding.notes.push(context.note(looped.site, "Iterating over the data draws here."));
            findings.push(finding);
        }
    }
}

/// State that changes between its restoration and the training loop.
fn changed_before_training(context: &RuleContext<'_>, restore: &Restore) -> Option<Finding> {
    let lifted = context.lifted;
    // Weights from elsewhere, such as a pretrained model, are meant to change.
    let load = &lifted.loads[restore.load.0 as usize];
    let save = context.saves().find(|save| context.resumes(save, load))?;
    let begin = context.looped(save.loops[0]).moment.order;
    let follows = |moment: Moment| {
        (restore.moment.order..begin).contains(&moment.order)
            && !moment.in_loop
            && !lifted.exclude_each_other(moment, restore.moment)
    };
    let thing = lifted.thing(restore.variable)?;
    let is_generator = matches!(thing.role, Role::Global(_) | Role::Generator(_));
    let (site, what) = if is_generator {
        let is_it = |generator| generator == thing.object;
        let drawn = lifted.draws.iter().find(|it| is_it(it.generator) && follows(it.moment));
        let seeded = lifted.seeds.iter().find(|it| is_it(it.generator) && follows(it.moment));
        let drawn = drawn.map(|draw| (draw.site, "draws from it"));
        drawn.or_else(|| seeded.map(|seed| (seed.site, "seeds it")))?
    } else {
        let mut rewrites = lifted.rewrites.iter();
        let is_it = |it: &&Rewrite| it.variable == restore.variable && follows(it.moment);
        (rewrites.find(is_it)?.site, "overwrites it")
    };
    let name = match is_generator {
        true => generator_name(thing),
        false => format!("`{}`", thing.name),
    };
    let message = format!(
        "The state of {name} is restored here, but {} {what} before training continues.",
        context.line(site, restore.site)
    );
    let help = "Restore it last, directly before the training loop.".to_owned();
    let mut finding = context.finding(Rule::RestoredEarly, restore.site, message, help);
    finding.notes.push(context.note(site, format!("This {what}.")));
    Some(finding)
}
