//! Timeline: one bar per attempt at a trial, one row per worker.

use std::collections::BTreeMap;

use maud::{Markup, html};
use surefoot_tune::storage::{ClaimState, Millis, TrialAttempt};

use super::axis::cut;
use super::curves::tooltip;
use super::selection::evenly;
use super::status::{Status, legend};
use super::{StudyPage, StudyTrial};
use crate::format::counted;
use crate::scale::Scale;
use crate::svg::{percent, short, x_axis};

/// With more workers than this, consecutive workers share a row.
const WORKERS: usize = 16;

/// Maximum number of rows.
const ROWS: usize = 48;

/// Maximum number of tooltips.
const TITLES: usize = 500;

/// With more bars per row than this, bars are merged.
const CROWD: usize = 250;

/// Horizontal resolution.
const WIDTH: f64 = 2000.0;

/// Height of a row in pixels.
const ROW: f64 = 18.0;

/// An attempt at a trial.
#[derive(Clone, Copy, Debug)]
struct Bar<'a> {
    row: usize,
    from: f64,
    to: f64,
    trial: &'a StudyTrial<'a>,
    attempt: &'a TrialAttempt,
}

impl Bar<'_> {
    /// Status of the attempt; only the last attempt at a trial has the status of the trial.
    fn status(&self) -> Status {
        match self.attempt.state {
            ClaimState::Finished => self.trial.status(),
            ClaimState::Paused => Status::Paused,
            ClaimState::Running | ClaimState::Lost | ClaimState::Released => Status::Unfinished,
        }
    }

    /// First column of the bar and the column after its last.
    fn columns(&self) -> (u32, u32) {
        let first = (self.from * WIDTH).clamp(0.0, WIDTH - 1.0) as u32;
        let end = (self.to * WIDTH).clamp(0.0, WIDTH).ceil() as u32;
        (first, end.max(first + 1))
    }

    fn title(&self) -> String {
        let worker = cut(&self.attempt.worker, 60);
        let which = match self.trial.trial.attempts.len() {
            1 => String::new(),
            all => {
                format!(", attempt {} of {all}, {}", self.attempt.number, self.attempt.state.name())
            }
        };
        format!("{} (worker {worker}{which})", tooltip(self.trial))
    }
}

/// Draws the section.
pub(super) fn section(page: &StudyPage<'_>) -> Markup {
    let attempts = page.trials.iter().flat_map(|trial| {
        let attempts = trial.trial.attempts.iter();
        attempts.map(move |attempt| (trial, attempt))
    });
    let attempts: Vec<(&StudyTrial<'_>, &TrialAttempt)> = attempts.collect();
    let Some(start) = attempts.iter().map(|(_, attempt)| attempt.began).min() else {
        return html! {};
    };
    let now = last_sign(page);
    let unit = Unit::of(now - start);
    let end_of = |attempt: &TrialAttempt| attempt.ended.unwrap_or(now).max(attempt.began);
    let rows = Rows::of(attempts.iter().map(|(_, a)| (a.worker.as_str(), a.began, end_of(a))));
    let x = Scale::linear(0.0, unit.count(now - start));
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for (trial, attempt) in &attempts {
        let Some(&row) = rows.of_worker.get(attempt.worker.as_str()) else {
            continue;
        };
        bars.push(Bar {
            row,
            from: x.place(unit.count(attempt.began - start)),
            to: x.place(unit.count(end_of(attempt) - start)),
            trial,
            attempt,
        });
    }
    let height = ROW * rows.labels.len() as f64;
    html! {
        section #timeline {
            h2 { "Timeline" }
            figure.chart.heat style={ "--names: " (rows.room()) "px" } {
                figcaption {
                    span.figure-title { "Trials by worker" }
                    span.legend { (legend(bars.iter().map(Bar::status))) }
                }
                svg.plot role="img" height=(short(height)) aria-labelledby="timeline-title timeline-description" {
                    title id="timeline-title" { "Trials by worker over time" }
                    desc id="timeline-description" {
                        (counted(attempts.len() as u64, "attempt")) " at trials by " (counted(rows.workers as u64, "worker")) "."
                    }
                    rect.lanes width="100%" height="100%" {}
                    svg viewBox={ "0 0 " (WIDTH) " " (rows.labels.len() * 10) } preserveAspectRatio="none"
                        width="100%" height="100%" {
                        @for (status, path) in paths(&bars, rows.labels.len()) {
                            path.lane.(status.class()) d=(path) {}
                        }
                    }
                    g.names {
                        @for (row, label) in rows.labels.iter().enumerate() {
                            text x="-8" y=(short(ROW * (row as f64 + 0.5))) dy="0.35em" text-anchor="end" { (label) }
                        }
                    }
                    g.axis { (x_axis(&x, unit.name())) }
                    @for bar in evenly(&bars, bars.len().min(TITLES)) {
                        rect.hover x=(percent(bar.from)) y=(short(ROW * bar.row as f64))
                            width=(percent((bar.to - bar.from).max(0.002))) height=(ROW) { title { (bar.title()) } }
                    }
                }
            }
            p.note {
                @if rows.left_out > 0 { (counted(rows.left_out as u64, "worker")) " not shown. " }
                @if bars.len() > rows.labels.len() * CROWD { "Bars are merged: each spot has the color of the status that took most of its time. " }
                @if rows.shared { "Consecutive workers share a row. " }
                @if bars.len() > TITLES { (TITLES) " bars have a tooltip with" } @else { "Hover over a bar to see" }
                " the trial and why it ended. Times are from the clock of the store"
                @if bars.iter().any(|bar| bar.attempt.state != ClaimState::Finished) {
                    "; lost, released and running attempts are drawn as unfinished"
                }
                "."
            }
        }
    }
}

/// Time of the last event of the study.
fn last_sign(page: &StudyPage<'_>) -> Millis {
    let times = page.trials.iter().flat_map(|trial| {
        let attempts = trial.trial.attempts.iter();
        let attempts = attempts.flat_map(|a| [Some(a.began), a.ended]);
        let reported = trial.reports.last().map(|report| report.at);
        attempts.chain([Some(trial.trial.created), trial.trial.ended, reported])
    });
    times.flatten().max().unwrap_or(0)
}

/// Paths of the bars by status.
fn paths(bars: &[Bar<'_>], rows: usize) -> Vec<(Status, String)> {
    let crowded = bars.len() > rows * CROWD;
    let spans = if crowded { mixed(bars) } else { apart(bars) };
    let path = |status: Status| {
        let mut path = String::new();
        for (row, from, width, _) in spans.iter().filter(|span| span.3 == status) {
            let y = row * 10 + 1;
            path.push_str(&format!("M{from} {y}h{width}v8h-{width}z"));
        }
        (status, path)
    };
    let paths = Status::ALL.into_iter().map(path);
    paths.filter(|(_, path)| !path.is_empty()).collect()
}

/// Row, start, width and status of a drawn bar.
type BarSpan = (usize, u32, u32, Status);

/// Separate bars, each followed by a gap.
fn apart(bars: &[Bar<'_>]) -> Vec<BarSpan> {
    let span = |bar: &Bar<'_>| {
        let (from, to) = bar.columns();
        (bar.row, from, (to - from).saturating_sub(2).max(3), bar.status())
    };
    bars.iter().map(span).collect()
}

/// Merged bars: each column has the status that took most of its time.
fn mixed(bars: &[Bar<'_>]) -> Vec<BarSpan> {
    let mut columns: BTreeMap<(usize, u32), BTreeMap<Status, f64>> = BTreeMap::new();
    for bar in bars {
        let (first, end) = bar.columns();
        for column in first..end {
            let (left, right) = (f64::from(column), f64::from(column) + 1.0);
            let within = (bar.to * WIDTH).min(right) - (bar.from * WIDTH).max(left);
            let times = columns.entry((bar.row, column)).or_default();
            *times.entry(bar.status()).or_default() += within.max(1e-9);
        }
    }
    let mut spans: Vec<BarSpan> = Vec::new();
    for ((row, column), times) in columns {
        let longest = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((status, _)) = longest else {
            continue;
        };
        match spans.last_mut() {
            Some((r, from, width, o)) if (*r, *from + *width, *o) == (row, column, status) => {
                *width += 1;
            }
            _ => spans.push((row, column, 1, status)),
        }
    }
    spans
}

/// Unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
}

impl Unit {
    /// The largest unit in which a span has several.
    fn of(span: Millis) -> Unit {
        match span {
            ..3_000 => Unit::Milliseconds,
            3_000..180_000 => Unit::Seconds,
            180_000..10_800_000 => Unit::Minutes,
            _ => Unit::Hours,
        }
    }

    fn count(self, span: Millis) -> f64 {
        let per = match self {
            Unit::Milliseconds => 1.0,
            Unit::Seconds => 1e3,
            Unit::Minutes => 6e4,
            Unit::Hours => 3.6e6,
        };
        span as f64 / per
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "milliseconds",
            Unit::Seconds => "seconds",
            Unit::Minutes => "minutes",
            Unit::Hours => "hours",
        }
    }
}

/// The rows of the chart.
#[derive(Debug)]
struct Rows<'a> {
    of_worker: BTreeMap<&'a str, usize>,
    labels: Vec<String>,
    workers: usize,
    /// True if a row may have several workers.
    shared: bool,
    /// Workers without a row.
    left_out: usize,
}

impl<'a> Rows<'a> {
    /// Assigns rows to workers, given the spans in which they ran trials.
    fn of(spans: impl Iterator<Item = (&'a str, Millis, Millis)>) -> Rows<'a> {
        let mut lives: BTreeMap<&str, (Millis, Millis)> = BTreeMap::new();
        for (worker, began, ended) in spans {
            let life = lives.entry(worker).or_insert((began, ended));
            *life = (life.0.min(began), life.1.max(ended));
        }
        let mut order: Vec<(&str, (Millis, Millis))> = lives.into_iter().collect();
        order.sort_by_key(|(worker, life)| (life.0, *worker));
        let workers = order.len();
        let shared = workers > WORKERS;
        let mut of_worker = BTreeMap::new();
        // End of the last span of each row.
        let mut free: Vec<Millis> = Vec::new();
        let mut labels = Vec::new();
        for (worker, (began, ended)) in order {
            let row = match free.iter().position(|free| shared && *free < began) {
                Some(row) => row,
                None if free.len() < ROWS => {
                    free.push(ended);
                    let label = if shared { free.len().to_string() } else { cut(worker, 14) };
                    labels.push(label);
                    free.len() - 1
                }
                None => continue,
            };
            free[row] = ended;
            of_worker.insert(worker, row);
        }
        Rows { left_out: workers - of_worker.len(), of_worker, labels, workers, shared }
    }

    /// Width of the labels in pixels.
    fn room(&self) -> usize {
        let longest = self.labels.iter().map(|label| label.chars().count()).max();
        16 + 8 * longest.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::{Made, complete, failed};

    #[test]
    fn a_few_workers_have_a_row_each() {
        let rows = Rows::of([("b", 0, 10), ("a", 20, 30), ("b", 40, 50)].into_iter());
        assert_eq!(rows.labels, ["b", "a"]);
        assert_eq!((rows.workers, rows.left_out, rows.shared), (2, 0, false));
    }

    #[test]
    fn consecutive_workers_share_a_row() {
        let names: Vec<String> = (0..40).map(|i| format!("w{i:02}")).collect();
        let spans = (0_i64..).zip(&names).map(|(i, n)| (n.as_str(), 10 * i, 10 * i + 5));
        let rows = Rows::of(spans);
        assert_eq!(rows.labels, ["1"]);
        let side_by_side = names.iter().map(|name| (name.as_str(), 0, 5));
        assert_eq!(Rows::of(side_by_side).labels.len(), 40);
    }

    #[test]
    fn merged_bars_have_the_status_that_took_most_time() {
        let made = Made::of(vec![complete(0.5), failed("no disk")]);
        let page = made.page();
        let bar = |trial: usize, from: f64, to: f64| Bar {
            row: 0,
            from: from / WIDTH,
            to: to / WIDTH,
            trial: &page.trials[trial],
            attempt: &page.trials[trial].trial.attempts[0],
        };
        let bars = [bar(0, 0.0, 2.25), bar(1, 2.25, 4.0)];
        assert_eq!(mixed(&bars), [(0, 0, 2, Status::Complete), (0, 2, 2, Status::Failed)]);
        assert_eq!(paths(&bars, 1).len(), 2);
    }

    #[test]
    fn the_unit_of_time_fits_the_span() {
        let units = [0, 5_000, 600_000, 40_000_000].map(Unit::of);
        let names = units.map(Unit::name);
        assert_eq!(names, ["milliseconds", "seconds", "minutes", "hours"]);
    }
}
