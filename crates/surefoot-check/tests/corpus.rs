//! Findings and checkpoints of the corpus: training scripts, each in a faulty and a sound form.
//!
//! `tests/corpus/README.md` describes `expected.toml`; `tests/corpus/run.py` executes the scripts.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use surefoot_check::{CheckConfig, CheckReport, Place, Rule, check};
use toml_edit::{DocumentMut, Table};

/// A script of the corpus.
struct Script {
    name: String,
    folder: PathBuf,
    framework: String,
    findings: Vec<Expected>,
    /// Members of the checkpoint of the sound form; empty if not declared.
    members: BTreeSet<String>,
}

/// Expected finding in the faulty form.
struct Expected {
    rule: Rule,
    /// File, for projects of several files.
    file: Option<String>,
    /// Text of the line, trimmed.
    at: String,
}

/// Finding as its rule, file name and line.
type Spot = (Rule, String, usize);

fn corpus() -> Vec<Script> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut folders: Vec<PathBuf> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("expected.toml").is_file())
        .collect();
    folders.sort();
    folders.into_iter().map(Script::read).collect()
}

fn text(table: &Table, key: &str) -> Option<String> {
    Some(table.get(key)?.as_str()?.to_owned())
}

impl Script {
    fn read(folder: PathBuf) -> Script {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let document: DocumentMut = fs::read_to_string(folder.join("expected.toml"))
            .unwrap()
            .parse()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let tables = |key: &str| -> Vec<Table> {
            let array = document.get(key).and_then(|item| item.as_array_of_tables());
            array.map_or_else(Vec::new, |array| array.iter().cloned().collect())
        };
        let missing = |key: &str| -> String { panic!("{name}: a finding without `{key}`") };
        let findings = tables("finding")
            .iter()
            .map(|table| Expected {
                rule: text(table, "rule")
                    .unwrap_or_else(|| missing("rule"))
                    .parse()
                    .unwrap_or_else(|error| panic!("{name}: {error}")),
                file: text(table, "file"),
                at: text(table, "at").unwrap_or_else(|| missing("at")),
            })
            .collect();
        let members = tables("member").iter().filter_map(|table| text(table, "name")).collect();
        Script {
            framework: text(document.as_table(), "framework").unwrap_or_default(),
            folder,
            findings,
            members,
            name,
        }
    }

    /// Path of a form: a file, or a folder if the script has several files.
    fn form(&self, form: &str) -> PathBuf {
        let folder = self.folder.join(form);
        if folder.is_dir() { folder } else { folder.with_extension("py") }
    }

    fn expected(&self) -> Vec<Spot> {
        let mut spots: Vec<Spot> = self.findings.iter().map(|it| self.spot(it)).collect();
        spots.sort();
        spots
    }

    /// Location of the one line at which a finding is expected.
    fn spot(&self, expected: &Expected) -> Spot {
        let form = self.form("faulty");
        let path = expected.file.as_ref().map_or(form.clone(), |file| form.join(file));
        let source =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines: Vec<usize> = (1..)
            .zip(source.lines())
            .filter(|(_, line)| line.trim() == expected.at)
            .map(|(number, _)| number)
            .collect();
        match lines[..] {
            [line] => (expected.rule, file_name(&path), line),
            _ => panic!("{}: {} lines are `{}`", self.name, lines.len(), expected.at),
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn spot(checked: &CheckReport, rule: Rule, place: &Place) -> Spot {
    let source = checked.sources.get(place.file);
    let (line, _) = source.line_and_column(place.range.start);
    (rule, file_name(&source.path), line)
}

/// Findings of a form without warnings, sorted.
fn found(script: &Script, form: &str) -> Vec<Spot> {
    let checked = check(&[script.form(form)], &CheckConfig::default());
    assert!(checked.unreadable.is_empty(), "{}: {:?}", script.name, checked.unreadable);
    let mut spots: Vec<Spot> = checked
        .findings
        .iter()
        .filter(|finding| !finding.rule.is_warning())
        .map(|finding| spot(&checked, finding.rule, &finding.place))
        .collect();
    spots.sort();
    spots
}

/// Returns the elements of `left` that `right` lacks.
fn difference(left: &[Spot], right: &[Spot]) -> Vec<Spot> {
    let mut rest = right.to_vec();
    left.iter()
        .filter(|spot| match rest.iter().position(|other| other == *spot) {
            Some(index) => {
                rest.remove(index);
                false
            }
            None => true,
        })
        .cloned()
        .collect()
}

/// One line for each missing or unexpected finding.
fn differences(script: &Script, form: &str, expected: &[Spot]) -> String {
    let found = found(script, form);
    let mut table = String::new();
    let rows =
        [("missing", difference(expected, &found)), ("unexpected", difference(&found, expected))];
    for (what, spots) in rows {
        for (rule, file, line) in spots {
            let name = format!("{}/{form}", script.name);
            writeln!(table, "{what:11} {name:40} {rule:26} {file}:{line}").unwrap();
        }
    }
    table
}

#[test]
fn faulty_scripts_have_the_expected_findings_and_no_others() {
    let table: String =
        corpus().iter().map(|script| differences(script, "faulty", &script.expected())).collect();
    assert!(table.is_empty(), "\n{table}{} differences", table.lines().count());
}

#[test]
fn sound_scripts_have_no_findings() {
    let table: String = corpus().iter().map(|script| differences(script, "sound", &[])).collect();
    assert!(table.is_empty(), "\n{table}{} differences", table.lines().count());
}

#[test]
fn sound_scripts_save_the_required_checkpoint() {
    let mut table = String::new();
    for script in corpus().iter().filter(|script| !script.members.is_empty()) {
        let checked = check(&[script.form("sound")], &CheckConfig::default());
        let saves: Vec<_> = checked.checkpoints.iter().filter(|it| it.saves).collect();
        if saves.is_empty() {
            writeln!(table, "{:32} no checkpoint was found", script.name).unwrap();
        }
        for checkpoint in saves {
            let (_, file, line) = spot(&checked, Rule::MissingState, &checkpoint.place);
            let derived: BTreeSet<String> =
                checkpoint.members.iter().map(|it| it.name.clone()).collect();
            let unsaved = checkpoint.members.iter().filter(|it| !it.saved);
            let unsaved: Vec<&str> = unsaved.map(|it| it.name.as_str()).collect();
            let missing: Vec<_> = script.members.difference(&derived).collect();
            let unexpected: Vec<_> = derived.difference(&script.members).collect();
            if !(missing.is_empty() && unexpected.is_empty() && unsaved.is_empty()) {
                writeln!(
                    table,
                    "{:32} {file}:{line} missing {missing:?} unexpected {unexpected:?} unsaved {unsaved:?}",
                    script.name
                )
                .unwrap();
            }
        }
    }
    assert!(table.is_empty(), "\n{table}");
}

#[test]
fn the_corpus_covers_all_rules_and_frameworks() {
    let scripts = corpus();
    let count = |frameworks: &[&str]| {
        let of_these = |script: &&Script| frameworks.contains(&script.framework.as_str());
        scripts.iter().filter(of_these).count()
    };
    assert!(count(&["pytorch", "lightning"]) >= 16);
    assert!(count(&["keras", "tensorflow"]) >= 19);
    assert!(count(&["jax"]) >= 2);

    let mut scripts_with: BTreeMap<Rule, BTreeSet<&str>> = BTreeMap::new();
    for script in &scripts {
        assert!((1..=4).contains(&script.findings.len()), "{}", script.name);
        for finding in &script.findings {
            scripts_with.entry(finding.rule).or_default().insert(&script.name);
        }
    }
    // `public_scripts.rs` tests loops that are not understood.
    let is_covered = |rule: &Rule| !rule.is_warning() && *rule != Rule::UnknownLoop;
    for rule in Rule::ALL.into_iter().filter(is_covered) {
        let scripts = scripts_with.get(&rule).map_or(0, BTreeSet::len);
        assert!(scripts >= 2, "{rule} is in {scripts} scripts");
    }
}
