//! Summary of a check.

use super::CheckOutput;
use crate::output::Role;
use crate::output::facts::{facts, wrapped};
use crate::output::number::{counted, grouped};
use surefoot_check::{Finding, Rule};

/// Column where the values start, at most.
const INDENT: usize = "  not checked   ".len();

impl CheckOutput {
    /// Number of findings of each rule that has any, in the order of the rules.
    pub(super) fn by_rule(&self) -> Vec<(Rule, usize)> {
        let count = |rule: Rule| {
            let same = |finding: &&Finding| finding.rule == rule;
            (rule, self.counted_findings().filter(same).count())
        };
        let all = Rule::ALL.into_iter().map(count);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Number of lines of the checked files.
    pub(super) fn lines(&self) -> usize {
        let sources = self.checked.sources.0.iter().take(self.checked.files);
        sources.map(|source| source.text.lines().count()).sum()
    }

    /// Text of the summary.
    pub(crate) fn summary(&self) -> String {
        let files = counted(self.checked.files as u64, "file");
        let lines = counted(self.lines() as u64, "line");
        let by_rule = self.by_rule();
        let mut rows = Vec::new();
        if self.checked.suppressed > 0 {
            let suppressed = counted(self.checked.suppressed as u64, "finding");
            rows.push(("suppressed", format!("{suppressed}, by comments")));
        }
        let warnings = self.warnings().count();
        if warnings > 0 {
            rows.push(("warnings", grouped(warnings as u64)));
        }
        if self.checked.skipped > 0 {
            let files = counted(self.checked.skipped as u64, "file");
            rows.push(("skipped", format!("{files} without a known framework")));
        }
        if !self.unread.is_empty() {
            rows.push(("not checked", counted(self.unread.len() as u64, "path")));
        }
        let head = match by_rule.first() {
            _ if self.checked.files == 0 => Role::Warning.paint("nothing was checked"),
            None => {
                let nothing = Role::Good.paint("nothing found");
                format!("{nothing} in {files} ({lines})")
            }
            Some((rule, _)) => {
                let each = by_rule.iter().map(|(rule, count)| format!("{rule} {count}"));
                let each = each.collect::<Vec<_>>().join(", ");
                let each = wrapped(&each, self.text_width() - INDENT);
                let names = std::iter::once("by rule").chain(std::iter::repeat(""));
                rows.splice(0..0, names.zip(each));
                let explain = format!("surefoot check --explain {rule}");
                rows.push(("more", Role::Literal.paint(explain)));
                let total = counted(self.counted_findings().count() as u64, "finding");
                format!("{} in {files} ({lines})", Role::Error.paint(total))
            }
        };
        let rows: Vec<(String, String)> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        match rows.is_empty() {
            true => head,
            false => format!("{head}\n{}", facts(&rows)),
        }
    }
}
