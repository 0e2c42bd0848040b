//! Line chart over steps or epochs, as SVG.
//!
//! Positions are in percent of the plot and font sizes in pixels, so a chart scales to the width of the
//! page and stays readable on a phone.

use maud::{Markup, html};

use crate::marks::{Mark, bands, flags};
use crate::scale::Scale;
use crate::series::Point;
use crate::svg::{apart, percent, short, x_axis};

/// A line chart.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    /// Unique id on the page.
    pub(crate) id: &'a str,
    pub(crate) title: String,
    /// Text alternative.
    pub(crate) description: String,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) x_name: &'a str,
    pub(crate) lines: Vec<Line>,
    /// Findings, in the unit of `x`.
    pub(crate) marks: &'a [Mark],
    /// A reference value and its label.
    pub(crate) reference: Option<(f64, String)>,
    /// Prints the values of `y` in percent.
    pub(crate) percent: bool,
}

/// One curve.
#[derive(Debug)]
pub(crate) struct Line {
    /// CSS class: `given` or `delivered`.
    pub(crate) class: &'static str,
    pub(crate) label: String,
    /// All points, drawn faintly if there is a trend.
    pub(crate) points: Vec<Vec<Point>>,
    pub(crate) trend: Option<Vec<Vec<Point>>>,
    /// Draws a dot at each point.
    pub(crate) dots: bool,
    /// Positions of NaN and infinite values.
    pub(crate) broken: Vec<f64>,
}

impl Chart<'_> {
    /// Draws the chart with its legend.
    pub(crate) fn draw(&self) -> Markup {
        let title_id = format!("{}-title", self.id);
        let description_id = format!("{}-description", self.id);
        let broken = self.lines.iter().any(|line| !line.broken.is_empty());
        html! {
            figure.chart {
                figcaption {
                    span.figure-title { (self.title) }
                    span.legend {
                        @for line in &self.lines {
                            span.key.(line.class) { i.swatch {} (line.label) }
                        }
                        @if broken { span.key.broken { b { "×" } "NaN or infinite" } }
                    }
                }
                svg.plot role="img" height="240" aria-labelledby={ (title_id) " " (description_id) } {
                    title id=(title_id) { (self.title) }
                    desc id=(description_id) { (self.description) }
                    (self.axes())
                    (bands(&self.x, self.marks))
                    @if let Some((value, name)) = &self.reference { (self.reference_line(*value, name)) }
                    svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                        @for line in &self.lines { (self.curve(line)) }
                    }
                    @for line in &self.lines { (self.points(line)) }
                    (flags(&self.x, self.marks))
                }
            }
        }
    }

    fn axes(&self) -> Markup {
        html! {
            g.axis {
                @for tick in self.y.ticks(5) {
                    @let y = percent(1.0 - tick.place);
                    line x1="0" x2="100%" y1=(y) y2=(y) {}
                    text x="-10" y=(y) dy="0.32em" text-anchor="end" {
                        @if self.percent { (format!("{:.0}%", tick.value * 100.0)) }
                        @else { (self.y.label(&tick)) }
                    }
                }
                (x_axis(&self.x, self.x_name))
            }
        }
    }

    fn reference_line(&self, value: f64, name: &str) -> Markup {
        let y = percent(1.0 - self.y.place(value));
        html! {
            g.reference {
                line x1="0" x2="100%" y1=(y) y2=(y) {}
                text x="100%" y=(y) dy="-6" text-anchor="end" { (name) }
            }
        }
    }

    fn curve(&self, line: &Line) -> Markup {
        let faint = line.trend.is_some();
        html! {
            g.line.(line.class) {
                path.faint[faint] d=(self.path(&line.points)) {}
                @if let Some(trend) = &line.trend { path d=(self.path(trend)) {} }
            }
        }
    }

    fn path(&self, lines: &[Vec<Point>]) -> String {
        let mut path = String::new();
        for line in lines {
            for (i, &(x, y)) in line.iter().enumerate() {
                let x = 1000.0 * self.x.place(x);
                let y = 1000.0 * (1.0 - self.y.place(y)).clamp(-1.0, 2.0);
                path.push(if i == 0 { 'M' } else { 'L' });
                path.push_str(&format!("{} {}", short(x), short(y)));
            }
            // A line of one point needs a length of zero to be drawn.
            if line.len() == 1 {
                path.push_str("h0");
            }
        }
        path
    }

    fn points(&self, line: &Line) -> Markup {
        let shown = |y: f64| (-0.01..=1.01).contains(&self.y.place(y));
        let broken = line.broken.iter().map(|x| self.x.place(*x));
        html! {
            g.points.(line.class) {
                @if line.dots {
                    @for (x, y) in line.points.iter().flatten().filter(|point| shown(point.1)) {
                        circle cx=(percent(self.x.place(*x))) cy=(percent(1.0 - self.y.place(*y))) r="2.5" {}
                    }
                }
                @for (x, _) in apart(broken.map(|x| (x, ())), 0.015) {
                    text.broken x=(percent(x)) y="12" text-anchor="middle" { "×" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(line: Line) -> String {
        let chart = Chart {
            id: "loss",
            title: "Loss".to_owned(),
            description: "Falls.".to_owned(),
            x: Scale::linear(0.0, 10.0),
            y: Scale::linear(0.0, 1.0),
            x_name: "step",
            lines: vec![line],
            marks: &[],
            reference: None,
            percent: false,
        };
        chart.draw().into_string()
    }

    fn line(points: Vec<Vec<Point>>) -> Line {
        Line {
            class: "given",
            label: "as given".to_owned(),
            points,
            trend: None,
            dots: false,
            broken: Vec::new(),
        }
    }

    #[test]
    fn missing_values_interrupt_a_line() {
        let drawn = chart(line(vec![vec![(0.0, 0.0), (5.0, 0.5)], vec![(10.0, 1.0)]]));
        assert!(drawn.contains(r#"d="M0 1000L500 500M1000 0h0""#), "{drawn}");
    }

    #[test]
    fn non_finite_values_are_marked() {
        let drawn = chart(Line { broken: vec![5.0, 5.01, 9.0], ..line(vec![]) });
        assert_eq!(drawn.matches(r#"<text class="broken""#).count(), 2);
        assert!(drawn.contains("NaN or infinite"));
    }
}
