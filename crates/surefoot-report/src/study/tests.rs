//! Tests of the whole page for different studies.

use super::fixture::{Made, complete, failed, parameter, reports, stopped};
use super::study_report;
use surefoot_tune::storage::TrialState;
use surefoot_tune::{Direction, Domain, Point, Space, Value};

fn page(made: &Made) -> String {
    let page = study_report(&made.page());
    // No position in a chart is NaN.
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
fn a_page_has_all_sections() {
    let made = Made::study(200);
    let page = page(&made);
    has(
        &page,
        &[
            "The best validation metric is",
            "Of 200 trials, 131 are complete, 62 were pruned, 4 failed and 3 are unfinished.",
            "of the planned epochs.",
            "id=\"history-title\"",
            "id=\"curves-title\"",
            "id=\"parallel-title\"",
            "id=\"slice-4-title\"",
            "id=\"timeline-title\"",
            "Why trials were pruned",
            "Best trials",
            "Pruned trials",
            "Errors",
            "absent",
            "The value of a pruned trial is its last reported value.",
            "Epochs saved",
            "Trials at “–” do not have the parameter.",
            "surefoot report runs/digits/trial-00",
            "surefoot report runs/digits/study.db --study digits",
            "4711-2",
            "class=\"thread r9\"",
        ],
    );
}

#[test]
fn a_study_without_trials_has_a_page() {
    let page = page(&Made::of(Vec::new()));
    has(&page, &["No trial has started yet.", "not started"]);
    assert!(!page.contains("<svg"));
}

#[test]
fn a_study_with_one_trial_has_a_page() {
    let page = page(&Made::of(vec![complete(0.5)]));
    has(
        &page,
        &["The best validation loss is 0.5, reached by trial 0.", "The only trial is complete."],
    );
}

#[test]
fn a_page_without_pruned_trials_does_not_mention_pruning() {
    let page = page(&Made::of(vec![complete(0.5), complete(0.4)]));
    assert!(!page.contains("pruned trial") && !page.contains("Epochs saved"));
}

#[test]
fn trials_may_be_pruned_and_failed() {
    let only = page(&Made::of(vec![failed("no disk")]));
    has(&only, &["The only trial failed."]);
    let all = page(&Made::of(vec![stopped(None, "plc"); 3]));
    has(&all, &["Of 3 trials, 3 were pruned."]);
}

#[test]
fn there_is_no_best_trial_if_all_failed() {
    let page = page(&Made::of(vec![failed("no disk"); 5]));
    has(
        &page,
        &["No trial has produced a result.", "no result", "no disk", "<td class=\"figure\">5</td>"],
    );
    assert!(!page.contains("Best trials"));
}

#[test]
fn non_finite_values_are_never_the_best() {
    let states = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 3.0].map(complete);
    let page = page(&Made::of(states.to_vec()));
    has(&page, &["The best validation loss is 3, reached by trial 3.", "have no finite value"]);
}

#[test]
fn equal_values_have_a_page() {
    for value in [0.0, 0.25, -1e300, f64::MAX] {
        let made = Made::of(vec![complete(value); 30]);
        has(&page(&made), &["All 30 trials have the same value"]);
    }
}

#[test]
fn the_best_depends_on_the_direction() {
    let mut made = Made::of(vec![complete(0.5), complete(0.2), complete(0.9)]);
    has(&page(&made), &["The best validation loss is 0.2, reached by trial 1."]);
    made.direction = Direction::Maximize;
    has(&page(&made), &["The best validation metric is 0.9, reached by trial 2."]);
}

#[test]
fn a_paused_trial_counts_with_its_best_value() {
    let mut made = Made::of(vec![complete(0.5), TrialState::Paused]);
    made.trials[1].1 = reports(&[0.9, 0.3, 0.6]);
    has(
        &page(&made),
        &[
            "The best validation loss is 0.3, reached by trial 1.",
            "Of 2 trials, 1 is complete and 1 is paused.",
            "3 of 20, paused",
            "The value of a paused trial is its best so far.",
        ],
    );
}

#[test]
fn waiting_and_running_trials_are_unfinished() {
    let mut made = Made::of(vec![TrialState::Waiting, TrialState::Running, TrialState::Lost]);
    made.trials[0].0.point = None;
    made.trials[0].0.attempts.clear();
    made.trials[0].1.clear();
    has(&page(&made), &["running", "Of 3 trials, 3 are unfinished."]);
}

#[test]
fn a_study_without_parameters_has_no_charts_of_them() {
    let mut made = Made::of(vec![complete(0.5), complete(0.4)]);
    made.space = Space::new(Vec::new()).expect("a space");
    let page = page(&made);
    assert!(!page.contains("id=\"parallel\"") && !page.contains("id=\"slices\""));
}

#[test]
fn foreign_text_is_escaped() {
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
fn pages_are_deterministic() {
    let made = Made::study(120);
    assert_eq!(page(&made), page(&made));
}

#[test]
fn the_page_of_ten_thousand_trials_is_small() {
    let made = Made::study(10_000);
    let page = page(&made);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    has(&page, &["400 of 10,000 trials are shown", "The best 50 of"]);
}

#[test]
fn only_the_most_important_of_many_parameters_are_shown() {
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
    has(&page, &["The 24 most important parameters are shown; 176 are not."]);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}
