//! Recurrent layers: simple, LSTM and GRU, forwards, backwards or both.

use super::{ParameterId, Pass, Stage};
use crate::compute::Compute;
use crate::kernel::activation::gradient_from_output;
use crate::tensor::Tensor;
use surefoot_plan::Activation;

/// The kind of a recurrent cell.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    Simple,
    Lstm,
    Gru { reset_after: bool },
}

/// The parameters of one direction.
#[derive(Clone, Copy)]
pub(crate) struct Direction {
    pub(crate) kernel: ParameterId,
    pub(crate) recurrent_kernel: ParameterId,
    pub(crate) bias: Option<ParameterId>,
    pub(crate) backwards: bool,
}

/// A recurrent layer over `[batch, steps, features]`.
pub(crate) struct Recurrent {
    pub(crate) cell: Cell,
    pub(crate) units: usize,
    pub(crate) steps: usize,
    pub(crate) activation: Activation,
    /// Of the gates; unused by the simple cell.
    pub(crate) recurrent_activation: Activation,
    pub(crate) return_sequences: bool,
    /// True if a masking layer hides steps: at these the state stays as it is.
    pub(crate) masked: bool,
    /// True if an earlier stage has parameters.
    pub(crate) with_input_gradient: bool,
    /// One, or two whose outputs are concatenated.
    pub(crate) directions: Vec<Direction>,
}

impl<B: Compute> Stage<B> for Recurrent {
    fn forward(&self, x: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let mut outputs: Vec<Tensor<B>> =
            self.directions.iter().map(|direction| self.run(&x, *direction, pass)).collect();
        match outputs.len() {
            1 => outputs.remove(0),
            _ => {
                let last = outputs[0].shape().len() - 1;
                Tensor::concat(outputs, last)
            }
        }
    }

    fn backward(&self, gradient: Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let last = gradient.shape().len() - 1;
        let mut total: Option<Tensor<B>> = None;
        for (i, direction) in self.directions.iter().enumerate().rev() {
            let part = if self.directions.len() == 1 {
                gradient.clone()
            } else {
                gradient.slice(last, i * self.units, self.units)
            };
            let d_x = self.run_backward(part, *direction, pass);
            total = Some(match total {
                Some(sum) => sum.add(&d_x),
                None => d_x,
            });
        }
        match total {
            Some(total) => total,
            None => unreachable!("a recurrent layer has a direction"),
        }
    }
}

impl Recurrent {
    fn gates(&self) -> usize {
        match self.cell {
            Cell::Simple => 1,
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
        }
    }

    /// The bias added to the inputs' product, and the one added to the state's.
    fn biases<B: Compute>(
        &self,
        direction: Direction,
        pass: &Pass<'_, B>,
    ) -> (Option<Tensor<B>>, Option<Tensor<B>>) {
        let width = self.gates() * self.units;
        match (direction.bias, self.cell) {
            (None, _) => (None, None),
            (Some(id), Cell::Gru { reset_after: true }) => {
                let both = pass.parameter(id);
                (Some(both.slice(0, 0, 1)), Some(both.slice(0, 1, 1).reshape(&[width])))
            }
            (Some(id), _) => (Some(pass.parameter(id).clone().reshape(&[1, width])), None),
        }
    }

    fn run<B: Compute>(
        &self,
        x: &Tensor<B>,
        direction: Direction,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let shape = x.shape();
        let [batch, steps, features] = [shape[0], shape[1], shape[2]];
        let width = self.gates() * self.units;
        // Time first, so that each step is one stretch of memory; all inputs' products at once.
        let x = x.clone().permute(&[1, 0, 2]).reshape(&[steps * batch, features]);
        pass.keep(&x);
        let (input_bias, state_bias) = self.biases(direction, pass);
        let mut inputs = x.matmul(pass.parameter(direction.kernel));
        if let Some(bias) = input_bias {
            inputs = inputs.add(&bias);
        }
        let inputs = inputs.reshape(&[steps, batch, width]);
        let recurrent = pass.parameter(direction.recurrent_kernel);
        let mut hidden = Tensor::zeros(&[batch, self.units], pass.device);
        let mut cell = hidden.clone();
        let mut states = Vec::with_capacity(steps);
        let mask = pass.mask.clone().filter(|_| self.masked);
        for i in 0..steps {
            let t = if direction.backwards { steps - 1 - i } else { i };
            let input = inputs.slice(0, t, 1).reshape(&[batch, width]);
            let step =
                Step { layer: self, recurrent, turned: recurrent, state_bias: state_bias.as_ref() };
            let before = mask.as_ref().map(|_| (hidden.clone(), cell.clone()));
            hidden = step.forward(input, hidden, &mut cell, pass);
            if let (Some(mask), Some(before)) = (&mask, before) {
                let here = Here::new(mask, t);
                hidden = here.data(hidden).add(&here.padding(before.0));
                cell = here.data(cell).add(&here.padding(before.1));
            }
            states.push(hidden.clone());
        }
        if let Some(mask) = &mask {
            pass.keep(mask);
        }
        if direction.backwards {
            states.reverse();
        }
        if self.return_sequences {
            let all = Tensor::concat(states, 0).reshape(&[steps, batch, self.units]);
            all.permute(&[1, 0, 2])
        } else {
            hidden
        }
    }

    fn run_backward<B: Compute>(
        &self,
        gradient: Tensor<B>,
        direction: Direction,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let mask = self.masked.then(|| pass.take());
        let batch = gradient.shape()[0];
        let width = self.gates() * self.units;
        let recurrent = pass.parameter(direction.recurrent_kernel);
        let turned = B::settle(recurrent.clone().transpose());
        let step = Step { layer: self, recurrent, turned: &turned, state_bias: None };
        let by_step = self.return_sequences.then(|| gradient.clone().permute(&[1, 0, 2]));
        let mut d_hidden = match by_step {
            Some(_) => Tensor::zeros(&[batch, self.units], pass.device),
            None => gradient,
        };
        let mut d_cell = Tensor::zeros(&[batch, self.units], pass.device);
        let steps = self.steps;
        let mut products = Products::default();
        let mut d_inputs: Vec<Tensor<B>> = Vec::with_capacity(steps);
        for i in (0..steps).rev() {
            let t = if direction.backwards { steps - 1 - i } else { i };
            if let Some(by_step) = &by_step {
                d_hidden = d_hidden.add(&by_step.slice(0, t, 1).reshape(&[batch, self.units]));
            }
            // What goes around the step, where it is hidden.
            let mut around = None;
            if let Some(mask) = &mask {
                let here = Here::new(mask, t);
                around = Some((here.padding(d_hidden.clone()), here.padding(d_cell.clone())));
                (d_hidden, d_cell) = (here.data(d_hidden), here.data(d_cell));
            }
            let d_input;
            (d_input, d_hidden) = step.backward(d_hidden, &mut d_cell, &mut products, pass);
            if let Some(around) = around {
                (d_hidden, d_cell) = (d_hidden.add(&around.0), d_cell.add(&around.1));
            }
            d_inputs.push(d_input);
        }
        if !direction.backwards {
            d_inputs.reverse();
        }
        let d_inputs = Tensor::concat(d_inputs, 0); // [steps * batch, width], time in order
        let d_state = products.learn(direction.recurrent_kernel, pass);
        let x = pass.take();
        if let Some(id) = direction.bias {
            let d_bias = d_inputs.clone().sum_rows();
            let d_bias = match self.cell {
                Cell::Gru { reset_after: true } => Tensor::concat(
                    vec![d_bias.reshape(&[1, width]), d_state.sum_rows().reshape(&[1, width])],
                    0,
                ),
                _ => d_bias,
            };
            pass.learn(id, d_bias);
        }
        let features = x.shape()[1];
        pass.learn(direction.kernel, x.transpose().matmul(&d_inputs));
        if !self.with_input_gradient {
            return d_inputs;
        }
        d_inputs
            .matmul(&pass.parameter(direction.kernel).clone().transpose())
            .reshape(&[steps, batch, features])
            .permute(&[1, 0, 2])
    }
}

/// The mask of one step, `[batch, 1]`.
struct Here<B: Compute>(Tensor<B>);

impl<B: Compute> Here<B> {
    fn new(mask: &Tensor<B>, step: usize) -> Self {
        let batch = mask.shape()[0];
        Self(mask.slice(1, step, 1).reshape(&[batch, 1]))
    }

    /// The rows of the samples that have data at the step; zero for others.
    fn data(&self, x: Tensor<B>) -> Tensor<B> {
        x.mul(&self.0)
    }

    /// The rows of the samples that have padding at the step; zero for others.
    fn padding(&self, x: Tensor<B>) -> Tensor<B> {
        x.mul(&self.0.clone().neg().add_scalar(1.0))
    }
}

/// Values shared by the steps of a direction.
struct Step<'a, B: Compute> {
    layer: &'a Recurrent,
    recurrent: &'a Tensor<B>,
    /// The recurrent kernel with rows and columns exchanged; read going back.
    turned: &'a Tensor<B>,
    state_bias: Option<&'a Tensor<B>>,
}

impl<B: Compute> Step<'_, B> {
    /// The next hidden state, from a step's inputs and the state before.
    fn forward(
        &self,
        input: Tensor<B>,
        hidden: Tensor<B>,
        cell: &mut Tensor<B>,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        pass.keep(&hidden);
        match self.layer.cell {
            Cell::Simple => {
                let sum = B::add_product(input, &hidden, self.recurrent);
                gate(self.layer.activation, &sum, pass)
            }
            Cell::Lstm => self.lstm(input, hidden, cell, pass),
            Cell::Gru { reset_after } => self.gru(input, hidden, reset_after, pass),
        }
    }

    /// The gradients of a step's inputs and of the hidden state before it.
    fn backward(
        &self,
        d_hidden: Tensor<B>,
        d_cell: &mut Tensor<B>,
        products: &mut Products<B>,
        pass: &mut Pass<'_, B>,
    ) -> (Tensor<B>, Tensor<B>) {
        match self.layer.cell {
            Cell::Simple => {
                let d_sum = gate_backward(self.layer.activation, d_hidden, pass);
                self.through_state(d_sum, products, pass)
            }
            Cell::Lstm => {
                let d_gates = self.lstm_backward(d_hidden, d_cell, pass);
                self.through_state(d_gates, products, pass)
            }
            Cell::Gru { reset_after } => self.gru_backward(d_hidden, reset_after, products, pass),
        }
    }

    /// Inputs and state are added: both have the gradient of the sum.
    fn through_state(
        &self,
        d_sum: Tensor<B>,
        products: &mut Products<B>,
        pass: &mut Pass<'_, B>,
    ) -> (Tensor<B>, Tensor<B>) {
        let hidden = pass.take();
        let d_hidden = B::product(&d_sum, self.turned, None);
        products.add(hidden, d_sum.clone());
        (d_sum, d_hidden)
    }

    /// Returns true if the fused cell can be used.
    fn is_standard(&self) -> bool {
        self.layer.activation == Activation::Tanh
            && self.layer.recurrent_activation == Activation::Sigmoid
    }

    fn lstm(
        &self,
        input: Tensor<B>,
        hidden: Tensor<B>,
        cell: &mut Tensor<B>,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let sum = B::add_product(input, &hidden, self.recurrent);
        pass.keep(cell);
        if self.is_standard() {
            let (gates, after, hidden) = B::lstm_step(sum, cell.clone());
            pass.keep(&gates);
            pass.keep(&after);
            *cell = after;
            return hidden;
        }
        let [i, f, g, o] = [0, 1, 2, 3].map(|part| {
            let activation = match part {
                2 => self.layer.activation,
                _ => self.layer.recurrent_activation,
            };
            gate(activation, &self.part(&sum, part), pass)
        });
        *cell = f.mul(cell).add(&i.mul(&g));
        let squashed = gate(self.layer.activation, cell, pass);
        squashed.mul(&o)
    }

    fn lstm_backward(
        &self,
        d_hidden: Tensor<B>,
        d_cell: &mut Tensor<B>,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        if self.is_standard() {
            let after = pass.take();
            let gates = pass.take();
            let before = pass.take();
            let (d_gates, d_before) =
                B::lstm_step_backward(&gates, &before, &after, &d_hidden, d_cell.clone());
            *d_cell = d_before;
            return d_gates;
        }
        let activation = self.layer.activation;
        let gates = self.layer.recurrent_activation;
        // The outputs of each gate are at fixed places of the tape: squashed cell, then o, g, f, i.
        let squashed = Gated::take(activation, pass);
        let [o, g, f, i] = [gates, activation, gates, gates].map(|a| Gated::take(a, pass));
        let before = pass.take();
        let d_o = o.backward(d_hidden.clone().mul(&squashed.output));
        let d_after = squashed.backward(d_hidden.mul(&o.output)).add(d_cell);
        let d_i = i.backward(d_after.clone().mul(&g.output));
        let d_g = g.backward(d_after.clone().mul(&i.output));
        let d_f = f.backward(d_after.clone().mul(&before));
        *d_cell = d_after.mul(&f.output);
        Tensor::concat(vec![d_i, d_f, d_g, d_o], 1)
    }

    fn gru(
        &self,
        input: Tensor<B>,
        hidden: Tensor<B>,
        reset_after: bool,
        pass: &mut Pass<'_, B>,
    ) -> Tensor<B> {
        let units = self.layer.units;
        let gates = self.layer.recurrent_activation;
        let (z, r, candidate);
        if reset_after {
            let state = B::product(&hidden, self.recurrent, self.state_bias);
            z = gate(gates, &self.part(&input, 0).add(&self.part(&state, 0)), pass);
            r = gate(gates, &self.part(&input, 1).add(&self.part(&state, 1)), pass);
            let state = self.part(&state, 2);
            pass.keep(&state);
            let sum = self.part(&input, 2).add(&r.mul(&state));
            candidate = gate(self.layer.activation, &sum, pass);
        } else {
            let state = hidden.matmul(&self.recurrent.slice(1, 0, 2 * units));
            z = gate(gates, &self.part(&input, 0).add(&self.part(&state, 0)), pass);
            r = gate(gates, &self.part(&input, 1).add(&self.part(&state, 1)), pass);
            let state = r.mul(&hidden);
            let product = state.matmul(&self.recurrent.slice(1, 2 * units, units));
            let sum = self.part(&input, 2).add(&product);
            candidate = gate(self.layer.activation, &sum, pass);
        }
        // z h + (1 - z) c
        candidate.clone().add(&z.mul(&hidden.sub(&candidate)))
    }

    fn gru_backward(
        &self,
        d_after: Tensor<B>,
        reset_after: bool,
        products: &mut Products<B>,
        pass: &mut Pass<'_, B>,
    ) -> (Tensor<B>, Tensor<B>) {
        let units = self.layer.units;
        let gates = self.layer.recurrent_activation;
        let candidate = Gated::take(self.layer.activation, pass);
        let state = reset_after.then(|| pass.take());
        let r = Gated::take(gates, pass);
        let z = Gated::take(gates, pass);
        let hidden = pass.take();
        let keep = z.output.clone().neg().add_scalar(1.0);
        let d_candidate = candidate.backward(d_after.clone().mul(&keep));
        let difference = hidden.clone().sub(&candidate.output);
        let d_z = z.backward(d_after.clone().mul(&difference));
        let direct = d_after.mul(&z.output);
        if let Some(state) = state {
            let d_r = r.backward(d_candidate.clone().mul(&state));
            let d_state = d_candidate.clone().mul(&r.output);
            let d_input = Tensor::concat(vec![d_z.clone(), d_r.clone(), d_candidate], 1);
            let d_product = Tensor::concat(vec![d_z, d_r, d_state], 1);
            let d_hidden = B::add_product(direct, &d_product, self.turned);
            products.add(hidden, d_product);
            return (d_input, d_hidden);
        }
        let upper = self.recurrent.slice(1, 0, 2 * units);
        let lower = self.recurrent.slice(1, 2 * units, units);
        let d_reset = d_candidate.matmul(&lower.transpose());
        let d_r = r.backward(d_reset.clone().mul(&hidden));
        let d_upper = Tensor::concat(vec![d_z, d_r], 1);
        let d_hidden = d_upper.matmul(&upper.transpose()).add(&d_reset.mul(&r.output)).add(&direct);
        products.add_candidate(r.output.mul(&hidden), d_candidate.clone());
        products.add(hidden, d_upper.clone());
        (Tensor::concat(vec![d_upper, d_candidate], 1), d_hidden)
    }

    fn part(&self, gates: &Tensor<B>, index: usize) -> Tensor<B> {
        gates.slice(1, index * self.layer.units, self.layer.units)
    }
}

/// Applies a gate's activation; keeps its input where needed, and its output.
fn gate<B: Compute>(activation: Activation, x: &Tensor<B>, pass: &mut Pass<'_, B>) -> Tensor<B> {
    let y = B::activate(activation, x.clone());
    if !gradient_from_output(activation) {
        pass.keep(x);
    }
    pass.keep(&y);
    y
}

fn gate_backward<B: Compute>(
    activation: Activation,
    gradient: Tensor<B>,
    pass: &mut Pass<'_, B>,
) -> Tensor<B> {
    Gated::take(activation, pass).backward(gradient)
}

/// A gate as [`gate`] kept it.
struct Gated<B: Compute> {
    activation: Activation,
    input: Option<Tensor<B>>,
    output: Tensor<B>,
}

impl<B: Compute> Gated<B> {
    fn take(activation: Activation, pass: &mut Pass<'_, B>) -> Self {
        let output = pass.take();
        let input = (!gradient_from_output(activation)).then(|| pass.take());
        Self { activation, input, output }
    }

    fn backward(&self, gradient: Tensor<B>) -> Tensor<B> {
        B::activate_backward(self.activation, self.input.as_ref(), &self.output, gradient)
    }
}

/// The factors whose product, summed over the steps, is the recurrent kernel's gradient. They are
/// multiplied once at the end: one large product instead of many small ones.
struct Products<B: Compute> {
    states: Vec<Tensor<B>>,
    gradients: Vec<Tensor<B>>,
    /// Of the candidate's part of the kernel, where it acts on another state than the gates'.
    candidate_states: Vec<Tensor<B>>,
    candidate_gradients: Vec<Tensor<B>>,
}

impl<B: Compute> Default for Products<B> {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            gradients: Vec::new(),
            candidate_states: Vec::new(),
            candidate_gradients: Vec::new(),
        }
    }
}

impl<B: Compute> Products<B> {
    fn add(&mut self, state: Tensor<B>, gradient: Tensor<B>) {
        self.states.push(state);
        self.gradients.push(gradient);
    }

    fn add_candidate(&mut self, state: Tensor<B>, gradient: Tensor<B>) {
        self.candidate_states.push(state);
        self.candidate_gradients.push(gradient);
    }

    /// Learns the recurrent kernel; returns the gradient of the state's product at every step.
    fn learn(self, kernel: ParameterId, pass: &mut Pass<'_, B>) -> Tensor<B> {
        let gradients = Tensor::concat(self.gradients, 0);
        let mut d_kernel = Tensor::concat(self.states, 0).transpose().matmul(&gradients);
        if !self.candidate_states.is_empty() {
            let candidate = Tensor::concat(self.candidate_states, 0)
                .transpose()
                .matmul(&Tensor::concat(self.candidate_gradients, 0));
            d_kernel = Tensor::concat(vec![d_kernel, candidate], 1);
        }
        pass.learn(kernel, d_kernel);
        gradients
    }
}
