//! Unexpected loss changes.

use super::limits::Limits;
use super::stage::Stage;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::measure::Measure;

/// Late in the training the loss rises, or swings without getting anywhere.
///
/// BTTackler: a linear regression over an adaptive window measures the fluctuations of the training loss;
/// above a tolerance they are unexpected. Late stage.
///
/// Changed:
/// - The line itself is no fluctuation: a loss that falls along it is what one hopes for. Only a
///   line that rises counts, and the distances from a line that does not fall.
/// - Both are measured by all that the loss had gained since its beginning, and not by itself: what is
///   much for a loss of 0.01 is nothing for one of 10. Of a run that had gained next to nothing
///   there is nothing to lose; that is [`Plc`](super::Plc)'s business.
/// - A run that is at its best in the window goes on.
#[derive(Clone, Copy, Debug)]
pub struct Ulc {
    limits: Limits,
}

impl Ulc {
    /// The indicator with these limits.
    pub fn new(limits: &Limits) -> Ulc {
        Ulc { limits: *limits }
    }
}

impl Detector for Ulc {
    fn problem(&self) -> Problem {
        Problem::ULC
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let limits = &self.limits;
        let blocks = context.curve.blocks();
        let losses: Vec<f64> = blocks.iter().map(|block| block.loss).collect();
        let window = window(context, limits.ulc_window);
        if !Stage::Late.is_now(context, limits) || losses.len() < 2 * window {
            return None;
        }
        let (before, recent) = losses.split_at(losses.len() - window);
        let first = *before.first()?;
        let best = before.iter().copied().reduce(f64::min)?;
        let gained = first - best;
        let is_best = recent.iter().any(|loss| *loss <= best);
        let has_gained = gained >= limits.gain * first.abs();
        if (is_best || !has_gained) && !limits.published {
            return None;
        }
        let line = Line::through(recent)?;
        let rise = line.rise / gained;
        let swing = line.spread / gained;
        let lost = (recent.iter().sum::<f64>() / window as f64 - best) / gained;
        let rises = rise > limits.ulc && (lost > limits.ulc || limits.published);
        let swings = swing > limits.ulc && (rise >= 0.0 || limits.published);
        if !(rises || swings) {
            return None;
        }
        let message = if rises {
            "Late in the training the loss rises again and has lost much of what it had gained."
        } else {
            "Late in the training the loss swings by much of what it had gained and does not fall."
        };
        Some(
            Finding::new(self.problem(), context.step(), message)
                .since(context.curve.recent(window).first()?.first)
                .with(Measure::LossRise, rise, limits.ulc)
                .with(Measure::LossSwing, swing, limits.ulc),
        )
    }
}

/// Number of blocks in a window of that share of the training; enough for a meaningful line.
pub(super) fn window(context: &Context<'_>, share: f64) -> usize {
    const FEWEST: usize = 5;
    let total =
        context.facts.total_steps().map_or(200, |steps| steps / context.curve.block_steps().max(1));
    ((share * total as f64) as usize).max(FEWEST)
}

/// A line fitted by least squares.
struct Line {
    /// Difference between its end and its beginning.
    rise: f64,
    /// The standard deviation of the distances from it.
    spread: f64,
}

impl Line {
    fn through(values: &[f64]) -> Option<Line> {
        let n = values.len() as f64;
        let (x_mean, y_mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
        let points = || values.iter().enumerate().map(|(x, y)| (x as f64 - x_mean, y - y_mean));
        let across: f64 = points().map(|(x, _)| x * x).sum();
        let along: f64 = points().map(|(x, y)| x * y).sum();
        let slope = along / across;
        let residuals = points().map(|(x, y)| y - slope * x);
        let spread = (residuals.map(|r| r * r).sum::<f64>() / n).sqrt();
        (across > 0.0).then_some(Line { rise: slope * (n - 1.0), spread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};

    fn ulc() -> Ulc {
        Ulc::new(&Limits::default())
    }

    fn found(skill: impl Fn(f64) -> f64 + 'static) -> Option<Finding> {
        Course::new(facts()).skill(skill).run(ulc())
    }

    #[test]
    fn a_loss_that_rises_again_late_is_found() {
        let finding = found(|p| if p < 0.6 { p } else { 0.6 - 4.0 * (p - 0.6) }).unwrap();
        assert!(finding.step >= 120, "{}", finding.step);
        assert!(finding.message.contains("rises"), "{}", finding.message);
    }

    #[test]
    fn a_loss_that_swings_late_is_found() {
        let finding = found(|p| if p < 0.5 { p } else { -0.6 + 0.6 * (250.0 * p).sin() }).unwrap();
        assert!(finding.message.contains("swings"), "{}", finding.message);
    }

    #[test]
    fn the_published_rule_stops_a_run_at_its_best() {
        let swinging = |p: f64| if p < 0.5 { p } else { 0.3 + 0.8 * (250.0 * p).sin() };
        assert_eq!(found(swinging), None);
        let course = Course::new(facts()).skill(swinging);
        assert!(course.run(Ulc::new(&Limits::bttackler())).is_some());
    }

    #[test]
    fn a_loss_that_falls_in_a_line_is_what_one_hopes_for() {
        assert_eq!(found(|p| p), None);
        assert_eq!(found(|p| 0.3 * p), None);
    }

    #[test]
    fn noise_on_the_way_down_and_at_the_bottom_is_no_reason() {
        assert_eq!(found(|p| 0.9 * p.min(0.4) + 0.1 * (900.0 * p).sin()), None);
    }

    #[test]
    fn what_rises_in_the_early_stage_is_not_its_business() {
        assert_eq!(found(|p| if p < 0.3 { p } else { (0.2 + 0.8 * p).min(0.9) }), None);
    }
}
