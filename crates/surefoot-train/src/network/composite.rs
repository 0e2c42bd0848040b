//! Layers that take more than a few lines: convolutions, pools, recurrent layers, attention.

use super::Units;
use super::build::{Array, Builder, Frame};
use super::geometry::Geometry;
use crate::compute::Compute;
use crate::initialize::{Fans, site};
use crate::layer::attention::{Attention, Projection};
use crate::layer::conv::Conv;
use crate::layer::dense::Dense;
use crate::layer::norm::LayerNorm;
use crate::layer::pool::{GlobalPool, Pool, Summary};
use crate::layer::recurrent::{Cell, Direction, Recurrent};
use crate::layer::shape::Reshape;
use crate::layer::{Dropout, Fork, Join};
use crate::parameters::{Role, Start};
use surefoot_plan::{Activation, Initializer, Regularizer};

impl<B: Compute> Builder<B> {
    pub(super) fn convolution(&mut self, frame: &Frame, plan: &ConvPlan) -> Option<Units> {
        let input = self.channels();
        let area = if plan.sequence { [1, self.shape[0]] } else { [self.shape[0], self.shape[1]] };
        let window = plan.geometry.window(area);
        let [height, width] = plan.geometry.size;
        let taps = height * width;
        let kernel_shape = if plan.sequence {
            self.shape = vec![window.output[1], plan.filters];
            vec![plan.filters, input, width]
        } else {
            self.shape = vec![window.output[0], window.output[1], plan.filters];
            vec![plan.filters, input, height, width]
        };
        let fans = Fans { fan_in: input * taps, fan_out: plan.filters * taps };
        let (initializer, regularizer) = plan.kernel;
        let kernel = self.kernel(frame, "kernel", kernel_shape, fans, initializer, regularizer);
        let bias = plan.bias.map(|(initializer, regularizer)| {
            self.bias(frame, "bias", vec![plan.filters], initializer, regularizer)
        });
        self.stage(Conv {
            kernel,
            bias,
            activation: plan.activation,
            window,
            sequence: plan.sequence,
            with_input_gradient: self.learns_before(frame),
        });
        Some(Units::Rows(plan.filters))
    }

    pub(super) fn pool1d(&mut self, summary: Summary, l: &surefoot_plan::Pool1d) {
        let geometry = Geometry {
            size: [1, l.pool_size],
            stride: [1, l.strides.unwrap_or(l.pool_size)],
            dilation: [1, 1],
            padding: l.padding,
        };
        let window = geometry.window([1, self.shape[0]]);
        self.shape[0] = window.output[1];
        self.stage(Pool { summary, window, sequence: true });
    }

    pub(super) fn pool2d(&mut self, summary: Summary, l: &surefoot_plan::Pool2d) {
        let geometry = Geometry {
            size: l.pool_size,
            stride: l.strides.unwrap_or(l.pool_size),
            dilation: [1, 1],
            padding: l.padding,
        };
        let window = geometry.window([self.shape[0], self.shape[1]]);
        self.shape[..2].copy_from_slice(&window.output);
        self.stage(Pool { summary, window, sequence: false });
    }

    pub(super) fn global_pool(&mut self, summary: Summary) {
        let image = match self.shape[..] {
            [height, width, _] => Some([height, width]),
            _ => None,
        };
        self.shape = vec![self.channels()];
        self.stage(GlobalPool { summary, image });
    }

    pub(super) fn reshape(&mut self, to: Vec<usize>) {
        let from = std::mem::replace(&mut self.shape, to.clone());
        self.stage(Reshape { from, to });
    }

    pub(super) fn recurrent(&mut self, frame: &Frame, plan: &RecurrentPlan) -> Option<Units> {
        let [steps, features] = [self.shape[0], self.shape[1]];
        let (gates, biases) = match plan.cell {
            Cell::Simple => (1, 1),
            Cell::Lstm => (4, 1),
            Cell::Gru { reset_after } => (3, if reset_after { 2 } else { 1 }),
        };
        let width = gates * plan.units;
        let prefixes: &[&str] = if plan.bidirectional { &["forward_", "backward_"] } else { &[""] };
        let mut directions: Vec<Direction> = prefixes
            .iter()
            .map(|prefix| Direction {
                kernel: self.matrix(
                    frame,
                    &format!("{prefix}kernel"),
                    features,
                    width,
                    plan.kernel.0,
                    plan.kernel.1,
                ),
                recurrent_kernel: self.matrix(
                    frame,
                    &format!("{prefix}recurrent_kernel"),
                    plan.units,
                    width,
                    plan.recurrent.0,
                    plan.recurrent.1,
                ),
                bias: None,
                backwards: *prefix == "backward_",
            })
            .collect();
        // Biases after all kernels, so that the kernels are one stretch of memory.
        for (direction, prefix) in directions.iter_mut().zip(prefixes) {
            direction.bias = plan.bias.map(|start| {
                let shape = if biases == 2 { vec![2, width] } else { vec![width] };
                self.declare(
                    frame,
                    Array {
                        name: &format!("{prefix}bias"),
                        shape,
                        start,
                        fans: Fans { fan_in: width, fan_out: width },
                        regularizer: Regularizer::default(),
                        role: Role::Bias,
                    },
                )
            });
        }
        let outputs = plan.units * directions.len();
        self.stage(Recurrent {
            cell: plan.cell,
            units: plan.units,
            steps,
            activation: plan.activation,
            recurrent_activation: plan.recurrent_activation,
            return_sequences: plan.return_sequences,
            masked: self.masked,
            with_input_gradient: frame.first > 0,
            directions,
        });
        self.masked &= plan.return_sequences;
        self.shape = if plan.return_sequences { vec![steps, outputs] } else { vec![outputs] };
        Some(Units::Columns(width))
    }

    pub(super) fn attention(
        &mut self,
        frame: &Frame,
        prefix: &str,
        plan: &AttentionPlan,
    ) -> Attention {
        let features = self.channels();
        let inner = plan.heads * plan.key_dim;
        let mut project = |name: &str, rows, columns| Projection {
            kernel: self.matrix(
                frame,
                &format!("{prefix}{name}_kernel"),
                rows,
                columns,
                plan.kernel,
                Regularizer::default(),
            ),
            bias: None,
        };
        let mut query = project("query", features, inner);
        let mut key = project("key", features, inner);
        let mut value = project("value", features, inner);
        let mut output = project("output", inner, features);
        if let Some(initializer) = plan.bias {
            for (projection, name, len) in [
                (&mut query, "query", inner),
                (&mut key, "key", inner),
                (&mut value, "value", inner),
                (&mut output, "output", features),
            ] {
                projection.bias = Some(self.bias(
                    frame,
                    &format!("{prefix}{name}_bias"),
                    vec![len],
                    initializer,
                    Regularizer::default(),
                ));
            }
        }
        Attention {
            query,
            key,
            value,
            output,
            heads: plan.heads,
            key_dim: plan.key_dim,
            dropout: plan.dropout,
            site: site(&format!("{}/attention", frame.name)),
        }
    }

    pub(super) fn transformer(&mut self, frame: &Frame, l: &surefoot_plan::Transformer) {
        let features = self.channels();
        let plan = AttentionPlan {
            heads: l.num_heads,
            key_dim: features / l.num_heads.max(1),
            dropout: 0.0,
            kernel: l.kernel_initializer,
            bias: Some(Initializer::Zeros),
        };
        let attention = self.attention(frame, "attention_", &plan);
        let none = Regularizer::default();
        let mut dense = |name: &str, rows, columns, activation| Dense {
            kernel: self.matrix(
                frame,
                &format!("{name}_kernel"),
                rows,
                columns,
                l.kernel_initializer,
                none,
            ),
            bias: Some(self.bias(
                frame,
                &format!("{name}_bias"),
                vec![columns],
                Initializer::Zeros,
                none,
            )),
            activation,
            with_input_gradient: true,
        };
        let inner = dense("feed_forward_1", features, l.feed_forward, l.activation);
        let outer = dense("feed_forward_2", l.feed_forward, features, Activation::Linear);
        let norm = |affine| LayerNorm { affine, epsilon: l.epsilon };
        let first = norm(self.affine(frame, "attention_norm_", true, true));
        let second = norm(self.affine(frame, "feed_forward_norm_", true, true));
        let dropout = |branch: &str| Dropout {
            rate: l.dropout,
            site: site(&format!("{}/{branch}", frame.name)),
        };
        self.stage(Fork);
        if l.norm_first {
            self.stage(first);
            self.stage(attention);
            self.stage(dropout("attention"));
            self.stage(Join);
            self.stage(Fork);
            self.stage(second);
            self.stage(inner);
            self.stage(outer);
            self.stage(dropout("feed_forward"));
            self.stage(Join);
        } else {
            self.stage(attention);
            self.stage(dropout("attention"));
            self.stage(Join);
            self.stage(first);
            self.stage(Fork);
            self.stage(inner);
            self.stage(outer);
            self.stage(dropout("feed_forward"));
            self.stage(Join);
            self.stage(second);
        }
    }
}

/// Settings shared by both convolutions.
pub(super) struct ConvPlan {
    pub(super) geometry: Geometry,
    pub(super) sequence: bool,
    pub(super) filters: usize,
    pub(super) activation: Activation,
    pub(super) kernel: (Initializer, Regularizer),
    pub(super) bias: Option<(Initializer, Regularizer)>,
}

/// Settings shared by the recurrent layers.
pub(super) struct RecurrentPlan {
    pub(super) cell: Cell,
    pub(super) units: usize,
    pub(super) activation: Activation,
    pub(super) recurrent_activation: Activation,
    pub(super) bias: Option<Start>,
    pub(super) kernel: (Initializer, Regularizer),
    pub(super) recurrent: (Initializer, Regularizer),
    pub(super) return_sequences: bool,
    pub(super) bidirectional: bool,
}

/// Settings shared by attention and transformer layers.
pub(super) struct AttentionPlan {
    pub(super) heads: usize,
    pub(super) key_dim: usize,
    pub(super) dropout: f64,
    pub(super) kernel: Initializer,
    pub(super) bias: Option<Initializer>,
}
