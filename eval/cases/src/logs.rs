//! Logs of other programs: which broken ones are found, and which healthy ones are alarmed.
//!
//! `labels.csv` has a `file` and a `label` for each log: `buggy` and `fixed` programs, runs that `reached`
//! or `missed` their target. A faulty program may have a healthy curve, so an optional column `plain`
//! marks the logs whose curve shows that they are broken; without it, [`PLAIN`] does. Below `formats`
//! and `frameworks` the names of files and directories say `healthy` or `diverging`.

use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Severity, Thresholds};
use surefoot_record::logs::{Map, read};

/// Diagnose a directory of labelled logs
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory with labels.csv
    directory: PathBuf,

    /// List every log
    #[arg(long)]
    all: bool,

    /// Print JSON: one object for each log, and the totals last
    #[arg(long)]
    json: bool,
}

/// Programs of the development half whose curves are plainly broken: NaN from the start, a loss that
/// explodes or stays level, an accuracy of one class in ten beside a loss of zero; and one collapse.
const PLAIN: &[&str] = &[
    "DeepFD_48221692_origin",
    "DeepFD_56380303_origin",
    // Two of the fixes still diverge.
    "DeepFD_56380303_repair_3",
    "DeepFD_56380303_repair_7",
    "DeepLocalize_48385830_origin",
    "Defects4ML_073_origin",
    "Defects4ML_098_origin",
    "imagenet_resnet_pytorch-83",
];

/// A log and what is known about it.
struct Case {
    path: PathBuf,
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// The curve shows that the run is broken.
    Broken,
    /// The run reached its target, or its fault was fixed.
    Healthy,
    /// Faulty or below its target, but the curve need not show it.
    Unclear,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Broken => "broken",
            Kind::Healthy => "healthy",
            Kind::Unclear => "unclear",
        }
    }
}

/// Result of one log.
#[derive(Serialize)]
struct Row<'a> {
    log: &'a str,
    group: &'a str,
    kind: Kind,
    problems: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_short: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Default, Serialize)]
struct Totals {
    logs: usize,
    alarmed: usize,
    too_short: usize,
    refused: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let cases = cases(&arguments.directory)?;
    let mut totals: BTreeMap<(&str, Kind), Totals> = BTreeMap::new();
    for case in &cases {
        let row = diagnose(case);
        let total = totals.entry((row.group, row.kind)).or_default();
        total.logs += 1;
        total.alarmed += usize::from(!row.problems.is_empty());
        total.too_short += usize::from(row.too_short);
        total.refused += usize::from(row.error.is_some());
        if arguments.json {
            println!("{}", serde_json::to_string(&row).map_err(|error| error.to_string())?);
        } else if arguments.all || is_wrong(&row) {
            println!("{}", line(&row));
        }
    }
    if arguments.json {
        let totals: Vec<_> = totals
            .iter()
            .map(|((group, kind), total)| {
                serde_json::json!({ "group": group, "kind": kind, "totals": total })
            })
            .collect();
        println!("{}", serde_json::json!({ "event": "totals", "groups": totals }));
        return Ok(());
    }
    println!(
        "\n{:<12} {:<8} {:>6} {:>8} {:>8} {:>10} {:>8}",
        "logs", "kind", "number", "alarmed", "share", "too short", "refused"
    );
    for ((group, kind), total) in &totals {
        let share = 100.0 * total.alarmed as f64 / total.logs as f64;
        println!(
            "{group:<12} {:<8} {:>6} {:>8} {share:>7.1}% {:>10} {:>8}",
            kind.name(),
            total.logs,
            total.alarmed,
            total.too_short,
            total.refused
        );
    }
    Ok(())
}

/// Returns true for a broken log without a problem, a healthy one with one, and a refused one.
fn is_wrong(row: &Row<'_>) -> bool {
    let alarmed = !row.problems.is_empty();
    row.error.is_some()
        || match row.kind {
            Kind::Broken => !alarmed,
            Kind::Healthy => alarmed,
            Kind::Unclear => false,
        }
}

fn line(row: &Row<'_>) -> String {
    let result = match &row.error {
        Some(error) => format!("refused: {error}"),
        None if !row.problems.is_empty() => row.problems.join(", "),
        None if row.too_short => "too short to judge".to_owned(),
        None => "no problem found".to_owned(),
    };
    format!("{:<8} {}: {result}", row.kind.name(), row.log)
}

fn diagnose(case: &Case) -> Row<'_> {
    let group = case.name.split('/').next().unwrap_or_default();
    let mut row = Row {
        log: &case.name,
        group,
        kind: case.kind,
        problems: Vec::new(),
        too_short: false,
        error: None,
    };
    match read(&case.path, &Map::new()) {
        Ok(logs) => {
            row.too_short = logs.iter().all(|log| log.is_too_short());
            for log in logs {
                let diagnosis = log.diagnose(Thresholds::default());
                let problems =
                    diagnosis.findings().iter().filter(|f| f.severity == Severity::Problem);
                row.problems.extend(problems.map(|finding| finding.problem.id().to_owned()));
            }
        }
        Err(error) => row.error = Some(error.to_string()),
    }
    row
}

fn cases(directory: &Path) -> Result<Vec<Case>, String> {
    let labels = directory.join("labels.csv");
    let context = |error: &dyn std::fmt::Display| format!("{}: {error}", labels.display());
    let mut reader = csv::Reader::from_path(&labels).map_err(|error| context(&error))?;
    let mut cases = Vec::new();
    for record in reader.deserialize() {
        let label: BTreeMap<String, String> = record.map_err(|error| context(&error))?;
        let get = |key: &str| label.get(key).map(String::as_str);
        let name = get("file").ok_or_else(|| context(&"there is no column `file`"))?;
        let plain = match get("plain") {
            Some(plain) => !["", "0", "false", "no"].contains(&plain),
            None => PLAIN.iter().any(|plain| name.contains(plain)),
        };
        let kind = match get("label") {
            _ if plain => Kind::Broken,
            Some("fixed" | "reached") => Kind::Healthy,
            _ => Kind::Unclear,
        };
        cases.push(Case { path: directory.join(name), name: name.to_owned(), kind });
    }
    for group in ["formats", "frameworks"] {
        let path = directory.join(group);
        if path.is_dir() {
            collect(&path, group, &mut cases)?;
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// Collects files and directories whose names say what they are.
fn collect(dir: &Path, prefix: &str, cases: &mut Vec<Case>) -> Result<(), String> {
    let context = |error: std::io::Error| format!("{}: {error}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(context)? {
        let path = entry.map_err(context)?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}/{file}");
        let kind = if file.contains("diverging") || file == "nan" {
            Some(Kind::Broken)
        } else if file.contains("healthy") || prefix.ends_with("/ptb") {
            Some(Kind::Healthy)
        } else {
            None
        };
        match kind {
            Some(kind) => cases.push(Case { path, name, kind }),
            None if path.is_dir() => collect(&path, &name, cases)?,
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_logs_is_judged_by_its_labels() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        std::fs::create_dir(dir.path().join("formats")).unwrap();
        write("labels.csv", "file,label,plain\na.csv,buggy,1\nb.csv,reached,\n");
        write("a.csv", "epoch,loss\n0,nan\n1,nan\n");
        write("b.csv", "epoch,loss\n0,9\n1,8\n2,7\n3,6\n4,5\n");
        write("formats/x_diverging.csv", "epoch,loss\n0,1\n1,nan\n");
        let cases = cases(dir.path()).unwrap();
        let rows: Vec<_> = cases.iter().map(diagnose).collect();
        let kinds: Vec<_> = rows.iter().map(|row| (row.kind, row.problems.len())).collect();
        assert_eq!(kinds, [(Kind::Broken, 1), (Kind::Healthy, 0), (Kind::Broken, 1)]);
        assert!(!rows.iter().any(is_wrong));
    }
}
