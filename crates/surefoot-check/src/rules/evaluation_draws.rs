use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::analysis::generators::{evaluation_draws, generator_name};
use crate::lift::facts::{Purpose, Role};

define_rule! {
    /// # The evaluation draws from the generator of the training
    ///
    /// ## What it does
    /// Finds evaluations that draw random numbers, to shuffle the validation split or to sample, from
    /// a generator from which the training draws afterwards.
    ///
    /// ## Why is this bad?
    /// The number of evaluations changes the training: with a different interval, a different
    /// validation split or no evaluation, the run ends with a different model. The effect of a change
    /// cannot be separated from the effect of measuring it.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, TensorDataset
    ///
    /// torch.manual_seed(0)
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    /// validation = TensorDataset(torch.randn(64, 10), torch.randn(64, 1))
    /// loader = DataLoader(validation, batch_size=16, shuffle=True)
    ///
    /// for epoch in range(20):
    ///     model.train()
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     model.eval()
    ///     with torch.no_grad():
    ///         for x, y in loader:
    ///             print(nn.functional.mse_loss(model(x), y).item())
    /// ```
    ///
    /// ## How to fix it
    /// Evaluate without random draws, or from a separate generator.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, TensorDataset
    ///
    /// torch.manual_seed(0)
    /// model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.5), nn.Linear(32, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
    /// validation = TensorDataset(torch.randn(64, 10), torch.randn(64, 1))
    /// own = torch.Generator().manual_seed(1)
    /// loader = DataLoader(validation, batch_size=16, generator=own)
    ///
    /// for epoch in range(20):
    ///     model.train()
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    ///     model.eval()
    ///     with torch.no_grad():
    ///         for x, y in loader:
    ///             print(nn.functional.mse_loss(model(x), y).item())
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for thing in &context.lifted.things {
        if !matches!(thing.role, Role::Global(_) | Role::Generator(_)) {
            continue;
        }
        let Some(shared) = evaluation_draws(context, thing) else {
            continue;
        };
        let (draw, training) = (shared.evaluation, shared.training);
        let site = draw.evaluation.unwrap_or(draw.site);
        let (what, help) = match draw.purpose {
            Purpose::Order => (
                "shuffles its data with numbers",
                "Do not shuffle the data of an evaluation, or give its loader a separate generator: `generator=torch.Generator().manual_seed(seed)`.",
            ),
            _ => ("draws", "Give the evaluation a separate generator."),
        };
        let message = format!(
            "The evaluation {what} from {}, from which the training draws too, at {}: the number of evaluations changes the training.",
            generator_name(thing),
            context.line(training.site, site)
        );
        let mut finding = context.finding(Rule::EvaluationDraws, site, message, help.to_owned());
        let is_same = draw.site == training.site && draw.site != site;
        finding.notes.push(match is_same {
            true => context.note(draw.site, "The evaluation and the training both draw here."),
            false => context.note(training.site, "The training draws here."),
        });
        report.findings.push(finding);
    }
}
