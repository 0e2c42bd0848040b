//! Decoding of source files.

use crate::unreadable::Reason;

/// Names of Latin-1.
const LATIN: [&str; 6] = ["latin-1", "latin1", "iso-8859-1", "iso8859-1", "iso-latin-1", "l1"];

/// Decodes a file with the encoding declared in its first two lines, UTF-8 by default. Line ends are
/// normalized as Python does.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, Reason> {
    let named = cookie(&bytes);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => match named {
            Some(name) if LATIN.contains(&name.as_str()) => {
                error.as_bytes().iter().map(|byte| char::from(*byte)).collect()
            }
            Some(name) if !name.starts_with("utf") => return Err(Reason::Encoding(name)),
            _ => return Err(Reason::NotText),
        },
    };
    if text.contains('\0') {
        return Err(Reason::NulBytes);
    }
    Ok(with_newlines(text))
}

/// Encoding declared by a comment in the first two lines: `# -*- coding: latin-1 -*-`.
fn cookie(bytes: &[u8]) -> Option<String> {
    let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).take(2);
    lines.find_map(|line| {
        let line = String::from_utf8_lossy(line);
        let comment = line.trim_start().strip_prefix('#')?;
        let (_, after) = comment.split_once("coding")?;
        let name = after.strip_prefix([':', '='])?.trim_start();
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().take_while(is_part).collect();
        Some(name.to_lowercase().replace('_', "-")).filter(|name| !name.is_empty())
    })
}

/// Replaces lone carriage returns, which end a line too. Byte offsets do not change.
fn with_newlines(text: String) -> String {
    let is_alone = |at: usize| text.as_bytes().get(at + 1) != Some(&b'\n');
    if !text.match_indices('\r').any(|(at, _)| is_alone(at)) {
        return text;
    }
    let letters = text.char_indices().map(|(at, letter)| match letter {
        '\r' if is_alone(at) => '\n',
        letter => letter,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_1_is_read_where_it_is_named() {
        let named = b"# -*- coding: Latin-1 -*-\nx = '\xe9'\n".to_vec();
        assert_eq!(decode(named).unwrap(), "# -*- coding: Latin-1 -*-\nx = 'é'\n");
        let unnamed = b"x = '\xe9'\n".to_vec();
        assert_eq!(decode(unnamed), Err(Reason::NotText));
        let other = b"#!/bin/python\n# coding=gbk\nx = '\xc4\xe3'\n".to_vec();
        assert_eq!(decode(other), Err(Reason::Encoding("gbk".to_owned())));
    }

    #[test]
    fn nul_bytes_are_reported() {
        assert_eq!(decode(b"x = 1\n\0".to_vec()), Err(Reason::NulBytes));
    }

    #[test]
    fn carriage_returns_end_lines() {
        assert_eq!(decode(b"a\rb\r\nc\r".to_vec()).unwrap(), "a\nb\r\nc\n");
    }
}
