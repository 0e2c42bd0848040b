//! A graph in the making.

use super::proto::{Attribute, Element, Graph, Node, Tensor, Value};

/// Nodes and arrays of a graph. A node is appended by its operator and returns the name of its
/// output.
#[derive(Default)]
pub(super) struct Builder {
    /// The graph, then the body that is written.
    nodes: Vec<Vec<Node>>,
    arrays: Vec<Tensor>,
    count: usize,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self { nodes: vec![Vec::new()], ..Self::default() }
    }

    /// A new name.
    pub(super) fn name(&mut self) -> String {
        self.count += 1;
        format!("value_{}", self.count)
    }

    /// Appends a node with one output.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<Attribute>,
    ) -> String {
        let output = self.name();
        self.push(operator, inputs, vec![output.clone()], attributes);
        output
    }

    /// Appends a node without attributes.
    pub(super) fn apply(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.node(operator, inputs, Vec::new())
    }

    /// Appends a node with `count` outputs.
    pub(super) fn nodes(
        &mut self,
        operator: &str,
        inputs: &[&str],
        count: usize,
        attributes: Vec<Attribute>,
    ) -> Vec<String> {
        let outputs: Vec<String> = (0..count).map(|_| self.name()).collect();
        self.push(operator, inputs, outputs.clone(), attributes);
        outputs
    }

    fn push(
        &mut self,
        operator: &str,
        inputs: &[&str],
        outputs: Vec<String>,
        attributes: Vec<Attribute>,
    ) {
        let node = Node {
            inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
            name: format!("{operator}_{}", outputs.first().map_or("", String::as_str)),
            outputs,
            operator: operator.to_owned(),
            attributes,
        };
        if let Some(nodes) = self.nodes.last_mut() {
            nodes.push(node);
        }
    }

    /// Gives a value another name.
    pub(super) fn rename(&mut self, value: &str, name: &str) {
        self.push("Identity", &[value], vec![name.to_owned()], Vec::new());
    }

    /// Adds an array under a name.
    pub(super) fn array(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(name, shape, Element::F32, data));
    }

    /// Adds a list of numbers and returns its name.
    pub(super) fn row(&mut self, values: &[f32]) -> String {
        let name = self.name();
        self.array(&name, &[values.len()], values);
        name
    }

    /// Adds a number and returns its name.
    pub(super) fn number(&mut self, value: f64) -> String {
        let name = self.name();
        self.array(&name, &[], &[value as f32]);
        name
    }

    /// Adds a list of 64-bit numbers and returns its name.
    pub(super) fn doubles(&mut self, values: &[f64]) -> String {
        let name = self.name();
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(&name, &[values.len()], Element::F64, data));
        name
    }

    /// Adds a list of whole numbers and returns its name.
    pub(super) fn integers(&mut self, values: &[i64]) -> String {
        let name = self.name();
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(&name, &[values.len()], Element::I64, data));
        name
    }

    /// Starts the body of a loop: nodes are appended to it until [`Self::end_body`].
    pub(super) fn begin_body(&mut self) {
        self.nodes.push(Vec::new());
    }

    /// The body. Arrays belong to the graph around it.
    pub(super) fn end_body(&mut self, inputs: &[&str], outputs: &[&str]) -> Graph {
        let values = |names: &[&str]| names.iter().map(|name| Value::floats(name, None)).collect();
        Graph {
            nodes: self.nodes.pop().unwrap_or_default(),
            name: "body".to_owned(),
            initializers: Vec::new(),
            inputs: values(inputs),
            outputs: values(outputs),
        }
    }

    /// The graph.
    pub(super) fn finish(mut self, inputs: Vec<Value>, outputs: Vec<Value>) -> Graph {
        Graph {
            nodes: self.nodes.pop().unwrap_or_default(),
            name: "model".to_owned(),
            initializers: self.arrays,
            inputs,
            outputs,
        }
    }
}

/// A tensor of values in the order of C, little-endian.
pub(super) fn tensor(name: &str, shape: &[usize], element: Element, data: Vec<u8>) -> Tensor {
    Tensor {
        shape: shape.iter().map(|&size| size as i64).collect(),
        element: element as i32,
        name: name.to_owned(),
        data,
    }
}
