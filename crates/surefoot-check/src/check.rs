//! The check, from paths to findings.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::calculus::infer;
use crate::lift::{Entry, lift};
use crate::project::Project;
use crate::rules::{self, Report, unknown_loop};
use crate::suppression::Suppressions;
use crate::unreadable::Reason;
use crate::{
    FileId, Finding, Place, RequiredCheckpoint, Rule, SourceFiles, TorchOperations, Unreadable,
    parallel,
};

/// Options of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckConfig {
    /// Nondeterministic operations of the PyTorch that the scripts run with; those of PyTorch 2.15 by
    /// default.
    pub torch: Option<TorchOperations>,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Files: requested ones first, then the files that they import.
    pub sources: SourceFiles,
    /// Findings by file and position, without the suppressed ones.
    pub findings: Vec<Finding>,
    /// Number of findings silenced by comments.
    pub suppressed: usize,
    /// State that each training loop must save.
    pub checkpoints: Vec<RequiredCheckpoint>,
    /// Files that could not be checked.
    pub unreadable: Vec<Unreadable>,
    /// Number of checked files, without imported ones.
    pub files: usize,
    /// Number of checked files that import no training framework, directly or indirectly.
    pub skipped: usize,
}

/// Checks files and all Python files in directories.
pub fn check(paths: &[PathBuf], config: &CheckConfig) -> CheckReport {
    parallel::with_deep_stack(|| check_project(Project::read(paths), config))
}

fn check_project(mut project: Project, config: &CheckConfig) -> CheckReport {
    let mut checked = CheckReport {
        files: project.requested,
        unreadable: std::mem::take(&mut project.unreadable),
        ..CheckReport::default()
    };
    let requested = project.relevant.iter().take(project.requested);
    let files: Vec<FileId> = (0..)
        .zip(requested)
        .filter(|(_, relevant)| **relevant)
        .map(|(file, _)| FileId(file))
        .collect();
    checked.skipped = project.requested - files.len();
    let mut entered = BTreeSet::new();
    let mut found: Vec<Report> = Vec::new();
    // The second pass analyzes code that no script calls, with guessed arguments.
    for is_library in [false, true] {
        let called = is_library.then(|| entered.clone());
        let results =
            parallel::map(&files, |file| analyze(&project, config, *file, called.as_ref()));
        for (file, result) in files.iter().zip(results) {
            match result {
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
    }

    let suppressions: Vec<Suppressions> = (0..)
        .zip(&project.scripts)
        .map(|(file, script)| Suppressions::of(script, FileId(file)))
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    let mut reported = BTreeSet::new();
    let mut followed = Vec::new();
    let mut handed_over: Vec<Place> = Vec::new();
    let key = |place: &Place| (place.file, place.range.start, place.range.end);
    for report in found {
        followed.extend(report.followed);
        handed_over.extend(report.handed_over);
        findings.extend(report.findings);
        checked.checkpoints.extend(report.checkpoints);
        for (callee, finding) in report.unknown {
            if reported.insert(callee) {
                findings.push(finding);
            }
        }
    }
    for file in files {
        let is_reported = |it: &Finding| it.rule == Rule::UnknownLoop && it.place.file == file;
        if !findings.iter().any(is_reported) {
            let script = project.script(file);
            let places = handed_over.iter().filter(|it| it.file == file);
            findings.extend(unknown_loop::unfollowed(
                script,
                file,
                places.min_by_key(|it| it.range.start),
                &followed,
            ));
        }
    }
    findings.sort_by_key(|it| (key(&it.place), it.rule));
    findings.dedup_by(|a, b| a.rule == b.rule && a.place == b.place);
    checked.checkpoints.sort_by_key(|it| (key(&it.place), Reverse(it.members.len())));
    checked.checkpoints.dedup_by(|a, b| a.place == b.place);
    checked.sources =
        SourceFiles(project.scripts.into_iter().map(|script| script.source).collect());
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

/// Findings of a file, and the functions that were entered.
type Analysis = (Report, BTreeSet<usize>);

/// Analyzes a file. A panic affects only that file.
fn analyze(
    project: &Project,
    config: &CheckConfig,
    file: FileId,
    entered: Option<&BTreeSet<usize>>,
) -> Result<Analysis, Reason> {
    catch_unwind(AssertUnwindSafe(|| apply(project, config, file, entered))).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Reason::Failed(text.unwrap_or_default())
    })
}

/// Lifts a file, as a script or for the functions not in `entered`, and applies the rules.
fn apply(
    project: &Project,
    config: &CheckConfig,
    file: FileId,
    entered: Option<&BTreeSet<usize>>,
) -> Analysis {
    let entry = entered.map_or(Entry::Script, Entry::Library);
    let (lifted, functions) = lift(project, file, entry);
    if !lifted.is_relevant() {
        let handed_over = lifted.handed_over.iter().map(|it| lifted.place(*it)).collect();
        return (Report { handed_over, ..Report::default() }, functions);
    }
    let typing = infer(&lifted.program);
    (rules::apply(&lifted, &typing, project, config), functions)
}
