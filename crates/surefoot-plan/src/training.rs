//! Training options, losses and observation options.

use crate::error::Fault;
use crate::language::{
    Choice, Fields, Record, Term, Variant, alias, any, at_least_one, keys, positive, quoted,
    record, variant,
};
use crate::tree::{Node, Tree};
use crate::{Optimizer, Schedule, Task};
use std::num::NonZeroU64;

/// Training options.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Number of passes over the training split.
    pub epochs: u64,
    /// Metric at which training ends early: accuracy, or R² for a regression, on the validation split or,
    /// without one, on the training split.
    pub stop_at: Option<f64>,
    /// Samples per step.
    pub batch_size: usize,
    /// Loss function.
    pub loss: Loss,
    /// Optimizer.
    pub optimizer: Optimizer,
    /// Learning rate schedule.
    pub schedule: Schedule,
    /// Shuffles the samples in each epoch.
    pub shuffle: bool,
    /// Number of logical shards of each batch. The result depends on this number, but not on the
    /// number of workers. Chosen from the size of the model and the batch if absent.
    pub shards: Option<usize>,
    /// Steps between checkpoints. If absent, checkpoints are written at the end of an epoch, about
    /// once per second of work.
    pub checkpoint_every: Option<u64>,
    /// Gives the same bits on every x86-64 CPU with AVX2 and FMA, some slower.
    pub portable: bool,
}

/// Loss function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Binary cross-entropy, for targets 0 and 1.
    BinaryCrossentropy {
        /// The output of the model is a logit instead of a probability.
        from_logits: bool,
    },
    /// Cross-entropy for one-hot targets.
    CategoricalCrossentropy {
        /// The outputs of the model are logits instead of probabilities.
        from_logits: bool,
    },
    /// Cross-entropy for class indices.
    SparseCategoricalCrossentropy {
        /// The outputs of the model are logits instead of probabilities.
        from_logits: bool,
    },
    /// Mean squared error.
    Mse,
    /// Mean absolute error.
    Mae,
    /// Huber loss: quadratic up to `delta` (default 1), linear beyond.
    Huber {
        /// Error at which the loss becomes linear.
        delta: f64,
    },
    /// `max(1 - y p, 0)`, targets -1 and 1 (0 counts as -1).
    Hinge,
    /// `y ln(y / p)`
    KlDivergence,
    /// `p - y ln(p)`
    Poisson,
}

/// Observation options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Interval between observations of layers.
    pub every: ObserveEvery,
    /// Interval between computations of quartiles, which cost more than all other statistics.
    pub quartiles: ObserveEvery,
    /// Observes gradients.
    pub gradients: bool,
    /// Observes weights.
    pub weights: bool,
    /// Observes outputs.
    pub outputs: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            every: ObserveEvery::Auto,
            quartiles: ObserveEvery::Auto,
            gradients: true,
            weights: true,
            outputs: true,
        }
    }
}

/// Observation interval. In TOML: `"auto"`, `"never"` or a number of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObserveEvery {
    /// As often as possible at an estimated cost of 3% of the training operations.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Every given number of steps.
    Every(NonZeroU64),
}

impl Training {
    /// `epochs` epochs with batches of 32 and Adam, at a constant learning rate.
    pub fn new(epochs: u64, loss: Loss) -> Self {
        Self {
            epochs,
            stop_at: None,
            batch_size: 32,
            loss,
            optimizer: Optimizer::adam(),
            schedule: Schedule::default(),
            shuffle: true,
            shards: None,
            checkpoint_every: None,
            portable: false,
        }
    }
}

impl Training {
    /// Visits the keys. The loss is optional if there is a usual one.
    pub(crate) fn fields_of<'a, F: Fields<'a>>(&'a mut self, f: &mut F, usual: Option<Loss>) {
        keys! { f, self; required: epochs(at_least_one); maybe: stop_at; optional: batch_size; }
        match usual {
            Some(loss) => {
                self.loss = loss;
                keys! { f, self; optional: loss; }
            }
            None => f.required("loss", &mut self.loss, any),
        }
        keys! { f, self;
            optional: optimizer, schedule, shuffle;
            maybe: shards, checkpoint_every(at_least_one);
            optional: portable;
        }
    }
}

/// Prints the loss in any case.
impl Record for Training {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        self.fields_of(f, None);
    }
}

impl Loss {
    /// Default loss of a task, for the usual output activation (sigmoid, softmax, linear).
    pub fn of_task(task: Task) -> Self {
        match task {
            Task::Binary | Task::MultiLabel => Self::BinaryCrossentropy { from_logits: false },
            Task::MultiClass => Self::SparseCategoricalCrossentropy { from_logits: false },
            Task::Regression => Self::Mse,
        }
    }

    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        self.variant()
    }
}

impl Record for Loss {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match self {
            Self::BinaryCrossentropy { from_logits }
            | Self::CategoricalCrossentropy { from_logits }
            | Self::SparseCategoricalCrossentropy { from_logits } => {
                keys! { f; optional: from_logits; }
            }
            Self::Huber { delta } => f.optional("delta", delta, positive),
            Self::Mse | Self::Mae | Self::Hinge | Self::KlDivergence | Self::Poisson => {}
        }
    }
}

impl Choice for Loss {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a loss";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("binary_crossentropy", || Self::BinaryCrossentropy { from_logits: false }),
        variant("categorical_crossentropy", || Self::CategoricalCrossentropy {
            from_logits: false,
        }),
        variant("sparse_categorical_crossentropy", || Self::SparseCategoricalCrossentropy {
            from_logits: false,
        }),
        alias("mse", &["mean_squared_error"], || Self::Mse),
        alias("mae", &["mean_absolute_error"], || Self::Mae),
        variant("huber", || Self::Huber { delta: 1.0 }),
        variant("hinge", || Self::Hinge),
        alias("kl_divergence", &["kld", "kullback_leibler_divergence"], || Self::KlDivergence),
        variant("poisson", || Self::Poisson),
    ];
}

record! { Watch; optional: every, quartiles, gradients, weights, outputs; }

impl Term for ObserveEvery {
    const NOUN: &'static str = "\"auto\", \"never\" or a number of steps";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        let steps = match &node.value {
            Tree::Text(text) if text == "auto" => return Ok(Self::Auto),
            Tree::Text(text) if text == "never" => return Ok(Self::Never),
            Tree::Integer(steps) => u64::try_from(*steps).ok().and_then(NonZeroU64::new),
            Tree::Text(_) => None,
            _ => return Err(Fault::kind(node, key, Self::NOUN)),
        };
        steps
            .map(Self::Every)
            .ok_or_else(|| Fault::new(node.span.clone(), format!("`{key}` must be {}", Self::NOUN)))
    }

    fn write(&self) -> String {
        match self {
            Self::Auto => quoted("auto"),
            Self::Never => quoted("never"),
            Self::Every(steps) => steps.to_string(),
        }
    }
}
