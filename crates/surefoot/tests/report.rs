//! `surefoot report`: what it writes, where, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use support::{CIRCLES, Folder};

/// A folder with one finished run, `runs/circles-001`.
fn trained() -> Folder {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.digest(&["circles.toml"]);
    folder
}

#[test]
fn the_page_is_beside_the_record_unless_said_otherwise() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001"]);
    assert_snapshot!(outcome.shown());
    let page = std::fs::read_to_string(folder.path().join("runs/circles-001/report.html")).unwrap();
    assert!(page.contains("and no problem was found. Accuracy on the validation split is"));

    let outcome = folder.run(&["report", "runs/circles-001", "-o", "page.html"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let other = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!(other, page, "the same record, the same bytes");

    let outcome = folder.run(&["report", "runs/circles-001", "-o", "-"]);
    assert_eq!(outcome.stdout.trim_end(), page.trim_end());
    assert!(!folder.path().join("-").exists());
}

#[test]
fn programs_are_told_the_file() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001", "--json"]);
    assert_eq!(
        outcome.stdout,
        "{\"event\":\"report\",\"file\":\"runs/circles-001/report.html\"}\n"
    );
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["report", "elsewhere"]).shown());
    assert_snapshot!(folder.run(&["report", "x", "--json", "-o", "-"]).shown());
}

#[test]
fn a_place_that_cannot_be_written_is_no_fault_of_the_run() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001", "-o", "no/such/folder.html"]);
    assert_snapshot!(outcome.shown());
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["report", "--help"]).shown());
}
