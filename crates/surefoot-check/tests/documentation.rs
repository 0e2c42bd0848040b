//! The examples in the documentation of the rules.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use surefoot_check::{CheckConfig, Finding, Rule, check};

fn findings(script: &str) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    std::fs::write(&path, script).unwrap();
    let checked = check(&[path], &CheckConfig::default());
    assert_eq!(checked.unreadable, []);
    checked.findings
}

#[test]
fn every_example_has_a_finding_of_its_rule() {
    for rule in Rule::ALL {
        let found: Vec<Rule> =
            findings(&rule.explanation().example).iter().map(|it| it.rule).collect();
        assert!(found.contains(&rule), "{rule}: found {found:?}");
    }
}

#[test]
fn every_fixed_example_has_no_finding() {
    for rule in Rule::ALL {
        assert_eq!(findings(&rule.explanation().fixed), [], "{rule}");
    }
}
