//! Shape inference over a list of layers.

use super::{Input, LayerShape, Mismatch, ShapeError};
use crate::layer::Role;
use crate::names::Namer;
use crate::{Layer, Residual};

/// Infers the shapes of all layers, depth first; a residual block follows the layers inside it.
///
/// `integers` is true if the input consists of whole numbers, as an embedding requires.
pub fn infer(
    layers: &[Layer],
    input: &[usize],
    integers: bool,
) -> Result<Vec<LayerShape>, ShapeError> {
    let mut walk = Walk::default();
    walk.list(layers, "", &mut Vec::new(), input.to_vec(), integers)?;
    Ok(walk.shapes)
}

#[derive(Default)]
struct Walk {
    namer: Namer,
    shapes: Vec<LayerShape>,
}

impl Walk {
    /// Infers the shapes of a list of layers and returns the shape of its output.
    fn list(
        &mut self,
        layers: &[Layer],
        scope: &str,
        path: &mut Vec<usize>,
        mut input: Vec<usize>,
        mut integers: bool,
    ) -> Result<Vec<usize>, ShapeError> {
        for (index, layer) in layers.iter().enumerate() {
            let name = self.namer.name(layer, layers, scope);
            path.push(index);
            let mut joined = Ok(());
            if let Layer::Residual(block) = layer {
                let branch = self.list(&block.layers, &name, path, input.clone(), integers)?;
                joined = Residual::check_branch(&input, &branch);
            }
            let output = joined
                .and_then(|()| match input.is_empty() {
                    true => Err(Mismatch::new("it needs at least one dimension")),
                    false => layer.output(Input { shape: &input, integers }),
                })
                .map_err(|mismatch| mismatch.at(path, &name, &input))?;
            integers &= layer.role() == Role::Reshape;
            self.shapes.push(LayerShape {
                name,
                kind: layer.kind(),
                path: path.clone(),
                input: std::mem::replace(&mut input, output.shape.clone()),
                output: output.shape,
                parameters: output.parameters,
            });
            path.pop();
        }
        Ok(input)
    }
}
