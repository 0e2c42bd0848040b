//! Libraries that need few rows: logging, settings, data handling, helpers.

use super::{Effect, Global, Layer, Library};

/// A model of `timm`.
const MODEL: Layer =
    Layer { has_parameters: true, draws_parameters: true, keeps_statistics: true, ..Layer::PLAIN };
/// A model with dropout, initialized or loaded.
const TRANSFORMER: Layer = Layer { draws: true, keeps_statistics: false, ..MODEL };
const PRETRAINED: Layer = Layer { draws_parameters: false, ..TRANSFORMER };
const SET_SEED: Effect = Effect::Seed(&[Global::Python, Global::NumPy, Global::Torch]);

/// Calls implemented in `lift/hub.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hub {
    /// `transformers.Trainer`.
    Trainer,
    /// `accelerate.Accelerator`.
    Accelerator,
    /// An environment of Gym.
    Environment,
}

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
    Library::uniform("hydra", &[("*.instantiate *.call", Effect::Unknown)], Effect::Settings),
    Library::uniform(
        "omegaconf yaml toml ruamel configargparse fire click typer tyro simple_parsing \
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
    Library {
        otherwise: None,
        ..Library::new(
            "transformers",
            &[
                ("*.set_seed *.enable_full_determinism", SET_SEED),
                ("*.get_*schedule* *.get_scheduler", Effect::Scheduler),
                ("*.AdamW *.Adafactor", Effect::Optimizer),
                ("*.*TrainingArguments *.HfArgumentParser", Effect::Settings),
                ("*.*Trainer", Effect::Hub(Hub::Trainer)),
                (
                    "*Tokenizer*.from_pretrained *Config*.from_pretrained *Processor*.from_pretrained",
                    Effect::Pure,
                ),
                // The head of these is drawn.
                (
                    "*ForSequenceClassification.from_pretrained *ForTokenClassification.from_pretrained \
                     *ForQuestionAnswering.from_pretrained *ForMultipleChoice.from_pretrained \
                     *ForImageClassification.from_pretrained",
                    Effect::Module(TRANSFORMER),
                ),
                ("*.from_pretrained", Effect::Module(PRETRAINED)),
                ("*.from_config", Effect::Module(TRANSFORMER)),
                ("*Config *DataCollator* *.pipeline *.logging* utils.*", Effect::Pure),
            ],
        )
    },
    Library {
        otherwise: None,
        ..Library::new(
            "trl",
            &[("*.*Trainer", Effect::Hub(Hub::Trainer)), ("*.*Config", Effect::Settings)],
        )
    },
    Library {
        otherwise: Some(Effect::Pure),
        ..Library::new(
            "accelerate",
            &[("*.set_seed", SET_SEED), ("*.Accelerator", Effect::Hub(Hub::Accelerator))],
        )
    },
    Library::new("datasets peft diffusers bitsandbytes", &[]),
    Library::new(
        "gym gymnasium",
        &[
            ("wrappers.* *.wrappers.*", Effect::Same),
            ("spaces.*", Effect::Pure),
            ("make *.make *.make_vec *VectorEnv", Effect::Hub(Hub::Environment)),
        ],
    ),
    // Metrics accumulate until they are reset.
    Library::new("torchmetrics", &[("@", Effect::State)]),
    Library::uniform("torch_ema", &[], Effect::Average),
];
