//! Frame of a chart: title, legend, axes, and a strip for trials without a finite value.

use maud::{Markup, html};

use super::dots::Dots;
use super::status::Status;
use crate::scale::Scale;
use crate::svg::percent;

/// A chart with its frame.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    /// Unique id on the page.
    pub(super) id: String,
    pub(super) title: String,
    /// Text alternative.
    pub(super) description: String,
    pub(super) legend: Markup,
    pub(super) height: u32,
    pub(super) y: &'a Scale,
    /// Approximate number of ticks of the vertical axis.
    pub(super) marks: usize,
    pub(super) x_axis: Markup,
    /// Trials without a finite value, above the plot.
    pub(super) strip: Layers,
    pub(super) content: Markup,
}

impl Plot<'_> {
    pub(super) fn draw(&self) -> Markup {
        let title_id = format!("{}-title", self.id);
        let description_id = format!("{}-description", self.id);
        html! {
            figure.chart {
                figcaption {
                    span.figure-title { (self.title) }
                    span.legend { (self.legend) }
                }
                svg.plot role="img" height=(self.height) aria-labelledby={ (title_id) " " (description_id) } {
                    title id=(title_id) { (self.title) }
                    desc id=(description_id) { (self.description) }
                    g.axis {
                        @for tick in self.y.ticks(self.marks) {
                            @let y = percent(1.0 - tick.place);
                            line x1="0" x2="100%" y1=(y) y2=(y) {}
                            text x="-10" y=(y) dy="0.32em" text-anchor="end" { (self.y.label(&tick)) }
                        }
                        (self.x_axis)
                        @if !self.strip.is_empty() {
                            text x="-10" y="-16" dy="0.32em" text-anchor="end" { "none" }
                        }
                    }
                    @if !self.strip.is_empty() {
                        svg.strip y="-16" width="100%" height="1" { (self.strip.draw()) }
                    }
                    (self.content)
                }
            }
        }
    }
}

/// Dots colored by status.
#[derive(Debug)]
pub(super) struct Layers {
    layers: Vec<(Status, Dots)>,
}

impl Layers {
    /// An empty grid.
    pub(super) fn new(columns: u16, rows: u16) -> Layers {
        let layer = |status| (status, Dots::new(columns, rows));
        Layers { layers: Status::ALL.into_iter().map(layer).collect() }
    }

    /// Adds a dot at a position from 0 to 1 in both directions.
    pub(super) fn add(&mut self, status: Status, x: f64, y: f64) {
        let mut layers = self.layers.iter_mut();
        if let Some((_, dots)) = layers.find(|(other, _)| *other == status) {
            dots.add(x, y);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layers.iter().all(|(_, dots)| dots.is_empty())
    }

    pub(super) fn draw(&self) -> Markup {
        html! {
            @for (status, dots) in &self.layers {
                @if !dots.is_empty() { (dots.draw(status.class())) }
            }
        }
    }
}
