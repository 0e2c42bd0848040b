//! Residual block.

use super::{Layer, LayerSpec, Role};
use crate::language::{Fields, Record, keys, name};
use crate::shape::{Input, Mismatch, Output};

/// `x + layers(x)`, or `shortcut(x) + layers(x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// Name of the block.
    pub name: Option<String>,
    /// The branch. Without a shortcut, its output must have the shape of its input.
    pub layers: Vec<Layer>,
    /// Layers that are applied to the input before it is added; none if absent.
    pub shortcut: Option<Vec<Layer>>,
}

impl Residual {
    /// A residual block around `layers`.
    pub fn new(layers: Vec<Layer>) -> Self {
        Self { name: None, layers, shortcut: None }
    }

    /// Checks that the output of the branch can be added to the input, or to the output of the
    /// shortcut.
    pub(crate) fn check_branch(
        input: &[usize],
        shortcut: Option<&[usize]>,
        output: &[usize],
    ) -> Result<(), Mismatch> {
        if output == shortcut.unwrap_or(input) {
            return Ok(());
        }
        if let Some(shortcut) = shortcut {
            return Err(Mismatch::new(format!(
                "the output of its layers, {output:?}, cannot be added to that of its shortcut, \
                 {shortcut:?}"
            )));
        }
        Err(Mismatch::new(format!(
            "the output of its layers, {output:?}, cannot be added to {input:?}"
        ))
        .help("the layers of a residual block must keep the shape of their input"))
    }
}

impl Record for Residual {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        keys! { f, self; maybe: name(name); required: layers; maybe: shortcut; }
    }

    /// The layers of a shortcut are named `BLOCK/shortcut/LAYER`.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let is_taken = self.layers.iter().any(|layer| layer.name() == Some("shortcut"));
        match self.shortcut.is_some() && is_taken {
            true => Err(("layers", "a layer beside a `shortcut` cannot be named `shortcut`")),
            false => Ok(()),
        }
    }
}

impl LayerSpec for Residual {
    const ROLE: Role = Role::Compute;

    fn template() -> Self {
        Self::new(Vec::new())
    }

    /// The parameters are those of the layers inside, which are counted there.
    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        Output::new(input.shape.to_vec(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dense, infer};

    fn dense(units: usize) -> Layer {
        Layer::Dense(Dense::new(units))
    }

    #[test]
    fn a_residual_block_follows_its_layers() {
        let block = Layer::Residual(Residual::new(vec![dense(3), dense(8)]));
        let shapes = infer(&[dense(8), block, dense(1)], &[2], false).unwrap();
        let names: Vec<_> = shapes.iter().map(|shape| shape.name.as_str()).collect();
        assert_eq!(
            names,
            ["dense_1", "residual_1/dense_2", "residual_1/dense_3", "residual_1", "dense_4"]
        );
        assert_eq!(shapes[2].path, [1, 1]);
        assert_eq!(shapes[3].path, [1]);
        assert_eq!(shapes[3].input, shapes[3].output);
        assert_eq!(shapes.iter().map(|shape| shape.parameters).sum::<usize>(), 24 + 27 + 32 + 9);
    }

    #[test]
    fn a_shortcut_can_change_the_shape() {
        let block = |units| {
            let shortcut = Some(vec![dense(units)]);
            Layer::Residual(Residual { shortcut, ..Residual::new(vec![dense(5), dense(3)]) })
        };
        let shapes = infer(&[block(3), dense(1)], &[2], false).unwrap();
        let names: Vec<_> = shapes.iter().map(|shape| shape.name.as_str()).collect();
        assert_eq!(names[2..4], ["residual_1/shortcut/dense_3", "residual_1"]);
        assert_eq!((shapes[2].path.as_slice(), &shapes[3].output[..]), (&[0, 2][..], &[3][..]));
        let error = infer(&[block(4)], &[2], false).unwrap_err().to_string();
        assert!(error.contains("[3], cannot be added to that of its shortcut, [4]"), "{error}");
    }

    #[test]
    fn a_residual_block_must_keep_the_shape() {
        let block = Layer::Residual(Residual::new(vec![dense(3)]));
        let error = infer(&[block], &[2], false).unwrap_err();
        assert_eq!(error.path, [0]);
        assert_eq!(
            error.to_string(),
            "layer `residual_1` cannot take an input of shape [2]: the output of its layers, [3], \
             cannot be added to [2]"
        );
    }
}
