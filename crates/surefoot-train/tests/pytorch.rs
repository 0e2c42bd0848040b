//! Exported modules give the outputs of the trained model in PyTorch.
//!
//! `./test` runs this with a Python that has PyTorch, named by `PYTHON`.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;
use std::path::Path;
use std::process::Command;
use surefoot_plan::Plan;
use surefoot_train::{Predictor, Trainer};

const IMAGES: &str = "{ kind = \"shapes\", samples = 24, size = 9, channels = 3, classes = 3 }";
const TABLE: &str = "{ kind = \"blobs\", samples = 24, centers = 3, features = 6 }";
const TEXTS: &str = "{ kind = \"copy\", samples = 24, length = 5, symbols = 3 }";

/// A source, and the layers between it and a dense output layer.
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
    for block in [
        "{ layer = \"position_embedding\" }, { layer = \"multi_head_attention\", num_heads = 2 }",
        "{ layer = \"transformer\", num_heads = 2, feed_forward = 6 }",
        "{ layer = \"transformer\", num_heads = 2, feed_forward = 6, norm_first = true }",
        "{ layer = \"residual\", layers = [{ layer = \"dense\", units = 8 }, { layer = \"dropout\", rate = 0.5 }] }",
    ] {
        all.push((TEXTS, format!("{embedding}{block}, {}", layer("flatten"))));
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

fn train(dir: &Path, source: &str, layers: &str) -> Predictor {
    let scale = if source == TEXTS { "none" } else { "standardise" };
    let text = format!(
        "model = [{layers}, {{ layer = \"dense\", units = 3, activation = \"softmax\" }}]\n\
         data = {{ source = {source}, scale = \"{scale}\" }}\n\
         training = {{ epochs = 2, batch_size = 8, loss = \"sparse_categorical_crossentropy\" }}\n"
    );
    let plan = Plan::parse(&text, "plan.toml").unwrap_or_else(|error| panic!("{error}"));
    let trainer = Trainer::new(plan).record_at(dir).workers(1).no_diagnosis();
    trainer.train().unwrap();
    Predictor::open(dir).unwrap()
}

const COMPARE: &str = "
import glob, json, runpy, torch
for path in sorted(glob.glob('*/model.py')):
    folder = path.split('/')[0]
    read = lambda name: json.load(open(f'{folder}/{name}.json'))
    model = runpy.run_path(path)['Model']().eval()
    with torch.no_grad():
        found = model(torch.tensor(read('samples')).reshape(-1, *read('shape'))).flatten()
    wanted = torch.tensor(read('outputs'))
    worst = (found - wanted).abs().max().item()
    assert found.shape == wanted.shape and worst < 1e-5, (folder, worst)
";

#[test]
#[ignore = "needs PyTorch; ./test runs it"]
fn exported_modules_give_the_same_outputs_in_pytorch() {
    let dir = tempfile::tempdir().unwrap();
    let examples = examples();
    for (number, (source, layers)) in examples.iter().enumerate() {
        let folder = dir.path().join(format!("{number:02}"));
        let run = folder.join("run");
        fs::create_dir(&folder).unwrap();
        let predictor = train(&run, source, layers);
        let preprocessing = predictor.preprocessing();
        let width = preprocessing.width();
        let samples: Vec<f32> = match *source == TEXTS {
            true => (0..7 * width).map(|i| (i * 7 % 3) as f32).collect(),
            false => (0..7 * width).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect(),
        };
        let mut inputs = samples.clone();
        preprocessing.apply(&mut inputs);
        let file = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        file("samples.json", serde_json::to_string(&samples).unwrap());
        file("shape.json", serde_json::to_string(&preprocessing.input_shape).unwrap());
        file("outputs.json", serde_json::to_string(&predictor.outputs(&inputs)).unwrap());
        file("model.py", predictor.to_pytorch(&run.join("model.safetensors").to_string_lossy()));
    }
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output =
        Command::new(&python).current_dir(dir.path()).args(["-c", COMPARE]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}\n{examples:#?}");
}
