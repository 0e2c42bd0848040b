//! Exported models give the outputs of the trained model in PyTorch and ONNX Runtime.
//!
//! `./test` runs this with a Python that has them, named by `PYTHON`.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;
use std::path::Path;
use std::process::Command;
use surefoot_plan::Plan;
use surefoot_train::{Predictor, Trainer};

const IMAGES: &str = "source = { kind = \"shapes\", samples = 24, size = 9, channels = 3, classes = 3 }, \
                      scale = \"standardise\"";
const TABLE: &str = "source = { kind = \"blobs\", samples = 24, centers = 3, features = 6 }, \
                     scale = \"standardise\"";
const CLEANED: &str = "source = { kind = \"blobs\", samples = 24, centers = 3, features = 6 }, \
                       missing = \"impute\", outliers = \"clip\", scale = \"min_max\"";
const TEXTS: &str = "source = { kind = \"copy\", samples = 24, length = 5, symbols = 3 }";
const NUMBERS: &str = "source = { kind = \"friedman\", samples = 24, features = 6 }, \
                       target_scale = \"standardise\"";

/// The data, and the layers between it and a dense output layer.
fn examples() -> Vec<(&'static str, String)> {
    let layer = |name: &str| format!("{{ layer = \"{name}\" }}");
    let embedding = "{ layer = \"embedding\", input_dim = 3, output_dim = 8 }, ";
    let mut all = Vec::new();
    for activation in [
        "relu",
        "leaky_relu",
        "elu",
        "selu",
        "gelu",
        "silu",
        "tanh",
        "sigmoid",
        "hard_sigmoid",
        "softplus",
        "softmax",
    ] {
        let dense = format!("{{ layer = \"dense\", units = 4, activation = \"{activation}\" }}");
        all.push((TABLE, dense));
    }
    for norm in ["batch_norm", "layer_norm", "group_norm"] {
        let norm = match norm {
            "group_norm" => "{ layer = \"group_norm\", groups = 3 }".to_owned(),
            norm => layer(norm),
        };
        all.push((IMAGES, format!("{norm}, {}", layer("flatten"))));
    }
    for padding in ["same", "valid"] {
        let conv = format!(
            "{{ layer = \"conv2d\", filters = 4, kernel_size = 3, strides = 2, padding = \"{padding}\" }}"
        );
        all.push((IMAGES, format!("{conv}, {}", layer("global_average_pool"))));
        for pool in ["max_pool2d", "average_pool2d"] {
            let pool = format!("{{ layer = \"{pool}\", pool_size = 2, padding = \"{padding}\" }}");
            all.push((IMAGES, format!("{pool}, {}", layer("flatten"))));
        }
        let conv = format!(
            "{{ layer = \"conv1d\", filters = 4, kernel_size = 2, padding = \"{padding}\" }}"
        );
        all.push((TEXTS, format!("{embedding}{conv}, {}", layer("global_max_pool"))));
        for pool in ["max_pool1d", "average_pool1d"] {
            let pool = format!("{{ layer = \"{pool}\", padding = \"{padding}\" }}");
            all.push((TEXTS, format!("{embedding}{pool}, {}", layer("flatten"))));
        }
    }
    for cell in ["simple_rnn", "lstm", "gru"] {
        for options in
            ["", ", bidirectional = true", ", return_sequences = true, bidirectional = true"]
        {
            let cell = format!("{{ layer = \"{cell}\", units = 4{options} }}");
            all.push((TEXTS, format!("{embedding}{cell}, {}", layer("flatten"))));
        }
    }
    all.push((TEXTS, format!("{embedding}{{ layer = \"gru\", units = 4, reset_after = false }}")));
    // The background of an image is below zero, so whole steps of it are masked.
    for cell in ["simple_rnn", "lstm", "gru"] {
        let masked = format!(
            "{{ layer = \"reshape\", target_shape = [27, 9] }}, \
             {{ layer = \"activation\", activation = \"relu\" }}, {{ layer = \"masking\" }}, \
             {{ layer = \"{cell}\", units = 4, return_sequences = true, bidirectional = true }}, \
             {{ layer = \"{cell}\", units = 4 }}"
        );
        all.push((IMAGES, masked));
    }
    for block in [
        "{ layer = \"position_embedding\" }, { layer = \"multi_head_attention\", num_heads = 2 }",
        "{ layer = \"transformer\", num_heads = 2, feed_forward = 6 }",
        "{ layer = \"transformer\", num_heads = 2, feed_forward = 6, norm_first = true }",
        "{ layer = \"residual\", layers = [{ layer = \"dense\", units = 8 }, { layer = \"dropout\", rate = 0.5 }] }",
        "{ layer = \"residual\", layers = [{ layer = \"dense\", units = 5 }], shortcut = [{ layer = \"dense\", units = 5 }] }",
    ] {
        all.push((TEXTS, format!("{embedding}{block}, {}", layer("flatten"))));
    }
    for data in [CLEANED, NUMBERS] {
        all.push((data, "{ layer = \"dense\", units = 4, activation = \"relu\" }".to_owned()));
    }
    all.push((
        IMAGES,
        format!(
            "{{ layer = \"reshape\", target_shape = [27, 9] }}, {}, {}",
            layer("flatten"),
            "{ layer = \"activation\", activation = \"tanh\" }"
        ),
    ));
    all
}

fn train(dir: &Path, data: &str, layers: &str) -> Predictor {
    let (output, loss) = match data == NUMBERS {
        true => ("units = 1", "mse"),
        false => ("units = 3, activation = \"softmax\"", "sparse_categorical_crossentropy"),
    };
    let text = format!(
        "model = [{layers}, {{ layer = \"dense\", {output} }}]\ndata = {{ {data} }}\n\
         training = {{ epochs = 2, batch_size = 8, loss = \"{loss}\" }}\n"
    );
    let plan = Plan::parse(&text, "plan.toml").unwrap_or_else(|error| panic!("{error}"));
    let trainer = Trainer::new(plan).record_at(dir).workers(1).no_diagnosis();
    trainer.train().unwrap();
    Predictor::open(dir).unwrap()
}

const COMPARE_IN_PYTORCH: &str = "
import glob, json, runpy, torch
for path in sorted(glob.glob('*/model.py')):
    folder = path.split('/')[0]
    read = lambda name: json.load(open(f'{folder}/{name}.json'))
    model = runpy.run_path(path)['Model']().eval()
    with torch.no_grad():
        samples = [float('nan') if x is None else x for x in read('samples')]
        found = model(torch.tensor(samples).reshape(-1, *read('shape'))).flatten()
    wanted = torch.tensor(read('outputs'))
    worst = (found - wanted).abs().max().item()
    assert found.shape == wanted.shape and worst < 1e-5, (folder, worst)
";

const COMPARE_IN_ONNX_RUNTIME: &str = "
import glob, json, numpy, onnx, onnxruntime
for path in sorted(glob.glob('*/model.onnx')):
    folder = path.split('/')[0]
    onnx.checker.check_model(path, full_check=True)
    read = lambda name: json.load(open(f'{folder}/{name}.json'))
    session = onnxruntime.InferenceSession(path)
    assert session.get_modelmeta().custom_metadata_map['task'], folder
    samples = numpy.array(read('samples'), numpy.float32).reshape(-1, *read('shape'))
    found = session.run(['outputs'], {'samples': samples})[0]
    assert list(found.shape[1:]) == session.get_outputs()[0].shape[1:], folder
    wanted = numpy.array(read('outputs'), numpy.float32)
    worst = numpy.abs(found.flatten() - wanted).max()
    assert found.size == wanted.size and worst < 1e-5, (folder, worst)
";

/// Trains and exports all examples, and compares their outputs with those of a script.
fn compare(script: &str, export: impl Fn(&Predictor, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    let examples = examples();
    for (number, (data, layers)) in examples.iter().enumerate() {
        let folder = dir.path().join(format!("{number:02}"));
        fs::create_dir(&folder).unwrap();
        let predictor = train(&folder.join("run"), data, layers);
        let preprocessing = predictor.preprocessing();
        let width = preprocessing.width();
        let samples = (0..7 * width).map(|i| match *data {
            TEXTS => (i * 7 % 3) as f32,
            CLEANED if i % 5 == 0 => f32::NAN,
            CLEANED if i % 5 == 1 => 1e6,
            _ => ((i * 37 % 101) as f32 - 50.0) / 25.0,
        });
        let samples: Vec<f32> = samples.collect();
        let outputs = predictor.predict(&samples).unwrap().values;
        let file = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        file("samples.json", serde_json::to_string(&samples).unwrap());
        file("shape.json", serde_json::to_string(&preprocessing.input_shape).unwrap());
        file("outputs.json", serde_json::to_string(&outputs).unwrap());
        export(&predictor, &folder);
    }
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output =
        Command::new(&python).current_dir(dir.path()).args(["-c", script]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}\n{examples:#?}");
}

#[test]
#[ignore = "needs PyTorch; ./test runs it"]
fn modules_give_the_same_outputs_in_pytorch() {
    compare(COMPARE_IN_PYTORCH, |predictor, folder| {
        let weights = folder.join("run/model.safetensors");
        let source = predictor.to_pytorch(&weights.to_string_lossy());
        fs::write(folder.join("model.py"), source).unwrap();
    });
}

#[test]
#[ignore = "needs ONNX Runtime; ./test runs it"]
fn files_give_the_same_outputs_in_onnx_runtime() {
    compare(COMPARE_IN_ONNX_RUNTIME, |predictor, folder| {
        fs::write(folder.join("model.onnx"), predictor.to_onnx().unwrap()).unwrap();
    });
}
