//! Learning rate schedules.

use crate::language::{
    Choice, Fields, Record, Variant, at_least_one, keys, non_negative, unit_interval, variant,
};

/// A learning rate schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Decay after the warm-up.
    pub decay: Decay,
    /// Number of steps in which the rate rises linearly from 0 to the base rate.
    pub warmup_steps: u64,
}

/// Decay of a [`Schedule`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Decay {
    /// Constant base rate.
    #[default]
    Constant,
    /// Multiplies the rate by `decay_rate` after every `decay_steps` steps.
    Step {
        /// Steps between two drops.
        decay_steps: u64,
        /// The factor of each drop.
        decay_rate: f64,
    },
    /// `decay_rate ^ (step / decay_steps)`, smoothly.
    Exponential {
        /// Steps after which the rate has decayed by `decay_rate`.
        decay_steps: u64,
        /// The factor.
        decay_rate: f64,
    },
    /// `1 / (1 + decay_rate * step / decay_steps)`; the `decay` of optimizers in Keras 1 and 2.
    InverseTime {
        /// Steps that `decay_rate` refers to (default 1).
        decay_steps: u64,
        /// Growth of the divisor.
        decay_rate: f64,
    },
    /// Half a cosine down to `alpha` times the base rate (default 0).
    Cosine {
        /// Number of steps; all steps after the warm-up if absent.
        decay_steps: Option<u64>,
        /// Final rate as a fraction of the base rate.
        alpha: f64,
    },
}

impl Decay {
    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Step { .. } => "step",
            Self::Exponential { .. } => "exponential",
            Self::InverseTime { .. } => "inverse_time",
            Self::Cosine { .. } => "cosine",
        }
    }
}

impl From<Decay> for Schedule {
    fn from(decay: Decay) -> Self {
        Self { decay, warmup_steps: 0 }
    }
}

impl Choice for Schedule {
    const TAG: &'static str = "decay";
    const NOUN: &'static str = "a schedule";
    const FALLBACK: Option<&'static str> = Some("constant");
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("constant", || Decay::Constant.into()),
        variant("step", || Decay::Step { decay_steps: 1, decay_rate: 0.1 }.into()),
        variant("exponential", || Decay::Exponential { decay_steps: 1, decay_rate: 0.96 }.into()),
        variant("inverse_time", || Decay::InverseTime { decay_steps: 1, decay_rate: 0.0 }.into()),
        variant("cosine", || Decay::Cosine { decay_steps: None, alpha: 0.0 }.into()),
    ];

    fn variant(&self) -> &'static str {
        self.decay.name()
    }
}

impl Record for Schedule {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match &mut self.decay {
            Decay::Constant => {}
            Decay::Step { decay_steps, decay_rate }
            | Decay::Exponential { decay_steps, decay_rate } => {
                keys! { f; required: decay_steps(at_least_one); optional: decay_rate(rate); }
            }
            Decay::InverseTime { decay_steps, decay_rate } => {
                keys! { f;
                    optional: decay_steps(at_least_one);
                    required: decay_rate(non_negative);
                }
            }
            Decay::Cosine { decay_steps, alpha } => {
                keys! { f; maybe: decay_steps(at_least_one); optional: alpha(unit_interval); }
            }
        }
        keys! { f, self; optional: warmup_steps; }
    }
}

/// A factor of the learning rate, above zero.
fn rate(value: &f64) -> Result<(), &'static str> {
    match *value > 0.0 && *value <= 1.0 {
        true => Ok(()),
        false => Err("be above 0 and at most 1"),
    }
}
