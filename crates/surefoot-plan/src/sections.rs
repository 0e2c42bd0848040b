//! The `[diagnose]` and `[repair]` sections, and the rules that their defaults belong to.

use crate::language::{
    Choice, Record, Variant, at_least_one, non_negative, positive, record, share, variant,
};

/// Rules of diagnosis and repair: detectors, remedies and their order, and the defaults of
/// `[diagnose]` and `[repair]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Surefoot's own.
    #[default]
    Surefoot,
    /// Those of AutoTrainer, as published.
    AutoTrainer,
}

impl Record for Rules {}

impl Choice for Rules {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a set of rules";
    const VARIANTS: &'static [Variant<Self>] =
        &[variant("surefoot", || Self::Surefoot), variant("autotrainer", || Self::AutoTrainer)];
}

/// Thresholds of the diagnosis. Absent ones have the defaults of the detectors.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // `surefoot_diagnose::Thresholds` documents them
pub struct Diagnose {
    /// Ids of problems to ignore.
    pub off: Vec<String>,
    /// Metric from which on a model has no problems.
    pub good_enough: Option<f64>,
    pub theta: Option<f64>,
    pub alpha: Option<u64>,
    pub check_every: Option<u64>,
    pub beta_1: Option<f64>,
    pub beta_2: Option<f64>,
    pub beta_3: Option<f64>,
    pub gamma: Option<f64>,
    pub zeta: Option<f64>,
    pub eta: Option<f64>,
    pub delta: Option<f64>,
    pub omega: Option<f64>,
    pub patience: Option<f64>,
    pub least_update: Option<f64>,
    pub largest_update: Option<f64>,
    pub spike: Option<f64>,
    pub saturated: Option<f64>,
    pub over_fitting: Option<f64>,
}

impl Diagnose {
    /// The thresholds that the plan sets, by name.
    pub fn stated(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("good_enough", self.good_enough),
            ("theta", self.theta),
            ("alpha", self.alpha.map(|count| count as f64)),
            ("check_every", self.check_every.map(|count| count as f64)),
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("beta_3", self.beta_3),
            ("gamma", self.gamma),
            ("zeta", self.zeta),
            ("eta", self.eta),
            ("delta", self.delta),
            ("omega", self.omega),
            ("patience", self.patience),
            ("least_update", self.least_update),
            ("largest_update", self.largest_update),
            ("spike", self.spike),
            ("saturated", self.saturated),
            ("over_fitting", self.over_fitting),
        ];
        let stated = all.into_iter();
        stated.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

record! { Diagnose;
    optional: off;
    maybe: good_enough, theta(share), alpha, check_every(at_least_one),
        beta_1(non_negative), beta_2(non_negative), beta_3(positive), gamma(non_negative),
        zeta(non_negative), eta(non_negative), delta(non_negative), omega(positive),
        patience(share), least_update(non_negative), largest_update(positive),
        spike(positive), saturated(non_negative), over_fitting(non_negative);
}

/// Options of the repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// Ids of remedies that must not be tried.
    pub forbid: Vec<String>,
    /// Ids of remedies to try first, in this order, if they apply to the problem.
    pub order: Vec<String>,
    /// Number of remedies tried at the same time. The result depends on this number, but not on the
    /// number of workers.
    pub parallel: usize,
    /// Maximum number of remedies to try.
    pub attempts: usize,
}

impl Repair {
    /// The default options with `rules`. AutoTrainer tries one remedy at a time.
    pub fn of(rules: Rules) -> Self {
        let parallel = if rules == Rules::AutoTrainer { 1 } else { 2 };
        Self { forbid: Vec::new(), order: Vec::new(), parallel, attempts: 16 }
    }
}

impl Default for Repair {
    fn default() -> Self {
        Self::of(Rules::default())
    }
}

record! { Repair; optional: forbid, order, parallel, attempts; }
