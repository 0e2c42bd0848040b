//! State that a save holds through copies.
//!
//! `{"w": np.asarray(params)}` holds `params`, and so does a list of its elements. A variable that is a
//! copy of one other variable holds it; one that is computed from several holds none of them.

use std::collections::{BTreeMap, BTreeSet};

use super::writes::loop_body;
use crate::calculus::{Program, Statement, Variable};

/// Maximum length of a chain of copies.
const MAX_CHAIN: usize = 8;

/// Returns the given variables and those they are copies of, in the loop with this counter.
pub(super) fn through_copies(
    program: &Program,
    counter: Variable,
    held: &[Variable],
) -> BTreeSet<Variable> {
    let mut copies = Copies { program, sources: BTreeMap::new(), counters: BTreeSet::new() };
    copies.gather(loop_body(&program.body, counter).unwrap_or_default());
    let mut all: BTreeSet<Variable> = held.iter().copied().collect();
    for variable in held {
        let mut open = vec![(*variable, 0)];
        while let Some((variable, depth)) = open.pop() {
            if depth < MAX_CHAIN
                && let Some(source) = copies.origin(variable, MAX_CHAIN)
                && all.insert(source)
            {
                open.push((source, depth + 1));
            }
        }
    }
    all
}

struct Copies<'p> {
    program: &'p Program,
    /// For each variable the operands of each statement that copies into it.
    sources: BTreeMap<Variable, Vec<Vec<Variable>>>,
    counters: BTreeSet<Variable>,
}

impl Copies<'_> {
    fn gather(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Compute { target, function, operands, .. }
                    if is_copy(self.program.symbol_name(*function)) =>
                {
                    let variables = operands.iter().filter_map(|it| it.variable());
                    let variables = variables.filter(|it| it != target).collect();
                    self.sources.entry(*target).or_default().push(variables);
                }
                Statement::If { then, otherwise, .. } => {
                    self.gather(then);
                    self.gather(otherwise);
                }
                Statement::For { body, counter, .. } => {
                    self.counters.insert(*counter);
                    self.gather(body);
                }
                _ => {}
            }
        }
    }

    /// Returns the one variable that another is a copy of.
    fn origin(&self, variable: Variable, depth: usize) -> Option<Variable> {
        let mut found = None;
        for source in self.sources.get(&variable)?.iter().flatten() {
            if self.counters.contains(source) {
                continue;
            }
            // Names and values of a dictionary are copies of the dictionary.
            let origin = match depth {
                0 => *source,
                _ => self.origin_of_element(*source, depth - 1),
            };
            if found.is_some_and(|known| known != origin) {
                return None;
            }
            found = Some(origin);
        }
        found.filter(|origin| *origin != variable)
    }

    /// Returns the container of an element; the variable itself if it is not an element.
    fn origin_of_element(&self, variable: Variable, depth: usize) -> Variable {
        let is_element = self
            .sources
            .get(&variable)
            .is_some_and(|all| all.iter().flatten().any(|source| self.counters.contains(source)));
        if !is_element {
            return variable;
        }
        self.origin(variable, depth).unwrap_or(variable)
    }
}

/// True if a function of the lifted program returns its operand.
fn is_copy(function: &str) -> bool {
    matches!(function, "copy" | "gather" | "list" | "element")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::tests::parse;

    fn named(program: &Program, name: &str) -> Variable {
        let at = program.variables.iter().position(|it| it == name);
        Variable(u32::try_from(at.unwrap()).unwrap())
    }

    #[test]
    fn copies_hold_their_source_and_computed_values_do_not() {
        let text =
            "for i < n {\n w := step(w)\n c := copy(w)\n l := loss(w)\n d := copy(l)\n}\nout w";
        let program = parse(text).unwrap();
        let held = |name: &str| {
            let held = [named(&program, name)];
            through_copies(&program, named(&program, "i"), &held)
        };
        assert!(held("c").contains(&named(&program, "w")));
        assert!(!held("d").contains(&named(&program, "w")));
    }

    #[test]
    fn a_list_of_converted_elements_holds_their_container() {
        let text = "for i < n {\n w := step(w)\n for j < m {\n k := copy(w, j)\n v := copy(w, j)\n g := gather(k, v, g)\n }\n}\nout w";
        let program = parse(text).unwrap();
        let all = through_copies(&program, named(&program, "i"), &[named(&program, "g")]);
        assert!(all.contains(&named(&program, "w")));
    }
}
