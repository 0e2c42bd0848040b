//! Errors in a plan, with their line.

use crate::tree::Node;
use std::fmt;
use std::ops::Range;

/// An error in a plan.
///
/// [`Display`](fmt::Display) prints it over several lines with the offending line of the file:
///
/// ```text
/// error: unknown key `unit`
///   --> examples/circles.toml:14:1
///    |
/// 14 | unit = 8
///    | ^^^^ expected one of: name, units, activation
///    = help: did you mean `units`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The error in one line.
    pub message: String,
    /// The file, or the setting (`--set KEY=VALUE`) that caused the error.
    pub origin: String,
    /// The offending line, if there is one.
    pub snippet: Option<Box<Snippet>>,
    /// Expected or found value.
    pub label: Option<String>,
    /// Suggested fix.
    pub help: Option<String>,
}

/// A line of a file and the part of it to underline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// 1-based line number.
    pub line: usize,
    /// 1-based column of the first underlined character.
    pub column: usize,
    /// Number of underlined characters, at least 1.
    pub width: usize,
    /// Text of the line.
    pub text: String,
}

impl std::error::Error for PlanError {}

/// Labels longer than this are printed below the line.
const LABEL: usize = 72;

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        let margin = match &self.snippet {
            None => {
                write!(f, "\n  --> {}", self.origin)?;
                2
            }
            Some(snippet) => {
                let margin = snippet.line.to_string().len();
                let Snippet { line, column, text, .. } = &**snippet;
                write!(
                    f,
                    "\n{:margin$}--> {}:{line}:{column}\n{:margin$} |\n{line} | {}\n{:margin$} | ",
                    "", self.origin, "", text, ""
                )?;
                // Tabs stay tabs to align the caret.
                for c in text.chars().take(column - 1) {
                    write!(f, "{}", if c == '\t' { '\t' } else { ' ' })?;
                }
                write!(f, "{}", "^".repeat(snippet.width))?;
                margin
            }
        };
        if let Some(label) = &self.label {
            if self.snippet.is_some() && label.len() <= LABEL {
                write!(f, " {label}")?;
            } else {
                note(f, margin, "note", label)?;
            }
        }
        if let Some(help) = &self.help {
            note(f, margin, "help", help)?;
        }
        Ok(())
    }
}

/// Prints a line below the snippet, wrapped at spaces.
fn note(f: &mut fmt::Formatter<'_>, margin: usize, kind: &str, text: &str) -> fmt::Result {
    let indent = margin + kind.len() + 4;
    write!(f, "\n{:margin$} = {kind}:", "")?;
    let mut column = indent;
    for word in text.split(' ') {
        if column + word.len() > 98 && column > indent {
            write!(f, "\n{:indent$}", "")?;
            column = indent;
        }
        write!(f, " {word}")?;
        column += word.len() + 1;
    }
    Ok(())
}

/// An error with its position in the text, but without the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) label: Option<String>,
    pub(crate) help: Option<String>,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: String) -> Self {
        Self { span, message, label: None, help: None }
    }

    /// The error for a value of the wrong type.
    pub(crate) fn kind(node: &Node, key: &str, expected: &str) -> Self {
        Self::new(node.span.clone(), format!("`{key}` must be {expected}"))
            .label(format!("this is {}", node.noun()))
    }

    pub(crate) fn label(self, label: String) -> Self {
        Self { label: Some(label), ..self }
    }

    pub(crate) fn help(self, help: String) -> Self {
        Self { help: Some(help), ..self }
    }

    /// Adds the line of `text`, which was read from `origin`.
    pub(crate) fn within(self, text: &str, origin: &str) -> PlanError {
        PlanError {
            message: self.message,
            origin: origin.to_owned(),
            snippet: Some(Box::new(Snippet::of(text, self.span))),
            label: self.label,
            help: self.help,
        }
    }

    /// Adds the origin, without a line.
    pub(crate) fn blamed(self, origin: String) -> PlanError {
        PlanError {
            message: self.message,
            origin,
            snippet: None,
            label: self.label,
            help: self.help,
        }
    }
}

impl Snippet {
    /// The first line of a span.
    pub(crate) fn of(text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start);
        let head = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let tail = text[head..].find('\n').map_or(text.len(), |newline| head + newline);
        let line = text[head..tail].trim_end_matches('\r');
        let end = floor(text, span.end).clamp(start, head + line.len().max(start - head));
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[head..start].chars().count() + 1,
            width: text[start..end].chars().count().max(1),
            text: line.to_owned(),
        }
    }
}

/// The last character boundary not after `index`.
fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_positions_are_one_based() {
        let text = "a = 1\nname = \"ä\"\nb = 2\n";
        let at = text.find("b = 2").unwrap();
        let snippet = Snippet::of(text, at..at + 1);
        assert_eq!((snippet.line, snippet.column, snippet.width), (3, 1, 1));
        let at = text.find('"').unwrap();
        let snippet = Snippet::of(text, at..at + 4);
        assert_eq!((snippet.line, snippet.column, snippet.width), (2, 8, 3));
        assert_eq!(snippet.text, "name = \"ä\"");
    }

    #[test]
    fn a_snippet_is_one_line() {
        let text = "a = [\r\n1,\r\n]\r\n";
        let snippet = Snippet::of(text, 4..12);
        assert_eq!(snippet.text, "a = [");
        assert_eq!(snippet.width, 1);
    }

    #[test]
    fn a_snippet_of_an_empty_text_is_empty() {
        let snippet = Snippet::of("", 0..0);
        assert_eq!((snippet.line, snippet.column, snippet.width), (1, 1, 1));
        let past = Snippet::of("x", 5..9);
        assert_eq!((past.line, past.column), (1, 2));
    }
}
