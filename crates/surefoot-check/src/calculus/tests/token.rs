//! Tokens of programs.

use super::parse::ParseError;

/// Reserved words.
pub(super) const KEYWORDS: [&str; 18] = [
    "ckpt",
    "draw",
    "else",
    "env",
    "fold",
    "for",
    "if",
    "map",
    "nd",
    "out",
    "rank",
    "reduce",
    "ring",
    "rnd",
    "seed",
    "tree",
    "unordered",
    "workers",
];

/// Kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Keyword(&'static str),
    Name(String),
    Sign(&'static str),
    /// End of a statement.
    Stop,
    End,
}

/// Token with its position.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) what: What,
    pub(super) line: u32,
    pub(super) column: u32,
}

const SIGNS: [&str; 7] = [":=", "(", ")", ",", "{", "}", "<"];

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    let mut last = (1, 1);
    for (line, content) in (1..).zip(text.lines()) {
        let mut rest = content;
        let column = |rest: &str| {
            let done = &content[..content.len() - rest.len()];
            u32::try_from(done.chars().count()).unwrap_or(u32::MAX).saturating_add(1)
        };
        loop {
            rest = rest.trim_start();
            let here = column(rest);
            last = (line, here);
            let Some(first) = rest.chars().next().filter(|c| *c != '#') else {
                break;
            };
            let mut push = |what| {
                tokens.push(Token { what, line, column: here });
            };
            let length = if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                push(What::Sign(sign));
                sign.len()
            } else if first == ';' {
                push(What::Stop);
                1
            } else if first == '`' {
                let Some(length) = rest[1..].find('`') else {
                    return Err(ParseError {
                        line,
                        column: here,
                        expected: "a backquote that closes the name",
                        found: "the end of the line".into(),
                    });
                };
                push(What::Name(rest[1..=length].to_owned()));
                length + 2
            } else {
                let word = word(rest);
                match KEYWORDS.iter().find(|keyword| **keyword == word) {
                    Some(keyword) => push(What::Keyword(keyword)),
                    None if !word.is_empty() => push(What::Name(word.to_owned())),
                    None => {
                        return Err(ParseError {
                            line,
                            column: here,
                            expected: "a name, a number or a sign",
                            found: format!("`{first}`"),
                        });
                    }
                }
                word.len()
            };
            rest = &rest[length..];
        }
        tokens.push(Token { what: What::Stop, line, column: last.1 });
    }
    tokens.push(Token { what: What::End, line: last.0, column: last.1 });
    Ok(tokens)
}

/// Returns the name or number at the start of the text.
pub(super) fn word(text: &str) -> &str {
    let signed = text.starts_with('-');
    let number = text[usize::from(signed)..].starts_with(|c: char| c.is_ascii_digit());
    if signed && !number {
        return "";
    }
    let mut before = '-';
    let length = text
        .find(|c: char| {
            let exponent = number && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
            let sign = before == '-' && c == '-' && signed;
            before = c;
            !(c.is_alphanumeric() || matches!(c, '_' | '.' | '~') || exponent || sign)
        })
        .unwrap_or(text.len());
    &text[..length]
}
