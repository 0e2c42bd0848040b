use std::collections::BTreeSet;

use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::library::FIXED_OPERATIONS;

define_rule! {
    /// # An operation may return different bits for the same input
    ///
    /// ## What it does
    /// Finds PyTorch operations on a GPU that add numbers in the order in which threads finish. The
    /// list is that of the PyTorch version in use, or of the one given with `--torch`.
    ///
    /// ## Why is this bad?
    /// Floating-point sums depend on their order. Two runs with the same seed differ in the last bits
    /// at once, and visibly after some hundreds of steps. A run that diverged to NaN cannot be
    /// debugged by running it again.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 4).cuda()
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs = torch.randn(64, 10).cuda()
    /// groups = torch.randint(0, 8, (64,)).cuda()
    ///
    /// for epoch in range(20):
    ///     sums = torch.zeros(8, 4).cuda().index_add(0, groups, model(inputs))
    ///     loss = sums.pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Call `torch.use_deterministic_algorithms(True)`. It selects a deterministic implementation
    /// where there is one, and raises an error where there is none. It also requires
    /// `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// torch.use_deterministic_algorithms(True)
    /// model = nn.Linear(10, 4).cuda()
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs = torch.randn(64, 10).cuda()
    /// groups = torch.randint(0, 8, (64,)).cuda()
    ///
    /// for epoch in range(20):
    ///     sums = torch.zeros(8, 4).cuda().index_add(0, groups, model(inputs))
    ///     loss = sums.pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    if !context.lifted.trains {
        return;
    }
    let is_listed = |operation: &str| match &context.config.torch {
        Some(torch) => torch.has(operation),
        None => !FIXED_OPERATIONS.contains(&operation),
    };
    let mut reported = BTreeSet::new();
    for found in &context.lifted.nondeterministic_ops {
        let operation = found.operation;
        if !is_listed(operation)
            || !context.reaches_output(found.site)
            || !reported.insert(operation)
        {
            continue;
        }
        let message = format!(
            "On a GPU {operation} may return different bits for the same input, and that affects the parameters."
        );
        let help = "Call `torch.use_deterministic_algorithms(True)`: it makes the operation deterministic, or raises an error where it cannot; then replace it.".to_owned();
        let rule = Rule::NondeterministicOperation;
        report.findings.push(context.finding(rule, found.site, message, help));
    }
}
