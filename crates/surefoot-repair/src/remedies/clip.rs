//! `clip_gradient` (S3): gradient clipping.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_plan::Plan;

/// `clip_gradient` (S3): clips the gradient.
///
/// AutoTrainer cuts every value to [-10, 10], which turns the direction of the step. Here the
/// gradient as a whole is scaled down to a norm of 1 (Pascanu, Mikolov and Bengio).
#[derive(Clone, Copy, Debug)]
pub struct GradientClipping;

impl Remedy for GradientClipping {
    fn id(&self) -> &'static str {
        "clip_gradient"
    }

    fn title(&self) -> &'static str {
        "clip the gradient"
    }

    fn apply(&self, plan: &Plan, _: &RemedyContext<'_>, variant: usize) -> Result<Change, String> {
        if variant > 0 {
            return Err("it is clipped once".to_owned());
        }
        let mut changed = plan.clone();
        let optimizer = &mut changed.training.optimizer;
        optimizer.clipvalue = None;
        optimizer.clipnorm = None;
        optimizer.global_clipnorm = Some(1.0);
        Change::new(plan, changed, "Clips the gradient to a norm of at most 1.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn a_gradient_is_clipped_once() {
        let (facts, finding) = (facts(), finding(Problem::EXPLODING_GRADIENT));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let change = GradientClipping.apply(&plan(), &context, 0).unwrap();
        assert_eq!(change.plan.training.optimizer.global_clipnorm, Some(1.0));
        assert!(GradientClipping.apply(&change.plan, &context, 0).is_err());
    }
}
