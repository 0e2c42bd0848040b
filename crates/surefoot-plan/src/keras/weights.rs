//! Weights of a Keras file, in the layouts of [`Weight`].

use hdf5_pure::File;

use super::archive::{Store, Values, array, has_group, strings};
use super::chain::{Node, Place};
use super::{KerasErrorKind, Result};
use crate::{Layer, Weight};

/// The arrays of a layer as Keras stores them.
#[derive(Default)]
pub(crate) struct KerasArrays {
    arrays: Vec<Array>,
    recurrent: bool,
    bidirectional: bool,
}

struct Array {
    name: &'static str,
    /// Shape in Keras; `None` for sizes that depend on the input.
    shape: Vec<Option<usize>>,
    /// Order of the axes here, if it differs from that of Keras.
    order: &'static [usize],
}

impl KerasArrays {
    /// A recurrent layer, whose arrays Keras stores in a cell.
    pub(crate) fn recurrent(bidirectional: bool) -> Self {
        Self { arrays: Vec::new(), recurrent: true, bidirectional }
    }

    /// Adds an array.
    pub(crate) fn with(mut self, name: &'static str, shape: &[Option<usize>]) -> Self {
        self.arrays.push(Array { name, shape: shape.to_vec(), order: &[] });
        self
    }

    /// Adds an array if the layer has it.
    pub(crate) fn with_if(
        self,
        present: bool,
        name: &'static str,
        shape: &[Option<usize>],
    ) -> Self {
        if present { self.with(name, shape) } else { self }
    }

    /// Moves axis `order[i]` of the last added array to position `i`.
    pub(crate) fn transposed(mut self, order: &'static [usize]) -> Self {
        if let Some(array) = self.arrays.last_mut() {
            array.order = order;
        }
        self
    }
}

/// Reads the weights of all layers; empty if the file has none.
pub(super) fn read(
    store: Option<&Store>,
    nodes: &[Node<'_>],
    layers: &[Layer],
) -> Result<Vec<Weight>> {
    let Some(store) = store else {
        return Ok(Vec::new());
    };
    let mut weights = Vec::new();
    let mut missing = None;
    for (node, layer) in nodes.iter().zip(layers) {
        let arrays = layer.keras_arrays();
        for (direction, way) in arrays.directions() {
            for (index, expected) in arrays.arrays.iter().enumerate() {
                let stored = match store {
                    Store::Named(file) => named(file, nodes, node, *way, expected.name)?,
                    Store::Numbered(file) => {
                        numbered(file, &node.place, arrays.recurrent, *way, index)?
                    }
                };
                match stored {
                    None => {
                        missing = missing.or_else(|| {
                            let reason = format!("there is no {direction}{}", expected.name);
                            Some(KerasErrorKind::weights(&node.name, reason))
                        });
                    }
                    Some((shape, values)) => {
                        check_shape(&node.name, expected, &shape)?;
                        let (shape, values) = permute(shape, values, expected.order);
                        weights.push(Weight {
                            layer: format!("{}{}", node.scope, node.name),
                            name: format!("{direction}{}", expected.name),
                            shape,
                            values,
                        });
                    }
                }
            }
        }
    }
    match missing {
        Some(error) if !weights.is_empty() => Err(error),
        _ => Ok(weights),
    }
}

/// Direction of a layer in a `Bidirectional`.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Only,
    Forward,
    Backward,
}

impl KerasArrays {
    fn directions(&self) -> &'static [(&'static str, Way)] {
        match self.bidirectional {
            true => &[("forward_", Way::Forward), ("backward_", Way::Backward)],
            false => &[("", Way::Only)],
        }
    }
}

/// Finds an array by its name, as `dense/kernel:0`. Inside an inner model, the layer's name is one
/// of the parts.
fn named(
    file: &File,
    nodes: &[Node<'_>],
    node: &Node<'_>,
    way: Way,
    name: &str,
) -> Result<Option<Values>> {
    let group = format!("model_weights/{}", node.place.outer);
    let names = strings(file, &group, "weight_names")?.unwrap_or_default();
    if let Some(inner) = node.place.inner {
        let same = |other: &&Node<'_>| {
            other.place.outer == node.place.outer && other.place.inner == Some(inner)
        };
        if nodes.iter().filter(same).count() > 1 {
            return Err(KerasErrorKind::weights(
                &node.name,
                format!("two layers in `{}` are called `{inner}`", node.place.outer),
            ));
        }
    }
    let belongs = |stored: &&String| {
        let last = stored.rsplit('/').next().unwrap_or_default();
        let inside = |inner: &str| format!("/{stored}").contains(&format!("/{inner}/"));
        last.split(':').next() == Some(name) && node.place.inner.is_none_or(inside)
    };
    let found: Vec<&String> = names.iter().filter(belongs).collect();
    // Keras lists the forward layer before the backward layer, whatever they are called.
    match (way, found.as_slice()) {
        (_, []) => Ok(None),
        (Way::Only, [stored]) | (Way::Forward, [stored, _]) | (Way::Backward, [_, stored]) => {
            get(file, &format!("{group}/{stored}"), node)
        }
        (_, found) => Err(KerasErrorKind::weights(
            &node.name,
            format!("{} arrays could be its {name}: {found:?}", found.len()),
        )),
    }
}

/// Finds an array by its number, as `layers/lstm_1/cell/vars/0`.
fn numbered(
    file: &File,
    place: &Place<'_>,
    recurrent: bool,
    way: Way,
    index: usize,
) -> Result<Option<Values>> {
    let way = match way {
        Way::Only => "",
        Way::Forward => "/forward_layer",
        Way::Backward => "/backward_layer",
    };
    let cell = if recurrent { "/cell" } else { "" };
    let mut path = format!("{}{way}{cell}/vars/{index}", place.path);
    // The archives of Keras 2.12 and 2.13.
    const OLD: &str = "_layer_checkpoint_dependencies";
    if has_group(file, OLD) {
        path = path.replace("layers/", &format!("{OLD}/"));
    }
    array(file, &path).map_err(|error| KerasErrorKind::damaged(format!("`{path}`"), error))
}

fn get(file: &File, path: &str, node: &Node<'_>) -> Result<Option<Values>> {
    let found =
        array(file, path).map_err(|error| KerasErrorKind::damaged(format!("`{path}`"), error))?;
    match found {
        Some(found) => Ok(Some(found)),
        None => {
            Err(KerasErrorKind::weights(&node.name, format!("`{path}` is listed but not there")))
        }
    }
}

fn check_shape(layer: &str, expected: &Array, shape: &[usize]) -> Result<()> {
    let fits = expected.shape.len() == shape.len()
        && expected
            .shape
            .iter()
            .zip(shape)
            .all(|(expected, &size)| expected.is_none_or(|expected| expected == size));
    if fits {
        return Ok(());
    }
    let wanted: Vec<String> = expected
        .shape
        .iter()
        .map(|size| size.map_or("any".to_owned(), |size| size.to_string()))
        .collect();
    Err(KerasErrorKind::weights(
        layer,
        format!("its {} has the shape {shape:?}, expected [{}]", expected.name, wanted.join(", ")),
    ))
}

/// Moves axis `order[i]` of a row-major array to position `i`; an empty order keeps the axes.
fn permute(shape: Vec<usize>, values: Vec<f32>, order: &[usize]) -> Values {
    if order.is_empty() {
        return (shape, values);
    }
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let moved: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let mut index = vec![0; order.len()];
    let permuted = (0..values.len())
        .map(|_| {
            let from: usize = index.iter().zip(order).map(|(i, &axis)| i * strides[axis]).sum();
            for axis in (0..order.len()).rev() {
                index[axis] += 1;
                if index[axis] < moved[axis] {
                    break;
                }
                index[axis] = 0;
            }
            values[from]
        })
        .collect();
    (moved, permuted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permuting_moves_axes() {
        let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
        let (moved, permuted) = permute(vec![2, 3, 4], values.clone(), &[2, 0, 1]);
        assert_eq!(moved, [4, 2, 3]);
        for (c, a, b) in (0..4).flat_map(|c| (0..6).map(move |ab| (c, ab / 3, ab % 3))) {
            assert_eq!(permuted[c * 6 + a * 3 + b], values[a * 12 + b * 4 + c]);
        }
    }

    #[test]
    fn permuting_an_empty_array_is_empty() {
        assert_eq!(permute(vec![0, 3, 2], Vec::new(), &[2, 1, 0]), (vec![2, 3, 0], Vec::new()));
    }

    #[test]
    fn a_wrong_shape_is_reported_with_the_expected_one() {
        let expected = Array { name: "kernel", shape: vec![None, Some(4)], order: &[] };
        assert!(check_shape("a", &expected, &[7, 4]).is_ok());
        let error = check_shape("a", &expected, &[4, 7]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "has wrong weights for layer `a`: its kernel has the shape [4, 7], expected [any, 4]"
        );
    }
}
