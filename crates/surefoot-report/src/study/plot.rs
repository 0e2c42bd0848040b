//! The frame of a chart: title, legend, axes, and a strip for trials that reached no number.

use maud::{Markup, html};

use super::dots::Dots;
use super::outcome::Outcome;
use crate::scale::Scale;
use crate::svg::percent;

/// The frame of a chart, and what is in it.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    /// What no other element of the page has as its id.
    pub(super) id: String,
    pub(super) title: String,
    /// What there is to see, for those who cannot see it.
    pub(super) description: String,
    pub(super) legend: Markup,
    pub(super) height: u32,
    pub(super) y: &'a Scale,
    /// How many marks the upright axis has, about.
    pub(super) marks: usize,
    pub(super) x_axis: Markup,
    /// Trials without a number, above the plot.
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

/// Dots in the colours of outcomes.
#[derive(Debug)]
pub(super) struct Layers {
    layers: Vec<(Outcome, Dots)>,
}

impl Layers {
    /// No dots yet, on so many columns and rows.
    pub(super) fn new(columns: u16, rows: u16) -> Layers {
        let layer = |outcome| (outcome, Dots::new(columns, rows));
        Layers { layers: Outcome::ALL.into_iter().map(layer).collect() }
    }

    /// Adds a dot; its places go from 0 to 1.
    pub(super) fn add(&mut self, outcome: Outcome, x: f64, y: f64) {
        let mut layers = self.layers.iter_mut();
        if let Some((_, dots)) = layers.find(|(other, _)| *other == outcome) {
            dots.add(x, y);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.layers.iter().all(|(_, dots)| dots.is_empty())
    }

    pub(super) fn draw(&self) -> Markup {
        html! {
            @for (outcome, dots) in &self.layers {
                @if !dots.is_empty() { (dots.draw(outcome.class())) }
            }
        }
    }
}
