//! Terminal with a progress display: text is printed above it.

use super::Console;
use super::display::Display;
use super::progress::Bar;
use serde::Serialize;

/// Console with a progress display at its end.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    console: Console,
    drawing: Option<Display>,
}

impl Screen {
    /// Creates a screen without a progress display.
    pub(crate) fn new(console: &Console) -> Self {
        Self { console: *console, drawing: console.draws().then(Display::default) }
    }

    /// Prints the result of a command.
    pub(crate) fn say(&self, text: &str) {
        self.above(|| self.console.say(text));
    }

    /// Prints additional information on a terminal only.
    pub(crate) fn mention(&self, text: &str) {
        self.above(|| self.console.mention(text));
    }

    /// Prints a JSON object.
    pub(crate) fn event(&self, event: &impl Serialize) {
        self.above(|| self.console.event(event));
    }

    /// Calls `print` above the progress display.
    pub(crate) fn above<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.drawing {
            Some(display) => display.above(print),
            None => print(),
        }
    }

    /// Progress bar for a metric, below `heading`.
    pub(crate) fn bar(&self, metric: &'static str, heading: Option<String>) -> Option<Bar> {
        let drawing = self.drawing.clone()?;
        Some(Bar::new(drawing, metric, heading))
    }

    /// Replaces the progress display by lines.
    pub(crate) fn draw(&self, lines: &[String]) {
        if let Some(display) = &self.drawing {
            display.draw(lines.to_vec());
        }
    }

    /// Removes the progress display.
    pub(crate) fn clear(&self) {
        if let Some(display) = &self.drawing {
            display.clear();
        }
    }

    /// Maximal line width; `None` outside a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.console.width()
    }
}
