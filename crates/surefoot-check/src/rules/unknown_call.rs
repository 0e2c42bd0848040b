use super::{Definition, Report, RuleContext};
use crate::Rule;

define_rule! {
    /// # An unknown function takes part in the training
    ///
    /// ## What it does
    /// Warns about functions and classes that the training uses and that are neither in the project
    /// nor known to Surefoot. Each is reported once. A warning does not count as a finding.
    ///
    /// ## Why is this bad?
    /// The effects of the call are not checked. It may keep state that a checkpoint must save, or draw
    /// from a generator without a seed.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    /// from weight_tools import prune
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// for epoch in range(20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     prune(model)
    /// ```
    ///
    /// ## How to fix it
    /// Read the function once. If it draws nothing and keeps nothing, suppress the warning with a
    /// comment.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    /// from weight_tools import prune
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// for epoch in range(20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     prune(model)  # Draws nothing and keeps nothing. surefoot: ignore[unknown_call]
    /// ```
    Definition { is_warning: true, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    let unknown = context.lifted.unknown.iter();
    for unknown in unknown.filter(|it| !it.trains && context.lifted.trains) {
        let message = format!(
            "`{}` is unknown and takes part in the training: {}. Its draws, state and side effects are not checked.",
            unknown.callee, unknown.part
        );
        let help = "If it keeps state, save it in checkpoints; if it draws, seed it.".to_owned();
        let finding = context.finding(Rule::UnknownCall, unknown.site, message, help);
        report.unknown.push((unknown.callee.clone(), finding));
    }
}
