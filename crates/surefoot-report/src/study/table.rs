//! Tables of trials that fold all but the first rows.

use maud::{Markup, html};

use crate::format::counted;

/// Number of visible rows.
const SHOWN: usize = 10;

/// Draws a table.
pub(super) fn table(head: &Markup, rows: &[Markup]) -> Markup {
    let (first, rest) = rows.split_at(rows.len().min(SHOWN));
    html! {
        (part(head, first))
        @if !rest.is_empty() {
            details {
                summary { (counted(rest.len() as u64, "more trial")) }
                (part(head, rest))
            }
        }
    }
}

fn part(head: &Markup, rows: &[Markup]) -> Markup {
    html! {
        table.trials {
            thead { (head) }
            tbody { @for row in rows { (row) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_rows_are_folded() {
        let rows: Vec<Markup> = (0..12).map(|i| html! { tr { td { (i) } } }).collect();
        let drawn = table(&html! { tr {} }, &rows).into_string();
        let (shown, rest) = drawn.split_once("<details>").expect("more");
        assert_eq!(shown.matches("<td>").count(), SHOWN);
        assert!(rest.contains("2 more trials") && rest.contains("<td>11</td>"));
        assert!(!table(&html! {}, &rows[..3]).into_string().contains("<details>"));
    }
}
