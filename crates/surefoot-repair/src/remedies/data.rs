//! `normalize_data` (S9): process the input data.

use crate::action::{Action, Outliers};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::LayerKind;

/// `normalize_data` (S9): imputes missing values, then clips outliers and standardizes every feature.
///
/// AutoTrainer removes outliers. Here a sample keeps its other features and its label, and a new sample
/// with an outlier is clipped in the same way at prediction time, when it cannot be removed.
#[derive(Clone, Copy, Debug)]
pub struct InputData;

impl Remedy for InputData {
    fn id(&self) -> &'static str {
        "normalize_data"
    }

    fn title(&self) -> &'static str {
        "normalize the input data"
    }

    fn propose(&self, context: &RemedyContext<'_>, variant: usize) -> Result<Vec<Action>, String> {
        let first = context.facts.layers.first();
        if first.is_some_and(|layer| layer.kind == LayerKind::Embedding) {
            return Err("the inputs are symbols, which cannot be scaled".to_owned());
        }
        if first.is_some_and(|layer| layer.kind == LayerKind::Masking) {
            return Err("scaled padding would no longer be masked".to_owned());
        }
        let normalize = |outliers| vec![Action::NormalizeData { outliers }];
        // Outliers may be what matters, so the last variant keeps them.
        let mut variants = vec![normalize(Outliers::Clip), normalize(Outliers::Keep)];
        if context.facts.missing_inputs > 0 {
            variants.iter_mut().for_each(|actions| actions.insert(0, Action::ImputeMissing));
            variants.insert(0, vec![Action::ImputeMissing]);
        }
        let actions = variants.into_iter().nth(variant);
        actions.ok_or_else(|| "all ways to normalize were tried".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, LayerInfo, Problem};

    #[test]
    fn features_are_imputed_and_standardized_and_symbols_are_not() {
        let of = |facts: &Facts| propose(&InputData, Problem::ABNORMAL_DATA, facts);
        let clipped = || Action::NormalizeData { outliers: Outliers::Clip };
        assert_eq!(of(&facts())[0], [clipped()]);
        let missing = of(&Facts { missing_inputs: 3, ..facts() });
        assert_eq!(missing[0], [Action::ImputeMissing]);
        assert_eq!(missing[1], [Action::ImputeMissing, clipped()]);
        let layers = vec![LayerInfo::new("words", LayerKind::Embedding)];
        assert!(of(&Facts { layers, ..facts() }).is_empty());
    }
}
