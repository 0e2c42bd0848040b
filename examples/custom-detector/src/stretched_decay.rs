//! A remedy that stretches the decay of the learning rate.

use crate::premature_decay::PrematureDecay;
use surefoot_diagnose::Problem;
use surefoot_plan::{Decay, Plan};
use surefoot_repair::{Change, Remedy, RemedyContext};

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

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        let alpha = match plan.training.schedule.decay {
            Decay::Constant => return Err("the learning rate does not decay".to_owned()),
            Decay::Cosine { alpha, .. } => alpha,
            Decay::Step { .. } | Decay::Exponential { .. } => 0.0,
        };
        let (decay, sentence) = match variant {
            0 => (
                Decay::Cosine { decay_steps: None, alpha },
                "Decays the learning rate along a cosine over the whole run.",
            ),
            1 => (Decay::Constant, "Keeps the learning rate constant."),
            _ => return Err("all schedules were tried".to_owned()),
        };
        let mut changed = plan.clone();
        // The warm-up stays.
        changed.training.schedule.decay = decay;
        Change::new(plan, changed, sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Facts, Finding};

    fn apply(decay: Decay, variant: usize) -> Result<Change, String> {
        let mut plan = crate::tests::plan();
        plan.training.schedule.decay = decay;
        plan.training.schedule.warmup_steps = 5;
        let context = RemedyContext {
            finding: &Finding::new(PrematureDecay::PROBLEM, 10, ""),
            facts: &Facts::default(),
        };
        StretchedDecay.apply(&plan, &context, variant)
    }

    const STEP: Decay = Decay::Step { decay_steps: 5, decay_rate: 0.1 };
    const SHORT: Decay = Decay::Cosine { decay_steps: Some(5), alpha: 0.1 };

    fn whole(alpha: f64) -> Decay {
        Decay::Cosine { decay_steps: None, alpha }
    }

    #[test]
    fn a_decay_is_stretched_and_then_dropped_and_the_warm_up_stays() {
        let cases = [(STEP, 0, whole(0.0)), (SHORT, 0, whole(0.1)), (STEP, 1, Decay::Constant)];
        for (given, variant, wanted) in cases {
            let changed = apply(given, variant).unwrap().plan;
            assert_eq!(changed.training.schedule.decay, wanted);
            assert_eq!(changed.training.schedule.warmup_steps, 5);
            changed.validate().unwrap();
        }
    }

    #[test]
    fn reasons_for_not_applying_are_given() {
        let reason = |decay, variant| apply(decay, variant).unwrap_err();
        let constant = reason(Decay::Constant, 0);
        assert_eq!(constant, "the learning rate does not decay");
        assert_eq!(reason(whole(0.1), 0), "the plan has this setting already");
        assert_eq!(reason(STEP, 2), "all schedules were tried");
    }

    #[test]
    fn it_answers_only_its_problem() {
        assert!(StretchedDecay.answers(&PrematureDecay::PROBLEM));
        assert!(!StretchedDecay.answers(&Problem::SLOW_CONVERGENCE));
    }
}
