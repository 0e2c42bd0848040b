//! What a check of scripts came to.

mod checkpoint;
mod event;
mod excerpt;
pub(crate) mod explain;
pub(crate) mod sarif;
mod summary;

use super::Role;
use super::facts::wrapped;
use surefoot_check::{CheckReport, Finding, Place, Rule, Unreadable};

/// The width of text that nobody watches; messages about plans have it too.
const PLAIN_WIDTH: usize = 100;

/// Text is never set narrower or wider than this, however wide the terminal is.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;

/// As many findings of one rule are shown with their lines; of the rest only the place is told.
const IN_FULL: usize = 8;

/// What was checked and found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) checked: CheckReport,
    pub(crate) unread: Vec<Unread>,
    /// The width of the terminal, if a person watches.
    pub(crate) width: Option<usize>,
}

/// What could not be checked.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) unreadable: Unreadable,
    /// Whether it was asked for by its name, and not met in a directory.
    pub(crate) named: bool,
    /// What is wrong in it, where that is a line.
    pub(crate) spot: Option<Spot>,
}

/// A line that is wrong. It is none of the sources of a check: those are Python.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: String,
}

impl Report {
    /// Those that count.
    pub(crate) fn counted_findings(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.checked.findings.iter();
        findings.filter(|finding| !finding.rule.is_remark())
    }

    fn warnings(&self) -> impl Iterator<Item = &Finding> {
        let findings = self.checked.findings.iter();
        findings.filter(|finding| finding.rule.is_remark())
    }

    /// For people: the findings with their lines, then the warnings, a line each.
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

    /// Where else a rule has findings.
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

    /// A warning in one line, or as few as it needs.
    fn warning(&self, finding: &Finding) -> String {
        let head = Role::Warning.paint("warning:");
        let text = format!("{}: {}", self.place(&finding.place), finding.message);
        let lines = wrapped(&text, self.text_width() - "warning: ".len());
        format!("{head} {}", lines.join("\n        "))
    }

    /// For people: what each training loop has to save.
    pub(crate) fn checkpoints(&self) -> String {
        let checkpoints = self.checked.checkpoints.iter();
        let parts: Vec<String> = checkpoints
            .map(|it| checkpoint::text(it, &self.checked.sources, self.text_width()))
            .collect();
        parts.join("\n\n")
    }

    /// For people: why something could not be checked.
    pub(crate) fn unread(&self, unread: &Unread) -> String {
        excerpt::unread(unread, self.text_width())
    }

    /// `train.py:12:5`.
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
