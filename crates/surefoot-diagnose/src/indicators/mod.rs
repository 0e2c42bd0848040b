//! The indicators: conservative checks that may end a trial of a search, one a file.
//!
//! They are the seven of BTTackler (section 3.2), as detectors. A problem detector may be wrong now and
//! then, for a repair that was not needed does little harm. An indicator must not: a search that loses
//! its best trial is worse than one that runs the bad ones to their end. So each of them wants to see
//! its symptom several times in a row, at the stage of the training in which it means something, and
//! those that look at gradients or activations hold still as long as the run learns.
//!
//! A finding of `nmg` is a [warning](crate::Severity::Warning): the trial is done, not bad, and what it
//! has reached counts. All others are problems.

mod adjacent;
mod agv;
mod eag;
mod erg;
mod lar;
mod learning;
mod limits;
mod nmg;
mod plc;
mod stage;
mod ulc;

pub use agv::Agv;
pub use eag::Eag;
pub use erg::Erg;
pub use lar::Lar;
pub use limits::Limits;
pub use nmg::Nmg;
pub use plc::Plc;
pub use stage::Stage;
pub use ulc::Ulc;

use crate::detector::Detector;
use crate::finding::Problem;

/// A new set of all indicators, in the paper's order.
pub fn all(limits: &Limits) -> Vec<Box<dyn Detector>> {
    vec![
        Box::new(Agv::new(limits)),
        Box::new(Eag::new(limits)),
        Box::new(Erg::new(limits)),
        Box::new(Plc::new(limits)),
        Box::new(Lar::new(limits)),
        Box::new(Ulc::new(limits)),
        Box::new(Nmg::new(limits)),
    ]
}

/// Problems of the indicators, in the same order.
pub const PROBLEMS: [Problem; 7] = [
    Problem::AGV,
    Problem::EAG,
    Problem::ERG,
    Problem::PLC,
    Problem::LAR,
    Problem::ULC,
    Problem::NMG,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::fixture::{Course, facts};

    #[test]
    fn every_indicator_has_its_own_problem() {
        let problems: Vec<_> =
            all(&Limits::default()).iter().map(|indicator| indicator.problem()).collect();
        assert_eq!(problems, PROBLEMS);
    }

    /// A skill by its progress, from 0 to 1.
    type Skill = fn(f64) -> f64;

    /// The ways in which a healthy loss comes down.
    const HEALTHY: [(&str, Skill); 6] = [
        ("in a line", |p| 0.9 * p),
        ("quickly", |p| 0.95 * (1.0 - (-8.0 * p).exp())),
        ("slowly", |p| 0.4 * p),
        ("with noise", |p| 0.8 * p + 0.1 * (977.0 * p).sin()),
        ("in steps", |p| 0.2 * (5.0 * p).floor()),
        ("after overshooting", |p| 0.9 * p - 2.0 * (-20.0 * p).exp()),
    ];

    #[test]
    fn a_healthy_run_is_stopped_by_none() {
        for (name, skill) in HEALTHY {
            let course = Course::new(facts()).skill(skill);
            let found = course.run_all(all(&Limits::default()));
            assert_eq!(found, [], "{name}");
        }
    }
}
