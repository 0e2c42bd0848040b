//! What rules mean, for people at a terminal.

use crate::output::Role;
use crate::output::facts::{facts, wrapped};
use surefoot_check::Rule;

/// The width of a page: lines of prose longer than this are hard to read.
const WIDTH: usize = 80;

/// All rules, a line each.
pub(crate) fn list() -> String {
    let rows = Rule::ALL.map(|rule| (rule.id().to_owned(), rule.explanation().title.to_owned()));
    facts(&rows)
}

/// The page of a rule.
pub(crate) fn page(rule: Rule) -> String {
    let page = rule.explanation();
    let title = Role::Error.paint(rule);
    let sections = [
        prose(page.meaning),
        section("What can happen", &prose(page.consequences)),
        section("Faulty", &code(page.faulty)),
        section("Sound", &code(page.sound)),
        section("How to silence it", &silence(rule)),
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

fn silence(rule: Rule) -> String {
    let comment = |what: &str| code(&format!("# surefoot: {what}[{rule}]"));
    let line = "On the line of the finding, or alone on the line above it:";
    let file = "For a whole file, anywhere in it:";
    [prose(line), comment("ignore"), prose(file), comment("ignore-file")].join("\n\n")
}
