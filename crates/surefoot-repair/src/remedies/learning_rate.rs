//! `learning_rate` (S6): adjust the learning rate.

use super::tidy;
use crate::action::{Action, Decay};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::Problem;

/// `learning_rate` (S6): the default rate of the optimizer first (0.01 for gradient descent, 0.001 for
/// adaptive ones), then ten times more for a slow run, or ten times less for an unstable one. A slow
/// run also loses its schedule.
#[derive(Clone, Copy, Debug)]
pub struct LearningRate;

/// The learning rate that the authors of an optimizer suggest.
///
/// AutoTrainer takes 0.001 for every adaptive optimizer, and says that it follows their authors. Those of
/// Adagrad suggest 0.01 and those of Adadelta 1: with 0.001 both are too slow to learn.
fn default_rate(optimizer: &str) -> f64 {
    match optimizer {
        "sgd" | "adagrad" => 0.01,
        // Its rate is a factor on steps that it finds itself.
        "adadelta" => 1.0,
        _ => 0.001,
    }
}

impl Remedy for LearningRate {
    fn id(&self) -> &'static str {
        "learning_rate"
    }

    fn title(&self) -> &'static str {
        "adjust the learning rate"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let facts = context.facts;
        let slow = context.finding.problem == Problem::SLOW_CONVERGENCE
            || context.finding.problem == Problem::VANISHING_GRADIENT;
        let given = facts.learning_rate.ok_or("the learning rate is unknown")?;
        let default = default_rate(facts.optimizer.as_deref().unwrap_or_default());
        let factor = if slow { 10.0 } else { 0.1 };
        // The default comes first if it is a step in the right direction.
        let towards = if slow { default > given } else { default < given };
        let start = if towards { default } else { given * factor };
        let scheduled = facts.warmup_steps > 0
            || facts.decay.as_deref().is_some_and(|decay| decay != "constant");
        let rate = match (variant, slow && scheduled) {
            // A rate that was sound until the schedule lowered it.
            (0, true) => given.max(default),
            (variant, _) if variant < 3 => start * f64::powi(factor, variant as i32),
            _ => return Err("all rates were tried".to_owned()),
        };
        let mut actions = Vec::new();
        if tidy(rate) != given {
            actions.push(Action::SetLearningRate(tidy(rate)));
        }
        if slow && scheduled {
            actions.push(Action::SetDecay(Decay::Constant));
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::Facts;

    fn rates(problem: Problem, rate: f64) -> Vec<Vec<Action>> {
        let facts = Facts { learning_rate: Some(rate), ..facts() };
        propose(&LearningRate, problem, &facts)
    }

    fn set(rates: [f64; 3]) -> [Vec<Action>; 3] {
        rates.map(|rate| vec![Action::SetLearningRate(rate)])
    }

    #[test]
    fn a_slow_run_gets_the_default_then_more() {
        assert_eq!(rates(Problem::SLOW_CONVERGENCE, 1e-6), set([0.001, 0.01, 0.1]));
        assert_eq!(rates(Problem::SLOW_CONVERGENCE, 0.001), set([0.01, 0.1, 1.0]));
    }

    #[test]
    fn an_unstable_run_gets_the_default_then_less() {
        assert_eq!(rates(Problem::OSCILLATING_LOSS, 0.5), set([0.001, 1e-4, 1e-5]));
    }

    #[test]
    fn a_slow_run_loses_its_schedule() {
        let decay = Some("cosine".to_owned());
        let facts = Facts { learning_rate: Some(0.001), decay, ..facts() };
        let actions = propose(&LearningRate, Problem::SLOW_CONVERGENCE, &facts);
        assert_eq!(actions[0], [Action::SetDecay(Decay::Constant)]);
    }
}
