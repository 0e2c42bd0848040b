//! Text form of programs, as the parser reads it.

use std::collections::BTreeSet;
use std::fmt;

use super::token::{KEYWORDS, word};
use crate::calculus::outline::{outline, written};
use crate::calculus::syntax::{Label, Operand, Program, Reduction, Statement, Symbol, Variable};

/// Appends `~2`, `~3` and so on to names that are used twice.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut found = BTreeSet::new();
        written(&outline(&self.body, &mut 0), &mut found);
        elements(&self.body, &mut found);

        let mut taken = BTreeSet::new();
        let variables = distinct(&self.variables, &mut taken);
        // The parser reads a name that is written anywhere as a variable.
        let mut taken =
            found.iter().map(|variable| variables[variable.0 as usize].clone()).collect();
        let mut printer = Printer {
            out: f,
            symbols: distinct(&self.symbols, &mut taken),
            labels: distinct(&self.labels, &mut BTreeSet::new()),
            variables,
            depth: 0,
        };
        printer.block(&self.body)
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduction::Tree => "tree",
            Reduction::Ring => "ring",
            Reduction::Unordered => "unordered",
        })
    }
}

/// Collects the variables that maps write.
fn elements(block: &[Statement], into: &mut BTreeSet<Variable>) {
    for statement in block {
        match statement {
            Statement::If { then, otherwise, .. } => {
                elements(then, into);
                elements(otherwise, into);
            }
            Statement::For { body, .. } => elements(body, into),
            Statement::Map { element, body, .. } => {
                into.insert(*element);
                written(&outline(body, &mut 0), into);
                elements(body, into);
            }
            _ => {}
        }
    }
}

/// Makes names unique and different from those taken.
fn distinct(names: &[String], taken: &mut BTreeSet<String>) -> Vec<String> {
    let mut spelled = Vec::with_capacity(names.len());
    for name in names {
        let first = spell(name);
        let mut candidate = first.clone();
        let mut number = 2;
        while !taken.insert(candidate.clone()) {
            candidate = spell(&format!("{name}~{number}"));
            number += 1;
        }
        spelled.push(candidate);
    }
    spelled
}

/// Puts a name between backquotes if it requires them.
fn spell(name: &str) -> String {
    if word(name) == name && !name.is_empty() && !KEYWORDS.contains(&name) {
        name.to_owned()
    } else {
        let clean: String =
            name.chars().map(|c| if c == '`' || c.is_control() { '_' } else { c }).collect();
        format!("`{clean}`")
    }
}

struct Printer<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    variables: Vec<String>,
    symbols: Vec<String>,
    labels: Vec<String>,
    depth: usize,
}

impl Printer<'_, '_> {
    fn variable(&self, variable: Variable) -> &str {
        &self.variables[variable.0 as usize]
    }

    fn symbol(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol.0 as usize]
    }

    fn label(&self, label: Label) -> &str {
        &self.labels[label.0 as usize]
    }

    fn operand(&self, operand: Operand) -> &str {
        match operand {
            Operand::Variable(variable) => self.variable(variable),
            Operand::Constant(symbol) => self.symbol(symbol),
            Operand::Rank => "rank",
            Operand::Workers => "workers",
        }
    }

    fn listed(&self, operands: &[Operand], between: &str) -> String {
        let names: Vec<&str> = operands.iter().map(|o| self.operand(*o)).collect();
        names.join(between)
    }

    /// Returns ` e ..`.
    fn tail(&self, operands: &[Operand]) -> String {
        operands.iter().fold(String::new(), |tail, o| tail + " " + self.operand(*o))
    }

    fn line(&mut self, text: &str) -> fmt::Result {
        let indent = 4 * self.depth;
        writeln!(self.out, "{:indent$}{text}", "")
    }

    /// Prints a line that opens a block, and the block.
    fn braces(&mut self, opening: &str, body: &[Statement]) -> fmt::Result {
        self.line(opening)?;
        self.depth += 1;
        self.block(body)?;
        self.depth -= 1;
        Ok(())
    }

    fn block(&mut self, block: &[Statement]) -> fmt::Result {
        block.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Statement) -> fmt::Result {
        let line = match statement {
            Statement::Compute { target, function, operands, .. } => format!(
                "{} := {}({})",
                self.variable(*target),
                self.symbol(*function),
                self.listed(operands, ", ")
            ),
            Statement::Nondeterministic { target, function, operands, .. } => format!(
                "{} := nd {}({})",
                self.variable(*target),
                self.symbol(*function),
                self.listed(operands, ", ")
            ),
            Statement::Seed { generator, operands, .. } => {
                format!("{} := seed{}", self.variable(*generator), self.tail(operands))
            }
            Statement::Draw { target, generator, operands, .. } => format!(
                "{} := draw {}{}",
                self.variable(*target),
                self.variable(*generator),
                self.tail(operands)
            ),
            Statement::Fold { target, key, operands, .. } => format!(
                "{} := fold {}{}",
                self.variable(*target),
                self.operand(*key),
                self.tail(operands)
            ),
            Statement::Keyed { target, key, operands, .. } => {
                let mut all = vec![*key];
                all.extend_from_slice(operands);
                format!("{} := rnd({})", self.variable(*target), self.listed(&all, ", "))
            }
            Statement::Read { target, what, .. } => {
                format!("{} := env {}", self.variable(*target), self.symbol(*what))
            }
            Statement::Checkpoint { label, .. } => format!("ckpt {}", self.label(*label)),
            Statement::Output { operands, .. } => format!("out{}", self.tail(operands)),
            Statement::If { condition, operands, then, otherwise, .. } => {
                let opening =
                    format!("if {}({}) {{", self.symbol(*condition), self.listed(operands, ", "));
                self.braces(&opening, then)?;
                if !otherwise.is_empty() {
                    self.braces("} else {", otherwise)?;
                }
                "}".into()
            }
            Statement::For { counter, bound, body, .. } => {
                let opening =
                    format!("for {} < {} {{", self.variable(*counter), self.operand(*bound));
                self.braces(&opening, body)?;
                "}".into()
            }
            Statement::Map { target, element, bound, body, result, reduction, .. } => {
                let opening = format!(
                    "{} := map {} < {} {{",
                    self.variable(*target),
                    self.variable(*element),
                    self.operand(*bound)
                );
                self.braces(&opening, body)?;
                self.depth += 1;
                let result = self.operand(*result).to_owned();
                self.line(&result)?;
                self.depth -= 1;
                format!("}} reduce {reduction}")
            }
        };
        self.line(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn a_printed_program_parses_to_the_same_text() {
        let text = "\
g := seed 42
key := fold 7 rank
w := draw g shape
for epoch < epochs {
    lr := schedule(epoch, 3e-4, -1)
    loss := map j < workers {
        x := rnd(key, epoch, j)
        y := `model.fit[0]`(w, x)
        y
    } reduce tree
    now := env clock
    if better(loss) {
        best := nd copy(w)
    } else {
        `for` := skip()
    }
    ckpt L
}
out w `for`
";
        let program = parse(text).unwrap();
        assert_eq!(program.to_string(), text);
    }

    #[test]
    fn duplicate_names_get_a_suffix() {
        let mut program = parse("a := f(c)\nout a\n").unwrap();
        program.variables[0] = "c".into();
        program.symbols[0] = "g".into();
        program.symbols[1] = "c".into();
        assert_eq!(program.to_string(), "c := g(c~2)\nout c\n");
    }
}
