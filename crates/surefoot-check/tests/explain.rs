//! The examples on the pages of the rules are what they say they are.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use surefoot_check::{CheckConfig, Finding, Rule, check};

/// What is found in a script.
fn found(text: &str) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    std::fs::write(&path, text).unwrap();
    let checked = check(&[path], &CheckConfig::default());
    assert_eq!(checked.unreadable, []);
    checked.findings
}

/// The rules of which something is not so, with what was found instead.
fn wrong(is_wrong: impl Fn(Rule) -> Option<Vec<Finding>>) -> Vec<String> {
    let wrong = Rule::ALL.into_iter().filter_map(|rule| {
        let findings = is_wrong(rule)?;
        let told = findings.iter().map(|it| format!("\n    {}: {}", it.rule, it.message));
        Some(format!("{rule}:{}", told.collect::<String>()))
    });
    wrong.collect()
}

#[test]
fn every_faulty_example_is_found_to_be_faulty() {
    let wrong = wrong(|rule| {
        let findings = found(rule.explanation().faulty);
        let is_told = findings.iter().any(|it| it.rule == rule);
        (!is_told).then_some(findings)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_sound_example_has_nothing_to_be_found() {
    let wrong = wrong(|rule| {
        let findings = found(rule.explanation().sound);
        (!findings.is_empty()).then_some(findings)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
