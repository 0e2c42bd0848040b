//! A model, compiled: the plan's layers as stages, with the arrays they declare.

use crate::compute::Compute;
use crate::initialize::{Fans, site};
use crate::kernel::conv::Window;
use crate::layer::attention::{Attention, Projection};
use crate::layer::conv::Conv;
use crate::layer::dense::Dense;
use crate::layer::embedding::{Embedding, PositionEmbedding};
use crate::layer::norm::{Affine, BatchNorm, GroupNorm, LayerNorm};
use crate::layer::pool::{GlobalPool, Pool, Summary};
use crate::layer::recurrent::{Cell, Direction, Recurrent};
use crate::layer::shape::Reshape;
use crate::layer::{Activate, Dropout, Fork, Join, ParameterId, Stage};
use crate::parameters::{Declaration, Role, Start};
use std::ops::Range;
use surefoot_diagnose::LayerInfo;
use surefoot_plan::{Activation, Initializer, Layer, Padding, Regularizer, layer_names};

/// A compiled model.
pub struct Network<B: Compute> {
    pub(crate) stages: Vec<Box<dyn Stage<B>>>,
    /// What is watched, in order: one for every layer of the plan.
    pub(crate) subjects: Vec<Subject>,
    pub(crate) declarations: Vec<Declaration>,
    /// Multiplications of one sample's forward pass, roughly.
    pub(crate) work: u64,
    /// Values put out by all layers for one sample.
    pub(crate) outputs: u64,
    /// Values of the last layer for one sample.
    pub(crate) width: usize,
    /// The first stage with something to learn; gradients need not go further back.
    pub(crate) first_learning: Option<usize>,
}

/// A layer as it is watched.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) info: LayerInfo,
    /// The stage whose output is the layer's.
    pub(crate) stage: usize,
    /// Its arrays.
    pub(crate) arrays: Range<ParameterId>,
    /// How the units lie in the first array, if it has units.
    pub(crate) units: Option<Units>,
    pub(crate) activation: Option<Activation>,
}

/// How units lie in a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Units {
    Columns(usize),
    Rows(usize),
}

impl<B: Compute> Network<B> {
    /// Compiles `layers` for samples of shape `input` (channels last). The plan has been checked
    /// against that shape before.
    pub fn new(layers: &[Layer], input: &[usize]) -> Self {
        let mut builder = Builder {
            network: Self {
                stages: Vec::new(),
                subjects: Vec::new(),
                declarations: Vec::new(),
                work: 0,
                outputs: 0,
                width: 0,
                first_learning: None,
            },
            names: layer_names(layers).into_iter(),
            shape: input.to_vec(),
        };
        builder.layers(layers);
        let mut network = builder.network;
        network.width = builder.shape.iter().product();
        network
    }

    /// The static facts about the watched layers.
    pub fn layers(&self) -> Vec<LayerInfo> {
        self.subjects.iter().map(|s| s.info.clone()).collect()
    }

    /// How many parameters the model learns.
    pub fn parameters(&self) -> u64 {
        self.subjects.iter().map(|s| s.info.parameters).sum()
    }
}

/// What all arrays of a layer have in common while it is being compiled.
struct Frame {
    name: String,
    first: ParameterId,
}

struct Builder<B: Compute> {
    network: Network<B>,
    names: std::vec::IntoIter<String>,
    /// The shape after the stages so far, channels last.
    shape: Vec<usize>,
}

impl<B: Compute> Builder<B> {
    fn layers(&mut self, layers: &[Layer]) {
        for layer in layers {
            if let Layer::Residual(residual) = layer {
                self.stage(Fork);
                self.layers(&residual.layers);
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
        let activation = layer.activation();
        network.outputs += self.shape.iter().product::<usize>() as u64;
        network.subjects.push(Subject {
            info: LayerInfo {
                name: frame.name,
                kind: layer.kind().to_owned(),
                parameters,
                units: units.map(|units| match units {
                    Units::Columns(n) | Units::Rows(n) => n,
                }),
                activation: activation.map(|a| a.name().to_owned()),
                output_shape: self.shape.clone(),
                frozen: false,
            },
            stage: network.stages.len().saturating_sub(1),
            arrays,
            units,
            activation,
        });
    }

    fn stage(&mut self, stage: impl Stage<B> + 'static) {
        self.network.stages.push(Box::new(stage));
    }

    /// Whether anything before the next stage learns.
    fn learns_before(&self, frame: &Frame) -> bool {
        frame.first > 0
    }

    fn channels(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    fn positions(&self) -> usize {
        self.shape[..self.shape.len() - 1].iter().product()
    }

    fn declare(&mut self, frame: &Frame, array: Array<'_>) -> ParameterId {
        let len: usize = array.shape.iter().product();
        // Each value of a kernel is used once at every position.
        self.network
            .first_learning
            .get_or_insert(self.network.stages.len());
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

    fn bias(
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
                fans: Fans {
                    fan_in: len,
                    fan_out: len,
                },
                regularizer,
                role: Role::Bias,
            },
        )
    }

    fn kernel(
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
                    self.bias(
                        frame,
                        "bias",
                        vec![l.units],
                        l.bias_initializer,
                        l.bias_regularizer,
                    )
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
                let geometry = Geometry {
                    size: [1, l.kernel_size],
                    stride: [1, l.strides],
                    dilation: [1, l.dilation_rate],
                    padding: l.padding,
                };
                let window = geometry.window([1, self.shape[0]]);
                let (input, taps) = (self.channels(), l.kernel_size);
                self.shape = vec![window.output[1], l.filters];
                let kernel = self.kernel(
                    frame,
                    "kernel",
                    vec![l.filters, input, taps],
                    Fans {
                        fan_in: input * taps,
                        fan_out: l.filters * taps,
                    },
                    l.kernel_initializer,
                    l.kernel_regularizer,
                );
                let bias = l.use_bias.then(|| {
                    self.bias(
                        frame,
                        "bias",
                        vec![l.filters],
                        l.bias_initializer,
                        l.bias_regularizer,
                    )
                });
                self.stage(Conv {
                    kernel,
                    bias,
                    activation: l.activation,
                    window,
                    sequence: true,
                    with_input_gradient: self.learns_before(frame),
                });
                return Some(Units::Rows(l.filters));
            }
            Layer::Conv2d(l) => {
                let geometry = Geometry {
                    size: l.kernel_size,
                    stride: l.strides,
                    dilation: l.dilation_rate,
                    padding: l.padding,
                };
                let window = geometry.window([self.shape[0], self.shape[1]]);
                let (input, taps) = (self.channels(), l.kernel_size[0] * l.kernel_size[1]);
                self.shape = vec![window.output[0], window.output[1], l.filters];
                let kernel = self.kernel(
                    frame,
                    "kernel",
                    vec![l.filters, input, l.kernel_size[0], l.kernel_size[1]],
                    Fans {
                        fan_in: input * taps,
                        fan_out: l.filters * taps,
                    },
                    l.kernel_initializer,
                    l.kernel_regularizer,
                );
                let bias = l.use_bias.then(|| {
                    self.bias(
                        frame,
                        "bias",
                        vec![l.filters],
                        l.bias_initializer,
                        l.bias_regularizer,
                    )
                });
                self.stage(Conv {
                    kernel,
                    bias,
                    activation: l.activation,
                    window,
                    sequence: false,
                    with_input_gradient: self.learns_before(frame),
                });
                return Some(Units::Rows(l.filters));
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
                let known: usize = l
                    .target_shape
                    .iter()
                    .filter(|&&n| n > 0)
                    .map(|&n| n as usize)
                    .product();
                let to = l
                    .target_shape
                    .iter()
                    .map(|&n| usize::try_from(n).unwrap_or(total / known.max(1)))
                    .collect();
                self.reshape(to);
            }
            Layer::Dropout(l) => self.stage(Dropout {
                rate: l.rate,
                site: site(&frame.name),
            }),
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
                            fans: Fans {
                                fan_in: 1,
                                fan_out: 1,
                            },
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
                self.stage(LayerNorm {
                    affine,
                    epsilon: l.epsilon,
                });
            }
            Layer::GroupNorm(l) => {
                let affine = self.affine(frame, "", l.scale, l.center);
                self.stage(GroupNorm {
                    affine,
                    groups: l.groups,
                    epsilon: l.epsilon,
                });
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
            Layer::SimpleRnn(l) => self.recurrent(
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
            ),
            Layer::Lstm(l) => self.recurrent(
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
            ),
            Layer::Gru(l) => self.recurrent(
                frame,
                &RecurrentPlan {
                    cell: Cell::Gru {
                        reset_after: l.reset_after,
                    },
                    units: l.units,
                    activation: l.activation,
                    recurrent_activation: l.recurrent_activation,
                    bias: l.use_bias.then_some(Start::Initializer(l.bias_initializer)),
                    kernel: (l.kernel_initializer, l.kernel_regularizer),
                    recurrent: (l.recurrent_initializer, l.recurrent_regularizer),
                    return_sequences: l.return_sequences,
                    bidirectional: l.bidirectional,
                },
            ),
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

    fn matrix(
        &mut self,
        frame: &Frame,
        name: &str,
        rows: usize,
        columns: usize,
        initializer: Initializer,
        regularizer: Regularizer,
    ) -> ParameterId {
        let fans = Fans {
            fan_in: rows,
            fan_out: columns,
        };
        self.kernel(
            frame,
            name,
            vec![rows, columns],
            fans,
            initializer,
            regularizer,
        )
    }

    fn affine(&mut self, frame: &Frame, prefix: &str, scale: bool, center: bool) -> Affine {
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

    fn pool1d(&mut self, summary: Summary, l: &surefoot_plan::Pool1d) {
        let geometry = Geometry {
            size: [1, l.pool_size],
            stride: [1, l.strides.unwrap_or(l.pool_size)],
            dilation: [1, 1],
            padding: l.padding,
        };
        let window = geometry.window([1, self.shape[0]]);
        self.shape[0] = window.output[1];
        self.stage(Pool {
            summary,
            window,
            sequence: true,
        });
    }

    fn pool2d(&mut self, summary: Summary, l: &surefoot_plan::Pool2d) {
        let geometry = Geometry {
            size: l.pool_size,
            stride: l.strides.unwrap_or(l.pool_size),
            dilation: [1, 1],
            padding: l.padding,
        };
        let window = geometry.window([self.shape[0], self.shape[1]]);
        self.shape[..2].copy_from_slice(&window.output);
        self.stage(Pool {
            summary,
            window,
            sequence: false,
        });
    }

    fn global_pool(&mut self, summary: Summary) {
        let image = match self.shape[..] {
            [height, width, _] => Some([height, width]),
            _ => None,
        };
        self.shape = vec![self.channels()];
        self.stage(GlobalPool { summary, image });
    }

    fn reshape(&mut self, to: Vec<usize>) {
        let from = std::mem::replace(&mut self.shape, to.clone());
        self.stage(Reshape { from, to });
    }

    fn recurrent(&mut self, frame: &Frame, plan: &RecurrentPlan) {
        let [steps, features] = [self.shape[0], self.shape[1]];
        let (gates, biases) = match plan.cell {
            Cell::Simple => (1, 1),
            Cell::Lstm => (4, 1),
            Cell::Gru { reset_after } => (3, if reset_after { 2 } else { 1 }),
        };
        let width = gates * plan.units;
        let prefixes: &[&str] = if plan.bidirectional {
            &["forward_", "backward_"]
        } else {
            &[""]
        };
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
                let shape = if biases == 2 {
                    vec![2, width]
                } else {
                    vec![width]
                };
                self.declare(
                    frame,
                    Array {
                        name: &format!("{prefix}bias"),
                        shape,
                        start,
                        fans: Fans {
                            fan_in: width,
                            fan_out: width,
                        },
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
            directions,
        });
        self.shape = if plan.return_sequences {
            vec![steps, outputs]
        } else {
            vec![outputs]
        };
    }

    fn attention(&mut self, frame: &Frame, prefix: &str, plan: &AttentionPlan) -> Attention {
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

    fn transformer(&mut self, frame: &Frame, l: &surefoot_plan::Transformer) {
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
        let outer = dense(
            "feed_forward_2",
            l.feed_forward,
            features,
            Activation::Linear,
        );
        let norm = |affine| LayerNorm {
            affine,
            epsilon: l.epsilon,
        };
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

/// An array while it is being declared.
struct Array<'a> {
    name: &'a str,
    shape: Vec<usize>,
    start: Start,
    fans: Fans,
    regularizer: Regularizer,
    role: Role,
}

struct RecurrentPlan {
    cell: Cell,
    units: usize,
    activation: Activation,
    recurrent_activation: Activation,
    bias: Option<Start>,
    kernel: (Initializer, Regularizer),
    recurrent: (Initializer, Regularizer),
    return_sequences: bool,
    bidirectional: bool,
}

struct AttentionPlan {
    heads: usize,
    key_dim: usize,
    dropout: f64,
    kernel: Initializer,
    bias: Option<Initializer>,
}

/// A window before it knows its input.
struct Geometry {
    size: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: Padding,
}

impl Geometry {
    fn window(&self, input: [usize; 2]) -> Window {
        let mut window = Window {
            size: self.size,
            stride: self.stride,
            dilation: self.dilation,
            before: [0, 0],
            after: [0, 0],
            input,
            output: [0, 0],
        };
        for axis in 0..2 {
            let span = (self.size[axis] - 1) * self.dilation[axis] + 1;
            match self.padding {
                Padding::Valid => {
                    window.output[axis] =
                        (input[axis] + self.stride[axis]).saturating_sub(span) / self.stride[axis];
                }
                Padding::Same => {
                    // As TensorFlow: what is left over goes to the end.
                    window.output[axis] = input[axis].div_ceil(self.stride[axis]);
                    let needed = ((window.output[axis] - 1) * self.stride[axis] + span)
                        .saturating_sub(input[axis]);
                    window.before[axis] = needed / 2;
                    window.after[axis] = needed - needed / 2;
                }
            }
        }
        window
    }
}
