use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::analysis::generators::{draws, generator_name, only_orders_data};
use crate::library::Environment;
use crate::lift::facts::Role;

define_rule! {
    /// # Worker processes of a data loader draw from generators without a seed
    ///
    /// ## What it does
    /// Finds generators that worker processes of a data loader draw from and that nothing seeds there.
    /// With `num_workers` above zero, PyTorch seeds its own generator, NumPy's global one and Python's
    /// in every worker. It does not seed generators that the data set creates.
    ///
    /// ## Why is this bad?
    /// A generator that was created before the workers start is copied into each of them, so all
    /// workers draw the same numbers and one batch repeats the augmentation of another. A generator
    /// without a seed gives different augmentation in every run.
    ///
    /// ## Example
    /// ```python
    /// import numpy as np
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, Dataset
    ///
    /// torch.manual_seed(0)
    ///
    ///
    /// class Noisy(Dataset):
    ///     def __init__(self):
    ///         self.generator = np.random.default_rng()
    ///
    ///     def __len__(self):
    ///         return 1000
    ///
    ///     def __getitem__(self, index):
    ///         noise = self.generator.normal(size=10)
    ///         return torch.as_tensor(noise, dtype=torch.float32), torch.ones(1)
    ///
    ///
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// for inputs, targets in DataLoader(Noisy(), batch_size=32, num_workers=4):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Seed such generators in `worker_init_fn`, from `torch.initial_seed()`, or draw from PyTorch's
    /// generator.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    /// from torch.utils.data import DataLoader, Dataset
    ///
    /// torch.manual_seed(0)
    ///
    ///
    /// class Noisy(Dataset):
    ///     def __len__(self):
    ///         return 1000
    ///
    ///     def __getitem__(self, index):
    ///         return torch.randn(10), torch.ones(1)
    ///
    ///
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// for inputs, targets in DataLoader(Noisy(), batch_size=32, num_workers=4):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for thing in &context.lifted.things {
        let (draw, message, help, note) = match thing.role {
            Role::Worker(_) if context.lifted.unseeded_processes.contains(&thing.object) => (
                draws(context, thing).next(),
                format!(
                    "This draws from {} in the worker processes of a data loader. Nothing seeds it there, and the assignment of batches to processes depends on the machine.",
                    generator_name(thing)
                ),
                "Draw from a generator that is created for each batch, from a seed and the number of the batch: `np.random.default_rng([seed, index])`.",
                None,
            ),
            Role::Generator(_) => (
                draws(context, thing).find(|draw| draw.is_copied),
                format!(
                    "Every worker process has its own copy of {}: all draw the same numbers, and the same again in every epoch.",
                    generator_name(thing)
                ),
                "Create the generator in a `worker_init_fn`, from `torch.utils.data.get_worker_info().seed`.",
                Some(context.note(thing.site, "Created here, before the processes start.")),
            ),
            _ => continue,
        };
        let Some(draw) = draw else { continue };
        let help = help.to_owned();
        let mut finding = context.finding(Rule::UnseededWorkers, draw.site, message, help);
        finding.notes.extend(note);
        report.findings.push(finding);
    }
    for read in context.reads(Environment::Entropy) {
        if !read.in_worker || only_orders_data(context, read.site).is_some() {
            continue;
        }
        let message = "In the worker processes this generator is seeded by the system, and its numbers affect the training: every run is different.".to_owned();
        let help = "Seed it from `torch.initial_seed()`, which differs between processes and follows from the loader's generator.".to_owned();
        report.findings.push(context.finding(Rule::UnseededWorkers, read.site, message, help));
    }
}
