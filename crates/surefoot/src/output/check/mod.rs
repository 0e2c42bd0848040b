//! Output of `surefoot check`.

mod checkpoint;
mod event;
mod excerpt;
pub(crate) mod explain;
pub(crate) mod sarif;
mod summary;

use super::Role;
use super::facts::wrapped;
use surefoot_check::{CheckReport, Finding, Place, Rule, Unreadable};

/// Width of text that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

/// Limits of the width of text.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;

/// Findings of one rule that are printed with their lines; the rest is listed by place.
const IN_FULL: usize = 8;

/// Result of a check, for printing.
#[derive(Debug)]
pub(crate) struct CheckOutput {
    pub(crate) checked: CheckReport,
    pub(crate) unread: Vec<UnreadableFile>,
    /// Width of the terminal, if there is one.
    pub(crate) width: Option<usize>,
}

/// File that could not be checked.
#[derive(Debug)]
pub(crate) struct UnreadableFile {
    pub(crate) unreadable: Unreadable,
    /// True if it was an argument, false if it was found in a directory.
    pub(crate) named: bool,
    /// Line with the error, if there is one.
    pub(crate) spot: Option<Spot>,
}

/// Line of a file that is not valid Python.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: String,
}

impl CheckOutput {
    /// Findings without warnings.
    pub(crate) fn counted_findings(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.checked.findings.iter();
        findings.filter(|finding| !finding.rule.is_warning())
    }

    fn warnings(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.checked.findings.iter();
        findings.filter(|finding| finding.rule.is_warning())
    }

    /// Text of the findings with their lines, then of the warnings, one per line.
    pub(crate) fn findings(&self) -> String {
        let mut shown = [0; Rule::ALL.len()];
        let mut parts = Vec::new();
        let mut rest: Vec<(Rule, Vec<&Place>)> = Vec::new();
        for finding in self.counted_findings() {
            let count = &mut shown[finding.rule as usize];
            *count += 1;
            if *count <= IN_FULL {
                parts.push(excerpt::finding(finding, &self.checked.sources, self.text_width()));
            } else {
                match rest.iter_mut().find(|(rule, _)| *rule == finding.rule) {
                    Some((_, places)) => places.push(&finding.place),
                    None => rest.push((finding.rule, vec![&finding.place])),
                }
            }
        }
        parts.extend(rest.iter().map(|(rule, places)| self.more(*rule, places)));
        let warnings: Vec<String> = self.warnings().map(|it| self.warning(it)).collect();
        if !warnings.is_empty() {
            parts.push(warnings.join("\n"));
        }
        parts.join("\n\n")
    }

    /// Text of the places of further findings of a rule.
    fn more(&self, rule: Rule, places: &[&Place]) -> String {
        let places: Vec<String> = places.iter().map(|place| self.place(place)).collect();
        let rule = Role::Error.paint(rule);
        let lines = wrapped(&places.join(", "), self.text_width() - 2);
        format!(
            "{rule}: {} more\n  {}",
            super::number::grouped(places.len() as u64),
            lines.join("\n  ")
        )
    }

    /// Text of a warning, wrapped.
    fn warning(&self, finding: &Finding) -> String {
        let head = Role::Warning.paint("warning:");
        let text = format!("{}: {}", self.place(&finding.place), finding.message);
        let lines = wrapped(&text, self.text_width() - "warning: ".len());
        format!("{head} {}", lines.join("\n        "))
    }

    /// Text of what each training loop must save.
    pub(crate) fn checkpoints(&self) -> String {
        let checkpoints = self.checked.checkpoints.iter();
        let parts: Vec<String> = checkpoints
            .map(|it| checkpoint::text(it, &self.checked.sources, self.text_width()))
            .collect();
        parts.join("\n\n")
    }

    /// Text of why a file could not be checked.
    pub(crate) fn unread(&self, unread: &UnreadableFile) -> String {
        excerpt::unread(unread, self.text_width())
    }

    /// Formats a place as `train.py:12:5`.
    fn place(&self, place: &Place) -> String {
        let source = self.checked.sources.get(place.file);
        let (line, column) = source.line_and_column(place.range.start);
        format!("{}:{line}:{column}", source.path.display())
    }

    fn text_width(&self) -> usize {
        let width = self.width.unwrap_or(PLAIN_WIDTH);
        width.clamp(*WIDTHS.start(), *WIDTHS.end())
    }
}
