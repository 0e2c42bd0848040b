//! Names and documentation of rules.

use std::fmt;
use std::str::FromStr;

use crate::Rule;

/// Documentation of a rule. Texts are Markdown with paragraphs and `code` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// One-line summary.
    pub title: String,
    /// Description of what the rule finds.
    pub what: String,
    /// Consequences for a training run.
    pub why: String,
    /// Advice.
    pub fix: String,
    /// Script with a finding.
    pub example: String,
    /// The same script without it.
    pub fixed: String,
    /// The whole page.
    pub markdown: String,
}

impl Rule {
    /// True if the rule is reported as a warning, which does not count as a finding.
    pub fn is_warning(self) -> bool {
        self.definition().is_warning
    }

    /// Returns the documentation of the rule.
    pub fn explanation(self) -> Explanation {
        let lines = self.definition().documentation.lines();
        let lines: Vec<&str> = lines.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect();
        let page = lines.join("\n");
        let between = |start: &str, end: &str| {
            let after = page.split_once(start).map(|(_, after)| after);
            let found = after.and_then(|after| after.split_once(end));
            found.map_or_else(String::new, |(found, _)| found.to_owned())
        };
        Explanation {
            title: between("# ", "\n"),
            what: between("## What it does\n", "\n\n## "),
            why: between("## Why is this bad?\n", "\n\n## "),
            example: between("## Example\n```python\n", "```"),
            fix: between("## How to fix it\n", "\n\n```python"),
            fixed: between("\n\n```python\n", "```"),
            markdown: page,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Error for the name of a rule that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule `{0}`")]
pub struct UnknownRule(String);

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Rule, UnknownRule> {
        let id = text.replace('-', "_").to_ascii_lowercase();
        let found = Rule::ALL.into_iter().find(|rule| rule.id() == id);
        found.ok_or_else(|| UnknownRule(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_from_their_id() {
        for rule in Rule::ALL {
            assert_eq!(rule.id().parse(), Ok(rule));
        }
        assert!("missing".parse::<Rule>().is_err());
    }

    #[test]
    fn hyphens_and_capitals_in_an_id_are_accepted() {
        assert_eq!("Missing-State".parse(), Ok(Rule::MissingState));
    }

    #[test]
    fn every_rule_is_documented() {
        for rule in Rule::ALL {
            let it = rule.explanation();
            let parts = [&it.title, &it.what, &it.why, &it.fix, &it.example, &it.fixed];
            for part in parts {
                assert!(!part.trim().is_empty(), "{rule}: {it:?}");
                assert!(!part.contains("## "), "{rule}: {part}");
            }
            assert_ne!(it.example, it.fixed, "{rule}");
            assert!(!it.title.ends_with('.'), "{rule}");
        }
    }

    #[test]
    fn titles_are_unique() {
        let titles: std::collections::BTreeSet<_> =
            Rule::ALL.map(|rule| rule.explanation().title).into();
        assert_eq!(titles.len(), Rule::ALL.len());
    }
}
