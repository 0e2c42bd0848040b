//! JAX and its libraries: Flax, Optax, Orbax.
//!
//! All calls are pure: keys, parameters and optimizer state are values that scripts pass
//! around.

use super::{Calls, Effect, Library, Switch};

/// Calls implemented in `lift/jax.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jax {
    /// A key from a seed.
    Key,
    /// Keys derived from a key and numbers.
    Fold,
    /// A draw by a key.
    Draw,
    /// The function that computes the gradient of another.
    Gradient {
        /// True if it also returns the value.
        with_value: bool,
    },
    /// A call of that function.
    Differentiated {
        /// True if it also returns the value.
        with_value: bool,
    },
    /// Calls a function argument with other arguments.
    Apply(Apply),
    /// A transformation of gradients.
    Transformation,
    /// Initial optimizer state, from parameters.
    Memory,
    /// Updates and new optimizer state, from gradients and the old state.
    Update,
    /// Parameters and updates, added.
    Step,
    /// Saves all of its arguments.
    Save,
    /// A checkpointer.
    Checkpointer,
    /// Serialization to bytes.
    Bytes,
    /// Initial parameters, by keys.
    Initial,
}

/// Calling convention of a higher-order function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apply {
    /// Positions of the functions, which are alternatives.
    pub functions: &'static [usize],
    /// Position of the first argument that the functions receive.
    pub passed: usize,
    /// True if they receive the number of the iteration first.
    pub counts: bool,
}

const fn apply(functions: &'static [usize], passed: usize) -> Effect {
    Effect::Jax(Jax::Apply(Apply { functions, passed, counts: false }))
}

const JAX: Calls = &[
    ("random.PRNGKey random.key", Effect::Jax(Jax::Key)),
    ("random.split random.fold_in random.clone random.wrap_key_data", Effect::Jax(Jax::Fold)),
    ("random.key_data random.key_impl", Effect::Same),
    ("random.*", Effect::Jax(Jax::Draw)),
    ("grad jacfwd jacrev hessian", Effect::Jax(Jax::Gradient { with_value: false })),
    ("value_and_grad", Effect::Jax(Jax::Gradient { with_value: true })),
    ("applied.grad", Effect::Jax(Jax::Differentiated { with_value: false })),
    ("applied.value_and_grad", Effect::Jax(Jax::Differentiated { with_value: true })),
    ("applied.transformation.init", Effect::Jax(Jax::Memory)),
    ("applied.transformation.update", Effect::Jax(Jax::Update)),
    ("applied.checkpointer.save applied.checkpointer.force_save", Effect::Jax(Jax::Save)),
    ("applied.checkpointer.restore", Effect::Load),
    (
        "jit pmap vmap pjit checkpoint remat named_call custom_vjp custom_jvp shard_map \
         ensure_compile_time_eval device_get device_put device_put_replicated device_put_sharded \
         block_until_ready lax.stop_gradient lax.pmean lax.psum lax.all_gather \
         lax.with_sharding_constraint experimental.pjit.pjit experimental.shard_map.shard_map \
         experimental.maps.xmap",
        Effect::Same,
    ),
    (
        "tree_util.tree_map tree.map tree_map tree_multimap tree_util.tree_map_with_path lax.map \
         lax.scan pure_callback",
        apply(&[0], 1),
    ),
    // `fori_loop(low, high, f, x)`
    ("lax.fori_loop", Effect::Jax(Jax::Apply(Apply { functions: &[2], passed: 3, counts: true }))),
    // `while_loop(holds, f, x)`
    ("lax.while_loop", apply(&[1], 2)),
    // `cond(holds, f, g, x..)`
    ("lax.cond", apply(&[1, 2], 3)),
    ("process_index process_id host_id", Effect::Rank),
    ("process_count device_count local_device_count host_count", Effect::Workers),
    ("config.update", Effect::Set(Switch::Jax)),
    ("debug.print debug.callback debug.breakpoint profiler.*", Effect::Silent),
];

const OPTAX: Calls = &[
    ("*.apply_updates *.incremental_update", Effect::Jax(Jax::Step)),
    (
        "*.adam *.adamw *.adamax *.adamaxw *.adan *.adabelief *.adadelta *.adafactor *.adagrad \
         *.amsgrad *.nadam *.nadamw *.novograd *.optimistic_gradient_descent *.radam *.rmsprop \
         *.rprop *.sgd *.noisy_sgd *.sm3 *.yogi *.lamb *.lars *.lion *.fromage *.sophia *.lbfgs \
         *.chain *.named_chain *.multi_transform *.partition *.masked *.MultiSteps *.multi_steps \
         *.lookahead *.apply_if_finite *.inject_hyperparams *.clip *.clip_by_global_norm \
         *.adaptive_grad_clip *.add_decayed_weights *.trace *.ema *.scale *.scale_by_adam \
         *.scale_by_schedule *.flatten *.GradientTransformation *.set_to_zero *.dpsgd *.muon \
         *.schedule_free_adamw *.schedule_free_sgd",
        Effect::Jax(Jax::Transformation),
    ),
];

const FLAX: Calls = &[
    ("serialization.to_bytes serialization.msgpack_serialize", Effect::Jax(Jax::Bytes)),
    (
        "serialization.from_bytes serialization.msgpack_restore \
         training.checkpoints.restore_checkpoint",
        Effect::Load,
    ),
    (
        "serialization.to_state_dict jax_utils.replicate jax_utils.unreplicate core.freeze \
         core.unfreeze core.frozen_dict.freeze core.frozen_dict.unfreeze linen.jit linen.remat \
         linen.compact linen.scan linen.vmap",
        Effect::Same,
    ),
    (
        "training.checkpoints.save_checkpoint training.checkpoints.save_checkpoint_multiprocess",
        Effect::Jax(Jax::Save),
    ),
    (
        "applied.module.init applied.module.init_with_output applied.module.lazy_init",
        Effect::Jax(Jax::Initial),
    ),
];

const ORBAX: Calls = &[
    (
        "*.PyTreeCheckpointer *.StandardCheckpointer *.Checkpointer *.AsyncCheckpointer \
         *.CheckpointManager",
        Effect::Jax(Jax::Checkpointer),
    ),
    ("*.StandardSave *.PyTreeSave *.JsonSave *.ArraySave", Effect::Same),
];

pub(super) const LIBRARIES: &[Library] = &[
    Library::new("jax", JAX),
    Library::new("optax", OPTAX),
    Library::new("flax", FLAX),
    Library::new("orbax", ORBAX),
    Library::new("chex jaxlib distrax clu ml_dtypes einshape", &[]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::effect_of;

    #[test]
    fn draws_are_keyed_and_splits_are_keys() {
        assert_eq!(effect_of("jax.random.normal"), Some(Effect::Jax(Jax::Draw)));
        assert_eq!(effect_of("jax.random.split"), Some(Effect::Jax(Jax::Fold)));
        assert_eq!(effect_of("jax.numpy.tanh"), Some(Effect::Pure));
    }
}
