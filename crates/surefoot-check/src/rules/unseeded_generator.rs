use ruff_python_ast::Stmt;

use super::{Definition, Report, RuleContext};
use crate::analysis::generators::{
    SEED_OF_KERAS, draws, entropy_of, generator_name, only_orders_data, unseeded_global,
};
use crate::calculus::Operand;
use crate::library::{Environment, Global};
use crate::lift::facts::{Draw, Purpose, Role, Thing};
use crate::{Finding, Rule};

define_rule! {
    /// # A generator without a seed affects data or parameters
    ///
    /// ## What it does
    /// Finds random generators that are never seeded and whose numbers become data or parameters:
    /// initial weights, noise, dropout, augmentation, a split of the data.
    ///
    /// ## Why is this bad?
    /// A generator without a seed starts from entropy of the operating system, so every run is
    /// different. A good result cannot be reproduced, a bad one cannot be debugged, and two runs with
    /// different settings also differ by chance.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// for epoch in range(20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Seed each generator once, before anything draws from it. PyTorch, NumPy and Python's `random`
    /// have separate generators; seeding one does not seed the others.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(0)
    /// model = nn.Linear(10, 1)
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    /// inputs, targets = torch.ones(64, 10), torch.ones(64, 1)
    ///
    /// for epoch in range(20):
    ///     loss = nn.functional.mse_loss(model(inputs), targets)
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    for thing in &context.lifted.things {
        if let Role::Global(global) = thing.role {
            if let Some(unseeded) = unseeded_global(context, thing, global) {
                report.findings.extend(unseeded.finding(context, Rule::UnseededGenerator));
            }
            if global == Global::TensorFlow {
                report.findings.extend(seeded_beside_keras(context, thing));
            }
            report.findings.extend(random_seed(context, thing));
        }
    }
    for read in context.reads(Environment::Entropy) {
        if read.in_worker || only_orders_data(context, read.site).is_some() {
            continue;
        }
        let message = "This generator starts from entropy of the system, and its numbers affect the training: every run is different.".to_owned();
        let help = "Give it a seed.".to_owned();
        report.findings.push(context.finding(Rule::UnseededGenerator, read.site, message, help));
    }
}

/// Layers of Keras in a script that seeds only TensorFlow. Keras 3 draws its seeds from Python's
/// generator; the version of `tf.keras` is unknown.
fn seeded_beside_keras(context: &RuleContext<'_>, thing: &Thing) -> Option<Finding> {
    let lifted = context.lifted;
    let is_seeded = |thing: &Thing| lifted.seeds.iter().any(|it| it.generator == thing.object);
    let python = lifted.things.iter().find(|it| it.role == Role::Global(Global::Python));
    if lifted.is_library || !is_seeded(thing) || python.is_some_and(is_seeded) {
        return None;
    }
    let is_of_layer = |draw: &&Draw| {
        matches!(draw.purpose, Purpose::Parameters | Purpose::Layer)
            && context.typing.reaches_output(draw.target)
    };
    let draw = draws(context, thing).find(is_of_layer)?;
    let file = context.project.script(context.place(draw.site).file);
    if !imports_keras(&file.module.body) {
        return None;
    }
    let what = match draw.purpose {
        Purpose::Layer => "Dropout is drawn",
        _ => "Initial parameters are drawn",
    };
    let message = format!(
        "{what} with seeds that Keras creates itself, and `tf.random.set_seed` does not set those: every run is different."
    );
    let help = format!("Seed everything once, before the first draw: `{SEED_OF_KERAS}`.");
    Some(context.finding(Rule::UnseededGenerator, draw.site, message, help))
}

/// True if a file imports Keras by its own name.
fn imports_keras(body: &[Stmt]) -> bool {
    let is_keras = |name: &str| name == "keras" || name.starts_with("keras.");
    body.iter().any(|statement| match statement {
        Stmt::Import(it) => it.names.iter().any(|name| is_keras(name.name.as_str())),
        Stmt::ImportFrom(it) => {
            it.level == 0 && it.module.as_ref().is_some_and(|it| is_keras(it.as_str()))
        }
        Stmt::Try(it) => imports_keras(&it.body),
        _ => false,
    })
}

/// A seed that is drawn from a global generator before that one is seeded.
fn random_seed(context: &RuleContext<'_>, thing: &Thing) -> Option<Finding> {
    let lifted = context.lifted;
    let first = lifted.seeds.iter().find(|seed| seed.generator == thing.object)?;
    let is_early =
        |draw: &&Draw| draw.moment.order < first.moment.order && draw.purpose == Purpose::Values;
    let draw = draws(context, thing).find(is_early)?;
    let name = entropy_of(context, thing);
    let is_random = |operand: &Operand| match operand {
        Operand::Variable(variable) => {
            let mut origins = context.typing.state(*variable).external();
            origins.any(|origin| context.symbol(origin) == Some(&name))
        }
        _ => false,
    };
    let seed = lifted.seeds.iter().find(|it| it.operands.iter().any(is_random))?;
    let message = format!(
        "A seed is drawn from {}, which is not seeded here: every run with such a seed is different.",
        generator_name(thing)
    );
    let help = "Use a fixed seed as the default.".to_owned();
    let mut finding = context.finding(Rule::UnseededGenerator, draw.site, message, help);
    finding.notes.push(context.note(seed.site, "Used as a seed here."));
    Some(finding)
}
