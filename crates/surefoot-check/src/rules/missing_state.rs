use super::{Definition, Report, RuleContext};
use crate::analysis::generators::listed;
use crate::analysis::requirements::Requirement;
use crate::analysis::restart_code;
use crate::{MemberKind, Rule};

define_rule! {
    /// # State that later steps use is missing from a checkpoint
    ///
    /// ## What it does
    /// Finds checkpoints in a training loop that do not save everything that the loop changes and
    /// reads again: parameters, the optimizer, the schedule, the gradient scaler, averaged weights,
    /// the best score so far, counters.
    ///
    /// ## Why is this bad?
    /// A resumed run resets the missing state. Adam loses its moments and takes steps of a different
    /// size for a while; a schedule repeats its warm-up; early stopping counts from zero; a worse
    /// model overwrites the best one. Nothing fails, and the loss curve has a kink where the run was
    /// resumed.
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
    ///     torch.save({"epoch": epoch, "model": model.state_dict()}, "last.pt")
    /// ```
    ///
    /// ## How to fix it
    /// Save the missing state in the checkpoint and restore it. `surefoot check --checkpoint` prints
    /// the code.
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
    let is_state = |it: &Requirement| match it.kind {
        MemberKind::State => true,
        MemberKind::Generator => false,
        // A counter of the script that is not the position in a loop.
        MemberKind::Position => it.position.is_none(),
    };
    for (save, missing) in context.missing(is_state) {
        let names: Vec<String> = missing.iter().map(|it| format!("`{}`", it.name)).collect();
        let message = format!(
            "This checkpoint does not save {}. A resumed run continues with different values.",
            listed(&names)
        );
        let help = restart_code::entries(&missing, context.lifted.style);
        let mut finding = context.finding(Rule::MissingState, save.site, message, help);
        finding.notes = context.requirement_notes(&missing);
        report.findings.push(finding);
    }
}
