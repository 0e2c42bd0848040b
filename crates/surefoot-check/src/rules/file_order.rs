use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::library::Environment;

define_rule! {
    /// # The order of a directory listing affects data or parameters
    ///
    /// ## What it does
    /// Finds results of `os.listdir`, `glob`, `os.scandir` and `Path.iterdir` whose order affects the
    /// training: the order of samples, a split, the number of a class.
    ///
    /// ## Why is this bad?
    /// These functions return files in the order of the file system. It is stable until the data is
    /// copied to another machine. There the same seed gives a different split, with samples of the
    /// validation split in the training, or the classes have different numbers.
    ///
    /// ## Example
    /// ```python
    /// import os
    ///
    /// import numpy as np
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for name in os.listdir("data"):
    ///     inputs = torch.from_numpy(np.load(os.path.join("data", name)))
    ///     loss = model(inputs).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Sort the listing.
    ///
    /// ```python
    /// import os
    ///
    /// import numpy as np
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for name in sorted(os.listdir("data")):
    ///     inputs = torch.from_numpy(np.load(os.path.join("data", name)))
    ///     loss = model(inputs).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for read in context.reads(Environment::FileOrder) {
        let message = format!(
            "`{}` lists files in the order of the file system, and that order affects the training: another machine trains a different model.",
            read.call
        );
        let help = "Sort the result: `sorted(...)`.".to_owned();
        report.findings.push(context.finding(Rule::FileOrder, read.site, message, help));
    }
}
