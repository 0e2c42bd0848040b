//! Records for tests.

use surefoot_diagnose::{
    LayerInfo, LayerKind, LayerObservation, Observation, Problem, Split, Summary,
};
use surefoot_record::{
    Attempt, AttemptOutcome, AttemptState, Digest, Event, MetricSummary, RunSummary, Status,
};

/// Dense layers called `dense_1` and so on.
pub(crate) fn layers(count: usize) -> Vec<LayerInfo> {
    let layer = |i: usize| LayerInfo {
        name: format!("dense_{i}"),
        kind: LayerKind::Dense,
        parameters: 20,
        ..LayerInfo::default()
    };
    (1..=count).map(layer).collect()
}

/// A step with the gradient norms of some layers.
pub(crate) fn observation(
    step: u64,
    loss: f64,
    layers: Option<usize>,
    norm: impl Fn(usize) -> Option<f64>,
) -> Observation {
    let layer = |i| LayerObservation {
        gradient: norm(i).map(|l2| Summary { count: 20, l2, ..Summary::default() }),
        ..LayerObservation::default()
    };
    Observation::new(step, loss)
        .with_epoch(step / 40 + 1)
        .with_learning_rate(0.1)
        .with_layers((0..layers.unwrap_or(0)).map(layer).collect())
}

pub(crate) fn evaluation(epoch: u64, step: u64, split: Split, metric: Option<f64>) -> Event {
    Event::Evaluation { step, epoch, split, loss: 0.5, metric }
}

pub(crate) fn attempt(number: u32, parent: u32, remedies: &[&str], change: &str) -> Event {
    Event::Attempt(Attempt {
        step: 120,
        number,
        parent,
        problem: Problem::DYING_RELU,
        remedies: remedies.iter().map(|id| (*id).to_owned()).collect(),
        change: change.to_owned(),
        diff: " [[model]]\n-activation = \"relu\"\n+activation = \"leaky_relu\"\n".to_owned(),
        run: format!("attempts/{number:02}"),
    })
}

pub(crate) fn outcome(number: u32, state: AttemptState, metric: Option<f64>) -> Event {
    Event::Outcome(AttemptOutcome { step: 120, number, state, finding: None, metric, steps: 400 })
}

pub(crate) fn summary(status: Status) -> RunSummary {
    RunSummary {
        status,
        problems: Vec::new(),
        remedies: Vec::new(),
        failed_detectors: Vec::new(),
        metric: MetricSummary { name: "accuracy".to_owned(), before: Some(0.5), after: Some(0.9) },
        steps: 1600,
        seconds: 12.0,
        digest: Digest(0xab),
        run: "runs/circles-001".to_owned(),
    }
}
