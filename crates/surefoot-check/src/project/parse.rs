//! Reading and parsing of files, several at a time.

use std::fs;
use std::path::{Path, PathBuf};

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, Stmt};
use ruff_python_parser::{Parsed, parse_module};
use ruff_text_size::Ranged;

use super::encoding::decoded;
use super::files::{because, of_system};
use crate::parallel;
use crate::unreadable::Reason;
use crate::{Source, Unreadable};

/// Files above this size are data in the clothes of Python.
const LARGEST: u64 = 16 << 20;

/// A file that is Python.
pub(crate) struct Script {
    /// Its path and text.
    pub source: Source,
    /// Its statements.
    pub module: ModModule,
    /// Whether it seeds generators when it is imported.
    pub seeds_when_imported: bool,
    /// Where its comments are, in bytes.
    pub comments: Vec<std::ops::Range<usize>>,
}

/// Reads and parses files; the outcomes are in their order.
pub(crate) fn read(paths: &[PathBuf]) -> Vec<Result<Script, Unreadable>> {
    parallel::map(paths, |path| read_one(path))
}

fn read_one(path: &Path) -> Result<Script, Unreadable> {
    let fail = |reason| because(path.to_owned(), reason);
    if path.extension().is_some_and(|it| it == "ipynb") {
        return Err(fail(Reason::Notebook));
    }
    let bytes = fs::metadata(path).map_err(|error| fail(of_system(&error)))?.len();
    if bytes > LARGEST {
        return Err(fail(Reason::TooLarge { bytes, limit: LARGEST }));
    }
    let bytes = fs::read(path).map_err(|error| fail(of_system(&error)))?;
    let text = decoded(bytes).map_err(fail)?;
    parse(Source { path: path.to_owned(), text })
}

/// Parses a text.
pub(crate) fn parse(source: Source) -> Result<Script, Unreadable> {
    match parse_module(&source.text) {
        Ok(parsed) => {
            let comments = comments(&parsed);
            let module = parsed.into_syntax();
            Ok(Script {
                seeds_when_imported: seeds_when_imported(&module, &source.text),
                comments,
                module,
                source,
            })
        }
        Err(error) => {
            let at = usize::from(error.location.start());
            let (line, column) = source.line_and_column(at);
            let said = error.error.to_string();
            let text = source.text.lines().nth(line - 1).unwrap_or_default();
            let reason = match python_2(text) {
                Some(what) => Reason::Python2(what.to_owned()),
                None => Reason::Syntax(said),
            };
            Err(Unreadable { path: source.path, reason, at: Some((line, column)) })
        }
    }
}

/// Whether a statement outside of functions and classes seeds something.
fn seeds_when_imported(module: &ModModule, text: &str) -> bool {
    let calls =
        module.body.iter().filter_map(Stmt::as_expr_stmt).filter(|it| it.value.is_call_expr());
    calls.map(|it| &text[it.range().to_std_range()]).any(|call| call.contains("seed"))
}

fn comments(parsed: &Parsed<ModModule>) -> Vec<std::ops::Range<usize>> {
    let tokens = parsed.tokens().iter();
    let comments = tokens.filter(|token| token.kind() == TokenKind::Comment);
    comments.map(|token| token.range().to_std_range()).collect()
}

/// What in a line that does not parse is the syntax of Python 2.
fn python_2(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let word = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let rest = line[word.len()..].trim_start();
    let is_operand = rest.starts_with(|c: char| c.is_alphanumeric() || "\"'_>".contains(c));
    match word {
        "print" if is_operand => Some("`print` is a statement"),
        "exec" if is_operand => Some("`exec` is a statement"),
        "raise" if rest.contains(',') && !rest.contains('(') => Some("`raise` with a comma"),
        _ if line.contains("<>") => Some("the operator `<>`"),
        _ if line.contains('`') => Some("backquotes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Script, Unreadable> {
        parse(Source { path: "a.py".into(), text: text.into() })
    }

    #[test]
    fn comments_are_found_but_not_in_strings() {
        let script = parsed("x = '# no'  # yes\n").unwrap();
        let texts: Vec<_> =
            script.comments.iter().map(|it| &script.source.text[it.clone()]).collect();
        assert_eq!(texts, ["# yes"]);
    }

    #[test]
    fn python_2_is_told_from_a_syntax_error() {
        let old = parsed("x = 1\nprint \"loss\", x\n").err().unwrap();
        assert!(matches!(old.reason, Reason::Python2(_)), "{:?}", old.reason);
        assert_eq!(old.at.unwrap().0, 2);
        let old = parsed("raise ValueError, \"no\"\n").err().unwrap();
        assert!(matches!(old.reason, Reason::Python2(_)), "{:?}", old.reason);
        let wrong = parsed("x = (1\n").err().unwrap();
        assert!(matches!(wrong.reason, Reason::Syntax(_)), "{:?}", wrong.reason);
    }

    #[test]
    fn bytes_that_are_no_text_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(read_one(&path).err().unwrap().reason, Reason::NotText);
    }

    #[test]
    fn deep_nesting_is_read() {
        let text = format!("x = {}1{}\n", "(".repeat(2000), ")".repeat(2000));
        parallel::with_deep_stack(|| assert!(parsed(&text).is_ok()));
    }
}
