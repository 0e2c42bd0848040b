use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::library::Environment;

define_rule! {
    /// # The `hash` of a string affects data or parameters
    ///
    /// ## What it does
    /// Finds calls of `hash` on strings or bytes whose result affects the training: a split, a bucket,
    /// a seed.
    ///
    /// ## Why is this bad?
    /// Python salts the hashes of strings and bytes in every process, unless `PYTHONHASHSEED` is set.
    /// Every process has a different split. A resumed run trains on samples that it validated on
    /// before.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// names = [f"sample-{number}" for number in range(1000)]
    /// train = [name for name in names if hash(name) % 10 < 8]
    ///
    /// model = nn.Linear(1, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// for name in train:
    ///     loss = model(torch.tensor([float(len(name))])).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Use a checksum such as `zlib.crc32`, which is the same everywhere.
    ///
    /// ```python
    /// import zlib
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// names = [f"sample-{number}" for number in range(1000)]
    /// train = [name for name in names if zlib.crc32(name.encode()) % 10 < 8]
    ///
    /// model = nn.Linear(1, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// for name in train:
    ///     loss = model(torch.tensor([float(len(name))])).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for read in context.reads(Environment::Hash) {
        let message = "`hash` of a string differs between runs, and this one affects the training."
            .to_owned();
        let help = "Use a stable hash, from `hashlib` or `zlib.crc32`.".to_owned();
        report.findings.push(context.finding(Rule::HashOrder, read.site, message, help));
    }
}
