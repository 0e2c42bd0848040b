//! Change of shape.

use super::{LayerSpec, Role};
use crate::language::{name, record};
use crate::shape::{Input, Mismatch, Output, size};

/// The same values in another shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// Name of the layer.
    pub name: Option<String>,
    /// The new shape; one entry may be -1 and is then inferred.
    pub target_shape: Vec<i64>,
}

impl Reshape {
    /// A reshape to `target_shape`.
    pub fn new(target_shape: Vec<i64>) -> Self {
        Self { name: None, target_shape }
    }
}

record! { Reshape; maybe: name(name); required: target_shape(sizes); }

impl LayerSpec for Reshape {
    const ROLE: Role = Role::Reshape;

    fn template() -> Self {
        Self::new(Vec::new())
    }

    fn output(&self, input: Input<'_>) -> Result<Output, Mismatch> {
        let target = &self.target_shape;
        let values = size(input.shape);
        let known: Vec<usize> =
            target.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
        let product = size(&known);
        let fits = match known.len() < target.len() {
            true => product > 0 && values.is_multiple_of(product),
            false => product == values,
        };
        if !fits {
            return Err(Mismatch::new(format!("its {values} values do not fill {target:?}")));
        }
        let shape = target
            .iter()
            .map(|size| usize::try_from(*size).unwrap_or_else(|_| values / product.max(1)))
            .collect();
        Output::new(shape, 0)
    }

    #[cfg(feature = "keras")]
    fn rank(&self, _: Option<usize>) -> Option<usize> {
        Some(self.target_shape.len())
    }
}

#[expect(clippy::ptr_arg, reason = "a rule takes a reference to its exact type")]
fn sizes(sizes: &Vec<i64>) -> Result<(), &'static str> {
    let inferred = sizes.iter().filter(|size| **size == -1).count();
    if sizes.is_empty() || inferred > 1 || sizes.iter().any(|size| *size < 1 && *size != -1) {
        return Err("be a list of sizes of at least 1, one of which may be -1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, mismatch_of, output_of};
    use super::*;

    #[test]
    fn one_size_is_inferred() {
        let reshape = |sizes: &[i64]| Layer::Reshape(Reshape::new(sizes.to_vec()));
        assert_eq!(output_of(reshape(&[2, -1]), &[3, 4]).0, [2, 6]);
        assert_eq!(output_of(reshape(&[12]), &[3, 4]).0, [12]);
        assert!(mismatch_of(reshape(&[5, -1]), &[3, 4]).contains("12 values"));
        assert!(mismatch_of(reshape(&[5]), &[3, 4]).contains("[5]"));
    }
}
