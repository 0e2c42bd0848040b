//! Cases on real data, from the files that `eval/bench/data` writes.

use crate::case::{Case, inject};
use crate::dataset::{self, DatasetKind};
use crate::rng::Rng;
use std::path::Path;
use surefoot_plan::{
    Activation, Conv2d, Data, Dense, Dropout, Embedding, Flatten, GlobalPool, Gru, Initializer,
    Layer, Loss, Lstm, Optimizer, Padding, Plan, Pool2d, Scale, Source, Task, Training,
};

/// First case number of real data, to distinguish them from generated cases.
const FIRST: u64 = 10_000;

/// `count` cases on each of the real data sets that are in `dir`.
pub fn real_cases(seed: u64, dir: &Path, count: u64) -> Vec<Case> {
    let sets = DatasetKind::REAL.into_iter().zip(0..);
    sets.filter(|(dataset, _)| file(*dataset, dir).exists())
        .flat_map(|(dataset, set)| {
            (0..count).map(move |i| case(seed, dataset, FIRST + 1000 * set + i, dir))
        })
        .collect()
}

/// The file of a data set.
fn file(dataset: DatasetKind, dir: &Path) -> std::path::PathBuf {
    dir.join(format!("{}.npz", dataset.name()))
}

fn case(seed: u64, dataset: DatasetKind, number: u64, dir: &Path) -> Case {
    let rng = Rng::new(seed, number);
    let source =
        Source::Npz { path: file(dataset, dir), features: "x".to_owned(), labels: "y".to_owned() };
    let mut data = Data::new(source);
    data.task = Some(match dataset {
        DatasetKind::Imdb => Task::Binary,
        _ => Task::MultiClass,
    });
    let mut twin = match dataset {
        DatasetKind::Imdb | DatasetKind::Reuters => text(dataset, data, &rng),
        _ => images(data, &rng),
    };
    twin.name = Some(format!("zoo-{number}"));
    let injected = (number % 10 < 6).then(|| inject(&twin, dataset, number, &rng));
    Case { number, dataset, twin, injected: injected.flatten() }
}

fn images(mut data: Data, rng: &Rng) -> Plan {
    data.scale = Scale::Standardise;
    let (act, init) = dataset::activation(rng);
    let mut layers = Vec::new();
    for (filters, size) in [(6, 5), (16, 5)] {
        layers.push(Layer::Conv2d(Conv2d {
            padding: Padding::Same,
            activation: act,
            kernel_initializer: init,
            ..Conv2d::new(filters, [size, size])
        }));
        layers.push(Layer::MaxPool2d(Pool2d::default()));
    }
    layers.push(Layer::Flatten(Flatten::default()));
    for units in [120, 84] {
        layers.push(Layer::Dense(Dense {
            activation: act,
            kernel_initializer: init,
            ..Dense::new(units)
        }));
    }
    if rng.chance(0.3) {
        layers.push(Layer::Dropout(Dropout::new(0.2)));
    }
    layers.push(Layer::Dense(Dense { activation: Activation::Softmax, ..Dense::new(10) }));
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: false };
    let training = Training {
        batch_size: rng.pick(&[32, 64]),
        optimizer: dataset::optimizer(rng, rng.log(0.0008, 0.002)),
        ..Training::new(6, loss)
    };
    Plan::new(data, layers, training)
}

fn text(dataset: DatasetKind, data: Data, rng: &Rng) -> Plan {
    let mut layers = vec![Layer::Embedding(Embedding {
        embeddings_initializer: Initializer::RandomUniform { minval: -0.1, maxval: 0.1 },
        ..Embedding::new(502, 16)
    })];
    match rng.pick(&["lstm", "gru", "pool"]) {
        "lstm" => layers.push(Layer::Lstm(Lstm::new(24))),
        "gru" => layers.push(Layer::Gru(Gru::new(24))),
        _ => layers.push(Layer::GlobalAveragePool(GlobalPool::default())),
    }
    for _ in 0..2 {
        layers.push(Layer::Dense(Dense {
            activation: Activation::Relu,
            kernel_initializer: Initializer::HeNormal,
            ..Dense::new(24)
        }));
    }
    let (units, activation, loss) = match dataset {
        DatasetKind::Imdb => {
            let loss = Loss::BinaryCrossentropy { from_logits: false };
            (1, Activation::Sigmoid, loss)
        }
        _ => {
            let loss = Loss::SparseCategoricalCrossentropy { from_logits: false };
            (8, Activation::Softmax, loss)
        }
    };
    layers.push(Layer::Dense(Dense { activation, ..Dense::new(units) }));
    let training = Training {
        batch_size: 32,
        optimizer: Optimizer {
            learning_rate: rng.log(0.001, 0.003),
            global_clipnorm: Some(1.0),
            ..Optimizer::adam()
        },
        ..Training::new(8, loss)
    };
    Plan::new(data, layers, training)
}

/// The paper's two motivating networks (section 3): 34 and 20 layers of 128 ReLUs on MNIST, Adam at
/// its default rate.
pub fn motivating(dir: &Path, depth: usize) -> Option<Plan> {
    let path = file(DatasetKind::Mnist, dir);
    if !path.exists() {
        return None;
    }
    let mut data =
        Data::new(Source::Npz { path, features: "x".to_owned(), labels: "y".to_owned() });
    data.task = Some(Task::MultiClass);
    data.scale = Scale::MinMax;
    let mut layers = vec![Layer::Flatten(Flatten::default())];
    for _ in 0..depth {
        layers.push(Layer::Dense(Dense { activation: Activation::Relu, ..Dense::new(128) }));
    }
    layers.push(Layer::Dense(Dense { activation: Activation::Softmax, ..Dense::new(10) }));
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: false };
    let mut plan = Plan::new(data, layers, Training::new(15, loss));
    plan.name = Some(format!("mnist-{depth}"));
    Some(plan)
}
