use super::{Definition, Report, RuleContext};
use crate::Rule;

define_rule! {
    /// # `cudnn.benchmark` selects algorithms by measured speed
    ///
    /// ## What it does
    /// Finds `torch.backends.cudnn.benchmark = True`, with which cuDNN measures several algorithms for
    /// each shape of a convolution and uses the fastest.
    ///
    /// ## Why is this bad?
    /// The fastest algorithm differs between runs, and algorithms differ in the last bits. Two runs
    /// with the same seed on the same machine may use different ones, and a resumed run measures
    /// again.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.backends.cudnn.benchmark = True
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
    /// Turn it off, and request deterministic algorithms.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.backends.cudnn.benchmark = False
    /// torch.backends.cudnn.deterministic = True
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
    for site in context.switches(Rule::CudnnBenchmark) {
        let message = "`cudnn.benchmark` selects convolution algorithms by measured speed: two runs may use different ones and compute different bits.".to_owned();
        let help = "Set it to False, and `torch.backends.cudnn.deterministic = True`.".to_owned();
        report.findings.push(context.finding(Rule::CudnnBenchmark, site, message, help));
    }
}
