//! Libraries that need few rows: logging, settings, data handling, helpers.

use super::{Calls, Effect, Global, Layer, Library};

/// A model of `timm`.
const MODEL: Layer =
    Layer { has_parameters: true, draws_parameters: true, keeps_statistics: true, ..Layer::PLAIN };
const SET_SEED: Calls =
    &[("*.set_seed", Effect::Seed(&[Global::Python, Global::NumPy, Global::Torch]))];

pub(super) const LIBRARIES: &[Library] = &[
    Library::uniform(
        "tqdm rich alive_progress progressbar fastprogress",
        &[(
            ". *.tqdm *.trange *.track *.notebook *.auto *.progressbar *.progress_bar *.master_bar",
            Effect::Same,
        )],
        Effect::Silent,
    ),
    Library::uniform(
        "wandb tensorboard tensorboardX mlflow comet_ml neptune aim clearml matplotlib seaborn plotly \
         visdom loguru colorama termcolor tabulate prettytable psutil torchsummary torchinfo thop \
         fvcore ptflops pynvml dvclive trackio swanlab absl",
        &[("*.parse_args", Effect::Settings)],
        Effect::Silent,
    ),
    Library::uniform(
        "hydra omegaconf yaml toml ruamel configargparse fire click typer tyro simple_parsing \
         easydict ml_collections yacs dotenv docopt jsonargparse",
        &[],
        Effect::Settings,
    ),
    Library::new(
        "sklearn",
        &[(
            "*.train_test_split *.shuffle *.resample *.KFold *.StratifiedKFold \
             *.StratifiedGroupKFold *.ShuffleSplit *.StratifiedShuffleSplit *.GroupShuffleSplit \
             *.RepeatedKFold *.RepeatedStratifiedKFold",
            Effect::DrawUnless(Global::NumPy, "random_state"),
        )],
    ),
    Library::new(
        "pandas polars",
        &[("*.sample", Effect::DrawUnless(Global::NumPy, "random_state"))],
    ),
    Library::new(
        "scipy PIL cv2 skimage imageio h5py einops nltk sentencepiece tokenizers tiktoken regex \
         requests packaging torchaudio librosa soundfile networkx sympy numba attr attrs pydantic \
         six orjson ujson lmdb safetensors huggingface_hub evaluate sacrebleu rouge_score \
         editdistance jiwer pycocotools numexpr jaxtyping beartype ftfy unidecode inflect pyarrow \
         tables zarr xarray",
        &[],
    ),
    Library {
        otherwise: None,
        ..Library::new(
            "timm",
            &[
                ("create_model models.create_model", Effect::Module(MODEL)),
                ("*.ModelEma*", Effect::Average),
                ("*.create_optimizer* ", Effect::Optimizer),
                ("*.create_scheduler* scheduler.*", Effect::Scheduler),
                ("optim.*", Effect::Optimizer),
                ("loss.*", Effect::Module(Layer::PLAIN)),
            ],
        )
    },
    Library { otherwise: None, ..Library::new("accelerate transformers", SET_SEED) },
    // Metrics accumulate until they are reset.
    Library::new("torchmetrics", &[("@", Effect::State)]),
    Library::uniform("torch_ema", &[], Effect::Average),
];
