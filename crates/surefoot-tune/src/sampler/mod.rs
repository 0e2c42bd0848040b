//! Samplers: the next point to try, one sampler per file.
//!
//! All samplers minimize costs and treat results alike. A pruned trial counts with an
//! [imputed](crate::imputation) final cost, a trial stopped by an indicator with its last cost. A
//! [failed](crate::TrialOutcome::Failed) trial counts as the worst finite cost. Points of running
//! trials are avoided.
//!
//! # Adding a sampler
//!
//! Write one file with a struct for its options, a documented `Default`, an implementation of
//! [`Sampler`] and its tests; then add one line to `SAMPLERS`.
//! Programs can also use a sampler that is not in the list:
//!
//! ```
//! use serde::Serialize;
//! use surefoot_tune::sampler::{SampleRequest, Sampler, SamplerConfig};
//! use surefoot_tune::{Domain, History, Parameter, Point, Space};
//!
//! /// Tries evenly spaced points, the same for every parameter.
//! #[derive(Serialize)]
//! struct Diagonal {
//!     steps: u64,
//! }
//!
//! impl Sampler for Diagonal {
//!     fn name(&self) -> &'static str {
//!         "diagonal"
//!     }
//!
//!     fn learns(&self) -> bool {
//!         false
//!     }
//!
//!     fn suggest(&self, request: &SampleRequest<'_>) -> Point {
//!         let place = (request.number % self.steps) as f64 / self.steps as f64;
//!         request.space.at(|_| place)
//!     }
//! }
//!
//! let sampler = SamplerConfig::new(Diagonal { steps: 4 });
//! let rate = Parameter { name: "rate".to_owned(), domain: Domain::Uniform(0.0, 1.0), conditions: vec![] };
//! let space = Space::new(vec![rate])?;
//! let request = SampleRequest { space: &space, seed: 1, number: 2, history: &History::default() };
//! assert_eq!(sampler.suggest(&request), space.at(|_| 0.5));
//! # Ok::<(), surefoot_tune::SpaceError>(())
//! ```

pub(crate) mod acquisition;
pub(crate) mod descent;
pub(crate) mod draws;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod forest;
pub(crate) mod frame;
pub(crate) mod gp;
#[cfg(test)]
mod laws;
mod model_data;
mod parzen;
mod random;
mod shape;
mod smac;
pub(crate) mod sobol;
mod tpe;

pub use gp::Gp;
pub use random::Random;
pub use smac::Smac;
pub use sobol::Sobol;
pub use tpe::Tpe;

use crate::history::History;
use crate::registry::{Component, Configured, Options, Registered};
use crate::space::{Point, Space};
use serde::Serialize;
use std::sync::Arc;
use surefoot_random::{Key, Purpose};

/// Suggests the next point to try.
///
/// Samplers are stateless: the same request returns the same point in any process on any machine, so
/// searches are reproducible and any worker can sample.
pub trait Sampler: Send + Sync {
    /// The name in studies.
    fn name(&self) -> &'static str;

    /// True if the points depend on the results of other trials.
    fn learns(&self) -> bool {
        true
    }

    /// Returns the point for the trial of this number.
    fn suggest(&self, request: &SampleRequest<'_>) -> Point;
}

/// The input of a sampler.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest<'a> {
    /// The search space.
    pub space: &'a Space,
    /// The seed of the study.
    pub seed: u64,
    /// The 0-based number of the trial.
    pub number: u64,
    /// Results of the other trials.
    pub history: &'a History,
}

impl SampleRequest<'_> {
    /// The key of all random draws for this trial.
    pub fn key(&self) -> Key {
        Key::new(self.seed, Purpose::Sample).epoch(self.number)
    }
}

/// A sampler with its options, as a study writes it: `"sobol"` or `{ name = "tpe", gamma = 0.1 }`.
///
/// ```
/// use surefoot_tune::sampler::{SamplerConfig, Tpe};
///
/// let given: SamplerConfig = serde_json::from_str(r#"{"name": "tpe", "gamma": 0.1}"#)?;
/// assert_eq!(given, SamplerConfig::new(Tpe { gamma: 0.1, ..Tpe::default() }));
/// let given: SamplerConfig = serde_json::from_str(r#""sobol""#)?;
/// assert_eq!(given.name(), "sobol");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type SamplerConfig = Configured<dyn Sampler>;

/// All samplers that studies can name.
const SAMPLERS: &[Registered<dyn Sampler>] = &[
    registered::<Random>(),
    registered::<Sobol>(),
    registered::<Tpe>(),
    registered::<Gp>(),
    registered::<Smac>(),
];

impl Component for dyn Sampler {
    const KIND: &'static str = "sampler";

    fn registered() -> &'static [Registered<dyn Sampler>] {
        SAMPLERS
    }

    fn component_name(&self) -> &'static str {
        self.name()
    }
}

const fn registered<S: Sampler + Options>() -> Registered<dyn Sampler> {
    Registered(|options| serde_json::from_value::<S>(options.into()).map(SamplerConfig::new))
}

impl SamplerConfig {
    /// Wraps a sampler, registered or not.
    pub fn new<S: Sampler + Serialize + 'static>(sampler: S) -> SamplerConfig {
        let sampler = Arc::new(sampler);
        Configured::from_parts(sampler.clone(), &*sampler)
    }
}

/// TPE with its defaults.
impl Default for SamplerConfig {
    fn default() -> SamplerConfig {
        SamplerConfig::new(Tpe::default())
    }
}
