//! Terminal with a progress display: text is printed above it.

use super::Console;
use super::progress::Bar;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Console with a progress display at its end.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    console: Console,
    /// The only progress display; finished while nothing is drawn.
    drawing: Option<ProgressBar>,
}

impl Screen {
    /// Creates a screen without a progress display.
    pub(crate) fn new(console: &Console) -> Self {
        let drawing = console.draws().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.finish_and_clear();
            bar
        });
        Self { console: *console, drawing }
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
            Some(bar) if !bar.is_finished() => bar.suspend(print),
            _ => print(),
        }
    }

    /// Progress bar for a metric, below `heading`.
    pub(crate) fn bar(&self, metric: &'static str, heading: Option<String>) -> Option<Bar> {
        let drawing = self.drawing.clone()?;
        Some(Bar::new(drawing, metric, heading))
    }

    /// Replaces the progress display by lines.
    pub(crate) fn draw(&self, lines: &[String]) {
        if let Some(bar) = &self.drawing {
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.reset();
            bar.set_message(lines.join("\n"));
            bar.tick();
        }
    }

    /// Removes the progress display.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.drawing {
            bar.finish_and_clear();
        }
    }

    /// Maximal line width; `None` outside a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.console.width()
    }
}
