//! JSON lines of a check.

use super::checkpoint::kind;
use super::{CheckOutput, UnreadableFile};
use serde::Serialize;
use std::collections::BTreeMap;
use surefoot_check::{Finding, Member, Place, RequiredCheckpoint, SourceFiles};

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    Finding(FindingFields<'a>),
    /// Finding of a rule that is a warning.
    Warning(FindingFields<'a>),
    Checkpoint {
        #[serde(flatten)]
        at: Location,
        /// False if the script does not save there; the place is then that of the loop.
        saves: bool,
        members: Vec<MemberFields<'a>>,
        save: &'a str,
        restore: &'a str,
    },
    Unreadable {
        file: String,
        line: Option<usize>,
        column: Option<usize>,
        /// True if the file was an argument, false if it was found in a directory.
        named: bool,
        reason: String,
    },
    Check {
        files: usize,
        skipped: usize,
        lines: usize,
        findings: usize,
        by_rule: BTreeMap<&'static str, usize>,
        warnings: usize,
        suppressed: usize,
        unreadable: usize,
        checkpoints: usize,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct FindingFields<'a> {
    rule: &'static str,
    #[serde(flatten)]
    at: Location,
    message: &'a str,
    help: &'a str,
    notes: Vec<NoteFields<'a>>,
}

#[derive(Debug, Serialize)]
struct NoteFields<'a> {
    #[serde(flatten)]
    at: Location,
    text: &'a str,
}

/// Something that a checkpoint must save.
#[derive(Debug, Serialize)]
pub(crate) struct MemberFields<'a> {
    name: &'a str,
    kind: &'static str,
    saved: bool,
    reason: &'a str,
    used_at: Option<Location>,
}

/// Range of a file, with 1-based lines and columns. Columns count characters; the end is exclusive.
#[derive(Debug, Serialize)]
pub(crate) struct Location {
    file: String,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) end_line: usize,
    pub(super) end_column: usize,
}

impl Location {
    pub(super) fn new(place: &Place, sources: &SourceFiles) -> Self {
        let source = sources.get(place.file);
        let (line, column) = source.line_and_column(place.range.start);
        let (end_line, end_column) = source.line_and_column(place.range.end);
        let file = source.relative_path().display().to_string();
        Self { file, line, column, end_line, end_column }
    }
}

impl CheckOutput {
    /// Findings, warnings, checkpoints, unreadable files, and the summary.
    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        let findings = self.counted_findings().map(|it| Event::Finding(self.fields(it)));
        let warnings = self.warnings().map(|it| Event::Warning(self.fields(it)));
        let checkpoints = self.checked.checkpoints.iter().map(|it| self.checkpoint(it));
        let unreadable = self.unread.iter().map(unreadable);
        let check = Event::Check {
            files: self.checked.files,
            skipped: self.checked.skipped,
            lines: self.lines(),
            findings: self.counted_findings().count(),
            by_rule: self.by_rule().into_iter().map(|(rule, count)| (rule.id(), count)).collect(),
            warnings: self.warnings().count(),
            suppressed: self.checked.suppressed,
            unreadable: self.unread.len(),
            checkpoints: self.checked.checkpoints.len(),
        };
        findings.chain(warnings).chain(checkpoints).chain(unreadable).chain([check]).collect()
    }

    fn fields<'a>(&self, finding: &'a Finding) -> FindingFields<'a> {
        let sources = &self.checked.sources;
        let notes = finding
            .notes
            .iter()
            .map(|note| NoteFields { at: Location::new(&note.place, sources), text: &note.text });
        FindingFields {
            rule: finding.rule.id(),
            at: Location::new(&finding.place, sources),
            message: &finding.message,
            help: &finding.help,
            notes: notes.collect(),
        }
    }

    fn checkpoint<'a>(&self, checkpoint: &'a RequiredCheckpoint) -> Event<'a> {
        let sources = &self.checked.sources;
        let fields = |member: &'a Member| MemberFields {
            name: &member.name,
            kind: kind(member.kind),
            saved: member.saved,
            reason: &member.reason,
            used_at: member.used_at.as_ref().map(|it| Location::new(it, sources)),
        };
        Event::Checkpoint {
            at: Location::new(&checkpoint.place, sources),
            saves: checkpoint.saves,
            members: checkpoint.members.iter().map(fields).collect(),
            save: &checkpoint.save,
            restore: &checkpoint.restore,
        }
    }
}

fn unreadable(unread: &UnreadableFile) -> Event<'_> {
    Event::Unreadable {
        file: unread.unreadable.path.display().to_string(),
        line: unread.unreadable.at.map(|(line, _)| line),
        column: unread.unreadable.at.map(|(_, column)| column),
        named: unread.named,
        reason: unread.unreadable.reason.to_string(),
    }
}
