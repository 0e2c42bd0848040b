//! What is not trained on, and decides how long or whether training goes on.

use std::collections::BTreeSet;

use crate::calculus::{Operand, Program, Site, Statement, Variable};

/// The condition that a value decides, if it reaches what the program puts out in no other way.
pub(super) fn decided(program: &Program, value: Variable) -> Option<Site> {
    let mut taken = Taken { by: BTreeSet::from([value]), condition: None, is_put_out: false };
    let mut before = 0;
    // What a loop carries round is taken in the next pass.
    while before < taken.by.len() {
        before = taken.by.len();
        taken.block(&program.body);
    }
    taken.condition.filter(|_| !taken.is_put_out)
}

/// What takes a value as data.
struct Taken {
    by: BTreeSet<Variable>,
    condition: Option<Site>,
    is_put_out: bool,
}

impl Taken {
    fn is_among(&self, operands: &[Operand]) -> bool {
        operands
            .iter()
            .any(|it| matches!(it, Operand::Variable(variable) if self.by.contains(variable)))
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute { target, operands, .. }
            | Statement::Nondeterministic { target, operands, .. }
            | Statement::Seed { generator: target, operands, .. } => {
                self.take(*target, self.is_among(operands))
            }
            Statement::Fold { target, key, operands, .. }
            | Statement::Keyed { target, key, operands, .. } => {
                self.take(*target, self.is_among(operands) || self.is_among(&[*key]))
            }
            Statement::Draw { target, generator, operands, .. } => {
                let is_taken = self.is_among(operands) || self.by.contains(generator);
                self.take(*target, is_taken);
            }
            Statement::If { operands, then, otherwise, site, .. } => {
                if self.is_among(operands) {
                    self.condition.get_or_insert(*site);
                }
                self.block(then);
                self.block(otherwise);
            }
            Statement::For { body, .. } => self.block(body),
            Statement::Map { target, body, result, .. } => {
                self.block(body);
                self.take(*target, self.is_among(&[*result]));
            }
            Statement::Output { operands, .. } => self.is_put_out |= self.is_among(operands),
            Statement::Read { .. } | Statement::Checkpoint { .. } => {}
        }
    }

    fn take(&mut self, variable: Variable, is_taken: bool) {
        if is_taken {
            self.by.insert(variable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::tests::parse;

    #[test]
    fn only_what_no_output_takes_decides() {
        let decides = |text: &str| {
            let program = parse(text).unwrap();
            let clock = program.variables.iter().position(|it| it == "t").unwrap();
            decided(&program, Variable(u32::try_from(clock).unwrap())).is_some()
        };
        assert!(decides("t := env clock\nd := minus(t)\nif late(d) {\n w := step(w)\n}\nout w"));
        assert!(!decides("t := env clock\nif late(t) {\n w := step(w, t)\n}\nout w"));
        assert!(!decides("t := env clock\nw := step(w)\nout w"));
    }
}
