//! Faults that are injected into healthy plans.

use crate::dataset::DatasetKind;
use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use surefoot_diagnose::Problem;
use surefoot_plan::{
    Activation, Algorithm, Decay, Initializer, Layer, Loss, Optimizer, Plan, Schedule, walk_mut,
};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Every hidden activation is a sigmoid, without normalization.
    SigmoidsEverywhere,
    /// All initial weights are tiny, without normalization.
    TinyInitialWeights,
    /// All initial weights are huge, without normalization.
    HugeInitialWeights,
    /// Plain SGD with a rate far too high.
    ExplodingRate,
    /// ReLUs that start far below zero.
    NegativeBiases,
    /// ReLUs killed by a rate far too high.
    KillingRate,
    /// A rate too high to settle.
    RestlessRate,
    /// Batches of one or two samples with high momentum.
    NervousBatches,
    /// A rate far too low.
    LowRate,
    /// An optimizer with tiny updates.
    SluggishOptimizer,
    /// A rate that decays to zero at once.
    EarlyDecay,
    /// A ReLU as output.
    ReluOutput,
    /// An output activation that does not match the task.
    UnfitOutput,
    /// A loss for another task.
    ForeignLoss,
    /// Unscaled inputs.
    UnscaledInputs,
    /// Inputs far from zero.
    ShiftedInputs,
    /// A few extreme outliers.
    Outliers,
}

/// Degree of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Degree {
    /// Slightly wrong settings.
    Mild,
    /// Completely wrong settings.
    Severe,
}

/// Corruption of the features.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corruption {
    /// Factor of every value.
    pub factor: f64,
    /// Offset of every value.
    pub offset: f64,
    /// Share of values that are multiplied by 10,000.
    pub outliers: f64,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 17] = [
        Fault::SigmoidsEverywhere,
        Fault::HugeInitialWeights,
        Fault::NegativeBiases,
        Fault::RestlessRate,
        Fault::LowRate,
        Fault::ReluOutput,
        Fault::ForeignLoss,
        Fault::UnscaledInputs,
        Fault::TinyInitialWeights,
        Fault::ExplodingRate,
        Fault::KillingRate,
        Fault::NervousBatches,
        Fault::SluggishOptimizer,
        Fault::UnfitOutput,
        Fault::ShiftedInputs,
        Fault::EarlyDecay,
        Fault::Outliers,
    ];

    /// Its name in tables and filters.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    /// The problem that it causes.
    pub fn problem(self) -> Problem {
        match self {
            Fault::SigmoidsEverywhere | Fault::TinyInitialWeights => Problem::VANISHING_GRADIENT,
            Fault::HugeInitialWeights | Fault::ExplodingRate => Problem::EXPLODING_GRADIENT,
            Fault::NegativeBiases | Fault::KillingRate => Problem::DYING_RELU,
            Fault::RestlessRate | Fault::NervousBatches => Problem::OSCILLATING_LOSS,
            Fault::LowRate | Fault::SluggishOptimizer | Fault::EarlyDecay => {
                Problem::SLOW_CONVERGENCE
            }
            Fault::ReluOutput | Fault::UnfitOutput => Problem::IMPROPER_OUTPUT_ACTIVATION,
            Fault::ForeignLoss => Problem::IMPROPER_LOSS,
            Fault::UnscaledInputs | Fault::ShiftedInputs | Fault::Outliers => {
                Problem::ABNORMAL_DATA
            }
        }
    }

    /// Returns true if `problem` is a right diagnosis.
    ///
    /// A rate that is too high shows as dead units in a ReLU network and as an oscillating or exploding
    /// loss elsewhere; large weights explode, or saturate bounded activations so that gradients
    /// vanish.
    pub fn is(self, problem: &str) -> bool {
        let also: &[Problem] = match self {
            Fault::HugeInitialWeights => {
                &[Problem::VANISHING_GRADIENT, Problem::DYING_RELU, Problem::OSCILLATING_LOSS]
            }
            Fault::ExplodingRate | Fault::KillingRate | Fault::RestlessRate => {
                &[Problem::EXPLODING_GRADIENT, Problem::DYING_RELU, Problem::OSCILLATING_LOSS]
            }
            Fault::NervousBatches => &[Problem::EXPLODING_GRADIENT, Problem::DYING_RELU],
            Fault::NegativeBiases => &[Problem::VANISHING_GRADIENT],
            Fault::TinyInitialWeights | Fault::SigmoidsEverywhere => &[Problem::SLOW_CONVERGENCE],
            // A dead ReLU output is a dying ReLU, too.
            Fault::ReluOutput => &[Problem::DYING_RELU],
            _ => &[],
        };
        problem == self.problem().id() || also.iter().any(|other| other.id() == problem)
    }

    /// Prepares a healthy plan for the fault: dying ReLUs need ReLU activations in dense and
    /// convolutional layers.
    pub(crate) fn suit(self, plan: &mut Plan) {
        if self.problem() != Problem::DYING_RELU {
            return;
        }
        each_hidden(plan, |layer| {
            if is_plain(layer) {
                set_initializer(layer, Initializer::HeNormal);
            }
            if (is_plain(layer) || matches!(layer, Layer::Activation(_)))
                && let Some(activation) = layer.activation_mut()
                && *activation != Activation::Linear
            {
                *activation = Activation::Relu;
            }
        });
    }

    /// Injects the fault into `plan`; `None` if it does not apply. Returns the corruption of its data.
    pub(crate) fn inject(
        self,
        plan: &mut Plan,
        dataset: DatasetKind,
        degree: Degree,
        rng: &Rng,
    ) -> Option<Option<Corruption>> {
        let severe = degree == Degree::Severe;
        let by = |mild: f64, much: f64| if severe { much } else { mild };
        match self {
            Fault::SigmoidsEverywhere => {
                if !is_deep(plan) {
                    return None;
                }
                unprotect(plan);
                each_hidden(plan, |layer| {
                    if !layer.is_recurrent()
                        && let Some(activation) = layer.activation_mut()
                        && *activation != Activation::Linear
                    {
                        *activation = Activation::Sigmoid;
                    }
                    set_initializer(layer, Initializer::GlorotUniform);
                });
                if severe {
                    each_hidden(plan, |layer| {
                        set_initializer(
                            layer,
                            Initializer::RandomNormal { mean: 0.0, stddev: 0.1 },
                        );
                    });
                }
            }
            Fault::TinyInitialWeights => {
                if !is_deep(plan) {
                    return None;
                }
                unprotect(plan);
                let stddev = by(0.05, 0.005);
                each_hidden(plan, |layer| {
                    set_initializer(layer, Initializer::RandomNormal { mean: 0.0, stddev });
                });
            }
            Fault::HugeInitialWeights => {
                unprotect(plan);
                let stddev = by(1.5, 5.0);
                each_hidden(plan, |layer| {
                    let normal = Initializer::RandomNormal { mean: 0.0, stddev };
                    set_initializer(layer, normal);
                    if let Some(initializer) = layer.recurrent_initializer_mut() {
                        *initializer = normal;
                    }
                });
            }
            Fault::ExplodingRate => {
                plan.training.optimizer = Optimizer::new(sgd(0.0), by(3.0, 100.0));
                plan.training.schedule = Schedule::default();
                unprotect(plan);
            }
            Fault::NegativeBiases => {
                if !has_relu(plan) {
                    return None;
                }
                unprotect(plan);
                let value = -by(2.0, 10.0);
                each_hidden(plan, |layer| {
                    if is_plain(layer)
                        && let Some(bias) = layer.bias_initializer_mut()
                    {
                        *bias = Initializer::Constant { value };
                    }
                });
            }
            Fault::KillingRate => {
                if !has_relu(plan) {
                    return None;
                }
                plan.training.optimizer =
                    Optimizer { learning_rate: by(0.3, 2.0), ..Optimizer::adam() };
                plan.training.schedule = Schedule::default();
                unprotect(plan);
            }
            Fault::RestlessRate => {
                plan.training.optimizer =
                    Optimizer { learning_rate: by(0.1, 0.5), ..Optimizer::adam() };
                plan.training.schedule = Schedule::default();
            }
            Fault::NervousBatches => {
                plan.training.batch_size = if severe { 1 } else { 2 };
                plan.training.epochs = plan.training.epochs.div_ceil(5);
                plan.training.optimizer = Optimizer::new(sgd(0.95), by(0.05, 0.2));
                plan.training.schedule = Schedule::default();
            }
            Fault::LowRate => {
                plan.training.optimizer.learning_rate *= by(1e-3, 1e-5);
            }
            Fault::SluggishOptimizer => {
                plan.training.optimizer =
                    if severe { Optimizer::adadelta() } else { Optimizer::new(sgd(0.0), 1e-4) };
            }
            Fault::EarlyDecay => {
                plan.training.schedule = Schedule {
                    decay: Decay::Exponential {
                        decay_steps: by(10.0, 3.0) as u64,
                        decay_rate: 0.5,
                    },
                    warmup_steps: 0,
                };
            }
            Fault::ReluOutput => set_output(plan, Activation::Relu)?,
            Fault::UnfitOutput => {
                let unfit = if dataset.is_regression() {
                    rng.pick(&[Activation::Sigmoid, Activation::Tanh])
                } else if plan.training.loss == (Loss::BinaryCrossentropy { from_logits: false }) {
                    rng.pick(&[Activation::Tanh, Activation::Linear, Activation::Softmax])
                } else {
                    rng.pick(&[Activation::Linear, Activation::Tanh])
                };
                set_output(plan, unfit)?;
            }
            Fault::ForeignLoss => {
                plan.training.loss = if dataset.is_regression() {
                    rng.pick(&[Loss::Hinge, Loss::Poisson])
                } else if plan.training.loss == (Loss::BinaryCrossentropy { from_logits: false }) {
                    rng.pick(&[Loss::Poisson, Loss::KlDivergence, Loss::Mae, Loss::Hinge])
                } else {
                    rng.pick(&[Loss::Mae, Loss::Hinge, Loss::Mse])
                };
            }
            Fault::UnscaledInputs | Fault::ShiftedInputs | Fault::Outliers => {
                if !dataset.has_amounts() {
                    return None;
                }
                plan.data.scale = surefoot_plan::Scale::None;
                unprotect(plan);
                return Some(Some(match self {
                    Fault::UnscaledInputs => {
                        Corruption { factor: by(255.0, 5000.0), offset: 0.0, outliers: 0.0 }
                    }
                    Fault::ShiftedInputs => {
                        Corruption { factor: 1.0, offset: by(100.0, 2000.0), outliers: 0.0 }
                    }
                    _ => Corruption { factor: 1.0, offset: 0.0, outliers: by(0.01, 0.05) },
                }));
            }
        }
        Some(None)
    }
}

fn sgd(momentum: f64) -> Algorithm {
    Algorithm::Sgd { momentum, nesterov: false }
}

fn set_output(plan: &mut Plan, activation: Activation) -> Option<()> {
    let position = surefoot_plan::output_position(&plan.model)?;
    *plan.model[position].activation_mut()? = activation;
    Some(())
}

fn set_initializer(layer: &mut Layer, to: Initializer) {
    if let Some(initializer) = layer.kernel_initializer_mut() {
        *initializer = to;
    }
}

fn each_hidden(plan: &mut Plan, mut change: impl FnMut(&mut Layer)) {
    walk_mut(&mut plan.model, &mut |layer, output| {
        if !output {
            change(layer);
        }
    });
}

/// Removes normalization, shortcuts and clipping, which would hide the fault.
fn unprotect(plan: &mut Plan) {
    fn bare(layers: Vec<Layer>) -> Vec<Layer> {
        layers
            .into_iter()
            .flat_map(|layer| match layer {
                Layer::Residual(residual) => bare(residual.layers),
                layer if layer.is_norm() => Vec::new(),
                layer => vec![layer],
            })
            .collect()
    }
    plan.model = bare(std::mem::take(&mut plan.model));
    plan.training.optimizer.global_clipnorm = None;
}

fn has_relu(plan: &Plan) -> bool {
    let mut plan = plan.clone();
    let mut found = false;
    each_hidden(&mut plan, |layer| {
        found |= layer.activation() == Some(Activation::Relu);
    });
    found
}

/// Returns true if the network is deep enough for vanishing gradients.
fn is_deep(plan: &Plan) -> bool {
    let mut plan = plan.clone();
    let mut depth = 0;
    each_hidden(&mut plan, |layer| {
        depth += usize::from(is_plain(layer));
    });
    depth >= 4
}

fn is_plain(layer: &Layer) -> bool {
    matches!(layer, Layer::Dense(_) | Layer::Conv2d(_))
}
