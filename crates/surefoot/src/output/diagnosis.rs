//! Output of `surefoot diagnose`.

use super::Role;
use super::facts::facts;
use super::number::{grouped, short};
use serde::Serialize;
use surefoot_diagnose::{Evidence, Finding, Problem, Quantity, Severity};
use surefoot_record::Event as Recorded;

/// Maximum number of notes that are printed.
const LISTED: usize = 5;

/// Subject, checks and findings of a diagnosis.
#[derive(Debug)]
pub(crate) struct DiagnosisReport {
    pub(crate) path: String,
    /// Rows and cells that were left out, in sentences.
    pub(crate) notes: Vec<String>,
    /// True if the log is too short to judge.
    pub(crate) too_short: bool,
    /// Amount and kind of the data.
    pub(crate) description: String,
    /// Unit of the step numbers.
    pub(crate) unit: &'static str,
    pub(crate) steps: u64,
    pub(crate) findings: Vec<Finding>,
    /// All that was looked for.
    pub(crate) checked: Vec<Problem>,
    /// Problems that could not be checked, and the missing quantities.
    pub(crate) not_observable: Vec<(Problem, Vec<Quantity>)>,
}

/// A line for programs.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Event<'a> {
    Finding(Recorded),
    Other(Other<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Other<'a> {
    NotObservable {
        problem: &'a Problem,
        needs: Vec<&'static str>,
    },
    Diagnosis {
        path: &'a str,
        steps: u64,
        /// Unit of `step` and `since` of the findings.
        unit: &'static str,
        problems: Vec<&'a Problem>,
        warnings: Vec<&'a Problem>,
        checked: &'a [Problem],
        not_observable: Vec<&'a Problem>,
        /// True if only what is wrong in itself could be found.
        too_short: bool,
        /// Rows and cells that were left out.
        notes: &'a [String],
    },
}

impl DiagnosisReport {
    /// Findings that are problems.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Problem)
    }

    fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }

    /// For programs: the findings, what could not be looked for, and the result.
    pub(crate) fn events(&self) -> Vec<Event<'_>> {
        let findings = self.findings.iter().cloned();
        let findings = findings.map(|finding| Event::Finding(Recorded::Finding(finding)));
        let not_observable = self.not_observable.iter().map(|(problem, needs)| {
            Event::Other(Other::NotObservable {
                problem,
                needs: needs.iter().map(|need| id(*need)).collect(),
            })
        });
        let result = Event::Other(Other::Diagnosis {
            path: &self.path,
            steps: self.steps,
            unit: self.unit,
            problems: self.problems().map(|finding| &finding.problem).collect(),
            warnings: self.warnings().map(|finding| &finding.problem).collect(),
            checked: &self.checked,
            not_observable: self.not_observable.iter().map(|(id, _)| id).collect(),
            too_short: self.too_short,
            notes: &self.notes,
        });
        findings.chain(not_observable).chain([result]).collect()
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let path = Role::Strong.paint(&self.path);
        let mut head = vec![format!("{path}: {}", self.description)];
        head.extend(self.notes.iter().take(LISTED).map(|note| format!("  note: {note}")));
        if self.notes.len() > LISTED {
            head.push(format!("  note: {} more of these", self.notes.len() - LISTED));
        }
        let mut parts = vec![head.join("\n")];
        parts.extend(self.problems().map(|finding| self.finding(finding)));
        if self.checked.is_empty() {
            parts.push(Role::Warning.paint("nothing could be looked for"));
        } else if self.problems().next().is_none() && self.too_short {
            parts.push(Role::Warning.paint("too short to judge"));
        } else if self.problems().next().is_none() {
            parts.push(Role::Good.paint("no problem found"));
        }
        parts.extend(self.warnings().map(|finding| self.finding(finding)));
        let rest = self.rest();
        if !rest.is_empty() {
            parts.push(facts(&rest));
        }
        parts.join("\n\n")
    }

    fn finding(&self, finding: &Finding) -> String {
        let title = finding.problem.title();
        let title = match finding.severity {
            Severity::Problem => Role::Error.paint(title),
            Severity::Warning => Role::Warning.paint(format!("warning: {title}")),
        };
        let unit = self.unit;
        let (since, step) = (grouped(finding.since), grouped(finding.step));
        let when = match since == step {
            _ if finding.step == 0 => "before the first step".to_owned(),
            true => format!("at {unit} {step}"),
            false => format!("since {unit} {since}, confirmed at {unit} {step}"),
        };
        let mut lines = vec![
            format!("{title}   {}", Role::Quiet.paint(when)),
            format!("  {}", finding.message),
        ];
        if !finding.layers.is_empty() {
            let layers = Role::Quiet.paint("layers");
            lines.push(format!("    {layers}   {}", finding.layers.join(", ")));
        }
        lines.extend(evidence(&finding.evidence));
        if let Some(advice) = &finding.advice {
            for (framework, code) in [("PyTorch", &advice.pytorch), ("Keras", &advice.keras)] {
                let framework = Role::Quiet.paint(format!("{framework:<7}"));
                lines.push(format!("    {framework}   {code}"));
            }
        }
        lines.join("\n")
    }

    /// Problems not found, and problems not observable, grouped by missing quantity.
    fn rest(&self) -> Vec<(String, String)> {
        let found = |problem: &&Problem| !self.findings.iter().any(|f| f.problem == **problem);
        let clear: Vec<String> = self.checked.iter().filter(found).map(Problem::title).collect();
        let mut lines = Vec::new();
        if !clear.is_empty() {
            lines.push(("not found".to_owned(), clear.join(", ")));
        }
        let mut groups: Vec<(&[Quantity], Vec<String>)> = Vec::new();
        for (problem, needs) in &self.not_observable {
            match groups.iter_mut().find(|(known, _)| known == needs) {
                Some((_, problems)) => problems.push(problem.title()),
                None => groups.push((needs, vec![problem.title()])),
            }
        }
        for (i, (needs, problems)) in groups.into_iter().enumerate() {
            let name = if i == 0 { "not observable" } else { "" };
            let verb = if problems.len() == 1 { "needs" } else { "need" };
            let needs: Vec<&str> = needs.iter().map(|need| need.name()).collect();
            let line = format!("{} ({verb} {})", problems.join(", "), needs.join(" and "));
            lines.push((name.to_owned(), line));
        }
        lines
    }
}

/// Names, values and limits in columns.
fn evidence(evidence: &[Evidence]) -> Vec<String> {
    let rows: Vec<[String; 3]> = evidence
        .iter()
        .map(|evidence| {
            let limit = evidence.limit.map(|limit| format!("limit {}", short(limit)));
            [evidence.measure.label(), short(evidence.value), limit.unwrap_or_default()]
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let (names, values) = (width(0), width(1));
    rows.iter()
        .map(|[name, value, limit]| {
            let name = Role::Quiet.paint(format!("{name:<names$}"));
            let line = format!("    {name}   {value:>values$}");
            match limit.is_empty() {
                true => line,
                false => format!("{line}   {}", Role::Quiet.paint(limit)),
            }
        })
        .collect()
}

/// Identifier of a quantity in JSON.
fn id(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Loss => "loss",
        Quantity::Metric => "metric",
        Quantity::Gradients => "gradients",
        Quantity::Weights => "weights",
        Quantity::Outputs => "outputs",
        Quantity::Validation => "validation",
        Quantity::Model => "model",
    }
}
