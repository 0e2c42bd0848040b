//! `scale_targets`: standardize the targets.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::TaskKind;

/// `scale_targets`: standardizes the targets of a regression; predictions are converted back. Our own:
/// AutoTrainer repairs classifications only.
#[derive(Clone, Copy, Debug)]
pub struct TargetScale;

/// Largest absolute target that needs no scaling.
const LARGEST: f64 = 10.0;

impl Remedy for TargetScale {
    fn id(&self) -> &'static str {
        "scale_targets"
    }

    fn title(&self) -> &'static str {
        "standardize the targets"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let facts = context.facts;
        let moderate =
            facts.target_range.is_none_or(|range| range.iter().all(|t| t.abs() <= LARGEST));
        match variant {
            0 if facts.task == Some(TaskKind::Regression) && !moderate => {
                Ok(vec![Action::ScaleTargets])
            }
            0 => Err("the targets are not large numbers".to_owned()),
            _ => Err("scaled targets were tried".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, Problem};

    #[test]
    fn only_large_numbers_are_scaled() {
        let of = |task, target_range| {
            let facts = Facts { task: Some(task), target_range, ..facts() };
            propose(&TargetScale, Problem::UNSCALED_TARGETS, &facts)
        };
        let large = Some([200.0, 900.0]);
        assert_eq!(of(TaskKind::Regression, large), [[Action::ScaleTargets]]);
        assert!(of(TaskKind::Regression, Some([-1.0, 1.0])).is_empty());
        assert!(of(TaskKind::Binary, None).is_empty());
    }
}
