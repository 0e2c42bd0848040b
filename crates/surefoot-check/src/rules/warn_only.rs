use super::{Definition, Report, RuleContext};
use crate::Rule;

define_rule! {
    /// # Nondeterministic operations only cause a warning
    ///
    /// ## What it does
    /// Finds `torch.use_deterministic_algorithms(True, warn_only=True)`.
    ///
    /// ## Why is this bad?
    /// An operation without a deterministic implementation runs anyway, and prints one line on stderr,
    /// once. The script claims to be deterministic and is not.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.use_deterministic_algorithms(True, warn_only=True)
    ///
    /// model = nn.Conv2d(3, 8, 3).cuda()
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs = torch.randn(16, 3, 32, 32).cuda()
    ///
    /// for epoch in range(20):
    ///     loss = model(inputs).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Remove `warn_only`. The operation is then an error that names it: replace it, or suppress this
    /// finding with a comment that explains why it does not matter.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.use_deterministic_algorithms(True)
    ///
    /// model = nn.Conv2d(3, 8, 3).cuda()
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs = torch.randn(16, 3, 32, 32).cuda()
    ///
    /// for epoch in range(20):
    ///     loss = model(inputs).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for site in context.switches(Rule::WarnOnly) {
        let message = "With `warn_only=True`, operations without a deterministic implementation run anyway, with a warning.".to_owned();
        let help = "Remove `warn_only`, and replace the operations that then fail.".to_owned();
        report.findings.push(context.finding(Rule::WarnOnly, site, message, help));
    }
}
