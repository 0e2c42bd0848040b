//! Comments that silence findings.
//!
//! `# surefoot: ignore` silences all rules on its line, `# surefoot: ignore[clock, file_order]` only
//! these. A comment alone on its line applies to the next line of code, `# surefoot: ignore-file`, with
//! or without rules, to the whole file.

use std::ops::Range;

use crate::project::Script;
use crate::rules::unknown_suppression;
use crate::{FileId, Finding, Place, Rule};

/// Suppressions of one file.
#[derive(Default)]
pub(crate) struct Suppressions {
    lines: Vec<(usize, Rules)>,
    file: Vec<Rules>,
    /// Findings for unknown rule names in suppressions.
    pub unknown: Vec<Finding>,
}

enum Rules {
    All,
    These(Vec<Rule>),
}

impl Rules {
    fn cover(&self, rule: Rule) -> bool {
        match self {
            Rules::All => true,
            Rules::These(rules) => rules.contains(&rule),
        }
    }
}

impl Suppressions {
    /// Reads the comments of a file.
    pub(crate) fn of(script: &Script, file: FileId) -> Suppressions {
        let mut found = Suppressions::default();
        for comment in &script.comments {
            let text = &script.source.text[comment.clone()];
            let Some(at) = text.find("surefoot:") else {
                continue;
            };
            let directive = text[at + "surefoot:".len()..].trim_start();
            let Some(rest) = directive.strip_prefix("ignore") else {
                continue;
            };
            let (for_file, rest) = match rest.strip_prefix("-file") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let Some(rules) = found.rules(rest.trim(), file, comment) else {
                continue;
            };
            if for_file {
                found.file.push(rules);
            } else {
                let line = target_line(&script.source.text, comment.start);
                found.lines.push((line, rules));
            }
        }
        found
    }

    /// Parses the rules after `ignore`; none stands for all.
    fn rules(&mut self, text: &str, file: FileId, comment: &Range<usize>) -> Option<Rules> {
        if text.is_empty() || text.starts_with('#') {
            return Some(Rules::All);
        }
        let place = Place { file, range: comment.clone() };
        let list = text.strip_prefix('[').and_then(|it| it.split_once(']'));
        let Some((list, _)) = list else {
            self.unknown.push(unknown_suppression::malformed(place));
            return None;
        };
        let mut rules = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name.parse() {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    self.unknown.push(unknown_suppression::unknown_rule(place.clone(), &error));
                }
            }
        }
        Some(Rules::These(rules))
    }

    /// Returns true if a finding of `rule` on `lines`, counted from one, is silenced.
    pub(crate) fn silence(&self, rule: Rule, lines: Range<usize>) -> bool {
        self.file.iter().any(|rules| rules.cover(rule))
            || self.lines.iter().any(|(line, rules)| lines.contains(line) && rules.cover(rule))
    }
}

/// Line that a comment applies to: its own, or the next line of code if it stands alone.
fn target_line(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
    if !text[start..at].trim().is_empty() {
        return line;
    }
    let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    line + text[start..].lines().take_while(blank).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;
    use crate::project::parse;

    fn suppressions(text: &str) -> Suppressions {
        let script = parse(SourceFile { path: "a.py".into(), text: text.into() }).unwrap();
        Suppressions::of(&script, FileId(0))
    }

    #[test]
    fn a_comment_silences_its_line() {
        let found = suppressions("a = 1  # surefoot: ignore\nb = 2\n");
        assert!(found.silence(Rule::Clock, 1..2));
        assert!(!found.silence(Rule::Clock, 2..3));
    }

    #[test]
    fn a_comment_alone_silences_the_next_line_of_code() {
        let found = suppressions("# surefoot: ignore[clock]\n\n# and why\na = 1\nb = 2\n");
        assert!(found.silence(Rule::Clock, 4..5));
        assert!(!found.silence(Rule::FileOrder, 4..5));
        assert!(!found.silence(Rule::Clock, 5..6));
    }

    #[test]
    fn a_comment_can_apply_to_the_file() {
        let found = suppressions("# surefoot: ignore-file[clock]\na = 1\n");
        assert!(found.silence(Rule::Clock, 2..3));
        assert!(!found.silence(Rule::Precision, 2..3));
    }

    #[test]
    fn a_malformed_suppression_is_reported() {
        for order in ["ignored in review", "ignore-files[clock]", "ignore[clock"] {
            let found = suppressions(&format!("a = 1  # surefoot: {order}\n"));
            assert!(!found.silence(Rule::Clock, 1..2), "{order}");
            assert_eq!(found.unknown.len(), 1, "{order}");
        }
        let found = suppressions("a = 1  # surefoot: ignore [clock]\n");
        assert!(found.silence(Rule::Clock, 1..2));
        assert!(!found.silence(Rule::Precision, 1..2));
    }

    #[test]
    fn an_unknown_rule_is_reported() {
        let found = suppressions("a = 1  # surefoot: ignore[clocks, precision]\n");
        assert_eq!(found.unknown.len(), 1);
        assert!(found.unknown[0].message.contains("`clocks`"));
        assert!(found.silence(Rule::Precision, 1..2));
    }
}
