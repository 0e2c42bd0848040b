//! JAX, and what is trained with it: Flax, Optax, Orbax.
//!
//! Nothing here has a state: keys, parameters and the memory of optimizers are values that scripts carry
//! themselves.

use super::{Effect, Switch};

/// Calls of JAX whose meaning is its own; see `lift/jax.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jax {
    /// A key from a seed.
    Key,
    /// Other keys, from a key and numbers.
    Fold,
    /// A draw by a key.
    Draw,
    /// The function that computes the gradient of another.
    Gradient {
        /// Whether it also gives the value.
        with_value: bool,
    },
    /// That function, called.
    Differentiated {
        /// Whether it also gives the value.
        with_value: bool,
    },
    /// Calls the argument at this position with those after it, or those at its side.
    Apply(Apply),
    /// A transformation of gradients.
    Transformation,
    /// The memory of one, from parameters.
    Memory,
    /// Updates and the new memory, from gradients and the old.
    Update,
    /// Parameters and updates, added.
    Step,
    /// Saves all of its arguments.
    Save,
    /// Something that saves and restores.
    Checkpointer,
    /// Turns a value into bytes to be written.
    Bytes,
    /// Initial parameters, by keys.
    Initial,
}

/// How a function is applied by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apply {
    /// `map(f, x..)`.
    Map,
    /// `fori_loop(low, high, f, x)`.
    Count,
    /// `while_loop(holds, f, x)`.
    While,
    /// `cond(holds, f, g, x..)`.
    Branch,
}

/// What a call of `ROOT.NAME` does; nothing if the library is not known.
pub(super) fn effect(root: &str, name: &str) -> Option<Effect> {
    match root {
        "jax" => Some(jax(name)),
        "optax" => Some(optax(name)),
        "flax" => Some(flax(name)),
        "orbax" => Some(orbax(name)),
        "chex" | "jaxlib" | "distrax" | "clu" | "ml_dtypes" | "einshape" => Some(Effect::Pure),
        _ => None,
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn jax(name: &str) -> Effect {
    let own = Effect::Jax;
    match name {
        "random.PRNGKey" | "random.key" => own(Jax::Key),
        "random.split" | "random.fold_in" | "random.clone" | "random.wrap_key_data" => {
            own(Jax::Fold)
        }
        "random.key_data" | "random.key_impl" => Effect::Same,
        _ if name.starts_with("random.") => own(Jax::Draw),
        "grad" | "jacfwd" | "jacrev" | "hessian" => own(Jax::Gradient { with_value: false }),
        "value_and_grad" => own(Jax::Gradient { with_value: true }),
        "applied.grad" => own(Jax::Differentiated { with_value: false }),
        "applied.value_and_grad" => own(Jax::Differentiated { with_value: true }),
        "applied.transformation.init" => own(Jax::Memory),
        "applied.transformation.update" => own(Jax::Update),
        "applied.checkpointer.save" | "applied.checkpointer.force_save" => own(Jax::Save),
        "applied.checkpointer.restore" => Effect::Load,
        "jit"
        | "pmap"
        | "vmap"
        | "pjit"
        | "checkpoint"
        | "remat"
        | "named_call"
        | "custom_vjp"
        | "custom_jvp"
        | "shard_map"
        | "ensure_compile_time_eval"
        | "device_get"
        | "device_put"
        | "device_put_replicated"
        | "device_put_sharded"
        | "block_until_ready"
        | "lax.stop_gradient"
        | "lax.pmean"
        | "lax.psum"
        | "lax.all_gather"
        | "lax.with_sharding_constraint"
        | "experimental.pjit.pjit"
        | "experimental.shard_map.shard_map"
        | "experimental.maps.xmap" => Effect::Same,
        "tree_util.tree_map"
        | "tree.map"
        | "tree_map"
        | "tree_multimap"
        | "tree_util.tree_map_with_path"
        | "lax.map"
        | "lax.scan"
        | "pure_callback" => own(Jax::Apply(Apply::Map)),
        "lax.fori_loop" => own(Jax::Apply(Apply::Count)),
        "lax.while_loop" => own(Jax::Apply(Apply::While)),
        "lax.cond" => own(Jax::Apply(Apply::Branch)),
        "process_index" | "process_id" | "host_id" => Effect::Rank,
        "process_count" | "device_count" | "local_device_count" | "host_count" => Effect::Workers,
        "config.update" => Effect::Set(Switch::Jax),
        "debug.print" | "debug.callback" | "debug.breakpoint" => Effect::Silent,
        _ if name.starts_with("profiler.") => Effect::Silent,
        _ => Effect::Pure,
    }
}

fn optax(name: &str) -> Effect {
    match last(name) {
        "apply_updates" | "incremental_update" => Effect::Jax(Jax::Step),
        "adam"
        | "adamw"
        | "adamax"
        | "adamaxw"
        | "adan"
        | "adabelief"
        | "adadelta"
        | "adafactor"
        | "adagrad"
        | "amsgrad"
        | "nadam"
        | "nadamw"
        | "novograd"
        | "optimistic_gradient_descent"
        | "radam"
        | "rmsprop"
        | "rprop"
        | "sgd"
        | "noisy_sgd"
        | "sm3"
        | "yogi"
        | "lamb"
        | "lars"
        | "lion"
        | "fromage"
        | "sophia"
        | "lbfgs"
        | "chain"
        | "named_chain"
        | "multi_transform"
        | "partition"
        | "masked"
        | "MultiSteps"
        | "multi_steps"
        | "lookahead"
        | "apply_if_finite"
        | "inject_hyperparams"
        | "clip"
        | "clip_by_global_norm"
        | "adaptive_grad_clip"
        | "add_decayed_weights"
        | "trace"
        | "ema"
        | "scale"
        | "scale_by_adam"
        | "scale_by_schedule"
        | "flatten"
        | "GradientTransformation"
        | "set_to_zero"
        | "dpsgd"
        | "contrib.muon"
        | "muon"
        | "schedule_free_adamw"
        | "schedule_free_sgd" => Effect::Jax(Jax::Transformation),
        _ => Effect::Pure,
    }
}

fn flax(name: &str) -> Effect {
    match name {
        "serialization.to_bytes" | "serialization.msgpack_serialize" => Effect::Jax(Jax::Bytes),
        "serialization.from_bytes" | "serialization.msgpack_restore" => Effect::Load,
        "serialization.to_state_dict"
        | "jax_utils.replicate"
        | "jax_utils.unreplicate"
        | "core.freeze"
        | "core.unfreeze"
        | "core.frozen_dict.freeze"
        | "core.frozen_dict.unfreeze"
        | "linen.jit"
        | "linen.remat"
        | "linen.compact"
        | "linen.scan"
        | "linen.vmap" => Effect::Same,
        "training.checkpoints.save_checkpoint"
        | "training.checkpoints.save_checkpoint_multiprocess" => Effect::Jax(Jax::Save),
        "training.checkpoints.restore_checkpoint" => Effect::Load,
        "applied.module.init" | "applied.module.init_with_output" | "applied.module.lazy_init" => {
            Effect::Jax(Jax::Initial)
        }
        _ => Effect::Pure,
    }
}

fn orbax(name: &str) -> Effect {
    match last(name) {
        "PyTreeCheckpointer"
        | "StandardCheckpointer"
        | "Checkpointer"
        | "AsyncCheckpointer"
        | "CheckpointManager" => Effect::Jax(Jax::Checkpointer),
        "save_args_from_target" | "restore_args_from_target" => Effect::Pure,
        "StandardSave" | "PyTreeSave" | "JsonSave" | "ArraySave" => Effect::Same,
        _ => Effect::Pure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_keyed_and_splits_are_keys() {
        assert_eq!(effect("jax", "random.normal"), Some(Effect::Jax(Jax::Draw)));
        assert_eq!(effect("jax", "random.split"), Some(Effect::Jax(Jax::Fold)));
        assert_eq!(effect("jax", "numpy.tanh"), Some(Effect::Pure));
    }
}
