//! Tests: the page as a whole, of studies of all kinds.

use super::fixture::{Made, complete, failed, parameter, stopped};
use super::study_report;
use surefoot_tune::store::State;
use surefoot_tune::{Direction, Domain, Point, Space, Value};

fn page(made: &Made) -> String {
    let page = study_report(&made.page());
    // Whatever the numbers were, no place in a chart is none.
    for wrong in ["NaN%", "inf%", "MNaN", "LNaN", " NaN\"", "Minf"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    page
}

fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_study_is_told_from_its_best_trial_to_its_small_print() {
    let made = Made::study(200);
    let page = page(&made);
    has(
        &page,
        &[
            "The best validation metric is",
            "Of 200 trials, 131 are complete, 62 were stopped, 4 have failed and 3 are not over.",
            "of the epochs that were planned.",
            "id=\"history-title\"",
            "id=\"courses-title\"",
            "id=\"parallel-title\"",
            "id=\"slice-4-title\"",
            "id=\"timeline-title\"",
            "Why trials were stopped",
            "The best trials",
            "Trials that were stopped",
            "What went wrong",
            "not there",
            "A trial that was stopped has what it had reached by then.",
            "Epochs spared",
            "Those at “–” do not have the parameter.",
            "surefoot report runs/digits/trial-00",
            "surefoot report runs/digits/study.db --study digits",
            "4711-2",
            "class=\"thread r9\"",
        ],
    );
}

#[test]
fn a_study_without_trials_says_so() {
    let page = page(&Made::of(Vec::new()));
    has(&page, &["No trial has begun yet.", "not begun"]);
    assert!(!page.contains("<svg"));
}

#[test]
fn one_trial_makes_a_page() {
    let page = page(&Made::of(vec![complete(0.5)]));
    has(
        &page,
        &["The best validation loss is 0.5, reached by trial 0.", "The only trial is complete."],
    );
}

#[test]
fn where_nothing_was_stopped_nothing_is_said_of_stopping() {
    let page = page(&Made::of(vec![complete(0.5), complete(0.4)]));
    assert!(!page.contains("stopped has") && !page.contains("Epochs spared"));
}

#[test]
fn trials_were_stopped_and_have_failed() {
    let only = page(&Made::of(vec![failed("no disk")]));
    has(&only, &["The only trial has failed."]);
    let all = page(&Made::of(vec![stopped(None, "plc"); 3]));
    has(&all, &["Of 3 trials, 3 were stopped."]);
}

#[test]
fn when_all_have_failed_there_is_no_best() {
    let page = page(&Made::of(vec![failed("no disk"); 5]));
    has(
        &page,
        &["No trial has come to a result.", "no result", "no disk", "<td class=\"figure\">5</td>"],
    );
    assert!(!page.contains("The best trials"));
}

#[test]
fn numbers_that_are_none_are_never_the_best() {
    let states = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 3.0].map(complete);
    let page = page(&Made::of(states.to_vec()));
    has(&page, &["The best validation loss is 3, reached by trial 3.", "came to no number"]);
}

#[test]
fn values_that_are_all_the_same_make_a_page() {
    for value in [0.0, 0.25, -1e300, f64::MAX] {
        let made = Made::of(vec![complete(value); 30]);
        has(&page(&made), &["All 30 complete trials reached the same"]);
    }
}

#[test]
fn the_best_is_the_lowest_or_the_highest_as_the_study_says() {
    let mut made = Made::of(vec![complete(0.5), complete(0.2), complete(0.9)]);
    has(&page(&made), &["The best validation loss is 0.2, reached by trial 1."]);
    made.direction = Direction::Maximize;
    has(&page(&made), &["The best validation metric is 0.9, reached by trial 2."]);
}

#[test]
fn trials_that_wait_and_run_are_not_over() {
    let mut made = Made::of(vec![State::Waiting, State::Running, State::Lost]);
    made.trials[0].0.point = None;
    made.trials[0].0.attempts.clear();
    made.trials[0].1.clear();
    has(&page(&made), &["not over", "Of 3 trials, 3 are not over."]);
}

#[test]
fn a_study_without_parameters_has_no_charts_of_them() {
    let mut made = Made::of(vec![complete(0.5), complete(0.4)]);
    made.space = Space::new(Vec::new()).expect("a space");
    let page = page(&made);
    assert!(!page.contains("id=\"parallel\"") && !page.contains("id=\"slices\""));
}

#[test]
fn what_others_wrote_can_neither_run_nor_load() {
    let evil = "</title><script>alert(1)</script><img src=\"https://example.org/x\" onerror='x'>";
    let mut made = Made::of(vec![failed(evil), stopped(None, evil), complete(0.5)]);
    made.name = evil.to_owned();
    made.trials[2].0.run = Some(evil.to_owned());
    made.trials[2].0.attempts[0].worker = evil.to_owned();
    let choice = Domain::Choice(vec![Value::Text(evil.to_owned())]);
    let parameter = parameter(evil, choice);
    made.space = Space::new(vec![parameter]).expect("a space");
    for (trial, _) in &mut made.trials {
        let mut point = Point::default();
        point.0.insert(evil.to_owned(), Value::Text(evil.to_owned()));
        trial.point = Some(point);
    }
    let page = page(&made);
    has(&page, &["&lt;script&gt;alert(1)"]);
    for part in ["<script", "<img", "src=\"", "url(http", "@import"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn the_same_study_gives_the_same_bytes() {
    let made = Made::study(120);
    assert_eq!(page(&made), page(&made));
}

#[test]
fn a_study_of_ten_thousand_trials_has_a_page_that_opens_at_once() {
    let made = Made::study(10_000);
    let page = page(&made);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    has(&page, &["400 of 10,000 trials are shown", "The best 50 of"]);
}

#[test]
fn many_parameters_are_cut_down_to_those_that_matter() {
    let mut made = Made::study(60);
    let names: Vec<String> = (0..200).map(|i| format!("parameter {i}")).collect();
    let parameters = names.iter().map(|name| parameter(name, Domain::Uniform(0.0, 1.0)));
    made.space = Space::new(parameters.collect()).expect("a space");
    for (number, (trial, _)) in made.trials.iter_mut().enumerate() {
        let mut place = number as f64;
        trial.point = Some(made.space.point(|parameter| {
            place = (place * 1.37 + 0.11).fract();
            parameter.domain.at(place)
        }));
    }
    let page = page(&made);
    has(&page, &["The 24 most important parameters are shown; 176 are left out."]);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}
