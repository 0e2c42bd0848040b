//! PyTorch.
//!
//! The nondeterministic operations are those listed in the documentation of
//! `torch.use_deterministic_algorithms`, as of PyTorch 2.15.

use super::{Calls, Effect, Environment, Family, Global, Layer, Library, Sampler, Switch};
use Effect::*;

const PLAIN: Layer = Layer::PLAIN;
const WEIGHTS: Layer = Layer { has_parameters: true, draws_parameters: true, ..PLAIN };
const DROPOUT: Layer = Layer { draws: true, ..PLAIN };
const STATISTICS: Layer = Layer { has_parameters: true, keeps_statistics: true, ..PLAIN };
/// Layers whose parameters start as ones and zeros.
const CONSTANT: Layer = Layer { has_parameters: true, ..PLAIN };
const WEIGHTS_AND_DROPOUT: Layer = Layer { draws: true, ..WEIGHTS };

const CALLS: Calls = &[
    (
        "manual_seed random.manual_seed cuda.manual_seed cuda.manual_seed_all mps.manual_seed \
         xpu.manual_seed xpu.manual_seed_all",
        Seed(&[Global::Torch]),
    ),
    ("seed random.seed cuda.seed cuda.seed_all", Read(Environment::Entropy)),
    (
        "rand randn randint randperm bernoulli normal multinomial poisson rand_like randn_like \
         randint_like binomial distributions.Normal.sample",
        Draw(Global::Torch),
    ),
    (
        "dropout nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d \
         nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout \
         nn.functional.rrelu nn.functional.gumbel_softmax",
        Functional(DROPOUT),
    ),
    ("Generator", Generator(Family::Torch)),
    (
        "get_rng_state random.get_rng_state cuda.get_rng_state cuda.get_rng_state_all \
         mps.get_rng_state xpu.get_rng_state random.fork_rng",
        GetState(Global::Torch),
    ),
    (
        "set_rng_state random.set_rng_state cuda.set_rng_state cuda.set_rng_state_all \
         mps.set_rng_state xpu.set_rng_state",
        SetState(Global::Torch),
    ),
    ("save jit.save distributed.checkpoint.save", Save { what: 0 }),
    ("load jit.load hub.load_state_dict_from_url distributed.checkpoint.load", Load),
    ("use_deterministic_algorithms set_deterministic_debug_mode", Set(Switch::Deterministic)),
    ("set_float32_matmul_precision", Set(Switch::MatmulPrecision)),
    ("compile", Set(Switch::Compile)),
    ("no_grad inference_mode autograd.no_grad", NoGrad),
    ("autograd.backward", Backward),
    ("distributed.get_rank", Rank),
    ("distributed.get_world_size", Workers),
    (
        "nn.parallel.DistributedDataParallel nn.DataParallel nn.parallel.DataParallel \
         distributed.fsdp.FullyShardedDataParallel distributed.fsdp.fully_shard jit.script jit.trace \
         nn.SyncBatchNorm.convert_sync_batchnorm fx.symbolic_trace nn.utils.weight_norm \
         nn.utils.spectral_norm nn.utils.parametrizations.weight_norm \
         nn.utils.parametrizations.spectral_norm nn.parameter.Parameter nn.Parameter \
         autograd.Variable",
        Same,
    ),
    ("hub.load", Module(STATISTICS)),
    ("cuda.amp.GradScaler amp.GradScaler amp.grad_scaler.GradScaler cpu.amp.GradScaler", Scaler),
    ("utils.data.DataLoader utils.data.dataloader.DataLoader", Loader),
    ("utils.data.random_split utils.data.dataset.random_split", Split),
    (
        "utils.data.RandomSampler utils.data.WeightedRandomSampler utils.data.SubsetRandomSampler \
         utils.data.sampler.RandomSampler utils.data.sampler.WeightedRandomSampler \
         utils.data.sampler.SubsetRandomSampler",
        Effect::Sampler(Sampler::Random),
    ),
    (
        "utils.data.SequentialSampler utils.data.BatchSampler utils.data.sampler.SequentialSampler \
         utils.data.sampler.BatchSampler",
        Effect::Sampler(Sampler::Sequential),
    ),
    (
        "utils.data.DistributedSampler utils.data.distributed.DistributedSampler",
        Effect::Sampler(Sampler::Distributed),
    ),
    (
        "utils.data.TensorDataset utils.data.Subset utils.data.ConcatDataset \
         utils.data.ChainDataset utils.data.StackDataset",
        Dataset,
    ),
    ("optim.swa_utils.AveragedModel", Average),
    ("optim.swa_utils.SWALR optim.lr_scheduler.@ optim.lr_scheduler.any", Scheduler),
    ("optim.swa_utils.update_bn utils.tensorboard.* profiler.* _logging.*", Silent),
    ("optim.@ optim.any", Optimizer),
    ("nn.functional.grid_sample", Nondeterministic("the gradient of grid_sample")),
    ("nn.functional.ctc_loss", Nondeterministic("the gradient of ctc_loss")),
    ("nn.functional.adaptive_avg_pool2d", Nondeterministic("the gradient of adaptive_avg_pool2d")),
    ("nn.functional.adaptive_avg_pool3d", Nondeterministic("the gradient of adaptive_avg_pool3d")),
    ("nn.functional.adaptive_max_pool2d", Nondeterministic("the gradient of adaptive_max_pool2d")),
    ("nn.functional.avg_pool3d", Nondeterministic("the gradient of avg_pool3d")),
    (
        "nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d",
        Nondeterministic("max_unpool"),
    ),
    ("histc", Nondeterministic("histc")),
    ("index_add", Nondeterministic("index_add")),
    ("scatter_add", Nondeterministic("scatter_add")),
    ("scatter_reduce", Nondeterministic("scatter_reduce")),
    ("nn.functional.* nn.utils.*", Pure),
];

/// Functions that write initial parameters.
const INITIALIZERS: Calls =
    &[("zeros_ ones_ constant_ eye_ dirac_ calculate_gain", Pure), ("*", DrawInto(Global::Torch))];

const LAYERS: Calls = &[
    ("Sequential ModuleList ModuleDict ParameterList ParameterDict", Container),
    ("DataParallel", Same),
    (
        "Linear Bilinear LazyLinear Embedding EmbeddingBag Conv1d Conv2d Conv3d LazyConv1d \
         LazyConv2d LazyConv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d RNN LSTM GRU RNNCell \
         LSTMCell GRUCell",
        Module(WEIGHTS),
    ),
    (
        "MultiheadAttention Transformer TransformerEncoder TransformerDecoder \
         TransformerEncoderLayer TransformerDecoderLayer",
        Module(WEIGHTS_AND_DROPOUT),
    ),
    (
        "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU",
        Module(DROPOUT),
    ),
    (
        "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d \
         LazyBatchNorm3d",
        Module(STATISTICS),
    ),
    (
        "LayerNorm RMSNorm GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d PReLU",
        Module(CONSTANT),
    ),
    ("AvgPool3d", nondeterministic("the gradient of AvgPool3d")),
    ("AdaptiveAvgPool2d", nondeterministic("the gradient of AdaptiveAvgPool2d")),
    ("AdaptiveAvgPool3d", nondeterministic("the gradient of AdaptiveAvgPool3d")),
    ("AdaptiveMaxPool2d", nondeterministic("the gradient of AdaptiveMaxPool2d")),
    ("FractionalMaxPool2d", nondeterministic("the gradient of FractionalMaxPool2d")),
    ("FractionalMaxPool3d", nondeterministic("the gradient of FractionalMaxPool3d")),
    ("MaxUnpool1d MaxUnpool2d MaxUnpool3d", nondeterministic("MaxUnpool")),
    (
        "ReflectionPad1d ReflectionPad2d ReflectionPad3d",
        nondeterministic("the gradient of ReflectionPad"),
    ),
    (
        "ReplicationPad1d ReplicationPad2d ReplicationPad3d",
        nondeterministic("the gradient of ReplicationPad"),
    ),
    ("MaxPool3d", nondeterministic("the gradient of MaxPool3d")),
    ("CTCLoss", nondeterministic("the gradient of CTCLoss")),
    // On images; on other inputs the loss is deterministic.
    ("NLLLoss2d", nondeterministic("NLLLoss")),
    ("UpsamplingBilinear2d", nondeterministic("the gradient of a bilinear interpolation")),
    ("*", Module(PLAIN)),
];

/// A layer whose gradient is not deterministic on a GPU.
const fn nondeterministic(operation: &'static str) -> Effect {
    Module(Layer { nondeterministic: Some(operation), ..PLAIN })
}

pub(super) const LIBRARIES: &[Library] = &[Library {
    sections: &[("nn.init.*", INITIALIZERS), ("nn.*", LAYERS)],
    ..Library::new("torch", CALLS)
}];

/// Operations that became deterministic before PyTorch 2.15.
pub(crate) const FIXED_OPERATIONS: [&str; 1] = ["kthvalue"];

/// Tensor methods that are not deterministic on a GPU.
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

/// Returns true if a method of a tensor fills it with draws.
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
    use crate::library::effect_of;

    #[test]
    fn classes_of_optim_are_optimizers_and_schedules() {
        assert_eq!(effect_of("torch.optim.AdamW"), Some(Optimizer));
        assert_eq!(effect_of("torch.optim.lr_scheduler.OneCycleLR"), Some(Scheduler));
    }

    #[test]
    fn unlisted_names_are_pure() {
        assert_eq!(effect_of("torch.nn.functional.relu"), Some(Pure));
        assert_eq!(effect_of("torch.einsum"), Some(Pure));
    }
}
