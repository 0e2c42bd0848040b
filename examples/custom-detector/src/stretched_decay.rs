//! A remedy that stretches the decay of the learning rate.

use crate::premature_decay::PrematureDecay;
use surefoot_diagnose::Problem;
use surefoot_repair::{Action, Decay, Remedy, RemedyContext};

/// Replaces the schedule with a cosine over the whole run, then with a constant rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StretchedDecay;

impl Remedy for StretchedDecay {
    fn id(&self) -> &'static str {
        "stretched_decay"
    }

    fn title(&self) -> &'static str {
        "stretch the decay over the whole run"
    }

    fn answers(&self, problem: &Problem) -> bool {
        *problem == PrematureDecay::PROBLEM
    }

    fn propose(&self, _: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        match variant {
            0 => Ok(vec![Action::SetDecay(Decay::Cosine)]),
            1 => Ok(vec![Action::SetDecay(Decay::Constant)]),
            _ => Err("all schedules were tried".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Facts, Finding};

    #[test]
    fn the_cosine_comes_first() {
        let finding = Finding::new(PrematureDecay::PROBLEM, 10, "");
        let context = RemedyContext { finding: &finding, facts: &Facts::default() };
        let propose = |variant| StretchedDecay.propose(&context, variant);
        assert_eq!(propose(0), Ok(vec![Action::SetDecay(Decay::Cosine)]));
        assert_eq!(propose(1), Ok(vec![Action::SetDecay(Decay::Constant)]));
        assert!(propose(2).is_err());
    }

    #[test]
    fn it_answers_only_its_problem() {
        assert!(StretchedDecay.answers(&PrematureDecay::PROBLEM));
        assert!(!StretchedDecay.answers(&Problem::SLOW_CONVERGENCE));
    }
}
