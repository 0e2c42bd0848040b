//! Libraries of which little has to be known: their calls compute, or only tell somebody something.

use super::{Effect, Global, Layer};

/// What a call of `ROOT.NAME` does; nothing if the library is not known.
pub(super) fn effect(root: &str, name: &str) -> Option<Effect> {
    let last = name.rsplit('.').next().unwrap_or(name);
    Some(match root {
        "tqdm" | "rich" | "alive_progress" | "progressbar" | "fastprogress" => match last {
            "tqdm" | "trange" | "track" | "notebook" | "auto" | "progressbar" | "progress_bar"
            | "master_bar" | "" => Effect::Same,
            _ => Effect::Silent,
        },
        "wandb" | "tensorboard" | "tensorboardX" | "mlflow" | "comet_ml" | "neptune" | "aim"
        | "clearml" | "matplotlib" | "seaborn" | "plotly" | "visdom" | "loguru" | "colorama"
        | "termcolor" | "tabulate" | "prettytable" | "psutil" | "torchsummary" | "torchinfo"
        | "thop" | "fvcore" | "ptflops" | "pynvml" | "dvclive" | "trackio" | "swanlab" | "absl" => {
            match last {
                "parse_args" => Effect::Settings,
                _ => Effect::Silent,
            }
        }
        "hydra" | "omegaconf" | "yaml" | "toml" | "ruamel" | "configargparse" | "fire"
        | "click" | "typer" | "tyro" | "simple_parsing" | "easydict" | "ml_collections"
        | "yacs" | "dotenv" | "docopt" | "jsonargparse" => Effect::Settings,
        "sklearn" => match last {
            "train_test_split"
            | "shuffle"
            | "resample"
            | "KFold"
            | "StratifiedKFold"
            | "StratifiedGroupKFold"
            | "ShuffleSplit"
            | "StratifiedShuffleSplit"
            | "GroupShuffleSplit"
            | "RepeatedKFold"
            | "RepeatedStratifiedKFold" => Effect::DrawUnless(Global::NumPy, "random_state"),
            _ => Effect::Pure,
        },
        "pandas" | "polars" => match last {
            "sample" => Effect::DrawUnless(Global::NumPy, "random_state"),
            _ => Effect::Pure,
        },
        "scipy" | "PIL" | "cv2" | "skimage" | "imageio" | "h5py" | "einops" | "nltk"
        | "sentencepiece" | "tokenizers" | "tiktoken" | "regex" | "requests" | "packaging"
        | "torchaudio" | "librosa" | "soundfile" | "networkx" | "sympy" | "numba" | "attr"
        | "attrs" | "pydantic" | "six" | "orjson" | "ujson" | "lmdb" | "safetensors"
        | "huggingface_hub" | "evaluate" | "sacrebleu" | "rouge_score" | "editdistance"
        | "jiwer" | "pycocotools" | "gzip" | "numexpr" | "jaxtyping" | "beartype" | "ftfy"
        | "unidecode" | "inflect" | "pyarrow" | "tables" | "zarr" | "xarray" => Effect::Pure,
        "timm" => match name {
            "create_model" | "models.create_model" => Effect::Module(Layer {
                has_parameters: true,
                draws_parameters: true,
                draws: false,
                keeps_statistics: true,
                nondeterministic: None,
                is_keras: false,
            }),
            _ if last.starts_with("ModelEma") => Effect::Average,
            _ if last.starts_with("create_optimizer") => Effect::Optimizer,
            _ if last.starts_with("create_scheduler") => Effect::Scheduler,
            _ if name.starts_with("scheduler.") => Effect::Scheduler,
            _ if name.starts_with("optim.") => Effect::Optimizer,
            _ if name.starts_with("loss.") => Effect::Module(Layer::default()),
            _ => return None,
        },
        "accelerate" | "transformers" if last == "set_seed" => {
            Effect::Seed(&[Global::Python, Global::NumPy, Global::Torch])
        }
        // They add up what they see until they are reset.
        "torchmetrics" if last.starts_with(|c: char| c.is_ascii_uppercase()) => Effect::State,
        "torchmetrics" => Effect::Pure,
        "torch_ema" => Effect::Average,
        _ => return None,
    })
}
