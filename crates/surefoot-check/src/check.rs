//! A check, from paths to findings.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::calculus::infer;
use crate::lift::{Entry, lift};
use crate::project::Project;
use crate::rules::{self, Report};
use crate::suppression::Suppressions;
use crate::unreadable::Reason;
use crate::{Checkpoint, FileId, Finding, Place, Sources, TorchOperations, Unreadable, parallel};

/// What a check assumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The nondeterministic operations of the PyTorch that scripts run with. Those of the newest
    /// version that is known if none are given.
    pub torch: Option<TorchOperations>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The files, those asked for first, then what they import.
    pub sources: Sources,
    /// What was found, by file and place. What comments silence is left out.
    pub findings: Vec<Finding>,
    /// How many findings comments silence.
    pub suppressed: usize,
    /// What each training loop must save.
    pub checkpoints: Vec<Checkpoint>,
    /// What could not be checked.
    pub unreadable: Vec<Unreadable>,
    /// How many files were checked, without those that were only imported.
    pub files: usize,
    /// How many of them use nothing that is known to train, themselves or through what they import.
    pub passed_over: usize,
}

/// Checks files, and all Python files in directories.
pub fn check(paths: &[PathBuf], settings: &Settings) -> Checked {
    parallel::with_deep_stack(|| check_project(Project::read(paths), settings))
}

fn check_project(mut project: Project, settings: &Settings) -> Checked {
    let mut checked = Checked {
        files: project.given,
        passed_over: project
            .relevant
            .iter()
            .take(project.given)
            .filter(|relevant| !**relevant)
            .count(),
        unreadable: std::mem::take(&mut project.unreadable),
        ..Checked::default()
    };
    let given = project.relevant.iter().take(project.given);
    let files: Vec<FileId> =
        (0..).zip(given).filter(|(_, relevant)| **relevant).map(|(file, _)| FileId(file)).collect();
    let scripts = parallel::map(&files, |file| examine(&project, settings, *file, None));
    let mut entered = BTreeSet::new();
    let mut found: Vec<Report> = Vec::new();
    for (file, outcome) in files.iter().zip(scripts) {
        match outcome {
            Ok((report, functions)) => {
                found.push(report);
                entered.extend(functions);
            }
            Err(reason) => checked.unreadable.push(Unreadable {
                path: project.script(*file).source.path.clone(),
                reason,
                at: None,
            }),
        }
    }
    // What no script called is looked at with arguments that are not known.
    let rest = parallel::map(&files, |file| examine(&project, settings, *file, Some(&entered)));
    for (file, outcome) in files.iter().zip(rest) {
        match outcome {
            Ok((report, _)) => found.push(report),
            Err(reason) => checked.unreadable.push(Unreadable {
                path: project.script(*file).source.path.clone(),
                reason,
                at: None,
            }),
        }
    }

    let suppressions: Vec<Suppressions> = (0..)
        .zip(&project.scripts)
        .map(|(file, script)| Suppressions::of(script, FileId(file)))
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    let mut told = BTreeSet::new();
    for report in found {
        findings.extend(report.findings);
        checked.checkpoints.extend(report.checkpoints);
        for (callee, finding) in report.unknown {
            if told.insert(callee) {
                findings.push(finding);
            }
        }
    }
    let key = |place: &Place| (place.file, place.range.start, place.range.end);
    findings.sort_by_key(|it| (key(&it.place), it.rule));
    findings.dedup_by(|a, b| a.rule == b.rule && a.place == b.place);
    checked.checkpoints.sort_by_key(|it| (key(&it.place), Reverse(it.members.len())));
    checked.checkpoints.dedup_by(|a, b| a.place == b.place);
    checked.sources = Sources(project.scripts.into_iter().map(|script| script.source).collect());
    for finding in findings {
        let source = checked.sources.get(finding.place.file);
        let (first, _) = source.line_and_column(finding.place.range.start);
        let (last, _) = source.line_and_column(finding.place.range.end);
        let silence = &suppressions[finding.place.file.0 as usize];
        if silence.silence(finding.rule, first..last + 1) {
            checked.suppressed += 1;
        } else {
            checked.findings.push(finding);
        }
    }
    for silence in suppressions {
        checked.findings.extend(silence.unknown);
    }
    checked.findings.sort_by_key(|it| (key(&it.place), it.rule));
    checked
}

/// What the rules say of a file, and which functions were entered for it.
type Examined = (Report, BTreeSet<usize>);

/// Examines a file. A fault of the checker costs that file, not the others.
fn examine(
    project: &Project,
    settings: &Settings,
    file: FileId,
    entered: Option<&BTreeSet<usize>>,
) -> Result<Examined, Reason> {
    catch_unwind(AssertUnwindSafe(|| apply(project, settings, file, entered))).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Reason::Failed(text.unwrap_or_default())
    })
}

/// Lifts a file and applies the rules: as a script, or what was not entered as part of one.
fn apply(
    project: &Project,
    settings: &Settings,
    file: FileId,
    entered: Option<&BTreeSet<usize>>,
) -> Examined {
    let entry = entered.map_or(Entry::Script, Entry::Library);
    let (lifted, functions) = lift(project, file, entry);
    if !lifted.matters() {
        return (Report::default(), functions);
    }
    let typing = infer(&lifted.program);
    let script = rules::Script { lifted: &lifted, typing: &typing, project, settings };
    (rules::apply(&script), functions)
}
