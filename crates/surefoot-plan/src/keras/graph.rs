//! Order of the layers of a functional model.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::chain::Entry;
use super::error::quoted;
use super::{KerasErrorKind, Result};

/// Sorts the layers of a functional model from its input to its output.
pub(super) fn in_order<'a>(
    entries: Vec<Entry<'a>>,
    outputs: Option<&'a Value>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Part<'a>>> {
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
    let mut inputs_of: HashMap<&str, Vec<&str>> = HashMap::new();
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
        for &input in &inputs {
            consumers.entry(input).or_default().push(entry.name);
        }
        inputs_of.insert(entry.name, inputs);
    }

    if sources.len() > 1 {
        return Err(KerasErrorKind::not_a_chain(format!(
            "it has {} inputs, {}",
            sources.len(),
            quoted(&sources)
        )));
    }
    let classes = entries.iter().map(|entry| (entry.name, entry.class)).collect();
    let mut walk = Walk { classes, inputs: inputs_of, consumers, visited: HashSet::new() };
    let mut ordered = Vec::with_capacity(entries.len());
    if let Some(&source) = sources.first()
        && let Some(join) = walk.follow(source, 0, &mut ordered)?
    {
        let inputs = &walk.inputs[join];
        return Err(KerasErrorKind::not_a_chain(format!(
            "layer `{join}` takes {} inputs, {}",
            inputs.len(),
            quoted(inputs)
        )));
    }
    let lost = entries.iter().map(|entry| entry.name).filter(|name| !walk.visited.contains(name));
    if let Some(name) = lost.min() {
        return Err(KerasErrorKind::not_a_chain(format!(
            "layer `{name}` is not connected to the input"
        )));
    }
    let mut entries: HashMap<&str, Entry<'a>> =
        entries.into_iter().map(|entry| (entry.name, entry)).collect();
    let part = |mark| match mark {
        Mark::Layer(name) => entries.remove(name).map(Part::Layer),
        Mark::Fork(name) => Some(Part::Fork(name)),
        Mark::Swap => Some(Part::Swap),
        Mark::Join => Some(Part::Join),
    };
    Ok(ordered.into_iter().filter_map(part).collect())
}

/// A part of a functional model, in the order of the data flow.
pub(super) enum Part<'a> {
    /// A layer.
    Layer(Entry<'a>),
    /// Two branches that the `Add` layer of this name joins; the first begins here.
    Fork(&'a str),
    /// The second branch begins, if it has layers.
    Swap,
    /// Both branches are added.
    Join,
}

/// A [`Part`] by name.
enum Mark<'a> {
    Layer(&'a str),
    Fork(&'a str),
    Swap,
    Join,
}

/// Blocks inside blocks that are followed.
const DEEPEST: usize = 64;

/// The way through a model from its input to its output.
struct Walk<'a> {
    classes: HashMap<&'a str, &'a str>,
    inputs: HashMap<&'a str, Vec<&'a str>>,
    consumers: HashMap<&'a str, Vec<&'a str>>,
    visited: HashSet<&'a str>,
}

impl<'a> Walk<'a> {
    /// Follows the data from a layer to the end of the model, or to the layer that joins it with
    /// another branch.
    fn follow(
        &mut self,
        from: &'a str,
        depth: usize,
        marks: &mut Vec<Mark<'a>>,
    ) -> Result<Option<&'a str>> {
        let mut at = from;
        loop {
            if self.inputs.get(at).is_some_and(|inputs| inputs.len() > 1) {
                return Ok(Some(at));
            }
            self.visit(at)?;
            marks.push(Mark::Layer(at));
            loop {
                let to = self.consumers.get(at).cloned().unwrap_or_default();
                match to[..] {
                    [] => return Ok(None),
                    [next] => {
                        at = next;
                        break;
                    }
                    [one, two] if depth < DEEPEST => {
                        at = self.block([one, two], at, depth, marks)?
                    }
                    _ => return Err(self.branches(at)),
                }
            }
        }
    }

    /// Follows two branches and returns the layer that joins them.
    fn block(
        &mut self,
        starts: [&'a str; 2],
        fork: &'a str,
        depth: usize,
        marks: &mut Vec<Mark<'a>>,
    ) -> Result<&'a str> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let ends = [
            self.follow(starts[0], depth + 1, &mut first)?,
            self.follow(starts[1], depth + 1, &mut second)?,
        ];
        let [Some(join), Some(other)] = ends else {
            return Err(self.branches(fork));
        };
        let inputs = self.inputs[join].len();
        if join != other || inputs != 2 || first.is_empty() && second.is_empty() {
            return Err(self.branches(fork));
        }
        let class = self.classes.get(join).copied().unwrap_or_default();
        if class != "Add" {
            return Err(KerasErrorKind::unsupported(
                join,
                format!("it is of class `{class}` and joins two branches; only `Add` can"),
            ));
        }
        self.visit(join)?;
        // A branch without layers is the shortcut.
        if first.is_empty() {
            std::mem::swap(&mut first, &mut second);
        }
        marks.push(Mark::Fork(join));
        marks.append(&mut first);
        if !second.is_empty() {
            marks.push(Mark::Swap);
            marks.append(&mut second);
        }
        marks.push(Mark::Join);
        Ok(join)
    }

    fn visit(&mut self, name: &'a str) -> Result<()> {
        match self.visited.insert(name) {
            true => Ok(()),
            false => {
                let reason = format!("the data flow in a circle through layer `{name}`");
                Err(KerasErrorKind::not_a_chain(reason))
            }
        }
    }

    fn branches(&self, at: &str) -> KerasErrorKind {
        let to = self.consumers.get(at).map_or(&[][..], Vec::as_slice);
        KerasErrorKind::not_a_chain(format!(
            "it branches at layer `{at}`, whose output goes to {}; only two branches that one `Add` \
             layer joins are supported",
            quoted(to)
        ))
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
        let class = match inputs.len() {
            0 => "InputLayer",
            1 => "Dense",
            _ => "Add",
        };
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
    fn two_added_branches_are_a_block() {
        let mut layers = vec![
            called("in", &[]),
            called("fork", &["in"]),
            called("side", &["fork"]),
            called("join", &["fork", "side"]),
            called("a", &["join"]),
            called("b", &["a"]),
            called("c", &["a"]),
            called("d", &["c"]),
            called("sum", &["b", "d"]),
            called("out", &["sum"]),
        ];
        let model = functional(&layers, &["out"]);
        assert_eq!(names(&model), ["fork", "side", "a", "b", "c", "d", "out"]);
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        let scopes: Vec<&str> = chain.nodes.iter().map(|node| node.scope.as_str()).collect();
        assert_eq!(scopes, ["", "join/", "", "sum/", "sum/shortcut/", "sum/shortcut/", ""]);
        layers[3]["class_name"] = json!("Concatenate");
        let Err(error) = flatten(&functional(&layers, &["out"]), &mut Vec::new()) else {
            panic!("a concatenation was read");
        };
        let error = error.to_string();
        assert!(error.contains("layer `join`"), "{error}");
        assert!(error.contains("only `Add` can"), "{error}");
    }

    #[test]
    fn a_branch_that_is_not_joined_is_reported_where_it_begins() {
        let layers = [called("in", &[]), called("fork", &["in"]), called("side", &["fork"])];
        let with = |more: &[Value]| functional(&[&layers[..], more].concat(), &["join"]);
        let lost = with(&[called("join", &["fork"])]);
        assert!(reason(&lost).starts_with(
            "it branches at layer `fork`, whose output goes to `side` and `join`; only two branches"
        ));
        let three = with(&[called("more", &["fork"]), called("join", &["fork", "side", "more"])]);
        assert!(reason(&three).contains("goes to `side`, `more` and `join`"));
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
