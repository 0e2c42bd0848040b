//! Where a symptom becomes a problem.

use crate::finding::Problem;

/// The limits of all detectors.
///
/// The first group are those of AutoTrainer (section 5.4), with its names and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// β1: the gradient of the first layer by that of the last, below which it vanishes.
    pub beta_1: f64,
    /// β2: the norm of the first layer's gradient, below which it vanishes.
    pub beta_2: f64,
    /// β3: the gradient of the first layer by that of the last, above which it explodes.
    pub beta_3: f64,
    /// γ: the share of units with a gradient of zero, above which ReLUs are dying.
    pub gamma: f64,
    /// ζ: the swing of the accuracy that is large.
    pub zeta: f64,
    /// η: the share of time with a large swing, above which the loss oscillates.
    pub eta: f64,
    /// δ: the change of the accuracy in an iteration, below which it hardly moves.
    pub delta: f64,
    /// ω: the size of an input or output that is too large.
    pub omega: f64,
    /// Θ: the accuracy below which a model has learned next to nothing. It is read as that of two
    /// classes of equal size, as the paper's 0.6 was, and turned into a skill: 0.6 is a fifth of the
    /// way from guessing to perfection.
    pub theta: f64,
    /// α: for how many blocks more than the first a symptom has to last. The paper has 0, in
    /// epochs: a block is a two-hundredth of the training, so some are needed to be sure.
    pub alpha: usize,

    /// The metric that the user is content with: nothing is wrong with a model that has it.
    pub good_enough: Option<f64>,
    /// The share of the training in which nothing is said to be slow: it has only begun.
    pub patience: f64,
    /// A step that moves the weights by less than this part of them leads nowhere.
    pub least_update: f64,
    /// A step that moves the weights by more than this part of them destroys what they were.
    pub largest_update: f64,
    /// How many standard deviations a loss jumps in a spike (OLMo-core and Levanter use 6).
    pub spike: f64,
    /// The share of outputs at the bounds of their activation that is too much.
    pub saturated: f64,
    /// How much the validation loss may rise above its best before it is called over-fitting.
    pub over_fitting: f64,
    /// Problems that are not looked for.
    pub off: Vec<Problem>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            beta_1: 1e-3,
            beta_2: 1e-4,
            beta_3: 70.0,
            gamma: 0.7,
            zeta: 0.03,
            eta: 0.2,
            delta: 0.01,
            omega: 10.0,
            theta: 0.6,
            alpha: 3,
            good_enough: None,
            patience: 0.06,
            least_update: 3e-5,
            largest_update: 0.3,
            spike: 6.0,
            saturated: 0.9,
            over_fitting: 0.5,
            off: Vec::new(),
        }
    }
}

impl Thresholds {
    /// Θ as a skill.
    pub(crate) fn low_skill(&self) -> f64 {
        2.0 * self.theta - 1.0
    }
}
