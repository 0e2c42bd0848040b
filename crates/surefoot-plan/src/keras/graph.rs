//! Order of the layers of a functional model.

use std::collections::HashMap;

use serde_json::Value;

use super::chain::Entry;
use super::error::quoted;
use super::{KerasErrorKind, Result};

/// Sorts the layers of a functional model from its input to its output.
pub(super) fn in_order<'a>(
    entries: Vec<Entry<'a>>,
    outputs: Option<&'a Value>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Entry<'a>>> {
    let mut output_names = Vec::new();
    if let Some(outputs) = outputs {
        producers(outputs, &mut output_names);
    }
    if output_names.len() > 1 {
        return Err(KerasErrorKind::not_a_chain(format!(
            "it has {} outputs, {}",
            output_names.len(),
            quoted(&output_names)
        )));
    }

    let mut sources = Vec::new();
    let mut consumers: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut merging = None;
    for entry in &entries {
        let calls = entry.json.get("inbound_nodes").and_then(Value::as_array);
        let calls = calls.map_or(&[][..], Vec::as_slice);
        if calls.len() > 1 {
            return Err(KerasErrorKind::not_a_chain(format!(
                "layer `{}` is used {} times",
                entry.name,
                calls.len()
            )));
        }
        let mut inputs = Vec::new();
        for call in calls {
            producers(call, &mut inputs);
            if trains_always(call) {
                warnings.push(format!(
                    "layer `{}` is called with `training=True` in Keras, also for predictions; in \
                     Surefoot it trains only in training",
                    entry.name
                ));
            }
        }
        if inputs.is_empty() {
            sources.push(entry.name);
        }
        if inputs.len() > 1 && merging.is_none() {
            merging = Some((entry.name, inputs.clone()));
        }
        for input in inputs {
            consumers.entry(input).or_default().push(entry.name);
        }
    }

    for entry in &entries {
        let to = consumers.get(entry.name).map_or(&[][..], Vec::as_slice);
        if to.len() > 1 {
            return Err(KerasErrorKind::not_a_chain(format!(
                "it branches at layer `{}`, whose output goes to {}",
                entry.name,
                quoted(to)
            )));
        }
    }
    if sources.len() > 1 {
        return Err(KerasErrorKind::not_a_chain(format!(
            "it has {} inputs, {}",
            sources.len(),
            quoted(&sources)
        )));
    }
    if let Some((name, inputs)) = merging {
        return Err(KerasErrorKind::not_a_chain(format!(
            "layer `{name}` takes {} inputs, {}",
            inputs.len(),
            quoted(&inputs)
        )));
    }

    let mut rest: HashMap<&str, Entry<'a>> =
        entries.into_iter().map(|entry| (entry.name, entry)).collect();
    let mut ordered = Vec::with_capacity(rest.len());
    let mut next = sources.first().copied();
    while let Some(entry) = next.and_then(|name| rest.remove(name)) {
        next = consumers.get(entry.name).and_then(|to| to.first().copied());
        ordered.push(entry);
    }
    match rest.keys().min() {
        Some(name) => Err(KerasErrorKind::not_a_chain(format!(
            "layer `{name}` is not connected to the input"
        ))),
        None => Ok(ordered),
    }
}

/// Collects the layers that a call takes its inputs from. Keras 2 refers to a tensor as
/// `["layer", 0, 0, ..]`, Keras 3 as a `__keras_tensor__` whose `keras_history` is that.
fn producers<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => match items.as_slice() {
            [Value::String(name), Value::Number(_), Value::Number(_), rest @ ..] => {
                names.push(name);
                rest.iter().for_each(|item| producers(item, names));
            }
            items => items.iter().for_each(|item| producers(item, names)),
        },
        Value::Object(fields) => fields.values().for_each(|field| producers(field, names)),
        _ => {}
    }
}

fn trains_always(call: &Value) -> bool {
    match call {
        Value::Array(items) => items.iter().any(trains_always),
        Value::Object(fields) => {
            fields.get("training") == Some(&Value::Bool(true))
                || fields.get("kwargs").is_some_and(trains_always)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::chain::flatten;
    use super::*;

    fn called(name: &str, inputs: &[&str]) -> Value {
        let tensors: Vec<Value> = inputs.iter().map(|name| json!([name, 0, 0, {}])).collect();
        let calls = if tensors.is_empty() { json!([]) } else { json!([tensors]) };
        let class = if inputs.is_empty() { "InputLayer" } else { "Dense" };
        let config = json!({"name": name, "batch_input_shape": [null, 4]});
        json!({"class_name": class, "config": config, "name": name, "inbound_nodes": calls})
    }

    fn functional(layers: &[Value], outputs: &[&str]) -> Value {
        let outputs: Vec<Value> = outputs.iter().map(|name| json!([name, 0, 0])).collect();
        json!({"class_name": "Functional", "config": {"layers": layers, "output_layers": outputs}})
    }

    fn names(model: &Value) -> Vec<String> {
        let chain = flatten(model, &mut Vec::new()).unwrap();
        chain.nodes.into_iter().map(|node| node.name).collect()
    }

    fn reason(model: &Value) -> String {
        match flatten(model, &mut Vec::new()) {
            Err(KerasErrorKind::NotAChain { reason }) => reason,
            other => panic!("{:?}", other.map(|chain| chain.input)),
        }
    }

    #[test]
    fn functional_layers_follow_the_data() {
        let model =
            functional(&[called("c", &["b"]), called("in", &[]), called("b", &["in"])], &["c"]);
        assert_eq!(names(&model), ["b", "c"]);
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        assert_eq!(chain.input.shape(), Some(vec![4]));
        // In the archive, layers are numbered in the order of the file.
        assert_eq!(chain.nodes[0].place.path, "layers/dense_1");
    }

    #[test]
    fn a_branch_is_reported_where_it_begins() {
        let model = functional(
            &[
                called("in", &[]),
                called("fork", &["in"]),
                called("side", &["fork"]),
                called("join", &["fork", "side"]),
            ],
            &["join"],
        );
        assert_eq!(
            reason(&model),
            "it branches at layer `fork`, whose output goes to `side` and `join`"
        );
    }

    #[test]
    fn several_inputs_outputs_and_uses_are_errors() {
        let model =
            functional(&[called("a", &[]), called("b", &[]), called("c", &["a", "b"])], &["c"]);
        assert_eq!(reason(&model), "it has 2 inputs, `a` and `b`");
        let model = functional(&[called("a", &[]), called("b", &["a"])], &["a", "b"]);
        assert_eq!(reason(&model), "it has 2 outputs, `a` and `b`");
        let mut twice = called("b", &["a"]);
        twice["inbound_nodes"] = json!([[["a", 0, 0, {}]], [["b", 0, 0, {}]]]);
        let model = functional(&[called("a", &[]), twice], &["b"]);
        assert_eq!(reason(&model), "layer `b` is used 2 times");
        let model = functional(&[called("a", &[]), called("b", &["a", "a"])], &["b"]);
        assert!(reason(&model).starts_with("it branches at layer `a`"));
    }

    #[test]
    fn cycles_and_unconnected_layers_are_errors() {
        let model =
            functional(&[called("a", &[]), called("b", &["c"]), called("c", &["b"])], &["c"]);
        assert_eq!(reason(&model), "layer `b` is not connected to the input");
    }

    #[test]
    fn frozen_and_always_training_layers_are_warnings() {
        let mut frozen = called("b", &["a"]);
        frozen["config"]["trainable"] = json!(false);
        frozen["inbound_nodes"] = json!([[["a", 0, 0, {"training": true}]]]);
        let mut warnings = Vec::new();
        flatten(&functional(&[called("a", &[]), frozen], &["b"]), &mut warnings).unwrap();
        assert!(warnings.iter().any(|warning| warning.contains("`b` is frozen")));
        assert!(warnings.iter().any(|warning| warning.contains("training=True")));
    }
}
