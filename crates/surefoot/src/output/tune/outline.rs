//! What a study would search.

use crate::output::{Console, Role, number};
use serde::Serialize;
use surefoot_tune::study::Task;
use surefoot_tune::{Condition, Domain, Parameter, Study, Value};

#[derive(Serialize)]
struct Outline<'a> {
    event: &'static str,
    study: &'a str,
    store: &'a str,
    objective: &'a str,
    direction: &'a str,
    parameters: &'a [Parameter],
    workers: usize,
}

/// Shows what would be searched.
pub(crate) fn show(study: &Study, store: &str, workers: usize, console: &Console) {
    let settings = &study.settings;
    console.say(&text(study, store, workers));
    console.event(&Outline {
        event: "outline",
        study: &study.name,
        store,
        objective: settings.objective.name(),
        direction: settings.direction.name(),
        parameters: study.space.parameters(),
        workers,
    });
}

fn text(study: &Study, store: &str, workers: usize) -> String {
    let settings = &study.settings;
    let (objective, direction) = (settings.objective.name(), settings.direction.name());
    let mut lines = vec![format!(
        "  {:<9} {}, {direction} {objective}",
        "study",
        Role::Strong.paint(&study.name)
    )];
    if let Task::Command(command) = &study.task {
        lines.push(format!("  {:<9} {command}", "command"));
    }
    lines.push(format!("  {:<9} {store}", "store"));
    lines.push(format!("  {:<9} {workers}", "workers"));
    lines.push(String::new());
    let parameters = study.space.parameters();
    let width = parameters.iter().map(|p| p.name.len()).max().unwrap_or(0);
    for parameter in parameters {
        let name = format!("{:width$}", parameter.name);
        let mut line = format!(
            "  {}  {}",
            Role::Strong.paint(name),
            range(&parameter.domain)
        );
        for condition in &parameter.conditions {
            line.push_str(&Role::Quiet.paint(format!("  if {}", wanted(condition))));
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn range(domain: &Domain) -> String {
    let number = number::short;
    match domain {
        Domain::Uniform(low, high) => format!("{} to {}", number(*low), number(*high)),
        Domain::LogUniform(low, high) => {
            format!("{} to {}, logarithmic", number(*low), number(*high))
        }
        Domain::Int(low, high) => format!("{low} to {high}, whole"),
        Domain::LogInt(low, high) => format!("{low} to {high}, whole, logarithmic"),
        Domain::Choice(values) => list(values),
    }
}

fn wanted(condition: &Condition) -> String {
    format!("{} is {}", condition.parameter, list(&condition.values))
}

fn list(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    match values.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => values.join(""),
    }
}
