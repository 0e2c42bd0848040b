//! The layers of a Keras model in the order of the data flow.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::graph::{Part, in_order};
use super::{KerasErrorKind, Result};

/// A model as a list of layers.
pub(super) struct Chain<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// The layers and the blocks around them, in the order of the data flow.
    pub(super) pieces: Vec<Piece>,
    pub(super) input: Input,
}

/// A layer, or the begin, the middle or the end of a residual block.
pub(super) enum Piece {
    /// The next of the nodes.
    Layer,
    /// A block begins with its branch.
    Fork,
    /// The branch ends and the shortcut begins.
    Swap,
    /// The block of this name ends.
    Join(String),
}

/// Shape of a sample, if the file has it; dimensions of unknown size are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Input(Option<Vec<Option<usize>>>);

impl Input {
    /// The shape, if every dimension is known.
    pub(super) fn shape(&self) -> Option<Vec<usize>> {
        self.0.as_ref()?.iter().copied().collect()
    }

    /// The number of dimensions.
    pub(super) fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    /// From Keras's shape, whose first entry is the batch.
    fn from_batch_shape(shape: Option<&Value>) -> Self {
        let sample = shape.and_then(Value::as_array).and_then(|shape| shape.get(1..));
        Self(sample.map(|dimensions| {
            dimensions
                .iter()
                .map(|size| size.as_u64().and_then(|size| usize::try_from(size).ok()))
                .collect()
        }))
    }

    fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self.0.is_some() { self } else { other() }
    }
}

/// A layer in the file.
pub(super) struct Node<'a> {
    /// Keras class, with the package if it is a custom class.
    pub(super) class: &'a str,
    /// Name that is unique in the chain.
    pub(super) name: String,
    /// Names of the residual blocks around the layer, each with a slash.
    pub(super) scope: String,
    pub(super) config: &'a Map<String, Value>,
    pub(super) place: Place<'a>,
}

/// Location of the weights of a layer in the file.
pub(super) struct Place<'a> {
    /// The layer of the outermost model that this is or that contains this.
    pub(super) outer: &'a str,
    /// The name in the innermost model, if the layer is in an inner model.
    pub(super) inner: Option<&'a str>,
    /// The path in an archive: `layers/dense_1`.
    pub(super) path: String,
}

/// The layers of a model and of the models in it.
pub(super) fn flatten<'a>(model: &'a Value, warnings: &mut Vec<String>) -> Result<Chain<'a>> {
    let class = model.get("class_name").and_then(Value::as_str);
    let class =
        class.ok_or_else(|| KerasErrorKind::damaged("the model", "`class_name` is missing"))?;
    if !is_model(class) {
        return Err(KerasErrorKind::UnknownModel { class: class.to_owned() });
    }
    let mut chain = Chain { nodes: Vec::new(), pieces: Vec::new(), input: Input::default() };
    chain.add_model(model, class, None, "", warnings)?;
    let built = || Input::from_batch_shape(model.pointer("/build_config/input_shape"));
    chain.input = std::mem::take(&mut chain.input).or(built);
    chain.make_names_unique();
    if chain.nodes.is_empty() {
        return Err(KerasErrorKind::damaged("the model", "it has no layers"));
    }
    Ok(chain)
}

fn is_model(class: &str) -> bool {
    matches!(class, "Sequential" | "Functional" | "Model")
}

/// The model around a layer, for names and paths.
struct Around<'a, 'b> {
    outer: &'a str,
    name: &'a str,
    path: &'b str,
}

/// One entry of a model's list of layers.
pub(super) struct Entry<'a> {
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    /// Absent for an inner Sequential of Keras before 2.2.3, whose configuration is a list.
    config: Option<&'a Map<String, Value>>,
    pub(super) json: &'a Value,
    path: String,
}

impl<'a> Chain<'a> {
    fn add_model(
        &mut self,
        model: &'a Value,
        class: &str,
        around: Option<&Around<'a, '_>>,
        scope: &str,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let config = model.get("config");
        // Before 2.2.3, a Sequential's configuration was the list itself.
        let layers = match config {
            Some(Value::Array(layers)) => layers,
            Some(config) => config.get("layers").and_then(Value::as_array).ok_or_else(|| {
                KerasErrorKind::damaged("the model", "`config.layers` is missing")
            })?,
            None => return Err(KerasErrorKind::damaged("the model", "`config` is missing")),
        };
        let entries = entries(layers, around.map_or("", |around| around.path))?;
        let parts = match class {
            "Sequential" => entries.into_iter().map(Part::Layer).collect(),
            _ => {
                let outputs = config.and_then(|config| config.get("output_layers"));
                in_order(entries, outputs, warnings)?
            }
        };
        let built =
            || Input::from_batch_shape(config.and_then(|config| config.get("build_input_shape")));
        let first = self.nodes.is_empty();
        let mut scope = scope.to_owned();
        let mut blocks = Vec::new();
        for part in parts {
            match part {
                Part::Layer(entry) => self.add_entry(entry, around, &scope, warnings)?,
                Part::Fork(name) => {
                    let name = match around {
                        Some(around) => plan_name(&format!("{}_{name}", around.name)),
                        None => plan_name(name),
                    };
                    let outside = scope.len();
                    scope.push_str(&format!("{name}/"));
                    blocks.push((name, outside));
                    self.pieces.push(Piece::Fork);
                }
                Part::Swap => {
                    scope.push_str("shortcut/");
                    self.pieces.push(Piece::Swap);
                }
                Part::Join => {
                    if let Some((name, outside)) = blocks.pop() {
                        scope.truncate(outside);
                        self.pieces.push(Piece::Join(name));
                    }
                }
            }
        }
        if first {
            self.input = std::mem::take(&mut self.input).or(built);
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: Entry<'a>,
        around: Option<&Around<'a, '_>>,
        scope: &str,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let setting = |key: &str| entry.config.and_then(|config| config.get(key));
        if self.nodes.is_empty() {
            let shape = setting("batch_shape").or_else(|| setting("batch_input_shape"));
            self.input = std::mem::take(&mut self.input).or(|| Input::from_batch_shape(shape));
        }
        if setting("trainable") == Some(&Value::Bool(false)) {
            warnings.push(format!(
                "layer `{}` is frozen in Keras; Surefoot trains it with the others",
                entry.name
            ));
        }
        let outer = around.map_or(entry.name, |around| around.outer);
        if entry.class == "InputLayer" {
            let unusual = ["sparse", "ragged"]
                .into_iter()
                .find(|key| setting(key) == Some(&Value::Bool(true)));
            if let Some(kind) = unusual {
                return Err(KerasErrorKind::unsupported(
                    entry.name,
                    format!("its input is {kind}"),
                ));
            }
        } else if is_model(entry.class) {
            let inside = Around { outer, name: entry.name, path: &format!("{}/", entry.path) };
            self.add_model(entry.json, entry.class, Some(&inside), scope, warnings)?;
        } else {
            let config = entry.config.ok_or_else(|| {
                KerasErrorKind::damaged(format!("layer `{}`", entry.name), "`config` is missing")
            })?;
            let mut name = plan_name(entry.name);
            if let Some(around) = around
                && self.nodes.iter().any(|node| node.name == name)
            {
                name = format!("{}_{name}", plan_name(around.name));
            }
            let (class, config, path) = match entry.class {
                "TimeDistributed" => {
                    let (class, config) = each_step(entry.name, config)?;
                    (class, config, format!("{}/layer", entry.path))
                }
                class => (class, config, entry.path),
            };
            self.pieces.push(Piece::Layer);
            self.nodes.push(Node {
                class,
                name,
                scope: scope.to_owned(),
                config,
                place: Place { outer, inner: around.map(|_| entry.name), path },
            });
        }
        Ok(())
    }

    /// Appends numbers to names that occur twice.
    fn make_names_unique(&mut self) {
        for index in 1..self.nodes.len() {
            let (before, rest) = self.nodes.split_at_mut(index);
            let Some(node) = rest.first_mut() else {
                continue;
            };
            let taken = |name: &str| before.iter().any(|other| other.name == name);
            let numbered = (1..).map(|number: usize| format!("{}_{number}", node.name));
            let free = std::iter::once(node.name.clone()).chain(numbered).find(|name| !taken(name));
            node.name = free.unwrap_or_default();
        }
    }
}

/// Classes that do the same to a sequence and to each of its steps.
const EACH_STEP: [&str; 9] = [
    "Activation",
    "BatchNormalization",
    "Dense",
    "Dropout",
    "ELU",
    "LayerNormalization",
    "LeakyReLU",
    "ReLU",
    "Softmax",
];

/// The layer inside a `TimeDistributed`.
fn each_step<'a>(
    name: &str,
    config: &'a Map<String, Value>,
) -> Result<(&'a str, &'a Map<String, Value>)> {
    let inner = config.get("layer");
    let class = inner.and_then(|inner| inner.get("class_name")).and_then(Value::as_str);
    let config = inner.and_then(|inner| inner.get("config")).and_then(Value::as_object);
    match (class, config) {
        (Some(class), Some(config)) if EACH_STEP.contains(&class) => Ok((class, config)),
        (Some(class), Some(_)) => Err(KerasErrorKind::unsupported(
            name,
            format!(
                "it applies a {class} to each step; supported inside of TimeDistributed: {}",
                EACH_STEP.join(", ")
            ),
        )),
        _ => Err(KerasErrorKind::damaged(format!("layer `{name}`"), "`layer` is missing")),
    }
}

/// A name that is valid in a plan; Keras 2 allowed slashes in names.
fn plan_name(name: &str) -> String {
    if name.is_empty() {
        return "layer".to_owned();
    }
    name.replace(|c: char| c == '/' || c.is_control(), "_")
}

fn entries<'a>(layers: &'a [Value], path: &str) -> Result<Vec<Entry<'a>>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(layers.len());
    for (index, json) in layers.iter().enumerate() {
        let missing = |key: &str| {
            KerasErrorKind::damaged(format!("layer {}", index + 1), format!("no `{key}`"))
        };
        let text = |key: &str| json.get(key).and_then(Value::as_str);
        let class = text("class_name").ok_or_else(|| missing("class_name"))?;
        let class = text("registered_name").filter(|name| name.contains('>')).unwrap_or(class);
        let config = json.get("config").and_then(Value::as_object);
        let name = config.and_then(|config| config.get("name")?.as_str());
        let name = name.or(text("name")).unwrap_or(class);
        let stored = snake_case(class);
        let number = counts.entry(class).or_default();
        let path = match *number {
            0 => format!("{path}layers/{stored}"),
            n => format!("{path}layers/{stored}_{n}"),
        };
        *number += 1;
        entries.push(Entry { class, name, config, json, path });
    }
    Ok(entries)
}

/// Name of a class in an archive: `batch_normalization` for `BatchNormalization`.
fn snake_case(class: &str) -> String {
    let chars: Vec<char> = class.chars().collect();
    let mut name = String::new();
    for (i, c) in chars.iter().enumerate() {
        let after_lower = i > 0 && chars[i - 1].is_lowercase();
        let before_lower = i > 0 && chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_lower || before_lower) {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dense(name: &str) -> Value {
        json!({"class_name": "Dense", "config": {"name": name}})
    }

    fn names(model: &Value) -> Vec<String> {
        let chain = flatten(model, &mut Vec::new()).unwrap();
        chain.nodes.into_iter().map(|node| node.name).collect()
    }

    #[test]
    fn inner_models_are_flattened_with_unique_names() {
        let inner = json!({
            "class_name": "Sequential",
            "config": {"name": "inner", "layers": [dense("a"), dense("b")]}
        });
        let model = json!({
            "class_name": "Sequential",
            "config": {"layers": [dense("a"), inner, dense("inner_a")]}
        });
        assert_eq!(names(&model), ["a", "inner_a", "b", "inner_a_1"]);
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        let place = &chain.nodes[2].place;
        assert_eq!((place.outer, place.inner), ("inner", Some("b")));
        assert_eq!(place.path, "layers/sequential/layers/dense_1");
        assert_eq!(chain.nodes[3].place.path, "layers/dense_1");
    }

    #[test]
    fn a_layer_for_each_step_is_the_layer_itself() {
        let each = |inner: Value| {
            let config = json!({"name": "each", "layer": inner});
            let layer = json!({"class_name": "TimeDistributed", "config": config});
            json!({"class_name": "Sequential", "config": {"layers": [layer]}})
        };
        let model = each(dense("inner"));
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        let node = &chain.nodes[0];
        assert_eq!((node.class, node.name.as_str()), ("Dense", "each"));
        assert_eq!(node.place.path, "layers/time_distributed/layer");
        let model = each(json!({"class_name": "Conv2D", "config": {"name": "inner"}}));
        let Err(error) = flatten(&model, &mut Vec::new()) else {
            panic!("a convolution of each step was read");
        };
        assert!(error.to_string().contains("layer `each`"), "{error}");
        assert!(error.to_string().contains("supported inside of TimeDistributed"), "{error}");
    }

    #[test]
    fn names_are_valid_in_a_plan() {
        let layers = [dense("block1/conv"), dense("block1_conv"), dense("")];
        let model = json!({"class_name": "Sequential", "config": {"layers": layers}});
        assert_eq!(names(&model), ["block1_conv", "block1_conv_1", "layer"]);
    }

    #[test]
    fn an_old_sequential_is_a_list() {
        let mut first = dense("a");
        first["config"]["batch_input_shape"] = json!([null, 3, null]);
        let model = json!({"class_name": "Sequential", "config": [first, dense("b")]});
        assert_eq!(names(&model), ["a", "b"]);
        let chain = flatten(&model, &mut Vec::new()).unwrap();
        assert_eq!(chain.input.shape(), None);
        assert_eq!(chain.input.rank(), Some(2));
    }

    #[test]
    fn subclassed_models_are_rejected() {
        let model = json!({"class_name": "MyModel", "config": {}});
        let Err(error) = flatten(&model, &mut Vec::new()) else {
            panic!("a subclassed model was read");
        };
        assert!(error.to_string().contains("`MyModel`"));
    }
}
