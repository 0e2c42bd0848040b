//! Samplers: which point to try next, one a file.
//!
//! [`SamplerConfig`] is how a study says which one it wants; [`named`] gives one by its name.
//!
//! What outcomes mean is the same for all. Costs are minimised. A trial that a pruner ended counts with the cost that it
//! would have come to ([`imputation`](crate::imputation)), one that an indicator ended with its last. One that failed, or came to no finite number, is
//! [`Worthless`](crate::TrialOutcome::Failed): no better than the worst that is not. One that runs is
//! kept away from. How each sampler takes that into account is said where it is defined.

mod acquisition;
mod descent;
mod draws;
#[cfg(test)]
mod fixture;
mod forest;
mod frame;
mod gp;
mod known;
#[cfg(test)]
mod laws;
mod parzen;
mod random;
mod settings;
mod shape;
mod smac;
mod sobol;
mod tpe;

pub use gp::Gp;
pub use random::Random;
pub use settings::SamplerConfig;
pub use smac::Smac;
pub use sobol::Sobol;
pub use tpe::Tpe;

use crate::history::History;
use crate::space::{Point, Space};
use surefoot_random::{Key, Purpose};

/// Says which point to try next.
///
/// A sampler keeps nothing between calls: the same request has the same answer, on any machine and
/// in any process. That is what makes a search repeatable, and what lets any worker ask.
pub trait Sampler: Send + Sync {
    /// The name it has in studies.
    fn name(&self) -> &'static str;

    /// The point for the trial of this number.
    fn suggest(&self, request: &SampleRequest<'_>) -> Point;
}

/// What a sampler is asked.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest<'a> {
    /// Where to look.
    pub space: &'a Space,
    /// The seed of the study.
    pub seed: u64,
    /// The number of the trial, from 0.
    pub number: u64,
    /// What is known of the other trials.
    pub history: &'a History,
}

impl SampleRequest<'_> {
    /// The key of the draws that answer it.
    pub fn key(&self) -> Key {
        Key::new(self.seed, Purpose::Sample).epoch(self.number)
    }
}

/// The sampler of a name, with its default settings.
pub fn named(name: &str) -> Option<Box<dyn Sampler>> {
    SamplerConfig::named(name).map(SamplerConfig::sampler)
}

/// The names of all samplers.
pub fn names() -> impl Iterator<Item = &'static str> {
    SamplerConfig::all().map(|settings| settings.name())
}
