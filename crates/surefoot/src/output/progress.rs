//! The progress bar.

use super::number;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};
use surefoot_diagnose::Evaluation;
use surefoot_train::Progress;

/// Interval of redrawing the bar.
const REDRAW: Duration = Duration::from_millis(50);

/// A bar on stderr.
///
/// Steps may take microseconds, so the clock is not looked at for each: after so many steps as
/// were done in half of the last interval, it is.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
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
    pub(crate) fn new(bar: ProgressBar, metric: &'static str, heading: Option<String>) -> Self {
        let template = match heading {
            None => "{bar:10.cyan/dim} {wide_msg}",
            Some(_) => "{prefix}\n       {bar:10.cyan/dim} {wide_msg}",
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        bar.set_style(style);
        bar.set_prefix(heading.unwrap_or_default());
        let now = Instant::now();
        Self {
            bar,
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
        if progress.step < self.next {
            return;
        }
        let now = Instant::now();
        let since = now - self.drawn;
        if since < REDRAW && self.first.is_some() {
            self.next = progress.step + 1.max((progress.step - self.drawn_step) / 2);
            return;
        }
        if self.first.is_none() {
            self.bar.reset();
        }
        let first = *self.first.get_or_insert(progress.step);
        self.bar.set_length(progress.steps);
        self.bar.set_message(self.message(progress, first, now));
        self.bar.set_position(progress.step);
        self.next = progress.step + 1.max((progress.step - self.drawn_step.max(first)) / 2);
        self.drawn = now;
        self.drawn_step = progress.step;
    }

    pub(crate) fn evaluated(&mut self, evaluation: &Evaluation) {
        self.validation = evaluation.metric;
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(step: u64) -> Progress {
        Progress { step, steps: 1000, epoch: 1, epochs: 4, loss: 0.5, metric: Some(0.75) }
    }

    #[test]
    fn quick_steps_hardly_touch_the_bar() {
        let mut bar = Bar::new(ProgressBar::hidden(), "accuracy", None);
        let mut looked = 0;
        for step in 1..=1000 {
            looked += u64::from(step >= bar.next);
            bar.step(&progress(step));
        }
        assert!(looked < 50, "the clock was looked at {looked} times");
    }

    #[test]
    fn the_message_says_how_it_goes() {
        let mut bar = Bar::new(ProgressBar::hidden(), "accuracy", None);
        bar.validation = Some(0.5);
        let now = bar.begun + Duration::from_secs(5);
        assert_eq!(
            bar.message(&progress(500), 0, now),
            "5s left  epoch 1/4  loss 0.5000  accuracy 75.0%  validation 50.0%  step 500/1000"
        );
    }
}
