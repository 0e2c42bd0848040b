//! The table of best trials.

use maud::{Markup, html};

use super::axis::point_text;
use super::headline::epochs;
use super::table::table;
use super::{StudyPage, StudyTrial};
use crate::format::{self, capital, grouped};

/// Maximum number of rows.
const ROWS: usize = 50;

/// Draws the section.
pub(super) fn section(page: &StudyPage<'_>, ranking: &[(StudyTrial<'_>, f64)]) -> Markup {
    if ranking.is_empty() {
        return html! {};
    }
    let timed = ranking.iter().any(|(trial, _)| trial.seconds().is_some());
    let head = html! {
        tr {
            th.figure { "Trial" }
            th.figure { (capital(page.objective_name())) }
            th.figure { "Epochs" }
            @if timed { th.figure { "Time" } }
            th.text { "Parameters" }
        }
    };
    let rows = ranking.iter().take(ROWS).map(|(trial, value)| {
        html! {
            tr {
                td.figure { (trial.number()) }
                td.figure { (format::number(*value)) }
                td.figure { (epochs(trial)) }
                @if timed {
                    td.figure { (trial.seconds().map_or("–".to_owned(), format::time)) }
                }
                td.text { (point_text(page.space.parameters(), trial.trial.point.as_ref())) }
            }
        }
    });
    html! {
        section #best {
            h2 { "Best trials" }
            (table(&head, &rows.collect::<Vec<_>>()))
            @if ranking.len() > ROWS {
                p.note { "The best " (ROWS) " of " (grouped(ranking.len() as u64)) " trials with a result." }
            }
        }
    }
}
