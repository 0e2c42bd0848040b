use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::library::Environment;

define_rule! {
    /// # Results are used in the order of their arrival
    ///
    /// ## What it does
    /// Finds results of parallel work that are used as they arrive (`as_completed`, `imap_unordered`,
    /// `deterministic=False`) and affect data or parameters.
    ///
    /// ## Why is this bad?
    /// The order in which parallel work completes differs between runs, and depends on the number of
    /// workers and the load of the machine. So do the order of samples and the rounding of sums.
    ///
    /// ## Example
    /// ```python
    /// from concurrent.futures import ThreadPoolExecutor, as_completed
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    ///
    ///
    /// def load(number):
    ///     return torch.full((32, 10), float(number))
    ///
    ///
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// with ThreadPoolExecutor() as pool:
    ///     futures = [pool.submit(load, number) for number in range(100)]
    ///     for future in as_completed(futures):
    ///         inputs = future.result()
    ///         loss = model(inputs).pow(2).mean()
    ///         optimizer.zero_grad()
    ///         loss.backward()
    ///         optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Use the results in the order of the tasks: `map` instead of `as_completed`, `imap` instead of
    /// `imap_unordered`.
    ///
    /// ```python
    /// from concurrent.futures import ThreadPoolExecutor
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    ///
    ///
    /// def load(number):
    ///     return torch.full((32, 10), float(number))
    ///
    ///
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// with ThreadPoolExecutor() as pool:
    ///     for inputs in pool.map(load, range(100)):
    ///         loss = model(inputs).pow(2).mean()
    ///         optimizer.zero_grad()
    ///         loss.backward()
    ///         optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for read in context.reads(Environment::Arrival) {
        let message = format!(
            "`{}` returns results in the order of their arrival, and that order affects the training.",
            read.call
        );
        let help = match read.call.starts_with("tf.data") {
            true => "Remove `deterministic=False`: elements then keep their order.",
            false => "Keep the order of the tasks: use `map`, or sort by an index.",
        }
        .to_owned();
        report.findings.push(context.finding(Rule::ArrivalOrder, read.site, message, help));
    }
}
