//! Problems in plain words, for those who have never heard of them.

use surefoot_diagnose::Problem;

/// A problem in plain words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Explanation {
    /// What was wrong, to follow "because".
    pub(crate) because: &'static str,
    /// What that means for the training.
    pub(crate) meaning: &'static str,
}

static EXPLANATIONS: [(Problem, Explanation); 24] = [
    (
        Problem::VANISHING_GRADIENT,
        Explanation {
            because: "the gradients died away before they reached the first layers",
            meaning: "A gradient tells each layer how to change in order to do better. Here it \
                      becomes so small on its way back through the network that the first layers \
                      hardly learn at all.",
        },
    ),
    (
        Problem::EXPLODING_GRADIENT,
        Explanation {
            because: "the gradients grew out of all proportion",
            meaning: "A gradient tells each layer how to change in order to do better. Here it is \
                      so large that each step throws the weights far off instead of improving \
                      them.",
        },
    ),
    (
        Problem::DYING_RELU,
        Explanation {
            because: "most ReLU units were dead",
            meaning: "A ReLU unit passes on positive numbers and turns the rest to zero. A unit \
                      that is zero for every sample gets no gradient, so it can never learn again.",
        },
    ),
    (
        Problem::OSCILLATING_LOSS,
        Explanation {
            because: "the loss went up and down instead of down",
            meaning: "The loss measures how wrong the model is. It swings because each step \
                      overshoots, so what one step learns the next undoes.",
        },
    ),
    (
        Problem::SLOW_CONVERGENCE,
        Explanation {
            because: "the loss hardly moved",
            meaning: "The model gets better so slowly that the planned training would not be \
                      enough.",
        },
    ),
    (
        Problem::IMPROPER_OUTPUT_ACTIVATION,
        Explanation {
            because: "the last activation did not suit the task",
            meaning: "The activation of the last layer decides which outputs are possible. With \
                      this one the right answers are out of reach.",
        },
    ),
    (
        Problem::IMPROPER_LOSS,
        Explanation {
            because: "the loss did not suit the task",
            meaning: "The loss is what training makes small. This one does not measure what the \
                      task asks for.",
        },
    ),
    (
        Problem::ABNORMAL_DATA,
        Explanation {
            because: "the input was far from what a network can start from",
            meaning: "Networks learn best from numbers around zero of about the size of one. The \
                      data should be scaled before training.",
        },
    ),
    (
        Problem::NON_FINITE_LOSS,
        Explanation {
            because: "the loss was no number any more",
            meaning: "Somewhere a number became too large to be represented. From then on nothing \
                      that is computed means anything.",
        },
    ),
    (
        Problem::LOSS_SPIKE,
        Explanation {
            because: "the loss jumped",
            meaning: "The loss was suddenly much higher than just before. Often one unusual batch \
                      is behind it.",
        },
    ),
    (
        Problem::SATURATED_ACTIVATION,
        Explanation {
            because: "activations were stuck at their bounds",
            meaning: "Activations such as sigmoid and tanh are flat at their ends. A unit that is \
                      there has almost no gradient and hardly learns.",
        },
    ),
    (
        Problem::UNCHANGED_WEIGHTS,
        Explanation {
            because: "weights that should learn stayed as they were",
            meaning: "Training changes the weights. These did not change, so that part of the \
                      model learns nothing.",
        },
    ),
    (
        Problem::UPDATE_RATIO,
        Explanation {
            because: "the steps changed the weights by too much or too little",
            meaning: "A good step changes weights by about a thousandth of their size. Much more \
                      makes training unstable, much less makes it slow.",
        },
    ),
    (
        Problem::OVER_FITTING,
        Explanation {
            because: "the model learned its training data by heart",
            meaning: "It gets better on the data it is trained on and worse on data it has not \
                      seen.",
        },
    ),
    (
        Problem::ONE_CLASS_PREDICTED,
        Explanation {
            because: "the model predicted the same class for everything",
            meaning: "It gives the same answer whatever it is shown, so it has not learned to \
                      tell classes apart.",
        },
    ),
    (
        Problem::CONSTANT_DATA,
        Explanation {
            because: "labels or features were the same in every sample",
            meaning: "What never changes cannot be learned from.",
        },
    ),
    (
        Problem::INPUT_SCALE,
        Explanation {
            because: "input features were large or on very different scales",
            meaning: "A feature with large numbers drowns the others. Scaling the data to a \
                      common size helps.",
        },
    ),
    (
        Problem::AGV,
        Explanation {
            because: "the gradients were no numbers any more, or enormous",
            meaning: "A gradient tells each layer how to change in order to do better. One \
                      that is no number, or far beyond all measure, leaves nothing to learn \
                      from.",
        },
    ),
    (
        Problem::EAG,
        Explanation {
            because: "the gradients grew from layer to layer",
            meaning: "Each layer passes on a larger gradient than it gets. The first layers \
                      are then thrown about while the last ones learn.",
        },
    ),
    (
        Problem::ERG,
        Explanation {
            because: "the gradients shrank from layer to layer",
            meaning: "Each layer passes on a smaller gradient than it gets. Hardly anything of \
                      it reaches the first layers, and they do not learn.",
        },
    ),
    (
        Problem::PLC,
        Explanation {
            because: "the loss hardly moved in the first part of the training",
            meaning: "With settings that suit the task the loss comes down soon. Here it \
                      stayed about where it began.",
        },
    ),
    (
        Problem::LAR,
        Explanation {
            because: "most units put out nothing",
            meaning: "A unit that puts out zero passes on nothing and learns nothing. Here \
                      that is so for nearly all units of a layer.",
        },
    ),
    (
        Problem::ULC,
        Explanation {
            because: "the loss went up and down in the last part of the training",
            meaning: "Towards the end the loss should settle. Here it swings or rises, so more \
                      steps do not help.",
        },
    ),
    (
        Problem::NMG,
        Explanation {
            because: "there was no more to gain",
            meaning: "The loss has not been lower for some time. What was learned until then \
                      counts; more steps would not add to it.",
        },
    ),
];

/// The plain words for a problem, if it is a known one.
pub(crate) fn explanation(problem: &Problem) -> Option<Explanation> {
    let known = EXPLANATIONS.iter().find(|(known, _)| known == problem);
    known.map(|(_, explanation)| *explanation)
}

/// Why something ended, with the name of the problem: `because … (dying ReLU)`.
pub(crate) fn because(problem: &Problem) -> String {
    match explanation(problem) {
        Some(explanation) => format!("because {} ({})", explanation.because, problem.title()),
        None => format!("because of a problem called {}", problem.title()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_problem_has_a_reason_and_an_unknown_one_its_name() {
        assert_eq!(because(&Problem::DYING_RELU), "because most ReLU units were dead (dying ReLU)");
        assert_eq!(because(&Problem::new("odd_thing")), "because of a problem called odd thing");
    }
}
