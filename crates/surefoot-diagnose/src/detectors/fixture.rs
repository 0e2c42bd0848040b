//! Synthetic runs for the tests of detectors.

use crate::detector::Detector;
use crate::diagnosis::Diagnosis;
use crate::facts::{Facts, TaskKind};
use crate::finding::Finding;
use crate::layer::{Activation, LayerKind};
use crate::observation::{Evaluation, LayerInfo, LayerObservation, Observation, Split};
use crate::thresholds::Thresholds;
use surefoot_stats::Summary;

/// Three dense ReLU layers and a sigmoid, two hundred steps on two classes of equal size.
pub(crate) fn facts() -> Facts {
    let layer = |name: &str, units: usize, activation: Activation| LayerInfo {
        name: name.to_owned(),
        kind: LayerKind::Dense,
        parameters: 64,
        units: Some(units),
        activation: Some(activation),
        output_shape: vec![units],
        frozen: false,
    };
    Facts {
        layers: vec![
            layer("dense_1", 16, Activation::Relu),
            layer("dense_2", 16, Activation::Relu),
            layer("dense_3", 16, Activation::Relu),
            layer("dense_4", 1, Activation::Sigmoid),
        ],
        task: Some(TaskKind::Binary),
        loss: Some("binary_crossentropy".to_owned()),
        classes: Some(2),
        batch_size: Some(32),
        steps_per_epoch: Some(20),
        epochs: Some(10),
        chance: Some(0.5),
        baseline_loss: Some(std::f64::consts::LN_2),
        ..Facts::default()
    }
}

/// Replaces the output activation.
pub(crate) fn with_output(mut facts: Facts, activation: Activation) -> Facts {
    if let Some(last) = facts.layers.last_mut() {
        last.activation = Some(activation);
    }
    facts
}

/// A tensor of 64 values with that norm.
pub(crate) fn gradient(norm: f64) -> Summary {
    Summary { count: 64, l2: norm, ..Summary::default() }
}

/// A learning curve with an accuracy and without a baseline, as in the log of another program.
pub(crate) fn curve(steps: u64, change: impl Fn(u64, &mut Observation)) -> Course {
    let facts = Facts {
        metric: Some("accuracy".to_owned()),
        steps_per_epoch: Some(1),
        epochs: Some(steps),
        ..Facts::default()
    };
    let steps = (1..=steps).map(|step| {
        let mut seen = Observation::new(step, 1.0).with_epoch(step);
        change(step, &mut seen);
        seen
    });
    Course { steps: steps.collect(), evaluations: Vec::new(), facts }
}

/// Observations of a run.
#[derive(Clone)]
pub(crate) struct Course {
    facts: Facts,
    steps: Vec<Observation>,
    evaluations: Vec<Evaluation>,
}

impl Course {
    /// A healthy run that learns nothing yet; see [`Course::skill`].
    pub(crate) fn new(facts: Facts) -> Course {
        let steps = facts.total_steps().unwrap_or(200);
        Course::of_length(facts, steps)
    }

    /// The same with this number of steps.
    pub(crate) fn of_length(facts: Facts, steps: u64) -> Course {
        let layer = LayerObservation {
            gradient: Some(gradient(0.1)),
            weight: Some(gradient(4.0)),
            output: Some(gradient(1.0)),
            dead_units: Some(0.0),
            update_ratio: Some(0.002),
            saturated: None,
        };
        let steps = (1..=steps).map(|step| Observation {
            step,
            epoch: (step - 1) / 20 + 1,
            loss: 0.0,
            metric: None,
            mae: None,
            learning_rate: Some(0.001),
            top_class_share: Some(0.5),
            gradient_norm: None,
            layers: vec![layer; facts.layers.len()],
            input: Some(Summary { count: 64, variance: 1.0, ..Summary::default() }),
        });
        Course { steps: steps.collect(), evaluations: Vec::new(), facts }
    }

    /// The same with a validation after every step.
    pub(crate) fn with_validation(
        &self,
        loss: impl Fn(u64) -> f64,
        metric: impl Fn(u64) -> Option<f64>,
    ) -> Course {
        let evaluations = self.steps.iter().map(|seen| Evaluation {
            epoch: seen.epoch,
            step: seen.step,
            split: Split::Validation,
            loss: loss(seen.step),
            metric: metric(seen.step),
        });
        Course { evaluations: evaluations.collect(), ..self.clone() }
    }

    /// The facts.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The facts, to change them.
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// Sets the skill as a function of the progress from 0 to 1.
    pub(crate) fn skill(mut self, skill: impl Fn(f64) -> f64) -> Course {
        let total = self.steps.len() as f64;
        for seen in &mut self.steps {
            let skill = skill(seen.step as f64 / total).min(1.0);
            seen.loss = (1.0 - skill) * std::f64::consts::LN_2;
            seen.metric = Some((0.5 + 0.5 * skill).clamp(0.0, 1.0));
        }
        self
    }

    /// Sets the mean and standard deviation of the input.
    pub(crate) fn input(mut self, mean: f64, deviation: f64) -> Course {
        for seen in &mut self.steps {
            if let Some(input) = &mut seen.input {
                input.mean = mean;
                input.variance = deviation * deviation;
            }
        }
        self
    }

    /// Changes every step, by its number.
    pub(crate) fn change(&mut self, change: impl Fn(u64, &mut Observation)) {
        for seen in &mut self.steps {
            change(seen.step, seen);
        }
    }

    /// The observations.
    pub(crate) fn steps(&self) -> &[Observation] {
        &self.steps
    }

    /// First finding of `detector`.
    pub(crate) fn run(&self, detector: impl Detector + 'static) -> Option<Finding> {
        self.run_all(vec![Box::new(detector)]).into_iter().next()
    }

    /// Findings of `detectors`, in order.
    pub(crate) fn run_all(&self, detectors: Vec<Box<dyn Detector>>) -> Vec<Finding> {
        self.run_with(Thresholds::default(), detectors)
    }

    /// Findings of `detectors` with these thresholds, in order.
    pub(crate) fn run_with(
        &self,
        thresholds: Thresholds,
        detectors: Vec<Box<dyn Detector>>,
    ) -> Vec<Finding> {
        let mut diagnosis = Diagnosis::with(self.facts.clone(), thresholds, detectors);
        for seen in &self.steps {
            diagnosis.observe(seen);
            let after = self.evaluations.iter().filter(|evaluation| evaluation.step == seen.step);
            for evaluation in after {
                diagnosis.evaluate(evaluation);
            }
        }
        diagnosis.finish();
        diagnosis.findings().to_vec()
    }
}
