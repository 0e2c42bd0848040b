//! The overview of a run before it starts: data, layers and schedule.

use super::facts::{facts, table};
use super::number::{bytes, counted, grouped, interval};
use serde::Serialize;
use surefoot_data::Dataset;
use surefoot_plan::{LayerShape, Plan, Task};
use surefoot_train::{Device, MemoryNeeds, Outline};

/// The overview of a plan with its data.
#[derive(Debug)]
pub(crate) struct Overview<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) data: &'a Dataset,
    pub(crate) shapes: &'a [LayerShape],
    pub(crate) outline: &'a Outline,
    pub(crate) memory: MemoryNeeds,
    pub(crate) device: Device,
    pub(crate) workers: usize,
}

/// An [`Overview`] for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Facts<'a> {
    task: &'static str,
    samples: Samples,
    input_shape: &'a [usize],
    layers: Vec<Layer<'a>>,
    parameters: u64,
    memory: Memory,
    seed: u64,
    epochs: u64,
    steps_per_epoch: u64,
    batch_size: usize,
    shards: usize,
    observe_every: u64,
    quartiles_every: u64,
    metric: &'static str,
    device: String,
    workers: usize,
}

/// Estimated memory in bytes.
#[derive(Debug, Serialize)]
struct Memory {
    data: u64,
    model: u64,
    activations: u64,
    total: u64,
}

#[derive(Debug, Serialize)]
struct Samples {
    train: usize,
    validation: usize,
    test: usize,
}

#[derive(Debug, Serialize)]
struct Layer<'a> {
    name: &'a str,
    kind: &'static str,
    output_shape: &'a [usize],
    parameters: usize,
}

impl Overview<'_> {
    /// For programs.
    pub(crate) fn facts(&self) -> Facts<'_> {
        let Self { plan, data, outline, .. } = *self;
        let layers = self.shapes.iter().map(|shape| Layer {
            name: &shape.name,
            kind: shape.kind,
            output_shape: &shape.output,
            parameters: shape.parameters,
        });
        Facts {
            task: data.task.name(),
            samples: Samples {
                train: data.train.len,
                validation: data.validation.len,
                test: data.test.len,
            },
            input_shape: &data.input_shape,
            layers: layers.collect(),
            parameters: outline.parameters,
            memory: Memory {
                data: self.memory.data,
                model: self.memory.model,
                activations: self.memory.activations,
                total: self.memory.total(),
            },
            seed: plan.seed,
            epochs: plan.training.epochs,
            steps_per_epoch: outline.steps_per_epoch,
            batch_size: plan.training.batch_size,
            shards: outline.shards,
            observe_every: outline.schedule.every.unwrap_or(0),
            quartiles_every: outline.schedule.quartiles.unwrap_or(0),
            metric: outline.metric,
            device: self.device.to_string(),
            workers: self.workers,
        }
    }

    /// For people: the model as a table, then the rest.
    pub(crate) fn text(&self) -> String {
        let Self { plan, data, outline, .. } = *self;
        let rows: Vec<[String; 4]> = self.shapes.iter().map(row).collect();
        let model = table(["layer", "kind", "output", "parameters"], &rows);
        let mut parts = vec![format!("{} to train on", counted(data.train.len as u64, "sample"))];
        for (count, purpose) in [(data.validation.len, "validate"), (data.test.len, "test")] {
            if count > 0 {
                parts.push(format!("{} to {purpose}", grouped(count as u64)));
            }
        }
        let task = match data.task {
            Task::Regression => "regression".to_owned(),
            Task::MultiLabel => format!("{} labels", data.classes),
            Task::Binary | Task::MultiClass => format!("{} classes", data.classes),
        };
        let steps = outline.steps_per_epoch;
        let lines = [
            ("data", format!("{task}, {}", parts.join(", "))),
            ("parameters", grouped(outline.parameters)),
            (
                "memory",
                format!(
                    "about {}: data {}, model and optimizer {}, activations of a batch {}",
                    bytes(self.memory.total()),
                    bytes(self.memory.data),
                    bytes(self.memory.model),
                    bytes(self.memory.activations),
                ),
            ),
            (
                "steps",
                format!(
                    "{} in {} of {}, batches of {} in {}",
                    grouped(steps.saturating_mul(plan.training.epochs)),
                    counted(plan.training.epochs, "epoch"),
                    grouped(steps),
                    grouped(plan.training.batch_size as u64),
                    counted(outline.shards as u64, "shard"),
                ),
            ),
            (
                "observed",
                format!(
                    "{}, with quartiles {}",
                    interval(outline.schedule.every),
                    interval(outline.schedule.quartiles)
                ),
            ),
            ("device", format!("{}, {}", self.device, counted(self.workers as u64, "worker"))),
        ];
        let lines = lines.map(|(name, value)| (name.to_owned(), value));
        format!("{model}\n\n{}\n", facts(&lines))
    }
}

/// The row of a layer; layers inside a residual block are indented.
fn row(shape: &LayerShape) -> [String; 4] {
    let depth = shape.path.len().saturating_sub(1);
    let name = shape.name.rsplit('/').next().unwrap_or(&shape.name);
    let output: Vec<String> = shape.output.iter().map(usize::to_string).collect();
    [
        format!("{:1$}{name}", "", 2 * depth),
        shape.kind.to_owned(),
        format!("[{}]", output.join(", ")),
        match shape.parameters {
            0 => "-".to_owned(),
            count => grouped(count as u64),
        },
    ]
}
