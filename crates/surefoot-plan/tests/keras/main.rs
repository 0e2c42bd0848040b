//! Import of files written by Keras itself. `make_fixtures.py` writes them.

#![allow(clippy::unwrap_used)] // a test that cannot go on may panic

mod forward;
mod windows;

use std::path::{Path, PathBuf};

use serde_json::Value;
use surefoot_plan::keras::{KerasErrorKind, KerasModel, load};
use surefoot_plan::{
    Activation, Algorithm, Document, Initializer, Layer, Loss, Plan, Regularizer, infer,
    layer_names,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keras/fixtures").join(name)
}

fn model(name: &str) -> KerasModel {
    load(&fixture(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn error(path: &Path) -> String {
    match load(path) {
        Ok(model) => panic!("{} was read: {model:?}", path.display()),
        Err(error) => error.to_string(),
    }
}

/// The error of a file with this content.
fn error_of_bytes(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let message = error(&path);
    assert!(message.contains(name), "{message}");
    message
}

/// Every model that Keras computed with.
fn computed() -> Vec<String> {
    let files = std::fs::read_dir(fixture("")).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            let expected = fixture(name).with_extension("json");
            !name.ends_with(".json") && expected.exists()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn every_model_computes_what_keras_computes() {
    let names = computed();
    assert_eq!(names.len(), 25, "{names:?}");
    for name in names {
        let text = std::fs::read_to_string(fixture(&name).with_extension("json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let numbers = |key: &str| -> Vec<f64> {
            let list = expected[key].as_array().unwrap();
            list.iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let shape: Vec<usize> = numbers("input_shape").iter().map(|&n| n as usize).collect();
        let model = model(&name);
        assert_eq!(model.input_shape.as_deref(), Some(&shape[1..]), "{name}");
        assert_eq!(model.warnings, Vec::<String>::new(), "{name}");
        let outputs = forward::forward(&model, &shape, &numbers("input"));
        let wanted = numbers("output");
        assert_eq!(outputs.len(), wanted.len(), "{name}");
        for (output, wanted) in outputs.iter().zip(&wanted) {
            let error = (output - wanted).abs();
            assert!(error <= 1e-5 * wanted.abs().max(1.0), "{name}: {output} is not {wanted}");
        }
    }
}

#[test]
fn every_weight_belongs_to_one_layer() {
    for name in computed() {
        let model = model(&name);
        let names = layer_names(&model.layers);
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), model.layers.len(), "{name}: {names:?}");
        for weight in &model.weights {
            assert!(names.contains(&weight.layer), "{name}: {}", weight.layer);
            let size: usize = weight.shape.iter().product();
            assert_eq!(size, weight.values.len(), "{name}: {}", weight.name);
        }
    }
}

#[test]
fn every_model_fits_into_a_plan() {
    let plan = "[data]\nsource = { kind = \"circles\" }\n[training]\nepochs = 1\n";
    let document = Document::parse(plan, "test.toml").unwrap();
    for name in computed() {
        let model = model(&name);
        let whole = matches!(model.layers[0], Layer::Embedding(_));
        let shapes = infer(&model.layers, &model.input_shape.unwrap(), whole).unwrap();
        for shape in &shapes {
            let weights = model.weights.iter();
            let trained = weights
                .filter(|weight| weight.layer == shape.name && !weight.name.starts_with("moving"));
            let count: usize = trained.map(|weight| weight.values.len()).sum();
            assert_eq!(count, shape.parameters, "{name}: {}", shape.name);
        }
        let plan = document.plan_with_model(model.layers, None).unwrap();
        assert_eq!(Plan::parse(&plan.to_toml(), &name), Ok(plan), "{name}");
    }
}

#[test]
fn both_formats_hold_the_same_model() {
    for name in ["keras2_{}_nested", "keras2_{}_functional", "keras3_{}_nested"] {
        let hdf5 = model(&format!("{}.h5", name.replace("{}", "h5")));
        let archive = model(&format!("{}.keras", name.replace("{}", "zip")));
        assert_eq!(hdf5, archive, "{name}");
    }
}

#[test]
fn settings_of_a_functional_model_are_kept() {
    for name in ["keras2_h5_functional.h5", "keras3_zip_functional.keras"] {
        let model = model(name);
        let Layer::Dense(first) = &model.layers[0] else {
            panic!("{:?}", model.layers[0]);
        };
        assert_eq!(first.name.as_deref(), Some("zebra"));
        assert_eq!(first.activation, Activation::Relu);
        assert_eq!(first.kernel_initializer, Initializer::HeNormal);
        assert_eq!(first.bias_initializer, Initializer::Constant { value: 0.1 });
        assert_eq!(first.kernel_regularizer, Regularizer { l1: 0.0, l2: 0.01 });
        assert_eq!(first.bias_regularizer, Regularizer { l1: 0.02, l2: 0.0 });
        let Layer::Dense(second) = &model.layers[2] else {
            panic!("{:?}", model.layers[2]);
        };
        assert_eq!(second.kernel_initializer, Initializer::Orthogonal { gain: 2.0 });
        assert_eq!(second.kernel_regularizer, Regularizer { l1: 0.03, l2: 0.04 });
        let from_logits = false;
        assert_eq!(model.loss, Some(Loss::CategoricalCrossentropy { from_logits }));
        let optimizer = model.optimizer.unwrap();
        assert!(matches!(optimizer.algorithm, Algorithm::Adam { .. }));
        assert_eq!(optimizer.learning_rate, 0.002);
    }
}

#[test]
fn duplicate_names_get_the_name_of_the_inner_model() {
    for name in ["keras2_h5_nested.h5", "keras3_zip_nested.keras"] {
        let names = layer_names(&model(name).layers);
        assert_eq!(names[0], "same");
        assert_eq!(names[2..], ["other", "tower_same", "last"]);
    }
}

#[test]
fn an_architecture_alone_has_no_weights() {
    for (name, full) in [
        ("keras2_architecture.model", "keras2_zip_lenet.keras"),
        ("keras3_architecture.model", "keras3_zip_lenet.keras"),
    ] {
        let (architecture, full) = (model(name), model(full));
        assert!(architecture.weights.is_empty());
        assert_eq!(architecture.input_shape, Some(vec![9, 8, 2]));
        assert_eq!(architecture.layers.len(), full.layers.len());
    }
}

#[test]
fn an_unbuilt_model_has_no_weights_and_no_shape() {
    let model = model("keras3_zip_unbuilt.keras");
    assert_eq!(model.layers.len(), 2);
    assert!(model.weights.is_empty());
    assert_eq!(model.input_shape, None);
}

#[test]
fn a_branch_that_is_added_back_is_a_residual_block() {
    for name in ["keras2_branch.model", "keras3_branch.model"] {
        let layers = model(name).layers;
        let block = layers.iter().find_map(|layer| match layer {
            Layer::Residual(block) => Some(block),
            _ => None,
        });
        let block = block.unwrap_or_else(|| panic!("{name}: {layers:?}"));
        assert_eq!((block.name.as_deref(), block.layers.len()), (Some("join"), 1), "{name}");
    }
}

#[test]
fn one_error_names_all_unknown_layers() {
    for name in ["keras2_unknown.model", "keras3_unknown.model"] {
        let message = error(&fixture(name));
        assert!(message.contains("Rescaling (`rescaling` and `rescaling_1`)"), "{message}");
        assert!(message.contains("SpatialDropout1D (`spatial_dropout1d`)"), "{message}");
        assert!(message.contains("supported: Activation, Add, AveragePooling1D"), "{message}");
    }
}

#[test]
fn masking_is_rejected() {
    for name in ["keras2_masked.model", "keras3_masked.model"] {
        let message = error(&fixture(name));
        assert!(message.contains("`mask_zero` is true"), "{message}");
    }
}

#[test]
fn weights_without_a_model_are_an_error() {
    let path = fixture("keras2_h5_weights_only.h5");
    assert!(matches!(load(&path).unwrap_err().kind, KerasErrorKind::NoModel { .. }));
    let message = error(&path);
    assert!(message.contains("keras2_h5_weights_only.h5"), "{message}");
    assert!(message.contains("`model_config`"), "{message}");
    assert!(message.contains("`layer_names`"), "{message}");
}

#[test]
fn other_files_are_rejected() {
    let missing = fixture("nothing.h5");
    assert!(error(&missing).contains("nothing.h5` cannot be read"));
    assert!(error(&fixture("")).contains("cannot be read"));
    assert!(error_of_bytes("empty.h5", b"").contains("found an empty file"));
    assert!(error_of_bytes("text.h5", b"x,y\n0,1\n").contains("found text"));
    let pickle = error_of_bytes("pickle.keras", b"\x80\x04\x95\x00");
    assert!(pickle.contains("is not a Keras model"), "{pickle}");
}

#[test]
fn a_truncated_file_is_an_error() {
    for name in ["keras2_h5_long_names.h5", "keras3_zip_embedding.keras"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        for cut in (0..bytes.len()).step_by(bytes.len() / 97) {
            let message = error_of_bytes(name, &bytes[..cut]);
            let expected = if cut == 0 { "found an empty file" } else { "is damaged" };
            assert!(message.contains(expected), "{cut}: {message}");
        }
    }
}

#[test]
fn a_damaged_file_never_panics() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for name in ["keras2_h5_long_names.h5", "keras3_zip_embedding.keras"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let mut state = 1_u64;
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let place = (state >> 33) as usize % damaged.len();
                damaged[place] ^= (state >> 13) as u8 | 1;
            }
            std::fs::write(file.path(), damaged).unwrap();
            // Damage to the weights themselves cannot be seen; it only must not panic.
            let _ = load(file.path());
        }
    }
}
