//! What programs are told of a check: a line of JSON each.

use super::checkpoint::kind;
use super::{Report, Unread};
use serde::Serialize;
use std::collections::BTreeMap;
use surefoot_check::{Checkpoint, Finding, Member, Place, Sources};

/// A line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// Something that counts.
    Finding(Told<'a>),
    /// A call that could not be resolved, or another warning.
    Unknown(Told<'a>),
    Checkpoint {
        #[serde(flatten)]
        at: Where,
        /// Whether the script saves there; if not, it is the place of the loop.
        saves: bool,
        members: Vec<Needed<'a>>,
        save: &'a str,
        restore: &'a str,
    },
    Unreadable {
        file: String,
        line: Option<usize>,
        column: Option<usize>,
        /// Whether it was named, and not met in a directory.
        named: bool,
        reason: String,
    },
    Check {
        files: usize,
        passed_over: usize,
        lines: usize,
        findings: usize,
        by_rule: BTreeMap<&'static str, usize>,
        unknown: usize,
        suppressed: usize,
        unreadable: usize,
        checkpoints: usize,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Told<'a> {
    rule: &'static str,
    #[serde(flatten)]
    at: Where,
    message: &'a str,
    help: &'a str,
    notes: Vec<Beside<'a>>,
}

#[derive(Debug, Serialize)]
struct Beside<'a> {
    #[serde(flatten)]
    at: Where,
    text: &'a str,
}

/// Something that a checkpoint has to save.
#[derive(Debug, Serialize)]
pub(crate) struct Needed<'a> {
    name: &'a str,
    kind: &'static str,
    saved: bool,
    reason: &'a str,
    used_at: Option<Where>,
}

/// A stretch of a file. Lines and columns are from one, columns count characters, and the end is the
/// column after the last.
#[derive(Debug, Serialize)]
pub(crate) struct Where {
    file: String,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) end_line: usize,
    pub(super) end_column: usize,
}

impl Where {
    pub(super) fn new(place: &Place, sources: &Sources) -> Self {
        let source = sources.get(place.file);
        let (line, column) = source.line_and_column(place.range.start);
        let (end_line, end_column) = source.line_and_column(place.range.end);
        Self { file: source.path.display().to_string(), line, column, end_line, end_column }
    }
}

impl Report {
    /// For programs: the findings, what is not known, checkpoints, what could not be read, and the
    /// summary.
    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        let findings = self.counted_findings().map(|it| Event::Finding(self.told(it)));
        let unknown = self.warnings().map(|it| Event::Unknown(self.told(it)));
        let checkpoints = self.checked.checkpoints.iter().map(|it| self.checkpoint(it));
        let unreadable = self.unread.iter().map(unreadable);
        let check = Event::Check {
            files: self.checked.files,
            passed_over: self.checked.passed_over,
            lines: self.lines(),
            findings: self.counted_findings().count(),
            by_rule: self.by_rule().into_iter().map(|(rule, count)| (rule.id(), count)).collect(),
            unknown: self.warnings().count(),
            suppressed: self.checked.suppressed,
            unreadable: self.unread.len(),
            checkpoints: self.checked.checkpoints.len(),
        };
        findings.chain(unknown).chain(checkpoints).chain(unreadable).chain([check]).collect()
    }

    fn told<'a>(&self, finding: &'a Finding) -> Told<'a> {
        let sources = &self.checked.sources;
        let notes = finding
            .notes
            .iter()
            .map(|note| Beside { at: Where::new(&note.place, sources), text: &note.text });
        Told {
            rule: finding.rule.id(),
            at: Where::new(&finding.place, sources),
            message: &finding.message,
            help: &finding.help,
            notes: notes.collect(),
        }
    }

    fn checkpoint<'a>(&self, checkpoint: &'a Checkpoint) -> Event<'a> {
        let sources = &self.checked.sources;
        let needed = |member: &'a Member| Needed {
            name: &member.name,
            kind: kind(member.kind),
            saved: member.saved,
            reason: &member.reason,
            used_at: member.used_at.as_ref().map(|it| Where::new(it, sources)),
        };
        Event::Checkpoint {
            at: Where::new(&checkpoint.place, sources),
            saves: checkpoint.saves,
            members: checkpoint.members.iter().map(needed).collect(),
            save: &checkpoint.save,
            restore: &checkpoint.restore,
        }
    }
}

fn unreadable(unread: &Unread) -> Event<'_> {
    Event::Unreadable {
        file: unread.unreadable.path.display().to_string(),
        line: unread.unreadable.at.map(|(line, _)| line),
        column: unread.unreadable.at.map(|(_, column)| column),
        named: unread.named,
        reason: unread.unreadable.reason.to_string(),
    }
}
