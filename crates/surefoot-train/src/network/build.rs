//! From the plan's layers to stages, one layer after the other.

use super::composite::{AttentionPlan, ConvPlan, RecurrentPlan};
use super::geometry::Geometry;
use super::{Network, Subject, Units};
use crate::compute::Compute;
use crate::initialize::{Fans, site};
use crate::layer::dense::Dense;
use crate::layer::embedding::{Embedding, PositionEmbedding};
use crate::layer::masking::Masking;
use crate::layer::norm::{Affine, BatchNorm, GroupNorm, LayerNorm};
use crate::layer::pool::Summary;
use crate::layer::recurrent::Cell;
use crate::layer::{Activate, Dropout, Fork, Join, ParameterId, Stage, Swap};
use crate::parameters::{Declaration, Role, Start};
use surefoot_diagnose::LayerInfo;
use surefoot_plan::{Initializer, Layer, Regularizer};

/// Settings shared by all arrays of a layer.
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) first: ParameterId,
}

pub(super) struct Builder<B: Compute> {
    pub(super) network: Network<B>,
    pub(super) names: std::vec::IntoIter<String>,
    /// The shape after the stages so far, channels last.
    pub(super) shape: Vec<usize>,
    /// True if a masking layer hides steps of the current value.
    pub(super) masked: bool,
}

impl<B: Compute> Builder<B> {
    pub(super) fn layers(&mut self, layers: &[Layer]) {
        for layer in layers {
            if let Layer::Residual(residual) = layer {
                self.stage(Fork);
                let input = self.shape.clone();
                self.layers(&residual.layers);
                if let Some(shortcut) = &residual.shortcut {
                    self.stage(Swap);
                    self.shape = input;
                    self.layers(shortcut);
                }
                self.stage(Join);
                continue;
            }
            let frame = Frame {
                name: self.names.next().unwrap_or_default(),
                first: self.network.declarations.len(),
            };
            let units = self.layer(layer, &frame);
            self.finish(layer, frame, units);
        }
    }

    fn finish(&mut self, layer: &Layer, frame: Frame, units: Option<Units>) {
        let network = &mut self.network;
        let arrays = frame.first..network.declarations.len();
        let parameters = network.declarations[arrays.clone()]
            .iter()
            .filter(|d| d.role != Role::Moving)
            .map(|d| d.shape.iter().product::<usize>() as u64)
            .sum();
        // Only where the activation is the last thing that happens to the outputs.
        let activation = match layer {
            Layer::Dense(_)
            | Layer::Conv1d(_)
            | Layer::Conv2d(_)
            | Layer::SimpleRnn(_)
            | Layer::Activation(_) => layer.activation(),
            _ => None,
        };
        network.outputs += self.shape.iter().product::<usize>() as u64;
        network.subjects.push(Subject {
            info: LayerInfo {
                name: frame.name,
                kind: layer.kind().into(),
                parameters,
                units: units.map(|units| match units {
                    Units::Columns(n) | Units::Rows(n) => n,
                }),
                activation: activation.map(|a| a.name().into()),
                output_shape: self.shape.clone(),
                frozen: false,
            },
            stage: network.stages.len().saturating_sub(1),
            arrays,
            units,
            activation,
        });
    }

    pub(super) fn stage(&mut self, stage: impl Stage<B> + 'static) {
        self.network.stages.push(Box::new(stage));
    }

    /// True if a stage before the next one has parameters.
    pub(super) fn learns_before(&self, frame: &Frame) -> bool {
        frame.first > 0
    }

    pub(super) fn channels(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    fn positions(&self) -> usize {
        self.shape[..self.shape.len() - 1].iter().product()
    }

    pub(super) fn declare(&mut self, frame: &Frame, array: Array<'_>) -> ParameterId {
        let len: usize = array.shape.iter().product();
        // Each value of a kernel is used once at every position.
        self.network.first_learning.get_or_insert(self.network.stages.len());
        if array.role == Role::Weight {
            self.network.work += (len * self.positions().max(1)) as u64;
        }
        self.network.declarations.push(Declaration {
            layer: frame.name.clone(),
            name: array.name.to_owned(),
            shape: array.shape,
            start: array.start,
            fans: array.fans,
            regularizer: array.regularizer,
            role: array.role,
        });
        self.network.declarations.len() - 1
    }

    pub(super) fn bias(
        &mut self,
        frame: &Frame,
        name: &str,
        shape: Vec<usize>,
        initializer: Initializer,
        regularizer: Regularizer,
    ) -> ParameterId {
        let len = shape.iter().product();
        self.declare(
            frame,
            Array {
                name,
                shape,
                start: Start::Initializer(initializer),
                fans: Fans { fan_in: len, fan_out: len },
                regularizer,
                role: Role::Bias,
            },
        )
    }

    pub(super) fn kernel(
        &mut self,
        frame: &Frame,
        name: &str,
        shape: Vec<usize>,
        fans: Fans,
        initializer: Initializer,
        regularizer: Regularizer,
    ) -> ParameterId {
        self.declare(
            frame,
            Array {
                name,
                shape,
                start: Start::Initializer(initializer),
                fans,
                regularizer,
                role: Role::Weight,
            },
        )
    }

    /// Adds the stages of one layer; returns how its units lie.
    fn layer(&mut self, layer: &Layer, frame: &Frame) -> Option<Units> {
        match layer {
            Layer::Dense(l) => {
                let kernel = self.matrix(
                    frame,
                    "kernel",
                    self.channels(),
                    l.units,
                    l.kernel_initializer,
                    l.kernel_regularizer,
                );
                let bias = l.use_bias.then(|| {
                    self.bias(frame, "bias", vec![l.units], l.bias_initializer, l.bias_regularizer)
                });
                self.stage(Dense {
                    kernel,
                    bias,
                    activation: l.activation,
                    with_input_gradient: self.learns_before(frame),
                });
                if let Some(last) = self.shape.last_mut() {
                    *last = l.units;
                }
                return Some(Units::Columns(l.units));
            }
            Layer::Conv1d(l) => {
                return self.convolution(
                    frame,
                    &ConvPlan {
                        geometry: Geometry {
                            size: [1, l.kernel_size],
                            stride: [1, l.strides],
                            dilation: [1, l.dilation_rate],
                            padding: l.padding,
                        },
                        sequence: true,
                        filters: l.filters,
                        activation: l.activation,
                        kernel: (l.kernel_initializer, l.kernel_regularizer),
                        bias: l.use_bias.then_some((l.bias_initializer, l.bias_regularizer)),
                    },
                );
            }
            Layer::Conv2d(l) => {
                return self.convolution(
                    frame,
                    &ConvPlan {
                        geometry: Geometry {
                            size: l.kernel_size,
                            stride: l.strides,
                            dilation: l.dilation_rate,
                            padding: l.padding,
                        },
                        sequence: false,
                        filters: l.filters,
                        activation: l.activation,
                        kernel: (l.kernel_initializer, l.kernel_regularizer),
                        bias: l.use_bias.then_some((l.bias_initializer, l.bias_regularizer)),
                    },
                );
            }
            Layer::MaxPool1d(l) => self.pool1d(Summary::Max, l),
            Layer::AveragePool1d(l) => self.pool1d(Summary::Average, l),
            Layer::MaxPool2d(l) => self.pool2d(Summary::Max, l),
            Layer::AveragePool2d(l) => self.pool2d(Summary::Average, l),
            Layer::GlobalMaxPool(_) => self.global_pool(Summary::Max),
            Layer::GlobalAveragePool(_) => self.global_pool(Summary::Average),
            Layer::Flatten(_) => {
                let to = vec![self.shape.iter().product()];
                self.reshape(to);
            }
            Layer::Reshape(l) => {
                let total: usize = self.shape.iter().product();
                let known: usize =
                    l.target_shape.iter().filter(|&&n| n > 0).map(|&n| n as usize).product();
                let to = l
                    .target_shape
                    .iter()
                    .map(|&n| usize::try_from(n).unwrap_or(total / known.max(1)))
                    .collect();
                self.reshape(to);
            }
            Layer::Dropout(l) => self.stage(Dropout { rate: l.rate, site: site(&frame.name) }),
            Layer::BatchNorm(l) => {
                let channels = self.channels();
                let affine = self.affine(frame, "", l.scale, l.center);
                let mut moving = |name, value| {
                    self.declare(
                        frame,
                        Array {
                            name,
                            shape: vec![channels],
                            start: Start::Initializer(Initializer::Constant { value }),
                            fans: Fans { fan_in: 1, fan_out: 1 },
                            regularizer: Regularizer::default(),
                            role: Role::Moving,
                        },
                    )
                };
                let (moving_mean, moving_variance) =
                    (moving("moving_mean", 0.0), moving("moving_variance", 1.0));
                self.stage(BatchNorm {
                    affine,
                    moving_mean,
                    moving_variance,
                    channels,
                    momentum: l.momentum,
                    epsilon: l.epsilon,
                });
            }
            Layer::LayerNorm(l) => {
                let affine = self.affine(frame, "", l.scale, l.center);
                self.stage(LayerNorm { affine, epsilon: l.epsilon });
            }
            Layer::GroupNorm(l) => {
                let affine = self.affine(frame, "", l.scale, l.center);
                self.stage(GroupNorm { affine, groups: l.groups, epsilon: l.epsilon });
            }
            Layer::Embedding(l) => {
                let table = self.matrix(
                    frame,
                    "embeddings",
                    l.input_dim,
                    l.output_dim,
                    l.embeddings_initializer,
                    Regularizer::default(),
                );
                // A look-up, not a product.
                self.network.work -= (l.input_dim * l.output_dim * self.positions().max(1)) as u64;
                self.stage(Embedding { table });
                self.shape.push(l.output_dim);
            }
            Layer::PositionEmbedding(l) => {
                let [steps, features] = [self.shape[0], self.shape[1]];
                let table = self.matrix(
                    frame,
                    "embeddings",
                    steps,
                    features,
                    l.initializer,
                    Regularizer::default(),
                );
                self.network.work -= (steps * features * self.positions()) as u64;
                self.stage(PositionEmbedding { table });
            }
            Layer::Masking(l) => {
                self.masked = true;
                self.stage(Masking { value: l.mask_value as f32 });
            }
            Layer::SimpleRnn(l) => {
                return self.recurrent(
                    frame,
                    &RecurrentPlan {
                        cell: Cell::Simple,
                        units: l.units,
                        activation: l.activation,
                        recurrent_activation: l.activation,
                        bias: l.use_bias.then_some(Start::Initializer(l.bias_initializer)),
                        kernel: (l.kernel_initializer, l.kernel_regularizer),
                        recurrent: (l.recurrent_initializer, l.recurrent_regularizer),
                        return_sequences: l.return_sequences,
                        bidirectional: l.bidirectional,
                    },
                );
            }
            Layer::Lstm(l) => {
                return self.recurrent(
                    frame,
                    &RecurrentPlan {
                        cell: Cell::Lstm,
                        units: l.units,
                        activation: l.activation,
                        recurrent_activation: l.recurrent_activation,
                        bias: l.use_bias.then_some(if l.unit_forget_bias {
                            Start::ForgetBias
                        } else {
                            Start::Initializer(l.bias_initializer)
                        }),
                        kernel: (l.kernel_initializer, l.kernel_regularizer),
                        recurrent: (l.recurrent_initializer, l.recurrent_regularizer),
                        return_sequences: l.return_sequences,
                        bidirectional: l.bidirectional,
                    },
                );
            }
            Layer::Gru(l) => {
                return self.recurrent(
                    frame,
                    &RecurrentPlan {
                        cell: Cell::Gru { reset_after: l.reset_after },
                        units: l.units,
                        activation: l.activation,
                        recurrent_activation: l.recurrent_activation,
                        bias: l.use_bias.then_some(Start::Initializer(l.bias_initializer)),
                        kernel: (l.kernel_initializer, l.kernel_regularizer),
                        recurrent: (l.recurrent_initializer, l.recurrent_regularizer),
                        return_sequences: l.return_sequences,
                        bidirectional: l.bidirectional,
                    },
                );
            }
            Layer::MultiHeadAttention(l) => {
                let key_dim = l.key_dim.unwrap_or(self.channels() / l.num_heads.max(1));
                let attention = self.attention(
                    frame,
                    "",
                    &AttentionPlan {
                        heads: l.num_heads,
                        key_dim,
                        dropout: l.dropout,
                        kernel: l.kernel_initializer,
                        bias: l.use_bias.then_some(l.bias_initializer),
                    },
                );
                self.stage(attention);
            }
            Layer::Transformer(l) => self.transformer(frame, l),
            Layer::Activation(l) => self.stage(Activate(l.activation)),
            Layer::Residual(_) => unreachable!("a residual block is unfolded by `layers`"),
        }
        None
    }

    pub(super) fn matrix(
        &mut self,
        frame: &Frame,
        name: &str,
        rows: usize,
        columns: usize,
        initializer: Initializer,
        regularizer: Regularizer,
    ) -> ParameterId {
        let fans = Fans { fan_in: rows, fan_out: columns };
        self.kernel(frame, name, vec![rows, columns], fans, initializer, regularizer)
    }

    pub(super) fn affine(
        &mut self,
        frame: &Frame,
        prefix: &str,
        scale: bool,
        center: bool,
    ) -> Affine {
        let channels = self.channels();
        let mut array = |name: &str, value| {
            self.bias(
                frame,
                &format!("{prefix}{name}"),
                vec![channels],
                Initializer::Constant { value },
                Regularizer::default(),
            )
        };
        Affine {
            gamma: scale.then(|| array("gamma", 1.0)),
            beta: center.then(|| array("beta", 0.0)),
        }
    }
}

/// An array while it is being declared.
pub(super) struct Array<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Vec<usize>,
    pub(super) start: Start,
    pub(super) fans: Fans,
    pub(super) regularizer: Regularizer,
    pub(super) role: Role,
}
