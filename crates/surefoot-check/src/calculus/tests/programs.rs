//! Random programs.

use proptest::prelude::*;

use crate::calculus::{Operand, Program, Reduction, SUCCESSOR, Site, Statement, Symbol, Variable};

/// Class of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Any program, with few names: counters are overwritten, seeds drawn, symbols meet the same
    /// operands again.
    Any,
    /// Free and liberal: every path belongs to an execution, and nothing is computed twice. Each
    /// operation and each bound has a unique symbol, and the counters of all enclosing loops among its
    /// operands.
    Fresh,
}

/// Generates programs of a class.
pub(crate) fn programs(class: Class) -> impl Strategy<Value = Program> {
    proptest::collection::vec(any::<u16>(), 20..200).prop_map(move |choices| {
        let mut writer = Writer {
            choices: choices.into_iter(),
            class,
            program: Program::default(),
            pool: Vec::new(),
            counters: Vec::new(),
            in_map: false,
        };
        // With more variables, omissions show in fewer interpretations.
        let variables = if class == Class::Any { 6 } else { 4 };
        writer.pool = (0..variables).map(|i| writer.program.variable(format!("v{i}"))).collect();
        if class == Class::Any {
            for i in 0..8 {
                writer.program.symbol(format!("c{i}"));
            }
            writer.program.symbol(SUCCESSOR);
        }
        let mut body = writer.block(0, 4, 14);
        let last = writer.output();
        body.push(last);
        writer.program.body = body;
        number(&mut writer.program.body, &mut 0);
        writer.program
    })
}

/// Gives every statement a unique site.
pub(crate) fn number(block: &mut [Statement], next: &mut u32) {
    for statement in block {
        *next += 1;
        let here = Site(*next);
        match statement {
            Statement::Compute { site, .. }
            | Statement::Nondeterministic { site, .. }
            | Statement::Seed { site, .. }
            | Statement::Draw { site, .. }
            | Statement::Fold { site, .. }
            | Statement::Keyed { site, .. }
            | Statement::Read { site, .. }
            | Statement::Checkpoint { site, .. }
            | Statement::Output { site, .. } => *site = here,
            Statement::If { site, then, otherwise, .. } => {
                *site = here;
                number(then, next);
                number(otherwise, next);
            }
            Statement::For { site, body, .. } | Statement::Map { site, body, .. } => {
                *site = here;
                number(body, next);
            }
        }
    }
}

/// Generator of a program from a list of choices; ends with the list.
struct Writer {
    choices: std::vec::IntoIter<u16>,
    class: Class,
    program: Program,
    pool: Vec<Variable>,
    counters: Vec<Variable>,
    in_map: bool,
}

const SITE: Site = Site(0);

impl Writer {
    fn choose(&mut self, among: usize) -> usize {
        self.choices.next().map_or(0, usize::from) % among
    }

    fn variable(&mut self) -> Variable {
        let at = self.choose(self.pool.len());
        self.pool[at]
    }

    fn symbol(&mut self, name: &str) -> Symbol {
        match self.class {
            Class::Any => Symbol(self.choose(8) as u32),
            Class::Fresh => {
                let number = self.program.symbols.len();
                self.program.symbol(format!("{name}{number}"))
            }
        }
    }

    fn operand(&mut self) -> Operand {
        match self.choose(12) {
            0 => Operand::Constant(self.symbol("c")),
            1 if self.choose(3) == 0 => Operand::Rank,
            2 if self.choose(3) == 0 => Operand::Workers,
            _ => Operand::Variable(self.variable()),
        }
    }

    /// One or two operands, and the marks that make the operation unique.
    fn operands(&mut self) -> Vec<Operand> {
        let mut operands = vec![self.operand()];
        if self.choose(2) == 0 {
            operands.push(self.operand());
        }
        operands.extend(self.marks());
        operands
    }

    fn marks(&mut self) -> Vec<Operand> {
        match self.class {
            Class::Any => Vec::new(),
            Class::Fresh => {
                let constant = Operand::Constant(self.symbol("c"));
                let counters = self.counters.iter().map(|c| Operand::Variable(*c));
                counters.chain([constant]).collect()
            }
        }
    }

    fn counter(&mut self, name: &str) -> Variable {
        match self.class {
            Class::Any => self.variable(),
            Class::Fresh => {
                let number = self.program.variables.len();
                self.program.variable(format!("{name}{number}"))
            }
        }
    }

    /// Number of iterations; adds statements that compute it.
    fn bound(&mut self, before: &mut Vec<Statement>) -> Operand {
        if self.class == Class::Any {
            return self.operand();
        }
        let target = self.counter("n");
        let function = self.symbol("size");
        let mut operands = self.marks();
        if self.choose(3) == 0 {
            operands.push(self.operand());
        }
        before.push(Statement::Compute { target, function, operands, site: SITE });
        Operand::Variable(target)
    }

    fn output(&mut self) -> Statement {
        Statement::Output { operands: self.operands(), site: SITE }
    }

    fn block(&mut self, depth: usize, least: usize, most: usize) -> Vec<Statement> {
        let mut block = Vec::new();
        for _ in 0..least + self.choose(most - least + 1) {
            if self.choices.len() == 0 {
                break;
            }
            self.statement(depth, &mut block);
        }
        block
    }

    fn statement(&mut self, depth: usize, block: &mut Vec<Statement>) {
        let kinds = if depth < 3 { 26 } else { 19 };
        let statement = match self.choose(kinds) {
            0..5 => Statement::Compute {
                target: self.variable(),
                function: self.symbol("f"),
                operands: self.operands(),
                site: SITE,
            },
            5 => self.count(),
            6..9 => Statement::Draw {
                target: self.variable(),
                generator: self.variable(),
                operands: self.operands(),
                site: SITE,
            },
            9 | 10 => Statement::Seed {
                generator: self.variable(),
                operands: self.operands(),
                site: SITE,
            },
            11 => Statement::Fold {
                target: self.variable(),
                key: self.operand(),
                operands: self.operands(),
                site: SITE,
            },
            12 => Statement::Keyed {
                target: self.variable(),
                key: self.operand(),
                operands: self.operands(),
                site: SITE,
            },
            13 if self.choose(3) == 0 => {
                Statement::Read { target: self.variable(), what: self.symbol("e"), site: SITE }
            }
            14 if self.choose(3) == 0 => Statement::Nondeterministic {
                target: self.variable(),
                function: self.symbol("f"),
                operands: self.operands(),
                site: SITE,
            },
            13..17 if !self.in_map => {
                let number = self.program.labels.len();
                Statement::Checkpoint {
                    label: self.program.label(format!("L{number}")),
                    site: SITE,
                }
            }
            17 | 18 if !self.in_map => self.output(),
            13..19 => return,
            19..21 => Statement::If {
                condition: self.symbol("p"),
                operands: self.operands(),
                then: self.block(depth + 1, 1, 4),
                otherwise: self.block(depth + 1, 0, 3),
                site: SITE,
            },
            21..24 => {
                let bound = self.bound(block);
                let counter = self.counter("i");
                self.counters.push(counter);
                let body = self.block(depth + 1, 2, 7);
                self.counters.pop();
                Statement::For { counter, bound, body, site: SITE }
            }
            _ => self.map(depth, block),
        };
        block.push(statement);
    }

    fn count(&mut self) -> Statement {
        let target = self.variable();
        let function = match self.class {
            Class::Any => Symbol(8),
            Class::Fresh => self.program.symbol(SUCCESSOR),
        };
        let mut operands = vec![Operand::Variable(target)];
        if self.class == Class::Fresh || self.choose(2) == 0 {
            operands.push(Operand::Constant(self.symbol("c")));
        }
        Statement::Compute { target, function, operands, site: SITE }
    }

    /// Result of a map; adds statements that compute it.
    fn result(&mut self, body: &mut Vec<Statement>) -> Operand {
        if self.class == Class::Any {
            return self.operand();
        }
        let target = self.counter("r");
        body.push(Statement::Compute {
            target,
            function: self.symbol("f"),
            operands: self.operands(),
            site: SITE,
        });
        Operand::Variable(target)
    }

    fn map(&mut self, depth: usize, block: &mut Vec<Statement>) -> Statement {
        let target = self.variable();
        let bound = self.bound(block);
        let element = self.counter("j");
        let was = std::mem::replace(&mut self.in_map, true);
        self.counters.push(element);
        let mut body = self.block(depth + 1, 1, 4);
        let result = self.result(&mut body);
        self.counters.pop();
        self.in_map = was;
        let reductions = [Reduction::Tree, Reduction::Ring, Reduction::Unordered];
        Statement::Map {
            target,
            element,
            bound,
            body,
            result,
            reduction: reductions[self.choose(8).saturating_sub(5)],
            site: SITE,
        }
    }
}
