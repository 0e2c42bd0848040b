//! `normalize_data` (S9): process the input data.

use crate::action::Action;
use crate::remedy::{Remedy, RemedyContext};
use surefoot_diagnose::LayerKind;

/// `normalize_data` (S9): clips outliers, standardizes every feature, and imputes missing values.
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
            // Outliers may be what matters: variant 1 keeps them.
            0 | 1 => Ok(vec![Action::NormalizeData { clip_outliers: variant == 0 }]),
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
        let clipped = Action::NormalizeData { clip_outliers: true };
        assert_eq!(of(&facts())[0], [clipped]);
        let layers = vec![LayerInfo::new("words", LayerKind::Embedding)];
        assert!(of(&Facts { layers, ..facts() }).is_empty());
    }
}
