//! An ordinary Burn training loop, diagnosed by `surefoot-diagnose`.
//!
//! The model is a deep sigmoid network that cannot learn. The ten lines below the comments "Diagnosis" report the
//! loss and gradients of every step and print the problem; all others are a plain Burn program.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Distribution, Tensor, activation::sigmoid};
// Diagnosis:
use surefoot_diagnose::{
    Diagnosis, LayerInfo, LayerKind, LayerObservation, Observation, summarize,
};

const STEPS: u64 = 1_000;
const LEARNING_RATE: f64 = 0.1;

#[derive(Module, Debug)]
struct Network {
    layers: Vec<Linear>,
}

impl Network {
    fn new(device: &Device) -> Self {
        let sizes = [2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 1];
        let layers = sizes.windows(2).map(|size| LinearConfig::new(size[0], size[1]).init(device));
        Self { layers: layers.collect() }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.layers.iter().fold(x, |x, layer| sigmoid(layer.forward(x)))
    }
}

/// Points in a square; the target is 1 inside a circle and 0 outside.
fn batch(device: &Device) -> (Tensor<2>, Tensor<2>) {
    let x = Tensor::random([64, 2], Distribution::Uniform(-1.0, 1.0), device);
    let y = x.clone().powi_scalar(2).sum_dim(1).lower_elem(0.6).float();
    (x, y)
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(7);
    let mut model = Network::new(&device);
    let mut optimizer = SgdConfig::new().init();
    // Diagnosis:
    let info = |i| LayerInfo::new(format!("linear_{i}"), LayerKind::Dense);
    let layers = (1..=model.layers.len()).map(info).collect();
    let mut diagnosis = Diagnosis::builder().layers(layers).total_steps(STEPS).build();
    for step in 1..=STEPS {
        let (x, y) = batch(&device);
        let loss = (model.forward(x) - y).powi_scalar(2).mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        // Diagnosis:
        let values = |layer: &Linear| gradients.get::<2>(layer.weight.id).map(|it| it.to_data());
        let summary = |layer: &Linear| values(layer)?.as_slice::<f32>().ok().map(summarize);
        let layer = |layer| LayerObservation { gradient: summary(layer), ..Default::default() };
        let layers = model.layers.iter().map(layer).collect();
        let seen = Observation::new(step, loss.into_scalar()).with_layers(layers);
        diagnosis.observe(&seen).iter().for_each(|it| println!("step {}: {}", it.step, it.message));
        model = optimizer.step(LEARNING_RATE, model, gradients);
    }
}
