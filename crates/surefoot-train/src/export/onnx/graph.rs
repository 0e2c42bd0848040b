//! A graph in the making.

use super::proto::{self, Attribute, Element, Message, tensor, value};

/// Nodes and arrays of a graph. A node is appended by its operator and returns the name of its
/// output.
#[derive(Default)]
pub(super) struct Builder {
    /// The graph, then the body that is written.
    nodes: Vec<Vec<Message>>,
    arrays: Vec<Message>,
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
        if let Some(nodes) = self.nodes.last_mut() {
            nodes.push(proto::node(operator, inputs, &outputs, attributes));
        }
    }

    /// Gives a value another name.
    pub(super) fn rename(&mut self, value: &str, name: &str) {
        self.push("Identity", &[value], vec![name.to_owned()], Vec::new());
    }

    /// Adds an array under a name.
    pub(super) fn array(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(name, shape, Element::F32, &data));
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
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(&name, &[values.len()], Element::F64, &data));
        name
    }

    /// Adds a list of whole numbers and returns its name.
    pub(super) fn integers(&mut self, values: &[i64]) -> String {
        let name = self.name();
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.arrays.push(tensor(&name, &[values.len()], Element::I64, &data));
        name
    }

    /// Starts the body of a loop: nodes are appended to it until [`Self::end_body`].
    pub(super) fn begin_body(&mut self) {
        self.nodes.push(Vec::new());
    }

    /// The body. Arrays belong to the graph around it.
    pub(super) fn end_body(&mut self, inputs: &[&str], outputs: &[&str]) -> Message {
        let [inputs, outputs] = [inputs, outputs]
            .map(|names| names.iter().map(|name| value(name, None)).collect::<Vec<_>>());
        let nodes = self.nodes.pop().unwrap_or_default();
        proto::graph("body", &nodes, &[], &inputs, &outputs)
    }

    /// The graph.
    pub(super) fn finish(mut self, input: Message, output: Message) -> Message {
        let nodes = self.nodes.pop().unwrap_or_default();
        proto::graph("model", &nodes, &self.arrays, &[input], &[output])
    }
}
