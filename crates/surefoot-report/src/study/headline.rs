//! The first sentences: what was found, what it took, and why trials were stopped.

use std::collections::BTreeMap;

use maud::{Markup, html};
use surefoot_tune::store::{End, State};
use surefoot_tune::study::ObjectiveKind;

use super::axis::{cut, shown};
use super::outcome::Outcome;
use super::{StudyPage, StudyTrial};
use crate::words::{self, argument, capital, counted, grouped, listed};

/// How many reasons are listed.
const REASONS: usize = 20;

/// The head of the page.
pub(super) fn header(page: &StudyPage<'_>, ranking: &[(StudyTrial<'_>, f64)]) -> Markup {
    let open = count(page, Outcome::Open);
    let (class, tag) = match (page.trials.len(), open, ranking.is_empty()) {
        (0, _, _) => ("neutral", "not begun"),
        (_, 1.., _) => ("neutral", "not over"),
        (_, 0, true) => ("bad", "no result"),
        (_, 0, false) => ("good", "done"),
    };
    let reasons = Reasons::of(page);
    html! {
        header {
            p.eyebrow { "surefoot report of a study" }
            h1 { (page.name) " " span.tag.(class) { (tag) } }
            p.story { @for sentence in story(page, ranking, &reasons) { (sentence) " " } }
            (figures(page, ranking, &reasons))
        }
        @if let Some((best, _)) = ranking.first() { (the_best(page, best)) }
        (reasons.section())
    }
}

fn count(page: &StudyPage<'_>, outcome: Outcome) -> usize {
    let trials = page.trials.iter().map(StudyTrial::outcome);
    trials.filter(|other| *other == outcome).count()
}

fn story(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    reasons: &Reasons<'_>,
) -> Vec<String> {
    if page.trials.is_empty() {
        return vec!["No trial has begun yet.".to_owned()];
    }
    let mut sentences = vec![match ranking.first() {
        Some((trial, value)) => format!(
            "The best {} is {}, reached by trial {}.",
            page.objective_name(),
            words::number(*value),
            trial.number()
        ),
        None => "No trial has come to a result.".to_owned(),
    }];
    sentences.push(counts(page));
    if let Some(spared) = reasons.spared().filter(|spared| *spared > 0.0) {
        sentences
            .push(format!("Stopping spared {} of the epochs that were planned.", share(spared)));
    }
    sentences
}

/// What became of the trials, in a sentence.
fn counts(page: &StudyPage<'_>) -> String {
    if let [only] = page.trials.as_slice() {
        return format!("The only trial {}.", ended(only.outcome(), 1));
    }
    let outcomes = [Outcome::Complete, Outcome::Stopped, Outcome::Failed, Outcome::Open];
    let mut parts: Vec<String> = Vec::new();
    for outcome in outcomes {
        let count = count(page, outcome) as u64;
        if count > 0 {
            parts.push(format!("{} {}", grouped(count), ended(outcome, count)));
        }
    }
    let all = counted(page.trials.len() as u64, "trial");
    format!("Of {all}, {}.", listed(&parts))
}

/// What became of so many trials, to follow their number.
fn ended(outcome: Outcome, count: u64) -> &'static str {
    match (outcome, count) {
        (Outcome::Complete, 1) => "is complete",
        (Outcome::Complete, _) => "are complete",
        (Outcome::Stopped, 1) => "was stopped",
        (Outcome::Stopped, _) => "were stopped",
        (Outcome::Failed, 1) => "has failed",
        (Outcome::Failed, _) => "have failed",
        (Outcome::Open, 1) => "is not over",
        (Outcome::Open, _) => "are not over",
    }
}

/// The few numbers that matter most.
fn figures(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    reasons: &Reasons<'_>,
) -> Markup {
    if page.trials.is_empty() {
        return html! {};
    }
    let seconds: f64 = page.trials.iter().filter_map(|t| t.trial.seconds).sum();
    let reports = page.trials.iter().flat_map(|trial| trial.reports);
    let operations: f64 = reports.map(|report| report.operations).sum();
    html! {
        dl.figures {
            div {
                dt { "Best " (page.objective_name()) }
                dd {
                    @match ranking.first() {
                        Some((_, value)) => (words::number(*value)),
                        None => "none",
                    }
                }
            }
            div { dt { "Trials" } dd { (grouped(page.trials.len() as u64)) } }
            @if let Some(spared) = reasons.spared() {
                div { dt { "Epochs spared" } dd { (share(spared)) } }
            }
            @if seconds > 0.0 { div { dt { "Time of all trials" } dd { (words::time(seconds)) } } }
            @if operations > 0.0 { div { dt { "Multiplications" } dd { (words::number(operations)) } } }
        }
    }
}

/// The best trial, with what it takes to have it again.
fn the_best(page: &StudyPage<'_>, best: &StudyTrial<'_>) -> Markup {
    let parameters = page.space.parameters().iter();
    let point = best.trial.point.as_ref();
    // What a command leaves behind has no report of its own.
    let is_command = page.objective == ObjectiveKind::Value;
    html! {
        section #the-best {
            h2 { "The best trial" }
            div.card {
                h3 { "Trial " (best.number()) }
                dl.facts {
                    @for parameter in parameters {
                        @if let Some(value) = point.and_then(|point| point.get(&parameter.name)) {
                            dt { (cut(&parameter.name, 80)) }
                            dd { (shown(value)) }
                        }
                    }
                    dt { "Epochs" }
                    dd { (epochs(best)) }
                    @if let Some(run) = &best.trial.run {
                        dt { @if is_command { "Output" } @else { "Run" } }
                        dd { code { (run) } }
                    }
                }
                @if let Some(run) = best.trial.run.as_ref().filter(|_| !is_command) {
                    p.command { span { "Its own report:" } code { "surefoot report " (argument(run)) } }
                }
            }
        }
    }
}

/// How far a trial came: `12 of 20`.
pub(super) fn epochs(trial: &StudyTrial<'_>) -> String {
    let done = grouped(trial.reports.len() as u64);
    match trial.trial.planned {
        Some(planned) => format!("{done} of {}", grouped(planned.into())),
        None => done,
    }
}

fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 0.5 => "less than 1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

/// Why trials were stopped, and what that spared.
#[derive(Debug)]
struct Reasons<'a> {
    /// The epochs that were planned for trials that are over.
    planned: f64,
    stopped: BTreeMap<&'a str, Stopped<'a>>,
}

/// What one reason did.
#[derive(Clone, Copy, Debug, Default)]
struct Stopped<'a> {
    trials: u64,
    spared: f64,
    example: &'a str,
}

impl<'a> Reasons<'a> {
    fn of(page: &StudyPage<'a>) -> Reasons<'a> {
        let mut planned = 0.0;
        let mut stopped: BTreeMap<&str, Stopped<'_>> = BTreeMap::new();
        for trial in &page.trials {
            let State::Over(end) = &trial.trial.state else {
                continue;
            };
            let all = trial.trial.planned.map_or(0.0, f64::from);
            planned += all;
            if let End::Stopped { reason, .. } = end {
                let entry = stopped.entry(reason.by.as_str()).or_default();
                entry.trials += 1;
                entry.spared += (all - trial.reports.len() as f64).max(0.0);
                entry.example = &reason.message;
            }
        }
        Reasons { planned, stopped }
    }

    /// The share of the planned epochs that was spared, if trials were stopped and it is known.
    fn spared(&self) -> Option<f64> {
        let spared: f64 = self.stopped.values().map(|stopped| stopped.spared).sum();
        let is_known = self.planned > 0.0 && !self.stopped.is_empty();
        is_known.then(|| spared / self.planned)
    }

    fn section(&self) -> Markup {
        if self.stopped.is_empty() {
            return html! {};
        }
        let mut rows: Vec<(&str, Stopped<'_>)> =
            self.stopped.iter().map(|(by, stopped)| (*by, *stopped)).collect();
        rows.sort_by_key(|(_, stopped)| std::cmp::Reverse(stopped.trials));
        let left_out = rows.len().saturating_sub(REASONS);
        html! {
            section #reasons {
                h2 { "Why trials were stopped" }
                table.trials {
                    thead {
                        tr {
                            th { "PruneReason" }
                            th.figure { "Trials" }
                            th.figure { "Epochs spared" }
                            th.text { "The last one" }
                        }
                    }
                    tbody {
                        @for (by, stopped) in rows.into_iter().take(REASONS) {
                            tr {
                                th.word scope="row" { (cut(by, 40)) }
                                td.figure { (grouped(stopped.trials)) }
                                td.figure {
                                    @if self.planned > 0.0 { (share(stopped.spared / self.planned)) } @else { "–" }
                                }
                                td.text { (cut(stopped.example, 200)) }
                            }
                        }
                    }
                }
                p.note {
                    "Shares are of all epochs that were planned for trials that are over."
                    @if left_out > 0 { " " (counted(left_out as u64, "other reason")) " are left out." }
                }
            }
        }
    }
}

/// Where all this comes from.
pub(super) fn small_print(page: &StudyPage<'_>) -> Markup {
    /// A study file may have any size; the page may not.
    const LETTERS: usize = 20_000;
    html! {
        section.small-print #small-print {
            h2 { "Small print" }
            dl.facts {
                dt { "Store" } dd { code { (page.store) } }
                dt { "Objective" } dd { (capital(page.objective_name())) ", to " (page.direction) }
                dt { "Seed of the sampler" } dd { (page.seed) }
                dt { "Made by" } dd { "surefoot " (page.program) }
            }
            p.command { span { "This page again:" } code {
                "surefoot report " (argument(page.store)) " --study " (argument(page.name))
            } }
            @if !page.document.trim().is_empty() {
                details {
                    summary { "The study file" }
                    pre { (cut(page.document, LETTERS)) }
                }
            }
        }
    }
}
