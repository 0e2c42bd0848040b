//! Tables of pruned and failed trials.

use std::collections::BTreeMap;

use maud::{Markup, html};
use surefoot_tune::PruneReason;
use surefoot_tune::storage::TrialState;

use super::axis::{cut, point_text};
use super::headline::epochs;
use super::table::table;
use super::{StudyPage, StudyTrial};
use crate::format::{self, grouped};

/// Maximum number of trials.
const ROWS: usize = 50;

/// Maximum number of messages.
const FAILURES: usize = 20;

/// Draws both sections.
pub(super) fn section(page: &StudyPage<'_>) -> Markup {
    html! {
        (stopped(page))
        (failed(page))
    }
}

fn stopped(page: &StudyPage<'_>) -> Markup {
    let stopped = page.trials.iter().rev().filter_map(|trial| match trial.trial.final_state()? {
        TrialState::Pruned { value, reason } => Some((trial, *value, reason)),
        _ => None,
    });
    let stopped: Vec<(&StudyTrial<'_>, Option<f64>, &PruneReason)> = stopped.collect();
    if stopped.is_empty() {
        return html! {};
    }
    let head = html! {
        tr {
            th.figure { "Trial" }
            th { "Pruned by" }
            th.figure { "Epochs" }
            th.figure { "Value" }
            th.text { "Reason and parameters" }
        }
    };
    let rows = stopped.iter().take(ROWS).map(|(trial, value, reason)| {
        html! {
            tr {
                td.figure { (trial.number()) }
                td.word { (cut(&reason.by, 40)) }
                td.figure { (epochs(trial)) }
                td.figure { (value.map_or("–".to_owned(), format::number)) }
                td.text {
                    (cut(&reason.message, 300))
                    div.note { (point_text(page.space.parameters(), trial.trial.point.as_ref())) }
                }
            }
        }
    });
    html! {
        section #stopped {
            h2 { "Pruned trials" }
            (table(&head, &rows.collect::<Vec<_>>()))
            @if stopped.len() > ROWS {
                p.note { "The last " (ROWS) " of " (grouped(stopped.len() as u64)) "." }
            }
        }
    }
}

fn failed(page: &StudyPage<'_>) -> Markup {
    // Number of trials and first trial of each message.
    let mut messages: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for trial in &page.trials {
        if let Some(TrialState::Failed { message }) = trial.trial.final_state() {
            messages.entry(message).or_insert((0, trial.number())).0 += 1;
        }
    }
    let mut rows: Vec<(&str, (u64, u64))> = messages.into_iter().collect();
    rows.sort_by_key(|(_, (trials, first))| (std::cmp::Reverse(*trials), *first));
    if rows.is_empty() {
        return html! {};
    }
    html! {
        section #failed {
            h2 { "Errors" }
            table {
                thead {
                    tr { th.figure { "Trials" } th.figure { "First trial" } th { "Message" } }
                }
                tbody {
                    @for (message, (trials, first)) in rows.iter().take(FAILURES) {
                        tr {
                            td.figure { (grouped(*trials)) }
                            td.figure { (first) }
                            td { (cut(message, 500)) }
                        }
                    }
                }
            }
            @if rows.len() > FAILURES {
                p.note { "The " (FAILURES) " most frequent of " (grouped(rows.len() as u64)) " messages." }
            }
        }
    }
}
