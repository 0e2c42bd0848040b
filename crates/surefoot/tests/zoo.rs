//! `surefoot zoo`: the evaluation runs, and says what it does not know.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod support;

use support::Folder;

#[test]
fn a_small_zoo_ends_with_its_tables() {
    let folder = Folder::new();
    let arguments = ["zoo", "--seed", "1", "--cases", "13", "--filter", "moons", "--json"];
    let outcome = folder.run(&arguments);
    let events = outcome.events();
    let tables = events.last().unwrap();
    assert_eq!(tables["event"], "zoo");
    assert_eq!(tables["cases"], events.len() - 1);
    assert!(tables["cases"].as_u64().unwrap() > 0);
    let rows = &events[..events.len() - 1];
    assert!(rows.iter().all(|row| row["event"] == "case" && row["data"] == "moons"));
}

#[test]
fn a_filter_that_fits_nothing_is_refused_with_the_names_there_are() {
    let outcome = Folder::new().run(&["zoo", "--cases", "20", "--filter", "dying_rely"]);
    let shown = outcome.shown();
    assert!(shown.contains("no plan of the zoo is `dying_rely`"), "{shown}");
    assert!(shown.contains("circles"), "{shown}");
}
