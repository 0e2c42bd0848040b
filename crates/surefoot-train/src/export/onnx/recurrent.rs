//! Recurrent layers as loops over the steps of a sequence.

use super::super::step::{Cell, Recurrent};
use super::Writer;
use super::proto::{Attribute, Element, tensor};

impl Writer {
    pub(super) fn masking(&mut self, value: f32) {
        let value = self.graph.number(f64::from(value));
        let padding = self.graph.apply("Equal", &[&self.x, &value]);
        let data = self.graph.apply("Not", &[&padding]);
        let float = vec![Attribute::int("to", Element::F32 as i64)];
        let data = self.graph.node("Cast", &[&data], float);
        self.mask = self.graph.node("ReduceMax", &[&data], vec![Attribute::ints("axes", [-1])]);
        let mask = self.mask.clone();
        self.apply("Mul", &mask);
    }

    pub(super) fn recurrent(&mut self, layer: &Recurrent) {
        let x = self.x.clone();
        let mut outputs = Vec::new();
        for (index, prefix) in layer.prefixes().iter().enumerate() {
            self.x.clone_from(&x);
            outputs.push(self.direction(layer, prefix, index > 0));
        }
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        self.x = self.graph.node("Concat", &outputs, vec![Attribute::int("axis", -1)]);
    }

    /// One direction of a layer: its last state, or its states in the order of the sequence.
    fn direction(&mut self, layer: &Recurrent, prefix: &str, is_backward: bool) -> String {
        let [kernel, recurrent] =
            ["kernel", "recurrent_kernel"].map(|name| format!("{prefix}{name}"));
        let mut bias = layer.has_bias.then(|| format!("{prefix}bias"));
        let mut state_bias = None;
        if let (Cell::Gru { reset_after: true }, Some(name)) = (layer.cell, &bias) {
            // Rows: the bias of the inputs and that of the state.
            let zero = Attribute::int("axis", 0);
            let rows = self.graph.nodes("Split", &[name], 2, vec![zero]);
            let axes = self.graph.integers(&[0]);
            let rows = [0, 1].map(|row: usize| self.graph.apply("Squeeze", &[&rows[row], &axes]));
            let [input, state] = rows;
            (bias, state_bias) = (Some(input), Some(state));
        }
        let zeros = self.zeros(&recurrent);
        self.product(&kernel, bias.as_deref());
        let states = if layer.cell == Cell::Lstm { 2 } else { 1 };

        self.graph.begin_body();
        let now = self.graph.name();
        let before: Vec<String> = (0..states).map(|_| self.graph.name()).collect();
        let mut after = self.cell(layer, &now, &before, &recurrent, state_bias.as_deref());
        let mut read = vec![now];
        if layer.is_masked {
            let mask = self.graph.name();
            after = self.unless_hidden(&mask, &after, &before);
            read.push(mask);
        }
        let seen = self.graph.apply("Identity", &[&after[0]]);
        let inputs: Vec<&str> = before.iter().chain(&read).map(String::as_str).collect();
        let results: Vec<&str> = after.iter().map(String::as_str).chain([seen.as_str()]).collect();
        let body = self.graph.end_body(&inputs, &results);

        let backward = i64::from(is_backward);
        let attributes = vec![
            Attribute::graph("body", &body),
            Attribute::int("num_scan_inputs", read.len() as i64),
            Attribute::ints("scan_input_axes", read.iter().map(|_| 1)),
            Attribute::ints("scan_output_axes", [1]),
            Attribute::ints("scan_input_directions", read.iter().map(|_| backward)),
            Attribute::ints("scan_output_directions", [backward]),
        ];
        let mut inputs = vec![zeros.as_str(); states];
        inputs.push(&self.x);
        if layer.is_masked {
            inputs.push(&self.mask);
        }
        let outputs = self.graph.nodes("Scan", &inputs, states + 1, attributes);
        let output = if layer.returns_sequences { states } else { 0 };
        outputs[output].clone()
    }

    /// The states after a step, or those before it where the step is hidden.
    fn unless_hidden(&mut self, mask: &str, after: &[String], before: &[String]) -> Vec<String> {
        let one = self.graph.number(1.0);
        let hidden = self.graph.apply("Sub", &[&one, mask]);
        let states = after.iter().zip(before);
        let either = states.map(|(after, before)| {
            let new = self.graph.apply("Mul", &[after, mask]);
            let old = self.graph.apply("Mul", &[before, &hidden]);
            self.graph.apply("Add", &[&new, &old])
        });
        either.collect()
    }

    /// The state before the first step.
    fn zeros(&mut self, recurrent: &str) -> String {
        let part = |start, end| vec![Attribute::int("start", start), Attribute::int("end", end)];
        let batch = self.graph.node("Shape", &[&self.x], part(0, 1));
        let units = self.graph.node("Shape", &[recurrent], part(0, 1));
        let axis = vec![Attribute::int("axis", 0)];
        let shape = self.graph.node("Concat", &[&batch, &units], axis);
        let zero = tensor("", &[1], Element::F32, &0.0_f32.to_le_bytes());
        self.graph.node("ConstantOfShape", &[&shape], vec![Attribute::tensor("value", &zero)])
    }

    /// The states after a step: the hidden one, and the memory of an LSTM.
    fn cell(
        &mut self,
        layer: &Recurrent,
        now: &str,
        before: &[String],
        recurrent: &str,
        state_bias: Option<&str>,
    ) -> Vec<String> {
        let hidden = before[0].as_str();
        let split = |writer: &mut Writer, value: &str, count| {
            writer.graph.nodes("Split", &[value], count, vec![Attribute::int("axis", -1)])
        };
        let sum = |writer: &mut Writer| {
            let state = writer.graph.apply("MatMul", &[hidden, recurrent]);
            writer.graph.apply("Add", &[now, &state])
        };
        match layer.cell {
            Cell::Simple => {
                let sum = sum(self);
                vec![self.activate(&sum, layer.activation)]
            }
            Cell::Lstm => {
                let sum = sum(self);
                let parts = split(self, &sum, 4);
                let [input, forget, output] =
                    [0, 1, 3].map(|gate: usize| self.activate(&parts[gate], layer.gates));
                let candidate = self.activate(&parts[2], layer.activation);
                let kept = self.graph.apply("Mul", &[&forget, &before[1]]);
                let added = self.graph.apply("Mul", &[&input, &candidate]);
                let memory = self.graph.apply("Add", &[&kept, &added]);
                let shown = self.activate(&memory, layer.activation);
                vec![self.graph.apply("Mul", &[&output, &shown]), memory]
            }
            Cell::Gru { reset_after } => {
                let parts = split(self, now, 3);
                let [update, candidate] = if reset_after {
                    let mut state = self.graph.apply("MatMul", &[hidden, recurrent]);
                    if let Some(bias) = state_bias {
                        state = self.graph.apply("Add", &[&state, bias]);
                    }
                    let states = split(self, &state, 3);
                    let [update, reset] = [0, 1].map(|gate: usize| {
                        let sum = self.graph.apply("Add", &[&parts[gate], &states[gate]]);
                        self.activate(&sum, layer.gates)
                    });
                    let state = self.graph.apply("Mul", &[&reset, &states[2]]);
                    [update, self.graph.apply("Add", &[&parts[2], &state])]
                } else {
                    let kernels = split(self, recurrent, 3);
                    let [update, reset] = [0, 1].map(|gate: usize| {
                        let state = self.graph.apply("MatMul", &[hidden, &kernels[gate]]);
                        let sum = self.graph.apply("Add", &[&parts[gate], &state]);
                        self.activate(&sum, layer.gates)
                    });
                    let state = self.graph.apply("Mul", &[&reset, hidden]);
                    let state = self.graph.apply("MatMul", &[&state, &kernels[2]]);
                    [update, self.graph.apply("Add", &[&parts[2], &state])]
                };
                let candidate = self.activate(&candidate, layer.activation);
                let one = self.graph.number(1.0);
                let rest = self.graph.apply("Sub", &[&one, &update]);
                let kept = self.graph.apply("Mul", &[&update, hidden]);
                let added = self.graph.apply("Mul", &[&rest, &candidate]);
                vec![self.graph.apply("Add", &[&kept, &added])]
            }
        }
    }
}
