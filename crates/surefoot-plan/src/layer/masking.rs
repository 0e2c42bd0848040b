//! Masking of padded steps.

use super::{LayerSpec, Role};
use crate::language::{Fields, Record, any, name};
use crate::shape::{Input, Mismatch, Output};

/// Hides the steps of a sequence in which every feature has the value of the padding.
///
/// Recurrent layers skip hidden steps and keep their state. Only they, and layers that treat each
/// step on its own, can follow until one returns its last state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Masking {
    /// Name of the layer.
    pub name: Option<String>,
    /// Value of the padding.
    pub mask_value: f64,
}

impl Record for Masking {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("mask_value", &mut self.mask_value, any);
    }
}

impl LayerSpec for Masking {
    const ROLE: Role = Role::Other;

    fn template() -> Self {
        Self::default()
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        input.sequence()?;
        Output::new(input.shape.to_vec(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;
    use crate::{Dense, Dropout, Flatten, Lstm, infer};

    fn masking() -> Layer {
        Layer::Masking(Masking::default())
    }

    #[test]
    fn a_sequence_keeps_its_shape() {
        let last = [masking(), Layer::Lstm(Lstm::new(4))];
        assert_eq!(infer(&last, &[5, 8], false).unwrap()[0].output, [5, 8]);
        assert_eq!(mismatch_of(masking(), &[8]), "it needs [steps, features]");
        assert_eq!(output_of(Layer::Lstm(Lstm::new(4)), &[5, 8]).0, [4]);
    }

    #[test]
    fn hidden_steps_end_in_a_recurrent_layer() {
        let lstm = |return_sequences| Layer::Lstm(Lstm { return_sequences, ..Lstm::new(4) });
        let dense = || Layer::Dense(Dense::new(3));
        let infer = |layers: &[Layer]| infer(layers, &[5, 8], false);
        let fine = [masking(), Layer::Dropout(Dropout::new(0.5)), dense(), lstm(true), lstm(false)];
        assert!(infer(&[&fine[..], &[dense()]].concat()).is_ok());
        let flat = [masking(), Layer::Flatten(Flatten::default())];
        assert_eq!(infer(&flat).unwrap_err().label.unwrap(), "it cannot skip hidden steps");
        let open = infer(&[masking(), lstm(true)]).unwrap_err();
        assert_eq!(
            (open.path, open.label.unwrap()),
            (vec![1], "it returns hidden steps".to_owned())
        );
    }
}
