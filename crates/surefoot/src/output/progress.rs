//! The progress bar.

use super::display::Display;
use super::{Role, number};
use std::time::{Duration, Instant};
use surefoot_diagnose::Evaluation;
use surefoot_train::Progress;

/// Interval of redrawing the bar.
const REDRAW: Duration = Duration::from_millis(50);
/// Width of the bar.
const CELLS: usize = 10;

/// A bar on stderr.
///
/// Steps may take microseconds, so the clock is not looked at for each: after so many steps as
/// were done in half of the last interval, it is.
#[derive(Debug)]
pub(crate) struct Bar {
    display: Display,
    heading: Option<String>,
    metric: &'static str,
    validation: Option<f64>,
    begun: Instant,
    /// The first step seen; what was done before a resume says nothing about the time left.
    first: Option<u64>,
    drawn: Instant,
    drawn_step: u64,
    /// The step at which to look at the clock again.
    next: u64,
}

impl Bar {
    /// A bar for a metric, below a line if one is given; it appears with the first step.
    pub(crate) fn new(display: Display, metric: &'static str, heading: Option<String>) -> Self {
        let now = Instant::now();
        Self {
            display,
            heading,
            metric,
            validation: None,
            begun: now,
            first: None,
            drawn: now,
            drawn_step: 0,
            next: 0,
        }
    }

    pub(crate) fn step(&mut self, progress: &Progress) {
        if let Some(lines) = self.lines(progress) {
            self.display.draw(lines);
        }
    }

    /// The lines after a step, if it is time to draw them.
    fn lines(&mut self, progress: &Progress) -> Option<Vec<String>> {
        if progress.step < self.next {
            return None;
        }
        let now = Instant::now();
        let since = now - self.drawn;
        if since < REDRAW && self.first.is_some() {
            self.next = progress.step + 1.max((progress.step - self.drawn_step) / 2);
            return None;
        }
        let first = *self.first.get_or_insert(progress.step);
        self.next = progress.step + 1.max((progress.step - self.drawn_step.max(first)) / 2);
        self.drawn = now;
        self.drawn_step = progress.step;
        let indent = if self.heading.is_some() { "       " } else { "" };
        let done = bar(progress.step as f64 / progress.steps as f64);
        let line = format!("{indent}{done} {}", self.message(progress, first, now));
        Some(self.heading.iter().cloned().chain([line]).collect())
    }

    pub(crate) fn evaluated(&mut self, evaluation: &Evaluation) {
        self.validation = evaluation.metric;
    }

    pub(crate) fn clear(&self) {
        self.display.clear();
    }

    /// The most important values come first, because a narrow terminal cuts off the end.
    fn message(&self, progress: &Progress, first: u64, now: Instant) -> String {
        let mut parts = Vec::new();
        let done = progress.step - first;
        if done > 0 {
            let each = (now - self.begun).as_secs_f64() / done as f64;
            let left = each * (progress.steps - progress.step) as f64;
            if let Ok(left) = Duration::try_from_secs_f64(left) {
                parts.push(format!("{} left", number::rough_time(left)));
            }
        }
        parts.push(format!("epoch {}/{}", progress.epoch, progress.epochs));
        parts.push(format!("loss {}", number::loss(progress.loss)));
        for (name, value) in [(self.metric, progress.metric), ("validation", self.validation)] {
            if value.is_some() {
                parts.push(format!("{name} {}", number::metric(self.metric, value)));
            }
        }
        parts.push(format!("step {}/{}", progress.step, progress.steps));
        parts.join("  ")
    }
}

/// A bar, filled up to a fraction.
fn bar(done: f64) -> String {
    let full = ((done * CELLS as f64) as usize).min(CELLS);
    let (head, rest) = match full {
        CELLS => ("", 0),
        _ => ("╸", CELLS - full - 1),
    };
    let filled = Role::Literal.paint(format!("{}{head}", "━".repeat(full)));
    filled + &Role::Quiet.paint("─".repeat(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(step: u64) -> Progress {
        Progress { step, steps: 1000, epoch: 1, epochs: 4, loss: 0.5, metric: Some(0.75) }
    }

    #[test]
    fn quick_steps_hardly_touch_the_bar() {
        let mut bar = Bar::new(Display::default(), "accuracy", None);
        let mut looked = 0;
        for step in 1..=1000 {
            looked += u64::from(step >= bar.next);
            bar.lines(&progress(step));
        }
        assert!(looked < 50, "the clock was looked at {looked} times");
    }

    #[test]
    fn the_bar_fills_up() {
        let plain = |done| anstream::adapter::strip_str(&bar(done)).to_string();
        assert_eq!(plain(0.0), "╸─────────");
        assert_eq!(plain(0.55), "━━━━━╸────");
        assert_eq!(plain(1.0), "━━━━━━━━━━");
    }

    #[test]
    fn the_bar_is_below_the_heading() {
        let mut bar = Bar::new(Display::default(), "accuracy", Some("Attempt 1".to_owned()));
        let lines = bar.lines(&progress(500)).unwrap();
        assert_eq!(lines[0], "Attempt 1");
        assert!(lines[1].starts_with("       ") && lines[1].ends_with("step 500/1000"));
    }

    #[test]
    fn the_message_says_how_it_goes() {
        let mut bar = Bar::new(Display::default(), "accuracy", None);
        bar.validation = Some(0.5);
        let now = bar.begun + Duration::from_secs(5);
        assert_eq!(
            bar.message(&progress(500), 0, now),
            "5s left  epoch 1/4  loss 0.5000  accuracy 75.0%  validation 50.0%  step 500/1000"
        );
    }
}
