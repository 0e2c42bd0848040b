//! Findings in SARIF 2.1.0, the format of GitHub's code scanning.

use super::event::Location as Range;
use super::{CheckOutput, UnreadableFile};
use serde::Serialize;
use std::path::{Component, Path};
use surefoot_check::{Finding, Note, Place, Rule, SourceFile};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Formats the result as a SARIF document.
pub(crate) fn document(report: &CheckOutput) -> String {
    let findings = report.checked.findings.iter();
    let log = Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "surefoot",
                    semantic_version: env!("CARGO_PKG_VERSION"),
                    rules: Rule::ALL.map(Descriptor::of),
                },
            },
            column_kind: "unicodeCodePoints",
            invocations: [Invocation {
                execution_successful: report.checked.files > 0,
                notifications: report.unread.iter().map(notification).collect(),
            }],
            results: findings.map(|it| result(it, report)).collect(),
        }],
    };
    // Strings and numbers always serialize.
    serde_json::to_string_pretty(&log).unwrap_or_default()
}

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    invocations: [Invocation; 1],
    results: Vec<Outcome>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: [Descriptor; Rule::ALL.len()],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Text,
    full_description: Text,
    help: Help,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Help {
    /// For viewers without Markdown.
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(rename = "toolExecutionNotifications")]
    notifications: Vec<Notification>,
}

/// File that could not be checked.
#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Text,
    locations: [Location; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Text,
    locations: [Location; 1],
    related_locations: Vec<Location>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
    physical_location: Physical,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

/// 1-based lines and columns; the end is exclusive.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<usize>,
}

impl Descriptor {
    fn of(rule: Rule) -> Self {
        let page = rule.explanation();
        let sentence =
            |text: &str| Text { text: text.split_whitespace().collect::<Vec<_>>().join(" ") };
        Self {
            id: rule.id(),
            short_description: sentence(&page.title),
            full_description: sentence(&page.what),
            help: Help { text: page.markdown.clone(), markdown: page.markdown },
            default_configuration: Configuration { level: level(rule) },
        }
    }
}

fn level(rule: Rule) -> &'static str {
    match rule.is_warning() {
        true => "note",
        false => "warning",
    }
}

fn result(finding: &Finding, report: &CheckOutput) -> Outcome {
    let message = match finding.help.is_empty() {
        true => finding.message.clone(),
        false => format!("{}\n\n{}", finding.message, finding.help),
    };
    let beside = |(id, note): (usize, &Note)| Location {
        id: Some(id),
        message: Some(Text { text: note.text.clone() }),
        physical_location: physical(&note.place, report),
    };
    Outcome {
        rule_id: finding.rule.id(),
        // Descriptors are in the order of the rules.
        rule_index: finding.rule as usize,
        level: level(finding.rule),
        message: Text { text: message },
        locations: [Location {
            id: None,
            message: None,
            physical_location: physical(&finding.place, report),
        }],
        related_locations: (1..).zip(&finding.notes).map(beside).collect(),
    }
}

fn physical(place: &Place, report: &CheckOutput) -> Physical {
    let sources = &report.checked.sources;
    let source: &SourceFile = sources.get(place.file);
    let at = Range::new(place, sources);
    Physical {
        artifact_location: Artifact { uri: uri(&source.relative_path()) },
        region: Some(Region {
            start_line: at.line,
            start_column: at.column,
            end_line: Some(at.end_line),
            end_column: Some(at.end_column),
        }),
    }
}

fn notification(unread: &UnreadableFile) -> Notification {
    let it = &unread.unreadable;
    let region = it.at.map(|(line, column)| Region {
        start_line: line,
        start_column: column,
        end_line: None,
        end_column: None,
    });
    Notification {
        level: match unread.named {
            true => "error",
            false => "warning",
        },
        message: Text { text: format!("{} cannot be checked: {}", it.path.display(), it.reason) },
        locations: [Location {
            id: None,
            message: None,
            physical_location: Physical {
                artifact_location: Artifact { uri: uri(&it.path) },
                region,
            },
        }],
    }
}

/// Formats a path as a URI, relative to the current directory if it is below it.
fn uri(path: &Path) -> String {
    let below = std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).map(Path::to_owned).ok());
    let path = below.as_deref().unwrap_or(path);
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::CurDir | Component::RootDir => None,
            part => Some(escaped(&part.as_os_str().to_string_lossy())),
        })
        .collect();
    let joined = parts.join("/");
    match path.is_absolute() {
        true => format!("file:///{joined}"),
        false if joined.is_empty() => ".".to_owned(),
        false => joined,
    }
}

/// Percent-encodes a part of a path.
fn escaped(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(byte as char);
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_uris() {
        assert_eq!(uri(Path::new("./a dir/é.py")), "a%20dir/%C3%A9.py");
        assert_eq!(uri(Path::new("../x.py")), "../x.py");
        let here = std::env::current_dir().unwrap();
        assert_eq!(uri(&here.join("a/b.py")), "a/b.py");
        assert_eq!(uri(Path::new("/no/such/c.py")), "file:///no/such/c.py");
    }

    #[test]
    fn rule_indices_match_the_descriptors() {
        for (index, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, index);
        }
    }
}
