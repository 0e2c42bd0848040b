//! Summary, best trial, and reasons for pruning.

use std::collections::BTreeMap;

use maud::{Markup, html};
use surefoot_tune::storage::TrialState;
use surefoot_tune::study::ObjectiveKind;

use super::axis::{cut, shown};
use super::status::Status;
use super::{StudyPage, StudyTrial};
use crate::format::{self, argument, capital, counted, grouped, listed};

/// Maximum number of reasons.
const REASONS: usize = 20;

/// Draws the summary.
pub(super) fn header(page: &StudyPage<'_>, ranking: &[(StudyTrial<'_>, f64)]) -> Markup {
    let open = count(page, Status::Unfinished);
    let (class, tag) = match (page.trials.len(), open, ranking.is_empty()) {
        (0, _, _) => ("neutral", "not started"),
        (_, 1.., _) => ("neutral", "running"),
        (_, 0, true) => ("bad", "no result"),
        (_, 0, false) => ("good", "done"),
    };
    let reasons = Reasons::of(page);
    html! {
        header {
            p.eyebrow { "surefoot study report" }
            h1 { (page.name) " " span.tag.(class) { (tag) } }
            p.story { @for sentence in story(page, ranking, &reasons) { (sentence) " " } }
            (figures(page, ranking, &reasons))
        }
        @if let Some((best, _)) = ranking.first() { (the_best(page, best)) }
        (reasons.section())
    }
}

fn count(page: &StudyPage<'_>, status: Status) -> usize {
    let trials = page.trials.iter().map(StudyTrial::status);
    trials.filter(|other| *other == status).count()
}

fn story(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    reasons: &Reasons<'_>,
) -> Vec<String> {
    if page.trials.is_empty() {
        return vec!["No trial has started yet.".to_owned()];
    }
    let mut sentences = vec![match ranking.first() {
        Some((trial, value)) => format!(
            "The best {} is {}, reached by trial {}.",
            page.objective_name(),
            format::number(*value),
            trial.number()
        ),
        None => "No trial has produced a result.".to_owned(),
    }];
    sentences.push(counts(page));
    if let Some(saved) = reasons.saved().filter(|saved| *saved > 0.0) {
        sentences.push(format!("Pruning saved {} of the planned epochs.", share(saved)));
    }
    sentences
}

/// Number of trials in each state.
fn counts(page: &StudyPage<'_>) -> String {
    if let [only] = page.trials.as_slice() {
        return format!("The only trial {}.", ended(only.status(), 1));
    }
    let statuses =
        [Status::Complete, Status::Paused, Status::Pruned, Status::Failed, Status::Unfinished];
    let mut parts: Vec<String> = Vec::new();
    for status in statuses {
        let count = count(page, status) as u64;
        if count > 0 {
            parts.push(format!("{} {}", grouped(count), ended(status, count)));
        }
    }
    let all = counted(page.trials.len() as u64, "trial");
    format!("Of {all}, {}.", listed(&parts))
}

/// Verb phrase for a number of trials in a state.
fn ended(status: Status, count: u64) -> &'static str {
    match (status, count) {
        (Status::Complete, 1) => "is complete",
        (Status::Complete, _) => "are complete",
        (Status::Pruned, 1) => "was pruned",
        (Status::Pruned, _) => "were pruned",
        (Status::Failed, 1) => "failed",
        (Status::Failed, _) => "failed",
        (Status::Paused, 1) => "is paused",
        (Status::Paused, _) => "are paused",
        (Status::Unfinished, 1) => "is unfinished",
        (Status::Unfinished, _) => "are unfinished",
    }
}

/// Draws the key figures.
fn figures(
    page: &StudyPage<'_>,
    ranking: &[(StudyTrial<'_>, f64)],
    reasons: &Reasons<'_>,
) -> Markup {
    if page.trials.is_empty() {
        return html! {};
    }
    let seconds: f64 = page.trials.iter().filter_map(StudyTrial::seconds).sum();
    let reports = page.trials.iter().flat_map(|trial| trial.reports);
    let operations: f64 = reports.map(|report| report.operations).sum();
    html! {
        dl.figures {
            div {
                dt { "Best " (page.objective_name()) }
                dd {
                    @match ranking.first() {
                        Some((_, value)) => (format::number(*value)),
                        None => "none",
                    }
                }
            }
            div { dt { "Trials" } dd { (grouped(page.trials.len() as u64)) } }
            @if let Some(saved) = reasons.saved() {
                div { dt { "Epochs saved" } dd { (share(saved)) } }
            }
            @if seconds > 0.0 { div { dt { "Total trial time" } dd { (format::time(seconds)) } } }
            @if operations > 0.0 { div { dt { "Multiplications" } dd { (format::number(operations)) } } }
        }
    }
}

/// Draws the best trial.
fn the_best(page: &StudyPage<'_>, best: &StudyTrial<'_>) -> Markup {
    let parameters = page.space.parameters().iter();
    let point = best.trial.point.as_ref();
    // The output of a command has no report.
    let is_command = page.objective == ObjectiveKind::Value;
    html! {
        section #the-best {
            h2 { "Best trial" }
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
                    dd { (epochs(best)) @if best.status() == Status::Paused { ", paused" } }
                    @if let Some(run) = &best.trial.run {
                        dt { @if is_command { "Output" } @else { "Run" } }
                        dd { code { (run) } }
                    }
                }
                @if let Some(run) = best.trial.run.as_ref().filter(|_| !is_command) {
                    p.command { span { "Report of the run:" } code { "surefoot report " (argument(run)) } }
                }
            }
        }
    }
}

/// Reported and planned epochs: `12 of 20`.
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

/// Reasons for pruning and the epochs saved.
#[derive(Debug)]
struct Reasons<'a> {
    /// Planned epochs of all finished trials.
    planned: f64,
    stopped: BTreeMap<&'a str, Pruned<'a>>,
}

/// Trials pruned for one reason.
#[derive(Clone, Copy, Debug, Default)]
struct Pruned<'a> {
    trials: u64,
    saved: f64,
    example: &'a str,
}

impl<'a> Reasons<'a> {
    fn of(page: &StudyPage<'a>) -> Reasons<'a> {
        let mut planned = 0.0;
        let mut stopped: BTreeMap<&str, Pruned<'_>> = BTreeMap::new();
        for trial in &page.trials {
            let Some(end) = trial.trial.final_state() else {
                continue;
            };
            let all = trial.trial.planned.map_or(0.0, f64::from);
            planned += all;
            if let TrialState::Pruned { reason, .. } = end {
                let entry = stopped.entry(reason.by.as_str()).or_default();
                entry.trials += 1;
                entry.saved += (all - trial.reports.len() as f64).max(0.0);
                entry.example = &reason.message;
            }
        }
        Reasons { planned, stopped }
    }

    /// Fraction of the planned epochs saved by pruning, if known.
    fn saved(&self) -> Option<f64> {
        let saved: f64 = self.stopped.values().map(|stopped| stopped.saved).sum();
        let is_known = self.planned > 0.0 && !self.stopped.is_empty();
        is_known.then(|| saved / self.planned)
    }

    fn section(&self) -> Markup {
        if self.stopped.is_empty() {
            return html! {};
        }
        let mut rows: Vec<(&str, Pruned<'_>)> =
            self.stopped.iter().map(|(by, stopped)| (*by, *stopped)).collect();
        rows.sort_by_key(|(_, stopped)| std::cmp::Reverse(stopped.trials));
        let left_out = rows.len().saturating_sub(REASONS);
        html! {
            section #reasons {
                h2 { "Why trials were pruned" }
                table.trials {
                    thead {
                        tr {
                            th { "Pruned by" }
                            th.figure { "Trials" }
                            th.figure { "Epochs saved" }
                            th.text { "Last example" }
                        }
                    }
                    tbody {
                        @for (by, stopped) in rows.into_iter().take(REASONS) {
                            tr {
                                th.word scope="row" { (cut(by, 40)) }
                                td.figure { (grouped(stopped.trials)) }
                                td.figure {
                                    @if self.planned > 0.0 { (share(stopped.saved / self.planned)) } @else { "–" }
                                }
                                td.text { (cut(stopped.example, 200)) }
                            }
                        }
                    }
                }
                p.note {
                    "Percentages are of the planned epochs of all finished trials."
                    @if left_out > 0 { " " (counted(left_out as u64, "other reason")) " not shown." }
                }
            }
        }
    }
}

/// Draws the section on the study itself.
pub(super) fn study_section(page: &StudyPage<'_>) -> Markup {
    /// Limits the size of the page.
    const LETTERS: usize = 20_000;
    html! {
        section.reproduction #reproduction {
            h2 { "Study" }
            dl.facts {
                dt { "Store" } dd { code { (page.store) } }
                dt { "Objective" } dd { (capital(page.objective_name())) ", to " (page.direction) }
                dt { "Seed of the sampler" } dd { (page.seed) }
                dt { "Version" } dd { "surefoot " (page.program) }
            }
            p.command { span { "Write this page again:" } code {
                "surefoot report " (argument(page.store)) " --study " (argument(page.name))
            } }
            @if !page.document.trim().is_empty() {
                details {
                    summary { "Study file" }
                    pre { (cut(page.document, LETTERS)) }
                }
            }
        }
    }
}
