//! The zoo: plans generated from a seed, some with an injected fault, to evaluate detectors and
//! remedies.

mod case;
mod corruption;
mod dataset;
mod evaluate;
mod fault;
mod quality;
mod real;
mod remedies;
mod rng;
mod sweep;
mod table;
mod watch;

pub use case::{Case, Injected, cases};
pub use dataset::DatasetKind;
pub use evaluate::{Faulty, Row, Treated, evaluate, treat, with_fault};
pub use fault::{Corruption, Degree, Fault};
pub use quality::{Quality, QualityLine, qualities, qualities_text};
pub use real::{motivating, real_cases};
pub use remedies::{RemedyLine, each_remedy, remedies_text};
pub use sweep::{IndicatorLine, IntervalLine, SweepLine};
pub use sweep::{indicators, indicators_text, intervals, intervals_text, sweep, sweep_text};
pub use table::{Line, OtherRules, Tables};

use surefoot_plan::Rules;

/// Name of a set of rules in results.
pub fn rules_name(rules: Rules) -> &'static str {
    match rules {
        Rules::Surefoot => "surefoot",
        Rules::AutoTrainer => "autotrainer",
    }
}
