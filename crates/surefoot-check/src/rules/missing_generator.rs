use super::{Definition, Report, RuleContext};
use crate::analysis::generators::{generator_name, listed};
use crate::analysis::restart_code;
use crate::{MemberKind, Rule};

define_rule! {
    /// # The state of a random generator is missing from a checkpoint
    ///
    /// ## What it does
    /// Finds checkpoints that do not save the state of a random generator from which later steps draw:
    /// for dropout, shuffling, augmentation or noise.
    ///
    /// ## Why is this bad?
    /// The next number of a generator depends on all earlier draws. A resumed run starts the generator
    /// from its seed again, or from entropy: it repeats the order and the dropout masks of the first
    /// epoch, or uses entirely different ones. Its result differs from that of an uninterrupted run.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    ///
    /// for epoch in range(20):
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
    /// Save the state of the generator in the checkpoint and restore it.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    ///
    /// for epoch in range(20):
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
    for (save, missing) in context.missing(|it| it.kind == MemberKind::Generator) {
        let names: Vec<String> = missing
            .iter()
            .map(|it| match &it.thing {
                Some(thing) => generator_name(thing),
                None => format!("the key `{}`", it.name),
            })
            .collect();
        let message = format!(
            "This checkpoint does not save the state of {}. A resumed run draws different numbers.",
            listed(&names)
        );
        let help = restart_code::entries(&missing, context.lifted.style);
        let mut finding = context.finding(Rule::MissingGenerator, save.site, message, help);
        finding.notes = context.requirement_notes(&missing);
        report.findings.push(finding);
    }
}
