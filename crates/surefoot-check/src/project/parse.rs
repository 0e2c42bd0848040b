//! Reading and parsing of files, several at a time.

use std::fs;
use std::path::{Path, PathBuf};

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Expr, ModModule, Stmt};
use ruff_python_parser::{Parsed, parse_module};
use ruff_text_size::Ranged;

use super::encoding::decode;
use super::files::{because, of_system};
use crate::parallel;
use crate::unreadable::Reason;
use crate::{SourceFile, Unreadable};

/// Size limit in bytes; larger files are generated data.
const MAX_BYTES: u64 = 16 << 20;

/// A parsed Python file.
pub(crate) struct Script {
    /// Path and text.
    pub source: SourceFile,
    /// Syntax tree.
    pub module: ModModule,
    /// True if it seeds generators when it is imported.
    pub seeds_when_imported: bool,
    /// Byte ranges of its comments.
    pub comments: Vec<std::ops::Range<usize>>,
}

/// Reads and parses files; results are in the order of `paths`.
pub(crate) fn read(paths: &[PathBuf]) -> Vec<Result<Script, Unreadable>> {
    parallel::map(paths, |path| read_one(path))
}

fn read_one(path: &Path) -> Result<Script, Unreadable> {
    let fail = |reason| because(path.to_owned(), reason);
    if path.extension().is_some_and(|it| it == "ipynb") {
        return Err(fail(Reason::Notebook));
    }
    let bytes = fs::metadata(path).map_err(|error| fail(of_system(&error)))?.len();
    if bytes > MAX_BYTES {
        return Err(fail(Reason::TooLarge { bytes, limit: MAX_BYTES }));
    }
    let bytes = fs::read(path).map_err(|error| fail(of_system(&error)))?;
    let text = decode(bytes).map_err(fail)?;
    parse(SourceFile { path: path.to_owned(), text })
}

/// Parses a text.
pub(crate) fn parse(source: SourceFile) -> Result<Script, Unreadable> {
    match parse_module(&source.text) {
        Ok(parsed) => {
            let comments = comments(&parsed);
            let module = parsed.into_syntax();
            Ok(Script {
                seeds_when_imported: seeds_when_imported(&module),
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

/// Returns true if a statement outside of functions and classes calls a function that seeds a generator,
/// such as `torch.manual_seed` or `seed_everything`.
fn seeds_when_imported(module: &ModModule) -> bool {
    let calls =
        module.body.iter().filter_map(Stmt::as_expr_stmt).filter_map(|it| it.value.as_call_expr());
    let mut callees = calls.filter_map(|call| match &*call.func {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(it) => Some(it.attr.as_str()),
        _ => None,
    });
    callees.any(|name| name.split('_').any(|word| word == "seed" || word == "seeds"))
}

fn comments(parsed: &Parsed<ModModule>) -> Vec<std::ops::Range<usize>> {
    let tokens = parsed.tokens().iter();
    let comments = tokens.filter(|token| token.kind() == TokenKind::Comment);
    comments.map(|token| token.range().to_std_range()).collect()
}

/// Detects Python 2 syntax in a line that does not parse.
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
        parse(SourceFile { path: "a.py".into(), text: text.into() })
    }

    #[test]
    fn comments_are_found_but_not_in_strings() {
        let script = parsed("x = '# no'  # yes\n").unwrap();
        let texts: Vec<_> =
            script.comments.iter().map(|it| &script.source.text[it.clone()]).collect();
        assert_eq!(texts, ["# yes"]);
    }

    #[test]
    fn python_2_is_distinguished_from_a_syntax_error() {
        let old = parsed("x = 1\nprint \"loss\", x\n").err().unwrap();
        assert!(matches!(old.reason, Reason::Python2(_)), "{:?}", old.reason);
        assert_eq!(old.at.unwrap().0, 2);
        let old = parsed("raise ValueError, \"no\"\n").err().unwrap();
        assert!(matches!(old.reason, Reason::Python2(_)), "{:?}", old.reason);
        let wrong = parsed("x = (1\n").err().unwrap();
        assert!(matches!(wrong.reason, Reason::Syntax(_)), "{:?}", wrong.reason);
    }

    #[test]
    fn binary_files_are_reported() {
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
