//! TensorFlow, without Keras.
//!
//! The nondeterministic operations follow the documentation of
//! `tf.config.experimental.enable_op_determinism`, without convolutions, which almost every model
//! uses.

use super::{Calls, Effect, Environment, Global, Library, Switch};
use TensorFlow::*;

/// Calls implemented in `lift/tensorflow.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorFlow {
    /// A variable.
    Variable,
    /// A checkpoint object.
    Checkpoint,
    /// A checkpoint manager.
    Manager,
    /// A pipeline from values.
    Dataset,
    /// A pipeline of file names, shuffled by default.
    Files,
    /// A generator, seeded by its first argument.
    Generator,
    /// A generator seeded by the system.
    EntropyGenerator,
    /// The global generator as an object.
    GlobalGenerator,
    /// Options of a pipeline.
    Options,
    /// Calls its first argument with the others.
    Call,
    /// Resizes images.
    Resize,
    /// A strategy that spreads training over devices.
    Strategy,
    /// Calls a function on all devices.
    Run,
}

const CALLS: Calls = &[
    ("random.Generator.from_non_deterministic_state", own(EntropyGenerator)),
    ("random.Generator random.Generator.*", own(Generator)),
    ("distribute.Strategy.run distribute.Strategy.experimental_run_v2", own(Run)),
    ("distribute.Strategy.experimental_distribute_dataset", Effect::Same),
    ("distribute.Strategy.distribute_datasets_from_function", own(Call)),
    ("distribute.get_strategy distribute.*Strategy", own(Strategy)),
    ("random.set_seed random.set_random_seed set_random_seed", Effect::Seed(&[Global::TensorFlow])),
    ("random.get_global_generator", own(GlobalGenerator)),
    (
        "random.normal random.uniform random.truncated_normal random.gamma random.poisson \
         random.categorical random.multinomial random.shuffle random.log_uniform_candidate_sampler \
         random_normal random_uniform random_shuffle truncated_normal multinomial nn.dropout \
         nn.sampled_softmax_loss nn.nce_loss image.sample_distorted_bounding_box image.random_*",
        Effect::SeededDraw(Global::TensorFlow),
    ),
    ("Variable", own(Variable)),
    ("train.Checkpoint", own(Checkpoint)),
    ("train.CheckpointManager", own(Manager)),
    ("data.Dataset.list_files", own(Files)),
    ("data.Options", own(Options)),
    (
        "data.Dataset.* data.*Dataset data.experimental.make_* data.experimental.sample_from_datasets",
        own(Dataset),
    ),
    ("py_function numpy_function py_func", own(Call)),
    ("image.resize image.resize_images", own(Resize)),
    ("image.crop_and_resize", Effect::Nondeterministic("the gradient of crop_and_resize")),
    (
        "math.unsorted_segment_sum math.unsorted_segment_mean math.unsorted_segment_prod \
         math.unsorted_segment_sqrt_n",
        Effect::Nondeterministic("an unsorted segment sum"),
    ),
    (
        "scatter_nd tensor_scatter_nd_add tensor_scatter_nd_sub",
        Effect::Nondeterministic("a scattered sum"),
    ),
    ("nn.ctc_loss", Effect::Nondeterministic("the gradient of ctc_loss")),
    ("config.experimental.enable_tensor_float_32_execution", Effect::Set(Switch::TensorFloat)),
    ("io.gfile.listdir io.gfile.walk gfile.ListDirectory", Effect::Read(Environment::FileOrder)),
    (
        "function autograph.experimental.do_not_convert recompute_grad identity stop_gradient",
        Effect::Same,
    ),
    (
        "print no_op get_logger summary.* debugging.* profiler.* logging.* autograph.*",
        Effect::Silent,
    ),
];

const fn own(call: TensorFlow) -> Effect {
    Effect::TensorFlow(call)
}

pub(super) const LIBRARIES: &[Library] = &[
    Library {
        aliases: &[
            ("tensorflow.compat.v1", "tensorflow"),
            ("tensorflow.random.experimental", "tensorflow.random"),
        ],
        ..Library::new("tensorflow", CALLS)
    },
    Library::new(
        "tensorflow_datasets",
        &[("load builder", own(Dataset)), ("as_numpy", Effect::Same)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::effect_of;

    #[test]
    fn stateless_draws_are_computations() {
        assert_eq!(effect_of("tensorflow.random.stateless_normal"), Some(Effect::Pure));
        assert_eq!(effect_of("tensorflow.image.stateless_random_crop"), Some(Effect::Pure));
        let drawn = Effect::SeededDraw(Global::TensorFlow);
        assert_eq!(effect_of("tensorflow.image.random_crop"), Some(drawn));
    }

    #[test]
    fn pipelines_are_recognized_by_their_sources() {
        let pipeline = Some(Effect::TensorFlow(TensorFlow::Dataset));
        assert_eq!(effect_of("tensorflow.data.TFRecordDataset"), pipeline);
        assert_eq!(effect_of("tensorflow.data.Dataset.from_tensor_slices"), pipeline);
    }
}
