//! Data sets, and healthy plans that follow common practice.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use surefoot_plan::{
    Activation, ActivationLayer, Algorithm, BatchNorm, Conv2d, Data, Decay, Dense, Dropout,
    Embedding, Flatten, GlobalPool, Gru, Initializer, Layer, LayerNorm, Loss, Lstm, Optimizer,
    Padding, Plan, Pool2d, PositionEmbedding, Residual, Scale, Schedule, SimpleRnn, Source,
    Training, Transformer,
};

/// The data of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names of the data
pub enum DatasetKind {
    Circles,
    Blobs,
    Moons,
    Spirals,
    Shapes,
    Copy,
    Parity,
    Linear,
    Friedman,
    Mnist,
    FashionMnist,
    Cifar10,
    Imdb,
    Reuters,
}

impl DatasetKind {
    /// Real data sets, in files.
    pub(crate) const REAL: [DatasetKind; 5] = [
        DatasetKind::Mnist,
        DatasetKind::FashionMnist,
        DatasetKind::Cifar10,
        DatasetKind::Imdb,
        DatasetKind::Reuters,
    ];

    /// Generated data sets, each as often as it occurs in the zoo.
    pub(crate) const ALL: [DatasetKind; 13] = [
        DatasetKind::Circles,
        DatasetKind::Blobs,
        DatasetKind::Shapes,
        DatasetKind::Moons,
        DatasetKind::Copy,
        DatasetKind::Spirals,
        DatasetKind::Circles,
        DatasetKind::Friedman,
        DatasetKind::Shapes,
        DatasetKind::Blobs,
        DatasetKind::Parity,
        DatasetKind::Linear,
        DatasetKind::Moons,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            DatasetKind::Circles => "circles",
            DatasetKind::Blobs => "blobs",
            DatasetKind::Moons => "moons",
            DatasetKind::Spirals => "spirals",
            DatasetKind::Shapes => "shapes",
            DatasetKind::Copy => "copy",
            DatasetKind::Parity => "parity",
            DatasetKind::Linear => "linear",
            DatasetKind::Friedman => "friedman",
            DatasetKind::Mnist => "mnist",
            DatasetKind::FashionMnist => "fashion_mnist",
            DatasetKind::Cifar10 => "cifar10",
            DatasetKind::Imdb => "imdb",
            DatasetKind::Reuters => "reuters",
        }
    }

    /// Returns true for a regression.
    pub fn is_regression(self) -> bool {
        matches!(self, DatasetKind::Linear | DatasetKind::Friedman)
    }

    /// Returns true if its inputs are numbers, which can be scaled, and not symbols.
    pub(crate) fn has_amounts(self) -> bool {
        !matches!(
            self,
            DatasetKind::Copy | DatasetKind::Parity | DatasetKind::Imdb | DatasetKind::Reuters
        )
    }
}

/// A healthy plan on generated data.
pub(crate) fn plan(dataset: DatasetKind, rng: &Rng) -> Plan {
    match dataset {
        DatasetKind::Shapes => shapes(rng),
        DatasetKind::Copy | DatasetKind::Parity => sequence(dataset, rng),
        DatasetKind::Linear | DatasetKind::Friedman => regression(dataset, rng),
        _ => plane(dataset, rng),
    }
}

/// An activation with a suitable initializer.
pub(crate) fn activation(rng: &Rng) -> (Activation, Initializer) {
    rng.pick(&[
        (Activation::Relu, Initializer::HeNormal),
        (Activation::Relu, Initializer::HeUniform),
        (Activation::LeakyRelu { negative_slope: 0.1 }, Initializer::HeNormal),
        (Activation::elu(), Initializer::HeNormal),
        (Activation::Selu, Initializer::LecunNormal),
        (Activation::gelu(), Initializer::HeNormal),
        (Activation::Silu, Initializer::HeNormal),
        (Activation::Tanh, Initializer::GlorotUniform),
    ])
}

/// Dense hidden layers: plain ones up to nine deep, with normalisation or shortcuts beyond.
fn hidden(depth: usize, width: usize, rng: &Rng) -> Vec<Layer> {
    let (activation, kernel_initializer) = activation(rng);
    let dense = |activation| Dense { activation, kernel_initializer, ..Dense::new(width) };
    let style = match depth {
        0..=9 => rng.pick(&["plain", "plain", "plain", "batch_norm", "residual"]),
        _ => rng.pick(&["batch_norm", "residual"]),
    };
    let mut layers = Vec::new();
    for i in 0..depth {
        match style {
            "plain" => layers.push(Layer::Dense(dense(activation))),
            "residual" if i > 0 => {
                layers.push(Layer::Residual(Residual::new(vec![
                    Layer::LayerNorm(LayerNorm::default()),
                    Layer::Dense(dense(activation)),
                ])));
            }
            "residual" => layers.push(Layer::Dense(dense(activation))),
            _ => {
                layers.push(Layer::Dense(dense(Activation::Linear)));
                layers.push(Layer::BatchNorm(BatchNorm { momentum: 0.9, ..BatchNorm::default() }));
                layers.push(Layer::Activation(ActivationLayer::new(activation)));
            }
        }
    }
    layers
}

pub(crate) fn optimizer(rng: &Rng, rate: f64) -> Optimizer {
    let with = |optimizer: Optimizer, learning_rate: f64| Optimizer { learning_rate, ..optimizer };
    let momentum =
        Optimizer::new(Algorithm::Sgd { momentum: 0.9, nesterov: rng.chance(0.5) }, rate * 4.0);
    rng.pick(&[
        with(Optimizer::adam(), rate),
        with(Optimizer::adam(), rate),
        with(Optimizer::adamw(), rate),
        with(Optimizer::nadam(), rate),
        with(Optimizer::rmsprop(), rate * 0.5),
        momentum,
    ])
}

fn schedule(rng: &Rng, steps: u64) -> Schedule {
    let plain = Schedule::default();
    rng.pick(&[
        plain,
        plain,
        plain,
        Schedule { decay: Decay::Cosine { decay_steps: None, alpha: 0.05 }, ..plain },
        Schedule {
            decay: Decay::Step { decay_steps: (steps / 2).max(1), decay_rate: 0.3 },
            ..plain
        },
        Schedule { warmup_steps: steps / 20, ..plain },
    ])
}

/// Adds the output layer of the task.
fn output(layers: &mut Vec<Layer>, classes: usize) -> Loss {
    let (units, activation, loss) = if classes == 2 {
        let loss = Loss::BinaryCrossentropy { from_logits: false };
        (1, Activation::Sigmoid, loss)
    } else {
        let loss = Loss::SparseCategoricalCrossentropy { from_logits: false };
        (classes, Activation::Softmax, loss)
    };
    layers.push(Layer::Dense(Dense { activation, ..Dense::new(units) }));
    loss
}

fn training(rng: &Rng, loss: Loss, samples: usize, epochs: usize, rate: f64) -> Training {
    let batch_size = rng.pick(&[16, 32, 32, 64]);
    // The validation split takes a fifth.
    let steps = (samples * 4 / 5).div_ceil(batch_size) * epochs;
    Training {
        batch_size,
        optimizer: optimizer(rng, rate),
        schedule: schedule(rng, steps as u64),
        ..Training::new(epochs as u64, loss)
    }
}

fn plane(dataset: DatasetKind, rng: &Rng) -> Plan {
    let samples = rng.pick(&[600, 800, 1000]);
    let (source, classes, epochs) = match dataset {
        DatasetKind::Blobs => {
            let centers = rng.between(3, 5);
            let source = Source::Blobs { samples, centers, features: 2, spread: 1.0 };
            (source, centers, 30)
        }
        DatasetKind::Moons => (Source::Moons { samples, noise: 0.1 }, 2, 40),
        DatasetKind::Spirals => {
            let source = Source::Spirals { samples, classes: 2, turns: 0.75, noise: 0.05 };
            (source, 2, 60)
        }
        _ => {
            let source = Source::Circles { samples, noise: 0.08, factor: 0.5 };
            (source, 2, 40)
        }
    };
    let depth = rng.between(5, 18);
    let mut layers = hidden(depth, rng.pick(&[8, 12, 16, 24]), rng);
    if depth < 10 && rng.chance(0.2) {
        layers.push(Layer::Dropout(Dropout::new(0.1)));
    }
    let loss = output(&mut layers, classes);
    let rate = rng.log(0.002, 0.006);
    let mut plan = Plan::new(Data::new(source), layers, training(rng, loss, samples, epochs, rate));
    plan.data.scale = match dataset {
        DatasetKind::Blobs => Scale::Standardise,
        _ => rng.pick(&[Scale::Standardise, Scale::None]),
    };
    plan
}

fn shapes(rng: &Rng) -> Plan {
    let samples = rng.pick(&[600, 800]);
    let size = rng.pick(&[12, 14]);
    let classes = rng.between(3, 6);
    let source = Source::Shapes { samples, size, channels: 1, classes, noise: 0.05 };
    let (act, init) = activation(rng);
    let norm = rng.chance(0.4);
    let mut layers = Vec::new();
    for filters in [rng.pick(&[6, 8]), rng.pick(&[12, 16])] {
        layers.push(Layer::Conv2d(Conv2d {
            padding: Padding::Same,
            activation: if norm { Activation::Linear } else { act },
            kernel_initializer: init,
            ..Conv2d::new(filters, [3, 3])
        }));
        if norm {
            layers.push(Layer::BatchNorm(BatchNorm { momentum: 0.9, ..BatchNorm::default() }));
            layers.push(Layer::Activation(ActivationLayer::new(act)));
        }
        layers.push(Layer::MaxPool2d(Pool2d::default()));
    }
    layers.push(Layer::Flatten(Flatten::default()));
    for units in [rng.pick(&[32, 48]), rng.pick(&[16, 24])] {
        layers.push(Layer::Dense(Dense {
            activation: act,
            kernel_initializer: init,
            ..Dense::new(units)
        }));
    }
    if rng.chance(0.3) {
        layers.push(Layer::Dropout(Dropout::new(0.2)));
    }
    let loss = output(&mut layers, classes);
    let rate = rng.log(0.001, 0.004);
    let mut plan = Plan::new(Data::new(source), layers, training(rng, loss, samples, 15, rate));
    plan.data.scale = rng.pick(&[Scale::Standardise, Scale::MinMax]);
    plan
}

fn sequence(dataset: DatasetKind, rng: &Rng) -> Plan {
    let samples = 800;
    let (source, symbols, classes) = match dataset {
        DatasetKind::Parity => {
            let length = rng.between(4, 5);
            (Source::Parity { samples, length }, 2, 2)
        }
        _ => {
            let symbols = rng.between(4, 6);
            let length = rng.between(6, 9);
            let source = Source::Copy { samples, length, symbols };
            (source, symbols, symbols)
        }
    };
    let units = rng.pick(&[12, 16, 24]);
    let mut layers = vec![Layer::Embedding(Embedding {
        embeddings_initializer: Initializer::RandomUniform { minval: -0.5, maxval: 0.5 },
        ..Embedding::new(symbols, rng.pick(&[8, 12, 16]))
    })];
    let kind = match dataset {
        DatasetKind::Parity => rng.pick(&["lstm", "gru"]),
        _ => rng.pick(&["rnn", "lstm", "gru", "transformer"]),
    };
    let deep = rng.chance(0.3);
    match kind {
        "rnn" => {
            layers
                .push(Layer::SimpleRnn(SimpleRnn { bidirectional: deep, ..SimpleRnn::new(units) }));
        }
        "lstm" => {
            if deep {
                layers.push(Layer::Lstm(Lstm { return_sequences: true, ..Lstm::new(units) }));
            }
            layers.push(Layer::Lstm(Lstm::new(units)));
        }
        "gru" => {
            if deep {
                layers.push(Layer::Gru(Gru { return_sequences: true, ..Gru::new(units) }));
            }
            layers.push(Layer::Gru(Gru::new(units)));
        }
        _ => {
            layers.push(Layer::PositionEmbedding(PositionEmbedding::default()));
            for _ in 0..1 + usize::from(deep) {
                layers.push(Layer::Transformer(Transformer {
                    norm_first: true,
                    ..Transformer::new(2, 32)
                }));
            }
            layers.push(Layer::LayerNorm(LayerNorm::default()));
            layers.push(Layer::GlobalAveragePool(GlobalPool::default()));
        }
    }
    if rng.chance(0.5) {
        layers.push(Layer::Dense(Dense { activation: Activation::Tanh, ..Dense::new(16) }));
    }
    let loss = output(&mut layers, classes);
    let rate = rng.log(0.006, 0.01);
    let epochs = if dataset == DatasetKind::Parity { 40 } else { 25 };
    let mut plan = Plan::new(Data::new(source), layers, training(rng, loss, samples, epochs, rate));
    plan.training.optimizer.global_clipnorm = Some(1.0);
    plan
}

fn regression(dataset: DatasetKind, rng: &Rng) -> Plan {
    let samples = rng.pick(&[600, 800]);
    let features = rng.between(5, 10);
    let source = match dataset {
        DatasetKind::Linear => Source::Linear { samples, features, noise: 0.5 },
        _ => Source::Friedman { samples, features, noise: 0.5 },
    };
    let depth = rng.between(2, 8);
    let mut layers = hidden(depth, rng.pick(&[16, 24, 32]), rng);
    layers.push(Layer::Dense(Dense::new(1)));
    let loss = rng.pick(&[Loss::Mse, Loss::Mse, Loss::Mae, Loss::Huber { delta: 1.0 }]);
    let rate = rng.log(0.002, 0.005);
    let mut plan = Plan::new(Data::new(source), layers, training(rng, loss, samples, 60, rate));
    plan.data.scale = Scale::Standardise;
    plan
}
