//! `normalize_data` (S9): process the input data.

use crate::action::{Action, Outliers};
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::LayerKind;

/// `normalize_data` (S9): clips outliers, standardizes every feature, and imputes missing values.
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
        match variant {
            0 => Ok(vec![Action::NormalizeData { outliers: Outliers::Clip }]),
            // Outliers may be what matters.
            1 => Ok(vec![Action::NormalizeData { outliers: Outliers::Keep }]),
            _ => Err("all ways to normalize were tried".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, propose};
    use super::*;
    use surefoot_diagnose::{Facts, LayerInfo, Problem};

    #[test]
    fn features_are_standardized_and_symbols_are_not() {
        let of = |facts: &Facts| propose(&InputData, Problem::ABNORMAL_DATA, facts);
        let clipped = Action::NormalizeData { outliers: Outliers::Clip };
        assert_eq!(of(&facts())[0], [clipped]);
        let layers = vec![LayerInfo::new("words", LayerKind::Embedding)];
        assert!(of(&Facts { layers, ..facts() }).is_empty());
    }
}
