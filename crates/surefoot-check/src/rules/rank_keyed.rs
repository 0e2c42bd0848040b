use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::analysis::generators::{capitalized, draws, generator_name};
use crate::calculus::{Operand, Variable, WorkerCause};
use crate::lift::facts::{Role, Seed};

define_rule! {
    /// # A seed depends on the rank of the process
    ///
    /// ## What it does
    /// Finds generators and keys whose seed contains the rank of a process in distributed training.
    ///
    /// ## Why is this bad?
    /// Each process draws different numbers, which is often intended, but the numbers of all processes
    /// together depend on how many there are. The run can only be repeated on the same number of
    /// processes. On four GPUs instead of eight, or after the loss of one, it trains on different
    /// numbers.
    ///
    /// ## Example
    /// ```python
    /// import torch
    /// import torch.distributed as dist
    /// from torch import nn
    /// from torch.nn.parallel import DistributedDataParallel
    ///
    /// dist.init_process_group("gloo")
    /// torch.manual_seed(1234 + dist.get_rank())
    /// model = DistributedDataParallel(nn.Linear(10, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for step in range(100):
    ///     loss = model(torch.randn(32, 10)).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    ///
    /// ## How to fix it
    /// Use the same seed in all processes, draw the numbers for all of them, and let each use its
    /// share.
    ///
    /// ```python
    /// import torch
    /// import torch.distributed as dist
    /// from torch import nn
    /// from torch.nn.parallel import DistributedDataParallel
    ///
    /// dist.init_process_group("gloo")
    /// torch.manual_seed(1234)
    /// model = DistributedDataParallel(nn.Linear(10, 1))
    /// optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ///
    /// for step in range(100):
    ///     batch = torch.randn(256, 10)
    ///     part = batch[dist.get_rank() :: dist.get_world_size()]
    ///     loss = model(part).pow(2).mean()
    ///     optimizer.zero_grad()
    ///     loss.backward()
    ///     optimizer.step()
    /// ```
    Definition { is_warning: false, check }
}

fn check(context: &RuleContext<'_>, report: &mut Report) {
    let is_rank = |variable: Variable| {
        let dependence = context.typing.state(variable).workers;
        dependence.is_some_and(|it| it.cause == WorkerCause::Rank)
    };
    let is_key = |variable: Variable| is_rank(variable) && context.typing.reaches_output(variable);
    if let Some(fold) = context.lifted.folds.iter().find(|fold| is_key(fold.variable)) {
        let message = "This key depends on the rank of the process: a different number of processes trains a different model.".to_owned();
        let help = "Use the same key in every process, and fold in the number of the sample instead of the rank.".to_owned();
        report.findings.push(context.finding(Rule::RankKeyed, fold.site, message, help));
    }
    for thing in &context.lifted.things {
        let is_generator = matches!(thing.role, Role::Global(_) | Role::Generator(_));
        if !is_generator || draws(context, thing).next().is_none() {
            continue;
        }
        let has_rank = |seed: &&Seed| {
            seed.generator == thing.object
                && seed.operands.iter().any(|operand| match operand {
                    Operand::Rank => true,
                    Operand::Variable(variable) => is_rank(*variable),
                    _ => false,
                })
        };
        if let Some(seed) = context.lifted.seeds.iter().find(has_rank) {
            let message = format!(
                "{} is seeded with the rank of the process: a different number of processes trains a different model.",
                capitalized(&generator_name(thing))
            );
            let help = "Use the same seed in every process, and key the draws by the sample instead of the rank.".to_owned();
            report.findings.push(context.finding(Rule::RankKeyed, seed.site, message, help));
        }
    }
}
