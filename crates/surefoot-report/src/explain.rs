//! Explanations of problems for readers without a background in deep learning.

use surefoot_diagnose::Problem;

/// Problem, reason (follows "because") and consequence.
static EXPLANATIONS: &[(Problem, &str, &str)] = &[
    (
        Problem::VANISHING_GRADIENT,
        "the gradients vanished before they reached the first layers",
        "Gradients tell each layer how to change. Here they become so small on the way back \
         through the network that the first layers hardly learn.",
    ),
    (
        Problem::EXPLODING_GRADIENT,
        "the gradients exploded",
        "Gradients tell each layer how to change. Here they are so large that each step \
         overshoots instead of improving the weights.",
    ),
    (
        Problem::DYING_RELU,
        "most ReLU units were dead",
        "A ReLU unit outputs zero for negative inputs. A unit that outputs zero for every sample \
         gets no gradient and cannot recover.",
    ),
    (
        Problem::OSCILLATING_LOSS,
        "the loss oscillated",
        "The loss measures the error of the model. It oscillates because each step overshoots, \
         so one step undoes the progress of the previous one.",
    ),
    (
        Problem::SLOW_CONVERGENCE,
        "the loss hardly decreased",
        "The model improves so slowly that the planned training is too short.",
    ),
    (
        Problem::IMPROPER_OUTPUT_ACTIVATION,
        "the output activation did not suit the task",
        "The activation of the last layer determines the possible outputs. With this activation \
         the correct outputs cannot be reached.",
    ),
    (
        Problem::IMPROPER_OUTPUT_UNITS,
        "the output layer had too few units for the classes",
        "A model with more than two classes needs one output unit for each.",
    ),
    (
        Problem::UNSCALED_TARGETS,
        "the targets were far from the range of an untrained output",
        "A new network outputs numbers about 0. Targets of hundreds or thousands make its first errors \
         enormous, and most of the training is spent on reaching their mean.",
    ),
    (
        Problem::IMPROPER_LOSS,
        "the loss function did not suit the task",
        "Training minimizes the loss. This loss does not measure the error of the task.",
    ),
    (
        Problem::ABNORMAL_DATA,
        "the input values were far outside the usual range",
        "Networks learn best from values around zero with a magnitude of about one. Scale the \
         data before training.",
    ),
    (
        Problem::NON_FINITE_LOSS,
        "the loss became NaN or infinite",
        "A value became too large to be represented. All results after that step are \
         meaningless.",
    ),
    (
        Problem::DIVERGING_LOSS,
        "the loss rose instead of falling",
        "Each step makes the model worse. The learning rate is a common cause.",
    ),
    (
        Problem::NEGATIVE_LOSS,
        "the cross-entropy was negative",
        "A cross-entropy is never negative. The targets are not probabilities.",
    ),
    (
        Problem::COLLAPSE,
        "the model lost what it had learned",
        "After a good start, a few large steps destroyed the weights.",
    ),
    (
        Problem::METRIC_AT_CHANCE,
        "the accuracy stayed at that of a constant prediction",
        "The model gives the same answer for every sample, whatever its loss.",
    ),
    (
        Problem::VALIDATION_AT_CHANCE,
        "the validation accuracy did not follow the training accuracy",
        "The model is perfect on the training data and guesses on other data.",
    ),
    (
        Problem::LOSS_SPIKE,
        "the loss jumped",
        "The loss was suddenly much higher than before, for several steps. Clipping the gradient \
         or a lower learning rate prevents it.",
    ),
    (
        Problem::SATURATED_ACTIVATION,
        "activations were saturated",
        "Activations such as sigmoid and tanh are flat at their bounds. A unit at a bound has \
         almost no gradient and hardly learns.",
    ),
    (
        Problem::UNCHANGED_WEIGHTS,
        "weights did not change",
        "Training changes the weights. These weights did not change, so their layers learned \
         nothing.",
    ),
    (
        Problem::MISMATCHED_SHAPES,
        "the loss compared outputs with the targets of other samples",
        "Outputs and targets have different shapes, and broadcasting pairs each output with every target. \
         The loss is then lowest if the model always predicts the mean of all targets.",
    ),
    (
        Problem::UPDATE_RATIO,
        "the weight updates were too large or too small",
        "A good step changes weights by about 0.1% of their magnitude. Larger updates make \
         training unstable, smaller updates make it slow.",
    ),
    (
        Problem::UNEVEN_UPDATES,
        "some layers were updated unlike the others",
        "A step should change all layers by a similar share of their weights. A layer that hardly \
         changes does not learn; one that changes by much does not keep what it learns.",
    ),
    (
        Problem::GRADIENT_SPIKE,
        "the gradient jumped",
        "The gradient was suddenly much larger than before. Clipping it bounds the steps.",
    ),
    (
        Problem::OUTPUT_DRIFT,
        "the outputs of a layer grew without end",
        "Numbers of half precision are exact to three digits and end at 65,504.",
    ),
    (
        Problem::ATTENTION_DRIFT,
        "the attention logits grew without end",
        "The softmax of large logits is on a single position and has almost no gradient. Large \
         models diverge soon after.",
    ),
    (
        Problem::IMPROPER_WARMUP,
        "the learning rate did not fit its warm-up",
        "The first steps of an adaptive optimizer are large. A warm-up of some percent of the \
         training keeps them small; a longer one wastes steps.",
    ),
    (
        Problem::UNCLEARED_GRADIENTS,
        "gradients were not cleared",
        "Gradients are added up until they are cleared. Without that, each step repeats all the \
         steps before it.",
    ),
    (
        Problem::OVER_FITTING,
        "the model over-fitted the training data",
        "The model improves on the training data and gets worse on data that it has not seen.",
    ),
    (
        Problem::ONE_CLASS_PREDICTED,
        "the model predicted the same class for every sample",
        "The output does not depend on the input, so the model has not learned to distinguish \
         classes.",
    ),
    (
        Problem::CONSTANT_DATA,
        "labels or features were constant",
        "A value that is the same in every sample carries no information.",
    ),
    (
        Problem::INPUT_SCALE,
        "input features were large or on very different scales",
        "A feature with large values dominates the others. Scale all features to a common range.",
    ),
    (
        Problem::AGV,
        "the gradients were NaN, infinite or extremely large",
        "Gradients tell each layer how to change. These gradients cannot be used for learning.",
    ),
    (
        Problem::EAG,
        "the gradients grew from layer to layer",
        "Each layer passes on a larger gradient than it receives, so the first layers become \
         unstable.",
    ),
    (
        Problem::ERG,
        "the gradients shrank from layer to layer",
        "Each layer passes on a smaller gradient than it receives, so the first layers hardly \
         learn.",
    ),
    (
        Problem::PLC,
        "the loss hardly decreased in the first part of the training",
        "With suitable hyperparameters the loss decreases early. Here it stayed close to its \
         initial value.",
    ),
    (
        Problem::LAR,
        "most units were inactive",
        "A unit that outputs zero passes on no information and does not learn. Here this applies \
         to almost all units of a layer.",
    ),
    (
        Problem::ULC,
        "the loss was unstable in the last part of the training",
        "The loss should settle towards the end. Here it oscillates or rises, so more steps do \
         not help.",
    ),
    (
        Problem::NMG,
        "the loss stopped improving",
        "The loss has not reached a new minimum for some time. More steps are not expected to \
         improve the model.",
    ),
];

/// Consequence of a problem, if the problem is known.
pub(crate) fn meaning(problem: &Problem) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|(known, ..)| known == problem).map(|(.., meaning)| *meaning)
}

/// Reason with the name of the problem: `because … (dying ReLU)`.
pub(crate) fn because(problem: &Problem) -> String {
    match EXPLANATIONS.iter().find(|(known, ..)| known == problem) {
        Some((_, reason, _)) => format!("because {reason} ({})", problem.title()),
        None => format!("because of the problem “{}”", problem.title()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_problem_is_named() {
        assert_eq!(because(&Problem::DYING_RELU), "because most ReLU units were dead (dying ReLU)");
        assert_eq!(because(&Problem::new("odd_thing")), "because of the problem “odd thing”");
    }
}
