//! Parser of programs.
//!
//! Statements end with a line or a `;`; `#` starts a comment. A name that the program writes is a
//! variable, any other is a constant. Names with other characters than letters, digits, `_`, `.` and
//! `~` are between backquotes. The site of a statement is its line.

use std::collections::{BTreeSet, HashMap};

use super::token::{Token, What, tokens};
use crate::calculus::syntax::{
    Label, Operand, Program, Reduction, Site, Statement, Symbol, Variable,
};

/// Syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub(crate) struct ParseError {
    /// 1-based line.
    pub(super) line: u32,
    /// 1-based column, in characters.
    pub(super) column: u32,
    /// Expected token.
    pub(super) expected: &'static str,
    /// Token found.
    pub(super) found: String,
}

/// Parses a program.
pub(crate) fn parse(text: &str) -> Result<Program, ParseError> {
    let tokens = tokens(text)?;
    let written = written(&tokens);
    let mut parser = Parser {
        tokens,
        at: 0,
        written,
        program: Program::default(),
        variables: HashMap::new(),
        symbols: HashMap::new(),
        labels: HashMap::new(),
    };
    let (body, _) = parser.block(false)?;
    if parser.peek() != &What::End {
        return Err(parser.wrong("a statement"));
    }
    parser.program.body = body;
    Ok(parser.program)
}

/// Collects the names that the program writes.
fn written(tokens: &[Token]) -> BTreeSet<String> {
    let mut written = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let What::Name(name) = &token.what else {
            continue;
        };
        let before = at.checked_sub(1).map(|at| &tokens[at].what);
        let after = tokens.get(at + 1).map(|token| &token.what);
        if after == Some(&What::Sign(":="))
            || matches!(before, Some(What::Keyword("for" | "map" | "draw")))
        {
            written.insert(name.clone());
        }
    }
    written
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    written: BTreeSet<String>,
    program: Program,
    variables: HashMap<String, Variable>,
    symbols: HashMap<String, Symbol>,
    labels: HashMap<String, Label>,
}

impl Parser {
    fn peek(&self) -> &What {
        &self.tokens[self.at].what
    }

    fn wrong(&self, expected: &'static str) -> ParseError {
        let token = &self.tokens[self.at];
        ParseError {
            line: token.line,
            column: token.column,
            expected,
            found: match &token.what {
                What::Keyword(word) | What::Sign(word) => format!("`{word}`"),
                What::Name(name) => format!("`{name}`"),
                What::Stop => "the end of the statement".into(),
                What::End => "the end of the text".into(),
            },
        }
    }

    fn take(&mut self, what: &What) -> bool {
        let found = self.peek() == what;
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, what: What, expected: &'static str) -> Result<(), ParseError> {
        if self.take(&what) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn name(&mut self, expected: &'static str) -> Result<String, ParseError> {
        match self.peek() {
            What::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.wrong(expected)),
        }
    }

    fn variable(&mut self) -> Result<Variable, ParseError> {
        let name = self.name("a variable")?;
        Ok(self.variable_called(name))
    }

    fn variable_called(&mut self, name: String) -> Variable {
        let program = &mut self.program;
        *self.variables.entry(name).or_insert_with_key(|name| program.variable(name))
    }

    fn symbol(&mut self, expected: &'static str) -> Result<Symbol, ParseError> {
        let name = self.name(expected)?;
        Ok(self.symbol_called(name))
    }

    fn symbol_called(&mut self, name: String) -> Symbol {
        let program = &mut self.program;
        *self.symbols.entry(name).or_insert_with_key(|name| program.symbol(name))
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        if self.take(&What::Keyword("rank")) {
            return Ok(Operand::Rank);
        }
        if self.take(&What::Keyword("workers")) {
            return Ok(Operand::Workers);
        }
        let name = self.name("a variable or a constant")?;
        Ok(if self.written.contains(&name) {
            Operand::Variable(self.variable_called(name))
        } else {
            Operand::Constant(self.symbol_called(name))
        })
    }

    /// Parses operands up to the end of the statement.
    fn operands(&mut self) -> Result<Vec<Operand>, ParseError> {
        let mut operands = Vec::new();
        while !matches!(self.peek(), What::Stop | What::End | What::Sign("}")) {
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    /// Parses `(e, ..)`.
    fn arguments(&mut self) -> Result<Vec<Operand>, ParseError> {
        self.expect(What::Sign("("), "`(`")?;
        let mut operands = Vec::new();
        while !self.take(&What::Sign(")")) {
            if !operands.is_empty() {
                self.expect(What::Sign(","), "`,` or `)`")?;
            }
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    /// Parses `{ s .. }`, or `{ s ..; e }` for a map.
    fn braces(
        &mut self,
        with_result: bool,
    ) -> Result<(Vec<Statement>, Option<Operand>), ParseError> {
        self.expect(What::Sign("{"), "`{`")?;
        let block = self.block(with_result)?;
        self.expect(What::Sign("}"), "a statement or `}`")?;
        Ok(block)
    }

    fn block(
        &mut self,
        with_result: bool,
    ) -> Result<(Vec<Statement>, Option<Operand>), ParseError> {
        let mut statements = Vec::new();
        let mut result = None;
        loop {
            while self.take(&What::Stop) {}
            match self.peek() {
                What::End | What::Sign("}") if with_result && result.is_none() => {
                    return Err(self.wrong("the result of the map"));
                }
                What::End | What::Sign("}") => return Ok((statements, result)),
                _ if result.is_some() => return Err(self.wrong("`}` after the result")),
                _ if with_result && self.is_result() => result = Some(self.operand()?),
                _ => statements.push(self.statement()?),
            }
            if !matches!(self.peek(), What::Stop | What::End | What::Sign("}")) {
                return Err(self.wrong("the end of the statement"));
            }
        }
    }

    fn is_result(&self) -> bool {
        match self.peek() {
            What::Keyword("rank" | "workers") => true,
            What::Name(_) => self.tokens[self.at + 1].what != What::Sign(":="),
            _ => false,
        }
    }

    fn statement(&mut self) -> Result<Statement, ParseError> {
        let site = Site(self.tokens[self.at].line);
        let What::Keyword(keyword) = *self.peek() else {
            let target = self.variable()?;
            self.expect(What::Sign(":="), "`:=`")?;
            return self.assignment(target, site);
        };
        self.at += 1;
        Ok(match keyword {
            "if" => {
                let condition = self.symbol("a condition")?;
                let operands = self.arguments()?;
                let (then, _) = self.braces(false)?;
                let otherwise = if self.take(&What::Keyword("else")) {
                    self.braces(false)?.0
                } else {
                    Vec::new()
                };
                Statement::If { condition, operands, then, otherwise, site }
            }
            "for" => {
                let counter = self.variable()?;
                self.expect(What::Sign("<"), "`<`")?;
                let bound = self.operand()?;
                let (body, _) = self.braces(false)?;
                Statement::For { counter, bound, body, site }
            }
            "ckpt" => {
                let name = self.name("the name of the checkpoint")?;
                let program = &mut self.program;
                let label = *self.labels.entry(name).or_insert_with_key(|name| program.label(name));
                Statement::Checkpoint { label, site }
            }
            "out" => Statement::Output { operands: self.operands()?, site },
            _ => {
                self.at -= 1;
                return Err(self.wrong("a statement"));
            }
        })
    }

    fn assignment(&mut self, target: Variable, site: Site) -> Result<Statement, ParseError> {
        let What::Keyword(keyword) = *self.peek() else {
            return Ok(Statement::Compute {
                target,
                function: self.symbol("a function or an operation")?,
                operands: self.arguments()?,
                site,
            });
        };
        self.at += 1;
        Ok(match keyword {
            "nd" => Statement::Nondeterministic {
                target,
                function: self.symbol("a function")?,
                operands: self.arguments()?,
                site,
            },
            "seed" => Statement::Seed { generator: target, operands: self.operands()?, site },
            "draw" => Statement::Draw {
                target,
                generator: self.variable()?,
                operands: self.operands()?,
                site,
            },
            "fold" => {
                Statement::Fold { target, key: self.operand()?, operands: self.operands()?, site }
            }
            "rnd" => {
                let opened = self.at;
                let mut operands = self.arguments()?;
                if operands.is_empty() {
                    self.at = opened;
                    return Err(self.wrong("`(` and a key"));
                }
                let key = operands.remove(0);
                Statement::Keyed { target, key, operands, site }
            }
            "env" => Statement::Read { target, what: self.symbol("what is read")?, site },
            "map" => {
                let element = self.variable()?;
                self.expect(What::Sign("<"), "`<`")?;
                let bound = self.operand()?;
                let opened = self.at;
                let (body, Some(result)) = self.braces(true)? else {
                    self.at = opened;
                    return Err(self.wrong("a body with a result"));
                };
                self.expect(What::Keyword("reduce"), "`reduce`")?;
                Statement::Map {
                    target,
                    element,
                    bound,
                    body,
                    result,
                    reduction: self.reduction()?,
                    site,
                }
            }
            _ => {
                self.at -= 1;
                return Err(self.wrong("a function or an operation"));
            }
        })
    }

    fn reduction(&mut self) -> Result<Reduction, ParseError> {
        let reductions = [Reduction::Tree, Reduction::Ring, Reduction::Unordered];
        let What::Keyword(word) = *self.peek() else {
            return Err(self.wrong("`tree`, `ring` or `unordered`"));
        };
        let found = reductions.into_iter().find(|known| known.to_string() == word);
        let found = found.ok_or_else(|| self.wrong("`tree`, `ring` or `unordered`"))?;
        self.at += 1;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn written_names_are_variables_and_others_constants() {
        let program = parse("out y x 1\nx := f(y)").unwrap();
        assert_eq!(program.variables, ["x"]);
        assert_eq!(program.symbols, ["y", "1", "f"]);
        let Statement::Output { operands, .. } = &program.body[0] else { panic!("{program}") };
        let x = Operand::Variable(Variable(0));
        let constants = [0, 1].map(|at| Operand::Constant(Symbol(at)));
        assert_eq!(*operands, [constants[0], x, constants[1]]);
    }

    #[test]
    fn lines_and_semicolons_end_statements() {
        let program = parse("# nothing\n\nx := f(); y := g() # more\nout x").unwrap();
        let sites = program.body.iter().map(|statement| match statement {
            Statement::Compute { site, .. } | Statement::Output { site, .. } => site.0,
            other => panic!("{other:?}"),
        });
        assert_eq!(sites.collect::<Vec<_>>(), [3, 3, 4]);
    }

    #[test]
    fn errors_name_the_position_and_the_expected_token() {
        let cases = [
            ("x := f(a", "line 1, column 9: expected `,` or `)`, found the end of the statement"),
            ("x := f", "line 1, column 7: expected `(`, found the end of the statement"),
            ("out a\n x f()", "line 2, column 4: expected `:=`, found `f`"),
            (
                "for i < n {\nout i",
                "line 2, column 6: expected a statement or `}`, found the end of the text",
            ),
            (
                "é := map j < n {\n} reduce tree",
                "line 2, column 1: expected the result of the map, found `}`",
            ),
            (
                "x := map j < n { j } reduce any",
                "line 1, column 29: expected `tree`, `ring` or `unordered`, found `any`",
            ),
            (
                "x := map j < n { j; k } reduce tree",
                "line 1, column 21: expected `}` after the result, found `k`",
            ),
            ("x := rnd()", "line 1, column 9: expected `(` and a key, found `(`"),
            ("out x }", "line 1, column 7: expected a statement, found `}`"),
            (
                "x := `f()",
                "line 1, column 6: expected a backquote that closes the name, found the end of the line",
            ),
            ("x := f(é) ?", "line 1, column 11: expected a name, a number or a sign, found `?`"),
            ("tree := f()", "line 1, column 1: expected a statement, found `tree`"),
            ("x := ckpt L", "line 1, column 6: expected a function or an operation, found `ckpt`"),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected, "{text}");
        }
    }
}
