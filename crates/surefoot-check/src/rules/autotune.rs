use super::{Definition, Report, RuleContext};
use crate::Rule;

define_rule! {
    /// # Kernels are selected by measured speed
    ///
    /// ## What it does
    /// Finds `torch.compile` with `mode="max-autotune"` and the autotuning of other compilers, which
    /// measure several kernels and use the fastest.
    ///
    /// ## Why is this bad?
    /// Kernels differ in the order of their sums, so in the last bits. The fastest one depends on the
    /// machine and its load, and a resumed run measures again.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    ///
    /// model = torch.compile(nn.Conv2d(3, 8, 3).cuda(), mode="max-autotune")
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
    /// Use the default mode. `torch.use_deterministic_algorithms(True)` also prevents the compiler
    /// from tuning kernels that change the numbers.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.use_deterministic_algorithms(True)
    ///
    /// model = torch.compile(nn.Conv2d(3, 8, 3).cuda())
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
    for site in context.switches(Rule::Autotune) {
        let message = "Kernels are selected by measured speed: two runs may use different ones and compute different bits.".to_owned();
        let help = "Use the default mode where runs must repeat.".to_owned();
        report.findings.push(context.finding(Rule::Autotune, site, message, help));
    }
}
