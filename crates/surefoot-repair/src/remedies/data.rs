//! `normalize_data` (S9): process the input data.

use crate::remedy::{Change, Remedy, RemedyContext};
use surefoot_diagnose::LayerKind;
use surefoot_plan::{Missing, Outliers, Plan, Scale};

/// `normalize_data` (S9): standardises every feature, cuts off what sticks out far, and fills in what is missing.
#[derive(Clone, Copy, Debug)]
pub struct InputData;

impl Remedy for InputData {
    fn id(&self) -> &'static str {
        "normalize_data"
    }

    fn title(&self) -> &'static str {
        "normalize the input data"
    }

    fn apply(
        &self,
        plan: &Plan,
        context: &RemedyContext<'_>,
        variant: usize,
    ) -> Result<Change, String> {
        let first = context.facts.layers.first();
        if first.is_some_and(|layer| layer.kind == LayerKind::Embedding) {
            return Err("the inputs are symbols, which cannot be scaled".to_owned());
        }
        let mut changed = plan.clone();
        changed.data.scale = Scale::Standardise;
        if changed.data.missing == Missing::Refuse {
            changed.data.missing = Missing::Impute;
        }
        match variant {
            0 => changed.data.outliers = Outliers::Clip,
            // What sticks out may be what matters.
            1 => changed.data.outliers = Outliers::Keep,
            _ => return Err("the data were processed in every way".to_owned()),
        }
        let message = match variant {
            0 => "Clips outliers and standardizes every feature.",
            _ => "Standardizes every feature.",
        };
        Change::new(plan, changed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, finding, plan};
    use super::*;
    use surefoot_diagnose::{Facts, LayerInfo, Problem};

    #[test]
    fn features_are_standardised_and_symbols_are_not() {
        let (facts, finding) = (facts(), finding(Problem::ABNORMAL_DATA));
        let context = RemedyContext { finding: &finding, facts: &facts };
        let change = InputData.apply(&plan(), &context, 0).unwrap();
        assert_eq!(change.plan.data.scale, Scale::Standardise);
        assert_eq!(change.plan.data.outliers, Outliers::Clip);
        let symbols = Facts {
            layers: vec![LayerInfo { kind: LayerKind::Embedding, ..LayerInfo::default() }],
            ..facts.clone()
        };
        let context = RemedyContext { facts: &symbols, ..context };
        assert!(InputData.apply(&plan(), &context, 0).is_err());
    }
}
