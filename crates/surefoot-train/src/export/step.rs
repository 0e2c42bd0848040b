//! A model as a list of operations on samples with channels last.

use crate::kernel::conv::Window;
use crate::network::geometry::Geometry;
use crate::predict::Predictor;
use surefoot_diagnose::LayerInfo;
use surefoot_plan::{Activation, Layer, Padding, Pool1d, Pool2d, Transformer};

/// An operation. Arrays are named as in the model file; `None` for those that the layer does not
/// have.
pub(super) enum Step {
    /// `x @ kernel + bias` over the last dimension.
    Product {
        kernel: String,
        bias: Option<String>,
    },
    /// A convolution of an image, or of a sequence as an image of height 1.
    Conv {
        kernel: String,
        bias: Option<String>,
        window: Window,
    },
    Pool {
        is_max: bool,
        window: Window,
    },
    /// The maximum or mean over all dimensions but the batch and the channels.
    GlobalPool {
        is_max: bool,
    },
    Reshape(Vec<usize>),
    BatchNorm {
        mean: String,
        variance: String,
        affine: Affine,
        epsilon: f64,
    },
    LayerNorm {
        affine: Affine,
        epsilon: f64,
    },
    GroupNorm {
        groups: usize,
        affine: Affine,
        epsilon: f64,
    },
    Embedding {
        table: String,
    },
    PositionEmbedding {
        table: String,
    },
    /// Hides the steps in which every feature is `value` from recurrent layers, and sets them to 0.
    Masking {
        value: f32,
    },
    Recurrent(Recurrent),
    Attention(Attention),
    Activate(Activation),
    /// Keeps the value for the next [`Step::Join`].
    Fork,
    /// Exchanges the value with the one that was kept.
    Swap,
    /// Adds the value kept last.
    Join,
}

/// Factor and offset of a normalization.
pub(super) struct Affine {
    pub(super) gamma: Option<String>,
    pub(super) beta: Option<String>,
}

/// Kind of a recurrent layer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Simple,
    Lstm,
    Gru { reset_after: bool },
}

/// A recurrent layer.
pub(super) struct Recurrent {
    pub(super) layer: String,
    pub(super) cell: Cell,
    pub(super) activation: Activation,
    pub(super) gates: Activation,
    pub(super) has_bias: bool,
    pub(super) returns_sequences: bool,
    pub(super) is_bidirectional: bool,
    /// True if steps are hidden.
    pub(super) is_masked: bool,
}

impl Recurrent {
    /// Prefix of the arrays of each direction.
    pub(super) fn prefixes(&self) -> Vec<String> {
        let directions: &[&str] =
            if self.is_bidirectional { &["forward_", "backward_"] } else { &[""] };
        directions.iter().map(|direction| format!("{}.{direction}", self.layer)).collect()
    }
}

/// Self-attention.
pub(super) struct Attention {
    /// Prefix of its arrays.
    pub(super) prefix: String,
    pub(super) heads: usize,
    pub(super) key_dim: usize,
    pub(super) has_bias: bool,
}

/// The operations of a model, each with the shape in which samples come to its layer.
pub(super) fn steps(predictor: &Predictor) -> Vec<(Step, Vec<usize>)> {
    let names = predictor.weights().into_iter().map(|it| format!("{}.{}", it.layer, it.name));
    let mut reader = Reader {
        names: names.collect(),
        layers: predictor.layers().into_iter(),
        shape: predictor.preprocessing().input_shape.clone(),
        is_masked: false,
        steps: Vec::new(),
    };
    reader.layers(&predictor.plan().model);
    reader.steps
}

struct Reader {
    /// Names of all arrays.
    names: Vec<String>,
    /// Names and output shapes of the layers to come.
    layers: std::vec::IntoIter<LayerInfo>,
    /// Shape of the current value.
    shape: Vec<usize>,
    /// True if steps of the current value are hidden.
    is_masked: bool,
    steps: Vec<(Step, Vec<usize>)>,
}

impl Reader {
    fn push(&mut self, step: Step) {
        self.steps.push((step, self.shape.clone()));
    }

    fn layers(&mut self, layers: &[Layer]) {
        for layer in layers {
            if let Layer::Residual(residual) = layer {
                self.push(Step::Fork);
                let input = self.shape.clone();
                self.layers(&residual.layers);
                if let Some(shortcut) = &residual.shortcut {
                    self.push(Step::Swap);
                    self.shape = input;
                    self.layers(shortcut);
                }
                self.push(Step::Join);
            } else if let Some(info) = self.layers.next() {
                self.layer(layer, &info.name, &info.output_shape);
                self.shape = info.output_shape;
            }
        }
    }

    fn layer(&mut self, layer: &Layer, name: &str, output: &[usize]) {
        match layer {
            Layer::Dense(l) => self.dense(&format!("{name}."), l.activation),
            Layer::Conv1d(l) => {
                let size = ([1, l.kernel_size], [1, l.strides], [1, l.dilation_rate]);
                self.conv(name, size, l.padding, l.activation, true);
            }
            Layer::Conv2d(l) => {
                let size = (l.kernel_size, l.strides, l.dilation_rate);
                self.conv(name, size, l.padding, l.activation, false);
            }
            Layer::MaxPool1d(l) => self.pool1d(true, l),
            Layer::AveragePool1d(l) => self.pool1d(false, l),
            Layer::MaxPool2d(l) => self.pool2d(true, l),
            Layer::AveragePool2d(l) => self.pool2d(false, l),
            Layer::GlobalMaxPool(_) | Layer::GlobalAveragePool(_) => {
                let is_max = matches!(layer, Layer::GlobalMaxPool(_));
                self.push(Step::GlobalPool { is_max });
            }
            Layer::Flatten(_) | Layer::Reshape(_) => self.push(Step::Reshape(output.into())),
            // Active in training only.
            Layer::Dropout(_) => {}
            Layer::BatchNorm(l) => {
                let step = Step::BatchNorm {
                    mean: format!("{name}.moving_mean"),
                    variance: format!("{name}.moving_variance"),
                    affine: self.affine(&format!("{name}.")),
                    epsilon: l.epsilon,
                };
                self.push(step);
            }
            Layer::LayerNorm(l) => self.layer_norm(&format!("{name}."), l.epsilon),
            Layer::GroupNorm(l) => {
                let affine = self.affine(&format!("{name}."));
                let (groups, epsilon) = (l.groups, l.epsilon);
                self.push(Step::GroupNorm { groups, affine, epsilon });
            }
            Layer::Embedding(_) => {
                self.push(Step::Embedding { table: format!("{name}.embeddings") });
            }
            Layer::PositionEmbedding(_) => {
                self.push(Step::PositionEmbedding { table: format!("{name}.embeddings") });
            }
            Layer::Masking(l) => {
                self.is_masked = true;
                self.push(Step::Masking { value: l.mask_value as f32 });
            }
            Layer::SimpleRnn(l) => {
                let activations = [l.activation, l.activation];
                let flags = [l.use_bias, l.return_sequences, l.bidirectional];
                self.recurrent(name, Cell::Simple, activations, flags);
            }
            Layer::Lstm(l) => {
                let activations = [l.activation, l.recurrent_activation];
                let flags = [l.use_bias, l.return_sequences, l.bidirectional];
                self.recurrent(name, Cell::Lstm, activations, flags);
            }
            Layer::Gru(l) => {
                let cell = Cell::Gru { reset_after: l.reset_after };
                let activations = [l.activation, l.recurrent_activation];
                let flags = [l.use_bias, l.return_sequences, l.bidirectional];
                self.recurrent(name, cell, activations, flags);
            }
            Layer::MultiHeadAttention(l) => {
                let key_dim = l.key_dim.unwrap_or(self.shape[1] / l.num_heads.max(1));
                self.attention(&format!("{name}."), l.num_heads, key_dim);
            }
            Layer::Transformer(l) => self.transformer(name, l),
            Layer::Activation(l) => self.activate(l.activation),
            Layer::Residual(_) => unreachable!("a residual block is unfolded by `layers`"),
        }
    }

    fn known(&self, name: String) -> Option<String> {
        self.names.contains(&name).then_some(name)
    }

    fn affine(&self, prefix: &str) -> Affine {
        Affine {
            gamma: self.known(format!("{prefix}gamma")),
            beta: self.known(format!("{prefix}beta")),
        }
    }

    fn activate(&mut self, activation: Activation) {
        if activation != Activation::Linear {
            self.push(Step::Activate(activation));
        }
    }

    fn dense(&mut self, prefix: &str, activation: Activation) {
        let bias = self.known(format!("{prefix}bias"));
        self.push(Step::Product { kernel: format!("{prefix}kernel"), bias });
        self.activate(activation);
    }

    fn layer_norm(&mut self, prefix: &str, epsilon: f64) {
        let affine = self.affine(prefix);
        self.push(Step::LayerNorm { affine, epsilon });
    }

    /// The windows over the current value.
    fn window(
        &self,
        (size, stride, dilation): ([usize; 2], [usize; 2], [usize; 2]),
        padding: Padding,
        is_sequence: bool,
    ) -> Window {
        let area = if is_sequence { [1, self.shape[0]] } else { [self.shape[0], self.shape[1]] };
        Geometry { size, stride, dilation, padding }.window(area)
    }

    fn conv(
        &mut self,
        name: &str,
        size: ([usize; 2], [usize; 2], [usize; 2]),
        padding: Padding,
        activation: Activation,
        is_sequence: bool,
    ) {
        let (kernel, bias) = (format!("{name}.kernel"), self.known(format!("{name}.bias")));
        let window = self.window(size, padding, is_sequence);
        self.push(Step::Conv { kernel, bias, window });
        self.activate(activation);
    }

    fn pool1d(&mut self, is_max: bool, l: &Pool1d) {
        let size = ([1, l.pool_size], [1, l.strides.unwrap_or(l.pool_size)], [1, 1]);
        let window = self.window(size, l.padding, true);
        self.push(Step::Pool { is_max, window });
    }

    fn pool2d(&mut self, is_max: bool, l: &Pool2d) {
        let size = (l.pool_size, l.strides.unwrap_or(l.pool_size), [1, 1]);
        let window = self.window(size, l.padding, false);
        self.push(Step::Pool { is_max, window });
    }

    fn recurrent(
        &mut self,
        name: &str,
        cell: Cell,
        [activation, gates]: [Activation; 2],
        [has_bias, returns_sequences, is_bidirectional]: [bool; 3],
    ) {
        self.push(Step::Recurrent(Recurrent {
            layer: name.to_owned(),
            cell,
            activation,
            gates,
            has_bias,
            returns_sequences,
            is_bidirectional,
            is_masked: self.is_masked,
        }));
        self.is_masked &= returns_sequences;
    }

    fn attention(&mut self, prefix: &str, heads: usize, key_dim: usize) {
        let has_bias = self.known(format!("{prefix}query_bias")).is_some();
        let prefix = prefix.to_owned();
        self.push(Step::Attention(Attention { prefix, heads, key_dim, has_bias }));
    }

    fn transformer(&mut self, name: &str, l: &Transformer) {
        let key_dim = self.shape[1] / l.num_heads.max(1);
        for part in ["attention", "feed_forward"] {
            self.push(Step::Fork);
            if l.norm_first {
                self.layer_norm(&format!("{name}.{part}_norm_"), l.epsilon);
            }
            if part == "attention" {
                self.attention(&format!("{name}.attention_"), l.num_heads, key_dim);
            } else {
                self.dense(&format!("{name}.feed_forward_1_"), l.activation);
                self.dense(&format!("{name}.feed_forward_2_"), Activation::Linear);
            }
            self.push(Step::Join);
            if !l.norm_first {
                self.layer_norm(&format!("{name}.{part}_norm_"), l.epsilon);
            }
        }
    }
}
