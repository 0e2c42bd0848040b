//! Plans as the subject of a repair.

use surefoot_diagnose::Activation as Kind;
use surefoot_plan::{
    Activation, ActivationLayer, Algorithm, BatchNorm, Decay, Initializer, Layer, LayerNorm, Loss,
    Missing, Optimizer, Outliers, Plan, Residual, Scale, Schedule, output_position, walk_mut,
};
use surefoot_repair::{
    Action, Decay as DecayKind, Initializers, LossKind, OptimizerKind, Outliers as OutliersKind,
    Subject,
};

/// Hidden layers that residual connections need at least.
const LEAST_RESIDUAL: usize = 4;

/// A plan that remedies change.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSubject(
    /// The plan.
    pub Plan,
);

impl Subject for PlanSubject {
    fn supports(&self, action: &Action) -> bool {
        match action {
            Action::SwapActivation(kind) | Action::SetOutputActivation(kind) => {
                activation(kind).is_some()
            }
            Action::AddBatchNorm
            | Action::AddResidual
            | Action::SetOutputUnits(_)
            | Action::Reinitialize(_)
            | Action::ClipGradient { .. }
            | Action::ClipGradientValues { .. }
            | Action::SetBatchSize(_)
            | Action::ExtendTraining { .. }
            | Action::SetLearningRate(_)
            | Action::SetDecay(_)
            | Action::SwapOptimizer { .. }
            | Action::SwapLoss { .. }
            | Action::ScaleTargets
            | Action::ImputeMissing
            | Action::NormalizeData { .. } => true,
            _ => false,
        }
    }

    fn apply(&mut self, action: &Action) -> Result<String, String> {
        let plan = &mut self.0;
        let training = &mut plan.training;
        let unsupported = || format!("a plan does not support {action:?}");
        match action {
            Action::AddBatchNorm => add_batch_norm(plan),
            Action::AddResidual => add_residual(plan),
            Action::SwapActivation(kind) => {
                swap_activations(plan, activation(kind).ok_or_else(unsupported)?)
            }
            Action::SetOutputUnits(units) => set_output_units(plan, *units),
            Action::SetOutputActivation(kind) => {
                set_output_activation(plan, activation(kind).ok_or_else(unsupported)?)
            }
            Action::Reinitialize(Initializers::Fitting) => {
                reinitialize(plan, initializer_for);
                Ok("Re-initializes the weights of every layer to fit its activation.".to_owned())
            }
            Action::Reinitialize(Initializers::Glorot) => {
                reinitialize(plan, |_| Initializer::GlorotUniform);
                Ok("Re-initializes the weights of every layer (Glorot uniform).".to_owned())
            }
            Action::ClipGradient { norm } => {
                let optimizer = &mut training.optimizer;
                let given = replaced_clipping(optimizer);
                optimizer.global_clipnorm = Some(*norm);
                Ok(format!("Clips the gradient to a norm of at most {norm}{given}."))
            }
            Action::ClipGradientValues { limit } => {
                let optimizer = &mut training.optimizer;
                let given = replaced_clipping(optimizer);
                optimizer.clipvalue = Some(*limit);
                Ok(format!("Clips every value of the gradient to [-{limit}, {limit}]{given}."))
            }
            Action::SetBatchSize(size) => {
                let given = std::mem::replace(&mut training.batch_size, *size);
                Ok(format!("Sets the batch size to {size} instead of {given}."))
            }
            Action::ExtendTraining { factor } => {
                let given = training.epochs;
                training.epochs = given.saturating_mul(*factor);
                Ok(format!("Trains for {} epochs instead of {given}.", training.epochs))
            }
            Action::SetLearningRate(rate) => {
                let given = std::mem::replace(&mut training.optimizer.learning_rate, *rate);
                Ok(format!("Sets the learning rate to {rate} instead of {given}."))
            }
            Action::SetDecay(DecayKind::Constant) => {
                let given = std::mem::take(&mut training.schedule);
                Ok(match given.warmup_steps {
                    0 => "Keeps the learning rate constant instead of letting it decay.".to_owned(),
                    steps => format!(
                        "Keeps the learning rate constant instead of letting it decay, without the \
                         warm-up of {steps} steps."
                    ),
                })
            }
            Action::SetDecay(DecayKind::Cosine) => {
                let alpha = match training.schedule.decay {
                    Decay::Cosine { alpha, .. } => alpha,
                    _ => 0.0,
                };
                training.schedule.decay = Decay::Cosine { decay_steps: None, alpha };
                Ok("Decays the learning rate along a cosine over the whole run.".to_owned())
            }
            Action::SwapOptimizer { optimizer, learning_rate } => {
                swap_optimizer(plan, *optimizer, *learning_rate).ok_or_else(unsupported)
            }
            Action::SwapLoss { loss, from_logits } => {
                let from_logits = *from_logits;
                let loss = match loss {
                    LossKind::MeanSquaredError => Loss::Mse,
                    LossKind::BinaryCrossentropy => Loss::BinaryCrossentropy { from_logits },
                    LossKind::CategoricalCrossentropy => {
                        Loss::SparseCategoricalCrossentropy { from_logits }
                    }
                    _ => return Err(unsupported()),
                };
                let given = std::mem::replace(&mut training.loss, loss);
                Ok(format!("Replaces the loss {} with {}.", given.name(), loss.name()))
            }
            Action::ScaleTargets => {
                plan.data.target_scale = Scale::Standardise;
                Ok("Standardizes the targets; predictions are converted back.".to_owned())
            }
            Action::ImputeMissing => {
                plan.data.missing = Missing::Impute;
                Ok("Replaces missing values by the mean of their feature.".to_owned())
            }
            Action::NormalizeData { outliers } => {
                normalize_data(plan, *outliers).ok_or_else(unsupported)
            }
            _ => Err(unsupported()),
        }
    }

    fn diff(&self, changed: &Self) -> String {
        self.0.diff(&changed.0)
    }
}

fn activation(kind: &Kind) -> Option<Activation> {
    Some(match kind {
        Kind::Linear => Activation::Linear,
        Kind::Relu => Activation::Relu,
        Kind::LeakyRelu => Activation::leaky_relu(),
        Kind::Elu => Activation::elu(),
        Kind::Selu => Activation::Selu,
        Kind::Tanh => Activation::Tanh,
        Kind::Sigmoid => Activation::Sigmoid,
        Kind::Softmax => Activation::Softmax,
        _ => return None,
    })
}

/// Removes the clipping of an optimizer and returns a phrase that names it.
fn replaced_clipping(optimizer: &mut Optimizer) -> String {
    let given = [
        ("clipvalue", optimizer.clipvalue.take()),
        ("clipnorm", optimizer.clipnorm.take()),
        ("global_clipnorm", optimizer.global_clipnorm.take()),
    ];
    let phrase =
        |(key, value): (&str, Option<f64>)| Some(format!(" instead of {key} = {}", value?));
    given.into_iter().filter_map(phrase).collect()
}

/// Clipping and weight decay stay; a schedule was made for another learning rate and goes.
fn swap_optimizer(plan: &mut Plan, kind: OptimizerKind, learning_rate: f64) -> Option<String> {
    let other = match kind {
        OptimizerKind::Adam => Optimizer::adam(),
        OptimizerKind::Nadam => Optimizer::nadam(),
        OptimizerKind::Momentum => {
            Optimizer::new(Algorithm::Sgd { momentum: 0.9, nesterov: true }, learning_rate)
        }
        _ => return None,
    };
    let given = plan.training.optimizer;
    plan.training.optimizer =
        Optimizer { algorithm: other.algorithm, learning_rate, ..plan.training.optimizer };
    let schedule = std::mem::take(&mut plan.training.schedule);
    let (name, before) = (other.algorithm.name(), given.algorithm.name());
    let rate = given.learning_rate;
    let mut message = format!(
        "Trains with {name} at a learning rate of {learning_rate} instead of {before} at {rate}."
    );
    if schedule != Schedule::default() {
        message.push_str(" Removes the learning rate schedule.");
    }
    Some(message)
}

fn normalize_data(plan: &mut Plan, kind: OutliersKind) -> Option<String> {
    let data = &mut plan.data;
    let (outliers, change) = match kind {
        OutliersKind::Keep => (Outliers::Keep, "Standardizes"),
        OutliersKind::Clip => (Outliers::Clip, "Clips outliers and standardizes"),
        OutliersKind::Drop => {
            (Outliers::Drop, "Drops training samples with outliers and standardizes")
        }
        _ => return None,
    };
    data.scale = Scale::Standardise;
    let unclips = std::mem::replace(&mut data.outliers, outliers) == Outliers::Clip;
    let keeps =
        if unclips && outliers == Outliers::Keep { " without clipping outliers" } else { "" };
    Some(format!("{change} every feature{keeps}."))
}

fn swap_activations(plan: &mut Plan, activation: Activation) -> Result<String, String> {
    let mut count = 0;
    walk_mut(&mut plan.model, &mut |layer, is_output| {
        // The activation of a recurrent layer is part of its definition.
        if is_output || layer.is_recurrent() {
            return;
        }
        let Some(place) = layer.activation_mut().filter(|a| **a != Activation::Linear) else {
            return;
        };
        if *place == Activation::Softmax || *place == activation {
            return;
        }
        *place = activation;
        count += 1;
        if let Some(initializer) = layer.kernel_initializer_mut() {
            *initializer = initializer_for(activation);
        }
        if let Some(initializer) = layer.bias_initializer_mut() {
            *initializer = Initializer::Zeros;
        }
    });
    if count == 0 {
        return Err("the model has no other hidden activation".to_owned());
    }
    // A separate activation layer is fed by a linear layer before it.
    walk_mut(&mut plan.model, &mut |layer, output| {
        let linear = matches!(layer, Layer::Dense(_) | Layer::Conv1d(_) | Layer::Conv2d(_))
            && layer.activation() == Some(Activation::Linear);
        if linear
            && !output
            && let Some(initializer) = layer.kernel_initializer_mut()
        {
            *initializer = initializer_for(activation);
        }
    });
    Ok(format!(
        "Replaces {count} hidden activations with {} and re-initializes their weights.",
        activation.name()
    ))
}

fn set_output_activation(plan: &mut Plan, activation: Activation) -> Result<String, String> {
    let position = output_position(&plan.model).ok_or("the model has no output layer")?;
    let after = plan.model.iter().rposition(|layer| matches!(layer, Layer::Activation(_)));
    let output = plan.model[position].activation_mut();
    let place = match after.filter(|&after| after > position) {
        None => output,
        // A separate activation layer is the activation of the output.
        Some(after) => {
            if let Some(own) = output {
                *own = Activation::Linear;
            }
            plan.model[after].activation_mut()
        }
    };
    *place.ok_or("the output layer has no activation of its own")? = activation;
    Ok(format!("Sets the output activation to {}, which fits the task.", activation.name()))
}

fn set_output_units(plan: &mut Plan, units: usize) -> Result<String, String> {
    let position = output_position(&plan.model).ok_or("the model has no output layer")?;
    let layer = &mut plan.model[position];
    let kind = layer.kind();
    let place = match layer {
        Layer::Dense(dense) => &mut dense.units,
        Layer::Conv1d(conv) => &mut conv.filters,
        Layer::Conv2d(conv) => &mut conv.filters,
        _ => return Err(format!("the number of outputs of a {kind} layer cannot be changed")),
    };
    let given = std::mem::replace(place, units);
    Ok(format!("Gives the output layer {units} units instead of {given}, one per class."))
}

/// Weights re-initialized for `activation`.
fn initializer_for(activation: Activation) -> Initializer {
    match activation {
        Activation::Relu
        | Activation::LeakyRelu { .. }
        | Activation::Elu { .. }
        | Activation::Gelu { .. }
        | Activation::Silu
        | Activation::Softplus => Initializer::HeNormal,
        Activation::Selu => Initializer::LecunNormal,
        _ => Initializer::GlorotUniform,
    }
}

/// Sets the initializers of every layer by its activation, or the next one if it has none.
fn reinitialize(plan: &mut Plan, initializer_for: impl Fn(Activation) -> Initializer) {
    let mut activations = Vec::new();
    walk_mut(&mut plan.model, &mut |layer, _| activations.push(layer.activation()));
    let nonlinear = |i: usize| {
        let mut next = activations[i..].iter().flatten().filter(|a| **a != Activation::Linear);
        next.next().copied().unwrap_or_default()
    };
    let mut i = 0;
    walk_mut(&mut plan.model, &mut |layer, output| {
        let own = layer.activation().unwrap_or_default();
        let activation = if output || own != Activation::Linear { own } else { nonlinear(i) };
        i += 1;
        let fixed = matches!(layer, Layer::Transformer(_) | Layer::MultiHeadAttention(_))
            || layer.is_recurrent();
        if let Some(initializer) = layer.kernel_initializer_mut() {
            *initializer =
                if fixed { Initializer::GlorotUniform } else { initializer_for(activation) };
        }
        if let Some(initializer) = layer.recurrent_initializer_mut() {
            *initializer = Initializer::orthogonal();
        }
        if let Some(initializer) = layer.bias_initializer_mut() {
            *initializer = Initializer::Zeros;
        }
    });
}

fn add_batch_norm(plan: &mut Plan) -> Result<String, String> {
    let (layers, count) = normalized(std::mem::take(&mut plan.model), true);
    plan.model = layers;
    if count == 0 {
        return Err("no hidden layer has an activation that could be normalized".to_owned());
    }
    Ok(format!("Adds batch normalization before {count} hidden activations."))
}

/// The layers with normalization before every hidden activation that has none, and their number.
///
/// The moving statistics follow with a momentum of 0.9 instead of Keras's 0.99: runs that need a
/// remedy are often short, and with 0.99 the statistics of the first hundreds of steps still show in
/// the validation.
fn normalized(layers: Vec<Layer>, ends_model: bool) -> (Vec<Layer>, usize) {
    let output = ends_model.then(|| output_position(&layers)).flatten();
    let mut result: Vec<Layer> = Vec::with_capacity(layers.len() * 3);
    let mut count = 0;
    let norm = || Layer::BatchNorm(BatchNorm { momentum: 0.9, ..BatchNorm::default() });
    for (i, mut layer) in layers.into_iter().enumerate() {
        let hidden = output.is_none_or(|output| i < output);
        match &mut layer {
            Layer::Residual(residual) => {
                let (inner, more) = normalized(std::mem::take(&mut residual.layers), false);
                residual.layers = inner;
                count += more;
                if let Some(shortcut) = residual.shortcut.take() {
                    let (inner, more) = normalized(shortcut, false);
                    residual.shortcut = Some(inner);
                    count += more;
                }
                result.push(layer);
            }
            Layer::Dense(_) | Layer::Conv1d(_) | Layer::Conv2d(_) if hidden => {
                let activation = layer.activation().unwrap_or_default();
                if activation == Activation::Linear {
                    result.push(layer);
                    continue;
                }
                if let Some(place) = layer.activation_mut() {
                    *place = Activation::Linear;
                }
                result.extend([layer, norm()]);
                result.push(Layer::Activation(ActivationLayer::new(activation)));
                count += 1;
            }
            Layer::Activation(_) if hidden && !result.last().is_some_and(Layer::is_norm) => {
                result.extend([norm(), layer]);
                count += 1;
            }
            _ => result.push(layer),
        }
    }
    (result, count)
}

/// Moves every separate activation layer into the hidden layer before it.
fn fuse_activations(layers: &mut Vec<Layer>) {
    let output = output_position(layers).unwrap_or(layers.len());
    for i in (1..output).rev() {
        let Layer::Activation(separate) = &layers[i] else {
            continue;
        };
        let activation = separate.activation;
        let before = &mut layers[i - 1];
        let takes = matches!(before, Layer::Dense(_) | Layer::Conv1d(_) | Layer::Conv2d(_));
        if let Some(place) = before.activation_mut().filter(|a| takes && **a == Activation::Linear)
        {
            *place = activation;
            layers.remove(i);
        }
    }
}

/// Every dense layer as wide as the one before becomes `x + dense(activation(norm(x)))`, and the input
/// of the output layer is normalized.
fn add_residual(plan: &mut Plan) -> Result<String, String> {
    fuse_activations(&mut plan.model);
    let output = output_position(&plan.model).unwrap_or(plan.model.len());
    let mut width = None;
    let mut count = 0;
    for layer in &mut plan.model[..output] {
        let Layer::Dense(dense) = &mut *layer else {
            if layer.activation().is_none() && !matches!(layer, Layer::Dropout(_)) {
                width = None;
            }
            continue;
        };
        let wide = width.replace(dense.units) == Some(dense.units);
        if !wide || dense.activation == Activation::Linear {
            continue;
        }
        // The activation comes first, so that the sum can have either sign and does not grow with
        // every layer.
        let activation = std::mem::replace(&mut dense.activation, Activation::Linear);
        let inner = vec![
            Layer::LayerNorm(LayerNorm::default()),
            Layer::Activation(ActivationLayer::new(activation)),
            layer.clone(),
        ];
        *layer = Layer::Residual(Residual::new(inner));
        count += 1;
    }
    if count < LEAST_RESIDUAL {
        return Err("the model has too few layers of the same width in a row".to_owned());
    }
    plan.model.insert(output, Layer::LayerNorm(LayerNorm::default()));
    reinitialize(plan, initializer_for);
    Ok(format!(
        "Adds a residual connection with layer normalization around each of {count} hidden layers, \
         normalizes the input of the output layer, and re-initializes all weights."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::{Facts, Finding, Problem};
    use surefoot_plan::{Flatten, output_activation};
    use surefoot_repair::{AttemptResult, RepairConfig, RepairSearch};

    /// Two hidden sigmoids and a sigmoid, on circles.
    fn plan() -> PlanSubject {
        let text = r#"
            [data]
            source = "circles"
            [[model]]
            layer = "dense"
            units = 8
            activation = "sigmoid"
            [[model]]
            layer = "dense"
            units = 8
            activation = "sigmoid"
            [[model]]
            layer = "dense"
            units = 1
            activation = "sigmoid"
            [training]
            epochs = 10
        "#;
        PlanSubject(Plan::parse(text, "fixture").unwrap())
    }

    fn applied(mut subject: PlanSubject, action: &Action) -> Plan {
        subject.apply(action).unwrap();
        subject.0.validate().unwrap();
        subject.0
    }

    fn kinds(plan: &Plan) -> Vec<&'static str> {
        plan.model.iter().map(Layer::kind).collect()
    }

    #[test]
    fn hidden_activations_change_and_the_output_stays() {
        let changed = applied(plan(), &Action::SwapActivation(Kind::Selu));
        let Layer::Dense(first) = &changed.model[0] else { panic!("a dense layer") };
        assert_eq!(first.activation, Activation::Selu);
        assert_eq!(first.kernel_initializer, Initializer::LecunNormal);
        assert_eq!(output_activation(&changed.model), Activation::Sigmoid);
    }

    #[test]
    fn the_output_activation_is_replaced() {
        let wrong = applied(plan(), &Action::SetOutputActivation(Kind::Relu));
        let action = Action::SetOutputActivation(Kind::Sigmoid);
        assert_eq!(applied(PlanSubject(wrong), &action), plan().0);
    }

    #[test]
    fn the_output_layer_gets_other_units_and_keeps_its_activation_layer() {
        let mut subject = plan();
        let activation = Layer::Activation(ActivationLayer::new(Activation::Softmax));
        subject.0.model.push(activation.clone());
        let message = subject.apply(&Action::SetOutputUnits(3)).unwrap();
        assert_eq!(message, "Gives the output layer 3 units instead of 1, one per class.");
        let Layer::Dense(output) = &subject.0.model[2] else { panic!("a dense layer") };
        assert_eq!(output.units, 3);
        assert_eq!(subject.0.model[3], activation);
    }

    #[test]
    fn a_separate_output_activation_is_replaced_where_it_is() {
        let mut subject = plan();
        let pool = Layer::Flatten(Flatten::default());
        let activation = |it| Layer::Activation(ActivationLayer::new(it));
        subject.0.model.extend([pool.clone(), activation(Activation::Relu)]);
        subject.apply(&Action::SetOutputActivation(Kind::Softmax)).unwrap();
        let Layer::Dense(output) = &subject.0.model[2] else { panic!("a dense layer") };
        assert_eq!(output.activation, Activation::Linear);
        assert_eq!(subject.0.model[3..], [pool, activation(Activation::Softmax)]);
    }

    #[test]
    fn normalization_is_added_once_before_hidden_activations() {
        let changed = applied(plan(), &Action::AddBatchNorm);
        let block = ["dense", "batch_norm", "activation"];
        assert_eq!(kinds(&changed), [&block[..], &block[..], &["dense"]].concat());
        assert!(PlanSubject(changed).apply(&Action::AddBatchNorm).is_err());
    }

    #[test]
    fn weights_fit_the_activation_that_they_feed() {
        let relu = applied(plan(), &Action::SwapActivation(Kind::Relu));
        let mut wrong = relu.clone();
        walk_mut(&mut wrong.model, &mut |layer, _| {
            if let Layer::Dense(dense) = layer {
                dense.bias_initializer = Initializer::Constant { value: -5.0 };
                dense.kernel_initializer = Initializer::Zeros;
            }
        });
        assert_eq!(applied(PlanSubject(wrong), &Action::Reinitialize(Initializers::Fitting)), relu);
    }

    #[test]
    fn layers_of_the_same_width_get_residual_connections() {
        assert!(plan().apply(&Action::AddResidual).is_err());
        let mut deep = plan();
        let hidden = deep.0.model[0].clone();
        deep.0.model.splice(0..0, vec![hidden; 6]);
        let kinds = kinds(&applied(deep, &Action::AddResidual));
        assert_eq!(kinds[..3], ["dense", "residual", "residual"]);
        assert_eq!(kinds.last(), Some(&"dense"));
    }

    #[test]
    fn separate_activation_layers_belong_to_the_layer_before_them() {
        let mut deep = plan();
        let hidden = deep.0.model[0].clone();
        deep.0.model.splice(0..0, vec![hidden; 6]);
        let fused = applied(deep.clone(), &Action::AddResidual);
        let mut separate = deep.0.model.clone();
        for layer in &mut separate {
            if let Some(place) = layer.activation_mut() {
                *place = Activation::Linear;
            }
        }
        let activation = Layer::Activation(ActivationLayer::new(Activation::Sigmoid));
        deep.0.model = separate.into_iter().flat_map(|layer| [layer, activation.clone()]).collect();
        let relu = applied(deep.clone(), &Action::SwapActivation(Kind::Relu));
        assert_eq!(output_activation(&relu.model), Activation::Sigmoid);
        let residual = applied(deep, &Action::AddResidual);
        assert_eq!(kinds(&residual), [&kinds(&fused)[..], &["activation"]].concat());
    }

    #[test]
    fn scaling_leaves_missing_values_alone() {
        let scaled = applied(plan(), &Action::NormalizeData { outliers: OutliersKind::Clip });
        assert_eq!(scaled.data.missing, plan().0.data.missing);
        let imputed = applied(plan(), &Action::ImputeMissing);
        assert_eq!((imputed.data.missing, imputed.data.scale), (Missing::Impute, Scale::None));
    }

    #[test]
    fn the_papers_clipping_is_by_value() {
        let changed = applied(plan(), &Action::ClipGradient { norm: 1.0 });
        let action = Action::ClipGradientValues { limit: 10.0 };
        let optimizer = applied(PlanSubject(changed), &action).training.optimizer;
        assert_eq!((optimizer.clipvalue, optimizer.global_clipnorm), (Some(10.0), None));
    }

    #[test]
    fn every_change_of_an_action_is_stated() {
        let mut subject = plan();
        let training = &mut subject.0.training;
        training.schedule =
            Schedule { decay: Decay::Cosine { decay_steps: None, alpha: 0.0 }, warmup_steps: 5 };
        training.optimizer.clipvalue = Some(0.5);
        subject.0.data.outliers = Outliers::Clip;
        subject.0.data.missing = Missing::Drop;
        let of = |action: &Action| subject.clone().apply(action).unwrap();
        assert_eq!(
            of(&Action::ClipGradient { norm: 1.0 }),
            "Clips the gradient to a norm of at most 1 instead of clipvalue = 0.5."
        );
        assert_eq!(
            of(&Action::SetDecay(DecayKind::Constant)),
            "Keeps the learning rate constant instead of letting it decay, without the warm-up of 5 \
             steps."
        );
        let swap = Action::SwapOptimizer { optimizer: OptimizerKind::Nadam, learning_rate: 0.01 };
        assert_eq!(
            of(&swap),
            "Trains with nadam at a learning rate of 0.01 instead of adam at 0.001. Removes the \
             learning rate schedule."
        );
        assert_eq!(
            of(&Action::NormalizeData { outliers: OutliersKind::Keep }),
            "Standardizes every feature without clipping outliers."
        );
    }

    #[test]
    fn no_plan_is_tried_twice() {
        let problems = [
            Problem::VANISHING_GRADIENT,
            Problem::SLOW_CONVERGENCE,
            Problem::DYING_RELU,
            Problem::OSCILLATING_LOSS,
        ];
        let finding = |i: usize| Finding::new(problems[i % 4].clone(), 10, "");
        let config = RepairConfig { attempts: 60, ..RepairConfig::default() };
        let remedies = surefoot_repair::remedies::all();
        let facts = Facts::default();
        let mut search =
            RepairSearch::new(plan(), finding(0), &[], facts.clone(), remedies, config);
        let mut tried = vec![plan()];
        loop {
            let round = search.next_round();
            if round.is_empty() {
                break;
            }
            let judged: Vec<_> = round
                .into_iter()
                .map(|proposal| {
                    assert!(!tried.contains(&proposal.subject), "{}", proposal.message);
                    tried.push(proposal.subject.clone());
                    // Every attempt has another problem, which opens branches.
                    let finding = Some(finding(tried.len()));
                    AttemptResult { proposal, finding, facts: facts.clone(), skill: None }
                })
                .collect();
            search.judge(&judged);
        }
        // Otherwise there was nothing that could have been tried twice.
        assert!(tried.len() > 10, "{}", tried.len());
    }

    #[test]
    fn weight_decay_survives_another_optimizer() {
        let mut subject = plan();
        subject.0.training.optimizer.weight_decay = 0.1;
        let action =
            Action::SwapOptimizer { optimizer: OptimizerKind::Momentum, learning_rate: 0.01 };
        let optimizer = applied(subject, &action).training.optimizer;
        assert_eq!((optimizer.algorithm.name(), optimizer.weight_decay), ("sgd", 0.1));
    }
}
