use super::{Definition, Report, RuleContext};
use crate::Rule;

define_rule! {
    /// # The precision depends on the device
    ///
    /// ## What it does
    /// Finds settings that allow TF32 or other reduced precision for matrix products on GPUs that
    /// support it.
    ///
    /// ## Why is this bad?
    /// Devices that do not support it compute in full precision. The same script gives different
    /// results on another GPU and on the CPU, by far more than the last bit. That is often worth the
    /// speed, but matters when results of different machines are compared.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.backends.cuda.matmul.allow_tf32 = True
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
    /// Leave the precision at its default.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.backends.cuda.matmul.allow_tf32 = False
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
    for site in context.switches(Rule::Precision) {
        let message = "Matrix products use fewer bits where the device supports it: another device computes different results.".to_owned();
        let help = "Leave the precision at its default, `\"highest\"`, where results must agree between devices.".to_owned();
        report.findings.push(context.finding(Rule::Precision, site, message, help));
    }
}
