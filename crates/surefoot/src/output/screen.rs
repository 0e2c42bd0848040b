//! The terminal while something goes on: what is said comes above what is drawn.

use super::Console;
use super::progress::Bar;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// A console, and what is drawn at its end if a person watches.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    console: Console,
    /// There is but one drawing at a time; it is finished while there is none.
    drawing: Option<ProgressBar>,
}

impl Screen {
    /// With nothing drawn yet.
    pub(crate) fn new(console: &Console) -> Self {
        let drawing = console.draws().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.finish_and_clear();
            bar
        });
        Self { console: *console, drawing }
    }

    /// Tells people what they asked for.
    pub(crate) fn say(&self, text: &str) {
        self.above(|| self.console.say(text));
    }

    /// Tells people who watch what is good to know.
    pub(crate) fn mention(&self, text: &str) {
        self.above(|| self.console.mention(text));
    }

    /// Tells programs.
    pub(crate) fn event(&self, event: &impl Serialize) {
        self.above(|| self.console.event(event));
    }

    /// Lets something be printed above what is drawn.
    pub(crate) fn above<R>(&self, print: impl FnOnce() -> R) -> R {
        match &self.drawing {
            Some(bar) if !bar.is_finished() => bar.suspend(print),
            _ => print(),
        }
    }

    /// A bar for a metric, below a line if one is given.
    pub(crate) fn bar(&self, metric: &'static str, heading: Option<String>) -> Option<Bar> {
        let drawing = self.drawing.clone()?;
        Some(Bar::new(drawing, metric, heading))
    }

    /// Draws lines until something else is drawn.
    pub(crate) fn draw(&self, lines: &[String]) {
        if let Some(bar) = &self.drawing {
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.reset();
            bar.set_message(lines.join("\n"));
            bar.tick();
        }
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.drawing {
            bar.finish_and_clear();
        }
    }

    /// How wide a line may be; `None` where nobody watches and no line is too long.
    pub(crate) fn width(&self) -> Option<usize> {
        self.console.width()
    }
}
