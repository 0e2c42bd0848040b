//! No more gain.

use super::limits::Limits;
use super::stage::Stage;
use super::ulc::window;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;
use crate::observation::{Evaluation, Split};

/// The training is done: it has been some time since the loss was at its lowest.
///
/// BTTackler: the minimum of the training loss within an adaptive window exceeds the overall minimum.
/// Late stage. The trial is ended but not eliminated (section 3.2.2), so the finding is a warning.
///
/// Changed, because in a noisy loss the minimum is where chance put it:
/// - In the second half of the window the loss must not be lower, in the mean, than in the first.
/// - A validation loss, or metric, that was at its best within the window is a gain as well.
#[derive(Clone, Copy, Debug)]
pub struct Nmg {
    limits: Limits,
}

impl Nmg {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Nmg {
        Nmg { limits: *limits }
    }
}

impl Detector for Nmg {
    fn problem(&self) -> Problem {
        Problem::NMG
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        let blocks = context.curve.blocks();
        let window = window(context, limits.nmg_window);
        if !Stage::Late.is_now(context, limits) || blocks.len() <= window {
            return None;
        }
        let (before, recent) = blocks.split_at(blocks.len() - window);
        let least = |blocks: &[crate::Block]| blocks.iter().map(|b| b.loss).reduce(f64::min);
        let (best, now) = (least(before)?, least(recent)?);
        let since = recent.first()?.first;
        let halves = context.curve.recent_losses(window / 2);
        let falls = halves.is_none_or(|(second, first)| second < first);
        let was_lower = now > best;
        let gains = falls || validation_gained(context, since);
        if !was_lower || gains && !limits.published {
            return None;
        }
        Some(
            Finding::new(
                self.problem(),
                context.step(),
                "The loss has reached no new minimum recently: there is no more to gain.",
            )
            .warning()
            .since(since)
            .with(Measure::LowestLoss, best, None)
            .with(Measure::LowestRecentLoss, now, best),
        )
    }
}

/// Returns true if the validation loss or metric was at its best at or after a step.
fn validation_gained(context: &Context<'_>, since: u64) -> bool {
    let split = |e: &&Evaluation| e.split == Split::Validation;
    let gained = |score: &dyn Fn(&Evaluation) -> Option<f64>| {
        let best = |recent: bool| {
            let all = context.curve.evaluations().iter().filter(split);
            let part = all.filter(|e| (e.step >= since) == recent);
            part.filter_map(score).reduce(f64::max)
        };
        best(true).is_some_and(|now| best(false).is_none_or(|before| now > before))
    };
    gained(&|e| Some(-e.loss)) || gained(&|e| e.metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};
    use crate::diagnosis::Diagnosis;
    use crate::finding::Severity;
    use crate::thresholds::Thresholds;

    fn nmg() -> Nmg {
        Nmg::new(&Limits::default())
    }

    #[test]
    fn a_loss_that_was_lower_long_ago_ends_the_run_without_blame() {
        let course = Course::new(facts()).skill(|p| p.min(0.5) - 0.01 * p);
        let found = course.run(nmg()).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!((170..195).contains(&found.step), "{}", found.step);
    }

    #[test]
    fn a_run_that_still_gains_goes_on() {
        let course = Course::new(facts()).skill(|p| 0.9 * p + 0.02 * (300.0 * p).sin());
        assert_eq!(course.run(nmg()), None);
    }

    #[test]
    fn a_lucky_minimum_of_a_noisy_run_that_falls_is_no_end() {
        let mut course = Course::new(facts()).skill(|p| 0.5 * p);
        course.change(|step, seen| {
            if step == 101 {
                seen.loss = 0.1;
            }
        });
        assert_eq!(course.run(nmg()), None);
    }

    #[test]
    fn a_gain_on_the_validation_split_is_one() {
        let course = Course::new(facts()).skill(|p| p.min(0.5) - 0.01 * p);
        let detectors: Vec<Box<dyn Detector>> = vec![Box::new(nmg())];
        let mut diagnosis = Diagnosis::with(facts(), Thresholds::default(), detectors);
        for seen in course.steps() {
            diagnosis.observe(seen);
            if seen.step % 20 == 0 {
                diagnosis.evaluate(&Evaluation {
                    epoch: seen.epoch,
                    step: seen.step,
                    split: Split::Validation,
                    loss: 1.0 / seen.step as f64,
                    metric: None,
                });
            }
        }
        assert_eq!(diagnosis.findings(), []);
    }
}
