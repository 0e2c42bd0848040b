//! `surefoot report`: output, default files and errors.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use insta::assert_snapshot;
use support::search::{STUDY, search, searched};
use support::{CIRCLES, Folder};

/// A folder with one finished run, `runs/circles-001`.
fn trained() -> Folder {
    let folder = Folder::with("circles.toml", CIRCLES);
    folder.digest(&["circles.toml"]);
    folder
}

#[test]
fn the_default_file_is_in_the_run_directory() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001"]);
    assert_snapshot!(outcome.shown());
    let page = std::fs::read_to_string(folder.path().join("runs/circles-001/report.html")).unwrap();
    assert!(page.contains("and no problem was found. Accuracy on the validation split is"));

    let outcome = folder.run(&["report", "runs/circles-001", "-o", "page.html"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let other = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!(other, page, "pages are deterministic");

    let outcome = folder.run(&["report", "runs/circles-001", "-o", "-"]);
    assert_eq!(outcome.stdout.trim_end(), page.trim_end());
    assert!(!folder.path().join("-").exists());
}

#[test]
fn json_has_the_file_name() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001", "--json"]);
    assert_eq!(
        outcome.stdout,
        "{\"event\":\"report\",\"file\":\"runs/circles-001/report.html\"}\n"
    );
}

#[test]
fn other_paths_are_rejected() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["report", "elsewhere"]).shown());
    assert_snapshot!(folder.run(&["report", "x", "--json", "-o", "-"]).shown());
    folder.write("empty/notes.txt", "Unrelated.");
    assert_snapshot!(folder.run(&["report", "empty"]).shown());
    assert_snapshot!(folder.run(&["report", "empty/notes.txt"]).shown());
}

#[test]
fn the_page_of_a_study_is_next_to_its_store() {
    let folder = searched();
    for path in ["runs/numbers", "runs/numbers/study.db", "sqlite:runs/numbers/study.db"] {
        let page = folder.path().join("runs/numbers/report.html");
        let outcome = folder.run(&["report", path, "--json"]);
        assert_eq!(
            outcome.stdout, "{\"event\":\"report\",\"file\":\"runs/numbers/report.html\"}\n",
            "{}",
            outcome.stderr
        );
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("The best value is 0.4, reached by trial 5."));
        std::fs::remove_file(page).unwrap();
    }
}

#[test]
fn one_of_several_studies_must_be_named() {
    let folder = searched();
    folder.write("others.toml", &STUDY.replace("\"numbers\"", "\"others\""));
    search(&folder, "others.toml", &["--store", "runs/numbers/study.db"]);
    assert_snapshot!(folder.run(&["report", "runs/numbers"]).shown());
    assert_snapshot!(folder.run(&["report", "runs/numbers", "--study", "no"]).shown());
    let outcome = folder.run(&["report", "runs/numbers", "--study", "others", "-o", "-"]);
    assert!(outcome.stdout.contains("<h1>others"), "{}", outcome.stderr);
}

#[test]
fn an_unwritable_file_is_an_error() {
    let folder = trained();
    let outcome = folder.run(&["report", "runs/circles-001", "-o", "no/such/folder.html"]);
    assert_snapshot!(outcome.shown());
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    assert_snapshot!(folder.run(&["report", "--help"]).shown());
}
