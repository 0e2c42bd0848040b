//! State that a training loop must save, and the code that does it.

use super::excerpt;
use crate::output::Role;
use crate::output::facts::wrapped;
use surefoot_check::{MemberKind, RequiredCheckpoint, SourceFiles};

/// Text of a checkpoint.
pub(super) fn text(checkpoint: &RequiredCheckpoint, sources: &SourceFiles, width: usize) -> String {
    let missing = checkpoint.members.iter().filter(|it| !it.saved).count();
    let title = match (checkpoint.saves, checkpoint.members.len(), missing) {
        (_, 0, _) => "nothing must be saved here".to_owned(),
        (false, ..) => "this loop saves no checkpoint and cannot be resumed".to_owned(),
        (true, _, 0) => "this checkpoint is complete".to_owned(),
        (true, count, missing) => {
            format!("this checkpoint lacks {missing} of {count} required members")
        }
    };
    let mut parts = vec![excerpt::place(&title, &checkpoint.place, sources, width)];
    parts.extend(members(checkpoint, width));
    for (name, code) in [("to save", &checkpoint.save), ("to restore", &checkpoint.restore)] {
        if !code.trim().is_empty() {
            let code = code.trim_end().lines().map(|line| match line.is_empty() {
                true => String::new(),
                false => format!("      {}", Role::Literal.paint(line)),
            });
            let code: Vec<String> = code.collect();
            parts.push(format!("  {}\n\n{}", Role::Quiet.paint(name), code.join("\n")));
        }
    }
    parts.join("\n\n")
}

/// Lines of the members, with the reason why each must be saved.
fn members(checkpoint: &RequiredCheckpoint, width: usize) -> Option<String> {
    let names = checkpoint.members.iter().map(|it| it.name.chars().count());
    let names = names.max()?;
    let lines = checkpoint.members.iter().map(|member| {
        let mark = match member.saved {
            true => Role::Good.paint("✓"),
            false => Role::Error.paint("✗"),
        };
        let kind = kind(member.kind);
        let indent = 2 + 2 + names + 3 + KIND + 3;
        let reason = wrapped(&member.reason, width.saturating_sub(indent).max(30));
        let reason = reason.join(&format!("\n{:indent$}", ""));
        let name = &member.name;
        let kind = Role::Quiet.paint(format!("{kind:<KIND$}"));
        format!("  {mark} {name:<names$}   {kind}   {reason}")
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Width of the longest kind.
const KIND: usize = "generator".len();

/// Name of a kind in text and JSON.
pub(super) fn kind(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::State => "state",
        MemberKind::Generator => "generator",
        MemberKind::Position => "position",
    }
}
