//! PyTorch.
//!
//! Which operations may give other bits for the same input follows the lists in the documentation of
//! `torch.use_deterministic_algorithms`, as of PyTorch 2.15.

use super::{Effect, Environment, Family, Global, Layer, Sampler, Switch};
use Effect::*;

const PLAIN: Layer = Layer {
    has_parameters: false,
    draws_parameters: false,
    draws: false,
    keeps_statistics: false,
    nondeterministic: None,
    is_keras: false,
};
const WEIGHTS: Layer = Layer { has_parameters: true, draws_parameters: true, ..PLAIN };
const DROPOUT: Layer = Layer { draws: true, ..PLAIN };
const STATISTICS: Layer = Layer { has_parameters: true, keeps_statistics: true, ..PLAIN };
/// Layers whose parameters begin with ones and zeros.
const CONSTANT: Layer = Layer { has_parameters: true, ..PLAIN };
const WEIGHTS_AND_DROPOUT: Layer = Layer { draws: true, ..WEIGHTS };

/// What a call of `torch.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    if let Some(operation) = nondeterministic(name) {
        return Some(operation);
    }
    Some(match name {
        "manual_seed"
        | "random.manual_seed"
        | "cuda.manual_seed"
        | "cuda.manual_seed_all"
        | "mps.manual_seed"
        | "xpu.manual_seed"
        | "xpu.manual_seed_all" => Seed(&[Global::Torch]),
        "seed" | "random.seed" | "cuda.seed" | "cuda.seed_all" => Read(Environment::Entropy),
        "rand"
        | "randn"
        | "randint"
        | "randperm"
        | "bernoulli"
        | "normal"
        | "multinomial"
        | "poisson"
        | "rand_like"
        | "randn_like"
        | "randint_like"
        | "binomial"
        | "distributions.Normal.sample" => Draw(Global::Torch),
        "dropout"
        | "nn.functional.dropout"
        | "nn.functional.dropout1d"
        | "nn.functional.dropout2d"
        | "nn.functional.dropout3d"
        | "nn.functional.alpha_dropout"
        | "nn.functional.feature_alpha_dropout"
        | "nn.functional.rrelu"
        | "nn.functional.gumbel_softmax" => Functional(DROPOUT),
        "Generator" => Generator(Family::Torch),
        "get_rng_state"
        | "random.get_rng_state"
        | "cuda.get_rng_state"
        | "cuda.get_rng_state_all"
        | "mps.get_rng_state"
        | "xpu.get_rng_state"
        | "random.fork_rng" => GetState(Global::Torch),
        "set_rng_state"
        | "random.set_rng_state"
        | "cuda.set_rng_state"
        | "cuda.set_rng_state_all"
        | "mps.set_rng_state"
        | "xpu.set_rng_state" => SetState(Global::Torch),
        "save" | "jit.save" | "distributed.checkpoint.save" => Save { what: 0 },
        "load" | "jit.load" | "hub.load_state_dict_from_url" | "distributed.checkpoint.load" => {
            Load
        }
        "use_deterministic_algorithms" | "set_deterministic_debug_mode" => {
            Set(Switch::Deterministic)
        }
        "set_float32_matmul_precision" => Set(Switch::MatmulPrecision),
        "compile" => Set(Switch::Compile),
        "no_grad" | "inference_mode" | "autograd.no_grad" => NoGrad,
        "autograd.backward" => Backward,
        "distributed.get_rank" => Rank,
        "distributed.get_world_size" => Workers,
        "nn.parallel.DistributedDataParallel"
        | "nn.DataParallel"
        | "nn.parallel.DataParallel"
        | "distributed.fsdp.FullyShardedDataParallel"
        | "distributed.fsdp.fully_shard"
        | "jit.script"
        | "jit.trace"
        | "nn.SyncBatchNorm.convert_sync_batchnorm"
        | "fx.symbolic_trace"
        | "nn.utils.weight_norm"
        | "nn.utils.spectral_norm"
        | "nn.utils.parametrizations.weight_norm"
        | "nn.utils.parametrizations.spectral_norm" => Same,
        "nn.parameter.Parameter" | "nn.Parameter" | "autograd.Variable" => Same,
        "hub.load" => Module(STATISTICS),
        "cuda.amp.GradScaler"
        | "amp.GradScaler"
        | "amp.grad_scaler.GradScaler"
        | "cpu.amp.GradScaler" => Scaler,
        "utils.data.DataLoader" | "utils.data.dataloader.DataLoader" => Loader,
        "utils.data.random_split" | "utils.data.dataset.random_split" => Split,
        "utils.data.RandomSampler"
        | "utils.data.WeightedRandomSampler"
        | "utils.data.SubsetRandomSampler"
        | "utils.data.sampler.RandomSampler"
        | "utils.data.sampler.WeightedRandomSampler"
        | "utils.data.sampler.SubsetRandomSampler" => Effect::Sampler(Sampler::Random),
        "utils.data.SequentialSampler"
        | "utils.data.BatchSampler"
        | "utils.data.sampler.SequentialSampler"
        | "utils.data.sampler.BatchSampler" => Effect::Sampler(Sampler::Sequential),
        "utils.data.DistributedSampler" | "utils.data.distributed.DistributedSampler" => {
            Effect::Sampler(Sampler::Distributed)
        }
        "utils.data.TensorDataset"
        | "utils.data.Subset"
        | "utils.data.ConcatDataset"
        | "utils.data.ChainDataset"
        | "utils.data.StackDataset" => Dataset,
        "optim.swa_utils.AveragedModel" => Average,
        "optim.swa_utils.SWALR" => Scheduler,
        "optim.swa_utils.update_bn" => Silent,
        _ if name.starts_with("optim.lr_scheduler.") => match last(name) {
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => Scheduler,
            _ => Pure,
        },
        _ if name.starts_with("optim.") => match last(name) {
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => Optimizer,
            _ => Pure,
        },
        _ if name.starts_with("nn.init.") => match last(name) {
            "zeros_" | "ones_" | "constant_" | "eye_" | "dirac_" | "calculate_gain" => Pure,
            _ => DrawInto(Global::Torch),
        },
        _ if name.starts_with("nn.functional.") => Pure,
        _ if name.starts_with("nn.utils.") => Pure,
        _ if name.starts_with("nn.") => layer(last(name)),
        _ if name.starts_with("utils.tensorboard.")
            || name.starts_with("profiler.")
            || name.starts_with("_logging.") =>
        {
            Silent
        }
        "distributed.checkpoint.state_dict.get_state_dict"
        | "distributed.checkpoint.state_dict.get_model_state_dict" => Pure,
        _ => Pure,
    })
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Layers, by the last part of their names.
fn layer(name: &str) -> Effect {
    match name {
        "Sequential" | "ModuleList" | "ModuleDict" | "ParameterList" | "ParameterDict" => Container,
        "Module" => Module(PLAIN),
        "Linear" | "Bilinear" | "LazyLinear" | "Embedding" | "Conv1d" | "Conv2d" | "Conv3d"
        | "LazyConv1d" | "LazyConv2d" | "LazyConv3d" | "ConvTranspose1d" | "ConvTranspose2d"
        | "ConvTranspose3d" | "RNN" | "LSTM" | "GRU" | "RNNCell" | "LSTMCell" | "GRUCell" => {
            Module(WEIGHTS)
        }
        "EmbeddingBag" => Module(WEIGHTS),
        "MultiheadAttention"
        | "Transformer"
        | "TransformerEncoder"
        | "TransformerDecoder"
        | "TransformerEncoderLayer"
        | "TransformerDecoderLayer" => Module(WEIGHTS_AND_DROPOUT),
        "Dropout"
        | "Dropout1d"
        | "Dropout2d"
        | "Dropout3d"
        | "AlphaDropout"
        | "FeatureAlphaDropout"
        | "RReLU" => Module(DROPOUT),
        "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d" | "SyncBatchNorm" | "LazyBatchNorm1d"
        | "LazyBatchNorm2d" | "LazyBatchNorm3d" => Module(STATISTICS),
        "LayerNorm" | "RMSNorm" | "GroupNorm" | "InstanceNorm1d" | "InstanceNorm2d"
        | "InstanceNorm3d" | "PReLU" => Module(CONSTANT),
        "DataParallel" => Same,
        _ => match unsteady_layer(name) {
            Some(operation) => Module(Layer { nondeterministic: Some(operation), ..PLAIN }),
            None => Module(PLAIN),
        },
    }
}

/// Layers without a deterministic gradient on a GPU.
fn unsteady_layer(name: &str) -> Option<&'static str> {
    Some(match name {
        "AvgPool3d" => "the gradient of AvgPool3d",
        "AdaptiveAvgPool2d" => "the gradient of AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d" => "the gradient of AdaptiveAvgPool3d",
        "AdaptiveMaxPool2d" => "the gradient of AdaptiveMaxPool2d",
        "FractionalMaxPool2d" => "the gradient of FractionalMaxPool2d",
        "FractionalMaxPool3d" => "the gradient of FractionalMaxPool3d",
        "MaxUnpool1d" | "MaxUnpool2d" | "MaxUnpool3d" => "MaxUnpool",
        "ReflectionPad1d" | "ReflectionPad2d" | "ReflectionPad3d" => {
            "the gradient of ReflectionPad"
        }
        "ReplicationPad1d" | "ReplicationPad2d" | "ReplicationPad3d" => {
            "the gradient of ReplicationPad"
        }
        "MaxPool3d" => "the gradient of MaxPool3d",
        "CTCLoss" => "the gradient of CTCLoss",
        // That of pictures; of other classes the loss is always the same.
        "NLLLoss2d" => "NLLLoss",
        "UpsamplingBilinear2d" => "the gradient of a bilinear interpolation",
        _ => return None,
    })
}

/// Functions that may give other bits for the same input on a GPU.
fn nondeterministic(name: &str) -> Option<Effect> {
    Some(Nondeterministic(match name {
        "nn.functional.grid_sample" => "the gradient of grid_sample",
        "nn.functional.ctc_loss" => "the gradient of ctc_loss",
        "nn.functional.adaptive_avg_pool2d" => "the gradient of adaptive_avg_pool2d",
        "nn.functional.adaptive_avg_pool3d" => "the gradient of adaptive_avg_pool3d",
        "nn.functional.adaptive_max_pool2d" => "the gradient of adaptive_max_pool2d",
        "nn.functional.avg_pool3d" => "the gradient of avg_pool3d",
        "nn.functional.max_unpool1d"
        | "nn.functional.max_unpool2d"
        | "nn.functional.max_unpool3d" => "max_unpool",
        "histc" => "histc",
        "index_add" => "index_add",
        "scatter_add" => "scatter_add",
        "scatter_reduce" => "scatter_reduce",
        _ => return None,
    }))
}

/// Operations that older versions list and PyTorch 2.15 does not.
pub(crate) const MENDED: [&str; 1] = ["kthvalue"];

/// Methods of tensors that may give other bits for the same input on a GPU.
pub(crate) fn nondeterministic_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "index_add" | "index_add_" => "index_add",
        "scatter_add" | "scatter_add_" => "scatter_add",
        "scatter_reduce" | "scatter_reduce_" => "scatter_reduce",
        "put_" => "put_",
        "histc" => "histc",
        _ => return None,
    })
}

/// Whether a method of a tensor fills it with draws.
pub(crate) fn in_place_draw(name: &str) -> bool {
    matches!(
        name,
        "normal_"
            | "uniform_"
            | "random_"
            | "bernoulli_"
            | "exponential_"
            | "geometric_"
            | "cauchy_"
            | "log_normal_"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_optim_are_optimizers_and_schedules() {
        assert_eq!(effect("optim.AdamW"), Some(Optimizer));
        assert_eq!(effect("optim.lr_scheduler.OneCycleLR"), Some(Scheduler));
    }

    #[test]
    fn what_is_not_listed_is_a_computation() {
        assert_eq!(effect("nn.functional.relu"), Some(Pure));
        assert_eq!(effect("einsum"), Some(Pure));
    }
}
