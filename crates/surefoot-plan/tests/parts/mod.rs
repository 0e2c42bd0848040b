//! Random parts of plans.

mod layers;

pub(super) use layers::layer;

use proptest::option;
use proptest::prelude::*;
use std::collections::HashSet;
use std::path::PathBuf;
use surefoot_plan::*;

fn size() -> BoxedStrategy<usize> {
    prop_oneof![1..40usize, Just(i64::MAX as usize)].boxed()
}

fn sizes() -> BoxedStrategy<[usize; 2]> {
    prop_oneof![size().prop_map(|side| [side, side]), [size(), size()]].boxed()
}

fn number() -> BoxedStrategy<f64> {
    prop_oneof![-10.0..10.0, Just(0.0), Just(1e300), Just(-5e-324), Just(1e-7)].boxed()
}

fn positive() -> BoxedStrategy<f64> {
    prop_oneof![1e-9..10.0, Just(f64::MIN_POSITIVE), Just(f64::MAX)].boxed()
}

fn share() -> BoxedStrategy<f64> {
    prop_oneof![0.0..0.999, Just(0.0)].boxed()
}

fn name() -> BoxedStrategy<Option<String>> {
    // Names are made unique afterwards.
    option::of("[a-z \"'\\\\äß.#=-]{1,6}").boxed()
}

fn path() -> BoxedStrategy<PathBuf> {
    "[a-z/\\\\ \"\n\t]{1,12}".prop_map(PathBuf::from).boxed()
}

pub(super) fn data() -> BoxedStrategy<Data> {
    let task = prop_oneof![
        Just(Task::Binary),
        Just(Task::MultiClass),
        Just(Task::MultiLabel),
        Just(Task::Regression)
    ];
    let missing = prop_oneof![
        Just(Missing::Keep),
        Just(Missing::Refuse),
        Just(Missing::Drop),
        Just(Missing::Impute)
    ];
    let outliers = prop_oneof![Just(Outliers::Keep), Just(Outliers::Clip), Just(Outliers::Drop)];
    let scale = prop_oneof![Just(Scale::Standardise), Just(Scale::MinMax), Just(Scale::None)];
    let split =
        (0.0..0.5, 0.0..0.5).prop_map(|(validation, test)| SplitFractions { validation, test });
    (source(), path(), option::of(task), missing, outliers, [scale.clone(), scale], split)
        .prop_map(|(source, path, task, missing, outliers, [scale, target_scale], split)| Data {
            validation: validation(&source, path),
            source,
            task,
            missing,
            outliers,
            scale,
            target_scale,
            split,
        })
        .boxed()
}

/// A validation file that fits a source.
fn validation(source: &Source, path: PathBuf) -> Option<Source> {
    match source {
        Source::Csv { .. } => Some(Source::csv(path)),
        Source::Parquet { .. } => Some(Source::Parquet { path, label: None }),
        Source::Npz { features, labels, .. } => {
            Some(Source::Npz { path, features: features.clone(), labels: labels.clone() })
        }
        _ => None,
    }
}

fn source() -> BoxedStrategy<Source> {
    prop_oneof![generator(), file()].boxed()
}

fn generator() -> BoxedStrategy<Source> {
    let numbers = (size(), 2..=10usize, 5..40usize, size(), share(), positive());
    (0..9, numbers)
        .prop_map(|(kind, (samples, classes, features, channels, noise, turns))| match kind {
            0 => Source::Circles { samples, noise, factor: noise },
            1 => Source::Blobs { samples, centers: classes, features, spread: noise },
            2 => Source::Moons { samples, noise },
            3 => Source::Spirals { samples, classes, turns, noise },
            4 => Source::Linear { samples, features, noise },
            5 => Source::Friedman { samples, features, noise },
            6 => Source::Copy { samples, length: features, symbols: classes },
            7 => Source::Parity { samples, length: features },
            _ => Source::Shapes { samples, size: features, channels, classes, noise },
        })
        .boxed()
}

fn file() -> BoxedStrategy<Source> {
    let label = || {
        option::of(proptest::collection::vec(".{0,8}", 1..4).prop_map(|mut names| {
            names.sort();
            names.dedup();
            Columns(names)
        }))
    };
    let names = || proptest::collection::vec(".{0,8}", 0..3);
    prop_oneof![
        (path(), label(), names(), names()).prop_map(|(path, label, exclude, categorical)| {
            Source::Csv { path, label, exclude, categorical }
        }),
        (path(), label()).prop_map(|(path, label)| Source::Parquet { path, label }),
        (path(), path()).prop_map(|(features, labels)| Source::Npy { features, labels }),
        (path(), path()).prop_map(|(features, labels)| Source::Idx { features, labels }),
        (path(), ".{0,5}", "[xy]").prop_map(|(path, features, labels)| Source::Npz {
            path,
            features,
            labels
        }),
        (path(), option::of(sizes()), any::<bool>()).prop_map(|(path, size, grey)| {
            Source::Images { path, size, channels: if grey { 1 } else { 3 } }
        }),
    ]
    .boxed()
}

fn loss() -> BoxedStrategy<Loss> {
    prop_oneof![
        any::<bool>().prop_map(|from_logits| Loss::BinaryCrossentropy { from_logits }),
        any::<bool>().prop_map(|from_logits| Loss::CategoricalCrossentropy { from_logits }),
        any::<bool>().prop_map(|from_logits| Loss::SparseCategoricalCrossentropy { from_logits }),
        Just(Loss::Mse),
        Just(Loss::Mae),
        positive().prop_map(|delta| Loss::Huber { delta }),
        Just(Loss::Hinge),
        Just(Loss::KlDivergence),
        Just(Loss::Poisson),
    ]
    .boxed()
}

fn optimizer() -> BoxedStrategy<Optimizer> {
    let algorithm = (0..7, share(), share(), positive(), any::<bool>()).prop_map(
        |(kind, a, b, epsilon, flag)| match kind {
            0 => Algorithm::Sgd { momentum: a, nesterov: flag && a > 0.0 },
            1 => Algorithm::Rmsprop { rho: a, momentum: b, epsilon, centered: flag },
            2 => Algorithm::Adagrad { initial_accumulator_value: a, epsilon },
            3 => Algorithm::Adadelta { rho: a, epsilon },
            4 => Algorithm::Adam { beta_1: a, beta_2: b, epsilon, amsgrad: flag },
            5 => Algorithm::Adamw { beta_1: a, beta_2: b, epsilon, amsgrad: flag },
            _ => Algorithm::Nadam { beta_1: a, beta_2: b, epsilon },
        },
    );
    let clips = [option::of(positive()), option::of(positive()), option::of(positive())];
    (algorithm, positive(), share(), clips)
        .prop_map(|(algorithm, learning_rate, weight_decay, clips)| {
            let [clipvalue, clipnorm, global_clipnorm] = clips;
            Optimizer {
                algorithm,
                learning_rate,
                weight_decay,
                clipvalue,
                clipnorm,
                global_clipnorm,
            }
        })
        .boxed()
}

fn schedule() -> BoxedStrategy<Schedule> {
    let decay = (0..5, 1..5000u64, 0.001..1.0, any::<bool>()).prop_map(
        |(kind, decay_steps, decay_rate, flag)| match kind {
            0 => Decay::Constant,
            1 => Decay::Step { decay_steps, decay_rate },
            2 => Decay::Exponential { decay_steps, decay_rate },
            3 => Decay::InverseTime { decay_steps, decay_rate },
            _ => Decay::Cosine { decay_steps: flag.then_some(decay_steps), alpha: decay_rate },
        },
    );
    (decay, 0..1000u64).prop_map(|(decay, warmup_steps)| Schedule { decay, warmup_steps }).boxed()
}

pub(super) fn training() -> BoxedStrategy<Training> {
    let stop_at = option::of(-1.0..1.0);
    let sizes = (1..1000u64, stop_at, size(), option::of(size()), option::of(1..900u64));
    (sizes, loss(), optimizer(), schedule(), any::<bool>(), any::<bool>())
        .prop_map(|(sizes, loss, optimizer, schedule, shuffle, portable)| {
            let (epochs, stop_at, batch_size, shards, checkpoint_every) = sizes;
            Training {
                epochs,
                stop_at,
                batch_size,
                loss,
                optimizer,
                schedule,
                shuffle,
                shards,
                checkpoint_every,
                portable,
            }
        })
        .boxed()
}

fn observe_every() -> BoxedStrategy<ObserveEvery> {
    let steps = (1..=i64::MAX as u64).prop_filter_map("zero", std::num::NonZeroU64::new);
    prop_oneof![
        Just(ObserveEvery::Auto),
        Just(ObserveEvery::Never),
        steps.prop_map(ObserveEvery::Every)
    ]
    .boxed()
}

pub(super) fn watch() -> BoxedStrategy<Watch> {
    (observe_every(), observe_every(), any::<[bool; 3]>())
        .prop_map(|(every, quartiles, [gradients, weights, outputs])| Watch {
            every,
            quartiles,
            gradients,
            weights,
            outputs,
        })
        .boxed()
}

pub(super) fn unique_names(layers: &[Layer]) -> bool {
    let mut seen = HashSet::new();
    layers.iter().all(|layer| {
        let inner = match layer {
            Layer::Residual(block) => unique_names(&block.layers),
            _ => true,
        };
        inner && layer.name().is_none_or(|name| seen.insert(name.to_owned()))
    })
}
