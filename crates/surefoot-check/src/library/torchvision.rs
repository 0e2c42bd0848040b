//! torchvision.

use super::{Effect, Global, Layer};

/// What a call of `torchvision.NAME` does.
pub(super) fn effect(name: &str) -> Option<Effect> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let plain = Layer::default();
    let draws = Layer { draws: true, ..plain };
    Some(if name.starts_with("models.") {
        if last.starts_with(|c: char| c.is_ascii_lowercase())
            && last != "get_weight"
            && last != "list_models"
        {
            // Batch normalisation in most of them, dropout in some.
            Effect::Module(Layer {
                has_parameters: true,
                draws_parameters: true,
                draws: drops_out(last),
                keeps_statistics: true,
                nondeterministic: None,
                is_keras: false,
            })
        } else {
            Effect::Pure
        }
    } else if name.starts_with("datasets.") {
        if last.starts_with(|c: char| c.is_ascii_uppercase()) {
            Effect::Dataset
        } else {
            Effect::Pure
        }
    } else if name.starts_with("transforms.functional")
        || name.starts_with("transforms.v2.functional")
    {
        Effect::Pure
    } else if name.starts_with("transforms.") {
        match last {
            "Compose" => Effect::Transforms { draws: false },
            "RandomApply" | "RandomChoice" | "RandomOrder" => Effect::Transforms { draws: true },
            "AutoAugment" | "RandAugment" | "TrivialAugmentWide" | "AugMix" | "ColorJitter"
            | "MixUp" | "CutMix" | "GaussianBlur" | "ElasticTransform" | "ScaleJitter"
            | "GaussianNoise" => Effect::Transform(draws, Global::Torch),
            _ if last.starts_with("Random") => Effect::Transform(draws, Global::Torch),
            _ if last.starts_with(|c: char| c.is_ascii_uppercase()) => {
                Effect::Transform(plain, Global::Torch)
            }
            _ => Effect::Pure,
        }
    } else {
        match name {
            "utils.save_image" | "utils.make_grid" => Effect::Silent,
            _ => Effect::Pure,
        }
    })
}

fn drops_out(model: &str) -> bool {
    [
        "alexnet",
        "vgg",
        "squeezenet",
        "mobilenet",
        "efficientnet",
        "inception",
        "googlenet",
        "swin",
        "vit",
        "convnext",
        "maxvit",
        "mnasnet",
    ]
    .iter()
    .any(|name| model.starts_with(name))
}
