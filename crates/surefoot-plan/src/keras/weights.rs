//! The arrays of a file, found for each layer and brought into the layouts of [`Weight`].

use hdf5_pure::File;

use super::Fault;
use super::archive::{Store, Values, array, has_group, strings};
use super::chain::{Node, Place};
use crate::{Layer, Weight};

/// An array that a layer has, as Keras shapes it.
struct Array {
    name: &'static str,
    /// `None` where only the layer's input knows the size.
    shape: Vec<Option<usize>>,
}

/// The weights of all layers; empty if the file has none for any of them.
pub(super) fn read(
    store: Option<&Store>,
    nodes: &[Node<'_>],
    layers: &[Layer],
) -> Result<Vec<Weight>, Fault> {
    let Some(store) = store else {
        return Ok(Vec::new());
    };
    let mut weights = Vec::new();
    let mut missing = None;
    for (node, layer) in nodes.iter().zip(layers) {
        for (direction, way) in directions(layer) {
            for (index, expected) in arrays(layer).iter().enumerate() {
                let stored = match store {
                    Store::Named(file) => named(file, nodes, node, *way, expected.name)?,
                    Store::Numbered(file) => numbered(file, &node.place, layer, *way, index)?,
                };
                match stored {
                    None => {
                        missing = missing.or_else(|| {
                            let reason = format!("there is no {direction}{}", expected.name);
                            Some(Fault::weights(&node.name, reason))
                        });
                    }
                    Some((shape, values)) => {
                        check_shape(&node.name, expected, &shape)?;
                        let (shape, values) = channels_first(layer, expected.name, shape, values);
                        weights.push(Weight {
                            layer: node.name.clone(),
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
        Some(fault) if !weights.is_empty() => Err(fault),
        _ => Ok(weights),
    }
}

/// Which of the two layers in a `Bidirectional`.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Only,
    Forward,
    Backward,
}

fn directions(layer: &Layer) -> &'static [(&'static str, Way)] {
    let both = match layer {
        Layer::SimpleRnn(rnn) => rnn.bidirectional,
        Layer::Lstm(rnn) => rnn.bidirectional,
        Layer::Gru(rnn) => rnn.bidirectional,
        _ => false,
    };
    if both {
        &[("forward_", Way::Forward), ("backward_", Way::Backward)]
    } else {
        &[("", Way::Only)]
    }
}

/// The arrays of one direction of a layer, in Keras's order.
fn arrays(layer: &Layer) -> Vec<Array> {
    let mut arrays = Vec::new();
    let mut add = |present: bool, name: &'static str, shape: &[Option<usize>]| {
        if present {
            let shape = shape.to_vec();
            arrays.push(Array { name, shape });
        }
    };
    match layer {
        Layer::Dense(dense) => {
            add(true, "kernel", &[None, Some(dense.units)]);
            add(dense.use_bias, "bias", &[Some(dense.units)]);
        }
        Layer::Conv1d(conv) => {
            let filters = Some(conv.filters);
            add(true, "kernel", &[Some(conv.kernel_size), None, filters]);
            add(conv.use_bias, "bias", &[filters]);
        }
        Layer::Conv2d(conv) => {
            let filters = Some(conv.filters);
            let [height, width] = conv.kernel_size.map(Some);
            add(true, "kernel", &[height, width, None, filters]);
            add(conv.use_bias, "bias", &[filters]);
        }
        Layer::BatchNorm(norm) => {
            add(norm.scale, "gamma", &[None]);
            add(norm.center, "beta", &[None]);
            add(true, "moving_mean", &[None]);
            add(true, "moving_variance", &[None]);
        }
        Layer::LayerNorm(norm) => {
            add(norm.scale, "gamma", &[None]);
            add(norm.center, "beta", &[None]);
        }
        Layer::GroupNorm(norm) => {
            add(norm.scale, "gamma", &[None]);
            add(norm.center, "beta", &[None]);
        }
        Layer::Embedding(table) => {
            let shape = [Some(table.input_dim), Some(table.output_dim)];
            add(true, "embeddings", &shape);
        }
        Layer::SimpleRnn(rnn) => {
            let units = Some(rnn.units);
            add(true, "kernel", &[None, units]);
            add(true, "recurrent_kernel", &[units, units]);
            add(rnn.use_bias, "bias", &[units]);
        }
        Layer::Lstm(rnn) => {
            let gates = rnn.units.checked_mul(4);
            add(true, "kernel", &[None, gates]);
            add(true, "recurrent_kernel", &[Some(rnn.units), gates]);
            add(rnn.use_bias, "bias", &[gates]);
        }
        Layer::Gru(rnn) => {
            let gates = rnn.units.checked_mul(3);
            add(true, "kernel", &[None, gates]);
            add(true, "recurrent_kernel", &[Some(rnn.units), gates]);
            add(rnn.use_bias && rnn.reset_after, "bias", &[Some(2), gates]);
            add(rnn.use_bias && !rnn.reset_after, "bias", &[gates]);
        }
        _ => {}
    }
    arrays
}

/// Finds an array by its name, as `dense/kernel:0`. Inside an inner model, the layer's name is one
/// of the parts.
fn named(
    file: &File,
    nodes: &[Node<'_>],
    node: &Node<'_>,
    way: Way,
    name: &str,
) -> Result<Option<Values>, Fault> {
    let group = format!("model_weights/{}", node.place.outer);
    let names = strings(file, &group, "weight_names")?.unwrap_or_default();
    if let Some(inner) = node.place.inner {
        let same = |other: &&Node<'_>| {
            other.place.outer == node.place.outer && other.place.inner == Some(inner)
        };
        if nodes.iter().filter(same).count() > 1 {
            return Err(Fault::weights(
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
        (_, found) => Err(Fault::weights(
            &node.name,
            format!("{} arrays could be its {name}: {found:?}", found.len()),
        )),
    }
}

/// Finds an array by its number, as `layers/lstm_1/cell/vars/0`.
fn numbered(
    file: &File,
    place: &Place<'_>,
    layer: &Layer,
    way: Way,
    index: usize,
) -> Result<Option<Values>, Fault> {
    let way = match way {
        Way::Only => "",
        Way::Forward => "/forward_layer",
        Way::Backward => "/backward_layer",
    };
    let cell = match layer {
        Layer::SimpleRnn(_) | Layer::Lstm(_) | Layer::Gru(_) => "/cell",
        _ => "",
    };
    let mut path = format!("{}{way}{cell}/vars/{index}", place.path);
    // The archives of Keras 2.12 and 2.13.
    const OLD: &str = "_layer_checkpoint_dependencies";
    if has_group(file, OLD) {
        path = path.replace("layers/", &format!("{OLD}/"));
    }
    array(file, &path).map_err(|error| Fault::damaged(format!("`{path}`"), error))
}

fn get(file: &File, path: &str, node: &Node<'_>) -> Result<Option<Values>, Fault> {
    let found = array(file, path).map_err(|error| Fault::damaged(format!("`{path}`"), error))?;
    match found {
        Some(found) => Ok(Some(found)),
        None => Err(Fault::weights(&node.name, format!("`{path}` is listed but not there"))),
    }
}

fn check_shape(layer: &str, expected: &Array, shape: &[usize]) -> Result<(), Fault> {
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
    Err(Fault::weights(
        layer,
        format!("its {} has the shape {shape:?}, expected [{}]", expected.name, wanted.join(", ")),
    ))
}

/// Keras has the channels of a kernel last, `[height, width, in, filters]`; here it is
/// `[filters, in, height, width]`.
fn channels_first(layer: &Layer, name: &str, shape: Vec<usize>, values: Vec<f32>) -> Values {
    match (layer, name) {
        (Layer::Conv1d(_), "kernel") => permute(&shape, &values, [2, 1, 0]),
        (Layer::Conv2d(_), "kernel") => permute(&shape, &values, [3, 2, 0, 1]),
        _ => (shape, values),
    }
}

/// Moves axis `order[i]` of a row-major array to place `i`.
fn permute<const N: usize>(shape: &[usize], values: &[f32], order: [usize; N]) -> Values {
    let mut strides = [1; N];
    for axis in (1..N).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let moved = order.map(|axis| shape[axis]);
    let steps = order.map(|axis| strides[axis]);
    let mut index = [0; N];
    let permuted = (0..values.len())
        .map(|_| {
            let from: usize = index.iter().zip(steps).map(|(i, step)| i * step).sum();
            for axis in (0..N).rev() {
                index[axis] += 1;
                if index[axis] < moved[axis] {
                    break;
                }
                index[axis] = 0;
            }
            values[from]
        })
        .collect();
    (moved.to_vec(), permuted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permuting_moves_axes() {
        let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
        let shape = [2, 3, 4];
        let (moved, permuted) = permute(&shape, &values, [2, 0, 1]);
        assert_eq!(moved, [4, 2, 3]);
        for (c, a, b) in (0..4).flat_map(|c| (0..6).map(move |ab| (c, ab / 3, ab % 3))) {
            assert_eq!(permuted[c * 6 + a * 3 + b], values[a * 12 + b * 4 + c]);
        }
    }

    #[test]
    fn permuting_an_empty_array_is_empty() {
        assert_eq!(permute(&[0, 3, 2], &[], [2, 1, 0]), (vec![2, 3, 0], Vec::new()));
    }

    #[test]
    fn a_wrong_shape_says_what_was_expected() {
        let expected = Array { name: "kernel", shape: vec![None, Some(4)] };
        assert!(check_shape("a", &expected, &[7, 4]).is_ok());
        let fault = check_shape("a", &expected, &[4, 7]).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "has wrong weights for layer `a`: its kernel has the shape [4, 7], expected [any, 4]"
        );
    }
}
