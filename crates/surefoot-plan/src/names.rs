//! Layer names.

use crate::Layer;
use std::collections::HashMap;

/// The names of all layers, depth first, with the layers of a residual block in place of the block.
///
/// A layer without a name in the plan is called `{kind}_{n}`, where `n` counts the layers of its
/// kind in the whole model, so that naming one layer does not change the names of others. A number
/// that is taken by a name in the plan is skipped. Inside a residual block the name of the block
/// and a slash are prepended, inside its shortcut `BLOCK/shortcut/`. Names are unique; reading a plan checks those that it sets.
///
/// ```
/// use surefoot_plan::{Dense, Layer, Residual, layer_names};
///
/// let dense = || Layer::Dense(Dense::new(8));
/// let model = [dense(), Layer::Residual(Residual::new(vec![dense()])), dense()];
/// assert_eq!(layer_names(&model), ["dense_1", "residual_1/dense_2", "dense_3"]);
/// ```
pub fn layer_names(layers: &[Layer]) -> Vec<String> {
    let mut names = Vec::new();
    collect(layers, "", &mut Namer::default(), &mut names);
    names
}

fn collect(layers: &[Layer], scope: &str, namer: &mut Namer, names: &mut Vec<String>) {
    for layer in layers {
        let name = namer.name(layer, layers, scope);
        match layer {
            Layer::Residual(block) => {
                collect(&block.layers, &name, namer, names);
                if let Some(shortcut) = &block.shortcut {
                    collect(shortcut, &format!("{name}/shortcut"), namer, names);
                }
            }
            _ => names.push(name),
        }
    }
}

/// Names layers in depth-first order, a residual block before its layers.
#[derive(Default)]
pub(crate) struct Namer {
    /// Number of layers of each kind so far.
    seen: HashMap<&'static str, usize>,
}

impl Namer {
    /// The name of `layer`, one of `siblings` in the residual block `scope` (empty: the model).
    pub(crate) fn name(&mut self, layer: &Layer, siblings: &[Layer], scope: &str) -> String {
        let count = self.seen.entry(layer.kind()).or_default();
        *count += 1;
        let own = match layer.name() {
            Some(name) => name.to_owned(),
            None => loop {
                let name = format!("{}_{count}", layer.kind());
                if siblings.iter().all(|other| other.name() != Some(&name)) {
                    break name;
                }
                *count += 1;
            },
        };
        match scope {
            "" => own,
            _ => format!("{scope}/{own}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dense, Flatten, Residual};

    fn dense(name: Option<&str>) -> Layer {
        Layer::Dense(Dense { name: name.map(str::to_owned), ..Dense::new(1) })
    }

    #[test]
    fn naming_a_layer_does_not_rename_others() {
        let plain = [dense(None), Layer::Flatten(Flatten::default()), dense(None)];
        assert_eq!(layer_names(&plain), ["dense_1", "flatten_1", "dense_2"]);
        let named = [dense(Some("first")), dense(None)];
        assert_eq!(layer_names(&named), ["first", "dense_2"]);
    }

    #[test]
    fn generated_names_avoid_given_ones() {
        let layers = [dense(Some("dense_2")), dense(None), dense(None)];
        assert_eq!(layer_names(&layers), ["dense_2", "dense_3", "dense_4"]);
    }

    #[test]
    fn names_in_nested_blocks_are_paths() {
        let inner = Layer::Residual(Residual::new(vec![dense(None)]));
        let outer = Layer::Residual(Residual {
            name: Some("outer".to_owned()),
            layers: vec![dense(None), inner],
            shortcut: Some(vec![dense(None)]),
        });
        let names = ["outer/dense_1", "outer/residual_2/dense_2", "outer/shortcut/dense_3"];
        assert_eq!(layer_names(&[outer]), names);
    }
}
