//! Shape inference over a list of layers.

use super::{Input, LayerShape, Mismatch, ShapeError};
use crate::layer::Role;
use crate::names::Namer;
use crate::{Layer, Residual};

/// Infers the shapes of all layers, depth first; a residual block follows the layers inside it, and
/// those of its shortcut are numbered after those of its branch.
///
/// `integers` is true if the input consists of whole numbers, as an embedding requires.
pub fn infer(
    layers: &[Layer],
    input: &[usize],
    integers: bool,
) -> Result<Vec<LayerShape>, ShapeError> {
    let mut walk = Walk::default();
    walk.list(layers, "", (&mut Vec::new(), 0), input.to_vec(), integers)?;
    match walk.shapes.last() {
        Some(last) if walk.is_masked => {
            let open = Mismatch::new("it returns hidden steps")
                .help("end the sequence with a recurrent layer without `return_sequences`");
            Err(open.at(&last.path, &last.name, &last.input))
        }
        _ => Ok(walk.shapes),
    }
}

#[derive(Default)]
struct Walk {
    namer: Namer,
    shapes: Vec<LayerShape>,
    /// True if a masking layer hides steps of the current value.
    is_masked: bool,
}

impl Walk {
    /// Infers the shapes of a list of layers and returns the shape of its output. The place is the
    /// path of the list and the number of its first layer.
    fn list(
        &mut self,
        layers: &[Layer],
        scope: &str,
        (path, first): (&mut Vec<usize>, usize),
        mut input: Vec<usize>,
        mut integers: bool,
    ) -> Result<Vec<usize>, ShapeError> {
        for (index, layer) in layers.iter().enumerate() {
            let name = self.namer.name(layer, layers, scope);
            path.push(first + index);
            let mut branch = Ok(None);
            if let Layer::Residual(block) = layer {
                let place = (&mut *path, 0);
                let output = self.list(&block.layers, &name, place, input.clone(), integers)?;
                let mut shortcut = None;
                if let Some(layers) = &block.shortcut {
                    let scope = format!("{name}/shortcut");
                    let place = (&mut *path, block.layers.len());
                    shortcut = Some(self.list(layers, &scope, place, input.clone(), integers)?);
                }
                branch = Residual::check_branch(&input, shortcut.as_deref(), &output)
                    .map(|()| Some(output));
            }
            let is_masked = self.is_masked;
            let output = branch
                .and_then(|branch| match input.is_empty() {
                    true => Err(Mismatch::new("it needs at least one dimension")),
                    false if is_masked && !layer.keeps_mask() => {
                        Err(Mismatch::new("it cannot skip hidden steps").help(
                            "put a recurrent layer without `return_sequences` between it and the \
                             `masking` layer, or remove that layer, so that padding is read as data",
                        ))
                    }
                    false => {
                        let mut output = layer.output(Input { shape: &input, integers })?;
                        output.shape = branch.unwrap_or(output.shape);
                        Ok(output)
                    }
                })
                .map_err(|mismatch| mismatch.at(path, &name, &input))?;
            integers &= layer.role() == Role::Reshape;
            let hides = is_masked || matches!(layer, Layer::Masking(_));
            self.is_masked = hides && output.shape.len() > 1;
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
