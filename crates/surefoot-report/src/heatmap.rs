//! Heat map of gradient norms: one row per layer, columns of steps.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::format;
use crate::layer_map::{Cell, LayerMap, Row};
use crate::marks::{Mark, flags};
use crate::scale::Scale;
use crate::svg::{percent, short, x_axis};

/// Number of colors, `.h0` to `.h23` in the style sheet.
const COLORS: usize = 24;

/// A heat map.
#[derive(Debug)]
pub(crate) struct Heat<'a> {
    /// Unique id on the page.
    pub(crate) id: &'a str,
    pub(crate) title: String,
    pub(crate) gradients: &'a LayerMap,
    pub(crate) marks: &'a [Mark],
    /// Range of log10 norms, shared by all maps of the page.
    pub(crate) range: (f64, f64),
}

/// A run of equal cells.
struct CellRun {
    from: usize,
    length: usize,
    cell: Cell,
}

impl Heat<'_> {
    /// Draws the map without a legend.
    pub(crate) fn draw(&self) -> Markup {
        let rows = self.gradients.rows();
        let columns = self.gradients.columns();
        let steps = columns as f64 * self.gradients.width() as f64;
        // Column 0 starts at step 1.
        let x = Scale::linear(0.5, steps + 0.5);
        let height = (480.0 / rows.len() as f64).clamp(8.0, 24.0);
        let (title_id, description_id) =
            (format!("{}-title", self.id), format!("{}-description", self.id));
        html! {
            figure.chart.heat style={ "--names: " (room(&rows)) "px" } {
                figcaption { span.figure-title { (self.title) } }
                svg.plot role="img" height=(short(height * rows.len() as f64))
                    aria-labelledby={ (title_id) " " (description_id) } {
                    title id=(title_id) { (self.title) }
                    desc id=(description_id) { (self.description(&rows)) }
                    rect.unseen width="100%" height="100%" {}
                    svg viewBox={ "0 0 " (columns) " " (rows.len()) } preserveAspectRatio="none"
                        width="100%" height="100%" shape-rendering="crispEdges" {
                        @for (color, path) in self.colors(&rows, columns) {
                            path class={ "h" (color) } d=(path) {}
                        }
                    }
                    (patches(&rows, columns))
                    (names(&rows, height))
                    (outlines(&x, &rows, self.marks))
                    (flags(&x, self.marks))
                    g.axis { (x_axis(&x, "step")) }
                }
            }
        }
    }

    /// Draws the cells of each color as one path.
    fn colors(&self, rows: &[&Row], columns: usize) -> BTreeMap<usize, String> {
        let mut paths: BTreeMap<usize, String> = BTreeMap::new();
        for (i, row) in rows.iter().enumerate() {
            let colored = row.cells(columns).map(|cell| match cell {
                // Rounded to a color, so that equal neighbors can be merged.
                Cell::Size(size) => Cell::Size(self.color(size) as f64),
                other => other,
            });
            for run in cell_runs(colored) {
                if let Cell::Size(color) = run.cell {
                    let (from, length) = (run.from, run.length);
                    let path = paths.entry(color as usize).or_default();
                    path.push_str(&format!("M{from} {i}h{length}v1h-{length}z"));
                }
            }
        }
        paths
    }

    fn color(&self, size: f64) -> usize {
        let (low, high) = self.range;
        let place = (size - low) / (high - low).max(1e-9);
        ((place * COLORS as f64) as usize).min(COLORS - 1)
    }

    fn description(&self, rows: &[&Row]) -> String {
        let ranges = rows.iter().map(|row| format!("{}: {}", row.layer, describe_row(row)));
        let ranges: Vec<String> = ranges.collect();
        format!(
            "Gradient norm of each layer over the steps, input layer first. {}.",
            ranges.join("; ")
        )
    }
}

/// Legend of colors and patterns.
pub(crate) fn legend((low, high): (f64, f64)) -> Markup {
    let scale = Scale::linear(low, high);
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let every = ((last - first) / 5 + 1).max(1);
    let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    let is_written_out = format::are_short(first, last);
    html! {
        div.heat-legend {
            div.scale {
                span.caption { "gradient norm (L2)" }
                svg height="14" width="100%" aria-hidden="true" {
                    svg viewBox={ "0 0 " (COLORS) " 1" } preserveAspectRatio="none"
                        width="100%" height="14" shape-rendering="crispEdges" {
                        @for color in 0..COLORS {
                            rect class={ "h" (color) } x=(color) width="1" height="1" {}
                        }
                    }
                    @for power in powers {
                        text x=(percent(scale.place(f64::from(power)))) y="30" text-anchor="middle" {
                            (format::power_of_ten(power, is_written_out))
                        }
                    }
                }
            }
            @for (class, name) in [("zero", "exactly zero"), ("broken", "NaN or infinite"), ("unseen", "not observed")] {
                span.key {
                    svg.sample width="22" height="14" aria-hidden="true" {
                        rect class=(class) width="100%" height="100%" {}
                    }
                    (name)
                }
            }
        }
    }
}

/// Pattern definitions, once per page.
pub(crate) fn patterns() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                pattern #broken width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.broken-ground width="6" height="6" {}
                    rect.broken-line width="3" height="6" {}
                }
                pattern #zero width="5" height="5" patternUnits="userSpaceOnUse" {
                    rect.zero-ground width="5" height="5" {}
                    circle.zero-dot cx="2.5" cy="2.5" r="1.1" {}
                }
            }
        }
    }
}

/// Draws cells without a color as patterns.
fn patches(rows: &[&Row], columns: usize) -> Markup {
    let (width, height) = (1.0 / columns as f64, 1.0 / rows.len() as f64);
    html! {
        @for (i, row) in rows.iter().enumerate() {
            @for run in cell_runs(row.cells(columns)) {
                @if let Some(class) = pattern_of(run.cell) {
                    rect class=(class) x=(percent(run.from as f64 * width)) y=(percent(i as f64 * height))
                        width=(percent(run.length as f64 * width)) height=(percent(height)) {}
                }
            }
        }
    }
}

fn pattern_of(cell: Cell) -> Option<&'static str> {
    match cell {
        Cell::Broken => Some("broken"),
        Cell::Zero => Some("zero"),
        Cell::Unseen | Cell::Size(_) => None,
    }
}

fn cell_runs(cells: impl Iterator<Item = Cell>) -> Vec<CellRun> {
    let mut cell_runs: Vec<CellRun> = Vec::new();
    for (at, cell) in cells.enumerate() {
        match cell_runs.last_mut() {
            Some(last) if last.cell == cell => last.length += 1,
            _ => cell_runs.push(CellRun { from: at, length: 1, cell }),
        }
    }
    cell_runs
}

/// Draws layer names at the left, and tooltips for rows.
fn names(rows: &[&Row], height: f64) -> Markup {
    let every = (11.0 / height).ceil() as usize;
    let share = 1.0 / rows.len() as f64;
    html! {
        g.names {
            @for (i, row) in rows.iter().enumerate() {
                @if i % every == 0 {
                    text x="-10" y=(percent((i as f64 + 0.5) * share)) dy="0.35em" text-anchor="end" {
                        (shortened(&row.layer))
                    }
                }
                rect.hover x="0" y=(percent(i as f64 * share)) width="100%" height=(percent(share)) {
                    title { (row.layer) " (" (row.kind) "): " (describe_row(row)) }
                }
            }
        }
    }
}

/// Width of the names in pixels.
fn room(rows: &[&Row]) -> usize {
    let names = rows.iter().map(|row| shortened(&row.layer).chars().count());
    names.max().unwrap_or(0) * 7 + 14
}

/// Shortens a long name in the middle.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 16;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST {
        return name.to_owned();
    }
    let (begin, end) = (&letters[..8], &letters[letters.len() - 7..]);
    begin.iter().chain(['…'].iter()).chain(end).collect()
}

/// Text for the tooltip of a row.
fn describe_row(row: &Row) -> String {
    let cells = || row.cells(row.columns.len());
    let sizes: Vec<f64> = cells()
        .filter_map(|cell| match cell {
            Cell::Size(size) => Some(10_f64.powf(size)),
            _ => None,
        })
        .collect();
    let mut parts = Vec::new();
    if let (Some(first), Some(last)) = (sizes.first(), sizes.last()) {
        parts.push(format!("first {}, last {}", format::number(*first), format::number(*last)));
    }
    for (cell, text) in
        [(Cell::Zero, "sometimes zero"), (Cell::Broken, "sometimes NaN or infinite")]
    {
        if cells().any(|other| other == cell) {
            parts.push(text.to_owned());
        }
    }
    parts.join(", ")
}

/// Draws a frame around the layers of each finding, from its start to its confirmation.
fn outlines(x: &Scale, rows: &[&Row], marks: &[Mark]) -> Markup {
    let share = 1.0 / rows.len() as f64;
    html! {
        @for mark in marks {
            @let (from, to) = (x.place(mark.since - 0.5).max(0.0), x.place(mark.at + 0.5).min(1.0));
            @for (first, count) in blocks(rows, &mark.layers) {
                @for class in ["halo", "outline"] {
                    rect class=(class) x=(percent(from)) y=(percent(first as f64 * share))
                        width=(percent((to - from).max(0.004))) height=(percent(count as f64 * share)) {}
                }
            }
        }
    }
}

/// Groups the rows of some layers into blocks of adjacent rows: first row and count.
fn blocks(rows: &[&Row], layers: &[String]) -> Vec<(usize, usize)> {
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    for (i, _) in rows.iter().enumerate().filter(|(_, row)| layers.contains(&row.layer)) {
        match blocks.last_mut() {
            Some((first, count)) if *first + *count == i => *count += 1,
            _ => blocks.push((i, 1)),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{layers, observation};
    use crate::layer_map::LayerQuantity;

    fn gradients(norm: impl Fn(u64, usize) -> Option<f64>) -> LayerMap {
        let mut gradients = LayerMap::new(LayerQuantity::Gradients, &layers(4), 1);
        for step in 1..=10 {
            gradients.push(&observation(step, 1.0, Some(4), |i| norm(step, i)));
        }
        gradients
    }

    fn drawn(gradients: &LayerMap, marks: &[Mark]) -> String {
        let heat = Heat {
            id: "heat",
            title: "Gradients".to_owned(),
            gradients,
            marks,
            range: (-3.0, 0.0),
        };
        heat.draw().into_string()
    }

    #[test]
    fn cells_of_one_color_are_one_path() {
        let drawn = drawn(&gradients(|_, i| Some(10_f64.powi(-(i as i32)))), &[]);
        assert!(drawn.contains(r#"<path class="h23" d="M0 0h10v1h-10z">"#), "{drawn}");
        assert!(drawn.contains(r#"<path class="h0" d="M0 3h10v1h-10z">"#), "{drawn}");
    }

    #[test]
    fn zero_and_nan_have_patterns() {
        let gradients = gradients(|step, i| match (step, i) {
            (1..=2, 0) => Some(0.0),
            (10, 3) => Some(f64::NAN),
            _ => Some(1.0),
        });
        let drawn = drawn(&gradients, &[]);
        assert!(drawn.contains(r#"<rect class="zero" x="0%" y="0%" width="20%" height="25%">"#));
        assert!(
            drawn.contains(r#"<rect class="broken" x="90%" y="75%" width="10%" height="25%">"#)
        );
    }

    #[test]
    fn findings_are_framed_at_their_layers() {
        let mark = Mark {
            number: 1,
            since: 3.0,
            at: 7.0,
            title: "vanishing gradient".to_owned(),
            layers: ["dense_1", "dense_2", "dense_4"].map(str::to_owned).to_vec(),
        };
        let drawn = drawn(&gradients(|_, _| Some(1.0)), &[mark]);
        assert_eq!(drawn.matches(r#"class="outline""#).count(), 2);
        assert!(
            drawn.contains(r#"class="outline" x="20%" y="0%" width="50%" height="50%""#),
            "{drawn}"
        );
        assert!(drawn.contains(r##"href="#finding-1""##));
    }

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        assert_eq!(shortened("dense_1"), "dense_1");
        assert_eq!(shortened("residual_block_12.conv2d_1"), "residual…onv2d_1");
    }
}
