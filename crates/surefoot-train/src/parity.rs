//! Layers, losses and optimizers against values recorded from PyTorch and Keras.
//!
//! `tests/pytorch/make_fixtures.py` records them; see there how to do so again.

use crate::loss::TargetView;
use crate::network::Network;
use crate::optimizer::Updater;
use crate::parameters::Parameters;
use crate::schedule::learning_rate;
use crate::shard::{Batch, Examples, Look, Outcome, compute, infer};
use crate::worker_pool::WorkerPool;
use serde_json::Value;
use surefoot_data::Targets;
use surefoot_plan::{Plan, Task, Weight};

const TOLERANCE: f64 = 1e-4;

#[cfg(not(feature = "test-burn"))]
type Tested = crate::Cpu;
/// The operations of GPUs, on Burn's CPU backend.
#[cfg(feature = "test-burn")]
type Tested = crate::burn::Burn<burn_flex::Flex>;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/pytorch/fixtures/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn floats(value: &Value) -> Vec<f32> {
    let numbers = value.as_array().unwrap();
    numbers.iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn sizes(value: &Value) -> Vec<usize> {
    let numbers = value.as_array().unwrap();
    numbers.iter().map(|v| v.as_u64().unwrap() as usize).collect()
}

/// JSON in TOML's inline form.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(k, v)| format!("{k} = {}", toml(v))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// One recorded case with everything needed to run it.
struct Case {
    name: String,
    plan: Plan,
    network: Network<Tested>,
    parameters: Parameters,
    examples: Examples,
    targets: Targets,
    task: Task,
    batch: usize,
}

impl Case {
    fn new(case: &Value) -> Self {
        let name = case["name"].as_str().unwrap().to_owned();
        let mut source = format!(
            "model = {}\n[data]\nsource = {{ kind = \"circles\" }}\n[training]\nepochs = 1\nloss = {}\n",
            toml(&case["model"]),
            toml(&case["loss"])
        );
        for key in ["optimizer", "schedule"] {
            if case[key].as_object().is_some_and(|map| !map.is_empty()) {
                source += &format!("{key} = {}\n", toml(&case[key]));
            }
        }
        let plan = Plan::parse(&source, &*name).unwrap_or_else(|e| panic!("{name}: {e}\n{source}"));
        let input_shape = sizes(&case["input_shape"]);
        let network = Network::<Tested>::new(&plan.model, &input_shape);
        let mut parameters = Parameters::new(network.declarations.clone(), 0);
        for weight in case["weights"].as_array().unwrap() {
            let weight = Weight {
                layer: weight["layer"].as_str().unwrap().to_owned(),
                name: weight["name"].as_str().unwrap().to_owned(),
                shape: sizes(&weight["shape"]),
                values: floats(&weight["values"]),
            };
            assert!(parameters.load(&weight), "{name}: {}.{}", weight.layer, weight.name);
        }
        let (targets, task) = match case["targets"].get("classes") {
            Some(classes) => {
                let classes: Vec<u32> = sizes(classes).iter().map(|&c| c as u32).collect();
                let binary = classes.iter().all(|&c| c < 2) && network.width == 1;
                let task = if binary { Task::Binary } else { Task::MultiClass };
                (Targets::Classes(classes), task)
            }
            None => {
                let values = floats(&case["targets"]["values"]);
                (Targets::Values(values), Task::Regression)
            }
        };
        Self {
            examples: Examples::new(&floats(&case["input"]), &input_shape),
            batch: case["batch"].as_u64().unwrap() as usize,
            name,
            plan,
            network,
            parameters,
            targets,
            task,
        }
    }

    fn step(&self, shards: usize) -> (Outcome, Parameters) {
        let ids: Vec<usize> = (0..self.batch).collect();
        let samples: Vec<u64> = (0..self.batch as u64).collect();
        let batch = Batch {
            examples: &self.examples,
            targets: TargetView::new(&self.targets, self.task),
            ids: &ids,
            samples: &samples,
            seed: 0,
            epoch: 0,
            loss: self.plan.training.loss,
        };
        let mut after = self.parameters.clone();
        let (outcome, moving) = compute(
            &self.network,
            &mut after,
            batch,
            (shards, &WorkerPool::new(2)),
            Look::default(),
            &Default::default(),
        );
        crate::run::step::follow(&mut after, moving);
        let mut outcome = outcome.unwrap();
        outcome.tally.loss = outcome.tally.mean_loss()
            + crate::run::step::penalize(&self.parameters, Some(&mut outcome.gradient));
        (outcome, after)
    }

    fn near(&self, what: &str, got: &[f32], want: &[f32]) {
        assert_eq!(got.len(), want.len(), "{}: length of {what}", self.name);
        for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
            let close = f64::from((g - w).abs()) <= TOLERANCE * (1.0 + f64::from(w.abs()));
            assert!(close, "{}: {what}[{i}] is {g}, recorded {w}", self.name);
        }
    }

    fn agrees(&self, case: &Value, shards: usize) {
        if case.get("loss_value").is_none() {
            return; // drops at random while training: only its inference was recorded
        }
        let (outcome, after) = self.step(shards);
        let loss = [outcome.tally.loss as f32];
        self.near("loss", &loss, &[case["loss_value"].as_f64().unwrap() as f32]);
        for gradient in case["gradients"].as_array().unwrap() {
            let [layer, name] = ["layer", "name"].map(|key| gradient[key].as_str().unwrap());
            let id = self.parameters.find(layer, name).unwrap();
            let got = &outcome.gradient[self.parameters.range(id)];
            self.near(&format!("gradient of {layer}.{name}"), got, &floats(&gradient["values"]));
        }
        for moved in case["moving"].as_array().into_iter().flatten() {
            let [layer, name] = ["layer", "name"].map(|key| moved[key].as_str().unwrap());
            let id = after.find(layer, name).unwrap();
            self.near(name, &after.values[after.range(id)], &floats(&moved["values"]));
        }
    }

    fn outputs_agree(&self, case: &Value) {
        let device = Default::default();
        let uploaded = self.parameters.upload::<Tested>(&device);
        let ids: Vec<usize> = (0..self.batch).collect();
        let key = if case.get("eval_output").is_some() { "eval_output" } else { "output" };
        let output = infer(&self.network, &uploaded, &self.examples, &ids, &device);
        self.near(key, &output.to_vec(), &floats(&case[key]));
    }
}

#[test]
fn layers_agree_with_recorded_values() {
    let cases = cases("layers");
    assert!(cases.len() > 100);
    for case in &cases {
        let run = Case::new(case);
        run.outputs_agree(case);
        run.agrees(case, 1);
    }
}

#[test]
fn masked_padding_changes_nothing() {
    // Two samples of three steps, and the same with padding at different places.
    let plain = [[0.5, -0.2, 0.9, 0.0, 0.0, 0.7], [0.1, 0.4, -0.8, 0.3, 0.6, -0.5]];
    let pad = [-1.0, -1.0];
    let steps = |i: usize| -> Vec<&[f64]> { plain[i].chunks(2).collect() };
    let [a, b] = [steps(0), steps(1)];
    let padded = [
        [&pad, a[0], &pad, a[1], a[2], &pad].concat(),
        [b[0], b[1], b[2], &pad, &pad, &pad].concat(),
    ];
    let step = |model: &[Value], input: Vec<f64>| {
        let case = Case::new(&serde_json::json!({
            "name": "masked",
            "model": model,
            "loss": "mse",
            "input_shape": [input.len() / 4, 2],
            "input": input,
            "weights": [],
            "targets": { "values": [0.3, -0.6] },
            "batch": 2,
        }));
        (case.step(2).0, case)
    };
    for cell in ["simple_rnn", "lstm", "gru"] {
        for (sequences, bidirectional) in [(false, false), (false, true), (true, true)] {
            let masking = serde_json::json!({ "layer": "masking", "mask_value": -1.0 });
            let dense = serde_json::json!({ "layer": "dense", "units": 1 });
            let recurrent = |return_sequences: bool| {
                serde_json::json!({
                    "layer": cell,
                    "units": 3,
                    "bidirectional": bidirectional,
                    "return_sequences": return_sequences,
                })
            };
            let mut model = vec![masking, recurrent(sequences)];
            model.extend(sequences.then(|| recurrent(false)));
            model.push(dense);
            let (want, _) = step(&model[1..], plain.concat());
            let (got, case) = step(&model, padded.concat());
            case.near(cell, &[got.tally.loss as f32], &[want.tally.loss as f32]);
            case.near(cell, &got.gradient, &want.gradient);
            let unmasked = step(&model[1..], padded.concat()).0;
            assert_ne!(unmasked.tally.loss, want.tally.loss, "padding matters without a mask");
        }
    }
}

#[test]
fn shards_do_not_change_what_is_computed() {
    for case in &cases("layers") {
        let run = Case::new(case);
        run.agrees(case, 2);
        run.agrees(case, 3);
    }
}

#[test]
fn losses_agree_with_recorded_values() {
    let cases = cases("losses");
    assert!(cases.len() > 30);
    for case in &cases {
        let run = Case::new(case);
        run.outputs_agree(case);
        run.agrees(case, 1);
    }
}

#[test]
fn optimizers_agree_with_recorded_values() {
    let cases = cases("optimizers");
    assert!(cases.len() > 30);
    for case in &cases {
        let mut run = Case::new(case);
        let training = run.plan.training.clone();
        let learned = run.parameters.learned();
        let mut updater = Updater::new(training.optimizer, learned);
        let steps = case["steps"].as_u64().unwrap();
        for step in 0..steps {
            let i = step as usize;
            let (mut outcome, _) = run.step(1);
            run.near("loss", &[outcome.tally.loss as f32], &[floats(&case["losses"])[i]]);
            let rate =
                learning_rate(training.optimizer.learning_rate, &training.schedule, step, steps);
            run.near("rate", &[rate as f32], &[floats(&case["learning_rates"])[i]]);
            crate::run::step::clip(&updater, &run.parameters, &mut outcome.gradient);
            updater.update(
                &mut run.parameters.values[..learned],
                &outcome.gradient,
                rate,
                step + 1,
            );
            let Some(after) = case["after"].get(i).and_then(Value::as_array) else {
                continue;
            };
            for (weight, want) in case["weights"].as_array().unwrap().iter().zip(after) {
                let [layer, name] = ["layer", "name"].map(|key| weight[key].as_str().unwrap());
                let id = run.parameters.find(layer, name).unwrap();
                let got = run.parameters.values[run.parameters.range(id)].to_vec();
                run.near(&format!("{layer}.{name} after step {}", step + 1), &got, &floats(want));
            }
        }
    }
}

/// Compares gradients with finite differences where PyTorch has no such module.
#[test]
fn layers_on_images_and_more_dimensions_have_the_gradients_of_their_slopes() {
    for (model, input_shape) in [
        (
            r#"[{"layer":"dense","units":3,"activation":"tanh"},{"layer":"flatten"},{"layer":"dense","units":2}]"#,
            "[3,2,2]",
        ),
        (
            r#"[{"layer":"dropout","rate":0.0},{"layer":"dense","units":3,"activation":"softmax"},
                {"layer":"dense","units":2},{"layer":"global_average_pool"}]"#,
            "[2,3,2]",
        ),
        (
            r#"[{"layer":"conv2d","filters":3,"kernel_size":2},{"layer":"layer_norm"},
                {"layer":"flatten"},{"layer":"dense","units":2}]"#,
            "[3,3,2]",
        ),
        (
            r#"[{"layer":"dense","units":16},{"layer":"reshape","target_shape":[2,2,1,4]},
                {"layer":"group_norm","groups":2},{"layer":"flatten"},{"layer":"dense","units":2}]"#,
            "[3]",
        ),
        (
            r#"[{"layer":"reshape","target_shape":[2,3,2]},{"layer":"conv2d","filters":2,"kernel_size":2},
                {"layer":"reshape","target_shape":[-1]},{"layer":"dense","units":2}]"#,
            "[12]",
        ),
    ] {
        let model: Value = serde_json::from_str(model).unwrap();
        let input_shape: Value = serde_json::from_str(input_shape).unwrap();
        let width: usize = sizes(&input_shape).iter().product();
        let batch = 3;
        let values = |n: usize, salt: usize| -> Vec<f64> {
            (0..n).map(|i| ((i * 31 + salt * 17) % 23) as f64 * 0.1 - 1.1).collect()
        };
        let case = serde_json::json!({
            "name": model.to_string(), "model": model, "loss": "mse", "input_shape": input_shape,
            "batch": batch, "input": values(batch * width, 1), "weights": [],
            "targets": { "values": values(batch * 2, 2), "width": 2 },
        });
        let mut run = Case::new(&case);
        let gradient = run.step(2).0.gradient;
        for (i, &got) in gradient.iter().enumerate() {
            let step = 1e-2;
            let at = run.parameters.values[i];
            let mut loss = |value: f32| {
                run.parameters.values[i] = value;
                run.step(1).0.tally.loss
            };
            let slope = (loss(at + step) - loss(at - step)) / f64::from(2.0 * step);
            loss(at);
            let got = f64::from(got);
            assert!(
                (got - slope).abs() < 5e-3 * (1.0 + slope.abs()),
                "{}: parameter {i}: {got}, slope {slope}",
                run.name
            );
        }
    }
}

#[test]
fn keras_files_give_the_outputs_that_keras_gave() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../surefoot-plan/tests/keras/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| matches!(path.extension().and_then(|e| e.to_str()), Some("h5" | "keras")))
        .collect();
    paths.sort();
    let mut compared = 0;
    for path in paths {
        let Ok(text) = std::fs::read_to_string(path.with_extension("json")) else {
            continue; // a file that is there to be refused
        };
        let want: Value = serde_json::from_str(&text).unwrap();
        let model = surefoot_plan::keras::load(&path).unwrap();
        let mut input_shape = sizes(&want["input_shape"]);
        let samples = input_shape.remove(0);
        let network = Network::<Tested>::new(&model.layers, &input_shape);
        let mut parameters = Parameters::new(network.declarations.clone(), 0);
        for weight in &model.weights {
            assert!(
                parameters.load(weight),
                "{}: {}.{}",
                path.display(),
                weight.layer,
                weight.name
            );
        }
        let device = Default::default();
        let uploaded = parameters.upload::<Tested>(&device);
        let examples = Examples::new(&floats(&want["input"]), &input_shape);
        let ids: Vec<usize> = (0..samples).collect();
        let output = infer(&network, &uploaded, &examples, &ids, &device).to_vec();
        let recorded = floats(&want["output"]);
        assert_eq!(output.len(), recorded.len(), "{}", path.display());
        for (got, want) in output.iter().zip(&recorded) {
            assert!((got - want).abs() <= 1e-5, "{}: {got}, Keras {want}", path.display());
        }
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} files were compared");
}
