//! The training loop as a program of the calculus of `docs/randomness.md`.

use std::collections::HashMap;

use surefoot_check::calculus::{Operand, Program, Reduction, Site, Statement, Symbol, Variable};

/// Returns the program of the training loop. A checkpoint lies between two steps, after the evaluation
/// at the end of an epoch:
///
/// ```text
/// initial := fold plan.seed initialize
/// parameters := rnd(initial, plan.model)
/// optimizer := empty(plan.model)
/// for epoch < plan.epochs {
///     order := fold plan.seed shuffle epoch
///     for batch < steps_per_epoch {
///         ckpt between_steps
///         rate := schedule(plan.schedule, epoch, batch)
///         outcome := map shard < shards {      # gradient, loss and batch statistics of a shard
///             samples := take(data.train, order, batch, shard)
///             key := fold plan.seed dropout epoch samples
///             mask := rnd(key)
///             part := pass(parameters, samples, mask)
///             part
///         } reduce tree
///         optimizer := remember(optimizer, outcome, epoch, batch)
///         parameters := update(parameters, optimizer, outcome, rate)
///         parameters := follow(parameters, outcome)    # moving statistics of normalizations
///         out outcome parameters optimizer
///     }
///     evaluation := map shard < chunks {
///         part := judge(parameters, data.validation, shard)
///         part
///     } reduce tree
///     if better(evaluation, best) {
///         best := keep(parameters, evaluation)
///     }
///     last := result(evaluation)
/// }
/// out best last
/// ```
pub(crate) fn training_loop() -> Program {
    let mut b = Builder::default();
    let names = [
        "initial",
        "parameters",
        "optimizer",
        "epoch",
        "order",
        "batch",
        "rate",
        "outcome",
        "shard",
        "samples",
        "key",
        "mask",
        "part",
        "evaluation",
        "best",
        "last",
    ];
    for name in names {
        let variable = b.program.variable(name);
        b.variables.insert(name, variable);
    }
    let shard = vec![
        b.compute("samples", "take", &["data.train", "order", "batch", "shard"]),
        b.fold("key", &["dropout", "epoch", "samples"]),
        b.keyed("mask", "key", &[]),
        b.compute("part", "pass", &["parameters", "samples", "mask"]),
    ];
    let step = vec![
        Statement::Checkpoint { label: b.program.label("between_steps"), site: SITE },
        b.compute("rate", "schedule", &["plan.schedule", "epoch", "batch"]),
        b.map("outcome", "shards", shard),
        b.compute("optimizer", "remember", &["optimizer", "outcome", "epoch", "batch"]),
        b.compute("parameters", "update", &["parameters", "optimizer", "outcome", "rate"]),
        b.compute("parameters", "follow", &["parameters", "outcome"]),
        b.output(&["outcome", "parameters", "optimizer"]),
    ];
    let chunk = vec![b.compute("part", "judge", &["parameters", "data.validation", "shard"])];
    let better = Statement::If {
        condition: b.symbol("better"),
        operands: b.operands(&["evaluation", "best"]),
        then: vec![b.compute("best", "keep", &["parameters", "evaluation"])],
        otherwise: Vec::new(),
        site: SITE,
    };
    let epoch = vec![
        b.fold("order", &["shuffle", "epoch"]),
        b.repeat("batch", "steps_per_epoch", step),
        b.map("evaluation", "chunks", chunk),
        better,
        b.compute("last", "result", &["evaluation"]),
    ];
    b.program.body = vec![
        b.fold("initial", &["initialize"]),
        b.keyed("parameters", "initial", &["plan.model"]),
        b.compute("optimizer", "empty", &["plan.model"]),
        b.repeat("epoch", "plan.epochs", epoch),
        b.output(&["best", "last"]),
    ];
    b.program
}

const SITE: Site = Site(0);

/// Builds statements from names. Names that are not variables are constants.
#[derive(Default)]
struct Builder {
    program: Program,
    variables: HashMap<&'static str, Variable>,
    symbols: HashMap<&'static str, Symbol>,
}

impl Builder {
    fn symbol(&mut self, name: &'static str) -> Symbol {
        *self.symbols.entry(name).or_insert_with(|| self.program.symbol(name))
    }

    fn operand(&mut self, name: &'static str) -> Operand {
        match self.variables.get(name) {
            Some(variable) => Operand::Variable(*variable),
            None => Operand::Constant(self.symbol(name)),
        }
    }

    fn operands(&mut self, names: &[&'static str]) -> Vec<Operand> {
        names.iter().map(|name| self.operand(name)).collect()
    }

    fn compute(&mut self, target: &str, function: &'static str, of: &[&'static str]) -> Statement {
        let (target, function) = (self.variables[target], self.symbol(function));
        Statement::Compute { target, function, operands: self.operands(of), site: SITE }
    }

    /// A key derived from the seed of the plan.
    fn fold(&mut self, target: &str, of: &[&'static str]) -> Statement {
        let (target, key) = (self.variables[target], self.operand("plan.seed"));
        Statement::Fold { target, key, operands: self.operands(of), site: SITE }
    }

    fn keyed(&mut self, target: &str, key: &'static str, of: &[&'static str]) -> Statement {
        let (target, key) = (self.variables[target], self.operand(key));
        Statement::Keyed { target, key, operands: self.operands(of), site: SITE }
    }

    fn repeat(&mut self, counter: &str, bound: &'static str, body: Vec<Statement>) -> Statement {
        Statement::For {
            counter: self.variables[counter],
            bound: self.operand(bound),
            body,
            site: SITE,
        }
    }

    fn map(&mut self, target: &str, bound: &'static str, body: Vec<Statement>) -> Statement {
        Statement::Map {
            target: self.variables[target],
            element: self.variables["shard"],
            bound: self.operand(bound),
            body,
            result: self.operand("part"),
            reduction: Reduction::Tree,
            site: SITE,
        }
    }

    fn output(&mut self, of: &[&'static str]) -> Statement {
        Statement::Output { operands: self.operands(of), site: SITE }
    }
}
