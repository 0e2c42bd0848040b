//! The `surefoot-zoo` program.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use serde_json::Value;
use std::process::{Command, Output};

fn zoo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_surefoot-zoo")).args(arguments).output().unwrap()
}

#[test]
fn a_small_zoo_ends_with_its_tables() {
    let output = zoo(&["--seed", "1", "--cases", "13", "--filter", "moons", "--json"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (tables, rows) = events.split_last().unwrap();
    assert_eq!(tables["event"], "zoo");
    assert_eq!(tables["cases"], rows.len());
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row["event"] == "case" && row["data"] == "moons"));
}

#[test]
fn an_unknown_filter_is_rejected_with_the_known_names() {
    let output = zoo(&["--cases", "20", "--filter", "dying_rely"]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(shown.contains("unknown filter `dying_rely`"), "{shown}");
    assert!(shown.contains("circles"), "{shown}");
}

#[test]
fn every_table_of_the_papers_prints_both_rules() {
    for table in ["remedies", "thresholds", "intervals", "quality", "indicators"] {
        let output = zoo(&[table, "--seed", "1", "--cases", "12", "--filter", "circles", "--json"]);
        assert!(output.status.success(), "{table}: {output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let other = if table == "indicators" { "bttackler" } else { "autotrainer" };
        for rules in ["surefoot", other] {
            assert!(lines.iter().any(|line| line["rules"] == rules), "{table}: {lines:?}");
        }
    }
}
