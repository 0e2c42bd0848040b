use std::collections::BTreeSet;

use super::{Definition, Report, RuleContext};
use crate::Rule;
use crate::calculus::{Operand, Program, Site, Statement, Variable};
use crate::library::Environment;

define_rule! {
    /// # The clock, a process id or a random identifier affects data or parameters
    ///
    /// ## What it does
    /// Finds the time, a process id, a UUID or bytes from the operating system that become a seed or
    /// data, or decide what is trained.
    ///
    /// ## Why is this bad?
    /// These values differ in every run. The run cannot be repeated, and unless the value was logged,
    /// nobody can tell what was run. A time in a file name or a log is not reported.
    ///
    /// ## Example
    /// ```python
    /// import time
    ///
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(int(time.time()))
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
    /// Use a fixed value, or one from the configuration. Count steps instead of seconds.
    ///
    /// ```python
    /// import torch
    /// from torch import nn
    ///
    /// torch.manual_seed(1234)
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
    for read in context.reads(Environment::Clock) {
        let call = &read.call;
        let (site, message, help) = match controlled(&context.lifted.program, read.variable) {
            Some(condition) => (
                condition,
                format!(
                    "`{call}` reads the clock, and this condition decides how the training continues: every run is different."
                ),
                "Count steps instead of seconds.",
            ),
            None => (
                read.site,
                format!(
                    "`{call}` reads the clock, and the result affects the training: every run is different."
                ),
                "Use a seed from the configuration, and record it.",
            ),
        };
        report.findings.push(context.finding(Rule::Clock, site, message, help.to_owned()));
    }
    for read in context.reads(Environment::Identity) {
        let message = format!(
            "`{}` returns a different value in every run, and it affects the training.",
            read.call
        );
        let help = "Use a fixed value, or one from the configuration.".to_owned();
        report.findings.push(context.finding(Rule::Clock, read.site, message, help));
    }
}

/// Returns the first condition that a value controls, if it reaches no output through data.
fn controlled(program: &Program, value: Variable) -> Option<Site> {
    let mut uses = DataUses { derived: BTreeSet::from([value]), condition: None, is_output: false };
    let mut before = 0;
    // A loop carries values into the next pass.
    while before < uses.derived.len() {
        before = uses.derived.len();
        uses.block(&program.body);
    }
    uses.condition.filter(|_| !uses.is_output)
}

/// Variables that are computed from a value, and where they are used.
struct DataUses {
    derived: BTreeSet<Variable>,
    condition: Option<Site>,
    is_output: bool,
}

impl DataUses {
    fn uses(&self, operands: &[Operand]) -> bool {
        operands
            .iter()
            .any(|it| matches!(it, Operand::Variable(variable) if self.derived.contains(variable)))
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        statement.blocks().for_each(|block| self.block(block));
        let (target, is_derived) = match statement {
            Statement::Compute { target, operands, .. }
            | Statement::Nondeterministic { target, operands, .. }
            | Statement::Seed { generator: target, operands, .. } => (target, self.uses(operands)),
            Statement::Fold { target, key, operands, .. }
            | Statement::Keyed { target, key, operands, .. } => {
                (target, self.uses(operands) || self.uses(&[*key]))
            }
            Statement::Draw { target, generator, operands, .. } => {
                (target, self.uses(operands) || self.derived.contains(generator))
            }
            Statement::Map { target, result, .. } => (target, self.uses(&[*result])),
            Statement::If { operands, site, .. } => {
                if self.uses(operands) {
                    self.condition.get_or_insert(*site);
                }
                return;
            }
            Statement::Output { operands, .. } => {
                self.is_output |= self.uses(operands);
                return;
            }
            Statement::For { .. } | Statement::Read { .. } | Statement::Checkpoint { .. } => return,
        };
        if is_derived {
            self.derived.insert(*target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::tests::parse;

    #[test]
    fn a_value_controls_a_condition_unless_it_reaches_an_output() {
        let is_controlled = |text: &str| {
            let program = parse(text).unwrap();
            let clock = program.variables.iter().position(|it| it == "t").unwrap();
            controlled(&program, Variable(u32::try_from(clock).unwrap())).is_some()
        };
        assert!(is_controlled(
            "t := env clock\nd := minus(t)\nif late(d) {\n w := step(w)\n}\nout w"
        ));
        assert!(!is_controlled("t := env clock\nif late(t) {\n w := step(w, t)\n}\nout w"));
        assert!(!is_controlled("t := env clock\nw := step(w)\nout w"));
    }
}
