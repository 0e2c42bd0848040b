//! torchvision.

use super::{Calls, Effect, Global, Layer, Library};

const MODEL: Layer = Layer {
    has_parameters: true,
    draws_parameters: true,
    // Most of them have batch normalization.
    keeps_statistics: true,
    ..Layer::PLAIN
};
const MODEL_WITH_DROPOUT: Layer = Layer { draws: true, ..MODEL };
const DRAWS: Layer = Layer { draws: true, ..Layer::PLAIN };

const MODELS: Calls = &[
    ("get_weight list_models _* @", Effect::Pure),
    (
        "alexnet* vgg* squeezenet* mobilenet* efficientnet* inception* googlenet* swin* vit* \
         convnext* maxvit* mnasnet*",
        Effect::Module(MODEL_WITH_DROPOUT),
    ),
    ("*", Effect::Module(MODEL)),
];

const TRANSFORMS: Calls = &[
    ("Compose", Effect::Transforms { draws: false }),
    ("RandomApply RandomChoice RandomOrder", Effect::Transforms { draws: true }),
    (
        "AutoAugment RandAugment TrivialAugmentWide AugMix ColorJitter MixUp CutMix GaussianBlur \
         ElasticTransform ScaleJitter GaussianNoise Random*",
        Effect::Transform(DRAWS, Global::Torch),
    ),
    ("@", Effect::Transform(Layer::PLAIN, Global::Torch)),
];

pub(super) const LIBRARIES: &[Library] = &[Library {
    sections: &[("models.*", MODELS), ("transforms.*", TRANSFORMS)],
    ..Library::new(
        "torchvision",
        &[
            ("datasets.@", Effect::Dataset),
            ("transforms.functional* transforms.v2.functional*", Effect::Pure),
            ("utils.save_image utils.make_grid", Effect::Silent),
        ],
    )
}];
