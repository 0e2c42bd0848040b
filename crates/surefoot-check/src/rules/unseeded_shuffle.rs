use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::analysis::generators::{
    evaluation_draws, generator_name, only_orders_data, unseeded_global,
};
use crate::library::Environment;
use crate::lift::facts::Role;

define_rule! {
    /// # The order of the data comes from a generator that is not seeded or is shared with the evaluation
    ///
    /// ## What it does
    /// Finds shuffles and splits whose order is drawn from a generator without a seed, or from a
    /// global generator from which the evaluation draws too.
    ///
    /// ## Why is this bad?
    /// Each run trains on a different order or a different split. The effect is as large as that of
    /// another seed, and easily mistaken for the effect of a change under test. A split that is drawn
    /// again when a run resumes moves samples of the validation split into the training.
    ///
    /// ## Example
    /// ```python
    /// import random
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// rows = [(torch.randn(10), torch.randn(1)) for _ in range(1000)]
    /// random.shuffle(rows)
    ///
    /// for inputs, targets in rows:
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Draw the order from a separate generator with a seed. It is then independent of all other
    /// draws.
    ///
    /// ```python
    /// import random
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// rows = [(torch.randn(10), torch.randn(1)) for _ in range(1000)]
    /// random.Random(0).shuffle(rows)
    ///
    /// for inputs, targets in rows:
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for thing in &context.lifted.things {
        let Role::Global(global) = thing.role else {
            continue;
        };
        if let Some(unseeded) = unseeded_global(context, thing, global) {
            report.findings.extend(unseeded.finding(context, Rule::UnseededShuffle));
        }
        let shared = evaluation_draws(context, thing);
        if let Some(shuffle) = shared.and_then(|it| it.training_shuffle) {
            let message = format!(
                "The order of the training data is drawn from {}, from which the evaluation draws too: the order depends on how often the model is evaluated.",
                generator_name(thing)
            );
            let help = "Give the loader a separate generator: `generator=torch.Generator().manual_seed(seed)`.".to_owned();
            report.findings.push(context.finding(
                Rule::UnseededShuffle,
                shuffle.site,
                message,
                help,
            ));
        }
    }
    for read in context.reads(Environment::Entropy) {
        let Some(order) = only_orders_data(context, read.site) else {
            continue;
        };
        let message = "The order of the data comes from a generator that starts from entropy of the system: every run is different.".to_owned();
        let help = match read.in_worker {
            true => {
                "Seed it from `torch.initial_seed()`, which differs between processes and follows from the loader's generator."
            }
            false => "Give it a seed.",
        };
        let mut finding = context.finding(Rule::UnseededShuffle, order, message, help.to_owned());
        finding.notes.push(context.note(read.site, "Created here, without a seed."));
        report.findings.push(finding);
    }
}
