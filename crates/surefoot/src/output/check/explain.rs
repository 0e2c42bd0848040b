//! Documentation of rules at the terminal.

use crate::output::Role;
use crate::output::facts::{facts, wrapped};
use surefoot_check::Rule;

/// Width of prose.
const WIDTH: usize = 80;

/// List of all rules, one per line.
pub(crate) fn list() -> String {
    let rows = Rule::ALL.map(|rule| (rule.id().to_owned(), rule.explanation().title));
    facts(&rows)
}

/// Documentation of a rule.
pub(crate) fn page(rule: Rule) -> String {
    let page = rule.explanation();
    let title = Role::Error.paint(rule);
    let sections = [
        prose(&page.what),
        section("Why is this bad?", &prose(&page.why)),
        section("Example", &code(&page.example)),
        section("How to fix it", &format!("{}\n\n{}", prose(&page.fix), code(&page.fixed))),
        section("How to suppress it", &suppression(rule)),
    ];
    let first = format!("{title}: {}", page.title);
    format!("{first}\n\n{}", sections.join("\n\n"))
}

fn section(name: &str, text: &str) -> String {
    format!("{}\n\n{text}", Role::Strong.paint(name))
}

fn prose(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|it| {
        let lines = wrapped(it, WIDTH);
        format!("  {}", lines.join("\n  "))
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn code(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("    {}", Role::Literal.paint(line)),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn suppression(rule: Rule) -> String {
    let comment = |what: &str| code(&format!("# surefoot: {what}[{rule}]"));
    let line = "On the line of the finding, or on a separate line above it:";
    let file = "For the whole file, on any line:";
    [prose(line), comment("ignore"), prose(file), comment("ignore-file")].join("\n\n")
}
