//! TensorFlow, without Keras.
//!
//! Which operations may give other bits for the same input follows the documentation of
//! `tf.config.experimental.enable_op_determinism`. Convolutions are among them; only those are listed that
//! people choose.

use super::{Effect, Environment, Global, Switch};

/// Calls of TensorFlow whose meaning is its own; see `lift/tensorflow.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorFlow {
    /// A variable.
    Variable,
    /// Objects to be saved together.
    Checkpoint,
    /// Saves such objects under numbered names.
    Manager,
    /// A pipeline from values.
    Dataset,
    /// A pipeline of the names of files, shuffled unless told otherwise.
    Files,
    /// A generator, seeded by its first argument.
    Generator,
    /// A generator seeded by the system.
    EntropyGenerator,
    /// The global generator as an object.
    GlobalGenerator,
    /// Options of a pipeline.
    Options,
    /// Calls its first argument with the second.
    Call,
    /// Resizes images.
    Resize,
    /// A strategy that spreads training over devices.
    Strategy,
    /// Calls a function on all devices.
    Run,
}

/// What a call of `tensorflow.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    use TensorFlow::*;
    let last = name.rsplit('.').next().unwrap_or(name);
    let own = |call: TensorFlow| Some(Effect::TensorFlow(call));
    if let Some(rest) = name.strip_prefix("random.experimental.") {
        return effect(&format!("random.{rest}"));
    }
    if let Some(rest) = name.strip_prefix("random.Generator.") {
        return own(match rest {
            "from_non_deterministic_state" => EntropyGenerator,
            _ => Generator,
        });
    }
    if let Some(rest) = name.strip_prefix("distribute.") {
        return match rest {
            "Strategy.run" | "Strategy.experimental_run_v2" => own(Run),
            "Strategy.experimental_distribute_dataset" => Some(Effect::Same),
            "Strategy.distribute_datasets_from_function" => own(Call),
            "get_strategy" | "experimental.MultiWorkerMirroredStrategy" => own(Strategy),
            _ if last.ends_with("Strategy") => own(Strategy),
            _ => Some(Effect::Pure),
        };
    }
    Some(match name {
        "random.set_seed" | "random.set_random_seed" | "set_random_seed" => {
            Effect::Seed(&[Global::TensorFlow])
        }
        "random.Generator" => return own(Generator),
        "random.get_global_generator" => return own(GlobalGenerator),
        "random.normal"
        | "random.uniform"
        | "random.truncated_normal"
        | "random.gamma"
        | "random.poisson"
        | "random.categorical"
        | "random.multinomial"
        | "random.shuffle"
        | "random.log_uniform_candidate_sampler"
        | "random_normal"
        | "random_uniform"
        | "random_shuffle"
        | "truncated_normal"
        | "multinomial"
        | "nn.dropout"
        | "nn.sampled_softmax_loss"
        | "nn.nce_loss"
        | "image.sample_distorted_bounding_box" => Effect::SeededDraw(Global::TensorFlow),
        _ if name.starts_with("image.random_") => Effect::SeededDraw(Global::TensorFlow),
        "Variable" => return own(Variable),
        "train.Checkpoint" => return own(Checkpoint),
        "train.CheckpointManager" => return own(Manager),
        "data.Dataset.list_files" => return own(Files),
        "data.Options" => return own(Options),
        "data.experimental.sample_from_datasets" | "data.Dataset.sample_from_datasets" => {
            return own(Dataset);
        }
        _ if name.starts_with("data.Dataset.") => return own(Dataset),
        _ if name.starts_with("data.") && last.ends_with("Dataset") => return own(Dataset),
        _ if name.starts_with("data.experimental.make_") => return own(Dataset),
        "py_function" | "numpy_function" | "py_func" => return own(Call),
        "image.resize" | "image.resize_images" => return own(Resize),
        "image.crop_and_resize" => Effect::Nondeterministic("the gradient of crop_and_resize"),
        "math.unsorted_segment_sum"
        | "math.unsorted_segment_mean"
        | "math.unsorted_segment_prod"
        | "math.unsorted_segment_sqrt_n" => Effect::Nondeterministic("an unsorted segment sum"),
        "scatter_nd" | "tensor_scatter_nd_add" | "tensor_scatter_nd_sub" => {
            Effect::Nondeterministic("a scattered sum")
        }
        "nn.ctc_loss" => Effect::Nondeterministic("the gradient of ctc_loss"),
        "config.experimental.enable_tensor_float_32_execution" => Effect::Set(Switch::TensorFloat),
        "io.gfile.listdir" | "io.gfile.walk" | "gfile.ListDirectory" => {
            Effect::Read(Environment::FileOrder)
        }
        "function"
        | "autograph.experimental.do_not_convert"
        | "recompute_grad"
        | "identity"
        | "stop_gradient" => Effect::Same,
        "print" | "no_op" | "get_logger" => Effect::Silent,
        _ if name.starts_with("summary.")
            || name.starts_with("debugging.")
            || name.starts_with("profiler.")
            || name.starts_with("logging.")
            || name.starts_with("autograph.")
            || name.starts_with("compat.v1.logging.") =>
        {
            Effect::Silent
        }
        _ if name.starts_with("compat.v1.") => {
            return effect(name.trim_start_matches("compat.v1."));
        }
        _ => Effect::Pure,
    })
}

/// What a call of `tensorflow_datasets.NAME` does.
pub(super) fn datasets(name: &str) -> Option<Effect> {
    Some(match name {
        "load" | "builder" => Effect::TensorFlow(TensorFlow::Dataset),
        "as_numpy" => Effect::Same,
        _ => Effect::Pure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stateless_draws_are_computations() {
        assert_eq!(effect("random.stateless_normal"), Some(Effect::Pure));
        assert_eq!(effect("image.stateless_random_crop"), Some(Effect::Pure));
        let drawn = Effect::SeededDraw(Global::TensorFlow);
        assert_eq!(effect("image.random_crop"), Some(drawn));
    }

    #[test]
    fn pipelines_are_known_by_their_sources() {
        let pipeline = Some(Effect::TensorFlow(TensorFlow::Dataset));
        assert_eq!(effect("data.TFRecordDataset"), pipeline);
        assert_eq!(effect("data.Dataset.from_tensor_slices"), pipeline);
    }
}
